"""Kafka's primitive types, read from a memoryview and written to bytes, for the messages that are not left to kafka-python.

What reads gives what was found and where it ends. A message is `flexible` from some version on: then lengths are varints of one more, and fields
may be tagged.
"""

from struct import Struct

SHORT, INT = Struct(">h"), Struct(">i")
NO_TAGS, NULL_TEXT = b"\0", (b"\xff\xff", b"\0")
_VARINT_BITS = 28


def not_null(length, name):
    """The length of a field that may not be null. ValueError: it is."""
    if length < 0:
        raise ValueError(f"{name} is null")
    return length


def string(data, at, length):
    end = at + length
    if end > len(data):
        raise EOFError("a text is cut off")
    return str(data[at:end], "utf-8"), end


def view(data, at, length):
    """Of so many bytes, or None."""
    if length < 0:
        return None, at
    end = at + length
    if end > len(data):
        raise EOFError("the records are cut off")
    return data[at:end], end


def varint(data, at):
    """An unsigned number."""
    byte = data[at]
    number, bits = byte & 0x7F, 0
    while byte & 0x80:
        at, bits = at + 1, bits + 7
        if bits > _VARINT_BITS:
            raise ValueError("a number takes more than five bytes")
        byte = data[at]
        number |= (byte & 0x7F) << bits
    return number, at + 1


def skip_tags(data, at):
    """Where the tagged fields end that begin there."""
    count, at = varint(data, at)
    for _ in range(count):
        _, at = varint(data, at)
        size, at = varint(data, at)
        at += size
        if at > len(data):
            raise EOFError("a tagged field is cut off")
    return at


def text_bytes(text, flexible):
    """A string, or None."""
    if text is None:
        return NULL_TEXT[flexible]
    data = text.encode()
    return (count_bytes(len(data), True) if flexible else SHORT.pack(len(data))) + data


def count_bytes(count, flexible):
    """How many things follow, or bytes."""
    if not flexible:
        return INT.pack(count)
    number, encoded = count + 1, bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)
