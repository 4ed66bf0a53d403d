"""Timers of one thread, which asks how long it may sleep."""

import heapq
from itertools import count


class Timer:
    __slots__ = ("due", "action")

    def __init__(self, due, action):
        self.due = due
        self.action = action

    def cancel(self):
        self.action = None


class Timers:
    def __init__(self, clock):
        self._clock = clock
        self._heap = []
        self._ties = count()

    def after(self, seconds, action):
        timer = Timer(self._clock.monotonic() + seconds, action)
        heapq.heappush(self._heap, (timer.due, next(self._ties), timer))
        return timer

    def seconds_left(self):
        """Seconds until the next timer; None if there is none."""
        while self._heap and self._heap[0][2].action is None:
            heapq.heappop(self._heap)
        if not self._heap:
            return None
        return max(self._heap[0][0] - self._clock.monotonic(), 0)

    def run_due(self):
        now = self._clock.monotonic()
        while self._heap and self._heap[0][0] <= now:
            timer = heapq.heappop(self._heap)[2]
            action, timer.action = timer.action, None
            if action:
                action()
