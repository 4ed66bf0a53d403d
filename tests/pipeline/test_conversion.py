"""Conversion, at its bounds: headers, bytes that go straight through, the least batch for columns, literals, rows that gave multiple records."""

import numpy as np
import pyarrow as pa
import pytest

from standalone.converters.byte_array import ByteArrayConverter
from standalone.converters.json import JsonConverter
from standalone.converters.simple_header import SimpleHeaderConverter
from standalone.converters.string import StringConverter
from standalone.data.arrow import is_of_type
from standalone.pipeline.chain import Chain
from standalone.pipeline.conversion import Conversion
from standalone.pipeline.encoded import Outgoing, divided
from standalone.pipeline.pipeline import Pipeline
from standalone.pipeline.rows.engine import RowsEngine
from standalone.wire import ByteColumn, Records

STRINGS, BYTES, JSON = StringConverter, ByteArrayConverter, JsonConverter


def conversion(kind, key, value):
    chain = Chain(kind, key.of(is_key=True), value.of(), SimpleHeaderConverter.of(), [])
    return Conversion(chain, RowsEngine(chain))


@pytest.mark.parametrize(
    "kind, key, value, may",
    [
        ("source", STRINGS, STRINGS, True),
        ("source", STRINGS, BYTES, True),
        ("sink", BYTES, BYTES, True),
        ("sink", STRINGS, STRINGS, True),
        ("sink", STRINGS, JSON, False),
        ("sink", JSON, STRINGS, False),
        ("source", STRINGS, JSON, False),
        ("source", JSON, STRINGS, False),
    ],
)
def test_bytes_go_straight_through_where_both_converters_leave_them(kind, key, value, may):
    assert conversion(kind, key, value).hand_bytes_through(kind) is may


class OneWay(ByteArrayConverter):
    """Leaves the bytes as they are when it reads, and marks them when it writes."""

    def encode(self, topic, schema, column, count):
        found = super().encode(topic, schema, column, count)
        return found and (ByteColumn.of([b"!" + each for each in found[0]]), found[1])


@pytest.mark.parametrize("kind, may", [("sink", True), ("source", False)])
def test_what_counts_is_the_way_that_the_records_go(kind, may):
    assert conversion(kind, OneWay, OneWay).hand_bytes_through(kind) is may


def test_a_record_without_headers_among_others_has_none():
    values = ByteColumn.of([b"a", b"b", b"c"])
    records = Records(3, values=values, headers=[[("h", b"1")], None, []], offsets=np.arange(3))
    batch, numbers, bad = conversion("sink", STRINGS, STRINGS).decode("t", 0, records)
    assert numbers is None and not len(bad)
    assert [[(header.name, header.value) for header in each] for each in batch.headers] == [[("h", 1)], [], []]


def test_bad_keys_bad_values_and_their_union_leave_the_batch():
    keys = ByteColumn.of([b"1", b"{", b"3", b"{"])
    values = ByteColumn.of([b"1", b"2", b"{", b"{"])
    chain = Chain("sink", JSON.of({"schemas.enable": "false"}, is_key=True), JSON.of({"schemas.enable": "false"}), SimpleHeaderConverter.of(), [])
    batch, numbers, bad = Conversion(chain, RowsEngine(chain)).decode("t", 0, Records(4, keys, values, offsets=np.arange(4)))
    assert numbers.tolist() == [0] and bad.tolist() == [1, 2, 3] and batch.count == 1


def messages(count):
    values = ByteColumn.of([b'{"n":%d}' % row for row in range(count)])
    return Records(count, None, values, np.arange(count) - 1, None, np.arange(count))


def sink(engine="auto", min_rows=10):
    value = JSON.of({"schemas.enable": "false"})
    return Pipeline(Chain("sink", STRINGS.of(is_key=True), value, SimpleHeaderConverter.of(), []), engine, min_rows=min_rows)


@pytest.mark.parametrize("count, engine", [(9, "rows"), (10, "columns"), (11, "columns")])
def test_the_least_batch_for_columns_goes_by_columns(count, engine):
    pipeline = sink()
    pipeline.sink("t", 0, messages(count))
    assert {name: records for name, records in pipeline.counts.records.items() if records} == {engine: count}


@pytest.mark.parametrize("engine", ["rows", "auto"])
@pytest.mark.parametrize("first", [b'{"n":0}', b'"a text"'], ids=["as the others", "of another shape, so a row by itself"])
def test_a_record_without_a_timestamp_has_none(engine, first):
    records = messages(12)
    records = Records(12, None, ByteColumn.of([first, *list(records.values)[1:]]), records.timestamps, None, records.offsets)
    result = sink(engine).sink("t", 0, records)
    assert [record.timestamp for batch in result.batches for record in batch.records()] == [None, *range(11)]


@pytest.mark.parametrize("kind", [pa.int8(), pa.int16(), pa.int32(), pa.int64()], ids=str)
def test_a_literal_is_of_an_integer_type_up_to_its_bounds(kind):
    bound = 1 << kind.bit_width - 1
    assert [is_of_type(value, kind) for value in (-bound - 1, -bound, 0, bound - 1, bound)] == [False, True, True, True, False]


@pytest.mark.parametrize("rows, told", [([0, 1, 2], None), ([0, 0, 2], [0, 0, 2]), ([0, 1], [0, 1])], ids=["all", "one gave two", "one is left out"])
def test_rows_are_told_unless_each_of_the_batch_gave_one(rows, told):
    records = Records(len(rows), values=ByteColumn.of([b"v"] * len(rows)))
    (out,) = divided([Outgoing("t", None, records, np.array(rows))], 3)
    assert (None if out.rows is None else out.rows.tolist()) == told
