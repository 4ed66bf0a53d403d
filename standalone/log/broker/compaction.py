"""Compaction: keep only the last record of each key. The owner plans a `Compaction`, another thread runs it, the owner finishes it.

It works on full, fsynced segments before the last stable offset; each is rewritten as `<first offset>.log.cleaned`, which then replaces
it. Records of aborted transactions are removed. Batches that lose nothing stay byte for byte, except those of transactions: these
become plain batches, so that the markers after them can be removed too.

A record without a value (tombstone) deletes its key. It stays for delete.retention.ms after the compaction that first saw it, so that
a slow consumer still reads it: `cleaned`, a file beside the segments, records what was compacted when.
"""

import json
import logging
import os
from typing import NamedTuple

from standalone.errors import CorruptBatchError
from standalone.log import batch_header
from standalone.log.broker.segments import INDEX_INTERVAL, UNFINISHED, Index, Segment
from standalone.private import open_private

FILE = "cleaner.json"
MAX_KEYS = 1_000_000  # per compaction, since keys are held in memory; later records wait for the next one
_REMEMBERED = 32  # compactions

logger = logging.getLogger(__name__)


class Source(NamedTuple):
    """A segment to be compacted."""

    base_offset: int
    next_offset: int
    path: str
    index_path: str


class Cleaned:
    """Up to which offset a partition was compacted, and when: [(offset, time)], newest first."""

    def __init__(self, folder):
        self._path = os.path.join(folder, FILE)
        self.rows = []
        try:
            with open(self._path, "rb") as file:
                self.rows = [(int(offset), int(time_ms)) for offset, time_ms in json.load(file)]
        except (FileNotFoundError, ValueError, TypeError):
            pass  # tombstones stay longer

    @property
    def upto(self):
        return self.rows[0][0] if self.rows else 0

    def seen_before(self, time_ms):
        """Return the offset up to which compactions at or before this time have read everything."""
        return max((offset for offset, when in self.rows if when <= time_ms), default=0)

    def add(self, offset, time_ms, oldest_ms):
        """Add a row; of rows older than `oldest_ms` keep only the newest."""
        older = max((row for row in self.rows if row[1] <= oldest_ms), default=None)
        rows = [(offset, time_ms), *(row for row in self.rows if row[1] > oldest_ms), *([older] if older else [])]
        self.rows = rows[: _REMEMBERED - 1] + rows[_REMEMBERED - 1 :][-1:]
        with open_private(self._path + ".new", "w") as file:
            json.dump(self.rows, file)
        os.replace(self._path + ".new", self._path)


def plan(partition, now_ms):
    """Return a Compaction, or None if there is too little to compact."""
    values = partition.values
    bound = min(partition.last_stable_offset, partition.durable)
    youngest = now_ms - values["min.compaction.lag.ms"]
    sources, dirty, total, oldest_dirty = [], 0, 0, None
    for segment in partition.segments[:-1]:
        if segment.next_offset > bound or segment.max_timestamp > youngest:
            break
        if not segment.size:
            continue
        sources.append(Source(segment.base_offset, segment.next_offset, segment.path, segment.index_path))
        total += segment.size
        if segment.base_offset >= partition.cleaned.upto:
            dirty += segment.size
            oldest_dirty = oldest_dirty or segment.max_timestamp
    due = oldest_dirty is not None and oldest_dirty < now_ms - values["max.compaction.lag.ms"]
    if not dirty or (dirty < total * values["min.cleanable.dirty.ratio"] and not due):
        return None
    retention_ms = values["delete.retention.ms"]
    gone = partition.cleaned.seen_before(now_ms - retention_ms)
    return Compaction(partition, sources, partition.aborted.between(0, bound), gone, now_ms, now_ms - retention_ms)


class Compaction:
    """`run` on any thread, then `finish` by the owner. Tombstones before offset `gone` are removed."""

    def __init__(self, partition, sources, aborted, gone, now_ms, oldest_ms):
        self.partition = partition
        self._sources = sources
        self._aborted = {}
        for row in aborted:
            self._aborted.setdefault(row.producer_id, []).append(row)
        self._gone = gone
        self._now_ms = now_ms
        self._oldest_ms = oldest_ms
        self._start = partition.start
        self._written = []  # rewritten sources
        self._upto = sources[-1].next_offset
        self._latest = {}  # key -> offset of its last record
        self.error = None

    def run(self):
        try:
            self._find_latest()
            for source in self._sources:
                if source.next_offset <= self._upto:
                    self._rewrite(source)
        except FileNotFoundError:
            self.error = "retention was faster"
        except OSError as error:
            self.error = error.strerror
        self._latest = {}

    def finish(self):
        """Replace the sources by the rewritten segments."""
        partition = self.partition
        if partition.closed or self.error:
            if self.error and not partition.closed:
                logger.warning("%s could not be compacted: %s.", partition, self.error)
            for source in self._written:
                _remove(source.path + UNFINISHED, source.index_path + UNFINISHED)
            return
        there = {segment.base_offset for segment in partition.segments[:-1]}
        before = partition.size
        for source in self._written:
            if source.base_offset not in there:
                _remove(source.path + UNFINISHED, source.index_path + UNFINISHED)
                continue
            # A segment without an index is scanned at the next start; with a stale index it would be misread.
            _remove(source.index_path)
            os.replace(source.path + UNFINISHED, source.path)
            os.replace(source.index_path + UNFINISHED, source.index_path)
            partition.replace_segment(Segment.open(partition.folder, source.base_offset, partition.files))
        partition.cleaned.add(self._upto, self._now_ms, self._oldest_ms)
        logger.info("%s: compacted up to offset %d, %d bytes to %d.", partition, self._upto, before, partition.size)

    # --- Two scans of the segments

    def _find_latest(self):
        for source in self._sources:
            for header, data in _batches(source.path):
                if header.is_control or self._is_aborted(header):
                    continue
                for records in self._unpacked(data):
                    if records.keys is not None:
                        self._latest.update(zip(records.keys, records.offsets.tolist()))
            if len(self._latest) > MAX_KEYS:
                self._upto = source.next_offset
                return

    def _rewrite(self, source):
        index = Index.beginning(source.base_offset)
        size, end, latest = 0, source.base_offset, -1
        with open_private(source.path + UNFINISHED, "wb") as out:
            for header, data in _batches(source.path):
                for kept in self._kept(header, data):
                    new = batch_header.parse_header(kept)
                    index.mark(new.base_offset, size, latest, INDEX_INTERVAL)
                    out.write(kept)
                    size += len(kept)
                    end, latest = new.next_offset, max(latest, new.max_timestamp)
            out.flush()
            os.fsync(out.fileno())
        index.mark(end, size, latest, 1)
        with open_private(source.index_path + UNFINISHED, "wb") as out:
            out.write(index.take_unsaved())
        self._written.append(source)

    def _kept(self, header, data):
        """Return what remains of a batch, as a list of batches."""
        if header.is_control:
            return [] if header.max_timestamp < self._oldest_ms else [data]
        if self._is_aborted(header):
            return []
        try:
            found = self._unpack(data)
        except CorruptBatchError:
            return [data]  # not decodable: keep it
        kept, whole = [], not header.is_transactional
        for records in found:
            rows = [row for row, keep in enumerate(self._keeps(records)) if keep]
            whole = whole and len(rows) == len(records)
            if rows:
                kept.append(records.take(rows))
        return [data] if whole else [_packed(records, header) for records in kept]

    def _keeps(self, records):
        offsets = records.offsets.tolist()
        if records.keys is None:
            return [True] * len(offsets)  # written before the topic was compacted
        values = records.values.lengths.tolist() if records.values is not None else [-1] * len(offsets)
        return [
            key is None or (self._latest.get(key, offset) <= offset and not (length < 0 and offset < self._gone))
            for key, offset, length in zip(records.keys, offsets, values)
        ]

    def _is_aborted(self, header):
        if not header.is_transactional:
            return False
        return any(row.first <= header.base_offset < row.last for row in self._aborted.get(header.producer_id, ()))

    def _unpacked(self, data):
        try:
            return self._unpack(data)
        except CorruptBatchError:
            return []

    def _unpack(self, data):
        from standalone.log import record_batch  # imports numba

        return record_batch.unpack(data, from_offset=self._start, check_crc=False).records


def _packed(records, header):
    from standalone.log import record_batch

    codec = header.codec
    return record_batch.pack(
        records, compression=codec, keep_offsets=True, now_ms=-1, leader_epoch=header.leader_epoch, timestamp_type=records.timestamp_type
    )


def _batches(path):
    """Yield (header, bytes) of each batch of a segment."""
    with open(path, "rb") as file:
        while len(prefix := file.read(batch_header.HEADER.size)) == batch_header.HEADER.size:
            header = batch_header.parse_header(prefix)
            yield header, prefix + file.read(header.size - len(prefix))


def _remove(*paths):
    for path in paths:
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass
