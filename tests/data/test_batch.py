"""Batches: rows and columns tell the same, slices and joins keep every row and its offset."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from standalone import ByteColumn, Header, Schema, SinkBatch, SinkRecord, SourceBatch, SourceRecord

texts = st.lists(st.binary(max_size=8).map(lambda item: item.replace(b"\xff", b"x")), min_size=1, max_size=20)


def columns(items, start=0, **changes):
    said = {"source_partition": {"file": "a"}, "offset_of": lambda row: {"position": start + row + 1}, **changes}
    return SourceBatch(len(items), "t", ByteColumn.of(items), Schema.STRING, **said)


def test_columns_as_rows():
    records = columns([b"a", None, "é".encode()]).records()
    assert [record.value for record in records] == ["a", None, "é"]
    assert [record.source_offset for record in records] == [{"position": 1}, {"position": 2}, {"position": 3}]
    assert {record.topic for record in records} == {"t"}


def test_rows_part_where_a_schema_or_the_source_changes():
    def record(value, schema, partition):
        return SourceRecord("t", value, partition, {"p": value}, value_schema=schema)

    rows = [record("a", Schema.STRING, {"f": 1}), record("b", Schema.STRING, {"f": 1}), record(1, Schema.INT32, {"f": 1}), record(2, Schema.INT32, {"f": 2})]
    batches = list(SourceBatch.runs(rows))
    assert [len(batch) for batch in batches] == [2, 1, 1]
    assert [record for batch in batches for record in batch.records()] == rows


@given(st.lists(texts, min_size=1, max_size=4))
def test_joined_batches_are_their_rows_one_behind_the_other(parts):
    starts = [sum(map(len, parts[:at])) for at in range(len(parts))]
    batches = [columns(items, start) for items, start in zip(parts, starts)]
    joined = SourceBatch.join(batches)
    assert joined.records() == [record for batch in [columns(i, s) for i, s in zip(parts, starts)] for record in batch.records()]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(columns([b"a"], source_partition={"file": "b"}), id="another source partition"),
        pytest.param(columns([b"a"], headers=[(Header("h", 1),)]), id="headers"),
        pytest.param(columns([b"a"], key=ByteColumn.of([b"k"])), id="keys"),
        pytest.param(SourceBatch(1, "u", ByteColumn.of([b"a"]), Schema.STRING, source_partition={"file": "a"}), id="another topic"),
        pytest.param(SourceBatch(1, "t", ["a"], Schema.STRING, source_partition={"file": "a"}), id="rows"),
    ],
)
def test_what_does_not_join(other):
    assert not columns([b"a"]).joins(other)
    assert columns([b"a"]).joins(columns([b"b"]))


@given(texts, st.integers(0, 20), st.integers(0, 20))
def test_a_slice_of_a_sink_batch_is_the_slice_of_its_records(items, low, high):
    low, high = sorted((min(low, len(items)), min(high, len(items))))
    records = [SinkRecord("t", 0, offset, value=item, value_schema=Schema.BYTES) for offset, item in enumerate(items)]
    (batch,) = SinkBatch.runs(records)
    assert batch.slice(low, high).records() == records[low:high]
    assert list(batch.slice(low, high).offsets) == list(range(low, high))


@given(texts, st.data())
def test_some_rows_of_a_sink_batch_are_the_same_of_its_records(items, data):
    rows = data.draw(st.lists(st.integers(0, len(items) - 1), unique=True)) if items else []
    records = [SinkRecord("t", 0, at, key=str(at), key_schema=Schema.STRING, value=item, value_schema=Schema.OPTIONAL_BYTES) for at, item in enumerate(items)]
    for batch in SinkBatch.runs(records):
        assert batch.take(np.array(rows, np.int64)).records() == [records[row] for row in rows]
        assert batch.nulls().tolist() == [item is None for item in items]
