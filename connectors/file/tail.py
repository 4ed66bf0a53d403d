"""Follow a path: read the file at the path, then the next file that gets the path, through all kinds of rotation.

Files are read one after another, so that a single position shows the progress. A file that lost the path is read to its end first: until
a new file with content has the path and the old one has not grown for `rotate_wait` seconds. Its last line then needs no line
end. Rotated siblings written in between, and the copy made by copytruncate, are read in order.
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
    """Reads the lines of one path from a position on."""

    def __init__(self, path, limits, follow, place=None):
        self.path = path
        self._limits = limits
        self._follow = follow  # called with each file's descriptor before it is read
        self._lost = place  # position in a file that is not open
        self._left = None  # end position of the completed and closed file
        self._file = None
        self._trouble = None

    def read(self):
        """Return the next Lines, or None if there are none now."""
        try:
            while True:
                if self._file is None and not self._open():
                    return None
                try:
                    lines = self._file.read()
                except Rewritten:
                    self._restart_truncated()
                    continue
                if lines is not None:
                    return lines
                lines = self._move_on()
                if lines is not True:
                    return lines or None
        except OSError as error:
            raise ConnectError(f"'{self.path}' cannot be read: {error.strerror} (errno {error.errno}).") from error

    def patience(self):
        """Seconds after which to check again without a notification."""
        if self._file is None or not self._has_lost_the_path():
            return math.inf
        left = self._limits.rotate_wait - self._file.quiet_for()
        return left if left > 0 else math.inf

    def close(self):
        if self._file is not None:
            self._file.close()
            self._file = None

    # --- Choosing the file ----------------------------------------------------------------------------------------

    def _open(self):
        """Open the next file; return whether there is one."""
        current = self._open_path()
        if self._left is not None:
            return self._open_following(current)
        if self._lost is None:
            return self._use(current)
        if self._lost.inode == 0:
            return self._use(current and self._by_hand(current, self._lost))
        return self._find(current, self._lost)

    def _find(self, current, place):
        """Resume at the stored position, even if the file was rotated or truncated meanwhile."""
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
            log.warning("The file read before as '%s' is gone: continuing with '%s', written since.", self.path, newer[0].path)
            return self._use_instead(current, newer[0].path)
        if current:
            same = current.inode == place.inode
            log.warning(
                "'%s' %s: %d bytes were read, it has %d. It is read from its beginning.",
                self.path, "was truncated or rewritten" if same else "is a different file; the one read before is gone",
                place.position, current.status().st_size,
            )  # fmt: skip
        return self._use(current)

    def _open_following(self, current):
        """Open the file after one that was read to its end."""
        newer = self._newer(self._left, current and current.inode)
        if newer:
            return self._use_instead(current, newer[0].path)
        if current and self._left.position >= SURE_BYTES and self._left.is_in(current.descriptor):
            return self._use(current, self._left.position)  # a copy has replaced it
        return self._use(current)

    def _by_hand(self, current, place):
        """Apply a position without checksums to whatever file exists."""
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
        """Read a file other than the one at the path. If it has just vanished, the next call checks again."""
        if current is not None:
            current.close()
        try:
            file = OpenFile(path, self._limits, complete)
        except OSError:
            return False
        return self._use(file, position)

    def _open_path(self):
        """Open the file at the path; return None if it is missing or not readable."""
        try:
            file = OpenFile(self.path, self._limits)
        except OSError as error:
            self._wait_for_path(error)
            return None
        if self._trouble is not None:
            log.info("'%s' exists now.", self.path)
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

    # --- Switching files --------------------------------------------------------------------------------------------

    def _restart_truncated(self):
        """Handle truncation of the open file. A copy made before, if any, holds the unread rest."""
        place, size = self._file.place(), self._file.status().st_size
        copy = rotation.find_copy(os.path.realpath(self.path), place, self._file.held)
        first = f"The unread rest is read from its copy '{copy.path}'. " if copy else ""
        told = "'%s' was truncated: %d bytes were read, it has %d. %sIt is read from its beginning."
        log.warning(told, self._file.path, place.position, size, first)
        if copy is None:
            self._file.restart()
            return
        self.close()
        self._lost = place
        self._use_instead(None, copy.path, place.position, complete=True)

    def _move_on(self):
        """At the end of the open file: return True if it is complete and closed, Lines for its rest, or None if more may come."""
        if not self._has_lost_the_path():
            return None
        file = self._file
        status = self._path_status()
        newer = self._newer(file.place(), status and status.st_ino)
        deleted = file.status().st_nlink == 0
        if not newer and not (status and status.st_size) and not deleted:
            return None  # writers may not have noticed the rotation yet
        if file.quiet_for() < self._limits.rotate_wait:
            return None
        rest = file.read(final=True)
        if rest is not None:
            return rest
        log.info("'%s' was %s; the old file is read to its end, byte %d.", self.path, "deleted" if deleted else "rotated", file.position)
        place = file.place()
        self._left = dataclasses.replace(place, inode=0) if deleted else place  # the inode may be reused
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
