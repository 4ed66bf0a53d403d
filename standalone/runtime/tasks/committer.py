"""Offset commits of a sink task: what was put, what was flushed, and what is committed.

Offsets of bad records are committed only after their letters are stored (failures/dead_letter.py). If pre_commit() fails, the task may
have lost records: as in Java it is rewound to the last committed offsets, and continues.
"""

import logging

from standalone.errors import LogRetriableError, RetriableError, trace_of

log = logging.getLogger(__name__)


class Committer:
    """On the task's thread. Pairs are (topic, partition). `rewind({pair: offset})` has the runner fetch from there again."""

    def __init__(self, task, consumer, *, rewind, letters, originals, meter, clock, every_seconds, flush_seconds, stop_seconds):
        self._task = task
        self._consumer = consumer
        self._rewind = rewind
        self._letters = letters
        self._originals = originals
        self._meter = meter
        self._clock = clock
        self._every_seconds = every_seconds
        self._flush_seconds = flush_seconds
        self._stop_seconds = stop_seconds
        self.requested = False  # a commit before the interval has passed
        self._put = {}  # pair -> the offset after the last record put
        self._committed = {}
        self._began = {}  # pair -> where the task began, or was rewound to: earlier offsets are not committed
        self._next = None

    def begin(self):
        self._next = self._clock.monotonic() + self._every_seconds

    def due_in(self):
        """Seconds until the next commit; 0 or less if it is due."""
        return 0.0 if self.requested else self._next - self._clock.monotonic()

    def began(self, pair, offset):
        """The task is about to get records from this offset onward; no effect on a partition that has had records since the last call."""
        self._began.setdefault(pair, offset)

    def put(self, pair, offset):
        """The task has accepted all records before this offset."""
        self._put[pair] = offset

    def read_on(self, pair, offset):
        """The task has asked to continue from this offset."""
        self._put[pair] = self._began[pair] = offset

    def release(self, pairs):
        for pair in pairs:
            for known in (self._put, self._committed, self._began):
                known.pop(pair, None)
            self._originals.forget(pair)

    def commit(self):
        """Let the task flush, then commit the offsets that it returns."""
        self.requested = False
        self.begin()
        self._store(self._flushed(self._uncommitted(self._put), self._flush_seconds, self._read_again), self._flush_seconds)

    def last_commit(self, pairs, close, final=False):
        """Commit as the task gives up partitions: flush, call `close()`, then commit the flushed offsets. `final`: the task ends."""
        seconds = min(self._stop_seconds, self._flush_seconds) if final else self._flush_seconds
        agreed = {}
        try:
            agreed = self._flushed(self._uncommitted(pairs), seconds, self._leave)
        finally:
            close()
        self._store(agreed, seconds, final)

    def _read_again(self, pairs, error):
        log.error("Offset commit failed, rewinding to last committed offsets: records put since then are redelivered. %s", trace_of(error))
        for pair in pairs:
            del self._put[pair]
            self._originals.forget(pair)
        self._rewind({pair: self._began[pair] for pair in pairs})

    @staticmethod
    def _leave(pairs, error):
        log.warning("Offset commit failed during close: records put since the last commit are redelivered. %s", trace_of(error))

    def _uncommitted(self, pairs):
        """{pair: offset} of pairs with more records put than committed; of all `pairs` if there is any such pair."""
        offsets = {pair: self._put[pair] for pair in pairs if pair in self._put}
        return offsets if any(self._committed.get(pair) != offset for pair, offset in offsets.items()) else {}

    def _flushed(self, offsets, seconds, failed):
        """The offsets that the task agrees to; {} if it cannot flush now, or fails: then `failed(offsets, error)` is called."""
        if not offsets or not self._letters_are_stored(seconds):
            return {}
        try:
            agreed = self._task.pre_commit(dict(offsets)) or {}
        except RetriableError as error:
            self._meter.skipped_commit()
            log.warning("The task cannot flush now; its offsets will be committed later: %s", error)
            return {}
        except Exception as error:
            self._meter.committed(0.0, well=False)
            failed(offsets, error)
            return {}
        return {pair: min(offset, self._put[pair]) for pair, offset in agreed.items() if pair in offsets}

    def _store(self, agreed, seconds, final=False):
        changed = {pair: offset for pair, offset in agreed.items() if self._committed.get(pair) != offset}
        if changed and self._letters_are_stored(seconds):  # a flush may report records, too
            self._write(changed, seconds, final)

    def _write(self, offsets, seconds, final):
        begun = self._clock.monotonic()
        try:
            self._consumer.commit(offsets, seconds)
        except LogRetriableError as error:
            self._meter.committed(self._clock.monotonic() - begun, well=False)
            what_next = "the records are redelivered after a restart" if final else "retried later"
            log.warning("The offsets could not be committed now (%s): %s", what_next, error)
            return
        self._meter.committed(self._clock.monotonic() - begun)
        self._committed.update(offsets)
        self._began.update(offsets)
        for pair, offset in offsets.items():
            self._originals.forget(pair, offset)

    def _letters_are_stored(self, seconds):
        stored = self._letters is None or self._letters.stored(seconds)
        if not stored:
            self._meter.skipped_commit()
            text = "Offsets are not committed yet: bad records were not written to the dead letter queue '%s' within %.0f s"
            log.warning(text, self._letters.topic, seconds)
        return stored
