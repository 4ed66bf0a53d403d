"""The cache of the kernels' machine code: one file per kernel, named by a hash of all that the code depends on.

So a file with the right name always contains the right code; any change to the source changes the name. Files are created atomically, so
processes can read the cache while another one compiles.
"""

import contextlib
import fcntl
import functools
import hashlib
import os
import pathlib
import pickle
import platform
import stat
import tempfile
import types

import llvmlite
import numba
import numpy as np
from numba.core.caching import CompileResultCacheImpl, _Cache
from numba.core.registry import cpu_target
from numba.core.serialize import dumps

FOR_A_WHILE = "unpacked-for-a-while"  # marks a package unpacked temporarily, as on an executor: its code is cached elsewhere
_PLAIN = (bool, int, float, complex, str, bytes, tuple, type(None), np.generic)


def folders():
    """The cache folders in order of preference: only NUMBA_CACHE_DIR, or the package's folder, the user's cache, the temporary folder.

    Code is written to the first writable one, so code compiled at installation serves users with read access only.
    """
    if named := os.environ.get("NUMBA_CACHE_DIR"):
        return [pathlib.Path(named)]
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    package = pathlib.Path(__file__).parent
    return [
        *([] if (package.parent / FOR_A_WHILE).exists() else [package / "__pycache__"]),
        pathlib.Path(cache) / "connect-standalone" / "kernels",
        pathlib.Path(tempfile.gettempdir()) / f"connect-standalone-{os.getuid()}",
    ]


def writable_folder():
    """The folder that new code is written to. Raises OSError if none is writable."""
    for folder in folders():
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK) and _is_safe(folder):
            return folder
    raise OSError(f"None of {', '.join(map(str, folders()))} is writable for compiled code: set NUMBA_CACHE_DIR to a writable folder.")


@contextlib.contextmanager
def writing():
    """Lock the cache against writes of other processes, waiting for the lock. Raises OSError if no folder is writable."""
    with open(writable_folder() / ".kernels.lock", "a") as lock:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _is_safe(folder):
    """Whether only trusted users can write to the folder: cached code is executed without further checks."""
    found = folder.stat()
    return found.st_uid in (0, os.getuid(), os.stat(__file__).st_uid) and not found.st_mode & stat.S_IWOTH


class Code(_Cache):
    """The machine code of one function for one signature. If it is missing, `load_overload` raises NotCompiled unless this process
    `may_compile`; numba then compiles it."""

    may_compile = False

    def __init__(self, function, label, signature):
        self._impl = CompileResultCacheImpl.__new__(CompileResultCacheImpl)  # serializes the code; this class decides where it is stored
        self._damaged = set()
        self._prefix = f"{label}.{_host()[:8]}."
        self._name = self._prefix + _hash(_host(), str(signature), meaning(function))[:24]

    @property
    def cache_path(self):
        return str(self.path() or "")

    def path(self):
        """Its file, or None if it is not cached."""
        for folder in folders():
            path = folder / self._name
            with contextlib.suppress(OSError):  # an unreadable folder contains nothing usable
                if path.exists() and path not in self._damaged and _is_safe(folder):
                    return path
        return None

    def load_overload(self, sig, target_context):
        target_context.refresh()
        path = self.path()
        if path is not None:
            try:
                return self._impl.rebuild(target_context, pickle.loads(path.read_bytes()))
            except Exception:  # whatever damage raises
                self._damaged.add(path)
                with contextlib.suppress(OSError):
                    path.unlink()
        if not self.may_compile:
            raise NotCompiled(self._name)
        return None

    def save_overload(self, sig, data):
        """Call this inside `writing`."""
        folder = writable_folder()
        making = folder / f".{self._name}"
        making.write_bytes(dumps(self._impl.reduce(data)))
        making.replace(folder / self._name)
        self._damaged.discard(folder / self._name)
        for old in folder.glob(f"{self._prefix}*"):
            if old.name != self._name:
                old.unlink(missing_ok=True)

    def enable(self):
        pass

    def disable(self):
        pass

    def flush(self):
        pass


class NotCompiled(Exception):
    """A kernel has no machine code yet."""


def meaning(function, seen=()):
    """A hash of a kernel's source: its code and constants, and the kernels and values that it references."""
    code, names = function.__code__, function.__code__.co_names
    parts = [code.co_code.hex(), repr(code.co_consts), repr(names), repr(code.co_varnames), repr(function.__defaults__)]
    found = [(name, function.__globals__.get(name)) for name in names]
    modules = [value for _, value in found if isinstance(value, types.ModuleType)]
    found += [(name, vars(module).get(name)) for module in modules if module is not np for name in names]
    for name, value in found:
        if isinstance(value, np.ndarray):
            parts.append(f"{name} {value.dtype} {value.shape} {value.tobytes().hex()}")
        elif isinstance(value, _PLAIN):
            parts.append(f"{name} {value!r}")
        elif (inner := getattr(value, "function", None)) is not None and inner not in seen:
            parts.append(f"{name} {meaning(inner, (*seen, function))}")
    return _hash(*parts)


@functools.cache
def _host():
    """The other dependencies of the code: processor, Python, compiler and its options."""
    ours = [pathlib.Path(__file__).with_name(name).read_text() for name in ("machine_code.py", "kernels.py")]
    processor = repr(cpu_target.target_context.codegen().magic_tuple())
    versions = [platform.python_version(), numba.__version__, llvmlite.__version__, np.__version__]
    return _hash(processor, platform.python_implementation(), *versions, *ours)


def _hash(*parts):
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
