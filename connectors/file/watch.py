"""Waiting for a file to change: inotify where there is one, looking again every so often where there is not.

A Watch has one reader, which waits; `wake` may be called from any thread and makes the wait return.
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

LOOK_AGAIN_SECONDS = 0.2  # between two looks at a file that nobody reports changes of

_MODIFY, _ATTRIB, _MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x2, 0x4, 0x40, 0x80, 0x100, 0x200
_DELETE_SELF, _MOVE_SELF, _ONLY_FOLDERS = 0x400, 0x800, 0x1000000
_OF_FILE = _MODIFY | _ATTRIB | _DELETE_SELF | _MOVE_SELF
_OF_FOLDER = _CREATE | _DELETE | _MOVED_FROM | _MOVED_TO | _ATTRIB | _DELETE_SELF | _MOVE_SELF | _ONLY_FOLDERS
_EVENT = struct.Struct("iIII")
_REMOTE = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "ceph", "glusterfs", "lustre", "afs", "virtiofs")


class Watch:
    """Waits for changes of one path: of the file that is open, and of the names in its folder."""

    def __init__(self, path):
        self._path = path
        self._folder = os.path.dirname(path) or "."
        self._name = os.fsencode(os.path.basename(path))
        self._waker = Waker()
        self._waiting = select.poll()
        self._waiting.register(self._waker.descriptor, select.POLLIN)
        self._complained = False
        self._file_watch = self._folder_watch = None
        self._blind = False  # whether changes go unreported, so that we must look ourselves
        self._events = _inotify()
        if self._events is None:
            self._complain("the limit of inotify instances is reached, sysctl fs.inotify.max_user_instances")
        else:
            self._waiting.register(self._events, select.POLLIN)
        self._watch_folder()

    def follow(self, descriptor):
        """From now on report changes of this open file (None: of none). Call it before reading what is there already."""
        if self._events is None:
            return
        if self._file_watch is not None:
            _libc().inotify_rm_watch(self._events, self._file_watch)  # fails where the file is gone; its watch went with it
            self._file_watch = None
        if descriptor is not None:
            # By way of /proc it is the very file that is open, whatever its name has become by now.
            self._file_watch = self._add(f"/proc/self/fd/{descriptor}", _OF_FILE)
            if self._file_watch is not None and _is_remote(os.fstat(descriptor).st_dev):
                self._complain("it lies on a network filesystem")

    def wait(self, seconds):
        """Until something may have changed, or `wake` was called, or the time is over. Returns whether there was a reason."""
        if self._folder_watch is None:
            self._watch_folder()
        deadline = time.monotonic() + seconds
        while not self._waker.woken:
            left = deadline - time.monotonic()
            if self._blind or self._folder_watch is None:
                left = min(left, LOOK_AGAIN_SECONDS)
            ready = self._waiting.poll(max(left, 0) * 1000)
            if not ready:
                return self._blind or self._folder_watch is None
            if any(descriptor == self._events for descriptor, _ in ready) and self._concerns_us():
                return True
        return True

    def pause(self, seconds):
        """Let the time pass, whatever changes, unless woken."""
        self._waker.wait(seconds)

    def wake(self):
        """End this wait and all later ones. From any thread."""
        self._waker.wake()

    def close(self):
        self._waker.close()
        if self._events is not None:
            os.close(self._events)
            self._events = None

    def _watch_folder(self):
        if self._events is not None and os.path.isdir(self._folder):
            self._folder_watch = self._add(self._folder, _OF_FOLDER)

    def _add(self, path, mask):
        watch = _libc().inotify_add_watch(self._events, os.fsencode(path), mask)
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
            log.warning("Changes of '%s' are not reported (%s): it is looked at every %d ms.", self._path, why, LOOK_AGAIN_SECONDS * 1000)

    def _concerns_us(self):
        """Take the events that wait; whether one of them is about our file or its name."""
        try:
            data = os.read(self._events, 65536)
        except BlockingIOError:
            return False
        ours, at = False, 0
        while at < len(data):
            watch, mask, _, size = _EVENT.unpack_from(data, at)
            name = data[at + _EVENT.size : at + _EVENT.size + size].rstrip(b"\0")
            at += _EVENT.size + size
            if watch == self._folder_watch and mask & (_DELETE_SELF | _MOVE_SELF):
                self._folder_watch = None  # the folder is another one now, if there is one
                ours = True
            # A name that ours is a part of may be what our file was moved to; a watch of -1 says that events were lost.
            ours = ours or watch != self._folder_watch or not size or self._name in name
        return ours


class StreamWatch:
    """Waits for bytes in a pipe, terminal or other stream."""

    def __init__(self, descriptor):
        self._descriptor = descriptor
        self._waker = Waker()
        self._waiting = select.poll()
        self._waiting.register(self._waker.descriptor, select.POLLIN)
        self._waiting.register(descriptor, select.POLLIN)

    def wait(self, seconds):
        """Until there is something to read, or the stream is over, or `wake` was called, or the time is over."""
        self._waiting.poll(seconds * 1000)

    def ended(self):
        """The stream is over: wait for `wake` only."""
        self._waiting.unregister(self._descriptor)

    def pause(self, seconds):
        self._waker.wait(seconds)

    def wake(self):
        self._waker.wake()

    def close(self):
        self._waker.close()


class Waker:
    """What ends a wait from another thread, once and for all."""

    def __init__(self):
        self.woken = False
        self.descriptor = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._lock = threading.Lock()  # so that nobody writes to a descriptor that was closed and is another's by now

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


def _libc():
    if not _loaded:
        _loaded.append(ctypes.CDLL(None, use_errno=True))
    return _loaded[0]


def _inotify():
    """A new inotify instance, or None where there is none to be had."""
    descriptor = _libc().inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    return descriptor if descriptor >= 0 else None


def _is_remote(device):
    """Whether files of that device may be changed by other machines, which inotify does not see."""
    number = f"{os.major(device)}:{os.minor(device)}"
    try:
        with open("/proc/self/mountinfo") as mounts:
            kinds = [line.partition(" - ")[2].split()[0] for line in mounts if line.split()[2] == number]
    except (OSError, IndexError):
        return False
    return any(kind in _REMOTE or kind.startswith("fuse.") for kind in kinds)
