"""The worker's side of a task on an executor: a runner like any other for the herder.

    UNASSIGNED ── the executor reports it ──▶ RUNNING ⇄ PAUSED ── its channel is lost ──▶ UNASSIGNED ── Spark starts it elsewhere ──▶ RUNNING …

Each start on an executor is an attempt, with its own channel. Only the newest is accepted: offsets and commits of older ones are rejected.
When the channel is lost, Spark starts the task again; if Spark has not noticed, its job is cancelled and a new one started.
"""

import logging
import threading

from standalone.errors import ConnectError, LogRetriableError, trace_of
from standalone.pipeline.spark.job import SparkGone
from standalone.runtime.cluster.control_channel import ChannelLost
from standalone.runtime.cluster.executor_task import ENTRY
from standalone.runtime.cluster.shares import Holder
from standalone.runtime.cluster.start_times import described
from standalone.runtime.failures.tolerance import ErrorCounters
from standalone.runtime.metrics import SinkMeter, SourceMeter
from standalone.runtime.tasks.lifecycle import FAILED, RUNNING, UNASSIGNED, TaskRunner, log_context

log = logging.getLogger(__name__)

SLOT_SECONDS = 20.0  # without an executor before a warning is logged
# Delay from the loss of a channel to a new job, if Spark has started nothing. Spark itself notices when a process ends, and cancelling what it
# is about to start would only cost time; it may not notice for minutes that a machine is silent.
AGAIN_SECONDS = 60.0
AGAIN_IF_SILENT_SECONDS = 5.0
MOST_SHORT_LIVES = 10  # consecutive attempts that lost their channel within SHORT_SECONDS
SHORT_SECONDS = 5.0
_PAUSE_SECONDS = 1.0
_MOST_PAUSE_SECONDS = 30.0


class RemoteRunner(TaskRunner):
    """`cluster` is the worker's Cluster; `payload` is its TaskPayload."""

    def __init__(self, cluster, plan, payload, **base):
        super().__init__(meter=_RemoteMeter(plan.kind, cluster.clock), **base)
        self.plan = plan
        self.run_id = payload.run
        self.cluster = cluster
        self.shares = None  # for a sink: its connector's Shares, while it runs
        self.worker_id = None  # where it runs, once it runs
        self.has_ended = False  # whether a finite source has finished
        self.pipeline = _RemotePipeline()
        self._clock = cluster.clock
        self._payload = payload
        self._lock = threading.Lock()  # guards the current attempt
        self._attempt = None  # the current _Attempt
        self._newest = (0, -1)
        self._job = 0
        self._short_lives = 0
        self._waits_since = None  # without an executor
        self._given_at = 0.0  # when it was given to Spark, or the previous attempt lost its channel
        self._again_seconds = AGAIN_SECONDS
        self._warned = False
        self._end = None  # the final (state, trace) of the task
        self._progress = False

    # ---------------------------------------------------------------- called by other threads
    def wake(self):
        attempt = self._attempt
        if attempt is not None:
            attempt.tell("stop" if self.stopping.is_set() else "pause" if self.paused else "resume")
        elif self.stopping.is_set():
            self.cluster.jobs.cancel(self._group)

    def cancel(self):
        self._silence()
        self.cluster.jobs.cancel(self._group)

    def offsets_synced(self, seconds=0.0):
        with self._lock:
            attempt, progress, self._progress = self._attempt, self._progress, False
        if progress and attempt is not None:
            attempt.tell("synced", seconds)

    def metrics(self):
        return self.meter.counts()

    def tick(self):
        """Called once a second: send a heartbeat to the executor; warn if the task has waited too long for one."""
        attempt = self._attempt
        if attempt is not None:
            attempt.heartbeat()
        elif self.stopping.is_set():
            self.cluster.jobs.cancel(self._group)  # the first cancellation may have come before the job began
        since = self._waits_since
        if since is None or self.stopping.is_set():
            return
        waited = self._clock.monotonic() - since
        if waited > SLOT_SECONDS and not self._warned:
            self._warned = True
            log.warning(
                "Task %d of connector '%s' has waited %.0f s for an executor. Each task occupies a core (spark.task.cpus) while it runs: the cluster "
                "may have no free core, or may be unreachable.",
                *(self.number, self.connector, waited),
            )
        if waited > self._again_seconds and self._newest[1] >= 0 and self._newest[0] == self._job:
            self._waits_since = self._clock.monotonic()
            self._again_seconds = AGAIN_SECONDS
            self.cluster.jobs.cancel(self._group)

    # ---------------------------------------------------------------- its own thread
    @property
    def _group(self):
        return f"connect-{self.connector}-{self.number}-{self.run_id}"

    def work(self):
        self.cluster.expect(self)
        pause = _PAUSE_SECONDS
        try:
            while self._end is None and not self.stopping.is_set():
                self._job += 1
                began = self._clock.monotonic()
                try:
                    self._run_job()
                except SparkGone as error:
                    log.info("The job of the task has ended: %s", error)
                if self._end is None and not self.stopping.is_set():
                    pause = _PAUSE_SECONDS if self._clock.monotonic() - began > _MOST_PAUSE_SECONDS else min(2 * pause, _MOST_PAUSE_SECONDS)
                    log.warning("The task is submitted to Spark again in %.0f s", pause)
                    self._clock.wait(self.stopping, pause)
        finally:
            self._silence(for_good=True)
            self.cluster.forget(self)
        if self._end is not None and self._end[0] == FAILED:
            raise _RemoteFailure(self._end[1])

    def _run_job(self):
        channel = self.cluster.listening(self.stopping)
        self._wait_from_now()
        ended = self.cluster.jobs.run(self._group, ENTRY, self._payload.for_job(self._job, self.paused, channel), self.stopping)
        with self._lock:
            if self._end is None and ended["state"] == FAILED:
                self._end = FAILED, ended["trace"]
        if self._end is None:
            log.warning("The task's attempt has ended: %s", ended["trace"] or "its channel was lost")

    def _run(self):
        with log_context(f"{self.connector}|task-{self.number}"):
            try:
                self.work()
            except _RemoteFailure as failure:  # already logged by the executor
                self.error = failure
                self.say(FAILED, str(failure))
            except BaseException as error:
                self.error = error
                log.error("The task has failed and will not recover until it is restarted: %s", trace_of(error))
                self.say(FAILED, trace_of(error))
            else:
                self.say(UNASSIGNED)

    def _wait_from_now(self):
        self._given_at = self._waits_since = self._clock.monotonic()
        self._warned = False

    # ---------------------------------------------------------------- channels
    def attend(self, channel, hello):
        """Serve a channel, on its own thread, until it is lost."""
        attempt = _Attempt(self, channel, hello)
        if not self._begin(attempt, (hello["job"], hello["attempt"])):
            what = f"task {self.number} of connector '{self.connector}'"
            log.warning("An executor on %s still ran an older attempt of %s, which is rejected", hello["host"], what)
            return
        is_silent = False
        with log_context(f"{self.connector}|task-{self.number}"):
            try:
                while True:
                    kind, number, body = channel.receive()
                    if self._attempt is not attempt:
                        return
                    attempt.handle(kind, number, body)
            except ChannelLost as lost:
                is_silent = lost.is_silent
            finally:
                self._cut_off(attempt, is_silent)

    def _begin(self, attempt, which):
        with self._lock:
            if which <= self._newest or self._end is not None or which[0] != self._job:
                return False
            former, self._attempt, self._newest = self._attempt, attempt, which
            self.worker_id = attempt.worker_id
        if former is not None:
            former.end()
        self._waits_since = None
        if self.shares is not None:
            self.shares.there(attempt.holder)
        attempt.tell("stop" if self.stopping.is_set() else "pause" if self.paused else "resume")
        return True

    def _cut_off(self, attempt, is_silent):
        """The attempt's channel is lost, or it has ended."""
        with self._lock:
            if self._attempt is not attempt:
                return
            self._attempt = None
        ended = attempt.has_ended
        attempt.end(for_good=ended)
        if ended or self.stopping.is_set():
            return
        self._short_lives = self._short_lives + 1 if attempt.seconds() < SHORT_SECONDS else 0
        log.warning("Lost %s after %.0f s; the task continues elsewhere from the committed offsets", attempt.worker_id, attempt.seconds())
        if self._short_lives >= MOST_SHORT_LIVES:
            often = f"{MOST_SHORT_LIVES} times, each time within {SHORT_SECONDS:.0f} s"
            self._end = FAILED, trace_of(ConnectError(f"Its process on the executor ended {often}: see the executor's log for the reason."))
            self.cluster.jobs.cancel(self._group)
            return
        self._again_seconds = AGAIN_IF_SILENT_SECONDS if is_silent else AGAIN_SECONDS
        self._wait_from_now()
        self.say(UNASSIGNED)

    def _silence(self, for_good=False):
        """Ignore all further messages of executors."""
        with self._lock:
            attempt, self._attempt = self._attempt, None
            self._newest = (self._job + 1, -1)
        if attempt is not None:
            attempt.end(for_good=True)

    # ---------------------------------------------------------------- messages of the current attempt
    def on_state(self, state, trace):
        if state == FAILED:
            self._end = FAILED, trace  # reported when its job has ended
        elif state != UNASSIGNED:
            self.say(state, trace)
        if state == RUNNING:
            self._warned = False

    def on_started(self, attempt, told):
        log.info("Runs on %s, %s", attempt.worker_id, described(told, self._clock.monotonic() - self._given_at))

    def on_end(self):
        if self._end is None:
            self._end = UNASSIGNED, None

    def on_offsets(self, attempt, entries):
        try:
            self.cluster.store(self.connector, entries)
        except ConnectError as error:
            attempt.tell("trouble", str(error))
        else:
            self._progress = True

    def fail(self, error):
        """A failure that affects all tasks of the connector."""
        with self._lock:
            self._end = self._end or (FAILED, trace_of(error))
        self.cancel()


class _RemoteFailure(ConnectError):
    """The task failed where it ran; the text is its trace."""


class _Attempt:
    """One start on an executor, and its channel."""

    def __init__(self, runner, channel, hello):
        self.has_ended = False
        self.worker_id = f"{hello['host']}:{hello['process']}"
        self.holder = Holder(runner.number, self._tell_pairs)
        self._runner = runner
        self._channel = channel
        self._began = runner.cluster.clock.monotonic()

    def seconds(self):
        return self._runner.cluster.clock.monotonic() - self._began

    def tell(self, kind, body=None):
        try:
            self._channel.send(kind, body)
        except ChannelLost:
            return  # the receiving thread notices

    def heartbeat(self):
        self._channel.heartbeat()

    def end(self, for_good=False):
        if self._runner.shares is not None:
            self._runner.shares.gone(self.holder, for_good)
        self._channel.close()

    def _tell_pairs(self, kind, pairs):
        self.tell(kind, [[*pair, pairs[pair]] if kind == "give" else list(pair) for pair in pairs])

    def handle(self, kind, number, body):
        getattr(self, f"_on_{kind}")(number, body)

    def _on_state(self, number, body):
        self._runner.on_state(*body)

    def _on_started(self, number, told):
        self._runner.on_started(self, told)

    def _on_source_ended(self, number, body):
        self._runner.has_ended = True
        self._runner.cluster.note_end()

    def _on_ended(self, number, body):
        self.has_ended = True
        self._runner.on_end()

    def _on_counts(self, number, body):
        self._runner.meter.heard(body)
        self._runner.pipeline.heard = body["pipeline"]

    def _on_log(self, number, body):
        name, level, context, text = body
        logger = logging.getLogger(name)
        if logger.isEnabledFor(level):
            with log_context(context.strip("[] ") or f"{self._runner.connector}|task-{self._runner.number}"):
                logger.log(level, "%s", text)

    def _on_topic(self, number, topic):
        self._runner.cluster.note_topic(self._runner.connector, topic)

    def _on_first_schema(self, number, body):
        self._runner.cluster.note_first_schema(self._runner.connector, *body)

    def _on_event(self, number, body):
        self._runner.cluster.note_event(self._runner.connector, self._runner.number, *body, self.worker_id)

    def _on_offset(self, number, partition):
        self._channel.answer(number, self._runner.cluster.offset(self._runner.connector, partition))

    def _on_all_offsets(self, number, _):
        self._channel.answer(number, self._runner.cluster.all_offsets(self._runner.connector))

    def _on_offsets(self, number, entries):
        self._runner.on_offsets(self, [tuple(entry) for entry in entries])

    def _on_sync(self, number, _):
        self._channel.answer(number, self._runner.cluster.sync())

    def _on_commit(self, number, body):
        offsets = {(topic, index): (offset, metadata, epoch) for topic, index, offset, metadata, epoch in body[0]}
        self._runner.shares.commit(self.holder, offsets, body[1], lambda error: self._answer_commit(number, error))

    def _answer_commit(self, number, error):
        said = error and {"retriable": isinstance(error, LogRetriableError), "message": str(error), "java_class": error.java_class}
        try:
            self._channel.answer(number, said)
        except ChannelLost:
            return

    def _on_released(self, number, pairs):
        self._runner.shares.released(self.holder, [tuple(pair) for pair in pairs])


class _RemoteMeter:
    """The last metrics of the executor; empty before the first."""

    def __init__(self, kind, clock):
        self._none = (SourceMeter if kind == "source" else SinkMeter)(clock)
        self._kind = kind
        self._heard = None
        self.records = 0

    def entered(self, state):
        self._none.entered(state)

    def heard(self, body):
        self._heard, self.records = body, body["records"]

    def counts(self):
        heard = self._heard
        if heard is None:
            found = {**self._none.values(), "task-error-metrics": ErrorCounters().values(), "pipeline": {}}
            return {**found, "lag": {}, "task": {}} if self._kind == "sink" else found
        found = dict(heard["counts"])
        if "lag" in heard:
            found["lag"] = {(topic, index): count for topic, index, count in heard["lag"]}
        if "task" in heard:
            found["task"] = {tuple(name) if isinstance(name, list) else name: count for name, count in heard["task"]}
        return found


class _RemotePipeline:
    """The last plan of the executor's chain."""

    heard = None

    def shown(self):
        return self.heard or {"records": {}, "redone": 0, "failed_batches": 0, "by_rows": [], "chain": ["the task is not running"], "spark_plans": []}
