"""Exactly-once sources: a task's records and the offsets after them go to the log in one transaction.

    poll        a transaction ends after each poll; after several if more records follow at once (SECONDS at most)
    interval    it ends after transaction.boundary.interval.ms
    connector   it ends where the task asks for it (TransactionContext)

When a task starts it initializes its transactional id, which fences the previous producer and aborts its open transaction; only then it
reads its offsets. When it is stopped or paused, the transaction is committed; when it fails, aborted: its records are polled again, and no
reader of committed records has seen them. With transaction.boundary=connector a transaction that the task has not ended is always aborted.
"""

import logging
import threading

from standalone.connector import TransactionContext
from standalone.data.batch import SourceBatch
from standalone.errors import LogError
from standalone.runtime.offsets.topic import canonical
from standalone.runtime.tasks.source_runner import SourceRunner

log = logging.getLogger(__name__)

POLL, INTERVAL, CONNECTOR = "poll", "interval", "connector"
SECONDS = 1.0  # longest transaction of multiple polls
_LOOK_SECONDS = 0.5


class ExactlyOnceRunner(SourceRunner):
    """`producer` is a TransactionalProducer, `offsets` the connector's OffsetsTopic; `boundary` is one of the above."""

    def __init__(self, task, config, *, offsets, boundary, interval_seconds, **base):
        self._store = offsets
        self._pending = _Pending(offsets)  # offsets of acknowledged records that are not in the transaction yet
        super().__init__(task, config, offsets=self._pending, **base)
        self._boundary = boundary
        self._interval_seconds = interval_seconds if boundary == INTERVAL else SECONDS
        self._begun_at = None  # when the first records of the transaction were polled
        self._ends = Boundaries() if boundary == CONNECTOR else None
        self._ready = False

    # ---------------------------------------------------------------- called by other threads
    def wake(self):
        super().wake()
        if self.stopping.is_set() and not self._ready:
            self._producer.close(0)  # it may be waiting for its coordinator

    def offsets_synced(self, seconds=0.0):
        """Its offsets are in the log after a commit; the task's own commit() is due even if no transaction was committed."""
        self._acknowledgements.note_sync()

    # ---------------------------------------------------------------- the task's thread
    def _prepare(self):
        try:
            self._producer.init_transactions()
        except LogError:
            if self.stopping.is_set():
                return False
            raise
        self._ready = True
        self._store.load()
        log.info(
            "Writes in transactions: each record and the offset after it, in topic %s, once or not at all for readers with "
            "isolation.level=read_committed (transaction.boundary=%s)",
            *(self._store.topic, self._boundary),
        )
        return True

    def _context(self):
        context = super()._context()
        context.transaction_context = self._ends
        return context

    def _take(self, polled):
        now = self._clock.monotonic()
        if polled and self._begun_at is None:
            self._begun_at = now
        if self._ends is not None:
            self._take_parts(polled)
            return False
        more_follows = super()._take(polled)
        if self._trouble is None and self._begun_at is not None and self._is_due(more_follows, now):
            self._ship(self._ahead.all_done())
            self._commit()
        return more_follows

    def _is_due(self, more_follows, now):
        if self._boundary == POLL and not more_follows:
            return True
        return now - self._begun_at >= self._interval_seconds

    def _take_parts(self, polled):
        for batch, end in self._ends.parts(polled):
            if self._trouble is not None:
                return
            if batch is not None:
                self._ahead.add(batch, self.pipeline.begin_source(batch), batch.nbytes)
                self._ship(self._ahead.all_done())
            if end is not None and self._trouble is None:
                self._commit(dropped=end is ABORT)

    def _before_retry(self):
        self._take([])  # what is open must not wait for the next poll that has something

    def _before_pause(self):
        super()._before_pause()
        if self._ends is None:
            self._commit()

    def _settle(self):
        if self._ends is not None:
            self._take([])  # what the task asked for in its last transaction
            self._abort()  # an open transaction is aborted
        else:
            self._commit()
        return not self._must_end()

    def _drain(self):
        self._ship(self._ahead.all_done())
        if self._ends is not None:
            self._abort()
        elif not self._commit(self._stop_seconds):
            log.warning("The transaction was not committed within %.1f s: its records are polled again after a restart", self._stop_seconds)

    def _end_failed(self):
        self.without_failing(self._abort)

    # ---------------------------------------------------------------- commit and abort
    def _commit(self, seconds=float("inf"), dropped=False):
        """Commit the sent records, or only offsets; return whether that succeeded in time."""
        self._begun_at = None
        if not self._delivered(self._producer.flush, seconds):
            return False
        if self._letters is not None and not self._delivered(self._letters.stored, seconds):  # letters are stored before offsets, too
            return False
        if dropped:
            self._producer.abort_transaction()
        begun = self._clock.monotonic()
        entries = self._pending.take()
        if entries:
            self._store.send(self._producer, self.connector, entries, self._offsets_done)
            if not self._delivered(self._producer.flush, seconds):
                return False
        self._producer.commit_transaction()
        if entries:
            self._store.committed(self.connector, entries)
            self._tracker.take_progress()
            self.meter.committed(self._clock.monotonic() - begun)
            self._acknowledgements.note_sync()
        self._acknowledgements.tell()
        return True

    def _delivered(self, flush, seconds):
        """Whether everything is acknowledged within that time. Raises the error that failed the task meanwhile."""
        deadline = self._clock.monotonic() + seconds
        while not flush(min(_LOOK_SECONDS, max(0.0, deadline - self._clock.monotonic()))):
            if self._trouble is not None:
                raise self._trouble
            if self._clock.monotonic() >= deadline:
                return False
            if self.stopping.is_set():
                deadline = min(deadline, self._clock.monotonic() + self._stop_seconds)
        if self._trouble is not None:
            raise self._trouble
        return True

    def _offsets_done(self, delivered):
        if delivered.error is not None:
            self._went_wrong(delivered.error)

    def _abort(self):
        self._shipping.closing = True
        if self._producer.flush(self._stop_seconds):
            self._producer.abort_transaction()


class _Pending:
    """The tracker's and the task's view of the connector's offsets; those to store are queued here for the transaction."""

    def __init__(self, store):
        self._store = store
        self._entries = {}
        self._lock = threading.Lock()

    def reader(self, connector):
        return self._store.reader(connector)

    def append(self, connector, entries):
        with self._lock:
            for partition, offset in entries:
                self._entries[canonical(partition)] = (partition, offset)

    def take(self):
        with self._lock:
            entries, self._entries = list(self._entries.values()), {}
        return entries


COMMIT, ABORT = "commit", "abort"


class Boundaries(TransactionContext):
    """The transaction boundaries that a task has asked for; splits polled batches at them. Tasks may call from any of their threads."""

    def __init__(self):
        self._behind = {}  # id of a record -> (the record, COMMIT or ABORT)
        self._at_end = None
        self._lock = threading.Lock()

    def commit_transaction(self, record=None):
        self._note(record, COMMIT)

    def abort_transaction(self, record=None):
        self._note(record, ABORT)

    def _note(self, record, end):
        with self._lock:
            if record is None:
                self._at_end = end
            else:
                self._behind[id(record)] = record, end

    def parts(self, batches):
        """(SourceBatch or None, COMMIT, ABORT or None: what follows it), in order."""
        for batch in batches:
            low = 0
            own = self._take(batch)
            if batch._records is not None and self._behind:
                for row, record in enumerate(batch._records):
                    if (end := self._take(record)) is not None:
                        yield from _ended(batch._records[low : row + 1], end)
                        low = row + 1
            if low == 0:
                yield batch, own
            elif low < len(batch):
                yield from _ended(batch._records[low:], own)
        with self._lock:
            end, self._at_end = self._at_end, None
        if end is not None:
            yield None, end

    def _take(self, record):
        with self._lock:
            return self._behind.pop(id(record), (None, None))[1]


def _ended(records, end):
    batches = list(SourceBatch.runs(records))
    for batch in batches:
        yield batch, end if batch is batches[-1] else None
