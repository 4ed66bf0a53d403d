"""Order among files: a file waits for its predecessors with the same name, until they are read to their end.

Each file waits for at most one other, so that the files of one name form a queue. A file inserted between two is read between them, and
none leaves the queue before its turn. A file stops waiting only if its predecessors bring no lines for a while in which files were scanned.
"""

import collections
import time

SECONDS_FOR_PREDECESSOR = 10.0
_MOST_SECONDS = 1.0  # counted between two scans; without scans, as while the connector is paused, no time passes here


class Turns:
    def __init__(self, ready):
        self._ready = ready
        self._waiting = collections.defaultdict(list)  # file -> files that wait for it
        self._now = 0.0
        self._looked_at = time.monotonic()

    def look(self):
        """Time continues."""
        now = time.monotonic()
        self._now += min(now - self._looked_at, _MOST_SECONDS)
        self._looked_at = now

    def must_wait(self, file):
        """Whether the file must wait because its predecessor is not read to its end. It is scheduled again when that is."""
        if not self._is_waited_for(file.after):
            file.after = None
            return False
        left = max(each.heard_at for each in self._line(file)) + SECONDS_FOR_PREDECESSOR - self._now
        if left <= 0:
            file.after = None
            return False
        self._waiting[file.after].append(file)
        self._ready.add_later(file, left)
        return True

    def wait_for(self, file, before):
        """`before` becomes the direct predecessor of the file, and follows its previous predecessor. If `before` is deleted or read to its end, its
        own predecessors count."""
        line = [] if before is None else [each for each in (before, *self._line(before)) if self._is_waited_for(each)]
        if not line or file in line:
            return  # no file, or one that waits for it
        former = self._line(file)
        new = [each for each in line if each not in former]
        if not new:
            return
        if former:
            new[-1].after = former[0]
        file.after, file.heard_at = new[0], self._now

    def stand_behind(self, file, last):
        """The file and its predecessors follow `last`."""
        others = {last, *self._line(last)}
        own = [each for each in (file, *self._line(file)) if each not in others]
        if own:
            self.wait_for(own[-1], last)

    def heard_of(self, file):
        """Lines of it were read."""
        file.heard_at = self._now

    def is_awaited(self, file):
        return bool(self._waiting.get(file))

    def passed(self, file):
        """Its successor may start."""
        file.is_passed = True
        for waiting in self._waiting.pop(file, ()):
            self._ready.add(waiting)

    def _line(self, file):
        """Its predecessors, nearest first."""
        line = []
        while self._is_waited_for(file.after):
            file = file.after
            line.append(file)
        return line

    @staticmethod
    def _is_waited_for(file):
        return file is not None and not (file.is_passed or file.is_over or file.dead_at is not None)
