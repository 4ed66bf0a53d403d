"""JournalSource: the systemd journal of this host, read by `journalctl -o export --follow` from the cursor of the last published record."""

import logging
import os
import select
import shutil
import subprocess
import time

from connectors.file.watch import Waker
from connectors.logs.journal_export import entries
from standalone import (
    HIGH,
    INT,
    LIST,
    LOW,
    MEDIUM,
    STRING,
    ConfigDef,
    ConnectError,
    ExactlyOnceSupport,
    Option,
    RetriableError,
    SourceConnector,
    SourceRecord,
    SourceTask,
    at_least,
    non_empty,
    one_of,
)

log = logging.getLogger(__name__)

PARTITION = {"journal": "local"}
CURSOR = "cursor"
BEGINNING, END = "beginning", "end"
IDLE_SECONDS = 1.0
READ_BYTES = 1 << 18


class JournalSourceConnector(SourceConnector):
    """Publish the entries of the systemd journal, each a map of its fields.

    The cursor of the last acknowledged entry is the offset: after a restart it continues after that entry, or, if the entry was deleted, with
    the next one.
    """

    java_name = "JournalSource"

    config_def = ConfigDef(
        Option("topic", STRING, HIGH, "The topic to publish to.", check=non_empty),
        Option("units", LIST, MEDIUM, "Publish only entries of these systemd units. Empty: all.", default=""),
        Option("matches", LIST, MEDIUM, "Publish only entries with these fields, such as PRIORITY=3; see journalctl(1).", default=""),
        Option("fields", LIST, MEDIUM, "Fields to publish. Empty: all.", default=""),
        Option("start.at", STRING, MEDIUM, "Where to start if there is no stored offset.", default=BEGINNING, check=one_of(BEGINNING, END)),
        Option("journal.directory", STRING, LOW, "Folder with journal files, instead of the host's journal.", default=None),
        Option("journalctl", STRING, LOW, "The command.", default="journalctl", check=non_empty),
        Option("batch.size", INT, LOW, "Maximum number of records per poll.", default=2000, check=at_least(1)),
    )

    def validate(self, config):
        command = config.get("journalctl") or "journalctl"
        if shutil.which(command) is None:
            return {"journalctl": f"'{command}' was not found: this host has no systemd journal, or the command is elsewhere"}
        wrong = [each for each in (config.get("matches") or "").split(",") if each.strip() and "=" not in each]
        return {"matches": f"'{wrong[0].strip()}' must be FIELD=value"} if wrong else {}

    def exactly_once_support(self, config):
        return ExactlyOnceSupport.SUPPORTED

    def task_configs(self, max_tasks):
        return [dict(self.config)]  # one task keeps the journal's order

    def alter_offsets(self, config, offsets):
        for partition, offset in offsets:
            if partition != PARTITION:
                raise ConnectError(f"The source partition {partition!r} must be {PARTITION!r}.")
            if offset is not None and not isinstance(offset.get(CURSOR), str):
                raise ConnectError(f"The source offset {offset!r} must be {{\"{CURSOR}\": \"…\"}}, as journalctl --show-cursor reports it.")
        return True


class JournalSourceTask(SourceTask):
    """Reads the output of journalctl."""

    java_name = "JournalSourceTask"

    def __init__(self, idle_seconds=IDLE_SECONDS):
        self._idle_seconds = idle_seconds
        self._process = None
        self._waker = Waker()
        self._rest = b""

    def start(self, config):
        self.config = config
        parsed = JournalSourceConnector.config_def.parse(config)
        self._topic, self._fields, self._most = parsed["topic"], set(parsed["fields"]), parsed["batch.size"]
        self._ready = []
        offset = self.context.offset_reader.offset(PARTITION)
        self._cursor = offset[CURSOR] if offset else None
        command = [parsed["journalctl"], "--output=export", "--all", "--no-pager", "--quiet"]
        command += [f"--unit={each}" for each in parsed["units"]]
        if parsed["journal.directory"]:
            command.append(f"--directory={parsed['journal.directory']}")
        self._command, self._matches, self._from_end = command, parsed["matches"], parsed["start.at"] == END
        self._begin()

    def poll(self):
        deadline = time.monotonic() + self._idle_seconds
        while not self._waker.woken and not self._ready:
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            self._read(left)
        records, self._ready = self._ready[: self._most], self._ready[self._most :]
        return records or None

    def stop(self):
        self._waker.wake()

    def close(self):
        self._end()
        self._waker.close()

    def _begin(self):
        where = [f"--after-cursor={self._cursor}"] if self._cursor else ["--lines=0" if self._from_end else "--lines=all"]
        command = [*self._command, "--follow", *where, *self._matches]
        try:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        except OSError as error:
            raise ConnectError(f"'{command[0]}' cannot be started ({error.strerror}): set 'journalctl' to its path.") from error
        self._rest = b""
        self._waiting = select.poll()
        self._waiting.register(self._process.stdout, select.POLLIN)
        self._waiting.register(self._waker.descriptor, select.POLLIN)

    def _end(self):
        if self._process is not None:
            self._process.terminate()
            self._process.communicate()
            self._process = None

    def _read(self, seconds):
        if self._process is None:
            self._begin()
        ready = [descriptor for descriptor, _ in self._waiting.poll(seconds * 1000)]
        if self._process.stdout.fileno() not in ready:
            return
        data = os.read(self._process.stdout.fileno(), READ_BYTES)
        if not data:
            _, said = self._process.communicate()
            code, self._process = self._process.returncode, None
            raise RetriableError(f"journalctl exited with code {code}: {said.decode(errors='replace').strip()[:500] or 'no output'}")
        found, self._rest = entries(self._rest + data)
        self._ready += [self._record(entry) for entry in found]

    def _record(self, entry):
        self._cursor = entry.get("__CURSOR")
        told = {name: value for name, value in entry.items() if name in self._fields} if self._fields else entry
        time_us = entry.get("_SOURCE_REALTIME_TIMESTAMP") or entry.get("__REALTIME_TIMESTAMP")
        stamp = int(time_us) // 1000 if isinstance(time_us, str) and time_us.isdigit() else None
        return SourceRecord(self._topic, told, PARTITION, {CURSOR: self._cursor}, timestamp=stamp)


JournalSourceConnector.task_class = JournalSourceTask
