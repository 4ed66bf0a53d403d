"""Wait for a file to change: by inotify, or by polling where it is not available.

One thread waits on a Watch; `wake` may be called from any thread and ends the wait.
"""

import ctypes
import errno
import logging
import os
import select
import struct
import threading
import time

log = logging.getLogger(__name__)

LOOK_AGAIN_SECONDS = 0.2  # polling interval without notifications

_MODIFY, _ATTRIB, _MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x2, 0x4, 0x40, 0x80, 0x100, 0x200
_DELETE_SELF, _MOVE_SELF, _ONLY_FOLDERS = 0x400, 0x800, 0x1000000
_OF_FILE = _MODIFY | _ATTRIB | _DELETE_SELF | _MOVE_SELF
_OF_FOLDER = _CREATE | _DELETE | _MOVED_FROM | _MOVED_TO | _ATTRIB | _DELETE_SELF | _MOVE_SELF | _ONLY_FOLDERS
EVENT = struct.Struct("iIII")
_REMOTE = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "ceph", "glusterfs", "lustre", "afs", "virtiofs")


class Watch:
    """Waits for changes of one path: of the open file, and of names in its folder."""

    def __init__(self, path):
        self._path = path
        self._waker = Waker()
        self._waiting = select.poll()
        self._waiting.register(self._waker.descriptor, select.POLLIN)
        self._complained = False
        self._file_watch = None
        self._folder_watches = {}  # folder -> its watch; a symbolic link is watched where it is and at its target
        self._names = ()
        self._blind = False  # without notifications, we must poll
        self._events = new_inotify()
        if self._events is None:
            self._complain("the limit of inotify instances is reached, sysctl fs.inotify.max_user_instances")
        else:
            self._waiting.register(self._events, select.POLLIN)
        self._watch_folders()

    def follow(self, descriptor):
        """Watch this open file from now on (None: none). Call it before reading existing content."""
        if self._events is None:
            return
        self._watch_folders()
        if self._file_watch is not None:
            libc().inotify_rm_watch(self._events, self._file_watch)  # fails if the file is gone, as its watch is removed with it
            self._file_watch = None
        if descriptor is not None:
            # The path in /proc refers to the open file itself, whatever its name is now.
            self._file_watch = self._add(f"/proc/self/fd/{descriptor}", _OF_FILE)
            if self._file_watch is not None and is_remote(os.fstat(descriptor).st_dev):
                self._complain("it is on a network filesystem")

    def wait(self, seconds):
        """Wait for a possible change, `wake`, or the timeout. Return whether there was a reason."""
        if not self._sees_all():
            self._watch_folders()
        deadline = time.monotonic() + seconds
        while not self._waker.woken:
            left = deadline - time.monotonic()
            if not self._sees_all():
                left = min(left, LOOK_AGAIN_SECONDS)
            ready = self._waiting.poll(max(left, 0) * 1000)
            if not ready:
                return not self._sees_all()
            if any(descriptor == self._events for descriptor, _ in ready) and self._concerns_us():
                return True
        return True

    def pause(self, seconds):
        """Wait for the given time, regardless of changes, unless woken."""
        self._waker.wait(seconds)

    def wake(self):
        """End this wait and all later ones. Callable from any thread."""
        self._waker.wake()

    def close(self):
        self._waker.close()
        if self._events is not None:
            os.close(self._events)
            self._events = None

    def _sees_all(self):
        return not self._blind and None not in self._folder_watches.values()

    def _watch_folders(self):
        folder, name = os.path.split(self._path)
        paths = {os.path.join(os.path.realpath(folder or "."), name), os.path.realpath(self._path)}
        self._names = tuple({os.fsencode(os.path.basename(path)) for path in paths})
        folders = set(map(os.path.dirname, paths))
        if self._events is None:
            return
        for folder in folders | set(self._folder_watches):
            if folder not in folders:
                watch = self._folder_watches.pop(folder)
                if watch is not None:
                    libc().inotify_rm_watch(self._events, watch)
            elif self._folder_watches.get(folder) is None:
                self._folder_watches[folder] = self._add(folder, _OF_FOLDER)

    def _add(self, path, mask):
        watch = libc().inotify_add_watch(self._events, os.fsencode(path), mask)
        if watch >= 0:
            return watch
        code = ctypes.get_errno()
        if code == errno.ENOSPC:
            self._complain("the limit of inotify watches is reached (sysctl fs.inotify.max_user_watches)")
        elif code not in (errno.ENOENT, errno.ENOTDIR):
            self._complain(os.strerror(code))
        return None

    def _complain(self, why):
        self._blind = True
        if not self._complained:
            self._complained = True
            log.warning("Changes of '%s' are not reported (%s): it is polled every %d ms.", self._path, why, LOOK_AGAIN_SECONDS * 1000)

    def _concerns_us(self):
        """Read pending events; return whether one concerns our file or its name."""
        try:
            data = os.read(self._events, 65536)
        except BlockingIOError:
            return False
        ours, at = False, 0
        while at < len(data):
            watch, mask, _, size = EVENT.unpack_from(data, at)
            name = data[at + EVENT.size : at + EVENT.size + size].rstrip(b"\0")
            at += EVENT.size + size
            folder = next((folder for folder, each in self._folder_watches.items() if each == watch), None)
            if folder is not None and mask & (_DELETE_SELF | _MOVE_SELF):
                self._folder_watches[folder] = None  # the folder was replaced or deleted
            # A name that contains ours may be the rotated file. A watch of -1 means that events were lost.
            ours = ours or folder is None or not size or any(part in name for part in self._names)
        return ours


class StreamWatch:
    """Waits for data on a pipe, terminal or other stream."""

    def __init__(self, descriptor):
        self._descriptor = descriptor
        self._waker = Waker()
        self._waiting = select.poll()
        self._waiting.register(self._waker.descriptor, select.POLLIN)
        self._waiting.register(descriptor, select.POLLIN)

    def wait(self, seconds):
        """Wait for data, the end of the stream, `wake`, or the timeout."""
        self._waiting.poll(seconds * 1000)

    def ended(self):
        """The stream is over: wait only for `wake`."""
        self._waiting.unregister(self._descriptor)

    def pause(self, seconds):
        self._waker.wait(seconds)

    def wake(self):
        self._waker.wake()

    def close(self):
        self._waker.close()


class Waker:
    """Ends a wait permanently, from another thread."""

    def __init__(self):
        self.woken = False
        self.descriptor = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._lock = threading.Lock()  # prevents writes to a closed descriptor that may be reused

    def wake(self):
        with self._lock:
            self.woken = True
            if self.descriptor is not None:
                os.eventfd_write(self.descriptor, 1)

    def wait(self, seconds):
        if not self.woken:
            waiting = select.poll()
            waiting.register(self.descriptor, select.POLLIN)
            waiting.poll(seconds * 1000)

    def close(self):
        with self._lock:
            os.close(self.descriptor)
            self.descriptor = None


_loaded = []


def libc():
    if not _loaded:
        _loaded.append(ctypes.CDLL(None, use_errno=True))
    return _loaded[0]


def new_inotify():
    """Return a new inotify instance, or None if there is none available."""
    descriptor = libc().inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    return descriptor if descriptor >= 0 else None


def is_remote(device):
    """Whether other machines may change files on that device, which inotify does not report."""
    number = f"{os.major(device)}:{os.minor(device)}"
    try:
        with open("/proc/self/mountinfo") as mounts:
            kinds = [line.partition(" - ")[2].split()[0] for line in mounts if line.split()[2] == number]
    except (OSError, IndexError):
        return False
    return any(kind in _REMOTE or kind.startswith("fuse.") for kind in kinds)
