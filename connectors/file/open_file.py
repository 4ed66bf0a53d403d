"""One open file: read complete lines from a position, with offsets, and detect truncation and rewriting."""

import dataclasses
import errno
import logging
import math
import os
import stat
import time
import zlib

import numpy as np

from connectors.file.lines import JavaLines
from connectors.file.rotation import MARK_BYTES, NOTHING, Held, Place, checksum, offset_of
from standalone import ConfigError, ConnectError, check_allowed_file, open_allowed

log = logging.getLogger(__name__)

FAIL, CUT, SKIP = "fail", "cut", "skip"


@dataclasses.dataclass(frozen=True)
class Limits:
    """Read size, and the policy for long lines."""

    chunk_bytes: int = 4 << 20
    line_bytes: int = 16 << 20
    long_lines: str = FAIL
    rotate_wait: float = 1.0
    lines: object = JavaLines  # line format
    line_key: str = "file.max.line.bytes"  # name of the option that limits line length
    policy_key: str = "file.long.lines"


class Lines:
    """Complete lines, as slices of the read buffer, and the offset after each."""

    def __init__(self, data, starts, lengths, end, base=0):
        self.data = data
        self.starts = starts
        self.lengths = lengths
        self._end = end  # position in data of the first line not included
        self._base = base  # position of data in the file
        self._file = None

    def of(self, *file):
        """Set the file's identity: inode, modification time, checksum of its head."""
        self._file = file

    def __len__(self):
        return len(self.lengths)

    def offset(self, row):
        """The source offset after that line, where the next one begins."""
        following = int(self.starts[row + 1]) if row + 1 < len(self.starts) else self._end
        position = self._base + following
        inode, written_ns, head = self._file
        tail = zlib.crc32(self.data[following - min(MARK_BYTES, position) : following])
        return offset_of(position, inode, written_ns, head if position > MARK_BYTES else 0, tail)

    @property
    def begins_file(self):
        """Whether the first line is at the beginning of the file."""
        return self._base == 0 and len(self.starts) > 0 and int(self.starts[0]) == 0

    def positions(self):
        """Positions of the lines in the file."""
        return (self.starts + self._base).tolist()

    def bytes_behind(self, position):
        """Return the last bytes before a position in the file."""
        at = position - self._base
        return self.data[at - min(MARK_BYTES, position) : at].tobytes()


def refused_file(config):
    """Return {key: message} if the configured file must not be opened."""
    try:
        if config.get("file"):
            check_allowed_file(config["file"])
    except ConfigError as error:
        return error.errors
    return {}


class Rewritten(Exception):
    """The file no longer contains what was read."""


class OpenFile:
    """A regular file and the read position in it."""

    def __init__(self, path, limits, complete=False):
        self.path = path
        self.descriptor = open_allowed(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        status = os.fstat(self.descriptor)
        if not stat.S_ISREG(status.st_mode):
            os.close(self.descriptor)
            raise OSError(errno.EISDIR if stat.S_ISDIR(status.st_mode) else errno.EINVAL, "it is not a regular file")
        self.inode = status.st_ino
        self.device = status.st_dev
        self.complete = complete  # no process writes to it any more
        self.long_lines = 0  # lines truncated or skipped
        self._limits = limits
        self._written_ns = status.st_mtime_ns  # modification time at the last read
        self._grew = time.monotonic() - max(0.0, time.time() - status.st_mtime)
        self.restart()

    def restart(self):
        """Read again from the beginning."""
        self.position = 0
        self._behind = b""  # last bytes before the position
        self._head = 0
        self._seen = None  # size and modification time when everything had been scanned
        self._passed = 0  # scanned without a line end since the position
        self.held = NOTHING  # checksum of the incomplete line after the position

    def go_on_from(self, position):
        self.restart()
        size = min(MARK_BYTES, position)
        self._behind = os.pread(self.descriptor, size, position - size)
        self._moved_to(position)

    def status(self):
        return os.fstat(self.descriptor)

    def place(self):
        return Place(self.position, self.inode, self._written_ns, self._head, checksum(self._behind, len(self._behind)))

    @property
    def seen(self):
        """Size and modification time when everything had been scanned; None if there may be more."""
        return self._seen

    def quiet_for(self):
        """Seconds since it last grew, as far as known."""
        return math.inf if self.complete else time.monotonic() - self._grew

    def close(self):
        os.close(self.descriptor)

    def read(self, final=False):
        """Return the next Lines, or None. `final`: the rest at the end of the file is a line even without a line end. Other true values are passed
        to `split`: in formats where the following line ends a line, the last one may still be incomplete.

        Raises Rewritten if the file was truncated, even if it is larger again.
        """
        while True:
            status = self.status()
            size = status.st_size
            if size < self.position + self.held.size:
                raise Rewritten
            seen = (size, status.st_mtime_ns)
            if seen == self._seen and not (final and size > self.position):
                return None
            if self._seen is not None and seen != self._seen:
                self._grew = time.monotonic()
            lines, exhausted = self._lines(size, final)
            self._written_ns = status.st_mtime_ns
            if exhausted:
                self._seen = seen
            if lines is None:
                return None
            if len(lines):
                lines.of(self.inode, self._written_ns, self._head)
                return lines

    def _lines(self, size, final):
        """Return (Lines, possibly empty, or None if no line is complete; whether everything up to `size` was scanned)."""
        if not self.held.is_behind(self.descriptor, self.position):
            raise Rewritten
        if self._passed:
            self._must_be_as_it_was(os.pread(self.descriptor, len(self._behind), self.position - len(self._behind)))
            lines = self._over_long(size, final)
            return lines, lines is None
        data, starts, lengths, end, at_end = self._look(size, final)
        unfinished = len(data) - end - (self._limits.lines.pending(data) if end < len(data) else 0)
        if not len(starts) and unfinished > self._limits.line_bytes and end == len(self._behind):
            self.held = Held.of(data[end:])
            lines = self._over_long(size, final)
            return lines, lines is None
        behind = self.position + end - len(self._behind)
        lines = self._take(data, starts, lengths, end)
        is_all = lines is None or (at_end and self.position == behind)
        if is_all:
            self.held = Held.of(data[end:])
        return lines, is_all

    def _look(self, size, final):
        """Split the bytes that follow, as many as needed to find a line end; also return whether they reach the end of the file. They
        start a little before the position, to verify the content there."""
        lead = len(self._behind)
        wanted = self._limits.chunk_bytes
        while True:
            wanted = min(wanted, size - self.position)
            buffer = np.empty(lead + wanted, np.uint8)
            data = buffer[: os.preadv(self.descriptor, [buffer], self.position - lead)]
            self._must_be_as_it_was(data[:lead].tobytes())
            at_end = len(data) < len(buffer) or self.position + wanted >= size
            is_final = final if at_end else False
            begin = lead + self._limits.lines.late_end(data, lead, is_final)
            starts, lengths, end = self._limits.lines.split(data, begin, is_final)
            if at_end or len(starts) or wanted > self._limits.line_bytes + 1:
                return data, starts, lengths, end, at_end
            wanted *= 2

    def _must_be_as_it_was(self, behind):
        if behind != self._behind:
            raise Rewritten

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
        """Search the end of a line that exceeds the limit, without buffering it."""
        policy, longest = self._limits.long_lines, self._limits.line_bytes
        if policy == FAIL:
            raise self._too_long(size - self.position)
        at = max(self._passed, self.position + longest)
        end = None
        while end is None and at < size:
            data = np.frombuffer(os.pread(self.descriptor, self._limits.chunk_bytes, at), np.uint8)
            found = self._limits.lines.first_end(data)
            if found is not None:
                end = at + found[1]
                continue
            looked_at = len(data) - self._limits.lines.pending(data)
            if looked_at <= 0:
                break  # possibly half a line end: more may follow
            at += looked_at
        if end is None:
            if final is not True:
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
        return lines

    def _moved_to(self, position):
        self.position = position
        self._passed = 0
        self.held = NOTHING
        if position > MARK_BYTES and not self._head:
            first = os.pread(self.descriptor, MARK_BYTES, 0)
            self._head = checksum(first, len(first))

    def _too_long(self, length):
        longest = self._limits.line_bytes
        return ConnectError(
            f"The line at byte {self.position} of '{self.path}' has {length} bytes or more; '{self._limits.line_key}' allows {longest}. "
            f"Increase it, or set '{self._limits.policy_key}' to 'cut' or 'skip'."
        )

    def _warn_of_long(self, count):
        self.long_lines += count
        log.warning(
            "%d line(s) of '%s', after byte %d, are longer than %s=%d: %s.",
            count, self.path, self.position, self._limits.line_key, self._limits.line_bytes,
            "truncated" if self._limits.long_lines == CUT else "skipped",
        )  # fmt: skip
