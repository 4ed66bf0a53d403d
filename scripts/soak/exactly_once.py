#!/usr/bin/env python3
"""Kill a worker with exactly.once.source.support=enabled again and again while numbered lines go file -> topic; then read what is committed.

    scripts/soak/exactly_once.py [--kills 12] [--lines 60000] [--kafka] [--logs] [--seed N]

A reader of committed records must find each line once and in order, also where it looks between two kills. --kafka starts a real
broker of one node for it; else the embedded log serves, which is killed with the worker. --logs has LogSource read, and the file
renamed as logrotate does, while the worker runs and while it is down.
"""

import argparse
import contextlib
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "scripts" / "soak")]

import watched  # noqa: E402

from tests.log.committed import committed  # noqa: E402
from tests.servers.kafka_broker import KafkaBroker, free_port  # noqa: E402

TOPIC = "soak"
STRING = "org.apache.kafka.connect.storage.StringConverter"


class Run:
    def __init__(self, folder, bootstrap, logs=False):
        self.folder, self.source, self.rotates, self.rotated = folder, folder / "in.txt", logs, 0
        self.source.touch()
        self.written = 0
        listener = f"127.0.0.1:{free_port()}"
        self.bootstrap = bootstrap or listener
        (folder / "worker.properties").write_text(
            f"bootstrap.servers={bootstrap or 'embedded'}\nembedded.log.listener={listener}\nlisteners=http://127.0.0.1:{free_port()}\n"
            f"key.converter={STRING}\nvalue.converter={STRING}\noffset.storage.file.filename={folder}/connect.offsets\n"
            "exactly.once.source.support=enabled\noffset.storage.partitions=1\n"
        )
        reads = f"LogSource\npaths={self.source}" if logs else f"FileStreamSource\nfile={self.source}"
        (folder / "source.properties").write_text(
            f"name=soak\nconnector.class={reads}\ntopic={TOPIC}\nexactly.once.support=required\n"
            "topic.creation.default.partitions=1\ntopic.creation.default.replication.factor=-1\n"
        )
        self.process = None

    def start(self):
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "standalone.cli.worker", f"{self.folder}/worker.properties", f"{self.folder}/source.properties"],
                cwd=self.folder, stdout=log, stderr=log, env={**os.environ, "PYTHONPATH": str(ROOT)},
            )  # fmt: skip

    def end(self, number):
        watched.end(self.process, number, self.folder / "log")

    def write(self, count, file=None):
        with open(self.source, "a") if file is None else contextlib.nullcontext(file) as out:
            for _ in range(count):
                out.write(f"{self.written:08d}\n")
                self.written += 1
            out.flush()

    def append(self, count, seconds):
        for half in range(2):
            with open(self.source, "a") as file:
                for at in range(50):
                    self.write(count * (at + 1) // 100 - count * at // 100, file)
                    time.sleep(seconds / 100)
            if self.rotates:
                self.rotated += 1
                self.source.rename(f"{self.source}.{self.rotated}")
                self.source.touch()

    def judge(self, whole=False, seconds=90):
        """How many lines are committed: the first ones, each once, in order; `whole`: wait for all."""
        deadline = time.monotonic() + seconds
        while True:
            found = []
            try:
                found = committed(self.bootstrap, TOPIC)
            except Exception:  # a log that has just been started answers later
                if time.monotonic() > deadline:
                    raise
            wanted = [b"%08d" % number for number in range(len(found))]
            if found != wanted:
                at = next(n for n, (one, other) in enumerate(zip(found, wanted)) if one != other)
                sys.exit(f"line {at} is {found[at]!r}; everything is kept in {self.folder}")
            if not whole or len(found) == self.written:
                return len(found)
            if time.monotonic() > deadline:
                sys.exit(f"{len(found)} of {self.written} lines came within {seconds} s; everything is kept in {self.folder}")
            time.sleep(0.2)


def soak(run, kills, lines, chance):
    if run.rotates:  # generations that are written before a file was ever seen are nobody's
        run.start()
        run.write(10)
        run.judge(whole=True)
        run.end(signal.SIGKILL)
    for number in range(kills):
        run.start()
        writer = watched.watched(run.append, lines // kills, chance.uniform(1, 3))
        time.sleep(chance.uniform(0.3, 3.5))
        run.end(signal.SIGKILL)
        writer.finish()
        if run.bootstrap != run_listener(run):
            run.judge()
        print(f"kill {number + 1}: {run.written} lines written", flush=True)
    run.start()
    found = run.judge(whole=True)
    run.end(signal.SIGTERM)
    print(f"{kills} x SIGKILL: {run.written} lines, {found} committed, each once and in order")


def run_listener(run):
    """Where the embedded log would be, which is not there between a kill and a start."""
    text = (run.folder / "worker.properties").read_text()
    return None if "bootstrap.servers=embedded" not in text else run.bootstrap


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=12)
    parser.add_argument("--lines", type=int, default=60_000)
    parser.add_argument("--kafka", action="store_true")
    parser.add_argument("--logs", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    said = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="soak-"))
    broker = KafkaBroker().start() if said.kafka else None
    run = Run(folder, broker.bootstrap if broker else None, said.logs)
    try:
        soak(run, said.kills, said.lines, random.Random(said.seed))
        shutil.rmtree(folder)
    finally:
        if run.process is not None:
            watched.kill(run.process)
        if broker is not None:
            broker.stop()


if __name__ == "__main__":
    main()
