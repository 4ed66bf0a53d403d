"""A sink's bad records: which of them reach the task, which the dead letter queue, with what, and which offsets are committed when."""

import json
import logging

import pytest

from tests.runtime.bad_plugins import CALLS, PUT
from tests.runtime.bad_records import HERE, TIME, context, half_bad, messages, own_headers, produce
from tests.runtime.local import LocalWorker, wait_for

COUNT = 1000
JSON = {"value__converter": "JsonConverter", "value__converter__schemas__enable": "false"}
DLQ = {
    "errors__tolerance": "all",
    "errors__deadletterqueue__topic__name": "dlq",
    "errors__deadletterqueue__topic__replication__factor": 1,
    "errors__deadletterqueue__context__headers__enable": "true",
}
MAPS_ONLY = {
    "ExtractField$Value": {"field": "a"},
    "Cast$Value": {"spec": "a:string"},
    "Flatten$Value": {},
    "InsertField$Value": {"static.field": "b", "static.value": "c"},
    "MaskField$Value": {"fields": "a"},
    "ReplaceField$Value": {"exclude": "b"},
    "TimestampConverter$Value": {"field": "a", "target.type": "string", "format": "yyyy"},
    "ValueToKey": {"fields": "a"},
    "HeaderFrom$Value": {"fields": "a", "headers": "h", "operation": "copy"},
}


@pytest.fixture(autouse=True)
def nothing_put():
    PUT.clear()
    CALLS.clear()


def make(worker, plugin, name="k", **config):
    return worker.herder.create(name, {"connector.class": f"{HERE}:{plugin}", "topics": "t", **{k.replace("__", "."): str(v) for k, v in config.items()}})


def counters(worker, name="k"):
    (runner,) = [runner for runner in worker.herder.runners() if runner.connector == name]
    return runner.errors


STAGES = {
    "KEY_CONVERTER": ({"key__converter": f"{HERE}:PickyConverter"}, lambda word, row: (f"{word}{row}", f"v{row}", [("h", f"h{row}")])),
    "VALUE_CONVERTER": ({"value__converter": f"{HERE}:PickyConverter"}, lambda word, row: (f"k{row}", f"{word}{row}", [("h", f"h{row}")])),
    "HEADER_CONVERTER": ({"header__converter": f"{HERE}:PickyConverter"}, lambda word, row: (f"k{row}", f"v{row}", [("h", f"{word}{row}")])),
    "TRANSFORMATION": (
        {"transforms": "p", "transforms__p__type": f"{HERE}:PickyTransform"},
        lambda word, row: (f"k{row}", f"{word}{row}", [("h", f"h{row}")]),
    ),
}


@pytest.mark.parametrize("stage", STAGES)
def test_of_a_thousand_records_the_bad_half_goes_to_the_queue_and_the_good_half_to_the_task(tmp_path, stage):
    config, record = STAGES[stage]
    bad = half_bad(COUNT, seed=stage)
    with LocalWorker(tmp_path) as worker:
        records = [record("bad" if bad[row] else "good", row) for row in range(COUNT)]
        produce(worker.bootstrap, "t", records)
        make(worker, "NoteSink", **config, **DLQ)
        letters = messages(worker.bootstrap, "dlq", COUNT // 2)
        wait_for(lambda: len(PUT["k"]) == COUNT // 2)
        assert [offset for offset, *_ in PUT["k"]] == [row for row in range(COUNT) if not bad[row]]
        assert [value for _, value, *_ in PUT["k"]] == [value for row, (_, value, _) in enumerate(records) if not bad[row]]
        assert counters(worker).total_records_skipped == counters(worker).deadletterqueue_produce_requests == COUNT // 2
    for row, letter in zip((row for row in range(COUNT) if bad[row]), letters, strict=True):
        key, value, headers = records[row]
        assert (letter.key(), letter.value(), letter.timestamp()[1]) == (key.encode(), value.encode(), TIME + row)
        assert own_headers(letter) == [(name, text.encode()) for name, text in headers]
        said = context(letter)
        assert list(said) == [
            *("topic", "partition", "offset", "connector.name", "task.id", "stage", "class.name"),
            *("exception.class.name", "exception.message", "exception.stacktrace"),
        ]
        assert (said["topic"], said["partition"], said["offset"], said["stage"]) == ("t", "0", str(row), stage)
        assert (said["connector.name"], said["task.id"]) == ("k", "0")
        assert said["class.name"].startswith(f"{HERE}.Picky")
        assert said["exception.stacktrace"].startswith(f"{said['exception.class.name']}: {said['exception.message']}")


@pytest.mark.parametrize("engine", ["rows", "auto"])
@pytest.mark.parametrize("transform", MAPS_ONLY)
def test_each_transform_that_refuses_a_record_leaves_the_others_as_they_are(tmp_path, transform, engine):
    bad = half_bad(COUNT, seed=transform)
    values = [f"[{row}]" if bad[row] else f'{{"a":{row}}}' for row in range(COUNT)]
    chain = {f"transforms__x__{key.replace('.', '__')}": value for key, value in MAPS_ONLY[transform].items()}
    with LocalWorker(tmp_path) as worker:
        produce(worker.bootstrap, "t", [(None, value, []) for value in values])
        make(worker, "NoteSink", transforms="x", transforms__x__type=f"org.apache.kafka.connect.transforms.{transform}", pipeline__engine=engine, **chain, **JSON, **DLQ)
        letters = messages(worker.bootstrap, "dlq", COUNT // 2)
        wait_for(lambda: len(PUT["k"]) == COUNT // 2)
        assert [offset for offset, *_ in PUT["k"]] == [row for row in range(COUNT) if not bad[row]]
    assert [letter.value().decode() for letter in letters] == [value for value, wrong in zip(values, bad) if wrong]
    assert {(said["stage"], said["class.name"]) for said in map(context, letters)} == {
        ("TRANSFORMATION", f"org.apache.kafka.connect.transforms.{transform}")
    }


@pytest.mark.parametrize("how", ["put", "flush"])
def test_a_task_reports_the_bad_half_with_their_original_bytes(tmp_path, how):
    bad = half_bad(COUNT, seed=how)
    with LocalWorker(tmp_path) as worker:
        records = [(f"k{row}", f"{'bad' if bad[row] else 'good'}{row}", [("h", "\udcff".encode(errors="surrogateescape"))]) for row in range(COUNT)]
        produce(worker.bootstrap, "t", records)
        make(worker, "ReportingSink", how=how, **DLQ)
        letters = messages(worker.bootstrap, "dlq", COUNT // 2)
        wait_for(lambda: ("flush", {("t", 0): COUNT}) in PUT["k"])
        taken = [offset for offset, _ in PUT["k"] if offset != "flush"]
    assert taken == [row for row in range(COUNT) if not bad[row]]
    for row, letter in zip((row for row in range(COUNT) if bad[row]), letters, strict=True):
        assert (letter.key(), letter.value(), own_headers(letter)) == (b"k%d" % row, b"bad%d" % row, [("h", b"\xff")])
        said = context(letter)
        assert (said["offset"], said["stage"], said["class.name"]) == (str(row), "TASK_PUT", "org.apache.kafka.connect.sink.SinkTask")
        assert said["exception.class.name"] == "org.apache.kafka.connect.errors.DataException"


def test_what_a_task_reports_and_nobody_tolerates_is_kept_and_fails_it(tmp_path):
    with LocalWorker(tmp_path) as worker:
        produce(worker.bootstrap, "t", [(None, value, []) for value in ("one", "bad", "two")])
        make(worker, "ReportingSink", **{**DLQ, "errors__tolerance": "none"})
        worker.wait_states("k", "RUNNING", "FAILED")
        assert [letter.value() for letter in messages(worker.bootstrap, "dlq", 1)] == [b"bad"]
        assert "refused by the sink at 1" in worker.herder.task_status("k", 0)["trace"]


@pytest.mark.parametrize("config, there", [({}, False), ({"errors__tolerance": "all"}, False), ({"errors__log__enable": "true"}, True), (DLQ, True)])
def test_there_is_a_reporter_where_anybody_would_read_its_reports(tmp_path, config, there):
    with LocalWorker(tmp_path) as worker:
        make(worker, "ReportingSink", **config)
        (runner,) = worker.herder.runners()
        wait_for(lambda: hasattr(runner.task, "reporter"))
        assert (runner.task.reporter is not None) is there


def test_a_batch_that_an_idempotent_sink_refuses_is_halved_until_the_bad_stand_alone(tmp_path):
    bad = {3, 4, 250, 499}
    with LocalWorker(tmp_path) as worker:
        produce(worker.bootstrap, "t", [(None, f"{'bad' if row in bad else 'good'}{row}", []) for row in range(500)])
        make(worker, "UpsertSink", **DLQ)
        letters = messages(worker.bootstrap, "dlq", 4)
        wait_for(lambda: len(PUT["k"]) == 496)
        assert sorted(PUT["k"]) == [row for row in range(500) if row not in bad]
    assert sorted(int(context(letter)["offset"]) for letter in letters) == sorted(bad)
    assert {context(letter)["stage"] for letter in letters} == {"TASK_PUT"}
    assert CALLS["puts"] < 120


def test_a_sink_that_is_away_loses_no_record_to_the_queue(tmp_path):
    with LocalWorker(tmp_path) as worker:
        produce(worker.bootstrap, "t", [(None, f"good{row}", []) for row in range(100)] + [(None, "now away", [])])
        make(worker, "UpsertSink", away="now away", **DLQ)
        worker.wait_states("k", "RUNNING", "FAILED")
        assert "the store is away" in worker.herder.task_status("k", 0)["trace"]
        assert messages(worker.bootstrap, "dlq", 0) == []


def test_nothing_of_the_poll_that_holds_the_bad_record_is_put_but_what_came_before_is_committed(tmp_path):
    with LocalWorker(tmp_path) as worker:
        produce(worker.bootstrap, "t", [(None, "bad" if row == 25 else f"good{row}", []) for row in range(30)])
        make(worker, "NoteSink", value__converter=f"{HERE}:PickyConverter", consumer__override__max__poll__records=10)
        worker.wait_states("k", "RUNNING", "FAILED")
        assert [offset for offset, *_ in PUT["k"]] == list(range(20))
        PUT.clear()
        make_again = {"connector.class": f"{HERE}:NoteSink", "topics": "t", "value.converter": f"{HERE}:PickyConverter", "errors.tolerance": "all"}
        worker.herder.create("k", make_again, replace=True)
        wait_for(lambda: len(PUT["k"]) == 9)
        assert [offset for offset, *_ in PUT["k"]] == [*range(20, 25), *range(26, 30)]


def test_a_letter_that_cannot_be_stored_fails_the_task_and_its_offset_is_not_committed(tmp_path):
    with LocalWorker(tmp_path) as worker:
        produce(worker.bootstrap, "t", [(None, "bad" + "x" * 5000, [])])
        small = {"producer__override__max__request__size": 1000}
        make(worker, "NoteSink", value__converter=f"{HERE}:PickyConverter", **DLQ, **small)
        worker.wait_states("k", "RUNNING", "FAILED")
        trace = worker.herder.task_status("k", 0)["trace"]
        assert "dead letter queue 'dlq'" in trace and "RecordTooLargeException" in trace
        make(worker, "NoteSink", name="k2", consumer__override__group__id="connect-k")
        wait_for(lambda: PUT["k2"])
        assert PUT["k2"][0][0] == 0, "the bad record is redelivered"


def test_a_long_trace_is_cut_so_that_the_letter_fits(tmp_path):
    with LocalWorker(tmp_path) as worker:
        produce(worker.bootstrap, "t", [(None, "bad" + "x" * 4000, [])])
        small = {"producer__override__max__request__size": 7000}
        make(worker, "NoteSink", value__converter=f"{HERE}:PickyConverter", **DLQ, **small)
        (letter,) = messages(worker.bootstrap, "dlq", 1)
        assert letter.value() == b"bad" + b"x" * 4000 and len(context(letter)["exception.stacktrace"]) <= 1000


@pytest.mark.parametrize(
    "timeout, tries, delivered",
    [
        pytest.param(60_000, "busy2", True, id="until it succeeds"),
        pytest.param(-1, "busy3", True, id="forever"),
        pytest.param(0, "busy1", False, id="not at all"),
        pytest.param(100, "busy99", False, id="until the time is over"),
    ],
)
def test_a_converter_that_asks_for_it_is_tried_again(tmp_path, timeout, tries, delivered):
    retry = {"errors__retry__timeout": timeout, "errors__retry__delay__max__ms": 20}
    with LocalWorker(tmp_path) as worker:
        produce(worker.bootstrap, "t", [(None, value, []) for value in ("before", tries, "behind")])
        make(worker, "NoteSink", value__converter=f"{HERE}:PickyConverter", errors__tolerance="all", **retry)
        wait_for(lambda: PUT["k"] and PUT["k"][-1][0] == 2)
        assert [value for _, value, *_ in PUT["k"]] == (["before", tries, "behind"] if delivered else ["before", "behind"])
        assert counters(worker).total_retries >= int(tries[4:]) if delivered else CALLS[tries] == counters(worker).total_record_failures
        assert counters(worker).total_records_skipped == (0 if delivered else 1)


def test_a_stop_ends_the_waiting_and_the_record_comes_again(tmp_path):
    retry = {"errors__retry__timeout": -1, "errors__retry__delay__max__ms": 3_600_000}
    for restart in range(2):
        with LocalWorker(tmp_path) as worker:
            if not restart:
                produce(worker.bootstrap, "t", [(None, "busy6", [])])
                make(worker, "NoteSink", value__converter=f"{HERE}:PickyConverter", errors__tolerance="all", **retry)
                wait_for(lambda: CALLS["busy6"] >= 2)
            else:
                wait_for(lambda: CALLS["busy6"] >= 4)  # tried again by the next worker
        assert PUT["k"] == []


def test_the_log_has_one_line_a_failure_and_never_the_value(tmp_path, caplog):
    logs = {"errors__log__enable": "true", "errors__log__include__messages": "true", "errors__tolerance": "all"}
    with LocalWorker(tmp_path) as worker, caplog.at_level(logging.ERROR):
        produce(worker.bootstrap, "t", [("secret key", "{'secret': 'value'}", []), (None, '{"a":1}', [])])
        make(worker, "NoteSink", **JSON, **logs)
        wait_for(lambda: PUT["k"])
        (line,) = [record.getMessage() for record in caplog.records if "Error in stage" in record.getMessage()]
    assert "VALUE_CONVERTER" in line and "org.apache.kafka.connect.json.JsonConverter" in line and "DataException" in line
    assert f"topic t, partition 0, offset 0, timestamp {TIME} (CreateTime)" in line
    assert "secret" not in line


@pytest.mark.parametrize("engine", ["rows", "auto"])
@pytest.mark.parametrize("tolerance", ["all", "none"])
def test_kafkas_own_system_test_half_of_the_json_broken(tmp_path, tolerance, engine):
    """connect_test.py: test_skip_and_log_to_dlq."""
    bad = half_bad(COUNT, seed=tolerance)
    values = ["{some:broken,json}" if wrong else json.dumps({"payload": row, "schema": {"type": "int32"}}) for row, wrong in enumerate(bad)]
    sink = tmp_path / "sink.txt"
    with LocalWorker(tmp_path) as worker:
        produce(worker.bootstrap, "t", [(None, value, []) for value in values])
        worker.sink("k", sink, "t", value__converter="JsonConverter", pipeline__engine=engine, **{**DLQ, "errors__tolerance": tolerance})
        if tolerance == "none":
            worker.wait_states("k", "RUNNING", "FAILED")
            assert not sink.exists() or sink.read_text() == ""
            return
        letters = messages(worker.bootstrap, "dlq", COUNT // 2)
        wait_for(lambda: len(sink.read_text().splitlines()) == COUNT // 2)
        assert sink.read_text().splitlines() == [str(row) for row, wrong in enumerate(bad) if not wrong]
        assert {letter.value() for letter in letters} == {b"{some:broken,json}"}
        worker.wait_states("k", "RUNNING", "RUNNING")


def test_a_queue_that_cannot_be_made_fails_the_task_at_its_start(tmp_path):
    with LocalWorker(tmp_path) as worker:
        make(worker, "NoteSink", errors__deadletterqueue__topic__name="dlq", errors__deadletterqueue__topic__replication__factor=3)
        worker.wait_states("k", "RUNNING", "FAILED")
        trace = worker.herder.task_status("k", 0)["trace"]
        assert "errors.deadletterqueue.topic.replication.factor" in trace and "InvalidReplicationFactorException" in trace
