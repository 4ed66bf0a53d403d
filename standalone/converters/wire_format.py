"""Confluent's wire format: what stands before the bytes of a value that has its schema in a registry.

0, id of the schema (four bytes, the highest first), [the way to the message within its file, Protobuf only], the value
"""

from standalone import SerializationError
from standalone.schema_registry.framing import read_varint

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


def read_message_indexes(data, at):
    """(path, where the value begins)."""
    try:
        count, at = read_varint(data, at)
        if count == 0:
            return [0], at
        if count < 0 or count > len(data):
            raise IndexError
        path = []
        for _ in range(count):
            number, at = read_varint(data, at)
            path.append(number)
    except IndexError:
        raise SerializationError("The bytes end amid the message indexes, which stand between the schema's id and a Protobuf value.") from None
    return path, at
