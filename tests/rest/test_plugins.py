"""/connector-plugins: what there is, what it can be set, and whether a configuration would do."""

import sys

import pytest
from pytest import param

from tests.rest.conftest import SINK, SOURCE

JSON = "org.apache.kafka.connect.json.JsonConverter"
HOIST = "org.apache.kafka.connect.transforms.HoistField$Value"
GOOD = {"name": "v", "connector.class": SOURCE, "topic": "t"}


def test_connectors_are_listed_and_others_if_asked(api):
    connectors = api.json("GET", "/connector-plugins")
    assert {"source", "sink"} == {plugin["type"] for plugin in connectors}
    assert {SOURCE, SINK} <= {plugin["class"] for plugin in connectors}
    everything = api.json("GET", "/connector-plugins?connectorsOnly=false")
    assert {"converter", "header_converter", "transformation", "predicate"} <= {plugin["type"] for plugin in everything}


@pytest.mark.parametrize(
    "query, all_kinds",
    [("", False), ("?connectorsOnly=", False), ("?connectorsOnly=TRUE", False), ("?connectorsOnly=maybe", True), ("?connectorsOnly=false&connectorsOnly=true", True)],
)
def test_whether_all_are_listed(api, query, all_kinds):
    kinds = {plugin["type"] for plugin in api.json("GET", f"/connector-plugins{query}")}
    assert (kinds > {"source", "sink"}) == all_kinds


@pytest.mark.parametrize(
    "name, keys",
    [
        (SOURCE, {"file", "topic", "batch.size", "name", "connector.class", "errors.tolerance", "topic.creation.groups"}),
        ("FileStreamSink", {"file", "topics", "topics.regex", "errors.deadletterqueue.topic.name"}),
        (HOIST, {"field"}),
        (JSON, {"converter.type", "schemas.enable"}),
    ],
)
def test_what_a_plugin_can_be_set(api, name, keys):
    options = {option["name"]: option for option in api.json("GET", f"/connector-plugins/{name}/config")}
    assert keys <= set(options)
    assert not [key for key in options if key.startswith("file.")], "keys that Kafka's own does not have are not shown"
    assert set(options[next(iter(keys))]) == {
        *("name", "type", "required", "default_value", "importance", "documentation"),
        *("group", "order_in_group", "width", "display_name", "dependents"),
    }


@pytest.fixture
def stranger(tmp_path, monkeypatch):
    """The name of a module that could be imported, and has not been."""
    (tmp_path / "stranger_of_plugins.py").write_text("from tests.rest.plugins import SecretSource\nclass Mine(SecretSource): pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "stranger_of_plugins"
    sys.modules.pop("stranger_of_plugins", None)


@pytest.mark.parametrize("name", ["{}:Mine", "{}.Mine", "{}:Nothing", "{}$Mine", "{}:a.b.C", "antigravity:Fly", "antigravity.Fly"])
def test_who_asks_for_options_gets_nothing_imported(api, stranger, name):
    there = set(sys.modules)
    named = name.format(stranger)
    assert api("GET", f"/connector-plugins/{named}/config").status_code == 404
    answer = api("PUT", f"/connector-plugins/{named}/config/validate", {"name": "v", "connector.class": SOURCE, "topic": "t"})
    assert answer.status_code == 400
    assert not {stranger, "antigravity"} & (set(sys.modules) - there)


def test_a_class_that_runs_here_tells_its_options(api, stranger):
    name = f"{stranger}:Mine"
    api.create("mine", {"connector.class": name, "secret": "hunter2"})
    assert "secret" in {option["name"] for option in api.json("GET", f"/connector-plugins/{name}/config")}
    assert api.json("PUT", f"/connector-plugins/{stranger}.Mine/config/validate", {"name": "v", "connector.class": name, "secret": "x"})["error_count"] == 0


@pytest.mark.parametrize(
    "config, wrong",
    [
        param({}, {}, id="nothing"),
        param({"tasks.max": "-1", "batch.size": "x"}, {"tasks.max": 1, "batch.size": 1}, id="two keys"),
        param({"topic": ""}, {"topic": 1}, id="an empty topic"),
        param({"no.such.key": "x"}, {}, id="a key that nobody knows"),
        param({"file.long.lines": "perhaps"}, {"file.long.lines": 1}, id="our own key is shown if it is set"),
        param({"transforms": "h", "transforms.h.type": HOIST}, {"transforms.h.field": 1}, id="a transform's key"),
        param({"transforms": "h", "transforms.h.type": "no.such.Transform"}, {"transforms.h.type": 1}, id="no such transform"),
        param({"predicates": "p"}, {"predicates.p.type": 1}, id="a predicate without a type"),
        param({"value.converter": JSON, "value.converter.schemas.enable": "perhaps"}, {"value.converter.schemas.enable": 1}, id="a converter's key"),
        param({"key.converter": HOIST}, {"key.converter": 1}, id="a transform for a converter"),
        param({"producer.override.acks": "1"}, {}, id="an override"),
    ],
)
def test_validate(api, config, wrong):
    answer = api.json("PUT", "/connector-plugins/FileStreamSource/config/validate", {**GOOD, **config})
    found = {each["value"]["name"]: each["value"] for each in answer["configs"]}
    assert {name: len(value["errors"]) for name, value in found.items() if value["errors"]} == wrong
    assert answer["error_count"] == sum(wrong.values())
    assert answer["name"] == SOURCE
    assert "Common" in answer["groups"]
    assert JSON in found["value.converter"]["recommended_values"]
    for key in config.keys() & found.keys():
        assert found[key]["value"] == config[key] or wrong.get(key)
    assert "no.such.key" not in found


@pytest.mark.parametrize(
    "path, config",
    [
        (SOURCE, {}),
        (SOURCE, {**GOOD, "connector.class": SINK}),
        ("no.such.Plugin", GOOD),
        ("no.such.Plugin", {"connector.class": "no.such.Plugin"}),
    ],
)
def test_what_cannot_be_validated(api, path, config):
    assert api("PUT", f"/connector-plugins/{path}/config/validate", config).status_code == 400


def test_a_plugin_that_is_not_there(api):
    assert api("GET", "/connector-plugins/no.such.Plugin/config").status_code == 404
