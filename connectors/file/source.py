"""FileStreamSource: follow a text file, or read standard input, and publish each line.

Unlike Kafka's it detects rotation, truncation and replacement, counts bytes instead of characters, and is notified of
writes.
"""

import os
import stat
import sys
import time

import numpy as np

from connectors.file.open_file import CUT, FAIL, SKIP, Limits, refused_file
from connectors.file.rotation import Place
from connectors.file.stream import StreamTail
from connectors.file.tail import FileTail
from connectors.file.watch import StreamWatch, Watch
from standalone import (
    HIGH,
    INT,
    LOW,
    STRING,
    ByteColumn,
    ConfigDef,
    ConfigError,
    ConnectError,
    ExactlyOnceSupport,
    Option,
    Schema,
    SourceBatch,
    SourceConnector,
    SourceTask,
    at_least,
    check_allowed_file,
    non_empty,
    one_of,
    open_allowed,
)

FILENAME, POSITION = "filename", "position"

IDLE_SECONDS = 1.0  # poll returns at least this often
GATHER_SECONDS = 0.002  # pause between two small polls, so that frequent writes are batched
GATHER_BYTES = 1 << 16
STANDARD_INPUT = 0


class FileStreamSourceConnector(SourceConnector):
    """Follow a text file and publish each finished line as a string.

    A line is complete once its line end is written (LF, CR LF or CR); an incomplete last line waits.
    """

    java_name = "org.apache.kafka.connect.file.FileStreamSourceConnector"

    config_def = ConfigDef(
        Option("file", STRING, HIGH, "The file to read. Default: standard input.", default=None),
        Option("topic", STRING, HIGH, "The topic to publish to.", check=non_empty),
        Option("batch.size", INT, LOW, "Maximum records per poll. Default: as many as it can read.", default=2000),
        Option(
            "file.max.line.bytes", INT, LOW,
            "Maximum line length in bytes, without the line end. A line must also fit into a produce request.",
            default=16 << 20, check=at_least(1), internal=True,
        ),
        Option(
            "file.long.lines", STRING, LOW,
            "What to do with a longer line: fail (the task fails, nothing is lost), cut (publish its beginning), skip.",
            default=FAIL, check=one_of(FAIL, CUT, SKIP), internal=True,
        ),
        Option(
            "file.rotate.wait.ms", INT, LOW,
            "How long a renamed or deleted file must not grow before it counts as complete and the next file is read.",
            default=1000, check=at_least(0), internal=True,
        ),
    )  # fmt: skip

    def validate(self, config):
        return refused_file(config)

    def exactly_once_support(self, config):
        return ExactlyOnceSupport.SUPPORTED if config.get("file") else ExactlyOnceSupport.UNSUPPORTED  # standard input has no offsets

    def task_configs(self, max_tasks):
        return [dict(self.config)]  # one file has one reader, whatever tasks.max is

    def alter_offsets(self, config, offsets):
        if not config.get("file"):
            raise ConnectError("Offsets of a connector without 'file' cannot be altered: standard input has none.")
        for partition, offset in offsets:
            if offset is None:
                continue  # any offset may be reset
            if partition is None or FILENAME not in partition:
                raise ConnectError(f"The source partition {partition!r} has no '{FILENAME}': it must be {{\"{FILENAME}\": \"<file>\"}}.")
            position = offset.get(POSITION)
            if not isinstance(position, int) or isinstance(position, bool) or position < 0:
                raise ConnectError(
                    f"The source offset {offset!r} of '{partition[FILENAME]}' must be {{\"{POSITION}\": N}}, N a whole number of bytes, 0 or more."
                )
        return True


class FileStreamSourceTask(SourceTask):
    """The reader of one file."""

    java_name = "org.apache.kafka.connect.file.FileStreamSourceTask"

    def __init__(self, chunk_bytes=Limits.chunk_bytes, standard_input=STANDARD_INPUT, idle_seconds=IDLE_SECONDS):
        self._chunk_bytes = chunk_bytes
        self._idle_seconds = idle_seconds
        self._standard_input = standard_input
        self._tail = self._watch = None
        self._stopped = False
        self._lines, self._row = None, 0  # the last read lines, and how many of them were returned
        self._handed_on_at = 0.0  # when poll last returned few records

    def start(self, config):
        self.config = config
        parsed = FileStreamSourceConnector.config_def.parse(config)
        self._topic = parsed["topic"]
        self._batch_size = max(parsed["batch.size"], 1) if "batch.size" in config else sys.maxsize
        limits = Limits(self._chunk_bytes, parsed["file.max.line.bytes"], parsed["file.long.lines"], parsed["file.rotate.wait.ms"] / 1000)
        path = parsed["file"]
        if path:
            check_allowed_file(path)
        if not path:
            self._partition = None
            self._read_stream(os.dup(self._standard_input), limits)
        elif os.path.isdir(path):
            raise ConfigError.of({"file": f"'{path}' is a folder; it must name a file"}, "FileStreamSource cannot start")
        elif _is_stream(path):
            self._partition = None
            # Open FIFOs for writing too, so that they do not end when the last writer closes.
            self._read_stream(open_allowed(path, os.O_RDWR if stat.S_ISFIFO(os.stat(path).st_mode) else os.O_RDONLY), limits)
        else:
            self._partition = {FILENAME: path}
            place = Place.of_offset(self.context.offset_reader.offset(self._partition))
            self._watch = Watch(path)
            self._tail = FileTail(path, limits, self._watch.follow, place)

    def poll(self):
        if self._lines is None:
            self._gather()
            self._lines, self._row = self._wait_for_lines(), 0
            if self._lines is None:
                return None
        lines, low = self._lines, self._row
        high = min(low + self._batch_size, len(lines))
        self._lines, self._row = (lines, high) if high < len(lines) else (None, 0)
        self._handed_on_at = time.monotonic() if len(lines.data) < GATHER_BYTES else 0.0
        return SourceBatch(
            high - low,
            self._topic,
            ByteColumn(lines.data, lines.starts[low:high], lines.lengths[low:high]),
            Schema.STRING,
            source_partition=self._partition,
            offset_of=(lambda row: lines.offset(low + row)) if self._partition else None,
            timestamps=np.full(high - low, time.time_ns() // 1_000_000, np.int64),
            more_follows=high == len(lines) and len(lines.data) >= self._chunk_bytes,
        )

    def stop(self):
        self._stopped = True
        if self._watch is not None:
            self._watch.wake()

    def close(self):
        for part in (self._tail, self._watch):
            if part is not None:
                part.close()
        self._tail = self._watch = None

    def _wait_for_lines(self):
        deadline = time.monotonic() + self._idle_seconds
        while not self._stopped:
            lines = self._tail.read()
            if lines is not None:
                return lines
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            self._watch.wait(min(left, self._tail.patience()))
        return None

    def _gather(self):
        left = self._handed_on_at + GATHER_SECONDS - time.monotonic()
        if left > 0:
            self._watch.pause(left)

    def _read_stream(self, descriptor, limits):
        self._watch = StreamWatch(descriptor)
        self._tail = StreamTail(descriptor, limits, self._watch.ended)


def _is_stream(path):
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)


FileStreamSourceConnector.task_class = FileStreamSourceTask
