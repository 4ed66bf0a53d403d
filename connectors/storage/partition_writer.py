"""What a sink writes of one partition of a topic: the files that are open, one for each folder, until they are closed and put in place together."""

import uuid

import numpy as np
import pyarrow as pa

from connectors.storage.ledger import Closed
from connectors.storage.spool import Spool
from connectors.storage.values import arrow_values
from connectors.storage.versions import Versions, projected
from standalone import ByteColumn, ConnectError, DataError


class OpenFile:
    """A file being written: its encoder, and the offsets that are in it."""

    def __init__(self, writer, spool, first):
        self._writer, self.spool = writer, spool
        self.first, self.last = first, first

    @property
    def memory(self):
        return self._writer.memory + self.spool.memory

    def append(self, column, last):
        self._writer.append(column)
        self.last = last

    def spill(self):
        self._writer.settle()
        self.spool.spill()

    def finish(self):
        self._writer.finish()

    def discard(self):
        self.spool.discard()


class PartitionWriter:
    """`take` takes batches in the order of their offsets; `safe_offset` tells which of them are stored for good."""

    def __init__(self, origin, parts, ledger, rotation, spool_folder, report):
        self._origin = origin
        self._parts = parts  # format, partitioner, extractor, versions' mode: what all partitions of a task share
        self._ledger = ledger
        self._rotation = rotation
        self._spool_folder = spool_folder  # () -> where spools lie
        self._report = report  # (record, error) of a bad record: raises where nobody tolerates that
        self._versions = Versions(parts.compatibility)
        self._open = {}  # folder -> OpenFile
        self._closed = None  # [Closed] of a commit that is under way
        self.next_offset = None  # what comes before has been taken
        self._first = None  # of what has been taken and not been committed

    def recover(self):
        """Where to read on, or None."""
        self.next_offset = self._ledger.take_over()
        return self.next_offset

    # --- Records ---

    def take(self, batch, now_ms):
        """Take what is new in a batch. After an error the same batch may be put again: what was taken is not taken twice."""
        self._complete()
        if self.next_offset is not None:
            batch = batch.slice(int(batch.offsets.searchsorted(self.next_offset)), len(batch))
        if not len(batch):
            return
        batch, kept = self._without_nulls(batch)
        if len(batch):
            self._take(batch, now_ms)
        if kept is not None:
            self.next_offset = max(self.next_offset or 0, kept)

    def _without_nulls(self, batch):
        """(the batch without values that are null, the offset behind what is left out or None)"""
        if self._parts.format.takes_nulls or not _has_nulls(batch.value):
            return batch, None
        behind = int(batch.offsets[-1]) + 1
        records = batch.records()
        good = [record for record in records if record.value is not None]
        for record in records:
            if record.value is None:
                self._parts.null_value(record, self._report)
        runs = list(type(batch).runs(good)) if good else []
        return (runs[0] if runs else batch.slice(0, 0)), behind

    def _take(self, batch, now_ms):
        schema, column, bad = self._encoded(batch, now_ms)
        times, folders_of, folders = self._places(batch, now_ms, bad)
        offsets = batch.offsets
        if bad:
            self._report_all(batch, bad)
            good = np.setdiff1d(np.arange(len(batch)), np.array(sorted(bad), np.int64))
            column, offsets, folders_of = _taken(column, good), offsets[good], folders_of[good]
            times = None if times is None else times[good]
        end = int(batch.offsets[-1]) + 1
        self._cut_up(schema, column, offsets, times, folders_of, folders, now_ms)
        self.next_offset = end

    def _encoded(self, batch, now_ms):
        """(the schema of the file, what is written of the batch, {row: error}); files of another schema are closed."""
        form, schema, bad = self._parts.format, batch.value_schema, {}
        if schema is None and not form.needs_schema:
            self._begin_schema(None, False, now_ms)
            return None, *form.encode(batch.topic, None, batch.value, len(batch))
        is_given = schema is not None
        schema, array, bad = arrow_values(batch)
        target = self._begin_schema(schema, is_given, now_ms)
        column, more = form.encode(batch.topic, target, projected(array, schema, target), len(batch))
        return target, column, {**more, **bad}

    def _begin_schema(self, schema, is_given, now_ms):
        closes, target = self._versions.look(schema, is_given)
        if closes:
            self.commit(now_ms)
        self._versions.set(target, is_given)
        return target

    def _places(self, batch, now_ms, bad):
        """(the time of each row or None, which of the folders it goes to, the folders); rows that have none are bad."""
        parts, times = self._parts, None
        if self._rotation.wants_times or parts.partitioner.by_time:
            times, without = parts.extractor.times(batch, now_ms)
            if without:
                bad.update(without)
                times = times.copy()
                times[list(without)] = 0
        folders_of, folders, without = parts.partitioner.encode(batch, times)
        bad.update(without)
        return times, folders_of, folders

    def _report_all(self, batch, bad):
        records = batch.records()
        for row in sorted(bad):
            error = bad[row]
            self._report(records[row], error if isinstance(error, ConnectError) else DataError(str(error)))

    def _cut_up(self, schema, column, offsets, times, folders_of, folders, now_ms):
        low = 0
        while low < len(offsets):
            high = self._rotation.room(low, times, folders_of, folders, now_ms)
            if high > low:
                self._append(schema, column, offsets, folders_of, folders, low, high)
                self._rotation.add(low, high, times, folders[folders_of[high - 1]])
                self.next_offset = int(offsets[high - 1]) + 1
                low = high
            if self._rotation.is_full or low < len(offsets):
                self.commit(now_ms)

    def _append(self, schema, column, offsets, folders_of, folders, low, high):
        if self._first is None:
            self._first = int(offsets[low])
        here = folders_of[low:high]
        if (here == here[0]).all():
            piece = _cut(column, low, high, len(offsets))
            self._append_to(folders[here[0]], schema, piece, int(offsets[low]), int(offsets[high - 1]))
            return
        order = np.argsort(here, kind="stable")
        sorted_ = here[order]
        starts = np.flatnonzero(np.diff(sorted_, prepend=-1))
        for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(order)]):
            rows = order[start:end] + low
            # Copied, not sliced: a piece that lies long in a file that is seldom closed must not hold the whole batch.
            self._append_to(folders[sorted_[start]], schema, _taken(column, rows), int(offsets[rows[0]]), int(offsets[rows[-1]]))

    def _append_to(self, folder, schema, piece, first, last):
        file = self._open.get(folder)
        if file is None:
            spool = Spool(f"{self._spool_folder()}/{uuid.uuid4().hex}")
            file = self._open[folder] = OpenFile(self._parts.format.open(schema, spool), spool, first)
        file.append(piece, last)

    # --- Closing ---

    def commit(self, now_ms):
        """Close the files that are open and put them in place. After an error it is begun where it stopped."""
        if self._closed is None:
            if not self._open:
                return
            self._parts.run(lambda file: file.finish(), list(self._open.values()))
            self._closed = [Closed(file.first, file.last, folder, file.spool) for folder, file in self._open.items()]
            self._closed_next = self.next_offset
        self._complete()
        self._rotation.begin(now_ms)

    def _complete(self):
        """What an error has left half done."""
        if self._closed is not None:
            self._ledger.commit(self._closed, self._closed_next)
            self._parts.committed(self._origin, self._closed)
            for each in self._closed:
                each.spool.discard()
            self._closed, self._first = None, None
            self._open = {}
            self._rotation.begin()

    def commit_if_due(self, now_ms):
        self._complete()
        if self._rotation.is_due(now_ms):
            self.commit(now_ms)

    def due_in_ms(self, now_ms):
        return self._rotation.due_in_ms(now_ms)

    def must_be_owner(self, error):
        self._ledger.must_be_owner(error)

    def safe_offset(self, offset):
        """The offset behind what is stored for good, up to that one."""
        return offset if self._first is None else min(offset, self._first)

    @property
    def open_files(self):
        return list(self._open.values())

    def let_go(self):
        """Throw away what is not committed."""
        for file in self._open.values():
            file.discard()
        self._open, self._closed, self._first = {}, None, None
        self._ledger.let_go()


def _has_nulls(column):
    if column is None:
        return True
    if isinstance(column, list):
        return any(item is None for item in column)
    if isinstance(column, ByteColumn):
        return bool((column.lengths < 0).any())
    return bool(getattr(column, "null_count", 0))


def _taken(column, rows):
    return column.take(rows) if isinstance(column, ByteColumn) else column.take(pa.array(rows))


def _cut(column, low, high, count):
    if not low and high == count:
        return column
    return column.slice(low, high) if isinstance(column, ByteColumn) else column.slice(low, high - low)
