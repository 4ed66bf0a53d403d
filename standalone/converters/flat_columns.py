"""Flat arrays, as kernels fill them, made into columns: numbers (int64: as they are, the bits of floats, where bytes begin) and sizes (int32: of
bytes how many they are; below 0 for a null)."""

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
    """Of a schema with values of fixed width; a date is its day."""
    return pa.array(_of_width(numbers, schema), arrow_type(schema), mask=_numpy_mask(sizes))


def decimals_column(data, numbers, sizes, scales):
    """`scales` is an array of int32."""
    unscaled = ByteColumn(data, numbers, sizes).to_arrow()
    return pa.StructArray.from_arrays([unscaled, pa.array(scales, pa.int32())], fields=list(DECIMAL), mask=_mask(sizes))


def symbols_column(symbols, numbers, sizes):
    """The strings of an enum, each of which is held once; `numbers` are places in the list of them."""
    texts = ByteColumn.of([symbol.encode() for symbol in symbols])
    at = np.where(sizes < 0, 0, numbers)
    return ByteColumn(texts.data, texts.starts[at], np.where(sizes < 0, -1, texts.lengths[at]).astype(np.int32))


def structs_column(schema, columns, count, sizes=None):
    """Of the columns of the fields. `sizes` say which are null; None for none."""
    if sizes is None or not (sizes < 0).any():
        return StructColumn(schema, columns, count)
    kind = arrow_type(schema)
    if not columns:
        return pa.array([None if size < 0 else {} for size in sizes.tolist()], kind)
    arrays = [arrow(column, field.schema, count) for column, field in zip(columns, schema.fields)]
    return pa.StructArray.from_arrays(arrays, fields=list(kind), mask=_mask(sizes))


def lists_column(schema, ends, sizes, columns, count):
    """Of an array or a map, with `count` items in all: `ends` is where those of each end, `columns` are that of its items, or of keys and items."""
    kind, nulls = arrow_type(schema), sizes < 0
    offsets = np.concatenate([np.zeros(1, np.int64), ends]).astype(np.int32)
    offsets = pa.array(offsets, pa.int32(), mask=np.append(nulls, False) if nulls.any() else None)
    if schema.type == s.ARRAY:
        return pa.ListArray.from_arrays(offsets, arrow(columns[0], schema.value_schema, count), type=kind)
    keys, items = (arrow(column, inner, count) for column, inner in zip(columns, (schema.key_schema, schema.value_schema)))
    return pa.MapArray.from_arrays(offsets, keys, items, type=kind)


def arrow(column, schema, count):
    """A column as an Arrow array, strings that are none repaired."""
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
