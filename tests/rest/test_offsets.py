"""/connectors/…/offsets: seen at any time, changed only while STOPPED."""

import pytest
from pytest import param

from tests.rest.conftest import SINK
from tests.runtime.local import wait_for


@pytest.fixture
def stopped_source(api, config):
    """A stopped source that has read its file: (api, its partition)."""
    api.create("so", config)
    wait_for(lambda: offsets(api, "so"), what="an offset")
    stop(api, "so")
    yield api, {"filename": config["file"]}
    api("DELETE", "/connectors/so/offsets")


@pytest.fixture
def stopped_sink(api, config, tmp_path):
    """A stopped sink that has read three records: (api, its topic, its file)."""
    api.create("feeds", config)
    out = tmp_path / "out.txt"
    api.create("ko", {"connector.class": SINK, "file": str(out), "topics": config["topic"]})
    wait_for(lambda: offsets(api, "ko") == [entry(config["topic"], 3)], what="the committed offset")
    stop(api, "ko")
    yield api, config["topic"], out
    api("DELETE", "/connectors/ko/offsets")
    stop(api, "feeds")
    api("DELETE", "/connectors/feeds/offsets")


def offsets(api, name):
    return api.json("GET", f"/connectors/{name}/offsets")["offsets"]


def stop(api, name):
    api.json("PUT", f"/connectors/{name}/stop", status=204)
    api.wait_state(name, "STOPPED")


def entry(topic, offset, partition=0):
    return {"partition": {"kafka_topic": topic, "kafka_partition": partition}, "offset": {"kafka_offset": offset}}


def patch(api, name, *entries, status=200):
    return api.json("PATCH", f"/connectors/{name}/offsets", {"offsets": list(entries)}, status)


@pytest.mark.parametrize("state", ["RUNNING", "PAUSED"])
def test_only_a_stopped_connector_is_changed(api, config, state):
    api.create("a", config, initial_state=state)
    for method, body in (("PATCH", {"offsets": [{"partition": {"filename": "x"}, "offset": {"position": 1}}]}), ("DELETE", None)):
        assert api(method, "/connectors/a/offsets", body).status_code == 400


def test_a_sources_own_notes_are_not_shown(stopped_source):
    api, partition = stopped_source
    assert offsets(api, "so") == [{"partition": partition, "offset": {"position": 14}}]
    assert any(key.startswith("_") for _, offset in api.worker.process.worker.offsets.all("so") for key in offset)


def test_a_source_goes_on_from_where_it_is_set(stopped_source, config):
    api, partition = stopped_source
    patch(api, "so", {"partition": partition, "offset": {"position": 4, "_id": "forged"}}, {"partition": {"filename": "other"}, "offset": {"position": 2}})
    assert {"partition": partition, "offset": {"position": 4}} in offsets(api, "so")
    assert dict(api.worker.process.worker.offsets.all("so")[0][1]) == {"position": 4}
    api.json("PUT", "/connectors/so/resume", status=202)
    assert api.worker.values(config["topic"], 5) == [b"one", b"two", b"three", b"two", b"three"]
    stop(api, "so")
    patch(api, "so", {"partition": partition})
    assert offsets(api, "so") == [{"partition": {"filename": "other"}, "offset": {"position": 2}}]
    assert api.json("DELETE", "/connectors/so/offsets")["message"]
    assert offsets(api, "so") == []
    api.json("DELETE", "/connectors/so/offsets")


@pytest.mark.parametrize(
    "body",
    [
        param({}, id="nothing"),
        param({"offsets": None}, id="null"),
        param({"offsets": []}, id="no offset"),
        param({"offsets": ["x"]}, id="a text"),
        param({"offsets": [{"partition": "x", "offset": {}}]}, id="a partition that is a text"),
        param({"offsets": [{"offset": {"position": 4}}]}, id="no partition"),
        param({"offsets": [{"partition": {"file": "x"}, "offset": {"position": 4}}]}, id="another partition"),
        param({"offsets": [{"partition": {"filename": "x"}, "offset": {"position": "four"}}]}, id="a word"),
        param({"offsets": [{"partition": {"filename": "x"}, "offset": {"position": -1}}]}, id="a negative one"),
        param({"offsets": [{"partition": {"filename": "x"}, "offset": {"position": 4.5}}]}, id="a broken one"),
    ],
)
def test_what_a_source_does_not_take(stopped_source, body):
    api, partition = stopped_source
    assert api("PATCH", "/connectors/so/offsets", body).status_code == 400
    assert offsets(api, "so") == [{"partition": partition, "offset": {"position": 14}}]


def test_a_sink_reads_again_from_where_it_is_set(stopped_sink):
    api, topic, out = stopped_sink
    patch(api, "ko", entry(topic, 1))
    assert offsets(api, "ko") == [entry(topic, 1)]
    api.json("PUT", "/connectors/ko/resume", status=202)
    wait_for(lambda: out.read_text() == "one\ntwo\nthree\ntwo\nthree\n", what="the lines again")
    stop(api, "ko")
    patch(api, "ko", {**entry(topic, 0), "offset": None})
    assert offsets(api, "ko") == []
    patch(api, "ko", entry(topic, "2", "0"))
    assert offsets(api, "ko") == [entry(topic, 2)]
    for _ in range(2):  # the second finds nothing to reset
        api.json("DELETE", "/connectors/ko/offsets")
        assert offsets(api, "ko") == []


def test_what_a_sink_does_not_take(stopped_sink):
    api, topic, _ = stopped_sink
    for bad in (
        entry(topic, "abc"),
        entry(topic, -1),
        entry(topic, True),
        entry(topic, 1, "x"),
        entry("no-such-topic", 1),
        {"partition": {"topic": topic}, "offset": {"kafka_offset": 1}},
        {"partition": None, "offset": None},
        {**entry(topic, 1), "offset": {"offset": 1}},
    ):
        assert patch(api, "ko", bad, status=400)["message"]
    assert offsets(api, "ko") == [entry(topic, 3)]


@pytest.mark.kafka
def test_a_sinks_offsets_on_a_real_broker(kafka, tmp_path):
    import uuid

    from tests.rest.conftest import SOURCE, Api
    from tests.runtime.local import LocalWorker

    topic = f"rest-{uuid.uuid4().hex[:8]}"
    (tmp_path / "in").write_text("one\ntwo\n")
    with LocalWorker(tmp_path, bootstrap__servers=kafka) as worker:
        api = Api(worker)
        api.create(f"s-{topic}", {"connector.class": SOURCE, "file": str(tmp_path / "in"), "topic": topic})
        name = f"k-{topic}"
        api.create(name, {"connector.class": SINK, "file": str(tmp_path / "out"), "topics": topic})
        wait_for(lambda: offsets(api, name) == [entry(topic, 2)], what="the committed offset")
        stop(api, name)
        patch(api, name, entry(topic, 1))
        assert offsets(api, name) == [entry(topic, 1)]
        patch(api, name, entry("none-" + topic, 1), status=400)
        api.json("DELETE", f"/connectors/{name}/offsets")
        assert offsets(api, name) == []
