"""Converts JSON to serialized values of registered schemas and back, like the console tools of Confluent's registry.

    writer = Writer(client, "orders-value", RegistrySchema('"int"'))
    writer.data(7)                       ->  b"\\0\\0\\0\\0\\1\\x0e"
    Reader(client).value(b"\\0\\0\\0\\0\\1\\x0e")  ->  7

A value that does not fit the schema raises DataError with the path.
"""

from standalone.errors import SerializationError
from standalone.schema_registry.framing import VALUE_HEADER, head, index_bytes, mark_in, take_indexes, take_mark
from standalone.schema_registry.schema import AVRO, PROTOBUF


class Writer:
    """Serializes values with one schema. It is registered for the subject; with `register` False it must already be registered."""

    def __init__(self, client, subject, schema, register=True, normalize=False):
        self._head = head((client.register if register else client.id_of)(subject, schema, normalize))
        self._codec = codec_of(schema, client.resolve(schema))
        if schema.kind == PROTOBUF:
            self._head += index_bytes([0])

    def data(self, value):
        return self._head + self._codec.encode(value)


class Reader:
    """Deserializes values with any schema of the registry. Schemas are cached."""

    def __init__(self, client):
        self._client = client
        self._codecs = {}

    def value(self, data, subject=None, headers=(), header=VALUE_HEADER):
        """The value of a record's bytes; the `header`, if present, references the schema."""
        named = mark_in(headers, header)
        source = data if named is None else named
        mark, at = take_mark(source)
        codec, kind = self._codec(mark, subject)
        if kind != PROTOBUF:
            return codec.decode(source[at:] if named is None else data)
        indexes, at = take_indexes(source, at)
        return codec.decode(source[at:] if named is None else data, indexes)

    def _codec(self, mark, subject):
        found = self._codecs.get((mark, subject))
        if found is None:
            schema = self._client.schema_by_id(mark, subject) if isinstance(mark, int) else self._client.schema_by_guid(str(mark))
            found = self._codecs[mark, subject] = codec_of(schema, self._client.resolve(schema)), schema.kind
        return found


def codec_of(schema, references):
    """An object with `encode(value)` and `decode(data)`. Raises DataError if the schema is invalid."""
    texts = {name: each.text for name, each in references.items()}
    if schema.kind == AVRO:
        from standalone.schema_registry.values.avro import AvroCodec as codec
    elif schema.kind == PROTOBUF:
        from standalone.schema_registry.values.protobuf import ProtobufCodec as codec
    else:
        from standalone.schema_registry.values.json_schema import JsonCodec as codec
    return codec(schema.text, texts)


def shown_problem(error):
    """The error of an unreadable value, in one line."""
    return str(error) if isinstance(error, SerializationError) else f"{type(error).__name__}: {error}"
