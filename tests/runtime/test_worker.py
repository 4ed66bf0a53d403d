"""The whole worker on an embedded log: what goes in comes out, once, in order, over restarts; failures are told and stay alone."""

import json
import os

import pytest

from standalone.errors import AlreadyExistsError, ConfigError, ConnectError, NotFoundError, StartError
from tests.runtime.local import LocalWorker, wait_for

JSON = "org.apache.kafka.connect.json.JsonConverter"
HOIST = {
    "transforms": "hoist,insert",
    "transforms.hoist.type": "org.apache.kafka.connect.transforms.HoistField$Value",
    "transforms.hoist.field": "line",
    "transforms.insert.type": "org.apache.kafka.connect.transforms.InsertField$Value",
    "transforms.insert.static.field": "data_source",
    "transforms.insert.static.value": "test-file-source",
}


def text_of(path):
    return path.read_text() if path.exists() else ""


def test_the_quickstart(tmp_path):
    source, sink = tmp_path / "test.txt", tmp_path / "test.sink.txt"
    with LocalWorker(tmp_path, value__converter=JSON) as worker:
        worker.source("local-file-source", source, "connect-test")
        worker.sink("local-file-sink", sink, "connect-test")
        source.write_text("foo\nbar\n")
        wait_for(lambda: text_of(sink) == "foo\nbar\n", what="the sink's file")
        first, second = worker.values("connect-test", 2)
        assert first == b'{"schema":{"type":"string","optional":false},"payload":"foo"}'
        assert json.loads(second)["payload"] == "bar"


def test_hoist_and_insert_without_schemas(tmp_path):
    source = tmp_path / "test.txt"
    source.write_text("foo\n")
    with LocalWorker(tmp_path, value__converter=JSON, value__converter__schemas__enable="false") as worker:
        worker.source("s", source, "t", **HOIST)
        assert worker.values("t", 1) == [b'{"line":"foo","data_source":"test-file-source"}']


def test_a_restart_goes_on_where_it_was(tmp_path):
    source, sink = tmp_path / "in", tmp_path / "out"
    source.write_text("1\n2\n")
    for lines in ("", "3\n4\n", "5\n"):
        with source.open("a") as file:
            file.write(lines)
        with LocalWorker(tmp_path) as worker:
            worker.source("s", source, "t") if "s" not in worker.herder.names() else None
            worker.sink("k", sink, "t") if "k" not in worker.herder.names() else None
            wait_for(lambda: text_of(sink) == text_of(source), what="the sink's file")
    assert text_of(sink) == "1\n2\n3\n4\n5\n"


def test_connectors_made_by_rest_come_again_in_their_state(tmp_path):
    with LocalWorker(tmp_path) as worker:
        worker.source("runs", tmp_path / "a", "t")
        worker.source("waits", tmp_path / "b", "t")
        worker.herder.pause("waits")
        worker.source("stopped", tmp_path / "c", "t")
        worker.herder.stop("stopped")
        worker.wait_states("stopped", "STOPPED")
    with LocalWorker(tmp_path) as worker:
        worker.wait_states("runs", "RUNNING", "RUNNING")
        worker.wait_states("waits", "PAUSED")
        worker.wait_states("stopped", "STOPPED")


def test_pause_holds_back_and_resume_goes_on(tmp_path):
    source, sink = tmp_path / "in", tmp_path / "out"
    source.write_text("1\n")
    with LocalWorker(tmp_path) as worker:
        worker.source("s", source, "t")
        worker.sink("k", sink, "t")
        wait_for(lambda: text_of(sink) == "1\n")
        worker.herder.pause("s")
        worker.wait_states("s", "PAUSED", "PAUSED")
        with source.open("a") as file:
            file.write("2\n")
        worker.herder.pause("k")
        worker.wait_states("k", "PAUSED", "PAUSED")
        worker.herder.resume("s")
        worker.wait_states("s", "RUNNING", "RUNNING")
        assert worker.values("t", 2) == [b"1", b"2"]
        assert text_of(sink) == "1\n"
        worker.herder.resume("k")
        wait_for(lambda: text_of(sink) == "1\n2\n")


def test_a_stopped_connector_has_no_tasks_and_resumes(tmp_path):
    source = tmp_path / "in"
    source.write_text("1\n")
    with LocalWorker(tmp_path) as worker:
        worker.source("s", source, "t")
        worker.wait_states("s", "RUNNING", "RUNNING")
        worker.herder.stop("s")
        worker.wait_states("s", "STOPPED")
        worker.herder.resume("s")
        worker.wait_states("s", "RUNNING", "RUNNING")
        assert worker.values("t", 1) == [b"1"]


def test_another_configuration_restarts_the_connector(tmp_path):
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_text("a\n")
    second.write_text("b\n")
    with LocalWorker(tmp_path) as worker:
        worker.source("s", first, "t")
        assert worker.values("t", 1) == [b"a"]
        config = {**worker.herder.config("s"), "file": str(second)}
        _, new = worker.herder.create("s", config, replace=True)
        assert not new
        assert worker.values("t", 2) == [b"a", b"b"]


def test_a_failed_task_tells_why_leaves_others_alone_and_restarts(tmp_path):
    sink = tmp_path / "no such folder" / "out"
    with LocalWorker(tmp_path) as worker:
        worker.sink("k", sink, "t")
        worker.wait_states("k", "RUNNING", "FAILED")
        assert str(sink) in worker.herder.task_status("k", 0)["trace"]
        (tmp_path / "in").write_text("1\n")
        worker.source("s", tmp_path / "in", "t")
        assert worker.values("t", 1) == [b"1"]
        sink.parent.mkdir()
        worker.herder.restart_task("k", 0)
        wait_for(lambda: text_of(sink) == "1\n")


def test_a_full_disk_fails_the_sink_and_holds_the_offset(tmp_path):
    with LocalWorker(tmp_path) as worker:
        (tmp_path / "in").write_text("1\n2\n")
        worker.source("s", tmp_path / "in", "t")
        worker.sink("k", "/dev/full", "t")
        worker.wait_states("k", "RUNNING", "FAILED")
        assert "No space left" in worker.herder.task_status("k", 0)["trace"]
        config = {**worker.herder.config("k"), "file": str(tmp_path / "out")}
        worker.herder.create("k", config, replace=True)
        wait_for(lambda: text_of(tmp_path / "out") == "1\n2\n")


@pytest.mark.parametrize(
    "config, key",
    [
        pytest.param({"connector.class": "no.such.Klass"}, "no.such.Klass", id="unknown class"),
        pytest.param({"connector.class": "FileStreamSource", "file": "x"}, "topic", id="required key missing"),
        pytest.param({"connector.class": "FileStreamSource", "topic": "t", "tasks.max": "many"}, "tasks.max", id="not a number"),
        pytest.param({"connector.class": "FileStreamSink"}, "topics", id="sink without topics"),
        pytest.param({"connector.class": "FileStreamSource", "topic": "t", "transforms": "a"}, "transforms.a.type", id="transform without type"),
    ],
)
def test_a_wrong_configuration_names_the_key_and_makes_nothing(tmp_path, config, key):
    with LocalWorker(tmp_path) as worker:
        with pytest.raises((ConfigError, ConnectError), match=key):
            worker.herder.create("c", config)
        assert worker.herder.names() == []


def test_names_are_taken_once_and_missed_ones_are_told(tmp_path):
    with LocalWorker(tmp_path) as worker:
        worker.source("s", tmp_path / "in", "t")
        with pytest.raises(AlreadyExistsError, match="'s'"):
            worker.source("s", tmp_path / "in", "t")
        worker.herder.delete("s")
        with pytest.raises(NotFoundError, match="'s'"):
            worker.herder.status("s")


def test_a_second_worker_on_the_same_state_is_refused(tmp_path):
    with LocalWorker(tmp_path):
        with pytest.raises(StartError, match=str(os.getpid())):
            LocalWorker(tmp_path).__enter__()


def test_two_tasks_share_the_partitions_of_a_topic(tmp_path):
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    with LocalWorker(tmp_path) as worker:
        admin = AdminClient({"bootstrap.servers": worker.bootstrap})
        admin.create_topics([NewTopic("t", 4, 1)])["t"].result()
        producer = Producer({"bootstrap.servers": worker.bootstrap})
        for number in range(200):
            producer.produce("t", str(number), partition=number % 4)
        producer.flush()
        worker.sink("k", tmp_path / "out", "t", tasks__max=2)
        worker.wait_states("k", "RUNNING", "RUNNING", "RUNNING")
        wait_for(lambda: sorted(map(int, text_of(tmp_path / "out").split())) == list(range(200)))
