"""The partitions that a sink's task has, and which of them are fetched: one answer, made of all who have a say in it.

Nothing is fetched while the connector is paused (`hold`) or a put is being repeated (`repeating`); else all but what the task itself has
paused. Nobody but this calls the consumer's pause and resume, so that one who resumes cannot undo what another has paused.
"""

import contextlib


class Assigned:
    """On the task's thread. Pairs are (topic, partition)."""

    def __init__(self, consumer):
        self._consumer = consumer
        self.open = set()
        self.paused = set()  # by the task; what is revoked and comes back is so still, as in Java
        self.given_up = set()  # let go since the last `begin_turn`, while what was fetched of them was being put
        self.held = False
        self._repeating = False
        self._silent = set()  # what the consumer was told to pause

    def begin_turn(self):
        self.given_up.clear()

    def take(self, pairs):
        """They are the task's from now on; the consumer would fetch them."""
        self.open |= pairs
        self.paused &= self.open
        self._silent -= pairs
        self._tell()

    def let_go(self, pairs):
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
        """The connector is paused, or continues."""
        self.held = held
        self._tell()

    @contextlib.contextmanager
    def repeating(self):
        """Nothing is fetched meanwhile."""
        self._repeating = True
        self._tell()
        try:
            yield
        finally:
            self._repeating = False
            self._tell()

    def still_ours(self, items):
        """These batches or records without those of partitions that were released: anyone who has these now begins after the last commit."""
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
