"""What the web page does with topics, groups and dead letters, over HTTP without a browser."""

import pytest
from confluent_kafka import Producer

from tests.rest.conftest import SINK
from tests.runtime.local import wait_for

CONTEXT = "__connect.errors."


def produce(api, topic, *records):
    producer = Producer({"bootstrap.servers": api.worker.bootstrap})
    for record in records:
        producer.produce(topic, **record)
    assert producer.flush(10) == 0


def letter(number, topic, error="org.apache.kafka.connect.errors.DataException"):
    context = {"topic": topic, "partition": "0", "offset": str(number), "connector.name": "c", "stage": "TRANSFORMATION",
               "exception.class.name": error, "exception.message": "not that", "exception.stacktrace": "at x"}  # fmt: skip
    headers = [("own", b"h"), *((CONTEXT + name, value.encode()) for name, value in context.items())]
    return {"key": b"k%d" % number, "value": b"v%d" % number, "headers": headers}


def values(api, topic, **query):
    return [record["value"]["text"] for record in api.json("GET", f"/ui/api/topics/{topic}/records", params=query)["records"]]


# --- Topics --------------------------------------------------------------------------------------------------------


def test_a_topic_is_created_and_altered(api):
    api.json("POST", "/ui/api/topics/new", {"name": "made", "partitions": 2, "configs": {"retention.ms": "60000"}}, 201)
    configs = lambda: {each["name"]: each["value"] for each in api.json("GET", "/ui/api/topics/made/configs") if each["own"]}  # noqa: E731
    assert configs() == {"retention.ms": "60000"}
    api.json("PATCH", "/ui/api/topics/made/configs", {"configs": {"retention.ms": None, "cleanup.policy": "compact"}, "partitions": 3})
    assert configs() == {"cleanup.policy": "compact"}
    assert [each["partitions"] for each in api.json("GET", "/ui/api/topics") if each["name"] == "made"] == [3]


@pytest.mark.parametrize(
    "method, path, body, status, said",
    [
        ("POST", "/ui/api/topics/new", {"name": "there"}, 409, "already"),
        ("POST", "/ui/api/topics/new", {}, 400, "needs a 'name'"),
        ("POST", "/ui/api/topics/new", {"name": "a", "partitions": 0}, 400, "from 1 to 10000"),
        ("POST", "/ui/api/topics/new", {"name": "a", "partitions": True}, 400, "from 1 to 10000"),
        ("POST", "/ui/api/topics/new", {"name": "a", "size": 1}, 400, "Unknown member 'size'"),
        ("POST", "/ui/api/topics/new", {"name": "a", "configs": {"retention.ms": None}}, 400, "an object with string values"),
        ("POST", "/ui/api/topics/new", [], 400, "must be a JSON object"),
        ("PATCH", "/ui/api/topics/gone/configs", {"configs": {}}, 404, "no topic 'gone'"),
        ("GET", "/ui/api/topics/gone/configs", None, 404, "no topic 'gone'"),
        ("GET", "/ui/api/dead-letters/gone", None, 404, "no topic 'gone'"),
        ("GET", "/ui/api/dead-letters/there?limit=0", None, 400, "'limit' must be from 1 to 500"),
        ("POST", "/ui/api/dead-letters/there/replay", {"all": True}, 400, "Unknown member 'all'"),
        ("POST", "/ui/api/dead-letters/there/replay", {"offset": 1}, 400, "needs both"),
        ("POST", "/ui/api/dead-letters/there/replay", {"partition": 0, "offset": -1}, 400, "0 or more"),
    ],
)
def test_a_wrong_request_is_told(api, method, path, body, status, said):
    api("POST", "/ui/api/topics/new", {"name": "there"})
    answer = api(method, path, body)
    assert (answer.status_code, said in answer.json()["message"]) == (status, True), answer.text


def test_records_are_read_from_an_offset_or_a_time(api):
    topic = "sought"
    produce(api, topic, *({"value": b"%d" % number, "timestamp": 1000 * number} for number in range(1, 9)))
    assert values(api, topic, offset=5, limit=2) == ["6", "7"]
    assert values(api, topic, timestamp=6500) == ["7", "8"]
    assert values(api, topic, offset=99) == values(api, topic, timestamp=99_000) == []


# --- Groups --------------------------------------------------------------------------------------------------------


def test_groups_are_shown_with_their_lag(api, tmp_path):
    produce(api, "grouped", *[{"value": b"v"}] * 3)
    api.create("grouped-sink", {"connector.class": SINK, "topics": "grouped", "file": str(tmp_path / "out")})
    wanted = {"topic": "grouped", "partition": 0, "committed": 3, "end": 3, "lag": 0}
    wait_for(lambda: any(group["name"] == "connect-grouped-sink" and wanted in group["partitions"] for group in api.json("GET", "/ui/api/groups")))


# --- Dead letters --------------------------------------------------------------------------------------------------


def test_dead_letters_are_shown_and_sent_back_once(api, tmp_path):
    queue, origin = "letters-queue", "letters-origin"
    produce(api, queue, *(letter(number, origin) for number in range(3)))
    api("POST", "/ui/api/topics/new", {"name": origin})
    dead = {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": queue}
    api.create("letters", {"connector.class": SINK, "topics": origin, "file": str(tmp_path / "out"), **dead}, initial_state="STOPPED")
    assert {"queue": queue, "connectors": ["letters"], "exists": True} in api.json("GET", "/ui/api/dead-letters")
    found = api.json("GET", f"/ui/api/dead-letters/{queue}")
    first = next(each for each in found["letters"] if each["offset"] == 0)
    assert found["total"] == 3 and first["origin"] == f"{origin}-0-0" and first["message"] == "not that" and not first["replayed"]
    assert [header["name"] for header in first["headers"]] == ["own"], "what reports the failure is told by itself"

    replay = lambda **body: api.json("POST", f"/ui/api/dead-letters/{queue}/replay", body)  # noqa: E731
    assert replay(dry_run=True)["sent"] == {origin: 3} and values(api, origin) == []
    assert replay(partition=0, offset=1)["sent"] == {origin: 1} and values(api, origin) == ["v1"]
    assert replay() == {"sent": {origin: 2}, "before": 1, "left": {}}
    assert sorted(values(api, origin)) == ["v0", "v1", "v2"] and replay()["sent"] == {}
    assert all(each["replayed"] for each in api.json("GET", f"/ui/api/dead-letters/{queue}")["letters"])
