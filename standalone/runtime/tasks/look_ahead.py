"""Batches that the chain is at, in order: while one is worked on in the background, by Spark or by kernels, the next is fetched, and the one
before is handed over.

What is under way is bounded in batches and in bytes. What the chain does here it does when its turn has come.
"""

import collections

MOST_BATCHES = 3
MOST_BYTES = 64 << 20
GOOD_BYTES = 32 << 20  # of one batch, where the chain is quicker with more records at once: about 100,000 of 300 bytes
ROWS_BYTES = 1 << 20  # of one batch that rows do: so that none of them waits long, nor a task that is told to stop

_UnderWay = collections.namedtuple("_UnderWay", "batch work nbytes")


class LookAhead:
    """One task's, on its thread."""

    def __init__(self):
        self._queue = collections.deque()

    @property
    def is_busy(self):
        return bool(self._queue)

    @property
    def has_time(self):
        """Whether nothing is to be handed over yet, and there is room for more."""
        return bool(self._queue) and self._queue[0].work.is_under_way and self._has_room()

    def add(self, batch, work, nbytes):
        """The chain has begun with a batch: a Work of the pipeline's."""
        self._queue.append(_UnderWay(batch, work, nbytes))

    def done(self, wait=False):
        """(batch, result) of those to be handed over now, in order: what is done, and what has to be waited for. With `wait` that is at
        least one."""
        while self._queue:
            if not wait and self.has_time:
                return
            first = self._queue.popleft()
            wait = False
            yield first.batch, first.work.result()

    def all_done(self):
        """The same of all."""
        while self._queue:
            first = self._queue.popleft()
            yield first.batch, first.work.result()

    def forget(self, is_unwanted=lambda batch: True):
        """Let go of batches of which that is true: the list of them, in order."""
        unwanted = [each.batch for each in self._queue if is_unwanted(each.batch)]
        self._queue = collections.deque(each for each in self._queue if not is_unwanted(each.batch))
        return unwanted

    def _has_room(self):
        return len(self._queue) < MOST_BATCHES and sum(each.nbytes for each in self._queue) < MOST_BYTES
