"""A file's creation time in nanoseconds: distinguishes two files that used the same inode number one after the other.

Linux reports it in statx, which Python's os.stat does not call. 0 if the filesystem does not store it.
"""

import ctypes
import os
import struct

from connectors.file.watch import libc

_AT_EMPTY_PATH, _BTIME = 0x1000, 0x800
_AT_FDCWD = -100
_SECONDS_AT = 80  # byte offset of stx_btime in struct statx
_TIME = struct.Struct("qI")


def born(path):
    return _statx(_AT_FDCWD, os.fsencode(path), 0)


def born_of(descriptor):
    return _statx(descriptor, b"", _AT_EMPTY_PATH)


class Births:
    """Creation times of all files of one scan after another: read again only for files that changed."""

    def __init__(self):
        self._known = {}  # device and inode -> ((path, size, mtime), creation time)
        self._next = {}

    def key(self, path, status):
        """(device, inode, creation time): unique over time."""
        key = status.st_dev, status.st_ino
        fact = path, status.st_size, status.st_mtime_ns
        known = self._known.get(key)
        if known is None or known[0] != fact:
            known = fact, born(path)
        self._next[key] = known
        return (*key, known[1])

    def turn(self):
        """The scan is over; forget files that it did not find."""
        self._known, self._next = self._next, {}


def _statx(descriptor, path, flags):
    buffer = ctypes.create_string_buffer(256)
    try:
        if libc().statx(descriptor, path, flags, _BTIME, buffer) != 0:
            return 0
    except AttributeError:  # a C library from before 2018
        return 0
    if not struct.unpack_from("I", buffer)[0] & _BTIME:
        return 0
    seconds, nanoseconds = _TIME.unpack_from(buffer, _SECONDS_AT)
    return seconds * 10**9 + nanoseconds
