"""Keys and values of records as columns by their converters' kernels, and the fields in them as columns of a DataFrame.

What is answered is what the row form (columns.py, fitting.py) makes of each record by itself. Where Python would have to look at single values
the answer is None, and the row form does it; it also says what is wrong with a record.
"""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from standalone.data import schema as s
from standalone.data.column import columnar, shape_of, take, unshaped, values_of
from standalone.data.column import to_arrow as arrow_of
from standalone.data.struct_column import Shaped, StructColumn
from standalone.errors import ConnectError

FEWEST = 200  # records: for fewer it takes longer to have the kernels than to do without
NO_ROWS = np.empty(0, np.int64)
_INTS = (s.INT8, s.INT16, s.INT32, s.INT64)
_FLOATS = (s.FLOAT32, s.FLOAT64)


class Part(NamedTuple):
    """The keys or values of `count` records, or a field of them. `column` is one of data/column.py."""

    count: int
    schema: object = None
    column: object = None
    bad: np.ndarray = NO_ROWS  # rows that the kernels have left: what the column has there says nothing

    def take(self, rows):
        return Part(len(rows), self.schema, take(self.column, rows))

    def values(self):
        """As the row form has them."""
        return values_of(self.column, self.schema, self.count)

    def field(self, name):
        """The Part of a field of the values, by its very name or else regardless of case; None where each value has to be looked at."""
        if self.column is None:
            return Part(self.count)
        column, schema = unshaped(self.column, self.schema)
        if schema is None or schema.type == s.MAP:
            return None
        at = _place(schema, name)
        if at is None:
            return Part(self.count)
        inner = schema.fields[at].schema
        if isinstance(column, StructColumn):
            found = column.parts[at]
        elif isinstance(column, pa.StructArray):
            found = pc.struct_field(column, [at])  # null where the struct is
        else:
            return None
        if shape_of(self.column) is None or found is None:
            return Part(self.count, inner, found)
        return Part(self.count, None, Shaped(inner, found))

    def array(self, kind):
        """An Arrow array of that type, or None."""
        if self.column is None:
            return pa.nulls(self.count, kind)
        column, schema = unshaped(self.column, self.schema)
        if schema is None or not _becomes(schema, kind):
            return None
        try:
            found = arrow_of(columnar(column, schema, self.count), schema, self.count)
            return (pc.multiply_checked(found, 1000) if pa.types.is_timestamp(kind) else found).cast(kind)
        except (ValueError, TypeError, OverflowError):  # some value does not fit
            return None


def part(converter, topic, data, count, headers):
    """The Part of a ByteColumn of keys or values, or of None for nulls; None where the converter cannot."""
    try:
        if data is None:
            return Part(count) if converter.read(topic, None, None)[1] is None else None
        found = converter.decode(topic, data, headers) if converter.reads_headers else converter.decode(topic, data)
    except ConnectError:
        return None
    if found is None:
        return None
    schema, column, bad = found
    return Part(count, schema, column, NO_ROWS if bad is None else np.asarray(bad, np.int64))


def _place(schema, name):
    """Which field of a struct's schema has that name; None where none has, or these are no structs."""
    if schema.type != s.STRUCT:
        return None
    names = [field.name for field in schema.fields]
    if name in names:
        return names.index(name)
    folded = name.casefold()
    return next((at for at, each in enumerate(names) if each.casefold() == folded), None)


def _becomes(schema, kind):
    """Whether values of that schema become the type as they are, without a look at each."""
    if schema.name == s.DECIMAL:
        return False
    if pa.types.is_timestamp(kind) or pa.types.is_integer(kind):
        return bool(schema.logical) or schema.type in _INTS
    if schema.logical:
        return False
    if pa.types.is_floating(kind):
        return schema.type in _INTS + _FLOATS
    if pa.types.is_string(kind):
        return schema.type == s.STRING
    if pa.types.is_binary(kind):
        return schema.type in (s.STRING, s.BYTES)
    return pa.types.is_boolean(kind) and schema.type == s.BOOLEAN
