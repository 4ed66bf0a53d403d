"""The folder of one Java process: its settings, and what it writes on the way. Those of workers that were killed are cleared away.

A folder is locked as long as its worker or its Java process runs; the system takes the lock back whatever becomes of them.
"""

import contextlib
import fcntl
import os
import pathlib
import shutil
import tempfile

from standalone.private import open_private

PREFIX = "connect-spark-"
_LOCK = "lock"


def make():
    """(path, a file that holds its lock until it is closed everywhere)"""
    with contextlib.suppress(OSError):  # another user's, or one that somebody else clears at this moment
        _clear()
    folder = tempfile.mkdtemp(prefix=PREFIX)
    fresh = os.path.join(folder, f"{_LOCK}.new")
    lock = open_private(fresh, "w")  # noqa: SIM115  its owner closes it
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.rename(fresh, os.path.join(folder, _LOCK))  # a lock that can be seen is held
    return folder, lock


def _clear():
    for left in pathlib.Path(tempfile.gettempdir()).glob(f"{PREFIX}*/{_LOCK}"):
        with contextlib.suppress(OSError), open(left, "r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # BlockingIOError while it is in use
            shutil.rmtree(left.parent, ignore_errors=True)
