"""Open files: a limited number, the most recently read ones. Other files are reopened where reading stopped."""

import collections
import errno
import logging
import resource
import time

from connectors.file import rotation
from connectors.file.open_file import OpenFile
from connectors.logs.birth import born_of
from connectors.logs.compressed_file import CompressedFile
from connectors.logs.names import compression

log = logging.getLogger(__name__)


class Gone(Exception):
    """The file does not exist, or was replaced by another one."""


class OpenFiles:
    def __init__(self, limits, most=None):
        self._limits = limits
        self._most = most or _descriptors()
        self._open = collections.OrderedDict()

    def __len__(self):
        return len(self._open)

    def resume(self, file):
        """Open it where reading stopped. Return (Place, Held) of content that it no longer has: it is then at its beginning; else None.

        Raises Gone, OSError, or ConfigError if it must not be read."""
        try:
            reader = self.opened(file.path)
        except FileNotFoundError:
            raise Gone from None
        if (reader.device, reader.inode, born_of(reader.descriptor)) != file.key:
            reader.close()
            raise Gone
        place, held, file.reader = file.place, file.held, reader
        self._open[file] = True
        if place.position and not place.inode:
            _go_on_by_hand(file, place)
        elif isinstance(reader, CompressedFile):
            if place.position:
                reader.go_on_from(place.position)
        elif not place.is_in(reader.descriptor) or not held.is_behind(reader.descriptor, place.position):
            return place, held
        elif place.position:
            reader.go_on_from(place.position)
        reader.held = held
        file.leave_mark()
        return None

    def opened(self, path):
        """A reader at the file's beginning, which the caller must close."""
        while len(self._open) >= self._most and self._park_one():
            pass
        make = CompressedFile if compression(path) else OpenFile
        try:
            return make(path, self._limits)
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE) or not self._park_one():
                raise
            self._most = max(8, len(self._open))
            return make(path, self._limits)

    def used(self, file):
        file.used_at = time.monotonic()
        self._open.move_to_end(file)

    def close(self, file):
        file.close()
        self._open.pop(file, None)

    def close_idle(self, seconds):
        """Close files that were not read for this long and that have a name to reopen them by."""
        now = time.monotonic()
        for file in [file for file in self._open if now - file.used_at > seconds and file.is_listed and not file.is_queued]:
            if file.seen is not None:
                self.close(file)

    def close_all(self):
        for file in list(self._open):
            self.close(file)

    def _park_one(self):
        """Close the least recently read file. One without a name could not be reopened."""
        for file in self._open:
            if file.is_listed or not file.is_lost:
                self.close(file)
                return True
        return False


def _go_on_by_hand(file, place):
    position = rotation.position_in_bytes(file.reader.descriptor, place.position)
    if position > file.reader.status().st_size:
        log.warning("'%s' is shorter than the stored position %d; reading it from its beginning.", file.path, position)
    else:
        file.reader.go_on_from(position)


def _descriptors():
    """The limit of open files: half of the process's limit, up to a useful maximum."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 2048 if soft == resource.RLIM_INFINITY else max(16, min(2048, soft // 2))
