"""Which files and tests take the processor's time: CONNECT_TEST_CPU=FILE gets a line for each file, and for each test of half a second or more.

    CONNECT_TEST_CPU=/tmp/cpu scripts/test -n 0 tests/log && sort -rn /tmp/cpu

They are CPU seconds of this process and of all below it, servers as well, so that in one process (-n 0) a server's work counts where it was
asked for. Several processes of a run each write their own lines.
"""

import contextlib
import ctypes
import os
import pathlib
import time

import pytest

LONG_SECONDS = 0.5
_TICKS = os.sysconf("SC_CLK_TCK")
_SET_CHILD_SUBREAPER = 36  # prctl: a server that left its parent stays below this process


def tree_seconds():
    """CPU seconds of this process, of all below it, and of those that they have waited for."""
    parents, ticks = {}, {}
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            pid = int(path.parent.name)
            parents[pid], ticks[pid] = int(fields[1]), sum(map(int, fields[11:15]))
    tree = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in tree} - tree:
        tree |= more
    return sum(ticks[pid] for pid in tree) / _TICKS


class Cpu:
    def __init__(self, path):
        self._path, self._known, self._files = path, 0, {}

    def pytest_collection_finish(self):
        self._note("collection")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item, nextitem):
        file, before, began = item.nodeid.partition("::")[0], self._known, time.monotonic()
        result = yield
        is_long = time.monotonic() - began >= LONG_SECONDS
        if is_long or nextitem is None or not nextitem.nodeid.startswith(f"{file}::"):
            self._note(file)
            if is_long:  # with what the short ones since the last such line took
                self._files[item.nodeid] = self._known - before
        return result

    def pytest_sessionfinish(self):
        self._note("end")
        with self._path.open("a") as file:
            file.writelines(f"{seconds:8.2f} {name}\n" for name, seconds in self._files.items())

    def _note(self, name):
        before, self._known = self._known, tree_seconds()
        self._files[name] = self._files.get(name, 0) + self._known - before


def pytest_configure(config):
    path = os.environ.get("CONNECT_TEST_CPU")
    if path:
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1)
        config.pluginmanager.register(Cpu(pathlib.Path(path)), "cpu")
