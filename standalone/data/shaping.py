"""Convert schemaless values to a column if they have a common shape."""

import numpy as np
import pyarrow as pa

from standalone.data import schema as s
from standalone.data.arrow import arrow_type
from standalone.data.column import to_arrow
from standalone.data.scalars import CLASSES, Float32, Int64
from standalone.data.struct import Struct
from standalone.data.struct_column import Shaped, StructColumn
from standalone.errors import DataError

_PLAIN = {bool: s.BOOLEAN, str: s.STRING, bytes: s.BYTES, float: s.FLOAT64, Float32: s.FLOAT32, int: s.INT64}
_PLAIN.update({width: kind for kind, width in CLASSES.items()})


def shaped(values):
    """Return a Shaped of Python values, or None if they have no common shape, or one without columnar form.

    Maps must have the same keys in the same order. Only nulls, or only empty lists, fit any type.
    """
    try:
        found = _column(values)
    except (ValueError, TypeError, OverflowError):  # pyarrow's: invalid Unicode, or a number beyond int64
        return None
    return found and Shaped(*found)


def _column(values):
    """Return (schema, column), or None."""
    classes = set(map(type, values))
    optional = type(None) in classes
    classes.discard(type(None))
    if not classes:
        schema = s.Schema(s.STRING, optional=True)
        return schema, to_arrow(None, schema, len(values))
    kind = _PLAIN.get(classes.pop())
    if classes - {int, Int64} if kind == s.INT64 else classes:
        return None
    if kind is not None:
        schema = s.Schema(kind, optional=optional)
        return schema, pa.array(values, arrow_type(schema))
    if optional:
        return None
    return _maps(values) if isinstance(values[0], dict) else _lists(values) if isinstance(values[0], list) else None


def _maps(values):
    names = tuple(values[0])
    if not names or not all(isinstance(name, str) for name in names) or not all(map(names.__eq__, map(tuple, values))):
        return None
    found = [_column(column) for column in zip(*map(dict.values, values))]
    if None in found:
        return None
    fields = [s.Field(name, at, schema) for at, (name, (schema, _)) in enumerate(zip(names, found))]
    schema = s.Schema(s.STRUCT, fields=fields)
    return schema, StructColumn(schema, [column for _, column in found], len(values))


def _lists(values):
    ends = np.zeros(len(values) + 1, np.int32)
    np.cumsum(np.fromiter(map(len, values), np.int64, len(values)), out=ends[1:])
    found = _column([item for value in values for item in value])
    if found is None or found[0].optional and ends[-1]:
        return None
    schema = s.Schema(s.ARRAY, value_schema=found[0].with_(optional=False))
    return schema, pa.ListArray.from_arrays(pa.array(ends), to_arrow(found[1], found[0]), type=arrow_type(schema))


# --- A single value ------------------------------------------------------------------------------------------------

_SCALARS = {bool: s.Schema.BOOLEAN, str: s.Schema.STRING, bytes: s.Schema.BYTES, float: s.Schema.FLOAT64, int: s.Schema.INT64}


def shape_by_looks(value):
    """Infer the schema of a schemaless value. Raise DataError if it has no single type."""
    if value is None:
        return s.Schema.OPTIONAL_STRING
    for kind, schema in _SCALARS.items():
        if isinstance(value, kind):
            return schema
    if isinstance(value, dict):
        builder = s.SchemaBuilder.struct()
        for name, item in value.items():
            if not isinstance(name, str):
                raise DataError("A map without a schema can only become a struct if its keys are strings.")
            builder.field(name, shape_by_looks(item))
        return builder.optional().build()
    if isinstance(value, list):
        shapes = list(dict.fromkeys(shape_by_looks(item) for item in value if item is not None))
        if len(shapes) > 1:
            raise DataError("A list without a schema can only become an array if its items share one type.")
        return s.SchemaBuilder.array(shapes[0] if shapes else s.Schema.OPTIONAL_STRING).optional().build()
    if isinstance(value, Struct):
        return value.schema
    raise DataError(f"A value of type {type(value).__name__} has no schema, and none can be inferred.")
