"""The partitions of a sink task, and which of them are fetched: one place that combines all reasons to pause.

Nothing is fetched while the connector is paused (`hold`) or a put is being retried (`repeating`); otherwise everything except partitions
that the task has paused. Only this class calls the consumer's pause and resume, so that one reason to resume cannot override another to pause.
"""

import contextlib


class Assigned:
    """Used on the task's thread. Pairs are (topic, partition)."""

    def __init__(self, consumer):
        self._consumer = consumer
        self.open = set()
        self.paused = set()  # by the task; a partition that is revoked and assigned again stays paused, as in Java
        self.given_up = set()  # revoked since the last `begin_turn`, while their records were being put
        self.held = False
        self._repeating = False
        self._silent = set()  # partitions paused in the consumer

    def begin_turn(self):
        self.given_up.clear()

    def take(self, pairs):
        """Partitions assigned to the task; the consumer would fetch them."""
        self.open |= pairs
        self.paused &= self.open
        self._silent -= pairs
        self._tell()

    def release(self, pairs):
        self.given_up |= pairs
        for own in (self.open, self._silent):
            own -= pairs

    def pause(self, pairs):
        self.paused |= pairs
        self._tell()

    def resume(self, pairs):
        self.paused -= pairs
        self._tell()

    def hold(self, held):
        """The connector is paused, or resumed."""
        self.held = held
        self._tell()

    @contextlib.contextmanager
    def repeating(self):
        """Pause fetching during a retry."""
        self._repeating = True
        self._tell()
        try:
            yield
        finally:
            self._repeating = False
            self._tell()

    def still_ours(self, items):
        """These batches or records without those of revoked partitions: their new owner starts at the last commit."""
        return [item for item in items if item.origin not in self.given_up] if self.given_up else items

    def _tell(self):
        wanted = self.open if self.held or self._repeating else self.paused & self.open
        if more := wanted - self._silent:
            self._consumer.pause(sorted(more))
        if fewer := self._silent - wanted:
            self._consumer.resume(sorted(fewer))
        self._silent = set(wanted)


def shown(pairs):
    return ", ".join(f"{topic}-{partition}" for topic, partition in sorted(pairs)) or "nothing"
