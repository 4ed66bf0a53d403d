"""What orjson reads for JsonConverter is what Jackson reads; all else is left to the reader that knows Jackson's habits."""

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pytest import param

from standalone import DataError, Schema, SchemaBuilder, Struct
from standalone.converters import json_quick, json_text
from standalone.converters.json import JsonConverter
from standalone.converters.json_values import read_schemaless

PLAIN, ENVELOPE = {"schemas.enable": "false"}, {"schemas.enable": "true"}
ALL = SchemaBuilder.struct().field("i", Schema.INT32).field("d", Schema.OPTIONAL_FLOAT64).field("f", Schema.OPTIONAL_FLOAT32)
ALL = ALL.field("s", Schema.OPTIONAL_STRING).field("b", Schema.OPTIONAL_BOOLEAN).build()


@pytest.mark.parametrize(
    "text",
    [
        param(b'{"n":9223372036854775808}', id="beyond 64 bits"),
        param(b'{"n":[1,{"m":-9223372036854775809}]}', id="beyond 64 bits, below zero, inside"),
        param(b'{"n":123456789012345678901234567890}', id="thirty digits"),
        param(b'{"n":-0.0}', id="a zero below zero"),
        param(b'[1, -0e5]', id="a zero below zero with an exponent"),
        param(b'{"n":1e-99999999999}', id="an exponent that nothing holds"),
        param(b'{"n":1E400}', id="beyond a double"),
        param(b'{"n":007}', id="leading zeros"),
        param(b'{"n":1} x', id="something after it"),
        param(b"[" * 1001 + b"]" * 1001, id="nested too deep"),
        param(b'{"n":0.' + b"1" * 1200 + b"}", id="a number of 1,200 digits"),
        param(b'{"' + b"n" * 50_001 + b'":1}', id="a name of 50,001 characters"),
        param(b'{"n":"\\ud800"}', id="half a letter"),
        param(b'{"n":"\xff"}', id="no UTF-8"),
        param(b"\xef\xbb\xbf{}", id="a byte order mark"),
        param('{"n":1}'.encode("utf-16"), id="UTF-16"),
        param(b"", id="nothing"),
        param(b"7", id="a bare number"),
    ],
)
def test_what_is_doubtful_is_read_with_care(text):
    with pytest.raises(ValueError):
        json_quick.read(text)


@pytest.mark.parametrize(
    "text, value",
    [
        param(b'{"t":1700000000000000000,"u":"2026-01-01T00:00:00.000000000"}', {"t": 1700000000000000000, "u": "2026-01-01T00:00:00.000000000"}, id="nanoseconds"),
        param(b'{"n":-0.5,"m":-7,"d":"-0"}', {"n": -0.5, "m": -7, "d": "-0"}, id="below zero"),
        param(b'{"a":1,"b":2,"a":3}', {"a": 3, "b": 2}, id="a name twice: the last one counts, where the first one stands"),
        param(b'{"n":"' + b"x" * 2000 + b'"}', {"n": "x" * 2000}, id="a long one"),
    ],
)
def test_what_is_plain_is_read_quickly(text, value):
    found = json_quick.read(text)
    assert found == value and list(found) == list(value)


numbers = st.one_of(
    st.integers(-(1 << 70), 1 << 70).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.from_regex(r"-?(0|[1-9][0-9]{0,24})(\.[0-9]{1,24})?([eE][+-]?[0-9]{1,6})?", fullmatch=True),
)
texts = st.text(max_size=8).map(json.dumps)
documents = st.recursive(
    st.one_of(numbers, texts, st.sampled_from(["null", "true", "false"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(lambda items: "[" + ", ".join(items) + "]"),
        st.lists(st.tuples(texts, inner), max_size=4).map(lambda items: "{" + ",".join(f"{name}:{item}" for name, item in items) + "}"),
    ),
    max_leaves=8,
)


@settings(max_examples=500, deadline=None)
@given(documents)
@example('{"a":-0}')
@example("[0.0,-0.000,0e0]")
def test_it_reads_what_the_careful_reader_reads_or_leaves_it(document):
    data = document.encode()
    try:
        quick = json_quick.read(data)
    except ValueError:
        return
    assert repr(quick) == repr(read_schemaless(json_text.parse(data)))


@settings(max_examples=500, deadline=None)
@given(number=numbers, name=st.sampled_from("idfsb"))
@example(number="1.00000005960464477539062500001", name="f")  # just above half-way between two floats: as a double it is half-way
@example(number="3.9999999999999999999", name="i")
def test_with_a_schema_the_number_counts_as_it_is_written(number, name):
    """Through the quick reader (an envelope that came before) and without it: the same value, or the same error."""
    converter = JsonConverter.of(ENVELOPE)
    first = converter.from_connect("t", ALL, Struct(ALL, {"i": 1}))
    opening = first[: first.index(b',"payload":') + len(b',"payload":')]
    payload = json.dumps({"i": 1}) if name == "i" else '{"i":1}'
    payload = payload.replace('"i": 1', f'"i":{number}') if name == "i" else f'{{"i":1,"{name}":{number}}}'
    message = opening + payload.encode() + b"}"
    converter.to_connect("t", first)
    assert _read(converter, message) == _read(JsonConverter.of(ENVELOPE), message)


def _read(converter, message):
    try:
        return repr(converter.to_connect("t", message))
    except DataError as error:
        return str(error)
