"""The converters of single numbers: by rows and by columns, from bytes of any length and into the same again."""

import struct

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from standalone import ByteColumn, DataError, Float32, Instant, Int16, Int32, Schema, date_schema, to_float32
from standalone.converters.numbers import (
    BooleanConverter,
    DoubleConverter,
    FloatConverter,
    IntegerConverter,
    LongConverter,
    ShortConverter,
)
from standalone.data.arrow import arrow_type
from standalone.data.column import values_of
from standalone.data.struct_column import Shaped
from standalone.testing import check_converter

param = pytest.param

EVERY = [ShortConverter, IntegerConverter, LongConverter, FloatConverter, DoubleConverter, BooleanConverter]
every = pytest.mark.parametrize("kind", EVERY, ids=lambda kind: kind.__name__)
TYPES = {
    ShortConverter: (Schema.INT16, st.integers(-(1 << 15), (1 << 15) - 1)),
    IntegerConverter: (Schema.INT32, st.integers(-(1 << 31), (1 << 31) - 1)),
    LongConverter: (Schema.INT64, st.integers(-(1 << 63), (1 << 63) - 1)),
    FloatConverter: (Schema.FLOAT32, st.floats(width=32).map(to_float32)),
    DoubleConverter: (Schema.FLOAT64, st.floats()),
    BooleanConverter: (Schema.BOOLEAN, st.booleans()),
}


@pytest.mark.parametrize(
    "kind, value, data",
    [
        param(ShortConverter, -2, b"\xff\xfe", id="the big end is first"),
        param(ShortConverter, Int16(300), b"\x01\x2c", id="its own short class"),
        param(IntegerConverter, 1, b"\x00\x00\x00\x01", id="int"),
        param(LongConverter, -(1 << 63), b"\x80" + b"\x00" * 7, id="the smallest long"),
        param(FloatConverter, Float32(1.5), b"\x3f\xc0\x00\x00", id="float"),
        param(FloatConverter, Float32("-inf"), b"\xff\x80\x00\x00", id="an infinite float"),
        param(DoubleConverter, -0.0, b"\x80" + b"\x00" * 7, id="zero keeps its sign"),
        param(BooleanConverter, True, b"\x01", id="true"),
        param(BooleanConverter, False, b"\x00", id="false"),
        param(IntegerConverter, None, None, id="null"),
    ],
)
def test_a_number_is_its_bytes(kind, value, data):
    schema = TYPES[kind][0].with_(optional=value is None)
    check_converter(kind.of(), schema, value, data, read=(kind.schema, value))


@pytest.mark.parametrize(
    "kind, schema, value",
    [
        param(ShortConverter, Schema.INT32, 1, id="an int is not a short"),
        param(ShortConverter, Schema.OPTIONAL_INT32, None, id="nor is one that is null"),
        param(DoubleConverter, Schema.FLOAT32, Float32(1.5), id="a float is not a double"),
        param(BooleanConverter, Schema.INT16, 1, id="a number is not a boolean"),
        param(LongConverter, Schema.STRING, "1", id="a text is not a long"),
        param(IntegerConverter, date_schema(), Instant(0), id="a date is not an int"),
    ],
)
def test_what_is_no_such_number_is_an_error(kind, schema, value):
    check_converter(kind.of(), schema, value, DataError)


@pytest.mark.parametrize("kind, data", [(ShortConverter, b"\0"), (DoubleConverter, b"\0" * 9), (BooleanConverter, b""), (BooleanConverter, b"\2")])
def test_an_error_says_how_many_bytes_were_found(kind, data):
    with pytest.raises(DataError, match=str(len(data))):
        kind.of().to_connect("t", data)


def test_a_plain_number_without_a_schema_is_a_long():
    assert LongConverter.of().from_connect("t", None, 5)
    with pytest.raises(DataError):
        IntegerConverter.of().from_connect("t", None, 5)
    assert IntegerConverter.of().from_connect("t", None, Int32(5)) == b"\0\0\0\5"


def nulled(values):
    return st.lists(st.none() | values, min_size=1, max_size=8)


@every
@settings(deadline=None)
@given(data=st.data())
def test_columns_write_what_rows_write(kind, data):
    schema, values = TYPES[kind]
    values, cut = data.draw(nulled(values)), data.draw(st.integers(0, 3))
    array = pa.array([None] * cut + values, arrow_type(schema))[cut:]
    for column in (array, pa.chunked_array([array[:1], array[1:]])):
        written, bad = kind.of().encode("t", schema, column, len(values))
        assert bad is None
        assert list(written) == [kind.of().from_connect("t", schema, value) for value in values]


@every
@settings(deadline=None)
@given(data=st.data())
def test_columns_read_what_rows_read(kind, data):
    size = struct.calcsize(kind.packing)
    exact = st.sampled_from([b"\x00", b"\x01"]) if kind is BooleanConverter else st.binary(min_size=size, max_size=size)
    items = data.draw(nulled(exact | st.binary(max_size=size + 1)))
    shift = data.draw(st.integers(0, 3))
    packed = ByteColumn.of(items)
    column = ByteColumn(np.concatenate([np.full(shift, 7, np.uint8), packed.data]), packed.starts + shift, packed.lengths)
    schema, read, bad = kind.of().decode("t", column)
    assert schema == kind.schema
    values = values_of(read, schema, len(items))
    for row, item in enumerate(items):
        try:
            expected = kind.of().to_connect("t", item)[1]
        except DataError:
            assert row in bad
        else:
            assert bad is None or row not in bad
            assert repr(values[row]) == repr(expected)


@pytest.mark.parametrize(
    "kind, data",
    [
        param(FloatConverter, b"\x7f\xc0\x00\x05", id="a quiet float"),
        param(FloatConverter, b"\xff\x81\x00\x05", id="a signalling float"),
        param(FloatConverter, b"\x7f\x80\x00\x01", id="the least one"),
        param(DoubleConverter, b"\xff\xf8\x00\x00\x00\x00\x00\x05", id="a quiet double"),
        param(DoubleConverter, b"\x7f\xf0\x00\x00\x00\x00\x00\x05", id="a signalling double"),
    ],
)
def test_what_is_no_number_keeps_the_bits_that_it_keeps_by_rows(kind, data):
    converter = kind.of()
    schema, read, _ = converter.decode("t", ByteColumn.of([data]))
    assert list(converter.encode("t", schema, read, 1)[0]) == [converter.from_connect("t", *converter.to_connect("t", data))]


def test_numbers_of_a_known_shape_are_written_without_a_schema():
    shaped = Shaped(Schema.INT32, pa.array([1, 2], pa.int32()))
    assert list(IntegerConverter.of().encode("t", None, shaped, 2)[0]) == [b"\0\0\0\1", b"\0\0\0\2"]
    assert [IntegerConverter.of().from_connect("t", None, Int32(value)) for value in (1, 2)] == [b"\0\0\0\1", b"\0\0\0\2"]
    assert LongConverter.of().encode("t", None, shaped, 2) is None
