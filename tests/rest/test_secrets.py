"""A value of a config provider, put into every key of every plugin, comes out nowhere: no answer, page, header, metric or line of the log."""

import html
import io
import json
import logging
from urllib.parse import quote, quote_plus

import orjson
import pytest
from pytest import param

from standalone import secrets
from standalone.cli.logs import _JsonLines, _TextLines
from standalone.config import class_name
from standalone.plugins import KINDS, Plugins
from standalone.rest.masked import Masked
from standalone.runtime.configuration.connector_keys import OWN
from standalone.runtime.configuration.examine import examine
from standalone.runtime.tasks.lifecycle import ContextFilter
from tests.rest.conftest import Api
from tests.runtime.local import LocalWorker, wait_for
from tests.suite.night import IS_NIGHT

SECRET = "planted-Zq7x9"
PARTS = 4
AT_ONCE = 10  # connectors, between two looks at all of them
PATHS = ("", "/config", "/tasks", "/status", "/history", "/topics")
FEW_PATHS = ("/tasks", "/history")  # by day, where all of them were asked of another connector of the plugin; the list of all tells the others
OVERRIDES = ("producer", "consumer", "admin")
CLIENT_KEYS = ("sasl.jaas.config", "client.id", "group.id", "compression.type", "max.request.size", "bootstrap.servers")


@pytest.fixture(autouse=True)
def forget(monkeypatch, tmp_path):
    """What these tests hide is not hidden from others; a file that is named by the secret is made where it is swept away."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(secrets, "_hidden", set())
    monkeypatch.setattr(secrets, "_pattern", None)


def traces_of(text):
    """How the secret may be in an answer."""
    return {text, repr(text)[1:-1], json.dumps(text)[1:-1], html.escape(text), quote(text), quote_plus(text)}


def keys_of_plugins():
    """(configuration, key) of every key that any plugin takes: connectors, and whatever a connector may name."""
    plugins = Plugins()
    for kind in ("source", "sink"):
        for each in plugins.classes(kind):
            yield from connector_keys(each, kind, plugins)
    source = next(each for each in plugins.classes("source") if "FileStream" in class_name(each))
    base = {"connector.class": class_name(source), "topic": "planted"}
    for kind, key in (("transform", "transforms.it"), ("predicate", "predicates.it")):
        for each in plugins.classes(kind):
            config = {**base, key.partition(".")[0]: "it", f"{key}.type": class_name(each)}
            yield from ((config, f"{key}.{name}") for name in names_of(each, "type", "predicate", "negate"))
    for kind, parts in (("converter", ("key", "value")), ("header_converter", ("header",))):
        for each in plugins.classes(kind):
            for part in parts:
                config = {**base, f"{part}.converter": class_name(each)}
                yield from ((config, f"{part}.converter.{name}") for name in names_of(each))


def connector_keys(each, kind, plugins):
    config = {"connector.class": class_name(each), **({"topics": "planted"} if kind == "sink" else {"topic": "planted"})}
    if "FileStream" not in class_name(each):  # what every connector takes is the worker's to hide, and looked at with these two
        return [(config, name) for name in names_of(each) if name != "name"]
    names = [option.name for option, _ in examine(config, plugins)] + list(OWN[kind].names())
    names += [f"{client}.override.{key}" for client in OVERRIDES for key in CLIENT_KEYS]
    names += ["transforms.it.type", "predicates.it.type", "topic.creation.groups", "topic.creation.default.partitions", "a.key.of.nobody", "topics.regex"]
    return [(config, name) for name in names if name != "name"]


def names_of(plugin, *more):
    return [option.name for option in plugin.config_def or ()] + list(more)


CASES = list(keys_of_plugins())


def test_every_plugin_is_among_the_cases():
    there = {class_name(each) for kind, (_, listed, _, _) in KINDS.items() if listed for each in Plugins().classes(kind)}
    planted = {value for config, _ in CASES for value in config.values()}
    with_keys = {class_name(each) for kind, (_, listed, _, _) in KINDS.items() if listed for each in Plugins().classes(kind) if each.config_def}
    assert with_keys <= planted and there - planted <= there - with_keys
    assert len(CASES) > 200


class Log:
    """All that is logged, in both forms."""

    def __init__(self):
        self.streams = io.StringIO(), io.StringIO()
        self.handlers = [logging.StreamHandler(stream) for stream in self.streams]
        for handler, formatter in zip(self.handlers, (_TextLines("%(level)s %(context)s%(message)s %(threadName)s"), _JsonLines())):
            handler.setFormatter(formatter)
            handler.addFilter(ContextFilter())

    def __enter__(self):
        for handler in self.handlers:
            logging.getLogger().addHandler(handler)
        return self

    def __exit__(self, *_):
        for handler in self.handlers:
            logging.getLogger().removeHandler(handler)

    def text(self):
        return "".join(stream.getvalue() for stream in self.streams)


class Watched:
    """A client that keeps the place of every answer in which the secret stands."""

    def __init__(self, api, secret):
        self.api, self.traces, self.leaks = api, traces_of(secret), []

    def __call__(self, method, path, body=None, **more):
        answer = self.api(method, path, body, **more)
        said = answer.text + "\n".join(f"{name}: {value}" for name, value in answer.headers.items())
        if any(trace in said for trace in self.traces):
            self.leaks.append((method, path, answer.status_code))
        assert answer.status_code < 500, (method, path, answer.text)
        return answer


@pytest.fixture
def planted(tmp_path):
    """A worker with a provider whose file holds the secret, in a folder with what file connectors need."""
    (tmp_path / "vault.properties").write_text(f"password={SECRET}\n")
    props = {
        "config.providers": "file",
        "config.providers.file.class": "FileConfigProvider",
        "response.http.headers.config": f"add X-Planted: ${{file:{tmp_path}/vault.properties:password}}",
        "rest.advertised.host.name": f"${{file:{tmp_path}/vault.properties:password}}",
        "producer.client.id": f"${{file:{tmp_path}/vault.properties:password}}",
        "not.a.key": f"${{file:{tmp_path}/vault.properties:password}}",
    }
    with Log() as log, LocalWorker(tmp_path, **props) as worker:
        yield worker, Watched(Api(worker), SECRET), log


@pytest.mark.parametrize("part", range(PARTS))  # for multiple processes
def test_a_secret_in_every_key_comes_out_nowhere(planted, tmp_path, part):
    worker, ask, log = planted
    reference = f"${{file:{tmp_path}/vault.properties:password}}"
    (tmp_path / "in.txt").write_text("one\n")
    count, seen, own = 0, set(), CASES[part::PARTS]
    for first in range(0, len(own), AT_ONCE):
        made = {}
        for number, (config, key) in enumerate(own[first : first + AT_ONCE]):
            config = {"file": str(tmp_path / "in.txt"), "tasks.max": "1", **config, key: reference}
            if "Sink" in config["connector.class"]:
                config["file"] = reference if key == "file" else str(tmp_path / f"out{number}.txt")
            ask("PUT", f"/connector-plugins/{quote(config['connector.class'])}/config/validate", config)
            if ask("POST", "/connectors", {"name": f"it{number}", "config": config}).status_code == 201:
                made[f"it{number}"] = config["connector.class"]
        ask("GET", "/connectors?expand=info&expand=status")
        ask("GET", "/metrics")
        for name, plugin in made.items():
            for path in PATHS if IS_NIGHT or plugin not in seen else FEW_PATHS:
                ask("GET", f"/connectors/{name}{path}")
            ask("DELETE", f"/connectors/{name}")
        count += len(made)
        seen |= set(made.values())
    assert count > 60 / PARTS, "most keys take any text"
    assert ask.leaks == []
    assert SECRET not in log.text()


def test_a_topic_named_by_a_secret_is_seen_nowhere(planted, tmp_path):
    worker, ask, log = planted
    reference = f"${{file:{tmp_path}/vault.properties:password}}"
    (tmp_path / "in.txt").write_text("one\ntwo\n")
    ask("POST", "/connectors", {"name": "in", "config": {"connector.class": "FileStreamSource", "file": str(tmp_path / "in.txt"), "topic": reference}})
    ask("POST", "/connectors", {"name": "out", "config": {"connector.class": "FileStreamSink", "file": str(tmp_path / "out.txt"), "topics": reference}})
    wait_for(lambda: (tmp_path / "out.txt").exists() and (tmp_path / "out.txt").read_text() == "one\ntwo\n", what="the records to come through")
    wait_for(lambda: "kafka_partition" in ask("GET", "/connectors/out/offsets").text, what="the offsets")
    wait_for(lambda: "[hidden]" in ask("GET", "/metrics").text, what="the topic's lag")
    assert ask("GET", "/connectors/in/topics").json() == {"in": {"topics": ["[hidden]"]}}
    assert "[hidden]" in ask("GET", "/connectors/out/offsets").text
    for path in ("/ui/api/topics", f"/ui/api/topics/{SECRET}/records", "/ui/api/lag?connector=out", "/ui/api/throughput", "/ui/api/log"):
        assert ask("GET", path).status_code == 200
    for path in ("/", "/health", "/ui/", "/ui/app.js", "/docs", "/docs/configuration", "/openapi.json", "/admin/loggers", f"/admin/loggers/{SECRET}"):
        ask("GET", path)
    ask("GET", f"/connectors/{SECRET}")
    ask("PUT", f"/connectors/{SECRET}/config", {"connector.class": SECRET})
    ask("PATCH", "/connectors/out/offsets", {"offsets": [{"partition": {"kafka_topic": SECRET, "kafka_partition": 0}}]})
    ask("PUT", "/connectors/out/stop")
    ask("PATCH", "/connectors/out/offsets", {"offsets": [{"partition": {"kafka_topic": f"{SECRET}-2", "kafka_partition": 0}, "offset": {"kafka_offset": 1}}]})
    assert ask.leaks == []
    assert SECRET not in log.text()


@pytest.mark.parametrize(
    "value, shown",
    [
        param('pass"word\\hunter2', 'pass"word\\hunter2', id="quotes and backslashes"),
        param("pässwörd-☕-hunter2", "pässwörd-☕-hunter2", id="no ASCII"),
        param("orders-secret,payments-secret", "payments-secret", id="an item of a list"),
        param('Module required password="hunter2-xyz";', "hunter2-xyz", id="what is in quotes"),
        param("<hunter2 & co>", html.escape("<hunter2 & co>"), id="in a page"),
        param("hunter2/x y", quote("hunter2/x y", safe=""), id="in an address"),
    ],
)
def test_every_form_is_masked(value, shown):
    secrets.hide(value)
    for body in (orjson.dumps({"message": shown}), json.dumps({"message": shown}).encode()):
        _, masked = Masked(None)._masked([(b"content-type", b"application/json")], body)
        assert json.loads(masked) == {"message": "[hidden]"}
    _, masked = Masked(None)._masked([(b"content-type", b"text/plain")], f"it is {shown}.".encode())
    assert masked == b"it is [hidden]."


@pytest.mark.parametrize(
    "kind, body, masked",
    [
        param("application/json", '{"name":"x","state":"RUNNING","task":1234}', '{"name":"x","state":"RUNNING","task":1234}', id="the API's words and numbers"),
        param("application/json", '{"1234":["1234 x"]}', '{"[hidden]":["[hidden] x"]}', id="texts and keys that are none"),
        param("text/plain; version=1.0.0", 'm{topic="1234"} 1234\n', 'm{topic="[hidden]"} 1234\n', id="labels of metrics, not their values"),
        param("text/javascript", 'let name = "1234";', 'let name = "1234";', id="not our own scripts"),
    ],
)
def test_what_is_masked_in_which_kind_of_body(kind, body, masked):
    for value in ("1234", "name", "state", "RUNNING"):
        secrets.hide(value)
    headers, found = Masked(None)._masked([(b"content-type", kind.encode()), (b"content-length", b"%d" % len(body)), (b"location", b"/x/1234")], body.encode())
    assert found.decode() == masked
    assert dict(headers) == {b"content-type": kind.encode(), b"content-length": b"%d" % len(masked), b"location": b"/x/[hidden]"}
