"""FileStreamSink: append each record's value to a file, or to standard output, as a line.

Every write is checked: if the disk is full, the task fails, partial writes are truncated, and offsets are not committed. Offsets are
committed only after an fsync.
"""

import errno
import os
import select
import stat

from connectors.file.open_file import refused_file
from standalone import (
    HIGH,
    STRING,
    ConfigDef,
    ConnectError,
    Option,
    SinkConnector,
    SinkTask,
    java_text,
    open_allowed,
)

STANDARD_OUTPUT = 1
GATHER_BYTES = 1 << 18  # small batches are written together
_LINE_END, _NULL = b"\n", b"null"


class FileStreamSinkConnector(SinkConnector):
    """Append each record's value, and a line end, to a file.

    Strings and bytes are written unchanged, other values in Java's toString format; a null is written as null.
    """

    java_name = "org.apache.kafka.connect.file.FileStreamSinkConnector"

    config_def = ConfigDef(
        Option("file", STRING, HIGH, "The file to append to, created if missing; its folder must exist. Default: standard output.", default=None),
    )  # fmt: skip

    def validate(self, config):
        return refused_file(config)

    def task_configs(self, max_tasks):
        return [dict(self.config) for _ in range(max_tasks)]  # several tasks can append to one file

    def alter_offsets(self, config, offsets):
        return True  # written lines stay; there is nothing else to reset


class FileStreamSinkTask(SinkTask):
    java_name = "org.apache.kafka.connect.file.FileStreamSinkTask"
    takes_batches = True

    def __init__(self, standard_output=STANDARD_OUTPUT):
        self._standard_output = standard_output
        self._file = None

    def start(self, config):
        self.config = config
        path = FileStreamSinkConnector.config_def.parse(config)["file"]
        self._file = Appender.to_path(path) if path else Appender(os.dup(self._standard_output), "standard output")

    def prepare(self, batch):
        return lines_of(batch)

    def put(self, records):
        gathered, size = [], 0
        start = self._file.mark()
        for batch in records:
            text = lines_of(batch) if batch.prepared is None else batch.prepared
            gathered.append(text)
            size += len(text)
            if size >= GATHER_BYTES:
                self._file.write(gathered, start)
                gathered, size = [], 0
        if gathered:
            self._file.write(gathered, start)

    def flush(self, offsets):
        self._file.sync()

    def stop(self):
        if self._file is not None:
            self._file.close()
            self._file = None


def lines_of(batch):
    """Convert a batch's values to lines of text: bytes, or an array of them."""
    if batch.value is None:
        return (_NULL + _LINE_END) * len(batch)
    if (texts := batch.texts()) is not None:
        return texts.join(_LINE_END, _NULL)
    schema = batch.value_schema
    values = batch.value if isinstance(batch.value, list) else [record.value for record in batch.records()]
    return _LINE_END.join([_as_bytes(each, schema) for each in values]) + _LINE_END if values else b""


def _as_bytes(value, schema):
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    return java_text(value, schema).encode("utf-8", "replace")


class Appender:
    """A file opened for appending, with checked writes."""

    def __init__(self, descriptor, name):
        self.name = name
        self._descriptor = descriptor
        self._is_regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
        self._unsynced = False
        self._new_in = None  # folder whose entry for this file is not fsynced yet
        self._lost = None  # why earlier writes may be lost

    @classmethod
    def to_path(cls, path):
        flags = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
        try:
            try:
                return cls(open_allowed(path, flags), path)
            except FileNotFoundError:
                appender = cls(open_allowed(path, flags | os.O_CREAT), path)
        except FileNotFoundError:
            folder = os.path.dirname(path) or "."
            raise ConnectError(f"FileStreamSink cannot write to '{path}': there is no folder '{folder}'. Create it, or change 'file'.") from None
        except OSError as error:
            raise ConnectError(f"FileStreamSink cannot write to '{path}': {error.strerror} (errno {error.errno}).") from error
        appender._new_in = os.path.dirname(path) or "."
        return appender

    def mark(self):
        """Return the end of a regular file, to which a failed write is truncated."""
        return [os.fstat(self._descriptor).st_size, 0] if self._is_regular else None

    def write(self, pieces, mark):
        """Append all pieces, or raise ConnectError and truncate the file to the mark."""
        self._must_be_sound()
        rest = memoryview(pieces[0] if len(pieces) == 1 else b"".join(pieces)).cast("B")
        self._unsynced = True
        try:
            while len(rest):
                try:
                    written = os.write(self._descriptor, rest)
                except BlockingIOError:  # standard output may be a pipe that another program made non-blocking
                    self._wait_for_room()
                    continue
                rest = rest[written:]
                if mark is not None:
                    mark[1] += written
        except OSError as error:
            taken_back = self._take_back(mark)
            raise ConnectError(
                f"FileStreamSink cannot write to '{self.name}': {error.strerror} (errno {error.errno}). {taken_back}{_advice(error.errno)}"
            ) from error

    def sync(self):
        """fsync what was written."""
        self._must_be_sound()
        if not self._unsynced or not self._is_regular:
            return
        try:
            os.fsync(self._descriptor)
            if self._new_in is not None:
                _sync_folder(self._new_in)
        except OSError as error:
            # The kernel drops pages that it failed to write: the next fsync would succeed although data is lost.
            self._lost = f"{error.strerror}, errno {error.errno}"
            raise ConnectError(f"FileStreamSink cannot store '{self.name}': fsync failed ({self._lost}). The offsets are not committed.") from error
        self._new_in = None
        self._unsynced = False

    def close(self):
        os.close(self._descriptor)

    def _must_be_sound(self):
        if self._lost is not None:
            raise ConnectError(f"'{self.name}' is not written any more: an earlier fsync failed ({self._lost}), and earlier writes may be lost.")

    def _wait_for_room(self):
        waiting = select.poll()
        waiting.register(self._descriptor, select.POLLOUT)
        waiting.poll(1000)

    def _take_back(self, mark):
        if mark is None:
            return ""
        start, written = mark
        if not written:
            return "Nothing of these records was written. "
        # Another program has written to the file meanwhile: do not truncate its data.
        if os.fstat(self._descriptor).st_size != start + written:
            return f"{written} bytes of these records were written before that and will be written again. "
        os.ftruncate(self._descriptor, start)
        return "The partial write of these records was undone. "


def _sync_folder(path):
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _advice(code):
    if code in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return "Free disk space, then restart the task."
    return "Fix the cause, then restart the task."


FileStreamSinkConnector.task_class = FileStreamSinkTask
