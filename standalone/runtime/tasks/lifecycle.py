"""A thread and its states: what source and sink runners have in common.

    UNASSIGNED → RUNNING ⇄ PAUSED → (stopped)        any of them → FAILED

A runner says each state to its listener. It is told to pause, resume and stop from other threads, and never waits there.
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
    """Log lines of this thread begin with [text] meanwhile, as Connect's do."""
    before = getattr(_context, "text", "")
    _context.text = f"[{text}] "
    try:
        yield
    finally:
        _context.text = before


class ContextFilter(logging.Filter):
    """Gives each log record the `context` of its thread."""

    def filter(self, record):
        record.context = getattr(_context, "text", "")
        return True


class TaskRunner:
    """Runs one task on its own thread. Subclasses define `work`, which returns once `stopping` is set, and have a `pipeline` and `errors`."""

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

    worker_id = None  # of where it runs, if that is elsewhere

    def offsets_synced(self, seconds=0.0):
        """The worker's source offsets have just been made durable, within that time."""

    def cancel(self):
        """The task did not end in time: let go of what blocks it, and of what it holds for others."""

    def wake(self):
        """Make a waiting `work` look at what is wanted of it."""

    @property
    def paused(self):
        return self._paused

    def metrics(self):
        """What has been counted: {group: {name: value}}, by Connect's names."""
        return {**self.meter.values(), "task-error-metrics": self.errors.values(), "pipeline": dict(self.pipeline.counts.records)}

    def without_failing(self, call, *arguments, **named):
        """A call that ends something: what goes wrong by it is said, and nobody fails of it."""
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
            except BaseException as error:  # a task may raise anything, and only this task ends by it
                self.error = error
                trace = trace_of(error)
                if self.stopping.is_set():
                    log.warning("The task failed while it was being stopped: %s", trace)
                else:
                    log.error("The task has failed and will not recover until it is restarted: %s", trace)
                self.say(FAILED, trace)
            else:
                self.say(UNASSIGNED)
