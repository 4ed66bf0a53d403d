"""The test kit and its pytest fixtures: what they find, and what they say where something is wrong."""

import collections
import pathlib
import re
import subprocess
import sys

import pytest

from connectors.file.sink import FileStreamSinkTask
from connectors.file.source import FileStreamSourceTask
from standalone import ConfigError, DataError, RetriableError, Schema, SchemaBuilder, SinkRecord, SourceRecord, Struct
from standalone.local_worker import LogRecord, wait_for
from standalone.log.broker import node
from standalone.log.broker.partitions import Partition

pytest_plugins = "pytester"

ROOT = pathlib.Path(__file__).parent.parent
SOURCE = {"connector.class": "FileStreamSource", "topic": "logs"}
HOIST = {"transforms": "hoist", "transforms.hoist.type": "HoistField$Value", "transforms.hoist.field": "line"}
JSON = {"value.converter": "org.apache.kafka.connect.json.JsonConverter", "value.converter.schemas.enable": "false"}


# --- Transforms ----------------------------------------------------------------------------------------------------


def test_transforms_are_applied_in_order(apply_transforms):
    config = HOIST | {"transforms": "hoist,route", "transforms.route.type": "RegexRouter", "transforms.route.regex": "(.*)"}
    made = apply_transforms(config | {"transforms.route.replacement": "raw-$1"}, SourceRecord("t", "foo", value_schema=Schema.STRING))
    line = SchemaBuilder.struct().field("line", Schema.STRING).build()
    assert (made.topic, made.value) == ("raw-t", Struct(line, {"line": "foo"}))


@pytest.mark.parametrize("topic, dropped", [("noise", True), ("news", False)])
def test_a_predicate_decides_about_its_transform(apply_transforms, topic, dropped):
    config = {
        "transforms": "drop",
        "transforms.drop.type": "Filter",
        "transforms.drop.predicate": "noisy",
        "predicates": "noisy",
        "predicates.noisy.type": "TopicNameMatches",
        "predicates.noisy.pattern": "noise",
    }
    record = SinkRecord(topic, 0, 7, value="x")
    assert apply_transforms(config, record) == (None if dropped else record)


def test_a_transform_that_is_configured_wrongly_is_told_by_its_keys(apply_transforms):
    with pytest.raises(ConfigError, match="transforms.hoist.field"):
        apply_transforms({"transforms": "hoist", "transforms.hoist.type": "HoistField$Value"}, SourceRecord("t", "foo"))


def test_a_record_that_is_bad_raises_what_the_transform_raises(apply_transforms):
    config = {"transforms": "x", "transforms.x.type": "ExtractField$Value", "transforms.x.field": "f"}
    with pytest.raises(DataError):
        apply_transforms(config, SourceRecord("t", "no map"))


SQL = {"transforms": "each,hoist", "transforms.each.type": "Sql", "transforms.hoist.type": "HoistField$Value", "transforms.hoist.field": "in"}


@pytest.mark.spark
@pytest.mark.parametrize(
    "condition, expected",
    [("true", ["a", "b"]), ("part <> 'a'", "b"), ("part = 'c'", None)],
    ids=["several of one", "one of one", "none"],
)
def test_a_statement_may_make_several_records_of_one(apply_transforms, spark_holder, condition, expected):
    statement = f"SELECT part FROM record LATERAL VIEW explode(split(text, ',')) x AS part WHERE {condition}"
    made = apply_transforms({**SQL, "transforms.each.statement": statement}, SourceRecord("t", {"text": "a,b"}), spark_holder)
    found = [record.value["in"]["part"] for record in made] if isinstance(made, list) else made and made.value["in"]["part"]
    assert found == expected


@pytest.mark.spark
def test_what_a_statement_fails_on_is_raised(apply_transforms, spark_holder):
    with pytest.raises(DataError, match="no such day"):
        apply_transforms({**SQL, "transforms.each.statement": "SELECT raise_error('no such day') AS x FROM record"}, SourceRecord("t", {"a": 1}), spark_holder)


# --- The log ---------------------------------------------------------------------------------------------------------


def test_records_of_any_time_stay_in_the_log(connect_worker, monkeypatch):
    """A test gives its records what time it likes: retention would delete those of 1970 while it looks for them."""
    looked = collections.Counter()
    expire = Partition.expire
    monkeypatch.setattr(node, "HOUSEKEEPING_SECONDS", 0.01)
    monkeypatch.setattr(Partition, "expire", lambda self, now_ms: (expire(self, now_ms), looked.update([self.topic]))[0])
    worker = connect_worker()
    worker.send("old", [LogRecord("old", None, None, 1000, None, b"of 1970", [])])
    looked.clear()
    wait_for(lambda: looked["old"] > 1)
    assert worker.values("old", 1) == [b"of 1970"]


def test_a_worker_of_a_test_begins_no_archive_of_spark_s_classes(connect_worker):
    """It takes a second JVM a minute, beside the test, and a test's worker is gone before: each run would begin it again."""
    assert connect_worker().process.worker.session.archive_after_seconds is None


# --- Connectors ----------------------------------------------------------------------------------------------------


def test_a_source_runs_on_lines(run_connector):
    found = run_connector(SOURCE | HOIST | JSON, ["foo", "bär"])
    assert [(record.topic, record.offset, record.value) for record in found] == [("logs", 0, b'{"line":"foo"}'), ("logs", 1, '{"line":"bär"}'.encode())]


def test_what_a_router_sends_elsewhere_is_found_there(run_connector):
    route = {"transforms": "r", "transforms.r.type": "RegexRouter", "transforms.r.regex": ".*", "transforms.r.replacement": "elsewhere"}
    assert [record.value for record in run_connector(SOURCE | route, ["foo"], topic="elsewhere")] == [b"foo"]


def test_a_sink_is_fed_until_it_has_committed(run_connector, tmp_path):
    out = tmp_path / "out"
    run_connector({"connector.class": "FileStreamSink", "file": out, "topics": "t"}, ["foo", ("key", b"bar"), LogRecord("t", 0, None, 5, None, b"baz", [])])
    assert out.read_text() == "foo\nbar\nbaz\n"


def test_keys_timestamps_and_headers_arrive(connect_worker):
    worker = connect_worker()
    sent = LogRecord("t", 0, None, 1234, b"k", b"v", [("h", b"1"), ("h", None)])
    worker.send("t", [sent, ("k2", None)])
    first, second = worker.records("t", 2)
    assert first == sent._replace(offset=0)
    assert (second.key, second.value, second.headers) == (b"k2", None, [])


def test_a_connector_that_fails_ends_the_test_with_its_trace(run_connector):
    bad = {"transforms": "x", "transforms.x.type": "ExtractField$Value", "transforms.x.field": "f"}
    with pytest.raises(AssertionError, match="the connector failed:(.|\n)*ExtractField"):
        run_connector(SOURCE | bad, ["foo"])


def test_records_that_do_not_come_are_told(connect_worker):
    worker = connect_worker()
    worker.send("t", ["foo"])
    with pytest.raises(AssertionError, match="1 of 2 records in 't'"):
        worker.records("t", 2, seconds=0.2)
    with pytest.raises(AssertionError, match="the topic 'u'"):
        worker.records("u", 1, seconds=0.2)


# --- Faults --------------------------------------------------------------------------------------------------------


def test_a_poll_that_asks_to_be_repeated_loses_nothing(run_connector, fail_calls):
    fail_calls(FileStreamSourceTask, "poll", RetriableError("not now"), times=2)
    assert [record.value for record in run_connector(SOURCE, ["foo"])] == [b"foo"]


def test_a_put_that_fails_for_good_fails_the_task(connect_worker, fail_calls, tmp_path):
    fail_calls(FileStreamSinkTask, "put", OSError("the disk is gone"))
    with pytest.raises(AssertionError, match="the disk is gone"):
        connect_worker().run_sink({"connector.class": "FileStreamSink", "file": tmp_path / "out", "topics": "t"}, ["foo"])


def test_a_method_is_itself_again_behind_the_test(fail_calls):
    class Base:
        def work(self):
            return "done"

    class Derived(Base):
        pass

    fail_calls(Derived, "work", ValueError("no"), times=1)
    with pytest.raises(ValueError):
        Derived().work()
    assert Derived().work() == Base().work() == "done"


def test_a_log_that_refuses_for_a_while_gets_all_in_the_end(connect_worker):
    worker = connect_worker()
    with worker.log_refusing(times=2):
        assert [record.value for record in worker.run_source(SOURCE, ["foo", "bar"])] == [b"foo", b"bar"]


def test_a_log_that_refuses_for_good_fails_the_source(connect_worker):
    worker = connect_worker()
    with worker.log_refusing(for_good=True), pytest.raises(AssertionError, match="the connector failed"):
        worker.run_source(SOURCE, ["foo"])


def test_a_log_that_was_away_has_what_it_had(connect_worker, tmp_path):
    worker, source = connect_worker(), tmp_path / "in"
    source.write_text("1\n")
    worker.create("s", SOURCE | {"file": source})
    assert worker.values("logs", 1) == [b"1"]
    with worker.log_outage():
        with source.open("a") as file:
            file.write("2\n")
    assert worker.values("logs", 2) == [b"1", b"2"]


# --- Golden files, and the plugin itself ---------------------------------------------------------------------------


def test_a_golden_file_is_written_on_demand_and_compared(pytester):
    def run(number, *arguments):
        pytester.makepyfile(test_it=f'def test_it(golden_file):\n    golden_file("a.json", {{"n": {number}, "b": b"x"}})\n')
        return pytester.runpytest_inprocess("-p", "no:cacheprovider", *arguments)

    run(1).stdout.fnmatch_lines("*there is no golden file*")
    run(1, "--update-golden-files").assert_outcomes(passed=1)
    assert (pytester.path / "golden" / "a.json").read_text() == '{\n "n": 1,\n "b": "x"\n}\n'
    run(1).assert_outcomes(passed=1)
    run(2).stdout.fnmatch_lines("*says otherwise*")


def test_the_tests_of_the_page_pass_as_written(pytester):
    connector, tests = (re.search(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)[1] for page in ("README.md", "docs/testing.md"))
    pytester.mkdir("plugins").joinpath("counter.py").write_text(connector)
    pytester.makepyfile(test_counter=tests)
    pytester.runpytest_inprocess("-p", "no:cacheprovider").assert_outcomes(passed=2)


def test_loading_the_plugin_loads_nothing_of_the_worker():
    code = "import sys, standalone.pytest_plugin; print([n for n in sys.modules if n.split('.')[0] in ('numpy', 'pyarrow', 'kafka', 'standalone')])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert eval(found) == ["standalone", "standalone.pytest_plugin"]


def test_what_never_comes_is_told():
    with pytest.raises(AssertionError, match="timed out after 0.05 s waiting for the moon"):
        wait_for(lambda: None, 0.05, "the moon")
