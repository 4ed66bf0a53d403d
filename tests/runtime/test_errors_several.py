"""Transforms that make multiple records of one, or none, beside records that fail: a record fails as a whole, is told of once, moves its offset once."""

import json

import pytest

from tests.runtime.bad_plugins import CALLS, PUT, TOLD
from tests.runtime.bad_records import HERE, context, messages, produce
from tests.runtime.local import LocalWorker, wait_for

SPLIT = {"transforms": "split,picky", "transforms.split.type": f"{HERE}:Split", "transforms.picky.type": f"{HERE}:PickyTransform"}
SINK_DLQ = {
    "errors.tolerance": "all",
    "errors.deadletterqueue.topic.name": "dlq",
    "errors.deadletterqueue.topic.replication.factor": "1",
    "errors.deadletterqueue.context.headers.enable": "true",
}
SOURCE_DLQ = {"errors.tolerance": "all", "errors.source.deadletterqueue.topic.name": "dlq"}
MIXED = ["a+b", "none", "c+bad+d", "e", "bad", "f+none+g"]
JSON = "org.apache.kafka.connect.json.JsonConverter"


@pytest.fixture(autouse=True)
def nothing_put():
    for seen in (PUT, CALLS, TOLD):
        seen.clear()


class Shared:
    """The tests' one session, which no worker may stop."""

    def __init__(self, holder):
        self._holder = holder

    def __getattr__(self, name):
        return getattr(self._holder, name)

    def stop(self, *_):
        pass


@pytest.fixture
def sql_worker(tmp_path, spark_holder):
    with LocalWorker(tmp_path) as worker:
        worker.process.worker._tasks._session = Shared(spark_holder)
        yield worker


def source(worker, values, **config):
    worker.herder.create("s", {"connector.class": f"{HERE}:LettersSource", "topic": "t", "values": ",".join(values), **config})


def sink(worker, plugin="NoteSink", **config):
    worker.herder.create("k", {"connector.class": f"{HERE}:{plugin}", "topics": "t", **config})


def stored(worker):
    found = worker.process.worker.offsets.get("s", {"from": "list"})
    return found and found["next"]


def committed(worker):
    offsets = worker.herder.offsets("k")
    return offsets and offsets[0]["offset"]["kafka_offset"]


def told(count):
    """What the source's task was told, by row; fails if it is told of one twice."""
    wait_for(lambda: len(TOLD["s"]) >= count)
    assert len(TOLD["s"]) == count
    return dict(TOLD["s"])


# --- Sources -------------------------------------------------------------------------------------------------------


def test_a_source_sends_all_that_came_of_a_record_or_keeps_the_record_once(tmp_path):
    with LocalWorker(tmp_path) as worker:
        source(worker, MIXED, **SPLIT, **SOURCE_DLQ)
        assert [m.value() for m in messages(worker.bootstrap, "t", 5)] == [b"a", b"b", b"e", b"f", b"g"]
        letters = messages(worker.bootstrap, "dlq", 2)
        wait_for(lambda: stored(worker) == len(MIXED))
        assert told(6) == {0: ("t", 1), 1: None, 2: None, 3: ("t", 2), 4: None, 5: ("t", 4)}
        (runner,) = worker.herder.runners()
        assert (runner.errors.total_record_errors, runner.errors.total_records_skipped) == (2, 2)
        values = runner.metrics()["source-task-metrics"]
        assert (values["source-record-poll-total"], values["source-record-active-count"]) == (6, 0)
    assert [letter.value() for letter in letters] == [b"c+bad+d", b"bad"]
    assert [json.loads(context(letter)["source.offset"])["next"] for letter in letters] == [3, 5]


def test_with_tolerance_none_what_came_before_the_record_is_sent_and_nothing_of_it(tmp_path):
    with LocalWorker(tmp_path) as worker:
        source(worker, MIXED, **SPLIT, **{**SOURCE_DLQ, "errors.tolerance": "none"})
        worker.wait_states("s", "RUNNING", "FAILED")
        assert [m.value() for m in messages(worker.bootstrap, "t", 2)] == [b"a", b"b"]
        assert [m.value() for m in messages(worker.bootstrap, "dlq", 1)] == [b"c+bad+d"]
        assert stored(worker) == 2
        assert told(2) == {0: ("t", 1), 1: None}


def test_what_came_of_one_record_may_go_to_several_topics(tmp_path):
    with LocalWorker(tmp_path) as worker:
        source(worker, ["a>x+b>y+c>x", "d>y+none", "none"], **SPLIT, **SOURCE_DLQ)
        assert [m.value() for m in messages(worker.bootstrap, "x", 2)] == [b"a", b"c"]
        assert [m.value() for m in messages(worker.bootstrap, "y", 2)] == [b"b", b"d"]
        wait_for(lambda: stored(worker) == 3)
        found = told(3)
    assert found[0] in (("x", 1), ("y", 0)) and found[1] == ("y", 1) and found[2] is None


def test_of_several_the_log_may_refuse_one(tmp_path):
    limits = {"producer.override.max.request.size": "20000", "repeat": "4000"}
    with LocalWorker(tmp_path) as worker:
        source(worker, ["one", "a+large+b", "large", "two"], **SPLIT, **limits, **SOURCE_DLQ)
        assert sorted(m.value() for m in messages(worker.bootstrap, "t", 4)) == [b"a", b"b", b"one", b"two"]
        letters = messages(worker.bootstrap, "dlq", 2)
        wait_for(lambda: stored(worker) == 4)
        found = told(4)
    assert {context(letter)["stage"] for letter in letters} == {"KAFKA_PRODUCE"}
    assert [json.loads(context(letter)["source.offset"])["next"] for letter in letters] == [2, 3]
    assert found[2] is None and found[1] is not None and found[0] is not None and found[3] is not None


def test_a_thousand_of_which_each_becomes_none_to_three(tmp_path):
    values = ["none" if row % 4 == 0 else "+".join(f"{row}.{part}" for part in range(row % 4)) for row in range(1000)]
    with LocalWorker(tmp_path) as worker:
        source(worker, [value + "+bad" if row % 10 == 7 else value for row, value in enumerate(values)], **SPLIT, **SOURCE_DLQ)
        good = [part for row, value in enumerate(values) if row % 10 != 7 for part in value.split("+") if part != "none"]
        assert [m.value().decode() for m in messages(worker.bootstrap, "t", len(good))] == good
        letters = messages(worker.bootstrap, "dlq", 100)
        wait_for(lambda: stored(worker) == 1000)
        found = told(1000)
    assert [json.loads(context(letter)["source.offset"])["next"] - 1 for letter in letters] == list(range(7, 1000, 10))
    assert [row for row in range(1000) if found[row] is None] == [row for row in range(1000) if row % 4 == 0 or row % 10 == 7]


# --- Sinks ---------------------------------------------------------------------------------------------------------


def test_a_sink_is_given_all_that_came_of_a_record_or_the_queue_gets_it_as_it_was(tmp_path):
    with LocalWorker(tmp_path) as worker:
        produce(worker.bootstrap, "t", [(f"k{row}", value, [("h", "1")]) for row, value in enumerate(MIXED)])
        sink(worker, **SPLIT, **SINK_DLQ)
        letters = messages(worker.bootstrap, "dlq", 2)
        wait_for(lambda: len(PUT["k"]) == 5)
        assert [(offset, value) for offset, value, *_ in PUT["k"]] == [(0, "a"), (0, "b"), (3, "e"), (5, "f"), (5, "g")]
        worker.herder.stop("k")
        wait_for(lambda: committed(worker) == len(MIXED))
    assert [(letter.key(), letter.value(), context(letter)["offset"]) for letter in letters] == [(b"k2", b"c+bad+d", "2"), (b"k4", b"bad", "4")]


@pytest.mark.parametrize("how", ["put", "flush"])
def test_a_task_that_reports_two_that_came_of_one_record_sends_one_letter(tmp_path, how):
    chain = {"transforms": "split", "transforms.split.type": f"{HERE}:Split"}
    with LocalWorker(tmp_path) as worker:
        produce(worker.bootstrap, "t", [(None, value, []) for value in ("a+b", "bad1+c+bad2", "none", "bad3", "d")])
        sink(worker, "ReportingSink", how=how, **chain, **SINK_DLQ)
        letters = messages(worker.bootstrap, "dlq", 2)
        wait_for(lambda: any(each[0] == "flush" and each[1] == {("t", 0): 5} for each in PUT["k"]))
        assert [value for offset, value in PUT["k"] if offset != "flush"] == ["a", "b", "c", "d"]
    assert [letter.value() for letter in letters] == [b"bad1+c+bad2", b"bad3"]


def test_of_a_batch_that_is_halved_the_queue_gets_each_record_once(tmp_path):
    chain = {"transforms": "split", "transforms.split.type": f"{HERE}:Split"}
    with LocalWorker(tmp_path) as worker:
        produce(worker.bootstrap, "t", [(None, f"bad{row}+bad{row}" if row % 25 == 3 else f"good{row}", []) for row in range(100)])
        sink(worker, "UpsertSink", **chain, **SINK_DLQ)
        letters = messages(worker.bootstrap, "dlq", 4)
        wait_for(lambda: len(PUT["k"]) == 96)
    assert [context(letter)["offset"] for letter in letters] == ["3", "28", "53", "78"]


def test_a_sink_that_fails_by_one_of_several_has_committed_what_came_before(tmp_path):
    with LocalWorker(tmp_path) as worker:
        produce(worker.bootstrap, "t", [(None, "a+b+bad" if row == 25 else f"{row}+{row}", []) for row in range(30)])
        sink(worker, **SPLIT, **{**SINK_DLQ, "errors.tolerance": "none", "consumer.override.max.poll.records": "10"})
        worker.wait_states("k", "RUNNING", "FAILED")
        assert [offset for offset, *_ in PUT["k"]] == [row for row in range(20) for _ in range(2)]
        assert [letter.value() for letter in messages(worker.bootstrap, "dlq", 1)] == [b"a+b+bad"]
        assert committed(worker) == 20


# --- Sql -----------------------------------------------------------------------------------------------------------

SQL = {
    "transforms": "each,picky",
    "transforms.each.type": "Sql",
    "transforms.each.statement": "SELECT explode(split(text, '[+]')) AS text, CASE WHEN text = 'boom' THEN raise_error('boom') END AS n "
    "FROM record WHERE text <> 'none'",
    "transforms.picky.type": "Cast$Value",
    "transforms.picky.spec": "text:int32",
}
TEXTS = ["1+2", "none", "3+x+4", "5", "6"] * 24
TEXTS[64] = "boom"  # one: to find it takes Spark some jobs


@pytest.mark.spark
@pytest.mark.parametrize("engine", ["auto", "rows"])
def test_a_sink_with_a_statement_splits_exactly(sql_worker, engine):
    values = ["no json" if row % 30 == 17 else json.dumps({"text": text}) for row, text in enumerate(TEXTS)]
    produce(sql_worker.bootstrap, "t", [(None, value, []) for value in values])
    sink(sql_worker, **{"value.converter": JSON, "value.converter.schemas.enable": "false", "pipeline.engine": engine}, **SQL, **SINK_DLQ)
    bad = [row for row, (text, value) in enumerate(zip(TEXTS, values)) if text in ("boom", "3+x+4") or value == "no json"]
    expected = [
        (row, int(part)) for row, text in enumerate(TEXTS) if row not in bad and text != "none" for part in text.split("+")
    ]  # fmt: skip
    letters = messages(sql_worker.bootstrap, "dlq", len(bad), seconds=60)
    wait_for(lambda: len(PUT["k"]) == len(expected))
    assert [(offset, value["text"]) for offset, value, *_ in PUT["k"]] == expected
    assert [letter.value().decode() for letter in letters] == [values[row] for row in bad]
    said = [context(letter) for letter in letters]
    assert [int(each["offset"]) for each in said] == bad
    stages = {"no json": "VALUE_CONVERTER"}
    assert [each["stage"] for each in said] == [stages.get(values[row], "TRANSFORMATION") for row in bad]
    sql, cast = "standalone.transforms.sql.Sql", "org.apache.kafka.connect.transforms.Cast$Value"
    of_text = {"boom": sql, "3+x+4": cast}
    assert [each["class.name"] for each in said] == [JSON if values[row] == "no json" else of_text[TEXTS[row]] for row in bad]


@pytest.mark.spark
def test_a_source_with_a_statement_splits_exactly(sql_worker):
    chain = {**SQL, "transforms": "hoist,each,picky", "transforms.hoist.type": "HoistField$Value", "transforms.hoist.field": "text"}
    source(sql_worker, TEXTS, **{"value.converter": JSON, "value.converter.schemas.enable": "false"}, **chain, **SOURCE_DLQ)
    bad = [row for row, text in enumerate(TEXTS) if text in ("boom", "3+x+4")]
    letters = messages(sql_worker.bootstrap, "dlq", len(bad), seconds=60)
    good = [int(part) for row, text in enumerate(TEXTS) if row not in bad and text != "none" for part in text.split("+")]
    assert [json.loads(m.value())["text"] for m in messages(sql_worker.bootstrap, "t", len(good))] == good
    wait_for(lambda: stored(sql_worker) == len(TEXTS))
    found = told(len(TEXTS))
    assert [json.loads(context(letter)["source.offset"])["next"] - 1 for letter in letters] == bad
    assert [json.loads(letter.value()) for letter in letters] == [TEXTS[row] for row in bad], "as they were polled"
    assert [row for row in range(len(TEXTS)) if found[row] is None] == [row for row, text in enumerate(TEXTS) if row in bad or text == "none"]
