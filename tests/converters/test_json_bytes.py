"""Bytes and Decimals of JSON by columns: what encoders write is read by a kernel, anything else as carefully as by rows, to the same values."""

import base64
import json
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from standalone import ByteColumn, DataError, Schema, decimal_schema
from standalone.converters import json_split
from standalone.converters.json import JsonConverter
from standalone.data.column import values_of

PRICE = decimal_schema(2, optional=True)
SCHEMAS = {
    "bytes": (Schema.OPTIONAL_BYTES, '{"type":"bytes","optional":true}'),
    "Decimal": (
        PRICE,
        '{"type":"bytes","optional":true,"name":"org.apache.kafka.connect.data.Decimal","version":1,"parameters":{"scale":"2"}}',
    ),
}


def decoded(kind, texts):
    """What strings of base64 become (None: a null), by columns and each by itself; DataError where it is one."""
    schema, said = SCHEMAS[kind]
    messages = [f'{{"schema":{said},"payload":{"null" if text is None else json.dumps(text)}}}'.encode() for text in texts]
    converter = JsonConverter.of()
    found, column, bad = converter.decode("t", ByteColumn.of(messages))
    assert found == schema
    left = set() if bad is None else set(bad.tolist())
    values = values_of(column, schema, len(texts))
    by_columns = [DataError if row in left else value for row, value in enumerate(values)]
    by_rows = []
    for message in messages:
        try:
            by_rows.append(converter.to_connect("t", message)[1])
        except DataError:
            by_rows.append(DataError)
    assert by_columns == by_rows
    return by_columns


def encoded(data):
    return base64.b64encode(data).decode()


@settings(deadline=None)
@given(st.lists(st.none() | st.binary(max_size=9), min_size=1, max_size=20))
def test_bytes_are_as_they_were(items):
    assert decoded("bytes", [None if item is None else encoded(item) for item in items]) == items


@settings(deadline=None)
@given(st.lists(st.none() | st.integers(-(1 << 80), 1 << 80) | st.integers(-300, 300), min_size=1, max_size=20), st.integers(0, 2))
def test_decimals_are_as_they_were(numbers, more):
    """Also where their bytes begin with some that say no more than the sign."""
    texts = [None if each is None else encoded(each.to_bytes(each.bit_length() // 8 + 1 + more, "big", signed=True)) for each in numbers]
    assert decoded("Decimal", texts) == [None if each is None else Decimal(each).scaleb(-2) for each in numbers]


@pytest.mark.parametrize("kind", SCHEMAS)
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("AQ==\n", id="a blank behind it"),
        pytest.param("AQ== AQI=", id="two pieces"),
        pytest.param("AQ", id="no padding"),
        pytest.param("A===", id="too little"),
        pytest.param("AQ=A", id="padding in the middle"),
        pytest.param("AQ==AQ==", id="padding within"),
        pytest.param("A-_A", id="letters of URLs"),
        pytest.param("éAAA", id="no letter of base64"),
        pytest.param("AR==", id="bits that are not used"),
        pytest.param("", id="nothing"),
    ],
)
def test_what_encoders_do_not_write_is_read_as_by_rows(kind, text):
    decoded(kind, ["AQID", text, None, "/w=="])


def test_what_encoders_write_is_not_read_one_by_one(monkeypatch):
    monkeypatch.setattr(json_split, "from_base64", lambda text: pytest.fail("read by itself"))
    schema, said = SCHEMAS["Decimal"]
    messages = [f'{{"schema":{said},"payload":"{encoded(bytes([number]))}"}}'.encode() for number in range(100)]
    _, column, bad = JsonConverter.of().decode("t", ByteColumn.of(messages))
    assert bad is None and values_of(column, schema, 100)[7] == Decimal("0.07")
