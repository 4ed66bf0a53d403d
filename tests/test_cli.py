"""The command as a process: exit codes, files good and bad, signals. The cases are those recorded of Java's worker."""

import contextlib
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess

import pytest

from tests.command import GOOD, Command
from tests.runtime.local import wait_for
from tests.servers.kafka_broker import free_port
from tests.suite.patience import PATIENCE_SECONDS

ROOT = pathlib.Path(__file__).parent.parent
USAGE, NOT_STARTED, NOT_CREATED, FAILED = 1, 2, 3, 4


def odd(error):
    return {"connector__class": "tests.runtime.plugins:OddValidationSource", "raises": error}


@pytest.fixture
def from_nothing(tmp_path):
    """As a user starts it."""
    command = Command(tmp_path)
    yield command
    if command.process is not None:
        command.stop(signal.SIGKILL)


def test_no_arguments_is_wrong_usage(from_nothing):
    code, output = from_nothing.run()
    assert code == USAGE and "Usage" in output


def test_help_is_no_error_and_starts_nothing(from_nothing):
    code, output = from_nothing.run("--help")
    assert code == 0 and "WORKER.PROPERTIES" in output


def test_a_worker_started_from_nothing_moves_records_and_ends_well(from_nothing):
    (from_nothing.folder / "in.txt").write_text("one\ntwo\n")
    out = from_nothing.folder / "out.txt"
    sink = from_nothing.file("s.properties", f"name=s\nconnector.class=FileStreamSink\ntopics=t\nfile={out}\n")
    from_nothing.start(from_nothing.worker(some__key="1"), from_nothing.connector(), sink)
    from_nothing.wait_up()
    wait_for(lambda: out.exists() and out.read_text() == "one\ntwo\n", what="both records")
    assert from_nothing.stop(signal.SIGINT) == 0
    assert "some.key" in from_nothing.output()


@pytest.mark.parametrize(
    "worker, said",
    [
        pytest.param(lambda c: str(c.folder / "no.properties"), "no.properties", id="worker file missing"),
        pytest.param(lambda c: c.file("w", "a=\\u12g4\n"), "line 1", id="malformed escape"),
        pytest.param(lambda c: c.worker(without=["key.converter"]), "key.converter", id="no key converter"),
        pytest.param(lambda c: c.worker(without=["value.converter"]), "value.converter", id="no value converter"),
        pytest.param(lambda c: c.worker(without=["offset.storage.file.filename"]), "offset.storage.file.filename", id="not an offsets file"),
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
        pytest.param(lambda c: [c.connector("b.properties", name="x", topic="")], "connector 'x' of", id="a name to the configuration"),
        pytest.param(lambda c: [c.connector(), c.connector("again.properties")], "ok1", id="same name twice"),
        pytest.param(lambda c: [c.connector(**odd("KeyError"))], "validation of connector 'ok1' failed: KeyError: 'missing'", id="a plugin's own fault"),
        pytest.param(lambda c: [c.connector(**odd("SystemExit"))], "validation of connector 'ok1' failed: SystemExit: 0", id="a plugin that ends the process"),
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
    command.start(command.worker())
    command.wait_up()
    assert command.get("/connectors") == []
    assert command.stop() == 0


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
    command.wait_up()  # all may be there already
    wait_for(lambda: out.exists() and len(out.read_text()) >= len(written))
    assert command.stop() == 0
    assert out.read_text() == written


# ---------------------------------------------------------------- what outlives kill -9
def test_what_rest_made_and_set_outlives_kill_9_and_a_file_wins(command):
    ask = command.ask
    command.start(command.worker(), command.connector())
    command.wait_up()
    for name in ("runs", "waits", "rests"):
        ask("POST", "/connectors", {"name": name, "config": {**GOOD, "name": name}})
    ask("PUT", "/connectors/waits/pause")
    ask("PUT", "/connectors/rests/stop")
    ask("PUT", "/connectors/ok1/config", {**GOOD, "batch.size": "7"})
    ask("PUT", "/admin/loggers/some.library", {"level": "ERROR"})
    command.stop(signal.SIGKILL)

    command.start(command.worker(), command.connector())
    command.wait_up()
    wait_for(lambda: command.states() == {"ok1": "RUNNING", "runs": "RUNNING", "waits": "PAUSED", "rests": "STOPPED"}, what=str(command.states()))
    assert "batch.size" not in command.get("/connectors/ok1")["config"]
    assert command.get("/admin/loggers/some.library")["level"] == "ERROR"
    assert "'ok1' has another configuration in its file than was set by REST; using the file's configuration" in command.output()
    assert {entry["state"] for entry in command.get("/connectors/waits/history")} >= {"RUNNING", "PAUSED"}
    command.stop(signal.SIGKILL)

    command.start(command.worker())  # without the file
    command.wait_up()
    assert set(command.get("/connectors")) == {"runs", "waits", "rests"}
    assert command.stop() == 0


# ---------------------------------------------------------------- operations
FAILS = {"connector.class": "FileStreamSink", "topics": "t", "file": "no such folder/out"}


def test_the_process_ends_when_a_task_has_failed_for_good(command):
    sink = command.file("k.properties", "name=k\n" + "".join(f"{key}={value}\n" for key, value in FAILS.items()))
    code, output = command.run(command.worker(task__failure__exit="true"), sink)
    assert code == FAILED, output
    assert "Task 0 of connector 'k' failed permanently" in output


def test_threads_that_a_connector_leaves_behind_do_not_hold_the_end_up(command):
    (command.folder / "plugins").mkdir()
    command.file(
        "plugins/lingers.py",
        "import threading\nfrom standalone import SourceConnector\n"
        "class Lingers(SourceConnector):\n"
        "    def start(self, config):\n        threading.Thread(target=threading.Event().wait, name='lingers', daemon=False).start()\n"
        "    def task_configs(self, most):\n        return []\n",
    )
    worker = command.worker(plugin__path=str(command.folder / "plugins"))
    command.start(worker, command.file("l.properties", "name=l\nconnector.class=Lingers\n"))
    command.wait_up()
    assert command.stop() == 0
    assert "still run: lingers" in command.output()


@pytest.mark.parametrize("by", ["key", "option", "environment"])
def test_json_lines(command, by):
    worker = command.worker(**({"log__format": "json"} if by == "key" else {}), some__key="1")
    command.start(*(["--log-format", "json"] if by == "option" else []), worker, command.connector(), CONNECT_LOG_FORMAT="json" if by == "environment" else "")
    command.wait_up()
    command.stop()
    lines = [json.loads(line) for line in command.output().splitlines()]
    assert all({"time", "level", "message", "logger", "line", "thread"} <= set(line) for line in lines)
    assert any(line["level"] == "WARN" and "some.key" in line["message"] for line in lines)
    assert any("Started in" in line["message"] for line in lines)


def test_a_text_line_has_connects_form(command):
    command.start(command.worker(some__key="1"), command.connector())
    command.wait_up()
    command.stop()
    for line in command.output().splitlines():
        assert re.fullmatch(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] (INFO|WARN|ERROR) (\[[^]]+\] )?.* \([\w.]+:\d+\)", line), line
    assert re.search(r" WARN some\.key ", command.output())


def test_mistyped_keys_are_told_with_the_nearest_name(command):
    worker = command.worker(ofset__flush__interval__ms="1", value__converter__schemas__enabel="false", value__converter="org.apache.kafka.connect.json.JsonConverter")
    connector = command.connector(
        batch__sise="1", transforms="h", transforms__h__type="HoistField$Value", transforms__h__field="f", transforms__h__feild="x",
        producer__override__anything="1", task__restart__max__atempts="1",
    )  # fmt: skip
    command.start(worker, connector)
    command.wait_up()
    command.stop()
    for key, meant in {
        "ofset.flush.interval.ms": "offset.flush.interval.ms",
        "value.converter.schemas.enabel": "value.converter.schemas.enable",
        "batch.sise": "batch.size",
        "transforms.h.feild": "transforms.h.field",
        "task.restart.max.atempts": "task.restart.max.attempts",
    }.items():
        assert re.search(rf"{re.escape(key)} is not a key .*Did you mean {re.escape(meant)}\?", command.output()), key
    assert "producer.override.anything" not in command.output()


def test_secrets_of_a_worker_and_its_connectors_are_in_no_log(command):
    secret = "tr0ub4dor-and-three"
    command.file("secrets.properties", f"name={secret}\n")
    keys = {"config.providers": "file", "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider"}
    worker = command.worker(**keys, producer__acks=f"${{file:{command.folder}/secrets.properties:name}}")
    command.start(worker, command.connector(topic=f"${{file:{command.folder}/secrets.properties:name}}"))
    command.wait_up()
    (command.folder / "in.txt").write_text("a\n")
    wait_for(lambda: command.get("/connectors/ok1/status")["tasks"][0]["state"] == "FAILED", what="a producer that refuses its setting")
    said = json.dumps([command.get(f"/connectors/ok1{path}") for path in ("", "/status", "/tasks", "/history", "/config")])
    command.stop()
    assert secret not in command.output() + said and "[hidden]" in said


# ---------------------------------------------------------------- systemd
class Systemd:
    """The socket that a service says how it is."""

    def __init__(self, path):
        self.path = str(path)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(self.path)
        self._socket.settimeout(30)

    def next(self):
        return dict(line.split("=", 1) for line in self._socket.recv(4096).decode().splitlines())


def test_systemd_is_told_that_it_is_up_lives_and_stops(command):
    systemd = Systemd(command.folder / "notify")
    command.start(command.worker(), command.connector(), NOTIFY_SOCKET=systemd.path, WATCHDOG_USEC="400000")
    ready = systemd.next()
    assert ready["READY"] == "1" and "1 connectors" in ready["STATUS"]
    assert command.get("/connectors/ok1/status")["connector"]["state"] == "RUNNING"
    assert systemd.next() == systemd.next() == {"WATCHDOG": "1"}
    command.process.send_signal(signal.SIGTERM)
    while (told := systemd.next()) == {"WATCHDOG": "1"}:
        pass
    assert told["STOPPING"] == "1"
    assert command.process.wait(PATIENCE_SECONDS) == 0


def test_a_worker_whose_rest_server_cannot_be_loaded_ends(from_nothing):
    """It is loaded as the first request comes; from then on nobody could ask the worker for anything."""
    command = from_nothing
    command.file("uvicorn.py", "raise ImportError('half installed')")
    command.start(command.worker(), command.connector(), PYTHONPATH=f"{command.folder}:{os.getcwd()}")
    wait_for(lambda: "Started in" in command.output())
    with contextlib.suppress(OSError, http.client.HTTPException):
        command.get("/connectors")
    assert command.process.wait(PATIENCE_SECONDS) == NOT_STARTED
    assert "its REST API failed: ImportError: half installed" in command.output()


def test_systemd_is_told_nothing_of_a_worker_that_could_not_start(command):
    systemd = Systemd(command.folder / "notify")
    command.start(command.worker(), str(command.folder / "missing.properties"), NOTIFY_SOCKET=systemd.path)
    assert command.process.wait(PATIENCE_SECONDS) == NOT_CREATED
    assert systemd.next()["STOPPING"] == "1"


@pytest.mark.parametrize(
    "environment, seconds",
    [
        ({}, None),
        ({"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "30000000"}, 15),
        ({"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid())}, 15),
        ({"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}, None),
        ({"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "soon"}, None),
        ({"WATCHDOG_USEC": "30000000"}, None),
    ],
)
def test_how_often_the_watchdog_wants_a_sign(environment, seconds):
    from standalone.cli.systemd import Notifier

    assert Notifier(environment).interval == seconds


def test_an_abstract_socket_is_told_too():
    from standalone.cli.systemd import Notifier

    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listens:
        listens.bind(f"\0connect-standalone-test-{os.getpid()}")
        listens.settimeout(5)
        Notifier({"NOTIFY_SOCKET": f"@connect-standalone-test-{os.getpid()}"}).ready("up")
        assert listens.recv(100) == b"READY=1\nSTATUS=up"


def test_the_unit_is_one_that_systemd_takes(tmp_path):
    verify = shutil.which("systemd-analyze")
    if verify is None:
        pytest.skip("no systemd-analyze")
    unit = (ROOT / "config" / "connect-standalone.service").read_text()
    assert "Type=notify" in unit and "RestartPreventExitStatus=1" in unit
    path = tmp_path / "connect-standalone.service"
    path.write_text(unit.replace("/opt/connect-standalone/bin/connect-standalone", "/bin/true"))
    done = subprocess.run([verify, "verify", "--man=no", str(path)], capture_output=True, text=True)
    assert done.returncode == 0 and "connect-standalone.service" not in done.stderr, done.stderr


def test_a_statement_makes_several_records_of_a_line_and_the_offset_moves_behind_all_of_them(command):
    (command.folder / "in.txt").write_text("a b\nskip\nc\n")
    sql = {
        "value.converter": "JsonConverter",
        "value.converter.schemas.enable": "false",
        "transforms": "hoist,sql",
        "transforms.hoist.type": "HoistField$Value",
        "transforms.hoist.field": "line",
        "transforms.sql.type": "Sql",
        "transforms.sql.statement": "SELECT explode(split(line, ' ')) AS word FROM record WHERE line <> 'skip'",
    }
    sink = command.file("s.properties", "name=s\nconnector.class=FileStreamSink\ntopics=t\nfile=out.txt\n")
    out = command.folder / "out.txt"
    light = {"spark.master": "local[1]", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
    command.start(command.worker(**light), command.connector(**sql), sink)
    wait_for(lambda: out.exists() and len(out.read_text().splitlines()) == 3 or command.process.poll() is not None, 90)
    assert out.read_text() == '{"word":"a"}\n{"word":"b"}\n{"word":"c"}\n'
    wait_for(lambda: [each["offset"] for each in command.get("/connectors/ok1/offsets")["offsets"]] == [{"position": 11}], what="the offset of the end")
    with open(command.folder / "in.txt", "a") as file:
        file.write("d e\n")
    wait_for(lambda: len(out.read_text().splitlines()) == 5 or command.process.poll() is not None)
    assert out.read_text().splitlines()[3:] == ['{"word":"d"}', '{"word":"e"}']
    assert command.stop() == 0
    assert re.findall(r"position\D+(\d+)", (command.folder / "connect.offsets").read_text())[-1] == "15"
