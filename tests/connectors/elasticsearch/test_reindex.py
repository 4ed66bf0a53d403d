"""connectctl reindex on a real server: another mapping while records keep coming, and back again."""

import contextlib
import http.client
import http.server
import json
import threading
import urllib.parse

import pytest
from click.testing import CliRunner

from standalone.cli.ctl import main
from standalone.testing import wait_for


class Setting:
    """A topic whose sink writes to an index after an alias."""

    def __init__(self, sink, folder):
        self.sink, self.search = sink, sink.search
        self.alias, self.old, self.new = sink.topic, f"{sink.topic}-v1", f"{sink.topic}-v2"
        self.search.ask("PUT", f"/{self.old}", {"aliases": {self.alias: {}}, "mappings": {"properties": {"n": {"type": "text"}}}})
        self.first = sink.start(**{"behavior.on.null.values": "delete"})
        self.second = f"{self.first}-{self.new}"
        self.mapping = folder / "mapping.json"
        self.mapping.write_text('{"properties": {"n": {"type": "keyword"}}}')

    def ctl(self, *arguments, code=0):
        url = "http://{}:{}".format(*self.sink.worker.process.rest.address)
        result = CliRunner().invoke(main, ["--url", url, "reindex", self.first, *map(str, arguments)], prog_name="connectctl")
        assert result.exit_code == code, (result.exit_code, result.output, result.exception)
        return result.output

    def holders(self):
        return list(self.search.ask("GET", f"/_alias/{self.alias}"))

    def states(self):
        return {name: self.sink.worker.states(name)[0] for name in (self.first, self.second) if name in self.sink.worker.herder.names()}

    def wait_documents(self, index, expected):
        wait_for(lambda: self.search.documents(index) == expected, what=f"{index} to hold {expected}")


@pytest.fixture
def setting(sink, tmp_path):
    made = Setting(sink, tmp_path)
    yield made
    for name in {made.second} & set(sink.worker.herder.names()):
        sink.worker.herder.delete(name)


def numbers(*range_):
    return {f"k{n}": {"n": str(n)} for n in range(*range_)}


def send(setting, *range_):
    setting.sink.send([(f"k{n}", json.dumps({"n": str(n)})) for n in range(*range_)])


def test_a_new_mapping_and_back_again(setting):
    send(setting, 20)
    setting.sink.wait_committed()
    said = setting.ctl("--mapping", setting.mapping)
    assert [line[0] for line in said.splitlines()[:1]] == ["1"] and "moved the alias" in said
    assert setting.holders() == [setting.new]
    assert setting.states() == {setting.first: "STOPPED", setting.second: "RUNNING"}
    assert setting.search.properties(setting.new) == {"n": {"type": "keyword"}}
    send(setting, 20, 30)
    setting.wait_documents(setting.new, numbers(30))
    assert "moved the alias" not in setting.ctl("--mapping", setting.mapping), "again changes nothing"
    setting.ctl("--undo")
    assert setting.holders() == [setting.old]
    assert setting.states() == {setting.first: "RUNNING"}
    setting.wait_documents(setting.old, numbers(30))
    assert "error" in setting.search.ask("GET", f"/{setting.new}")


def test_it_goes_on_where_it_was_left_and_deletes_what_was(setting):
    send(setting, 20)
    setting.sink.wait_committed()
    setting.ctl("--mapping", setting.mapping, "--timeout", "-1", code=1)  # not caught up within no time
    assert setting.holders() == [setting.old]
    send(setting, 20, 25)
    setting.sink.wait_committed()
    assert "exists" in setting.ctl("--mapping", setting.mapping, "--delete")
    assert setting.holders() == [setting.new]
    assert setting.states() == {setting.second: "RUNNING"}
    setting.sink._names.clear()
    assert "error" in setting.search.ask("GET", f"/{setting.old}")
    setting.wait_documents(setting.new, numbers(25))


def test_what_cannot_be_done_is_told(setting):
    assert "--mapping" in setting.ctl(code=2)
    assert "Nothing to undo" in setting.ctl("--undo", code=1)
    setting.search.ask("PUT", f"/{setting.new}")
    assert "was not created by reindex" in setting.ctl("--mapping", setting.mapping, code=1)
    setting.mapping.write_text("no")
    assert "not JSON" in setting.ctl("--mapping", setting.mapping, code=1)


def test_one_index_of_a_connector_that_writes_to_several(sink, tmp_path):
    """The topic is taken out of the first connector, which continues with the other one; and is returned."""
    search, other = sink.search, f"{sink.topic}-other"
    search.ask("PUT", f"/{sink.topic}-v1", {"aliases": {sink.topic: {}}})
    first = sink.start(topics=f"{sink.topic},{other}")
    mapping = tmp_path / "mapping.json"
    mapping.write_text('{"properties": {"n": {"type": "keyword"}}}')
    url = "http://{}:{}".format(*sink.worker.process.rest.address)

    def ctl(*arguments, code=0):
        result = CliRunner().invoke(main, ["--url", url, "reindex", first, *map(str, arguments)], prog_name="connectctl")
        assert result.exit_code == code, (result.exit_code, result.output, result.exception)
        return result.output

    def send(topic, *range_):
        sink.worker.send(topic, [(f"k{n}", json.dumps({"n": str(n)})) for n in range(*range_)])

    def wait_documents(index, expected):
        wait_for(lambda: search.documents(index) == expected, what=f"{index} to hold {expected}")

    send(sink.topic, 5)
    send(other, 5)
    wait_documents(other, numbers(5))
    assert "select one with --topic" in ctl("--mapping", mapping, code=1)
    assert "from the topics" in ctl("--mapping", mapping, "--topic", sink.topic)
    assert sink.worker.herder.config(first)["topics"] == other
    wait_for(lambda: sink.worker.states(first)[0] == "RUNNING", what="the first connector to run again")
    send(sink.topic, 5, 9)
    send(other, 5, 9)
    wait_documents(f"{sink.topic}-v2", numbers(9))
    wait_documents(other, numbers(9))
    assert list(search.ask("GET", f"/_alias/{sink.topic}")) == [f"{sink.topic}-v2"]
    assert "is not among the topics" in ctl("--mapping", mapping, "--topic", sink.topic), "again changes nothing"
    assert "back to" in ctl("--undo", "--topic", sink.topic)
    assert sink.worker.herder.config(first)["topics"] == f"{sink.topic},{other}"
    wait_documents(f"{sink.topic}-v1", numbers(9))
    assert sink.worker.herder.names().count(first) == 1 and not [name for name in sink.worker.herder.names() if name.startswith(f"{first}-")]


@contextlib.contextmanager
def gate(url, key):
    """The address of a door before a server, which lets through who has the API key."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _any(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, data = 401, b'{"error":"missing authentication credentials"}'
            if self.headers.get("Authorization") == f"ApiKey {key}":
                connection = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc)
                headers = {name: value for name, value in self.headers.items() if name.lower() in ("content-type", "content-encoding", "accept")}
                connection.request(self.command, self.path, body, headers)
                answer = connection.getresponse()
                status, data = answer.status, answer.read()
                connection.close()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _any

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("by", ["--set", "environment"])
def test_an_api_key_opens_the_server(sink, tmp_path, monkeypatch, by):
    key = "a2V5OnNlY3JldA=="
    mapping = tmp_path / "mapping.json"
    mapping.write_text('{"properties": {"n": {"type": "keyword"}}}')
    sink.search.ask("PUT", f"/{sink.topic}-v1", {"aliases": {sink.topic: {}}})
    with gate(sink.search.url, key) as url:
        first = sink.start(**{"connection.url": url, "connection.api.key": key})
        sink.send([("k0", '{"n": "0"}')])
        sink.wait_committed()
        arguments = ["--url", "http://{}:{}".format(*sink.worker.process.rest.address), "reindex", first, "--mapping", str(mapping)]
        refused = CliRunner().invoke(main, arguments, prog_name="connectctl")
        assert refused.exit_code == 1 and "401" in refused.output and key not in refused.output
        if by == "environment":
            monkeypatch.setenv("CONNECT_SEARCH_API_KEY", key)
        done = CliRunner().invoke(main, [*arguments, "--set", f"connection.api.key={key}"], prog_name="connectctl")
        assert done.exit_code == 0, done.output
        assert sink.search.documents(f"{sink.topic}-v2") == {"k0": {"n": "0"}} and key not in done.output
        for name in [each for each in sink.worker.herder.names() if each.startswith(first)]:
            sink.worker.herder.delete(name)
        sink._names.clear()
