"""Lines in a buffer: where each begins and how long it is, found without copying a byte.

A line ends at LF, CR LF or a lone CR, as in Java. A CR that is the last byte waits: an LF may follow.
`split` takes the plain way for a few kilobytes and a compiled kernel above, so that the first lines need no compiler.
"""

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

LF, CR = 10, 13
SMALL_BYTES = 8192
_BLOCK = 64

_compiled = numba.njit(nogil=True, cache=True, boundscheck=False)


def split(data, begin=0, final=False):
    """(starts, lengths, end) of the finished lines in data[begin:]; `end` is where the first unfinished one begins.

    `final`: nothing will follow, so that the rest is a line, too.
    """
    if len(data) - begin <= SMALL_BYTES:
        starts, lengths, end = _split_small(data, begin)
    else:
        most = _count_ends(data, begin)
        starts, lengths = np.empty(most, np.int64), np.empty(most, np.int32)
        count, end = _split(data, begin, starts, lengths)
        starts, lengths = starts[:count], lengths[:count]
    if final and end < len(data):
        rest = len(data) - end
        starts = np.append(starts, np.int64(end))
        lengths = np.append(lengths, np.int32(rest - 1 if data[-1] == CR else rest))
        end = len(data)
    return starts, lengths, end


def first_end(data, begin=0):
    """Where the line that begins at `begin` is over: (its length, where the next one begins), or None if that is not in sight."""
    seen = data[begin:].tobytes()
    ends = [at for at in (seen.find(b"\n"), seen.find(b"\r")) if at >= 0]
    if not ends or (seen[min(ends)] == CR and min(ends) == len(seen) - 1):
        return None
    at = min(ends)
    return at, begin + at + (2 if seen[at : at + 2] == b"\r\n" else 1)


def _split_small(data, begin):
    part = data[begin:]
    ends = np.flatnonzero((part == LF) | (part == CR))
    if len(ends) and ends[-1] == len(part) - 1 and part[-1] == CR:
        ends = ends[:-1]
    # The LF of a CR LF ends nothing: its line was over at the CR, and the next one begins behind the LF.
    behind_cr = (part[ends] == LF) & (ends > 0) & (part[ends - 1] == CR)
    next_starts = ends + 1
    next_starts[:-1][behind_cr[1:]] += 1
    ends, next_starts = ends[~behind_cr], next_starts[~behind_cr]
    starts = np.empty(len(ends), np.int64)
    starts[:1] = 0
    starts[1:] = next_starts[:-1]
    end = int(next_starts[-1]) if len(ends) else 0
    return starts + begin, (ends - starts).astype(np.int32), end + begin


# --- Kernels: 64 bytes at a time become a word with a bit for each byte that is a line end -----------------------------


@intrinsic
def _ends_mask(typing, data, at):
    """A bit for each of the 64 bytes from `at` on that is LF or CR; LLVM makes vector compares of it."""

    def generate(context, builder, signature, args):
        array = context.make_array(signature.args[0])(context, builder, args[0])
        vector = ir.VectorType(ir.IntType(8), _BLOCK)
        pointer = builder.bitcast(builder.gep(array.data, [args[1]]), vector.as_pointer())
        block = builder.load(pointer, align=1)
        equal = [builder.icmp_unsigned("==", block, vector([ir.IntType(8)(end)] * _BLOCK)) for end in (LF, CR)]
        return builder.bitcast(builder.or_(*equal), ir.IntType(64))

    return types.uint64(data, types.int64), generate


@intrinsic
def _lowest_bit(typing, mask):
    def generate(context, builder, signature, args):
        return builder.cttz(args[0], ir.IntType(1)(1))

    return types.uint64(types.uint64), generate


@intrinsic
def _bits(typing, mask):
    def generate(context, builder, signature, args):
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), generate


@_compiled
def _count_ends(data, begin):
    """LFs and CRs: at most so many lines end here."""
    count = 0
    at = begin
    while at + _BLOCK <= len(data):
        count += np.int64(_bits(_ends_mask(data, np.int64(at))))
        at += _BLOCK
    while at < len(data):
        count += data[at] == LF or data[at] == CR
        at += 1
    return count


@_compiled
def _split(data, begin, starts, lengths):
    size = len(data)
    row = 0
    start = begin
    block = begin
    while block < size:
        if block + _BLOCK <= size:
            mask = _ends_mask(data, np.int64(block))
        else:
            mask = np.uint64(0)
            for bit in range(size - block):
                if data[block + bit] == LF or data[block + bit] == CR:
                    mask |= np.uint64(1) << np.uint64(bit)
        while mask:
            at = block + np.int64(_lowest_bit(mask))
            mask &= mask - np.uint64(1)
            if at < start:
                continue  # the LF of a CR LF
            following = at + 1
            if data[at] == CR:
                if following == size:
                    return row, start
                if data[following] == LF:
                    following += 1
            starts[row] = start
            lengths[row] = at - start
            row += 1
            start = following
        block += _BLOCK
    return row, start
