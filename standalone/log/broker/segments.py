"""A segment: one file of a partition, `<first offset>.log`, with record batches in Kafka's format; and its index.

The index finds a batch by offset, position or time without reading the file. It is sparse, in a format of this project: rows of
(offset, position, largest timestamp before that position), one about every INDEX_INTERVAL bytes, in `<first offset>.index`.
A row is written only after its batches are fsynced, so recovery after a crash checks only what follows the last row.
A sealed segment ends with a row for its end. A missing, short or inconsistent index is rebuilt from the segment.
"""

import logging
import os
import resource
import shutil
import sys
from array import array
from bisect import bisect_left, bisect_right
from typing import NamedTuple

import numpy as np

from standalone import private
from standalone.errors import CorruptBatchError
from standalone.log import batch_header

INDEX_INTERVAL = 16 << 10
LOG, INDEX, UNFINISHED = ".log", ".index", ".cleaned"
_WALK_BYTES = 32 << 10
_ROW_BYTES = 24
_MOST_PIECES = 1024  # that the kernel takes at once

logger = logging.getLogger(__name__)


class LogFile:
    """An open file that closes with its last reference: the segment's, or that of a response still being sent."""

    __slots__ = ("fd", "__weakref__")

    def __init__(self, path, create=False):
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        try:
            self.fd = os.open(path, flags, private.MODE)
        except FileNotFoundError:
            if not create:
                raise
            os.makedirs(os.path.dirname(path), exist_ok=True)
            self.fd = os.open(path, flags, private.MODE)

    def __del__(self):
        if getattr(self, "fd", None) is not None:
            os.close(self.fd)


class OpenFiles:
    """Cache of the segments' open files. Beyond `limit` it releases the least recently used file: partitions may outnumber the
    files that a process may open."""

    def __init__(self, limit=None):
        self._limit = limit or max(resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4, 16)
        self._files = {}  # least recently used first

    def get(self, path, create=False):
        file = self._files.pop(path, None) or LogFile(path, create)
        self._files[path] = file
        if len(self._files) > self._limit:
            del self._files[next(iter(self._files))]
        return file

    def held(self, path):
        """Return the file if it is open."""
        return self._files.get(path)

    def drop(self, path):
        return self._files.pop(path, None)

    def __len__(self):
        return len(self._files)


class FileSlice(NamedTuple):
    """Bytes of a file that a response sends without reading them."""

    file: LogFile
    position: int
    length: int

    def read(self):
        return os.pread(self.file.fd, self.length, self.position)


class Segment:
    """Owned by one thread. `open` recovers the file; `append`, `find` and `cut` follow."""

    def __init__(self, folder, base_offset, files=None):
        self.base_offset = base_offset
        self.path = os.path.join(folder, f"{base_offset:020d}{LOG}")
        self.index_path = os.path.join(folder, f"{base_offset:020d}{INDEX}")
        self.size = 0
        self.next_offset = base_offset
        self.max_timestamp = -1
        self.begun_ms = None  # when its first batch was written, if known
        self.was_clean = False  # whether opening it required no check
        self._files = files if files is not None else OpenFiles()
        self._index = None

    @classmethod
    def create(cls, folder, base_offset, files=None):
        segment = cls.planned(folder, base_offset, files)
        os.ftruncate(segment._files.get(segment.path, create=True).fd, 0)
        if os.path.exists(segment.index_path):
            os.unlink(segment.index_path)
        return segment

    @classmethod
    def planned(cls, folder, base_offset, files=None):
        """Return a segment whose file and folder are created with its first batch: an empty partition uses no disk space."""
        segment = cls(folder, base_offset, files)
        segment._index = Index.beginning(base_offset)
        return segment

    @classmethod
    def open(cls, folder, base_offset, files=None):
        """Open an existing segment. Check what follows its last index row; truncate at the first invalid batch."""
        segment = cls(folder, base_offset, files)
        found = os.path.getsize(segment.path)
        last = Index.last_row(segment.index_path)
        if last and last[1] == found and last[0] >= base_offset:
            segment.next_offset, segment.size, segment.max_timestamp = last
            segment.was_clean = True
        else:
            segment._recover(found)
        if segment.size:
            segment.begun_ms = int(os.path.getmtime(segment.path) * 1000)
        return segment

    @property
    def file(self):
        return self._files.get(self.path)

    @property
    def held_file(self):
        """Return the file if it is open."""
        return self._files.held(self.path)

    @property
    def index(self):
        if self._index is None:
            self._index = Index.load(self.index_path, self.base_offset)
            if self._index is None or self._index.positions[-1] > self.size:
                self._index = self._made_again()
        return self._index

    def forget(self):
        """Release the open file and the loaded index; both reload on demand."""
        self._files.drop(self.path)
        self._index = None

    # --- Writing

    def append(self, rows):
        """Append [(batch, header, base offset)], whose batches already have their offsets, in one write. After an OSError none is appended."""
        index = self.index
        file = self._files.get(self.path, create=not self.size)
        try:
            self._write(file, [memoryview(batch) for batch, _, _ in rows])
        except OSError:
            os.ftruncate(file.fd, self.size)
            raise
        for batch, header, base_offset in rows:
            index.mark(base_offset, self.size, self.max_timestamp, INDEX_INTERVAL)
            self.size += len(batch)
            self.next_offset = base_offset + header.last_offset_delta + 1
            self.max_timestamp = max(self.max_timestamp, header.max_timestamp)

    def _write(self, file, rest):
        position = self.size
        while rest:
            written = os.pwrite(file.fd, rest[0], position) if len(rest) == 1 else os.pwritev(file.fd, rest[:_MOST_PIECES], position)
            position += written
            while rest and written >= len(rest[0]):
                written -= len(rest.pop(0))
            if written:
                rest[0] = rest[0][written:]

    def take_unsaved_rows(self):
        """Return the new index rows up to the current end, to be written after an fsync up to here."""
        self.index.mark(self.next_offset, self.size, self.max_timestamp, 1)
        return self.index.take_unsaved()

    def deletion(self):
        """Return a job that deletes the files on a thread that may wait for the disk; the last close, which frees the space, also happens there."""
        self._index = None
        return Deletion([self.path, self.index_path], self._files.drop(self.path))

    # --- Reading

    def find(self, offset):
        """Position of the batch with `offset`, or of the next batch."""
        for position, header in self.walk(self.index.before_offset(offset)):
            if header.next_offset > offset:
                return position
        return self.size

    def cut(self, position, limit):
        """Return (end position, its offset) of the whole batches from `position` on within `limit` bytes."""
        if self.size - position <= limit:
            return self.size, self.next_offset
        stop, offset = position, None
        for at, header in self.walk(max(position, self.index.before_position(position + limit))):
            if at + header.size - position > limit:
                return at, header.base_offset
            stop, offset = at + header.size, header.next_offset
        return stop, offset

    def first_batch_at(self, position):
        return next(self.walk(position), (position, None))[1]

    def since(self, timestamp):
        """Yield (position, header) of each batch with a record at or after `timestamp`."""
        for position, header in self.walk(self.index.before_time(timestamp)):
            if header.max_timestamp >= timestamp:
                yield position, header

    def walk(self, position, end=None):
        """Yield (position, header) of each batch from `position` on; stop at an invalid header."""
        end = self.size if end is None else end
        chunk, chunk_at = b"", position
        while position + batch_header.HEADER.size <= end:
            if position + batch_header.HEADER.size > chunk_at + len(chunk):
                chunk, chunk_at = os.pread(self.file.fd, min(_WALK_BYTES, end - position), position), position
            try:
                header = batch_header.parse_header(chunk, position - chunk_at)
                batch_header.check_header(header)
            except CorruptBatchError:
                return
            yield position, header
            position += header.size

    # --- Recovery

    def _recover(self, found):
        """Trust the index rows, check the batches after them, truncate what is not whole."""
        index = Index.load(self.index_path, self.base_offset)
        if index is None or not self._agrees(index, found):
            index = Index.beginning(self.base_offset)
            if os.path.exists(self.index_path):
                os.unlink(self.index_path)
        self._index = index
        self.next_offset, self.size, self.max_timestamp = index.offsets[-1], index.positions[-1], index.times[-1]
        for position, header in self.walk(self.size, found):
            if header.base_offset < self.next_offset or position + header.size > found or not self._is_whole(position, header):
                break
            index.mark(header.base_offset, position, self.max_timestamp, INDEX_INTERVAL)
            self.size = position + header.size
            self.next_offset = header.next_offset
            self.max_timestamp = max(self.max_timestamp, header.max_timestamp)
        if self.size < found:
            os.ftruncate(self.file.fd, self.size)
            logger.warning(
                "%s ended in %d bytes that are not a whole record batch, as after a crash in the middle of a write; they are cut. "
                "The file continues at offset %d.",
                self.path,
                found - self.size,
                self.next_offset,
            )

    def _agrees(self, index, found):
        """Whether the batch of the last row exists."""
        position = index.positions[-1]
        if position == found:
            return True
        header = next(self.walk(position, found), (0, None))[1] if position < found else None
        # The scan truncates a torn batch right after the last row; the rows are still valid.
        return position < found and (header is None or header.base_offset >= index.offsets[-1])

    def _is_whole(self, position, header):
        batch = os.pread(self.file.fd, header.size, position)
        return batch_header.checksum(np.frombuffer(batch, np.uint8)) == header.crc

    def _made_again(self):
        if os.path.exists(self.index_path):
            os.unlink(self.index_path)
        index, latest = Index.beginning(self.base_offset), -1
        for position, header in self.walk(0):
            index.mark(header.base_offset, position, latest, INDEX_INTERVAL)
            latest = max(latest, header.max_timestamp)
        return index


class Deletion:
    """Delete files, and folders with their content; may run on any thread."""

    def __init__(self, paths, file=None):
        self._paths = paths
        self._file = file

    def run(self):
        for path in self._paths:
            try:
                if os.path.isdir(path):
                    shutil.rmtree(path)
                else:
                    os.unlink(path)
            except FileNotFoundError:
                pass
            except OSError as error:
                logger.error("%s could not be deleted: %s", path, error.strerror)
        self._file = None


class Index:
    """Rows ordered by position; `saved` of them are in the file."""

    def __init__(self, offsets, positions, times, saved):
        self.offsets = offsets
        self.positions = positions
        self.times = times
        self.saved = saved

    @classmethod
    def beginning(cls, base_offset):
        return cls(array("q", [base_offset]), array("q", [0]), array("q", [-1]), 0)

    @classmethod
    def load(cls, path, base_offset):
        """Load the index; None if it is missing or invalid."""
        try:
            with open(path, "rb") as file:
                data = file.read()
        except FileNotFoundError:
            return None
        flat = array("q")
        flat.frombytes(data[: len(data) // _ROW_BYTES * _ROW_BYTES])
        offsets, positions, times = flat[0::3], flat[1::3], flat[2::3]
        if not offsets or offsets[0] != base_offset or positions[0] != 0:
            return None
        if not (_rises(offsets) and _rises(positions)) or any(a > b for a, b in zip(times, times[1:])):
            return None
        return cls(offsets, positions, times, len(offsets))

    @staticmethod
    def last_row(path):
        try:
            with open(path, "rb") as file:
                size = file.seek(0, os.SEEK_END)
                if size < _ROW_BYTES or size % _ROW_BYTES:
                    return None
                file.seek(size - _ROW_BYTES)
                row = array("q")
                row.frombytes(file.read(_ROW_BYTES))
                return tuple(row)
        except FileNotFoundError:
            return None

    def mark(self, offset, position, latest, interval):
        """Add a row for the batch at `position` if the last row is at least `interval` bytes before."""
        if position - self.positions[-1] >= interval:
            self.offsets.append(offset)
            self.positions.append(position)
            self.times.append(latest)

    def take_unsaved(self):
        flat = array("q")
        for row in range(self.saved, len(self.offsets)):
            flat.extend((self.offsets[row], self.positions[row], self.times[row]))
        self.saved = len(self.offsets)
        return flat.tobytes()

    def before_offset(self, offset):
        return self.positions[max(bisect_right(self.offsets, offset) - 1, 0)]

    def before_position(self, position):
        return self.positions[max(bisect_right(self.positions, position) - 1, 0)]

    def before_time(self, timestamp):
        return self.positions[max(bisect_left(self.times, timestamp) - 1, 0)]


def _rises(numbers):
    return all(a < b for a, b in zip(numbers, numbers[1:]))


if sys.byteorder != "little":  # pragma: no cover - index files must mean the same on every machine
    raise ImportError("the embedded log keeps its indexes in little-endian order")
