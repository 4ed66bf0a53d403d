"""FilesSource: publish the files of a folder, including new ones, each once.

    readers.py   file formats             arrow_values.py, avro_container.py   conversion to Connect

A record's source offset has its file's path, size and modification time, and the next row. A file counts as complete once its size has not
changed for a while; a replaced file is read again.
"""

import glob
import logging
import os
import threading
import time
import zlib

from connectors.storage.readers import FORMATS, Progress, format_of, pieces
from standalone import (
    HIGH,
    INT,
    LONG,
    LOW,
    MEDIUM,
    STRING,
    ConfigDef,
    ConfigError,
    ConnectError,
    DataError,
    ExactlyOnceSupport,
    Option,
    SourceBatch,
    SourceConnector,
    SourceTask,
    at_least,
    check_allowed_file,
    one_of,
)

log = logging.getLogger(__name__)

PATH, ROW, SIZE, MODIFIED, FINISHED = "path", "row", "size", "modified", "finished"
WORD_SECONDS = 10  # between two log lines about the progress in a large file
WAIT_SECONDS = 0.5  # poll returns at least this often
_TASK, _TASKS = "files.task", "files.tasks"  # assigns files to tasks


class FilesSourceConnector(SourceConnector):
    """Publish the content of files (Parquet, ORC, Avro, JSON, CSV or text) to a topic; watch the folder for new files.

    path=/data/incoming   topic=orders   finished.action=move   finished.folder=/data/done
    """

    config_def = ConfigDef(
        Option("path", STRING, HIGH, "A folder, read recursively, or a file pattern: /in/*.parquet. Names that begin with . or _ are ignored."),
        Option("topic", STRING, HIGH, "The topic to publish to."),
        Option(
            "format", STRING, MEDIUM, "Format of the files. Empty: by their extension; files with unknown extensions are ignored.", default="",
            check=one_of("", *FORMATS),
        ),
        Option(
            "finished.action", STRING, MEDIUM, "What to do with a file whose records are all stored.", default="keep",
            check=one_of("keep", "move", "delete"),
        ),
        Option("finished.folder", STRING, MEDIUM, "The folder to move it to.", default=""),
        Option("batch.size", INT, LOW, "Records per batch.", default=5000, check=at_least(1)),
        Option("settled.after.ms", LONG, LOW, "How long a file must be unchanged to count as complete.", default=1000, check=at_least(0)),
        Option("look.interval.ms", LONG, LOW, "How often to look for new files.", default=1000, check=at_least(1)),
        Option(
            "bad.files", STRING, LOW, "What to do with an unreadable file: fail the task, or skip the file.", default="fail",
            check=one_of("fail", "skip"),
        ),
        Option(_TASK, INT, LOW, "Which of the tasks this is.", default=0, internal=True),
        Option(_TASKS, INT, LOW, "How many there are.", default=1, internal=True),
    )  # fmt: skip

    def validate(self, config):
        errors = {}
        if config.get("finished.action") == "move" and not config.get("finished.folder"):
            errors["finished.folder"] = "must be given with finished.action=move"
        for key in ("path", "finished.folder"):
            try:
                if config.get(key):
                    check_allowed_file(_fixed_part(config[key]))
            except ConfigError as error:
                errors[key] = error.errors["file"]
        return errors

    def task_configs(self, max_tasks):
        return [{**self.config, _TASK: str(number), _TASKS: str(max_tasks)} for number in range(max_tasks)]

    def exactly_once_support(self, config):
        return ExactlyOnceSupport.SUPPORTED

    def alter_offsets(self, config, offsets):
        for partition, offset in offsets:
            if set(partition) != {PATH} or offset is not None and not isinstance(offset.get(ROW), int):
                raise ConnectError(f'An offset of files is {{"{PATH}": …}} and {{"{ROW}": 123}}, not {partition} and {offset}.')
        return True


class FilesSourceTask(SourceTask):
    def start(self, config):
        self.config = FilesSourceConnector.config_def.parse(config)
        self._stopped = threading.Event()
        self._reading = None
        self._left = {}  # path -> the skipped file: ignored until it changes
        self._finished = {}  # path -> File: completely read, records in flight
        self._looks = {}  # path -> (size, modification time, since when)
        self._next_look = 0.0
        self._bytes, self._bytes_done = 0, 0
        self._next_word = time.monotonic() + WORD_SECONDS  # next progress line

    def poll(self):
        while not self._stopped.is_set():
            self._reading = self._reading or self._next_file()
            if self._reading is None:
                self._stopped.wait(min(WAIT_SECONDS, self.config["look.interval.ms"] / 1000))
                return None
            batch = self._read()
            if batch is not None:
                return batch
        return None

    def stop(self):
        self._stopped.set()

    def commit(self):
        """Finish files whose last records are now stored."""
        for path, file in list(self._finished.items()):
            stored = self._stored(path)
            if stored is not None and stored.get(FINISHED) and file.is_told_by(stored):
                del self._finished[path]
                self._finish_file(file)

    # --- Choosing files ---

    def _next_file(self):
        now = time.monotonic()
        if now < self._next_look:
            return None
        found = [file for file in self._files(now) if not self._is_known(file)]
        if not found:
            self._next_look = now + self.config["look.interval.ms"] / 1000
            return None
        self._bytes = self._bytes_done + sum(file.size for file in found)
        for file in found:
            if (reading := self._opened(file)) is not None:
                return reading
        return None

    def _files(self, now):
        """Return this task's complete files, oldest first."""
        found = []
        for path in _matching(self.config["path"]):
            if zlib.crc32(path.encode()) % self.config[_TASKS] != self.config[_TASK]:
                continue
            if not self.config["format"] and format_of(path) is None:
                continue
            try:
                file = File.at(path)
            except FileNotFoundError:
                continue
            size, modified, since = self._looks.get(path, (None, None, None))
            if (size, modified) != (file.size, file.modified):
                # A file modified long ago is complete; others are watched for a while.
                age = time.time() - file.modified / 1e9
                since = now - max(0.0, age)
                self._looks[path] = file.size, file.modified, since
            if now - since >= self.config["settled.after.ms"] / 1000:
                found.append(file)
        return sorted(found, key=lambda file: (file.modified, file.path))

    def _is_known(self, file):
        return any(known.get(file.path) == file for known in (self._left, self._finished))

    def _opened(self, file):
        check_allowed_file(file.path)
        stored = self._stored(file.path)
        row = 0
        if stored is not None and file.is_told_by(stored):
            row = stored[ROW]
            if stored.get(FINISHED):
                self._finish_file(file)  # the worker stopped before it could
                return None
        format = self.config["format"] or format_of(file.path)
        progress = Progress()
        return Reading(file, pieces(file.path, format, self.config["batch.size"], progress), row, progress)

    def _stored(self, path):
        return self.context.offset_reader.offset({PATH: path})

    # --- Reading ---

    def _read(self):
        reading = self._reading
        try:
            found = reading.next()
        except (DataError, OSError) as error:
            self._reading = None
            text = f"FilesSource cannot read {reading.file.path} after row {reading.row}: {error}."
            if self.config["bad.files"] == "fail":
                raise ConnectError(f"{text} Fix or move the file, or set bad.files=skip, then restart the task.") from error
            log.error("%s Skipping the rest of it (bad.files=skip)", text)
            self._left[reading.file.path] = reading.file
            return None
        if found is None:  # an empty file, or nothing new
            self._reading = None
            self._finish_file(reading.file)
            return None
        schema, values, first, is_last = found
        file, count = reading.file, len(values)
        if is_last:
            self._reading = None
            self._finished[file.path] = file
            self._bytes_done += file.size
            log.info("Finished %s: %d rows; %d %% of all known bytes", file.path, first + count, self._percent())
            self._next_word = time.monotonic() + WORD_SECONDS
        elif time.monotonic() >= self._next_word:
            log.info("Reading %s: %d rows so far; %d %% of all known bytes", file.path, first + count, self._percent(reading))
            self._next_word = time.monotonic() + WORD_SECONDS

        def offset_of(row):
            told = {ROW: first + row + 1, SIZE: file.size, MODIFIED: file.modified}
            return {**told, FINISHED: True} if is_last and row == count - 1 else told

        return SourceBatch(
            *(count, self.config["topic"], values, schema), source_partition={PATH: file.path}, offset_of=offset_of, more_follows=not is_last
        )

    def _percent(self, reading=None):
        """Return the percentage read of all known files."""
        done = self._bytes_done + (reading.file.size * reading.progress.share if reading is not None else 0)
        return int(100 * done / max(1, self._bytes))

    def _finish_file(self, file):
        """Finish a file whose records are all stored."""
        self._left[file.path] = file
        action = self.config["finished.action"]
        try:
            if action == "delete" and File.at(file.path) == file:
                os.unlink(file.path)
            elif action == "move" and File.at(file.path) == file:
                os.makedirs(self.config["finished.folder"], exist_ok=True)
                os.replace(file.path, _free_name(self.config["finished.folder"], os.path.basename(file.path)))
        except FileNotFoundError:
            pass
        except OSError as error:
            log.error("FilesSource cannot %s %s after storing its records: %s", action, file.path, error)


class File:
    """A file's state at one moment."""

    def __init__(self, path, size, modified):
        self.path, self.size, self.modified = path, size, modified

    @classmethod
    def at(cls, path):
        found = os.stat(path)
        return cls(path, found.st_size, found.st_mtime_ns)

    def is_told_by(self, offset):
        """Whether an offset belongs to this file. An offset set by an operator only has the row."""
        return offset.get(SIZE, self.size) == self.size and offset.get(MODIFIED, self.modified) == self.modified

    def __eq__(self, other):
        return isinstance(other, File) and (self.path, self.size, self.modified) == (other.path, other.size, other.modified)

    __hash__ = None


class Reading:
    """A file being read, one piece ahead, so that the last piece is known as such."""

    def __init__(self, file, found, row, progress):
        self.file, self.row = file, 0  # rows read so far
        self.progress = progress
        self._found, self._skip = found, row
        self._ahead = None
        self._began = False

    def next(self):
        """Return (schema, values, row of the first, whether they are the last); None at the end."""
        if not self._began:
            self._began, self._ahead = True, self._read()
        if self._ahead is None:
            return None
        given, self._ahead = self._ahead, self._read()
        return *given, self._ahead is None

    def _read(self):
        for schema, values in self._found:
            first, self.row = self.row, self.row + len(values)
            if self.row > self._skip and values:
                left_out = max(0, self._skip - first)
                return schema, values[left_out:], first + left_out
        return None


def _matching(text):
    pattern = os.path.join(glob.escape(text), "**") if os.path.isdir(text) else text
    for path in glob.iglob(pattern, recursive=True):
        if not any(part.startswith((".", "_", "+tmp")) for part in path[len(_fixed_part(text)) :].split("/")) and os.path.isfile(path):
            yield path


def _fixed_part(text):
    """Return the folder, or the part of a pattern before its first wildcard."""
    if os.path.isdir(text) or not glob.has_magic(text):
        return text
    return os.path.dirname(text[: min(at for at in map(text.find, "*?[") if at >= 0)]) or "."


def _free_name(folder, name):
    path, number = os.path.join(folder, name), 0
    while os.path.exists(path):
        number += 1
        path = os.path.join(folder, f"{name}.{number}")
    return path


FilesSourceConnector.task_class = FilesSourceTask
