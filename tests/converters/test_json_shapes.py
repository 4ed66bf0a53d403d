"""Schemaless JSON in columns: what is decoded, printed and encoded by columns is what rows make of it, and strangers are left to rows."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from standalone import ByteColumn, DataError, SinkBatch
from standalone.converters.json import JsonConverter
from standalone.converters.string import StringConverter
from standalone.data.column import values_of
from standalone.data.java_text import java_text

PLAIN = {"schemas.enable": "false"}
quick = settings(deadline=None)

NAMES = st.sampled_from(["a", "b", "é", "x.y", 'q"', "😀", "", "a long name with blanks: in it"])
NUMBERS = ["0", "-0", "7", "-12", "1.0", "-0.0", "0.0", "1e5", "1E+2", "2e-3", "0.1", "123456789012345678", "9223372036854775807"]
NUMBERS += ["-9223372036854775808", "9223372036854775808", "1" * 25, "1.7976931348623157e308", "1e400", "4.9e-324", "9007199254740993.0"]
NUMBERS += ["0.30000000000000004", "3.14159265358979323846", "1e22", "1e23", "5e-22", "-1e-30", "007", "1.", ".5", "+1", "1e", "0x1", "NaN"]
TEXTS = st.text(st.sampled_from('ab"\\/\n\x01\x7fé€😀'), max_size=6).map(json.dumps) | st.text(max_size=4).map(lambda t: json.dumps(t, ensure_ascii=False))
ODD_TEXTS = st.sampled_from(['"\\ud800"', '"\\u00e9\\/\\b"', '"\x01"', '"\\x"', '"', '"\\ud83d\\ude00"'])


def texts_of(kind):
    """JSON strings of values that mostly are of one kind."""
    odd = st.sampled_from(["null", "1", "1.5", '"x"', "[]", "{}", "true"])
    own = _own(kind)
    return st.one_of(own, own, own, own, own, own, odd)


def _own(kind):
    if isinstance(kind, list):
        return st.lists(texts_of(kind[0]), max_size=3).map(lambda items: "[" + ",".join(items) + "]")
    if isinstance(kind, dict):
        return st.tuples(*map(texts_of, kind.values())).map(
            lambda items: "{" + ",".join(f"{json.dumps(name)}:{item}" for name, item in zip(kind, items)) + "}"
        )
    if kind == "int":
        return st.integers(-(2**63), 2**63 - 1).map(str) | st.integers(-9, 9).map(str)
    if kind == "float":
        return st.floats(allow_nan=False, allow_infinity=False).map(lambda f: repr(f + 0.0)) | st.decimals(-1000, 1000, places=2).map(str)
    return {"bool": st.sampled_from(["true", "false"]), "text": TEXTS, "odd text": ODD_TEXTS | TEXTS, "number": st.sampled_from(NUMBERS)}[kind]


KINDS = st.recursive(
    st.sampled_from(["int", "float", "bool", "text", "text", "number", "odd text"]),
    lambda inner: st.dictionaries(NAMES, inner, max_size=4) | st.lists(inner, min_size=1, max_size=1),
    max_leaves=6,
)


@st.composite
def batches(draw):
    kind = draw(st.dictionaries(NAMES, KINDS, min_size=1, max_size=5) | KINDS)
    items = draw(st.lists(texts_of(kind), min_size=1, max_size=12))
    change = draw(st.sampled_from(["", "", "", "blanks", "behind", "no UTF-8", "twice", "turned"]))
    if change == "blanks":
        items = [json.dumps(json.loads(item), indent=1) if _is_json(item) else item for item in items]
    at = draw(st.integers(0, len(items) - 1))
    if change == "behind":
        items[at] += draw(st.sampled_from([" ", " x", "}", ",1", "1"]))
    if change == "twice" and items[at].startswith("{") and len(items[at]) > 2:
        items[at] = items[at][:-1] + "," + items[at][1:]
    if change == "turned" and items[at].startswith("{") and _is_json(items[at]):
        items[at] = json.dumps(dict(reversed(json.loads(items[at]).items())))
    data = [item.encode("utf-8", "replace") for item in items]
    if change == "no UTF-8":
        data[at] = data[at].replace(b"a", b"\xff")
    return [None if draw(st.integers(0, 9)) == 0 else item for item in data]


def _is_json(text):
    try:
        json.loads(text)
        return True
    except ValueError:
        return False


def same(found, expected):
    """Equal, to the class of each number and the sign of each zero."""
    if isinstance(expected, dict):
        return isinstance(found, dict) and list(found) == list(expected) and all(same(found[name], expected[name]) for name in expected)
    if isinstance(expected, list):
        return isinstance(found, list) and len(found) == len(expected) and all(map(same, found, expected))
    if isinstance(expected, float):
        return type(found) is float and found == expected and math.copysign(1, found) == math.copysign(1, expected)
    return type(found) is type(expected) and found == expected


@quick
@given(batches())
def test_what_is_read_by_columns_is_what_rows_read_and_so_is_its_text(data):
    converter = JsonConverter.of(PLAIN)
    decoded = converter.decode("t", ByteColumn.of(data))
    if decoded is None:
        return
    schema, column, bad = decoded
    bad = set() if bad is None else set(bad.tolist())
    batch = SinkBatch(len(data), "t", column)
    texts, printed, written = batch.texts(), StringConverter.of().encode("t", None, column, len(data)), converter.encode("t", None, column, len(data))
    assert schema is None and len(column) == len(data) and written[1] is None
    for row, found in enumerate(values_of(column, schema, len(data))):
        if row in bad:
            continue
        _, expected = converter.to_connect("t", data[row])
        assert same(found, expected)
        assert texts[row] == printed[0][row] == (None if expected is None else java_text(expected).encode())
        assert written[0][row] == converter.from_connect("t", None, expected)


@quick
@given(batches())
def test_what_rows_refuse_is_left_to_rows(data):
    converter = JsonConverter.of(PLAIN)
    decoded = converter.decode("t", ByteColumn.of(data))
    for row, item in enumerate(data):
        try:
            converter.to_connect("t", item)
        except DataError:
            assert decoded is None or row in decoded[2]


def decoded(*messages, times=20):
    """(values, rows left to rows) of messages as often as that, by columns."""
    data = [message.encode() for message in messages] * times
    _, column, bad = JsonConverter.of(PLAIN).decode("t", ByteColumn.of(data))
    return values_of(column, None, len(data)), [] if bad is None else bad.tolist()


@pytest.mark.parametrize(
    "message",
    [
        '{"id":17,"ok":true,"rate":0.5,"name":"Ann","tags":["a","b"],"user":{"name":"x","age":4}}',
        '{ "id" : 17 ,\t"tags" : [ 1 , 2 ] , "none" : [] , "inner" : { "a" : "\\u00e9\\n" } }\n',
        '{"a":9223372036854775807,"b":-9223372036854775808,"c":1e5,"d":1.0,"e":123456789012345678901234567.5}',
        "17",
        '"text"',
        "[1,2,3]",
    ],
)
def test_messages_of_one_shape_go_by_columns(message):
    values, bad = decoded(message)
    assert same(values[0], JsonConverter.of(PLAIN).to_connect("t", message.encode())[1]) and len(values) == 20 and not bad


def test_a_null_now_and_then_is_part_of_the_shape():
    values, bad = decoded('{"a":1,"b":{"c":"x"}}', '{"a":null,"b":{"c":"y"}}', '{"a":2,"b":null}', '{"a":3,"b":{"c":null}}')
    assert values[:4] == [{"a": 1, "b": {"c": "x"}}, {"a": None, "b": {"c": "y"}}, {"a": 2, "b": None}, {"a": 3, "b": {"c": None}}] and not bad


@pytest.mark.parametrize(
    "stranger", ['{"a":1.0,"b":2}', '{"b":2,"a":1}', '{"a":1}', '{"a":1,"b":2,"c":3}', '{"a":1,"a":1,"b":2}', "7", '{"a":1,"b":2} x', '{"a":"1","b":2}']
)
def test_a_stranger_among_many_is_left_to_rows(stranger):
    _, bad = decoded(*['{"a":1,"b":2}'] * 30, stranger, times=1)
    assert bad == [30]


@pytest.mark.parametrize("messages", [['{"a":1}', '{"b":1}'], ['{"a":1}', '{"a":1.5}'], ["{}"], ['{"a":[[1]]}'], ['{"a":[{"b":1}]}'], ["{"], [""]])
def test_messages_of_no_one_shape_are_left_to_rows(messages):
    assert JsonConverter.of(PLAIN).decode("t", ByteColumn.of([message.encode() for message in messages * 20])) is None


def test_a_shape_that_changes_is_found_again():
    converter = JsonConverter.of(PLAIN)
    for message in (b'{"a":1}', b'{"a":1,"b":2}', b'{"a":"x"}', b'{"a":1}'):
        _, column, bad = converter.decode("t", ByteColumn.of([message] * 50))
        assert values_of(column, None, 50)[49] == json.loads(message) and bad is None


def test_a_shape_grows_by_the_nulls_of_rows_that_were_left_out():
    converter = JsonConverter.of(PLAIN)
    few = [b'{"a":null}' if row % 33 == 5 else b'{"a":1}' for row in range(3000)]
    _, column, bad = converter.decode("t", ByteColumn.of(few))
    assert bad is None and values_of(column, None, 3000)[5] == {"a": None}


def test_lists_of_many_items_find_room():
    values, bad = decoded(json.dumps({"a": list(range(1000))}), '{"a":[]}')
    assert values[0]["a"][-1] == 999 and values[1]["a"] == [] and not bad


def test_the_envelope_of_no_schema_stands_around_what_is_written():
    _, column, _ = JsonConverter.of(PLAIN).decode("t", ByteColumn.of([b'{"a":1}'] * 3))
    written, bad = JsonConverter.of().encode("t", None, column, 3)
    assert bad is None and list(written) == [JsonConverter.of().from_connect("t", None, {"a": 1})] * 3
