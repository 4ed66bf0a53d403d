"""One log file: its identity, independent of its names, and how far it has been read."""

import dataclasses
import itertools
import os
import struct

from connectors.file.rotation import MARK_BYTES, MARKS, NOTHING, POSITION, Held, Place, offset_of
from standalone import ConnectError

FILENAME, LINE, BORN, FORMER, SINCE, SLOT = "filename", "line", "_born", "_former", "_since", "slot"
MOST_FORMER = 8
MOST_MARKS = 16  # maximum number of marks in a trail
_MARK = struct.Struct("<QI")

_numbers = itertools.count()


class LogFile:
    """Identified by device, inode and creation time, and by marks of its content (see connectors/file/rotation.py)."""

    __slots__ = (
        "home", "path", "key", "line", "slot", "former", "reader", "seen", "noted", "after", "heard_at", "copy_of", "is_lost", "is_passed",
        "is_over", "is_queued", "is_listed", "used_at", "dead_at", "trouble", "number", "facts", "since", "trail",
        "_place", "_held",
    )  # fmt: skip

    def __init__(self, home, path, key, place, line=0, slot=None, former=()):
        self.home = home  # the name it was written under
        self.path = path  # the name it has now
        self.key = key  # device, inode, creation time (in nanoseconds; 0: unknown)
        self.line = line  # number of lines before the position
        self.slot = slot  # the slot of its offset
        self.former = former  # marks of copies that were made before it was truncated, and that were read
        self.reader = None  # an OpenFile or CompressedFile
        self.seen = None  # size and mtime when it was last read to its end
        self.noted = None  # size and mtime in the last scan
        self.after = None  # the file that had its name before: it is read first
        self.heard_at = 0.0  # when it was last read, or began to wait, by the clock of turns.py
        self.copy_of = None  # the file of which it is a copy, made when that one was truncated
        self.is_lost = False  # it no longer has the name it was written under
        self.is_passed = False  # it was read to its end, and its successor may be read
        self.is_over = False  # it is closed, and no more lines are expected
        self.is_queued = False
        self.is_listed = True  # the last scan found it
        self.used_at = 0.0
        self.dead_at = None
        self.trouble = None
        self.number = next(_numbers)
        self.facts = None  # computed once per file: topic, headers
        self.since = 0  # files that existed then are read from their end, in nanoseconds
        self.trail = b""  # marks: positions where reading stopped, with the checksum before each; later ones are denser
        self._place = place
        self._held = NOTHING

    @property
    def born(self):
        return self.key[2]

    @property
    def held(self):
        """The known content after its place. For an open file that was not read yet: its current content."""
        if self.reader is None:
            return self._held
        if self.reader.position == 0 and not self.reader.held.size and not self.reader.complete:
            return Held.of(os.pread(self.reader.descriptor, MARK_BYTES, 0))
        return self.reader.held

    @property
    def is_unknown(self):
        """Whether nothing of it was read or seen yet: then a truncation cannot be detected by content."""
        return self.place.position == 0 and self.place.inode != 0 and not (self._held if self.reader is None else self.reader.held).size

    @property
    def place(self):
        return self._place if self.reader is None else self.reader.place()

    @place.setter
    def place(self, place):
        self._place, self._held = place, NOTHING

    def close(self):
        if self.reader is not None:
            self._place, self._held = self.reader.place(), self.reader.held
            self.reader.close()
            self.reader = None

    def remember_copy(self, place):
        """A copy of it was read up to there, its end."""
        self.former = (*self.former, _marks(place))[-MOST_FORMER:]

    def leave_mark(self):
        """Mark the position where reading stops now: a copy made now can be recognized later, after more was read."""
        if self.reader.complete:
            return
        place = self.reader.place()
        mark = _MARK.pack(place.position, place.tail)
        if place.position and not self.trail.endswith(mark):
            self.trail += mark
        if len(self.trail) > MOST_MARKS * _MARK.size:
            older, step = MOST_MARKS // 2 * _MARK.size, 2 * _MARK.size
            self.trail = b"".join(self.trail[at : at + _MARK.size] for at in range(0, older, step)) + self.trail[older:]

    def last_mark(self, size, head):
        """The last marked Place up to `size`, for a file whose first bytes have the checksum `head`; None if there is none."""
        passed = [mark for mark in _MARK.iter_unpack(self.trail) if mark[0] <= size]
        return Place(passed[-1][0], head=head, tail=passed[-1][1]) if passed else None

    def former_places(self):
        return [_place_of(marks) for marks in self.former]

    # --- As a source offset ------------------------------------------------------------------------------------------

    @property
    def partition(self):
        return {SLOT: self.slot}

    def offsets_of(self, lines):
        """row -> the source offset after that line; sets `line` to the number after all of them."""
        home, before, former, born, since = self.home, self.line, list(self.former), self.born, self.since
        self.line += len(lines)

        def offset(row):
            told = {FILENAME: home, **lines.offset(row), LINE: before + row + 1, BORN: f"{born:x}"}
            if former:
                told[FORMER] = former
            if since:
                told[SINCE] = since
            return told

        return offset

    @classmethod
    def of_offset(cls, slot, offset):
        """A LogFile from a stored offset, or from one set by an operator, which has only a name and a position."""
        home = offset.get(FILENAME)
        if not isinstance(home, str):
            raise ConnectError(f"The stored offset {offset!r} of slot {slot} has no '{FILENAME}'. Change or reset the connector's offsets.")
        place = Place.of_offset(offset)
        line = offset.get(LINE)
        born = offset.get(BORN)
        file = cls(
            home, home, (0, place.inode, int(born, 16) if isinstance(born, str) else 0), place,
            line if isinstance(line, int) else 0, slot, tuple(offset.get(FORMER) or ()),
        )  # fmt: skip
        file.is_listed = False
        file.since = offset[SINCE] if isinstance(offset.get(SINCE), int) else 0
        return file


def _marks(place):
    told = offset_of(**dataclasses.asdict(place))
    return f"{told[POSITION]:x}-{told[MARKS]}"


def _place_of(marks):
    position, rest = marks.split("-", 1)
    return Place.of_offset({POSITION: int(position, 16), MARKS: rest})


def check_offset(partition, offset):
    """Raise ConnectError if an operator must not set that offset."""
    slot = (partition or {}).get(SLOT)
    if not isinstance(slot, int) or isinstance(slot, bool) or slot < 0:
        raise ConnectError(f"The source partition {partition!r} must be {{\"{SLOT}\": N}}, N an integer, as in GET …/offsets.")
    if offset is None:
        return
    position = offset.get(POSITION)
    if not isinstance(offset.get(FILENAME), str) or not isinstance(position, int) or isinstance(position, bool) or position < 0:
        raise ConnectError(
            f"The source offset {offset!r} of slot {slot} must be {{\"{FILENAME}\": \"<path>\", \"{POSITION}\": N}}, "
            "N a number of bytes, 0 or more."
        )


class Slots:
    """Numbers under which offsets are stored. A deleted file's number is reused, so that there are never more offsets than files."""

    def __init__(self):
        self._next = 0
        self._free = []

    def load(self, reader, step=4096):
        """The files with a stored offset. Numbers may be missing if the process died before they were stored."""
        files, misses = [], 0
        while misses < 2:
            partitions = [{SLOT: slot} for slot in range(self._next, self._next + step)]
            found = [(self._next + at, offset) for at, offset in enumerate(reader.offsets(partitions)) if offset is not None]
            misses = 0 if found else misses + 1
            files += [LogFile.of_offset(slot, offset) for slot, offset in found]
            self._next += step
        taken = {file.slot for file in files}
        self._next = max(taken, default=-1) + 1
        self._free = [slot for slot in range(self._next) if slot not in taken]
        return files

    def give(self, file):
        if file.slot is None:
            if self._free:
                file.slot = self._free.pop()
            else:
                file.slot, self._next = self._next, self._next + 1

    def take_back(self, file):
        if file.slot is not None:
            self._free.append(file.slot)
            file.slot = None
