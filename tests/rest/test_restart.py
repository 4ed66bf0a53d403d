"""POST /connectors/…/restart: what is started and stopped again, counted; the cases of Connect's own suite."""

import itertools

import pytest
from pytest import param

from tests.rest.counting import COUNTS, FAIL, TASKS
from tests.runtime.local import wait_for

EVERY = frozenset(range(TASKS))
CONFIG = {"connector.class": "tests.rest.counting:CountingSource", "tasks.max": str(TASKS)}


@pytest.fixture(autouse=True)
def nothing_counted():
    COUNTS.clear()
    FAIL.clear()
    yield
    FAIL.clear()


def restart(api, only_failed, include_tasks, status):
    query = f"onlyFailed={str(only_failed).lower()}&includeTasks={str(include_tasks).lower()}"
    return api.json("POST", f"/connectors/r/restart?{query}", status=status)


def states(shown):
    return [shown["connector"]["state"], *(task["state"] for task in shown["tasks"])]


@pytest.mark.parametrize("query", ["", *(f"?onlyFailed={a}&includeTasks={b}" for a, b in itertools.product(("true", "false"), repeat=2))])
def test_a_connector_that_is_not_there(api, query):
    assert api("POST", f"/connectors/Unknown/restart{query}").status_code == 404


@pytest.mark.parametrize(
    "failed, only_failed, include_tasks, own, tasks",
    [
        param((), False, False, 1, (), id="all runs: the connector alone"),
        param((), False, True, 1, EVERY, id="all runs: connector and tasks"),
        param((), True, False, 0, (), id="all runs: what failed, nothing did"),
        param((), True, True, 0, (), id="all runs: what failed with tasks, nothing did"),
        param(EVERY, False, False, 1, (), id="all tasks failed: the connector alone"),
        param(EVERY, True, True, 0, EVERY, id="all tasks failed: what failed with tasks"),
        param(EVERY, True, False, 0, (), id="all tasks failed: what failed without tasks"),
        param(EVERY, False, True, 1, EVERY, id="all tasks failed: connector and tasks"),
        param({1}, True, True, 0, {1}, id="one task failed: that one"),
        param({1}, True, False, 0, (), id="one task failed: without tasks"),
        param({1}, False, True, 1, EVERY, id="one task failed: connector and tasks"),
    ],
)
def test_what_is_restarted(api, failed, only_failed, include_tasks, own, tasks):
    FAIL.update(failed)
    api.create("r", CONFIG)
    before_states = ["RUNNING", *("FAILED" if number in failed else "RUNNING" for number in range(TASKS))]
    api.wait_state("r", *before_states)
    FAIL.clear()
    before = dict(COUNTS)
    shown = restart(api, only_failed, include_tasks, 202 if only_failed or include_tasks else 204)
    if shown is not None:
        expected = ["RESTARTING" if own else "RUNNING"] + ["RESTARTING" if number in tasks else before_states[1 + number] for number in range(TASKS)]
        assert states(shown) == expected
    api.wait_state("r", "RUNNING", *("FAILED" if number in set(failed) - set(tasks) else "RUNNING" for number in range(TASKS)))
    again = {name: COUNTS[name] - before.get(name, 0) for name in COUNTS}
    assert (again["connector starts"], again.get("connector stops", 0)) == (own, own)
    for number in range(TASKS):
        assert again[f"{number} starts"] == (number in tasks), number
        if number not in failed:  # those are stopped when they fail, just before or after that is told
            assert again.get(f"{number} stops", 0) == (number in tasks), number


@pytest.mark.parametrize("only_failed, include_tasks", [(False, False), (False, True), (True, True), (True, False)])
def test_a_connector_that_failed_is_started_again_and_fails_again(api, only_failed, include_tasks):
    FAIL.add("connector")
    api.create("r", CONFIG)
    api.wait_state("r", "FAILED")
    restart(api, only_failed, include_tasks, 202 if only_failed or include_tasks else 204)
    wait_for(lambda: COUNTS["connector starts"] == 2, what="the second start")
    api.wait_state("r", "FAILED")
    FAIL.clear()
    restart(api, True, True, 202)
    api.wait_state("r", "RUNNING", *["RUNNING"] * TASKS)


@pytest.mark.parametrize("state, shown", [("PAUSED", "PAUSED"), ("STOPPED", "STOPPED")])
def test_a_restart_lets_nothing_run_that_shall_rest(api, state, shown):
    api.create("r", CONFIG, initial_state=state)
    api.wait_state("r", *[shown] * (1 if state == "STOPPED" else len(api.json("GET", "/connectors/r/status")["tasks"]) + 1))
    restart(api, False, True, 202)
    wait_for(lambda: api.state("r") == shown, what=f"{shown} again")
    assert not [name for name in COUNTS if name.endswith("starts") and name[0].isdigit()]
