"""Which files were written to and which names changed, by inotify on whole folders, so that thousands of files need few watches.

If a folder cannot be watched (inotify limits, a network filesystem), all files are polled instead.
"""

import ctypes
import errno
import logging
import os
import select

from connectors.file.watch import EVENT, Waker, is_remote, libc, new_inotify

log = logging.getLogger(__name__)

MODIFY, ATTRIB, MOVED_FROM, MOVED_TO, CREATE, DELETE, DELETE_SELF, MOVE_SELF = 0x2, 0x4, 0x40, 0x80, 0x100, 0x200, 0x400, 0x800
OVERFLOW, IGNORED, ONLY_FOLDERS = 0x4000, 0x8000, 0x1000000
_MASK = MODIFY | ATTRIB | MOVED_FROM | MOVED_TO | CREATE | DELETE | DELETE_SELF | MOVE_SELF | ONLY_FOLDERS
_NAMES = ATTRIB | MOVED_FROM | MOVED_TO | CREATE | DELETE | DELETE_SELF | MOVE_SELF | OVERFLOW


class Events:
    """One reader waits; `wake` is thread-safe."""

    def __init__(self, polls_only=False):
        self.is_blind = polls_only
        self._waker = Waker()
        self._waiting = select.poll()
        self._waiting.register(self._waker.descriptor, select.POLLIN)
        self._watches = {}  # folder -> its watch
        self._folders = {}  # watch -> folder
        self._complained = set()
        self._descriptor = None if polls_only else new_inotify()
        if self._descriptor is not None:
            self._waiting.register(self._descriptor, select.POLLIN)
        elif not polls_only:
            self._complain("the limit of inotify instances is reached; raise sysctl fs.inotify.max_user_instances")

    def watch(self, folders):
        """Watch exactly these folders from now on. For a folder that does not exist yet, its nearest existing parent is watched.

        Return whether there are new ones: earlier changes in them are not reported."""
        if self._descriptor is None:
            return False
        wanted = {_existing(folder) for folder in folders}
        for folder in self._watches.keys() - wanted:
            watch = self._watches.pop(folder)
            self._folders.pop(watch, None)
            libc().inotify_rm_watch(self._descriptor, watch)
        missing = wanted - self._watches.keys()
        for folder in missing:
            self._add(folder)
        return not missing.isdisjoint(self._watches)

    def take(self, seconds=0.0):
        """Wait up to so long; return (folder, name) of each write, and whether any names changed."""
        written, names = set(), False
        if not self._waiting.poll(max(seconds, 0) * 1000) or self._descriptor is None:
            return written, names
        try:
            data = os.read(self._descriptor, 1 << 18)
        except BlockingIOError:
            return written, names
        at = 0
        while at < len(data):
            watch, mask, _, size = EVENT.unpack_from(data, at)
            name = data[at + EVENT.size : at + EVENT.size + size]
            at += EVENT.size + size
            folder = self._folders.get(watch)
            if mask & (MODIFY | ATTRIB) and folder is not None and size:
                written.add((folder, os.fsdecode(name.rstrip(b"\0"))))
            if mask & _NAMES:
                names = True
            if mask & (DELETE_SELF | MOVE_SELF | IGNORED) and folder is not None:
                self._watches.pop(folder, None)  # the folder was removed or replaced
                self._folders.pop(watch, None)
        return written, names

    def pause(self, seconds):
        self._waker.wait(seconds)

    def wake(self):
        self._waker.wake()

    def close(self):
        self._waker.close()
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _add(self, folder):
        watch = libc().inotify_add_watch(self._descriptor, os.fsencode(folder), _MASK)
        if watch >= 0:
            self._watches[folder] = watch
            self._folders[watch] = folder
            try:
                if is_remote(os.stat(folder).st_dev):
                    self._complain("a folder is on a network filesystem")
            except OSError:
                pass
            return
        code = ctypes.get_errno()
        if code == errno.ENOSPC:
            self._complain("the limit of inotify watches is reached; raise sysctl fs.inotify.max_user_watches")
        elif code not in (errno.ENOENT, errno.ENOTDIR):
            self._complain(f"'{folder}' cannot be watched, {os.strerror(code)}")

    def _complain(self, why):
        self.is_blind = True
        if why not in self._complained:
            self._complained.add(why)
            log.warning("Cannot watch files for changes (%s): polling all files instead.", why)


def _existing(folder):
    while not os.path.isdir(folder) and folder != "/":
        folder = os.path.dirname(folder)
    return os.path.realpath(folder)
