"""Files that are the worker's alone: what it remembers, and records on their way, are for nobody else on the machine to read."""

import os
import tempfile

MODE = 0o600


def open_private(path, mode, **more):
    """As `open`; a file that it makes can be read and written by its owner alone, from its first moment."""
    return open(path, mode, opener=lambda name, flags: os.open(name, flags, MODE), **more)


def make_private(path):
    """Make that file, empty, if there is none: for libraries that open files in their own way."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, MODE))


def write_private(path, text, mode=MODE):
    """Have that file hold the text, all at once: whoever else writes it meanwhile, in whatever thread or process, readers find one or the other."""
    descriptor, fresh = tempfile.mkstemp(dir=os.path.dirname(path), prefix=os.path.basename(path))
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(fresh, mode)
        os.replace(fresh, path)
    except BaseException:
        os.unlink(fresh)
        raise
