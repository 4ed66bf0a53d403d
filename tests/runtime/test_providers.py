"""Config providers: what references stand for, who may read what, that values are seen nowhere, and that new ones reach running tasks."""

import json
import logging
import sqlite3

import pytest
from pytest import param

from standalone import ConfigDef, ConfigProvider, Option, Values, secrets
from standalone.cli.logs import _JsonLines, _TextLines
from standalone.config import HIGH, STRING
from standalone.errors import ConfigError, trace_of
from standalone.plugins import Plugins
from standalone.runtime.configuration.config_values import Providers
from standalone.runtime.configuration.worker_config import WorkerConfig
from tests.runtime.local import STRING as STRING_CONVERTER
from tests.runtime.local import LocalWorker, wait_for
from tests.runtime.plugins import SAID
from tests.suite.patience import PATIENCE_SECONDS

JAVA = "org.apache.kafka.common.config.provider"
HERE = "provider_stand_ins"
PASSWORD = "pass\"word hunter2\\"


@pytest.fixture(autouse=True)
def own_module(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, HERE, sys.modules[__name__])


class Vault(ConfigProvider):
    """Gives what `strings` says, by path and key."""

    config_def = ConfigDef(Option("ttl", STRING, HIGH, "In ms.", None))
    texts = {}
    asked = []

    def get(self, path, keys):
        Vault.asked.append((path, sorted(keys)))
        ttl = self.config["ttl"]
        return Values({key: Vault.texts[path, key] for key in keys if (path, key) in Vault.texts}, int(ttl) if ttl else None)


class Closing(ConfigProvider):
    """Notes that it was closed, and fails to, if told so."""

    closed = []

    def get(self, path, keys):
        raise OSError("nobody there")

    def close(self):
        Closing.closed.append(self.config["name"])
        if self.config["name"] == "bad":
            raise OSError("it will not close")


class Broken(ConfigProvider):
    def get(self, path, keys):
        raise OSError("nobody there")


def providers(**keys):
    return Providers.of({key.replace("__", "."): str(value) for key, value in keys.items()}, Plugins())


@pytest.fixture
def three(tmp_path):
    """file, directory and env, as in Java, and a folder for them."""
    (tmp_path / "db.properties").write_text("db.password=s\\u00e9cret\nempty=\nurl=jdbc:x:y\ncaf\u00e9=\u2615\n", encoding="utf-8")
    (tmp_path / "mounted").mkdir()
    (tmp_path / "mounted" / "token").write_text("abc\n")
    (tmp_path / "mounted" / "folder").mkdir()
    return providers(
        config__providers="file, dir,env",
        config__providers__file__class=f"{JAVA}.FileConfigProvider",
        config__providers__dir__class=f"{JAVA}.DirectoryConfigProvider",
        config__providers__env__class="EnvVarConfigProvider",
        config__providers__env__param__allowlist__pattern="MY_.*",
    )


@pytest.mark.parametrize(
    "text, value",
    [
        param("${file:DIR/db.properties:db.password}", "sécret", id="file"),
        param("a ${file:DIR/db.properties:db.password} b ${env:MY_VAR}", "a sécret b mine", id="several in a text"),
        param("${file:DIR/db.properties:caf\u00e9}", "\u2615", id="the file is read as UTF-8"),
        param("${file:DIR/db.properties:empty}", "", id="empty value"),
        param("${file:DIR/db.properties:missing}", None, id="a key that is not there"),
        param("${file::db.password}", None, id="no path"),
        param("${dir:DIR/mounted:token}", "abc\n", id="directory, with its newline"),
        param("${dir:DIR/mounted:folder}", None, id="a folder is not a value"),
        param("${dir:DIR/mounted:../db.properties}", None, id="not out of the directory"),
        param("${env:MY_VAR}", "mine", id="env"),
        param("${env::MY_VAR}", "mine", id="env with an empty path"),
        param("${env:YOUR_VAR}", None, id="env that is not allowed"),
        param("${vault:a:b}", None, id="unknown provider"),
        param("${file}", None, id="no reference"),
        param("$1 ${} {x}", None, id="other dollars"),
        param(None, None, id="null"),
    ],
)
def test_references(three, tmp_path, monkeypatch, text, value):
    monkeypatch.setenv("MY_VAR", "mine")
    monkeypatch.setenv("YOUR_VAR", "yours")
    text = text and text.replace("DIR", str(tmp_path))
    found = three.resolve({"key": text, "other": "plain"})
    assert found.texts == {"key": text if value is None else value, "other": "plain"}
    assert found.references == ({} if value is None else {"key": text})
    assert found.ttl_ms is None


@pytest.mark.parametrize(
    "text, said",
    [
        param("${file:/no/such:x}", "/no/such cannot be read: No such file", id="file"),
        param("${dir:/no/such:x}", "/no/such is not a directory", id="directory"),
        param("${env:/path:MY_VAR}", "have no path", id="env with a path"),
    ],
)
def test_what_cannot_be_looked_up_is_an_error_at_its_key(three, text, said):
    with pytest.raises(ConfigError) as caught:
        three.resolve({"one": text, "two": text, "three": "x"})
    assert set(caught.value.errors) == {"one", "two"} and said in str(caught.value)


@pytest.mark.parametrize("allowed, path, well", [("A", "A/f", True), ("A/f", "A/f", True), ("A", "A/../B/f", False), ("A", "AB/f", False), ("B,A", "B/f", True)])
def test_allowed_paths(tmp_path, allowed, path, well):
    for folder in ("A", "B", "AB"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "f").write_text("k=value-of-k")
    allowed = ",".join(str(tmp_path / each) for each in allowed.split(","))
    made = providers(
        config__providers="f", config__providers__f__class=f"{JAVA}.FileConfigProvider", config__providers__f__param__allowed__paths=allowed
    )
    text = f"${{f:{tmp_path}/{path}:k}}"
    if well:
        assert made.resolve({"x": text}).texts == {"x": "value-of-k"}
    else:
        with pytest.raises(ConfigError, match="allowed.paths"):
            made.resolve({"x": text})


@pytest.mark.parametrize(
    "keys, wrong, said",
    [
        param({}, "config.providers.f.class", "missing", id="no class"),
        param({"class": "no.such.Provider"}, "config.providers.f.class", "no.such.Provider", id="unknown class"),
        param({"class": "StringConverter"}, "config.providers.f.class", "StringConverter", id="no provider"),
        param({"class": "File", "param.allowed.paths": "a/b"}, "config.providers.f.param.allowed.paths", "not an absolute", id="relative"),
        param({"class": "File", "param.allowed.paths": "/no/such"}, "config.providers.f.param.allowed.paths", "does not exist", id="not there"),
        param({"class": "File", "param.ttl.ms": "0"}, "config.providers.f.param.ttl.ms", "1", id="no time"),
    ],
)
def test_a_provider_that_is_not_configured_well(keys, wrong, said):
    with pytest.raises(ConfigError) as caught:
        Providers.of({"config.providers": "f", **{f"config.providers.f.{key}": value for key, value in keys.items()}}, Plugins())
    assert said in caught.value.errors[wrong]


def test_mistyped_keys_of_providers_are_told():
    made = providers(
        config__providers="f", config__providers__f__class="File", config__providers__f__param__alowed__paths="/", config__providers__g__class="x"
    )
    assert made.warnings == [
        "config.providers.f.param.alowed.paths is not a key of that config provider and has no effect. "
        "Did you mean config.providers.f.param.allowed.paths?",
        "config.providers.g.class has no effect: config.providers does not name 'g'.",
    ]


def test_a_provider_of_ones_own_is_asked_once_a_path_and_its_failure_is_told():
    Vault.texts, Vault.asked = {("a", "x"): "value-x", ("a", "y"): "value-y"}, []
    made = providers(config__providers="v,b", config__providers__v__class=f"{HERE}:Vault", config__providers__b__class=f"{HERE}:Broken")
    assert made.resolve({"1": "${v:a:x}", "2": "${v:a:y}-${v:a:x}"}).texts == {"1": "value-x", "2": "value-y-value-x"}
    assert Vault.asked == [("a", ["x", "y"])]
    with pytest.raises(ConfigError, match="'b' failed: OSError: nobody there"):
        made.resolve({"1": "${b:a:x}"})


def test_the_workers_own_file_may_hold_references(tmp_path, monkeypatch):
    monkeypatch.setenv("OFFSETS_FILE", "/var/lib/offsets-of-env")
    props = {
        "key.converter": STRING_CONVERTER,
        "value.converter": STRING_CONVERTER,
        "offset.storage.file.filename": "${env:OFFSETS_FILE}",
        "config.providers": "env",
        "config.providers.env.class": f"{JAVA}.EnvVarConfigProvider",
    }
    assert WorkerConfig.of(props)["offset.storage.file.filename"] == "/var/lib/offsets-of-env"
    assert WorkerConfig.of(props).warnings == []


# ---------------------------------------------------------------- what is masked
@pytest.mark.parametrize(
    "value, text, masked",
    [
        ("tr0ub4dor&3", "login tr0ub4dor&3 failed", "login [hidden] failed"),
        ("p@ss word/1", "http://u:p%40ss%20word%2F1@h", "http://u:[hidden]@h"),
        ("p@ss word/1", "http://u:p%40ss+word%2F1@h", "http://u:[hidden]@h"),
        ('quo"ted-one', json.dumps({"k": 'quo"ted-one'}), '{"k": "[hidden]"}'),
        ("new\nline-secret", repr("new\nline-secret"), "'[hidden]'"),
        ("pin9", "pin9 and pin99", "[hidden] and pin99"),
        ("true", "it is true", "it is true"),
        ("7", "7 tasks", "7 tasks"),
        ("-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG\n", "got MIIEvQIBADANBgkqhkiG", "got [hidden]"),
    ],
)
def test_masks(value, text, masked):
    secrets.hide(value)
    assert secrets.mask(text) == masked


@pytest.mark.parametrize("formatter", [_TextLines("%(message)s"), _JsonLines()])
def test_log_lines_of_either_form_hold_no_secret(formatter):
    secrets.hide("s3cr3t-of-the-log")
    try:
        raise ValueError("refused s3cr3t-of-the-log")
    except ValueError as error:
        record = logging.LogRecord("x", logging.ERROR, "f", 1, "with %s", ("s3cr3t-of-the-log",), (ValueError, error, error.__traceback__))
        assert "s3cr3t" not in trace_of(error)
    record.context = ""
    assert "s3cr3t" not in formatter.format(record) and "[hidden]" in formatter.format(record)


# ---------------------------------------------------------------- in a worker
def with_vault(tmp_path, ttl=None, **more):
    keys = {"config__providers": "v", "config__providers__v__class": f"{HERE}:Vault", **more}
    return LocalWorker(tmp_path, **keys, **({"config__providers__v__param__ttl": ttl} if ttl else {}))


CONFIG = {"connector.class": "tests.runtime.plugins:FailingSource", "topic": "t", "secret": "${v:a:password}", "near": "to ${v:a:password}!"}


@pytest.fixture(autouse=True)
def vault():
    SAID.clear()
    Vault.texts, Vault.asked = {("a", "password"): PASSWORD}, []


def given(name="s"):
    """The configurations that the connector's task was started with."""
    return [entry[1] for entry in SAID[name] if entry[0] == "start"]


def test_tasks_get_values_and_everybody_else_sees_references(tmp_path):
    with with_vault(tmp_path) as worker:
        worker.herder.create("s", CONFIG)
        worker.wait_states("s", "RUNNING", "RUNNING")
        assert (given()[0]["secret"], given()[0]["near"]) == (PASSWORD, f"to {PASSWORD}!")
        shown = [worker.herder.config("s"), worker.herder.info("s")["config"], worker.herder.tasks("s")[0]["config"]]
        assert all((config["secret"], config["near"]) == (CONFIG["secret"], CONFIG["near"]) for config in shown)
        found = {value.name: value.value for _, value in worker.herder.examine({**CONFIG, "name": "s", "errors.tolerance": "${v:a:password}"})}
        assert found["errors.tolerance"] == "${v:a:password}"
    with sqlite3.connect(tmp_path / "connect.offsets.state" / "state.sqlite") as db:
        assert "hunter2" not in "".join(db.iterdump())


def test_a_failure_that_quotes_the_value_is_masked(tmp_path):
    with with_vault(tmp_path) as worker:
        with pytest.raises(ConfigError) as caught:
            worker.herder.create("s", {**CONFIG, "tasks.max": "${v:a:password}"})
        assert "hunter2" not in str(caught.value) and "tasks.max" in str(caught.value)
        worker.herder.create("s", {**CONFIG, "connector.class": "tests.runtime.plugins:TellingSource"})
        worker.wait_states("s", "RUNNING", "FAILED")
        assert "[hidden]" in worker.herder.task_status("s", 0)["trace"]
        assert "hunter2" not in json.dumps([worker.herder.status("s"), worker.herder.history("s")])


def test_a_restart_brings_new_values_to_the_tasks(tmp_path):
    with with_vault(tmp_path) as worker:
        worker.herder.create("s", CONFIG)
        wait_for(lambda: len(given()) == 1)
        Vault.texts = {("a", "password"): "the next one"}
        worker.herder.restart_task("s", 0)
        wait_for(lambda: len(given()) == 2)
        Vault.texts = {("a", "password"): "the third one"}
        worker.herder.restart("s")
        wait_for(lambda: len(given()) == 3)
        assert [config["secret"] for config in given()] == [PASSWORD, "the next one", "the third one"]
        assert worker.herder.tasks("s")[0]["config"]["secret"] == "${v:a:password}"


def test_values_that_expire_and_change_restart_the_connector(tmp_path):
    with with_vault(tmp_path, ttl=30) as worker:
        worker.herder.create("s", CONFIG)
        wait_for(lambda: len(Vault.asked) > 5, what="values to be looked up again")
        assert len(given()) == 1  # they were the same
        Vault.texts = {("a", "password"): "rotated"}
        wait_for(lambda: len(given()) == 2)
        assert given()[1]["secret"] == "rotated"
        Vault.texts = {("a", "password"): "rotated again"}
        wait_for(lambda: len(given()) == 3)
        worker.wait_states("s", "RUNNING", "RUNNING")


@pytest.mark.parametrize("act", [lambda herder: herder.stop("s"), lambda herder: herder.pause("s"), lambda herder: herder.delete("s")])
def test_nothing_is_looked_up_for_what_does_not_run(tmp_path, act):
    with with_vault(tmp_path, ttl=3_600_000) as worker:
        worker.herder.create("s", CONFIG)
        connector = worker.herder._queries.get("s")
        wait_for(lambda: connector._reload is not None)
        act(worker.herder)
        connector.post(lambda: None).result(PATIENCE_SECONDS)
        assert connector._reload is None


def test_reload_may_be_turned_off(tmp_path):
    with with_vault(tmp_path, ttl=1) as worker:
        worker.herder.create("s", {**CONFIG, "config.action.reload": "NONE"})
        worker.wait_states("s", "RUNNING", "RUNNING")
        assert worker.herder._queries.get("s")._reload is None


def test_a_value_that_is_gone_after_a_restart_fails_the_connector_which_stays(tmp_path):
    with with_vault(tmp_path) as worker:
        worker.herder.create("s", CONFIG)
    broken = {"config__providers__v__class": f"{HERE}:Broken"}
    with with_vault(tmp_path, **broken) as worker:
        assert worker.states("s") == ["FAILED"]
        assert "nobody there" in worker.herder.status("s")["connector"]["trace"]
        assert worker.herder.config("s")["secret"] == "${v:a:password}"
        worker.herder.delete("s")
        assert worker.herder.names() == []


def test_a_lone_reference_of_a_secret_key_is_shown_and_a_text_is_not(tmp_path):
    override = "producer.override.sasl.jaas.config"
    with with_vault(tmp_path) as worker:
        worker.herder.create("s", {**CONFIG, override: "${v:a:password}"}, target="STOPPED")
        assert worker.herder.config("s")[override] == "${v:a:password}"
        worker.herder.create("s", {**CONFIG, override: "x ${v:a:password}"}, replace=True)
        assert worker.herder.config("s")[override] == "[hidden]"


CLOSING = {
    "config.providers": "a,b",
    **{"config.providers.a.class": f"{HERE}:Closing", "config.providers.a.param.name": "bad"},
    **{"config.providers.b.class": f"{HERE}:Closing", "config.providers.b.param.name": "good"},
}


def test_providers_are_closed_when_the_worker_ends(tmp_path):
    Closing.closed.clear()
    with LocalWorker(tmp_path, **CLOSING) as worker:
        assert Closing.closed == []
    assert Closing.closed == ["bad", "good"]
    worker.process.close()
    assert Closing.closed == ["bad", "good"], "once"


@pytest.mark.parametrize("wrong", [{"config.providers": "a,b,c"}, {"listeners": "nonsense"}, {"listeners": "${b:x}"}], ids=["a provider", "a key", "a lookup"])
def test_providers_are_closed_where_the_configuration_will_not_do(wrong):
    Closing.closed.clear()
    props = {"key.converter": STRING_CONVERTER, "value.converter": STRING_CONVERTER, "offset.storage.file.filename": "/nowhere"}
    with pytest.raises(ConfigError):
        WorkerConfig.of({**props, **CLOSING, **wrong})
    assert Closing.closed == ["bad", "good"]
