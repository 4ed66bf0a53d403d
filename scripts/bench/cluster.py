#!/usr/bin/env python3
"""CPU seconds a record of tasks on executors, beside the same tasks in the worker, in one run.

    scripts/bench/cluster.py [--lines 2000000] [--tasks 4] [--rounds 3] [--master spark://…]

So many sources follow a file each, and a sink with as many tasks reads the topic's partitions and counts. Once all tasks run, and what they compile
is compiled by a first portion, the lines are appended; counted is the CPU of the worker, its Java processes and the executors with all below them
until the sink has committed every record. The embedded log is the worker's, in either case. A master and two workers are started on this machine,
unless --master names a cluster of its. The last line has the medians and their ratio.
"""

import argparse
import contextlib
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.servers.server import free_port  # noqa: E402
from tests.servers.spark_cluster import SparkCluster, executors  # noqa: E402

PATIENCE_SECONDS = 600
LINE = "a line of about a hundred bytes, as they stand in logs, for a bench of tasks on a cluster of executors"
FIRST_LINES = 200_000
TICKS = os.sysconf("SC_CLK_TCK")
PLUGIN = '''from standalone import SinkConnector, SinkTask


class Counted(SinkTask):
    takes_batches = True

    def put(self, batches):
        sum(map(len, batches))


class CountedSink(SinkConnector):
    task_class = Counted

    def task_configs(self, max_tasks):
        return [self.config] * max_tasks
'''


class Bench:
    def __init__(self, folder, where, master, tasks):
        self.folder, self.tasks = pathlib.Path(folder), tasks
        self.folder.mkdir()
        (self.folder / "counted.py").write_text(PLUGIN)
        self.rest = f"http://127.0.0.1:{free_port()}"
        string = "org.apache.kafka.connect.storage.StringConverter"
        files = [self._put("worker", {
            "embedded.log.listener": f"127.0.0.1:{free_port()}", "embedded.log.num.partitions": tasks, "listeners": self.rest,
            "key.converter": string, "value.converter": string, "offset.storage.file.filename": self.folder / "offsets",
            "plugin.path": self.folder / "counted.py", "tasks.run.on": where, "spark.master": master, "spark.driver.host": "127.0.0.1",
            "spark.executor.memory": "512m", "spark.executorEnv.NUMBA_CACHE_DIR": ROOT / "standalone" / "__pycache__",
        })]  # fmt: skip
        self.names = ["sink", *(f"source{number}" for number in range(tasks))]
        files.append(self._put("sink", {"name": "sink", "connector.class": "counted:CountedSink", "tasks.max": tasks, "topics": "lines"}))
        for number in range(tasks):
            (self.folder / f"in{number}").touch()
            config = {"name": f"source{number}", "connector.class": "FileStreamSource", "file": self.folder / f"in{number}", "topic": "lines"}
            files.append(self._put(f"source{number}", config))
        with open(self.folder / "log", "wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "standalone.cli.worker", *files], cwd=self.folder, stderr=log, stdout=log,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )  # fmt: skip

    def _put(self, name, keys):
        path = self.folder / f"{name}.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in keys.items()))
        return path

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)

    def ask(self, path):
        with urllib.request.urlopen(self.rest + path, timeout=60) as answer:
            return json.load(answer)

    def until(self, condition):
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                sys.exit(f"the worker has ended: {self.last_words()}")
            with contextlib.suppress(urllib.error.URLError, ConnectionError):
                if condition():
                    return
            time.sleep(0.2)
        sys.exit(f"waited {PATIENCE_SECONDS} s, and timed out: {self.last_words()}")

    def last_words(self):
        return (self.folder / "log").read_text(errors="replace")[-3000:]

    def all_run(self):
        tasks = [task for name in self.names for task in self.ask(f"/connectors/{name}/status")["tasks"]]
        return len(tasks) == 2 * self.tasks and all(task["state"] == "RUNNING" for task in tasks)

    def committed(self):
        return sum(each["offset"]["kafka_offset"] for each in self.ask("/connectors/sink/offsets")["offsets"])

    def append(self, count, before):
        """So many lines in all; until they are committed."""
        each = count // self.tasks
        for number in range(self.tasks):
            text = "".join(f"{at:08d} {LINE}\n" for at in range(each))
            with open(self.folder / f"in{number}", "a") as file:
                file.write(text)
        self.until(lambda: self.committed() >= before + each * self.tasks)
        return before + each * self.tasks

    def cpu_seconds(self):
        roots = {self.process.pid, *(pid for pids in executors().values() for pid in pids)}
        parents, used = {}, {}
        for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                fields = path.read_text().rpartition(")")[2].split()
                pid = int(path.parent.name)
                parents[pid], used[pid] = int(fields[1]), sum(map(int, fields[11:15]))  # with children that were waited for
        below = lambda pid: pid in roots or pid in parents and pid > 1 and below(parents[pid])  # noqa: E731
        return sum(ticks for pid, ticks in used.items() if below(pid)) / TICKS


def measure(folder, where, master, tasks, lines):
    """(CPU microseconds a record, records a second)"""
    bench = Bench(folder, where, master, tasks)
    try:
        bench.until(bench.all_run)
        done = bench.append(FIRST_LINES, 0)
        time.sleep(3)  # whatever else was still to be compiled or started
        used, began = bench.cpu_seconds(), time.monotonic()
        counted = bench.append(lines, done) - done
        return 1e6 * (bench.cpu_seconds() - used) / counted, counted / (time.monotonic() - began)
    finally:
        bench.end()


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--lines", type=int, default=2_000_000)
    options.add_argument("--tasks", type=int, default=4)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--master")
    given = options.parse_args()
    found = {"worker": [], "cluster": []}
    with contextlib.ExitStack() as at_end:
        master = given.master or at_end.enter_context(SparkCluster()).master
        folder = pathlib.Path(at_end.enter_context(tempfile.TemporaryDirectory()))
        for number in range(given.rounds):
            for where, figures in found.items():
                figures.append(measure(folder / f"{where}-{number}", where, master, given.tasks, given.lines))
                print(f"{where}: {figures[-1][0]:.2f} CPU µs a record, {figures[-1][1]:,.0f} records/s", flush=True)
    middle = {where: statistics.median(cpu for cpu, _ in figures) for where, figures in found.items()}
    here, there = middle["worker"], middle["cluster"]
    print(f"medians: {here:.2f} CPU µs a record in the worker, {there:.2f} on executors; ratio {there / here:.2f}")


if __name__ == "__main__":
    main()
