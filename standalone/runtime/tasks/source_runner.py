"""poll → pipeline → log → offsets: how a source task runs.

The task's own thread polls, works the chain and hands records to the producer; a second thread runs the producer. An offset is
stored when every record polled before it of its source partition is acknowledged, filtered or tolerated; one that is tolerated and goes
to the dead letter queue once it is acknowledged there. As in Java a tolerated record without such a queue does not by itself move the
offset: that of the next good record does.
"""

import collections
import logging
import threading

import numpy as np

from standalone.connector import SourceTask, SourceTaskContext
from standalone.data.batch import SourceBatch
from standalone.data.record import SourceRecord
from standalone.errors import ConnectError, RetriableError, Stopped
from standalone.log.intake import HeldBack
from standalone.runtime.tasks.lifecycle import RUNNING, TaskRunner, log_context
from standalone.runtime.metrics import SourceMeter
from standalone.runtime.failures.tolerance import KAFKA_PRODUCE, SOURCE_TASK
from standalone.stage import StageFailed

log = logging.getLogger(__name__)

_PIECE_BYTES = 1 << 20  # an offset may be stored behind each: about what one request carries
# What a log refuses because of the record: with errors.tolerance=all it is skipped. All else may pass, or is for a person to mend.
# (The producer has found the record where a log refuses a whole batch for one in it.)
_FAULTS_OF_RECORDS = {
    f"org.apache.kafka.common.errors.{name}Exception"
    for name in ("RecordTooLarge", "RecordBatchTooLarge", "InvalidRecord", "InvalidTimestamp", "InvalidTopic", "UnsupportedForMessageFormat")
}


class SourceRunner(TaskRunner):
    def __init__(self, task, config, *, pipeline, producer, topics, offsets, tolerance, retries, memory, clock, stop_seconds, **base):
        super().__init__(meter=SourceMeter(clock), **base)
        self.task = task
        self.config = config
        self.pipeline = pipeline
        self._producer = producer
        self._topics = topics  # makes a topic before its first record, where the configuration says how
        self._offsets = offsets
        self._tolerance = tolerance
        self._letters = tolerance.dead_letters
        self._retries = retries
        self.stopping = retries.stopping  # one event ends all waiting
        self.errors = tolerance.counters
        self._memory = memory
        self._clock = clock
        self._stop_seconds = stop_seconds
        self._tracker = OffsetTracker(self.connector, offsets, memory, self._went_wrong)
        self._sender = threading.Thread(target=self._send, name=f"send-{self.connector}-{self.number}", daemon=True)
        self._trouble = None  # what the sender's thread ran into
        self._synced = threading.Event()
        self._told = False  # whether the task has been told to stop
        self._closing = False
        self._acknowledged = collections.deque() if type(task).commit_record is not SourceTask.commit_record else None

    # ---------------------------------------------------------------- told from other threads
    def wake(self):
        if self.stopping.is_set() and not self._told:
            self._told = True
            self.task.stop()

    def cancel(self):
        self._closing = True
        self._memory.close()
        self._producer.close(0)
        if self._letters is not None:
            self._letters.abort()

    def offsets_synced(self, seconds=0.0):
        """The offsets file has just been made durable, within that time: the task's commit is due."""
        if self._tracker.take_progress():
            self.meter.committed(seconds)
            self._synced.set()

    def metrics(self):
        return {**super().metrics(), "producer-metrics": self._producer.counters.values()}

    def _went_wrong(self, error):
        self._trouble = self._trouble or error
        self._memory.close()

    # ---------------------------------------------------------------- the task's thread
    def work(self):
        self._sender.start()
        try:
            if self._letters is not None:
                self._letters.open("errors.source.deadletterqueue.topic.replication.factor", self._letters_failed)
            self.task.initialize(_Context(self))
            self.task.start(self.config)
            try:
                self.say(RUNNING)
                try:
                    self._loop()
                except Stopped as reason:
                    log.info("%s", reason)
                self._drain()
            finally:
                self.task.close()
        finally:
            self._closing = True
            self._producer.close(0)
            self._topics.close()
            self._sender.join()
            if self._letters is not None:
                self._letters.close(self._stop_seconds)
            self._memory.close()
            self.pipeline.close()
        if self._trouble is not None:
            raise self._trouble

    def _letters_failed(self):
        try:
            self._letters.check()
        except ConnectError as error:
            self._went_wrong(error)

    def _loop(self):
        pauses = None
        while not self.stopping.is_set() and self._trouble is None:
            if self.paused:
                self.wait_while_paused()
                continue
            try:
                polled = self._poll()
            except RetriableError as error:
                log.warning("The task asks to be polled again: %s", error)
                pauses = pauses or self._retries.pauses()
                self._retries.failed()
                self.stopping.wait(next(pauses))
                continue
            pauses = None
            for batch in self._enlarged(polled):
                if self._trouble is not None:
                    return
                self._ship(batch)
            self._tell_task()

    def _poll(self):
        """What the task has, as SourceBatches."""
        begun = self._clock.monotonic()
        polled = list(_batches(self.task.poll()))
        if polled:
            self.meter.polled(sum(map(len, polled)), self._clock.monotonic() - begun)
        return polled

    def _enlarged(self, batches):
        """What was polled and, where the chain is quicker with more at once and more is there, what follows it."""
        run = batches[-1:]
        while run and run[-1].more_follows and not self.stopping.is_set() and self.pipeline.prefers_more_than(sum(map(len, run))):
            try:
                following = self._poll()
            except RetriableError as error:
                log.warning("The task asks to be polled again: %s", error)
                break
            if len(following) != 1 or not run[-1].joins(following[0]):
                return [*batches[:-1], SourceBatch.join(run), *following]
            run += following
        return [*batches[:-1], SourceBatch.join(run)] if run else []

    def _ship(self, batch):
        result = self.pipeline.source(batch)
        out, failures = result.out, result.failures
        self.meter.left_out(len(batch) - sum(len(outgoing.records) for outgoing in out))
        if not failures:
            self._hand_over(batch, out, len(batch))
            return
        if not self._tolerance.all:
            self._ship_before(batch, out, failures[0].row)
        # First of this batch, so that no offset of it is stored before the letters are.
        letters = self._tracker.add(batch.source_partition, None, 1, 0) if self._letters is not None else None
        self._tolerance.source(failures, lambda: self._tracker.done(letters))
        untold = [failure.row for failure in failures] if self._letters is None else ()
        self._hand_over(batch, out, len(batch), untold)

    def _ship_before(self, batch, out, row):
        """What came before the record that fails the task is sent, as it would have been one by one."""
        before = []
        for outgoing in out:
            rows = np.arange(len(outgoing.records)) if outgoing.rows is None else outgoing.rows
            count = int(np.searchsorted(rows, row))
            if count:
                before.append(outgoing._replace(records=outgoing.records.slice(0, count), rows=rows[:count]))
        if row:
            self._hand_over(batch, before, row)
        self._drain()

    def _hand_over(self, batch, out, count, untold=()):
        """Give the records to the producer in pieces, an offset behind each; `count` rows of the batch are then dealt with, but that
        the offset of those `untold` is stored only with that of a later row."""
        pieces = list(_pieces(out[0])) if len(out) == 1 else [[outgoing] for outgoing in out] or [[]]
        if len(out) > 1:  # several topics: rows interleave, so one offset stands behind all
            pieces = [out]
        last = 0
        several = _several(out) if self._acknowledged is not None else {}
        for at, piece in enumerate(pieces):
            if at == len(pieces) - 1:
                last = count
                for row in reversed(untold):
                    last -= row == last - 1
            else:
                records, rows = piece[0].records, piece[0].rows
                last = last + len(records) if rows is None else int(rows[-1]) + 1
            size = sum(outgoing.records.nbytes for outgoing in piece)
            if not self._memory.take(size):
                return
            offset = batch.offset_of(last - 1) if last else None
            sent = self._tracker.add(batch.source_partition, offset, len(piece), size)
            for outgoing in piece:
                self._topics.ensure(outgoing.topic)
                self._producer.send(outgoing.topic, outgoing.partition, outgoing.records, self._on_done(sent, batch, outgoing, several))
        if self._acknowledged is not None:
            self._note_dropped(batch, out, count)

    def _on_done(self, sent, batch, outgoing, several):
        def done(delivered):
            if delivered.error is not None and self._closing:
                return  # not acknowledged in time: its offset is not stored, and it is sent again after a restart
            if delivered.error is not None:
                self._refused(sent, batch, outgoing, delivered)
            else:
                self.meter.answered(len(outgoing.records))
                self._tracker.done(sent)
            if self._acknowledged is not None:
                self._acknowledged.append((batch, outgoing, delivered, several))

        return done

    def _refused(self, sent, batch, outgoing, delivered):
        """The log took not all of them. Called on the sender's thread."""
        count = len(outgoing.records)
        failures = []
        for rows, error in delivered.failed:
            if isinstance(error, HeldBack):
                continue
            rows = np.arange(count)[rows].tolist()
            if getattr(error, "java_class", None) not in _FAULTS_OF_RECORDS:
                self._went_wrong(error)
                return
            for row in rows:
                at = row if outgoing.rows is None else int(outgoing.rows[row])
                time = None if outgoing.records.timestamps is None else int(outgoing.records.timestamps[row])
                record = SourceRecord(outgoing.topic, None, batch.source_partition, batch.offset_of(at), partition=outgoing.partition, timestamp=time)
                failures.append(StageFailed(KAFKA_PRODUCE, None, row, error, record, SOURCE_TASK))
        if not failures:
            return  # what they were held back for fails the task
        self.meter.answered(count, len(failures))
        try:
            self._tolerance.produce(outgoing.topic, outgoing.partition, outgoing.records, failures, lambda: self._tracker.done(sent))
        except ConnectError as problem:
            self._went_wrong(problem)

    def _note_dropped(self, batch, out, count):
        kept = np.zeros(count, bool)
        for outgoing in out:
            kept[slice(None) if outgoing.rows is None else outgoing.rows] = True
        for row in np.flatnonzero(~kept).tolist():
            self.task.commit_record(batch.records()[row], None)

    def _tell_task(self):
        """The calls that follow an acknowledgement, on the task's own thread."""
        while self._acknowledged:
            batch, outgoing, delivered, several = self._acknowledged.popleft()
            rows = range(len(outgoing.records)) if outgoing.rows is None else outgoing.rows.tolist()
            for sent, partition, base_offset, _ in delivered.acks:
                sent = range(*sent.indices(len(rows))) if isinstance(sent, slice) else sent.tolist()
                for at, row in enumerate(sent):
                    metadata = {"topic": outgoing.topic, "partition": partition, "offset": base_offset + at if base_offset >= 0 else None}
                    self._tell_of(batch, rows[row], metadata, several)
            for refused, _ in delivered.failed:
                for row in np.arange(len(rows))[refused].tolist():
                    self._tell_of(batch, rows[row], None, several)
        if self._synced.is_set():
            self._synced.clear()
            self.task.commit()

    def _tell_of(self, batch, row, metadata, several):
        """Something that came of this row is in the log, or is refused: the task hears of it once, behind the last that came of it."""
        waiting = several.get(row)
        if waiting is not None:
            waiting[0] -= 1
            metadata = waiting[1] = metadata or waiting[1]
            if waiting[0]:
                return
        self.task.commit_record(batch.records()[row], metadata)

    def _drain(self):
        """Wait until all is acknowledged, then make the offsets durable."""
        if not self._producer.flush(self._stop_seconds):
            log.warning("Not all records were acknowledged within %.1f s: what is missing is sent again after a restart", self._stop_seconds)
        if self._letters is not None:
            self._letters.stored(self._stop_seconds)
        self._offsets.sync()
        self.offsets_synced()
        self._tell_task()

    def _send(self):
        with log_context(f"{self.connector}|task-{self.number}"):
            try:
                self._producer.run()
            except Exception as error:
                self._went_wrong(error)


class OffsetTracker:
    """What is under way, in the order polled: a queue for each source partition. Thread-safe."""

    def __init__(self, connector, offsets, memory, on_error):
        self._connector = connector
        self._offsets = offsets
        self._memory = memory
        self._on_error = on_error
        self._lock = threading.Lock()
        self._queues = {}
        self._progress = False

    def add(self, partition, offset, outstanding, size):
        """Something has been polled that `outstanding` deliveries will complete."""
        key = repr(sorted(partition.items(), key=str)) if partition else None
        sent = _Sent(key, partition, offset, outstanding, size)
        with self._lock:
            self._queues.setdefault(key, collections.deque()).append(sent)
        if not outstanding:
            self._advance(sent)
        return sent

    def done(self, sent):
        with self._lock:
            sent.outstanding -= 1
        if not sent.outstanding:
            self._advance(sent)

    def _advance(self, sent):
        """Store the offset behind the last of what is complete from the front on."""
        with self._lock:
            queue = self._queues.get(sent.key, ())
            last, size = None, 0
            while queue and not queue[0].outstanding:
                first = queue.popleft()
                size += first.size
                last = last if first.offset is None else first
            if not queue:
                self._queues.pop(sent.key, None)
            try:
                if last is not None and last.partition is not None:
                    self._offsets.append(self._connector, [(last.partition, last.offset)])
                    self._progress = True
            except ConnectError as error:
                self._on_error(error)
            if size:  # under the lock: letters are acknowledged on another thread than records
                self._memory.give(size)

    def take_progress(self):
        """Whether an offset was stored since this was asked last."""
        with self._lock:
            progress, self._progress = self._progress, False
            return progress


class _Sent:
    __slots__ = ("key", "partition", "offset", "outstanding", "size")

    def __init__(self, key, partition, offset, outstanding, size):
        self.key = key
        self.partition = partition
        self.offset = offset
        self.outstanding = outstanding
        self.size = size


class _Context(SourceTaskContext):
    def __init__(self, runner):
        self.connector = runner.connector
        self.task = runner.number
        self.configs = runner.config
        self.offset_reader = runner._offsets.reader(runner.connector)


def _batches(polled):
    """What poll may return, as SourceBatches."""
    if not polled:
        return
    if isinstance(polled, SourceBatch):
        yield polled
        return
    rows = []
    for item in polled:
        if isinstance(item, SourceBatch):
            if rows:
                yield from SourceBatch.runs(rows)
                rows = []
            yield item
        else:
            rows.append(item)
    if rows:
        yield from SourceBatch.runs(rows)


def _several(out):
    """{row: [how many records came of it, where one of them stands or None]} of the rows of which more than one came."""
    rows = [outgoing.rows for outgoing in out if outgoing.rows is not None]
    if not rows:
        return {}
    counts = np.bincount(np.concatenate(rows))
    return {row: [int(counts[row]), None] for row in np.flatnonzero(counts > 1).tolist()}


def _pieces(outgoing):
    """One Outgoing in pieces of about _PIECE_BYTES, each as a list of one."""
    records, rows = outgoing.records, outgoing.rows
    size = records.nbytes
    if size <= _PIECE_BYTES:
        yield [outgoing]
        return
    step = max(1, len(records) * _PIECE_BYTES // size)
    low = 0
    while low < len(records):
        high = min(low + step, len(records))
        while rows is not None and high < len(records) and rows[high] == rows[high - 1]:
            high += 1  # what came of one record stays together: an offset stands behind all of it
        yield [outgoing._replace(records=records.slice(low, high), rows=None if rows is None else rows[low:high])]
        low = high
