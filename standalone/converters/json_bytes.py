"""Bytes and Decimals out of strings in base64, a whole column at once.

What every encoder writes is read by a kernel: groups of four letters, the last one padded. A column with anything else in it, be it blanks
that Jackson skips or an error, is left to `json_values.from_base64`, which knows.
"""

import numpy as np
import pyarrow as pa

from standalone import ByteColumn
from standalone.data.arrow import DECIMAL
from standalone.kernels import BYTES, INTS, LONGS, compiled, readonly, written

_NONE = 255
_VALUES = np.full(256, _NONE, np.uint8)
_VALUES[np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8)] = np.arange(64)
_VALUES.flags.writeable = False


def decoded(strings):
    """A ByteColumn of what the strings say, null where they are; None where one has to be read with care."""
    count = len(strings)
    out = np.empty(int((np.maximum(strings.lengths, 0).astype(np.int64) >> 2).sum()) * 3, np.uint8)
    starts, lengths = np.zeros(count, np.int64), np.empty(count, np.int32)
    size = decode(readonly(strings.data), readonly(strings.starts), readonly(strings.lengths), out, starts, lengths)
    return None if size < 0 else ByteColumn(out[:size], starts, lengths)


def decimals(numbers, scale):
    """The Decimals of one scale whose unscaled numbers these are, each in as few bytes as it needs; null where they are, or empty."""
    starts, lengths = numbers.starts.copy(), numbers.lengths.copy()
    shorten(readonly(numbers.data), starts, lengths)
    absent = lengths <= 0
    lengths[absent] = -1
    unscaled = ByteColumn(numbers.data, starts, lengths).to_arrow().cast(pa.binary())
    scales = pa.array(np.full(len(numbers), scale, np.int32))
    return pa.StructArray.from_arrays([unscaled, scales], fields=list(DECIMAL), mask=pa.array(absent) if absent.any() else None)


@compiled
def decode(data: BYTES, starts: LONGS, lengths: INTS, out: written(BYTES), new_starts: written(LONGS), new_lengths: written(INTS)):
    """Returns the bytes written; -1 where a string is not as every encoder writes it."""
    at = np.int64(0)
    for row in range(len(starts)):
        length = np.int64(lengths[row])
        new_starts[row], new_lengths[row] = at, -1
        if length < 0:
            continue
        if length & 3:
            return -1
        begin, end = at, starts[row] + length
        for place in range(starts[row], end, 4):
            size = _group(data, place, place + 4 == end, out, at)
            if size == 0:
                return -1
            at += size
        new_lengths[row] = at - begin
    return at


@compiled
def _group(data, place, is_last, out, at):
    """Decode four letters; returns how many bytes they are, 0 where they are none."""
    third, fourth = data[place + 2], data[place + 3]
    size = 3
    if is_last and fourth == 61:
        size = 1 if third == 61 else 2
    a, b = np.int64(_VALUES[data[place]]), np.int64(_VALUES[data[place + 1]])
    c = np.int64(_VALUES[third]) if size > 1 else np.int64(0)
    d = np.int64(_VALUES[fourth]) if size > 2 else np.int64(0)
    if (a | b | c | d) > 63:
        return 0
    bits = a << 18 | b << 12 | c << 6 | d
    out[at] = bits >> 16
    if size > 1:
        out[at + 1] = bits >> 8 & 255
    if size > 2:
        out[at + 2] = bits & 255
    return size


@compiled
def shorten(data: BYTES, starts: written(LONGS), lengths: written(INTS)):
    """Leave out the first bytes of numbers in two's complement that say no more than the sign of what follows."""
    for row in range(len(starts)):
        at, length = starts[row], lengths[row]
        while length > 1 and (data[at] == 0 and data[at + 1] < 128 or data[at] == 255 and data[at + 1] >= 128):
            at += 1
            length -= 1
        starts[row], lengths[row] = at, length
