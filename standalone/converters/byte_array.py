"""ByteArrayConverter: bytes as they are."""

from standalone import ConfigDef, Converter, DataError, HeaderConverter, Schema
from standalone.converters.part import PART
from standalone.data.column import is_stored_as, to_bytes
from standalone.data.schema import BYTES


class ByteArrayConverter(Converter, HeaderConverter):
    """Bytes pass through unchanged."""

    java_name = "org.apache.kafka.connect.converters.ByteArrayConverter"
    config_def = ConfigDef(PART)

    # Row form: the reference.
    def from_connect(self, topic, schema, value):
        if schema is not None and schema.type != BYTES:
            raise DataError(f"ByteArrayConverter writes bytes; the schema says {schema.name or schema.type}. Use the converter of that type.")
        if value is None or isinstance(value, bytes):
            return value
        if not isinstance(value, (bytearray, memoryview)):
            raise DataError(f"ByteArrayConverter writes bytes; the value is a {type(value).__name__}. Use the converter of that type.")
        return bytes(value)

    def to_connect(self, topic, data):
        return Schema.OPTIONAL_BYTES, data

    def from_header(self, topic, name, schema, value):
        return self.from_connect(topic, schema, value)

    def to_header(self, topic, name, data):
        return self.to_connect(topic, data)

    # Columnar form: the same bytes.
    def encode(self, topic, schema, column, count):
        if schema is None or schema.type != BYTES or schema.logical:
            return None  # the values decide whether that is an error
        if column is None:
            return None, None
        return (to_bytes(column), None) if is_stored_as(column, schema) else None

    def decode(self, topic, column):
        return Schema.OPTIONAL_BYTES, column, None
