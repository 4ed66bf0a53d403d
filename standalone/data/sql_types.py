"""Convert columns of data/arrow.py to SQL decimals, dates and timestamps, and back.

| Connect | SQL |
|---|---|
| Decimal | decimal(38, its scale) |
| Date | date |
| Timestamp | timestamp |
| Time | bigint, milliseconds of the day |
| everything else | the same |
"""

import pyarrow as pa

from standalone.data import schema as s
from standalone.data.arrow import DECIMAL, from_arrow, unscaled_bytes
from standalone.data.schema import Schema, SchemaBuilder
from standalone.errors import DataError

_DAY_MS = 86_400_000
_DIGITS = 38
_PLAIN = {
    pa.int8(): s.INT8,
    pa.int16(): s.INT16,
    pa.int32(): s.INT32,
    pa.int64(): s.INT64,
    pa.float32(): s.FLOAT32,
    pa.float64(): s.FLOAT64,
    pa.bool_(): s.BOOLEAN,
    pa.string(): s.STRING,
    pa.large_string(): s.STRING,
    pa.binary(): s.BYTES,
    pa.large_binary(): s.BYTES,
    pa.null(): s.STRING,
}


def to_sql(array, schema):
    """Convert an Arrow array of data/arrow.py to SQL's types. Raise DataError if a number is too large for SQL."""
    try:
        return _to_sql(array, schema)
    except pa.ArrowInvalid as error:
        raise DataError(f"A value cannot be converted to SQL: {error}.") from error


def _to_sql(array, schema):
    import pyarrow.compute as pc  # takes memory: a worker whose chains compute nothing does without it

    if schema.name == s.DECIMAL:
        scale = int((schema.parameters or {}).get(s.SCALE, 0))
        return pa.array(from_arrow(array, schema), pa.decimal128(_DIGITS, scale))
    if schema.name == s.TIMESTAMP:
        return pc.multiply_checked(array, 1000).cast(pa.timestamp("us", "UTC"))
    if schema.name == s.DATE:
        return pc.floor(pc.divide(array.cast(pa.float64()), _DAY_MS)).cast(pa.int32()).cast(pa.date32())
    if schema.name == s.TIME:
        return array
    if schema.type == s.STRUCT and schema.fields:
        parts = [_to_sql(array.field(field.index), field.schema) for field in schema.fields]
        return pa.StructArray.from_arrays(parts, [field.name for field in schema.fields], mask=array.is_null())
    if schema.type == s.ARRAY:
        items = _to_sql(array.values, schema.value_schema)
        return pa.ListArray.from_arrays(array.offsets, items, mask=_mask(array))
    if schema.type == s.MAP:
        keys, items = _to_sql(array.keys, schema.key_schema), _to_sql(array.items, schema.value_schema)
        return pa.MapArray.from_arrays(array.offsets, keys, items, mask=_mask(array))
    return array


def from_sql(array, kind, nullable):
    """(Arrow array as data/arrow.py has them, its schema) of a column that SQL made; `kind` is Spark's type, which knows about nulls."""
    import pyarrow.compute as pc

    name = kind.typeName()
    if name == "decimal":
        return _decimals(array), s.decimal_schema(kind.scale, optional=nullable)
    if name.startswith("timestamp"):
        return _floored(array.cast(pa.timestamp("us")).cast(pa.int64()), 1000), s.timestamp_schema(optional=nullable)
    if name == "date":
        days = array.cast(pa.date32()).cast(pa.int32()).cast(pa.int64())
        return pc.multiply(days, _DAY_MS), s.date_schema(optional=nullable)
    if name == "struct":
        builder, parts = SchemaBuilder.struct(), []
        for field in kind.fields:
            part, schema = from_sql(array.field(field.name), field.dataType, field.nullable)
            builder.field(field.name, schema)
            parts.append(part)
        made = pa.StructArray.from_arrays(parts, [field.name for field in kind.fields], mask=array.is_null()) if parts else array
        return made, _made(builder, nullable)
    if name == "array":
        items, schema = from_sql(array.values, kind.elementType, kind.containsNull)
        return pa.ListArray.from_arrays(array.offsets, items, mask=_mask(array)), _made(SchemaBuilder.array(schema), nullable)
    if name == "map":
        keys, key_schema = from_sql(array.keys, kind.keyType, False)
        items, schema = from_sql(array.items, kind.valueType, kind.valueContainsNull)
        return pa.MapArray.from_arrays(array.offsets, keys, items, mask=_mask(array)), _made(SchemaBuilder.map(key_schema, schema), nullable)
    if array.type not in _PLAIN:
        raise DataError(f"The statement returns a column of type {kind.simpleString()}, which records cannot hold. CAST it to another.")
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), pa.string()), Schema.OPTIONAL_STRING
    plain = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}.get(array.type)
    return array if plain is None else array.cast(plain), _made(SchemaBuilder(_PLAIN[array.type]), nullable)


def _made(builder, nullable):
    return (builder.optional() if nullable else builder).build()


def _mask(array):
    return array.is_null() if array.null_count else None


def _floored(array, unit):
    """Whole numbers divided, downwards also below zero."""
    import pyarrow.compute as pc

    down = pc.divide(array, unit)
    return pc.subtract(down, pc.greater(pc.multiply(down, unit), array).cast(pa.int64()))


def _decimals(array):
    values = [None if value is None else dict(zip(("unscaled", "scale"), unscaled_bytes(value))) for value in array.to_pylist()]
    return pa.array(values, DECIMAL)
