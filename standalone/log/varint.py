"""Zig-zag varints: kernels for the record loops, and plain Python for headers."""

import numpy as np

from standalone.kernels import compiled

INT_BYTES, LONG_BYTES = 5, 10  # maximum size of a 32- and 64-bit varint
BAD = -1  # the position after an invalid varint
_SHORT = [bytes((byte,)) for byte in range(128)]


@compiled
def size_of(value):
    """Size of `value` as a varint."""
    rest = np.uint64((value << 1) ^ (value >> 63))
    size = 1
    while rest > np.uint64(127):
        rest >>= np.uint64(7)
        size += 1
    return size


@compiled
def write(out, at, value):
    """Write `value` at `at`; return the position after it."""
    rest = np.uint64((value << 1) ^ (value >> 63))
    while rest > np.uint64(127):
        out[at] = np.uint8(rest & np.uint64(127)) | np.uint8(128)
        rest >>= np.uint64(7)
        at += 1
    out[at] = np.uint8(rest)
    return at + 1


@compiled
def read(data, at, end, most):
    """Return (value, position after it); position BAD if no varint of at most `most` bytes ends before `end`."""
    if at < end and data[at] < 128:
        byte = np.int64(data[at])
        return (byte >> 1) ^ -(byte & 1), at + 1
    raw = np.uint64(0)
    shift = np.uint64(0)
    last = min(end, at + most)
    while at < last:
        byte = np.uint64(data[at])
        raw |= (byte & np.uint64(127)) << shift
        at += 1
        if byte < np.uint64(128):
            return np.int64(raw >> np.uint64(1)) ^ -np.int64(raw & np.uint64(1)), at
        shift += np.uint64(7)
    return np.int64(0), BAD


def encode(value):
    """One varint as bytes."""
    rest = (value << 1) ^ (value >> 63)
    if rest < 128:
        return _SHORT[rest]
    if rest < 1 << 14:
        return bytes((rest & 127 | 128, rest >> 7))
    out = bytearray()
    while rest > 127:
        out.append(rest & 127 | 128)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def decode(data, at):
    """(value, position after it) of a varint that is known to be whole."""
    raw = shift = 0
    while True:
        byte = data[at]
        raw |= (byte & 127) << shift
        at += 1
        if byte < 128:
            return (raw >> 1) ^ -(raw & 1), at
        shift += 7
