"""Automatic restarts of failed connectors and tasks, with exponential backoff; off unless `task.restart.max.attempts` is set.

    policy = Policy.of(worker config, connector config)
    attempts = Attempts(policy, clock)
    attempts.failed()   -> seconds until the next try, or None: it has failed permanently

`Timers` runs a call when its time has come. A task that has run for `task.restart.reset.after.ms` resets its attempts.
"""

import heapq
import itertools
import logging
import threading
from datetime import datetime, timezone
from typing import NamedTuple

from standalone.config import INT, LONG, LOW, MEDIUM, ConfigDef, Option, at_least

log = logging.getLogger(__name__)

OPTIONS = ConfigDef(
    Option(
        *("task.restart.max.attempts", INT, MEDIUM),
        "How often a failed task or connector is restarted automatically before it stays FAILED. 0: never; -1: without "
        "end.",
        *(0, at_least(-1)),
    ),
    Option(
        *("task.restart.backoff.initial.ms", LONG, LOW, "Delay before the first automatic restart; it doubles with each further one."),
        *(1000, at_least(0)),
    ),
    Option("task.restart.backoff.max.ms", LONG, LOW, "Longest delay between automatic restarts.", 300_000, at_least(0)),
    Option(
        *("task.restart.reset.after.ms", LONG, LOW, "How long a restarted task must run before its attempts are reset to 0."),
        *(600_000, at_least(0)),
    ),
)


class Policy(NamedTuple):
    max_attempts: int
    initial_ms: int
    max_ms: int
    reset_after_ms: int

    @classmethod
    def of(cls, worker, connector=None):
        """The connector's own keys; a value of None means the worker's."""
        own = {name: (connector or {}).get(name) for name in OPTIONS.names()}
        return cls(*(worker[name] if value is None else value for name, value in own.items()))

    @property
    def enabled(self):
        return self.max_attempts != 0

    def pause_seconds(self, attempt):
        """The delay before this attempt; attempts count from 1."""
        return min(self.max_ms, self.initial_ms * 2 ** min(attempt - 1, 62)) / 1000


class Attempts:
    """The restart attempts of one task. Not thread-safe."""

    def __init__(self, policy, clock):
        self.policy = policy
        self._clock = clock
        self._made = 0
        self._running_since = None
        self._next_ms = None

    def running(self):
        """The task is running."""
        if self._running_since is None:
            self._running_since = self._clock.monotonic()
        self._next_ms = None

    def failed(self):
        """The task failed: return the seconds until its restart, or None if it stays FAILED."""
        self._settle()
        self._running_since = None
        if self.policy.max_attempts != -1 and self._made >= self.policy.max_attempts:
            return None
        seconds = self.policy.pause_seconds(self._made + 1)
        self._next_ms = self._clock.now_ms() + int(seconds * 1000)
        return seconds

    def made(self):
        """The task is being restarted."""
        self._made += 1
        self._next_ms = None

    def put_off(self):
        """Cancel the scheduled restart for now."""
        self._next_ms = None

    def forget(self):
        """An operator restarts it: reset the attempts to 0."""
        self._made, self._next_ms = 0, None

    def shown(self):
        """Extra fields of the status; none if automatic restarts are off, so that the status looks like Connect's.

        Strings, like all values in Connect's statuses: some clients parse nothing else."""
        if not self.policy.enabled:
            return {}
        self._settle()
        return {"restart_attempts": str(self._made), "next_restart": None if self._next_ms is None else iso(self._next_ms)}

    @property
    def count(self):
        return self._made

    def _settle(self):
        since = self._running_since
        if since is not None and self._clock.monotonic() - since >= self.policy.reset_after_ms / 1000:
            self._made = 0


def iso(ms):
    """Milliseconds since the epoch as ISO 8601 in UTC."""
    return datetime.fromtimestamp(ms / 1000, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Timers:
    """Runs calls at a given time, on one thread that starts with the first of them. The calls must not block."""

    def __init__(self, clock):
        self._clock = clock
        self._changed = threading.Condition()
        self._waiting = []  # heap of (due, number, timer)
        self._numbers = itertools.count()
        self._thread = None
        self._closed = False

    def after(self, seconds, call):
        """Return a Timer: `call` runs once after so many seconds, unless the timer is cancelled first."""
        timer = Timer(call)
        with self._changed:
            heapq.heappush(self._waiting, (self._clock.monotonic() + seconds, next(self._numbers), timer))
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._run, name="timers", daemon=True)
                self._thread.start()
            self._changed.notify_all()
        return timer

    def close(self):
        with self._changed:
            self._closed = True
            self._waiting.clear()
            self._changed.notify_all()

    def _run(self):
        while (timer := self._next()) is not None:
            try:
                timer.fire()
            except Exception:
                log.exception("Restarting a connector or task failed")

    def _next(self):
        """Wait for the next timer that is due; None when closed."""
        with self._changed:
            while not self._closed:
                seconds = self._waiting[0][0] - self._clock.monotonic() if self._waiting else None
                if seconds is not None and seconds <= 0:
                    return heapq.heappop(self._waiting)[2]
                self._clock.wait(self._changed, seconds)
        return None


class Timer:
    def __init__(self, call):
        self._call = call

    def cancel(self):
        self._call = None

    def fire(self):
        call, self._call = self._call, None
        if call is not None:
            call()
