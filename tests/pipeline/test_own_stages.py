"""This package's own stages in a pipeline: hoisting and inserting compute nothing, and both engines agree to the byte."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from standalone import ByteColumn, Instant, Schema, SchemaBuilder, SourceBatch, SourceRecord, Struct, decimal_schema, timestamp_schema
from standalone.converters.json import JsonConverter
from standalone.converters.string import StringConverter
from standalone.pipeline.chain import Chain, Link
from standalone.pipeline.pipeline import Pipeline
from standalone.transforms.hoist_field import HoistField
from standalone.transforms.insert_field import InsertField
from standalone.wire import Records

FEW = settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
PLAIN = {"schemas.enable": "false"}
HOIST = Link("hoist", HoistField.Value.of({"field": "the line"}))
STATIC = Link("static", InsertField.Value.of({"static.field": "host", "static.value": 'we"b'}))
KNOWN = Link("known", InsertField.Value.of({"topic.field": "topic!", "timestamp.field": "when"}))
OFFSET = Link("offset", InsertField.Value.of({"offset.field": "at!", "partition.field": "in"}))

texts = st.one_of(st.none(), st.binary(max_size=6), st.text(max_size=6).map(lambda text: text.encode("utf-8", "replace")))


def pipelines(holder, kind, links, value=JsonConverter, **props):
    chain = Chain(kind, StringConverter.of(is_key=True), value.of(props), StringConverter.of(), links)
    return Pipeline(chain, "rows"), Pipeline(chain, "spark", holder)


def sent(result):
    return [
        (out.topic, out.partition, None if out.rows is None else out.rows.tolist(), list(out.records.values), _list(out.records.timestamps))
        for out in result.out
    ]


def _list(times):
    """Times; unset in all rows is one thing, however it is said."""
    return None if times is None or (times == -1).all() else times.tolist()


def failed(result):
    return [(failure.row, failure.stage, failure.name, str(failure.error)) for failure in result.failures]


@pytest.mark.spark
@pytest.mark.parametrize("props", [{}, PLAIN], ids=["with an envelope", "plain"])
@pytest.mark.parametrize("optional", [True, False], ids=["optional", "required"])
@given(lines=st.lists(texts, min_size=1, max_size=30), timed=st.booleans())
@FEW
def test_lines_are_hoisted_and_marked_alike(props, optional, lines, timed, spark_holder):
    schema = Schema.OPTIONAL_STRING if optional else Schema.STRING
    times = np.arange(len(lines)) - 1 if timed else None
    rows, columns = pipelines(spark_holder, "source", [HOIST, STATIC, KNOWN], **props)
    expected, found = (pipeline.source(SourceBatch(len(lines), "t", ByteColumn.of(lines), schema, timestamps=times)) for pipeline in (rows, columns))
    assert sent(found) == sent(expected) and failed(found) == failed(expected)


@pytest.mark.spark
def test_hoisting_and_inserting_need_no_job(spark_holder):
    rows, columns = pipelines(spark_holder, "source", [HOIST, STATIC], **PLAIN)
    (out,) = columns.source(SourceBatch(2, "t", ByteColumn.of([b"a", b"caf\xc3\xa9"]), Schema.STRING)).out
    assert list(out.records.values) == [b'{"the line":"a","host":"we\\"b"}', '{"the line":"café","host":"we\\"b"}'.encode()]
    assert (columns.counts.batches["columns"], columns.counts.batches["spark"]) == (1, 0)


@pytest.mark.spark
@given(lines=st.lists(texts, min_size=1, max_size=30))
@FEW
def test_a_sink_sees_offset_and_partition_alike(lines, spark_holder):
    rows, columns = pipelines(spark_holder, "sink", [HOIST, OFFSET, KNOWN], StringConverter)
    values, count = ByteColumn.of(lines), len(lines)
    records = Records(count, None, values, np.arange(count) - 1, None, np.arange(count) * 3)
    expected, found = (pipeline.sink("t", 2, records) for pipeline in (rows, columns))
    assert [record for batch in found.batches for record in batch.records()] == [r for batch in expected.batches for r in batch.records()]
    assert columns.counts.batches["columns"] == 1


INNER = SchemaBuilder.struct().optional().field("a", Schema.OPTIONAL_INT8).field("when", timestamp_schema(optional=True)).build()
EVERYTHING = (
    SchemaBuilder.struct()
    .name("Everything")
    .field("dotted.name", Schema.OPTIONAL_STRING)
    .field("n", Schema.INT64)
    .field("f", Schema.OPTIONAL_FLOAT64)
    .field("flag", Schema.OPTIONAL_BOOLEAN)
    .field("raw", Schema.OPTIONAL_BYTES)
    .field("inner", INNER)
    .field("list", SchemaBuilder.array(Schema.OPTIONAL_STRING).optional().build())
    .field("map", SchemaBuilder.map(Schema.STRING, Schema.INT32).optional().build())
    .field("amount", decimal_schema(2, optional=True))
    .build()
)
maybe = lambda strategy: st.one_of(st.none(), strategy)  # noqa: E731
small = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
inners = st.tuples(maybe(st.integers(-128, 127)), maybe(st.integers(-(10**15), 10**15).map(Instant)))
everything = st.tuples(
    maybe(small),
    st.integers(-(2**63), 2**63 - 1),
    maybe(st.floats(allow_nan=False)),
    maybe(st.booleans()),
    maybe(st.binary(max_size=4)),
    maybe(inners.map(lambda values: Struct.trusted(INNER, list(values)))),
    maybe(st.lists(maybe(small), max_size=3)),
    maybe(st.dictionaries(small, st.integers(-5, 5), max_size=3)),
    maybe(st.decimals(-(10**9), 10**9, places=2)),
)


@pytest.mark.spark
@given(values=st.lists(maybe(everything), min_size=1, max_size=12), batch_of_rows=st.booleans())
@FEW
def test_structs_of_every_type_come_through_alike(values, batch_of_rows, spark_holder):
    structs = [None if value is None else Struct.trusted(EVERYTHING, list(value)) for value in values]
    schema = EVERYTHING.with_(optional=True)
    for struct in structs:
        if struct is not None:
            struct.schema = schema
    rows, columns = pipelines(spark_holder, "source", [STATIC, KNOWN])

    def batches():
        if batch_of_rows:
            return list(SourceBatch.runs([SourceRecord("t", struct, value_schema=schema) for struct in structs]))
        return [SourceBatch(len(structs), "t", structs, schema)]

    for one, other in zip(batches(), batches()):
        expected, found = rows.source(one), columns.source(other)
        assert sent(found) == sent(expected) and failed(found) == failed(expected)
    assert columns.counts.batches["rows"] == 0
