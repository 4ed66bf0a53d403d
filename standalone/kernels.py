"""Loops over bytes that every part shares, compiled by numba, run without the GIL and kept compiled on disk."""

import numba

compiled = numba.njit(nogil=True, cache=True, boundscheck=False)
"""The one way to compile a kernel here. Give it a signature-less function: the first call compiles and caches it."""


@compiled
def gather(data, starts, lengths, out):
    """Copy each slice of `data` behind the other into `out`."""
    at = 0
    for row in range(len(starts)):
        length = lengths[row]
        if length > 0:
            start = starts[row]
            out[at : at + length] = data[start : start + length]
            at += length
    return at


@compiled
def join(data, starts, lengths, ending, null, out):
    """As `gather`, with `ending` behind each item, and `null` for a null; returns the bytes written."""
    at = 0
    for row in range(len(starts)):
        length = lengths[row]
        if length < 0:
            out[at : at + len(null)] = null
            at += len(null)
        else:
            start = starts[row]
            out[at : at + length] = data[start : start + length]
            at += length
        out[at : at + len(ending)] = ending
        at += len(ending)
    return at
