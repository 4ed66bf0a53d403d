"""Tasks that run on executors, without Spark: processes of this machine stand for its executors, and one that is killed is started again as Spark does.
tests/runtime/test_cluster.py has the real thing."""

import itertools
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import pytest

from standalone.pipeline.spark.job import SparkGone
from tests.runtime.local import LocalWorker, wait_for
from tests.suite.patience import PATIENCE_SECONDS

ROOT = Path(__file__).parents[2]
_EXECUTOR = """
import importlib, pickle, sys
entry, payload, place = pickle.load(sys.stdin.buffer)
sys.path.insert(0, place["folder"])
module, _, name = entry.partition(":")
done = getattr(importlib.import_module(module), name)(payload, place)
pickle.dump(done, sys.stdout.buffer)
"""


class Processes:
    """What LongJobs is to the worker."""

    folder = None

    def __init__(self, holder, send):
        self._send = send
        self.sparkContext = self
        self._running, self._cancelled = {}, set()
        self._lock = threading.Lock()

    def driver(self, stopping):
        return "127.0.0.1", "127.0.0.1"

    def addArchive(self, name):
        zipfile.ZipFile(name.partition("#")[0]).extractall(self.folder)

    def run(self, group, entry, payload, stopping):
        self._send(self)
        for attempt in itertools.count():
            with self._lock:
                if group in self._cancelled:
                    raise SparkGone("the job was cancelled")
                environment = {**os.environ, "NUMBA_CACHE_DIR": str(ROOT / "standalone" / "__pycache__")}
                process = self._running[group] = subprocess.Popen(
                    [sys.executable, "-c", _EXECUTOR], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=self.folder, env=environment
                )
            place = {"host": socket.gethostname(), "attempt": attempt, "stage": 0, "folder": str(self.folder), "import_seconds": 0.0}
            said, _ = process.communicate(pickle.dumps((entry, payload, place)))
            if process.returncode == 0:
                return pickle.loads(said)

    def cancel(self, group):
        with self._lock:
            self._cancelled.add(group)
            process = self._running.get(group)
            if process is not None and process.poll() is None:
                process.kill()


@pytest.fixture
def worker(tmp_path, monkeypatch):
    monkeypatch.setattr("standalone.runtime.cluster.cluster.LongJobs", Processes)
    monkeypatch.setattr(Processes, "folder", tmp_path / "unpacked")
    with LocalWorker(tmp_path, tasks__run__on="cluster", spark__master="spark://127.0.0.1:1") as worker:
        yield worker


def _runs(worker, name, tasks=1):
    def states():
        status = worker.herder.status(name)
        return [task["state"] for task in status["tasks"]]

    wait_for(lambda: states() == ["RUNNING"] * tasks, 2 * PATIENCE_SECONDS, f"{name} runs")
    return [task["worker_id"] for task in worker.herder.status(name)["tasks"]]


def test_a_source_and_a_sink_go_on_behind_a_process_that_is_killed(worker, tmp_path):
    source, sink = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("one\ntwo\n")
    worker.source("in", str(source), "lines")
    worker.sink("out", str(sink), "lines")
    assert worker.process.worker.id not in (*_runs(worker, "in"), *_runs(worker, "out"))
    wait_for(lambda: sink.exists() and sorted(sink.read_text().split()) == ["one", "two"], PATIENCE_SECONDS, "two lines")
    wait_for(lambda: sum(each["offset"]["kafka_offset"] for each in worker.herder.offsets("out")) == 2, PATIENCE_SECONDS, "they are committed")
    assert worker.herder.offsets("in") == [{"partition": {"filename": str(source)}, "offset": {"position": 8}}]
    before = {name: worker.herder.status(name)["tasks"][0]["worker_id"] for name in ("in", "out")}
    for worker_id in before.values():
        os.kill(int(worker_id.rpartition(":")[2]), signal.SIGKILL)
    with open(source, "a") as file:
        file.write("three\n")
    wait_for(lambda: sorted(sink.read_text().split()) == ["one", "three", "two"], 2 * PATIENCE_SECONDS, "a third line, and none twice")
    assert all(_runs(worker, name) != [worker_id] for name, worker_id in before.items())


def test_what_fails_there_is_told_here_and_a_bad_record_goes_to_its_queue(worker, tmp_path):
    worker.send("mixed", [b'{"n": 1}', b"no json", b'{"n": 2}'])
    good = tmp_path / "good.txt"
    json = {"value.converter": "org.apache.kafka.connect.json.JsonConverter", "value.converter.schemas.enable": "false"}
    worker.sink("strict", str(tmp_path / "strict.txt"), "mixed", **json)
    wait_for(lambda: worker.herder.status("strict")["tasks"][0]["state"] == "FAILED", 2 * PATIENCE_SECONDS, "the strict one has failed")
    task = worker.herder.status("strict")["tasks"][0]
    assert "offset 1" in task["trace"] and task["worker_id"] != worker.process.worker.id
    queue = {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": "bad", "errors.deadletterqueue.topic.replication.factor": "1"}
    worker.sink("lenient", str(good), "mixed", **json, **queue)
    wait_for(lambda: good.exists() and len(good.read_text().splitlines()) == 2, 2 * PATIENCE_SECONDS, "the good ones")
    assert [letter.value for letter in worker.records("bad", 1)] == [b"no json"]


def test_a_stopped_connector_leaves_its_group_so_that_offsets_can_be_changed(worker, tmp_path):
    sink = tmp_path / "out.txt"
    worker.send("some", [b"a", b"b"])
    worker.sink("moved", str(sink), "some")
    wait_for(lambda: sink.exists() and sink.read_text() == "a\nb\n", 2 * PATIENCE_SECONDS, "both")
    worker.herder.stop("moved")
    wait_for(lambda: worker.herder.status("moved")["connector"]["state"] == "STOPPED", PATIENCE_SECONDS, "it has stopped")
    worker.herder.reset_offsets("moved")
    worker.herder.resume("moved")
    wait_for(lambda: sink.read_text() == "a\nb\na\nb\n", 2 * PATIENCE_SECONDS, "both again")


def test_a_configuration_with_a_secret_does_not_travel_in_the_clear(worker, tmp_path):
    override = {"consumer.override.sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required username=a password=hush;"}
    worker.sink("secret", str(tmp_path / "out.txt"), "some", **override)
    wait_for(lambda: [task["state"] for task in worker.herder.status("secret")["tasks"]] == ["FAILED"], PATIENCE_SECONDS, "it is refused")
    task = worker.herder.status("secret")["tasks"][0]
    assert "spark.authenticate=true" in task["trace"] and "sasl.jaas.config" in task["trace"] and "hush" not in task["trace"]
