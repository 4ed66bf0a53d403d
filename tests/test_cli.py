"""The command as a process: exit codes, files good and bad, signals. The cases are those recorded of Java's worker."""

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest

from tests.runtime.local import STRING, wait_for
from tests.servers.kafka_broker import free_port

USAGE, NOT_STARTED, NOT_CREATED = 1, 2, 3
GOOD = {"name": "ok1", "connector.class": "FileStreamSource", "topic": "t", "file": "in.txt"}


class Command:
    """connect-standalone in a folder of its own."""

    def __init__(self, folder):
        self.folder = folder
        self.port = free_port()
        self.process = None

    def worker(self, without=(), **props):
        base = {
            "bootstrap.servers": "embedded",
            "embedded.log.listener": "127.0.0.1:0",
            "listeners": f"http://127.0.0.1:{self.port}",
            "key.converter": STRING,
            "value.converter": STRING,
            "offset.storage.file.filename": str(self.folder / "connect.offsets"),
        }
        merged = {**base, **{key.replace("__", "."): value for key, value in props.items()}}
        return self.file("worker.properties", "".join(f"{key}={value}\n" for key, value in merged.items() if key not in without))

    def file(self, name, text):
        path = self.folder / name
        path.write_text(text if isinstance(text, str) else json.dumps(text))
        return str(path)

    def connector(self, path="c.properties", **props):
        return self.file(path, "".join(f"{key.replace('__', '.')}={value}\n" for key, value in {**GOOD, **props}.items()))

    def start(self, *arguments):
        self.log = open(self.folder / "log", "w+")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "standalone.cli.worker", *arguments],
            cwd=self.folder,
            stdout=self.log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.getcwd()},
        )
        return self

    def run(self, *arguments, seconds=30):
        """(exit code, output) of a command that ends by itself."""
        self.start(*arguments)
        try:
            code = self.process.wait(seconds)
        finally:
            self.stop()
        return code, self.output()

    def output(self):
        return (self.folder / "log").read_text()

    def get(self, path):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as response:
                return json.load(response)
        except OSError:
            return None

    def wait_up(self):
        wait_for(lambda: (self.get("/health") or {}).get("status") == "healthy" or self.process.poll() is not None, 30)
        assert self.process.poll() is None, self.output()

    def stop(self, number=signal.SIGTERM):
        """The exit code after that signal."""
        if self.process.poll() is None:
            self.process.send_signal(number)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        return self.process.returncode


@pytest.fixture
def command(tmp_path):
    command = Command(tmp_path)
    yield command
    if command.process is not None:
        command.stop(signal.SIGKILL)


def test_no_arguments_is_wrong_usage(command):
    code, output = command.run()
    assert code == USAGE and "Usage" in output


def test_help_is_no_error_and_starts_nothing(command):
    code, output = command.run("--help")
    assert code == 0 and "WORKER.PROPERTIES" in output


@pytest.mark.parametrize(
    "worker, said",
    [
        pytest.param(lambda c: str(c.folder / "no.properties"), "no.properties", id="worker file missing"),
        pytest.param(lambda c: c.file("w", "a=\\u12g4\n"), "line 1", id="malformed escape"),
        pytest.param(lambda c: c.worker(without=["key.converter"]), "key.converter", id="no key converter"),
        pytest.param(lambda c: c.worker(without=["value.converter"]), "value.converter", id="no value converter"),
        pytest.param(lambda c: c.worker(without=["offset.storage.file.filename"]), "offset.storage.file.filename", id="no offsets file"),
        pytest.param(lambda c: c.worker(offset__flush__interval__ms="soon"), "offset.flush.interval.ms", id="bad number"),
        pytest.param(lambda c: c.worker(value__converter="no.such.Converter"), "no.such.Converter", id="unknown converter"),
        pytest.param(lambda c: c.worker(listeners="nonsense"), "nonsense", id="bad listeners"),
        pytest.param(
            lambda c: c.worker(bootstrap__servers=f"127.0.0.1:{free_port()}", admin__default__api__timeout__ms="1000"),
            "127.0.0.1",
            id="broker unreachable",
        ),
        pytest.param(
            lambda c: (c.file("connect.offsets", "garbage\nmore\n"), c.worker())[1], "connect.offsets", id="offsets file damaged"
        ),
    ],
)
def test_what_keeps_the_worker_from_starting(command, worker, said):
    code, output = command.run(worker(command), seconds=90)
    assert code == NOT_STARTED and said in output, output
    assert "Traceback" not in output


def test_a_taken_rest_port_is_told(command):
    with socket.create_server(("127.0.0.1", command.port)):
        code, output = command.run(command.worker())
    assert code == NOT_STARTED and str(command.port) in output


def test_a_taken_log_port_is_told_and_no_other_is_taken(command):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        code, output = command.run(command.worker(embedded__log__listener=address))
    assert code == NOT_STARTED and address in output and "embedded.log.listener" in output


@pytest.mark.parametrize(
    "files, said",
    [
        pytest.param(lambda c: [str(c.folder / "no.properties"), c.connector()], "no.properties", id="missing"),
        pytest.param(lambda c: [c.file("n.properties", "connector.class=FileStreamSource\ntopic=t\n")], "n.properties", id="without name"),
        pytest.param(lambda c: [c.connector(connector__class="no.such.Klass")], "no.such.Klass", id="unknown class"),
        pytest.param(lambda c: [c.connector("b.properties", topic="")], "topic", id="invalid configuration"),
        pytest.param(lambda c: [c.connector(), c.connector("d.properties", name="x", connector__class="no.Klass")], "no.Klass", id="good then bad"),
        pytest.param(lambda c: [c.connector(), c.connector("again.properties")], "ok1", id="same name twice"),
        pytest.param(lambda c: [c.file("c.json", {"name": "a", "config": {**GOOD, "name": "b"}})], "c.json", id="names differ"),
        pytest.param(lambda c: [c.file("c.json", '{"name": "a", "config": {')], "c.json", id="cut-off JSON"),
    ],
)
def test_a_connector_file_that_will_not_do(command, files, said):
    code, output = command.run(command.worker(), *files(command))
    assert code == NOT_CREATED and said in output, output
    assert "Traceback" not in output


@pytest.mark.parametrize(
    "file, states",
    [
        pytest.param(lambda c: c.connector(), ("RUNNING", ["RUNNING"]), id="properties"),
        pytest.param(lambda c: c.connector(connector__class="FileStreamSourceConnector"), ("RUNNING", ["RUNNING"]), id="simple name"),
        pytest.param(lambda c: c.file("c.json", GOOD), ("RUNNING", ["RUNNING"]), id="flat JSON"),
        pytest.param(lambda c: c.file("c.properties", {"name": "ok1", "config": GOOD}), ("RUNNING", ["RUNNING"]), id="JSON in .properties"),
        pytest.param(
            lambda c: c.file("c.json", {"name": "ok1", "config": GOOD, "initial_state": "STOPPED"}), ("STOPPED", []), id="stopped"
        ),
        pytest.param(lambda c: c.file("c.json", {"name": "ok1", "config": GOOD, "initial_state": "PAUSED"}), ("PAUSED", []), id="paused"),
    ],
)
def test_the_forms_of_a_connector_file(command, file, states):
    command.start(command.worker(), file(command))
    command.wait_up()

    def found():
        status = command.get("/connectors/ok1/status")
        return status and (status["connector"]["state"], [task["state"] for task in status["tasks"]])

    wait_for(lambda: found() == states, what=f"{states}, not {found()}")
    assert command.stop() == 0


def test_a_worker_alone_stays_up_and_ends_well(command):
    command.start(command.worker(some__key="1"))
    command.wait_up()
    assert command.get("/connectors") == []
    assert command.stop(signal.SIGINT) == 0
    assert "some.key" in command.output()


def test_sigterm_loses_and_repeats_nothing(command):
    lines = command.folder / "in.txt"
    sink = command.file("s.properties", f"name=s\nconnector.class=FileStreamSink\ntopics=t\nfile={command.folder}/out.txt\n")
    out = command.folder / "out.txt"
    written = ""
    for round in range(3):
        more = "".join(f"{round}-{number}\n" for number in range(20_000))
        with lines.open("a") as file:
            file.write(more)
        written += more
        command.start(command.worker(), command.connector(), sink)
        command.wait_up()
        assert command.stop() == 0, command.output()
    command.start(command.worker(), command.connector(), sink)
    wait_for(lambda: out.exists() and len(out.read_text()) >= len(written), 20)
    assert command.stop() == 0
    assert out.read_text() == written
