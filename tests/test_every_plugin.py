"""One body of tests over all transforms, predicates and converters: whatever record comes, with whatever configuration Java's vectors know."""

import collections
import copy
import json
import sys

import numpy as np
import pytest

from standalone import ByteColumn, ConnectError, Header, HeaderConverter, Schema, SchemaBuilder, SinkRecord, SourceRecord, Struct
from standalone.clock import SYSTEM
from standalone.errors import trace_of
from standalone.pipeline.chain import Chain, Link
from standalone.pipeline.pipeline import Pipeline
from standalone.plugins import BUILT_IN, Plugins
from standalone.runtime.failures.tolerance import ErrorCounters, Tolerance
from standalone.wire import Records
from tests.suite.golden import GOLDEN, cases, classes

CONFIGS = 12  # of each class, the first that differ
ROUTERS = {"RegexRouter", "TimestampRouter"}
ON_HEADERS = {"DropHeaders", "InsertHeader", "HeaderFrom"}
ODD = "lone \ud800 surrogate"
POINT = SchemaBuilder.struct().field("id", Schema.OPTIONAL_INT32).field("name", Schema.OPTIONAL_STRING).build()
HEADERS = (Header("trace", "abc", Schema.STRING), Header("trace", None), Header(ODD, ODD, Schema.STRING))

RECORDS = {
    "a tombstone": SinkRecord("t", 0, 7, key_schema=Schema.STRING, key="k", timestamp=5, headers=HEADERS),
    "nothing at all": SourceRecord("t"),
    "a null under a schema": SourceRecord("t", key_schema=Schema.OPTIONAL_STRING, value_schema=Schema.OPTIONAL_STRING, headers=HEADERS),
    "a map without a schema": SourceRecord("t", {"id": 1, "name": "n", "tags": ["a"], "in": {"x": None}}, key={"id": 2}, timestamp=5, headers=HEADERS),
    "a struct": SinkRecord(
        "t", 1, 8, key_schema=POINT, key=Struct(POINT, {"id": 1, "name": "k"}), value_schema=POINT, value=Struct(POINT, {"id": 2}), headers=HEADERS
    ),
    "a text that is not UTF-8": SinkRecord("t", 0, 9, key_schema=Schema.STRING, key=ODD, value_schema=Schema.STRING, value=ODD, timestamp=5, headers=HEADERS),
    "such texts in a map": SourceRecord("t", {ODD: ODD, "id": ODD, "name": ODD}, key={"id": ODD}, timestamp=5, headers=HEADERS),
    "such texts in a struct": SourceRecord("t", Struct(POINT, {"name": ODD}), value_schema=POINT, key_schema=POINT, key=Struct(POINT, {"name": ODD})),
    "an empty topic": SourceRecord("", 1, timestamp=-1),
}  # fmt: skip


@pytest.fixture(scope="module")
def rows():
    sys.path.insert(0, str(GOLDEN.parent.parent / "scripts"))
    try:
        from goldenlib import rows

        yield rows
    finally:
        sys.path.pop(0)


def configurations(kind):
    """{Java class: [config]} of the vectors that could be configured."""
    found = collections.defaultdict(dict)
    for case in cases("transforms"):
        if case["outcome"].get("stage") == "configure":
            continue
        for step in case["chain"]:
            said = step if kind == "transform" else step.get("predicate")
            if said:
                found[said["class"]].setdefault(json.dumps(said["config"], sort_keys=True), said["config"])
    return {name: list(each.values())[:CONFIGS] for name, each in sorted(found.items())}


TRANSFORMS, PREDICATES = configurations("transform"), configurations("predicate")
CONVERTERS = sorted({name for case in cases("converters") for name in classes("converters", case)})


def short(name):
    return name.rpartition(".")[2]


def stage(kind, name, config, **attributes):
    made = Plugins().find(kind, name)()
    for attribute, value in attributes.items():
        setattr(made, attribute, value)
    made.configure(made.config_def.parse(config) if made.config_def is not None else config)
    return made


def of(work, *arguments):
    """What it makes, or the error: one that a user understands, with a string and a trace that can be stored."""
    try:
        return work(*arguments)
    except (ConnectError, ValueError) as error:
        assert not isinstance(error, UnicodeError), "says nothing of the record"
        text = trace_of(error)
        assert text.encode("utf-8").decode() == text and str(error)
        return type(error)


def test_all_that_is_built_in_is_among_them():
    kinds = {"transform": TRANSFORMS, "predicate": PREDICATES, "converter": CONVERTERS, "header_converter": CONVERTERS}
    for java, (_, offered, inner) in BUILT_IN.items():
        for kind in set(offered) & set(kinds) if java.startswith("org.apache.kafka.") else ():
            for name in inner or ("",):
                assert (f"{java}${name}" if name else java) in kinds[kind]


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
@pytest.mark.parametrize("name", TRANSFORMS, ids=short)
def test_a_transform_takes_every_record(name, record):
    for config in TRANSFORMS[name]:
        transform, before = stage("transform", name, config), copy.deepcopy(record)
        made = of(transform.apply, record)
        assert repr(record) == repr(before) and record == before, f"{config} changed what it was given"
        for each in [made] if isinstance(made, type(record)) else made if isinstance(made, list) else []:
            check_the_rest(name, record, each)
        again = of(stage("transform", name, config).apply, record)
        assert same(again, made), f"{config}: another of its kind makes {again!r} of the record, not {made!r}"


def check_the_rest(name, record, made):
    """What the class is not about is as it was."""
    simple = short(name).partition("$")[0]
    if simple not in ROUTERS:
        assert made.topic == record.topic
        assert made.partition == record.partition
    if simple not in ON_HEADERS:
        assert made.headers == record.headers
    if name.endswith("$Key") or simple in ROUTERS | ON_HEADERS - {"HeaderFrom"}:
        assert (made.value, made.value_schema) == (record.value, record.value_schema)
    if name.endswith("$Value") or simple in ROUTERS | ON_HEADERS - {"HeaderFrom"}:
        assert (made.key, made.key_schema) == (record.key, record.key_schema)
    assert made.timestamp == record.timestamp
    assert getattr(made, "offset", None) == getattr(record, "offset", None)


def same(one, other):
    return one is other or repr(one) == repr(other) and one == other


@pytest.mark.parametrize("name", TRANSFORMS, ids=short)
def test_a_transform_does_the_same_in_another_process(name):
    from pyspark import cloudpickle

    for config in TRANSFORMS[name]:
        transform = stage("transform", name, config)
        copied = cloudpickle.loads(cloudpickle.dumps(transform))
        for record in RECORDS.values():
            assert same(of(copied.apply, record), of(transform.apply, record)), config


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
@pytest.mark.parametrize("name", PREDICATES, ids=short)
def test_a_predicate_says_yes_or_no_of_every_record(name, record):
    for config in PREDICATES[name]:
        predicate, before = stage("predicate", name, config), copy.deepcopy(record)
        assert predicate.test(record) in (True, False)
        assert repr(record) == repr(before)


@pytest.mark.parametrize("is_key", [False, True], ids=["values", "keys"])
@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
@pytest.mark.parametrize("name", CONVERTERS, ids=short)
def test_a_converter_takes_every_value(name, record, is_key):
    if "SimpleHeader" in name:
        converter = stage("header_converter", name, {"converter.type": "header"})
        work, back = (lambda schema, value: converter.from_header("t", "h", schema, value)), (lambda data: converter.to_header("t", "h", data))
    else:
        converter = stage("converter", name, {"converter.type": "key" if is_key else "value"}, is_key=is_key)
        work, back = (lambda schema, value: converter.from_connect("t", schema, value)), (lambda data: converter.to_connect("t", data))
    before = copy.deepcopy(record)
    data = of(work, record.value_schema, record.value)
    assert repr(record) == repr(before), "it changed what it was given"
    assert data is None or isinstance(data, (bytes, type)), data
    if not isinstance(data, type):
        of(back, data)


@pytest.mark.parametrize("data", [b"", b"\xff\xfe", b"\x00", b"{", b'"\\ud800"', b"[" * 2000, b"1e999999999"], ids=repr)
@pytest.mark.parametrize("name", CONVERTERS, ids=short)
def test_a_converter_takes_any_bytes(name, data):
    if "SimpleHeader" in name:
        of(stage("header_converter", name, {"converter.type": "header"}).to_header, "t", "h", data)
    else:
        of(stage("converter", name, {"converter.type": "value"}, is_key=False).to_connect, "t", data)


# --- What is counted -------------------------------------------------------------------------------------------------

STRING, JSON = "org.apache.kafka.connect.storage.StringConverter", "org.apache.kafka.connect.json.JsonConverter"
MESSAGES = [b'{"id":1,"name":"n","tags":["a"]}', None, b'"text"', b"{", b"\xff\xfe", b"", b'{"id":null}', b'{"id":2,"name":"\\ud800"}', b"[1]", b"7"]


@pytest.mark.parametrize("engine", ["rows", "auto"])
@pytest.mark.parametrize("name", [*TRANSFORMS, *PREDICATES], ids=short)
def test_metrics_account_for_every_record_behind_a_stage(name, engine):
    """Each record fetched is put, dropped or failed, once, and the metrics say so, whichever engine works."""
    for config in TRANSFORMS.get(name) or PREDICATES[name]:
        if name in TRANSFORMS:
            link = Link("x", stage("transform", name, config))
        else:
            keep = stage("transform", "org.apache.kafka.connect.transforms.Filter", {})
            link = Link("x", keep, stage("predicate", name, config))
        check_metrics([link], stage("converter", JSON, {"schemas.enable": "false", "converter.type": "value"}, is_key=False), engine)


@pytest.mark.parametrize("engine", ["rows", "auto"])
@pytest.mark.parametrize("name", [each for each in CONVERTERS if "SimpleHeader" not in each], ids=short)
def test_metrics_account_for_every_record_of_a_converter(name, engine):
    check_metrics([], stage("converter", name, {"converter.type": "value"}, is_key=False), engine)


@pytest.mark.parametrize("name", [each for each in CONVERTERS if issubclass(Plugins().find("header_converter", each), HeaderConverter)], ids=short)
def test_metrics_account_for_every_record_whose_header_a_converter_reads(name):
    header = stage("header_converter", name, {"converter.type": "header"})
    check_metrics([], stage("converter", STRING, {"converter.type": "value"}, is_key=False), "rows", header)


def check_metrics(links, value, engine, header=None):
    count = len(MESSAGES)
    keys = stage("converter", STRING, {"converter.type": "key"}, is_key=True)
    header = header or stage("header_converter", "org.apache.kafka.connect.storage.SimpleHeaderConverter", {"converter.type": "header"})
    pipeline = Pipeline(Chain("sink", keys, value, header, links), engine)
    headers = [[("h", message)] for message in MESSAGES]
    records = Records(count, ByteColumn.of([b"k"] * count), ByteColumn.of(MESSAGES), np.arange(count), headers, np.arange(count))
    result = pipeline.sink("t", 0, records)
    failed, dropped = [failure.row for failure in result.failures], result.dropped.tolist()
    put = [record.original_offset for batch in result.batches for record in batch.records()]
    assert sorted(put + failed + dropped) == list(range(count)), (put, failed, dropped)
    assert sum(pipeline.counts.records.values()) == count and pipeline.counts.failed_batches == 0
    for failure in result.failures:
        trace_of(failure).encode("utf-8")
    counters = ErrorCounters()
    tolerance = {"errors.tolerance": "all", "errors.log.enable": True, "errors.log.include.messages": True}
    Tolerance(tolerance, "c", 0, counters, SYSTEM).sink("t", 0, records, result.failures)
    counted = counters.total_record_failures, counters.total_record_errors, counters.total_records_skipped, counters.total_errors_logged
    assert counted == (len(failed),) * 4
