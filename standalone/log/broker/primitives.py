"""Kafka's primitive types, read from a memoryview and written to bytes, for messages that kafka-python does not encode.

Readers return the value and the position after it. A message is `flexible` from some version on: lengths are then varints, plus one, and
there are tagged fields.
"""

from struct import Struct

SHORT, INT = Struct(">h"), Struct(">i")
NO_TAGS, NULL_TEXT = b"\0", (b"\xff\xff", b"\0")
_VARINT_BITS = 28


def not_null(length, name):
    """The length of a field that must not be null. Raises ValueError if it is."""
    if length < 0:
        raise ValueError(f"{name} is null")
    return length


def string(data, at, length):
    end = at + length
    if end > len(data):
        raise EOFError("a string is truncated")
    return str(data[at:end], "utf-8"), end


def view(data, at, length):
    """That many bytes, or None."""
    if length < 0:
        return None, at
    end = at + length
    if end > len(data):
        raise EOFError("the records are truncated")
    return data[at:end], end


def varint(data, at):
    """An unsigned varint."""
    byte = data[at]
    number, bits = byte & 0x7F, 0
    while byte & 0x80:
        at, bits = at + 1, bits + 7
        if bits > _VARINT_BITS:
            raise ValueError("a varint has more than five bytes")
        byte = data[at]
        number |= (byte & 0x7F) << bits
    return number, at + 1


def skip_tags(data, at):
    """The position after the tagged fields."""
    count, at = varint(data, at)
    for _ in range(count):
        _, at = varint(data, at)
        size, at = varint(data, at)
        at += size
        if at > len(data):
            raise EOFError("a tagged field is truncated")
    return at


def text_bytes(text, flexible):
    """An encoded string, or null."""
    if text is None:
        return NULL_TEXT[flexible]
    data = text.encode()
    return (count_bytes(len(data), True) if flexible else SHORT.pack(len(data))) + data


def count_bytes(count, flexible):
    """An encoded array or byte length."""
    if not flexible:
        return INT.pack(count)
    number, encoded = count + 1, bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)
