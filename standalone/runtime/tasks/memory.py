"""How many bytes may be in flight in the whole process: the limit that bounds memory when a sink is slow."""

import threading

_LOOK_SECONDS = 0.05  # polling interval of a waiting task: giving back needs no lock or wake-up


class MemoryBudget:
    """Bytes are taken before a batch is processed and given back once it is delivered.

    A task that holds nothing always gets its bytes: a batch larger than the budget passes alone, and no task waits for itself. A task that
    holds no more than an equal share of the total takes bytes without the shared lock, which would be contended at many small batches a
    second.
    """

    def __init__(self, total, per_task):
        self.total = total
        self.per_task = per_task
        self.shares = []
        self.freed = threading.Condition()
        self.waiting = 0

    def share(self):
        """One task's share of the budget."""
        share = _Share(self)
        with self.freed:
            self.shares = [*self.shares, share]
        return share

    def taken(self):
        return sum(share.held for share in self.shares)


class _Share:
    """`take` is called by one thread, `give` by one thread: each has its own counter, so that neither needs a lock."""

    def __init__(self, budget):
        self._budget = budget
        self._taken = 0
        self._given = 0
        self._closed = False

    @property
    def held(self):
        return 0 if self._closed else self._taken - self._given

    def take(self, count):
        """Wait until `count` bytes are free; False if the share was closed meanwhile."""
        budget = self._budget
        held = self._taken - self._given
        if held + count > min(budget.per_task, budget.total // max(1, len(budget.shares))) and held > 0:
            self._wait(count)
        self._taken += count
        return not self._closed

    def _wait(self, count):
        budget = self._budget
        with budget.freed:
            budget.waiting += 1
            try:
                while not (self._closed or self.held <= 0 or self._fits(count)):
                    budget.freed.wait(_LOOK_SECONDS)
            finally:
                budget.waiting -= 1

    def _fits(self, count):
        return self.held + count <= self._budget.per_task and self._budget.taken() + count <= self._budget.total

    def give(self, count):
        self._given += count
        if self._budget.waiting:
            with self._budget.freed:
                self._budget.freed.notify_all()

    def close(self):
        """Give all back, and wake a waiting `take`."""
        budget = self._budget
        with budget.freed:
            self._closed = True
            budget.shares = [share for share in budget.shares if share is not self]
            budget.freed.notify_all()
