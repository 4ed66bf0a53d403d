"""Both engines give the same, on batches of any content: order, failures in the middle, drops, routes, predicates, headers."""

import logging
import threading

import numpy as np
import pipeline_stages as stages
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from standalone import ByteColumn, Header, Schema, SchemaBuilder, SourceBatch, SourceRecord, Struct
from standalone.pipeline.chain import Chain, Link
from standalone.pipeline.pipeline import Pipeline
from standalone.wire import Records

TEXT = stages.TextConverter
CHAINS = {
    "something to compute": [Link("louder", stages.Louder())],
    "nothing to compute": [Link("wrap", stages.Wrap())],
    "wrapped, unwrapped, computed": [Link("wrap", stages.Wrap()), Link("unwrap", stages.Unwrap()), Link("louder", stages.Louder())],
    "failures": [Link("refuse", stages.RefuseBad()), Link("louder", stages.Louder())],
    "drops": [Link("drop", stages.DropOdd()), Link("refuse", stages.RefuseBad())],
    "failures behind drops": [Link("louder", stages.Louder()), Link("refuse", stages.RefuseBad()), Link("drop", stages.DropOdd())],
    "routes": [Link("route", stages.RouteByFirst())],
    "one other topic": [Link("rename", stages.Rename())],
    "predicate": [Link("louder", stages.Louder(), stages.StartsWith("y"))],
    "negated predicate": [Link("louder", stages.Louder(), stages.StartsWith("y"), True)],
    "predicate on a drop": [Link("drop", stages.DropOdd(), stages.StartsWith("odd y")), Link("louder", stages.Louder())],
    "predicate on a failure": [Link("refuse", stages.RefuseBad(), stages.StartsWith("bad y"), True)],
    "predicate for the whole batch": [Link("louder", stages.Louder(), stages.TopicIs("t")), Link("drop", stages.DropOdd(), stages.TopicIs("u"))],
    "predicate that changes the schema": [Link("wrap", stages.Wrap(), stages.StartsWith("y"))],
    "predicate on a route": [Link("route", stages.RouteByFirst(), stages.StartsWith("y"))],
    "no columnar form": [Link("louder", stages.Louder()), Link("turn", stages.OnlyRows())],
    "no transforms": [],
}

texts = st.one_of(
    st.none(),
    st.sampled_from(["", "y", "odd y", "bad y", "odd", "bad one", "unwritable", "unreadable", "ünïcödé", "y\U0001f600"]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
)
batches = st.lists(texts, min_size=1, max_size=60)
few = settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def chain(kind, links, value=TEXT, key=TEXT):
    return Chain(kind, key.of(), value.of(), stages.TextConverter.of(), links)


def by_rows(kind, links, **converters):
    return Pipeline(chain(kind, links, **converters), "rows")


def by_spark(kind, links, holder, **converters):
    return Pipeline(chain(kind, links, **converters), "spark", holder)


def sent(result):
    """What leaves for the log, by topic, in order; where each row names its partition, by partition."""
    seen = {}
    for topic, partition, records, rows in result.out:
        rows = range(records.count) if rows is None else rows.tolist()
        lists = [[None] * records.count if column is None else list(column) for column in (records.keys, records.values, records.headers)]
        times = [-1] * records.count if records.timestamps is None else records.timestamps.tolist()
        for row, key, value, headers, time in zip(rows, *lists, times):
            seen.setdefault((topic, partition), []).append((row, key, value, time, headers or None))
    return seen


def failed(result):
    return [(failure.row, failure.stage, failure.name, type(failure.error), str(failure.error)) for failure in result.failures]


def put(result):
    return [record for batch in result.batches for record in batch.records()]


def text_batch(values, **more):
    column = ByteColumn.of([None if value is None else value.encode() for value in values])
    return SourceBatch(len(values), "t", column, Schema.OPTIONAL_STRING, offset_of=lambda row: {"at": row}, **more)


def fetched(values, headers=None):
    column = ByteColumn.of([None if value is None else value.encode() for value in values])
    count = len(values)
    return Records(count, column, column, np.arange(count) - 1, headers, np.arange(count) * 2 + 10)


@pytest.mark.spark
@pytest.mark.parametrize("links", CHAINS.values(), ids=CHAINS)
@given(values=batches, timed=st.booleans())
@few
def test_a_source_sends_the_same_by_rows_and_by_columns(links, values, timed, spark_holder):
    times = np.arange(len(values)) - 1 if timed else None
    keys = ByteColumn.of([str(row).encode() for row in range(len(values))])

    def batch():
        return text_batch(values, timestamps=times, key=keys, key_schema=Schema.STRING)

    expected = by_rows("source", links).source(batch())
    found = by_spark("source", links, spark_holder).source(batch())
    assert sent(found) == sent(expected)
    assert failed(found) == failed(expected)
    assert found.dropped.tolist() == expected.dropped.tolist()


@pytest.mark.spark
@pytest.mark.parametrize("links", CHAINS.values(), ids=CHAINS)
@given(values=batches)
@few
def test_a_sink_is_given_the_same_by_rows_and_by_columns(links, values, spark_holder):
    expected = by_rows("sink", links).sink("t", 3, fetched(values))
    found = by_spark("sink", links, spark_holder).sink("t", 3, fetched(values))
    assert put(found) == put(expected)
    assert failed(found) == failed(expected)
    assert found.dropped.tolist() == expected.dropped.tolist()


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["source", "sink"])
def test_the_columns_engine_does_do_what_it_can(kind, spark_holder):
    for name, computes in [("something to compute", 1), ("nothing to compute", 0), ("failures", 1), ("drops", 1), ("routes", 1)]:
        pipeline = by_spark(kind, CHAINS[name], spark_holder)
        pipeline.source(text_batch(["a", "b"])) if kind == "source" else pipeline.sink("t", 0, fetched(["a", "b"]))
        assert pipeline.counts.batches == {"identity": 0, "rows": 0, "columns": 1 - computes, "spark": computes}, name
        assert pipeline.counts.redone == 0


@pytest.mark.spark
def test_a_long_batch_keeps_its_order_through_many_jobs(spark_holder, monkeypatch):
    from standalone.pipeline.spark import job

    monkeypatch.setattr(job, "JOB_BYTES", 200_000)
    values = [f"{'bad ' if row % 997 == 3 else 'odd ' if row % 1009 == 7 else ''}{row}" for row in range(60_000)]
    links = [Link("louder", stages.Louder()), *CHAINS["failures"], *CHAINS["drops"]]
    found = by_spark("source", links, spark_holder).source(text_batch(values))
    expected = [(row, value + "!!") for row, value in enumerate(values) if not value.startswith(("bad", "odd"))]
    (out,) = found.out
    assert list(zip(out.rows.tolist(), (value.decode() for value in out.records.values))) == expected
    assert [failure.row for failure in found.failures] == list(range(3, 60_000, 997))


@pytest.mark.spark
def test_topics_that_alternate_leave_in_few_pieces(spark_holder):
    values = [f"{'ab'[row % 2]}{'x' * (row % 3)}" for row in range(3_000)]
    found = by_spark("source", [Link("route", stages.RouteByFirst())], spark_holder).source(text_batch(values))
    assert {out.topic for out in found.out} == {"t-a", "t-b"}
    for topic in ("t-a", "t-b"):
        rows = [row for out in found.out if out.topic == topic for row in out.rows.tolist()]
        assert rows == sorted(rows), "a record without a partition must not be overtaken"
    always = [value + "x" * (2 - len(value) % 3 + 2) for value in values]
    found = by_spark("source", [Link("route", stages.RouteByFirst())], spark_holder).source(text_batch(always))
    assert len(found.out) == 2


ORDER = SchemaBuilder.struct().field("text", Schema.OPTIONAL_STRING).field("n", Schema.INT32).build()
OTHER = SchemaBuilder.struct().field("text", Schema.STRING).build()


@pytest.mark.spark
def test_schemas_may_alternate_within_what_a_task_polls(spark_holder):
    records = []
    for row in range(20):
        schema = ORDER if row % 5 < 3 else OTHER
        struct = Struct(schema, {"text": f"r{row}", **({"n": row} if schema is ORDER else {})})
        records.append(SourceRecord("t", struct, {"p": 1}, {"o": row}, value_schema=schema))
    pipelines = by_rows("source", [Link("unwrap", stages.Unwrap())]), by_spark("source", [Link("unwrap", stages.Unwrap())], spark_holder)
    both = [[sent(pipeline.source(batch)) for batch in SourceBatch.runs(records)] for pipeline in pipelines]
    assert both[0] == both[1]
    assert pipelines[1].counts.batches["rows"] == 0


@pytest.mark.spark
def test_values_that_are_not_what_their_schema_says_go_by_rows(spark_holder):
    wrong = [Struct.trusted(ORDER, ["a", 1]), Struct.trusted(ORDER, ["b", "no number"])]
    batch = SourceBatch(2, "t", wrong, ORDER)
    pipeline = by_spark("source", [Link("rename", stages.Rename())], spark_holder, value=stages.FieldsConverter)
    assert list(pipeline.source(batch).out[0].records.values)[1] == b'{"text": "b", "n": "no number"}'
    assert pipeline.counts.batches["rows"] == 1


@pytest.mark.spark
@pytest.mark.parametrize("engine", ["rows", "spark"])
def test_a_failure_names_stage_row_and_cause(engine, spark_holder):
    links = [Link("refuse", stages.RefuseBad())]
    pipeline = Pipeline(chain("source", links), engine, spark_holder)
    result = pipeline.source(text_batch(["good", "bad one", "unwritable", "good"]))
    assert [(f.row, f.stage, f.name) for f in result.failures] == [
        (1, "TRANSFORMATION", "refuse"),
        (2, "VALUE_CONVERTER", "pipeline_stages.TextConverter"),
    ]
    first = result.failures[0]
    assert first.record.value == "bad one" and first.record.source_offset == {"at": 1}
    assert first.java_class == "org.apache.kafka.connect.errors.DataException" and first.__cause__ is first.error
    assert result.out[0].rows.tolist() == [0, 3]


def test_whatever_a_stage_raises_is_that_records_failure():
    result = by_rows("source", [Link("turn", stages.OnlyRows())]).source(text_batch(["ab", None, "cd"]))
    assert list(result.out[0].records.values) == [b"ba", b"dc"]
    assert [(f.row, type(f.error)) for f in result.failures] == [(1, TypeError)]


@pytest.mark.spark
@pytest.mark.parametrize("engine", ["rows", "spark"])
def test_headers_go_along(engine, spark_holder):
    headers = [(Header("h", f"v{row}", Schema.STRING), Header("h", None)) if row % 2 else () for row in range(6)]
    batch = text_batch(["a", "b", "odd", "odd", "c", "unwritable"], headers=headers)
    result = Pipeline(chain("source", [Link("drop", stages.DropOdd())]), engine, spark_holder).source(batch)
    assert [each or None for each in result.out[0].records.headers] == [None, [("h", b"v1"), ("h", None)], None]


@pytest.mark.spark
@pytest.mark.parametrize("engine", ["rows", "spark"])
def test_headers_come_back(engine, spark_holder):
    headers = [[("a", b"1")], None, [("b", b"unreadable")], [("c", None)]]
    result = Pipeline(chain("sink", [Link("louder", stages.Louder())]), engine, spark_holder).sink("t", 0, fetched(["w", "x", "y", "z"], headers))
    assert [(record.value, record.headers) for record in put(result)] == [
        ("w!", (Header("a", "1", Schema.OPTIONAL_STRING),)),
        ("x!", ()),
        ("z!", (Header("c", None, Schema.OPTIONAL_STRING),)),
    ]
    assert [(f.row, f.stage) for f in result.failures] == [(2, "HEADER_CONVERTER")]


@pytest.mark.spark
def test_text_that_is_no_utf8_is_mended_as_by_rows(spark_holder):
    lines = ByteColumn.of([b"caf\xe9", b"\xed\xa0\x80", "ä".encode(), "ä".encode()[1:], b"", None])
    batches = [SourceBatch(6, "t", lines, Schema.STRING) for _ in range(2)]
    links = [Link("rename", stages.Rename())]
    assert sent(by_spark("source", links, spark_holder).source(batches[0])) == sent(by_rows("source", links).source(batches[1]))


def test_bytes_go_straight_through_a_chain_without_transforms():
    column = ByteColumn.of([b"caf\xe9", None, b"x"])
    through = Chain("source", _Through.of(), _Through.of(), TEXT.of())
    pipeline = Pipeline(through, "rows")
    assert pipeline.is_identity
    (out,) = pipeline.source(SourceBatch(3, "t", column, Schema.STRING)).out
    assert out.records.values is column and out.rows is None
    pipeline = Pipeline(through._replace(kind="sink"), "rows")
    records = Records(3, None, column, None, None, np.array([4, 5, 9]))
    (batch,) = pipeline.sink("t", 0, records).batches
    assert pipeline.is_identity and batch.value is column and batch.offsets is records.offsets


class _Through(stages.TextConverter):
    def encode(self, topic, schema, column, count):
        return column, None

    def decode(self, topic, column):
        return Schema.OPTIONAL_STRING, column, None


@pytest.mark.spark
def test_one_row_is_enough_where_spark_is_forced(spark_holder):
    pipeline = by_spark("source", CHAINS["something to compute"], spark_holder)
    assert sent(pipeline.source(text_batch(["a"]))) == {("t", None): [(0, None, b"a!", -1, None)]}
    assert pipeline.counts.batches["spark"] == 1


@pytest.mark.spark
def test_auto_gives_small_batches_to_the_rows_engine(spark_holder):
    pipeline = Pipeline(chain("source", CHAINS["something to compute"]), "auto", spark_holder, min_rows=2_000)
    for count in (1, 999, 1_000, 2_000):
        assert sum(out.records.count for out in pipeline.source(text_batch(["a"] * count)).out) == count
    assert (pipeline.counts.records["rows"], pipeline.counts.records["spark"]) == (2_000, 2_000)
    free = Pipeline(chain("source", CHAINS["nothing to compute"]), "auto", spark_holder)
    for count in (100, 1_000, 100, 10):
        free.source(text_batch(["a"] * count))
    assert (free.counts.records["rows"], free.counts.records["columns"], free.counts.batches["spark"]) == (10, 1_200, 0)


@pytest.mark.spark
@pytest.mark.parametrize("broken", [stages.Broken, stages.BrokenJob])
def test_a_column_meaning_that_breaks_costs_one_warning_and_no_record(broken, spark_holder, caplog):
    pipeline = by_spark("source", [Link("broken", broken())], spark_holder)
    with caplog.at_level(logging.WARNING):
        for _ in range(5):
            assert sent(pipeline.source(text_batch(["a", "b"])))["t", None] == [(0, None, b"a", -1, None), (1, None, b"b", -1, None)]
    assert len([record for record in caplog.records if record.name.startswith("standalone.pipeline")]) == 1
    assert "by rows" in pipeline.explain()


@pytest.mark.spark
def test_nulls_here_and_there_do_not_make_a_plan_each(spark_holder):
    pipeline = by_spark("source", [Link("rename", stages.Rename())], spark_holder, value=stages.FieldsConverter)
    schema = SchemaBuilder.struct().field("a", Schema.OPTIONAL_STRING).field("b", Schema.OPTIONAL_STRING).build()
    for number in range(12):
        values = [Struct(schema, {"a": "x" if number & 1 else None, "b": "y" if number & 2 else None})]
        (out,) = pipeline.source(SourceBatch(1, "t", values, schema)).out
        assert list(out.records.values) == [stages.FieldsConverter().from_connect("t", schema, values[0])]
    assert pipeline.explain().count("topic t,") <= 3


@pytest.mark.spark
def test_explain_says_what_is_computed_and_what_is_not(spark_holder):
    pipeline = by_spark("source", CHAINS["wrapped, unwrapped, computed"], spark_holder)
    assert "nothing is compiled yet" in pipeline.explain()
    pipeline.source(text_batch(["a"]))
    assert "louder (pipeline_stages.Louder)" in pipeline.explain() and "Spark gets v: c" in pipeline.explain()
    pipeline = by_spark("source", CHAINS["nothing to compute"], spark_holder)
    pipeline.source(text_batch(["a"]))
    assert "value = {text: v, mark: 'm'}" in pipeline.explain() and "no Spark job" in pipeline.explain()


@pytest.mark.spark
def test_what_has_no_column_meaning_is_spread_over_processes_in_order(spark_holder):
    values = [None if row % 1009 == 5 else f"{'unwritable' if row % 2003 == 7 else ''}{row}" for row in range(6_000)]
    links = CHAINS["no columnar form"]
    pipeline = by_spark("source", links, spark_holder)
    batches = [text_batch(values, source_partition={"p": 1}) for _ in range(2)]
    assert sent(pipeline.source(batches[0])) == sent(by_rows("source", links).source(batches[1]))
    assert pipeline.counts.batches["spark"] == 1
    pipeline = by_spark("sink", links, spark_holder)
    found, expected = pipeline.sink("t", 1, fetched(values)), by_rows("sink", links).sink("t", 1, fetched(values))
    assert put(found) == put(expected) and failed(found) == failed(expected)
    assert pipeline.counts.batches["spark"] == 1


@pytest.mark.spark
def test_a_stage_with_state_stays_in_one_place(spark_holder):
    pipeline = by_spark("source", [Link("number", stages.Number())], spark_holder)
    seen = [headers[0][1] for _ in range(2) for headers in pipeline.source(text_batch(["a"] * 3)).out[0].records.headers]
    assert seen == [b"1", b"2", b"3", b"4", b"5", b"6"]
    assert pipeline.counts.batches["spark"] == 0


@pytest.mark.spark
def test_stages_that_cannot_be_copied_stay_here(spark_holder):
    turn = stages.OnlyRows()
    turn.lock = threading.Lock()
    pipeline = by_spark("source", [Link("turn", turn)], spark_holder)
    assert list(pipeline.source(text_batch(["ab"])).out[0].records.values) == [b"ba"]
    assert pipeline.counts.batches["spark"] == 0
