"""Following one path: the lines of the file that has it, then of the next one that gets it, through every kind of rotation.

Files are read one after the other, never side by side, so that one position says what has been read. A file that lost the path is
read to its end first: until the path has a new file with something in it, and the old one has not grown for `rotate_wait` seconds.
Its last line needs no line end then. Rotated siblings written in between, and the copy that a copytruncate made, are read in turn.
"""

import dataclasses
import errno
import logging
import math
import os
import stat
import time
import zlib

import numpy as np

from standalone import ConnectError

from connectors.file import rotation
from connectors.file.lines import CR, first_end, split
from connectors.file.rotation import MARK_BYTES, SURE_BYTES, Place, checksum, offset_of

log = logging.getLogger(__name__)

FAIL, CUT, SKIP = "fail", "cut", "skip"


@dataclasses.dataclass(frozen=True)
class Limits:
    """How much is read at once, and what becomes of a line that is too long."""

    chunk_bytes: int = 4 << 20
    line_bytes: int = 16 << 20
    long_lines: str = FAIL
    rotate_wait: float = 1.0


class Lines:
    """Finished lines, as slices of what was read, and the place behind each."""

    def __init__(self, data, starts, lengths, end, base=0):
        self.data = data
        self.starts = starts
        self.lengths = lengths
        self._end = end  # where, in data, the first line begins that is not among them
        self._base = base  # where data begins in the file
        self._file = None

    def of(self, *file):
        """They are of that file: inode, when it was written, checksum of its head."""
        self._file = file

    def __len__(self):
        return len(self.lengths)

    def offset(self, row):
        """The source offset behind that line: where the next one begins."""
        following = int(self.starts[row + 1]) if row + 1 < len(self.starts) else self._end
        position = self._base + following
        inode, written_ns, head = self._file
        tail = zlib.crc32(self.data[following - min(MARK_BYTES, position) : following])
        return offset_of(position, inode, written_ns, head if position > MARK_BYTES else 0, tail)

    def bytes_behind(self, position):
        """The last bytes before a position in the file."""
        at = position - self._base
        return self.data[at - min(MARK_BYTES, position) : at].tobytes()


class Rewritten(Exception):
    """What was read of the file is not in it any more."""


class LineTooLong(ConnectError):
    pass


class OpenFile:
    """A regular file, and how far it has been read."""

    def __init__(self, path, limits, complete=False):
        self.path = path
        self.descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        status = os.fstat(self.descriptor)
        if not stat.S_ISREG(status.st_mode):
            os.close(self.descriptor)
            raise OSError(errno.EISDIR if stat.S_ISDIR(status.st_mode) else errno.EINVAL, "it is not a regular file")
        self.inode = status.st_ino
        self.device = status.st_dev
        self.complete = complete  # nobody writes to it any more
        self._limits = limits
        self._written_ns = status.st_mtime_ns  # when it had last been written when we last read it
        self._grew = time.monotonic() - max(0.0, time.time() - status.st_mtime)
        self.restart()

    def restart(self):
        """From its beginning."""
        self.position = 0
        self._behind = b""  # the last bytes before the position
        self._head = 0
        self._seen = None  # size and time of writing when all that was there had been looked at
        self._passed = 0  # no line end lies between the position and here

    def go_on_from(self, position):
        self.restart()
        size = min(MARK_BYTES, position)
        self._behind = os.pread(self.descriptor, size, position - size)
        self._moved_to(position)

    def status(self):
        return os.fstat(self.descriptor)

    def place(self):
        return Place(self.position, self.inode, self._written_ns, self._head, checksum(self._behind, len(self._behind)))

    def quiet_for(self):
        """Seconds since it last grew, as far as we know."""
        return math.inf if self.complete else time.monotonic() - self._grew

    def close(self):
        os.close(self.descriptor)

    def read(self, final=False):
        """The next Lines, or None when there are none. `final`: what lacks a line end at the end of the file is a line, too.

        Raises Rewritten if the file has been truncated, even if it is larger again.
        """
        while True:
            status = self.status()
            size = status.st_size
            if size < self.position:
                raise Rewritten
            seen = (size, status.st_mtime_ns)
            if seen == self._seen and not (final and size > self.position):
                return None
            if self._seen is not None and seen != self._seen:
                self._grew = time.monotonic()
            data, starts, lengths, end, at_end = self._look(size, final)
            self._written_ns = status.st_mtime_ns
            all_taken = self.position + end - len(self._behind)
            unfinished = len(data) - end - int(end < len(data) and data[-1] == CR)
            if not len(starts) and unfinished > self._limits.line_bytes:
                lines = self._over_long(size, final)
            else:
                lines = self._take(data, starts, lengths, end)
            if lines is None or (at_end and self.position == all_taken):
                self._seen = seen
            if lines is None:
                return None
            if len(lines):
                return lines

    def _look(self, size, final):
        """What `split` finds in the bytes that follow, as far as it takes to see the end of a line, and whether they reach the end of
        the file. They begin a little before the position, so as to know the place again."""
        lead = len(self._behind)
        wanted = self._limits.chunk_bytes
        while True:
            wanted = min(wanted, size - self.position)
            buffer = np.empty(lead + wanted, np.uint8)
            data = buffer[: os.preadv(self.descriptor, [buffer], self.position - lead)]
            if data[:lead].tobytes() != self._behind:
                raise Rewritten
            at_end = len(data) < len(buffer) or self.position + wanted >= size
            starts, lengths, end = split(data, lead, final and at_end)
            if at_end or len(starts) or wanted > self._limits.line_bytes + 1:
                return data, starts, lengths, end, at_end
            wanted *= 2

    def _take(self, data, starts, lengths, end):
        longest = self._limits.line_bytes
        base = self.position - len(self._behind)
        if len(data) > longest:
            too_long = np.flatnonzero(lengths > longest)
            if len(too_long):
                starts, lengths, end = self._without(too_long, starts, lengths, end)
        if end == len(self._behind):
            return None
        return self._taken(Lines(data, starts, lengths, end, base), base + end)

    def _without(self, too_long, starts, lengths, end):
        policy, longest = self._limits.long_lines, self._limits.line_bytes
        if policy == FAIL:
            first = too_long[0]
            if first == 0:
                raise self._too_long(int(lengths[0]))
            return starts[:first], lengths[:first], int(starts[first])
        self._warn_of_long(len(too_long))
        if policy == CUT:
            return starts, np.minimum(lengths, longest).astype(np.int32), end
        kept = lengths <= longest
        return starts[kept], lengths[kept], end

    def _over_long(self, size, final):
        """The line at the position is longer than allowed and its end is not in sight: look for that, keeping nothing."""
        policy, longest = self._limits.long_lines, self._limits.line_bytes
        if policy == FAIL:
            raise self._too_long(size - self.position)
        at = max(self._passed, self.position + longest)
        end = None
        while end is None and at < size:
            data = np.frombuffer(os.pread(self.descriptor, self._limits.chunk_bytes, at), np.uint8)
            found = first_end(data)
            if found is not None:
                end = at + found[1]
            elif len(data) < 2:
                break  # a CR at the very end: an LF may follow
            else:
                at += len(data) - int(data[-1] == CR)
        if end is None:
            if not final:
                self._passed = at
                return None
            end = size
        self._warn_of_long(1)
        line = os.pread(self.descriptor, longest, self.position) if policy == CUT else b""
        marks = min(MARK_BYTES, end)
        data = np.frombuffer(line + os.pread(self.descriptor, marks, end - marks), np.uint8)
        count = 1 if policy == CUT else 0
        starts, lengths = np.zeros(count, np.int64), np.full(count, len(line), np.int32)
        return self._taken(Lines(data, starts, lengths, len(data), end - len(data)), end)

    def _taken(self, lines, position):
        self._behind = lines.bytes_behind(position)
        self._moved_to(position)
        lines.of(self.inode, self._written_ns, self._head)
        return lines

    def _moved_to(self, position):
        self.position = position
        self._passed = 0
        if position > MARK_BYTES and not self._head:
            first = os.pread(self.descriptor, MARK_BYTES, 0)
            self._head = checksum(first, len(first))

    def _too_long(self, length):
        longest = self._limits.line_bytes
        return LineTooLong(
            f"The line at byte {self.position} of '{self.path}' has {length} bytes or more; 'file.max.line.bytes' allows {longest}. "
            "Raise that, or set 'file.long.lines' to 'cut' or 'skip'."
        )

    def _warn_of_long(self, count):
        log.warning(
            "%d line(s) of '%s', behind byte %d, are longer than file.max.line.bytes=%d: %s.",
            count, self.path, self.position, self._limits.line_bytes,
            "the rest of each is left out" if self._limits.long_lines == CUT else "left out",
        )  # fmt: skip


class FileTail:
    """The lines under one path, from a place on."""

    def __init__(self, path, limits, follow, place=None):
        self.path = path
        self._limits = limits
        self._follow = follow  # called with the descriptor of each file before it is read
        self._lost = place  # where we were in a file that is not open
        self._left = None  # the end of the file that is over and closed
        self._file = None
        self._trouble = None

    def read(self):
        """The next Lines, or None if there are none for now."""
        try:
            while True:
                if self._file is None and not self._open():
                    return None
                try:
                    lines = self._file.read()
                except Rewritten:
                    self._begin_anew()
                    continue
                if lines is not None:
                    return lines
                lines = self._move_on()
                if lines is not True:
                    return lines or None
        except OSError as error:
            raise ConnectError(f"'{self.path}' cannot be read: {error.strerror} (errno {error.errno}).") from error

    def patience(self):
        """Seconds until it is worth looking again though nothing is reported."""
        if self._file is None or not self._has_lost_the_path():
            return math.inf
        left = self._limits.rotate_wait - self._file.quiet_for()
        return left if left > 0 else math.inf

    def close(self):
        if self._file is not None:
            self._file.close()
            self._file = None

    # --- Which file -----------------------------------------------------------------------------------------------

    def _open(self):
        """Open the file that is next; whether there is one."""
        current = self._open_path()
        if self._left is not None:
            return self._open_following(current)
        if self._lost is None:
            return self._use(current)
        if self._lost.inode == 0:
            return self._use(current and self._by_hand(current, self._lost))
        return self._find(current, self._lost)

    def _find(self, current, place):
        """Go on where reading stopped, whatever has become of the file meanwhile."""
        if current and current.inode == place.inode and place.is_in(current.descriptor):
            return self._use(current, place.position)
        again = rotation.find_again(self.path, place)
        if again is not None:
            log.info("'%s' was rotated while it was not read: going on at byte %d of '%s'.", self.path, place.position, again.path)
            return self._use_instead(current, again.path, place.position)
        if current and place.position >= SURE_BYTES and place.is_in(current.descriptor):
            log.info("'%s' is another file now, but with the same content up to byte %d: going on there.", self.path, place.position)
            return self._use(current, place.position)
        newer = self._newer(place, current and current.inode)
        if newer:
            log.warning("What was read of '%s' is gone: going on with '%s', written since.", self.path, newer[0].path)
            return self._use_instead(current, newer[0].path)
        if current:
            same = current.inode == place.inode
            log.warning(
                "'%s' %s: %d bytes were read, it has %d. It is read from its beginning.",
                self.path, "was truncated or rewritten" if same else "is another file than the one that was read, which is gone",
                place.position, current.status().st_size,
            )  # fmt: skip
        return self._use(current)

    def _open_following(self, current):
        """The file behind one that was read to its end."""
        newer = self._newer(self._left, current and current.inode)
        if newer:
            return self._use_instead(current, newer[0].path)
        if current and self._left.position >= SURE_BYTES and self._left.is_in(current.descriptor):
            return self._use(current, self._left.position)  # a copy has taken its place
        return self._use(current)

    def _by_hand(self, current, place):
        """A position without marks counts in whichever file there is."""
        position = rotation.position_in_bytes(current.descriptor, place.position)
        size = current.status().st_size
        if position != place.position:
            log.info("The stored position %d of '%s' counts characters, as Java does: it is byte %d.", place.position, self.path, position)
        if position > size:
            log.warning("'%s' has %d bytes, %d were read before: it is read from its beginning.", self.path, size, position)
        else:
            current.go_on_from(position)
        return current

    def _newer(self, place, current_inode):
        return [sibling for sibling in rotation.newer(self.path, place) if sibling.inode != current_inode]

    def _use(self, file, position=0):
        if file is None:
            return False
        if position:
            file.go_on_from(position)
        self._lost = self._left = None
        self._file = file
        self._follow(file.descriptor)
        return True

    def _use_instead(self, current, path, position=0, complete=False):
        """Read another file than the one that has the path. If it went away in this very moment, we look again at the next call."""
        if current is not None:
            current.close()
        try:
            file = OpenFile(path, self._limits, complete)
        except OSError:
            return False
        return self._use(file, position)

    def _open_path(self):
        """The file that has the path, or None: none has, or we may not read it."""
        try:
            file = OpenFile(self.path, self._limits)
        except OSError as error:
            self._wait_for_path(error)
            return None
        if self._trouble is not None:
            log.info("'%s' is there now.", self.path)
            self._trouble = None
        return file

    def _wait_for_path(self, error):
        if self._trouble == error.errno:
            return
        self._trouble = error.errno
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            log.info("'%s' does not exist: waiting for it.", self.path)
        else:
            log.warning("'%s' cannot be opened (%s): waiting until it can.", self.path, error.strerror)

    # --- From file to file ------------------------------------------------------------------------------------------

    def _begin_anew(self):
        """The open file was truncated. A copy made before that, if there is one, has what we have not seen."""
        place, size = self._file.place(), self._file.status().st_size
        copy = rotation.find_copy(self.path, place)
        first = f"What was not read of it yet is read from its copy '{copy.path}'. " if copy else ""
        log.warning("'%s' was truncated: %d bytes were read, it has %d. %sIt is read from its beginning.", self._file.path, place.position, size, first)
        if copy is None:
            self._file.restart()
            return
        self.close()
        self._lost = place
        self._use_instead(None, copy.path, place.position, complete=True)

    def _move_on(self):
        """At the end of the open file. True: it is over and closed; Lines: what was left of it; None: more may come."""
        if not self._has_lost_the_path():
            return None
        file = self._file
        status = self._path_status()
        newer = self._newer(file.place(), status and status.st_ino)
        deleted = file.status().st_nlink == 0
        if not newer and not (status and status.st_size) and not deleted:
            return None  # whoever writes may not have noticed yet, and go on here
        if file.quiet_for() < self._limits.rotate_wait:
            return None
        rest = file.read(final=True)
        if rest is not None:
            return rest
        log.info("'%s' was %s; the old file is read to its end, byte %d.", self.path, "deleted" if deleted else "rotated", file.position)
        place = file.place()
        self._left = dataclasses.replace(place, inode=0) if deleted else place  # the inode number may soon be another file's
        self._follow(None)
        self.close()
        return True

    def _has_lost_the_path(self):
        status = self._path_status()
        return status is None or (status.st_ino, status.st_dev) != (self._file.inode, self._file.device)

    def _path_status(self):
        try:
            status = os.stat(self.path)
        except OSError:
            return None
        return status if stat.S_ISREG(status.st_mode) else None
