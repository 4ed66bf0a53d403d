"""Confluent's wire format: what stands before the bytes of a value that has its schema in a registry.

0, id of the schema (four bytes, the highest first), [the way to the message within its file, Protobuf only], the value
"""

from standalone import SerializationError

MAGIC = 0
HEAD = 5  # bytes before the value
_GUID_MAGIC = 1


def prefix(schema_id):
    """The bytes before a value of the schema with that id."""
    return bytes((MAGIC,)) + schema_id.to_bytes(4, "big")


def schema_id_of(data):
    """The id that the bytes name. Raises SerializationError where they are not of this format."""
    if len(data) < HEAD or data[0] != MAGIC:
        raise SerializationError(f"{_found(data)} Such bytes are read by another converter, such as StringConverter or JsonConverter.")
    return int.from_bytes(data[1:HEAD], "big")


def _found(data):
    expected = "Unknown magic byte: a value with a schema in a registry begins with 0 and the four bytes of the schema's id"
    if not len(data):
        return f"{expected}, but there are no bytes."
    if data[0] == _GUID_MAGIC:
        return f"{expected}; these begin with 1 and a GUID, which is not read here."
    return f"{expected}; these are {len(data)} bytes that begin with {bytes(data[:HEAD]).hex(' ')}."


# --- Protobuf: which message of the file ----------------------------------------------------------------------------


def message_indexes(path):
    """The bytes that name a message by its place in its file, and by those of the messages within: [0] is the first one."""
    if list(path) == [0]:
        return b"\0"
    return b"".join(_zigzag(number) for number in (len(path), *path))


def read_message_indexes(data, at):
    """(path, where the value begins)."""
    try:
        count, at = _read_zigzag(data, at)
        if count == 0:
            return [0], at
        if count < 0 or count > len(data):
            raise IndexError
        path = []
        for _ in range(count):
            number, at = _read_zigzag(data, at)
            path.append(number)
    except IndexError:
        raise SerializationError("The bytes end amid the message indexes, which stand between the schema's id and a Protobuf value.") from None
    return path, at


def _zigzag(number):
    number = number << 1 ^ number >> 63
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _read_zigzag(data, at):
    number = shift = 0
    while True:
        each = data[at]
        at += 1
        number |= (each & 0x7F) << shift
        if each < 0x80:
            return number >> 1 ^ -(number & 1), at
        shift += 7
        if shift > 63:
            raise IndexError
