"""Loops over bytes that every part shares, compiled by numba, run without the GIL and kept compiled on disk."""

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

compiled = numba.njit(nogil=True, cache=True, boundscheck=False)
"""The one way to compile a kernel here. Give it a signature-less function: the first call compiles and caches it."""


def readonly(array):
    """The array as kernels take it: without gaps and not writable, so that each is compiled for one kind of array only."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


@intrinsic
def copy(typing_context, target, target_at, source, source_at, count):
    """target[target_at : target_at + count] = source[source_at : ...], as memcpy does it.

    A slice assignment costs seven times as much on short items, for it first asks whether the two arrays overlap.
    """

    def generate(context, builder, signature, arguments):
        target_type, _, source_type, _, _ = signature.args
        into = context.make_array(target_type)(context, builder, arguments[0]).data
        out_of = context.make_array(source_type)(context, builder, arguments[2]).data
        into, out_of = builder.gep(into, [arguments[1]]), builder.gep(out_of, [arguments[3]])
        cgutils.raw_memcpy(builder, into, out_of, arguments[4], 1)
        return context.get_dummy_value()

    return types.void(target, types.intp, source, types.intp, types.intp), generate


@intrinsic
def word_at(typing_context, source, at):
    """The eight bytes from source[at] on as one uint64, the first one lowest."""

    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        word = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(64).as_pointer())
        return builder.load(word, align=1)

    return types.uint64(source, types.intp), generate


@compiled
def gather(data, starts, lengths, out):
    """Copy each slice of `data` behind the other into `out`."""
    at = 0
    for row in range(len(starts)):
        length = lengths[row]
        if length > 0:
            copy(out, at, data, starts[row], length)
            at += length
    return at


@compiled
def join(data, starts, lengths, ending, null, out):
    """As `gather`, with `ending` behind each item, and `null` for a null; returns the bytes written."""
    at = 0
    for row in range(len(starts)):
        length = lengths[row]
        if length < 0:
            copy(out, at, null, 0, len(null))
            at += len(null)
        else:
            copy(out, at, data, starts[row], length)
            at += length
        copy(out, at, ending, 0, len(ending))
        at += len(ending)
    return at


def ready():
    """Whether the kernels are compiled: until then rows do the work."""
    return True
