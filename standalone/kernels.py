"""Kernels: shared loops over bytes that run as machine code without the GIL, or as plain Python.

No call waits for the compiler. A kernel runs as machine code if that is cached; otherwise it runs as Python, which is correct but slow,
while another process compiles all kernels. So a kernel must behave the same both ways:
- in Python an array of bytes is a memoryview, whose items are ints. Other arrays are numpy arrays, whose items wrap as in machine code.
- values that must wrap are np.uint64; a Python int that may be negative is never converted to np.uint64.

Callers with an alternative for many records check `ready()` first.
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

LOOK_SECONDS = 0.2  # between two checks for missing machine code


# --- Argument types -------------------------------------------------------------------------------------------------


def _array(kind, dimensions=1):
    return types.Array(kind, dimensions, "C", readonly=True)


def written(array):
    """An array type that the kernel writes to."""
    return array.copy(readonly=False)


LONG, FLAG = types.int64, types.boolean
BYTES, INTS, LONGS, SINGLES, REALS, FLAGS = map(_array, (types.uint8, types.int32, types.int64, types.float32, types.float64, types.boolean))
CODES_BY_ROW, INTS_BY_ROW, LONGS_BY_ROW, REALS_BY_ROW, FLAGS_BY_ROW = (
    _array(kind, 2) for kind in (types.int8, types.int32, types.int64, types.float64, types.boolean)
)


def readonly(array):
    """The array as a kernel argument: contiguous and read-only."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


# --- Kernels --------------------------------------------------------------------------------------------------------

_all = []
_absent = {}  # kernels without machine code -> True; a dict, because other threads read it while it changes


def compiled(function):
    """Decorator that makes a kernel. Annotations give the argument types; only other kernels can call one without annotations."""
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
        """The kernel as numba sees it when another kernel calls it."""
        return types.Dispatcher(self._dispatcher)

    @functools.cached_property
    def _dispatcher(self):
        return numba.njit(nogil=True, boundscheck=False)(self.function)

    @functools.cached_property
    def _code(self):
        return Code(self.function, self.name, self.signature)

    def plain(self, *arguments):
        """Run the kernel as Python."""
        with np.errstate(all="ignore"):
            return self.function(*map(_as_python, arguments))

    def is_there(self):
        """Whether its machine code is cached."""
        if not self._was_seen:
            self._was_seen = self not in _absent or self._code.path() is not None
        return self._was_seen

    def load(self):
        """Load cached machine code; returns whether there was any."""
        try:
            self._compile()
        except NotCompiled:  # it was cached, but is deleted or damaged
            self._was_seen = False
            return False
        return True

    def compile(self):
        """Load the machine code; compile it in this process if it is not cached."""
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
        except TypeError:  # a non-contiguous array or another dtype: too rare to compile for
            return self._dispatcher(*map(_fitting, arguments, self.signature))


def _as_python(argument):
    return memoryview(argument) if isinstance(argument, np.ndarray) and argument.dtype == np.uint8 else argument


def _fitting(argument, kind):
    if not isinstance(kind, types.Array):
        return argument
    return np.ascontiguousarray(argument, str(kind.dtype).replace("boolean", "bool")) if not kind.mutable else argument


_loading = threading.RLock()


def kernels():
    """All kernels of the imported modules, in order of definition."""
    return list(_all)


# --- Compilation in another process ---------------------------------------------------------------------------------


class _Elsewhere:
    """The compiler process, if any: `python -m standalone.warm_up`. It ends with this process."""

    def __init__(self):
        self.lock = threading.Lock()
        self.process = None
        self.asked = set()  # kernels that it was started for: it is started only once for each
        self.look_at = 0.0


_elsewhere = _Elsewhere()


def ready():
    """Whether the machine code of all imported kernels is cached. If not, starts its compilation without waiting for it."""
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
    """Start a process with the lowest priority that compiles missing machine code."""
    if not _elsewhere.lock.acquire(blocking=False):
        return  # another thread is already doing this
    try:
        if _elsewhere.process is not None:
            return
        absent = {kernel for kernel in list(_absent) if not kernel.is_there()} - _elsewhere.asked
        if absent:
            _elsewhere.asked |= absent
            _elsewhere.process = _started(sorted({kernel.function.__module__ for kernel in absent}))
            threading.Thread(target=_follow, args=(_elsewhere, _elsewhere.process), name="compiler", daemon=True).start()
    except OSError as error:
        _complain(f"the compiler process could not be started: {error}")
    finally:
        _elsewhere.lock.release()


def _started(modules):
    return subprocess.Popen(
        [sys.executable, "-m", "standalone.warm_up", "--for-parent", *modules],
        stdin=subprocess.PIPE,  # closed when this process ends, even by SIGKILL
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
        "Kernels could not be compiled, so records are processed slowly in plain Python: %s. "
        "Run `python -m standalone.warm_up` to see the error; the worker looks for compiled code again at its next start.",
        reason,
    )


# --- Operations with separate forms for numba and Python ------------------------------------------------------------


def copy(target, target_at, source, source_at, count):
    """target[target_at : target_at + count] = source[source_at : ...], as by memcpy.

    In machine code a slice assignment takes seven times as long for short items, because it first checks whether the arrays overlap.
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
    """The eight bytes from source[at] on as one uint64, little-endian."""
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
    """Copy the slices of `data` to `out` one after another."""
    at = 0
    for row in range(len(starts)):
        length = lengths[row]
        if length > 0:
            copy(out, at, data, starts[row], length)
            at += length
    return at


@compiled
def join(data: BYTES, starts: LONGS, lengths: INTS, ending: BYTES, null: BYTES, out: written(BYTES)):
    """Like `gather`, with `ending` after each item and `null` for nulls; returns the number of bytes written."""
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
