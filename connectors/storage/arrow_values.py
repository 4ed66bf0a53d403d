"""Convert Arrow columns from files to Connect records and schemas.

Times finer than a millisecond are truncated, since Connect's Time and Timestamp hold milliseconds.
"""

import functools

import pyarrow as pa
import pyarrow.compute as pc

from connectors.storage.lake_types import DAY_MS
from standalone import DataError, Instant, Schema, SchemaBuilder, Struct, date_schema, decimal_schema, time_schema, timestamp_schema

_PLAIN = {
    pa.int8(): "int8", pa.int16(): "int16", pa.int32(): "int32", pa.int64(): "int64", pa.uint8(): "int16", pa.uint16(): "int32", pa.uint32(): "int64",
    pa.uint64(): "int64", pa.float32(): "float32", pa.float64(): "float64", pa.bool_(): "boolean", pa.string(): "string", pa.large_string(): "string",
    pa.binary(): "bytes", pa.large_binary(): "bytes", pa.null(): "string",
}  # fmt: skip


@functools.lru_cache(1000)
def schema_of(arrow):
    """Return the record Schema for an Arrow schema."""
    builder = SchemaBuilder("struct")
    for field in arrow:
        builder.field(field.name, _schema(field.type, field.nullable, field.name))
    return builder.build()


def _schema(kind, optional, name):
    if kind in _PLAIN:
        return Schema(_PLAIN[kind], optional=optional or kind == pa.null())
    types = pa.types
    if types.is_dictionary(kind):
        return _schema(kind.value_type, optional, name)
    if types.is_decimal(kind):
        return decimal_schema(kind.scale, optional=optional)
    if types.is_date(kind):
        return date_schema(optional=optional)
    if types.is_time(kind):
        return time_schema(optional=optional)
    if types.is_timestamp(kind):
        return timestamp_schema(optional=optional)
    if types.is_fixed_size_binary(kind):
        return Schema("bytes", optional=optional)
    if types.is_map(kind):
        value = _schema(kind.item_type, kind.item_field.nullable, name)
        return _optional(SchemaBuilder.map(_schema(kind.key_type, False, name), value), optional)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return _optional(SchemaBuilder.array(_schema(kind.value_type, kind.value_field.nullable, name)), optional)
    if types.is_struct(kind):
        builder = SchemaBuilder("struct")
        for field in kind:
            builder.field(field.name, _schema(field.type, field.nullable, f"{name}.{field.name}"))
        return _optional(builder, optional)
    raise DataError(f"The column '{name}' has the type {kind}, which has no equivalent in Connect.")


def _optional(builder, optional):
    return (builder.optional() if optional else builder).build()


def structs_of(batch, schema):
    """Convert a RecordBatch to Structs of that Schema."""
    columns = [_values(column, field.schema) for column, field in zip(batch.columns, schema.fields)]
    return [Struct.trusted(schema, list(row)) for row in zip(*columns)] if columns else []


def _values(array, schema):
    kind = array.type
    if pa.types.is_dictionary(kind):
        return _values(array.dictionary_decode(), schema)
    if pa.types.is_timestamp(kind):
        return [None if ms is None else Instant(ms) for ms in _in_ms(array, kind)]
    if pa.types.is_date(kind):
        return [None if days is None else Instant(days * DAY_MS) for days in array.cast(pa.date32()).cast(pa.int32()).to_pylist()]
    if pa.types.is_time(kind):
        return [None if ms is None else Instant(ms) for ms in array.cast(pa.time32("ms"), safe=False).cast(pa.int32()).to_pylist()]
    if pa.types.is_struct(kind):
        columns = [_values(pc.struct_field(array, [at]), field.schema) for at, field in enumerate(schema.fields)]
        rows = zip(*columns) if columns else [()] * len(array)
        return [Struct.trusted(schema, list(row)) if there else None for row, there in zip(rows, array.is_valid().to_pylist())]
    if schema.type == "array":
        return _cut(_values(pc.list_flatten(array), schema.value_schema), pc.list_value_length(array).to_pylist())
    if schema.type == "map":
        low, high = array.offsets[0].as_py(), array.offsets[len(array)].as_py()
        keys, items = (_values(part[low:high], side) for part, side in ((array.keys, schema.key_schema), (array.items, schema.value_schema)))
        ends, valid = array.offsets.to_pylist(), array.is_valid().to_pylist()
        return [dict(zip(keys[a - low : b - low], items[a - low : b - low])) if there else None for a, b, there in zip(ends, ends[1:], valid)]
    return array.to_pylist()


def _in_ms(array, kind):
    """Truncate to milliseconds: before 1970 towards the past, too."""
    numbers, per_ms = array.cast(pa.int64()), {"s": None, "ms": 1, "us": 1000, "ns": 1_000_000}[kind.unit]
    if per_ms is None:
        numbers, per_ms = pc.multiply(numbers, 1000), 1
    return [None if number is None else number // per_ms for number in numbers.to_pylist()]


def _cut(items, lengths):
    found, at = [], 0
    for length in lengths:
        found.append(None if length is None else items[at : at + length])
        at += length or 0
    return found
