"""connectctl preview and explain: what they show, and that they leave no trace: offsets, groups, topics and files stay as they were."""

import hashlib
import json
import subprocess
import sys

import pytest

from standalone import properties
from standalone.data.schema import Schema, SchemaBuilder
from standalone.data.struct import Struct
from standalone.tools.log_access import LogAccess
from standalone.tools.preview import ConnectorPreview
from standalone.tools.trace import plain, schema_text
from tests.runtime.local import wait_for

TRANSFORMS = "org.apache.kafka.connect.transforms"
CHAIN = {
    "transforms": "hoist,insert,only,drop",
    "transforms.hoist.type": f"{TRANSFORMS}.HoistField$Value",
    "transforms.hoist.field": "line",
    "transforms.insert.type": f"{TRANSFORMS}.InsertField$Value",
    "transforms.insert.static.field": "from",
    "transforms.insert.static.value": "é",
    "transforms.only.type": f"{TRANSFORMS}.RegexRouter",
    "transforms.only.regex": ".*",
    "transforms.only.replacement": "elsewhere",
    "transforms.only.predicate": "gone",
    "transforms.drop.type": f"{TRANSFORMS}.Filter",
    "transforms.drop.predicate": "gone",
    "predicates": "gone",
    "predicates.gone.type": "org.apache.kafka.connect.transforms.predicates.RecordIsTombstone",
}


class Folder:
    """The files of one worker and connector, and a picture of all that a preview could change."""

    def __init__(self, path, worker):
        self.path, self.worker = path, worker
        props = {"embedded.log.listener": worker.bootstrap, "value.converter": JSON, "value.converter.schemas.enable": "false"}
        self.worker_file = self.write("w.properties", {**worker.props, **props, "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"})

    def write(self, name, props):
        (self.path / name).write_text(properties.dump(props))
        return self.path / name

    def picture(self):
        """Hashes of all files of connectors and of the worker's offsets, the groups with their offsets, the topics with their ends."""
        files = sorted(file for file in [*self.path.rglob("*"), self.worker.folder / "connect.offsets"] if file.is_file())
        with LogAccess.at(self.worker.bootstrap) as log:
            topics = log.admin.list_topics(internal=True)
            ends = {pair: end for pair, (_, end) in log.ranges(pair for topic in topics for pair in log.partitions(topic)).items()}
            groups = {group: log.admin.group_offsets(group) for group in log.admin.list_groups()}
        return {str(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}, sorted(topics), ends, groups


JSON = "org.apache.kafka.connect.json.JsonConverter"


@pytest.fixture
def folder(tmp_path, worker):
    return Folder(tmp_path, worker)


@pytest.fixture
def file_source(folder):
    def make(lines="one\ntwo\n", **config):
        (folder.path / "in.txt").write_text(lines)
        name = folder.path.name
        return folder.write("c.properties", {"name": name, "connector.class": "FileStreamSource", "file": str(folder.path / "in.txt"), "topic": f"from-{name}", **config})

    return make


@pytest.fixture
def file_sink(folder):
    def make(**config):
        name = folder.path.name
        return folder.write("k.properties", {"name": name, "connector.class": "FileStreamSink", "file": str(folder.path / "out.txt"), "topics": f"to-{name}", **config})

    return make


# --- Sources -------------------------------------------------------------------------------------------------------


def test_a_sources_record_before_and_after_every_link(local, folder, file_source):
    first, second = local.json("preview", folder.worker_file, file_source(**CHAIN))
    assert [(step["step"], step.get("outcome")) for step in first["steps"]] == [
        ("polled", None), ("hoist", "changed"), ("insert", "changed"), ("only", "skipped"), ("drop", "skipped"),
    ]  # fmt: skip
    assert [step["record"]["value"] for step in first["steps"][:3]] == [
        {"schema": "string", "value": "one"},
        {"schema": "struct<line: string>", "value": {"line": "one"}},
        {"schema": "struct<line: string, from: string?>", "value": {"line": "one", "from": "é"}},
    ]
    assert first["written"]["value"] == '{"line":"one","from":"é"}' and first["written"]["topic"] == f"from-{folder.path.name}"
    assert second["written"]["value"] == '{"line":"two","from":"é"}'
    said = local("preview", folder.worker_file, folder.path / "c.properties", "-n", "1")
    assert "struct<line: string, from: string?>" in said and "would be written" in said and "record 2" not in said


def test_a_source_goes_on_where_it_was_and_its_offset_stays(ctl, folder, worker, file_source):
    config = properties.load(file_source("one\ntwo\n"))
    worker.herder.create(config["name"], config)
    wait_for(lambda: ctl.json("offsets", "get", config["name"])["offsets"])
    ctl("stop", config["name"])
    worker.wait_states(config["name"], "STOPPED")
    with open(folder.path / "in.txt", "a") as file:
        file.write("three\nfour\n")
    before = folder.picture()
    for options, expected in (([], ["three", "four"]), (["--from-beginning", "-n", "3"], ["one", "two", "three"])):
        traces = ctl.json("preview", folder.worker_file, folder.path / "c.properties", "--seconds", "0.5", *options)
        assert [trace["steps"][0]["record"]["value"]["value"] for trace in traces] == expected
    assert folder.picture() == before
    ctl("resume", config["name"])
    assert worker.values(config["topic"], 4) == [b"one", b"two", b"three", b"four"]


def test_lines_for_a_source(local, folder, file_source):
    traces = local.json("preview", folder.worker_file, file_source(**CHAIN), "--stdin", "-n", "2", input="a\r\nb\nc\n")
    assert [trace["written"]["value"] for trace in traces] == ['{"line":"a","from":"é"}', '{"line":"b","from":"é"}']


def test_what_fails_says_where(local, folder, file_source):
    broken = {**CHAIN, "transforms": "insert", "transforms.insert.static.field": "x"}
    (trace,) = local.json("preview", folder.worker_file, file_source("one\n", **broken), "-n", "1")
    assert trace["outcome"] == "failed" and "written" not in trace
    assert trace["steps"][-1]["step"] == "insert" and trace["steps"][-1]["error"]["class"] == "org.apache.kafka.connect.errors.DataException"
    assert "DataException" in local("preview", folder.worker_file, folder.path / "c.properties", "-n", "1")


def test_what_is_dropped_says_by_which_link(local, folder, file_source):
    drop = {**CHAIN, "transforms.drop.negate": "true"}
    (trace,) = local.json("preview", folder.worker_file, file_source("one\n", **drop), "-n", "1")
    assert trace["outcome"] == "dropped" and trace["steps"][-1] == {"step": "drop", "class": f"{TRANSFORMS}.Filter", "outcome": "dropped"}


def test_nothing_to_read_is_told(local, folder, file_source):
    assert "no records" in local("preview", folder.worker_file, file_source(""), "--seconds", "0.2")


# --- Sinks ---------------------------------------------------------------------------------------------------------


def test_a_sinks_records_are_read_without_a_group_and_put_nowhere(ctl, folder, file_sink):
    topic = f"to-{folder.path.name}"
    on = ["--bootstrap", folder.worker.bootstrap]
    ctl("topics", "create", topic, "-p", "2", *on)
    ctl("produce", topic, "-K", ":", "-H", "h=1", "-p", "0", *on, input="".join(f'k{n}:{{"n":{n}}}\n' for n in range(4)))
    ctl("produce", topic, "-p", "1", *on, input="broken\n")
    sink = file_sink()
    before = folder.picture()
    traces = ctl.json("preview", folder.worker_file, sink)
    assert folder.picture() == before and not (folder.path / "out.txt").exists()
    good = [trace for trace in traces if trace["outcome"] == "put"]
    (bad,) = [trace for trace in traces if trace["outcome"] == "failed"]
    assert [trace["steps"][-1]["record"]["value"]["value"] for trace in good] == [{"n": n} for n in range(4)]
    assert good[0]["steps"][0]["bytes"]["key"] == "k0" and good[0]["steps"][0]["bytes"]["headers"] == [{"name": "h", "value": "1"}]
    assert bad["steps"][0]["bytes"]["value"] == "broken" and bad["steps"][-1]["step"] == "VALUE_CONVERTER"
    assert "would be put" in ctl("preview", folder.worker_file, sink)
    newest = ctl.json("preview", folder.worker_file, sink, "--newest", "-n", "2")
    assert len(newest) == 2 and "broken" in [trace["steps"][0]["bytes"]["value"] for trace in newest]
    assert folder.picture() == before


def test_a_topics_regex_is_followed(ctl, folder, file_sink):
    topic = f"to-{folder.path.name}"
    ctl("produce", topic, "--bootstrap", folder.worker.bootstrap, input='{"a":1}\n')
    sink = folder.write("r.properties", {**{key: value for key, value in properties.load(file_sink()).items() if key != "topics"}, "topics.regex": f"{topic[:-1]}."})
    (trace,) = ctl.json("preview", folder.worker_file, sink, "-n", "1")
    assert trace["steps"][-1]["record"]["topic"] == topic


def test_lines_for_a_sink_go_through_its_converters(local, folder, file_sink):
    first, second, third = local.json("preview", folder.worker_file, file_sink(), "--stdin", "-K", "|", input='a|{"x":1.5}\nb|{"x":\n{"y":[null]}\n')
    assert first["steps"][-1]["record"]["value"] == {"schema": None, "value": {"x": 1.5}} and first["steps"][1]["record"]["key"]["value"] == "a"
    assert second["outcome"] == "failed"
    assert third["steps"][-1]["record"]["value"]["value"] == {"y": [None]} and third["steps"][1]["record"]["key"]["value"] is None


def test_a_topic_that_is_not_there_is_told(local, folder, file_sink):
    assert "no topic" in local("preview", folder.worker_file, file_sink(), code=1)


def test_a_wrong_configuration_is_told(local, folder, file_source):
    assert "transforms.hoist.type" in local("preview", folder.worker_file, file_source(**{**CHAIN, "transforms.hoist.type": "no.such.Transform"}), code=1)


# --- Compiled ------------------------------------------------------------------------------------------------------


SPLIT = {
    "transforms": "split,hoist",
    "transforms.split.type": "tests.runtime.bad_plugins:Split",
    "transforms.hoist.type": f"{TRANSFORMS}.HoistField$Value",
    "transforms.hoist.field": "part",
}


def test_what_becomes_several_records_is_shown_with_all_of_them(local, folder, file_source):
    several, one, none = local.json("preview", folder.worker_file, file_source("a+b>elsewhere\nc\nnone\n", **SPLIT))
    assert [[record["value"]["value"] for record in step.get("records", [])] for step in several["steps"][1:]] == [["a", "b"], [{"part": "a"}, {"part": "b"}]]
    assert [(said["topic"], said["value"]) for said in several["written"]] == [(f"from-{folder.path.name}", '{"part":"a"}'), ("elsewhere", '{"part":"b"}')]
    assert one["written"]["value"] == '{"part":"c"}' and one["steps"][1]["outcome"] == "unchanged"
    assert (none["outcome"], none["steps"][-1]["step"], none["steps"][-1]["outcome"]) == ("dropped", "split", "dropped")
    said = local("preview", folder.worker_file, folder.path / "c.properties", "-n", "1")
    assert said.count("1 of 2") == said.count("2 of 2") == 3 and "topic elsewhere" in said


def test_of_several_one_fails_and_the_record_with_it(local, folder, file_source):
    chain = {**SPLIT, "transforms": "split,picky", "transforms.picky.type": "tests.runtime.bad_plugins:PickyTransform"}
    (trace,) = local.json("preview", folder.worker_file, file_source("a+bad+b\n", **chain))
    assert (trace["outcome"], trace["steps"][-1]["step"]) == ("failed", "picky") and "written" not in trace


@pytest.mark.spark
def test_a_statement_is_shown_at_work(local, folder, spark_holder):
    chain = {"transforms": "q,c", "transforms.q.type": "Sql", "transforms.q.statement": "SELECT explode(split(t, ',')) AS t FROM record WHERE t <> ''"}
    chain |= {"transforms.c.type": "Cast$Value", "transforms.c.spec": "t:int32"}
    opened = ConnectorPreview(properties.load(folder.worker_file), "k", {"connector.class": "FileStreamSink", "topics": "t", "file": "out", **chain})
    taken = opened.take_lines([b'{"t":"1,2"}', b'{"t":""}', b'{"t":"x,4"}'], 10)
    several, none, bad = opened.traces(taken, spark_holder)
    assert [record["value"]["value"] for record in several["steps"][-1]["records"]] == [{"t": 1}, {"t": 2}] and several["outcome"] == "put"
    assert none["outcome"] == "dropped" and (bad["outcome"], bad["steps"][-1]["step"]) == ("failed", "c")
    words, plans = opened.explain(taken, spark_holder)
    assert "q: Spark runs" in words and any("Generate explode" in plan["spark"] for plan in plans)


@pytest.mark.spark
def test_explain_prints_sparks_plans_and_moves_nothing(folder, file_source):
    chain = {"transforms": "day,route", "transforms.day.type": f"{TRANSFORMS}.TimestampRouter", "transforms.route.type": f"{TRANSFORMS}.RegexRouter"}
    chain |= {"transforms.route.regex": "(.*)-2(.*)", "transforms.route.replacement": "$1-$2"}  # of a topic that each row has its own of
    arguments = ["explain", folder.worker_file, file_source("1\n2\n", **chain)]
    before = folder.picture()
    done = subprocess.run([sys.executable, "-m", "standalone.cli.ctl", *map(str, arguments)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    for expected in ("source: day", "TimestampRouter", "Spark gets", "== Optimized Logical Plan ==", "== Physical Plan =="):
        assert expected in done.stdout
    assert folder.picture() == before


def test_a_chain_without_transforms_needs_no_spark_to_be_explained(local, folder, file_source):
    found = local.json("explain", folder.worker_file, file_source())
    assert found["plans"] == [] and "no transforms" in found["chain"][0]


def test_without_a_record_nothing_can_be_compiled(local, folder, file_source):
    assert "--stdin" in local("explain", folder.worker_file, file_source("", **CHAIN), "--seconds", "0.2", code=1)


# --- Words ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "schema, text",
    [
        (None, None),
        (Schema.OPTIONAL_INT64, "int64?"),
        (SchemaBuilder.struct().name("Order").field("id", Schema.INT64).field("tags", SchemaBuilder.array(Schema.STRING).optional().build()).build(), "Order(struct<id: int64, tags: array<string>?>)"),
        (SchemaBuilder.map(Schema.STRING, Schema.INT32).build(), "map<string, int32>"),
    ],
)
def test_schemas_in_a_few_words(schema, text):
    assert schema_text(schema) == text


def test_values_that_json_has_not():
    schema = SchemaBuilder.struct().field("b", Schema.BYTES).build()
    value = Struct(schema)
    value.put("b", b"\xff")
    assert json.loads(json.dumps(plain({"s": value, "n": float("nan"), 1: [None, True]}))) == {"s": {"b": {"base64": "/w=="}}, "n": "NaN", "1": [None, True]}



# --- A running connector -------------------------------------------------------------------------------------------


def test_a_running_connector_is_explained_by_its_name(ctl, source, until):
    source("explained", **CHAIN)
    until(lambda: ctl.json("explain", "explained")["tasks"][0]["records"]["rows"] == 2)
    said = ctl("explain", "explained")
    for expected in ("task 0: rows 2 (100%)", "2 by rows: pipeline.engine=rows", "source: hoist", "nothing is compiled yet"):
        assert expected in said, said


@pytest.mark.parametrize("arguments, said", [(["nobody"], "There is no connector 'nobody'"), (["nobody", __file__], "No such file: nobody")])
def test_what_cannot_be_explained_is_said(ctl, arguments, said):
    assert said in ctl("explain", *arguments, code=1 if len(arguments) == 1 else 2)


def test_a_worker_s_file_alone_is_no_connector(ctl, folder):
    assert "name the connector's file after it" in ctl("explain", folder.worker_file, code=2)
