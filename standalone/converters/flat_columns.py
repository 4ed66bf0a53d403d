"""Build columns from the flat arrays of kernels: numbers (int64: integers, float bits, or the start of bytes) and sizes (int32: the length of bytes;
negative for a null)."""

import numpy as np
import pyarrow as pa

from standalone import ByteColumn
from standalone.converters.json_values import DAY_MS
from standalone.data import schema as s
from standalone.data.arrow import DECIMAL, arrow_type
from standalone.data.column import to_arrow
from standalone.data.struct_column import StructColumn
from standalone.data.utf8_column import repair

_WIDTHS = {s.INT8: np.int8, s.INT16: np.int16, s.INT32: np.int32, s.INT64: np.int64}


def numbers_column(schema, numbers, sizes):
    """For fixed-width types; a date is its day."""
    return pa.array(_of_width(numbers, schema), arrow_type(schema), mask=_numpy_mask(sizes))


def decimals_column(data, numbers, sizes, scales):
    """`scales` is an array of int32."""
    unscaled = ByteColumn(data, numbers, sizes).to_arrow()
    return pa.StructArray.from_arrays([unscaled, pa.array(scales, pa.int32())], fields=list(DECIMAL), mask=_mask(sizes))


def symbols_column(symbols, numbers, sizes):
    """Strings of an enum, stored once each; `numbers` are indexes into `symbols`."""
    texts = ByteColumn.of([symbol.encode() for symbol in symbols])
    at = np.where(sizes < 0, 0, numbers)
    return ByteColumn(texts.data, texts.starts[at], np.where(sizes < 0, -1, texts.lengths[at]).astype(np.int32))


def structs_column(schema, columns, count, sizes=None):
    """From the fields' columns. `sizes` mark nulls; None if there are none."""
    if sizes is None or not (sizes < 0).any():
        return StructColumn(schema, columns, count)
    kind = arrow_type(schema)
    if not columns:
        return pa.array([None if size < 0 else {} for size in sizes.tolist()], kind)
    arrays = [arrow(column, field.schema, count) for column, field in zip(columns, schema.fields)]
    return pa.StructArray.from_arrays(arrays, fields=list(kind), mask=_mask(sizes))


def lists_column(schema, ends, sizes, columns, count):
    """An array or map with `count` items in all: `ends` are the end positions of each list, `columns` the items, or keys and values."""
    kind, nulls = arrow_type(schema), sizes < 0
    offsets = np.concatenate([np.zeros(1, np.int64), ends]).astype(np.int32)
    offsets = pa.array(offsets, pa.int32(), mask=np.append(nulls, False) if nulls.any() else None)
    if schema.type == s.ARRAY:
        return pa.ListArray.from_arrays(offsets, arrow(columns[0], schema.value_schema, count), type=kind)
    keys, items = (arrow(column, inner, count) for column, inner in zip(columns, (schema.key_schema, schema.value_schema)))
    return pa.MapArray.from_arrays(offsets, keys, items, type=kind)


def arrow(column, schema, count):
    """Return a column as an Arrow array, with invalid UTF-8 replaced."""
    if isinstance(column, ByteColumn) and schema.type == s.STRING:
        column = repair(column)
    elif isinstance(column, StructColumn):
        arrays = [arrow(part, field.schema, count) for part, field in zip(column.parts, schema.fields)]
        kind = arrow_type(schema)
        return pa.StructArray.from_arrays(arrays, fields=list(kind)) if arrays else pa.array([{}] * count, kind)
    return to_arrow(column, schema, count)


def _numpy_mask(sizes):
    nulls = sizes < 0
    return nulls if nulls.any() else None


def _mask(sizes):
    nulls = _numpy_mask(sizes)
    return None if nulls is None else pa.array(nulls)


def _of_width(numbers, schema):
    if schema.name == s.DATE:
        return numbers * DAY_MS
    if schema.logical:
        return numbers
    kind = schema.type
    if kind == s.FLOAT32:
        return numbers.astype(np.uint32).view(np.float32)
    if kind == s.FLOAT64:
        return np.ascontiguousarray(numbers).view(np.float64)
    return numbers.astype(np.bool_) if kind == s.BOOLEAN else numbers.astype(_WIDTHS[kind])
