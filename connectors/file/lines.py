"""Lines in a buffer: find their starts and lengths without copying.

Lines end with LF, CR LF or a lone CR, as in Java. A CR at the end of the buffer is pending: an LF may follow.
"""

import numpy as np

LF, CR = 10, 13


def split(data, begin=0, final=False):
    """Return (starts, lengths, end) of the complete lines in data[begin:]; `end` is the start of the first incomplete one.

    `final`: no more data follows, so the rest is a line, too.
    """
    part = data[begin:]
    has_cr = part.tobytes().find(b"\r") >= 0  # searching one byte costs a tenth of the following, which is short without CR
    ends, next_starts = _ends_with_cr(part) if has_cr else _ends(part)
    starts = np.empty(len(ends), np.int64)
    starts[:1] = 0
    starts[1:] = next_starts[:-1]
    lengths = (ends - starts).astype(np.int32)
    starts += begin
    end = begin + (int(next_starts[-1]) if len(ends) else 0)
    if final and end < len(data):
        rest = len(data) - end
        starts = np.append(starts, np.int64(end))
        lengths = np.append(lengths, np.int32(rest - 1 if data[-1] == CR else rest))
        end = len(data)
    return starts, lengths, end


def first_end(data, begin=0):
    """Return (length, start of the next line) of the line at `begin`, or None if its end is not in the data."""
    seen = data[begin:].tobytes()
    ends = [at for at in (seen.find(b"\n"), seen.find(b"\r")) if at >= 0]
    if not ends or (seen[min(ends)] == CR and min(ends) == len(seen) - 1):
        return None
    at = min(ends)
    return at, begin + at + (2 if seen[at : at + 2] == b"\r\n" else 1)


class JavaLines:
    """The line format above, for an OpenFile. connectors/logs has other formats."""

    split = staticmethod(split)
    first_end = staticmethod(first_end)

    @staticmethod
    def pending(data):
        """How many of the last bytes may belong to an incomplete line end."""
        return int(len(data) > 0 and data[-1] == CR)

    @staticmethod
    def late_end(data, begin, final=False):
        """How many bytes from `begin` on are the end of the line before, which was taken without one. To Java that is an empty line."""
        return 0


def _ends(part):
    """Return the ends of lines, and the starts of the following ones."""
    ends = np.flatnonzero(part == LF)
    return ends, ends + 1


def _ends_with_cr(part):
    ends = np.flatnonzero((part == LF) | (part == CR))
    if len(ends) and ends[-1] == len(part) - 1 and part[-1] == CR:
        ends = ends[:-1]
    # In CR LF the line ends at the CR, and the next one begins after the LF.
    behind_cr = (part[ends] == LF) & (ends > 0) & (part[ends - 1] == CR)
    next_starts = ends + 1
    next_starts[:-1][behind_cr[1:]] += 1
    return ends[~behind_cr], next_starts[~behind_cr]
