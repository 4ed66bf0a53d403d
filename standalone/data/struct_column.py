"""Two kinds of column of our own: structs split into the columns of their fields, and values that have no schema but all one shape.

Both keep what they are made of as it is: strings stay where they were read, and only what is looked at is ever copied. What can be done
with them is in data/column.py.
"""

import functools

from standalone.data import schema as s
from standalone.data.scalars import CLASSES, Float32


class StructColumn:
    """Structs of a schema, none of them null: `parts` are the columns of its fields, of any kind."""

    __slots__ = ("schema", "parts", "count")

    def __init__(self, schema, parts, count):
        self.schema = schema
        self.parts = parts
        self.count = count

    def __len__(self):
        return self.count


class Shaped:
    """Values without a schema, as a column of the Schema `shape` that each of them provably has: its structs are maps, and a whole
    number or a float is of the very class that the shape says, Long and Double where it says int64 and float64.
    """

    __slots__ = ("shape", "column")

    def __init__(self, shape, column):
        self.shape = shape
        self.column = column

    def __len__(self):
        return len(self.column)


def maps_of(names, columns):
    """A map for each row, of lists of values: one with these names as its keys, in this order."""
    return list(map(_map_maker(tuple(names)), *columns))


@functools.lru_cache(256)
def _map_maker(names):
    """A function of a value for each name. It is compiled of a display of a map, which takes half the time of dict(zip(names, values))."""
    values = [f"v{at}" for at in range(len(names))]
    items = ", ".join(f"{name!r}: {value}" for name, value in zip(names, values))
    return eval(f"lambda {', '.join(values)}: {{{items}}}")


def loosened(values, schema):
    """Values of a shape as they are in records without a schema, given as they are in records with that schema."""
    loosen = _loosener(schema)
    return values if loosen is _same else [None if value is None else loosen(value) for value in values]


def _loosener(schema):
    """A function from a value with a schema to the like without one."""
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
