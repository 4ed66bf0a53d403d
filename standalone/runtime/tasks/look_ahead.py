"""Batches in the chain, in order: while one is processed in the background, by Spark or by kernels, the next is fetched, and the previous
one is delivered.

The batches in flight are limited in number and in bytes. Work that the chain does on this thread is done when its turn comes.
"""

import collections

MOST_BATCHES = 3
MOST_BYTES = 64 << 20
GOOD_BYTES = 32 << 20  # of one batch, if the chain is faster with more records at once: about 100,000 of 300 bytes
ROWS_BYTES = 1 << 20  # of one batch processed row by row: keeps latency low, and stops fast

_UnderWay = collections.namedtuple("_UnderWay", "batch work nbytes")


class LookAhead:
    """One task's batches in flight; used on its thread."""

    def __init__(self):
        self._queue = collections.deque()

    @property
    def is_busy(self):
        return bool(self._queue)

    @property
    def has_time(self):
        """Whether no result is due yet, and there is room for more."""
        return bool(self._queue) and self._queue[0].work.is_under_way and self._has_room()

    def add(self, batch, work, nbytes):
        """The chain has started a batch: a Work of the pipeline's."""
        self._queue.append(_UnderWay(batch, work, nbytes))

    def done(self, wait=False):
        """(batch, result) of those to deliver now, in order: finished ones, and those to wait for because there is no room. With `wait`, at least
        one."""
        while self._queue:
            if not wait and self.has_time:
                return
            first = self._queue.popleft()
            wait = False
            yield first.batch, first.work.result()

    def all_done(self):
        """The same for all batches."""
        while self._queue:
            first = self._queue.popleft()
            yield first.batch, first.work.result()

    def forget(self, is_unwanted=lambda batch: True):
        """Drop the batches for which this is true; return them, in order."""
        unwanted = [each.batch for each in self._queue if is_unwanted(each.batch)]
        self._queue = collections.deque(each for each in self._queue if not is_unwanted(each.batch))
        return unwanted

    def _has_room(self):
        return len(self._queue) < MOST_BATCHES and sum(each.nbytes for each in self._queue) < MOST_BYTES
