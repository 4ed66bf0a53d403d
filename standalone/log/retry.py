"""Retries: exponential backoff, and one log line per outage."""

import logging
import random

log = logging.getLogger(__name__)


class Backoff:
    """Growing pauses between attempts, with jitter so that clients do not retry in step."""

    def __init__(self, config, name):
        self._first, self._most = config.seconds(f"{name}.ms"), config.seconds(f"{name}.max.ms")
        self._failures = 0

    def next(self):
        """Seconds to wait before the next attempt."""
        pause = min(self._first * 2**self._failures, max(self._first, self._most))
        self._failures = min(self._failures + 1, 30)
        return pause * random.uniform(0.8, 1.2)

    def reset(self):
        self._failures = 0


class Outage:
    """Logs the start of an outage once, however many retries follow, and its end once."""

    def __init__(self, over):
        self._over = over
        self._on = False

    def begins(self, problem):
        if not self._on:
            self._on = True
            log.warning("%s Trying again.", problem)

    def ends(self):
        if self._on:
            self._on = False
            log.info("%s", self._over)
