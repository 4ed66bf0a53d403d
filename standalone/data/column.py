"""Operations on columns of any kind; only this module distinguishes the kinds. A column is one of

- None: all rows are null,
- a `ByteColumn`: strings (as UTF-8) or bytes, sliced from a buffer, as read from files and the log,
- an Arrow array of the schema's Arrow type (data/arrow.py),
- a `StructColumn`: non-null structs as their fields' columns,
- a `Shaped`: schemaless values with one shape, as one of the above,
- a list of Python values, as in records.

    take(column, rows)  cut(column, low, high)  compact(column, low, high)      select rows
    concat(columns, schema, counts)                                             concatenate
    values_of(column, schema, count)  to_arrow(column, schema, count)           convert to Python values or Arrow
    columnar(column, schema, count)                                             convert for kernels and Spark
    nulls_of(column)  null_count(column)  nbytes(column)  fields_of(column)     inspect
    shape_of(column)  unshaped(column, schema)  is_stored_as(column, schema)

`take` and `cut` also accept numpy arrays, and values shared by all rows, such as a batch's topic, which they return unchanged.
"""

import functools

import numpy as np
import pyarrow as pa

from standalone.data import schema as s
from standalone.data import utf8
from standalone.data.arrow import NotColumns, array_of, arrow_type, exact_array, from_arrow
from standalone.data.struct import Struct
from standalone.data.struct_column import Shaped, StructColumn, loosened, maps_of
from standalone.data.utf8_column import repair
from standalone.wire import ByteColumn
from standalone.wire import concat as concat_bytes

# --- Select rows ---------------------------------------------------------------------------------------------------


@functools.singledispatch
def take(column, rows):
    """Return the items at these rows, an array of numbers."""
    return column


@take.register
def _(column: list, rows):
    return [column[row] for row in rows.tolist()]


@take.register
def _(column: StructColumn, rows):
    return StructColumn(column.schema, [take(part, rows) for part in column.parts], len(rows))


@take.register(pa.Array)
@take.register(pa.ChunkedArray)
def _(column, rows):
    return column.take(pa.array(rows))


take.register(ByteColumn, ByteColumn.take)
take.register(np.ndarray, lambda column, rows: column[rows])
take.register(Shaped, lambda column, rows: Shaped(column.shape, take(column.column, rows)))


@functools.singledispatch
def cut(column, low, high):
    """Return items low to high without copying."""
    return column


@cut.register(list)
@cut.register(np.ndarray)
@cut.register(pa.Array)
@cut.register(pa.ChunkedArray)
def _(column, low, high):
    return column[low:high]


@cut.register
def _(column: StructColumn, low, high):
    low, high, _ = slice(low, high).indices(column.count)
    return StructColumn(column.schema, [cut(part, low, high) for part in column.parts], max(0, high - low))


cut.register(ByteColumn, ByteColumn.slice)
cut.register(Shaped, lambda column, low, high: Shaped(column.shape, cut(column.column, low, high)))


@functools.singledispatch
def compact(column, low, high):
    """Return items low to high in their own buffers."""
    return cut(column, low, high)


@compact.register
def _(column: StructColumn, low, high):
    return StructColumn(column.schema, [compact(part, low, high) for part in column.parts], high - low)


compact.register(pa.Array, lambda column, low, high: pa.concat_arrays([column[low:high]]))
compact.register(pa.ChunkedArray, lambda column, low, high: column[low:high].combine_chunks())

compact.register(ByteColumn, lambda column, low, high: column.slice(low, high).compact())
compact.register(Shaped, lambda column, low, high: Shaped(column.shape, compact(column.column, low, high)))


# --- Concatenate --------------------------------------------------------------------------------------------------


def concat(columns, schema, counts):
    """Concatenate columns of one schema (None: schemaless); columnar if all of them are."""
    if all(column is None for column in columns):
        return None
    if all(isinstance(column, ByteColumn) for column in columns):
        return concat_bytes(columns)
    shape = shape_of(columns[0])
    if shape is not None and all(shape_of(column) == shape for column in columns):
        return Shaped(shape, concat([column.column for column in columns], shape, counts))
    try:
        if schema is not None and not all(isinstance(column, list) for column in columns):
            return _joined([exact_array(column, schema) if isinstance(column, list) else column for column in columns], schema, counts)
    except NotColumns:
        pass
    return [item for column, count in zip(columns, counts) for item in values_of(column, schema, count)]


def _joined(columns, schema, counts):
    if schema.type == s.STRUCT and not any(column is None or null_count(column) for column in columns):
        parts = [concat(list(parts), field.schema, counts) for field, parts in zip(schema.fields, zip(*map(fields_of, columns)))]
        return StructColumn(schema, parts, sum(counts))
    if any(isinstance(column, ByteColumn) for column in columns):
        nulls = (ByteColumn.repeat(None, count) for count in counts)
        return concat_bytes([none if column is None else to_bytes(column) for column, none in zip(columns, nulls)])
    return pa.concat_arrays([to_arrow(column, schema, count) for column, count in zip(columns, counts)])


# --- Convert to values or Arrow ------------------------------------------------------------------------------------


@functools.singledispatch
def values_of(column, schema, count):
    """Return a column's Python values as a list."""
    return from_arrow(column, schema)


@values_of.register
def _(column: ByteColumn, schema, count):
    return utf8.texts_of(column) if schema is not None and schema.type == s.STRING else list(column)


@values_of.register
def _(column: StructColumn, schema, count):
    fields = [values_of(part, field.schema, count) for part, field in zip(column.parts, column.schema.fields)]
    trusted = Struct.trusted
    return [trusted(column.schema, list(row)) for row in zip(*fields)] if fields else [trusted(column.schema, []) for _ in range(count)]


@values_of.register
def _(column: Shaped, schema, count):
    inner, shape = column.column, column.shape
    if isinstance(inner, StructColumn) and shape.fields:
        parts = [None if part is None else Shaped(field.schema, part) for part, field in zip(inner.parts, shape.fields)]
        return maps_of([field.name for field in shape.fields], [values_of(part, None, count) for part in parts])
    return loosened(values_of(inner, shape, count), shape)


values_of.register(type(None), lambda column, schema, count: [None] * count)
values_of.register(list, lambda column, schema, count: column)


@functools.singledispatch
def to_arrow(column, schema, count=None):
    """Return a column as an Arrow array of the schema's type. `count` is needed if the column is None.

    Raises ValueError or TypeError (like pyarrow) if a value does not fit the schema.
    """
    return array_of(column, schema)


@to_arrow.register
def _(column: None, schema, count=None):
    return pa.nulls(count, arrow_type(schema))


@to_arrow.register
def _(column: ByteColumn, schema, count=None):
    return to_arrow(column.to_arrow(text=schema.type == s.STRING), schema)


@to_arrow.register
def _(column: StructColumn, schema, count=None):
    kind, parts = arrow_type(schema), zip(column.parts, schema.fields)
    arrays = [to_arrow(part, field.schema, column.count) for part, field in parts]
    return pa.StructArray.from_arrays(arrays, fields=list(kind)) if arrays else pa.array([{}] * column.count, kind)


@to_arrow.register(pa.Array)
@to_arrow.register(pa.ChunkedArray)
def _(column, schema, count=None):
    kind, array = arrow_type(schema), one_piece(column)
    return array if array.type == kind else array.cast(kind)


@functools.singledispatch
def columnar(column, schema, count):
    """Return a column as a ByteColumn of valid UTF-8 or bytes, a StructColumn, or an Arrow array. Raise NotColumns."""
    try:
        return to_arrow(column, schema, count)
    except (ValueError, TypeError, OverflowError) as error:
        raise NotColumns(str(error)) from error


@columnar.register
def _(column: ByteColumn, schema, count):
    if not is_stored_as(column, schema):
        raise NotColumns(f"bytes are not a {schema.name or schema.type}")
    return repair(column) if schema.type == s.STRING else column


columnar.register(list, lambda column, schema, count: exact_array(column, schema))
columnar.register(StructColumn, lambda column, schema, count: column)


@functools.singledispatch
def to_bytes(column):
    """Convert an Arrow array of strings or bytes to a ByteColumn."""
    return ByteColumn.from_arrow(column)


to_bytes.register(ByteColumn, lambda column: column)


def one_piece(array):
    """Combine a chunked array; return anything else unchanged."""
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


# --- Inspect -------------------------------------------------------------------------------------------------------


@functools.singledispatch
def nulls_of(column):
    """Boolean array of the null rows."""
    if not column.null_count:
        return np.zeros(len(column), bool)
    return column.is_null().to_numpy(zero_copy_only=False)


nulls_of.register(ByteColumn, lambda column: column.lengths < 0)
nulls_of.register(StructColumn, lambda column: np.zeros(column.count, bool))


@functools.singledispatch
def null_count(column):
    """Number of null rows."""
    return column.null_count


null_count.register(ByteColumn, lambda column: int(np.count_nonzero(column.lengths < 0)))
null_count.register(StructColumn, lambda column: 0)


@functools.singledispatch
def nbytes(column):
    """Estimated size of its values; Python values are not counted."""
    return 0 if column is None else column.nbytes


nbytes.register(list, lambda column: 0)
nbytes.register(StructColumn, lambda column: sum(map(nbytes, column.parts)))
nbytes.register(Shaped, lambda column: nbytes(column.column))


@functools.singledispatch
def fields_of(column):
    """The fields' columns of structs; undefined where a struct is null."""
    return [column.field(at) for at in range(column.type.num_fields)]


fields_of.register(StructColumn, lambda column: column.parts)


def shape_of(column):
    """The Schema shared by schemaless values; None if they have a schema, or no known shape."""
    return column.shape if isinstance(column, Shaped) else None


def unshaped(column, schema):
    """Return (column, the schema of its values, or their shape if schemaless)."""
    return (column.column, column.shape) if isinstance(column, Shaped) else (column, schema)


@functools.singledispatch
def is_stored_as(column, schema):
    """Whether it is stored as columns of that schema are, so that kernels can use it directly."""
    return False


@is_stored_as.register(pa.Array)
@is_stored_as.register(pa.ChunkedArray)
def _(column, schema):
    return schema is not None and column.type == arrow_type(schema)


is_stored_as.register(ByteColumn, lambda column, schema: schema is not None and schema.type in (s.STRING, s.BYTES) and not schema.logical)
is_stored_as.register(StructColumn, lambda column, schema: column.schema == schema)


# --- Batch attributes: one value for all rows, or a list with a value per row; numbers; headers --------------------


def spread(given, count):
    """Expand to a list with a value per row."""
    return given if isinstance(given, list) else [given] * count


def folded(items):
    """Return the single value if all rows share it, else the list."""
    return items[0] if items.count(items[0]) == len(items) else items


def concat_spread(given, counts):
    """Concatenate such values."""
    if not any(isinstance(each, list) for each in given) and given.count(given[0]) == len(given):
        return given[0]
    return [item for each, count in zip(given, counts) for item in spread(each, count)]


def concat_longs(arrays, counts, unset):
    """Concatenate arrays of longs, or None if all are unset."""
    if all(array is None for array in arrays):
        return None
    return np.concatenate([np.full(count, unset, np.int64) if array is None else array for array, count in zip(arrays, counts)])


def concat_headers(given, counts):
    """Concatenate lists of headers per row, or None if there are none."""
    if all(each is None for each in given):
        return None
    return [row for each, count in zip(given, counts) for row in spread(() if each is None else each, count)]
