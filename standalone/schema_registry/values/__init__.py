"""Values of registered schemas for people: JSON that is typed in becomes bytes, bytes become JSON, as Kafka's console tools for schemas do it.

    writer = Writer(client, "orders-value", RegistrySchema('"int"'))
    writer.data(7)                       ->  b"\\0\\0\\0\\0\\1\\x0e"
    Reader(client).value(b"\\0\\0\\0\\0\\1\\x0e")  ->  7

A value that does not fit is a DataError, which names the place.
"""

from standalone.errors import SerializationError
from standalone.schema_registry.framing import framed, take_indexes, unframed
from standalone.schema_registry.schema import AVRO, PROTOBUF


class Writer:
    """Of values of one schema, which is registered for the subject unless `register` is False: then it has to be there."""

    def __init__(self, client, subject, schema, register=True, normalize=False):
        self._id = (client.register if register else client.id_of)(subject, schema, normalize)
        self._codec = codec_of(schema, client.resolve(schema))
        self._indexes = [0] if schema.kind == PROTOBUF else None

    def data(self, value):
        return framed(self._id, self._codec.encode(value), self._indexes)


class Reader:
    """Of values of whatever schema the registry has. What was asked for once is remembered."""

    def __init__(self, client):
        self._client = client
        self._codecs = {}

    def value(self, data, subject=None):
        id, rest = unframed(data)
        codec, kind = self._codec(id, subject)
        if kind != PROTOBUF:
            return codec.decode(rest)
        indexes, rest = take_indexes(rest)
        return codec.decode(rest, indexes)

    def schema_id(self, data):
        return unframed(data)[0]

    def _codec(self, id, subject):
        found = self._codecs.get((id, subject))
        if found is None:
            schema = self._client.schema_by_id(id, subject)
            found = self._codecs[id, subject] = codec_of(schema, self._client.resolve(schema)), schema.kind
        return found


def codec_of(schema, references):
    """An object with `encode(value)` and `decode(data)`. Raises DataError where the schema is not valid."""
    texts = {name: each.text for name, each in references.items()}
    if schema.kind == AVRO:
        from standalone.schema_registry.values.avro import AvroCodec as codec
    elif schema.kind == PROTOBUF:
        from standalone.schema_registry.values.protobuf import ProtobufCodec as codec
    else:
        from standalone.schema_registry.values.json_schema import JsonCodec as codec
    return codec(schema.text, texts)


def shown_problem(error):
    """One line of why bytes could not be read."""
    return str(error) if isinstance(error, SerializationError) else f"{type(error).__name__}: {error}"
