"""File rotation: find a file again under another name, and the siblings written after it.

A position is stored with checksums of what was read, because neither name nor inode identify a file: rotation renames files, inodes
are reused, and a file may be truncated and grow again.
"""

import math
import os
import re
import stat
import zlib
from dataclasses import dataclass

from standalone import ConfigError, ConnectError, check_allowed_file, open_allowed

MARK_BYTES = 256
POSITION, MARKS = "position", "_file"

# From this size on, equal checksums mean the same content, whatever the inode. Shorter files may share a header.
SURE_BYTES = 2 * MARK_BYTES

_FORMER = ("old", "bak", "prev", "previous")


@dataclass(frozen=True, slots=True)
class Place:
    """A byte position in a file, with checksums that identify the file. Without them (inode 0) any file with the name matches."""

    position: int
    inode: int = 0
    written_ns: int = 0  # modification time when it was read
    head: int = 0  # checksum of the first bytes, if more than MARK_BYTES precede the position
    tail: int = 0  # checksum of the last bytes before the position

    @classmethod
    def of_offset(cls, offset):
        """From a stored source offset; None for none. Offsets from Java, and those set by hand, have no checksums."""
        if offset is None:
            return None
        position = offset.get(POSITION)
        if not isinstance(position, int) or isinstance(position, bool) or position < 0:
            raise ConnectError(
                f"The stored offset {offset!r} cannot be resumed from: '{POSITION}' must be a whole number of bytes, 0 or more. "
                "Alter or reset the connector's offsets."
            )
        try:
            inode, written_ns, head, tail = (int(part, 16) for part in offset[MARKS].split("-"))
        except (KeyError, AttributeError, ValueError):
            return cls(position)
        return cls(position, inode, written_ns, head, tail)

    def is_in(self, descriptor):
        """Whether the open file contains, before the position, what was read there."""
        tail = min(MARK_BYTES, self.position)
        if checksum(os.pread(descriptor, tail, self.position - tail), tail) != self.tail:
            return False
        return self.position <= MARK_BYTES or checksum(os.pread(descriptor, MARK_BYTES, 0), MARK_BYTES) == self.head


@dataclass(frozen=True, slots=True)
class Held:
    """The start of an incomplete line: the bytes after a position."""

    size: int = 0
    head: int = 0  # checksum of its first bytes, MARK_BYTES at most

    @classmethod
    def of(cls, data):
        return cls(len(data), zlib.crc32(data[:MARK_BYTES])) if len(data) else NOTHING

    def is_behind(self, descriptor, position):
        """Whether the open file contains these bytes after the position; more may follow."""
        if not self.size:
            return True
        first = min(MARK_BYTES, self.size)
        return os.fstat(descriptor).st_size >= position + self.size and checksum(os.pread(descriptor, first, position), first) == self.head


NOTHING = Held()


def offset_of(position, inode, written_ns, head, tail):
    """Return a place's source offset. Called per record, hence without a Place."""
    return {POSITION: position, MARKS: f"{inode:x}-{written_ns:x}-{head:x}-{tail:x}"}


def checksum(data, size):
    """Return a checksum; None if there are fewer bytes than `size`."""
    return zlib.crc32(data) if len(data) == size else None


@dataclass(frozen=True)
class Sibling:
    """A file next to the followed one."""

    path: str
    inode: int
    written_ns: int
    rank: int  # breaks ties of modification time: higher is newer

    @property
    def age(self):
        return self.written_ns, self.rank


def find_again(path, place):
    """Find the renamed file that contains the place: by inode, or else a copy. None if there is none."""
    for sibling in _siblings(path, lambda name, inode: inode == place.inode):
        if _holds(sibling, place):
            return sibling
    return find_copy(path, place)


def find_copy(path, place, held=NOTHING):
    """Find the oldest rotated file, written since, that contains another file's read and pending bytes."""
    if place.position == 0 and not held.size:
        return None
    copies = [sibling for sibling in generations(path) if sibling.written_ns >= place.written_ns and sibling.inode != place.inode]
    return next((copy for copy in copies if _holds(copy, place, held)), None)


def generations(path):
    """Return the path's rotated files, oldest first."""
    pattern = _rotated_name(os.path.basename(path))
    found = _siblings(path, lambda name, inode: pattern.fullmatch(name))
    return sorted(found, key=lambda sibling: sibling.age)


def newer(path, place):
    """Return the rotated files written after the one with that place, oldest first."""
    found = generations(path)
    itself = next((sibling for sibling in found if sibling.inode == place.inode and place.position and _holds(sibling, place)), None)
    age = itself.age if itself else (place.written_ns, math.inf)
    return [sibling for sibling in found if sibling.age > age]


def position_in_bytes(descriptor, position):
    """Return the byte position of a stored offset without checksums. Java counts UTF-16 units, though it means bytes.

    If no line begins at that byte, but one does at that count of UTF-16 units, the latter is meant.
    """
    if position == 0 or os.pread(descriptor, 1, position - 1) in (b"\n", b"\r"):
        return position
    units = at = 0
    with open(os.dup(descriptor), "rb") as file:
        file.seek(0)
        for line in file:
            units += len(line.decode("utf-8", "replace").encode("utf-16-le")) // 2
            at += len(line)
            if units >= position:
                break
    return at if units == position else position


def _rotated_name(name):
    """Match names of rotated files: app.log.1, app.log-20260131, app-2026-01-31.log, app.log.old; not compressed ones."""
    stem, extension = os.path.splitext(name)
    numbers = r"[-._](?P<{}>\d[\d\-_.:TZ]*)"
    behind = re.escape(name) + numbers.format("behind")
    inside = re.escape(stem) + numbers.format("inside") + re.escape(extension)
    return re.compile(f"{behind}|{inside}|{re.escape(name)}[-._](?:{'|'.join(_FORMER)})")


def _siblings(path, wanted):
    folder, own_name = os.path.dirname(path) or ".", os.path.basename(path)
    pattern = _rotated_name(own_name)
    found = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name == own_name or not wanted(entry.name, entry.inode()):
                    continue
                try:
                    status = entry.stat(follow_symlinks=False)
                except OSError:
                    continue  # renamed or deleted meanwhile
                if stat.S_ISREG(status.st_mode) and _may_be_read(entry.name, folder):
                    found.append(Sibling(os.path.join(folder, entry.name), status.st_ino, status.st_mtime_ns, _rank(pattern, entry.name)))
    except OSError:
        return []  # the folder is gone or not readable
    return found


def _may_be_read(name, folder):
    try:
        check_allowed_file(os.path.join(folder, name))
    except ConfigError:
        return False
    return True


def _rank(pattern, name):
    """Rank rotated names: a higher number is older, a later date newer."""
    match = pattern.fullmatch(name)
    text = match and (match["behind"] or match["inside"])
    if not text:
        return -1
    digits = re.sub(r"\D", "", text)
    return int(digits) if len(digits) >= 6 else -int(digits)


def _holds(sibling, place, held=NOTHING):
    try:
        descriptor = open_allowed(sibling.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        return os.fstat(descriptor).st_ino == sibling.inode and place.is_in(descriptor) and (place.position > 0 or held.is_behind(descriptor, 0))
    finally:
        os.close(descriptor)
