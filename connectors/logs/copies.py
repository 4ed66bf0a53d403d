"""Whether a file is a copy of a followed file, even while the copy is being made.

A finished copy has the content of its original (contents.py). An unfinished one is a prefix of it, or a truncated compressed file: its
final content is unknown. It is not read until that is clear, or until some seconds after its last write.
"""

import os
import time

from connectors.file.rotation import MARK_BYTES, SURE_BYTES
from connectors.logs.compressed_file import first_bytes, holds
from connectors.logs.contents import Contents
from connectors.logs.names import compression

SECONDS_TO_SETTLE = 2.0  # a copy, or a compressed file, may be incomplete for so long after a write
SECONDS_TO_FINISH = 60.0  # the same for a truncated compressed file
_PART, _CUT_OFF = "part", "cut off"


class Copies:
    def __init__(self, known):
        self._known = known
        self._contents = None
        self._coming = set()
        self._found, self._found_before = {}, {}  # key -> (size and mtime, result), in this scan and the previous one

    def begin_look(self, coming):
        """`coming`: the names of files that will be followed from now on, unless they are copies."""
        self._coming = coming
        self._found, self._found_before = {}, self._found
        self.contents_changed()

    def contents_changed(self):
        self._contents = None

    def is_copy(self, each, homes=()):
        """Whether a file found on disk has the content of a followed file. None: not known yet.

        `homes`: the names of files that it may be a prefix of."""
        fact, found = (each.size, each.written_ns), self._found_before.get(each.key, (None, None))
        if found[0] == fact:
            self._found[each.key] = found
        if self.is_part(each):
            return True
        begun = next((home for home in homes if _begins(each.path, home)), None)  # before comparing content: a finished copy's original is truncated
        is_packed = compression(each.path) is not None
        is_cut_off = is_packed and (not each.size or self._found.get(each.key) == (fact, _CUT_OFF))
        held = None if is_cut_off else self._hold(each.path)
        if held:
            return True
        age = time.time() - each.written_ns / 1e9
        if not is_packed:
            return self._is_part(each, begun, age) if begun is not None else False
        if held is None:
            self._found[each.key] = fact, _CUT_OFF
        is_coming = os.path.splitext(each.path)[0] in self._coming  # a copy of a file that is not read yet
        if is_coming or age < SECONDS_TO_SETTLE or (held is None and age < SECONDS_TO_FINISH):
            return None
        return held is None and bool(first_bytes(each.path, 1))

    def is_part(self, each):
        """Whether it is a prefix of another file, and was not written to lately."""
        return self._found.get(each.key) == ((each.size, each.written_ns), _PART)

    def _hold(self, path):
        self._contents = self._contents or Contents(self._known.by_home)
        return self._contents.hold(path)

    def _is_part(self, each, home, age):
        """The same as is_copy, for a file that is a prefix of the file at `home`."""
        original = next((file for file in self._known.by_home.get(home, ()) if file.path == home and not file.is_lost and file.dead_at is None), None)
        if original is None:
            return None if home in self._coming or age < SECONDS_TO_SETTLE else False
        if original.place.position < each.size or age < SECONDS_TO_SETTLE:
            return None  # the original is new, too, or the copy may still grow before the original is truncated
        mark = original.last_mark(each.size, original.place.head)
        was_end = mark is not None and mark.position == each.size and holds(each.path, mark)
        if each.size < SURE_BYTES and not was_end:
            return False  # both begin with the same banner only
        self._found[each.key] = (each.size, each.written_ns), _PART
        return True


def _begins(path, home):
    """Whether the file at `home` begins with the content of the other, judging by the other's first and last bytes."""
    if compression(path):
        return False
    try:
        with open(path, "rb") as part, open(home, "rb") as whole:
            size = os.fstat(part.fileno()).st_size
            if size > os.fstat(whole.fileno()).st_size or os.path.samestat(os.fstat(part.fileno()), os.fstat(whole.fileno())):
                return False
            ends = [(min(size, MARK_BYTES), 0), (min(size, MARK_BYTES), max(0, size - MARK_BYTES))]
            return all(os.pread(part.fileno(), count, at) == os.pread(whole.fileno(), count, at) for count, at in ends)
    except OSError:
        return False
