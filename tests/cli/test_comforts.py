"""connectctl init, doctor and top; and what a terminal is shown that a pipe is not: tables and bars."""

import json
import os
import pty
import re
import socket
import subprocess
import sys

import pytest

from standalone import extras, properties
from standalone.cli.ctl_init import samples
from standalone.cli.ctl_top import samples as metric_samples
from standalone.runtime.configuration.worker_config import WorkerConfig
from standalone.tools import doctor
from tests.runtime.local import STRING

# --- init ----------------------------------------------------------------------------------------------------------


def test_init_writes_the_quickstart_and_says_how_to_run_it(local, tmp_path):
    said = local("init", tmp_path / "new")
    assert said.splitlines()[-1] == "run      connect-standalone connect-standalone.properties connect-file-source.properties connect-file-sink.properties"
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == sorted(said.split()[-3:])
    assert WorkerConfig.of(properties.load(tmp_path / "new" / "connect-standalone.properties")).embedded


def test_init_writes_any_sample_and_a_unit_with_this_environments_command(local, tmp_path):
    local("init", tmp_path, "-c", "jdbc-sink", "-c", "s3-sink", "--systemd")
    assert {"connect-jdbc-sink.properties", "connect-s3-sink.properties", "connect-standalone.logrotate"} < set(os.listdir(tmp_path))
    unit = (tmp_path / "connect-standalone.service").read_text()
    assert f"ExecStart={os.path.dirname(sys.executable)}/connect-standalone /etc/connect-standalone/worker.properties" in unit


def test_init_overwrites_only_when_told(local, tmp_path):
    local("init", tmp_path)
    (tmp_path / "connect-file-sink.properties").write_text("mine")
    assert "--force" in local("init", tmp_path, code=1)
    assert (tmp_path / "connect-file-sink.properties").read_text() == "mine"
    local("init", tmp_path, "--force")
    assert "FileStreamSink" in (tmp_path / "connect-file-sink.properties").read_text()


def test_every_sample_has_words_and_an_unknown_one_is_told(local, tmp_path):
    listed = local.json("init", "--list")
    assert listed.keys() == samples().keys() and all(len(words) > 20 for words in listed.values())
    said = local("init", tmp_path, "-c", "oracle", code=1)
    assert "jdbc-source" in said and not list(tmp_path.iterdir())


# --- doctor --------------------------------------------------------------------------------------------------------


def findings(ctl, *arguments, code=0):
    return {each["check"]: each for each in ctl.json("doctor", *arguments, code=code)}


def worker_file(folder, **props):
    path = folder / "worker.properties"
    base = {"offset.storage.file.filename": str(folder / "o"), "key.converter": STRING, "value.converter": STRING}
    path.write_text(properties.dump({**base, **{key.replace("__", "."): str(value) for key, value in props.items()}}))
    return path


def test_doctor_looks_at_the_machine(local):
    found = findings(local)
    assert list(found) == ["Python", "extras", "Java", "Spark", "clock", "open files", "inotify", "state", "disk"]
    assert found["Python"]["level"] == found["state"]["level"] == "OK"
    assert "CHECK" in local("doctor")


def test_doctor_of_a_workers_file(local, worker, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        found = findings(local, worker_file(tmp_path, bootstrap__servers=worker.bootstrap, listeners=f"http://127.0.0.1:{port}"))
    assert found["Kafka"]["level"] == "OK" and "topics" in found["Kafka"]["found"]
    assert found["listeners"]["level"] == "WARN" and "in use" in found["listeners"]["found"]
    assert found["worker's file"]["level"] == "OK"


def test_doctor_tells_what_is_wrong_and_ends_with_exit_code_1(local, tmp_path):
    nobody = "127.0.0.1:1"
    registry = {"value__converter": "io.confluent.connect.avro.AvroConverter", "value__converter__schema__registry__url": f"http://ann:psst@{nobody}"}
    path = worker_file(tmp_path, bootstrap__servers=nobody, admin__default__api__timeout__ms=500, admin__request__timeout__ms=300, **registry)
    found = findings(local, path, code=1)
    assert found["Kafka"]["level"] == found["schema registry"]["level"] == "FAIL"
    assert "psst" not in json.dumps(found)
    found = findings(local, worker_file(tmp_path, tasks__max="x", offset__flush__interval__ms="soon"), code=1)
    assert found["worker's file"]["level"] == "FAIL" and "offset.flush.interval.ms" in found["worker's file"]["found"]


def test_doctor_finds_state_that_others_may_read(local, tmp_path):
    folder = tmp_path / "o.state"
    folder.mkdir()
    (folder / "state.db").touch(mode=0o644)
    (folder / "state.db").chmod(0o644)
    assert findings(local, worker_file(tmp_path))["state"]["level"] == "WARN"
    (folder / "state.db").chmod(0o600)
    assert findings(local, worker_file(tmp_path))["state"]["level"] == "OK"


def test_a_check_that_goes_wrong_is_a_failure_of_that_check_alone():
    found = doctor._guarded("disk", lambda: 1 / 0)
    assert (found.check, found.level) == ("disk", doctor.FAIL) and "ZeroDivisionError" in found.found


# --- extras --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "missing, extra",
    [("fastavro", "avro"), ("fastavro.schema", "avro"), ("google", "protobuf"), ("google.protobuf", "protobuf"), ("pymysql", "jdbc"), ("acme", None), ("googlex", None)],
)
def test_a_missing_package_names_its_extra(missing, extra):
    error = ModuleNotFoundError(f"No module named '{missing}'", name=missing)
    assert extras.extra_of(error) == extra
    assert extras.advice(error) == (f". Install it: pip install 'connect-standalone[{extra}]'" if extra else "")


def test_every_extra_is_one_of_setup_cfg():
    from importlib.metadata import metadata

    assert set(extras.EXTRAS.values()) <= set(metadata("connect-standalone").get_all("Provides-Extra"))


# --- top -----------------------------------------------------------------------------------------------------------


def test_top_shows_rates_lag_and_errors(ctl, worker, source, until):
    path = source("top-source", lines="")
    sink = {"connector.class": "FileStreamSink", "file": str(path) + ".out", "topics": "top-source"}
    worker.herder.create("top-sink", {"name": "top-sink", **sink, "tasks.max": "1"})
    worker.wait_states("top-sink", "RUNNING", "RUNNING")
    path.write_text("line\n" * 50)
    until(lambda: (path.parent / "top-source.txt.out").exists())
    looks = ctl.lines("top", "--times", 2, "--interval", 0.05)
    assert looks[0]["connectors"][0]["records_per_second"] is None, "nothing to compare the first look with"
    last = {each["name"]: each for each in looks[1]["connectors"]}
    assert last["top-sink"]["lag"] is not None and last["top-source"]["lag"] is None
    assert all(each["state"] == "RUNNING" and each["errors"] == 0 and each["records_per_second"] >= 0 for each in last.values())
    assert looks[1]["worker"]["memory_bytes"] > 1 << 20
    assert "RECORDS/S" in ctl("top", "--times", 1)


def test_prometheus_lines_are_read():
    text = '# HELP x y\na_total{connector="q\\"uo\\\\te",task="0"} 1.5e+06\nb 2.0\nnot a line\n'
    assert list(metric_samples(text)) == [("a_total", {"connector": 'q"uo\\te', "task": "0"}, 1.5e6), ("b", {}, 2.0)]


# --- Terminals -----------------------------------------------------------------------------------------------------


def on_terminal(code):
    """What that Python prints on a terminal of 60 columns."""
    master, slave = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "60", "PYTHONPATH": os.getcwd()}
    environment.pop("NO_COLOR", None)
    process = subprocess.Popen([sys.executable, "-c", code], stdout=slave, stderr=slave, env=environment)
    os.close(slave)
    said = b""
    while True:
        try:
            said += os.read(master, 4096)
        except OSError:  # Linux' way to say that the other side is closed
            break
    os.close(master)
    assert process.wait(60) == 0, said
    return said.decode()


def test_a_terminal_gets_tables_that_fit_and_a_bar():
    head = "import click; from standalone.cli import ctl_show as show; click.Context(click.Command('x')).__enter__(); "
    said = on_terminal(head + "show.table(('NAME', 'STATE'), [('a' * 90, 'FAILED'), ('[red]b', 'RUNNING')])")
    assert "\x1b[31mFAILED" in said and "\x1b[32mRUNNING" in said and "[red]b" in said, "a name is not a markup"
    assert max(map(len, re.sub(r"\x1b\[[0-9;]*m", "", said).splitlines())) <= 60
    assert "25/100" in on_terminal(head + "p = show.progress('read', 100); at = p.__enter__(); at(25); p.__exit__(None, None, None)")


def test_a_pipe_gets_lines(capfd, monkeypatch):
    import click

    from standalone.cli import ctl_show

    monkeypatch.setattr(ctl_show, "_LINE_SECONDS", 0.0)
    with click.Context(click.Command("x")), ctl_show.progress("read", 200, "bytes") as at:
        at(50)
    said = capfd.readouterr().err
    assert said.startswith("read: 50 of 200 (25 %) bytes") and "left" in said
