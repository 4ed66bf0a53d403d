"""LakeSink in a worker: what every sink must do, killed and stopped among that, and what a user sees of it."""

import json

import pytest

from connectors.storage.sink import LakeSinkConnector
from standalone import ConfigError, files
from standalone.local_worker import LocalWorker
from standalone.suites import SinkSuite
from standalone.testing import wait_for
from tests.connectors.storage.lake import read_file

JSON = "org.apache.kafka.connect.json.JsonConverter"


def stored(folder):
    place = folder / "lake" / "topics" / "lines"
    paths = sorted((path for path in place.rglob("*") if path.is_file()), key=lambda path: path.name)
    return [line for path in paths for line in read_file(path)]


class TestLakeSink(SinkSuite):
    connector = LakeSinkConnector
    messages = expected = [f"line {number}" for number in range(4)]
    put_twice_is_once = True

    def given(self, folder):
        return {
            "store.url": (folder / "lake").as_uri(), "topics": "lines", "format.class": "String", "flush.size": "1",
        }  # fmt: skip

    def stored(self, folder):
        return stored(folder)


def test_files_are_closed_by_the_clock_and_offsets_committed_behind_them(tmp_path):
    props = {
        "connector.class": "LakeSink", "topics": "lines", "store.url": str(tmp_path / "lake"), "format.class": "Parquet", "flush.size": "1000000",
        "rotate.schedule.interval.ms": "200", "timezone": "UTC", "value.converter": JSON, "value.converter.schemas.enable": "false",
    }  # fmt: skip
    with LocalWorker(tmp_path) as worker:
        worker.run_sink(props, [json.dumps({"n": number, "name": f"n{number}"}) for number in range(50)])
        assert stored(tmp_path) == [{"n": number, "name": f"n{number}"} for number in range(50)]


def test_a_bad_record_goes_to_the_dead_letter_queue(tmp_path):
    props = {
        "connector.class": "LakeSink", "topics": "lines", "store.url": str(tmp_path / "lake"), "format.class": "Json", "flush.size": "1",
        "partitioner.class": "Field", "partition.field.name": "kind", "value.converter": JSON, "value.converter.schemas.enable": "false",
        "errors.tolerance": "all", "errors.deadletterqueue.topic.name": "bad", "errors.deadletterqueue.topic.replication.factor": "1",
    }  # fmt: skip
    with LocalWorker(tmp_path) as worker:
        worker.run_sink(props, ['{"kind":"a"}', '{"none":1}', '{"kind":"b"}'])
        assert worker.values("bad", 1) == [b'{"none":1}']
        assert sorted(row["kind"] for row in stored(tmp_path)) == ["a", "b"]


def test_a_folder_that_is_a_file_fails_the_task_and_says_so(tmp_path):
    (tmp_path / "lake").write_text("no folder")
    props = {"connector.class": "LakeSink", "topics": "lines", "store.url": str(tmp_path / "lake"), "format.class": "String", "flush.size": "1"}
    with LocalWorker(tmp_path) as worker:
        worker.send("lines", ["a"])
        worker.create("lake", props)
        trace = wait_for(lambda: worker.trace("lake"))
    assert "LakeSink cannot write to" in trace and "restart the task" in trace


@pytest.fixture
def limit():
    """The limit is the process's: the next test has none."""
    yield
    files.allow_only(None)


def test_a_folder_outside_of_what_the_worker_allows_is_refused(tmp_path, limit):
    props = {"connector.class": "LakeSink", "topics": "lines", "store.url": str(tmp_path / "else"), "flush.size": "1", "name": "lake"}
    with LocalWorker(tmp_path, files__allowed__paths=tmp_path / "lake") as worker:
        with pytest.raises(ConfigError, match="files.allowed.paths"):
            worker.create("lake", props)
        with pytest.raises(ConfigError, match="files.allowed.paths"):
            worker.create("lake", {**props, "store.url": str(tmp_path / "lake"), "topics.dir": "../else"})
