"""No key of Kafka's clients is silent: each has an effect, or is named once with why it has none."""

import collections
import json
import logging
import pathlib

import numpy as np
import pytest
from kafka.protocol.consumer import ListOffsetsRequest
from pytest import param

from standalone import wire
from standalone.clock import SYSTEM
from standalone.errors import ConfigError
from standalone.log import client_keys
from standalone.log.client import Cluster, Partition, Topic
from standalone.log.client_config import AdminConfig, ConsumerConfig, ProducerConfig
from standalone.log.partition_queue import Piece
from standalone.log.routing import Router
from tests.log.client_runs import Reader, Writer, fill, until
from tests.servers import fake_broker as fake

GOLDEN = json.loads((pathlib.Path(__file__).parents[1] / "golden/config-keys.json").read_text())
KINDS = [("producer", ProducerConfig), ("consumer", ConsumerConfig), ("admin", AdminConfig)]


@pytest.fixture
def unreported(monkeypatch):
    monkeypatch.setattr(client_keys, "_told", set())


# ---- all of them


@pytest.mark.parametrize("kind, config", KINDS)
def test_each_key_of_java_has_an_effect_or_a_reason_why_not(kind, config):
    java = {key["name"] for key in GOLDEN[kind]}
    assert java - set(config.KEYS) - set(config.NO_EFFECT) == set()
    assert set(config.KEYS) & set(config.NO_EFFECT) == set()
    assert set(config.NO_EFFECT) <= java, "a reason for a key that there is none of"


# Read by name where they are used; these are read as a family.
FAMILIES = ("compression.", "reconnect.backoff", "retry.backoff", "sasl.login.retry.backoff", "ssl.truststore.", "ssl.keystore.")
# Their effect is that of Connect itself, or of the worker.
ELSEWHERE = {
    "enable.auto.commit": "a sink's task commits what it has flushed, whatever this says",
    "auto.commit.interval.ms": "as above",
    "max.poll.records": "read by the runner",
    "group.id": "read by the worker",
    "group.instance.id": "read by the worker",
}


@pytest.mark.parametrize("kind, config", KINDS)
def test_each_key_that_is_said_to_have_an_effect_is_read_somewhere(kind, config):
    root = pathlib.Path(client_keys.__file__).parents[1]
    code = "\n".join(p.read_text() for part in ("log", "runtime") for p in (root / part).glob("*.py") if p.name not in ("client_config.py", "client_keys.py"))
    code += "".join(part.partition("\nclass ")[0] for part in (root / "log/client_config.py").read_text().split("def contradictions")[1:])
    unread = {key for key in config.KEYS if f'"{key}"' not in code and not key.startswith(FAMILIES) and key not in ELSEWHERE}
    assert unread == set()


@pytest.mark.parametrize(
    "config, name, told",
    [
        param(ProducerConfig, "interceptor.classes", "The producer setting 'interceptor.classes' has no effect here: it names a Java class", id="no effect"),
        param(ProducerConfig, "lingerms", "'lingerms' is not a setting of Kafka's producer, and has no effect. Did you mean 'linger.ms'?", id="misspelt"),
        param(ConsumerConfig, "fetch.min.byte", "is not a setting of Kafka's consumer, and has no effect. Did you mean 'fetch.min.bytes'?", id="nearly"),
        param(AdminConfig, "what.is.this", "'what.is.this' is not a setting of Kafka's admin client, and has no effect.", id="unknown"),
    ],
)
def test_a_key_without_effect_is_named_once_without_its_value(unreported, caplog, config, name, told):
    with caplog.at_level(logging.WARNING, "standalone.log"):
        for _ in range(3):
            client_keys.tell(config.of({"bootstrap.servers": "a:1", name: "swordfish"}))
    assert [line for line in caplog.messages if told in line] == caplog.messages and len(caplog.messages) == 1
    assert "swordfish" not in caplog.text


def test_settings_of_one_client_are_not_told_as_unknown_to_another(unreported, caplog):
    with fake.FakeCluster() as cluster, caplog.at_level(logging.WARNING, "standalone.log"):
        cluster.make("t")
        fill(cluster, "t", [b"a"])
        with Reader(cluster, "t", "g") as reader:
            reader.read(1)
    assert not [line for line in caplog.messages if "no effect" in line]


# ---- some of them


def test_round_robin_gives_each_record_to_the_next_partition():
    with fake.FakeCluster() as cluster:
        logs = cluster.make("t", partitions=3)
        with Writer(cluster.bootstrap, partitioner_class="org.apache.kafka.clients.producer.RoundRobinPartitioner") as writer:
            for number in range(2):
                done = writer.send("t", [b"%d" % n for n in range(number * 5, number * 5 + 5)], None)
                until(lambda: done, "the acknowledgement")
        assert {index: log.end for index, log in logs.items()} == {0: 4, 1: 3, 2: 3}


def test_round_robin_passes_partitions_without_leader_and_keeps_the_order():
    topic = Topic("t", None, False, 0, {n: Partition(n, -1 if n == 1 else 5, 0, (), ()) for n in range(3)}, 0)
    router, found = Router(False, 16_384, 1 << 20, round_robin=True), collections.defaultdict(list)
    values = [b"%d" % n for n in range(7)]
    keys = wire.ByteColumn.repeat(b"same", 7)
    for partition, part in router.split(Piece(wire.Records(7, keys, wire.ByteColumn.of(values)), slice(0, 7), None, 0), topic):
        found[partition] += list(part.records.values)
    assert found == {0: values[::2], 2: values[1::2]}


@pytest.mark.parametrize("name", ["com.example.Mine", "round-robin"])
def test_a_partitioner_that_is_not_to_be_had_is_refused(name):
    with pytest.raises(ConfigError, match="partitioner.class.*RoundRobinPartitioner"):
        ProducerConfig.of({"partitioner.class": name})


@pytest.mark.parametrize(
    "text, milliseconds",
    [
        param("by_duration:PT1H", 3_600_000, id="an hour"),
        param("by_duration:P1DT2H30M", 95_400_000, id="days, hours and minutes"),
        param("by_duration:PT0.5S", 500, id="part of a second"),
        param("BY_DURATION:pt10s", 10_000, id="in small letters"),
    ],
)
def test_a_duration_to_go_back_by(text, milliseconds):
    assert ConsumerConfig.of({"auto.offset.reset": text})["auto.offset.reset"] == milliseconds


@pytest.mark.parametrize("text", ["by_duration:", "by_duration:P", "by_duration:PT", "by_duration:1h", "by_duration:-PT1H", "first"])
def test_what_is_no_reset_is_refused(text):
    with pytest.raises(ConfigError, match="auto.offset.reset"):
        ConsumerConfig.of({"auto.offset.reset": text})


@pytest.mark.parametrize("found, expected", [(1, [b"b", b"c"]), (-1, [])], ids=["there are records since", "there are none"])
def test_reading_begins_a_duration_ago(found, expected):
    with fake.FakeCluster() as cluster:
        cluster.make("t")
        fill(cluster, "t", [b"a"])
        fill(cluster, "t", [b"b", b"c"])

        def list_offsets(call):
            answer = call.node.cluster._ListOffsets(call)
            for asked, told in zip(call.message.topics[0].partitions, answer.topics[0].partitions):
                told.offset = found if asked.timestamp >= 0 else told.offset
            return answer

        cluster.control(ListOffsetsRequest, list_offsets)
        with Reader(cluster, "t", auto_offset_reset="by_duration:PT1H") as reader:
            if not expected:
                assert reader.consumer.position(("t", 0)) == 3
            assert reader.read(len(expected)) == expected
        asked = cluster.seen(ListOffsetsRequest)[0].message.topics[0].partitions[0].timestamp
        assert abs(SYSTEM.now_ms() - 3_600_000 - asked) < 60_000


def test_a_transactional_id_is_refused_rather_than_ignored():
    with pytest.raises(ConfigError, match="transactional.id"):
        ProducerConfig.of({"transactional.id": "mine"})


def test_without_rebootstrap_only_brokers_that_the_cluster_named_are_asked():
    with fake.FakeCluster(nodes=2) as cluster:
        alone = cluster.node(1).address
        for strategy, expected in (("none", 2), ("rebootstrap", 3)):
            made = Cluster({"bootstrap.servers": f"localhost:{alone.rpartition(':')[2]}", "metadata.recovery.strategy": strategy}, SYSTEM)
            assert made._candidates() == made.config["bootstrap.servers"]
            made.cluster_id()
            assert len(made._candidates()) == expected
            made.close()


def test_canonical_names_of_bootstrap_servers_are_looked_up():
    with fake.FakeCluster() as cluster:
        port = cluster.node(1).port
        settings = {"bootstrap.servers": f"127.0.0.1:{port}", "client.dns.lookup": "resolve_canonical_bootstrap_servers_only"}
        made = Cluster(settings, SYSTEM)
        assert [(host != "127.0.0.1", at) for host, at in made._candidates()] == [(True, port)]
        assert made.cluster_id() == "fake"
        made.close()


def test_offsets_of_rows_are_kept_by_round_robin():
    topic = Topic("t", None, False, 0, {n: Partition(n, 1, 0, (), ()) for n in range(2)}, 0)
    router = Router(False, 16_384, 1 << 20, round_robin=True)
    piece = Piece(wire.Records(4, None, wire.ByteColumn.of([b"a"] * 4)), slice(10, 14), None, 0)
    rows = {partition: np.arange(20)[part.rows].tolist() for partition, part in router.split(piece, topic)}
    assert rows == {0: [10, 12], 1: [11, 13]}
