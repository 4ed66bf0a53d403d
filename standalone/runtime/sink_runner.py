"""log → pipeline → put → commit: how a sink task runs, on one thread.

What is fetched is worked by the chain and put; every so often the task flushes and the offsets behind what it has put are committed
for the group. A put that asks for a retry is repeated with the same records while nothing more is fetched.
"""

import logging

from standalone.connector import SinkTaskContext
from standalone.errors import ConnectError, LogRetriableError, RetriableError
from standalone.runtime.lifecycle import PAUSED, RUNNING, TaskRunner

log = logging.getLogger(__name__)

_RETRY_SECONDS = 0.1  # before a put is repeated, where the task says no other time
_POLL_SECONDS = 1.0


class SinkRunner(TaskRunner):
    def __init__(self, task, config, *, pipeline, new_consumer, subscription, tolerance, clock, max_poll_records, commit_seconds, flush_seconds, stop_seconds, **base):
        super().__init__(**base)
        self.task = task
        self.config = config
        self.pipeline = pipeline
        self.consumer = new_consumer(_Listener(self))
        self._subscription = subscription
        self._tolerance = tolerance
        self._clock = clock
        self._max_poll_records = max_poll_records
        self._commit_seconds = commit_seconds
        self._flush_seconds = flush_seconds
        self._stop_seconds = stop_seconds
        self._context = _Context(self)
        self._put = {}  # (topic, partition) -> the offset behind what the task has taken
        self._committed = {}
        self._open = set()
        self._held = False  # connector paused: nothing is fetched
        self._next_commit = None
        self.read = 0
        self.sent = 0

    # ---------------------------------------------------------------- told from other threads
    def wake(self):
        self.consumer.wakeup()

    # ---------------------------------------------------------------- the task's thread
    def work(self):
        try:
            self.task.initialize(self._context)
            self.task.start(self.config)
            self.consumer.subscribe(**self._subscription)
            try:
                self.say(RUNNING)
                self._next_commit = self._clock.monotonic() + self._commit_seconds
                while not self.stopping.is_set():
                    self._turn()
                self._give_up(set(self._open), final=True)
            finally:
                self.task.stop()
        finally:
            self.consumer.close(self._stop_seconds, leave=True)
            self.pipeline.close()

    def _turn(self):
        self._hold_or_go_on()
        until_commit = self._next_commit - self._clock.monotonic()
        if until_commit <= 0 or self._context.commit_requested:
            self._commit()
            until_commit = self._commit_seconds
        fetched = self.consumer.poll(max(0.0, min(_POLL_SECONDS, until_commit, self._context.take_timeout())))
        if self.paused or self.stopping.is_set() and not fetched:
            return
        batches, ends, failure = self._work_chain(fetched)
        if batches or not fetched:
            self._deliver(batches)
        for pair, end in ends.items():
            if pair in self._open:
                self._put[pair] = end
        if failure is not None:
            raise failure from failure.error
        self._context.apply()

    def _hold_or_go_on(self):
        if self.paused and not self._held:
            self.consumer.pause(list(self._open))
            self._held = True
            self._commit()
            self.say(PAUSED)
        elif self._held and not self.paused:
            self.consumer.resume([pair for pair in self._open if pair not in self._context.paused])
            self._held = False
            self.say(RUNNING)

    def _work_chain(self, fetched):
        """(batches for the task, the offset behind each partition's records, the first failure that is not tolerated)"""
        batches, ends = [], {}
        for topic, partition, records in ((f.topic, f.partition, f.records) for f in fetched):
            self.read += len(records)
            result = self.pipeline.sink(topic, partition, records)
            failures = result.failures
            if failures and self._tolerance.none:
                first = min(failures, key=lambda failure: failure.row)
                stop = int(records.offsets[first.row])
                batches += [batch for batch in (_before(batch, stop) for batch in result.batches) if len(batch)]
                ends[topic, partition] = stop
                return batches, ends, first
            self._tolerance.judge(failures)
            batches += result.batches
            if len(records):
                ends[topic, partition] = int(records.offsets[-1]) + 1
        return batches, ends, None

    def _deliver(self, batches):
        if self.task.takes_batches:
            self._put_with_retries(batches)
            self.sent += sum(map(len, batches))
            return
        if not batches:
            self._put_with_retries([])
        for batch in batches:
            for low in range(0, len(batch), self._max_poll_records):
                records = batch.slice(low, low + self._max_poll_records).records()
                self._put_with_retries(records)
                self.sent += len(records)

    def _put_with_retries(self, records):
        held = None
        while True:
            try:
                self.task.put(records)
                break
            except RetriableError as error:
                if self.stopping.is_set():
                    raise ConnectError("The task was stopped while a put was still to be repeated; its records come again") from error
                log.warning("The task asks for the same %d records again: %s", len(records), error)
                if held is None:
                    held = set(self._open)
                    self.consumer.pause(list(held))
                self._wait_before_retry()
        if held is not None and not self._held:
            self.consumer.resume([pair for pair in held if pair in self._open and pair not in self._context.paused])

    def _wait_before_retry(self):
        """Nothing is fetched meanwhile, but the group must see that the task lives."""
        seconds = self._context.take_timeout(_RETRY_SECONDS)
        until = self._clock.monotonic() + seconds
        while not self.stopping.is_set() and (left := until - self._clock.monotonic()) > 0:
            self.consumer.poll(min(left, _POLL_SECONDS))

    # ---------------------------------------------------------------- offsets
    def _commit(self, final=False, only=None):
        """Let the task flush, then commit what it says; whether all of it is committed."""
        self._context.commit_requested = False
        self._next_commit = self._clock.monotonic() + self._commit_seconds
        offsets = {pair: offset for pair, offset in self._put.items() if only is None or pair in only}
        if not any(self._committed.get(pair) != offset for pair, offset in offsets.items()):
            return
        try:
            agreed = self.task.pre_commit(dict(offsets)) or {}
        except RetriableError as error:
            log.warning("The task cannot flush now, its offsets are committed later: %s", error)
            return
        agreed = {pair: min(offset, self._put[pair]) for pair, offset in agreed.items() if pair in offsets}
        changed = {pair: offset for pair, offset in agreed.items() if self._committed.get(pair) != offset}
        if not changed:
            return
        try:
            self.consumer.commit(changed, min(self._stop_seconds, self._flush_seconds) if final else self._flush_seconds)
            self._committed.update(changed)
        except LogRetriableError as error:
            log.warning("The offsets could not be committed now (%s): %s", "they come again after a restart" if final else "later", error)

    def _take_over(self, pairs):
        self._open |= pairs
        self.task.open(sorted(pairs))
        if self.paused:
            self.consumer.pause(list(pairs))

    def _give_up(self, pairs, final=False, lost=False):
        if not pairs:
            return
        if not lost:
            self._commit(final=final, only=pairs)
        self.task.close(sorted(pairs))
        self._open -= pairs
        for pair in pairs:
            self._put.pop(pair, None)
            self._committed.pop(pair, None)
        self._context.paused -= pairs


class _Listener:
    """Follows the group's assignment, on the task's thread."""

    def __init__(self, runner):
        self._runner = runner

    def on_assigned(self, pairs):
        log.info("Assigned %s", _shown(pairs))
        self._runner._take_over(set(pairs))

    def on_revoked(self, pairs):
        log.info("Giving up %s", _shown(pairs))
        self._runner._give_up(set(pairs))

    def on_lost(self, pairs):
        log.warning("Lost %s: another member has them; what was not committed comes again there", _shown(pairs))
        self._runner._give_up(set(pairs), lost=True)


class _Context(SinkTaskContext):
    """Notes what the task asks for; it is done between puts."""

    def __init__(self, runner):
        self._runner = runner
        self.connector = runner.connector
        self.task = runner.number
        self.configs = runner.config
        self.paused = set()
        self.commit_requested = False
        self._rewinds = {}
        self._timeout = None

    def assignment(self):
        return set(self._runner._open)

    def offset(self, offsets):
        self._rewinds.update(offsets)

    def pause(self, *partitions):
        self._must_be_ours(partitions)
        self.paused.update(partitions)
        self._runner.consumer.pause(list(partitions))

    def resume(self, *partitions):
        self._must_be_ours(partitions)
        self.paused.difference_update(partitions)
        if not self._runner.paused:
            self._runner.consumer.resume(list(partitions))

    def request_commit(self):
        self.commit_requested = True

    def timeout(self, ms):
        self._timeout = ms / 1000

    def take_timeout(self, default=float("inf")):
        seconds, self._timeout = self._timeout, None
        return default if seconds is None else seconds

    def apply(self):
        """Rewind where the task said so."""
        rewinds, self._rewinds = self._rewinds, {}
        for (topic, partition), offset in rewinds.items():
            self._runner.consumer.seek(topic, partition, offset)
            self._runner._put[topic, partition] = offset

    def _must_be_ours(self, partitions):
        strange = set(partitions) - self._runner._open
        if strange:
            raise ConnectError(f"{_shown(strange)} cannot be paused or resumed by this task: not assigned to it.")


def _before(batch, offset):
    """The rows of a SinkBatch whose offsets are lower."""
    return batch.slice(0, int(batch.offsets.searchsorted(offset)))


def _shown(pairs):
    return ", ".join(f"{topic}-{partition}" for topic, partition in sorted(pairs)) or "nothing"
