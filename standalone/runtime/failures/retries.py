"""Trying again what asked for it: pauses that double from 300 ms up to errors.retry.delay.max.ms, ended early when the task is to stop.

    errors.retry.timeout   for how long a stage of the chain is tried again; 0 not at all, below 0 forever

As in Java, that bound is for converters and transforms. A poll, a put and a flush that raise RetriableError are repeated forever, and
producing is tried again by the producer, for delivery.timeout.ms.
"""

import itertools
import logging
import random
import threading

from standalone.errors import RetriableError, Stopped

log = logging.getLogger(__name__)

FIRST_PAUSE_MS = 300


class Retries:
    """One task's. `stopping` is the event that ends all waiting: the runner's own."""

    def __init__(self, config, counters, clock):
        self._timeout_ms = config["errors.retry.timeout"]
        self._most_ms = max(0, config["errors.retry.delay.max.ms"])
        self._counters = counters
        self._clock = clock
        self.stopping = threading.Event()

    def pauses(self):
        """Seconds to wait before each further attempt, without an end."""
        for attempt in itertools.count():
            pause = FIRST_PAUSE_MS << min(attempt, 40)
            # Beyond the bound at random, lest all tasks that wait for one service ask it again at the same moments.
            yield (pause if pause <= self._most_ms else random.uniform(0, self._most_ms)) / 1000

    def __call__(self, call, error):
        """Repeat a call that failed with this RetriableError: what it returns, or the error that it raised last. Raises Stopped."""
        if not self._timeout_ms:
            raise error
        bounded = self._timeout_ms > 0
        deadline = self._clock.monotonic() + self._timeout_ms / 1000 if bounded else float("inf")
        for pause in self.pauses():
            left = deadline - self._clock.monotonic()
            if left <= 0:
                raise error
            self.failed()
            log.debug("Tried again in %.1f s: %s", pause, error)
            if self._clock.wait(self.stopping, min(pause, left)):
                raise Stopped("The task was stopped while a record was to be tried again; the record is redelivered.") from error
            try:
                return call()
            except RetriableError as again:
                error = again

    def failed(self):
        """Count an attempt that is followed by another."""
        self._counters.total_record_failures += 1
        self._counters.total_retries += 1
