"""Test suites for connector authors: the behaviour required of every source and sink, given an input and its expected result.

    class TestCounter(SourceSuite):
        connector = CounterSource
        expected = ["1", "2", "3"]

        def given(self, folder):
            return {"topic": "counts", "up.to": "3"}

pytest runs the test_… methods, each with its own folder. `given` creates the input there, identically on every call for the same folder,
and returns the connector's properties. The input must be finite and processed by one task.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

from standalone.connector import OffsetReader, SourceTaskContext
from standalone.local_worker import STRING, LocalWorker, read_all, wait_for

PATIENCE_SECONDS = 30
STOP_SECONDS = 5  # in which a waiting poll must return after stop()
QUIET_SECONDS = 0.1  # in which an exhausted source must return no records


class _Suite:
    connector = None  # the class
    name = "suite"

    def given(self, folder):
        """The connector's properties; it reads or writes in this folder."""
        raise NotImplementedError(f"{type(self).__name__} must define given(folder)")

    def _properties(self, folder):
        path = f"{self.connector.__module__}:{self.connector.__qualname__}"
        return {"name": self.name, "connector.class": path, "tasks.max": "1", **self.given(folder)}


class SourceSuite(_Suite):
    """`expected`: the values of all records in their order, as StringConverter writes them."""

    expected = ()
    may_repeat = False  # True: acknowledged records may be repeated after a kill, because the external system has no offsets

    def test_it_brings_exactly_what_there_is(self, tmp_path):
        with LocalWorker(tmp_path) as worker:
            props = self._properties(tmp_path)
            found = worker.run_source(props, count=len(self.expected), seconds=PATIENCE_SECONDS)
            assert _texts(found) == list(self.expected)

    def test_it_goes_on_behind_each_offset(self, tmp_path):
        """Started with the offset of any of its records, it returns exactly the records after it."""
        props = self._properties(tmp_path)
        with self._task(props) as task:
            records = task.take(len(self.expected))
        assert [str(record.value) for record in records] == list(self.expected)
        for at, record in enumerate(records):
            with self._task(props, record) as task:
                rest = task.take(len(records) - at - 1)
            assert [each.value for each in rest] == [each.value for each in records[at + 1 :]], f"started behind {record.source_offset}"
            assert [each.source_offset for each in rest] == [each.source_offset for each in records[at + 1 :]]

    def test_a_poll_that_waits_comes_back_when_it_is_stopped(self, tmp_path):
        with self._task(self._properties(tmp_path)) as task:
            task.take(len(self.expected), is_all=False)
            task.stop_while_it_polls()

    def test_a_worker_that_is_killed_loses_nothing(self, tmp_path):
        with _Process(tmp_path, self._properties(tmp_path)) as worker:
            topic = self._topic(tmp_path)
            worker.wait(lambda: read_all(worker.bootstrap, topic))
            worker.kill()
            worker.start()
            worker.wait(lambda: set(self.expected) <= set(_texts(read_all(worker.bootstrap, topic))))
            worker.stop()
            worker.start()  # restarts from the offsets stored so far
            worker.wait(worker.is_running)
            found = _texts(read_all(worker.bootstrap, topic))
        assert list(dict.fromkeys(found)) == list(dict.fromkeys(self.expected)), "in their order, whatever comes again"
        assert self.may_repeat or len(found) <= 2 * len(self.expected)

    def _topic(self, folder):
        return self._properties(folder)["topic"]

    @contextlib.contextmanager
    def _task(self, props, stored=None):
        task = _DrivenTask(self.connector, props, stored)
        try:
            yield task
        finally:
            task.close()


class SinkSuite(_Suite):
    """`messages`: the values to send; `expected`: the result of `stored(folder)` once all are written."""

    messages = ()
    expected = ()
    put_twice_is_once = False  # True: records redelivered after a kill change nothing

    def stored(self, folder):
        """The current content of the external system: a list."""
        raise NotImplementedError(f"{type(self).__name__} must define stored(folder)")

    def test_it_stores_exactly_what_was_sent(self, tmp_path):
        with LocalWorker(tmp_path) as worker:
            worker.run_sink(self._properties(tmp_path), list(self.messages), seconds=PATIENCE_SECONDS)
        assert list(self.stored(tmp_path)) == list(self.expected)

    def test_it_goes_on_behind_each_offset(self, tmp_path):
        """Restarted after any of the records, it stores the others, and none twice."""
        for at in range(1, len(self.messages)):
            folder = tmp_path / str(at)
            folder.mkdir()
            props = self._properties(folder)
            with LocalWorker(folder) as worker:
                worker.run_sink(props, list(self.messages[:at]), seconds=PATIENCE_SECONDS)
                worker.run_sink(props, list(self.messages[at:]), seconds=PATIENCE_SECONDS)
            assert list(self.stored(folder)) == list(self.expected), f"stopped behind {at} records"

    def test_a_worker_that_stops_in_the_midst_repeats_nothing(self, tmp_path):
        """It is stopped once a record is stored, possibly during put, and restarted."""
        props = self._properties(tmp_path)
        with LocalWorker(tmp_path) as worker:
            worker.send(_first_topic(props), list(self.messages))
            worker.create(self.name, props)
            wait_for(lambda: self.stored(tmp_path) or worker.trace(self.name), PATIENCE_SECONDS, "the first record to be stored")
            assert worker.trace(self.name) is None, worker.trace(self.name)
        with LocalWorker(tmp_path) as worker:
            if self.name not in worker.herder.names():
                worker.create(self.name, props)
            worker.wait_committed(self.name, _first_topic(props), PATIENCE_SECONDS)
        assert list(self.stored(tmp_path)) == list(self.expected)

    def test_a_worker_that_is_killed_loses_nothing(self, tmp_path):
        props = self._properties(tmp_path)
        with LocalWorker(tmp_path) as worker:
            worker.send(_first_topic(props), list(self.messages))
        with _Process(tmp_path, props) as worker:
            worker.wait(lambda: self.stored(tmp_path))
            worker.kill()
            worker.start()
            worker.wait(lambda: self._holds_all(tmp_path))
            worker.stop()
        found = list(self.stored(tmp_path))
        assert found == list(self.expected) if self.put_twice_is_once else self._holds_all(tmp_path), found

    def _holds_all(self, folder):
        found = list(self.stored(folder))
        return all(found.count(each) >= list(self.expected).count(each) for each in self.expected)


def _first_topic(props):
    return props["topics"].split(",")[0].strip()


def _texts(records):
    return [None if record.value is None else record.value.decode() for record in records]


# --- Driving a source's task ------------------------------------------------------------------------------------------


class _Stored(OffsetReader):
    """The content of the offsets file after this record."""

    def __init__(self, record):
        self._known = {} if record is None else {_canonical(record.source_partition): record.source_offset}

    def offset(self, partition):
        return self._known.get(_canonical(partition))


def _canonical(partition):
    return json.dumps(partition, sort_keys=True)


class _DrivenTask:
    """The only task of a source, driven like its runner does."""

    def __init__(self, connector_class, props, stored):
        connector = connector_class()
        connector.start(props)
        configs = connector.task_configs(1)
        assert len(configs) == 1, f"the suite drives one task, task_configs(1) gave {len(configs)}"
        context = SourceTaskContext()
        context.connector, context.task = props["name"], 0
        context.configs, context.offset_reader = configs[0], _Stored(stored)
        self._task = connector_class.task_class()
        self._task.initialize(context)
        self._task.start(configs[0])
        self._is_stopped = False

    def take(self, count, is_all=True):
        """Poll exactly `count` records. With `is_all` no further record may arrive soon, and the task is then stopped."""
        records, deadline = [], time.monotonic() + PATIENCE_SECONDS
        while len(records) < count:
            assert time.monotonic() < deadline, f"{len(records)} of {count} records arrived within {PATIENCE_SECONDS} s"
            records += self._poll()
        if is_all:
            self._expect_quiet(records, count)
        return records

    def _expect_quiet(self, records, count):
        timer = threading.Timer(QUIET_SECONDS, self._task.stop)
        timer.start()
        records += self._poll()
        timer.join()
        self._is_stopped = True
        assert len(records) == count, f"{len(records)} records arrived, not {count}; surplus: {[record.value for record in records[count:][:5]]}"

    def stop_while_it_polls(self):
        began, ended, failed = threading.Event(), threading.Event(), []

        def poll():
            began.set()
            try:
                self._poll()
            except BaseException as error:
                failed.append(error)
            ended.set()

        threading.Thread(target=poll, daemon=True).start()
        assert began.wait(STOP_SECONDS)
        assert not ended.wait(QUIET_SECONDS) or not failed, f"poll() failed without data: {failed[0]!r}"
        self._task.stop()
        self._is_stopped = True
        assert ended.wait(STOP_SECONDS), f"poll() continued for {STOP_SECONDS} s after stop()"
        assert not failed, f"poll() failed after stop(): {failed[0]!r}"

    def close(self):
        if not self._is_stopped:
            self._task.stop()
        self._task.close()

    def _poll(self):
        found = self._task.poll()
        batches = found if isinstance(found, list) else [] if found is None else [found]
        return [record for each in batches for record in (each.records() if hasattr(each, "records") else [each])]


# --- Killing a worker ---------------------------------------------------------------------------------------------------


class _Process:
    """connect-standalone as its own process in that folder, with one connector."""

    def __init__(self, folder, connector):
        self.bootstrap = f"127.0.0.1:{_free_port()}"
        self._rest = _free_port()
        self._folder, self._name, self._process = folder, connector["name"], None
        worker = {
            "bootstrap.servers": "embedded",
            "embedded.log.listener": self.bootstrap,
            "listeners": f"http://127.0.0.1:{self._rest}",
            "key.converter": STRING,
            "value.converter": STRING,
            "offset.storage.file.filename": folder / "connect.offsets",
            "offset.flush.interval.ms": "200",
            "spark.start": "lazy",
            "pipeline.engine": "rows",
        }
        self._files = [self._write("worker", worker), self._write("connector", connector)]

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        if self._process.poll() is None:
            self.kill()

    def start(self):
        with open(self._folder / "worker.log", "ab") as log:
            command = [sys.executable, "-m", "standalone.cli.worker", *self._files]
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
            self._process = subprocess.Popen(command, cwd=self._folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)

    def kill(self):
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def stop(self):
        self._process.send_signal(signal.SIGTERM)
        assert self._process.wait(PATIENCE_SECONDS) == 0, self._said()

    def wait(self, condition):
        """Wait until the condition is true; the worker must keep running."""

        def look():
            assert self._process.poll() is None, f"the worker ended with status {self._process.returncode}: {self._said()}"
            with contextlib.suppress(OSError):
                return self.is_listening() and condition()

        wait_for(look, PATIENCE_SECONDS, f"the worker in {self._folder}; its output: {self._said()}")

    def is_listening(self):
        with socket.create_connection(("127.0.0.1", int(self.bootstrap.rpartition(":")[2])), 1):
            return True

    def is_running(self):
        """Whether connector and task are RUNNING."""
        import urllib.request

        with urllib.request.urlopen(f"http://127.0.0.1:{self._rest}/connectors/{self._name}/status", timeout=5) as answer:
            status = json.load(answer)
        return [part["state"] for part in (status["connector"], *status["tasks"])] == ["RUNNING", "RUNNING"]

    def _said(self):
        path = self._folder / "worker.log"
        return path.read_text(errors="replace")[-2000:] if path.exists() else ""

    def _write(self, name, props):
        path = self._folder / f"{name}.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in props.items()), encoding="utf-8")
        return str(path)


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
