"""A clock that continues only when a test says so."""

import threading


class HandClock:
    def __init__(self, start_ms=1_700_000_000_000):
        self._seconds = 0.0
        self._start_ms = start_ms
        self._waiting = set()
        self._lock = threading.Lock()

    def now_ms(self):
        return self._start_ms + int(self._seconds * 1000)

    def monotonic(self):
        return self._seconds

    def wait(self, event, seconds):
        """On a Condition that its caller holds: until somebody notifies it, or the clock is moved. It may come back early."""
        with self._lock:
            self._waiting.add(event)
        return event.wait(0.05)  # should the clock be moved at this very moment

    def advance(self, seconds):
        with self._lock:
            self._seconds += seconds
            waiting, self._waiting = self._waiting, set()
        for condition in waiting:
            with condition:
                condition.notify_all()
