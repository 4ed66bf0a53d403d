"""What the web page asks for beyond Connect's API, its files, and who may change things: over HTTP, without a browser."""

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.rest.conftest import SINK, Api
from tests.runtime.local import LocalWorker, wait_for
from tests.suite.patience import PATIENCE_SECONDS


def _produce(worker, topic, *records, partition=0):
    producer = Producer({"bootstrap.servers": worker.bootstrap})
    for record in records:
        producer.produce(topic, partition=partition, **record)
    assert producer.flush(10) == 0


def _topic(worker, name, partitions=1):
    admin = AdminClient({"bootstrap.servers": worker.bootstrap})  # the future dies with its client
    admin.create_topics([NewTopic(name, partitions, 1)])[name].result(PATIENCE_SECONDS)
    return name


@pytest.fixture
def topic(api, request):
    return _topic(api.worker, f"t-{abs(hash(request.node.name))}")


def _records(api, topic, **query):
    return api.json("GET", f"/ui/api/topics/{topic}/records", params=query)["records"]


@pytest.mark.parametrize(
    "data, shown",
    [
        pytest.param(b"plain", ("plain", "utf-8", False), id="text"),
        pytest.param("æ€😀".encode(), ("æ€😀", "utf-8", False), id="text of multiple bytes a character"),
        pytest.param(b"\xff\x00", ("ff 00", "hex", False), id="what is not UTF-8 is hex"),
        pytest.param(b"", ("", "utf-8", False), id="empty"),
        pytest.param(b"x" * (16 << 10), ("x" * (16 << 10), "utf-8", False), id="as long as may be"),
        pytest.param(b"x" * 100_000, ("x" * (16 << 10), "utf-8", True), id="what is long is cut"),
        pytest.param("x€".encode() * 10_000, ("x€" * (4 << 10), "utf-8", True), id="cut at the end of a character"),
        pytest.param(b"x" + "€".encode() * 10_000, ("x" + "€" * 5461, "utf-8", True), id="a character that the cut has torn is left out"),
    ],
)
def test_a_value_is_shown(api, topic, data, shown):
    _produce(api.worker, topic, {"value": data})
    (record,) = _records(api, topic)
    value = record["value"]
    assert (value["text"], value["encoding"], value["cut"], value["bytes"]) == (*shown, len(data))


def test_a_record_is_shown_whole(api, topic):
    _produce(api.worker, topic, {"key": b"k", "value": None, "headers": [("a", b"1"), ("b", None), ("a", b"\xfe")], "timestamp": 1234})
    (record,) = _records(api, topic)
    assert (record["partition"], record["offset"], record["timestamp"], record["value"], record["key"]["text"]) == (0, 0, 1234, None, "k")
    assert [(each["name"], each["value"] and each["value"]["text"]) for each in record["headers"]] == [("a", "1"), ("b", None), ("a", "fe")]


def test_the_newest_come_first_and_no_more_than_asked_for(api, topic):
    _produce(api.worker, topic, *({"value": b"%d" % number} for number in range(1000)))
    assert [record["value"]["text"] for record in _records(api, topic, limit=3)] == ["999", "998", "997"]
    assert len(_records(api, topic)) == 50


def test_partitions_are_looked_at_together_or_alone(api):
    topic = _topic(api.worker, "three-partitions", 3)
    for partition, timestamp in ((2, 10), (0, 30), (1, 20)):
        _produce(api.worker, topic, {"value": b"%d" % partition, "timestamp": timestamp}, partition=partition)
    assert [record["partition"] for record in _records(api, topic)] == [0, 1, 2]
    assert [record["partition"] for record in _records(api, topic, partition=2)] == [2]
    (shown,) = [each for each in api.json("GET", "/ui/api/topics") if each["name"] == topic]
    assert shown == {"name": topic, "partitions": 3, "records": 3}


def test_large_records_are_fewer_but_the_newest(api):
    topic = _topic(api.worker, "large-records")
    size = 900_000
    _produce(api.worker, topic, *({"value": b"%03d" % number + b"x" * size} for number in range(40)))
    found = [record["value"]["text"][:3] for record in _records(api, topic, limit=40)]
    assert 0 < len(found) < 40
    assert found == [f"{number:03d}" for number in range(39, 39 - len(found), -1)]


@pytest.mark.kafka
def test_a_real_brokers_records_are_seen(kafka, tmp_path):
    with LocalWorker(tmp_path, bootstrap__servers=kafka) as worker:
        topic = _topic(worker, f"seen-{tmp_path.name}", 2)
        _produce(worker, topic, *({"key": b"k", "value": b"%d" % number, "headers": [("h", b"v")]} for number in range(100)), partition=1)
        api = Api(worker)
        assert [record["value"]["text"] for record in _records(api, topic, limit=2)] == ["99", "98"]
        assert _records(api, topic, partition=0) == []
        assert {"name": topic, "partitions": 2, "records": 100} in api.json("GET", "/ui/api/topics")


@pytest.mark.parametrize(
    "path, status",
    [
        ("/ui/api/topics/no-such-topic/records", 404),
        ("/ui/api/topics/{topic}/records?partition=7", 404),
        ("/ui/api/topics/{topic}/records?limit=0", 400),
        ("/ui/api/topics/{topic}/records?limit=501", 400),
        ("/ui/api/topics/{topic}/records?limit=many", 400),
        ("/ui/api/throughput?since=-1", 400),
        ("/ui/api/lag?connector=nobody", 404),
        ("/ui/api/lag", 404),
        ("/ui/no-such-file.js", 404),
        ("/ui/..%2fbrowse.py", 400),
    ],
)
def test_what_is_not_there_is_told(api, topic, path, status):
    assert api("GET", path.format(topic=topic)).status_code == status


def test_lag_counts_what_a_sink_has_not_committed(api, topic, tmp_path):
    _produce(api.worker, topic, *({"value": b"v"} for _ in range(5)))
    api.create("behind", {"connector.class": SINK, "topics": topic, "file": str(tmp_path / "out")})
    lag = {"topic": topic, "partition": 0, "committed": 5, "end": 5, "lag": 0}
    wait_for(lambda: api.json("GET", "/ui/api/lag?connector=behind") == [lag], what="the sink's commit")
    api("PUT", "/connectors/behind/stop")
    api.wait_state("behind", "STOPPED")
    _produce(api.worker, topic, *({"value": b"v"} for _ in range(3)))
    assert api.json("GET", "/ui/api/lag?connector=behind") == [{**lag, "end": 8, "lag": 3}]


def test_throughput_is_measured_while_somebody_looks(api, config):
    api.json("GET", "/ui/api/throughput")
    api.create("counted", config)
    wait_for(lambda: api.json("GET", "/ui/api/throughput")["totals"].get("counted") == 3, what="three records")

    def measured():
        return [sample for sample in api.json("GET", "/ui/api/throughput")["samples"] if sample["rates"].get("counted")]

    (sample,) = wait_for(measured, what="a rate")
    assert 0 < sample["rates"]["counted"] <= 1.6  # three records in one sample of two seconds, or of a little more
    later = api.json("GET", f"/ui/api/throughput?since={sample['number']}")["samples"]
    assert all(each["number"] > sample["number"] for each in later)


# ---- the page's files


def test_the_page_is_served_with_a_strict_policy(api):
    answer = api("GET", "/ui", follow_redirects=True)
    assert answer.status_code == 200 and answer.url.path == "/ui/" and answer.headers["content-type"].startswith("text/html")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_files_are_not_sent_twice(api):
    first = api("GET", "/ui/app.js")
    again = api("GET", "/ui/app.js", headers={"If-None-Match": first.headers["etag"]})
    assert (first.status_code, again.status_code, again.content) == (200, 304, b"")
    assert first.headers["content-type"].startswith("text/javascript")


def test_nothing_comes_from_elsewhere():
    import pathlib

    import standalone.rest.ui_pages as pages

    for path in (pathlib.Path(pages.__file__).parent / "ui").iterdir():
        text = path.read_text().replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in text and "https://" not in text and "innerHTML" not in text, path


def test_the_page_can_be_turned_off(tmp_path):
    with LocalWorker(tmp_path, rest__ui__enable="false") as worker:
        api = Api(worker)
        assert [api("GET", path).status_code for path in ("/ui", "/ui/", "/ui/app.js", "/ui/api/topics")] == [404] * 4
        assert api("GET", "/connectors").status_code == 200


# ---- changes that other origins' pages ask for

OWN = "the worker's own"


@pytest.mark.parametrize(
    "allowed, headers, status",
    [
        pytest.param("", {}, 202, id="no browser"),
        pytest.param("", {"Origin": OWN}, 202, id="the worker's own page"),
        pytest.param("", {"Origin": "http://evil.example"}, 403, id="a foreign page"),
        pytest.param("", {"Origin": "http://127.0.0.1:1"}, 403, id="another port of this machine"),
        pytest.param("", {"Origin": "null"}, 403, id="a page without origin"),
        pytest.param("", {"Origin": ""}, 403, id="an empty origin"),
        pytest.param("", {"Origin": "https://connect.example", "X-Forwarded-Host": "connect.example"}, 202, id="through a proxy"),
        pytest.param("http://ui.example", {"Origin": "http://ui.example"}, 202, id="an allowed one"),
        pytest.param("http://ui.example", {"Origin": "http://evil.example"}, 403, id="another than the allowed one"),
        pytest.param("*", {"Origin": "http://evil.example"}, 202, id="all are allowed"),
    ],
)
def test_changes_of_foreign_pages_are_refused(tmp_path, config, allowed, headers, status):
    with LocalWorker(tmp_path, access__control__allow__origin=allowed) as worker:
        api = Api(worker)
        if headers.get("Origin") == OWN:
            headers = {"Origin": str(api.http.base_url).rstrip("/")}
        api.create("c", config)
        assert api("PUT", "/connectors/c/pause", headers=headers).status_code == status
        assert api("POST", "/connectors/c/restart?includeTasks=true", headers=headers).status_code == status
        assert api("GET", "/connectors", headers=headers).status_code == 200
        assert api("DELETE", "/connectors/c", headers=headers).status_code == (204 if status == 202 else status)
