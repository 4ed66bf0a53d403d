"""The offsets file: where each source continues after a restart.

A journal of JSON lines. A line is appended, by one write, as soon as the records after it are acknowledged, so that it outlives
the process; `sync` makes it outlive the machine. Each line carries a checksum. A last line that is torn was being written when
the process died: it is dropped with a warning. Any other damage is refused: to read it as "no offsets" would send everything again.
"""

import logging
import os
import threading
import zlib

import orjson

from standalone.connector import OffsetReader
from standalone.errors import ConnectError, OffsetsError
from standalone.private import open_private
from standalone.runtime.offsets import java_map

log = logging.getLogger(__name__)

_HEADER = b'{"journal":"connect-standalone offsets","version":1}\n'
_COMPACT_AFTER = 10_000  # lines that later ones made void; below that a longer file costs less than a new one


class OffsetsFile:
    """Thread-safe. `before_sync` is called first in each sync: what the offsets vouch for must be durable before they are, so that nothing
    is appended meanwhile. Who reads waits for no disk.
    """

    def __init__(self, path, before_sync=None):
        self.path = os.path.abspath(path)
        self._before_sync = before_sync or (lambda: None)
        self._writing = threading.Lock()  # the file, and all that follows
        self._lock = threading.Lock()  # the entries; who changes them holds both
        self._live = {}  # connector -> {canonical partition -> partition and offset, as JSON: there may be one for each of many files}
        self._lines = 0
        self._file = None
        self._dirty = False
        self._doubtful = False  # whether the file can no longer be relied on: a new one is written
        self._moved = False  # the file has taken another's place, which the folder may not know for good
        self._broken = None  # the error that made further writes unsafe

    # ---------------------------------------------------------------- opening
    def open(self):
        """Read what is there and get ready to append."""
        data = self._read(make_folder=True)
        if data.startswith(java_map.MAGIC):
            self._import_java(data)
        elif data:
            keep = self._replay(data)
            self._file = open(self.path, "r+b", buffering=0)
            self._file.truncate(keep)
            self._file.seek(keep)
        else:
            if os.path.exists(self.path):
                log.warning("The offsets file %s is empty: every source starts from its beginning", self.path)
            self._rewrite()
        return self

    def load(self):
        """Read what is there and change nothing, for those who only look: nothing can be appended."""
        data = self._read()
        if data.startswith(java_map.MAGIC):
            self._take_java(data)
        elif data:
            self._replay(data)
        return self

    def _read(self, make_folder=False):
        try:
            if make_folder:
                os.makedirs(os.path.dirname(self.path), exist_ok=True)
            if not os.path.exists(self.path):
                return b""
            with open(self.path, "rb") as file:
                return file.read()
        except OSError as error:
            raise OffsetsError(f"The offsets file {self.path} (offset.storage.file.filename) cannot be read: {error.strerror}.") from error

    def _replay(self, data):
        """Take in the lines; the length up to which the file is sound."""
        if not data.startswith(_HEADER):
            raise self._damaged("its first line is not that of an offsets journal")
        at = len(_HEADER)
        while at < len(data):
            end = data.find(b"\n", at)
            entry = _parse(data[at:end]) if end >= 0 else None
            if entry is None:
                if end < 0 or end == len(data) - 1:
                    log.warning("The last line of the offsets file %s is incomplete and is dropped: its source repeats a few records", self.path)
                    return at
                line = data.count(b"\n", 0, at) + 1
                raise self._damaged(f"line {line} is not what was written")
            self._set(*entry)
            self._lines += 1
            at = end + 1
        return at

    def _damaged(self, how):
        return OffsetsError(
            f"The offsets file {self.path} is damaged: {how}. Nothing was started, so nothing is sent twice. "
            f"Restore it from a copy, or remove the bad line, or move the file away to start every source from its beginning."
        )

    def _take_java(self, data):
        try:
            for connector, partition, offset in java_offsets(data):
                self._set(connector, partition, offset)
        except (java_map.NotAMap, ValueError, TypeError) as error:
            raise OffsetsError(
                f"The offsets file {self.path} begins like one of Java's worker but cannot be read as such: {error}. "
                f"Restore it from a copy, or move it away to start every source from its beginning."
            ) from error

    def _import_java(self, data):
        self._take_java(data)
        kept = self.path + ".java"
        with open_private(kept + ".tmp", "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(kept + ".tmp", kept)
        _sync_folder(os.path.dirname(kept))  # before the original is no more
        self._rewrite()
        log.info("Took over %d source offsets from the Java worker's file %s, which is kept as %s", self._count(), self.path, kept)

    # ---------------------------------------------------------------- reading
    def get(self, connector, partition):
        with self._lock:
            entry = self._live.get(connector, {}).get(_canonical(partition))
        return orjson.loads(entry)[1] if entry else None

    def all(self, connector):
        """[(source partition, source offset), ...] of one connector."""
        with self._lock:
            entries = list(self._live.get(connector, {}).values())
        return [tuple(orjson.loads(entry)) for entry in entries]

    def connectors(self):
        """The names of all connectors that have offsets here."""
        with self._lock:
            return [name for name, entries in self._live.items() if entries]

    def reader(self, connector):
        return _Reader(self, connector)

    # ---------------------------------------------------------------- writing
    def append(self, connector, entries):
        """Store [(partition, offset), ...]; an offset of None forgets that partition. Outlives the process once it returns."""
        lines = b"".join(_line(connector, partition, offset) for partition, offset in entries)
        with self._writing:
            self._write(lines)
            with self._lock:
                for partition, offset in entries:
                    self._set(connector, partition, offset)
            self._lines += len(entries)
            self._dirty = True

    def sync(self):
        """Make what was appended durable; whether there was anything."""
        if not self._dirty:
            return False
        with self._writing:
            if not self._dirty:  # another thread was quicker, maybe the one that closes
                return False
            if self._broken:
                raise self._broken
            self._before_sync()
            if self._doubtful or self._lines - self._count() > _COMPACT_AFTER:
                self._rewrite()
            else:
                self._doubtful = True  # what a failed fsync has left behind, a second one that succeeds says nothing of
                os.fsync(self._file.fileno())
                self._sync_folder()
            self._dirty = self._doubtful = False
            return True

    def close(self):
        if self._file is not None:
            self.sync()
            with self._writing:
                self._file.close()
                self._file = None

    def _write(self, lines):
        if self._broken:
            raise self._broken
        end = self._file.tell()
        try:
            written = self._file.write(lines)
            if written != len(lines):  # a full disk takes a part before it fails
                written += self._file.write(lines[written:])
            if written != len(lines):
                raise OSError(28, "No space left on device")
        except OSError as error:
            self._cut_back(end)
            raise ConnectError(
                f"The offsets file {self.path} cannot be written: {error.strerror}. The offsets stay where they were: nothing is lost, "
                f"and what was sent since is sent again after a restart. Make room, then restart the task."
            ) from error

    def _cut_back(self, end):
        """Take away a part-written line, so that the next one does not be after it."""
        try:
            self._file.truncate(end)
            self._file.seek(end)
        except OSError as error:
            self._broken = ConnectError(f"The offsets file {self.path} holds a part-written line that cannot be taken back: {error.strerror}.")

    def _rewrite(self):
        """The live entries alone, in a new file that takes the old one's place in one step."""
        temporary = self.path + ".tmp"
        try:
            file = open_private(temporary, "wb", buffering=0)
            try:
                live = [_line(name, *orjson.loads(entry)) for name, entries in self._live.items() for entry in entries.values()]
                content = memoryview(_HEADER + b"".join(live))
                while content:
                    content = content[file.write(content) :]
                os.fsync(file.fileno())
                os.replace(temporary, self.path)
            except OSError:
                file.close()
                raise
            # From here on this is the file, whatever happens to the folder: the one before has no name any more.
            if self._file is not None:
                self._file.close()
            self._file, self._lines, self._moved = file, self._count(), True
            self._sync_folder()
        except OSError as error:
            raise OffsetsError(f"The offsets file {self.path} cannot be written: {error.strerror}.") from error

    def _sync_folder(self):
        if self._moved:
            _sync_folder(os.path.dirname(self.path))
            self._moved = False

    def _set(self, connector, partition, offset):
        entries = self._live.setdefault(connector, {})
        if offset is None:
            entries.pop(_canonical(partition), None)
        else:
            entries[_canonical(partition)] = orjson.dumps([partition, offset])

    def _count(self):
        return sum(map(len, self._live.values()))


class _Reader(OffsetReader):
    def __init__(self, file, connector):
        self._file, self._connector = file, connector

    def offset(self, partition):
        return self._file.get(self._connector, partition)


def java_offsets(data):
    """[(connector, partition, offset or None), …] of the bytes of a Java worker's offsets file. Raises NotAMap, ValueError or TypeError."""
    found = []
    for key, value in java_map.read(data):
        connector, partition = orjson.loads(key)
        found.append((connector, partition, None if value is None else orjson.loads(value)))
    return found


def _canonical(partition):
    """The same bytes for equal partitions, whatever the order of their keys."""
    return orjson.dumps(partition, option=orjson.OPT_SORT_KEYS)


def _line(connector, partition, offset):
    try:
        body = orjson.dumps([connector, partition, offset])
    except TypeError as error:
        raise ConnectError(
            f"A source offset of connector '{connector}' cannot be stored: {error}. Partitions and offsets are dicts of texts, numbers and booleans."
        ) from error
    return b'{"entry":%b,"check":%d}\n' % (body, zlib.crc32(body))


def _parse(line):
    """(connector, partition, offset) of a sound line, else None."""
    try:
        said = orjson.loads(line)
        connector, partition, offset = said["entry"]
        return (connector, partition, offset) if said["check"] == zlib.crc32(line[9 : line.rindex(b',"check":')]) else None
    except (ValueError, TypeError, KeyError):
        return None


def _sync_folder(path):
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
