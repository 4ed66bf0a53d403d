"""Files that are the worker's alone: what it remembers, and records on their way, are for nobody else on the machine to read."""

import os

MODE = 0o600


def open_private(path, mode, **more):
    """As `open`; a file that it makes can be read and written by its owner alone, from its first moment."""
    return open(path, mode, opener=lambda name, flags: os.open(name, flags, MODE), **more)


def make_private(path):
    """Make that file, empty, if there is none: for libraries that open files in their own way."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, MODE))
