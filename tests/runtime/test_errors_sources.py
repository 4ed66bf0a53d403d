"""A source's bad records: what goes to the topic, what to the dead letter queue and in what form, and which offsets are stored when."""

import json
import logging
import uuid

import pytest

from standalone import DataError, RetriableError, Schema
from standalone.data.record import SourceRecord
from standalone.runtime.failures.dead_letter import SourceWriter
from standalone.runtime.failures.retries import Retries
from standalone.runtime.failures.tolerance import ErrorCounters
from tests.runtime.bad_plugins import CALLS, PickyConverter
from tests.runtime.bad_records import HERE, context, half_bad, messages, own_headers
from tests.runtime.local import LocalWorker, wait_for
from tests.suite.patience import PATIENCE_SECONDS

DLQ = {"errors__tolerance": "all", "errors__source__deadletterqueue__topic__name": "dlq"}
COUNT = 1000


@pytest.fixture(autouse=True)
def nothing_called():
    CALLS.clear()


def make(worker, values, name="s", **config):
    config = {"connector.class": f"{HERE}:LettersSource", "topic": "t", "values": ",".join(values), **config}
    return worker.herder.create(name, {k.replace("__", "."): str(v) for k, v in config.items()})


def stored(worker, name="s"):
    found = worker.process.worker.offsets.get(name, {"from": "list"})
    return found and found["next"]


STAGES = {
    "TRANSFORMATION": ({"transforms": "p", "transforms__p__type": f"{HERE}:PickyTransform"}, f"{HERE}.PickyTransform", "converter"),
    "VALUE_CONVERTER": ({"value__converter": f"{HERE}:PickyConverter"}, f"{HERE}.PickyConverter", "json"),
}


@pytest.mark.parametrize("stage", STAGES)
def test_of_a_thousand_records_the_bad_half_goes_to_the_queue_and_the_good_half_to_the_topic(tmp_path, stage):
    config, failed, written = STAGES[stage]
    bad = half_bad(COUNT, seed=stage)
    values = [f"{'bad' if bad[row] else 'good'}{row}" for row in range(COUNT)]
    with LocalWorker(tmp_path) as worker:
        make(worker, values, **config, **DLQ)
        assert [m.value().decode() for m in messages(worker.bootstrap, "t", COUNT // 2)] == [v for v in values if v.startswith("good")]
        letters = messages(worker.bootstrap, "dlq", COUNT // 2)
        wait_for(lambda: stored(worker) == COUNT)
    for row, letter in zip((row for row in range(COUNT) if bad[row]), letters, strict=True):
        said = context(letter)
        assert (letter.key(), letter.timestamp()[1]) == (b"k%d" % row, 1000 + row)
        value = letter.value().decode()
        assert (value if written == "converter" else json.loads(value)["payload"]) == values[row]
        assert (said["topic"], said["stage"], said["class.name"], said["value.format"]) == ("t", stage, failed, written)
        assert (json.loads(said["source.partition"]), json.loads(said["source.offset"])) == ({"from": "list"}, {"next": row + 1})
        assert "offset" not in said and "partition" not in said


def test_the_offset_waits_for_the_letter(tmp_path):
    """A queue that refuses the letter fails the task: the offset stays before the bad record, which comes again."""
    chain = {"transforms": "p", "transforms__p__type": f"{HERE}:PickyTransform"}
    with LocalWorker(tmp_path) as worker:
        from confluent_kafka.admin import AdminClient, NewTopic

        tiny = NewTopic("dlq", 1, 1, config={"max.message.bytes": "200"})
        admin = AdminClient({"bootstrap.servers": worker.bootstrap})
        admin.create_topics([tiny])["dlq"].result(PATIENCE_SECONDS)
        make(worker, ["one", "bad", "two"], **chain, **DLQ)
        worker.wait_states("s", "RUNNING", "FAILED")
        assert "dead letter queue 'dlq'" in worker.herder.task_status("s", 0)["trace"]
        assert stored(worker) in (None, 1)


def test_with_tolerance_none_the_first_is_kept_and_the_task_fails_behind_what_came_before(tmp_path):
    chain = {"transforms": "p", "transforms__p__type": f"{HERE}:PickyTransform"}
    with LocalWorker(tmp_path) as worker:
        make(worker, ["one", "bad1", "two", "bad2"], **chain, **{**DLQ, "errors__tolerance": "none"})
        worker.wait_states("s", "RUNNING", "FAILED")
        assert [m.value() for m in messages(worker.bootstrap, "t", 1)] == [b"one"]
        assert [m.value() for m in messages(worker.bootstrap, "dlq", 1)] == [b"bad1"]
        assert stored(worker) == 1


def test_tolerated_records_without_a_queue_move_no_offset_by_themselves(tmp_path):
    chain = {"transforms": "p", "transforms__p__type": f"{HERE}:PickyTransform", "errors__tolerance": "all"}
    with LocalWorker(tmp_path) as worker:
        make(worker, ["one", "bad", "two", "bad", "bad"], **chain)
        assert [m.value() for m in messages(worker.bootstrap, "t", 2)] == [b"one", b"two"]
        wait_for(lambda: stored(worker) == 3)
        make(worker, ["bad", "bad"], name="all-bad", **chain)
        (runner,) = [runner for runner in worker.herder.runners() if runner.connector == "all-bad"]
        wait_for(lambda: runner.errors.total_records_skipped == 2)
        assert stored(worker, "all-bad") is None


@pytest.mark.parametrize("tolerance", ["all", "none"])
def test_what_the_log_refuses_goes_to_the_queue_as_it_was_refused(tmp_path, tolerance):
    limits = {"producer__override__max__request__size": 20_000, "repeat": 4000}
    with LocalWorker(tmp_path) as worker:
        make(worker, ["one", "large", "two"], **limits, **{**DLQ, "errors__tolerance": tolerance})
        (letter,) = messages(worker.bootstrap, "dlq", 1)
        if tolerance == "all":
            assert sorted(m.value() for m in messages(worker.bootstrap, "t", 2)) == [b"one", b"two"]
            wait_for(lambda: stored(worker) == 3)
        else:
            worker.wait_states("s", "RUNNING", "FAILED")
            assert stored(worker) == 1
            # What is in the log before the record is not sent again.
            worker.herder.restart_task("s", 0)
            assert len(messages(worker.bootstrap, "dlq", 2)) == 2
            assert [m.value() for m in messages(worker.bootstrap, "t", 1)] == [b"one"]
    said = context(letter)
    assert (letter.key(), letter.value()) == (b"k1", None), "it is too large for the queue, too"
    assert (said["stage"], said["key.format"], said["value.format"]) == ("KAFKA_PRODUCE", "bytes", "omitted 20000 bytes")
    assert said["class.name"] == "org.apache.kafka.connect.runtime.WorkerSourceTask"
    assert said["exception.class.name"] == "org.apache.kafka.common.errors.RecordTooLargeException"
    assert json.loads(said["source.offset"]) == {"next": 2}


def test_what_only_the_topic_refuses_is_in_the_queue_whole(tmp_path):
    with LocalWorker(tmp_path) as worker:
        small = {"topic__creation__default__partitions": 1, "topic__creation__default__replication__factor": 1, "topic__creation__default__max__message__bytes": 3000}
        make(worker, ["one", "large", "two"], repeat=1000, **small, **DLQ)
        (letter,) = messages(worker.bootstrap, "dlq", 1)
        assert sorted(m.value() for m in messages(worker.bootstrap, "t", 2)) == [b"one", b"two"]
        wait_for(lambda: stored(worker) == 3)
    assert letter.value() == b"large" * 1000 and context(letter)["value.format"] == "bytes"


COMPACTED = {f"topic__creation__default__{key}": value for key, value in {"replication__factor": 1, "partitions": 1, "cleanup__policy": "compact"}.items()}
WITHOUT_KEYS = [f"keyless{row}" if row % 10 == 3 else f"good{row}" for row in range(200)]


@pytest.mark.kafka
@pytest.mark.parametrize("config", [{}, {"producer__override__compression__type": "gzip"}], ids=["plain", "compressed"])
def test_of_a_batch_that_the_log_refuses_only_the_bad_records_go_to_the_queue(tmp_path, kafka, config):
    """A compacted topic takes no record without a key, and no batch with one in it."""
    topic, dlq = f"compacted-{uuid.uuid4()}", f"letters-{uuid.uuid4()}"
    with LocalWorker(tmp_path, bootstrap__servers=kafka) as worker:
        queue = {**DLQ, "errors__source__deadletterqueue__topic__name": dlq, "errors__source__deadletterqueue__topic__replication__factor": 1}
        make(worker, WITHOUT_KEYS, topic=topic, **COMPACTED, **queue, **config)
        assert [m.value().decode() for m in messages(kafka, topic, 180)] == [value for value in WITHOUT_KEYS if value.startswith("good")]
        letters = messages(kafka, dlq, 20)
        wait_for(lambda: stored(worker) == 200)
        assert worker.states("s") == ["RUNNING", "RUNNING"]
    assert [m.value().decode() for m in letters] == [value for value in WITHOUT_KEYS if value.startswith("keyless")]
    said = [context(letter) for letter in letters]
    assert {each["stage"] for each in said} == {"KAFKA_PRODUCE"}
    assert {each["exception.class.name"] for each in said} == {"org.apache.kafka.common.errors.InvalidRecordException"}
    assert [json.loads(each["source.offset"])["next"] - 1 for each in said] == [row for row in range(200) if row % 10 == 3]


@pytest.mark.kafka
@pytest.mark.parametrize("tolerance", ["all", "none"])
def test_without_a_queue_what_the_log_refuses_is_skipped_or_fails_the_task(tmp_path, kafka, tolerance):
    topic = f"compacted-{uuid.uuid4()}"
    with LocalWorker(tmp_path, bootstrap__servers=kafka) as worker:
        make(worker, WITHOUT_KEYS, topic=topic, **COMPACTED, errors__tolerance=tolerance)
        if tolerance == "all":
            wait_for(lambda: stored(worker) == 200)
            (runner,) = worker.herder.runners()
            assert runner.errors.total_records_skipped == 20
            assert len(messages(kafka, topic, 180)) == 180
        else:
            worker.wait_states("s", "RUNNING", "FAILED")
            assert "source offset {'next': 4}" in worker.trace("s") and "Compacted topic" in worker.trace("s")
            assert stored(worker) == 3


def test_without_context_headers_a_letter_has_its_own_alone(tmp_path):
    chain = {"transforms": "p", "transforms__p__type": f"{HERE}:PickyTransform", "errors__source__deadletterqueue__context__headers__enable": "false"}
    with LocalWorker(tmp_path) as worker:
        make(worker, ["bad"], **chain, **DLQ)
        (letter,) = messages(worker.bootstrap, "dlq", 1)
    assert (letter.key(), letter.value(), letter.headers() or []) == (b"k0", b"bad", []) and own_headers(letter) == []


def test_the_log_tells_where_a_bad_record_came_from_and_never_its_value(tmp_path, caplog):
    chain = {"transforms": "p", "transforms__p__type": f"{HERE}:PickyTransform", "errors__log__enable": "true", "errors__log__include__messages": "true"}
    with LocalWorker(tmp_path) as worker, caplog.at_level(logging.ERROR):
        make(worker, ["bad secret"], **chain, errors__tolerance="all")
        lines = wait_for(lambda: [record.getMessage() for record in caplog.records if "Error in stage" in record.getMessage()])
    assert len(lines) == 1 and "source offset {'next': 1}" in lines[0] and "secret" not in lines[0]


class NoConverter:
    def from_connect(self, topic, schema, value):
        raise DataError("never")

    def from_header(self, topic, name, schema, value):
        raise DataError("never")


def test_what_no_converter_can_write_is_written_as_text():
    write = SourceWriter([PickyConverter.of(), NoConverter(), NoConverter()], lambda is_key: NoConverter())
    record = SourceRecord("t", {"a": [1, None]}, key="k", key_schema=Schema.STRING)
    assert write(record)[:2] == ((b"k", "converter"), (b"{a=[1, null]}", "text"))
    assert write(SourceRecord("t", object()))[1][0].startswith(b"<object")


class SteppingClock:
    """Waits take no time, and are written down."""

    def __init__(self):
        self.now, self.waits = 0.0, []

    def monotonic(self):
        return self.now

    def wait(self, event, seconds):
        self.waits.append(seconds)
        self.now += seconds
        return event.is_set()


def test_pauses_double_from_300_ms_and_are_random_beyond_the_bound():
    clock, counters = SteppingClock(), ErrorCounters()
    retries = Retries({"errors.retry.timeout": 10_000, "errors.retry.delay.max.ms": 1500}, counters, clock)
    error = RetriableError("not now")

    def refuse():
        raise error

    with pytest.raises(RetriableError):
        retries(refuse, error)
    assert clock.waits[:3] == [0.3, 0.6, 1.2]
    assert all(0 <= pause <= 1.5 for pause in clock.waits[3:]) and len(set(clock.waits[3:])) > 1
    assert sum(clock.waits) == pytest.approx(10)
    assert counters.total_retries == counters.total_record_failures == len(clock.waits)
