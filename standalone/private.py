"""Files with permissions for the owner only: the worker's state and buffered records are private."""

import os
import tempfile

MODE = 0o600


def open_private(path, mode, **more):
    """Like `open`; new files are created with permissions for their owner only."""
    return open(path, mode, opener=lambda name, flags: os.open(name, flags, MODE), **more)


def make_private(path):
    """Create an empty private file if it is missing: for libraries that open files themselves."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, MODE))


def write_private(path, text, mode=MODE):
    """Replace the file's content atomically: readers see the old or the new text, even if other threads or processes write it too."""
    descriptor, fresh = tempfile.mkstemp(dir=os.path.dirname(path), prefix=os.path.basename(path))
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(fresh, mode)
        os.replace(fresh, path)
    except BaseException:
        os.unlink(fresh)
        raise
