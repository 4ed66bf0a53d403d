"""Plugins that raise anything anywhere, records and names that no file takes, disks that fail: the worker answers, and nothing is lost."""

import concurrent.futures
import threading

import pytest

from standalone import SinkConnector, SinkTask, SourceConnector, SourceTask
from standalone.clock import SYSTEM
from standalone.errors import BadRequestError, ConnectError, NotFoundError
from standalone.runtime.supervision import state as state_module
from standalone.runtime.supervision.state import State
from tests.runtime.local import LocalWorker, wait_for
from tests.suite.patience import PATIENCE_SECONDS

HERE = "tests.runtime.test_hostile"
RAISES = {}  # (connector's name, method) -> what that raises
TASKS = []  # those that have started and not ended
HANG = threading.Event()
LONE = "\ud800x"


def may_raise(name, method):
    if (name, method) in RAISES:
        raise RAISES[name, method]


class Task(SourceTask):
    def start(self, config):
        self.name = config["name"]
        may_raise(self.name, "start of the task")
        self.over = threading.Event()
        TASKS.append((self.name, self))

    def poll(self):
        if (self.name, "hangs") in RAISES:
            HANG.wait()
            raise ValueError("late")
        may_raise(self.name, "poll")
        self.over.wait(0.02)

    def stop(self):
        self.over.set()

    def close(self):
        if hasattr(self, "over"):
            TASKS.remove((self.name, self))


class Source(SourceConnector):
    task_class = Task

    def __init__(self):
        may_raise("any", "making")

    def start(self, config):
        self.config = config
        may_raise(config["name"], "start")

    def task_configs(self, most):
        may_raise(self.config["name"], "task_configs")
        return [dict(self.config)]

    def validate(self, config):
        may_raise(config["name"], "validate")
        return {}

    def stop(self):
        may_raise(self.config["name"], "stop")

    def alter_offsets(self, config, offsets):
        may_raise(config["name"], "alter_offsets")
        return True


@pytest.fixture(autouse=True)
def well():
    RAISES.clear()
    TASKS.clear()
    HANG.clear()
    yield
    HANG.set()


def make(worker, name="s", **config):
    return worker.create(name, {"connector.class": f"{HERE}:Source", **config})


ANYTHING = [ValueError("odd"), SystemExit(3), KeyError(LONE), type("Odd", (Exception,), {"__str__": lambda self: LONE})()]


# ---------------------------------------------------------------- foreign code
@pytest.mark.parametrize("error", ANYTHING, ids=["ValueError", "SystemExit", "a lone surrogate", "a text that is none"])
@pytest.mark.parametrize("method", ["start", "task_configs", "start of the task", "poll"])
def test_whatever_a_plugin_raises_it_fails_alone_and_its_status_says_of_what(tmp_path, method, error):
    RAISES["s", method] = error
    with LocalWorker(tmp_path) as worker:
        make(worker)
        trace = wait_for(lambda: worker.trace("s"))
        trace.encode()
        make(worker, "t")
        worker.wait_states("t", "RUNNING", "RUNNING")
        assert worker.herder.history("s") and worker.process.health_problem(5) is None
        RAISES.clear()
        worker.herder.restart("s", include_tasks=True, only_failed=True)
        worker.wait_states("s", "RUNNING", "RUNNING")


@pytest.mark.parametrize("error", ANYTHING[:3], ids=["ValueError", "SystemExit", "a lone surrogate"])
def test_a_stored_connector_whose_validation_raises_stays_and_says_so(tmp_path, error, caplog):
    with LocalWorker(tmp_path) as worker:
        make(worker)
    RAISES["s", "validate"] = error
    with LocalWorker(tmp_path) as worker:
        assert worker.states("s") == ["FAILED"]
        assert "validation of connector 's'" in worker.trace("s") and "cannot be started" in caplog.text
        with pytest.raises(ConnectError, match="validation of connector 's'"):
            make(worker, "s2") if RAISES.setdefault(("s2", "validate"), error) is None else worker.herder.patch("s", {"x": "1"})
        RAISES.clear()
        worker.herder.patch("s", {"more": "1"})
        worker.wait_states("s", "RUNNING", "RUNNING")


def test_what_the_changing_of_offsets_raises_names_the_connector(tmp_path):
    with LocalWorker(tmp_path) as worker:
        make(worker)
        worker.herder.stop("s")
        worker.wait_states("s", "STOPPED")
        RAISES["s", "alter_offsets"] = ValueError("odd")
        with pytest.raises(ConnectError, match=r"alter_offsets\(\) of connector 's' failed: ValueError: odd"):
            worker.herder.change_offsets("s", [({"p": 1}, {"n": 2})])


# ---------------------------------------------------------------- what was replaced is not heard
@pytest.mark.parametrize("restarts", [{}, {"task__failure__exit": "true"}, {"task__restart__max__attempts": 5, "task__restart__backoff__initial__ms": 1}])
def test_a_task_that_was_abandoned_does_not_speak_for_its_successor(tmp_path, restarts):
    with LocalWorker(tmp_path, task__shutdown__graceful__timeout__ms=300, **restarts) as worker:
        RAISES["s", "hangs"] = True
        make(worker)
        worker.wait_states("s", "RUNNING", "RUNNING")
        (old,) = worker.herder.runners()
        del RAISES["s", "hangs"]
        worker.herder.restart_task("s", 0)
        (new,) = wait_for(lambda: [runner for runner in worker.herder.runners() if runner is not old])
        worker.wait_states("s", "RUNNING", "RUNNING")
        wait_for(lambda: [entry["state"] for entry in worker.herder.history("s") if entry["task"] == 0].count("RUNNING") == 2)
        before = len(worker.herder.history("s"))
        HANG.set()
        assert old.join(PATIENCE_SECONDS) and "late" in str(old.error)
        assert worker.states("s") == ["RUNNING", "RUNNING"] and worker.herder.runners() == [new]
        assert len(worker.herder.history("s")) == before and not worker.process.over.is_set()


def test_an_instance_that_was_replaced_does_not_fail_its_successor(tmp_path):
    with LocalWorker(tmp_path) as worker:
        make(worker)
        old = worker.herder._queries.get("s")._instance._context
        worker.herder.restart("s")
        worker.wait_states("s", "RUNNING", "RUNNING")
        old.raise_error(ValueError("late"))
        old.request_task_reconfiguration()
        worker.herder._queries.get("s").post(lambda: None).result(PATIENCE_SECONDS)
        assert worker.states("s") == ["RUNNING", "RUNNING"]


# ---------------------------------------------------------------- one name, one connector
def test_a_name_is_taken_until_what_was_deleted_has_ended(tmp_path):
    ends = threading.Event()
    with LocalWorker(tmp_path, task__shutdown__graceful__timeout__ms=10_000) as worker:
        make(worker)
        worker.wait_states("s", "RUNNING", "RUNNING")
        (_, task), = TASKS
        polls = threading.Event()
        task.poll = lambda: (polls.set(), ends.wait(PATIENCE_SECONDS)) and None
        assert polls.wait(PATIENCE_SECONDS)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            deleted = pool.submit(worker.herder.delete, "s")
            wait_for(lambda: worker.herder.names() == [])
            with pytest.raises(NotFoundError):
                worker.herder.status("s")
            made = pool.submit(make, worker)
            assert not concurrent.futures.wait([made], 0.3).done, "two tasks of one name would run"
            ends.set()
            deleted.result(PATIENCE_SECONDS), made.result(PATIENCE_SECONDS)
        worker.wait_states("s", "RUNNING", "RUNNING")
        assert len(TASKS) == 1 and TASKS[0][1] is not task


@pytest.mark.parametrize("act", ["restart", "resume", "restart_task", "reconfigure", "retry"])
def test_what_is_asked_of_a_connector_while_it_is_deleted_starts_nothing(tmp_path, act):
    with LocalWorker(tmp_path) as worker:
        make(worker)
        worker.wait_states("s", "RUNNING", "RUNNING")
        connector = worker.herder._queries.get("s")
        held, release = threading.Event(), threading.Event()
        connector.post(lambda: (held.set(), release.wait(PATIENCE_SECONDS)))
        assert held.wait(PATIENCE_SECONDS)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            deleted = pool.submit(worker.herder.delete, "s")
            wait_for(lambda: connector.is_ending)
            late = {
                "restart": lambda: connector.restart(True, [0]),
                "resume": lambda: connector.follow("STARTED"),
                "restart_task": lambda: connector.restart(False, [0]),
                "reconfigure": lambda: connector.start_anew(connector.plan),
                "retry": lambda: connector.post(lambda: connector._try_again(connector.part)),
            }[act]()
            release.set()
            deleted.result(PATIENCE_SECONDS), late.result(PATIENCE_SECONDS)
        assert not TASKS and worker.herder.runners() == [] and worker.herder.names() == []


def test_of_changes_at_once_what_is_shown_is_what_runs(tmp_path):
    with LocalWorker(tmp_path) as worker, concurrent.futures.ThreadPoolExecutor(16) as pool:
        put = lambda n: worker.herder.create("s", {"connector.class": f"{HERE}:Source", "n": str(n)}, replace=True)  # noqa: E731
        for _ in range(5):
            outcomes = list(pool.map(put, range(16)))
            assert all(info["name"] == "s" for info, _ in outcomes)
            worker.wait_states("s", "RUNNING", "RUNNING")
            (runner,) = worker.herder.runners()
            assert len(TASKS) == 1 and runner.config["n"] == worker.herder.config("s")["n"]
            assert [task["config"]["n"] for task in worker.herder.tasks("s")] == [worker.herder.config("s")["n"]]
        patched = list(pool.map(lambda n: worker.herder.patch("s", {f"key{n}": "x"}), range(16)))
        assert {f"key{n}" for n in range(16)} <= set(worker.herder.config("s")), "a change of another was written over"
        assert len(patched) == 16


# ---------------------------------------------------------------- the state
@pytest.fixture
def state(tmp_path):
    state = State(tmp_path / "state", SYSTEM).open()
    yield state
    state.close()


def test_texts_that_no_file_takes_are_stored_all_the_same(state):
    state.put_status("a", 0, "FAILED", f"trace {LONE}", "w")
    assert state.history("a")[0][2] == "trace \\ud800x"
    state.put_topic("a", LONE)
    state.put_loggers([(LONE, "INFO", 1)])
    state.put_connector("a", {"file": LONE, LONE: "1"}, "STARTED", False)
    assert state.connectors() == [("a", {"file": LONE, LONE: "1"}, "STARTED", False)]
    assert state.topics() == [("a", "\\ud800x")]


def test_whatever_a_command_raises_the_others_are_done_and_the_thread_lives(state):
    release = threading.Event()
    state._post(lambda db: release.wait(PATIENCE_SECONDS))
    odd = state._post(lambda db: 1 / 0)
    state.put_status("a", 0, "RUNNING", None, "w")
    release.set()
    with pytest.raises(ZeroDivisionError):
        odd.result(PATIENCE_SECONDS)
    assert len(state.history("a")) == 1 and state.health_problem() is None


def test_a_disk_that_does_not_answer_is_told_and_waited_for_so_long_only(state, monkeypatch):
    monkeypatch.setattr(state_module, "ASK_SECONDS", 0.2)
    release = threading.Event()
    state._post(lambda db: release.wait(PATIENCE_SECONDS))
    with pytest.raises(ConnectError, match="did not answer within"):
        state.put_target_state("a", "PAUSED")
    assert "does not answer" in wait_for(state.health_problem)
    release.set()
    wait_for(lambda: state.health_problem() is None)


def test_what_cannot_be_stored_is_refused_told_by_health_and_changes_nothing(tmp_path):
    with LocalWorker(tmp_path) as worker:
        make(worker)
        worker.wait_states("s", "RUNNING", "RUNNING")
        state = worker.process.worker.state
        state._ask(lambda db: db.execute("PRAGMA query_only = 1") and None)
        for change in (lambda: worker.herder.patch("s", {"x": "1"}), lambda: worker.herder.pause("s"), lambda: make(worker, "t"), lambda: worker.herder.delete("s")):
            with pytest.raises(ConnectError, match="cannot be read or written"):
                change()
        assert worker.herder.names() == ["s"] and "x" not in worker.herder.config("s") and worker.states("s") == ["RUNNING", "RUNNING"]
        assert "could not be read or written" in worker.process.health_problem(5)
        state._ask(lambda db: db.execute("PRAGMA query_only = 0") and None)
        worker.herder.patch("s", {"x": "1"})
        assert worker.process.health_problem(5) is None and worker.herder.config("s")["x"] == "1"


def test_a_name_that_is_no_text_is_refused(tmp_path):
    with LocalWorker(tmp_path) as worker, pytest.raises(BadRequestError, match="surrogate"):
        make(worker, LONE)


class OddSinkTask(SinkTask):
    def put(self, records):
        raise ValueError(LONE)


class OddSink(SinkConnector):
    task_class = OddSinkTask


def test_one_record_freezes_nothing(tmp_path):
    with LocalWorker(tmp_path) as worker:
        worker.run_source({"connector.class": "FileStreamSource", "topic": "t"}, lines=["x"])
        worker.create("k", {"connector.class": f"{HERE}:OddSink", "topics": "t"})
        worker.wait_states("k", "RUNNING", "FAILED")
        assert "\\ud800x" in worker.trace("k")
        assert worker.herder.history("k")[0]["state"] == "FAILED"
