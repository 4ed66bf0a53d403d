"""The columns of a batch: their values, and which of them are the primary key."""

import pyarrow as pa
import pyarrow.compute as pc

from connectors.jdbc import arrow
from connectors.jdbc.sink_keys import KAFKA, NONE, RECORD_KEY, RECORD_VALUE
from standalone import DataError, Schema

KAFKA_COLUMNS = ("__connect_topic", "__connect_partition", "__connect_offset")
_KAFKA_SCHEMAS = (Schema.STRING, Schema.INT32, Schema.INT64)
_SIMPLE = ("int8", "int16", "int32", "int64", "float32", "float64", "boolean", "string", "bytes")
_NANOS = 1000  # per microsecond


class Field:
    """A future column: its name, the schema of its values, and the values as an Arrow array."""

    __slots__ = ("name", "schema", "array", "is_key", "as_timestamp")

    def __init__(self, name, schema, array, is_key=False, as_timestamp=False):
        self.name, self.schema, self.array, self.is_key, self.as_timestamp = name, schema, array, is_key, as_timestamp

    @property
    def nullable(self):
        return not self.is_key and self.schema.optional


class Fields:
    """Applies pk.mode, pk.fields, fields.whitelist and timestamp.fields.list to a batch. Raises DataError for records that do not fit."""

    def __init__(self, parsed):
        self._mode = parsed["pk.mode"].lower()
        self._names = parsed["pk.fields"]
        self._chosen = set(parsed["fields.whitelist"])
        self._moments = set(parsed["timestamp.fields.list"])
        self._unit = 1 if parsed["timestamp.precision.mode"].lower() == "microseconds" else _NANOS
        self._fills = parsed["replace.null.with.default"]
        self._text_column = parsed["string.output.value.column.name"]

    def of(self, batch):
        """(the fields of rows with a value, those of their keys, a boolean array: which rows have a value)"""
        value = self._arrow(batch, "value")
        has_value = pa.array([False] * len(batch)) if value is None else value.is_valid()
        schema = batch.value_schema
        keys = self._keys(batch, value, schema)
        if value is None or not pc.any(has_value).as_py():
            return [], keys, has_value
        if schema.type == "string" and schema.name is None:
            rest = [Field(self._text_column, schema, value)]
        elif schema.type == "struct":
            rest = self._fields(value, schema)
        else:
            raise DataError(
                f"JdbcSink needs values that are structs with a schema, not {schema.name or schema.type}: wrap other values with HoistField$Value."
            )
        return self._ordered(rest, keys), keys, has_value

    def _ordered(self, rest, keys):
        """In the value's order, then fields that only the key has."""
        by_name = {key.name: key for key in keys}
        chosen = [by_name.pop(field.name, None) or (field if not self._chosen or field.name in self._chosen else None) for field in rest]
        found = [*filter(None, chosen), *by_name.values()]
        if not found:
            raise DataError("No field of the record is selected: check fields.whitelist.")
        return found

    @staticmethod
    def _arrow(batch, part):
        schema, column = getattr(batch, f"{part}_schema"), getattr(batch, part)
        if schema is None:
            if column is None or isinstance(column, list) and all(item is None for item in column):
                return None
            raise DataError(
                f"JdbcSink needs a schema of each {part} to know its columns: use JsonConverter with schemas.enable=true, or a converter with a "
                "schema registry."
            )
        try:
            return batch.arrow(part)[1]
        except (ValueError, TypeError) as error:
            raise DataError(f"A record's {part} does not match its schema: {error}") from error

    def _fields(self, array, schema, is_key=False):
        array_of = array.flatten() if isinstance(array, pa.StructArray) else []
        return [self._field(field.name, field.schema, part, is_key) for field, part in zip(schema.fields, array_of)]

    def _field(self, name, schema, array, is_key=False):
        if self._fills and array.null_count and schema.default is not None and schema.type in _SIMPLE and schema.logical is None:
            array = array.fill_null(schema.default)
        if name in self._moments and schema.name is None and schema.type in ("int64", "string"):
            return Field(name, schema, self._as_moments(name, array), is_key, as_timestamp=True)
        return Field(name, schema, array, is_key)

    def _as_moments(self, name, array):
        """Microseconds since the epoch."""
        if pa.types.is_integer(array.type):
            return array if self._unit == 1 else arrow.floor(array, self._unit)
        try:
            return (
                pc.cast(pc.replace_substring_regex(array, r"(?:Z|\+00:?00)$", ""), pa.timestamp("ns"))
                .cast(pa.timestamp("us"), safe=False)
                .cast(pa.int64())
            )
        except pa.ArrowInvalid as error:
            raise DataError(f"Field '{name}' is in timestamp.fields.list, but not a time such as 2020-01-31T23:59:59.123456: {error}") from error

    # --- Primary keys ------------------------------------------------------------------------------------------------------
    def _keys(self, batch, value, schema):
        if self._mode == NONE:
            return []
        if self._mode == KAFKA:
            return self._of_kafka(batch)
        if self._mode == RECORD_VALUE:
            if value is None or schema.type != "struct":
                raise DataError("pk.mode=record_value needs values that are structs with a schema.")
            return self._named(self._fields(value, schema, is_key=True), "value")
        key = self._arrow(batch, "key")
        if key is None or key.null_count:
            raise DataError(f"pk.mode={RECORD_KEY} needs records with a key and a schema, found a null key.")
        if batch.key_schema.type == "struct":
            return self._named(self._fields(key, batch.key_schema, is_key=True), "key")
        if batch.key_schema.type not in _SIMPLE:
            raise DataError(f"A key of type {batch.key_schema.type} cannot be a primary key: it must be a struct or a single value.")
        if len(self._names) != 1:
            raise DataError("A key that is not a struct needs exactly one name in pk.fields, for its column.")
        return [self._field(self._names[0], batch.key_schema, key, is_key=True)]

    def _named(self, fields, where):
        if not self._names:
            return fields
        by_name = {field.name: field for field in fields}
        missing = next((name for name in self._names if name not in by_name), None)
        if missing is not None:
            raise DataError(f"pk.fields contains '{missing}', which is not in the record's {where}. Its fields: {', '.join(by_name)}.")
        return [by_name[name] for name in self._names]

    def _of_kafka(self, batch):
        names = self._names or KAFKA_COLUMNS
        topic, partition = batch.origin
        arrays = (pa.array([topic] * len(batch), pa.string()), pa.array([partition] * len(batch), pa.int32()), pa.array(batch.offsets, pa.int64()))
        return [Field(name, schema, array, is_key=True) for name, schema, array in zip(names, _KAFKA_SCHEMAS, arrays)]
