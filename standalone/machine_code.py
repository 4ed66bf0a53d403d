"""Where the machine code of kernels is kept: a file a kernel, named by all that the code was made from.

A name that is there is therefore the right code, whoever wrote it and whenever; what changed its meaning, in whichever file, has another
name. Files appear whole or not at all, so that any number of processes may look while another one compiles.
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

FOR_A_WHILE = "unpacked-for-a-while"  # a file beside a package that is not to stay where it is, as on an executor: its code is kept elsewhere
_PLAIN = (bool, int, float, complex, str, bytes, tuple, type(None), np.generic)


def folders():
    """Where to look for code, the best place first: NUMBA_CACHE_DIR alone, or beside the package, the user's cache, the temporary folder.

    It is written to the first one that takes it, so that what a set-up compiled serves users who may only read it.
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
    """The folder that new code is written to. Raises OSError where there is none."""
    for folder in folders():
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK) and _is_safe(folder):
            return folder
    raise OSError(f"Compiled code can be kept in none of {', '.join(map(str, folders()))}: set NUMBA_CACHE_DIR to a folder that can be written.")


@contextlib.contextmanager
def writing():
    """Within it no other process writes code: it waits for one that does. Raises OSError where code can be kept nowhere."""
    with open(writable_folder() / ".kernels.lock", "a") as lock:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _is_safe(folder):
    """Whether only those can put code there whose code we run anyhow: it is run as it is found."""
    found = folder.stat()
    return found.st_uid in (0, os.getuid(), os.stat(__file__).st_uid) and not found.st_mode & stat.S_IWOTH


class Code(_Cache):
    """The machine code of one function for arguments of one signature. Where there is none `load_overload` says so by NotCompiled, unless
    this process `may_compile`: numba would continue to compile it."""

    may_compile = False

    def __init__(self, function, label, signature):
        self._impl = CompileResultCacheImpl.__new__(CompileResultCacheImpl)  # how to make bytes of it; where to is our business
        self._damaged = set()
        self._prefix = f"{label}.{_host()[:8]}."
        self._name = self._prefix + _hash(_host(), str(signature), meaning(function))[:24]

    @property
    def cache_path(self):
        return str(self.path() or "")

    def path(self):
        """Its file, or None while there is none."""
        for folder in folders():
            path = folder / self._name
            with contextlib.suppress(OSError):  # a folder that we may not look into has nothing for us
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
        """To be called within `writing`."""
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
    """There is no machine code of a kernel yet."""


def meaning(function, seen=()):
    """A hash of what a kernel is compiled from: its own code and constants, and, by their meaning, the kernels and values that it names."""
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
    """What else the code depends on: the processor, Python, the compiler, and how we use that."""
    ours = [pathlib.Path(__file__).with_name(name).read_text() for name in ("machine_code.py", "kernels.py")]
    processor = repr(cpu_target.target_context.codegen().magic_tuple())
    versions = [platform.python_version(), numba.__version__, llvmlite.__version__, np.__version__]
    return _hash(processor, platform.python_implementation(), *versions, *ours)


def _hash(*parts):
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
