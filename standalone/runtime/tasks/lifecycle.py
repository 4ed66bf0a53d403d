"""A thread and its states: the common base of source and sink runners.

    UNASSIGNED → RUNNING ⇄ PAUSED → (stopped)        any of them → FAILED

A runner reports each state to its listener. Other threads ask it to pause, resume and stop; these calls never block.
"""

import contextlib
import logging
import threading

from standalone.errors import trace_of

log = logging.getLogger(__name__)

UNASSIGNED, RUNNING, PAUSED, STOPPED, FAILED, RESTARTING = "UNASSIGNED", "RUNNING", "PAUSED", "STOPPED", "FAILED", "RESTARTING"

_context = threading.local()


@contextlib.contextmanager
def log_context(text):
    """Prefix the log lines of this thread with [text], as Connect does."""
    before = getattr(_context, "text", "")
    _context.text = f"[{text}] "
    try:
        yield
    finally:
        _context.text = before


class ContextFilter(logging.Filter):
    """Adds the `context` of its thread to each log record."""

    def filter(self, record):
        record.context = getattr(_context, "text", "")
        return True


class TaskRunner:
    """Runs one task on its own thread. Subclasses define `work`, which returns once `stopping` is set, and have `pipeline` and `errors`."""

    def __init__(self, connector, number, listener, meter, paused=False):
        self.connector = connector
        self.meter = meter
        self.number = number
        self.error = None
        self.stopping = threading.Event()
        self._listener = listener  # called with (state, trace)
        self._wanted = threading.Condition()
        self._paused = paused
        self._thread = threading.Thread(target=self._run, name=f"task-{connector}-{number}", daemon=True)

    def start(self):
        self._thread.start()

    def pause(self):
        self._want(True)

    def resume(self):
        self._want(False)

    def _want(self, paused):
        with self._wanted:
            self._paused = paused
            self._wanted.notify_all()
        self.wake()

    def stop(self):
        """Ask the task to end; `join` waits for it."""
        with self._wanted:
            self.stopping.set()
            self._wanted.notify_all()
        self.wake()

    def join(self, seconds):
        """Whether the task has ended within that time."""
        self._thread.join(max(0, seconds))
        return not self._thread.is_alive()

    worker_id = None  # where it runs, if not in the worker

    def offsets_synced(self, seconds=0.0):
        """The worker's source offsets have just become durable, within that time."""

    def cancel(self):
        """The task did not end in time: interrupt blocking calls, and free what it holds."""

    def wake(self):
        """Wake `work` if it waits."""

    @property
    def paused(self):
        return self._paused

    def metrics(self):
        """The metrics of the task: {group: {name: value}}, by Connect's names."""
        return {**self.meter.values(), "task-error-metrics": self.errors.values(), "pipeline": dict(self.pipeline.counts.records)}

    def without_failing(self, call, *arguments, **named):
        """Run a clean-up call; its errors are logged, not raised."""
        try:
            call(*arguments, **named)
        except Exception as error:
            what = f"{getattr(call, '__qualname__', call)}()"
            log.warning("Task %d of connector '%s' ends anyway, but %s failed: %s", self.number, self.connector, what, trace_of(error))

    def say(self, state, trace=None):
        self.meter.entered(state)
        self._listener(state, trace)

    def work(self):
        raise NotImplementedError

    def _run(self):
        with log_context(f"{self.connector}|task-{self.number}"):
            try:
                self.work()
            except BaseException as error:  # a task may raise anything; only this task fails
                self.error = error
                trace = trace_of(error)
                if self.stopping.is_set():
                    log.warning("The task failed while it was being stopped: %s", trace)
                else:
                    log.error("The task has failed and will not recover until it is restarted: %s", trace)
                self.say(FAILED, trace)
            else:
                self.say(UNASSIGNED)
