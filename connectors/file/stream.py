"""Lines of a stream: standard input, a pipe, a terminal. A stream has no positions, so a restart cannot resume."""

import logging
import os
import select

import numpy as np

from connectors.file.lines import CR, split
from connectors.file.open_file import CUT, FAIL, Lines
from standalone import ConnectError

log = logging.getLogger(__name__)

_READ_BYTES = 1 << 20


class StreamTail:
    """Reads available data without blocking."""

    def __init__(self, descriptor, limits, on_end):
        self._descriptor = descriptor
        self._limits = limits
        self._on_end = on_end  # called once at the end of the stream
        self._ready = select.poll()
        self._ready.register(descriptor, select.POLLIN)
        self._rest = b""  # the incomplete line
        self._dropping = False  # a line was too long: skip up to its end
        self._ended = False

    def read(self):
        """Return the next Lines, or None if there are none now."""
        while not self._ended and self._ready.poll(0):
            read = os.read(self._descriptor, _READ_BYTES)
            if not read:
                self._end()
                return None
            lines = self._split(read)
            if len(lines):
                return lines
        return None

    def patience(self):
        return float("inf")

    def close(self):
        os.close(self._descriptor)

    def _end(self):
        self._ended = True
        if self._rest:
            log.warning("The input ended without a line end: its last %d bytes are dropped.", len(self._rest))
        self._on_end()

    def _split(self, read):
        data = np.frombuffer(self._rest + read, np.uint8)
        starts, lengths, end = split(data)
        if self._dropping and len(starts):
            self._dropping = False
            starts, lengths = starts[1:], lengths[1:]
        self._rest = data[end:].tobytes()
        longest = self._limits.line_bytes
        too_long = lengths > longest
        if too_long.any():
            self._refuse(int(lengths.max()))
            if self._limits.long_lines == CUT:
                lengths = np.minimum(lengths, longest).astype(np.int32)
            else:
                starts, lengths = starts[~too_long], lengths[~too_long]
        if self._dropping or len(self._rest) - self._rest.endswith(bytes([CR])) > longest:
            starts, lengths = self._drop_rest(starts, lengths, end)
        return Lines(data, starts, lengths, end)

    def _drop_rest(self, starts, lengths, end):
        """The incomplete line is too long: keep only a CR that may be half of its end."""
        if not self._dropping:
            self._refuse(len(self._rest))
            if self._limits.long_lines == CUT:
                starts, lengths = np.append(starts, np.int64(end)), np.append(lengths, np.int32(self._limits.line_bytes))
        self._dropping = True
        self._rest = b"\r" if self._rest.endswith(b"\r") else b""
        return starts, lengths

    def _refuse(self, length):
        policy, longest = self._limits.long_lines, self._limits.line_bytes
        if policy == FAIL:
            raise ConnectError(
                f"A line of the input has {length} bytes or more; 'file.max.line.bytes' allows {longest}. "
                "Increase it, or set 'file.long.lines' to 'cut' or 'skip'."
            )
        done = "cut" if policy == CUT else "left out"
        log.warning("A line of the input has %d bytes or more, file.max.line.bytes is %d: %s.", length, longest, done)
