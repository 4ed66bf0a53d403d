"""Companion files of the values: keys (.keys.avro) and headers (.headers.avro), in the order of the values."""

from connectors.storage.values import arrow_values
from standalone import DataError, Schema, SchemaBuilder, SinkBatch, Struct, java_text

HEADER = SchemaBuilder("struct").field("key", Schema.STRING).field("value", Schema.OPTIONAL_STRING).build()
HEADERS = SchemaBuilder.array(HEADER).build()


class Keys:
    """Keys; a null key makes a bad record."""

    def __init__(self, format):
        self.format, self.suffix = format, f".keys{format.extension}"

    def encode(self, batch):
        """Return (schema, column, {row: error})."""
        keys = batch.key if batch.key is not None else [None] * len(batch)
        return _encoded(self.format, batch, keys, batch.key_schema, "key")


class Headers:
    """Headers of each record: names and strings."""

    def __init__(self, format):
        self.format, self.suffix = format, f".headers{format.extension}"

    def encode(self, batch):
        rows = batch.headers if batch.headers is not None else [()] * len(batch)
        values = [[Struct(HEADER, {"key": each.name, "value": _text(each)}) for each in row] for row in rows]
        return _encoded(self.format, batch, values, HEADERS, "headers")


def _text(header):
    if header.value is None:
        return None
    if isinstance(header.value, (bytes, bytearray, memoryview)):
        return bytes(header.value).decode("utf-8", "replace")
    return java_text(header.value, header.schema)


def _encoded(format, batch, values, schema, what):
    as_values = SinkBatch(len(batch), batch.topic, values, schema, partition=batch.partition, offsets=batch.offsets, origin=batch.origin)
    bad = {}
    if what == "key":
        error = DataError("The key is null, but store.kafka.keys=true writes keys: drop such records, or set it to false.")
        bad = {row: error for row, record in enumerate(as_values.records()) if record.value is None}
    if schema is None and not format.needs_schema:
        column, more = format.encode(batch.topic, None, as_values.value, len(batch))
        return None, column, {**more, **bad}
    schema, array, more = arrow_values(as_values)
    column, most = format.encode(batch.topic, schema, array, len(batch))
    return schema, column, {**most, **more, **bad}
