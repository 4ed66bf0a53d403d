"""Two column kinds: structs as their fields' columns, and schemaless values with one shape.

Both are built without copies: strings stay in their buffers, and only accessed parts are ever copied. Operations are in
data/column.py.
"""

import functools

from standalone.data import schema as s
from standalone.data.scalars import CLASSES, Float32


class StructColumn:
    """Non-null structs of a schema: `parts` are the fields' columns, of any kind."""

    __slots__ = ("schema", "parts", "count")

    def __init__(self, schema, parts, count):
        self.schema = schema
        self.parts = parts
        self.count = count

    def __len__(self):
        return self.count


class Shaped:
    """Schemaless values as a column with the Schema `shape` that they all have: structs are maps, and numbers have exactly the class of
    the shape, Long and Double for int64 and float64.
    """

    __slots__ = ("shape", "column")

    def __init__(self, shape, column):
        self.shape = shape
        self.column = column

    def __len__(self):
        return len(self.column)


def maps_of(names, columns):
    """Build a map per row from lists of values, with these names as keys, in this order."""
    return list(map(_map_maker(tuple(names)), *columns))


@functools.lru_cache(256)
def _map_maker(names):
    """Return a compiled function from values to a map with these names: twice as fast as dict(zip(names, values))."""
    values = [f"v{at}" for at in range(len(names))]
    items = ", ".join(f"{name!r}: {value}" for name, value in zip(names, values))
    return eval(f"lambda {', '.join(values)}: {{{items}}}")


def loosened(values, schema):
    """Convert values with a schema to schemaless ones of the same shape."""
    loosen = _loosener(schema)
    return values if loosen is _same else [None if value is None else loosen(value) for value in values]


def _loosener(schema):
    """Return a function from a value with a schema to a schemaless one."""
    kind = schema.type
    if schema.logical:
        return _same
    if kind == s.STRUCT:
        names = [field.name for field in schema.fields]
        inner = [None if (each := _loosener(field.schema)) is _same else each for field in schema.fields]
        if not any(inner):
            return lambda struct: dict(zip(names, struct.values))
        return lambda struct: {
            name: item if loosen is None or item is None else loosen(item) for name, loosen, item in zip(names, inner, struct.values)
        }
    if kind == s.ARRAY:
        loosen = _loosener(schema.value_schema)
        return _same if loosen is _same else lambda items: [None if item is None else loosen(item) for item in items]
    if kind == s.MAP:
        key, item = _loosener(schema.key_schema), _loosener(schema.value_schema)
        return lambda items: {None if k is None else key(k): None if v is None else item(v) for k, v in items.items()}
    if kind in (s.INT8, s.INT16, s.INT32):
        return CLASSES[kind]
    return Float32 if kind == s.FLOAT32 else _same


def _same(value):
    return value
