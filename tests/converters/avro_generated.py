"""Avro schemas and data made by hypothesis: each has a union, an enum, a fixed, a logical type sooner or later."""

from decimal import Decimal

from hypothesis import strategies as st

from tests.converters.generated import TEXTS

_INT, _LONG = st.integers(-(1 << 31), (1 << 31) - 1), st.integers(-(1 << 63), (1 << 63) - 1)
_DAY_MS = 86_400_000
# Schema -> data of it; those with the same type cannot be in one union
_LEAVES = (
    ("boolean", st.booleans()),
    ("int", _INT),
    ("long", _LONG),
    ("float", st.floats(width=32)),
    ("double", st.floats()),
    ("bytes", st.binary(max_size=9)),
    ("string", TEXTS),
    ({"type": "int", "logicalType": "date"}, st.integers(-30_000, 30_000)),
    ({"type": "int", "logicalType": "time-millis"}, st.integers(0, _DAY_MS - 1)),
    ({"type": "long", "logicalType": "time-micros"}, st.integers(0, _DAY_MS * 1000 - 1)),
    ({"type": "long", "logicalType": "timestamp-millis"}, st.integers(-(10**12), 10**12)),
    ({"type": "long", "logicalType": "timestamp-micros"}, st.integers(-(10**15), 10**15)),
    ({"type": "int", "connect.type": "int8"}, st.integers(-128, 127)),
    ({"type": "int", "connect.type": "int16"}, st.integers(-(1 << 15), (1 << 15) - 1)),
)


def _is_shortest(number):
    """Whether fastavro writes it as short as Java's BigInteger, which takes a byte less for -128."""
    return number >= 0 or number & (number - 1 if number > 0 else -number - 1) != 0 or (-number).bit_length() % 8 != 0


@st.composite
def typed_data(draw, depth=3, names=None):
    """(schema, strategy of data) of one type that is not a union."""
    names = [] if names is None else names
    kinds = ["leaf"] * 4 + ["decimal", "enum", "fixed"] + (["array", "map", "record", "record"] if depth else [])
    kind = draw(st.sampled_from(kinds))
    if kind == "leaf":
        return draw(st.sampled_from(_LEAVES))
    if kind == "decimal":
        scale = draw(st.integers(0, 4))
        numbers = st.integers(-(10**20), 10**20).filter(_is_shortest)
        return {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": scale}, numbers.map(lambda each: Decimal(each).scaleb(-scale))
    if kind == "array":
        schema, data = draw(members(depth - 1, names))
        return {"type": "array", "items": schema}, st.lists(data, max_size=3)
    if kind == "map":
        schema, data = draw(members(depth - 1, names))
        return {"type": "map", "values": schema}, st.dictionaries(TEXTS, data, max_size=3)
    names.append(None)
    named = {"name": f"N{len(names)}", "namespace": draw(st.sampled_from(["a", "a.b", "c"]))}
    if kind == "enum":
        return {"type": "enum", **named, "symbols": ["RED", "GREEN"]}, st.sampled_from(["RED", "GREEN"])
    if kind == "fixed":
        size = draw(st.integers(1, 5))
        return {"type": "fixed", **named, "size": size}, st.binary(min_size=size, max_size=size)
    return draw(records(depth - 1, names, named))


@st.composite
def records(draw, depth=3, names=None, named=None):
    names = [None] if names is None else names
    fields = [draw(members(depth, names)) for _ in range(draw(st.integers(1, 4)))]
    schema = {"type": "record", **(named or {"name": "Top", "namespace": "a"})}
    schema["fields"] = [{"name": f"f{at}", "type": each} for at, (each, _) in enumerate(fields)]
    return schema, st.fixed_dictionaries({f"f{at}": data for at, (_, data) in enumerate(fields)})


@st.composite
def members(draw, depth, names):
    """(schema, strategy): a type, or a union."""
    kind = draw(st.sampled_from(["one", "one", "optional", "optional", "union"]))
    count = draw(st.integers(2, 4)) if kind == "union" else 1
    found = {}
    for _ in range(count):
        schema, data = draw(typed_data(depth, names))
        found.setdefault(_kind(schema), (schema, data))
    branches = list(found.values())
    if kind == "one":
        return branches[0]
    choices = [data.map(lambda each, schema=schema: (_kind(schema), each)) for schema, data in branches]
    schemas = [schema for schema, _ in branches]
    if kind == "optional" or draw(st.booleans()):
        at = draw(st.integers(0, len(schemas)))
        return [*schemas[:at], "null", *schemas[at:]], st.one_of(st.none(), *choices)
    return (schemas, st.one_of(*choices))


def _kind(schema):
    """The name of a type within a union, as fastavro takes it."""
    if isinstance(schema, str):
        return schema
    return f"{schema['namespace']}.{schema['name']}" if "name" in schema else schema["type"]
