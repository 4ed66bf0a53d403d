"""What a source's task is told, and when, whatever happens between: a pause, a failure, trouble on the sender's thread."""

import contextlib
import threading

import pytest

from standalone import RetriableError, Schema, SourceConnector, SourceRecord, SourceTask
from standalone.clock import SYSTEM
from standalone.errors import LogError
from standalone.local_worker import failing
from standalone.log.client import Cluster
from standalone.log.producer import Producer
from standalone.runtime.offsets.tracker import OffsetTracker
from standalone.runtime.tasks.acknowledgements import Acknowledgements
from standalone.wire import ByteColumn, Records
from tests.runtime.local import LocalWorker, wait_for
from tests.suite.patience import PATIENCE_SECONDS

HERE = "tests.runtime.test_source_calls"
NOTES = []
PLAN = {}  # call -> what is done in it


class NotingTask(SourceTask):
    """Polls one record after the other, up to `count`; notes what it is told and does what PLAN says."""

    def start(self, config):
        self.topic, self.count = config["topic"], int(config["count"])
        stored = self.context.offset_reader.offset({"p": "x"})
        self.next = stored["next"] if stored else 0
        self.over = threading.Event()

    def poll(self):
        PLAN.get("poll", lambda task: None)(self)
        if self.next == self.count:
            self.over.wait(0.02)
            return None
        self.next += 1
        return [SourceRecord(self.topic, str(self.next - 1), {"p": "x"}, {"next": self.next}, value_schema=Schema.STRING)]

    def commit_record(self, record, metadata):
        NOTES.append(f"record {record.value}")
        PLAN.get("commit_record", lambda task: None)(self)

    def commit(self):
        NOTES.append("commit")

    def stop(self):
        NOTES.append("stop")
        self.over.set()
        PLAN.get("stop", lambda task: None)(self)

    def close(self):
        NOTES.append("close")
        PLAN.get("close", lambda task: None)(self)


class NotingSource(SourceConnector):
    task_class = NotingTask


@pytest.fixture(autouse=True)
def nothing_noted():
    NOTES.clear()
    PLAN.clear()


def make(worker, count=3, **config):
    worker.create("s", {"connector.class": f"{HERE}:NotingSource", "topic": "t", "count": str(count), **config})


def offset(worker):
    return worker.process.worker.offsets.get("s", {"p": "x"})


def fail(_):
    raise ValueError("never")


def test_a_task_is_told_of_its_records_while_it_is_paused(tmp_path):
    with LocalWorker(tmp_path) as worker:
        with worker.log_refusing():
            make(worker)
            (runner,) = wait_for(worker.herder.runners)
            wait_for(lambda: runner.meter.records == 3)
            worker.herder.pause("s")
            worker.wait_states("s", "PAUSED", "PAUSED")
            assert not set(NOTES) - {"commit"}
        wait_for(lambda: [note for note in NOTES if note != "commit"] == ["record 0", "record 1", "record 2"] and NOTES[-1] == "commit")
        assert worker.states("s") == ["PAUSED", "PAUSED"]


def test_commit_comes_behind_each_interval_also_where_nothing_is_new(tmp_path):
    with LocalWorker(tmp_path, offset__flush__interval__ms=20) as worker:
        make(worker)
        wait_for(lambda: offset(worker) == {"next": 3})
        told = NOTES.count("commit")
        wait_for(lambda: NOTES.count("commit") > told + 3)


def test_a_task_is_told_while_it_waits_to_poll_again(tmp_path):
    def after_three(task):
        if task.next == 3:
            raise RetriableError("not now")

    PLAN["poll"] = after_three
    with LocalWorker(tmp_path) as worker:
        make(worker, **{"errors.retry.delay.max.ms": "60000"})
        wait_for(lambda: "record 2" in NOTES and "commit" in NOTES)


@pytest.mark.parametrize("call", ["poll", "commit_record"])
def test_whatever_a_source_fails_of_what_it_had_polled_is_stored_and_it_is_closed(tmp_path, call):
    PLAN[call] = lambda task: task.next == 3 and fail(task)
    with LocalWorker(tmp_path, offset__flush__interval__ms=3_600_000) as worker:
        make(worker)
        worker.wait_states("s", "RUNNING", "FAILED")
        assert "never" in worker.trace("s")
        assert offset(worker) == {"next": 3} and worker.values("t", 3) == [b"0", b"1", b"2"]
        assert NOTES[-1] == "close"


@pytest.mark.parametrize(
    "owner, method",
    [pytest.param(Acknowledgements, "note", id="noting an acknowledgement"), pytest.param(OffsetTracker, "done", id="storing an offset")],
)
def test_a_fault_behind_a_delivery_fails_the_task(tmp_path, owner, method):
    for raised in (ValueError("never"), SystemExit("never")):
        with LocalWorker(tmp_path / type(raised).__name__) as worker, failing(owner, method, raised, None):
            make(worker)
            worker.wait_states("s", "RUNNING", "FAILED")
            assert "never" in worker.trace("s")


@pytest.mark.parametrize("error", [ValueError("never"), SystemExit(3)])
def test_what_a_delivery_s_callback_raises_ends_its_producer(tmp_path, error):
    """Nobody else would hear of it: what was to be done after the delivery is not done."""
    with LocalWorker(tmp_path) as worker, contextlib.closing(Cluster({"bootstrap.servers": worker.bootstrap}, SYSTEM)) as cluster:
        worker.send("t", [b"x"])
        producer, ended, delivered = Producer(cluster, {}, SYSTEM), [], []

        def run():
            try:
                producer.run()
            except BaseException as problem:
                ended.append(problem)

        def raises(_):
            raise error

        thread = threading.Thread(target=run)
        thread.start()
        producer.send("t", 0, Records(1, values=ByteColumn.of([b"y"])), raises)
        thread.join(PATIENCE_SECONDS)
        assert ended == [error]
        with pytest.raises(LogError, match="closed"):
            producer.send("t", 0, Records(1, values=ByteColumn.of([b"z"])), delivered.append)


def test_a_fault_behind_a_dead_letter_fails_the_task(tmp_path, monkeypatch):
    monkeypatch.setattr(OffsetTracker, "done", lambda *_: fail(None))
    letters = {"errors.tolerance": "all", "errors.source.deadletterqueue.topic.name": "dlq"}
    chain = {"transforms": "f", "transforms.f.type": "tests.runtime.plugins:FailOn", "transforms.f.bad": "0"}
    with LocalWorker(tmp_path) as worker:
        make(worker, 1, **letters, **chain, **{"errors.source.deadletterqueue.topic.replication.factor": "1"})
        worker.wait_states("s", "RUNNING", "FAILED")
        assert "dead letter queue" in worker.trace("s") and "never" in worker.trace("s")


def test_trouble_ends_a_task_that_is_paused(tmp_path):
    with LocalWorker(tmp_path) as worker:
        make(worker, 0)
        worker.wait_states("s", "RUNNING", "RUNNING")
        worker.herder.pause("s")
        worker.wait_states("s", "PAUSED", "PAUSED")
        (runner,) = worker.herder.runners()
        runner._went_wrong(ValueError("the sender has failed"))
        worker.wait_states("s", "PAUSED", "FAILED")


@pytest.mark.parametrize("call", ["stop", "close"])
def test_a_task_that_fails_to_end_is_said_and_ends(tmp_path, caplog, call):
    PLAN[call] = fail
    with LocalWorker(tmp_path) as worker:
        make(worker)
        wait_for(lambda: "record 2" in NOTES)
        worker.herder.stop("s")
        worker.wait_states("s", "STOPPED")
        assert f"NotingTask.{call}() failed" in caplog.text and "never" in caplog.text
        assert NOTES.count("stop") == NOTES.count("close") == 1
