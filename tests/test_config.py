"""Options, their parsing and what the REST API and the reference make of them."""

import json
import math
from pathlib import Path, PurePath

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest import param

from standalone import config
from standalone.config import ConfigDef, Option, parse_type
from standalone.errors import ConfigError

GOLDEN = Path(__file__).parent / "golden"
CASES = [json.loads(line) for line in (GOLDEN / "config_types.jsonl").read_text(encoding="ascii").splitlines()]


def tagged(value, kind):
    """A parsed value as the golden file writes it."""
    if kind == config.PASSWORD:
        return {"$password": value.value}
    if kind == config.CLASS:
        return {"$class": config.class_name(value)}
    return value


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['id']} {case['type']}")
def test_texts_are_parsed_as_kafka_parses_them(case):
    if "error" in case:
        with pytest.raises(ConfigError):
            parse_type("k", case["value"], case["type"])
        return
    value = tagged(parse_type("k", case["value"], case["type"]), case["type"])
    assert value == case["parsed"] and type(value) is type(case["parsed"])


@given(st.text(st.sampled_from("0123456789+-_. eExXpPdDfFnNaAiI\t\u0661\U0001d7d9"), max_size=12))
def test_no_text_brings_anything_but_a_value_or_a_config_error(text):
    for kind in config.TYPES:
        try:
            parse_type("k", text, kind)
        except ConfigError as error:
            assert set(error.errors) == {"k"}


@pytest.mark.parametrize(
    "kind, text, value",
    [
        param(config.DOUBLE, "1d", 1.0, id="a suffix"),
        param(config.DOUBLE, "0x1p3", 8.0, id="hexadecimal"),
        param(config.DOUBLE, "-0x.8p1f", -1.0, id="hexadecimal with a point"),
        param(config.DOUBLE, "1e400", math.inf, id="too large"),
        param(config.DOUBLE, "0x1p999999999999", math.inf, id="far too large"),
        param(config.DOUBLE, "-Infinity", -math.inf, id="infinity"),
        param(config.INT, "+2147483647", 2147483647, id="a plus"),
        param(config.INT, "-" + "0" * 5000 + "7", -7, id="many noughts"),
        param(config.BOOLEAN, "fal\u017fe", False, id="a long s, which Java takes for an s"),
        param(config.LIST, " a ,\tb,, ", ["a", "b", "", ""], id="a list with gaps"),
        param(config.LIST, "", [], id="an empty list"),
        param(config.LIST, ("a", "b"), ["a", "b"], id="a list as it is"),
        param(config.LONG, 5, 5, id="a number as it is"),
        param(config.DOUBLE, 5, 5.0, id="a whole number as a double"),
        param(config.BOOLEAN, True, True, id="a boolean as it is"),
        param(config.STRING, None, None, id="nothing"),
        param(config.CLASS, "pathlib:PurePath", PurePath, id="a Python class"),
        param(config.CLASS, PurePath, PurePath, id="a class as it is"),
    ],
)
def test_more_values(kind, text, value):
    assert parse_type("k", text, kind) == value


@pytest.mark.parametrize(
    "kind, value",
    [(config.INT, True), (config.INT, 1 << 31), (config.SHORT, 1 << 15), (config.INT, 1.0), (config.STRING, 1), (config.LIST, 1)]
    + [(config.BOOLEAN, 1), (config.DOUBLE, True), (config.PASSWORD, 1), (config.CLASS, 1), (config.DOUBLE, "0x1"), (config.DOUBLE, "1e")],
)
def test_values_that_will_not_do(kind, value):
    with pytest.raises(ConfigError):
        parse_type("k", value, kind)


def test_a_class_whose_module_fails_says_why(tmp_path, monkeypatch):
    (tmp_path / "fails_at_once.py").write_text("import no_such_module\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ConfigError, match="No module named 'no_such_module'"):
        parse_type("k", "fails_at_once:Thing", config.CLASS)


DEFINITION = ConfigDef(
    Option("fields", config.LIST, config.HIGH, "Names of the fields. All of them.", check=config.non_empty),
    Option("count", config.INT, config.MEDIUM, "How many | at most.", default="3", check=config.at_least(1), group="G", order=2),
    Option("secret", config.PASSWORD, config.LOW, "A secret.", default=None),
    Option("hidden", config.STRING, config.LOW, "Not for show.", default="x", internal=True),
)


def test_values_are_typed_defaults_are_filled_in_and_originals_kept():
    found = DEFINITION.parse({"fields": "a, b", "producer.acks": "1", "producer.": "2"})
    assert dict(found) == {"fields": ["a", "b"], "count": 3, "secret": None, "hidden": "x"}
    assert found.with_prefix("producer.") == {"acks": "1"} and found.originals["fields"] == "a, b"


def test_all_errors_come_at_once_and_show_no_secret():
    with pytest.raises(ConfigError) as caught:
        DEFINITION.parse({"count": "0"})
    assert set(caught.value.errors) == {"fields", "count"}
    assert "at least 1, found 0" in caught.value.errors["count"] and "Names of the fields" in caught.value.errors["fields"]
    found = DEFINITION.parse({"fields": "a", "secret": "geheim"})
    assert "geheim" not in f"{found} {found['secret']} {found['secret']!r} {config.text_of(found['secret'], config.PASSWORD)}"


def test_validate_also_checks_the_null_of_what_is_missing_or_unreadable():
    found = {value.name: value for value in DEFINITION.validate({"count": "many"})}
    assert [len(found[name].errors) for name in ("fields", "count", "secret")] == [1, 2, 0]
    assert found["count"].value is None and found["hidden"].value == "x"


class Recommended:
    def valid_values(self, name, parsed):
        return [f"{name}-{parsed['mode']}"]

    def visible(self, name, parsed):
        return parsed["mode"] != "off"


def test_recommendations_hang_on_other_values_also_within_a_larger_definition():
    part = ConfigDef(
        Option("mode", config.STRING, config.HIGH, ".", default="off", dependents=["level"]),
        Option("level", config.STRING, config.LOW, ".", default=None, recommend=Recommended()),
        Option("plain", config.STRING, config.LOW, ".", default=None, recommend=lambda name, parsed: ["x"]),
    )
    _, level, plain = part.validate({"mode": "fast"})
    assert (level.recommended_values, level.visible, plain.recommended_values, plain.visible) == (["level-fast"], True, ["x"], True)
    whole = ConfigDef(Option("mode", config.STRING, config.HIGH, ".", default="other")) + part.embed("a.", "Group", 5)
    level = next(value for value in whole.validate({}) if value.name == "a.level")
    assert (level.recommended_values, level.visible) == (["level-off"], False)
    assert whole["a.mode"].dependents == ("a.level",) and [option.order for option in whole] == [-1, 5, 6, 7]


def test_a_dependent_that_is_not_defined_is_told():
    values = ConfigDef(Option("a", config.STRING, config.LOW, ".", default="", dependents=("b",))).validate({})
    assert [(value.name, value.visible, len(value.errors)) for value in values] == [("a", True, 0), ("b", False, 1)]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Option("a", "WORD", config.LOW, "."),
        lambda: Option("a", config.INT, "HUGE", "."),
        lambda: Option("a", config.INT, config.LOW, ".", default="x"),
        lambda: Option("a", config.INT, config.LOW, ".", default=0, check=config.at_least(1)),
        lambda: ConfigDef(*[Option("a", config.INT, config.LOW, ".")] * 2),
    ],
)
def test_a_definition_that_contradicts_itself_is_refused(make):
    with pytest.raises(ConfigError):
        make()


@pytest.mark.parametrize(
    "check, good, bad, text",
    [
        param(config.at_least(0), [0, 9], [-1, None], "[0,...]", id="at_least"),
        param(config.between(1, 2), [1, 2], [0, 3, None], "[1,...,2]", id="between"),
        param(config.one_of("a", "b"), ["a", ["a", "b"], []], ["A", None, ["c"]], "[a, b]", id="one_of"),
        param(config.case_insensitive_one_of("none", "all"), ["None", "ALL"], ["some", None], "(case insensitive) [none, all]", id="case"),
        param(config.non_empty, ["a", ["a"], None], ["", []], "non-empty", id="non_empty"),
        param(config.non_empty_list, [["a"]], [[], None], "non-empty list", id="non_empty_list"),
        param(config.all_of(config.at_least(0), config.between(-5, 5)), [0, 5], [-1, 6], "[0,...] and [-5,...,5]", id="all_of"),
    ],
)
def test_checks(check, good, bad, text):
    assert str(check) == text
    for value in good:
        check("k", value)
    for value in bad:
        with pytest.raises(ConfigError):
            check("k", value)


def test_unknown_keys_are_told_with_the_nearest_name():
    props = {"fields": "", "cuont": "", "else": "", "a.b": "", "c": ""}
    assert DEFINITION.unknown(props, known=("a.", "c")) == {"cuont": "count", "else": None}


def test_the_reference_and_the_rest_answer_are_drawn_from_the_options():
    page = DEFINITION.to_markdown("Keys")
    assert page.startswith("## Keys\n\n| Key |") and "hidden" not in page
    assert "| `fields` | list | required | non-empty | high | Names of the fields. All of them. |" in page
    assert "| `count` | int | `3` | [1,...] | medium | How many \\| at most. |" in page
    assert config.key_info(DEFINITION["count"]) == {
        **{"name": "count", "type": "INT", "required": False, "default_value": "3", "importance": "MEDIUM", "group": "G"},
        **{"documentation": "How many | at most.", "order_in_group": 2, "width": "NONE", "display_name": "count", "dependents": []},
    }


@pytest.mark.parametrize(
    "value, text",
    [(0.8, "0.8"), (1e10, "1.0E10"), (1e-5, "1.0E-5"), (123456789.0, "1.23456789E8"), (math.nan, "NaN"), (-math.inf, "-Infinity")],
)
def test_doubles_are_written_as_java_writes_them(value, text):
    assert config.text_of(value, config.DOUBLE) == text
