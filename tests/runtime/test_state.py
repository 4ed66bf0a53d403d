"""What outlives a restart, kill -9 included: connectors, target states, active topics, levels of loggers, and the history, which is bounded."""

import logging
import re
import threading

import pytest

from standalone.clock import SYSTEM
from standalone.errors import NotFoundError, StartError
from standalone.runtime.supervision import state as state_module
from standalone.runtime.supervision.state import CONNECTOR, State
from tests.runtime.local import LocalWorker, wait_for
from tests.suite.patience import PATIENCE_SECONDS


@pytest.fixture
def state(tmp_path):
    state = State(tmp_path / "state", SYSTEM).open()
    yield state
    state.close()


def test_the_history_is_the_newest_first_and_ends_with_the_bounds(state, monkeypatch):
    monkeypatch.setattr(state_module, "HISTORY_OF_ONE", 5)
    for number in range(20):
        state.put_status("a", CONNECTOR, f"S{number}", None, "w")
    state.put_status("b", 3, "FAILED", "trace", "w")
    assert [entry[1] for entry in state.history("a")] == ["S19", "S18", "S17", "S16", "S15"]
    assert [entry[:4] for entry in state.history("b")] == [(3, "FAILED", "trace", "w")]


def test_all_histories_together_are_bounded(state, monkeypatch):
    monkeypatch.setattr(state_module, "HISTORY_OF_ALL", 50)
    for number in range(200):
        state.put_status(f"c{number}", CONNECTOR, "RUNNING", None, "w")
    assert state.history("c149") == [] and len(state.history("c150")) == 1


def test_a_long_trace_is_cut_off_in_the_history(state):
    state.put_status("a", 0, "FAILED", "x" * 1_000_000, "w")
    trace = state.history("a")[0][2]
    assert len(trace) < 20_000 and trace.endswith("truncated")


def test_the_history_of_a_connector(tmp_path):
    with LocalWorker(tmp_path) as worker:
        worker.source("s", tmp_path / "in", "t")
        worker.wait_states("s", "RUNNING", "RUNNING")
        worker.herder.pause("s")
        worker.wait_states("s", "PAUSED", "PAUSED")
        worker.herder.delete("s")
        found = worker.herder.history("s")
        assert found[0]["state"] == "DESTROYED" and found[-1] == {
            **{"time": found[-1]["time"], "connector": "s", "task": None, "state": "RUNNING"},
            **{"worker_id": worker.process.worker.id, "trace": None},
        }
        assert {"PAUSED", "RUNNING"} <= {entry["state"] for entry in found if entry["task"] == 0}
        assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", entry["time"]) for entry in found)
        assert [entry["time"] for entry in found] == sorted((entry["time"] for entry in found), reverse=True)
        with pytest.raises(NotFoundError):
            worker.herder.history("never was")
    with LocalWorker(tmp_path) as worker:
        assert worker.herder.history("s") == found


def test_nothing_is_noted_of_a_connector_that_is_deleted(tmp_path):
    with LocalWorker(tmp_path) as worker:
        worker.source("s", tmp_path / "in", "t")
        worker.wait_states("s", "RUNNING", "RUNNING")
        worker.herder.delete("s")
        assert worker.herder.history("s")[0]["state"] == "DESTROYED"
        rows = worker.process.worker.state._ask(lambda db: db.execute("SELECT count(*) FROM statuses").fetchone())
        assert rows == (0,)


def test_active_topics_and_levels_of_loggers_outlive_a_restart(tmp_path):
    (tmp_path / "in").write_text("1\n")
    try:
        with LocalWorker(tmp_path) as worker:
            worker.source("s", tmp_path / "in", "t")
            wait_for(lambda: worker.herder.topics("s") == ["t"])
            worker.process.worker.loggers.set("some.library", "DEBUG")
        logging.getLogger("some.library").setLevel(logging.NOTSET)
        with LocalWorker(tmp_path) as worker:
            assert worker.herder.topics("s") == ["t"]
            assert worker.process.worker.loggers.get("some.library")["level"] == "DEBUG"
            assert logging.getLogger("some.library").level == logging.DEBUG
    finally:
        logging.getLogger("some.library").setLevel(logging.NOTSET)


def test_a_stored_connector_whose_plugin_is_gone_stays_and_can_be_mended(tmp_path):
    (tmp_path / "plugins").mkdir()
    file = tmp_path / "plugins" / "mine_for_a_while.py"
    text = "from standalone import SourceConnector\nclass MineForAWhile(SourceConnector):\n    def task_configs(self, most):\n        return []\n"
    file.write_text(text)
    with LocalWorker(tmp_path, plugin__path=tmp_path / "plugins") as worker:
        worker.herder.create("mine", {"connector.class": "MineForAWhile"})
    file.unlink()
    with LocalWorker(tmp_path, plugin__path=tmp_path / "plugins") as worker:
        assert worker.states("mine") == ["FAILED"]
        assert "MineForAWhile" in worker.herder.status("mine")["connector"]["trace"]
        worker.herder.create("mine", {"connector.class": "FileStreamSource", "topic": "t", "file": str(tmp_path / "in")}, replace=True)
        worker.wait_states("mine", "RUNNING", "RUNNING")


def test_a_state_that_a_later_version_wrote_is_refused(tmp_path):
    state = State(tmp_path, SYSTEM).open()
    state._ask(lambda db: db.execute("PRAGMA user_version = 99") and None)
    state.close()
    with pytest.raises(StartError, match="newer version"):
        State(tmp_path, SYSTEM).open()


def test_liveness_is_told_by_the_threads_that_matter(tmp_path):
    with LocalWorker(tmp_path) as worker:
        assert worker.process.health_problem(5) is None
        held, release = threading.Event(), threading.Event()
        worker.process.worker.state._post(lambda db: (held.set(), release.wait(PATIENCE_SECONDS)))
        assert held.wait(PATIENCE_SECONDS)
        assert "state on disk" in worker.process.health_problem(0.05)
        release.set()
        with worker.herder._lock:
            found = []
            asks = threading.Thread(target=lambda: found.append(worker.process.health_problem(0.05)))
            asks.start()
            asks.join(PATIENCE_SECONDS)
        assert "state of its connectors" in found[0]
        assert worker.process.health_problem(5) is None
    assert "has ended" in worker.process.health_problem(0.05)
