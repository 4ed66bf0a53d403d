"""Kernels of numbers of four and eight bytes, the lowest byte first, as Avro and Protobuf have them."""

import numpy as np

from standalone.kernels import compiled


@compiled
def word(data, at):
    """Four bytes as a number from 0 on."""
    return np.int64(data[at]) | np.int64(data[at + 1]) << 8 | np.int64(data[at + 2]) << 16 | np.int64(data[at + 3]) << 24


@compiled
def long_word(data, at):
    """Eight bytes as a number with a sign."""
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
