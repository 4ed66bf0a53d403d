"""A server that all processes of a run use: the first that asks starts it, the last that leaves stops it.

The processes are those of xdist; one alone is first and last. Who uses the server holds a shared lock on a file, which the system takes
back whatever happens to the process; who leaves and can have the lock alone was the last.
"""

import contextlib
import fcntl
import json
import os
import pathlib
import shutil
import signal
import time

import pytest

from tests.servers.server import Unavailable

STOP_SECONDS = 30


def run_folder(tmp_path_factory):
    """A folder that the processes of this run share, and no other run; pytest clears it away."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@contextlib.contextmanager
def skipped_where_unavailable():
    """Who needs a server that cannot be had here is skipped; where servers are required, tests/suite/honest.py makes a failure of that."""
    try:
        yield
    except Unavailable as reason:
        pytest.skip(str(reason))


@contextlib.contextmanager
def shared_server(tmp_path_factory, server):
    """What a Server (tests/servers/server.py) tells of itself; whichever process is first starts it."""
    assert os.environ.get("CONNECT_TEST_QUICK") != "1", f"scripts/quick starts no server, and {server.name} is asked for: tests/suite/quick.py must know of it"
    with skipped_where_unavailable(), shared(run_folder(tmp_path_factory), server.name, lambda: server.start().handed_over()) as told:
        yield told


@contextlib.contextmanager
def shared(folder, name, start):
    """What `start()` reports the server, a dict with its "pid" and the "folder" to remove after it; it is called in one process only."""
    told = folder / f"{name}.json"
    with open(folder / f"{name}.lock", "w") as gate, open(folder / f"{name}.users", "w") as users:
        with _locked(gate):
            if not (told.exists() and is_running(json.loads(told.read_text())["pid"])):
                told.write_text(json.dumps(start()))
            fcntl.flock(users, fcntl.LOCK_SH)
        try:
            yield json.loads(told.read_text())
        finally:
            with _locked(gate):
                fcntl.flock(users, fcntl.LOCK_UN)
                if _is_the_last(users):
                    _stop(**json.loads(told.read_text()))
                    told.unlink()


@contextlib.contextmanager
def _locked(file):
    fcntl.flock(file, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)


def _is_the_last(users):
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_running(pid):
    """Whether there is such a process that has not ended: one that nobody waited for has."""
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def _stop(pid, folder, **_):
    for number in (signal.SIGTERM, signal.SIGKILL):
        if not is_running(pid):
            break
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        deadline = time.monotonic() + STOP_SECONDS
        while is_running(pid) and time.monotonic() < deadline:
            time.sleep(0.02)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)  # where we started it ourselves
    shutil.rmtree(folder, ignore_errors=True)
