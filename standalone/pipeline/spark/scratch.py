"""The scratch folder of a Java process: its settings and temporary files. Folders of killed workers are deleted.

A folder is locked while its worker or Java process runs; the kernel releases the lock however they end.
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
    """Return (path, a file that holds the lock until closed by every process)."""
    with contextlib.suppress(OSError):  # another user's, or being deleted by another process
        _clear()
    folder = tempfile.mkdtemp(prefix=PREFIX)
    fresh = os.path.join(folder, f"{_LOCK}.new")
    lock = open_private(fresh, "w")  # noqa: SIM115  its owner closes it
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.rename(fresh, os.path.join(folder, _LOCK))  # the lock file becomes visible only once it is locked
    return folder, lock


def _clear():
    for left in pathlib.Path(tempfile.gettempdir()).glob(f"{PREFIX}*/{_LOCK}"):
        with contextlib.suppress(OSError), open(left, "r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # BlockingIOError while it is in use
            shutil.rmtree(left.parent, ignore_errors=True)
