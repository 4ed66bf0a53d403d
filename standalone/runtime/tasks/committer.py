"""How far a sink's task has come: what it has put, what it has flushed, what the group has been told.

Offsets of bad records are committed only once those are stored where they can be found (failures/dead_letter.py).
"""

import logging

from standalone.errors import LogRetriableError, RetriableError

log = logging.getLogger(__name__)


class Committer:
    """On the task's thread. Pairs are (topic, partition)."""

    def __init__(self, task, consumer, *, letters, originals, meter, clock, every_seconds, flush_seconds, stop_seconds):
        self._task = task
        self._consumer = consumer
        self._letters = letters
        self._originals = originals
        self._meter = meter
        self._clock = clock
        self._every_seconds = every_seconds
        self._flush_seconds = flush_seconds
        self._stop_seconds = stop_seconds
        self.requested = False  # a commit, before the interval is over
        self.failed = False  # the task could not flush: whether it would tell the truth a second time nobody knows
        self._put = {}  # pair -> the offset behind what the task has taken
        self._committed = {}
        self._next = None

    def begin(self):
        self._next = self._clock.monotonic() + self._every_seconds

    def due_in(self):
        """Seconds until the next commit; 0 or less if it is due."""
        return 0.0 if self.requested else self._next - self._clock.monotonic()

    def put(self, pair, offset):
        """The task has taken all that lies before this offset, or has asked to read on from there."""
        self._put[pair] = offset

    def let_go(self, pairs):
        for pair in pairs:
            self._put.pop(pair, None)
            self._committed.pop(pair, None)
            self._originals.forget(pair)

    def commit(self, only=None, final=False):
        """Let the task flush, then commit what it says. `final`: the task ends, and there is no later."""
        self.requested = False
        self.begin()
        offsets = {pair: offset for pair, offset in self._put.items() if only is None or pair in only}
        if not any(self._committed.get(pair) != offset for pair, offset in offsets.items()):
            return
        seconds = min(self._stop_seconds, self._flush_seconds) if final else self._flush_seconds
        agreed = self._flushed(offsets, seconds)
        changed = {pair: offset for pair, offset in agreed.items() if self._committed.get(pair) != offset}
        if changed and self._letters_are_stored(seconds):  # a flush may report, too
            self._write(changed, seconds, final)

    def _flushed(self, offsets, seconds):
        """The offsets that the task agrees to; {} if it cannot flush now."""
        try:
            if not self._letters_are_stored(seconds):
                return {}
            agreed = self._task.pre_commit(dict(offsets)) or {}
        except RetriableError as error:
            self._meter.skipped_commit()
            log.warning("The task cannot flush now, its offsets are committed later: %s", error)
            return {}
        except BaseException:
            self.failed = True
            raise
        return {pair: min(offset, self._put[pair]) for pair, offset in agreed.items() if pair in offsets}

    def _write(self, offsets, seconds, final):
        begun = self._clock.monotonic()
        try:
            self._consumer.commit(offsets, seconds)
        except LogRetriableError as error:
            self._meter.committed(self._clock.monotonic() - begun, well=False)
            log.warning("The offsets could not be committed now (%s): %s", "they come again after a restart" if final else "later", error)
            return
        self._meter.committed(self._clock.monotonic() - begun)
        self._committed.update(offsets)
        for pair, offset in offsets.items():
            self._originals.forget(pair, offset)

    def _letters_are_stored(self, seconds):
        stored = self._letters is None or self._letters.stored(seconds)
        if not stored:
            self._meter.skipped_commit()
            log.warning("Offsets are not committed yet: bad records are not in the dead letter queue '%s' after %.0f s", self._letters.topic, seconds)
        return stored
