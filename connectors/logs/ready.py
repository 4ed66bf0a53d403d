"""Scheduling: files that may have something to read, and files to check later."""

import heapq
import itertools
import time


class Ready:
    """Round robin, or oldest first."""

    def __init__(self, oldest_first=False):
        self._oldest_first = oldest_first
        self._heap = []
        self._later = []
        self._due = {}  # file -> when to check it
        self._count = itertools.count()

    def add(self, file):
        if not file.is_queued:
            file.is_queued = True
            age = file.place.written_ns if self._oldest_first else 0
            heapq.heappush(self._heap, (age, next(self._count), file))

    def take(self):
        """The next file, or None."""
        if not self._heap:
            return None
        file = heapq.heappop(self._heap)[2]
        file.is_queued = False
        return file

    def add_later(self, file, seconds):
        due = time.monotonic() + seconds
        self._due[file] = due
        heapq.heappush(self._later, (due, next(self._count), file))

    def wake_due(self):
        """Add the files that are due."""
        now = time.monotonic()
        while self._later and self._later[0][0] <= now:
            due, _, file = heapq.heappop(self._later)
            if self._due.get(file) == due:
                del self._due[file]
                self.add(file)

    def patience(self):
        """Seconds until the next file is due."""
        return self._later[0][0] - time.monotonic() if self._later else float("inf")

    def forget(self, file):
        self._due.pop(file, None)

    @property
    def is_idle(self):
        """Whether no file is ready or due later, except files with errors."""
        return not self._heap and all(file.trouble is not None for file in self._due)
