"""Details of the genuine worker's REST API, asked of it and recorded: what it reports single keys, and how it reads bodies and addresses."""

import json
import pathlib

import pytest
from pytest import param

from standalone.data.java_hash import hash_map_order
from standalone.runtime.configuration.plugin_versions import version_fits
from tests.rest.conftest import SINK, SOURCE
from tests.runtime.local import LocalWorker, wait_for

JSON = "org.apache.kafka.connect.json.JsonConverter"
VERDICTS = [json.loads(line) for line in (pathlib.Path(__file__).parent.parent / "golden" / "validate.jsonl").read_text().splitlines()]
OBJECT = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def as_recorded(tmp_path_factory):
    """A worker with the converters that Java's had."""
    from tests.rest.conftest import Api

    with LocalWorker(tmp_path_factory.mktemp("as-java"), **{"key.converter": JSON, "value.converter": JSON}) as worker:
        yield Api(worker)


def _id(verdict):
    plain = ("name", "topic", "topics", "file")
    said = {key: value for key, value in verdict["config"].items() if key not in plain or value is None or verdict["config"]["name"] is None}
    return f"{verdict['connector']} {said or verdict['config'].get('topics')}"


@pytest.mark.parametrize("recorded", VERDICTS, ids=_id)
def test_what_validate_tells(as_recorded, recorded):
    name = {"source": SOURCE, "sink": SINK}[recorded["connector"]]
    answer = as_recorded.json("PUT", f"/connector-plugins/{name}/config/validate", {**recorded["config"], "connector.class": name})
    assert summary(answer, recorded["verdict"]) == recorded["verdict"]


def summary(answer, recorded):
    """What was recorded of such an answer: everything about the keys in question but the wording."""
    found = {each["value"]["name"]: each for each in answer["configs"]}
    shown = {
        "error_count": answer["error_count"],
        "errors": {name: len(each["value"]["errors"]) for name, each in found.items() if each["value"]["errors"]},
        "overrides": [_override(each) for name, each in found.items() if ".override." in name],
        "converter_keys": [name for name in found if ".converter." in name and not name.endswith("plugin.version")],
        "plugins": {name: [found[name]["value"][what] for what in ("value", "visible")] for name in recorded.get("plugins", ())},
    }
    return {key: value for key, value in shown.items() if key in recorded}


def _override(each):
    definition, value = each["definition"], each["value"]
    told = {key: told for key, told in (definition or {}).items() if key != "documentation"}
    return {**told, "value": value["value"], "name": value["name"], "defined": definition is not None}


@pytest.mark.parametrize(
    "written, name",
    [("5", "5"), ("1.50", "1.50"), ("1E5", "1E5"), ("true", "true"), ("12345678901234567890", "12345678901234567890"), ('" n "', "n")],
)
def test_scalars_as_names_and_values(api, written, name):
    body = f'{{"name":{written},"config":{{"connector.class":"{SOURCE}","topic":"t","file":"f","x":{written}}}}}'
    answer = api("POST", "/connectors", content=body, headers=OBJECT)
    assert answer.status_code == 201, answer.text
    config = api.json("GET", f"/connectors/{name}/config")
    assert (config["name"], config["x"]) == (name, json.loads(written) if written[0] == '"' else written)


@pytest.mark.parametrize(
    "body, status",
    [
        param('\ufeff{"name":"s","config":{"connector.class":"%s","topic":"t","file":"f"}}', 201, id="a byte order mark"),
        param('{"name":"s","config":{"connector.class":"%s","topic":"t","file":"f","x":null}}', 400, id="null as a value"),
        param('{"name":"s","config":{"connector.class":"%s","topic":"t","file":"f","x":NaN}}', 400, id="no number"),
        param('{"name":"s","config":{"connector.class":"%s","topic":"t","file":"f","x":"\\ud800"}}', 400, id="half a letter"),
        param('{"name":[],"config":{"connector.class":"%s","topic":"t","file":"f"}}', 400, id="a list as a name"),
        param("[" * 100_000, 400, id="nested too deep"),
    ],
)
def test_bodies(api, body, status):
    body = body % SOURCE if "%s" in body else body
    assert api("POST", "/connectors", content=body.encode(), headers=OBJECT).status_code == status


@pytest.mark.parametrize(
    "number, status",
    [("0", 200), ("00", 200), ("%2B0", 200), ("٠", 200), ("-0", 404), ("²", 404), ("1", 404), ("2147483648", 404), ("9" * 200, 404), ("0x0", 404), ("%200", 404)],
)
def test_numbers_of_tasks(api, config, number, status):
    api.create("c", config)
    api.wait_state("c", "RUNNING", "RUNNING")
    assert api("GET", f"/connectors/c/tasks/{number}/status").status_code == status
    assert api("POST", f"/connectors/c/tasks/{number}/restart").status_code == (204 if status == 200 else 404)


@pytest.mark.parametrize("path", ["//connectors", "/connectors//x", "/connectors/x//status", "/connectors/%2e%2e", "/connectors/.%2E/x"])
def test_addresses_with_empty_or_hidden_segments(api, path):
    assert api("GET", str(api.http.base_url).rstrip("/") + path).status_code == 400


@pytest.mark.parametrize(
    "partition, offset, status",
    [
        param({"more": 1}, {}, 200, id="a key more in the partition"),
        param({}, {"more": 1}, 200, id="a key more in the offset"),
        param({"kafka_partition": "+0"}, {"kafka_offset": "+1"}, 200, id="texts of numbers"),
        param({}, {"kafka_offset": "9999999999999999999999"}, 400, id="more than the field holds"),
        param({"kafka_partition": 1 << 31}, {}, 400, id="more partitions than there can be"),
        param({}, {"kafka_offset": " 1"}, 400, id="a blank"),
        param({}, {"kafka_offset": True}, 400, id="no number"),
        param({"kafka_topic": None}, {}, 400, id="no topic"),
    ],
)
def test_offsets_of_sinks(api, shared_worker, tmp_path, partition, offset, status):
    topic = f"as-java-{tmp_path.parent.name}-{tmp_path.name}"
    name = f"k-{topic}"  # its group outlives it
    shared_worker.send(topic, [b"one", b"two"])
    api.create(name, {"connector.class": SINK, "file": str(tmp_path / "out"), "topics": topic})
    wait_for(lambda: api.json("GET", f"/connectors/{name}/offsets")["offsets"], what="its offsets")
    api("PUT", f"/connectors/{name}/stop")
    api.wait_state(name, "STOPPED")
    entry = {"partition": {"kafka_topic": topic, "kafka_partition": 0, **partition}, "offset": {"kafka_offset": 1, **offset}}
    assert api("PATCH", f"/connectors/{name}/offsets", {"offsets": [entry]}).status_code == status
    (found,) = api.json("GET", f"/connectors/{name}/offsets")["offsets"]
    assert found["offset"] == {"kafka_offset": 1 if status == 200 else 2}


def test_nothing_is_an_offset_that_may_be_reset(api, config):
    api.create("c", config)
    api("PUT", "/connectors/c/stop")
    api.wait_state("c", "STOPPED")
    for entry in ({"partition": None, "offset": None}, {}):
        assert api("PATCH", "/connectors/c/offsets", {"offsets": [entry]}).status_code == 200


@pytest.mark.parametrize(
    "wanted, fits",
    [
        *((wanted, True) for wanted in (None, "latest", "4.3.1", "[4.3.1]", "[4.0,5.0)", "(,4.3.1]", "[4.3.1,)", "(4.3,4.4)", "(,1.0],[4.0,)", "[4.3.1.0]")),
        *((wanted, False) for wanted in ("", " ", "4.3", "9", "abc", "[4.4,)", "(4.3.1,5)", "(,4.3.1)", "[5.0]", "[", "[4.0,5.0")),
    ],
)
def test_versions(wanted, fits):
    assert version_fits(wanted, "4.3.1") == fits


def test_the_order_of_a_hash_map():
    """As Java printed the keys of such a map."""
    assert hash_map_order(["client.id", "max.request.size"]) == ["max.request.size", "client.id"]
