"""What the genuine worker answered, request by request, asked of ours: on an embedded log and on a real broker.

Steps marked `quirk` show accidents (500 for bad input, tasks that are ghosts): there ours may answer better, but never with a 5xx.
"""

import importlib.util
import itertools
import json
import pathlib
import sys

import pytest

GOLDEN = pathlib.Path(__file__).parent.parent / "golden"
STEPS = [json.loads(line) for line in (GOLDEN / "rest.jsonl").read_text().splitlines()]
PROFILES = json.loads((GOLDEN / "rest-workers.json").read_text())
SCENARIOS = {name: list(steps) for name, steps in itertools.groupby(STEPS, key=lambda step: step["scenario"])}
COMMAND = f"{sys.executable} -m standalone.cli.worker {{worker}}"


def _load_trace():
    spec = importlib.util.spec_from_file_location("golden_tracelib", GOLDEN / "replay" / "tracelib.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


trace = _load_trace()


class Workers:
    """A worker for each profile, started when the first scenario asks for it."""

    def __init__(self, root, bootstrap=None):
        self._root, self._bootstrap = root, bootstrap
        self._running = {}

    def context(self, profile):
        if profile not in self._running:
            bootstrap = self._bootstrap or f"127.0.0.1:{trace.free_port()}"
            props = {**PROFILES[profile], "spark.start": "lazy"}
            if self._bootstrap is None:
                props |= {"bootstrap.servers": "embedded", "embedded.log.listener": bootstrap}
            context = trace.Ctx("http://not-yet", bootstrap, root=str(self._root / profile))
            worker = trace.Worker(COMMAND, props, bootstrap, context.root)
            self._running[profile] = worker, context
            context.base = worker.ready().base
        return self._running[profile][1]

    def stop(self):
        return {profile: worker.stop() for profile, (worker, _) in self._running.items()}


@pytest.fixture(scope="module")
def on_embedded(tmp_path_factory):
    workers = Workers(tmp_path_factory.mktemp("embedded"))
    yield workers
    assert set(workers.stop().values()) == {0}


@pytest.fixture(scope="module")
def on_kafka(tmp_path_factory, kafka):
    workers = Workers(tmp_path_factory.mktemp("kafka"), kafka)
    yield workers
    assert set(workers.stop().values()) == {0}


def replay(workers, name):
    """{step: differences} of a scenario."""
    steps = SCENARIOS[name]
    context = workers.context(steps[0]["worker"])
    context.enter(name)
    trace.cleanup(context)
    found = {}
    for step in steps:
        if step.get("quirk"):
            step = {key: value for key, value in step.items() if key != "wait"}  # an accident need not come about
        answer, in_time = trace.perform(context, step)
        wrong = ([] if in_time else ["the condition did not come true in time"]) + trace.check(context, step, answer)
        if step.get("quirk"):
            wrong = [f"status {answer['status']}"] if wrong and answer.get("status", 200) >= 500 else []
        if wrong:
            found[f"{step['step']} {step['method']} {step['path']}"] = wrong
    trace.cleanup(context)
    return found


@pytest.mark.parametrize("name", SCENARIOS)
def test_answers_as_the_genuine_worker(on_embedded, name):
    assert replay(on_embedded, name) == {}


@pytest.mark.kafka
@pytest.mark.parametrize("name", SCENARIOS)
def test_answers_as_the_genuine_worker_on_a_real_broker(on_kafka, name):
    assert replay(on_kafka, name) == {}


def test_the_comparison_sees_differences(tmp_path):
    """The yardstick itself: a status, a value and a key that are not there."""
    step = {"method": "GET", "status": 200, "response": {"a": 1, "b": "<any>"}, "wildcards": ["/b=any"]}
    same = {"status": 200, "response": {"a": 1, "b": 2}, "response_headers": {}}
    context = trace.Ctx("http://nowhere", "nowhere", root=str(tmp_path))
    context.enter("none")
    assert trace.check(context, step, same) == []
    for other in ({"status": 201}, {"response": {"a": 2, "b": 2}}, {"response": {"b": 2}}, {"response": {"a": 1, "b": 2, "c": 3}}):
        assert trace.check(context, step, {**same, **other}), other
