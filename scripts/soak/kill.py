#!/usr/bin/env python3
"""Kill the worker again and again while numbered lines go file -> log -> file; then count what is lost, repeated or out of place.

    scripts/soak/kill.py [--kills 50] [--stops 20] [--lines 500000] [--bootstrap HOST:PORT] [--chain none|columns|python]

First SIGKILL at random moments: nothing may be lost, only what was not acknowledged may come twice, order is kept, and the sink must
move again soon after each start. Then SIGTERM: nothing lost and nothing twice. Without --bootstrap the embedded log serves. `--chain` is what
the sink's records go through; of Python it works many lines at once in Spark's workers, which takes some ten million lines to happen.
"""

import argparse
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

from tests.servers.kafka_broker import free_port  # noqa: E402

LINK = """from standalone import Transform


class Same(Transform):
    stateless = True

    def apply(self, record):
        return record.with_value(record.value_schema, record.value)
"""
CHAINS = {
    "none": "",
    "columns": "transforms=c\ntransforms.c.type=org.apache.kafka.connect.transforms.Cast$Value\ntransforms.c.spec=string\n",
    "python": "transforms=p\ntransforms.p.type=soak_link:Same\n",
}


class Run:
    def __init__(self, folder, bootstrap, lines, chain="none"):
        self.folder = folder
        self.source, self.sink = folder / "in.txt", folder / "out.txt"
        self.source.touch()
        self.sink.touch()
        self.lines, self.written = lines, 0
        topic = f"soak-{os.getpid()}-{int(time.time())}"
        strings = "".join(f"{part}.converter=org.apache.kafka.connect.storage.StringConverter\n" for part in ("key", "value"))
        self.rest = f"http://127.0.0.1:{free_port()}"
        self._put("worker", f"bootstrap.servers={bootstrap}\nembedded.log.listener=127.0.0.1:{free_port()}\nlisteners={self.rest}\n"
                  f"{strings}offset.storage.file.filename={folder}/connect.offsets\nplugin.path={folder}\n")  # fmt: skip
        (folder / "soak_link.py").write_text(LINK)
        self.names = {kind: f"soak-{kind}-{topic}" for kind in ("source", "sink")}
        self._put("source", f"name={self.names['source']}\nconnector.class=FileStreamSource\nfile={self.source}\ntopic={topic}\n")
        self._put("sink", f"name={self.names['sink']}\nconnector.class=FileStreamSink\nfile={self.sink}\ntopics={topic}\n{CHAINS[chain]}")
        self.process = None

    def _put(self, name, text):
        (self.folder / f"{name}.properties").write_text(text)

    def start(self):
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "standalone.cli.worker", *(f"{self.folder}/{name}.properties" for name in ("worker", "source", "sink"))],
                cwd=self.folder, stdout=log, stderr=log, env={**os.environ, "PYTHONPATH": str(ROOT)},
            )  # fmt: skip

    def end(self, number):
        watched.end(self.process, number, self.folder / "log")

    def append(self, count, seconds):
        """Append so many lines in about so many seconds."""
        goal = min(self.lines, self.written + count)
        with open(self.source, "a") as file:
            while self.written < goal:
                for _ in range(max(1, int(count / seconds / 100))):
                    if self.written < goal:
                        file.write(f"{self.written:08d} a line of the soak, long enough to be like one of a log, number {self.written}\n")
                        self.written += 1
                file.flush()
                time.sleep(0.01)

    def moving_again(self, size, seconds=60):
        """Seconds until the sink's file is larger than `size`."""
        began = time.monotonic()
        while self.sink.stat().st_size <= size:
            self.check_worker()
            if time.monotonic() - began > seconds:
                sys.exit(f"the sink did not move within {seconds} s; see {self.folder}/log")
            time.sleep(0.005)
        return time.monotonic() - began

    def check_worker(self):
        if self.process.poll() is not None:
            sys.exit(f"the worker ended by itself, with status {self.process.returncode}; see {self.folder}/log")

    def judge(self, what):
        """(lost, repeated, out of place, torn); a repeat restarts the count at an earlier line, a step forward over lines is a loss there."""
        seen, repeated, misplaced, torn, expected = bytearray(self.lines), 0, 0, 0, 0
        with open(self.sink, "rb") as file:
            for line in file:
                try:
                    number = int(line[:8])
                    if not line.endswith(b"number %d\n" % number):
                        raise ValueError
                except ValueError:
                    torn += 1
                    continue
                if number > expected:
                    misplaced += 1
                expected = number + 1
                if seen[number]:
                    repeated += 1
                seen[number] = 1
        lost = self.written - sum(seen[: self.written])
        print(f"{what}: {self.written} lines, {lost} lost, {repeated} repeated, {misplaced} out of place, {torn} torn")
        return lost, repeated, misplaced, torn

    def _rests(self, seconds):
        size = self.sink.stat().st_size
        time.sleep(seconds)
        return self.sink.stat().st_size == size

    def wait_all(self, seconds=120):
        """Until the last line is there and nothing more comes: what a kill left uncommitted comes again after it."""
        last = b"number %d\n" % (self.written - 1)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.check_worker()
            with open(self.sink, "rb") as file:
                file.seek(max(0, os.path.getsize(self.sink) - 4096))
                if last in file.read() and self._rests(3):
                    return
            time.sleep(0.05)
        sys.exit(f"the last line did not come within {seconds} s; see {self.folder}/log")


def main():
    run = None
    try:
        run = _prepared()
        _soak(*run)
    finally:
        if run is not None:
            watched.kill(run[1].process)


def _prepared():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--stops", type=int, default=20)
    parser.add_argument("--lines", type=int, default=500_000)
    parser.add_argument("--bootstrap", default="embedded")
    parser.add_argument("--chain", choices=CHAINS, default="none")
    parser.add_argument("--seed", type=int, default=1)
    said = parser.parse_args()
    return said, Run(pathlib.Path(tempfile.mkdtemp(prefix="soak-")), said.bootstrap, said.lines, said.chain)


def _soak(said, run):
    chance = random.Random(said.seed)
    bad = False
    before = (0, 0, 0, 0)
    for what, number, count, share in (("SIGKILL", signal.SIGKILL, said.kills, 0.7), ("SIGTERM", signal.SIGTERM, said.stops, 0.3)):
        moved, each = [], int(said.lines * share / max(1, count))
        for _ in range(count):
            size = run.sink.stat().st_size
            run.start()
            writer = watched.watched(run.append, each, chance.uniform(1, 3))
            moved.append(run.moving_again(size))
            time.sleep(chance.uniform(0, 1.5))
            run.end(number)
            writer.finish()
        run.start()
        run.wait_all()
        run.end(signal.SIGTERM)
        found = run.judge(f"{count} x {what}")
        print(f"  the sink moved again after {sorted(moved)[len(moved) // 2]:.2f} s at the median, {max(moved):.2f} s at most")
        lost, repeated, misplaced, torn = (now - then for now, then in zip(found, before))
        bad |= lost > 0 or misplaced > 0 or torn > 0 or max(moved) > 5 or (number == signal.SIGTERM and repeated > 0)
        before = found
    if bad:
        sys.exit(f"not as it must be; everything is kept in {run.folder}")
    shutil.rmtree(run.folder)


if __name__ == "__main__":
    main()
