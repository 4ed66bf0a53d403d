"""Which files are open: few of them, those that were read last. The others are opened again where reading stopped."""

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
    """The file is not there, or another one is."""


class OpenFiles:
    def __init__(self, limits, most=None):
        self._limits = limits
        self._most = most or _descriptors()
        self._open = collections.OrderedDict()

    def __len__(self):
        return len(self._open)

    def resume(self, file):
        """Open it where reading stopped. (Place, Held) of what is not in it any more: then it is at its beginning; else None.

        Raises Gone, OSError, or ConfigError where it may not be read."""
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
        """A reader for it, from its beginning. Anyone who gets it closes it."""
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
        """Those that were not read for this long, and that have a name to be opened by."""
        now = time.monotonic()
        for file in [file for file in self._open if now - file.used_at > seconds and file.is_listed and not file.is_queued]:
            if file.seen is not None:
                self.close(file)

    def close_all(self):
        for file in list(self._open):
            self.close(file)

    def _park_one(self):
        """Close the file that was read longest ago. One without a name could not be opened again."""
        for file in self._open:
            if file.is_listed or not file.is_lost:
                self.close(file)
                return True
        return False


def _go_on_by_hand(file, place):
    position = rotation.position_in_bytes(file.reader.descriptor, place.position)
    if position > file.reader.status().st_size:
        log.warning("'%s' has fewer bytes than the stored position %d: it is read from its beginning.", file.path, position)
    else:
        file.reader.go_on_from(position)


def _descriptors():
    """How many files may be open at once: half of what the process may have, and not more than are of any use."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 2048 if soft == resource.RLIM_INFINITY else max(16, min(2048, soft // 2))
