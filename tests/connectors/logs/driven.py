"""A LogSource task driven by hand, and a log file with whoever writes and rotates it."""

import os
import time

from connectors.logs.source import LogSourceTask
from standalone import OffsetReader
from tests.suite.patience import PATIENCE_SECONDS


class Stored(OffsetReader):
    """The source offsets that were stored, and the context that offers them."""

    def __init__(self):
        self.offsets_by_slot = {}
        self.offset_reader = self
        self.has_ended = False

    def end(self):
        self.has_ended = True

    def offset(self, partition):
        return self.offsets_by_slot.get(partition["slot"])

    def store(self, partition, offset):
        self.offsets_by_slot[partition["slot"]] = offset


class Reader:
    """What it polls counts as acknowledged at once, but for `acknowledge=False`."""

    def __init__(self, paths, chunk_bytes=1 << 20, **props):
        self.stored = Stored()
        self.records = []
        self.task = None
        self._chunk_bytes = chunk_bytes
        paths = paths if isinstance(paths, (list, tuple)) else [paths]
        self.config = {"paths": ",".join(map(str, paths)), "topic": "t", "rotate.wait.ms": "0"}
        self.config.update({name.replace("_", "."): str(value) for name, value in props.items()})

    def start(self):
        self.task = LogSourceTask(idle_seconds=0, chunk_bytes=self._chunk_bytes)
        self.task.initialize(self.stored)
        self.task.start(self.config)
        return self

    def stop(self):
        if self.task is not None:
            self.task.stop()
            self.task.close()
            self.task = None

    def restart(self):
        self.stop()
        return self.start()

    def look(self):
        """At everything, now, as it does every so often by itself."""
        self.task._follower.look_at_all()

    def close_files(self):
        """As when nothing was read of them for long."""
        self.task._follower.close_files()

    @staticmethod
    def open_files(path):
        links = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd")]
        return [name for link in links if os.path.islink(link) and (name := os.readlink(link)).startswith(str(path))]

    def poll(self, acknowledge=True):
        batches = self.task.poll() or []
        for batch in batches:
            self.records += batch.records()
            if acknowledge:
                self.stored.store(batch.source_partition, batch.offset_of(batch.count - 1))
        return bool(batches)

    def drain(self):
        """Poll until nothing comes any more, also not from a file that has just been found."""
        quiet = 0
        while quiet < 3:
            self.look()
            quiet = 0 if self.poll() else quiet + 1
        return self.lines

    def take(self, count):
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len(self.records) < count and time.monotonic() < deadline:
            self.poll()
        return self.lines

    @property
    def lines(self):
        return [record.value for record in self.records]

    def lines_of(self, name):
        return [record.value for record in self.records if os.path.basename(record.source_offset["filename"]) == name]
