"""Convert columns to flat arrays for kernels, the reverse of flat_columns.py. Size NULL is a null, REFUSED leaves a row to the rows engine."""

import numpy as np
import pyarrow as pa

from standalone import ByteColumn
from standalone.data import schema as s
from standalone.data.arrow import arrow_type, buffer_of
from standalone.data.column import nulls_of
from standalone.data.struct_column import StructColumn

NULL, REFUSED = -1, -2
_NOTHING = np.zeros(1, np.uint8)


class NoArrays(Exception):
    """This column cannot become flat arrays: rows must process it."""


class Buffers:
    """The bytes of several columns in one buffer."""

    def __init__(self):
        self._buffers, self._held = [], {}
        self._end = 0
        self.used = 0  # bytes used by values: a column may use only part of its buffer, or some bytes twice

    def add(self, column):
        """Add a ByteColumn; return where its items begin in the buffer."""
        total = column.nbytes
        if len(column.data) > 2 * total + 4096 and id(column.data) not in self._held:
            column = column.compact()
        begin = self._held.get(id(column.data))
        if begin is None:
            begin = self._held[id(column.data)] = self._end
            self._buffers.append(column.data)
            self._end += len(column.data)
        self.used += total
        return column.starts + begin

    def joined(self):
        return np.concatenate(self._buffers) if len(self._buffers) > 1 else self._buffers[0] if self._buffers else _NOTHING


def settled(column, schema, count):
    """Return the column in one piece: a ByteColumn, a StructColumn or an Arrow array of the schema's type."""
    if isinstance(column, list):
        raise NoArrays
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if column is None:
        column = pa.nulls(count, arrow_type(schema))
    if isinstance(column, pa.Array) and column.type != arrow_type(schema):
        raise NoArrays
    return column


def structs_of(column, schema, count):
    """Return (sizes, field columns)."""
    if isinstance(column, StructColumn):
        if column.schema.with_(optional=schema.optional) != schema:
            raise NoArrays
        return np.zeros(count, np.int32), column.parts
    if isinstance(column, pa.StructArray):
        return null_sizes(column), [column.field(at) for at in range(len(schema.fields))]
    raise NoArrays


def lists_of(column, count):
    """Return (offsets of items, with the end after the last row; sizes; columns of items, or of keys and values; item count)."""
    if not isinstance(column, (pa.ListArray, pa.MapArray)):
        raise NoArrays
    ends = buffer_of(column, count + 1).astype(np.int64)
    low, high = int(ends[0]), int(ends[-1])
    columns = [column.keys, column.items] if isinstance(column, pa.MapArray) else [column.values]
    return ends - low, null_sizes(column), [each.slice(low, high - low) for each in columns], high - low


def numbers_of(column, schema):
    """Return (numbers, sizes) of a fixed-width Arrow array: floats as their bits."""
    if isinstance(column, (ByteColumn, StructColumn)):
        raise NoArrays
    values, sizes = buffer_of(column), null_sizes(column)
    if schema.type == s.FLOAT32 and not schema.logical:
        return values.view(np.uint32).astype(np.int64), sizes
    if schema.type == s.FLOAT64 and not schema.logical:
        return values.view(np.int64), sizes
    return values.astype(np.int64), sizes


def decimals_of(column):
    """Return (ByteColumn of the unscaled numbers, their scales, sizes)."""
    unscaled, scales = ByteColumn.from_arrow(column.field(0)), buffer_of(column.field(1))
    nulls = nulls_of(column) | (unscaled.lengths < 0)
    sizes = np.where(nulls, NULL, np.where(_is_shortest(unscaled), unscaled.lengths, REFUSED)).astype(np.int32)
    return ByteColumn(unscaled.data, unscaled.starts, np.maximum(unscaled.lengths, 0)), scales, sizes


def null_sizes(array):
    return np.where(nulls_of(array), NULL, 0).astype(np.int32)


def _is_shortest(column):
    """Which numbers have the form of Java's BigInteger, without redundant bytes."""
    if not len(column.data):
        return np.zeros(len(column), np.bool_)
    last = len(column.data) - 1
    first = column.data[np.clip(column.starts, 0, last)]
    second = column.data[np.clip(column.starts + 1, 0, last)]
    idle = ((first == 0) & (second < 0x80)) | ((first == 0xFF) & (second >= 0x80))
    return (column.lengths == 1) | (column.lengths > 1) & ~idle
