"""Connectors whose converter asks a registry: its start by them, an outage in traffic, wrong credentials, a schema that changes."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from pytest import param

from standalone.schema_registry.client import RegistrySchema, SchemaRegistryClient
from standalone.schema_registry.server.listener import EmbeddedRegistry
from standalone.schema_registry.values import Writer
from standalone.testing import LocalWorker, wait_for
from tests.servers.kafka_broker import free_port

CONVERTER = {"value.converter": "tests.schema_registry.plugins:RegistryConverter"}
QUICK = {"value.converter.max.retries": "0", "value.converter.retries.wait.ms": "10"}


def line(*fields):
    return RegistrySchema(json.dumps({"type": "record", "name": "Line", "fields": [{"name": name, "type": kind} for name, kind in fields]}))


TEXT, WIDER = line(("text", "string")), line(("text", "string"), ("more", "int"))
OTHER = line(("text", "int"))


@pytest.fixture
def worker(tmp_path):
    with LocalWorker(tmp_path) as worker:
        yield worker


def sink(worker, name, path, **config):
    worker.create(name, {"connector.class": "FileStreamSink", "file": str(path), "topics": name, **CONVERTER, **config})


def state(worker, name):
    return worker.herder.status(name)["tasks"][0]["state"]


def lines_of(path):
    return path.read_text().splitlines() if path.exists() else []


def write(worker, topic, values, url=None, subject=None):
    """Values with their schemas, [(schema, value)]."""
    client = SchemaRegistryClient.from_config({"schema.registry.url": url or worker.process.worker.schemas.embedded_url()})
    client.set_compatibility("NONE")
    worker.send(topic, [Writer(client, subject or f"{topic}-value", schema).data(value) for schema, value in values])


def test_a_converter_without_an_address_starts_the_registry_beside_the_embedded_log(worker, tmp_path):
    source = tmp_path / "in.txt"
    source.write_text("one\ntwo\n")
    worker.create("lines", {"connector.class": "FileStreamSource", "file": str(source), "topic": "lines", **CONVERTER})
    sink(worker, "lines-out", tmp_path / "out.txt", topics="lines")
    wait_for(lambda: lines_of(tmp_path / "out.txt") == ["Struct{text=one}", "Struct{text=two}"], what="the lines")
    assert worker.process.worker.schemas.client().subjects() == ["lines-value"]


def test_a_registry_that_is_down_in_traffic_loses_nothing(worker, tmp_path):
    store, port = str(tmp_path / "apart.db"), free_port()
    registry = EmbeddedRegistry(store, f"127.0.0.1:{port}").start()
    try:
        write(worker, "outage", [(TEXT, {"text": "before"})], registry.url)
        address = {"value.converter.schema.registry.url": registry.url, "errors.retry.timeout": "-1", "errors.retry.delay.max.ms": "50", **QUICK}
        sink(worker, "outage", tmp_path / "out.txt", **address)
        wait_for(lambda: lines_of(tmp_path / "out.txt") == ["Struct{text=before}"], what="the first line")
        write(worker, "outage", [(WIDER, {"text": f"during {n}", "more": n}) for n in range(50)], registry.url)  # a schema that is not known yet
    finally:
        registry.stop()
    write_after = ["Struct{text=before}", *(f"Struct{{text=during {n},more={n}}}" for n in range(50))]
    registry = EmbeddedRegistry(store, f"127.0.0.1:{port}").start()
    try:
        wait_for(lambda: lines_of(tmp_path / "out.txt") == write_after, what="all lines, once each and in order")
        assert state(worker, "outage") == "RUNNING"
    finally:
        registry.stop()


class _Refusing(BaseHTTPRequestHandler):
    def do_GET(self):
        body = b'{"error_code":401,"message":"Unauthorized"}'
        self.send_response(401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *parts):
        pass


def test_wrong_credentials_fail_the_task_and_no_secret_is_shown(worker, tmp_path):
    refusing = ThreadingHTTPServer(("127.0.0.1", 0), _Refusing)
    threading.Thread(target=refusing.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        worker.send("denied", [b"\0\0\0\0\1\2x"])
        keys = {"schema.registry.url": f"http://127.0.0.1:{refusing.server_port}", "basic.auth.credentials.source": "USER_INFO",
                "basic.auth.user.info": "ann:quite-secret-word"}  # fmt: skip
        sink(worker, "denied", tmp_path / "out.txt", **{f"value.converter.{key}": value for key, value in keys.items()})
        wait_for(lambda: state(worker, "denied") == "FAILED", what="the failure")
        trace = worker.herder.status("denied")["tasks"][0]["trace"]
        assert "answers 401: Unauthorized" in trace and "check basic.auth.*" in trace
        assert "quite-secret-word" not in trace and "quite-secret-word" not in json.dumps(worker.herder.history("denied"))
    finally:
        refusing.shutdown()
        refusing.server_close()


@pytest.mark.parametrize(
    "mode, more, lines, ends",
    [
        param(None, (WIDER, {"text": "b", "more": 1}), ["Struct{text=a}", "Struct{text=b,more=1}", "Struct{text=c}"], "RUNNING", id="evolve is the default"),
        param("freeze", (WIDER, {"text": "b", "more": 1}), ["Struct{text=a}"], "FAILED", id="freeze"),
        param("discard_row", (WIDER, {"text": "b", "more": 1}), ["Struct{text=a}", "Struct{text=c}"], "RUNNING", id="discard_row"),
        param("discard_value", (WIDER, {"text": "b", "more": 1}), ["Struct{text=a}", "Struct{text=b}", "Struct{text=c}"], "RUNNING", id="discard_value"),
        param("discard_value", (OTHER, {"text": 1}), ["Struct{text=a}"], "FAILED", id="discard_value of what cannot be projected"),
    ],
)
def test_a_schema_that_changes_in_a_running_sink(worker, tmp_path, mode, more, lines, ends):
    out = tmp_path / "out.txt"
    write(worker, "drift", [(TEXT, {"text": "a"})])
    sink(worker, "drift", out, **({"schema.drift": mode} if mode else {}))
    wait_for(lambda: lines_of(out) == lines[:1], what="the first line")
    write(worker, "drift", [more, (TEXT, {"text": "c"})])
    wait_for(lambda: state(worker, "drift") == ends and lines_of(out) == lines, what=f"{ends} and {lines}")
    events = [each for each in worker.herder.history("drift") if each["state"] == "SCHEMA_CHANGED"]
    assert len(events) == 1 and f"schema.drift={mode or 'evolve'}" in events[0]["trace"] and events[0]["task"] == 0
    assert "'more' was added" in events[0]["trace"] or "'text' changed from string to int32" in events[0]["trace"]


def test_a_restart_does_not_let_pass_what_freeze_has_stopped(worker, tmp_path):
    out = tmp_path / "out.txt"
    write(worker, "frozen", [(TEXT, {"text": "a"})])
    sink(worker, "frozen", out, **{"schema.drift": "freeze", "task.restart.backoff.initial.ms": "20", "task.restart.max.attempts": "2"})
    wait_for(lambda: lines_of(out) == ["Struct{text=a}"], what="the first line")
    write(worker, "frozen", [(WIDER, {"text": "b", "more": 1})])
    wait_for(lambda: [each["state"] for each in worker.herder.history("frozen")].count("FAILED") >= 3, what="three failures")
    assert lines_of(out) == ["Struct{text=a}"]


def test_the_first_schema_is_kept_over_a_restart_of_the_worker(tmp_path):
    out = tmp_path / "out.txt"
    with LocalWorker(tmp_path) as worker:
        write(worker, "kept", [(TEXT, {"text": "a"})])
        sink(worker, "kept", out, **{"schema.drift": "discard_row"})
        wait_for(lambda: lines_of(out) == ["Struct{text=a}"], what="the first line")
        assert list(worker.process.worker.state.first_schemas("kept")) == ["kept"]
    with LocalWorker(tmp_path) as worker:
        write(worker, "kept", [(WIDER, {"text": "b", "more": 1}), (TEXT, {"text": "c"})])
        wait_for(lambda: lines_of(out) == ["Struct{text=a}", "Struct{text=c}"], what="the line of the first schema, without the wider one")
        worker.herder.patch("kept", {"schema.drift": "freeze"})  # another configuration starts over
        write(worker, "kept", [(WIDER, {"text": "d", "more": 1})])
        wait_for(lambda: lines_of(out)[2:] == ["Struct{text=d,more=1}"], what="the line of what is the first schema now")


def test_a_converter_without_an_address_is_refused_where_the_log_is_not_the_workers_own():
    from standalone.errors import ConfigError
    from standalone.runtime.configuration.worker_config import WorkerConfig

    props = {"bootstrap.servers": "elsewhere:9092", "key.converter": "org.apache.kafka.connect.storage.StringConverter", **CONVERTER, "offset.storage.file.filename": "x"}
    with pytest.raises(ConfigError, match="value.converter.schema.registry.url: is missing"):
        WorkerConfig.of(props)
