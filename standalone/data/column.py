"""What can be done with a column of any kind that data/batch.py knows: the one place that asks which kind it is.

    take(column, rows)      the items at these rows            cut(column, low, high)   a run of them, not copied
    concat(columns, ...)    one behind the other               compact(column, rows)    a copy that holds nothing else
"""

import numpy as np
import pyarrow as pa

from standalone.data.arrow import to_arrow
from standalone.data.batch import values_of
from standalone.data.struct_column import Shaped, StructColumn, cut
from standalone.data.struct_column import pick as take
from standalone.wire import ByteColumn
from standalone.wire import concat as concat_bytes

__all__ = ["compact", "concat", "cut", "one_piece", "take"]


def compact(column, low, high):
    """The items from low to high, in buffers of their own."""
    if isinstance(column, ByteColumn):
        return column.slice(low, high).compact()
    if isinstance(column, StructColumn):
        return StructColumn(column.schema, [compact(part, low, high) for part in column.parts], high - low)
    if isinstance(column, Shaped):
        return Shaped(column.shape, compact(column.column, low, high))
    if isinstance(column, (pa.Array, pa.ChunkedArray)):
        return column.take(pa.array(np.arange(low, high)))
    return cut(column, low, high)


def concat(columns, schema, counts):
    """Columns of one schema (None: without one) one behind the other; None stays None where all are."""
    if all(column is None for column in columns):
        return None
    kinds = set(map(type, columns))
    if kinds == {ByteColumn}:
        return concat_bytes(columns)
    if kinds == {StructColumn}:
        parts = zip(zip(*(column.parts for column in columns)), schema.fields)
        return StructColumn(schema, [concat(list(part), field.schema, counts) for part, field in parts], sum(counts))
    if kinds == {Shaped}:
        shape = columns[0].shape
        return Shaped(shape, concat([column.column for column in columns], shape, counts))
    if schema is not None and list not in kinds:
        return pa.concat_arrays([one_piece(to_arrow(column, schema, count)) for column, count in zip(columns, counts)])
    return [item for column, count in zip(columns, counts) for item in values_of(column, schema, count)]


def one_piece(array):
    """A chunked array as a plain one."""
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
