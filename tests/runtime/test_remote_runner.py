"""When a task whose control channel was lost is given to Spark again: not while Spark itself starts it elsewhere."""

import queue
import threading
import types

import pytest
from pytest import param

from standalone.pipeline.spark.job import SparkGone
from standalone.runtime.cluster import remote_runner
from standalone.runtime.cluster.control_channel import ChannelLost
from standalone.runtime.cluster.remote_runner import RemoteRunner
from tests.runtime.hand_clock import HandClock
from tests.runtime.local import wait_for

STARTED = {"steps": {"imports": 0.25, "start": 0.5}, "ages": {"Python process": 0.8, "Python daemon": 2.0, "executor": 4.0}}


class _Jobs:
    """LongJobs: what was given to Spark, until it is cancelled."""

    def __init__(self):
        self.given, self.cancelled = [], []
        self._ends = threading.Event()

    def run(self, group, entry, payload, stopping):
        self.given.append(payload["job"])
        self._ends.clear()
        while not self._ends.wait(0.01) and not stopping.is_set():
            pass
        raise SparkGone("it was cancelled")

    def cancel(self, group):
        self.cancelled.append(group)
        self._ends.set()


class _Channel:
    """The worker's end of a control channel; `messages` takes what the executor sends, or the ChannelLost that ends it."""

    def __init__(self):
        self.messages, self.sent = queue.SimpleQueue(), []

    def send(self, kind, body=None):
        self.sent.append(kind)

    def receive(self):
        found = self.messages.get()
        if isinstance(found, ChannelLost):
            raise found
        return found

    def heartbeat(self):
        self.send("heartbeat")

    def close(self):
        self.messages.put(ChannelLost("closed"))


@pytest.fixture
def runner():
    cluster = types.SimpleNamespace(
        clock=HandClock(), jobs=_Jobs(), expect=lambda runner: None, forget=lambda runner: None,
        listening=lambda stopping: {"address": ("127.0.0.1", 1), "key": b"key"},
    )  # fmt: skip
    payload = types.SimpleNamespace(run="r", for_job=lambda job, paused, channel: {"job": job, "paused": paused, **channel})
    states = []
    runner = RemoteRunner(
        cluster, types.SimpleNamespace(kind="source"), payload, connector="tested", number=0, listener=lambda *said: states.append(said[0]), paused=False
    )
    runner.states = states
    runner.start()
    wait_for(lambda: cluster.jobs.given == [1])
    yield runner
    runner.stop()
    assert runner.join(60)


def _attempt(runner, number):
    """That attempt of the present job, which runs."""
    channel = _Channel()
    hello = {"job": runner.cluster.jobs.given[-1], "attempt": number, "host": "there", "process": 1}
    threading.Thread(target=runner.attend, args=(channel, hello), daemon=True).start()
    wait_for(lambda: channel.sent == ["resume"])
    channel.messages.put(("state", None, ["RUNNING", None]))
    wait_for(lambda: runner.states[-1:] == ["RUNNING"])
    return channel


def _lost(runner, channel, is_silent):
    error = ChannelLost("lost")
    error.is_silent = is_silent
    channel.messages.put(error)
    wait_for(lambda: runner.states[-1] == "UNASSIGNED")


@pytest.mark.parametrize(
    "is_silent, seconds",
    [
        param(False, remote_runner.AGAIN_SECONDS, id="a process that ended: Spark starts the task elsewhere, however slow the machine is"),
        param(True, remote_runner.AGAIN_IF_SILENT_SECONDS, id="a machine that is silent: Spark may not know"),
    ],
)
def test_a_task_is_given_to_spark_again_when_spark_has_had_its_time(runner, is_silent, seconds):
    _lost(runner, _attempt(runner, 0), is_silent)
    runner.cluster.clock.advance(seconds - 1)
    runner.tick()
    assert runner.cluster.jobs.cancelled == []
    runner.cluster.clock.advance(2)
    runner.tick()
    assert len(runner.cluster.jobs.cancelled) == 1
    wait_for(lambda: runner.cluster.jobs.given == [1, 2])


def test_spark_s_next_attempt_is_left_alone(runner):
    _lost(runner, _attempt(runner, 0), False)
    runner.cluster.clock.advance(remote_runner.AGAIN_SECONDS - 1)
    _attempt(runner, 1)
    runner.cluster.clock.advance(2 * remote_runner.AGAIN_SECONDS)
    runner.tick()
    assert runner.cluster.jobs.cancelled == [] and runner.states == ["RUNNING", "UNASSIGNED", "RUNNING"]


def test_the_log_says_what_the_time_of_a_start_was_made_of(runner, caplog):
    caplog.set_level("INFO", "standalone.runtime.cluster.remote_runner")
    _lost(runner, _attempt(runner, 0), False)
    runner.cluster.clock.advance(3)
    _attempt(runner, 1).messages.put(("started", None, STARTED))
    wait_for(lambda: caplog.records and "Runs on" in caplog.messages[-1])
    said = "Runs on there:1, 3.0 s after it was submitted to Spark; its own steps took 0.75 s (imports 0.25, start 0.50); "
    assert caplog.messages[-1] == said + "started, in seconds before: Python process 0.8, Python daemon 2.0, executor 4.0"
