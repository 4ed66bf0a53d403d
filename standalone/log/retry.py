"""What goes with trying again: pauses that grow, and one line in the log however often it was tried."""

import logging
import random

log = logging.getLogger(__name__)


class Backoff:
    """Ever longer pauses between attempts, with jitter, so that many clients do not come back in step."""

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
    """Says once that something goes wrong, however often it is tried again, and once that it is over."""

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
