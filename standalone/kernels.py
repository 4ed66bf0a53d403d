"""Loops over bytes that every part shares, compiled by numba, run without the GIL and kept compiled on disk."""

import numba
import numpy as np

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


def concat(columns):
    """Several ByteColumns of one buffer or of many as one."""
    from standalone.wire import ByteColumn

    columns = list(columns)
    if len(columns) == 1:
        return columns[0]
    if all(column.data is columns[0].data for column in columns):
        data, bases = columns[0].data, [0] * len(columns)
    else:
        columns = [column.compact() for column in columns]
        bases = np.cumsum([0] + [len(column.data) for column in columns[:-1]]).tolist()
        data = np.concatenate([column.data for column in columns])
    starts = np.concatenate([column.starts + base for column, base in zip(columns, bases)])
    return ByteColumn(data, starts, np.concatenate([column.lengths for column in columns]))
