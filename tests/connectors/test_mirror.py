"""Mirroring between a real Kafka and the embedded log, both ways: records, topics, configurations, groups, heartbeats."""

import itertools
import pathlib
import struct
import time

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions, NewTopic, ResourceType

from connectors.mirror.formats import read_checkpoint, read_heartbeat
from standalone import properties
from standalone.log.broker.server import EmbeddedLog
from tests.log.committed import committed, everything
from tests.runtime.local import LocalWorker, wait_for
from tests.suite.patience import PATIENCE_SECONDS

BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
SAMPLES = pathlib.Path(__file__).parents[2] / "config"
MIRROR = "org.apache.kafka.connect.mirror."
_numbers = itertools.count()


class Ways:
    """A source cluster, and a worker whose log is the target."""

    def __init__(self, source, worker):
        self.source, self.worker, self.target = source, worker, worker.bootstrap
        self._admins = {}
        number = f"{time.time_ns() // 1_000_000 % 10**8}x{next(_numbers)}"
        self.alias, self.topic, self.group = f"a{number}", f"t{number}", f"g{number}"

    @property
    def remote(self):
        return f"{self.alias}.{self.topic}"

    def make(self, partitions=2, config=None):
        result = self.admin(self.source).create_topics([NewTopic(self.topic, partitions, 1, config=config or {})])
        result[self.topic].result(PATIENCE_SECONDS)

    def write(self, records, **transactional):
        """[(partition, key, value, headers, timestamp)]"""
        producer = confluent_kafka.Producer({"bootstrap.servers": self.source, **transactional})
        for partition, key, value, headers, timestamp in records:
            producer.produce(self.topic, value, key, partition, headers=headers, timestamp=timestamp)
        assert producer.flush(15) == 0

    def mirror(self, kind, **config):
        base = {
            "connector.class": f"{MIRROR}Mirror{kind}Connector", "tasks.max": "2", "key.converter": BYTES, "value.converter": BYTES,
            "header.converter": BYTES, "source.cluster.alias": self.alias, "target.cluster.alias": "target",
            "source.cluster.bootstrap.servers": self.source, "target.cluster.bootstrap.servers": self.target,
            "replication.factor": "1", "offset-syncs.topic.replication.factor": "1", "checkpoints.topic.replication.factor": "1",
            "heartbeats.topic.replication.factor": "1", "offset-syncs.topic.location": "target", "consumer.poll.timeout.ms": "100",
        }  # fmt: skip
        keys = CONFIG_KEYS[kind]
        base = {key: value for key, value in base.items() if key in keys or key.startswith(("source.", "target.")) or "converter" in key or key in ("connector.class", "tasks.max")}
        own = {key: value for key, value in {"topics": self.topic, "groups": self.group}.items() if key in keys}
        self.worker.herder.create(f"{kind}-{self.alias}", {**base, **own, **config}, replace=True)

    def admin(self, bootstrap):
        if bootstrap not in self._admins:  # what it has under way ends with it
            self._admins[bootstrap] = AdminClient({"bootstrap.servers": bootstrap})
        return self._admins[bootstrap]


def _keys():
    from tests.connectors.test_mirror_parts import CONNECTORS

    return {kind.capitalize(): set(connector.config_def.names()) for kind, connector in CONNECTORS.items()}


CONFIG_KEYS = _keys()


@pytest.fixture(params=["kafka to embedded", "embedded to kafka"])
def ways(request, tmp_path, kafka):
    if request.param == "kafka to embedded":
        with LocalWorker(tmp_path) as worker:
            yield Ways(kafka, worker)
        return
    log = EmbeddedLog(tmp_path / "source", "127.0.0.1:0")
    log.start()
    try:
        with LocalWorker(tmp_path / "worker", bootstrap__servers=kafka) as worker:
            yield Ways(log.bootstrap, worker)
    finally:
        log.stop()


def read(bootstrap, topic, count, partitions=2):
    """{partition: [(key, value, headers, timestamp)]} of the first `count` records."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": "looks", "enable.auto.commit": False, "log_level": 0})
    consumer.assign([confluent_kafka.TopicPartition(topic, number, 0) for number in range(partitions)])
    found = {number: [] for number in range(partitions)}
    deadline = time.monotonic() + PATIENCE_SECONDS
    try:
        while sum(map(len, found.values())) < count:
            assert time.monotonic() < deadline, found
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                found[message.partition()].append((message.key(), message.value(), message.headers(), message.timestamp()[1]))
    finally:
        consumer.close()
    return found


def test_records_go_over_byte_for_byte_and_a_restart_repeats_none(ways):
    ways.make(config={"retention.ms": "123456789"})
    written = [
        (0, b"k", b"v", [("h", b"\x00\xff"), ("h", None)], 1_700_000_000_001),
        (1, None, b"\x00\x01\xfe", None, 1_700_000_000_002),
        (0, b"k", None, None, 1_700_000_000_003),
    ]
    ways.write(written)
    ways.mirror("Source")
    wanted = {number: [(k, v, h, t) for n, k, v, h, t in written if n == number] for number in (0, 1)}
    assert read(ways.target, ways.remote, 3) == wanted
    name = f"Source-{ways.alias}"
    place = {"partition": {"cluster": ways.alias, "topic": ways.topic, "partition": 0}, "offset": {"offset": 1}}
    wait_for(lambda: place in ways.worker.herder.offsets(name))
    ways.worker.herder.restart(name, include_tasks=True)
    ways.write([(0, b"k", b"later", None, 1_700_000_000_004)])
    assert read(ways.target, ways.remote, 4)[0] == wanted[0] + [(b"k", b"later", None, 1_700_000_000_004)]
    (config,) = ways.admin(ways.target).describe_configs([ConfigResource(ResourceType.TOPIC, ways.remote)]).values()
    assert config.result(PATIENCE_SECONDS)["retention.ms"].value == "123456789"


def test_partitions_topics_and_configurations_that_come_later_are_brought_over(ways):
    ways.make(partitions=1)
    ways.mirror("Source", **{
        "refresh.topics.interval.seconds": "1", "sync.topic.configs.interval.seconds": "1", "topics": f"{ways.topic}.*",
        "topics.exclude": ".*-no", "sync.topic.acls.enabled": "false",
    })  # fmt: skip
    wait_for(lambda: ways.remote in ways.admin(ways.target).list_topics(timeout=10).topics)
    source = ways.admin(ways.source)
    source.create_partitions([NewPartitions(ways.topic, 2)])[ways.topic].result(PATIENCE_SECONDS)
    for future in source.create_topics([NewTopic(f"{ways.topic}-{end}", 1, 1) for end in ("new", "no")]).values():
        future.result(PATIENCE_SECONDS)
    change = ConfigEntry("max.message.bytes", "54321", incremental_operation=AlterConfigOpType.SET)
    (changed,) = source.incremental_alter_configs([ConfigResource(ResourceType.TOPIC, ways.topic, incremental_configs=[change])]).values()
    changed.result(PATIENCE_SECONDS)
    wait_for(lambda: len(ways.admin(ways.target).list_topics(ways.remote, timeout=10).topics[ways.remote].partitions) == 2)
    ways.write([(1, None, b"of a partition that came later", None, 1)])
    assert [value for _, value, _, _ in read(ways.target, ways.remote, 1)[1]] == [b"of a partition that came later"]

    def configured():
        (found,) = ways.admin(ways.target).describe_configs([ConfigResource(ResourceType.TOPIC, ways.remote)]).values()
        return found.result(PATIENCE_SECONDS)["max.message.bytes"].value == "54321"

    wait_for(configured)
    there = ways.admin(ways.target).list_topics(timeout=10).topics
    assert f"{ways.remote}-new" in there and f"{ways.remote}-no" not in there


def test_a_group_goes_on_on_the_target_where_it_was(ways):
    ways.make()
    ways.write([(0, None, b"%d" % n, None, 1) for n in range(10)])
    reader = confluent_kafka.Consumer({"bootstrap.servers": ways.source, "group.id": ways.group, "enable.auto.commit": False})
    reader.assign([confluent_kafka.TopicPartition(ways.topic, 0, 0)])
    reader.commit(offsets=[confluent_kafka.TopicPartition(ways.topic, 0, 10)], asynchronous=False)
    reader.close()
    ways.mirror("Source", **{"offset.lag.max": "0"})
    read(ways.target, ways.remote, 10)
    ways.mirror("Checkpoint", **{
        "emit.checkpoints.interval.seconds": "1", "sync.group.offsets.enabled": "true", "sync.group.offsets.interval.seconds": "1",
    })  # fmt: skip
    topic = f"{ways.alias}.checkpoints.internal"
    wait_for(lambda: everything(ways.target, topic))
    found = read_checkpoint(*everything(ways.target, topic)[-1])
    assert found[:4] == (ways.group, ways.remote, 0, 10) and 0 < found.downstream <= 10

    def offset():
        there = confluent_kafka.Consumer({"bootstrap.servers": ways.target, "group.id": ways.group})
        try:
            return there.committed([confluent_kafka.TopicPartition(ways.remote, 0)], 10)[0].offset
        finally:
            there.close()

    wait_for(lambda: offset() == 10)


def test_heartbeats_are_written_and_those_of_the_source_are_mirrored(ways):
    ways.mirror("Heartbeat")

    def beats():
        return [found for found in (read_heartbeat(*each) for each in everything(ways.target, "heartbeats")) if found.source == ways.alias]

    wait_for(lambda: len(beats()) >= 2)
    first, second = beats()[:2]
    assert (first.source, first.target) == (ways.alias, "target") and second.timestamp - first.timestamp >= 900
    key, value = everything(ways.target, "heartbeats")[-1]
    assert struct.unpack(">h", value[:2]) == (0,) and len(value) == 10


def test_records_of_aborted_transactions_are_not_mirrored_where_committed_ones_are_asked_for(ways):
    ways.make(partitions=1)
    producer = confluent_kafka.Producer({"bootstrap.servers": ways.source, "transactional.id": ways.topic})
    producer.init_transactions(15)
    for at, end in enumerate((producer.commit_transaction, producer.abort_transaction, producer.commit_transaction)):
        producer.begin_transaction()
        producer.produce(ways.topic, b"%d" % at)
        producer.flush(15)
        end(15)
    ways.mirror("Source", **{"source.consumer.isolation.level": "read_committed"})
    wait_for(lambda: committed(ways.target, ways.remote) == [b"0", b"2"])


@pytest.mark.parametrize("kind, seen", [("source", "primary.t"), ("checkpoint", "primary.checkpoints.internal"), ("heartbeat", "heartbeats")])
def test_the_samples_run(tmp_path, kind, seen):
    log = EmbeddedLog(tmp_path / "source", "127.0.0.1:0")
    log.start()
    try:
        admin = AdminClient({"bootstrap.servers": log.bootstrap})
        admin.create_topics([NewTopic("t", 1, 1)])["t"].result(PATIENCE_SECONDS)
        with LocalWorker(tmp_path) as worker:
            found = properties.load_connector(SAMPLES / f"connect-mirror-{kind}.properties")
            worker.create(found.name, {
                **found.config, "source.cluster.bootstrap.servers": log.bootstrap, "target.cluster.bootstrap.servers": worker.bootstrap,
            })  # fmt: skip
            wait_for(lambda: worker.states(found.name)[0] == "RUNNING")
            target = AdminClient({"bootstrap.servers": worker.bootstrap})
            wait_for(lambda: seen in target.list_topics(timeout=10).topics)
    finally:
        log.stop()


def test_passwords_of_clusters_are_hidden(tmp_path):
    with LocalWorker(tmp_path) as worker:
        worker.create("hidden", {
            "connector.class": "MirrorHeartbeat", "source.cluster.alias": "a", "emit.heartbeats.enabled": "false",
            "target.cluster.bootstrap.servers": worker.bootstrap, "source.cluster.sasl.jaas.config": "s3cret", "target.admin.ssl.key.password": "s3cret",
        })  # fmt: skip
        shown = worker.herder.config("hidden")
        assert "s3cret" not in str(shown) and shown["source.cluster.sasl.jaas.config"] == "[hidden]"


def test_in_transactions_each_record_is_mirrored_once_whatever_restarts(tmp_path):
    log = EmbeddedLog(tmp_path / "source", "127.0.0.1:0")
    log.start()
    try:
        for count in (20, 40):
            with LocalWorker(tmp_path, exactly__once__source__support="enabled", offset__storage__partitions="1") as worker:
                ways = Ways(log.bootstrap, worker)
                ways.alias, ways.topic = "a", "t"
                if count == 20:
                    ways.make(partitions=1)
                # Again after the restart: the worker's log has another port then.
                ways.mirror("Source", **{"source.consumer.isolation.level": "read_committed", "exactly.once.support": "required"})
                ways.write([(0, None, b"%d" % n, None, 1) for n in range(count - 20, count)])
                wait_for(lambda ways=ways, count=count: len(committed(ways.target, "a.t")) >= count)
                assert committed(ways.target, "a.t") == [b"%d" % n for n in range(count)]
                (*_, last) = everything(ways.target, "connect-offsets")
                assert last == (b'["Source-a",{"cluster":"a","topic":"t","partition":0}]', b'{"offset":%d}' % (count - 1))
    finally:
        log.stop()
