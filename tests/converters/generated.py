"""Schemas and values made by hypothesis, for tests that hold columns to rows."""

import decimal

import numpy as np
from hypothesis import strategies as st

from standalone import Field, Float32, Instant, Schema, Struct, date_schema, decimal_schema, time_schema, timestamp_schema

TEXTS = st.text(st.sampled_from('ab"\\/\n\x01\x1f\x7fé€😀'), max_size=8) | st.text(max_size=4).map(lambda text: text.encode("utf-8", "replace").decode())
_INTS = {kind: st.integers(-(1 << bits - 1), (1 << bits - 1) - 1) for kind, bits in (("int8", 8), ("int16", 16), ("int32", 32), ("int64", 64))}
_SCALARS = {
    **_INTS,
    "float32": st.floats(width=32).map(lambda number: Float32(np.float32(number))),
    "float64": st.floats() | st.integers(-(10**18), 10**18).map(float),
    "boolean": st.booleans(),
    "string": TEXTS,
    "bytes": st.binary(max_size=7),
}
DAY_MS = 86_400_000


@st.composite
def schemas(draw, depth=2, nested=True):
    """A schema; without `nested` one that is not a list, map, bytes or Decimal, however deep."""
    optional = draw(st.booleans())
    kinds = [kind for kind in _SCALARS if nested or kind != "bytes"]
    kind = draw(st.sampled_from([*kinds, "date", "time", "timestamp", *(["decimal", "array", "map"] if nested else []), "struct", "struct"]))
    if kind in ("array", "map", "struct") and depth == 0:
        kind = "string"
    if kind in _SCALARS:
        default = draw(st.none() | _SCALARS[kind]) if draw(st.integers(0, 4)) == 0 else None
        return Schema(kind, optional=optional, default=default)
    if kind in ("date", "time", "timestamp"):
        return {"date": date_schema, "time": time_schema, "timestamp": timestamp_schema}[kind](optional=optional)
    if kind == "decimal":
        return decimal_schema(draw(st.sampled_from([0, 2, 5])), optional=optional)
    inner = schemas(depth - 1, nested)
    if kind == "array":
        return Schema("array", optional=optional, value_schema=draw(inner))
    if kind == "map":
        keys = draw(st.sampled_from([Schema.STRING, Schema.INT32, Schema.OPTIONAL_STRING]))
        return Schema("map", optional=optional, key_schema=keys, value_schema=draw(inner))
    names = draw(st.lists(st.sampled_from(["a", "b", "é", "x.y", 'q"']), unique=True, max_size=4))
    return Schema("struct", optional=optional, fields=[Field(name, at, draw(inner)) for at, name in enumerate(names)])


def values(schema, broken=False):
    """A strategy of values of a schema; of `broken` ones some have a null or a number where none may be."""
    own = _values(schema, broken)
    return st.none() | own if schema.optional or broken else own


def _values(schema, broken):
    name = (schema.logical or "").rpartition(".")[2]
    if name == "Decimal":
        scale = int(schema.parameters["scale"])
        scales = st.sampled_from([scale, scale, 1, -3, 30]) if broken else st.just(scale)
        return st.builds(lambda number, each: decimal.Decimal((number < 0, tuple(map(int, str(abs(number)))), -each)), st.integers(-(10**25), 10**25), scales)
    if name == "Date":
        return st.builds(lambda day, rest: Instant(day * DAY_MS + rest), st.integers(-30_000, 30_000), st.sampled_from([0, 0, 0, 5 if broken else 0]))
    if name == "Time":
        return st.integers(-5 if broken else 0, DAY_MS).map(Instant)
    if name == "Timestamp":
        return st.integers(-(10**16), 10**16).map(Instant)
    if schema.type in _SCALARS:
        return _SCALARS[schema.type]
    if schema.type == "array":
        return st.lists(values(schema.value_schema, broken), max_size=3)
    if schema.type == "map":
        keys = _values(schema.key_schema, False)
        return st.dictionaries(keys, values(schema.value_schema, broken), max_size=3)
    fields = st.tuples(*(values(field.schema, broken) for field in schema.fields))
    return fields.map(lambda items: Struct.trusted(schema, list(items)))
