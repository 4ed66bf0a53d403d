"""Confluent's wire format: how serialized values reference their schema in a registry.

before the value     0, the schema's id (four bytes, the highest first), [the message within its file, Protobuf only], the value
                     1, the schema's GUID (sixteen bytes), [the same], the value
in a header          the same without the value, which is the record's key or value as a whole
"""

import uuid

from standalone.errors import SerializationError

MAGIC, GUID_MAGIC = 0, 1
HEAD, GUID_HEAD = 5, 17  # bytes of each
KEY_HEADER, VALUE_HEADER = "__key_schema_id", "__value_schema_id"
_MOST_INDEXES = 100


def head(mark):
    """The prefix with a schema's id or GUID (a UUID)."""
    return bytes((GUID_MAGIC,)) + mark.bytes if isinstance(mark, uuid.UUID) else bytes((MAGIC,)) + mark.to_bytes(4, "big")


def is_framed(data):
    """Whether the bytes may have such a prefix: text and JSON never do."""
    return data is not None and (len(data) >= HEAD and data[0] == MAGIC or len(data) >= GUID_HEAD and data[0] == GUID_MAGIC)


def take_mark(data):
    """(id or GUID, position after it). Raises SerializationError if the bytes reference no schema."""
    if is_framed(data):
        if data[0] == MAGIC:
            return int.from_bytes(data[1:HEAD], "big"), HEAD
        return uuid.UUID(bytes=bytes(data[1:GUID_HEAD])), GUID_HEAD
    expected = "Unknown magic byte: a value with a schema in a registry begins with 0 and the four bytes of the schema's id, or with 1 and its GUID"
    found = f"these are {len(data)} bytes that begin with {bytes(data[:HEAD]).hex(' ')}" if len(data) else "but there are no bytes"
    raise SerializationError(f"{expected}; {found}. Such bytes are read by another converter, such as StringConverter or JsonConverter.")


def mark_in(headers, name):
    """The last header with the schema reference, or None."""
    found = None
    for each, data in headers or ():
        if each == name and data is not None:
            found = data
    return found


def put_mark(headers, name, data):
    """Set the schema reference in a list of headers."""
    headers[:] = [each for each in headers if each[0] != name]
    headers.append((name, data))


# --- Protobuf: which message of the file ----------------------------------------------------------------------------


def take_indexes(data, at):
    """([index of the message in the file, then within that message, …], position after them)"""
    try:
        count, at = _take_varint(data, at)
        if not 0 <= count <= _MOST_INDEXES:
            raise SerializationError(f"{count} is not a number of Protobuf message indexes.")
        indexes = []
        for _ in range(count):
            index, at = _take_varint(data, at)
            indexes.append(index)
    except IndexError:
        raise SerializationError("The bytes end amid the message indexes, which are between the schema's id and a Protobuf value.") from None
    return indexes or [0], at


def index_bytes(indexes):
    """The encoded indexes of a message in its file and of nested messages."""
    if list(indexes) == [0]:
        return b"\0"  # the first message of the file, the most common case
    return b"".join(map(_varint, [len(indexes), *indexes]))


def _varint(number):
    number = (number << 1) ^ (number >> 63)
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def _take_varint(data, at):
    """(number, position after it). Raises IndexError if the bytes end too early."""
    number = shift = 0
    while shift <= 63:
        number |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not data[at - 1] & 0x80:
            return (number >> 1) ^ -(number & 1), at
    raise IndexError
