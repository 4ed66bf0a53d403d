"""Names of rotated files: from app.log.2.gz back to app.log, and the rotated files of a folder by their original name."""

import os
import re
import stat
from dataclasses import dataclass

from connectors.logs.birth import born
from standalone import ConfigError, check_allowed_file

COMPRESSED = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2", ".lz4": "lz4"}
DATE_DIGITS = 6  # a number with so many digits is a date

_NUMBERS = re.compile(r"[-._]\d[\d\-_.:TZ]*$")
_FORMER = re.compile(r"[-._](?:old|bak|prev|previous)$")


def compression(path):
    """The codec by the file name's suffix, or None."""
    return COMPRESSED.get(os.path.splitext(path)[1])


def bases_of(name):
    """Possible original names of a rotated file: for app.log.2.gz these are app.log.2 and app.log."""
    found = []
    stem, extension = os.path.splitext(name)
    if extension in COMPRESSED:
        found.append(stem)
        name = stem
        stem, extension = os.path.splitext(name)
    for pattern in (_NUMBERS, _FORMER):
        if match := pattern.search(name):
            found.append(name[: match.start()])
    if match := _NUMBERS.search(stem):
        found.append(stem[: match.start()] + extension)
    return [each for each in found if each]


def is_surely_rotated(name):
    """True for app.log.1, app.log.old and app-2026-01-31.log; worker-1.log may as well be the log of another worker."""
    name = os.path.splitext(name)[0] if compression(name) else name
    if _NUMBERS.search(name) or _FORMER.search(name):
        return True
    match = _NUMBERS.search(os.path.splitext(name)[0])
    return match is not None and len(re.sub(r"\D", "", match.group())) >= DATE_DIGITS


def rank(name):
    """A higher rank is a younger file: a lower number, or a later date."""
    name = os.path.splitext(name)[0] if compression(name) else name
    match = _NUMBERS.search(name) or _NUMBERS.search(os.path.splitext(name)[0])
    digits = re.sub(r"\D", "", match.group()) if match else ""
    if not digits:
        return -1
    return int(digits) if len(digits) >= DATE_DIGITS else -int(digits)


@dataclass(frozen=True, slots=True)
class Sibling:
    path: str
    key: tuple  # device, inode, creation time
    size: int
    written_ns: int

    @property
    def age(self):
        return self.written_ns, rank(os.path.basename(self.path))


class Siblings:
    """The files of one folder at one moment, listed once for all queries."""

    def __init__(self, folder, exclude=()):
        self._by_inode = {}
        self._names = {}
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    self._add(entry, exclude)
        except OSError:
            return  # a folder that is gone or closed to us has no files

    def generations(self, name):
        """The rotated files of that name, oldest first."""
        return sorted((_sibling(*each) for each in self._names.get(name, ())), key=lambda sibling: sibling.age)

    def of_inode(self, inode):
        """The file with that inode number, or None."""
        found = self._by_inode.get(inode)
        return found and _sibling(*found)

    def _add(self, entry, exclude):
        try:
            status = entry.stat(follow_symlinks=False)
            if not stat.S_ISREG(status.st_mode) or entry.path in exclude:
                return
            check_allowed_file(entry.path)
        except (OSError, ConfigError):
            return  # rotated meanwhile, or not readable
        self._by_inode[status.st_ino] = entry.path, status
        for base in bases_of(entry.name):
            self._names.setdefault(base, []).append((entry.path, status))


def _sibling(path, status):
    return Sibling(path, (status.st_dev, status.st_ino, born(path)), status.st_size, status.st_mtime_ns)
