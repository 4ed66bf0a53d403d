"""A partition: a list of segments on disk. Append, read, find by time, trim, expire, flush, recover.

Offsets run from `start` (older ones are deleted) to `end`, the next offset. `durable` is the offset up to which records are fsynced,
`high_watermark` the offset up to which they are readable: with embedded.log.acks=fsync, consumers read only durable records.
All methods run on the thread that owns the log, except `Flush.run`, which uses only its own copies.
"""

import logging
import os
from bisect import bisect_right
from typing import NamedTuple

import numpy as np

from standalone.log import batch_header
from standalone.log.broker import producers as producer_states
from standalone.log.broker.aborted import AbortedTransactions
from standalone.log.broker.compaction import Cleaned
from standalone.log.broker.control import control_batch, is_abort
from standalone.log.broker.producers import Producers
from standalone.log.broker.records import check_records
from standalone.log.broker.refusal import Refusal, codes
from standalone.log.broker.segments import INDEX, LOG, UNFINISHED, FileSlice, LogFile, OpenFiles, Segment
from standalone.private import open_private

LEADER_EPOCH = 0  # one node is the leader forever
PRODUCERS_FILE = "producers.json"
_MAX_OFFSET_DELTA = (1 << 31) - 1  # Kafka's tools cannot read segments with larger deltas
_REMEMBERED_POSITIONS = 64
_SNAPSHOT_BYTES = 64 << 20  # bytes between producer snapshots: a crash recovery reads at most this much

logger = logging.getLogger(__name__)


class Appended(NamedTuple):
    base_offset: int
    append_time: int  # -1: producer timestamps stay


class Partition:
    """`delete(jobs)` removes files, now or on another thread; `files` is the cache of open files that partitions share."""

    def __init__(self, topic, number, folder, values, start=0, files=None, delete=None, shows_synced_only=False):
        self.topic = topic
        self.number = number
        self.folder = folder
        self.values = values  # typed topic configs; all partitions of a topic share this dict
        self.waiting = set()  # fetches waiting for records; each has wake(bytes)
        self._shows_synced_only = shows_synced_only
        self.failed = None  # why the disk failed; no more writes then
        self.closed = False
        self._positions = {}  # offset -> (segment, position) where the last reads ended
        self.files = files if files is not None else OpenFiles()
        self._delete = delete or _delete_now
        self._folder_is_known = False  # whether the folder's entry is fsynced: an existing folder may come from a crash
        self.segments = self._open_segments(start)
        self.start = max(start, self.segments[0].base_offset)
        self.end = self.segments[-1].next_offset
        self.durable = self.end if all(segment.was_clean for segment in self.segments) else self.start
        self.written_bytes = self.size if self.durable < self.end else 0  # since it was opened, and before if a flush of it is to come
        self._shown_bytes = 0 if shows_synced_only else self.written_bytes
        self.cleaned = Cleaned(folder)
        self.inflation = 4.0  # decompressed size / compressed size of the last compressed batch
        self.is_compacting = False
        self.aborted = AbortedTransactions.load(folder, self.start, self.end)
        self._unsaved_bytes = 0  # appended since the last producer snapshot
        self._snapshot_is_due = False
        self.producers = self._load_producers()
        # Segments from here on may hold bytes that are not fsynced.
        self._flushed_segment = next((s.base_offset for s in self.segments if not s.was_clean), self._active.base_offset)

    @property
    def _active(self):
        return self.segments[-1]

    @property
    def size(self):
        return sum(segment.size for segment in self.segments)

    @property
    def max_timestamp(self):
        return max(segment.max_timestamp for segment in self.segments)

    @property
    def high_watermark(self):
        """The offset after the last readable record."""
        return max(self.durable, self.start) if self._shows_synced_only else self.end

    @property
    def last_stable_offset(self):
        """The high watermark, or the first offset of the oldest open transaction if that is lower."""
        first_open = self.producers.first_open_offset
        return self.high_watermark if first_open is None else min(max(first_open, self.start), self.high_watermark)

    @property
    def policy(self):
        return self.values["cleanup.policy"].split(",")

    def highest_producer_id(self):
        """The highest producer id of all batches."""
        found = self.producers.highest_id
        for segment in self.segments:
            for _, header in segment.walk(0):
                found = max(found, header.producer_id)
        return found

    def __str__(self):
        return f"{self.topic}-{self.number}"

    # --- Writing

    def append(self, batch, now_ms):
        """Append a batch (a writable view; its header is filled in). Raises Refusal if it is rejected."""
        (outcome,) = self.append_all((batch,), now_ms)
        if isinstance(outcome, Refusal):
            raise outcome
        return outcome

    def append_all(self, batches, now_ms):
        """Like `append` for each in turn, in one write if possible. Return an `Appended` or a Refusal for each."""
        if self.failed:
            return [Refusal(codes.KafkaStorageError, self.failed) for _ in batches]
        outcomes, run, producers = [None] * len(batches), [], set()
        for at, batch in enumerate(batches):
            try:
                header = self._check(batch, now_ms)
                if header.producer_id in producers:  # its sequence can be checked once the previous batch is appended
                    self._write_run(run, outcomes, now_ms)
                    run, producers = [], set()
                known = self.producers.check(header)
            except Refusal as refusal:
                outcomes[at] = refusal
                continue
            if known:
                outcomes[at] = Appended(known.base_offset, known.timestamp if self._stamps_append_time else -1)
                continue
            append_time = -1
            if self._stamps_append_time:
                batch_header.set_append_time(batch, 0, now_ms)
                header = header._replace(max_timestamp=now_ms)
                append_time = now_ms
            if header.producer_id != producer_states.NO_PRODUCER:
                producers.add(header.producer_id)
            run.append((at, batch, header, append_time))
        self._write_run(run, outcomes, now_ms)
        return outcomes

    def end_transaction(self, producer_id, epoch, commit, now_ms):
        """Write the marker that ends the producer's transaction here. Raise Refusal if it cannot be written."""
        if self.failed:
            raise Refusal(codes.KafkaStorageError, self.failed)
        first = self.producers.transaction_start(producer_id)
        batch = control_batch(producer_id, epoch, commit, now_ms)
        offset = self._write(batch, batch_header.parse_header(batch), now_ms)
        if first is not None and not commit:
            self.aborted.add(producer_id, first, offset)
        return len(batch)

    def _write_run(self, run, outcomes, now_ms):
        """Write [(its place in outcomes, batch, header, append time)]: one by one where not all fit into the segment, or not all can be written."""
        if len(run) > 1 and self._write_together(run, outcomes, now_ms):
            return
        for at, batch, header, append_time in run:
            try:
                outcomes[at] = Appended(self._write(batch, header, now_ms), append_time)
            except Refusal as refusal:
                outcomes[at] = refusal

    def _write_together(self, run, outcomes, now_ms):
        """Whether it could be done."""
        rows, next_offset, size = [], self.end, 0
        for _, batch, header, _ in run:
            batch_header.set_base_offset(batch, 0, next_offset, LEADER_EPOCH)
            rows.append((batch, header, next_offset))
            next_offset, size = next_offset + header.last_offset_delta + 1, size + header.size
        segment = self._active
        if not self._fits(segment, size, next_offset - 1):
            return False
        try:
            segment.append(rows)
        except OSError:
            return False
        for (at, _, header, append_time), (_, _, base_offset) in zip(run, rows):
            self._note(segment, header, base_offset, now_ms)
            outcomes[at] = Appended(base_offset, append_time)
        return True

    def _write(self, batch, header, now_ms):
        base_offset = self.end
        batch_header.set_base_offset(batch, 0, base_offset, LEADER_EPOCH)
        try:
            segment = self._segment_for(header)
            segment.append([(batch, header, base_offset)])
        except OSError as error:
            message = f"{self}: writing to {self._active.path} failed: {error.strerror}. The batch was not appended."
            logger.error("%s", message)
            raise Refusal(codes.KafkaStorageError, message) from error
        self._note(segment, header, base_offset, now_ms)
        return base_offset

    def _note(self, segment, header, base_offset, now_ms):
        """Update the state after a batch is written."""
        if segment.begun_ms is None:
            segment.begun_ms = now_ms
        self.end = base_offset + header.last_offset_delta + 1
        self.producers.record(header, base_offset, now_ms)
        self._unsaved_bytes += header.size
        self.written_bytes += header.size
        if not self._shows_synced_only:
            self._shown_bytes = self.written_bytes

    @property
    def _stamps_append_time(self):
        return self.values["message.timestamp.type"] == "LogAppendTime"

    def _check(self, batch, now_ms):
        """Validate a batch and return its header."""
        found = len(batch) if batch is not None else 0
        if found < batch_header.HEADER.size:
            raise Refusal(codes.CorruptRecordError, f"{self}: {found} bytes are too few for a record batch.")
        if batch[batch_header.MAGIC_AT] != batch_header.MAGIC:
            raise Refusal(
                codes.UnsupportedForMessageFormatError,
                f"{self}: message format v{batch[batch_header.MAGIC_AT]} is not supported, only v{batch_header.MAGIC}.",
            )
        header = batch_header.parse_header(batch)
        if header.size > found or header.size < batch_header.HEADER.size:
            raise Refusal(codes.CorruptRecordError, f"{self}: a batch of {header.size} bytes came as {found} bytes.")
        if header.size < found:
            raise Refusal(codes.InvalidRecordError, f"{self}: a produce request carries one batch a partition, this one carries more.")
        limit = self.values["max.message.bytes"]
        if header.size > limit:
            raise Refusal(codes.MessageSizeTooLargeError, f"{self}: the batch has {header.size} bytes, max.message.bytes is {limit}.")
        data = np.frombuffer(memoryview(batch).toreadonly(), np.uint8)
        if batch_header.checksum(data) != header.crc:
            raise Refusal(codes.CorruptRecordError, f"{self}: the batch's checksum does not fit its bytes.")
        if header.count <= 0 or header.count != header.last_offset_delta + 1:
            raise Refusal(
                codes.InvalidRecordError, f"{self}: the batch names {header.count} records and {header.last_offset_delta + 1} offsets."
            )
        if header.is_control:
            raise Refusal(codes.InvalidRecordError, f"{self}: control batches are the log's own; a producer may not send them.")
        if not self._stamps_append_time:
            self._check_time(header.max_timestamp, now_ms)
        check_records(self, data, header, keyed="compact" in self.policy)
        return header

    def _check_time(self, timestamp, now_ms):
        after, before = self.values["message.timestamp.after.max.ms"], self.values["message.timestamp.before.max.ms"]
        if timestamp - now_ms > after or (timestamp >= 0 and now_ms - timestamp > before):
            raise Refusal(
                codes.InvalidTimestampError,
                f"{self}: the timestamp {timestamp} is not between {before} ms before and {after} ms after now ({now_ms}). "
                "message.timestamp.before.max.ms and message.timestamp.after.max.ms set these bounds.",
            )

    def _segment_for(self, header):
        if self._active.size and not self._fits(self._active, header.size, self.end + header.last_offset_delta):
            self.roll()
        return self._active

    def _fits(self, segment, size, last_offset):
        return segment.size + size <= self.values["segment.bytes"] and last_offset - segment.base_offset <= _MAX_OFFSET_DELTA

    def roll(self):
        """Roll to a new segment."""
        self.segments.append(Segment.create(self.folder, self.end, self.files))
        self._snapshot_is_due = True

    # --- Reading

    def read(self, offset, limit, at_least_one, up_to=None):
        """Return whole batches from the one with `offset` on: a FileSlice of at most `limit` bytes, or None.

        With `at_least_one` the first batch is returned even if it is larger. Batches from offset `up_to` on are left out; it defaults to the high
        watermark.
        """
        if not self.start <= offset <= self.end:
            raise Refusal(codes.OffsetOutOfRangeError, f"{self} holds offsets {self.start} to {self.end}, not {offset}.")
        end = self.high_watermark if up_to is None else up_to
        if offset >= end:
            return None
        segment, position = self._locate(offset)
        if end < segment.next_offset:
            limit_at = segment.find(end)
            if limit_at <= position:  # the rest of a batch that compaction shrank
                return None
            limit = min(limit, limit_at - position)
        stop, next_offset = segment.cut(position, limit)
        if stop == position:
            if not at_least_one:
                return None
            header = segment.first_batch_at(position)
            if header is None:
                return None
            stop, next_offset = position + header.size, header.next_offset
        if stop < segment.size or segment is self._active:
            self._remember(next_offset, segment, stop)
        return FileSlice(segment.file, position, stop - position)

    def read_batches(self, offset, limit, at_least_one, up_to):
        """Like `read`, with the (position, header) of each batch, read from the file lazily."""
        piece = self.read(offset, limit, at_least_one, up_to)
        if piece is None:
            return None, ()
        segment, _ = self._locate(offset)
        return piece, segment.walk(piece.position, piece.position + piece.length)

    def available(self, offset, up_to=None):
        """Estimate the bytes that a reader at `offset` has left: never 0 while there is a record."""
        if offset >= (self.high_watermark if up_to is None else up_to):
            return 0
        segment, position = self._locate(offset)
        return segment.size - position + sum(s.size for s in self.segments if s.base_offset > segment.base_offset)

    def _locate(self, offset):
        """Return (segment, position of the batch) of an existing offset."""
        segment, position = self._positions.get(offset, (None, 0))
        if segment is not None and position < segment.size:  # else the partition has rolled since
            return segment, position
        at = bisect_right(self.segments, offset, key=lambda segment: segment.base_offset) - 1
        segment = self.segments[max(at, 0)]
        while offset >= segment.next_offset and segment is not self._active:  # a gap where recovery truncated a segment
            at = max(at, 0) + 1
            segment = self.segments[at]
        return segment, segment.find(offset)

    def _remember(self, offset, segment, position):
        """Cache where the reader will continue, to skip the index."""
        if len(self._positions) >= _REMEMBERED_POSITIONS:
            self._positions.pop(next(iter(self._positions)))
        self._positions[offset] = (segment, position)

    def since(self, timestamp):
        """Yield (header, bytes) of each batch with a record at or after `timestamp`, in order."""
        for segment in self.segments:
            if segment.next_offset > self.start and segment.max_timestamp >= timestamp:
                for position, header in segment.since(timestamp):
                    if header.next_offset > self.start:
                        yield header, FileSlice(segment.file, position, header.size).read()

    def wake(self, more=None):
        """Notify waiting fetches of `more` bytes; None ends their wait in any case."""
        for fetch in list(self.waiting):
            fetch.wake(more)

    # --- Deleting

    def trim(self, offset):
        """Delete everything before `offset`."""
        if offset > self.end or offset < 0:
            raise Refusal(codes.OffsetOutOfRangeError, f"{self} ends at offset {self.end}; it cannot be trimmed to {offset}.")
        self.start = max(self.start, offset)
        if self._active.size and self.start == self.end:
            self.roll()
        self._drop_while(lambda segment: segment.next_offset <= self.start)

    def expire(self, now_ms):
        """Delete segments beyond retention.ms and retention.bytes, and release unused resources."""
        if "delete" in self.policy:
            self._expire_segments(now_ms)
        self.roll_by_age(now_ms)
        self.producers.expire(now_ms)
        for segment in self.segments[:-1]:
            if segment.next_offset <= self.durable:
                segment.forget()

    def _expire_segments(self, now_ms):
        age, bound = self.values["retention.ms"], self.values["retention.bytes"]
        future = self.values["message.timestamp.after.max.ms"]
        if age >= 0:
            oldest = now_ms - age
            if self._active.size and _newest(self._active, future) < oldest:
                self.roll()
            self._drop_while(lambda segment: _newest(segment, future) < oldest)
        if bound >= 0:
            surplus = self.size - bound
            while len(self.segments) > 1 and surplus >= self.segments[0].size:
                surplus -= self.segments[0].size
                self._drop_first()

    def replace_segment(self, segment):
        """Replace a segment by its compacted form."""
        at = next(at for at, old in enumerate(self.segments) if old.base_offset == segment.base_offset)
        self.segments[at].forget()
        self._positions.clear()
        if segment.size or not at:  # the first segment marks where the partition begins
            self.segments[at] = segment
        else:
            del self.segments[at]
            self._delete([segment.deletion()])

    def roll_by_age(self, now_ms):
        """Roll if the active segment is older than segment.ms."""
        if self._active.size and self._active.begun_ms < now_ms - self.values["segment.ms"]:
            self.roll()

    def drop_oldest(self):
        """Delete the oldest segment to free disk space; return False if only an empty active segment is left."""
        if len(self.segments) == 1:
            if not self._active.size:
                return False
            self.roll()
        self._drop_first()
        return True

    def _drop_while(self, condition):
        while len(self.segments) > 1 and condition(self.segments[0]):
            self._drop_first()

    def _drop_first(self):
        segment = self.segments.pop(0)
        self._positions.clear()
        self.start = max(self.start, self.segments[0].base_offset)
        self.durable = max(self.durable, self.start)
        self.aborted.trim(self.start)
        self._delete([segment.deletion()])
        logger.info("%s: deleted %s (%d bytes); the partition begins at offset %d now.", self, segment.path, segment.size, self.start)

    # --- Flushing

    @property
    def is_dirty(self):
        return self.durable < self.end and not self.failed and not self.closed

    def begin_flush(self):
        """Return a Flush that makes everything appended so far durable."""
        rows = []
        for segment in self.segments:
            if segment.base_offset >= self._flushed_segment and segment.size:
                rows.append((segment.held_file, segment.path, segment.index_path, segment.take_unsaved_rows()))
        new_files = self._active.base_offset != self._flushed_segment or self._active.base_offset == self.durable
        self._flushed_segment = self._active.base_offset
        producers = None
        if self._snapshot_is_due or self._unsaved_bytes >= _SNAPSHOT_BYTES:
            producers = self.producers.copy()
            self._snapshot_is_due, self._unsaved_bytes = False, 0
        new_folder = not self._folder_is_known
        return Flush(self, self.end, self.written_bytes, rows, new_files, new_folder, producers)

    def end_flush(self, flush):
        """Finish a flush: the owner calls this after `flush.run()`."""
        if self.closed:
            return
        if flush.error:
            self.failed = f"{self}: fsync failed ({flush.error}); the partition takes no records until the worker is started again."
            logger.error("%s", self.failed)
        else:
            self._folder_is_known = True
            self.durable = max(self.durable, min(flush.end, self.end))
            more, self._shown_bytes = flush.written_bytes - self._shown_bytes, max(self._shown_bytes, flush.written_bytes)
            if more > 0:
                self.wake(more)

    def last_flush(self):
        """Return a flush after which the next start has nothing to recover; None if nothing is new."""
        self._snapshot_is_due |= self._unsaved_bytes > 0
        return self.begin_flush() if self._snapshot_is_due or self.is_dirty else None

    def close(self):
        """Close the files, after the owner's last flush."""
        self.closed = True
        for segment in self.segments:
            segment.forget()
        self._positions.clear()

    # --- Recovery

    def _open_segments(self, start):
        if not os.path.isdir(self.folder):
            return [Segment.planned(self.folder, start, self.files)]
        entries = os.listdir(self.folder)
        names = sorted(name for name in entries if name.endswith(LOG) and name[: -len(LOG)].isdigit())
        for name in entries:
            if (name.endswith(INDEX) and name[: -len(INDEX)] + LOG not in names) or name.endswith(UNFINISHED):
                os.unlink(os.path.join(self.folder, name))
        segments = [Segment.open(self.folder, int(name[: -len(LOG)]), self.files) for name in names]
        return segments or [Segment.planned(self.folder, start, self.files)]

    def _load_producers(self):
        producers, offset = Producers.load(os.path.join(self.folder, PRODUCERS_FILE), self.end)
        for segment in self.segments:
            if segment.size and segment.next_offset > offset:
                taken_ms = int(os.path.getmtime(segment.path) * 1000)
                for position, header in segment.walk(segment.index.before_offset(offset)):
                    if header.base_offset >= offset:
                        self._snapshot_is_due |= header.producer_id >= 0
                        self._take_note(producers, segment, position, header, taken_ms)
        return producers

    def _take_note(self, producers, segment, position, header, taken_ms):
        if header.is_control:
            first = producers.transaction_start(header.producer_id)
            if first is not None and is_abort(FileSlice(segment.file, position, header.size).read()):
                self.aborted.add(header.producer_id, first, header.base_offset)
        producers.record(header, header.base_offset, taken_ms)


class Flush:
    """fsync, then write the index rows and producer snapshot up to there; may run on any thread."""

    def __init__(self, partition, end, written_bytes, rows, new_files, new_folder, producers):
        self.partition = partition
        self.end = end
        self.written_bytes = written_bytes
        self.error = None
        self._rows = rows
        self._folder = partition.folder
        self._new_files = new_files
        self._new_folder = new_folder
        self._producers = producers

    def run(self):
        try:
            for file, path, _, _ in self._rows:
                _sync_file(file, path)
            if (self._new_files or self._new_folder) and self._rows:
                _sync_folder(self._folder)
            if self._new_folder and self._rows:
                _sync_folder(os.path.dirname(self._folder))
        except OSError as error:
            self.error = error.strerror
            return
        try:
            self._note()
        except OSError as error:
            # Both are rebuilt from the log: a failed write here only slows down the next start.
            logger.debug("%s: the index could not be written: %s", self._folder, error)
        self._rows = ()

    def _note(self):
        for _, path, index_path, rows in self._rows:
            if os.path.exists(path):  # else retention has deleted it
                with open_private(index_path, "ab") as index:
                    index.write(rows)
        if self._producers is not None:
            AbortedTransactions.sync(self._folder)
            path = os.path.join(self._folder, PRODUCERS_FILE)
            with open_private(path + ".new", "wb") as file:
                file.write(producer_states.encode(self._producers, self.end))
            os.replace(path + ".new", path)


def _delete_now(jobs):
    for job in jobs:
        job.run()


def _newest(segment, future_ms):
    """Return the newest record's timestamp; if missing or in the future, use the file's modification time."""
    if not segment.size:
        return -1  # empty after compaction
    written = int(os.path.getmtime(segment.path) * 1000)
    if 0 <= segment.max_timestamp <= written + future_ms:
        return segment.max_timestamp
    return written


def _sync_file(file, path):
    try:
        file = file or LogFile(path)
    except FileNotFoundError:
        return  # the topic was deleted meanwhile
    os.fdatasync(file.fd)


def _sync_folder(folder):
    try:
        handle = os.open(folder, os.O_RDONLY)
    except FileNotFoundError:
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
