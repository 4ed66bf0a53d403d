"""/connectors/…/offsets: the cases of Connect's own suite. Those of its distributed mode alone (an offsets topic of one's own, exactly-once
sources) have no counterpart."""

import uuid

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.rest.blocking import BLOCK
from tests.rest.conftest import Api
from tests.runtime.local import LocalWorker, wait_for
from tests.suite.patience import PATIENCE_SECONDS

TASKS, PARTITIONS, RECORDS = 2, 3, 10
# Which log a connector works on, and by which group: its own, another group, another cluster.
PLACES = ["own", "another group", "another cluster"]


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory):
    """Another cluster: the log of a second worker."""
    with LocalWorker(tmp_path_factory.mktemp("elsewhere")) as worker:
        yield worker.bootstrap


@pytest.fixture
def make(api, elsewhere):
    """make(kind, place): a connector of that kind there; returns (its name, its configuration, bootstrap)."""

    def make(kind, place):
        name = topic = f"{kind}-{uuid.uuid4().hex[:8]}"
        bootstrap = elsewhere if place == "another cluster" else api.worker.bootstrap
        config = {"connector.class": f"tests.rest.counting:Counting{kind.title()}", "tasks.max": str(TASKS)}
        config |= {"topic": topic, "records": str(RECORDS)} if kind == "source" else {"topics": topic}
        if place == "another cluster":
            for client in ("admin", "producer" if kind == "source" else "consumer"):
                config[f"{client}.override.bootstrap.servers"] = elsewhere
        if place == "another group":
            config["consumer.override.group.id"] = f"{name}-group"
        if kind == "sink":
            fill(bootstrap, topic)
        api.create(name, config)
        api.wait_state(name, "RUNNING", *["RUNNING"] * TASKS)
        return name, config, bootstrap

    return make


def fill(bootstrap, topic):
    """A topic with some records in each partition."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(PATIENCE_SECONDS)
    producer = Producer({"bootstrap.servers": bootstrap})
    for partition in range(PARTITIONS):
        for number in range(RECORDS):
            producer.produce(topic, str(number), partition=partition)
    assert producer.flush(10) == 0


def offsets(api, name):
    found = api.json("GET", f"/connectors/{name}/offsets")["offsets"]
    return {tuple(entry["partition"].values()): next(iter(entry["offset"].values())) for entry in found}


def wait_offsets(api, name, expected):
    wait_for(lambda: offsets(api, name) == expected, what=f"the offsets {expected}, not {offsets(api, name)}")


def of_sink(name, offset, partitions=range(PARTITIONS)):
    return {(name, partition): offset for partition in partitions}


def of_source(name, offset):
    return {(f"{name}-{task}",): offset for task in range(TASKS)}


def entries(kind, name, offset, partitions=range(PARTITIONS)):
    if kind == "source":
        return [{"partition": {"task.id": f"{name}-{task}"}, "offset": {"saved": offset}} for task in range(TASKS)]
    return [
        {"partition": {"kafka_topic": name, "kafka_partition": partition}, "offset": None if offset is None else {"kafka_offset": offset}}
        for partition in partitions
    ]


def stop(api, name):
    api.json("PUT", f"/connectors/{name}/stop", status=204)
    api.wait_state(name, "STOPPED")


def test_none_of_a_connector_that_is_not_there(api):
    some = {"offsets": [{"partition": {}, "offset": {}}]}
    for method, body in (("GET", None), ("PATCH", some), ("DELETE", None)):
        assert api(method, "/connectors/non-existent/offsets", body).status_code == 404


@pytest.mark.parametrize("kind, place", [*(("sink", place) for place in PLACES), ("source", "own"), ("source", "another cluster")])
def test_seen_altered_and_reset(api, make, kind, place):
    name, config, bootstrap = make(kind, place)
    all_read = of_sink(name, RECORDS) if kind == "sink" else of_source(name, RECORDS)
    wait_offsets(api, name, all_read)
    for change in ("PATCH", "DELETE"):  # only of a stopped one
        body = {"offsets": entries(kind, name, 5)} if change == "PATCH" else None
        assert api(change, f"/connectors/{name}/offsets", body).status_code == 400
    api.json("PUT", f"/connectors/{name}/pause", status=202)
    api.wait_state(name, "PAUSED", *["PAUSED"] * TASKS)
    assert api("DELETE", f"/connectors/{name}/offsets").status_code == 400

    stop(api, name)
    if kind == "sink":  # one partition is reset, the others are set
        changed = [*entries(kind, name, None, [0]), *entries(kind, name, 5, [1, 2])]
        expected = of_sink(name, 5, [1, 2])
    else:
        changed, expected = entries(kind, name, 5), of_source(name, 5)
    first = api.json("PATCH", f"/connectors/{name}/offsets", {"offsets": changed})
    assert offsets(api, name) == expected

    config["managed"] = "true"  # now the connector says that nothing more is needed
    api.json("PUT", f"/connectors/{name}/config", config)
    assert api.state(name) == "STOPPED"
    again = api.json("PATCH", f"/connectors/{name}/offsets", {"offsets": entries(kind, name, 3)})
    assert first["message"] != again["message"] and first["message"].startswith(again["message"])
    api.json("PUT", f"/connectors/{name}/resume", status=202)
    api.wait_state(name, "RUNNING", *["RUNNING"] * TASKS)
    wait_offsets(api, name, all_read)

    stop(api, name)
    for _ in range(2):  # a second time there is nothing to reset, which is no error
        assert api.json("DELETE", f"/connectors/{name}/offsets")["message"]
        assert offsets(api, name) == {}
    api.json("PUT", f"/connectors/{name}/resume", status=202)
    wait_offsets(api, name, all_read)

    if kind == "sink":
        admin = AdminClient({"bootstrap.servers": bootstrap})
        groups = {group.group_id for group in admin.list_consumer_groups().result(PATIENCE_SECONDS).valid}
        own, other = f"connect-{name}", f"{name}-group"
        assert (own in groups, other in groups) == (place != "another group", place == "another group")


@pytest.mark.parametrize(
    "kind, body",
    [
        *(
            (kind, body)
            for kind in ("sink", "source")
            for body in ([], {}, {"key": []}, {"offsets": []}, {"offsets": {}}, {"offsets": [123]}, {"offsets": [{"partition": []}]}, {"offsets": "x"})
        ),
        *(
            ("sink", {"offsets": [entry]})
            for entry in (
                {},
                {"partition": None, "offset": None},
                {"partition": {}, "offset": None},
                {"partition": {"kafka_topic": "test"}, "offset": None},
                {"partition": {"kafka_topic": "test", "kafka_partition": "not a number"}, "offset": None},
                {"partition": {"kafka_topic": "test", "kafka_partition": -1}, "offset": None},
                {"partition": {"kafka_topic": "test", "kafka_partition": 1}, "offset": {}},
                {"partition": {"kafka_topic": "test", "kafka_partition": 1}, "offset": {"kafka_offset": "not a number"}},
                {"partition": {"kafka_topic": "test", "kafka_partition": 1}, "offset": {"kafka_offset": -1}},
            )
        ),
        ("source", {"offsets": [{"key": "val"}]}),
    ],
)
def test_bodies_that_will_not_do(api, kind, body):
    config = {"connector.class": f"tests.rest.counting:Counting{kind.title()}", **({"topics": "t"} if kind == "sink" else {})}
    api.create("bad", config, initial_state="STOPPED")
    answer = api("PATCH", "/connectors/bad/offsets", body)
    assert answer.status_code == 400 and answer.json()["message"], answer.text


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
def test_a_sink_task_that_did_not_stop_could_undo_the_change(tmp_path, method):
    """So it is refused while that task is in the group."""
    with LocalWorker(tmp_path, task__shutdown__graceful__timeout__ms=500) as worker:
        api, topic = Api(worker), "zombie"
        fill(worker.bootstrap, topic)
        body = {"offsets": entries("sink", topic, 4)} if method == "PATCH" else None
        BLOCK.at("Task.stop")
        try:
            api.create("z", {"connector.class": "tests.rest.blocking:BlockingSink", "topics": topic})
            wait_offsets(api, "z", of_sink(topic, RECORDS))
            api.json("PUT", "/connectors/z/stop", status=204)
            assert BLOCK.reached.wait(PATIENCE_SECONDS)
            api.wait_state("z", "STOPPED")
            answer = api(method, "/connectors/z/offsets", body)
            assert answer.status_code == 409, answer.text
            assert offsets(api, "z") == of_sink(topic, RECORDS)
        finally:
            BLOCK.release()
        wait_for(lambda: api(method, "/connectors/z/offsets", body).status_code == 200, what="the task to have left")
        assert offsets(api, "z") == (of_sink(topic, 4) if method == "PATCH" else {})
