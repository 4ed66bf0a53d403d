"""Line ends: LF or CR LF, a custom delimiter, or LF in UTF-16. Interface as an OpenFile needs it (connectors/file/lines.py).

An incomplete line may be published (`final`). If its line end is written later, that is not another line: `late_end` detects it.
"""

import numpy as np

LF, CR = 10, 13


class FeedLines:
    """LF or CR LF. A lone CR ends no line: progress bars use many of them."""

    @staticmethod
    def split(data, begin=0, final=False):
        ends = np.flatnonzero(data[begin:] == LF)
        ends += begin
        starts = np.empty(len(ends), np.int64)
        starts[:1] = begin
        starts[1:] = ends[:-1] + 1
        lengths = (ends - starts).astype(np.int32)
        if len(ends):
            lengths -= (lengths > 0) & (data[ends - 1] == CR)
        half_end = 1 if final is True and data[-1:].tobytes() == b"\r" else 0
        return _with_rest(data, starts, lengths, int(ends[-1]) + 1 if len(ends) else begin, final, half_end)

    @staticmethod
    def first_end(data, begin=0):
        at = data[begin:].tobytes().find(b"\n")
        return None if at < 0 else (at, begin + at + 1)

    @staticmethod
    def pending(data):
        return 0

    @staticmethod
    def late_end(data, begin, final=False):
        if not begin or data[begin - 1] == LF:
            return 0
        found = data[begin : begin + 2].tobytes()
        if found[:1] == b"\n" or (final is True and found == b"\r"):
            return 1
        return 2 if found == b"\r\n" else 0


class DelimitedLines:
    """A delimiter of one or more bytes."""

    def __init__(self, delimiter):
        self._delimiter = delimiter

    def split(self, data, begin=0, final=False):
        ends = self._found(data[begin:])
        ends += begin
        size = len(self._delimiter)
        starts = np.empty(len(ends), np.int64)
        starts[:1] = begin
        starts[1:] = ends[:-1] + size
        return _with_rest(data, starts, (ends - starts).astype(np.int32), int(ends[-1]) + size if len(ends) else begin, final)

    def first_end(self, data, begin=0):
        at = data[begin:].tobytes().find(self._delimiter)
        return None if at < 0 else (at, begin + at + len(self._delimiter))

    def pending(self, data):
        tail = data[-len(self._delimiter) :].tobytes()
        sizes = range(len(self._delimiter) - 1, 0, -1)
        return next((size for size in sizes if tail.endswith(self._delimiter[:size])), 0)

    def late_end(self, data, begin, final=False):
        size = len(self._delimiter)
        before, behind = data[max(0, begin - size) : begin].tobytes(), data[begin : begin + size].tobytes()
        if not begin or before == self._delimiter:
            return 0
        for taken in range(size - 1, -1, -1):  # so many of its bytes were published as part of the line
            if before.endswith(self._delimiter[:taken]) and behind.startswith(self._delimiter[taken:]):
                return size - taken
        return 0

    def _found(self, part):
        size = len(self._delimiter)
        if len(part) < size:
            return np.empty(0, np.int64)
        hits = np.ones(len(part) - size + 1, bool)
        for at, byte in enumerate(self._delimiter):
            hits &= part[at : len(part) - size + 1 + at] == byte
        ends = np.flatnonzero(hits)
        if size > 1 and len(ends) and (np.diff(ends) < size).any():  # "---" contains one "--"
            kept, free = [], 0
            for end in ends.tolist():
                if end >= free:
                    kept.append(end)
                    free = end + size
            ends = np.array(kept, np.int64)
        return ends


class WideLines:
    """LF or CR LF in UTF-16, little or big endian. Lines start at even positions of the file; so must `data` when lines are searched."""

    def __init__(self, is_big):
        self._kind = ">u2" if is_big else "<u2"

    def split(self, data, begin=0, final=False):
        units = self._units(data, begin)
        ends = np.flatnonzero(units == LF)
        starts = np.empty(len(ends), np.int64)
        starts[:1] = 0
        starts[1:] = ends[:-1] + 1
        lengths = ends - starts
        if len(ends):
            lengths -= (lengths > 0) & (units[ends - 1] == CR)
        end = begin + 2 * (int(ends[-1]) + 1 if len(ends) else 0)
        half_end = 2 if final is True and len(units) and units[-1] == CR else 0
        return _with_rest(data, begin + 2 * starts, (2 * lengths).astype(np.int32), end, final, half_end)

    def first_end(self, data, begin=0):
        ends = np.flatnonzero(self._units(data, begin) == LF)
        return None if not len(ends) else (2 * int(ends[0]), begin + 2 * (int(ends[0]) + 1))

    def pending(self, data):
        return len(data) % 2

    def late_end(self, data, begin, final=False):
        if begin < 2:
            return 0
        before, *behind = self._units(data[begin - 2 : begin + 4], 0).tolist()
        if before == LF:
            return 0
        if behind[:1] == [LF] or (final is True and behind == [CR]):
            return 2
        return 4 if behind == [CR, LF] else 0

    def _units(self, data, begin):
        part = data[begin : begin + (len(data) - begin) // 2 * 2]
        return np.frombuffer(part.tobytes(), self._kind)


def _with_rest(data, starts, lengths, end, final, half_end=0):
    """`half_end`: number of trailing bytes that are the first half of a line end."""
    if final is True and end < len(data):
        starts = np.append(starts, np.int64(end))
        lengths = np.append(lengths, np.int32(len(data) - end - half_end))
        end = len(data)
    return starts, lengths, end
