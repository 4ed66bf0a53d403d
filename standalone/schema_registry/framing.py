"""The bytes before a value in Confluent's framing: a zero, the schema's id, and for Protobuf which message of the file it is."""

import struct

from standalone.errors import SerializationError

_HEAD = struct.Struct(">bI")


def framed(id, data, indexes=None):
    return _HEAD.pack(0, id) + (index_bytes(indexes) if indexes is not None else b"") + data


def is_framed(data):
    """Whether the bytes may be of a schema: text and JSON never begin with a zero."""
    return data is not None and len(data) >= _HEAD.size and data[0] == 0


def unframed(data):
    """(id, what is behind it). Raises SerializationError."""
    if len(data) < _HEAD.size:
        raise SerializationError(f"A value of {len(data)} bytes is too short for a schema's id: it was not written with a schema registry.")
    magic, id = _HEAD.unpack_from(data)
    if magic != 0:
        raise SerializationError(f"Unknown magic byte {magic}: the value was not written with a schema registry.")
    return id, data[_HEAD.size :]


def take_indexes(data):
    """([place of the message in the file, then within that message, …], what is behind it)"""
    try:
        count, at = read_varint(data, 0)
        if not 0 <= count <= 100:
            raise SerializationError(f"{count} is no number of Protobuf message indexes.")
        indexes = []
        for _ in range(count):
            index, at = read_varint(data, at)
            indexes.append(index)
    except IndexError:
        raise SerializationError("The Protobuf message indexes end too early.") from None
    return indexes or [0], data[at:]


def index_bytes(indexes):
    """The bytes that name a message by its place in its file, and by those of the messages within."""
    if list(indexes) == [0]:
        return b"\0"  # the first message of the file, which is what most have
    return b"".join(map(_varint, [len(indexes), *indexes]))


def _varint(number):
    number = (number << 1) ^ (number >> 63)
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def read_varint(data, at):
    """(number, position behind it). Raises IndexError where it does not end in time."""
    number = shift = 0
    while shift <= 63:
        number |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not data[at - 1] & 0x80:
            return (number >> 1) ^ -(number & 1), at
    raise IndexError
