"""Finding the bad records of a refused batch, and the bytes of a record that was put a while ago."""

import numpy as np
import pytest

from standalone import ByteColumn, DataError, Schema, SinkBatch, SinkRecord
from standalone.runtime.failures import errant_records
from standalone.runtime.failures.errant_records import BadRecordSearch, Originals
from standalone.wire import Records


def rows(values):
    return [SinkRecord("t", 0, offset, value=value) for offset, value in enumerate(values)]


def columns(values):
    """The same as two batches in columns."""
    middle = len(values) // 3
    parts = [(0, values[:middle]), (middle, values[middle:])]
    return [
        SinkBatch(len(part), "t", ByteColumn.of([value.encode() for value in part]), Schema.STRING, offsets=np.arange(low, low + len(part)), origin=("t", 0))
        for low, part in parts
        if part
    ]


class Store:
    """Refuses a batch with a bad record as a whole; with `away` every batch from that record on."""

    def __init__(self, error, away=None):
        self.error, self.away, self.kept, self.puts = error, away, {}, 0

    def put(self, items):
        self.puts += 1
        found = [record for item in items for record in (item.records() if isinstance(item, SinkBatch) else [item])]
        if self.away is not None and any(record.value == self.away for record in found):
            self.error = OSError("away")
            self.gone = True
        if getattr(self, "gone", False) or any(record.value.startswith("bad") for record in found):
            raise self.error
        self.kept.update((record.offset, record.value) for record in found)


def find(store, items):
    reported = []
    search = BadRecordSearch(store.put, lambda record, error: reported.append(record.offset))
    try:
        store.put(items)
    except Exception as error:
        search.find(items, error)
    return reported


@pytest.mark.parametrize("view", [rows, columns])
@pytest.mark.parametrize("error", [DataError("bad"), ValueError("bad")], ids=["a DataError", "any error"])
@pytest.mark.parametrize(
    "bad",
    [{0}, {99}, {50}, {0, 1, 2, 3}, {7, 8, 60, 99}, set(range(0, 100, 2)), set(range(99))],
    ids=["first", "last", "middle", "first four", "four", "every other", "all but one"],
)
def test_exactly_the_bad_records_are_reported_and_all_others_kept(view, error, bad):
    store = Store(error)
    reported = find(store, view([f"{'bad' if row in bad else 'good'}{row}" for row in range(100)]))
    assert sorted(reported) == sorted(bad)
    assert sorted(store.kept) == [row for row in range(100) if row not in bad]


def test_a_store_that_goes_away_in_the_midst_fails_with_its_own_error():
    store = Store(ValueError("bad"), away="good70")
    with pytest.raises(OSError, match="away"):
        find(store, rows([f"{'bad' if row == 3 else 'good'}{row}" for row in range(100)]))


def test_a_store_that_never_took_anything_is_away():
    with pytest.raises(ValueError):
        find(Store(ValueError("bad")), rows(["bad1", "bad2"]))


def test_data_errors_need_no_proof():
    assert find(Store(DataError("bad")), rows(["bad1", "bad2"])) == [0, 1]


def fetched(low, count, size=10):
    return "t", 0, Records(count, None, ByteColumn.of([b"%010d" % row for row in range(low, low + count)]), offsets=np.arange(low, low + count) * 2)


def test_originals_are_found_until_their_offsets_are_committed():
    originals = Originals()
    originals.kept = True
    originals.begin([fetched(0, 10)])
    originals.begin([fetched(10, 10)])
    records, row = originals.find("t", 0, 6)
    assert records.values[row] == b"%010d" % 3
    assert originals.find("t", 0, 7) is None and originals.find("t", 1, 6) is None
    originals.forget(("t", 0), 20)
    assert originals.find("t", 0, 6) is None and originals.find("t", 0, 26) is not None
    originals.forget(("t", 0))
    assert originals.nbytes == 0


def test_what_is_being_put_is_found_even_where_nothing_is_kept():
    originals = Originals()
    originals.begin([fetched(0, 10)])
    assert originals.find("t", 0, 6) is not None and originals.nbytes == 0
    originals.begin([])
    assert originals.find("t", 0, 6) is None


def test_no_more_than_so_many_bytes_are_kept(monkeypatch):
    monkeypatch.setattr(errant_records, "_MOST_BYTES", 1000)
    originals = Originals()
    originals.kept = True
    for low in range(0, 1000, 10):
        originals.begin([fetched(low, 10)])
        assert originals.nbytes <= 1000
    assert originals.find("t", 0, 0) is None and originals.find("t", 0, 1998) is not None
