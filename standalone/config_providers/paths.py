"""The parameters of file-based providers, and the check of allowed.paths."""

import os

from standalone import LIST, LONG, LOW, ConfigDef, ConfigError, Option, at_least

PARAMETERS = ConfigDef(
    Option(
        *("allowed.paths", LIST, LOW),
        "Folders and files, as absolute paths separated by commas, that may be read, with all below them. Not given: all.",
        None,
    ),
    Option(
        *("ttl.ms", LONG, LOW),
        "After how long values are looked up again; what has changed restarts the connectors that use it, unless config.action.reload is "
        "none. Not given: never.",
        *(None, at_least(1)),
    ),
)


def check_allowed(allowed):
    """The normalized paths of allowed.paths, or None for all."""
    for path in allowed or ():
        if not os.path.isabs(path):
            raise ConfigError.of({"allowed.paths": f"'{path}' is not an absolute path"})
        if not os.path.exists(path):
            raise ConfigError.of({"allowed.paths": f"'{path}' does not exist"})
    return [os.path.normpath(path) for path in allowed] if allowed else None


def allowed_path(path, allowed):
    """The normalized path. Raises ConfigError if it is not allowed."""
    path = os.path.normpath(path)
    if allowed is not None and not any(path == each or path.startswith(each.rstrip("/") + "/") for each in allowed):
        raise ConfigError(f"{path} may not be read: it is outside allowed.paths ({', '.join(allowed)})")
    return path


def read_text(path):
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
