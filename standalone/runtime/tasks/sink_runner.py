"""log → pipeline → put → commit: how a sink task runs, on one thread.

What is fetched is worked by the chain, which may be a batch ahead of the task (pipeline/ahead.py), and put; every so often the task
flushes and the offsets behind what it has put are committed for the group. A put that asks for a retry is repeated with the same records
while nothing more is fetched. Offsets of bad records are committed only once those are stored where they can be found: see dead_letter.py.
"""

import logging

from standalone.connector import SinkTaskContext
from standalone.errors import ConnectError, LogRetriableError, RetriableError, Stopped
from standalone.pipeline.ahead import Ahead
from standalone.runtime.failures.errant_records import COMMIT_BYTES, Culprits, Originals, Reporter
from standalone.runtime.tasks.lifecycle import PAUSED, RUNNING, TaskRunner
from standalone.runtime.metrics import SinkMeter
from standalone.runtime.failures.tolerance import ToleranceExceeded

log = logging.getLogger(__name__)

_POLL_SECONDS = 1.0
_LARGE_FETCH_BYTES = 32 << 20  # where the chain is quicker with more records at once: about 100,000 of 300 bytes


class SinkRunner(TaskRunner):
    def __init__(
        self, task, config, *, pipeline, new_consumer, subscription, tolerance, retries, clock,
        max_poll_records, commit_seconds, flush_seconds, stop_seconds, **base,
    ):  # fmt: skip
        super().__init__(meter=SinkMeter(clock), **base)
        self.task = task
        self.config = config
        self.pipeline = pipeline
        self._ahead = Ahead(pipeline)
        self.consumer = new_consumer(_Listener(self))
        self._subscription = subscription
        self._tolerance = tolerance
        self._letters = tolerance.dead_letters
        self._retries = retries
        self.stopping = retries.stopping  # one event ends all waiting
        self.errors = tolerance.counters
        self._originals = Originals()
        self._reporter = Reporter(self._originals, tolerance, pipeline.chain)
        self._culprits = Culprits(self._put_with_retries, self._reporter.report) if task.put_is_idempotent and tolerance.all else None
        self._clock = clock
        self._max_poll_records = max_poll_records
        self._commit_seconds = commit_seconds
        self._flush_seconds = flush_seconds
        self._stop_seconds = stop_seconds
        self._context = _Context(self)
        self._put = {}  # (topic, partition) -> the offset behind what the task has taken
        self._committed = {}
        self._open = set()
        self._given_up = set()  # pairs that were let go while what was fetched of them was being put
        self._held = False  # connector paused: nothing is fetched
        self._repeats = False  # a put: nothing is fetched meanwhile
        self._next_commit = None

    # ---------------------------------------------------------------- told from other threads
    def wake(self):
        self.consumer.wakeup()

    def metrics(self):
        lag = self.consumer.lag()
        self.meter.assigned(len(self._open), lag)
        return {**super().metrics(), "lag": lag}

    def cancel(self):
        if self._letters is not None:
            self._letters.abort()

    # ---------------------------------------------------------------- the task's thread
    def work(self):
        try:
            if self._letters is not None:
                self._letters.open("errors.deadletterqueue.topic.replication.factor", self.wake)
            self.task.initialize(self._context)
            self.task.start(self.config)
            self.consumer.subscribe(**self._subscription)
            try:
                self.say(RUNNING)
                self._next_commit = self._clock.monotonic() + self._commit_seconds
                self._loop()
                self._give_up(set(self._open), final=True)
            finally:
                self.task.stop()
        finally:
            if self._letters is not None:
                self._letters.close(self._stop_seconds)
            self.consumer.close(self._stop_seconds, leave=True)
            self.pipeline.close()

    def _loop(self):
        while not self.stopping.is_set():
            try:
                self._turn()
            except Stopped as reason:
                log.info("%s", reason)
            except ToleranceExceeded:
                self._give_up_quietly()
                raise

    def _turn(self):
        if self._letters is not None:
            self._letters.check()
        self._hold_or_go_on()
        until_commit = self._next_commit - self._clock.monotonic()
        if until_commit <= 0 or self._context.commit_requested:
            self._commit()
            until_commit = self._commit_seconds
        seconds = 0.0 if self._ahead.is_busy else min(_POLL_SECONDS, until_commit, self._context.take_timeout())
        fetched = self.consumer.poll(max(0.0, seconds))
        if not fetched and not self._ahead.is_busy and (self.paused or self.stopping.is_set()):
            return
        if fetched and self.pipeline.prefers_more_than(max(len(each.records) for each in fetched)):
            self.consumer.expect(_LARGE_FETCH_BYTES)
        self._given_up.clear()
        batches, ends, failed = self._work_chain(fetched)
        if batches or not fetched:
            self._deliver(batches)
        for pair, end in ends.items():
            if pair in self._open and pair not in self._given_up:
                self._put[pair] = end
        if failed is not None:
            self._tolerance.sink(*failed)  # raises
        if self._originals.nbytes > COMMIT_BYTES:
            self._context.commit_requested = True
        self._context.apply()

    def _hold_or_go_on(self):
        if self.paused and not self._held:
            self.consumer.pause(list(self._open))
            self._put_back(self._open)
            self._held = True
            self._commit()
            self.say(PAUSED)
        elif self._held and not self.paused:
            self.consumer.resume([pair for pair in self._open if pair not in self._context.paused])
            self._held = False
            self.say(RUNNING)

    def _work_chain(self, fetched):
        """(batches for the task, the offset behind each partition's records, what failed and is not tolerated or None)"""
        batches, ends = [], {}
        for topic, partition, records, result in self._worked(fetched):
            self.meter.read(len(records))
            if result.failures and not self._tolerance.all:
                # As in Java nothing of the poll that holds the bad record is put; a poll there has max.poll.records.
                first = result.failures[0].row
                row = first - first % self._max_poll_records
                if row:
                    ends[topic, partition] = stop = int(records.offsets[row])
                    batches += [batch for batch in (_before(batch, stop) for batch in result.batches) if len(batch)]
                return batches, ends, (topic, partition, records, result.failures)
            self._tolerance.sink(topic, partition, records, result.failures)
            batches += result.batches
            if len(records):
                ends[topic, partition] = int(records.offsets[-1]) + 1
        return batches, ends, None

    def _worked(self, fetched):
        """What the chain is done with, of what was fetched before and now."""
        done = [each for one in fetched for each in self._ahead.work(one.topic, one.partition, one.records)] if fetched else self._ahead.finish()
        self._originals.begin((each.topic, each.partition, each.records) for each in done)
        return done

    def _put_back(self, pairs):
        """What the chain is at of these partitions is fetched again, once that is wanted."""
        begun = self._ahead.forget(pairs)
        if begun is not None:
            (topic, partition), offset = begun
            self.consumer.seek(topic, partition, offset)

    def _deliver(self, batches):
        if self.task.takes_batches:
            self._put_records(batches, sum(map(len, batches)))
            return
        if not batches:
            self._put_records([], 0)
        for batch in batches:
            for low in range(0, len(batch), self._max_poll_records):
                records = batch.slice(low, low + self._max_poll_records).records()
                self._put_records(records, len(records))

    def _put_records(self, records, count):
        """Put these; where the task lets bad ones be found, all but those."""
        begun = self._clock.monotonic()
        try:
            self._put_with_retries(records)
        except Stopped:
            raise
        except Exception as error:
            try:
                if self._culprits is None or not records:
                    raise
                self._culprits.find(records, error)
            except Stopped:
                raise
            except Exception as problem:
                raise ConnectError(f"The sink's put() failed: {problem}") from problem
        else:
            if self._culprits is not None:
                self._culprits.passed(records)
        if count:
            self.meter.put(count, self._clock.monotonic() - begun)

    def _put_with_retries(self, records):
        pauses, is_empty = None, not records
        try:
            while is_empty or (records := self._still_ours(records)):
                try:
                    self.task.put(records)
                    return
                except RetriableError as error:
                    if self.stopping.is_set():
                        raise Stopped("The task was stopped while a put was still to be repeated; its records come again.") from error
                    log.warning("The task asks for the same %d records again: %s", len(records), error)
                    if pauses is None:
                        pauses, self._repeats = self._retries.pauses(), True
                        self.consumer.pause(list(self._open))
                    self._retries.failed()
                    self._wait_before_retry(next(pauses))
        finally:
            if self._repeats:
                self._repeats = False
                if not self._held:
                    self.consumer.resume([pair for pair in self._open if pair not in self._context.paused])

    def _wait_before_retry(self, seconds):
        """Nothing is fetched meanwhile, but the group must see that the task lives."""
        until = self._clock.monotonic() + self._context.take_timeout(seconds)
        while not self.stopping.is_set() and (left := until - self._clock.monotonic()) > 0:
            self.consumer.poll(min(left, _POLL_SECONDS))

    def _still_ours(self, items):
        """These batches or records without those of partitions that were let go: whoever has these now begins behind the last commit."""
        if not self._given_up:
            return items
        return [item for item in items if item.origin not in self._given_up]

    # ---------------------------------------------------------------- offsets
    def _commit(self, final=False, only=None):
        """Let the task flush, then commit what it says; whether all of it is committed."""
        self._context.commit_requested = False
        self._next_commit = self._clock.monotonic() + self._commit_seconds
        offsets = {pair: offset for pair, offset in self._put.items() if only is None or pair in only}
        if not any(self._committed.get(pair) != offset for pair, offset in offsets.items()):
            return
        seconds = min(self._stop_seconds, self._flush_seconds) if final else self._flush_seconds
        try:
            if not self._letters_are_stored(seconds):
                return
            agreed = self.task.pre_commit(dict(offsets)) or {}
        except RetriableError as error:
            self.meter.skipped_commit()
            log.warning("The task cannot flush now, its offsets are committed later: %s", error)
            return
        agreed = {pair: min(offset, self._put[pair]) for pair, offset in agreed.items() if pair in offsets}
        changed = {pair: offset for pair, offset in agreed.items() if self._committed.get(pair) != offset}
        if not changed or not self._letters_are_stored(seconds):  # a flush may report, too
            return
        begun = self._clock.monotonic()
        try:
            self.consumer.commit(changed, seconds)
            self.meter.committed(self._clock.monotonic() - begun)
            self._committed.update(changed)
            for pair, offset in changed.items():
                self._originals.forget(pair, offset)
        except LogRetriableError as error:
            self.meter.committed(self._clock.monotonic() - begun, well=False)
            log.warning("The offsets could not be committed now (%s): %s", "they come again after a restart" if final else "later", error)

    def _letters_are_stored(self, seconds):
        stored = self._letters is None or self._letters.stored(seconds)
        if not stored:
            self.meter.skipped_commit()
            log.warning("Offsets are not committed yet: bad records are not in the dead letter queue '%s' after %.0f s", self._letters.topic, seconds)
        return stored

    def _take_over(self, pairs):
        self._open |= pairs
        self.task.open(sorted(pairs))
        if self.paused or self._repeats:
            self.consumer.pause(list(pairs))

    def _give_up(self, pairs, final=False, lost=False):
        if not pairs:
            return
        self._ahead.forget(pairs)
        self._given_up |= pairs
        if not lost:
            self._commit(final=final, only=pairs)
        self.task.close(sorted(pairs))
        self._open -= pairs
        for pair in pairs:
            self._put.pop(pair, None)
            self._committed.pop(pair, None)
            self._originals.forget(pair)
        self._context.paused -= pairs

    def _give_up_quietly(self):
        """The task fails: what it has put before is committed, but what goes wrong by that is not what it failed of."""
        try:
            self._give_up(set(self._open), final=True)
        except Exception as error:
            log.warning("Offsets of what was put before the failure could not be committed: %s", error)


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
        self._runner._put_back(set(partitions))

    def resume(self, *partitions):
        self._must_be_ours(partitions)
        self.paused.difference_update(partitions)
        if not self._runner.paused:
            self._runner.consumer.resume(list(partitions))

    def errant_record_reporter(self):
        runner = self._runner
        if not runner._tolerance.reports:
            return None
        runner._originals.kept = True
        return runner._reporter

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
        self._runner._ahead.forget(rewinds)
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
