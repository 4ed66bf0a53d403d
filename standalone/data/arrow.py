"""Connect types as Arrow types, and values to and from Arrow arrays.

| Connect | Arrow |
|---|---|
| int8 … int64, float32, float64, boolean, string, bytes | the same |
| Decimal | struct {unscaled: binary, scale: int32}: of any precision, with a scale per value |
| Date, Time, Timestamp | int64, milliseconds since the epoch: beyond the range of years that Arrow's types support |
| struct, array, map | struct, list, map |
"""

import decimal

import numpy as np
import pyarrow as pa

from standalone.data import schema as s
from standalone.data.map_key import as_key
from standalone.data.scalars import CLASSES, Float32, Instant
from standalone.data.struct import Struct
from standalone.data.utf8 import texts_of
from standalone.wire import ByteColumn

DECIMAL = pa.struct([pa.field("unscaled", pa.binary()), pa.field("scale", pa.int32())])
_PLAIN = {
    s.INT8: pa.int8(),
    s.INT16: pa.int16(),
    s.INT32: pa.int32(),
    s.INT64: pa.int64(),
    s.FLOAT32: pa.float32(),
    s.FLOAT64: pa.float64(),
    s.BOOLEAN: pa.bool_(),
    s.STRING: pa.string(),
    s.BYTES: pa.binary(),
}


def arrow_type(schema):
    """Return the Arrow type of a column of this schema. Raise ValueError if an inner schema is missing."""
    if schema is None:
        raise ValueError("a column needs a schema")
    if schema.name == s.DECIMAL:
        return DECIMAL
    if schema.logical:
        return pa.int64()
    if schema.type == s.STRUCT:
        return pa.struct([pa.field(field.name, arrow_type(field.schema)) for field in schema.fields])
    if schema.type == s.ARRAY:
        return pa.list_(arrow_type(schema.value_schema))
    if schema.type == s.MAP:
        return pa.map_(arrow_type(schema.key_schema), arrow_type(schema.value_schema))
    return _PLAIN[schema.type]


def same_type(one, other):
    """Whether two types are the same except for nullability."""
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        fields = zip(one, other) if one.num_fields == other.num_fields else ()
        return one.num_fields == other.num_fields and all(a.name == b.name and same_type(a.type, b.type) for a, b in fields)
    if pa.types.is_list(one) and pa.types.is_list(other):
        return same_type(one.value_type, other.value_type)
    if pa.types.is_map(one) and pa.types.is_map(other):
        return same_type(one.key_type, other.key_type) and same_type(one.item_type, other.item_type)
    return one == other


def is_of_type(value, kind):
    """Whether a literal already has that type."""
    if value is None:
        return True
    if isinstance(value, bool):
        return kind == pa.bool_()
    if isinstance(value, int):
        return pa.types.is_integer(kind) and -(1 << kind.bit_width - 1) <= value < 1 << kind.bit_width - 1
    if isinstance(value, float):
        return kind == pa.float64() or kind == pa.float32() and isinstance(value, Float32)
    return kind == (pa.string() if isinstance(value, str) else pa.binary())


def array_of(values, schema):
    """Convert Python values to an Arrow array of the schema's type. Raise ValueError or TypeError if a value does not fit."""
    return pa.array([_plain(value, schema) for value in values], arrow_type(schema))


def _plain(value, schema):
    """Convert a value to what pyarrow accepts."""
    if value is None:
        return None
    if schema.name == s.DECIMAL:
        return dict(zip(("unscaled", "scale"), unscaled_bytes(value)))
    if schema.logical:
        return Instant.of(value).ms
    kind = schema.type
    if kind == s.STRUCT:
        if not isinstance(value, Struct):
            raise TypeError(f"a {type(value).__name__} is not a struct")
        return {field.name: _plain(item, field.schema) for field, item in zip(schema.fields, value.values)}
    if kind == s.ARRAY:
        return [_plain(item, schema.value_schema) for item in value]
    if kind == s.MAP:
        return [(_plain(key, schema.key_schema), _plain(item, schema.value_schema)) for key, item in value.items()]
    if kind == s.STRING:
        return value.encode("utf-8", "replace") if _has_surrogate(value) else value
    if kind == s.BYTES:
        return bytes(value)
    return value


def _has_surrogate(text):
    return not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text)


class NotColumns(ValueError):
    """The values do not form a column of the schema; the rows engine will report the error."""


_EXACT = {s.STRING: {str}, s.BYTES: {bytes}, s.BOOLEAN: {bool}, s.FLOAT64: {float}, s.FLOAT32: {Float32}}
_EXACT.update({kind: {int, width} for kind, width in CLASSES.items()})


def exact_array(values, schema):
    """Like `array_of`, for values of exactly the schema's classes. Raise NotColumns otherwise."""
    try:
        return _exact(values, schema)
    except NotColumns:
        raise
    except (ValueError, TypeError, OverflowError) as error:
        raise NotColumns(str(error)) from error


def _exact(values, schema):
    kind = arrow_type(schema)
    classes = set(map(type, values)) - {type(None)}
    if schema.name == s.DECIMAL:
        return array_of(values, schema)
    if schema.logical:
        _must_be(classes, {Instant}, schema)
        return pa.array([None if value is None else value.ms for value in values], kind)
    if schema.type in _EXACT:
        _must_be(classes, _EXACT[schema.type], schema)
        return pa.array(values, kind)
    nulls = pa.array([value is None for value in values], pa.bool_()) if None in values else None
    if schema.type == s.STRUCT:
        _must_be(classes, {Struct}, schema)
        if not all(value is None or value.schema is schema or value.schema == schema for value in values):
            raise NotColumns("structs with a different schema")
        if not schema.fields:
            return array_of(values, schema)
        blank = [None] * len(schema.fields)
        columns = zip(*(blank if value is None else value.values for value in values))
        parts = [_exact(list(column), field.schema) for column, field in zip(columns, schema.fields)]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=nulls)
    _must_be(classes, {list} if schema.type == s.ARRAY else {dict}, schema)
    ends = np.cumsum([0] + [len(value or ()) for value in values], dtype=np.int32)
    if schema.type == s.ARRAY:
        items = _exact([item for value in values for item in value or ()], schema.value_schema)
        return pa.ListArray.from_arrays(pa.array(ends), items, type=kind, mask=nulls)
    keys = _exact([key for value in values for key in value or ()], schema.key_schema)
    if keys.null_count:
        raise NotColumns("a null among the keys of a map")
    items = _exact([item for value in values for item in (value or {}).values()], schema.value_schema)
    return pa.MapArray.from_arrays(pa.array(ends), keys, items, type=kind, mask=nulls)


def _must_be(found, allowed, schema):
    if not found <= allowed:
        raise NotColumns(f"a {', '.join(sorted(each.__name__ for each in found - allowed))} is not a {schema.name or schema.type}")


def from_arrow(array, schema):
    """Return the Python values of an Arrow array as records hold them."""
    if schema.name == s.DECIMAL:
        return [None if item is None else decimal_of(item["unscaled"], item["scale"]) for item in array.to_pylist()]
    if schema.logical:
        return [None if item is None else Instant(item) for item in array.to_pylist()]
    kind = schema.type
    if kind in (s.STRUCT, s.ARRAY, s.MAP):
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks()
        valid = array.is_valid().to_pylist()
    if kind == s.STRUCT:
        columns = [from_arrow(array.field(field.index), field.schema) for field in schema.fields]
        rows = zip(*columns) if columns else iter([()] * len(array))
        return [Struct.trusted(schema, list(row)) if ok else None for row, ok in zip(rows, valid)]
    if kind in (s.ARRAY, s.MAP):
        first, ends = _ends(array)
    if kind == s.ARRAY:
        items = from_arrow(array.values.slice(first, ends[-1]), schema.value_schema)
        return [items[ends[row] : ends[row + 1]] if ok else None for row, ok in enumerate(valid)]
    if kind == s.MAP:
        keys = from_arrow(array.keys.slice(first, ends[-1]), schema.key_schema)
        items = from_arrow(array.items.slice(first, ends[-1]), schema.value_schema)
        if schema.key_schema.type in (s.STRUCT, s.ARRAY, s.MAP):
            keys = [as_key(key) for key in keys]
        return [dict(zip(keys[a:b], items[a:b])) if ok else None for a, b, ok in zip(ends, ends[1:], valid)]
    if kind == s.STRING:
        return texts_of(ByteColumn.from_arrow(array))
    if kind != s.BYTES and not array.null_count:
        return array.to_numpy(zero_copy_only=False).tolist() if isinstance(array, pa.Array) else array.to_numpy().tolist()
    return array.to_pylist()


def _ends(array):
    """(the first item of an array of lists or maps, where each of these ends from there on): of the items of a slice there may be many more."""
    offsets = buffer_of(array, len(array) + 1)
    return int(offsets[0]), (offsets - offsets[0]).tolist()


def unscaled_bytes(value):
    """Return (unscaled number in the bytes of Java's BigInteger, scale) of a Decimal."""
    sign, digits, exponent = value.as_tuple()
    number = int("".join(map(str, digits)) or "0") * (-1 if sign else 1)
    return int_bytes(number), -exponent


def int_bytes(number):
    """Return the shortest big-endian two's complement of an integer."""
    return number.to_bytes((number if number >= 0 else ~number).bit_length() // 8 + 1, "big", signed=True)


def decimal_of(unscaled, scale):
    """Return the Decimal of such bytes and a scale."""
    number = int.from_bytes(unscaled, "big", signed=True)
    return decimal.Decimal((number < 0, tuple(map(int, str(abs(number)))), -scale))


def buffer_of(array, count=None):
    """Return the data of a fixed-width Arrow array as a numpy array, undefined at nulls; for a list or map, the offsets, one more than
    rows (pass `count`). Booleans become bytes."""
    count = len(array) if count is None else count
    buffer = array.buffers()[1]
    if buffer is None:
        return np.zeros(count, np.int32)
    if pa.types.is_boolean(array.type):
        bits = np.frombuffer(buffer, np.uint8)[array.offset // 8 :]
        first = array.offset % 8
        return np.unpackbits(bits, bitorder="little", count=first + count)[first:].astype(np.bool_)
    kind = np.int32 if pa.types.is_nested(array.type) else array.type.to_pandas_dtype()
    return np.frombuffer(buffer, kind)[array.offset : array.offset + count]
