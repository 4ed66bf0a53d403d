"""Real servers, one of each kind a run, and a worker that all tests share: topics and indices are each test's own."""

import http.client
import itertools
import json
import os
import signal
import urllib.parse

import pytest

from standalone.testing import LocalWorker, wait_for
from tests.servers.search_server import SearchServer
from tests.suite.night import night
from tests.suite.patience import PATIENCE_SECONDS
from tests.suite.shared import shared_server

JSON = "org.apache.kafka.connect.json.JsonConverter"
_number = itertools.count()


class Search:
    """What a test asks of a server, and does to it."""

    def __init__(self, url, kind, pid):
        self.url, self.kind, self._pid = url, kind, pid

    def ask(self, method, path, body=None, seconds=PATIENCE_SECONDS):
        """The answer's JSON, whatever its status."""
        connection = http.client.HTTPConnection(urllib.parse.urlsplit(self.url).netloc, timeout=seconds)
        try:
            connection.request(method, path, None if body is None else json.dumps(body), {"Content-Type": "application/json"})
            return json.loads(connection.getresponse().read() or b"{}")
        finally:
            connection.close()

    def hits(self, index):
        """All documents as the server tells them."""
        self.ask("POST", f"/{index}/_refresh")
        return self.ask("GET", f"/{index}/_search?size=10000&version=true").get("hits", {}).get("hits", [])

    def documents(self, index):
        """{id: document}"""
        return {hit["_id"]: hit["_source"] for hit in self.hits(index)}

    def properties(self, index):
        (answer,) = self.ask("GET", f"/{index}/_mapping").values()
        return answer["mappings"].get("properties", {})

    def freeze(self):
        os.kill(self._pid, signal.SIGSTOP)

    def thaw(self):
        os.kill(self._pid, signal.SIGCONT)


@pytest.fixture(scope="session", params=["elasticsearch", *night("opensearch")])
def search(request, tmp_path_factory):
    """A real server, by night both in turn. Leave it running, and not frozen."""
    with shared_server(tmp_path_factory, SearchServer(request.param)) as told:
        yield Search(told["url"], told["kind"], told["pid"])


@pytest.fixture(scope="session")
def search_worker(tmp_path_factory):
    with LocalWorker(tmp_path_factory.mktemp("search-worker")) as worker:
        yield worker


@pytest.fixture
def sink(search, search_worker):
    """A Sink of the server, on its own topic."""
    made = Sink(search, search_worker)
    yield made
    made.close()


class Sink:
    """`run(messages, **keys)` waits until all is committed; `start` and `send` do not."""

    def __init__(self, search, worker, topic=None):
        self.search, self.worker = search, worker
        self.topic = topic or f"docs{next(_number)}-{search.kind}"
        self._names = []

    def config(self, keys):
        config = {
            "connector.class": "io.confluent.connect.elasticsearch.ElasticsearchSinkConnector",
            "topics": self.topic,
            "connection.url": self.search.url,
            "schema.ignore": "true",
            "value.converter": JSON,
            "value.converter.schemas.enable": "false",
            "retry.backoff.ms": "50",
            "read.timeout.ms": "30000",  # where a server has to share the machine
            **keys,
        }
        return {key: value for key, value in config.items() if value is not None}

    def run(self, messages, name=None, **keys):
        self.worker.run_sink({"name": name or f"sink-{self.topic}", **self.config(keys)}, messages, seconds=PATIENCE_SECONDS)
        return self.search.documents(self.topic)

    def start(self, **keys):
        self._names.append(name := f"sink-{self.topic}")
        self.worker.create(name, self.config(keys))
        return name

    def send(self, messages):
        self.worker.send(self.topic, messages)

    def wait_failed(self):
        """Why the task FAILED."""
        return wait_for(lambda: self.worker.trace(self._names[-1]), what="the task to fail")

    def wait_committed(self):
        self.worker.wait_committed(self._names[-1], self.topic, 60)

    def close(self):
        for name in self._names:
            self.worker.herder.delete(name)
