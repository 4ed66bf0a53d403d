#!/usr/bin/env python3
"""Kill the executors of a Spark cluster again and again while numbered records go source -> log -> sink on them; then count what is lost or repeated.

    scripts/soak/cluster_kill.py [--kills 20] [--tasks 8] [--rate 2000] [--seconds 10] [--cores 18] [--master spark://…]

A master and two workers on this machine, unless --master names a cluster of its. A source of so many tasks, and a sink of as many partitions and
tasks, run on executors (tasks.run.on=cluster). At random moments the executor of one of the tasks is killed by SIGKILL: nothing may be lost, only
what was not committed may come twice, and all tasks must run again within --seconds. With --cores for all tasks each worker has cores to spare, and
tasks continue on the other executor; with half of that they wait until Spark has started an executor for the one that was killed.
"""

import argparse
import contextlib
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from standalone.tools.log_access import LogAccess  # noqa: E402
from tests.servers.server import free_port  # noqa: E402
from tests.servers.spark_cluster import CORES, SparkCluster, executors  # noqa: E402

START_SECONDS = 300
UNSTORED_SECONDS = 15  # of records that a slow machine may have sent and not stored when a kill comes
PLUGIN = '''"""Numbered records, and a sink that keeps them in files, a file for each of its lives."""

import os
import threading

from standalone import Schema, SinkConnector, SinkTask, SourceConnector, SourceRecord, SourceTask

EACH = 50


class Numbers(SourceTask):
    """Counts up to `count`, so many a second, into its own partition."""

    def start(self, config):
        self.config, self.ending = config, threading.Event()
        self.number, self.count = int(config["number"]), int(config["count"])
        found = self.context.offset_reader.offset({"of": self.number})
        self.next = 0 if found is None else found["next"]

    def poll(self):
        if self.next >= self.count:
            self.ending.wait(0.2)
            return None
        if self.ending.wait(EACH / float(self.config["rate"])):
            return None
        low, self.next = self.next, min(self.count, self.next + EACH)
        return [
            SourceRecord(
                self.config["topic"], f"{self.number} {each}", {"of": self.number}, {"next": each + 1}, partition=self.number,
                value_schema=Schema.STRING,
            )
            for each in range(low, self.next)
        ]

    def stop(self):
        self.ending.set()


class NumbersSource(SourceConnector):
    task_class = Numbers

    def task_configs(self, max_tasks):
        return [{**self.config, "number": str(number)} for number in range(max_tasks)]


class Kept(SinkTask):
    def start(self, config):
        self.config = config
        self.file = open(os.path.join(config["folder"], f"{self.context.task}-{os.getpid()}-{os.urandom(4).hex()}"), "w")

    def put(self, records):
        for record in records:
            self.file.write(f"{record.partition} {record.offset} {record.value}\\n")

    def flush(self, offsets):
        self.file.flush()

    def stop(self):
        self.file.close()


class KeptSink(SinkConnector):
    task_class = Kept

    def task_configs(self, max_tasks):
        return [self.config] * max_tasks
'''


class Run:
    """A worker process whose tasks run on that cluster. `rate` is of each source task, records a second; `source` and `sink` are
    more keys of theirs."""

    def __init__(self, folder, master, tasks, count, rate, source=None, sink=None, **worker):
        self.folder, self.tasks, self.count, self.rate = pathlib.Path(folder), tasks, count, rate
        self.out = self.folder / "out"
        self.out.mkdir()
        plugins = self.folder / "plugins"
        plugins.mkdir()
        (plugins / "numbered.py").write_text(PLUGIN)
        self.topic = f"cluster-{os.getpid()}-{int(time.time())}"
        self.rest = f"http://127.0.0.1:{free_port()}"
        self.log = f"127.0.0.1:{free_port()}"
        string = "org.apache.kafka.connect.storage.StringConverter"
        self._put("worker", {
            "embedded.log.listener": self.log, "embedded.log.num.partitions": tasks, "listeners": self.rest,
            "key.converter": string, "value.converter": string, "offset.storage.file.filename": self.folder / "offsets",
            "plugin.path": plugins, "tasks.run.on": "cluster", "spark.master": master, "spark.driver.host": "127.0.0.1",
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
            "spark.executor.memory": "512m", "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
            "spark.executorEnv.NUMBA_CACHE_DIR": ROOT / "standalone" / "__pycache__", **worker,
        })  # fmt: skip
        self.source, self.sink = f"source-{self.topic}", f"sink-{self.topic}"
        self._source = {
            "name": self.source, "connector.class": "numbered:NumbersSource", "tasks.max": tasks, "topic": self.topic, "count": count, "rate": rate,
            **(source or {}),
        }  # fmt: skip
        self._put("source", self._source)
        self._put("sink", {
            "name": self.sink, "connector.class": "numbered:KeptSink", "tasks.max": tasks, "topics": self.topic, "folder": self.out, **(sink or {}),
        })  # fmt: skip
        self.process = None

    def _put(self, name, keys):
        (self.folder / f"{name}.properties").write_text("".join(f"{key}={value}\n" for key, value in keys.items()))

    def __enter__(self):
        files = [self.folder / f"{name}.properties" for name in ("worker", "source", "sink")]
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "standalone.cli.worker", *files], cwd=self.folder, stdout=log, stderr=log,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )  # fmt: skip
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def ask(self, path, method="GET", body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.rest + path, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            said = answer.read()
        return json.loads(said) if said else None

    def count_on(self, more):
        """Each source task has so many records more to send."""
        self.count += more
        self.ask(f"/connectors/{self.source}/config", "PUT", {key: str(value) for key, value in {**self._source, "count": self.count}.items()})

    def tasks_of(self, *names):
        """[(connector, task's status)] of both connectors, or of those; [] while the worker does not answer."""
        found = []
        for name in names or (self.source, self.sink):
            try:
                found += [(name, task) for task in self.ask(f"/connectors/{name}/status")["tasks"]]
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                return []
        return found

    def all_are(self, state, *names):
        found = self.tasks_of(*names)
        return len(found) == self.tasks * (len(names) or 2) and all(task["state"] == state for _, task in found)

    def wait_for(self, condition, what, seconds=START_SECONDS):
        """Seconds until it holds."""
        began = time.monotonic()
        while not condition():
            if self.process.poll() is not None:
                raise AssertionError(f"the worker has ended, with {self.process.returncode}: {self.last_words()}")
            if time.monotonic() - began > seconds:
                raise AssertionError(f"waited {seconds} s, and timed out, until {what}: {self.tasks_of()} {self.last_words()}")
            time.sleep(0.05)
        return time.monotonic() - began

    def last_words(self):
        return (self.folder / "log").read_text(errors="replace")[-3000:]

    def slowest_start(self, since):
        """What the worker has logged of the task that took longest to run, in its log from that byte on."""
        said = (self.folder / "log").read_bytes()[since:].decode(errors="replace")
        found = re.findall(r"Runs on \S+, ((\S+) s after .*)", said)
        return max(found, key=lambda each: float(each[1]))[0] if found else "no start was logged"

    def offsets(self):
        """({source task: next number} stored, {partition: offset} committed)"""
        sources, sinks = (self.ask(f"/connectors/{name}/offsets")["offsets"] for name in (self.source, self.sink))
        return (
            {each["partition"]["of"]: each["offset"]["next"] for each in sources},
            {each["partition"]["kafka_partition"]: each["offset"]["kafka_offset"] for each in sinks},
        )

    def kill_an_executor(self):
        """Of a task chosen at random; (what was stored and committed before, seconds until all run again)."""
        _, task = random.choice(self.tasks_of())
        victim = self.executor_of(int(task["worker_id"].rpartition(":")[2]))
        before = self.offsets()
        lost = {task["worker_id"] for _, task in self.tasks_of() if self.executor_of(int(task["worker_id"].rpartition(":")[2])) == victim}
        os.kill(victim, signal.SIGKILL)
        took = self.wait_for(
            lambda: self.all_are("RUNNING") and not lost & {task["worker_id"] for _, task in self.tasks_of()}, "all tasks run elsewhere"
        )
        return before, took

    def executor_of(self, pid):
        """The executor whose child's child that process is."""
        known = {each for pids in executors().values() for each in pids}
        while pid > 1 and pid not in known:
            with contextlib.suppress(OSError):
                pid = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
                continue
            raise AssertionError("a task's process has no executor above it")
        return pid

    def is_through(self):
        """Whether the sources have stored all that they have to send, and the sink has committed all that is in the log."""
        sources, sinks = self.offsets()
        return len(sources) == self.tasks and all(each == self.count for each in sources.values()) and sinks == self._ends()

    def _ends(self):
        with LogAccess.at(self.log) as log:
            return {pair[1]: span[1] for pair, span in log.ranges(log.partitions(self.topic)).items()}

    def kept(self):
        """(partition, offset, source task, number) of each line in the sink's files; a last line that is torn is none."""
        for path in self.out.iterdir():
            for line in path.read_text().split("\n")[:-1]:
                yield tuple(map(int, line.split()))

    def judge(self, befores):
        """{what: count}: lost, doubled by the source, doubled by the sink, and those that were stored or committed when they came again."""
        in_log, times = {}, {}
        for partition, offset, task, number in self.kept():
            in_log[partition, offset] = task, number
            times[partition, offset] = times.get((partition, offset), 0) + 1
        wanted = {(task, number) for task in range(self.tasks) for number in range(self.count)}
        firsts, again = {}, []
        for (_, _), record in sorted(in_log.items()):
            if record in firsts:
                again.append(record)
            firsts[record] = True
        doubled = [place for place, count in times.items() if count > 1]
        sources, sinks = [before[0] for before in befores], [before[1] for before in befores]
        return {
            "records": len(wanted), "lost": len(wanted - firsts.keys()),
            "repeated by the source": len(again), "repeated by the sink": sum(count - 1 for count in times.values()),
            "stored and yet repeated": sum(not self._is_explained(task, number, sources) for task, number in again),
            "committed and yet repeated": sum(not self._is_explained(partition, offset, sinks) for partition, offset in doubled),
        }  # fmt: skip

    def _is_explained(self, who, number, kills):
        """Whether it was neither stored nor committed when one of the kills came, and about to be."""
        return any(0 <= number - before.get(who, 0) < UNSTORED_SECONDS * self.rate for before in kills)


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--kills", type=int, default=20)
    options.add_argument("--tasks", type=int, default=8)
    options.add_argument("--rate", type=int, default=2000, help="records a second of each source task")
    options.add_argument("--seconds", type=float, default=10, help="within which all tasks must run again")
    options.add_argument("--cores", type=int, default=CORES, help="of each of the two workers that are started")
    options.add_argument("--master", help="of a cluster of this machine; left out: one is started")
    given = options.parse_args()
    with contextlib.ExitStack() as at_end:
        master = given.master or at_end.enter_context(SparkCluster(cores=given.cores)).master
        folder = at_end.enter_context(tempfile.TemporaryDirectory())
        run = at_end.enter_context(Run(folder, master, given.tasks, given.rate * 14 * given.kills, given.rate))
        took = run.wait_for(lambda: run.all_are("RUNNING"), "all tasks run")
        print(f"all tasks run after {took:.1f} s; the last one {run.slowest_start(0)}", flush=True)
        befores, pauses = [], []
        for number in range(given.kills):
            time.sleep(random.uniform(2, 6))
            logged = (run.folder / "log").stat().st_size
            before, took = run.kill_an_executor()
            befores.append(before)
            pauses.append(took)
            print(f"kill {number + 1}: all tasks run again after {took:.1f} s; the last one {run.slowest_start(logged)}", flush=True)
        run.wait_for(run.is_through, "all is committed", 1800)
        found = run.judge(befores)
        print(", ".join(f"{count} {what}" for what, count in found.items()))
        print(f"back after {sorted(pauses)[len(pauses) // 2]:.1f} s in the middle, {max(pauses):.1f} s at most")
        bad = found["lost"] or found["stored and yet repeated"] or found["committed and yet repeated"] or max(pauses) > given.seconds
        sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
