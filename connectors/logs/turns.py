"""Order among files: one waits for the file that had its name before, but for some seconds only."""

import collections
import time

SECONDS_FOR_PREDECESSOR = 10.0


class Turns:
    def __init__(self, ready):
        self._ready = ready
        self._waiting = collections.defaultdict(list)  # file -> those that wait for it

    def must_wait(self, file):
        """Whether it is not its turn, as the file before it is not read to its end. It is looked at again when that is."""
        before = file.after
        if before is None:
            return False
        left = file.after_until - time.monotonic()
        if before.is_passed or before.is_over or before.dead_at is not None or left <= 0:
            file.after = None
            return False
        self._waiting[before].append(file)
        self._ready.add_later(file, left)
        return True

    def wait_for(self, file, before):
        if before is not None and before is not file and not before.is_over and before.dead_at is None:
            file.after, file.after_until = before, time.monotonic() + SECONDS_FOR_PREDECESSOR

    @staticmethod
    def first_before(file, last):
        """The first of those that come before the file, one after the other; `last` is none of them."""
        while file.after is not None and file.after is not last and not file.after.is_over:
            file = file.after
        return file

    def is_awaited(self, file):
        return bool(self._waiting.get(file))

    def passed(self, file):
        """Anyone who comes after it may begin."""
        file.is_passed = True
        for waiting in self._waiting.pop(file, ()):
            self._ready.add(waiting)
