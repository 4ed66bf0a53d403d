"""The keys of JDBC source and sink are those of Confluent's connectors: names, types, defaults, importances, as tests/golden/jdbc-keys.json has them."""

import json
import pathlib

import pytest

from connectors.jdbc.sink import JdbcSinkConnector
from connectors.jdbc.sink_keys import SINK
from connectors.jdbc.source import JdbcSourceConnector
from connectors.jdbc.source_keys import SOURCE, TASK
from standalone import REQUIRED, ConfigError

KEYS = json.loads((pathlib.Path(__file__).parents[2] / "golden" / "jdbc-keys.json").read_text())
OURS = {"late.rows.window.ms", "topic.qualified", "exactly.once", "exactly.once.table"}
# A Java class cannot be loaded: it is a name here.
TYPES = {"jdbc.credentials.provider.class": "STRING"}
DEFINED = {"source": TASK, "sink": SINK}


def each_key():
    return [pytest.param(kind, key, id=f"{kind} {key['name']}") for kind, keys in KEYS.items() for key in keys]


@pytest.mark.parametrize("kind, key", each_key())
def test_a_key_is_as_in_java(kind, key):
    option = DEFINED[kind][key["name"]]
    default = "REQUIRED" if option.default is REQUIRED else getattr(option.default, "value", option.default)
    assert (option.type, default, option.importance) == (TYPES.get(key["name"], key["type"]), key["default"], key["importance"])
    assert option.group == key.get("group") or option.internal
    assert list(option.dependents) == key.get("dependents", [])


@pytest.mark.parametrize("kind", DEFINED)
def test_no_key_is_missing_or_made_up(kind):
    assert set(DEFINED[kind].names()) - OURS == {key["name"] for key in KEYS[kind]}


@pytest.mark.parametrize("kind, key", [each for each in each_key() if isinstance(each.values[1].get("valid"), list)])
def test_words_may_be_all_capitals_or_all_small(kind, key):
    option = DEFINED[kind][key["name"]]
    for word in filter(None, key["valid"]):
        forms = {word, word.upper(), word.lower()} if key["name"] != "timestamp.granularity" else {word}
        for form in forms:
            option.check(key["name"], [form] if option.type == "LIST" else form)
    with pytest.raises(ConfigError):
        option.check(key["name"], ["nOnsense"] if option.type == "LIST" else "nOnsense")


@pytest.mark.parametrize(
    "connector, props, wrong",
    [
        pytest.param(JdbcSourceConnector, {"mode": "bulk"}, {"connection.url"}, id="no URL"),
        pytest.param(JdbcSourceConnector, {"connection.url": "jdbc:sqlite:x"}, {"mode"}, id="no mode"),
        pytest.param(JdbcSourceConnector, {"connection.url": "jdbc:nothing://h", "mode": "bulk"}, {"connection.url"}, id="no such database"),
        pytest.param(JdbcSourceConnector, {"connection.url": "postgresql://h", "mode": "bulk"}, {"connection.url"}, id="no jdbc URL"),
        pytest.param(
            JdbcSourceConnector, {"connection.url": "jdbc:sqlite:x", "mode": "timestamp"}, {"timestamp.column.name"}, id="no timestamp column"
        ),
        pytest.param(
            JdbcSourceConnector,
            {"connection.url": "jdbc:sqlite:x", "mode": "bulk", "table.whitelist": "a", "table.blacklist": "b"},
            {"table.blacklist"},
            id="two filters",
        ),
        pytest.param(
            JdbcSourceConnector,
            {"connection.url": "jdbc:sqlite:x", "mode": "bulk", "table.whitelist": "a", "query": "q"},
            {"query"},
            id="query and tables",
        ),
        pytest.param(
            JdbcSourceConnector,
            {"connection.url": "jdbc:sqlite:x", "mode": "bulk", "query.masked": "p", "query": "q"},
            {"query.masked"},
            id="two queries",
        ),
        pytest.param(JdbcSinkConnector, {"connection.url": "jdbc:sqlite:x", "insert.mode": "upsert"}, {"pk.mode"}, id="upsert without a key"),
        pytest.param(JdbcSinkConnector, {"connection.url": "jdbc:sqlite:x", "delete.enabled": "true"}, {"delete.enabled"}, id="delete without a key"),
        pytest.param(
            JdbcSinkConnector, {"connection.url": "jdbc:sqlite:x", "pk.mode": "kafka", "pk.fields": "a"}, {"pk.fields"}, id="a third of a key"
        ),
        pytest.param(JdbcSinkConnector, {"connection.url": "jdbc:sqlite:x", "topics": "t"}, set(), id="all well"),
        pytest.param(JdbcSourceConnector, {"connection.url": "jdbc:sqlite:x", "mode": "BULK"}, set(), id="capitals"),
    ],
)
def test_what_does_not_go_together_is_said(connector, props, wrong):
    assert set(connector().validate(props)) == wrong


@pytest.mark.parametrize("entry", ["timestamp.columns.mapping=t:[]", "timestamp.columns.mapping=t:a", "incrementing.column.mapping=t", "topic.prefix=a b", "db.timezone=Mars/Olympus",
                                   "table.include.list=(", "mode=Bulk", "connection.attempts=0"])  # fmt: skip
def test_a_wrong_value_is_refused(entry):
    name, _, value = entry.partition("=")
    with pytest.raises(ConfigError):
        SOURCE.parse({name: value})
