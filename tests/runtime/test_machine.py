"""A live worker against a small model of it: whatever is done to connectors, in whatever order, what is shown is what runs.

MACHINE_STEPS says how many steps in all (3,000 unless told otherwise; scripts/soak/machine.py makes it 100,000).
"""

import collections
import concurrent.futures
import os
import threading
import time

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from standalone import Schema, SourceConnector, SourceRecord, SourceTask
from standalone.errors import ConflictError, NotFoundError
from tests.runtime.local import LocalWorker, wait_for

STEPS = int(os.environ.get("MACHINE_STEPS", 3000))
STEPS_OF_ONE = 50
LONGEST_ANSWER = 5.0
NAMES = st.sampled_from(["a", "b", "c"])
VALUES = st.integers(0, 3).map(str)
GRACE = 0.5  # seconds that a task has to stop; then it is left behind, and its successor may run beside it
LIVE = collections.defaultdict(set)  # name -> tasks that have started and not ended
HANGS = set()  # names whose tasks heed nothing as they stop
RELEASE = threading.Event()
TOO_MANY = []
_lock = threading.Lock()


class Task(SourceTask):
    """Sends one number after the other, as long as it runs."""

    def __init__(self):
        self.over = threading.Event()
        self.told_at = None

    def start(self, config):
        self.name = config["name"]
        stored = self.context.offset_reader.offset({"p": self.name})
        self.next = stored["n"] if stored else 0
        with _lock:
            TOO_MANY.extend(self.name for other in LIVE[self.name] if other.told_at is None or time.monotonic() < other.told_at + 0.9 * GRACE)
            LIVE[self.name].add(self)

    def poll(self):
        if self.name in HANGS and self.over.is_set():
            RELEASE.wait()
        if self.over.wait(0.005):
            return None
        self.next += 1
        return [SourceRecord(f"t-{self.name}", str(self.next - 1), {"p": self.name}, {"n": self.next}, value_schema=Schema.STRING)]

    def stop(self):
        self.told_at = time.monotonic()
        self.over.set()

    def close(self):
        with _lock:
            LIVE[self.name].remove(self)


class Source(SourceConnector):
    task_class = Task


class Machine(RuleBasedStateMachine):
    worker = None  # one for all runs

    def __init__(self):
        super().__init__()
        self.model = {}  # name -> [config's n, target]

    # ---------------------------------------------------------------- what is done
    def _timed(self, call, *arguments, **named):
        begun = time.monotonic()
        try:
            return call(*arguments, **named)
        finally:
            took = time.monotonic() - begun
            assert took < LONGEST_ANSWER, (call, took)

    def _known_or_not(self, name, call, *arguments):
        if name in self.model:
            self._timed(call, name, *arguments)
            return True
        with pytest.raises(NotFoundError):
            self._timed(call, name, *arguments)
        return False

    @property
    def herder(self):
        return Machine.worker.herder

    @rule(name=NAMES, value=VALUES)
    def put(self, name, value):
        info, new = self._timed(self.herder.create, name, {"connector.class": f"{__name__}:Source", "n": value}, replace=True)
        assert new == (name not in self.model) and info["config"]["n"] == value
        self.model[name] = [value, self.model.get(name, [None, "STARTED"])[1]]

    @rule(name=NAMES, value=VALUES)
    def patch(self, name, value):
        if self._known_or_not(name, self.herder.patch, {"n": value}):
            self.model[name][0] = value

    @rule(name=NAMES)
    def delete(self, name):
        if self._known_or_not(name, self.herder.delete):
            del self.model[name]

    @rule(name=NAMES, act=st.sampled_from(["pause", "resume", "stop"]))
    def change_target(self, name, act):
        if self._known_or_not(name, getattr(self.herder, act)):
            self.model[name][1] = {"pause": "PAUSED", "resume": "STARTED", "stop": "STOPPED"}[act]

    @rule(name=NAMES, tasks=st.booleans())
    def restart(self, name, tasks):
        self._known_or_not(name, self.herder.restart, tasks)

    @rule(name=NAMES)
    def restart_its_task(self, name):
        if name not in self.model or not self.herder.tasks(name):
            return
        try:
            self._timed(self.herder.restart_task, name, 0)
        except (ConflictError, NotFoundError):
            pass  # it was being started or stopped at this very moment

    @rule(name=NAMES)
    def reset_offsets(self, name):
        if self.model.get(name, [None, None])[1] == "STOPPED":
            Machine.worker.wait_states(name, "STOPPED")
            self._timed(self.herder.reset_offsets, name)
            assert self.herder.offsets(name) == []

    @rule(name=NAMES, act=st.sampled_from(["restart", "delete"]))
    def a_task_hangs(self, name, act):
        """As it is to stop it heeds nothing: it is left behind."""
        if self.model.get(name, [None, None])[1] != "STARTED":
            return
        Machine.worker.wait_states(name, "RUNNING", "RUNNING")
        (old,) = [runner for runner in self.herder.runners() if runner.connector == name]
        HANGS.add(name)
        try:
            if act == "delete":
                self.delete(name)
            else:
                self._timed(self.herder.restart_task, name, 0)
        finally:
            RELEASE.set()
            HANGS.discard(name)
            assert old.join(15)
            RELEASE.clear()

    @precondition(lambda self: self.model)
    @rule()
    def the_log_is_away_for_a_moment(self):
        with Machine.worker.log_outage():
            self.herder.names()

    @rule(values=st.lists(VALUES, min_size=8, max_size=8), name=NAMES)
    def eight_at_once(self, name, values):
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            put = lambda value: self._timed(self.herder.create, name, {"connector.class": f"{__name__}:Source", "n": value}, replace=True)  # noqa: E731
            made = [new for _, new in pool.map(put, values)]
        assert made.count(True) == (name not in self.model)
        found = self.herder.config(name)["n"]
        assert found in values
        self.model[name] = [found, self.model.get(name, [None, "STARTED"])[1]]

    # ---------------------------------------------------------------- what always holds
    @invariant()
    def what_is_shown_is_what_there_is(self):
        assert sorted(self.herder.names()) == sorted(self.model)
        for name, (value, _) in self.model.items():
            assert self.herder.config(name)["n"] == value
        assert not TOO_MANY

    def teardown(self):
        """All comes to rest as the model says; what is shown runs, what was sent is there once and in order, and nothing is left."""
        for name, (value, target) in self.model.items():
            wanted = {"STARTED": ["RUNNING", "RUNNING"], "PAUSED": None, "STOPPED": ["STOPPED"]}[target]
            wait_for(lambda name=name, wanted=wanted: Machine.worker.states(name)[: 1 if wanted is None else None] == (wanted or ["PAUSED"]))
            for runner in self.herder.runners():
                if runner.connector == name and target == "STARTED":
                    assert runner.config["n"] == value
        for name in list(self.model):
            self._timed(self.herder.delete, name)
        assert self.herder.runners() == []
        wait_for(lambda: not any(LIVE.values()), what="all tasks to have ended")


def test_whatever_is_done_to_connectors_the_worker_is_as_its_model(tmp_path):
    with LocalWorker(tmp_path, task__shutdown__graceful__timeout__ms=int(GRACE * 1000)) as worker:
        Machine.worker = worker
        worker.run_source({"connector.class": "FileStreamSource", "topic": "warm"}, lines=["x"])
        before = _own_threads()
        limits = settings(
            max_examples=max(1, STEPS // STEPS_OF_ONE), stateful_step_count=STEPS_OF_ONE, deadline=None, suppress_health_check=list(HealthCheck)
        )
        run_state_machine_as_test(Machine, settings=limits)
        wait_for(lambda: _own_threads() <= before, what="no thread left behind")
        assert worker.process.worker.ailment() is None
        # Nothing of what was sent is missing: each task went on where the one before had stored, and nobody sent beside it.
        for name in ("a", "b", "c"):
            reached = -1
            for record in worker.records(f"t-{name}", worker._client.ends(f"t-{name}").get(0, 0)):
                assert int(record.value) <= reached + 1, f"of {name} what lies before {record.value} is missing"
                reached = int(record.value)


def _own_threads():
    return sum(thread.name.startswith(("task-", "send-", "calls-", "dead-letters-")) for thread in threading.enumerate())
