"""Retries after a RetriableError: backoff that doubles from 300 ms up to errors.retry.delay.max.ms, cut short when the task stops.

    errors.retry.timeout   how long a stage of the chain is retried; 0: not at all, negative: forever

As in Java, that limit is for converters and transforms. A poll, put or flush that raises RetriableError is retried forever, and the
producer retries produce requests for delivery.timeout.ms.
"""

import itertools
import logging
import random
import threading

from standalone.errors import RetriableError, Stopped

log = logging.getLogger(__name__)

FIRST_PAUSE_MS = 300


class Retries:
    """One task's retries. `stopping` is the runner's event that ends all waiting."""

    def __init__(self, config, counters, clock):
        self._timeout_ms = config["errors.retry.timeout"]
        self._most_ms = max(0, config["errors.retry.delay.max.ms"])
        self._counters = counters
        self._clock = clock
        self.stopping = threading.Event()

    def pauses(self):
        """The backoff before each further attempt in seconds, without end."""
        for attempt in itertools.count():
            pause = FIRST_PAUSE_MS << min(attempt, 40)
            # Random jitter beyond the limit, so that tasks do not all retry one service at the same time.
            yield (pause if pause <= self._most_ms else random.uniform(0, self._most_ms)) / 1000

    def __call__(self, call, error):
        """Retry a call that failed with this RetriableError: return its result, or raise its last error. Raises Stopped."""
        if not self._timeout_ms:
            raise error
        bounded = self._timeout_ms > 0
        deadline = self._clock.monotonic() + self._timeout_ms / 1000 if bounded else float("inf")
        for pause in self.pauses():
            left = deadline - self._clock.monotonic()
            if left <= 0:
                raise error
            self.failed()
            log.debug("Retrying in %.1f s: %s", pause, error)
            if self._clock.wait(self.stopping, min(pause, left)):
                raise Stopped("The task was stopped during a retry; the record is redelivered.") from error
            try:
                return call()
            except RetriableError as again:
                error = again

    def failed(self):
        """Count a failed attempt that is retried."""
        self._counters.total_record_failures += 1
        self._counters.total_retries += 1
