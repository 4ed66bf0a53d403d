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

from connectors.file import rotation
from connectors.file.open_file import OpenFile, Rewritten
from connectors.file.rotation import SURE_BYTES
from standalone import ConnectError

log = logging.getLogger(__name__)


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
        """Go on where reading stopped, whatever has happened to the file meanwhile."""
        if current and current.inode == place.inode and place.is_in(current.descriptor):
            return self._use(current, place.position)
        again = rotation.find_again(os.path.realpath(self.path), place)
        if again is not None:
            log.info("'%s' was rotated while it was not read: continuing at byte %d of '%s'.", self.path, place.position, again.path)
            return self._use_instead(current, again.path, place.position)
        if current and place.position >= SURE_BYTES and place.is_in(current.descriptor):
            log.info("'%s' is another file now, but with the same content up to byte %d: continuing there.", self.path, place.position)
            return self._use(current, place.position)
        newer = self._newer(place, current and current.inode)
        if newer:
            log.warning("What was read of '%s' is gone: continuing with '%s', written since.", self.path, newer[0].path)
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
        """The file after one that was read to its end."""
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
        return [sibling for sibling in rotation.newer(os.path.realpath(self.path), place) if sibling.inode != current_inode]

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
        copy = rotation.find_copy(os.path.realpath(self.path), place, self._file.held)
        first = f"What was not read of it yet is read from its copy '{copy.path}'. " if copy else ""
        told = "'%s' was truncated: %d bytes were read, it has %d. %sIt is read from its beginning."
        log.warning(told, self._file.path, place.position, size, first)
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
            return None  # anyone who writes may not have noticed yet, and continue here
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
