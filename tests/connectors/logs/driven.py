"""A LogSource task driven by hand, and a log file with whoever writes and rotates it."""

import gzip
import os
import shutil
import time

from connectors.logs.source import LogSourceTask
from standalone import OffsetReader

DEADLINE = 10


class Stored(OffsetReader):
    """The source offsets that were stored, and the context that offers them."""

    def __init__(self):
        self.offsets_by_slot = {}
        self.offset_reader = self

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
        self.task._follower._next_full = 0.0

    def close_files(self):
        """As when nothing was read of them for long."""
        for file in list(self.task._follower._open):
            self.task._follower._close(file)

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
        deadline = time.monotonic() + DEADLINE
        while len(self.records) < count and time.monotonic() < deadline:
            self.poll()
        return self.lines

    @property
    def lines(self):
        return [record.value for record in self.records]

    def lines_of(self, name):
        return [record.value for record in self.records if os.path.basename(record.source_offset["filename"]) == name]


class Log:
    """Each write is 10 ms later than the one before, as far as times of writing tell."""

    def __init__(self, folder, name="app.log", generations=4):
        self.path = os.path.join(folder, name)
        self._now = time.time_ns() - 10**12
        self._keep = generations

    def append(self, data):
        with open(self.path, "ab") as file:
            file.write(data)
        self.touch(self.path)

    def touch(self, path):
        self._now += 10_000_000
        os.utime(path, ns=(self._now, self._now))

    def rename(self):
        self.shift()
        os.rename(self.path, f"{self.path}.1")

    def copy_and_truncate(self):
        self.shift()
        shutil.copyfile(self.path, f"{self.path}.1")
        self.touch(f"{self.path}.1")
        self.truncate()

    def truncate(self):
        os.truncate(self.path, 0)
        self.touch(self.path)

    def compress(self, number=1):
        path = f"{self.path}.{number}"
        status = os.stat(path)
        with open(path, "rb") as plain, gzip.open(f"{path}.gz", "wb") as packed:
            packed.write(plain.read())
        os.utime(f"{path}.gz", ns=(status.st_atime_ns, status.st_mtime_ns))
        os.remove(path)

    def shift(self):
        for number in range(self._keep, 0, -1):
            for ending in ("", ".gz"):
                path = f"{self.path}.{number}{ending}"
                if os.path.exists(path):
                    if number == self._keep:
                        os.remove(path)
                    else:
                        os.rename(path, f"{self.path}.{number + 1}{ending}")
