"""Whether a file has the content of a file that was read: it is a copy, maybe compressed, maybe of a file that was truncated since."""

import collections
import itertools
import os
import zlib

from connectors.file.rotation import MARK_BYTES, SURE_BYTES
from connectors.logs.compressed_file import first_bytes, holds
from connectors.logs.names import compression

_COMPARED_BYTES = 1 << 16


class Contents:
    """The content read from all files at one moment, indexed by how it begins."""

    def __init__(self, by_home):
        self._beginnings = collections.defaultdict(list)
        for files in by_home.values():
            for known in files:
                folder = os.path.dirname(known.home)
                for place in (known.place, *known.former_places()):
                    if place.position:
                        size = min(place.position, MARK_BYTES)
                        self._beginnings[folder, size, place.head if place.position > MARK_BYTES else place.tail].append(known)
                held = known.held
                if not known.place.position and held.size:
                    self._beginnings[folder, min(held.size, MARK_BYTES), held.head].append(known)
        self._sizes = {size for _, size, _ in self._beginnings}

    def hold(self, path):
        """Whether this file has the content of a file in the same folder that was read. None: it is compressed and begins like one, or its
        beginning cannot be decompressed: it may still be being written."""
        first, folder = first_bytes(path, MARK_BYTES), os.path.dirname(path)
        if first is None:
            return None
        found = False
        alike = [self._beginnings.get((folder, size, zlib.crc32(first[:size])), ()) for size in self._sizes if size <= len(first)]
        for known in (known for files in alike for known in files):
            for verdict in itertools.chain([_repeats(path, known)], (holds(path, place) for place in known.former_places())):
                if verdict:
                    return True
                if verdict is None:
                    found = None
        return found


def _repeats(path, known):
    """Whether a file with a rotated name has the content that was read. If that is short, such as a banner, all of it must be equal."""
    verdict = holds(path, known.place, known.held)
    if not verdict:
        return verdict
    if known.place.position + known.held.size >= SURE_BYTES or compression(path):
        return True
    try:
        with open(path, "rb") as copy, open(known.path, "rb") as original:
            content = copy.read(_COMPARED_BYTES + 1)
            if os.fstat(original.fileno()).st_ino != known.key[1] or not known.place.is_in(original.fileno()):
                return True  # the original is deleted or truncated: nothing to compare
            return len(content) <= _COMPARED_BYTES and original.read(len(content)) == content
    except OSError:
        return True
