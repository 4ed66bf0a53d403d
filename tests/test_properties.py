"""Properties and connector files: equal to Java's reading, and errors that name the place."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest import param

from standalone import properties
from standalone.errors import ConfigError

GOLDEN = Path(__file__).parent / "golden"
CASES = [json.loads(line) for line in (GOLDEN / "properties.jsonl").read_text(encoding="ascii").splitlines()]


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["id"]))
@pytest.mark.parametrize("form", [str, str.encode], ids=["text", "bytes"])
def test_texts_are_read_as_java_reads_them(case, form):
    if "error" in case:
        with pytest.raises(ConfigError, match="line [0-9]+"):
            properties.parse(form(case["text"]))
    else:
        assert properties.parse(form(case["text"])) == case["properties"]


@pytest.mark.parametrize(
    "text, props",
    [
        param("\\", {"": ""}, id="a lone backslash at the end is an empty entry"),
        param("\\\n", {"": ""}, id="and one line end after it changes nothing"),
        param("\\\r", {"": ""}, id="nor does a carriage return"),
        param("\\\r\n", {}, id="but both together do"),
        param("\\\n ", {}, id="and so does a blank"),
        param("\\\n\n", {}, id="and a blank line"),
        param("\\\n#x", {}, id="a comment may follow an empty continuation"),
        param("a\\\n#x", {"a#x": ""}, id="but not one that has begun a key"),
        param("a=b\\\n\nc=d", {"a": "b", "c": "d"}, id="a blank line ends a continuation"),
        param("a=\\\\\nb=c", {"a": "\\", "b": "c"}, id="an escaped backslash continues nothing"),
        param("a=b\x0bc\x85d\u2028e", {"a": "b\x0bc\x85d\u2028e"}, id="only Java's line ends end a line"),
        param("a=\\ud83d\\ude00", {"a": "\U0001f600"}, id="surrogate pairs are joined"),
        param("a=\\ud83d", {"a": "\ud83d"}, id="a lone surrogate stays"),
        param("a=1\na=2", {"a": "2"}, id="the last duplicate stands"),
    ],
)
def test_corners(text, props):
    assert properties.parse(text) == props


def test_order_is_that_of_the_file():
    assert list(properties.parse("b=1\na=2\nc=3")) == ["b", "a", "c"]


ODD = st.text(st.sampled_from(" \t\f\n\r\\=:#!au0é€😀\x0b\x85\ud800") | st.characters(), max_size=12)


@given(st.dictionaries(ODD, ODD, max_size=5))
def test_what_is_dumped_is_parsed_again(props):
    # A pair of lone surrogates is one character in Java's eyes, and in those of the parser.
    joined = {_joined(key): _joined(value) for key, value in props.items()}
    assert properties.parse(properties.dump(props)) == joined
    assert properties.parse(properties.dump(props).encode("ascii")) == joined


def _joined(text):
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def test_a_file_is_read_as_iso_8859_1_and_utf8_draws_a_warning(tmp_path, caplog):
    path = tmp_path / "worker.properties"
    path.write_bytes("a=\u00fc\n".encode("iso-8859-1"))
    assert properties.load(path) == {"a": "\u00fc"}
    assert not caplog.records
    path.write_bytes("a=\u00fc\nb=plain\n# \u00fc\n".encode("utf-8"))
    assert properties.load(path)["a"] == "\u00c3\u00bc"
    assert "UTF-8" in caplog.text and " a will not" in caplog.text


@pytest.mark.parametrize("read", [properties.load, properties.load_connector])
def test_a_file_that_cannot_be_read_is_named(tmp_path, read):
    with pytest.raises(ConfigError, match="absent.properties: no such file"):
        read(tmp_path / "absent.properties")
    with pytest.raises(ConfigError, match="is a directory"):
        read(tmp_path)


def test_a_malformed_escape_names_file_line_and_escape(tmp_path):
    path = tmp_path / "worker.properties"
    path.write_text("a=b\n\nb=c:\\temp\\uxyz\n")
    with pytest.raises(ConfigError, match=r"worker\.properties, line 3: '\\uxyz'"):
        properties.load(path)


FULL = {"name": "jsn", "connector.class": "FileStreamSource", "topic": "t", "tasks.max": "1"}
REST = {key: value for key, value in FULL.items() if key != "name"}


@pytest.mark.parametrize(
    "text, state",
    [
        param(json.dumps(FULL), None, id="flat map"),
        param(json.dumps({**FULL, "tasks.max": 1}), None, id="flat map with a number"),
        param(json.dumps({"name": "jsn", "config": REST}), None, id="create request"),
        param(json.dumps({"name": "jsn", "config": FULL}), None, id="create request with the name twice"),
        param(json.dumps({"name": "jsn", "config": {**REST, "tasks.max": 1}}), None, id="create request with a number"),
        param(json.dumps({"name": "jsn", "config": REST, "initial_state": "STOPPED"}), "STOPPED", id="stopped"),
        param(json.dumps({"name": "jsn", "config": REST, "initial_state": "paused"}), "PAUSED", id="paused in lower case"),
        param(json.dumps({"name": "jsn", "config": REST, "initial_state": None}), None, id="state null"),
        param(json.dumps({"name": "jsn", "config": REST, "bogus": [1]}), None, id="unknown field"),
        param("\ufeff \n" + json.dumps(FULL) + "\n\n", None, id="byte order mark and blanks"),
        param(properties.dump(FULL), None, id="properties"),
    ],
)
@pytest.mark.parametrize("suffix", ["json", "properties"])
def test_a_connector_is_read_from_any_form_whatever_the_suffix(tmp_path, text, state, suffix):
    path = tmp_path / f"c.{suffix}"
    path.write_text(text, encoding="utf-8")
    found = properties.load_connector(path)
    assert (found.name, found.config, found.initial_state, found.path) == ("jsn", FULL, state, str(path))


@pytest.mark.parametrize(
    "text, message",
    [
        param("connector.class=X\n", "has no name", id="properties without name"),
        param(json.dumps(REST), "has no name", id="flat map without name"),
        param(json.dumps({"config": REST}), "has no name", id="create request without name"),
        param(json.dumps({"name": "jsn", "config": {**REST, "name": "other"}}), "'jsn'.*'other'", id="names differ"),
        param(json.dumps({"name": "jsn", "config": REST})[:-20], "looks like JSON, but is invalid.*line 1", id="cut off"),
        param(json.dumps({"name": "jsn", "config": REST, "initial_state": "ASLEEP"}), "ASLEEP.*RUNNING", id="unknown state"),
        param(json.dumps({"name": "jsn", "topics": ["a"]}), "'topics'", id="a list as value"),
        param(json.dumps({"name": "jsn", "config": {"a": {}}}), "'a'", id="an object within config"),
        param('{"name": "jsn", "x": NaN}', "NaN", id="not a JSON value"),
        param("[]", "has no name", id="a list"),
        param("", "has no name", id="an empty file"),
        param("name=x\na=\\u12", "line 2", id="properties with a malformed escape"),
    ],
)
def test_a_connector_file_that_will_not_do(tmp_path, text, message):
    path = tmp_path / "c.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=message) as caught:
        properties.load_connector(path)
    assert str(path) in str(caught.value)


def test_properties_that_begin_with_a_brace_stay_properties(tmp_path):
    path = tmp_path / "c.properties"
    path.write_text("{odd\nname=x\n")
    assert properties.load_connector(path).config == {"{odd": "", "name": "x"}
