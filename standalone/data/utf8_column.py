"""Validate and repair UTF-8 in byte columns."""

import numpy as np

from standalone.data import utf8
from standalone.kernels import BYTES, FLAGS, INTS, LONGS, compiled, readonly, written
from standalone.wire import ByteColumn


def repair(column):
    """Replace invalid UTF-8 by U+FFFD, like Java; return the same column if all is valid."""
    bad = malformed(column)
    if not len(bad):
        return column
    repaired = ByteColumn.of([utf8.encode(utf8.decode(column[row])) for row in bad.tolist()])
    starts, lengths = column.starts.copy(), column.lengths.copy()
    starts[bad] = repaired.starts + len(column.data)
    lengths[bad] = repaired.lengths
    return ByteColumn(np.concatenate([column.data, repaired.data]), starts, lengths)


def malformed(column):
    """Return the row numbers with invalid UTF-8."""
    marks = np.zeros(len(column), np.bool_)
    found = _mark(readonly(column.data), readonly(column.starts), readonly(column.lengths), marks)
    return np.flatnonzero(marks) if found else np.empty(0, np.int64)


@compiled
def _mark(data: BYTES, starts: LONGS, lengths: INTS, marks: written(FLAGS)):
    found = 0
    for row in range(len(starts)):
        if lengths[row] > 0 and not is_utf8(data, starts[row], starts[row] + lengths[row]):
            marks[row] = True
            found += 1
    return found


@compiled
def is_utf8(data, at, end):
    """Whether data[at:end] is valid UTF-8."""
    found = data[at:end]
    high = np.uint8(0)
    for place in range(len(found)):
        high |= found[place]
    if high < 0x80:
        return True
    while at < end:
        lead = data[at]
        if lead < 0x80:
            at += 1
            continue
        if lead < 0xC2 or lead > 0xF4:
            return False
        size = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
        if at + size > end:
            return False
        second = data[at + 1]
        low = 0xA0 if lead == 0xE0 else 0x90 if lead == 0xF0 else 0x80
        top = 0x9F if lead == 0xED else 0x8F if lead == 0xF4 else 0xBF
        if second < low or second > top:
            return False
        for place in range(at + 2, at + size):
            if data[place] & 0xC0 != 0x80:
                return False
        at += size
    return True
