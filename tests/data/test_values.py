"""Values as readable text and back. What Java does is in the golden cases; here is what they leave out."""

import decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from standalone import DataError, Float32, Instant, Int8, Int16, Schema, date_schema
from standalone.data import values

PLAIN = st.none() | st.booleans() | st.text(max_size=8)


@pytest.mark.parametrize(
    "text, schema, value",
    [
        ("", Schema.STRING, ""),
        ("7", Schema.INT8, Int8(7)),
        ("300", Schema.INT16, Int16(300)),
        ("0.1", Schema.FLOAT32, Float32(0.10000000149011612)),
        ("2020-02-30", date_schema(), Instant(1_583_020_800_000)),
        ("a, b", Schema.STRING, "a, b"),
        (" [1x]", Schema.STRING, " "),  # as Java: the blank before what fails to be a list
        ("1e99999999999", Schema.STRING, "1e99999999999"),
    ],
)
def test_a_text_is_what_it_looks_like(text, schema, value):
    found = values.parse(text)
    assert found == (schema, value) and type(found[1]) is type(value)


def test_lists_take_the_widest_type_inside():
    schema, found = values.parse('[1, 300, 2.5]')
    assert schema.value_schema == Schema.FLOAT32 and found == [1.0, 300.0, 2.5]
    schema, found = values.parse('[1, "a"]')
    assert schema.value_schema is None and found == [1, "a"]


@settings(deadline=None)
@given(st.text(st.sampled_from('[]{}:,"\\ 1-2.5entrulfas')) | st.text(max_size=20))
def test_no_text_brings_anything_but_a_value(text):
    found = values.parse(text)
    assert found is None or isinstance(found[0], Schema)


@pytest.mark.parametrize("schema", [Schema.INT32, Schema.BOOLEAN, Schema.FLOAT64])
def test_what_has_no_number_is_refused(schema):
    for value in ([], {}, b"x", Instant(0)):
        with pytest.raises(DataError):
            values.convert(schema, None, value)


def test_null_needs_an_optional_schema():
    assert values.convert(Schema.OPTIONAL_INT8, None, None) is None
    with pytest.raises(DataError, match="required"):
        values.convert(Schema.INT8, None, None)


def test_what_has_no_text_is_refused():
    with pytest.raises(DataError, match="cannot be written as text"):
        values.to_text(object())


@pytest.mark.parametrize(
    "value, text",
    [
        (None, None),
        ('a"\\b', 'a"\\b'),
        (['a"\\b', None], '["a\\"\\\\b",null]'),
        (b"\x01\x02", "AQI="),
        (Instant(5), "00:00:00.005Z"),
        (Instant(-1), "23:59:59.999Z"),
        (Instant(86_400_000), "1970-01-02"),
        (Instant(86_400_001), "1970-01-02T00:00:00.001Z"),
        (decimal.Decimal("1.50"), "1.50"),
    ],
)
def test_to_text(value, text):
    assert values.to_text(value) == text
