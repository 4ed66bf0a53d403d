"""Kernels: loops over bytes that every part shares, run as machine code and without the GIL, or as the plain Python that they are.

Nobody waits for a compiler. A kernel whose machine code is there runs that; until then it runs as Python, which is right and slow, and
another process compiles it, and all others. So a kernel must mean the same both ways:
- an array of bytes is a memoryview to Python: its items are ints. Other arrays are numpy's, their items wrap around as in machine code.
- what must wrap is written in np.uint64, what may be negative never goes into np.uint64 as an int of Python.

Who has another way for many records asks `ready()` first.
"""

import functools
import inspect
import logging
import os
import subprocess
import sys
import threading
import time

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import lower_builtin, type_callable

from standalone.machine_code import Code, NotCompiled

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.2  # between two looks for machine code that was not there


# --- What arguments are ---------------------------------------------------------------------------------------------


def _array(kind, dimensions=1):
    return types.Array(kind, dimensions, "C", readonly=True)


def written(array):
    """An array of that kind that the kernel writes to."""
    return array.copy(readonly=False)


LONG, FLAG = types.int64, types.boolean
BYTES, INTS, LONGS, SINGLES, REALS, FLAGS = map(_array, (types.uint8, types.int32, types.int64, types.float32, types.float64, types.boolean))
CODES_BY_ROW, INTS_BY_ROW, LONGS_BY_ROW, REALS_BY_ROW, FLAGS_BY_ROW = (
    _array(kind, 2) for kind in (types.int8, types.int32, types.int64, types.float64, types.boolean)
)


def readonly(array):
    """The array as kernels take it: without gaps and not writable."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


# --- Kernels --------------------------------------------------------------------------------------------------------

_all = []
_absent = {}  # kernels without machine code here -> True; a dict, since others may look while it changes


def compiled(function):
    """The one way to make a kernel. Its arguments are annotated by what they are; one without annotations is for other kernels only."""
    return Kernel(function)


class Kernel:
    def __init__(self, function):
        functools.update_wrapper(self, function)
        self.function = function
        self.name = f"{function.__module__}.{function.__qualname__}"
        kinds = [each.annotation for each in inspect.signature(function).parameters.values()]
        self.signature = None if inspect.Parameter.empty in kinds else tuple(kinds)
        self._look_at = 0.0
        self._was_seen = False
        self._run = self._first if self.signature else function
        _all.append(self)
        if self.signature:
            _absent[self] = True

    def __call__(self, *arguments):
        return self._run(*arguments)

    @property
    def _numba_type_(self):
        """So numba sees what a kernel calls."""
        return types.Dispatcher(self._dispatcher)

    @functools.cached_property
    def _dispatcher(self):
        return numba.njit(nogil=True, boundscheck=False)(self.function)

    @functools.cached_property
    def _code(self):
        return Code(self.function, self.name, self.signature)

    def plain(self, *arguments):
        """The same as Python does it."""
        with np.errstate(all="ignore"):
            return self.function(*map(_as_python, arguments))

    def is_there(self):
        """Whether its machine code can be had at once."""
        if not self._was_seen:
            self._was_seen = self not in _absent or self._code.path() is not None
        return self._was_seen

    def load(self):
        """Have it run as machine code from now on, if that is there; returns whether."""
        try:
            self._compile()
        except NotCompiled:  # it was, and is gone or damaged
            self._was_seen = False
            return False
        return True

    def compile(self):
        """The same, compiled here and now where it is not there yet."""
        self._code.may_compile = True
        self._compile()

    def _compile(self):
        with _loading:
            if self in _absent:
                self._dispatcher._cache = self._code
                self._dispatcher.compile(self.signature)
                self._dispatcher.disable_compile()
                self._run = self._machine
                del _absent[self]

    def _first(self, *arguments):
        now = time.monotonic()
        if now >= self._look_at:
            if self.is_there() and self.load():
                return self._run(*arguments)
            compile_elsewhere()
            self._look_at = now + LOOK_SECONDS
        return self.plain(*arguments)

    def _machine(self, *arguments):
        try:
            return self._dispatcher(*arguments)
        except TypeError:  # an array with gaps, or of other numbers: seldom, so not worth machine code of its own
            return self._dispatcher(*map(_fitting, arguments, self.signature))


def _as_python(argument):
    return memoryview(argument) if isinstance(argument, np.ndarray) and argument.dtype == np.uint8 else argument


def _fitting(argument, kind):
    if not isinstance(kind, types.Array):
        return argument
    return np.ascontiguousarray(argument, str(kind.dtype).replace("boolean", "bool")) if not kind.mutable else argument


_loading = threading.RLock()


def kernels():
    """All kernels of the modules that are imported, those first that were defined first."""
    return list(_all)


# --- Machine code, made elsewhere -----------------------------------------------------------------------------------


class _Elsewhere:
    """The process that compiles, if there is one: `python -m standalone.warm_up`. It ends when this one does."""

    def __init__(self):
        self.lock = threading.Lock()
        self.process = None
        self.asked = set()  # the kernels that it was started for: it is not started twice for the same
        self.look_at = 0.0


_elsewhere = _Elsewhere()


def ready():
    """Whether the machine code of every kernel that is imported is there. Where not, it is being compiled; this never waits for it."""
    unseen = [kernel for kernel in list(_absent) if not kernel._was_seen]
    if not unseen:
        return True
    now = time.monotonic()
    if now < _elsewhere.look_at:
        return False
    if all(kernel.is_there() for kernel in unseen):
        return True
    compile_elsewhere()
    _elsewhere.look_at = now + LOOK_SECONDS
    return False


def compile_elsewhere():
    """Have another process compile what is not there, at the lowest priority."""
    if not _elsewhere.lock.acquire(blocking=False):
        return  # another thread is at it
    try:
        if _elsewhere.process is not None:
            return
        absent = {kernel for kernel in list(_absent) if not kernel.is_there()} - _elsewhere.asked
        if absent:
            _elsewhere.asked |= absent
            _elsewhere.process = _started(sorted({kernel.function.__module__ for kernel in absent}))
            threading.Thread(target=_follow, args=(_elsewhere, _elsewhere.process), name="compiler", daemon=True).start()
    except OSError as error:
        _complain(f"no process could be started: {error}")
    finally:
        _elsewhere.lock.release()


def _started(modules):
    return subprocess.Popen(
        [sys.executable, "-m", "standalone.warm_up", "--for-parent", *modules],
        stdin=subprocess.PIPE,  # closed when we end, however we do
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)},
        start_new_session=True,
    )


def _follow(elsewhere, process):
    said = process.stderr.read().decode(errors="replace").strip()
    if process.wait():
        _complain(said[-500:] or f"it ended with {process.returncode}")
    process.stdin.close()
    process.stderr.close()
    elsewhere.process = None


def _complain(reason):
    log.warning(
        "Records are processed slowly, in plain Python, since what is to be compiled could not be: %s. "
        "See what `python -m standalone.warm_up` says; the worker looks for compiled code at its next start, too.",
        reason,
    )


# --- What numba knows and Python says otherwise ---------------------------------------------------------------------


def copy(target, target_at, source, source_at, count):
    """target[target_at : target_at + count] = source[source_at : ...], as memcpy does it.

    A slice assignment costs machine code seven times as much on short items, for it first asks whether the two arrays overlap.
    """
    target[target_at : target_at + count] = source[source_at : source_at + count]


@type_callable(copy)
def _type_of_copy(context):
    def typed(target, target_at, source, source_at, count):
        return types.void(target, types.intp, source, types.intp, types.intp)

    return typed


@lower_builtin(copy, types.Array, types.intp, types.Array, types.intp, types.intp)
def _lower_copy(context, builder, signature, arguments):
    target_type, _, source_type, _, _ = signature.args
    into = context.make_array(target_type)(context, builder, arguments[0]).data
    out_of = context.make_array(source_type)(context, builder, arguments[2]).data
    into, out_of = builder.gep(into, [arguments[1]]), builder.gep(out_of, [arguments[3]])
    cgutils.raw_memcpy(builder, into, out_of, arguments[4], 1)
    return context.get_dummy_value()


def word_at(source, at):
    """The eight bytes from source[at] on as one uint64, the first one lowest."""
    return np.uint64(int.from_bytes(source[at : at + 8], "little"))


@type_callable(word_at)
def _type_of_word_at(context):
    def typed(source, at):
        return types.uint64(source, types.intp)

    return typed


@lower_builtin(word_at, types.Array, types.intp)
def _lower_word_at(context, builder, signature, arguments):
    data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
    word = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(64).as_pointer())
    return builder.load(word, align=1)


# --- Kernels of byte columns ----------------------------------------------------------------------------------------


@compiled
def gather(data: BYTES, starts: LONGS, lengths: INTS, out: written(BYTES)):
    """Copy each slice of `data` after the other into `out`."""
    at = 0
    for row in range(len(starts)):
        length = lengths[row]
        if length > 0:
            copy(out, at, data, starts[row], length)
            at += length
    return at


@compiled
def join(data: BYTES, starts: LONGS, lengths: INTS, ending: BYTES, null: BYTES, out: written(BYTES)):
    """As `gather`, with `ending` after each item, and `null` for a null; returns the bytes written."""
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
