"""Records that fail, or that only rows can do, in the middle of a batch: both engines tell the same of the first, and put the second back in place."""

import gc
import weakref

import numpy as np
import pytest

from standalone import ByteColumn, Header, Schema, SourceBatch
from standalone.converters.json import JsonConverter
from standalone.converters.simple_header import SimpleHeaderConverter
from standalone.converters.string import StringConverter
from standalone.errors import trace_of
from standalone.pipeline.chain import Chain, Link
from standalone.pipeline.pipeline import Pipeline
from standalone.pipeline.repair import MOST_SPLITS
from standalone.transforms.cast import Cast
from standalone.transforms.extract_field import ExtractField
from standalone.transforms.insert_field import InsertField
from standalone.wire import Records

COUNT = 2000
SCHEMA = (
    '{"type":"struct","optional":true,"fields":[{"type":"string","optional":false,"field":"n"},{"type":"int64","optional":true,"field":"i"},'
    '{"type":"struct","optional":true,"field":"s","fields":[{"type":"string","optional":true,"field":"t"}]}]}'
)


def good(row):
    return f'{{"schema":{SCHEMA},"payload":{{"n":"{row}","i":{row},"s":{{"t":"é{row}"}}}}}}'.encode()


def odd(row):
    """As good as the others, but written otherwise: for rows."""
    return f'{{ "payload":{{"i":{row},"n":"{row}","s":{{"t":"é{row}"}}}}, "schema":{SCHEMA}}}'.encode()


def no_json(row):
    return b"not json"


def no_number(row):
    return good(row).replace(b'"n":"', b'"n":"x')


def nothing(row):
    return f'{{ "payload":null, "schema":{SCHEMA}}}'.encode()


def fetched(other, every=10, **more):
    values = [other(row) if row % every == 3 else good(row) for row in range(COUNT)]
    return Records(COUNT, None, ByteColumn.of(values), np.arange(COUNT) + 5, None, np.arange(COUNT) * 2, **more)


def pipeline(engine, links=(), holder=None, kind="sink"):
    converters = StringConverter.of(is_key=True), JsonConverter.of({}), SimpleHeaderConverter.of()
    return Pipeline(Chain(kind, *converters, list(links)), engine, holder)


def told(result):
    """All that is told of what failed, but where in our files."""
    return [
        (failure.row, failure.stage, failure.name, failure.class_name, type(failure.error), str(failure.error), _causes(failure.error))
        for failure in result.failures
    ]


def _causes(error):
    return [line for line in trace_of(error).splitlines() if not line.startswith("\t")]


def put(result):
    return [record for batch in result.batches for record in batch.records()]


@pytest.mark.parametrize("other", [odd, nothing])
@pytest.mark.parametrize("headers", [None, [[("h", b"1")]] * COUNT])
def test_rows_that_only_rows_can_read_stand_in_their_place_and_the_batch_stays_in_columns(other, headers):
    assert COUNT // 10 > MOST_SPLITS
    records = fetched(other)
    records.headers = headers
    by_columns = pipeline("auto")
    found = by_columns.sink("t", 3, records)
    assert by_columns.counts.redone == (COUNT // 10 if other is nothing else 0), "what no column holds is done again from the start"
    assert len(found.batches) == 1 and (other is nothing or not isinstance(found.batches[0].value, list))
    expected = pipeline("rows").sink("t", 3, records)
    assert put(found) == put(expected)


def test_no_row_of_a_large_batch_becomes_a_record_because_of_a_few():
    found = pipeline("auto").sink("t", 3, fetched(odd))
    assert [batch._records for batch in found.batches] == [None]


def picky(engine):
    """A chain whose value converter counts what it is asked."""
    asked = []

    class Picky(JsonConverter):
        def to_connect(self, topic, data):
            asked.append(bytes(data))
            return super().to_connect(topic, data)

    return Pipeline(Chain("sink", StringConverter.of(is_key=True), Picky.of({}), SimpleHeaderConverter.of(), []), engine, None), asked


def test_a_converter_is_asked_once_for_what_it_refuses():
    by_columns, asked = picky("auto")
    found = by_columns.sink("t", 3, fetched(no_json))
    assert asked.count(b"not json") == len(found.failures) == COUNT // 10


@pytest.mark.parametrize("engine", ["auto", "rows"])
@pytest.mark.parametrize("other", [no_json, no_number])
def test_what_failed_says_where_and_goes_with_the_batch_without_the_garbage_collector(other, engine):
    """Frames hold the batch, and are held by the errors in it."""
    result = pipeline(engine, LINKS["the second of two"]).sink("t", 3, fetched(other))
    trace, errors = trace_of(result.failures[0].error), [weakref.ref(failure.error) for failure in result.failures]
    assert ("\tat _parsed(" if other is no_json else "/transforms/cast_functions.py:") in trace
    gc.disable()
    try:
        del result
        assert not any(error() for error in errors)
    finally:
        gc.enable()


LINKS = {
    "a converter": [Link("add", InsertField.Value.of({"static.field": "a", "static.value": "b"}))],
    "the first of two transforms": [Link("cast", Cast.Value.of({"spec": "n:int32"})), Link("field", ExtractField.Value.of({"field": "n"}))],
    "the second of two": [
        Link("add", InsertField.Value.of({"static.field": "a", "static.value": "b"})),
        Link("cast", Cast.Value.of({"spec": "n:int32"})),
    ],
}


@pytest.mark.spark
@pytest.mark.parametrize("other", [no_json, no_number])
@pytest.mark.parametrize("links", LINKS.values(), ids=LINKS)
def test_a_sinks_bad_records_are_told_alike_by_both_engines(links, other, spark_holder):
    records = fetched(other)
    by_spark = pipeline("spark", links, spark_holder)
    found, expected = by_spark.sink("t", 3, records), pipeline("rows", links).sink("t", 3, records)
    assert told(found) == told(expected)
    assert put(found) == put(expected)
    assert by_spark.counts.records["columns"] + by_spark.counts.records["spark"] >= COUNT - COUNT // 10, "the others went by columns"


@pytest.mark.spark
@pytest.mark.parametrize("links", LINKS.values(), ids=LINKS)
def test_a_sources_bad_records_are_told_alike_by_both_engines(links, spark_holder):
    good_values = put(pipeline("rows").sink("t", 3, fetched(no_number)))

    def batch():
        values, schema = [record.value for record in good_values], good_values[0].value_schema
        return SourceBatch(COUNT, "t", values, schema, offset_of=lambda row: {"at": row}, headers=[(Header("h", row, Schema.INT32),) for row in range(COUNT)])

    found = pipeline("spark", links, spark_holder, "source").source(batch())
    expected = pipeline("rows", links, None, "source").source(batch())
    assert told(found) == told(expected)
    assert [failure.record for failure in found.failures] == [failure.record for failure in expected.failures]
    assert sum(map(len, (each.records for each in found.out))) == COUNT - len(found.failures)
