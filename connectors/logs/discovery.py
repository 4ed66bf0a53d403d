"""File discovery: all files that match the globs, and the folders to watch for more."""

import logging
import os
import stat
from dataclasses import dataclass

from connectors.logs.birth import Births
from connectors.logs.globs import Exclude, Glob
from standalone import ConfigError, check_allowed_file

log = logging.getLogger(__name__)

_KINDS = ((stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"), (stat.S_ISCHR, "a device"), (stat.S_ISBLK, "a device"))


@dataclass(frozen=True, slots=True)
class Found:
    """A regular file with a matching name."""

    path: str
    key: tuple  # device, inode, creation time
    size: int
    written_ns: int
    real: str  # the path with symbolic links resolved


class Discovery:
    def __init__(self, paths, exclude=()):
        self.globs = [Glob(each) for each in paths]
        self.exclude = Exclude(exclude)
        self.folders = set()  # folders in which to watch for new names
        self._births = Births()
        self._told = {}  # path -> the problem last logged

    def scan(self):
        """All matching files, each once, under the first of its names."""
        found, folders, troubled = {}, set(), {}
        links = set()
        for glob in self.globs:
            for path, entry in glob.walk(folders, lambda path, error: troubled.setdefault(path, f"cannot be read ({error.strerror})")):
                if path in self.exclude:
                    continue
                try:
                    status = entry.stat() if entry is not None else os.stat(path)
                    is_link = entry.is_symlink() if entry is not None else os.path.islink(path)
                except OSError as error:
                    if os.path.islink(path):
                        troubled[path] = f"is a broken symbolic link ({error.strerror})"
                    continue
                if stat.S_ISREG(status.st_mode):
                    real = path
                    if is_link:
                        real = os.path.realpath(path)
                        links.add(os.path.dirname(real))
                    key = self._births.key(path, status)
                    if key not in found or (is_link < (found[key].real != found[key].path)):
                        found[key] = Found(path, key, status.st_size, status.st_mtime_ns, real)
                else:
                    kind = next((kind for is_it, kind in _KINDS if is_it(status.st_mode)), "a special file")
                    troubled[path] = f"is {kind}, not a regular file"
        self.folders = folders | links
        self._births.turn()
        self._tell(troubled)
        return list(found.values())

    def captures(self, path):
        """The text that the wildcards of the first matching glob stand for."""
        return next((found for glob in self.globs if (found := glob.captures(path)) is not None), [])

    def _tell(self, troubled):
        for path, what in troubled.items():
            if self._told.get(path) != what:
                log.warning("'%s' %s: it is skipped.", path, what)
        self._told = troubled


def check_paths(config):
    """A configured path that must not be opened is a ConfigError."""
    for pattern in config.get("paths") or ():
        try:
            check_allowed_file(Glob(pattern).base)
        except ConfigError as error:
            raise ConfigError.of({"paths": next(iter(error.errors.values()))}) from error
