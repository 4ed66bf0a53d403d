"""Tasks on the executors of a real Spark cluster: they run there, pause, stop, outlive a killed executor. scripts/soak/cluster_kill.py at length."""

import importlib.util
import pathlib

import pytest

from tests.servers.spark_cluster import SparkCluster
from tests.suite.patience import PATIENCE_SECONDS
from tests.suite.shared import shared_server

TASKS, COUNT, RATE = 2, 1500, 500

pytestmark = [pytest.mark.spark, pytest.mark.last]


def _soak():
    path = pathlib.Path(__file__).parents[2] / "scripts" / "soak" / "cluster_kill.py"
    spec = importlib.util.spec_from_file_location("cluster_kill", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A worker with a source of two tasks and a sink of two partitions, both on executors."""
    soak = _soak()
    with shared_server(tmp_path_factory, SparkCluster()) as cluster:
        folder = tmp_path_factory.mktemp("cluster")
        with soak.Run(folder, cluster["master"], TASKS, COUNT, RATE) as run:
            run.wait_for(lambda: run.all_are("RUNNING"), "all tasks run", 5 * PATIENCE_SECONDS)
            yield run


def test_tasks_run_on_executors_and_one_that_is_killed_costs_no_record(run):
    own = run.ask(f"/connectors/{run.sink}/status")["connector"]["worker_id"]
    assert all(task["worker_id"] != own for _, task in run.tasks_of())
    befores = [run.kill_an_executor()[0]]
    run.wait_for(run.is_through, "all is committed")
    found = run.judge(befores)
    assert found["records"] == TASKS * COUNT
    assert (found["lost"], found["stored and yet repeated"], found["committed and yet repeated"]) == (0, 0, 0), found


def test_the_worker_shows_what_executors_count_and_log(run):
    run.wait_for(run.is_through, "all is committed")
    shown = run.ask(f"/connectors/{run.sink}/pipeline")["tasks"]
    assert len(shown) == TASKS and all(any("sink: no transforms" in line for line in task["chain"]) for task in shown)
    assert "[" + run.sink + "|task-0] Assigned" in (run.folder / "log").read_text()
    assert run.ask(f"/connectors/{run.sink}/topics")[run.sink]["topics"] == [run.topic]


def test_a_task_that_fails_there_says_why_and_where(run):
    config = {"connector.class": "FileStreamSink", "file": str(run.folder / "absent" / "out.txt"), "topics": run.topic}
    run.ask("/connectors", "POST", {"name": "failing", "config": config})
    run.wait_for(lambda: [task["state"] for _, task in run.tasks_of("failing")] == ["FAILED"], "the task has failed")
    [(_, task)] = run.tasks_of("failing")
    assert "absent" in task["trace"] and task["worker_id"] != run.ask("/connectors/failing/status")["connector"]["worker_id"]
    run.ask("/connectors/failing", "DELETE")


def test_a_connector_is_paused_resumed_and_stopped_there(run):
    run.ask(f"/connectors/{run.sink}/pause", "PUT")
    run.wait_for(lambda: run.all_are("PAUSED", run.sink), "the sink is paused")
    run.ask(f"/connectors/{run.sink}/resume", "PUT")
    run.wait_for(lambda: run.all_are("RUNNING", run.sink), "the sink runs again")
    run.ask(f"/connectors/{run.source}/stop", "PUT")
    run.wait_for(lambda: run.ask(f"/connectors/{run.source}/status")["tasks"] == [], "the source has stopped")
    run.ask(f"/connectors/{run.source}/offsets", "DELETE")
    assert run.ask(f"/connectors/{run.source}/offsets")["offsets"] == []
