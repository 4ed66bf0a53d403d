"""Failed tasks are started again: pauses that grow, counts that start over, and what cancels it; by a hand-made clock and in a worker."""

import queue

import pytest

from standalone.errors import ConfigError
from standalone.runtime.supervision.restarts import OPTIONS, Attempts, Policy, Timers
from tests.runtime import plugins
from tests.runtime.hand_clock import HandClock
from tests.runtime.local import LocalWorker, wait_for
from tests.runtime.plugins import SAID
from tests.suite.patience import PATIENCE_SECONDS

HERE = "tests.runtime.plugins"
QUICK = {"task__restart__max__attempts": 3, "task__restart__backoff__initial__ms": 20}
NEVER_SOON = {"task__restart__max__attempts": 3, "task__restart__backoff__initial__ms": 3_600_000, "task__restart__backoff__max__ms": 3_600_000}


@pytest.fixture(autouse=True)
def nothing_said():
    SAID.clear()
    plugins.FAILING.clear()
    yield
    plugins.FAILING.clear()


# ---------------------------------------------------------------- the arithmetic
@pytest.mark.parametrize(
    "policy, pauses",
    [
        pytest.param(Policy(0, 1000, 60_000, 1), [None], id="off"),
        pytest.param(Policy(3, 1000, 60_000, 600_000), [1, 2, 4, None], id="doubling"),
        pytest.param(Policy(5, 1000, 3000, 600_000), [1, 2, 3, 3, 3, None], id="bounded"),
        pytest.param(Policy(-1, 1, 1000, 600_000), [0.001 * 2**n for n in range(10)] + [1.0] * 200, id="without end"),
        pytest.param(Policy(2, 0, 60_000, 600_000), [0, 0, None], id="without a pause"),
    ],
)
def test_pauses(policy, pauses):
    attempts, found = Attempts(policy, HandClock()), []
    for _ in pauses:
        attempts.running()
        found.append(attempts.failed())
        if found[-1] is not None:
            attempts.made()
    assert found == pauses


@pytest.mark.parametrize("ran, count", [(59.9, 2), (60.0, 0), (3600.0, 0)])
def test_a_task_that_ran_long_enough_counts_from_nought(ran, count):
    clock = HandClock()
    attempts = Attempts(Policy(5, 1000, 60_000, 60_000), clock)
    for _ in range(2):
        attempts.running()
        attempts.failed()
        attempts.made()
    attempts.running()
    clock.advance(ran)
    assert attempts.shown() == {"restart_attempts": str(count), "next_restart": None}
    assert attempts.failed() == 2**count


def test_the_status_tells_count_and_next_try_only_where_it_is_on():
    clock = HandClock(start_ms=0)
    attempts = Attempts(Policy(2, 1500, 60_000, 1), clock)
    assert attempts.shown() == {"restart_attempts": "0", "next_restart": None}
    attempts.failed()
    assert attempts.shown() == {"restart_attempts": "0", "next_restart": "1970-01-01T00:00:01.500Z"}
    attempts.made()
    assert attempts.shown() == {"restart_attempts": "1", "next_restart": None}
    attempts.forget()
    assert attempts.shown() == {"restart_attempts": "0", "next_restart": None}
    assert Attempts(Policy(0, 1500, 60_000, 1), clock).shown() == {}


@pytest.mark.parametrize("connector, most", [({}, 7), ({"task.restart.max.attempts": None}, 7), ({"task.restart.max.attempts": 0}, 0)])
def test_a_connectors_own_keys_go_before_the_workers(connector, most):
    worker = {**OPTIONS.defaults(), "task.restart.max.attempts": 7}
    assert Policy.of(worker, connector) == (most, 1000, 300_000, 600_000)


def test_timers_call_in_order_of_time_and_not_what_was_cancelled():
    clock, called = HandClock(), queue.SimpleQueue()
    timers = Timers(clock)
    timers.after(2, lambda: called.put("second"))
    timers.after(1, lambda: called.put("first"))
    timers.after(1.5, lambda: called.put("never")).cancel()
    timers.after(1, lambda: 1 / 0)  # is logged, and ends nothing
    clock.advance(0.9)
    assert called.empty()
    for seconds in (0.2, 1):
        clock.advance(seconds)
        assert called.get(timeout=5) == ("first" if seconds == 0.2 else "second")
    timers.after(1, lambda: called.put("closed"))
    timers.close()
    clock.advance(5)
    assert called.empty()


# ---------------------------------------------------------------- in a worker
def make(worker, name, plugin="FailingSource", **config):
    return worker.herder.create(name, {"connector.class": f"{HERE}:{plugin}", "topic": "t", **{k.replace("__", "."): str(v) for k, v in config.items()}})


def task(worker, name, number=0):
    return worker.herder.task_status(name, number)


def test_without_the_keys_a_failed_task_stays_failed_and_the_status_is_javas(tmp_path):
    plugins.FAILING["s"] = 1
    with LocalWorker(tmp_path) as worker:
        make(worker, "s")
        worker.wait_states("s", "RUNNING", "FAILED")
        assert set(task(worker, "s")) == {"id", "state", "worker_id", "version", "trace"}
        assert set(worker.herder.status("s")["connector"]) == {"state", "worker_id", "version"}


def test_a_failed_task_comes_back_by_itself(tmp_path):
    plugins.FAILING["s"] = 2
    with LocalWorker(tmp_path, **QUICK) as worker:
        make(worker, "s")
        wait_for(lambda: task(worker, "s")["state"] == "RUNNING" and task(worker, "s")["restart_attempts"] == "2")
        assert worker.values("t", 1) == [b"well"]
        assert [entry["state"] for entry in worker.herder.history("s") if entry["task"] == 0].count("FAILED") == 2


def test_it_is_given_up_after_the_last_attempt(tmp_path, caplog):
    plugins.FAILING["s"] = 100
    with LocalWorker(tmp_path, **QUICK) as worker:
        make(worker, "s", task__restart__max__attempts=2)
        wait_for(lambda: task(worker, "s")["restart_attempts"] == "2" and task(worker, "s")["state"] == "FAILED")
        wait_for(lambda: "failed permanently after 2 restarts" in caplog.text)
        assert task(worker, "s")["next_restart"] is None
        assert plugins.FAILING["s"] == 97


def test_a_connector_that_fails_is_started_again_too(tmp_path):
    plugins.FAILING["s|connector"] = 2
    with LocalWorker(tmp_path, **QUICK) as worker:
        make(worker, "s")
        worker.wait_states("s", "RUNNING", "RUNNING")
        assert worker.herder.status("s")["connector"]["restart_attempts"] == "2"


@pytest.mark.parametrize("act", ["pause", "stop", "delete", "reconfigure"])
def test_what_an_operator_does_cancels_it(tmp_path, act):
    plugins.FAILING["s"] = 1
    with LocalWorker(tmp_path, **NEVER_SOON) as worker:
        make(worker, "s")
        wait_for(lambda: worker.states("s")[1:] == ["FAILED"] and task(worker, "s")["next_restart"])
        connector = worker.herder._queries.get("s")
        timer = connector.tasks[0].next_try
        if act == "reconfigure":
            worker.herder.create("s", {**worker.herder.config("s"), "more": "1"}, replace=True)
            worker.wait_states("s", "RUNNING", "RUNNING")
        else:
            getattr(worker.herder, act)("s")
        said = len(SAID["s"])
        timer.fire()  # as if its time had come at that very moment
        connector.post(lambda: None).result(PATIENCE_SECONDS)
        assert len(SAID["s"]) == said
        if act == "pause":
            worker.wait_states("s", "PAUSED", "FAILED")
            assert task(worker, "s")["next_restart"] is None
            worker.herder.resume("s")
            wait_for(lambda: task(worker, "s")["next_restart"], what="to be tried again once resumed")


def test_an_operators_restart_counts_from_nought(tmp_path, caplog):
    plugins.FAILING["s"] = 3
    with LocalWorker(tmp_path, **{**QUICK, "task__restart__max__attempts": 1}) as worker:
        make(worker, "s")
        wait_for(lambda: "failed permanently" in caplog.text)  # when the attempt begins, the state is still FAILED of what was before it
        assert task(worker, "s")["restart_attempts"] == "1"
        worker.herder.restart_task("s", 0)
        worker.wait_states("s", "RUNNING", "RUNNING")
        assert task(worker, "s")["restart_attempts"] == "1"  # 0 by hand, and one more by itself


def test_wrong_keys_are_refused(tmp_path):
    with LocalWorker(tmp_path) as worker, pytest.raises(ConfigError, match="task.restart.max.attempts"):
        make(worker, "s", task__restart__max__attempts="often")


@pytest.mark.parametrize("restarts", [{}, {"task__restart__max__attempts": 1, "task__restart__backoff__initial__ms": 1}])
def test_the_process_is_over_once_a_task_has_failed_for_good(tmp_path, restarts):
    plugins.FAILING["s"] = 2
    with LocalWorker(tmp_path, task__failure__exit="true", **restarts) as worker:
        make(worker, "s")
        assert worker.process.over.wait(PATIENCE_SECONDS)
        assert worker.process.failed == "Task 0 of connector 's'"
        assert plugins.FAILING["s"] == 1 - len(restarts) / 2


def test_the_process_goes_on_while_there_is_hope(tmp_path):
    plugins.FAILING["s"] = 1
    with LocalWorker(tmp_path, task__failure__exit="true", **QUICK) as worker:
        make(worker, "s")
        wait_for(lambda: task(worker, "s")["state"] == "RUNNING" and task(worker, "s")["restart_attempts"] == "1")
        assert not worker.process.over.is_set()
