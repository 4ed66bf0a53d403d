"""Returns unused memory to the system while the worker is almost idle.

- The compiler's code. numba maps all of LLVM, a file of 150 MB, to load machine code that was compiled earlier. Its pages are not needed
  afterwards; if one is, the system maps it again.
- Freed memory that the C library still holds.
"""

import contextlib
import ctypes
import time

SECONDS = 10.0  # between two checks
LITTLE = 0.1  # of a core
WORTH_SECONDS = 0.5  # of CPU time since memory was last returned

_COMPILER = "/libllvmlite"
_MADV_DONTNEED = 4


class Resident:
    """Checked every SECONDS."""

    def __init__(self, cpu=time.process_time, give_back=None):
        self._cpu = cpu
        self._give_back = give_back or give_back_all
        self._then = cpu()
        self._given_back_at = 0.0

    def look(self):
        then, self._then = self._then, self._cpu()
        if self._then - then < LITTLE * SECONDS and self._then - self._given_back_at > WORTH_SECONDS:
            self._give_back()
            self._given_back_at = self._cpu()


def give_back_all():
    libc = ctypes.CDLL(None)
    for begin, end in unchanged_parts(_COMPILER):
        libc.madvise(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), _MADV_DONTNEED)
    with contextlib.suppress(AttributeError):  # a C library that is not glibc
        libc.malloc_trim(0)


def unchanged_parts(library):
    """[(begin, end)] of the read-only mappings of files with that name whose pages are unchanged."""
    found, mapping = [], None
    with contextlib.suppress(OSError), open("/proc/self/smaps") as smaps:
        for line in smaps:
            if line[0] in "0123456789abcdef":
                places, rights, _, _, _, *path = line.split(maxsplit=5)
                is_it = path and library in path[0] and "w" not in rights
                mapping = tuple(int(place, 16) for place in places.split("-")) if is_it else None
            elif mapping and line.startswith("Anonymous:"):
                if line.split()[1] == "0":
                    found.append(mapping)
                mapping = None
    return found
