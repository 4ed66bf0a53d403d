"""Casts of a column without Spark do what Cast does to each value: between all number types, of the limits and of what is no number."""

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from standalone import Schema, SchemaBuilder, SourceRecord, Struct, to_float32
from standalone.data import schema as s
from standalone.data.arrow import arrow_type, from_arrow
from standalone.pipeline.local_cast import can_cast, cast
from standalone.transforms.cast import Cast

WHOLE = {s.INT8: 8, s.INT16: 16, s.INT32: 32, s.INT64: 64}
FLOATING = (s.FLOAT32, s.FLOAT64)
SOURCES = (*WHOLE, *FLOATING, s.BOOLEAN)
NOT_HERE = [(source, target) for source in FLOATING for target in (s.STRING, s.BOOLEAN)]  # that is, not in one step
PAIRS = [(source, target) for source in SOURCES for target in (*SOURCES, s.STRING) if (source, target) not in NOT_HERE]
pairs = pytest.mark.parametrize("source, target", PAIRS, ids=[f"{source} to {target}" for source, target in PAIRS])

EDGES = [sign * (2.0**bits + step) for bits in (7, 8, 15, 16, 31, 32, 63, 64) for sign in (1, -1) for step in (-1, -0.5, 0, 0.5, 1)]
FLOATS = [0.0, -0.0, 0.5, -0.5, 1e-45, 1e300, -1e300, 3.5e38, math.nan, math.inf, -math.inf, *EDGES, *(math.nextafter(edge, 0) for edge in EDGES)]


def values_of(kind):
    if kind == s.BOOLEAN:
        return st.booleans()
    if kind == s.FLOAT32:
        return st.sampled_from(FLOATS).map(to_float32) | st.floats(width=32).map(to_float32)
    if kind == s.FLOAT64:
        return st.sampled_from(FLOATS) | st.floats()
    half = 1 << WHOLE[kind] - 1
    return st.sampled_from([0, 1, -1, half - 1, -half]) | st.integers(-half, half - 1)


def by_rows(values, source, target):
    holder = SchemaBuilder.struct().field("f", Schema(source, optional=True)).build()
    transform = Cast.Value.of({"spec": f"f:{target}"})
    return [transform.apply(SourceRecord("t", value_schema=holder, value=Struct(holder, {"f": value}))).value["f"] for value in values]


def by_columns(array, target):
    kind = Schema(target, optional=True)
    found = cast(array, arrow_type(kind))
    assert found.type == arrow_type(kind)
    return from_arrow(found, kind)


@pairs
@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_a_column_is_cast_as_its_values_are(source, target, data):
    assert can_cast(arrow_type(Schema(source)), arrow_type(Schema(target)))
    values = data.draw(st.lists(st.none() | values_of(source), min_size=1, max_size=6))
    low = data.draw(st.integers(0, len(values) - 1))
    array = pa.array([*values, *values], arrow_type(Schema(source))).slice(low, len(values))
    expected = by_rows([*values, *values][low : low + len(values)], source, target)
    assert list(map(repr, map(plain, by_columns(array, target)))) == list(map(repr, map(plain, expected)))


def plain(value):
    """Of whichever class of its width."""
    return value if value is None or isinstance(value, (bool, str)) else float(value) if isinstance(value, float) else int(value)


@pytest.mark.parametrize("target", [*WHOLE, *FLOATING])
@pytest.mark.parametrize("source", FLOATING)
def test_every_edge_of_the_whole_numbers(source, target):
    values = [to_float32(each) for each in FLOATS] if source == s.FLOAT32 else FLOATS
    found = by_columns(pa.array(values, arrow_type(Schema(source))), target)
    assert list(map(repr, map(plain, found))) == list(map(repr, map(plain, by_rows(values, source, target))))


def test_what_is_null_may_hold_anything_beneath():
    beneath = np.array([math.nan, 1e300, 2.5])
    array = pa.Array.from_buffers(pa.float64(), 3, [pa.py_buffer(b"\x04"), pa.py_buffer(beneath)])
    assert cast(array, pa.int32()).to_pylist() == [None, None, 2]
    assert cast(cast(array, pa.int64()), pa.bool_()).to_pylist() == [None, None, True]


@settings(max_examples=20)
@given(st.integers(-(1 << 63), (1 << 63) - 1))
@example((1 << 63) - 1)
@example((1 << 24) + 1)
@example((1 << 53) + 1)
@example(9007199791611905)  # rounded to a double first, it would be another float
def test_a_long_is_rounded_to_a_float_once(number):
    assert by_columns(pa.array([number]), s.FLOAT32) == [np.float32(np.int64(number))] == by_rows([number], s.INT64, s.FLOAT32)


@pytest.mark.parametrize(
    "source, target",
    [(arrow_type(Schema(source)), arrow_type(Schema(target))) for source, target in NOT_HERE]
    + [(pa.string(), pa.int32()), (pa.binary(), pa.string()), (pa.int32(), pa.binary()), (pa.date32(), pa.int32())],
    ids=str,
)
def test_what_is_not_cast_here(source, target):
    assert not can_cast(source, target)
