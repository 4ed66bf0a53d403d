"""Tasks of a source and of a sink, two of each on one executor of a real Spark cluster, by night eight on two: what they do, show and are told
there, and an executor that is killed. scripts/soak/cluster_kill.py kills at length."""

import operator
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.runtime.on_cluster import running
from tests.servers.spark_cluster import SparkCluster
from tests.suite.night import IS_NIGHT
from tests.suite.patience import PATIENCE_SECONDS

TASKS, WORKERS = (8, 2) if IS_NIGHT else (2, 1)
COUNT, RATE = 1500, 500
EACH = {number: COUNT for number in range(TASKS)}

pytestmark = [pytest.mark.spark, pytest.mark.last, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    with running(tmp_path_factory, SparkCluster(workers=WORKERS), TASKS, COUNT, RATE) as run:
        run.wait_for(lambda: run.all_are("RUNNING"), "all tasks run", 5 * PATIENCE_SECONDS)
        yield run


def _process(task):
    return int(task["worker_id"].rpartition(":")[2])


def _series(run, name, connector):
    """{task: value}"""
    with urllib.request.urlopen(f"{run.rest}/metrics", timeout=PATIENCE_SECONDS) as answer:
        families = text_string_to_metric_families(answer.read().decode())
    samples = [sample for family in families for sample in family.samples]
    return {int(each.labels["task"]): each.value for each in samples if each.name == name and each.labels["connector"] == connector}


# ---- in the order in which they stand: nothing is killed before the last


def test_each_task_is_a_process_of_its_own_on_an_executor(run):
    own = run.ask(f"/connectors/{run.sink}/status")["connector"]["worker_id"]
    tasks = [task for _, task in run.tasks_of()]
    assert len({task["worker_id"] for task in tasks} - {own}) == 2 * TASKS
    assert len({run.executor_of(_process(task)) for task in tasks}) == WORKERS  # an executor each


def test_every_record_comes_once_and_is_counted_where_it_came_through(run):
    run.wait_for(run.is_through, "all is committed")
    found = run.judge([])
    assert (found.pop("records"), set(found.values())) == (TASKS * COUNT, {0}), found
    assert run.offsets() == (EACH, EACH)
    wanted = {number: float(COUNT) for number in EACH}
    sent, put = "kafka_connect_source_task_source_record_write_total", "kafka_connect_sink_task_sink_record_send_total"
    run.wait_for(lambda: _series(run, sent, run.source) == wanted, "the source's tasks have told what they sent")
    run.wait_for(lambda: _series(run, put, run.sink) == wanted, "the sink's tasks have told what they put: each all of one partition")
    assert _series(run, "kafka_connect_sink_task_partition_count", run.sink) == dict.fromkeys(range(TASKS), 1.0)


@pytest.mark.night
def test_the_worker_shows_what_executors_run_and_log(run):
    run.wait_for(run.is_through, "all is committed")
    shown = run.ask(f"/connectors/{run.sink}/pipeline")["tasks"]
    assert len(shown) == TASKS and all(any("sink: no transforms" in line for line in task["chain"]) for task in shown)
    assert "[" + run.sink + "|task-0] Assigned" in (run.folder / "log").read_text()
    assert run.ask(f"/connectors/{run.sink}/topics")[run.sink]["topics"] == [run.topic]


@pytest.mark.night
def test_tasks_that_are_paused_send_and_put_nothing_until_they_are_resumed(run):
    run.count_on(8 * COUNT)
    run.wait_for(lambda: run.all_are("RUNNING") and run.offsets()[0] != EACH, "the source sends more")
    run.ask(f"/connectors/{run.sink}/pause", "PUT")
    run.wait_for(lambda: run.all_are("PAUSED", run.sink), "the sink is paused")
    run.ask(f"/connectors/{run.source}/pause", "PUT")
    run.wait_for(lambda: run.all_are("PAUSED", run.source), "the source is paused")
    stored, committed = run.offsets()
    assert sum(committed.values()) < sum(stored.values())
    processes = [task["worker_id"] for _, task in run.tasks_of()]
    run.ask(f"/connectors/{run.sink}/resume", "PUT")
    run.wait_for(lambda: operator.eq(*run.offsets()), "the sink has caught up with a source that is paused")
    stored = run.offsets()[0]
    assert sum(stored.values()) < TASKS * run.count
    run.ask(f"/connectors/{run.source}/resume", "PUT")
    run.wait_for(lambda: run.all_are("RUNNING") and run.offsets()[0] != stored, "the source sends again")
    assert [task["worker_id"] for _, task in run.tasks_of()] == processes  # they were there all the time
    found = run.judge([])
    assert (found["repeated by the source"], found["repeated by the sink"]) == (0, 0), found


@pytest.mark.night
def test_an_executor_that_is_killed_costs_no_record(run):
    befores = [run.kill_an_executor()[0]]
    assert sum(befores[0][0].values()) < TASKS * run.count  # it had more to send
    run.wait_for(run.is_through, "all is committed")
    found = run.judge(befores)
    assert found["records"] == TASKS * run.count
    assert (found["lost"], found["stored and yet repeated"], found["committed and yet repeated"]) == (0, 0, 0), found
    assert "Runs on " in (run.folder / "log").read_text()


@pytest.mark.night
def test_a_task_that_fails_there_says_why_and_where(run):
    config = {"connector.class": "FileStreamSink", "file": str(run.folder / "absent" / "out.txt"), "topics": run.topic}
    run.ask("/connectors", "POST", {"name": "failing", "config": config})
    run.wait_for(lambda: [task["state"] for _, task in run.tasks_of("failing")] == ["FAILED"], "the task has failed")
    [(_, task)] = run.tasks_of("failing")
    assert "absent" in task["trace"] and task["worker_id"] != run.ask("/connectors/failing/status")["connector"]["worker_id"]
    run.ask("/connectors/failing", "DELETE")


@pytest.mark.night
def test_a_source_that_is_stopped_leaves_its_executors_and_its_offsets_can_be_reset(run):
    run.ask(f"/connectors/{run.source}/stop", "PUT")
    run.wait_for(lambda: run.ask(f"/connectors/{run.source}/status")["tasks"] == [], "the source has stopped")
    run.ask(f"/connectors/{run.source}/offsets", "DELETE")
    assert run.ask(f"/connectors/{run.source}/offsets")["offsets"] == []
