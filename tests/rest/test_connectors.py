"""/connectors: create, change, pause, stop, restart and delete, over HTTP."""

import pytest
from pytest import param

from tests.rest.conftest import SOURCE, Api
from tests.runtime.local import LocalWorker, wait_for


def test_the_life_of_a_connector(api, config):
    created = api.create("src", config)
    assert created["config"] == {**config, "name": "src"}
    assert created["type"] == "source"
    assert api.json("GET", "/connectors") == ["src"]
    api.wait_state("src", "RUNNING", "RUNNING")
    assert api.json("GET", "/connectors/src/tasks") == [
        {"id": {"connector": "src", "task": 0}, "config": {**config, "name": "src", "task.class": SOURCE.replace("Connector", "Task")}}
    ]
    views = api.json("GET", "/connectors?expand=status&expand=info&expand=bogus")
    assert views["src"]["info"] == api.json("GET", "/connectors/src")
    assert views["src"]["status"]["tasks"][0]["state"] == "RUNNING"
    api.json("PUT", "/connectors/src/pause", status=202)
    api.wait_state("src", "PAUSED", "PAUSED")
    api.json("PUT", "/connectors/src/stop", status=204)
    api.wait_state("src", "STOPPED")
    api.json("POST", "/connectors/src/restart", status=204)
    assert api.state("src") == "STOPPED"
    api.json("PUT", "/connectors/src/resume", status=202)
    api.wait_state("src", "RUNNING", "RUNNING")
    api.json("DELETE", "/connectors/src", status=204)
    assert api("GET", "/connectors/src").status_code == 404


@pytest.mark.parametrize(
    "body, status",
    [
        param({"config": {}}, 400, id="no name"),
        param({"config": {"name": "b"}}, 400, id="a name in the config alone"),
        param({"name": "", "config": {}}, 400, id="an empty name"),
        param({"name": "a\nb", "config": {}}, 400, id="a line end in the name"),
        param({"name": "a"}, 400, id="no config"),
        param({"name": "a", "config": "text"}, 400, id="a config that is a text"),
        param({"name": "a", "config": {"x": {"y": 1}}}, 400, id="a value that is an object"),
        param({"name": "a", "config": {"name": "b"}}, 400, id="two names"),
        param({"name": "a", "config": {}}, 400, id="no class"),
        param({"name": "a", "config": {"connector.class": "no.such.Class"}}, 400, id="an unknown class"),
        param({"name": "a", "config": {"connector.class": SOURCE}}, 400, id="a key that is missing"),
        param({"name": "a", "config": {"connector.class": SOURCE, "topic": "t"}, "initial_state": "GONE"}, 400, id="an unknown state"),
    ],
)
def test_what_cannot_be_created(api, body, status):
    assert api("POST", "/connectors", body).status_code == status
    assert api.json("GET", "/connectors") == []


def test_a_name_is_taken_once(api, config):
    api.create("a", config)
    api.create("a", config, status=409)


def test_numbers_and_booleans_become_texts(api, config):
    assert api.create("a", {**config, "tasks.max": 1, "extra": True})["config"] == {**config, "extra": "true", "name": "a"}


@pytest.mark.parametrize("name", ["with space", "ünï-✓", "pl+us", "semi;colon?q=1&x#h"])
def test_names_are_found_in_addresses(api, config, name):
    from urllib.parse import quote

    answer = api("POST", "/connectors", {"name": f" {name} ", "config": config})
    assert answer.json()["name"] == name
    assert api("GET", answer.headers["location"]).json()["config"]["name"] == name
    assert api("DELETE", f"/connectors/{quote(name)}").status_code == 204


@pytest.mark.parametrize("state, shown", [("RUNNING", ["RUNNING", "RUNNING"]), ("paused", ["PAUSED"]), ("STOPPED", ["STOPPED"])])
def test_the_first_state(api, config, state, shown):
    api.create("a", config, initial_state=state)
    api.wait_state("a", *shown)


def test_put_config_creates_and_changes(api, config):
    api.json("PUT", "/connectors/p/config", config, 201)
    assert api.json("PUT", "/connectors/p/config", {**config, "batch.size": "50"})["config"]["batch.size"] == "50"
    api.json("PUT", "/connectors/p/config", {**config, "name": "other"}, 400)
    api.json("PUT", "/connectors/p/config", {**config, "batch.size": "many"}, 400)
    assert api.json("GET", "/connectors/p/config") == {**config, "batch.size": "50", "name": "p"}


@pytest.mark.parametrize(
    "patch, status, change",
    [
        param({"batch.size": 70, "x": "v"}, 200, {"batch.size": "70", "x": "v"}, id="keys are set"),
        param({"x": None}, 200, {}, id="null for what is not there"),
        param({}, 200, {}, id="nothing"),
        param({"topic": None}, 400, {}, id="a key that is needed"),
        param({"name": None}, 400, {}, id="the name"),
        param({"batch.size": "abc"}, 400, {}, id="a wrong value"),
        param({"connector.class": "no.such.Class"}, 400, {}, id="an unknown class"),
    ],
)
def test_patch_config(api, config, patch, status, change):
    api.create("p", config)
    api.json("PATCH", "/connectors/p/config", patch, status)
    assert api.json("GET", "/connectors/p/config") == {**config, "name": "p", **change}


@pytest.mark.parametrize(
    "query, status, states",
    [
        ("", 204, None),
        ("?includeTasks=maybe", 204, None),
        ("?includeTasks=false&includeTasks=true", 204, None),
        ("?includeTasks=true", 202, ["RESTARTING", "RESTARTING"]),
        ("?onlyFailed=true", 202, ["RUNNING", "RUNNING"]),
        ("?includeTasks=true&onlyFailed=true", 202, ["RUNNING", "RUNNING"]),
    ],
)
def test_restart(api, config, query, status, states):
    api.create("a", config)
    api.wait_state("a", "RUNNING", "RUNNING")
    shown = api.json("POST", f"/connectors/a/restart{query}", status=status)
    if states:
        assert [shown["connector"]["state"], shown["tasks"][0]["state"]] == states
    api.wait_state("a", "RUNNING", "RUNNING")
    api.json("POST", "/connectors/a/tasks/0/restart", status=204)
    api.json("POST", "/connectors/a/tasks/7/restart", status=404)
    api.wait_state("a", "RUNNING", "RUNNING")


def test_a_password_is_never_shown_and_stays_when_it_comes_back_hidden(api):
    config = {"connector.class": "tests.rest.plugins:SecretSource", "secret": "s3cr3t", "producer.override.ssl.key.password": "s3cr3t"}
    shown = api.create("s", config)
    hidden = {**config, "secret": "[hidden]", "producer.override.ssl.key.password": "[hidden]", "name": "s"}
    assert shown["config"] == hidden
    for path in ("", "/config", "/tasks", "/status"):
        assert "s3cr3t" not in api("GET", f"/connectors/s{path}").text
    api.json("PUT", "/connectors/s/config", {**hidden, "other": "1"})
    api.json("PATCH", "/connectors/s/config", {"secret": "[hidden]"})
    assert api.worker.herder._queries.get("s").config["secret"] == "s3cr3t"
    verdict = api("PUT", "/connector-plugins/tests.rest.plugins:SecretSource/config/validate", config)
    assert "s3cr3t" not in verdict.text
    assert verdict.json()["error_count"] == 1  # the name is missing


def test_active_topics_last_until_they_are_reset(tmp_path, source_file):
    config = {"connector.class": SOURCE, "file": str(source_file), "topic": "used"}
    with LocalWorker(tmp_path) as worker:
        api = Api(worker)
        assert api.json("GET", "/connectors/no/topics") == {"no": {"topics": []}}
        api.create("a", config)
        worker.sink("k", tmp_path / "out", "used")
        for name in ("a", "k"):
            wait_for(lambda name=name: api.json("GET", f"/connectors/{name}/topics") == {name: {"topics": ["used"]}}, what="its topics")
    with LocalWorker(tmp_path) as worker:
        api = Api(worker)
        assert api.json("GET", "/connectors/a/topics") == {"a": {"topics": ["used"]}}
        api.json("PUT", "/connectors/a/topics/reset", status=202)
        assert api.json("GET", "/connectors/a/topics") == {"a": {"topics": []}}
        assert api.json("GET", "/connectors/k/topics") == {"k": {"topics": ["used"]}}


@pytest.mark.parametrize("key, get, reset", [("enable", 403, 403), ("allow.reset", 200, 403)])
def test_topics_may_be_forbidden(tmp_path, key, get, reset):
    with LocalWorker(tmp_path, **{f"topic.tracking.{key}": "false"}) as worker:
        api = Api(worker)
        assert api("GET", "/connectors/a/topics").status_code == get
        assert api("PUT", "/connectors/a/topics/reset").status_code == reset


def test_a_connector_that_hangs_keeps_nobody_waiting(api, config):
    from tests.rest.plugins import HANG

    api.create("hangs", {"connector.class": "tests.rest.plugins:HangingSource"}, initial_state="STOPPED")
    for _ in range(60):  # more than a pool of threads that all share would have
        api.json("PUT", "/connectors/hangs/resume", status=202)
    try:
        api.create("lives", config)
        api.wait_state("lives", "RUNNING", "RUNNING")
        assert set(api.json("GET", "/connectors?expand=status")) == {"hangs", "lives"}
    finally:
        HANG.set()


def test_the_pipeline_tells_engines_segments_and_reasons(api, config):
    api.create("chained", {**config, "transforms": "h", "transforms.h.type": "HoistField$Value", "transforms.h.field": "line"})
    wait_for(lambda: [task["records"]["rows"] for task in api.json("GET", "/connectors/chained/pipeline")["tasks"]] == [3])
    said = api.json("GET", "/connectors/chained/pipeline")
    (task,) = said["tasks"]
    assert (said["name"], said["type"], task["id"]) == ("chained", "source", 0)
    assert task["records"] == {"identity": 0, "rows": 3, "columns": 0, "spark": 0} and task["redone"] == task["failed_batches"] == 0
    assert task["by_rows"] == [{"reason": "pipeline.engine=rows", "records": 3}] and task["spark_plans"] == []
    assert task["chain"][0].startswith("source: h (") and "HoistField" in task["chain"][0]


def test_the_pipeline_of_a_connector_without_tasks_is_empty(api, config):
    api.create("resting", config)
    api.json("PUT", "/connectors/resting/stop", status=204)
    api.wait_state("resting", "STOPPED")
    assert api.json("GET", "/connectors/resting/pipeline") == {"name": "resting", "type": "source", "tasks": []}
    api.json("GET", "/connectors/nobody/pipeline", status=404)
