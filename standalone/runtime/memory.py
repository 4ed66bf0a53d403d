"""How many bytes may be under way in the whole process: the bound that keeps memory flat beside a slow sink."""

import threading


class MemoryBudget:
    """Bytes are taken before a batch goes on its way and given back once it has arrived.

    Who holds nothing is always given something: a batch larger than the budget passes alone, and nobody waits for himself.
    """

    def __init__(self, total, per_task):
        self._total = total
        self._per_task = per_task
        self._taken = 0
        self._free = threading.Condition()

    def share(self):
        """One task's share of it."""
        return _Share(self)


class _Share:
    def __init__(self, budget):
        self._budget = budget
        self._held = 0
        self._closed = False

    def take(self, count):
        """Wait until `count` bytes are free; False if the share was closed meanwhile."""
        budget = self._budget
        with budget._free:
            budget._free.wait_for(lambda: self._closed or self._held == 0 or self._fits(count))
            if self._closed:
                return False
            self._held += count
            budget._taken += count
            return True

    def _fits(self, count):
        return self._held + count <= self._budget._per_task and self._budget._taken + count <= self._budget._total

    def give(self, count):
        budget = self._budget
        with budget._free:
            if not self._closed:
                self._held -= count
                budget._taken -= count
                budget._free.notify_all()

    def close(self):
        """Give all back, and let a waiting `take` go."""
        budget = self._budget
        with budget._free:
            budget._taken -= self._held
            self._held = 0
            self._closed = True
            budget._free.notify_all()
