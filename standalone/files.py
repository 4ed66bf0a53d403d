"""Which files connectors may read and write: the worker's files.allowed.paths. Connectors open what a configuration names through here.

    allow_only(["/var/log"])
    open_allowed("/var/log/app.log", os.O_RDONLY)     a descriptor
    open_allowed("/etc/passwd", os.O_RDONLY)          ConfigError; so is a symbolic link in /var/log that leads there

The limit applies to the whole process. Without one, all files that the process can open are allowed.
"""

import os

from standalone.errors import ConfigError

KEY = "files.allowed.paths"

_allowed = None


def allow_only(paths):
    """Allow only these files and folders, including subfolders; None or an empty list allows all."""
    global _allowed
    _allowed = [os.path.realpath(path) for path in paths] if paths else None


def check_allowed_file(path):
    """Raise ConfigError if the file that this path resolves to is not allowed."""
    if _allowed is not None:
        _check(path, os.path.realpath(path))


def open_allowed(path, flags, mode=0o666):
    """Like os.open. Raises ConfigError if the file is not allowed, OSError if it cannot be opened."""
    if _allowed is None:
        return os.open(path, flags, mode)
    real = os.path.realpath(path)
    _check(path, real)
    descriptor = os.open(real, flags, mode)
    try:
        # A symbolic link may have been created since the check: check the file that was opened.
        _check(path, os.readlink(f"/proc/self/fd/{descriptor}").removesuffix(" (deleted)"))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _check(path, real):
    if not any(real == each or real.startswith(each.rstrip("/") + "/") for each in _allowed):
        leads = "" if real == path else f", which leads to '{real}',"
        raise ConfigError.of({"file": f"'{path}'{leads} may not be opened: it is outside the worker's {KEY} ({', '.join(_allowed)})"})
