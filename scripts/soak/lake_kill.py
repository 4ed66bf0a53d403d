#!/usr/bin/env python3
"""Kills a worker with SIGKILL while LakeSink writes a topic, thirty times, and looks at the files then: each record must be there once, in order.

    scripts/soak/lake_kill.py [--records 1000000] [--kills 30] [--format Parquet] [--url hdfs://namenode:8020/soak | --hdfs] [--seed 0]

At each kill the files that are seen are read as well: no half one may be among them. With --hdfs it brings its own HDFS, and every second
kill is the name node's and the data node's, which come back while the worker continues.
"""

import argparse
import contextlib
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
CHUNK = 50_000
PATIENCE_SECONDS = 300
TOPIC = "numbers"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--format", default="Parquet", choices=["Parquet", "Json"])
    parser.add_argument("--url")
    parser.add_argument("--hdfs", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="soak-lake-") as folder, contextlib.ExitStack() as at_end:
        server = None
        if given.hdfs:
            from tests.servers.hdfs import Hdfs

            server = Hdfs().start()
            at_end.callback(server.stop)
            given.url = f"{server.url}/soak"
        Soak(pathlib.Path(folder), given, server).run()


class Soak:
    def __init__(self, folder, given, server=None):
        self.folder, self.given, self.random, self.server = folder, given, random.Random(given.seed), server
        self.files = Files(given.url or str(folder / "lake"), given.format)
        self.ports = [_free_port(), _free_port()]

    def run(self):
        self.send()
        self.configure()
        kills, worker = 0, None
        while kills < self.given.kills:
            before = self.files.count()
            worker = worker or self.start()
            # Somewhere in its work: after a random share of what is left to be killed in, be it in its start.
            until = min(before + self.random.random() * self.given.records / self.given.kills, self.given.records)
            deadline = time.monotonic() + PATIENCE_SECONDS
            while self.files.count() < until and worker.poll() is None and time.monotonic() < deadline:
                time.sleep(0.01)
            time.sleep(self.random.random() * 0.05)
            assert worker.poll() is None, self.said()
            kills += 1
            if self.server is not None and kills % 2 == 0:
                self.server.kill()
                self.server.start()
            else:
                worker.send_signal(signal.SIGKILL)
                worker.wait()
                worker = None
            found = self.check(is_over=False)
            print(f"kill {kills}: {found} of {self.given.records} records are seen", flush=True)
        worker, deadline = worker or self.start(), time.monotonic() + PATIENCE_SECONDS
        while not self.is_over() and time.monotonic() < deadline:
            assert worker.poll() is None, self.said()
            time.sleep(0.1)
        worker.send_signal(signal.SIGTERM)
        worker.wait()
        found = self.check(is_over=True)
        print(f"{found} records, each once and in order, behind {kills} kills")

    def send(self):
        from standalone.local_worker import LocalWorker

        with LocalWorker(self.folder) as worker:
            for first in range(0, self.given.records, CHUNK):
                last = min(first + CHUNK, self.given.records)
                worker.send(TOPIC, [b'{"n":%d,"kind":"k%d"}' % (number, number % 7) for number in range(first, last)])

    def configure(self):
        worker = {
            "bootstrap.servers": "embedded", "embedded.log.listener": f"127.0.0.1:{self.ports[0]}", "listeners": f"http://127.0.0.1:{self.ports[1]}",
            "key.converter": "org.apache.kafka.connect.storage.StringConverter", "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": "false", "offset.storage.file.filename": self.folder / "connect.offsets",
            "offset.flush.interval.ms": "200", "spark.start": "lazy",
        }  # fmt: skip
        sink = {
            "name": "lake", "connector.class": "LakeSink", "topics": TOPIC, "store.url": self.files.url, "format.class": self.given.format,
            "flush.size": str(max(1, self.given.records // 200)), "rotate.schedule.interval.ms": "1000", "timezone": "UTC",
            "partitioner.class": "Field", "partition.field.name": "kind",
        }  # fmt: skip
        for name, props in (("worker", worker), ("sink", sink)):
            (self.folder / f"{name}.properties").write_text("".join(f"{key}={value}\n" for key, value in props.items()))

    def start(self):
        command = [sys.executable, "-m", "standalone.cli.worker", str(self.folder / "worker.properties"), str(self.folder / "sink.properties")]
        with open(self.folder / "worker.log", "ab") as log:
            return subprocess.Popen(command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment())

    def environment(self):
        return {**os.environ, "PYTHONPATH": str(ROOT)}

    def is_over(self):
        return self.files.count() >= self.given.records

    def said(self):
        return (self.folder / "worker.log").read_text(errors="replace")[-3000:]

    def check(self, is_over):
        """Every file is whole, no record is there twice, each folder's are in order; in the end none is missing."""
        seen = {}
        for path in sorted(self.files.paths(), key=_first_offset):
            seen.setdefault(path.rpartition("/")[0], []).extend(self.files.numbers(path))
        numbers = sorted(number for each in seen.values() for number in each)
        assert len(numbers) == len(set(numbers)), "a record is there twice"
        assert all(each == sorted(each) for each in seen.values()), "records are out of order"
        assert not is_over or numbers == list(range(self.given.records)), f"{self.given.records - len(numbers)} records are missing"
        return len(numbers)


class Files:
    """A reader's view of the lake."""

    def __init__(self, url, format):
        self.url, self._format = url, format
        self._known = {}  # path -> how many records: files never change
        self._hdfs = None
        if url.startswith("hdfs:"):
            import hdfs_native

            address, _, place = url.removeprefix("hdfs://").partition("/")
            self._hdfs, self._top = hdfs_native.Client(f"hdfs://{address}"), f"/{place}/topics/{TOPIC}".replace("//", "/")
        else:
            self._top = f"{url}/topics/{TOPIC}"

    def paths(self):
        if self._hdfs is None:
            return [str(path) for path in pathlib.Path(self._top).rglob("*") if path.is_file()]
        try:
            return [each.path for each in self._hdfs.list_status(self._top, True) if not each.isdir]
        except FileNotFoundError:
            return []

    def numbers(self, path):
        import io
        import json

        import pyarrow.parquet as pq

        data = pathlib.Path(path).read_bytes() if self._hdfs is None else bytes(self._hdfs.read(path).read())
        if self._format == "Json":
            return [json.loads(line)["n"] for line in data.splitlines()]
        return pq.read_table(io.BytesIO(data), columns=["n"])["n"].to_pylist()

    def count(self):
        for path in self.paths():
            if path not in self._known:
                self._known[path] = len(self.numbers(path))
        return sum(self._known.values())


def _first_offset(path):
    return int(path.rpartition("/")[2].split("+")[2])


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


if __name__ == "__main__":
    main()
