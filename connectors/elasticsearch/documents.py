"""Convert values to JSON documents, by rows or columns.

The JSON is JsonConverter's, without an envelope. With `schema.ignore=false` values are adjusted first:

- a Date becomes milliseconds for the server's type `date`; JsonConverter's days since 1970 would be read as
milliseconds,
- a map with other than string keys, or any map without `compact.map.entries`, becomes a list of {"key": …, "value": …},
- Decimals are written as numbers.
"""

import functools

import numpy as np
import pyarrow as pa

from standalone import ByteColumn, ConnectError, DataError, JsonConverter, Schema, SchemaBuilder, Struct, StructColumn, timestamp_schema

STRUCT, ARRAY, MAP, TEXT = "struct", "array", "map", Schema.STRING.type
DATE = "org.apache.kafka.connect.data.Date"
KEY, VALUE = "key", "value"


class Documents:
    """Converts the values of batches to documents. `is_plain`: without adjustment (schema.ignore)."""

    def __init__(self, is_plain, compact_maps):
        self._is_plain = is_plain
        self._compact = compact_maps
        decimals = "BASE64" if is_plain else "NUMERIC"
        self._converter = JsonConverter.of({"schemas.enable": "false", "decimal.format": decimals})
        self._shapes = functools.lru_cache(256)(lambda schema: shape_of(schema, compact_maps))

    def schema(self, schema):
        """Return the schema of the adjusted values."""
        return schema if schema is None or self._is_plain else self._shapes(schema)

    def texts(self, batch):
        """Return (a ByteColumn of the documents, null for null values; {row: DataError} of values that are not documents)."""
        count = len(batch)
        if batch.value is None:
            return ByteColumn.repeat(None, count), {}
        encoded = self._by_columns(batch)
        if encoded is None:
            return self._by_rows(batch, range(count))
        texts, failed = encoded
        nulls = batch.nulls()
        if nulls.any():
            texts = ByteColumn(texts.data, texts.starts, np.where(nulls, -1, texts.lengths).astype(np.int32))
        if failed is None:
            return texts, {}
        repaired, errors = self._by_rows(batch.take(failed), range(len(failed)))
        items = list(texts)
        for row, text in zip(failed.tolist(), repaired):
            items[row] = text
        return ByteColumn.of(items), {int(failed[row]): error for row, error in errors.items()}

    def _by_columns(self, batch):
        if isinstance(batch.value, list):
            return None
        schema = batch.value_schema
        after = self.schema(schema)
        column = batch.value if after is schema else reshaped(batch.value, schema, after)
        return self._converter.encode(batch.topic, after, column, len(batch))

    def _by_rows(self, batch, rows):
        items, errors = [], {}
        schema = batch.value_schema
        after = self.schema(schema)
        for row, record in zip(rows, batch.records()):
            text = None
            if record.value is not None:
                try:
                    value = record.value if after is schema else reshaped_value(record.value, schema, after)
                    text = self._converter.from_connect(record.topic, after, value)
                except (ConnectError, RecursionError) as error:
                    errors[row] = error if isinstance(error, DataError) else DataError(f"The value cannot be written as JSON: {error}")
            items.append(text)
        return ByteColumn.of(items), errors


# --- Adjusted schemas -----------------------------------------------------------------------------------------------


def shape_of(schema, compact_maps):
    """Return the adjusted schema; the same object if nothing changes."""
    if schema.name == DATE:
        return timestamp_schema(optional=schema.optional, default=schema.default)
    if schema.logical or schema.type not in (STRUCT, ARRAY, MAP):
        return schema
    if schema.type == STRUCT:
        inner = [(field.name, field.schema, shape_of(field.schema, compact_maps)) for field in schema.fields]
        if all(before is after for _, before, after in inner):
            return schema
        builder = _like(schema, SchemaBuilder.struct())
        for name, _, after in inner:
            builder.field(name, after)
        return builder.build()
    item = shape_of(schema.value_schema, compact_maps)
    if schema.type == ARRAY:
        made = schema if item is schema.value_schema else _like(schema, SchemaBuilder.array(item)).build()
    else:
        key = shape_of(schema.key_schema, compact_maps)
        if not compact_maps or key.type != TEXT or key.logical:
            made = _like(schema, SchemaBuilder.array(_entry(key, item))).build()
        elif key is schema.key_schema and item is schema.value_schema:
            made = schema
        else:
            made = _like(schema, SchemaBuilder.map(key, item)).build()
    return made if made is schema or schema.default is None else made.with_(default=reshaped_value(schema.default, schema, made))


def _like(schema, builder):
    if schema.optional:
        builder.optional()
    return builder.name(schema.name) if schema.name else builder


def _entry(key, item):
    return SchemaBuilder.struct().field(KEY, key).field(VALUE, item).build()


# --- Adjusted values and columns ------------------------------------------------------------------------------------


def reshaped_value(value, before, after):
    """Convert a value from schema `before` to its adjusted schema `after`."""
    if value is None or before is after:
        return value
    if before.type == STRUCT:
        items = [reshaped_value(item, old.schema, new.schema) for item, old, new in zip(value.values, before.fields, after.fields)]
        return Struct.trusted(after, items)
    if before.type == ARRAY:
        return [reshaped_value(item, before.value_schema, after.value_schema) for item in value]
    if before.type != MAP:
        return value  # a Date: the point in time is the same
    if after.type == MAP:
        return {key: reshaped_value(item, before.value_schema, after.value_schema) for key, item in value.items()}
    entry = after.value_schema
    key_schema, item_schema = entry.fields[0].schema, entry.fields[1].schema
    return [
        Struct.trusted(entry, [reshaped_value(key, before.key_schema, key_schema), reshaped_value(item, before.value_schema, item_schema)])
        for key, item in value.items()
    ]


def reshaped(column, before, after):
    """Convert a column likewise."""
    if before is after or column is None:
        return column
    if isinstance(column, StructColumn):
        parts = [reshaped(part, old.schema, new.schema) for part, old, new in zip(column.parts, before.fields, after.fields)]
        return StructColumn(after, parts, column.count)
    if before.type not in (STRUCT, ARRAY, MAP):
        return column  # Date and Timestamp are both stored as milliseconds
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    nulls = column.is_null() if column.null_count else None
    if before.type == STRUCT:
        parts = [reshaped(column.field(at), old.schema, new.schema) for at, (old, new) in enumerate(zip(before.fields, after.fields))]
        return pa.StructArray.from_arrays(parts, [field.name for field in after.fields], mask=nulls)
    ends = pa.array(column.offsets.to_numpy())
    if before.type == ARRAY:
        return pa.ListArray.from_arrays(ends, reshaped(column.values, before.value_schema, after.value_schema), mask=nulls)
    if after.type == MAP:
        keys, items = column.keys, reshaped(column.items, before.value_schema, after.value_schema)
        return pa.MapArray.from_arrays(ends, keys, items, mask=nulls)
    entry = after.value_schema
    parts = [
        reshaped(inner, old, field.schema)
        for inner, old, field in zip((column.keys, column.items), (before.key_schema, before.value_schema), entry.fields)
    ]
    return pa.ListArray.from_arrays(ends, pa.StructArray.from_arrays(parts, [KEY, VALUE]), mask=nulls)
