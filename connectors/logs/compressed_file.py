"""A compressed file that is no longer written to, with the interface of an OpenFile. Positions count decompressed bytes."""

import errno
import logging
import math
import os
import stat
import zlib

import numpy as np
import pyarrow as pa

from connectors.file.open_file import CUT, FAIL, Lines
from connectors.file.rotation import MARK_BYTES, NOTHING, Held, Place, checksum
from connectors.logs.names import compression
from standalone import ConnectError, open_allowed

log = logging.getLogger(__name__)


class CompressedFile:
    """Like an OpenFile, except that it neither grows nor shrinks."""

    complete = True

    def __init__(self, path, limits):
        self.path = path
        self.long_lines = 0
        self._limits = limits
        self.descriptor = open_allowed(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        status = self.status()
        if not stat.S_ISREG(status.st_mode):
            self.close()
            raise OSError(errno.EINVAL, "not a regular file")
        self.inode, self.device, self._written_ns = status.st_ino, status.st_dev, status.st_mtime_ns
        self.restart()

    def restart(self):
        os.lseek(self.descriptor, 0, os.SEEK_SET)
        raw = pa.PythonFile(os.fdopen(os.dup(self.descriptor), "rb"), mode="r")
        self._stream = pa.CompressedInputStream(raw, compression(self.path))
        self.position = 0
        self.at_end = False
        self._behind = b""
        self._head = 0
        self._rest = b""
        self.held = NOTHING  # the last line counts even without a line end

    def go_on_from(self, position):
        self.restart()
        self._skip(position)

    def holds(self, place, held):
        """Whether the file still has the content that was read before the place; if nothing was read, the known part of its first line."""
        self.restart()
        if place.position == 0:
            return Held.of(self._take(held.size)) == held
        if place.position > MARK_BYTES:
            first = self._take(MARK_BYTES)
            if checksum(first, MARK_BYTES) != place.head:
                return False
            self._skip(place.position - MARK_BYTES, first)
        else:
            self._skip(place.position)
        return self.position == place.position and checksum(self._behind, min(MARK_BYTES, place.position)) == place.tail

    def status(self):
        return os.fstat(self.descriptor)

    def place(self):
        return Place(self.position, self.inode, self._written_ns, self._head, checksum(self._behind, len(self._behind)))

    @property
    def seen(self):
        status = self.status()
        return status.st_size, status.st_mtime_ns

    def quiet_for(self):
        return math.inf

    def close(self):
        os.close(self.descriptor)

    def read(self, final=False):
        """The next Lines, or None at the end. The last line counts even without a line end: nothing follows."""
        wanted = self._limits.chunk_bytes
        while not (self.at_end and not self._rest):
            more = self._take(wanted)
            lead = len(self._behind)
            data = np.frombuffer(self._behind + self._rest + more, np.uint8)
            begin = lead + self._limits.lines.late_end(data, lead, self.at_end)
            starts, lengths, end = self._limits.lines.split(data, begin, self.at_end)
            if len(starts) or self.at_end:
                lines = self._lines(data, starts, lengths, end)
                if len(lines):
                    return lines
            else:
                self._rest += more
        return None

    def _lines(self, data, starts, lengths, end):
        base = self.position - len(self._behind)
        too_long = lengths > self._limits.line_bytes
        if too_long.any():
            if self._limits.long_lines == FAIL:
                raise ConnectError(
                    f"A line after byte {self.position} of '{self.path}', decompressed, has {int(lengths.max())} bytes; "
                    f"'{self._limits.line_key}' allows {self._limits.line_bytes}. Raise that, or set '{self._limits.policy_key}' to 'cut' or 'skip'."
                )
            self.long_lines += int(too_long.sum())
            log.warning("%d line(s) of '%s' are longer than %s.", int(too_long.sum()), self.path, self._limits.line_key)
            if self._limits.long_lines == CUT:
                lengths = np.minimum(lengths, self._limits.line_bytes).astype(np.int32)
            else:
                starts, lengths = starts[~too_long], lengths[~too_long]
        lines = Lines(data, starts, lengths, end, base)
        self._rest = data[end:].tobytes()
        self._moved_to(base + end, data[:end])
        lines.of(self.inode, self._written_ns, self._head)
        return lines

    def _take(self, count):
        data = self._stream.read(count)
        self.at_end = len(data) < count
        return data

    def _skip(self, count, before=b""):
        if before:
            self._moved_to(len(before), np.frombuffer(before, np.uint8))
        while count > 0:
            data = self._take(min(count, 1 << 20))
            if not data:
                return
            count -= len(data)
            self._moved_to(self.position + len(data), np.frombuffer(self._behind + data, np.uint8))

    def _moved_to(self, position, seen):
        """`seen`: the bytes up to there, as far back as marks need them."""
        if position > MARK_BYTES and not self._head:
            self._head = self._first(seen, position)
        self.position = position
        self._behind = seen[len(seen) - min(MARK_BYTES, position) :].tobytes()

    def _first(self, seen, position):
        """The checksum of the first bytes. `seen` holds everything read so far when the position first passes them."""
        begin = len(seen) - position
        return zlib.crc32(seen[begin : begin + MARK_BYTES]) if begin >= 0 else 0


def holds(path, place, held=NOTHING):
    """Whether the file at that path, compressed or not, has the content that was read before the place; if nothing was read, `held`, the known
    part of its first line, decides. None: it is compressed, and that much of it cannot be decompressed, yet or ever."""
    if place.position == 0 and not held.size:
        return False
    try:
        if compression(path):
            file = CompressedFile(path, None)
            try:
                return file.holds(place, held)
            finally:
                file.close()
        descriptor = open_allowed(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            return place.is_in(descriptor) if place.position else held.is_behind(descriptor, 0)
        finally:
            os.close(descriptor)
    except OSError as error:
        return None if _is_cut_off(path, error) else False


def first_bytes(path, count):
    """The first bytes of a file, decompressed; fewer if it is shorter or cannot be read. None: it is compressed, and they cannot be
    decompressed, yet or ever."""
    try:
        descriptor = open_allowed(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            if compression(path):
                return pa.CompressedInputStream(pa.PythonFile(file, mode="r"), compression(path)).read(count)
            return file.read(count)
    except OSError as error:
        return None if _is_cut_off(path, error) else b""


def place_at_end(path):
    """The Place after the last byte of an uncompressed file. Raises OSError."""
    descriptor = open_allowed(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        status = os.fstat(descriptor)
        size = status.st_size
        marks = min(MARK_BYTES, size)
        head = zlib.crc32(os.pread(descriptor, MARK_BYTES, 0)) if size > MARK_BYTES else 0
        return Place(size, status.st_ino, status.st_mtime_ns, head, zlib.crc32(os.pread(descriptor, marks, size - marks)))
    finally:
        os.close(descriptor)


def _is_cut_off(path, error):
    """Whether the codec failed: the operating system's errors have an errno."""
    return compression(path) is not None and error.errno is None
