"""A worker on an embedded log for all tests of this folder that do not need one of their own, spoken to over real HTTP."""

import httpx
import pytest

from tests.runtime.local import LocalWorker, wait_for

SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"


class Api:
    """A client of one worker's listener."""

    def __init__(self, worker, address=None):
        self.worker = worker
        self.http = httpx.Client(base_url="http://{}:{}".format(*(address or worker.process.rest.address)), timeout=30)

    def __call__(self, method, path, body=None, **more):
        more = more if body is None else {"json": body, **more}
        return self.http.request(method, path, **more)

    def json(self, method, path, body=None, status=200, **more):
        answer = self(method, path, body, **more)
        assert answer.status_code == status, (answer.status_code, answer.text)
        return answer.json() if answer.content else None

    def create(self, name, config, status=201, **more):
        return self.json("POST", "/connectors", {"name": name, "config": config, **more}, status)

    def state(self, name):
        return self.json("GET", f"/connectors/{name}/status")["connector"]["state"]

    def wait_state(self, name, *states):
        def states_now():
            status = self.json("GET", f"/connectors/{name}/status")
            return [status["connector"]["state"], *(task["state"] for task in status["tasks"])] == list(states)

        wait_for(states_now, what=f"{name} to be {states}")

    def clear(self):
        for name in self.json("GET", "/connectors"):
            self("DELETE", f"/connectors/{name}")


@pytest.fixture(scope="package")
def shared_worker(tmp_path_factory):
    with LocalWorker(tmp_path_factory.mktemp("worker")) as worker:
        yield worker


@pytest.fixture
def api(shared_worker):
    api = Api(shared_worker)
    yield api
    api.clear()


@pytest.fixture
def source_file(tmp_path):
    path = tmp_path / "in.txt"
    path.write_text("one\ntwo\nthree\n")
    return path


@pytest.fixture
def config(source_file):
    """Of a file source on its own topic."""
    return {"connector.class": SOURCE, "tasks.max": "1", "file": str(source_file), "topic": f"t-{source_file.parent.name}"}
