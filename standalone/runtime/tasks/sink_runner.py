"""log → pipeline → put → commit: how a sink task runs, on one thread.

    assigned.py      assigned partitions, and which of them are fetched
    redelivery.py    retries of a put
    committer.py     flushes and offset commits
    sink_context.py  the task's SinkTaskContext

Fetched records are processed by the chain, which may be some batches ahead of the task (look_ahead.py), and put. When the task ends, for
any reason, the records already put are flushed and committed, and its partitions are closed.
"""

import contextlib
import logging

from standalone.errors import ConnectError, Stopped
from standalone.runtime.failures.errant_records import COMMIT_BYTES, BadRecordSearch, Originals, Reporter
from standalone.runtime.failures.schema_drift import EVOLVE, SchemaDrift
from standalone.runtime.metrics import SinkMeter
from standalone.runtime.tasks.assigned import Assigned, shown
from standalone.runtime.tasks.committer import Committer
from standalone.runtime.tasks.lifecycle import PAUSED, RUNNING, TaskRunner
from standalone.runtime.tasks.look_ahead import GOOD_BYTES, ROWS_BYTES, LookAhead
from standalone.runtime.tasks.redelivery import POLL_SECONDS, Redelivery
from standalone.runtime.tasks.sink_context import SinkContext

log = logging.getLogger(__name__)

AHEAD_SECONDS = 0.005  # wait for records in flight even if some could be put at once


class SinkRunner(TaskRunner):
    def __init__(
        self, task, config, *, pipeline, new_consumer, subscription, tolerance, retries, clock, note_topic,
        max_poll_records, commit_seconds, flush_seconds, stop_seconds, drift=(EVOLVE, {}), note_event=lambda state, text: None, **base,
    ):  # fmt: skip
        super().__init__(meter=SinkMeter(clock), **base)
        self.task = task
        self.config = config
        self.pipeline = pipeline
        self.consumer = new_consumer(_Listener(self))
        self.stopping = retries.stopping  # ends all waiting
        pipeline.ask_what_follows(lambda: sum(self.consumer.lag().values()))
        self.errors = tolerance.counters
        self._subscription = subscription
        self._tolerance = tolerance
        self._letters = tolerance.dead_letters
        self._clock = clock
        self._note_topic = note_topic  # called with each topic that it reads
        self._max_poll_records = max_poll_records
        self._stop_seconds = stop_seconds
        self._ahead = LookAhead()
        self._originals = Originals()
        self._reporter = Reporter(self._originals, tolerance, pipeline.chain)
        self._drift = SchemaDrift(*drift, self._reporter, self.errors, note_event)
        self._assigned = Assigned(self.consumer)
        self._context = SinkContext(
            self.connector, self.number, config, self._assigned, self._put_back, self._errant_record_reporter, pipeline.spark
        )
        self._redelivery = Redelivery(task, self._assigned, self.consumer, self._context, retries, clock)
        self._bad_records = BadRecordSearch(self._redelivery.put, self._reporter.report) if task.put_is_idempotent and tolerance.all else None
        self._committer = Committer(
            *(task, self.consumer), rewind=self._read_from, letters=self._letters, originals=self._originals, meter=self.meter, clock=clock,
            every_seconds=commit_seconds, flush_seconds=flush_seconds, stop_seconds=stop_seconds,
        )  # fmt: skip

    # ---------------------------------------------------------------- called by other threads
    def wake(self):
        self.consumer.wakeup()

    def metrics(self):
        lag = self.consumer.lag()
        self.meter.assigned(len(self._assigned.open), lag)
        return {**super().metrics(), "lag": lag, "task": self._counted_by_task()}

    def _counted_by_task(self):
        try:
            return self.task.metrics()
        except Exception as error:  # plugin code
            log.warning("The task's metrics() failed: %s", error)
            return {}

    def cancel(self):
        if self._letters is not None:
            self._letters.abort()

    # ---------------------------------------------------------------- the task's thread
    def work(self):
        with contextlib.ExitStack() as at_end:  # run in reverse order; each runs even if another fails
            at_end.callback(self.pipeline.close)
            at_end.callback(self.consumer.close, self._stop_seconds, leave=True)
            if self._letters is not None:
                at_end.callback(self._letters.close, self._stop_seconds)
                self._letters.open("errors.deadletterqueue.topic.replication.factor", self.wake)
            self.task.initialize(self._context)
            self.task.start(self.config)
            at_end.callback(self.without_failing, self.task.stop)
            if self.pipeline.is_by_rows:
                self.consumer.expect(ROWS_BYTES)
            self.consumer.subscribe(**self._subscription)
            self.say(RUNNING)
            self._committer.begin()
            self._loop()

    def _loop(self):
        try:
            while not self.stopping.is_set():
                try:
                    self._turn()
                except Stopped as reason:
                    log.info("%s", reason)
        except Exception:
            self.without_failing(self._give_up, set(self._assigned.open), final=True)
            raise
        self._give_up(set(self._assigned.open), final=True)

    def _turn(self):
        if self._letters is not None:
            self._letters.check()
        self._hold_or_go_on()
        if self._committer.due_in() <= 0:
            self._commit()
        fetched = self._fetch()
        if not fetched and not self._ahead.is_busy and (self.paused or self.stopping.is_set()):
            return
        self._assigned.begin_turn()
        batches, ends, failed = self._work_chain(fetched)
        batches = self._drift.applied(batches)
        if batches or not fetched:
            self._deliver(batches)
        for pair, end in ends.items():
            if pair in self._assigned.open and pair not in self._assigned.given_up:
                self._committer.put(pair, end)
        if failed is not None:
            self._tolerance.sink(*failed)  # raises
        if self._context.take_commit() or self._originals.nbytes > COMMIT_BYTES:
            self._committer.requested = True
        self._rewind()

    def _hold_or_go_on(self):
        if self.paused and not self._assigned.held:
            self._assigned.hold(True)
            self._put_back(self._assigned.open)
            self._commit()
            self.say(PAUSED)
        elif self._assigned.held and not self.paused:
            self._assigned.hold(False)
            self.say(RUNNING)

    def _commit(self):
        self._committer.commit()
        self._rewind()  # pre_commit may rewind, too

    # ---------------------------------------------------------------- records: fetch and chain
    def _fetch(self):
        if self._ahead.is_busy:
            fetched = self._fetch_meanwhile()
        else:
            fetched = self.consumer.poll(max(0.0, min(POLL_SECONDS, self._committer.due_in(), self._context.take_timeout())))
        for each in fetched:
            if len(each.records):
                self._note_topic(each.topic)
        if fetched and self.pipeline.prefers_more_than(max(len(each.records) for each in fetched)):
            self.consumer.expect(GOOD_BYTES)
        elif self.pipeline.is_by_rows:
            self.consumer.expect(ROWS_BYTES)
        return fetched

    def _fetch_meanwhile(self):
        """Fetch while the chain processes a batch, so that it has the next one when the task gets this one."""
        fetched = self.consumer.poll(AHEAD_SECONDS)
        while not fetched and self._ahead.has_time and not self.stopping.is_set():
            fetched = self.consumer.poll(AHEAD_SECONDS)
        return fetched

    def _work_chain(self, fetched):
        """(batches to put, the offset after each partition's records, the failures that are not tolerated or None)"""
        batches, ends = [], {}
        for (topic, partition, records), result in self._worked(fetched):
            self.meter.read(len(records))
            if len(records):
                self._committer.began((topic, partition), int(records.offsets[0]))
            if result.failures and not self._tolerance.all:
                # As in Java, no record of the poll with the bad record is put; a poll in Java has max.poll.records.
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
        """[((topic, partition, records), result)] finished by the chain, from earlier fetches and this one."""
        prepare = self.task.prepare if self.task.takes_batches else None
        for each in fetched:
            batch = each.topic, each.partition, each.records
            self._ahead.add(batch, self.pipeline.begin_sink(*batch, prepare), each.records.nbytes)
        done = list(self._ahead.done(wait=not fetched))
        self._originals.begin(batch for batch, _ in done)
        return done

    def _put_back(self, pairs):
        """Fetch records of these partitions again that are still in the chain, once needed."""
        firsts = {}
        for topic, partition, records in self._forget(pairs):
            firsts.setdefault((topic, partition), int(records.offsets[0]))
        for (topic, partition), offset in firsts.items():
            self.consumer.seek(topic, partition, offset)

    def _forget(self, pairs):
        return self._ahead.forget(lambda batch: batch[:2] in pairs)

    # ---------------------------------------------------------------- puts
    def _deliver(self, batches):
        if self.task.takes_batches:
            self._put(batches, sum(map(len, batches)))
            return
        if not batches:
            self._put([], 0)
        for batch in batches:
            for low in range(0, len(batch), self._max_poll_records):
                records = batch.slice(low, low + self._max_poll_records).records()
                self._put(records, len(records))

    def _put(self, records, count):
        """Put these; if the task allows a search for bad records, all except those."""
        records = self._assigned.still_ours(records)
        if count and not records:
            return
        begun = self._clock.monotonic()
        try:
            self._put_or_find_bad_records(records)
        except Stopped:
            raise
        except Exception as problem:
            raise ConnectError(f"The sink's put() failed: {problem}") from problem
        if count:
            self.meter.put(count, self._clock.monotonic() - begun)

    def _put_or_find_bad_records(self, records):
        try:
            self._redelivery.put(records)
        except Stopped:
            raise
        except Exception as error:
            if self._bad_records is None or not records:
                raise
            self._bad_records.find(records, error)
        else:
            if self._bad_records is not None:
                self._bad_records.passed(records)

    def _errant_record_reporter(self):
        if not self._tolerance.reports:
            return None
        self._originals.kept = True
        return self._reporter

    # ---------------------------------------------------------------- partitions
    def _take_over(self, pairs):
        self._assigned.take(pairs)
        self.task.open(sorted(pairs))
        self._rewind()  # before their first fetch

    def _rewind(self):
        """Seek where the task has asked for it."""
        rewinds = self._context.take_rewinds()
        self._read_from(rewinds)
        for pair, offset in rewinds.items():
            self._committer.read_on(pair, offset)

    def _read_from(self, offsets):
        self._forget(offsets)
        for (topic, partition), offset in offsets.items():
            self.consumer.seek(topic, partition, offset)

    def _give_up(self, pairs, final=False, lost=False):
        if not pairs:
            return
        self._forget(pairs)

        def close():
            self.task.close(sorted(pairs))

        try:
            if lost:
                close()
            else:
                self._committer.last_commit(pairs, close, final)
        finally:
            for part in (self._assigned, self._context, self._committer, self._bad_records):
                if part is not None:
                    part.release(pairs)


class _Listener:
    """Follows the group's rebalances, on the task's thread."""

    def __init__(self, runner):
        self._runner = runner

    def on_assigned(self, pairs):
        log.info("Assigned %s", shown(pairs))
        self._runner._take_over(set(pairs))

    def on_revoked(self, pairs):
        log.info("Giving up %s", shown(pairs))
        self._runner._give_up(set(pairs))

    def on_lost(self, pairs):
        log.warning("Lost %s to another member; uncommitted records are redelivered there", shown(pairs))
        self._runner._give_up(set(pairs), lost=True)


def _before(batch, offset):
    """The rows of a SinkBatch with lower offsets."""
    return batch.slice(0, int(batch.offsets.searchsorted(offset)))
