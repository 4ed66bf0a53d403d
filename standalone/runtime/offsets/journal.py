"""The offsets file: where each source resumes after a restart.

A journal of JSON lines. A line is appended, in one write, as soon as the records before its offset are acknowledged, so that it survives a
crash of the process; `sync` makes it survive a crash of the machine. Each line has a checksum. A torn last line was being written when the
process died: it is dropped with a warning. Any other damage is an error: reading it as "no offsets" would send everything again.
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
_COMPACT_AFTER = 10_000  # superseded lines; below that a longer file costs less than a rewrite


class OffsetsFile:
    """Thread-safe. `before_sync` is called first in each sync: the data that the offsets refer to must be durable before them. Appends wait
    meanwhile; readers never wait for the disk.
    """

    def __init__(self, path, before_sync=None):
        self.path = os.path.abspath(path)
        self._before_sync = before_sync or (lambda: None)
        self._writing = threading.Lock()  # guards the file, and the attributes below
        self._lock = threading.Lock()  # guards the entries; changes need both locks
        self._live = {}  # connector -> {canonical partition -> partition and offset, as JSON: there may be one per file}
        self._lines = 0
        self._file = None
        self._dirty = False
        self._doubtful = False  # whether the file may be inconsistent: then a new one is written
        self._moved = False  # the file was renamed, and the folder is not synced yet
        self._broken = None  # the error after which writes are unsafe

    # ---------------------------------------------------------------- opening
    def open(self):
        """Read the file and prepare to append."""
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
        """Read the file without changing anything, for read-only tools: nothing can be appended."""
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
        """Apply the lines; return the length of the valid part."""
        if not data.startswith(_HEADER):
            raise self._damaged("its first line is not the header of an offsets journal")
        at = len(_HEADER)
        while at < len(data):
            end = data.find(b"\n", at)
            entry = _parse(data[at:end]) if end >= 0 else None
            if entry is None:
                if end < 0 or end == len(data) - 1:
                    log.warning("The last line of the offsets file %s is incomplete and is dropped; its source may repeat a few records", self.path)
                    return at
                line = data.count(b"\n", 0, at) + 1
                raise self._damaged(f"line {line} is corrupt")
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
        _sync_folder(os.path.dirname(kept))  # before the original is replaced
        self._rewrite()
        log.info("Took over %d source offsets from the Java worker's file %s, backed up as %s", self._count(), self.path, kept)

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
        """The names of all connectors with offsets in this file."""
        with self._lock:
            return [name for name, entries in self._live.items() if entries]

    def reader(self, connector):
        return _Reader(self, connector)

    # ---------------------------------------------------------------- writing
    def append(self, connector, entries):
        """Store [(partition, offset), ...]; an offset of None deletes that partition. Survives a crash of the process once it returns."""
        lines = b"".join(_line(connector, partition, offset) for partition, offset in entries)
        with self._writing:
            self._write(lines)
            with self._lock:
                for partition, offset in entries:
                    self._set(connector, partition, offset)
            self._lines += len(entries)
            self._dirty = True

    def sync(self):
        """Make appended lines durable; return whether there were any."""
        if not self._dirty:
            return False
        with self._writing:
            if not self._dirty:  # another thread has synced, maybe the one that closes
                return False
            if self._broken:
                raise self._broken
            self._before_sync()
            if self._doubtful or self._lines - self._count() > _COMPACT_AFTER:
                self._rewrite()
            else:
                self._doubtful = True  # after a failed fsync, a later success does not mean that the data is on disk
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
            if written != len(lines):  # a full disk writes a part before it fails
                written += self._file.write(lines[written:])
            if written != len(lines):
                raise OSError(28, "No space left on device")
        except OSError as error:
            self._cut_back(end)
            raise ConnectError(
                f"The offsets file {self.path} cannot be written: {error.strerror}. The stored offsets are unchanged: nothing is lost, "
                f"and records sent since are sent again after a restart. Free disk space, then restart the task."
            ) from error

    def _cut_back(self, end):
        """Truncate a partly written line, so that the next one starts on its own line."""
        try:
            self._file.truncate(end)
            self._file.seek(end)
        except OSError as error:
            self._broken = ConnectError(f"The offsets file {self.path} has a partly written line that cannot be truncated: {error.strerror}.")

    def _rewrite(self):
        """Write the live entries to a new file and atomically rename it over the old one."""
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
            # From here on this is the file, even if the folder's sync fails: the old one is unlinked.
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
    """[(connector, partition, offset or None), …] from the bytes of a Java worker's offsets file. Raises NotAMap, ValueError or TypeError."""
    found = []
    for key, value in java_map.read(data):
        connector, partition = orjson.loads(key)
        found.append((connector, partition, None if value is None else orjson.loads(value)))
    return found


def _canonical(partition):
    """The same bytes for equal partitions, regardless of the order of their keys."""
    return orjson.dumps(partition, option=orjson.OPT_SORT_KEYS)


def _line(connector, partition, offset):
    try:
        body = orjson.dumps([connector, partition, offset])
    except TypeError as error:
        raise ConnectError(
            f"A source offset of connector '{connector}' cannot be stored: {error}. "
            "Partitions and offsets must be dicts of strings, numbers and booleans."
        ) from error
    return b'{"entry":%b,"check":%d}\n' % (body, zlib.crc32(body))


def _parse(line):
    """(connector, partition, offset) of a valid line, else None."""
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
