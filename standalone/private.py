"""Private files, such as the worker's state and spooled records: other users of the machine must not read them."""

import os
import tempfile

MODE = 0o600


def open_private(path, mode, **more):
    """Like `open`; a file that this creates is readable and writable by its owner only, from the beginning."""
    return open(path, mode, opener=lambda name, flags: os.open(name, flags, MODE), **more)


def make_private(path):
    """Create an empty private file if it does not exist: for libraries that open files themselves."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, MODE))


def write_private(path, text, mode=MODE):
    """Write a file atomically: readers see either the old or the new text, even if several threads or processes write it."""
    descriptor, fresh = tempfile.mkstemp(dir=os.path.dirname(path), prefix=os.path.basename(path))
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(fresh, mode)
        os.replace(fresh, path)
    except BaseException:
        os.unlink(fresh)
        raise
