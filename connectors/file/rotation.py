"""Rotated files: knowing a file again under another name, and which of its siblings were written after it.

A place in a file is remembered with marks of what was read there, because neither a name nor an inode number says for sure which
file it is: names move on at each rotation, inode numbers are given out again, and a file may be truncated and grow again.
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

# Where so much was read, equal marks mean equal content, whatever the inode. Below, two files may well begin with the same banner.
SURE_BYTES = 2 * MARK_BYTES

_FORMER = ("old", "bak", "prev", "previous")


@dataclass(frozen=True, slots=True)
class Place:
    """A position in a file, in bytes, and the marks to know the file by. Without marks (inode 0): whichever file has the name."""

    position: int
    inode: int = 0
    written_ns: int = 0  # when the file had last been written when it was read
    head: int = 0  # checksum of the first bytes, where more than MARK_BYTES are before the position
    tail: int = 0  # checksum of the last bytes before the position

    @classmethod
    def of_offset(cls, offset):
        """Of a stored source offset; None of none. Java's offsets, and those set by hand, have no marks."""
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
        """Whether the open file has, before the position, what was read there."""
        tail = min(MARK_BYTES, self.position)
        if checksum(os.pread(descriptor, tail, self.position - tail), tail) != self.tail:
            return False
        return self.position <= MARK_BYTES or checksum(os.pread(descriptor, MARK_BYTES, 0), MARK_BYTES) == self.head


@dataclass(frozen=True, slots=True)
class Held:
    """What was seen of a line that is not finished yet: the bytes after a place."""

    size: int = 0
    head: int = 0  # checksum of the first of them, MARK_BYTES at most

    @classmethod
    def of(cls, data):
        return cls(len(data), zlib.crc32(data[:MARK_BYTES])) if len(data) else NOTHING

    def is_behind(self, descriptor, position):
        """Whether the open file has, after the position, what was seen there; more may follow."""
        if not self.size:
            return True
        first = min(MARK_BYTES, self.size)
        return os.fstat(descriptor).st_size >= position + self.size and checksum(os.pread(descriptor, first, position), first) == self.head


NOTHING = Held()


def offset_of(position, inode, written_ns, head, tail):
    """The source offset of a place. A row of its own may be made for each record, hence no Place in between."""
    return {POSITION: position, MARKS: f"{inode:x}-{written_ns:x}-{head:x}-{tail:x}"}


def checksum(data, size):
    """Of marks; None if fewer bytes than `size` are there."""
    return zlib.crc32(data) if len(data) == size else None


@dataclass(frozen=True)
class Sibling:
    """A file beside the one that is followed."""

    path: str
    inode: int
    written_ns: int
    rank: int  # among files written in the same instant, the later one's is higher

    @property
    def age(self):
        return self.written_ns, self.rank


def find_again(path, place):
    """The file with that place in it, now under another name: the one of that inode, or else a copy. None if there is none."""
    for sibling in _siblings(path, lambda name, inode: inode == place.inode):
        if _holds(sibling, place):
            return sibling
    return find_copy(path, place)


def find_copy(path, place, held=NOTHING):
    """The oldest file named as a rotated one, written since, that has what was read, and seen, of another."""
    if place.position == 0 and not held.size:
        return None
    copies = [sibling for sibling in generations(path) if sibling.written_ns >= place.written_ns and sibling.inode != place.inode]
    return next((copy for copy in copies if _holds(copy, place, held)), None)


def generations(path):
    """The rotated files of that path, the oldest first."""
    pattern = _rotated_name(os.path.basename(path))
    found = _siblings(path, lambda name, inode: pattern.fullmatch(name))
    return sorted(found, key=lambda sibling: sibling.age)


def newer(path, place):
    """The rotated files that were written after the one with that place in it, the oldest first."""
    found = generations(path)
    itself = next((sibling for sibling in found if sibling.inode == place.inode and place.position and _holds(sibling, place)), None)
    age = itself.age if itself else (place.written_ns, math.inf)
    return [sibling for sibling in found if sibling.age > age]


def position_in_bytes(descriptor, position):
    """The position after a stored offset without marks. Java counts UTF-16 units there, though it means bytes.

    Where the position in bytes is not where a line begins, but the position in UTF-16 units is, that is the one.
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
    """What a rotation may have made of a name: app.log.1, app.log-20260131, app-2026-01-31.log, app.log.old; nothing compressed."""
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
                    continue  # rotated on or deleted while we look
                if stat.S_ISREG(status.st_mode) and _may_be_read(entry.name, folder):
                    found.append(Sibling(os.path.join(folder, entry.name), status.st_ino, status.st_mtime_ns, _rank(pattern, entry.name)))
    except OSError:
        return []  # a folder that is gone or closed to us has no siblings to offer
    return found


def _may_be_read(name, folder):
    try:
        check_allowed_file(os.path.join(folder, name))
    except ConfigError:
        return False
    return True


def _rank(pattern, name):
    """A higher number is an older file, a later date a newer one."""
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
