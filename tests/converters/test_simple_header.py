"""SimpleHeaderConverter: readable text, and what text looks like. Its strings are tested with data/value_text.py."""

import logging

import pytest

from standalone import Float32, Instant, Int8, Int16, Schema, SchemaBuilder, Struct, date_schema, time_schema, timestamp_schema
from standalone.converters.simple_header import SimpleHeaderConverter

PAIR = SchemaBuilder.struct().field("a", Schema.INT8).field("b", Schema.OPTIONAL_STRING).build()


@pytest.fixture
def converter():
    return SimpleHeaderConverter.of()


@pytest.mark.parametrize(
    "schema, value, data",
    [
        (Schema.STRING, "text", b"text"),
        (Schema.STRING, 'say "x"', b'say "x"'),
        (Schema.INT64, 7, b"7"),
        (Schema.FLOAT64, 1e10, b"1.0E10"),
        (Schema.BOOLEAN, True, b"true"),
        (Schema.BYTES, b"\x01\x02", b"AQI="),
        (date_schema(), Instant(1_577_836_800_000), b"2020-01-01"),
        (time_schema(), Instant(45_296_789), b"12:34:56.789Z"),
        (timestamp_schema(), Instant(1_700_000_000_123), b"2023-11-14T22:13:20.123Z"),
        (SchemaBuilder.array(Schema.STRING).build(), ["a", 'b"c'], b'["a","b\\"c"]'),
        (PAIR, Struct(PAIR, {"a": 1}), b'{"a":1,"b":null}'),
        (None, {"k": [1, None]}, b'{"k":[1,null]}'),
    ],
)
def test_what_is_written(converter, schema, value, data):
    assert converter.from_header("t", "h", schema, value) == data


@pytest.mark.parametrize(
    "data, schema, value",
    [
        (b"text", Schema.STRING, "text"),
        (b"7", Schema.INT8, Int8(7)),
        (b"300", Schema.INT16, Int16(300)),
        (b"-1e-50", Schema.FLOAT32, Float32(-0.0)),
        (b"true", Schema.BOOLEAN, True),
        (b"2020-01-01", date_schema(), Instant(1_577_836_800_000)),
        (b"12:34:56.789Z", time_schema(), Instant(45_296_789)),
        (b"2023-11-14T22:13:20.123Z", timestamp_schema(), Instant(1_700_000_000_123)),
        (b"[1,2]", SchemaBuilder.array(Schema.INT8).build(), [1, 2]),
        (b'{"a":1}', SchemaBuilder.map(Schema.STRING, Schema.INT8).build(), {"a": 1}),
        ("\u0663".encode(), Schema.INT8, Int8(3)),
    ],
)
def test_what_is_read(converter, data, schema, value):
    found = converter.to_header("t", "h", data)
    assert found == (schema, value) and repr(found[1]) == repr(value)


def test_nothing_stays_nothing(converter):
    assert converter.from_header("t", "h", Schema.OPTIONAL_STRING, None) is None
    assert converter.to_header("t", "h", None) == (None, None)
    assert converter.to_header("t", "h", b"null") is None


def test_many_digits_do_not_take_long(converter):
    schema, value = converter.to_header("t", "h", b"9" * 10_000 + b"x")
    assert schema == Schema.STRING and len(value) == 10_001


def test_what_cannot_be_read_is_kept_as_bytes(converter, caplog):
    deep = b"[" * 5000 + b"]" * 5000
    with caplog.at_level(logging.WARNING):
        assert converter.to_header("t", "secret", deep) == (Schema.BYTES, deep)
    assert "secret" in caplog.text
