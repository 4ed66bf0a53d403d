"""All files that are followed, or were until lately: by identity, and by the name they were written under."""

import collections
import time

from connectors.logs.compressed_file import holds

LEAST_DEAD = 1000  # deleted files that are remembered, regardless of their age


class Known:
    def __init__(self, slots, offset_reader, starts_at_end=False):
        self.slots = slots
        self.files = {}  # device, inode and creation time -> LogFile
        self.by_home = collections.defaultdict(list)
        self.last_of = {}  # name -> the last file that lost it
        self._dead = collections.deque()
        self._stored = collections.defaultdict(list)  # by inode, or by name if an operator has set the position
        for file in slots.load(offset_reader):
            self._stored[file.place.inode or file.home].append(file)
        first = [file.since for stored in self._stored.values() for file in stored if file.since]
        self._since = 0  # when files were first read from their end, in nanoseconds
        if starts_at_end:
            self._since = min(first, default=0 if self._stored else time.time_ns())
        self._is_first_start = not self._stored

    def keep(self, file):
        self.files[file.key] = file
        if file not in self.by_home[file.home]:
            self.by_home[file.home].append(file)
        file.dead_at, file.since = None, self._since

    def was_there_before_us(self, file, is_first_look):
        """Whether a new file existed when the connector was first started, and is read from its end."""
        if not self._since:
            return False
        return is_first_look if self._is_first_start else 0 < file.born < self._since

    def move(self, file, key, path):
        """The file now has this key and path on disk."""
        self.leave(file)
        file.key, file.path = key, path
        self.keep(file)

    def leave(self, file):
        """The file is no longer on disk under this key."""
        if self.files.get(file.key) is file:
            del self.files[file.key]

    def die(self, file):
        """The file is deleted. Its marks are remembered for a while: a compressed copy of it may appear."""
        file.dead_at = time.monotonic()
        self._dead.append(file)

    def clean(self, seconds):
        """Forget files that were deleted that long ago, and reuse their slots."""
        now = time.monotonic()
        most = max(LEAST_DEAD, len(self.files))
        while self._dead and (len(self._dead) > most or now - (self._dead[0].dead_at or 0) > seconds):
            file = self._dead.popleft()
            if file.dead_at is None or self.files.get(file.key) is file:
                continue  # it came back
            if file in self.by_home.get(file.home, ()):
                self.by_home[file.home].remove(file)
            if not self.by_home.get(file.home):
                self.by_home.pop(file.home, None)
            if self.last_of.get(file.home) is file:
                del self.last_of[file.home]
            self.slots.take_back(file)

    # --- Stored offsets -----------------------------------------------------------------------------------

    def recalled(self, each):
        """The file of a stored offset, by its inode or, if an operator has set the position, by its name."""
        for file in (*self._stored.get(each.key[1], ()), *self._stored.get(each.path, ())):
            if file.place.inode and not is_the_same(file, each):
                continue
            self._stored[file.place.inode or file.home].remove(file)
            self.move(file, each.key, each.path)
            file.is_lost = False  # to be determined again
            return file
        return None

    def rest(self):
        """Stored offsets without a file on disk: it was deleted, or has a name that does not match."""
        files = [file for stored in self._stored.values() for file in stored]
        self._stored.clear()
        for file in files:
            file.is_lost, file.is_listed = True, False
            if file.place.inode:
                self.by_home[file.home].append(file)
            else:
                self.die(file)
        return [file for file in files if file.place.inode]


def is_the_same(file, found):
    """Whether a file on disk, with the inode number of one that was read, is the same file."""
    if file.born and found.key[2]:
        return file.born == found.key[2]
    return holds(found.path, file.place, file.held)
