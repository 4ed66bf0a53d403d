"""Kernels for little-endian numbers of four and eight bytes, as in Avro and Protobuf."""

import numpy as np

from standalone.kernels import compiled


@compiled
def word(data, at):
    """Read four bytes as an unsigned number."""
    return np.int64(data[at]) | np.int64(data[at + 1]) << 8 | np.int64(data[at + 2]) << 16 | np.int64(data[at + 3]) << 24


@compiled
def long_word(data, at):
    """Read eight bytes as a signed number."""
    high = word(data, at + 4)
    if high > 0x7FFFFFFF:
        high -= 0x100000000
    return high * 0x100000000 + word(data, at)


@compiled
def put_word(out, at, number):
    """Write the lowest four bytes of a number."""
    out[at] = number & 0xFF
    out[at + 1] = number >> 8 & 0xFF
    out[at + 2] = number >> 16 & 0xFF
    out[at + 3] = number >> 24 & 0xFF


@compiled
def put_long_word(out, at, number):
    put_word(out, at, number & 0xFFFFFFFF)
    put_word(out, at + 4, number >> 32 & 0xFFFFFFFF)
