"""poll → pipeline → log → offsets: how a source task runs.

    shipping.py             processed batches to the producer, and its responses
    ../offsets/tracker.py   which offset may be stored
    acknowledgements.py     callbacks of the task
    look_ahead.py           batches in the chain

The task's own thread polls, runs the chain and hands records to the producer; a second thread runs the producer. An offset is stored when
every record polled before it from the same source partition is acknowledged, filtered or tolerated; a tolerated record that goes to the
dead letter queue must be acknowledged there. As in Java, a tolerated record without such a queue does not advance the offset; the next good
record does. When the task ends, for any reason, the records already polled are sent and their offsets are stored.
"""

import contextlib
import logging
import threading

from standalone.connector import SourceTaskContext
from standalone.data.batch import SourceBatch
from standalone.errors import ConnectError, RetriableError, Stopped
from standalone.runtime.metrics import SourceMeter
from standalone.runtime.offsets.tracker import OffsetTracker
from standalone.runtime.tasks.acknowledgements import Acknowledgements
from standalone.runtime.tasks.lifecycle import PAUSED, RUNNING, TaskRunner, log_context
from standalone.runtime.tasks.look_ahead import GOOD_BYTES, LookAhead
from standalone.runtime.tasks.shipping import Shipping

log = logging.getLogger(__name__)

_LOOK_SECONDS = 0.5  # polling interval for a stop request while waiting for records


class SourceRunner(TaskRunner):
    def __init__(self, task, config, *, pipeline, producer, topics, offsets, tolerance, retries, memory, clock, stop_seconds, note_end, **base):
        super().__init__(meter=SourceMeter(clock), **base)
        self.task = task
        self.config = config
        self.pipeline = pipeline
        self.stopping = retries.stopping  # ends all waiting
        self.errors = tolerance.counters
        self._producer = producer
        self._topics = topics
        self._offsets = offsets
        self._letters = tolerance.dead_letters
        self._retries = retries
        self._memory = memory
        self._clock = clock
        self._stop_seconds = stop_seconds
        self._trouble = None  # the error of another thread
        self._begun = False  # whether start() was called; stop() is called only then
        self._told = False  # whether stop() was called
        self._resting = self._nudged = False
        self._is_last_poll = False  # the task has said so
        self.has_ended = False  # it has finished, and all of its records are acknowledged
        self._note_end = note_end  # called when it has finished
        self._tracker = OffsetTracker(self.connector, offsets, memory, self._went_wrong)
        self._acknowledgements = Acknowledgements(task, self._nudge)
        self._ahead = LookAhead()
        self._shipping = Shipping(
            producer, topics=topics, tracker=self._tracker, acknowledgements=self._acknowledgements,
            tolerance=tolerance, memory=memory, meter=self.meter, went_wrong=self._went_wrong,
        )  # fmt: skip
        self._sender = threading.Thread(target=self._send, name=f"send-{self.connector}-{self.number}", daemon=True)

    # ---------------------------------------------------------------- called by other threads
    def wake(self):
        with self._wanted:
            told, self._told = self._told, self.stopping.is_set() and self._begun
        if self._told and not told:
            self.without_failing(self.task.stop)

    def cancel(self):
        self._tracker.abandon()
        self._shipping.closing = True
        self._memory.close()
        self._producer.close(0)
        if self._letters is not None:
            self._letters.abort()

    def offsets_synced(self, seconds=0.0):
        """The offsets file is durable, within that time: the task's commit() is due, as in Java even if nothing is new."""
        if self._tracker.take_progress():
            self.meter.committed(seconds)
        self._acknowledgements.note_sync()

    def metrics(self):
        return {**super().metrics(), "producer-metrics": self._producer.counters.values()}

    def _went_wrong(self, error):
        self._trouble = self._trouble or error
        self._memory.close()
        self._nudge()

    def _nudge(self):
        if self._resting:
            with self._wanted:
                self._nudged = True
                self._wanted.notify_all()

    # ---------------------------------------------------------------- the task's thread
    def work(self):
        self._sender.start()
        with contextlib.ExitStack() as at_end:  # run in reverse order; each runs even if another fails
            at_end.callback(self.pipeline.close)
            at_end.callback(self._memory.close)
            if self._letters is not None:
                at_end.callback(self._letters.close, self._stop_seconds)
            at_end.callback(self._topics.close)
            at_end.callback(self._end_sender)
            if self._letters is not None:
                self._letters.open("errors.source.deadletterqueue.topic.replication.factor", self._letters_failed)
            if not self._begin():
                return
            if not self._prepare():
                return
            self.task.initialize(self._context())
            self.task.start(self.config)
            at_end.callback(self.without_failing, self.task.close)
            self.say(RUNNING)
            try:
                self._loop()
            except Stopped as reason:
                log.info("%s", reason)
            except Exception:
                self._end_failed()
                raise
            if self._trouble is not None:
                self._end_failed()
                raise self._trouble
            self._drain()

    def _prepare(self):
        """Run before the task is started; return whether to start it."""
        return True

    def _end_failed(self):
        """Send what was polled before the failure."""
        self.without_failing(self._drain)

    def _context(self):
        return _Context(self)

    def _begin(self):
        """Whether the task should start."""
        with self._wanted:
            self._begun = not self.stopping.is_set()
            return self._begun

    def _end_sender(self):
        self._shipping.closing = True
        self._producer.close(0)
        self._sender.join()

    def _letters_failed(self):
        try:
            self._letters.check()
        except ConnectError as error:
            self._went_wrong(error)

    def _loop(self):
        pauses = None
        while not self._must_end():
            if self.paused:
                self._wait_while_paused()
                continue
            try:
                polled = self._poll()
            except RetriableError as error:
                log.warning("The poll failed and will be retried: %s", error)
                pauses = pauses or self._retries.pauses()
                self._retries.failed()
                self._before_retry()
                self._rest(next(pauses), lambda: self.paused)
                continue
            pauses = None
            self._take(polled)
            self._acknowledgements.tell()
            if self._is_last_poll and not self._must_end():
                self._end()

    def _end(self):
        """The last poll is done: wait for acknowledgements, make the offsets durable, then rest until stopped."""
        self._ship(self._ahead.all_done())
        if not self._settle():
            return
        log.info("The task has finished: all of its records are published")
        self.has_ended = True
        self._note_end()
        self._rest(float("inf"), self._must_end)

    def _settle(self):
        """Wait without limit until everything sent is acknowledged, and store the offsets. Return False if asked to stop."""
        while not self._producer.flush(_LOOK_SECONDS):
            self._acknowledgements.tell()
            if self._must_end():
                return False
        if self._letters is not None:
            while not self._letters.stored(_LOOK_SECONDS):
                if self._must_end():
                    return False
        self._offsets.sync()
        self.offsets_synced()
        self._acknowledgements.tell()
        return not self._must_end()

    def _take(self, polled):
        """Process a poll; return whether more records follow at once."""
        more_follows = False
        for batch in self._enlarged(polled):
            if self._trouble is not None:
                return False
            self._ahead.add(batch, self.pipeline.begin_source(batch), batch.nbytes)
            self._ship(self._ahead.done())
            more_follows = batch.more_follows
        if not more_follows:  # the next poll may block
            self._ship(self._ahead.all_done())
        return more_follows

    def _ship(self, done):
        try:
            for batch, result in done:
                if self._trouble is not None:
                    return
                self._shipping.ship(batch, result)
        except Exception:
            self._ahead.forget()  # records after the one that fails the task are not sent
            raise

    def _must_end(self):
        return self.stopping.is_set() or self._trouble is not None

    def _poll(self):
        """The next poll, as SourceBatches."""
        begun = self._clock.monotonic()
        polled = list(_batches(self.task.poll()))
        if polled:
            self.meter.polled(sum(map(len, polled)), self._clock.monotonic() - begun)
        return polled

    def _enlarged(self, batches):
        """The poll and, if the chain is faster with more records and more are available, the following polls."""
        run = batches[-1:]
        while run and run[-1].more_follows and not self.stopping.is_set() and self._are_too_few(run):
            try:
                following = self._poll()
            except RetriableError as error:
                log.warning("The poll failed and will be retried: %s", error)
                break
            if len(following) != 1 or not run[-1].joins(following[0]):
                return [*batches[:-1], SourceBatch.join(run), *following]
            run += following
        return [*batches[:-1], SourceBatch.join(run)] if run else []

    def _are_too_few(self, batches):
        size = sum(batch.nbytes for batch in batches)
        return size < GOOD_BYTES and self.pipeline.prefers_more_than(sum(map(len, batches)))

    def _wait_while_paused(self):
        self._before_pause()
        self.say(PAUSED)
        self._rest(float("inf"), lambda: not self.paused)
        if not self._must_end():
            self.say(RUNNING)

    def _before_retry(self):
        """Called when the task has no records now, and may have none for a while."""

    def _before_pause(self):
        self._ship(self._ahead.all_done())

    def _rest(self, seconds, over):
        """Wait so long, or until `over()` or stop; call the task's callbacks meanwhile."""
        deadline = self._clock.monotonic() + seconds
        self._resting = True
        try:
            while True:
                self._acknowledgements.tell()
                with self._wanted:
                    left = deadline - self._clock.monotonic()
                    if self._must_end() or over() or left <= 0:
                        return
                    if not self._nudged:
                        self._clock.wait(self._wanted, min(left, threading.TIMEOUT_MAX))
                    self._nudged = False
        finally:
            self._resting = False

    def _drain(self):
        """Send the batches in the chain, wait for all acknowledgements, then make the offsets durable."""
        self._ship(self._ahead.all_done())
        if not self._producer.flush(self._stop_seconds):
            log.warning("Not all records were acknowledged within %.1f s: the others are sent again after a restart", self._stop_seconds)
        if self._letters is not None:
            self._letters.stored(self._stop_seconds)
        self._offsets.sync()
        self.offsets_synced()
        self._acknowledgements.tell()

    def _send(self):
        with log_context(f"{self.connector}|task-{self.number}"):
            try:
                self._producer.run()
            except BaseException as error:  # without this thread no more records would be sent
                self._went_wrong(error)


class _Context(SourceTaskContext):
    def __init__(self, runner):
        self.connector = runner.connector
        self.task = runner.number
        self.configs = runner.config
        self.offset_reader = runner._offsets.reader(runner.connector)
        self._runner = runner

    def end(self):
        self._runner._is_last_poll = True


def _batches(polled):
    """The result of poll(), as SourceBatches."""
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
