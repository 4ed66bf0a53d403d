"""A method of a connector or task that never comes back harms nobody else: REST answers, a neighbour moves its records, the worker ends."""

import threading
import time

import httpx
import pytest

from tests.rest.blocking import BLOCK
from tests.rest.conftest import SOURCE, Api
from tests.runtime.local import LocalWorker, wait_for
from tests.suite.patience import PATIENCE_SECONDS

SOURCE_HOOKS = "initialize start stop poll commit commit_record version"
SINK_HOOKS = "initialize start stop open put flush pre_commit close version"
CONNECTOR_HOOKS = "initialize start stop task_configs validate config version alter_offsets"
CASES = [
    *((kind, f"Connector.{hook}") for kind in ("Source", "Sink") for hook in CONNECTOR_HOOKS.split()),
    *(("Source", f"Task.{hook}") for hook in SOURCE_HOOKS.split() if hook != "version"),
    *(("Sink", f"Task.{hook}") for hook in SINK_HOOKS.split() if hook != "version"),
]
GRACEFUL_MS = 500
ANSWER_SECONDS, END_SECONDS = 20, 20.5  # Java's suite gives a neighbour 60 s, and a request as long as its timeout


@pytest.fixture
def feed(tmp_path):
    """A file of 100 lines, and another of one for the sink that blocks."""
    (tmp_path / "lines").write_text("".join(f"line {number}\n" for number in range(100)))
    return tmp_path / "lines"


@pytest.mark.parametrize("kind, hook", CASES)
def test_a_method_that_never_comes_back(tmp_path, feed, kind, hook):
    began = None
    with LocalWorker(tmp_path, task__shutdown__graceful__timeout__ms=GRACEFUL_MS) as worker:
        api = Api(worker)
        api.create("feeds", {"connector.class": SOURCE, "file": str(feed), "topic": "fed"})
        worker.values("fed", 100)
        BLOCK.at(hook)
        try:
            _run_into(api, kind, hook)
            assert BLOCK.reached.wait(PATIENCE_SECONDS), f"{hook} is never called"
            _others_go_on(api, worker, feed)
            began = time.monotonic()
            worker.process.close()
            assert time.monotonic() - began < END_SECONDS
        finally:
            BLOCK.release()


def _run_into(api, kind, hook):
    """Ask for what makes the worker call that hook; nobody waits for the answers."""
    config = {"connector.class": f"tests.rest.blocking:Blocking{kind}", "tasks.max": "1", **({"topics": "fed"} if kind == "Sink" else {})}
    _ask(api, "POST", "/connectors", {"name": "hangs", "config": config})
    if hook in ("Connector.stop", "Task.stop", "Task.close", "Connector.alter_offsets"):
        _wait_until_it_runs(api)
        _ask(api, "PUT", "/connectors/hangs/stop")
    if hook == "Connector.alter_offsets":
        api.wait_state("hangs", "STOPPED")
        partition, offset = ({"p": 1}, {"n": 1}) if kind == "Source" else ({"kafka_topic": "fed", "kafka_partition": 0}, {"kafka_offset": 1})
        _ask(api, "PATCH", "/connectors/hangs/offsets", {"offsets": [{"partition": partition, "offset": offset}]})


def _wait_until_it_runs(api):
    wait_for(lambda: "hangs" in api.json("GET", "/connectors"), what="the connector to be there")
    api.wait_state("hangs", "RUNNING", "RUNNING")


def _ask(api, method, path, body=None):
    def ask():
        try:
            httpx.request(method, str(api.http.base_url.join(path)), json=body, timeout=120)
        except httpx.TransportError:
            pass  # the worker has ended meanwhile

    threading.Thread(target=ask, daemon=True).start()


def _others_go_on(api, worker, feed):
    lives = {"connector.class": SOURCE, "file": str(feed), "topic": "others"}
    began = time.monotonic()
    api.create("lives", lives)
    api.wait_state("lives", "RUNNING", "RUNNING")
    assert len(worker.values("others", 100)) == 100
    for method, path, body in (
        ("GET", "/connectors", None),
        ("GET", "/connectors?expand=status&expand=info", None),
        ("GET", "/connector-plugins", None),
        ("GET", "/health", None),
        ("PUT", f"/connector-plugins/{SOURCE}/config/validate", {**lives, "name": "x"}),
        ("PUT", "/connectors/lives/pause", None),
        ("PUT", "/connectors/lives/resume", None),
        ("POST", "/connectors/lives/restart?includeTasks=true", None),
        ("DELETE", "/connectors/lives", None),
    ):
        started = time.monotonic()
        assert api(method, path, body).status_code < 300, path
        assert time.monotonic() - started < ANSWER_SECONDS, path
    assert time.monotonic() - began < 4 * ANSWER_SECONDS
    if "hangs" in api.json("GET", "/connectors"):  # one that hangs before it is made is not there
        assert api.json("GET", "/connectors/hangs/status")["name"] == "hangs"


@pytest.mark.parametrize("hook", ["Connector.start", "Connector.stop"])
def test_a_worker_that_was_ended_so_starts_again(tmp_path, feed, hook):
    with LocalWorker(tmp_path, task__shutdown__graceful__timeout__ms=GRACEFUL_MS) as worker:
        api = Api(worker)
        api.create("lives", {"connector.class": SOURCE, "file": str(feed), "topic": "others"})
        api.wait_state("lives", "RUNNING", "RUNNING")
        BLOCK.at(hook)
        _ask(api, "POST", "/connectors", {"name": "hangs", "config": {"connector.class": "tests.rest.blocking:BlockingSource"}})
        if hook == "Connector.stop":
            _wait_until_it_runs(api)
        else:
            assert BLOCK.reached.wait(PATIENCE_SECONDS)
    try:
        with LocalWorker(tmp_path, task__shutdown__graceful__timeout__ms=GRACEFUL_MS) as worker:
            api = Api(worker)
            api.wait_state("lives", "RUNNING", "RUNNING")
            if hook == "Connector.stop":
                api.wait_state("hangs", "RUNNING", "RUNNING")
            wait_for(lambda: set(api.json("GET", "/connectors")) == {"hangs", "lives"}, what="both")
    finally:
        BLOCK.release()
