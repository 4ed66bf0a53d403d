"""The keys of worker and connectors: equal to Kafka's but for what is listed, and what is made of them."""

import json
import re
from pathlib import Path

import pytest
from pytest import param

from standalone.config import ConfigDef, Option, class_name, key_info
from standalone.connector import SinkConnector, SourceConnector
from standalone.errors import ConfigError
from standalone.plugins import Plugins
from standalone.runtime.configuration.connector_config import ConnectorConfig
from standalone.runtime.configuration.connector_keys import CONNECTOR, SINK, SOURCE
from standalone.runtime.configuration.examine import examine
from standalone.runtime.configuration.worker_config import WorkerConfig
from standalone.runtime.configuration.worker_keys import WORKER, parse_listener
from standalone.stage import Converter, FieldTransform, HeaderConverter, Predicate, Transform

GOLDEN = json.loads((Path(__file__).parent.parent / "golden" / "config-keys.json").read_text(encoding="utf-8"))

# What differs from Kafka on purpose: (definition, key) -> {field: ours}, with the reason.
CHANGED = {
    # Without Kafka the worker has its own log.
    ("worker", "bootstrap.servers"): {"required": False, "default": "embedded"},
    # A crash shall not repeat a minute of records.
    ("worker", "offset.flush.interval.ms"): {"default": "1000"},
}
LEFT_OUT = {}  # (definition, key) -> reason: none

OWN = {"state.dir", "spark.start", "task.failure.exit", "log.format", "rest.ui.enable", "rest.basic.auth.file", "rest.allowed.hosts", "rest.hide.secrets", "files.allowed.paths"}
OWN |= {"tasks.run.on", "tasks.control.port"}
# Of Java's distributed mode, which has no other keys here.
OWN |= {"exactly.once.source.support", "group.id", "offset.storage.topic", "offset.storage.partitions", "offset.storage.replication.factor"}
OWN_PREFIXES = ("pipeline.", "embedded.log.", "embedded.registry.", "task.restart.", "sql.")


@pytest.mark.parametrize("kind, definition", [("worker", WORKER), ("connector", CONNECTOR), ("source", SOURCE), ("sink", SINK)])
def test_keys_are_those_of_kafka(kind, definition):
    ours = {option.name: described(option) for option in definition}
    expected = {key["name"]: {**key, **CHANGED.get((kind, key["name"]), {})} for key in GOLDEN[kind] if (kind, key["name"]) not in LEFT_OUT}
    own = {name for name in ours if name in OWN or name.startswith(OWN_PREFIXES)} if kind == "worker" else set()
    assert {name: ours[name] for name in ours if name not in own} == expected


def described(option):
    info = key_info(option)
    return {
        "name": info["name"],
        "type": info["type"],
        "required": info["required"],
        "default": info["default_value"],
        "importance": info["importance"],
        "group": info["group"],
        "order": info["order_in_group"],
        "width": info["width"],
        "dependents": info["dependents"],
        "internal": option.internal,
    }


@pytest.mark.parametrize("definition", [WORKER, SOURCE, SINK])
def test_every_key_is_explained(definition):
    assert [option.name for option in definition if len(option.doc) < 20 or not option.doc.endswith(".")] == []


# --- Stand-ins for plugins: these tests depend on no converter's or transform's being there ---------------------------


class Plain(Converter, HeaderConverter):
    config_def = ConfigDef(Option("converter.type", "STRING", "LOW", "."), Option("loud", "BOOLEAN", "LOW", ".", default=False))

    @classmethod
    def of(cls, props=None, is_key=False):
        made = cls()
        made.is_key = is_key
        made.config = cls.config_def.parse(props)
        return made


class Other(Plain):
    pass


class Hoist(FieldTransform):
    config_def = ConfigDef(Option("field", "STRING", "HIGH", "."), Option("deep", "BOOLEAN", "LOW", ".", default=False))

    def configure(self, config):
        self.config = config


class Route(Transform):
    config_def = ConfigDef(Option("regex", "STRING", "HIGH", "."), Option("replacement", "STRING", "HIGH", "."))


class Odd(Predicate):
    config_def = ConfigDef(Option("pattern", "STRING", "HIGH", "."))

    def configure(self, config):
        self.config = config


class Source(SourceConnector):
    config_def = ConfigDef(Option("topic", "STRING", "HIGH", "."), Option("batch.size", "INT", "LOW", ".", default=2000))
    version = "9"

    def validate(self, config):
        return {"topic": "has a hole"} if config.get("topic") == "hole" else {}


class Sink(SinkConnector):
    config_def = ConfigDef(Option("file", "STRING", "HIGH", ".", default=None))


HERE = "stand_ins"


@pytest.fixture
def plugins(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, HERE, sys.modules[__name__])
    return Plugins()


@pytest.fixture
def worker(plugins):
    return WorkerConfig.of(WORKER_PROPS, plugins)


WORKER_PROPS = {
    "key.converter": f"{HERE}:Plain",
    "value.converter": f"{HERE}:Plain",
    "header.converter": f"{HERE}:Plain",
    "offset.storage.file.filename": "/var/lib/connect/offsets",
}
SOURCE_PROPS = {"name": "s", "connector.class": f"{HERE}:Source", "topic": "t"}
SINK_PROPS = {"name": "k", "connector.class": f"{HERE}:Sink", "topics": "a,b"}
CHAIN = {
    "transforms": "h,r",
    "transforms.h.type": f"{HERE}:Hoist.Value",
    "transforms.h.field": "line",
    "transforms.h.predicate": "p",
    "transforms.h.negate": "TRUE",
    "transforms.r.type": f"{HERE}:Route",
    "transforms.r.regex": "(.*)",
    "transforms.r.replacement": "p-$1",
    "predicates": "p",
    "predicates.p.type": f"{HERE}:Odd",
    "predicates.p.pattern": "a.*",
}


# --- Worker ---------------------------------------------------------------------------------------------------------


def test_a_worker_needs_converters_and_a_file_for_offsets(plugins):
    with pytest.raises(ConfigError) as caught:
        WorkerConfig.of({}, plugins)
    assert {"key.converter", "value.converter", "offset.storage.file.filename"} <= set(caught.value.errors)


@pytest.mark.parametrize(
    "key, value, message",
    [
        param("offset.flush.interval.ms", "soon", "whole number", id="no number"),
        param("value.converter", "no.such.Converter", "No converter 'no.such.Converter'", id="unknown converter"),
        param("value.converter", f"{HERE}:Route", "is a transform, but a converter is required", id="not a converter"),
        param("value.converter.loud", "perhaps", "true or false", id="a converter's own key"),
        param("listeners", "nonsense", "is not a listener", id="no url"),
        param("listeners", "http://:99999", "is not a listener", id="no port"),
        param("listeners", "", "at least one", id="no listener"),
        param("bootstrap.servers", "kafka", "not an address.*'embedded'", id="a server without port"),
        param("bootstrap.servers", "embedded,kafka:9092", "not an address", id="embedded and others"),
        param("bootstrap.servers", "", "at least one", id="no server"),
        param("connector.client.config.override.policy", "Some", "All, None, Principal, Allowlist", id="unknown policy"),
        param("response.http.headers.config", "frobnicate X: y", "is not a rule", id="no header rule"),
        param("pipeline.engine", "gpu", "auto, spark, rows", id="no engine"),
        param("embedded.log.segment.bytes", "1", "between", id="a setting of the embedded log"),
    ],
)
def test_a_wrong_value_is_told_with_its_key(plugins, key, value, message):
    with pytest.raises(ConfigError, match=message) as caught:
        WorkerConfig.of({**WORKER_PROPS, key: value}, plugins)
    assert set(caught.value.errors) == {key}


@pytest.mark.parametrize(
    "props, message",
    [
        param({"offset.flush.intervall.ms": "1"}, "Did you mean offset.flush.interval.ms", id="mistyped"),
        param({"some.key": "1"}, "some.key is not a key of the worker", id="unknown"),
        param({"group.id": "x"}, "distributed mode", id="distributed"),
        param({"offset.storage.topic": "x"}, "distributed mode", id="distributed offsets"),
        param({"internal.key.converter": "x"}, "internal.key.converter is deprecated", id="old converter"),
        param({"internal.key.converter.schemas.enable": "false"}, "is deprecated", id="old converter's key"),
        param({"rest.port": "8084"}, "listeners=http://:8084", id="old port"),
        param({"security.protocol": "SSL", "producer.security.protocol": "SSL"}, "consumer.security.protocol not", id="half secured"),
    ],
)
def test_a_key_without_effect_is_warned_about(plugins, props, message):
    warnings = WorkerConfig.of({**WORKER_PROPS, **props}, plugins).warnings
    assert len(warnings) == 1 and message in warnings[0]


def test_keys_of_others_draw_no_warning(plugins):
    keys = "producer.acks consumer.max.poll.records admin.retries spark.master sasl.mechanism"
    keys += " ssl.truststore.location request.timeout.ms metrics.context.a connector.client.config.override.allowlist listeners.https.ssl.key"
    assert WorkerConfig.of({**WORKER_PROPS, **dict.fromkeys(keys.split(), "1")}, plugins).warnings == []


def test_old_rest_keys_become_a_listener(plugins):
    props = {**WORKER_PROPS, "rest.host.name": "localhost", "rest.port": "8084"}
    assert WorkerConfig.of(props, plugins)["listeners"] == ["http://localhost:8084"]
    assert WorkerConfig.of({**props, "listeners": "http://:1"}, plugins)["listeners"] == ["http://:1"]


def test_folders_lie_beside_the_offsets_file_unless_said_otherwise(plugins, worker):
    assert worker.state_dir == "/var/lib/connect/offsets.state" and worker.log_dir() == "/var/lib/connect/offsets.state/log"
    other = WorkerConfig.of({**WORKER_PROPS, "state.dir": "/s", "embedded.log.dir": "/l"}, plugins)
    assert (other.state_dir, other.log_dir()) == ("/s", "/l")


def test_the_log_is_the_workers_own_unless_servers_are_named(plugins, worker):
    assert worker.embedded and worker.bootstrap() == "127.0.0.1:9092"
    other = WorkerConfig.of({**WORKER_PROPS, "bootstrap.servers": "a:1, [::1]:2"}, plugins)
    assert not other.embedded and other.bootstrap() == "a:1,[::1]:2"


def test_spark_keys_reach_the_session_but_for_our_own(plugins):
    found = WorkerConfig.of({**WORKER_PROPS, "spark.master": "local[1]", "spark.start": "lazy"}, plugins)
    assert found.spark() == {"spark.master": "local[1]"} and found["spark.start"] == "lazy"


@pytest.mark.parametrize("url, parsed", [("http://:8083", ("http", "", 8083)), ("HTTPS://[::1]:1", ("https", "::1", 1))])
def test_listeners(url, parsed):
    assert parse_listener(url) == parsed


def test_clients_get_connects_defaults_the_workers_prefixed_keys_and_the_connectors_overrides(plugins):
    props = {
        **WORKER_PROPS,
        "bootstrap.servers": "kafka:9092",
        "security.protocol": "SSL",
        "request.timeout.ms": "7",
        "producer.linger.ms": "5",
        "producer.security.protocol": "SSL",
        "consumer.max.poll.records": "9",
        "admin.request.timeout.ms": "8",
    }
    found = WorkerConfig.of(props, plugins)
    connector = {"name": "k", "producer.override.linger.ms": "6", "consumer.override.group.id": "mine", "admin.override.retries": "1"}
    assert found.client("producer", connector) == {
        "bootstrap.servers": "kafka:9092",
        "acks": "all",
        "max.block.ms": "9223372036854775807",
        "delivery.timeout.ms": "2147483647",
        "linger.ms": "6",
        "security.protocol": "SSL",
    }
    consumer = {"auto.offset.reset": "earliest", "enable.auto.commit": "false", "max.poll.records": "9"}
    assert found.client("consumer", connector) == {"bootstrap.servers": "kafka:9092", "group.id": "mine", **consumer}
    assert found.client("consumer", {"name": "k"})["group.id"] == "connect-k"
    assert found.client("admin", connector) == {
        "bootstrap.servers": "kafka:9092",
        "security.protocol": "SSL",
        "request.timeout.ms": "8",
        "retries": "1",
    }


@pytest.mark.parametrize(
    "props, refused",
    [
        param({}, set(), id="All is the default"),
        param({"connector.client.config.override.policy": "None"}, {"producer.override.acks", "admin.override.sasl.mechanism"}, id="None"),
        param({"connector.client.config.override.policy": "Principal"}, {"producer.override.acks"}, id="Principal"),
        param(
            {"connector.client.config.override.policy": "Allowlist", "connector.client.config.override.allowlist": "acks"},
            {"admin.override.sasl.mechanism"},
            id="Allowlist",
        ),
        param(
            {"connector.client.config.override.policy": "org.apache.kafka.connect.connector.policy.NoneConnectorClientConfigOverridePolicy"},
            {"producer.override.acks", "admin.override.sasl.mechanism"},
            id="by its Java class",
        ),
    ],
)
def test_overrides_are_held_to_the_policy(plugins, props, refused):
    found = WorkerConfig.of({**WORKER_PROPS, **props}, plugins)
    overrides = {"producer.override.acks": "1", "admin.override.sasl.mechanism": "PLAIN", "producer.acks": "1"}
    assert set(found.refused_overrides(overrides)) == refused
    if refused:
        with pytest.raises(ConfigError) as caught:
            ConnectorConfig.of({**SOURCE_PROPS, **overrides}, plugins, found)
        assert set(caught.value.errors) == refused


def test_passwords_are_shown_nowhere(plugins):
    found = WorkerConfig.of({**WORKER_PROPS, "ssl.key.password": "geheim"}, plugins)
    assert "geheim" not in repr(found) and found["ssl.key.password"].value == "geheim"


# --- Connectors -----------------------------------------------------------------------------------------------------


def test_a_connector_is_parsed_whole(plugins, worker):
    found = ConnectorConfig.of({**SOURCE_PROPS, **CHAIN, "batch.size": "7"}, plugins, worker)
    assert (found.kind, found.connector_class) == ("source", Source)
    assert (found["tasks.max"], found["batch.size"], found["errors.tolerance"]) == (1, 7, "none")
    assert found.warnings == []
    hoist, route = found.links()
    assert (hoist.alias, hoist.transform, hoist.config, hoist.predicate, hoist.predicate_alias, hoist.predicate_config, hoist.negate) == (
        *("h", Hoist.Value, {"field": "line"}, Odd, "p", {"pattern": "a.*"}, True),
    )
    assert (route.transform, route.predicate, route.negate) == (Route, None, False)
    alias, transform, predicate, negate = hoist.build()
    assert (alias, transform.config["field"], predicate.config["pattern"], negate) == ("h", "line", "a.*", True)


@pytest.mark.parametrize(
    "base, props, wrong",
    [
        param({}, {}, {"name", "connector.class"}, id="nothing"),
        param(SOURCE_PROPS, {"connector.class": "no.such.Klass"}, {"connector.class"}, id="unknown class"),
        param(SOURCE_PROPS, {"connector.class": f"{HERE}:Route"}, {"connector.class"}, id="no connector"),
        param(SOURCE_PROPS, {"name": ""}, {"name"}, id="empty name"),
        param(SOURCE_PROPS, {"name": "a\nb"}, {"name"}, id="control characters in the name"),
        param(SOURCE_PROPS, {"tasks.max": "-1", "batch.size": "x"}, {"tasks.max", "batch.size"}, id="ours and the connector's own"),
        param(SOURCE_PROPS, {"topic": "hole"}, {"topic"}, id="what the connector's own check finds"),
        param(SOURCE_PROPS, {"errors.tolerance": "some", "errors.log.enable": "x"}, {"errors.tolerance", "errors.log.enable"}, id="errors"),
        param(SOURCE_PROPS, {"key.converter": "no.such.Converter"}, {"key.converter"}, id="unknown converter"),
        param(SOURCE_PROPS, {"value.converter": f"{HERE}:Route"}, {"value.converter"}, id="no converter"),
        param(SOURCE_PROPS, {"value.converter": f"{HERE}:Other", "value.converter.loud": "x"}, {"value.converter.loud"}, id="its own key"),
        param(SOURCE_PROPS, {"transforms": "r"}, {"transforms.r.type"}, id="a transform without type"),
        param(SOURCE_PROPS, {"transforms": "r", "transforms.r.type": "no.such"}, {"transforms.r.type"}, id="of unknown type"),
        param(SOURCE_PROPS, {"transforms": "r", "transforms.r.type": f"{HERE}:Odd"}, {"transforms.r.type"}, id="of another kind"),
        param(
            *(SOURCE_PROPS, {"transforms": "r", "transforms.r.type": f"{HERE}:Route"}, {"transforms.r.regex", "transforms.r.replacement"}),
            id="without its keys",
        ),
        param(SOURCE_PROPS, {**CHAIN, "transforms": "r,r"}, {"transforms"}, id="an alias twice"),
        param(SOURCE_PROPS, {**CHAIN, "transforms.h.negate": "no"}, {"transforms.h.negate"}, id="negate"),
        param(SOURCE_PROPS, {**CHAIN, "predicates": ""}, {"transforms.h.predicate"}, id="a predicate that is not listed"),
        param(SOURCE_PROPS, {"predicates": "p", "predicates.p.type": "no.such"}, {"predicates.p.type"}, id="unknown predicate"),
        param(SINK_PROPS, {"topics": ""}, {"topics", "topics.regex"}, id="no topics"),
        param(SINK_PROPS, {"topics.regex": "x.*"}, {"topics", "topics.regex"}, id="both kinds of topics"),
        param(SINK_PROPS, {"topics": "", "topics.regex": "["}, {"topics.regex"}, id="no regex"),
        param(SINK_PROPS, {"errors.deadletterqueue.topic.name": "b"}, {"topics"}, id="reads its own failures"),
        param(
            *(SINK_PROPS, {"topics": "", "topics.regex": "d.*", "errors.deadletterqueue.topic.name": "dlq"}),
            *({"topics.regex"},),
            id="reads its own failures by regex",
        ),
        param(
            *(SOURCE_PROPS, {"topic.creation.groups": "g"}),
            {f"topic.creation.{key}" for key in ("default.partitions", "default.replication.factor", "g.include")}
            | {"topic.creation.g.partitions", "topic.creation.g.replication.factor"},
            id="topic creation without defaults",
        ),
        param(
            *(SOURCE_PROPS, {"topic.creation.default.partitions": "0", "topic.creation.default.replication.factor": "1"}),
            *({"topic.creation.default.partitions"},),
            id="no partitions",
        ),
    ],
)
def test_all_wrong_keys_are_told_at_once(plugins, worker, base, props, wrong):
    with pytest.raises(ConfigError) as caught:
        ConnectorConfig.of({**base, **props}, plugins, worker)
    assert set(caught.value.errors) == wrong


def test_topic_groups_are_asked_in_order_the_default_last(plugins):
    props = {
        **SOURCE_PROPS,
        "topic.creation.groups": "compacted, wide",
        "topic.creation.default.replication.factor": "-1",
        "topic.creation.default.partitions": "2",
        "topic.creation.default.retention.ms": "5",
        "topic.creation.compacted.include": "c.*, k\\d",
        "topic.creation.compacted.exclude": "cold",
        "topic.creation.compacted.cleanup.policy": "compact",
        "topic.creation.wide.include": ".*wide",
        "topic.creation.wide.partitions": "9",
    }
    groups = ConnectorConfig.of(props, plugins).topic_groups()

    def made(topic):
        group = next(group for group in groups if group.takes(topic))
        return group.name, group.partitions, group.replication_factor, group.configs

    assert made("cwide") == ("compacted", 2, -1, {"cleanup.policy": "compact"})
    assert made("k7")[0] == "compacted" and made("k\u0667")[0] == "default"
    assert made("wide") == ("wide", 9, -1, {})
    assert made("cold") == ("default", 2, -1, {"retention.ms": "5"})
    assert ConnectorConfig.of(SOURCE_PROPS, plugins).topic_groups() == []


def test_a_sink_reads_topics_or_those_that_fit(plugins):
    assert ConnectorConfig.of(SINK_PROPS, plugins).subscription == {"topics": ["a", "b"]}
    by_regex = {key: value for key, value in SINK_PROPS.items() if key != "topics"} | {"topics.regex": "\\p{Alpha}+"}
    pattern = ConnectorConfig.of(by_regex, plugins).subscription["pattern"]
    assert pattern.fullmatch("ab") and not pattern.fullmatch("\u00e4")


def test_a_converter_takes_its_keys_from_where_it_is_named(plugins):
    worker = WorkerConfig.of({**WORKER_PROPS, "value.converter.loud": "true"}, plugins)
    plain = ConnectorConfig.of(SOURCE_PROPS, plugins, worker)
    assert type(plain.converter("value", worker)) is Plain and plain.converter("value", worker).config["loud"] is True
    assert plain.converter("key", worker).is_key and not plain.converter("value", worker).is_key
    own = ConnectorConfig.of({**SOURCE_PROPS, "value.converter": f"{HERE}:Other"}, plugins, worker)
    assert type(own.converter("value", worker)) is Other and own.converter("value", worker).config["loud"] is False
    assert own.converter("header", worker).config["converter.type"] == "header"


@pytest.mark.parametrize(
    "props, message",
    [
        param({"batch.sise": "1"}, "Did you mean batch.size", id="mistyped"),
        param({"what": "1"}, "what is not a key of this connector", id="unknown"),
        param({**CHAIN, "transforms.h.fields": "x"}, "Did you mean transforms.h.field", id="a transform's key"),
        param({"transforms.h.field": "x"}, "'transforms' does not list 'h'", id="a transform that is not listed"),
        param({"value.converter.loud": "true"}, "set value.converter here, too", id="a converter's key without the converter"),
    ],
)
def test_a_connectors_key_without_effect_is_warned_about(plugins, worker, props, message):
    warnings = ConnectorConfig.of({**SOURCE_PROPS, **props}, plugins, worker).warnings
    assert len(warnings) == 1 and message in warnings[0]


# --- What REST's validate shows -------------------------------------------------------------------------------------


def shown(props, plugins, worker, **more):
    return {option.name: (key_info(option), value) for option, value in examine(props, plugins, worker, **more)}


def test_a_transforms_keys_are_shown_in_its_group_in_kafkas_order(plugins, worker):
    found = shown({**SOURCE_PROPS, **CHAIN}, plugins, worker)
    places = [(name, info["order_in_group"]) for name, (info, _) in found.items() if info["group"] == "Transforms: r"]
    names = ["type", "plugin.version", "regex", "replacement", "negate", "predicate"]
    assert places == [(f"transforms.r.{name}", place) for place, name in enumerate(names)]
    assert found["transforms.r.type"][0]["display_name"] == "Transformation type for r"
    assert found["transforms.r.regex"][0]["display_name"] == "regex"
    assert found["predicates.p.pattern"][0]["group"] == "Predicates: p"


def test_what_is_missing_is_shown_beside_what_is_there(plugins, worker):
    found = shown({"connector.class": f"{HERE}:Source", "tasks.max": "-1", "batch.size": "x"}, plugins, worker)
    errors = {name: len(value.errors) for name, (_, value) in found.items() if value.errors}
    assert errors == {"name": 1, "topic": 1, "tasks.max": 1, "batch.size": 1}
    assert found["tasks.max"][1].value == -1 and found["batch.size"][1].value is None


def test_the_workers_converters_and_the_versions_that_there_are_stand_as_defaults(plugins, worker):
    found = shown(SOURCE_PROPS, plugins, worker)
    assert found["key.converter"][1].value is Plain and found["key.converter"][0]["default_value"] == class_name(Plain)
    assert found["connector.plugin.version"][1].value == "9"
    assert found["connector.plugin.version"][1].recommended_values == ["9"]
    unknown = shown({**SOURCE_PROPS, "key.converter": "no.such.Converter"}, plugins, worker)["key.converter.plugin.version"][1]
    assert (unknown.value, unknown.visible) == (None, False)


def test_plugins_are_recommended_only_when_asked_for(plugins, worker, monkeypatch):
    monkeypatch.setattr(plugins, "classes", lambda kind: [Plain, Other])
    assert shown(SOURCE_PROPS, plugins, worker)["key.converter"][1].recommended_values == []
    found = shown(SOURCE_PROPS, plugins, worker, recommend=True)
    assert found["key.converter"][1].recommended_values == [class_name(Plain), class_name(Other)]


def test_a_reference_can_be_drawn_of_every_definition():
    for definition in (WORKER, SOURCE, SINK):
        page = definition.to_markdown("Keys")
        assert all(f"| `{option.name}` |" in page for option in definition)
        assert not re.search(r"0x[0-9a-f]{6,}", page)


# ---------------------------------------------------------------- topic.creation.*
@pytest.mark.parametrize(
    "keys, wrong",
    [
        param({"groups": "a"}, {"default.replication.factor", "default.partitions", "a.replication.factor", "a.partitions", "a.include"}, id="nothing of it"),
        param({"default.partitions": "1"}, {"default.replication.factor"}, id="default needs both"),
        param({"default.partitions": "0", "default.replication.factor": "-2"}, {"default.partitions", "default.replication.factor"}, id="-1 or more than 0"),
        param({**{"default.partitions": "1", "default.replication.factor": "1"}, "groups": "a"}, {"a.include"}, id="a group needs include"),
        param({**{"default.partitions": "1", "default.replication.factor": "1"}, "groups": "a", "a.include": "[", "a.exclude": "("}, {"a.include", "a.exclude"}, id="no regex"),
    ],
)
def test_groups_of_topics_that_will_not_do(plugins, worker, keys, wrong):
    with pytest.raises(ConfigError) as caught:
        ConnectorConfig.of({**SOURCE_PROPS, **{f"topic.creation.{key}": value for key, value in keys.items()}}, plugins, worker)
    assert set(caught.value.errors) == {f"topic.creation.{key}" for key in wrong}


def test_groups_of_topics_take_what_they_include_and_the_default_takes_the_rest(plugins, worker):
    keys = {
        **{"groups": "compact,big", "default.partitions": "1", "default.replication.factor": "-1"},
        **{"compact.include": "state-.*", "compact.exclude": "state-x,state-y", "compact.cleanup.policy": "compact"},
        **{"big.include": ".*-x", "big.partitions": "9", "small.include": "x"},
    }
    found = ConnectorConfig.of({**SOURCE_PROPS, **{f"topic.creation.{key}": value for key, value in keys.items()}}, plugins, worker)
    groups = found.topic_groups()
    chosen = {topic: next(group for group in groups if group.takes(topic)) for topic in ("state-a", "state-x", "state-y", "x-state-a")}
    assert {topic: group.name for topic, group in chosen.items()} == {"state-a": "compact", "state-x": "big", "state-y": "default", "x-state-a": "default"}
    assert (chosen["state-a"].configs, chosen["state-a"].partitions, chosen["state-x"].partitions) == ({"cleanup.policy": "compact"}, 1, 9)
    assert found.warnings == ["topic.creation.small.include has no effect: topic.creation.groups does not name 'small'."]


def test_groups_of_topics_have_no_effect_where_the_worker_makes_none(plugins):
    worker = WorkerConfig.of({**WORKER_PROPS, "topic.creation.enable": "false"}, plugins)
    keys = {"topic.creation.default.partitions": "1", "topic.creation.default.replication.factor": "1"}
    assert len([said for said in ConnectorConfig.of({**SOURCE_PROPS, **keys}, plugins, worker).warnings if "topic.creation.enable" in said]) == 2
