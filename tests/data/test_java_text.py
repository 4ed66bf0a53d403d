"""Values as Java prints them, one by one and by the column."""

import decimal
import struct

import numpy as np
import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st
from pytest import param

from standalone import BigInt, Float32, Instant, Int8, Schema, SchemaBuilder, Struct, java_text, to_float32
from standalone.data import java_digits
from standalone.data.arrow import NotColumns
from standalone.data.batch import SinkBatch
from standalone.data.column import columnar, values_of
from standalone.data.java_text import date_text, double_text, float_text
from tests.converters import generated

POINT = SchemaBuilder.struct().field("x", Schema.FLOAT32).field("y", Schema.OPTIONAL_STRING).build()

# Of JDK 17, by its own Double.toString and Float.toString; not all are the shortest that read back.
DOUBLES = {
    2e-3: "0.002",
    1e-3: "0.001",
    9.999e-4: "9.999E-4",
    1e7: "1.0E7",
    9999999.0: "9999999.0",
    100.0: "100.0",
    -0.0: "-0.0",
    2e23: "1.9999999999999998E23",
    1.0e23: "9.999999999999999E22",
    8.41e21: "8.409999999999999E21",
    2.0e-322: "2.0E-322",
    4.9e-324: "4.9E-324",
    2.2250738585072014e-308: "2.2250738585072014E-308",
    1.7976931348623157e308: "1.7976931348623157E308",
    9007199254740993.0: "9.007199254740992E15",
    0.1 + 0.2: "0.30000000000000004",
    float("nan"): "NaN",
    float("-inf"): "-Infinity",
}
FLOATS = {1.1: "1.1", 1.0e10: "1.0E10", 3.4028235e38: "3.4028235E38", 1.4e-45: "1.4E-45", 16777216.0: "1.6777216E7", 0.001: "0.001"}


@pytest.mark.parametrize("value, text", DOUBLES.items(), ids=DOUBLES.values())
def test_doubles(value, text):
    assert double_text(value) == text


@pytest.mark.parametrize("value, text", FLOATS.items(), ids=FLOATS.values())
def test_floats(value, text):
    assert float_text(to_float32(value)) == text


@pytest.mark.parametrize(
    "value, schema, text",
    [
        param(None, None, "null", id="null"),
        param(True, None, "true", id="a boolean"),
        param(Int8(-3), None, "-3", id="a byte"),
        param(BigInt(10**20), None, "1" + "0" * 20, id="a large number"),
        param(1.1, Schema.FLOAT32, "1.1", id="a plain float under float32"),
        param(1.1, Schema.FLOAT64, "1.1", id="a plain float under float64"),
        param(Float32(to_float32(1.1)), None, "1.1", id="a float32"),
        param([1.1], SchemaBuilder.array(Schema.FLOAT32).build(), "[1.1]", id="floats in a list"),
        param(decimal.Decimal("1E+3"), None, "1E+3", id="a decimal with an exponent"),
        param(decimal.Decimal("0.0000001"), None, "1E-7", id="a small decimal"),
        param({"a": [1, None], None: {}}, None, "{a=[1, null], null={}}", id="a map"),
        param(Struct(POINT, {"x": 0.1}), POINT, "Struct{x=0.1}", id="a struct: nulls are left out"),
        param(Instant(1_700_000_000_123), None, "Tue Nov 14 22:13:20 UTC 2023", id="a date"),
        param(memoryview(b"abc"), None, "java.nio.HeapByteBuffer[pos=0 lim=3 cap=3]", id="a buffer"),
        param(b"caf\xc3\xa9", None, "café", id="bytes: the text in them"),
    ],
)
def test_values(value, schema, text):
    assert java_text(value, schema) == text


@pytest.mark.parametrize(
    "ms, text",
    [
        (0, "Thu Jan 01 00:00:00 UTC 1970"),
        (-1, "Wed Dec 31 23:59:59 UTC 1969"),
        (951_782_400_000, "Tue Feb 29 00:00:00 UTC 2000"),
        (-12_219_292_800_000, "Fri Oct 15 00:00:00 UTC 1582"),
        (-12_219_292_800_001, "Thu Oct 04 23:59:59 UTC 1582"),
        (-62_135_769_600_001, "Fri Dec 31 23:59:59 UTC 1"),
        (253_402_300_800_000, "Sat Jan 01 00:00:00 UTC 10000"),
    ],
)
def test_dates(ms, text):
    assert date_text(ms) == text


@pytest.mark.parametrize(
    "number, nearest",
    [
        ("16777217", 16777216.0),
        ("16777217.0000000000000000000000000001", 16777218.0),
        ("3.4028235677973367e38", float("inf")),
        ("3.4028235677973366e38", 3.4028234663852886e38),
        ("7.006492321624085e-46", 0.0),
        ("1e-400", 0.0),
        ("1e400", float("inf")),
        ("-1e-400", 0.0),
    ],
)
def test_float32_is_rounded_once(number, nearest):
    assert to_float32(decimal.Decimal(number)) == nearest


def columns_text(write, values, bits):
    count = len(values)
    out, starts, lengths = np.empty(count * java_digits.LONGEST, np.uint8), np.empty(count, np.int64), np.empty(count, np.int32)
    valid = np.ones(count, np.bool_)
    if bits is None:
        write(values, valid, out, starts, lengths)
    else:
        write(values, values.view(bits), valid, out, starts, lengths, java_digits.new_scratch())
    return [out[start : start + length].tobytes().decode() for start, length in zip(starts, lengths)]


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(-(1 << 63), (1 << 63) - 1), min_size=1))
def test_columns_of_doubles_say_what_one_double_says(bits):
    values = np.array(bits, np.int64).view(np.float64)
    assert columns_text(java_digits.doubles, values, np.int64) == [double_text(value) for value in values.tolist()]


@settings(deadline=None, max_examples=50)
@given(st.lists(st.floats(allow_nan=False), min_size=1))
def test_columns_of_common_doubles_do_too(values):
    assert columns_text(java_digits.doubles, np.array(values), np.int64) == [double_text(value) for value in values]


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(-(1 << 31), (1 << 31) - 1), min_size=1))
def test_columns_of_floats_say_what_one_float_says(bits):
    values = np.array(bits, np.int32).view(np.float32)
    plain = [struct.unpack("<f", struct.pack("<i", each))[0] for each in bits]
    assert columns_text(java_digits.floats, values, np.int32) == [float_text(value) for value in plain]


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(-(1 << 63), (1 << 63) - 1) | st.sampled_from([0, -(1 << 63), (1 << 63) - 1, 10**18, -(10**18)]), min_size=1))
def test_columns_of_ints(values):
    assert columns_text(java_digits.ints, np.array(values, np.int64), None) == list(map(str, values))


@settings(deadline=None, max_examples=50, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_columns_of_a_schema_say_what_its_values_say(data):
    schema = data.draw(generated.schemas(2).filter(lambda each: each.type != "bytes" or each.logical))  # bytes alone are as they are
    values = data.draw(st.lists(generated.values(schema), min_size=1, max_size=5))
    try:
        column = columnar(values, schema, len(values))
    except NotColumns:
        reject()
    texts = SinkBatch(len(values), "t", column, schema).texts()
    expected = [None if value is None else java_text(value, schema).encode("utf-8", "replace") for value in values_of(column, schema, len(values))]
    assert [None if text is None else bytes(text) for text in texts] == expected


def test_structs_leave_out_their_nulls_whichever_they_are():
    rows = [(None, 1, None), ("a", 2, None), (None, 3, 0.5), ("b", 4, 1.5)]
    optional, required = (
        SchemaBuilder.struct().field("a", Schema.OPTIONAL_STRING).field("n", each).field("x", Schema.OPTIONAL_FLOAT64).build()
        for each in (Schema.OPTIONAL_INT32, Schema.INT32)
    )
    for schema, more in ((required, []), (optional, [(None, None, None), ("c", None, None)])):
        values = [Struct(schema, dict(zip("anx", row))) for row in rows + more]
        texts = SinkBatch(len(values), "t", columnar(values, schema, len(values)), schema).texts()
        assert [bytes(text).decode() for text in texts] == [java_text(value) for value in values]
