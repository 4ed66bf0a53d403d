"""Write one topic partition: open files, one per folder, are closed and committed together."""

import uuid

import numpy as np
import pyarrow as pa

from connectors.storage.ledger import Closed, Overtaken
from connectors.storage.spool import Spool
from connectors.storage.values import arrow_values
from connectors.storage.versions import Versions, projected
from standalone import ByteColumn, ConnectError, DataError


class OpenFile:
    """A file being written with its companions: their encoders, and their offsets."""

    def __init__(self, folder, streams, first):
        self._folder, self._streams = folder, streams  # (suffix, encoder, spool); the values' is first
        self.first, self.last, self._count = first, first, 0

    @property
    def memory(self):
        return sum(writer.memory + spool.memory for _, writer, spool in self._streams)

    def append(self, pieces, count, last):
        for (_, writer, _), piece in zip(self._streams, pieces):
            writer.append(piece)
        self.last = last
        self._count += count

    def spill(self):
        for _, writer, spool in self._streams:
            writer.settle()
            spool.spill()

    def finish(self):
        for _, writer, _ in self._streams:
            writer.finish()

    def closed(self):
        (suffix, _, spool), *sides = self._streams
        return Closed(self.first, self.last, self._folder, spool, self._count, suffix, tuple((each, side) for each, _, side in sides))

    def discard(self):
        for _, _, spool in self._streams:
            spool.discard()


class PartitionWriter:
    """`take` accepts batches in offset order; `safe_offset` returns up to where they are stored."""

    def __init__(self, parts, ledger, rotation, spool_folder, report, stored=None):
        self._parts = parts  # format, partitioner, extractor, compatibility mode: shared by a task's partitions
        self._ledger = ledger
        self._rotation = rotation
        self._spool_folder = spool_folder  # () -> folder for spools
        self._report = report  # (record, error) of a bad record: raises unless tolerated
        self._stored = stored  # called with (schema, folders) of files that are in place
        self._versions = Versions(parts.compatibility)
        self._beside = []  # schemas of the companion files
        self._open = {}  # folder -> OpenFile
        self._closed = None  # [Closed] of a commit in progress
        self.next_offset = None  # everything before has been taken
        self._first = None  # offset of the first uncommitted record
        self._held = None  # where to start to learn the ledger's state
        self.rewound = False  # records must be read again: until then none are taken

    def recover(self):
        """Return where to resume, or None."""
        self.next_offset = self._ledger.take_over()
        return self.next_offset

    # --- Records ---

    def take(self, batch, now_ms):
        """Take the new records of a batch. After an error the same batch may be put again; records are not taken twice."""
        if self.rewound:
            return
        try:
            self._complete()
            self._take_new(batch, now_ms)
        except Overtaken:
            self._read_again()

    def _take_new(self, batch, now_ms):
        if self.next_offset is not None:
            batch = batch.slice(int(batch.offsets.searchsorted(self.next_offset)), len(batch))
        if not len(batch):
            return
        for low, high, is_null in self._runs(batch):
            part = batch.slice(low, high)
            if is_null and self._parts.tombstones is None:
                for record in part.records():
                    self._parts.null_value(record, self._report)
                self.next_offset = int(part.offsets[-1]) + 1
            else:
                self._take(part, now_ms, is_null)

    def _runs(self, batch):
        """Yield (from, to, whether their values are null and need special handling) of the rows, in order."""
        nulls = None if self._parts.writes_nulls else _nulls_of(batch.value, len(batch))
        if nulls is None or not nulls.any():
            return [(0, len(batch), False)]
        edges = [0, *(np.flatnonzero(np.diff(nulls)) + 1).tolist(), len(batch)]
        return [(low, high, bool(nulls[low])) for low, high in zip(edges, edges[1:])]

    def _take(self, batch, now_ms, is_null=False):
        streams, columns, bad = self._encoded(batch, now_ms, is_null)
        if is_null:
            times, folders_of, folders = self._times(batch, now_ms, bad), np.zeros(len(batch), np.int64), [self._parts.tombstones]
        else:
            times, folders_of, folders = self._places(batch, now_ms, bad)
        offsets = batch.offsets
        if bad:
            self._report_all(batch, bad)
            columns, offsets, folders_of, times = _of_rows(np.setdiff1d(np.arange(len(batch)), sorted(bad)), columns, offsets, folders_of, times)
        kept = self._ledger.unwritten(offsets, folders_of, folders)
        if kept is not None:
            columns, offsets, folders_of, times = _of_rows(kept, columns, offsets, folders_of, times)
        self._cut_up(streams, columns, offsets, times, folders_of, folders, now_ms)
        self.next_offset = int(batch.offsets[-1]) + 1

    def _read_again(self):
        """Some records are stored in files with other offset ranges: rewind, and let the ledger identify unwritten records."""
        self._held = self._first if self._held is None else self._held
        self.next_offset = self._first
        self.rewound = True
        self._discard_uncommitted()

    def _encoded(self, batch, now_ms, is_null):
        """Return ([(suffix, format, schema)] of the files, their encoded columns, {row: error}); files with another schema are closed."""
        streams, columns, bad = [], [], {}
        if not is_null:
            schema, column, bad = self._encoded_values(batch, now_ms)
            streams, columns = [("", self._parts.format, schema)], [column]
        for side in self._parts.sides:
            schema, column, more = side.encode(batch)
            streams.append((side.suffix, side.format, schema))
            columns.append(column)
            bad = {**more, **bad}
        beside = [schema for suffix, _, schema in streams if suffix]
        if self._open and beside != self._beside:
            self.commit(now_ms)
        self._beside = beside
        return streams, columns, bad

    def _encoded_values(self, batch, now_ms):
        form, schema = self._parts.format, batch.value_schema
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
        """Return (times of the rows or None, folder index of each row, folders); rows without a folder are bad."""
        times = self._times(batch, now_ms, bad)
        folders_of, folders, without = self._parts.partitioner.encode(batch, times)
        bad.update(without)
        return times, folders_of, folders

    def _times(self, batch, now_ms, bad):
        if not (self._rotation.wants_times or self._parts.partitioner.by_time):
            return None
        times, without = self._parts.extractor.times(batch, now_ms)
        if without:
            bad.update(without)
            times = times.copy()
            times[list(without)] = 0
        return times

    def _report_all(self, batch, bad):
        records = batch.records()
        for row in sorted(bad):
            error = bad[row]
            self._report(records[row], error if isinstance(error, ConnectError) else DataError(str(error)))

    def _cut_up(self, streams, columns, offsets, times, folders_of, folders, now_ms):
        low = 0
        while low < len(offsets):
            high = self._rotation.room(low, times, folders_of, folders, now_ms)
            if high > low:
                self._append(streams, columns, offsets, folders_of, folders, low, high)
                self._rotation.add(low, high, times, folders[folders_of[high - 1]])
                self.next_offset = int(offsets[high - 1]) + 1
                low = high
            if self._rotation.is_full or low < len(offsets):
                self.commit(now_ms)

    def _append(self, streams, columns, offsets, folders_of, folders, low, high):
        if self._first is None:
            self._first = int(offsets[low])
        here = folders_of[low:high]
        if (here == here[0]).all():
            pieces = [_cut(column, low, high, len(offsets)) for column in columns]
            self._append_to(folders[here[0]], streams, pieces, high - low, int(offsets[low]), int(offsets[high - 1]))
            return
        order = np.argsort(here, kind="stable")
        sorted_ = here[order]
        starts = np.flatnonzero(np.diff(sorted_, prepend=-1))
        for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(order)]):
            rows = order[start:end] + low
            # Copied, not sliced: a slice in a file that stays open for long would hold the whole batch in memory.
            pieces = [_taken(column, rows) for column in columns]
            self._append_to(folders[sorted_[start]], streams, pieces, end - start, int(offsets[rows[0]]), int(offsets[rows[-1]]))

    def _append_to(self, folder, streams, pieces, count, first, last):
        file = self._open.get(folder)
        if file is None:
            spools = [Spool(f"{self._spool_folder()}/{uuid.uuid4().hex}") for _ in streams]
            opened = [(suffix, form.open(schema, spool), spool) for (suffix, form, schema), spool in zip(streams, spools)]
            file = self._open[folder] = OpenFile(folder, opened, first)
        file.append(pieces, count, last)

    # --- Closing ---

    def commit(self, now_ms):
        """Close the open files and put them in place. After an error it resumes where it stopped."""
        if self._closed is None:
            if not self._open:
                return
            self._parts.run(lambda file: file.finish(), list(self._open.values()))
            self._closed = [file.closed() for file in self._open.values()]
            self._closed_next = self.next_offset
        self._complete()
        self._rotation.begin(now_ms)

    def _complete(self):
        """Complete what an error interrupted."""
        if self._closed is not None:
            self._ledger.commit(self._closed, self._closed_next)
            if self._stored is not None:
                self._stored(self._versions.current, {each.folder for each in self._closed})
            if self._ledger.is_clean:
                self._held = None
            self._discard_uncommitted()

    def _discard_uncommitted(self):
        for file in self._open.values():
            file.discard()
        self._open, self._closed, self._first = {}, None, None
        self._rotation.begin()

    def commit_if_due(self, now_ms):
        try:
            self._complete()
            if self._rotation.is_due(now_ms):
                self.commit(now_ms)
        except Overtaken:
            self._read_again()

    def due_in_ms(self, now_ms):
        return self._rotation.due_in_ms(now_ms)

    def must_be_owner(self, error):
        self._ledger.must_be_owner(error)

    def safe_offset(self, offset):
        """Return the offset after the stored records, at most `offset`."""
        begins = self.next_offset if self.rewound else self._first
        return min(each for each in (offset, begins, self._held) if each is not None)

    @property
    def open_files(self):
        return list(self._open.values())

    def release(self):
        """Discard what is not committed."""
        self._discard_uncommitted()
        self._ledger.release()


def _nulls_of(column, count):
    """Return which rows are null, or None if it is known that none is."""
    if column is None:
        return np.ones(count, bool)
    if isinstance(column, list):
        return np.fromiter((item is None for item in column), bool, count)
    if isinstance(column, ByteColumn):
        return column.lengths < 0
    return column.is_null().to_numpy(zero_copy_only=False) if getattr(column, "null_count", 0) else None


def _of_rows(rows, columns, offsets, folders_of, times):
    return [_taken(column, rows) for column in columns], offsets[rows], folders_of[rows], None if times is None else times[rows]


def _taken(column, rows):
    return column.take(rows) if isinstance(column, ByteColumn) else column.take(pa.array(rows))


def _cut(column, low, high, count):
    if not low and high == count:
        return column
    return column.slice(low, high) if isinstance(column, ByteColumn) else column.slice(low, high - low)
