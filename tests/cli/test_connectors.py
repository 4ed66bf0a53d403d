"""connectctl and connectors: states, files, configurations; exit codes; what a terminal is shown and what a script is."""

import json
import threading

import pytest

from standalone import properties
from standalone.cli.ctl_config import differences
from standalone.cli.ctl_show import printable
from tests.runtime.local import LocalWorker, wait_for
from tests.servers.kafka_broker import free_port
from tests.suite.patience import PATIENCE_SECONDS

SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"


@pytest.fixture
def file(tmp_path):
    """file("a.properties", name=…): a connector's file for a file source; JSON where the content is not given by keys."""

    def write(called, content=None, **config):
        path = tmp_path / called
        (tmp_path / "in.txt").touch()
        base = {"name": "made", "connector.class": "FileStreamSource", "file": str(tmp_path / "in.txt"), "topic": "made"}
        merged = {**base, **{key.replace("__", "."): value for key, value in config.items()}}
        path.write_text(properties.dump(merged) if content is None else json.dumps(content(merged)))
        return path

    return write


# --- Looking -------------------------------------------------------------------------------------------------------


def test_list_shows_states(ctl, source):
    assert ctl("list") == "no connectors\n"
    source("b")
    source("a")
    assert [line.split() for line in ctl("list").splitlines()] == [
        ["NAME", "TYPE", "STATE", "TASKS"],
        ["a", "source", "RUNNING", "1", "RUNNING"],
        ["b", "source", "RUNNING", "1", "RUNNING"],
    ]
    assert ctl.json("list")["a"]["tasks"][0]["state"] == "RUNNING"


def test_what_failed_is_shown_with_its_trace_and_is_exit_code_3(ctl, worker, tmp_path):
    worker.source("bad", tmp_path, "bad")  # a folder
    worker.wait_states("bad", "RUNNING", "FAILED")
    said = ctl("status", "bad", code=3)
    assert "task 0: FAILED" in said and "is a folder" in said
    assert "1 FAILED" in ctl("list", code=3)
    assert ctl.json("status", code=3)["bad"]["tasks"][0]["state"] == "FAILED"


def test_colours_are_for_terminals_that_want_them(ctl, source):
    source("a")
    assert "\x1b[32mRUNNING" in ctl("status", color=True)
    assert "\x1b" not in ctl("status")
    assert "\x1b" not in ctl("status", color=True, env={"NO_COLOR": "1"})


@pytest.mark.parametrize("text, shown", [("\x1b[2Jx", "\\x1b[2Jx"), ("a\nb\tc", "a\nb\tc"), ("\u202ex", "\\u202ex"), ("é名", "é名")])
def test_no_text_steers_the_terminal(text, shown):
    assert printable(text) == shown


def test_about_tells_the_worker(ctl):
    found = ctl.json("about")
    assert found["version"] == "4.3.1" and found["health"] == "healthy"
    assert "version: 4.3.1" in ctl("about")


def test_watch_looks_again_and_again(ctl, source):
    source("a")
    looks = ctl.lines("watch", "--interval", "0.05", "--times", "3")
    assert [list(look["connectors"]) for look in looks] == [["a"]] * 3
    assert "RUNNING" in ctl("watch", "a", "--times", "1")


def test_history_is_told_newest_first(ctl, monkeypatch):
    entries = [
        {"time": 1_700_000_001_000, "connector": "a", "task": 0, "state": "FAILED", "worker_id": "w", "trace": "Boom\n\tat x"},
        {"time": "2023-11-14T22:13:20Z", "connector": "a", "task": None, "state": "RUNNING", "worker_id": "w", "trace": None},
    ]
    monkeypatch.setattr("standalone.cli.ctl_rest.Rest.ask", lambda rest, method, path, body=None: entries)
    said = ctl("history", "a").splitlines()
    assert "task 0" in said[1] and "FAILED" in said[1] and said[1].endswith("Boom")
    assert "connector" in said[2] and "RUNNING" in said[2]
    assert "at x" in ctl("history", "a", "--traces")
    assert ctl.json("history", "a", "-n", "1") == entries[:1]


def test_what_a_connector_went_through(ctl, worker, source):
    source("past")
    ctl("pause", "past")
    worker.wait_states("past", "PAUSED", "PAUSED")
    wait_for(lambda: "PAUSED" in {each["state"] for each in ctl.json("history", "past")})
    found = ctl.json("history", "past")
    assert {"RUNNING", "PAUSED"} <= {each["state"] for each in found} and {each["task"] for each in found} == {None, 0}
    assert "task 0" in ctl("history", "past")
    assert "no connector" in ctl("history", "nobody", code=1)


# --- Steering ------------------------------------------------------------------------------------------------------


def test_pause_resume_stop_restart_delete(ctl, worker, source):
    source("a")
    assert ctl("pause", "a") == "paused a\n"
    worker.wait_states("a", "PAUSED", "PAUSED")
    ctl("resume", "a")
    worker.wait_states("a", "RUNNING", "RUNNING")
    ctl("stop", "a")
    worker.wait_states("a", "STOPPED")
    ctl("resume", "a")
    ctl("restart", "a", "--tasks", "--wait", "20")
    ctl("restart", "a", "--task", "0", "--wait", "20")
    assert ctl.lines("delete", "a") == [{"name": "a", "done": "deleted"}]
    assert worker.herder.names() == []


def test_several_at_once_and_one_that_is_not_there(ctl, worker, source):
    source("a")
    source("b")
    said = ctl("pause", "a", "nobody", "b", code=1)
    assert "paused a" in said and "paused b" in said and "nobody" in said
    worker.wait_states("b", "PAUSED", "PAUSED")


def test_restart_of_what_failed_alone(ctl, worker, tmp_path):
    target = tmp_path / "not-yet"
    target.mkdir()
    worker.source("x", target, "x")
    worker.wait_states("x", "RUNNING", "FAILED")
    ctl("restart", "x", "--tasks", "--only-failed", "--wait", "5", code=3)
    target.rmdir()
    target.write_text("")
    ctl("restart", "x", "--tasks", "--only-failed", "--wait", "20")


# --- Files ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, content",
    [
        pytest.param("c.properties", None, id="properties"),
        pytest.param("c.json", lambda config: config, id="map"),
        pytest.param("c.json", lambda config: {"name": "made", "config": config}, id="name and config"),
    ],
)
def test_create_from_each_form_of_file(ctl, worker, file, name, content):
    assert ctl("create", file(name, content), "--wait", "20") == "created made\n"
    assert worker.states("made") == ["RUNNING", "RUNNING"]
    assert "already" in ctl("create", file(name, content), code=1)


def test_create_takes_the_initial_state(ctl, worker, file):
    ctl("create", file("c.json", lambda config: {"name": "made", "config": config, "initial_state": "STOPPED"}))
    assert worker.states("made") == ["STOPPED"]


def test_nothing_is_created_where_one_file_cannot_be_read(ctl, worker, file, tmp_path):
    (tmp_path / "bad.json").write_text('{"name": ')
    assert "bad.json" in ctl("create", file("c.properties"), tmp_path / "bad.json", code=1)
    assert worker.herder.names() == []


def test_apply_creates_changes_and_leaves_alone(ctl, worker, file):
    assert ctl("apply", file("c.properties"), "--wait", "20") == "created made\n"
    assert ctl("apply", file("c.properties")) == "unchanged made\n"
    changed = file("c.properties", topic="other", batch__size="7")
    assert ctl("apply", changed, "--dry-run").splitlines() == ["would be changed made", "  + batch.size=7", "  ~ topic=made → other"]
    assert worker.herder.config("made")["topic"] == "made"
    assert ctl.lines("apply", changed)[0]["changes"]["topic"] == {"change": "changed", "from": "made", "to": "other"}
    assert worker.herder.config("made")["topic"] == "other"
    assert "- batch.size=7" in ctl("apply", file("c.properties", topic="other"))


def test_apply_of_several_tells_which_one_was_refused(ctl, worker, file):
    said = ctl("apply", file("a.properties", name="a"), file("b.properties", name="b", topic=""), file("c.properties", name="c"), code=1)
    assert "b.properties" in said and "topic" in said
    assert sorted(worker.herder.names()) == ["a", "c"]


@pytest.mark.parametrize(
    "before, after, found",
    [
        ({"a": "1"}, {"a": "1"}, {}),
        ({"a": "1"}, {"a": "2"}, {"a": ("changed", "1", "2")}),
        ({}, {"a": "2"}, {"a": ("added", None, "2")}),
        ({"a": "1"}, {}, {"a": ("removed", "1", None)}),
        ({"a": "[hidden]"}, {"a": "secret"}, {"a": ("sent", "[hidden]", "[hidden]")}),
        ({"a": "[hidden]"}, {}, {"a": ("removed", "[hidden]", None)}),
    ],
)
def test_differences_hold_no_secret(before, after, found):
    assert differences(before, after) == found


def test_config_is_shown_and_patched(ctl, source):
    source("a")
    assert properties.parse(ctl("config", "show", "a"))["topic"] == "a"
    assert "~ topic=a → b=c" in ctl("config", "patch", "a", "topic=b=c", "batch.size=5")
    ctl("config", "patch", "a", "--unset", "batch.size", "topic=d")
    found = ctl.json("config", "show", "a")
    assert found["topic"] == "d" and "batch.size" not in found
    assert "KEY=VALUE" in ctl("config", "patch", "a", "nonsense", code=2)


@pytest.mark.parametrize("offline", [False, True])
def test_validate_tells_each_key(ctl, worker, file, tmp_path, offline):
    options = []
    if offline:
        (tmp_path / "w.properties").write_text(properties.dump(worker.props))
        options = ["--worker", tmp_path / "w.properties"]
    assert "valid" in ctl("validate", file("good.properties"), *options)
    bad = file("bad.properties", topic="", tasks__max="many")
    said = ctl("validate", bad, *options, code=1)
    assert "topic" in said and "tasks.max" in said
    assert set(ctl.json("validate", bad, *options, code=1)[str(bad)]["errors"]) == {"topic", "tasks.max"}


def test_validate_creates_nothing(ctl, worker, file):
    ctl("validate", file("good.properties"))
    assert worker.herder.names() == []


# --- Plugins, loggers, completion ----------------------------------------------------------------------------------


def test_plugins(ctl):
    assert {each["type"] for each in ctl.json("plugins")} == {"source", "sink"}
    assert SOURCE in ctl("plugins")
    assert "JsonConverter" in ctl("plugins", "--all")
    said = ctl("plugins", "FileStreamSource")
    assert "topic" in said and "(required)" in said


def test_loggers(ctl):
    assert ctl.json("loggers", "set", "standalone.tests", "debug") == ["standalone.tests"]
    assert ctl.json("loggers", "list")["standalone.tests"]["level"] == "DEBUG"
    assert "standalone.tests" in ctl("loggers", "list")
    assert "LOUD" in ctl("loggers", "set", "root", "LOUD", code=2)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(local, shell):
    assert "_CONNECTCTL_COMPLETE" in local("completion", shell)


def test_names_are_completed(ctl, source):
    source("orders-in")
    source("people-in")
    words = {"_CONNECTCTL_COMPLETE": "bash_complete", "COMP_WORDS": f"connectctl --url {ctl.url} status or", "COMP_CWORD": "4"}
    assert ctl("", env=words, code=0) == "plain,orders-in\n"


# --- When it goes wrong --------------------------------------------------------------------------------------------


def test_no_worker(local):
    local.url = f"http://127.0.0.1:{free_port()}"
    said = local("list", code=1)
    assert local.url in said and "--url" in said


def test_something_else_answers(local):
    import http.server

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<html>")

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        local.url = f"http://127.0.0.1:{server.server_address[1]}"
        assert "not a Connect worker" in local("list", code=1)


def test_wrong_usage_is_exit_code_2(ctl):
    for arguments in (["status", "--nonsense"], ["pause"], ["create", "no-such-file"], ["restart", "a", "--task", "0", "--tasks"]):
        ctl(*arguments, code=2)


def test_a_name_and_password_are_sent(local):
    import http.server

    seen = []

    class Guarded(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            seen.append(self.headers["Authorization"])
            self.send_response(200 if self.headers["Authorization"] == "Basic YW5uOnBzc3Q=" else 401)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Guarded) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        local.url = f"http://127.0.0.1:{server.server_address[1]}"
        assert "--user" in local("list", code=1)
        assert local("--user", "ann:psst", "list") == "no connectors\n"
        assert local("--user", "ann", "list", env={"CONNECT_PASSWORD": "psst"}) == "no connectors\n"
        assert "no connectors" in local("--user", "ann", "list", input="psst\n")
        assert "psst" not in local("--user", "ann:psst!", "list", code=1)
        server.shutdown()
        thread.join()


def test_a_worker_that_goes_away_while_it_is_watched(tmp_path, local):
    with LocalWorker(tmp_path) as worker:
        local.url = "http://{}:{}".format(*worker.process.rest.address)
        results = []
        watching = threading.Thread(target=lambda: results.extend(local.lines("watch", "--interval", "0.05", "--times", "40")))
        watching.start()
        wait_for(lambda: watching.is_alive())
    watching.join(PATIENCE_SECONDS)
    assert any("error" in look for look in results)
