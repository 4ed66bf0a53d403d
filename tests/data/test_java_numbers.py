"""Numbers as Java reads and narrows them."""

import math
from decimal import Decimal

import pytest

from standalone import Float32, Int8, Int32
from standalone.data.java_numbers import decimal_of_text, narrowed, parse_floating, parse_whole


@pytest.mark.parametrize(
    "text, kind, number",
    [
        ("127", "int8", 127),
        ("-128", "int8", -128),
        ("+7", "int16", 7),
        ("007", "int32", 7),
        ("-9223372036854775808", "int64", -(1 << 63)),
        ("\u0663", "int8", 3),  # any digit of Unicode
    ],
)
def test_a_whole_number(text, kind, number):
    assert parse_whole(text, kind) == number


@pytest.mark.parametrize("text", ["128", "", " 7", "7 ", "1.0", "1e2", "+", "--1", "0x10", "1_0", "\U0001d7d9", "9" * 5000])
def test_what_is_no_byte(text):
    with pytest.raises(ValueError):
        parse_whole(text, "int8")


@pytest.mark.parametrize(
    "text, number",
    [
        (" 1.5\t", 1.5),
        ("1.", 1.0),
        (".5", 0.5),
        ("1d", 1.0),
        ("1.5F", 1.5),
        ("1e400", math.inf),
        ("-1e400", -math.inf),
        ("0x1.8p1", 3.0),
        ("-0X.8P-2d", -0.125),
        ("0x1p5000", math.inf),
        ("0x1p-5000", 0.0),
        ("-Infinity", -math.inf),
        ("4.9e-324", 5e-324),
    ],
)
def test_a_double(text, number):
    assert parse_floating(text, "float64") == number


@pytest.mark.parametrize("text", ["", "-", "inf", "infinity", "nan", "1L", "0x1", "1e", "\u0663", "1 2", "\u00a01"])
def test_what_is_no_double(text):
    with pytest.raises(ValueError):
        parse_floating(text, "float64")


@pytest.mark.parametrize(
    "text, number",
    [
        ("1.00000017881393432617187499", 1.0000001192092896),  # by way of a double it would be rounded up
        ("16777217", 16777216.0),
        ("3.4028236e38", math.inf),
        ("0x1.000001p0", 1.0),
        ("0x1.00000100000000001p0", 1.0000001192092896),
    ],
)
def test_a_float_is_rounded_once(text, number):
    found = parse_floating(text, "float32")
    assert found == number and isinstance(found, Float32)


def test_zero_keeps_its_sign():
    assert math.copysign(1, parse_floating("-1e-50", "float32")) == -1
    assert math.copysign(1, parse_floating("-0x1p-2000", "float64")) == -1
    assert math.isnan(parse_floating("-NaN", "float32"))


@pytest.mark.parametrize(
    "number, kind, narrow",
    [
        (300, "int8", 44),
        (5_000_000_000, "int32", 705_032_704),
        (300.7, "int8", 44),
        (1e10, "int8", -1),  # an int first: 2147483647
        (1e10, "int64", 10_000_000_000),
        (-1e300, "int64", -(1 << 63)),
        (math.nan, "int32", 0),
        (-0.9, "int32", 0),
        (Decimal("-1.9"), "int32", -1),
        (Decimal("1E+400"), "int64", 0),  # a multiple of 2**64
        (Decimal("99999999999"), "int32", 1_215_752_191),
        (True, "int8", 1),
    ],
)
def test_narrowing(number, kind, narrow):
    assert narrowed(number, kind) == narrow


def test_narrowed_numbers_have_the_class_of_their_width():
    assert type(narrowed(1.5, "int8")) is Int8 and type(narrowed(1 << 40, "int32")) is Int32


@pytest.mark.parametrize(
    "text, number",
    [("1e2147483647", Decimal("1e2147483647")), ("-0", Decimal(0)), ("1e2147483648", None), ("1e-2147483648", None), ("1.5d", None), (" 1", None)],
)
def test_a_big_decimal(text, number):
    found = decimal_of_text(text)
    assert found == number and (found is None or not found.is_signed())
