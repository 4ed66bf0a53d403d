"""JsonConverter: what the golden cases leave out, and columns against rows over generated values."""

import importlib.util
import pathlib
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pytest import param

from standalone import ByteColumn, ConfigError, DataError, Schema, SchemaBuilder, Struct, date_schema
from standalone.converters.json import JsonConverter
from standalone.data.column import to_arrow, values_of
from standalone.testing import check_converter

_spec = importlib.util.spec_from_file_location("generated", pathlib.Path(__file__).parent / "generated.py")
generated = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(generated)

PLAIN = {"schemas.enable": "false"}
POINT = SchemaBuilder.struct().field("line", Schema.STRING).field("n", Schema.OPTIONAL_INT32).build()
POINT_TEXT = b'{"schema":{"type":"struct","fields":[{"type":"string","optional":false,"field":"line"},{"type":"int32","optional":true,"field":"n"}],"optional":false},"payload":'
OPTIONS = st.sampled_from([{}, PLAIN, {"decimal.format": "numeric"}, {"replace.null.with.default": "false"}])
quick = settings(deadline=None, max_examples=120, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


# What Java's class made of bytes that are not UTF-8, or that UTF-8 forbids: a value, or ERROR. Jackson takes overlong forms.
ERROR = object()
NO_UTF8 = [
    *((bytes([byte]), ERROR) for byte in (0x80, 0xBF, 0xC3, 0xFF)),
    (b"\xef\xbb\xbf", ERROR),  # a mark alone
    (b"\xef\xbb", ERROR),
    (b"\xfe\xff", ERROR),
    (b"\xff\xfe", ERROR),
    (b"\xef\xbb\xbf1", 1),
    *((b"null" + behind, ERROR) for behind in (b"\x80", b"\xc0\x80", b"\xc1\xbf", b"\xef\xbf\xbf", b"\xef\xbb\xbf", b"\xc2\xa0", b"\x7f", b"\xe2\x82\xac 1")),
    (b"true\xc2\xa0", ERROR),
    (b'"a\xffb"', ERROR),
    (b'"a\xc3"', ERROR),
    (b'"a\xe2\x82"', ERROR),
    (b'"a\xf0\x9f\x98"', ERROR),
    (b'{"a\xe9":1}', ERROR),
    (b'["a",\xff]', ERROR),
    (b'"a\xed\xa0\x80b"', ERROR),  # surrogates
    (b'"\xed\xa0\xbd\xed\xb8\x80"', ERROR),
    (b'{"a\xed\xa0\x80":1}', ERROR),
    (b'"a\xc0\x80b"', "a\0b"),  # overlong
    (b'"\xc0\xa2"', '"'),
    (b'"\\\xc0\xa2"', ERROR),
    (b'{"a\xe0\x80\x80":1}', {"a\0": 1}),
    (b'"\xe0\x82\xa9"', "\xa9"),
    (b'"\xf0\x80\x80\x80"', "\uffc0\udc00"),
    (b'"\xf4\x90\x80\x80"', "\udc00\udc00"),  # beyond U+10FFFF
    (b'{"b":"\xf7\xbf\xbf\xbf"}', {"b": "\udfbf\udfff"}),
]


@pytest.mark.parametrize("data, read", NO_UTF8, ids=[repr(data) for data, _ in NO_UTF8])
def test_bytes_that_are_no_utf8(data, read):
    if read is ERROR:
        with pytest.raises(DataError):
            JsonConverter.of(PLAIN).to_connect("t", data)
    else:
        assert JsonConverter.of(PLAIN).to_connect("t", data) == (None, read)


@pytest.mark.parametrize("props, around", [(PLAIN, b'{"a":%b}'), ({}, b'{"schema":{"type":"string","optional":true},"payload":%b}')], ids=["plain", "with schemas"])
@pytest.mark.parametrize("data", [data for data, _ in NO_UTF8], ids=repr)
def test_columns_make_of_them_what_rows_make(props, around, data):
    for messages in ([around % b'"x"'] * 40 + [around % data], [around % b'"x"'] * 40 + [data], [data] * 40):
        found = JsonConverter.of(props).decode("t", ByteColumn.of(messages))
        if found is None:
            continue  # left to rows
        schema, column, bad = found
        row = len(messages) - 1
        if bad is None or row not in bad.tolist():
            assert repr(JsonConverter.of(props).to_connect("t", messages[row])) == repr((schema, values_of(column, schema, len(messages))[row]))


@pytest.mark.parametrize(
    "props, schema, value, data, read",
    [
        param({}, Schema.STRING, "foo", b'{"schema":{"type":"string","optional":false},"payload":"foo"}', None, id="the quickstart's line"),
        param({}, POINT, Struct(POINT, {"line": 'a"b', "n": 1}), POINT_TEXT + b'{"line":"a\\"b","n":1}}', None, id="a struct"),
        param({}, POINT, Struct(POINT, {"line": "é😀"}), POINT_TEXT + '{"line":"é\\uD83D\\uDE00","n":null}}'.encode(), None, id="a null and letters"),
    ],
)
def test_both_ways(props, schema, value, data, read):
    check_converter(JsonConverter.of(props), schema, value, data, read)


@pytest.mark.parametrize(
    "schema, value, data, read",
    [
        param(Schema.STRING, "foo", b'"foo"', "foo", id="a string"),
        param(POINT, Struct(POINT, {"line": "x", "n": 5}), b'{"line":"x","n":5}', {"line": "x", "n": 5}, id="a struct becomes a map"),
        param(Schema.FLOAT64, 2e23, b"1.9999999999999998E23", 2e23, id="a double as JDK 17 prints it"),
        param(Schema.FLOAT64, float("nan"), b'"NaN"', "NaN", id="not a number is a text"),
        param(date_schema(), generated.Instant(86_400_000 * 19_000), b"19000", 19_000, id="a date is a number of days"),
    ],
)
def test_without_schemas_what_is_read_has_none(schema, value, data, read):
    check_converter(JsonConverter.of(PLAIN), schema, value, data, (None, read), by_columns="both")


@pytest.mark.parametrize(
    "schema, value",
    [
        param(date_schema(), generated.Instant(5), id="a date that is no midnight"),
        param(POINT, Struct.trusted(POINT, [None, 1]), id="a null where none may be"),
        param(Schema.INT8, 300, id="a number too large"),
        param(Schema.STRING, 5, id="another type"),
        param(POINT, {"line": "x"}, id="a map is not a struct"),
    ],
)
def test_what_does_not_fit_is_refused_by_both(schema, value):
    check_converter(JsonConverter.of(), schema, value, DataError)


@pytest.mark.parametrize("props", [{"decimal.format": "hex"}, {"schemas.enable": "maybe"}, {"schemas.cache.size": "many"}])
def test_options_that_will_not_do(props):
    with pytest.raises(ConfigError):
        JsonConverter.of(props)


def test_a_schema_in_the_options_stands_for_the_envelope():
    converter = JsonConverter.of({"schema.content": '{"type":"struct","fields":[{"field":"a","type":"int16"}]}'})
    schema, value = converter.to_connect("t", b'{"a":7}')
    assert schema["a"] == Schema.INT16 and value.to_dict() == {"a": 7}
    decoded, column, bad = converter.decode("t", ByteColumn.of([b'{"a":7}', b'{"b":7}']))
    assert decoded == schema and bad.tolist() == [1] and values_of(column, schema, 2)[0] == value
    with pytest.raises(DataError, match="schema.content"):
        JsonConverter.of({"schema.content": "{bad"})


@pytest.mark.parametrize(
    "data, said",
    [
        (b"{", "character 1"),
        (b"[1,]", "expected a value"),
        (b'"\\x"', "escape"),
        (b"NaN", "expected a value"),
        (b"1e99999999999", "exponent"),
        (b"1" * 1001, "1001 digits"),
        (b"[" * 1001 + b"]" * 1001, "nested deeper"),
        (b'"\xff"', "UTF-8"),
        (b"[" * 1000 + b"-0.0" + b"]" * 1000, "Python's stack"),
    ],
)
def test_what_is_no_json_is_told(data, said):
    with pytest.raises(DataError, match=said):
        JsonConverter.of(PLAIN).to_connect("t", data)


@pytest.mark.parametrize(
    "data, value",
    [
        (b"00012", 12),
        (b"1 2", 1),
        (b'{"a":1,"a":2}', {"a": 2}),
        (b"", None),
        ("{}".encode("utf-16"), {}),
        (b"\xef\xbb\xbf[1.0]", [1.0]),
        (b"18446744073709551616", 0),
        (b'"' + b"a" * 2000 + b'"', "a" * 2000),
        (b"[" * 200 + b"]" * 200, None),
    ],
)
def test_jacksons_habits(data, value):
    found = JsonConverter.of(PLAIN).to_connect("t", data)[1]
    assert found == value if value is not None or not data else found is not None


def test_the_error_of_a_wrong_envelope_names_what_is_there():
    with pytest.raises(DataError, match="'payload', 'extra'.*schemas.enable=false"):
        JsonConverter.of().to_connect("t", b'{"payload":1,"extra":2}')


def test_another_schema_behind_one_that_was_seen_is_seen_again():
    converter = JsonConverter.of()
    first, other = (b'{"schema":{"type":"%s"},"payload":1}' % kind for kind in (b"int32", b"int64"))
    assert [converter.to_connect("t", data)[0].type for data in (first, first, other, first)] == ["int32", "int32", "int64", "int32"]
    with pytest.raises(DataError):
        converter.to_connect("t", b'{"schema":{"type":"int32"},"payload":1,"more":2}')


DECIMAL = '"name":"org.apache.kafka.connect.data.Decimal","parameters":{"scale":"2"}'


def rows_of(converter, schema, items):
    for item in items:
        try:
            yield converter.from_connect("t", schema, item)
        except DataError:
            yield DataError


@quick
@given(st.data(), OPTIONS)
def test_columns_are_written_as_rows_are(data, props):
    schema = data.draw(generated.schemas())
    items = data.draw(st.lists(generated.values(schema, data.draw(st.booleans())), min_size=1, max_size=8))
    low = data.draw(st.integers(0, len(items) - 1))
    array = to_arrow(items, schema)
    column = pa.concat_arrays([array, array]).slice(low, len(items))
    converter = JsonConverter.of(props)
    found, bad = converter.encode("t", schema, column, len(items))
    bad = set() if bad is None else set(bad.tolist())
    for row, expected in enumerate(rows_of(converter, schema, (items * 2)[low : low + len(items)])):
        if row not in bad:
            assert found[row] == expected
        else:
            beyond_the_kernel = props.get("decimal.format") or "map" in repr(array.type)  # what it leaves to the row form without being wrong
            assert expected is DataError or beyond_the_kernel


@quick
@given(st.lists(generated.TEXTS.map(str.encode) | st.binary(max_size=5) | st.none(), min_size=1))
def test_lines_of_a_file_are_written_as_rows_are(items):
    converter = JsonConverter.of()
    found, bad = converter.encode("t", Schema.OPTIONAL_STRING, ByteColumn.of(items), len(items))
    texts = values_of(ByteColumn.of(items), Schema.STRING, len(items))
    assert bad is None and list(found) == list(rows_of(converter, Schema.OPTIONAL_STRING, texts))


@quick
@given(st.data(), st.sampled_from([{}, {"replace.null.with.default": "false"}]))
def test_columns_are_read_as_rows_are(data, props):
    schema = data.draw(generated.schemas(nested=data.draw(st.booleans())))
    converter = JsonConverter.of(props)
    items = data.draw(st.lists(generated.values(schema), min_size=1, max_size=8))
    messages = [message for message in rows_of(converter, schema, items) if message is not DataError]
    change = data.draw(st.sampled_from([None, None, "a byte", "blanks", "an end", "an escape"]))
    if messages and change:
        at = data.draw(st.integers(0, len(messages) - 1))
        messages[at] = changed(messages[at], change, data)
    found = JsonConverter.of(props).decode("t", ByteColumn.of(messages)) if messages else None
    if found is None:
        return
    schema, column, bad = found
    bad = set() if bad is None else set(bad.tolist())
    for row, value in enumerate(values_of(column, schema, len(messages))):
        if row not in bad:
            assert repr(converter.to_connect("t", messages[row])) == repr((schema, value))


def changed(message, change, data):
    if change == "a byte":
        at = data.draw(st.integers(0, len(message) - 1))
        return message[:at] + data.draw(st.sampled_from([b'"', b"\\", b"}", b"1", b"-", b".", b" ", b"\xc3", b"\x01"])) + message[at + 1 :]
    if change == "blanks":
        return message.replace(b",", b" , ").replace(b":", b"\t:")
    if change == "an end":
        return message + b" "
    return message.replace(b"\\n", b"\\ud83d\\ude00\\u00e9")


def test_most_of_what_kafka_writes_goes_by_columns():
    converter = JsonConverter.of()
    messages = [converter.from_connect("t", POINT, Struct(POINT, {"line": f"line {n}", "n": n})) for n in range(100)]
    schema, column, bad = converter.decode("t", ByteColumn.of(messages))
    assert schema == POINT and bad is None and values_of(column, schema, 100)[99].to_dict() == {"line": "line 99", "n": 99}


@pytest.mark.parametrize(
    "schema, payloads, values",
    [
        param('{"type":"bytes"}', ['"AQI="', '""'], [b"\1\2", b""], id="bytes"),
        param(f'{{"type":"bytes",{DECIMAL}}}', ['"AP8="', '"/w=="', '"AAAB"'], [Decimal("2.55"), Decimal("-0.01"), Decimal("0.01")], id="Decimals"),
        param('{"type":"array","items":{"type":"int16"}}', ["[1, -32768]", "[]"], [[1, -32768], []], id="lists of numbers"),
        param('{"type":"array","items":{"type":"string"}}', ['["a","\\u00e9"]'], [["a", "é"]], id="lists of texts"),
        param('{"type":"array","items":{"type":"boolean"}}', ["[true,false]"], [[True, False]], id="lists of booleans"),
        param('{"type":"array","items":{"type":"double"}}', ["[1.5,2e3]"], [[1.5, 2000.0]], id="lists of doubles"),
    ],
)
def test_what_a_kernel_reads(schema, payloads, values):
    messages = [f'{{"schema":{schema},"payload":{payload}}}'.encode() for payload in payloads]
    found, column, bad = JsonConverter.of().decode("t", ByteColumn.of(messages))
    assert bad is None and values_of(column, found, len(messages)) == values


@pytest.mark.parametrize(
    "schema, payload",
    [
        param('{"type":"bytes"}', '"AQI"', id="no padding"),
        param('{"type":"bytes"}', "7", id="a number for bytes"),
        param(f'{{"type":"bytes",{DECIMAL}}}', '""', id="a Decimal of no bytes"),
        param(f'{{"type":"bytes",{DECIMAL}}}', "1.5", id="a Decimal as a number"),
        param('{"type":"array","items":{"type":"int16"}}', "[32768]", id="an item too large"),
        param('{"type":"array","items":{"type":"int16"}}', "[null]", id="a null item"),
        param('{"type":"array","items":{"type":"int16"}}', '{"a":1}', id="an object for a list"),
    ],
)
def test_what_a_kernel_leaves_to_the_row_meaning(schema, payload):
    message = f'{{"schema":{schema},"payload":{payload}}}'.encode()
    _, _, bad = JsonConverter.of().decode("t", ByteColumn.of([message]))
    assert bad.tolist() == [0]


def test_a_batch_that_is_mostly_otherwise_is_left_to_rows():
    converter = JsonConverter.of()
    messages = [b'{"schema":{"type":"int32"},"payload":%s}' % (b"1" if n % 2 else b"1.5") for n in range(100)]
    assert converter.decode("t", ByteColumn.of(messages)) is None


def test_a_list_of_values_and_a_column_of_another_type_are_left_to_rows():
    converter = JsonConverter.of()
    assert converter.encode("t", Schema.INT32, [1, 2], 2) is None
    assert converter.encode("t", Schema.INT32, pa.array([1, 2], pa.int64()), 2) is None
    assert converter.encode("t", None, ByteColumn.of([b"a"]), 1) is None


def test_more_rows_than_are_put_together_at_a_time():
    count = 5000
    found, bad = JsonConverter.of(PLAIN).encode("t", Schema.INT64, pa.array(np.arange(count)), count)
    assert bad is None and list(found) == [str(n).encode() for n in range(count)]
