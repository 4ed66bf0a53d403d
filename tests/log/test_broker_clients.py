"""Stock clients against the embedded log: confluent-kafka, kafka-python, kcat and Java's console tools."""

import os
import shutil
import subprocess
import time

import kafka
import pytest
from kafka.admin import ConfigResource, ConfigResourceType

from standalone.log.broker.server import EmbeddedLog
from tests.log.broker_clients import wait_for
from tests.suite.patience import PATIENCE_SECONDS

confluent_kafka = pytest.importorskip("confluent_kafka")
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic  # noqa: E402

COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    log = EmbeddedLog(tmp_path_factory.mktemp("log"), "127.0.0.1:0")
    log.start()
    yield log
    log.stop()


@pytest.fixture
def topic(log, request):
    """A topic of one partition for this test."""
    name = request.node.name.replace("[", "-").replace("]", "")
    make_topic(log, name, 1)
    return name


def make_topic(log, name, partitions):
    client = AdminClient({"bootstrap.servers": log.bootstrap})
    client.create_topics([NewTopic(name, partitions)])[name].result(PATIENCE_SECONDS)


# --- confluent-kafka (librdkafka)


def produced(log, topic, values, **config):
    producer = confluent_kafka.Producer({"bootstrap.servers": log.bootstrap, **config})
    failures = []
    for value in values:
        producer.produce(topic, value, on_delivery=lambda error, _: error and failures.append(error))
    assert producer.flush(20) == 0 and not failures


def consumed(log, topic, count, group="g", **config):
    """The values, and the consumer, which is still a member."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": log.bootstrap, "group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False, **config}
    )
    consumer.subscribe([topic])
    return [message.value() for message in _messages([consumer], count)], consumer


def _messages(consumers, count, seconds=PATIENCE_SECONDS):
    found, deadline = [], time.monotonic() + seconds
    while len(found) < count:
        assert time.monotonic() < deadline, f"{len(found)} of {count} messages after {seconds} s"
        for consumer in consumers:
            for message in consumer.consume(10_000, 0.05):
                assert not message.error(), message.error()
                found.append(message)
    return found


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_librdkafka_writes_and_reads_every_compression(log, topic, compression):
    values = [b"%d %s" % (n, b"text " * 20) for n in range(2000)]
    produced(log, topic, values, **{"enable.idempotence": True, "compression.type": compression, "linger.ms": 20})
    found, consumer = consumed(log, topic, len(values))
    consumer.close()
    assert found == values


def test_librdkafka_writes_messages_of_any_size(log, topic):
    values = [os.urandom(size) for size in (0, 1, 1000, 65_536, 900_000)] * 3
    produced(log, topic, values, **{"enable.idempotence": True, "linger.ms": 0})
    found, consumer = consumed(log, topic, len(values))
    consumer.close()
    assert found == values


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_two_librdkafka_consumers_share_a_group(log, strategy):
    name = f"shared-{strategy}"
    make_topic(log, name, 4)
    config = {
        "bootstrap.servers": log.bootstrap,
        "group.id": name,
        "auto.offset.reset": "earliest",
        "partition.assignment.strategy": strategy,
        "topic.metadata.refresh.interval.ms": 500,
        "heartbeat.interval.ms": 100,
    }
    consumers = [confluent_kafka.Consumer(config) for _ in range(2)]
    for consumer in consumers:
        consumer.subscribe([name])

    def both_have_two():
        for consumer in consumers:
            assert consumer.poll(0.05) is None
        return all(len(consumer.assignment()) == 2 for consumer in consumers)

    wait_for(both_have_two)
    producer = confluent_kafka.Producer({"bootstrap.servers": log.bootstrap})
    for number in range(400):
        producer.produce(name, b"%d" % number, partition=number % 4)
    producer.flush(10)
    found = _messages(consumers, 400)
    assert sorted(int(message.value()) for message in found) == list(range(400))
    consumers[0].close()  # commits and leaves: the other takes all four

    def the_other_has_four():
        message = consumers[1].poll(0.05)
        assert message is None, message.error() or f"{message.value()} came twice"
        return len(consumers[1].assignment()) == 4

    wait_for(the_other_has_four)
    consumers[1].close()


def test_a_librdkafka_consumer_goes_on_where_its_group_was(log, topic):
    produced(log, topic, [b"%d" % n for n in range(10)])
    found, consumer = consumed(log, topic, 10, topic)
    consumer.commit(asynchronous=False)
    consumer.close()
    produced(log, topic, [b"next"])
    found, consumer = consumed(log, topic, 1, topic)
    consumer.close()
    assert found == [b"next"]


def test_a_static_librdkafka_member_that_died_has_its_partitions_again_at_once(log, topic):
    produced(log, topic, [b"first"])
    config = {"group.instance.id": "one", "session.timeout.ms": 45_000}
    found, dead = consumed(log, topic, 1, topic, **config)
    begun = time.monotonic()
    produced(log, topic, [b"second"])
    found, consumer = consumed(log, topic, 2, topic, **config)  # the dead one never left
    assert found == [b"first", b"second"] and time.monotonic() - begun < 30
    consumer.close()
    dead.close()


def test_librdkafka_admin(log, topic):
    client = AdminClient({"bootstrap.servers": log.bootstrap})
    assert topic in client.list_topics(timeout=10).topics
    client.create_partitions([NewPartitions(topic, 3)])[topic].result(PATIENCE_SECONDS)
    assert len(client.list_topics(topic, timeout=10).topics[topic].partitions) == 3
    with pytest.raises(confluent_kafka.KafkaException, match="exists already"):
        client.create_topics([NewTopic(topic, 1)])[topic].result(PATIENCE_SECONDS)
    with pytest.raises(confluent_kafka.KafkaException, match="single node"):
        client.create_topics([NewTopic("replicated", 1, replication_factor=3)])["replicated"].result(PATIENCE_SECONDS)
    client.delete_topics([topic])[topic].result(PATIENCE_SECONDS)
    assert topic not in client.list_topics(timeout=10).topics
    assert client.describe_cluster().result(PATIENCE_SECONDS).controller.id == 1


def test_librdkafka_looks_at_groups_and_deletes_them(log, topic):
    produced(log, topic, [b"v"])
    _, consumer = consumed(log, topic, 1, topic)
    consumer.commit(asynchronous=False)
    client = AdminClient({"bootstrap.servers": log.bootstrap})
    described = client.describe_consumer_groups([topic])[topic].result(PATIENCE_SECONDS)
    assert described.state.name == "STABLE" and len(described.members) == 1
    assert described.members[0].assignment.topic_partitions[0].topic == topic
    consumer.close()
    wait_for(lambda: client.describe_consumer_groups([topic])[topic].result(PATIENCE_SECONDS).state.name == "EMPTY")
    assert topic in {group.group_id for group in client.list_consumer_groups().result(PATIENCE_SECONDS).valid}
    client.delete_consumer_groups([topic])[topic].result(PATIENCE_SECONDS)
    assert topic not in {group.group_id for group in client.list_consumer_groups().result(PATIENCE_SECONDS).valid}


# --- kafka-python


def test_kafka_python_writes_and_reads(log, topic):
    producer = kafka.KafkaProducer(bootstrap_servers=log.bootstrap, acks="all", compression_type="gzip")
    for number in range(500):
        producer.send(topic, key=b"k", value=b"%d" % number, headers=[("h", b"1")], timestamp_ms=10**12 + number)
    producer.close()
    consumer = kafka.KafkaConsumer(
        topic, bootstrap_servers=log.bootstrap, group_id=topic, auto_offset_reset="earliest", consumer_timeout_ms=PATIENCE_SECONDS * 1000
    )
    found = [next(consumer) for _ in range(500)]
    assert [int(record.value) for record in found] == list(range(500))
    assert (found[0].key, list(found[0].headers), found[0].timestamp) == (b"k", [("h", b"1")], 10**12)
    partition = kafka.TopicPartition(topic, 0)
    assert consumer.offsets_for_times({partition: 10**12 + 250})[partition].offset == 250
    assert consumer.beginning_offsets([partition]) == {partition: 0} and consumer.end_offsets([partition]) == {partition: 500}
    consumer.commit()
    consumer.close()
    assert kafka.KafkaAdminClient(bootstrap_servers=log.bootstrap).list_group_offsets(topic)[topic][partition].offset == 500


def test_kafka_python_admin(log):
    client = kafka.KafkaAdminClient(bootstrap_servers=log.bootstrap)
    client.create_topics({"by-kafka-python": {"num_partitions": 2, "replication_factor": 1, "configs": {"retention.ms": "60000"}}})
    assert "by-kafka-python" in client.list_topics()
    resource = ConfigResource(ConfigResourceType.TOPIC, "by-kafka-python")
    assert "60000" in str(client.describe_configs([resource]))
    client.alter_configs([ConfigResource(ConfigResourceType.TOPIC, "by-kafka-python", configs={"retention.ms": "70000"})])
    assert "70000" in str(client.describe_configs([resource]))
    client.delete_topics(["by-kafka-python"])
    assert "by-kafka-python" not in client.list_topics()
    client.close()


# --- kcat


def test_kcat(log, topic):
    if not shutil.which("kcat"):
        pytest.skip("kcat is not installed")
    lines = "".join(f"{n} line\n" for n in range(1000))
    run = {"text": True, "capture_output": True, "timeout": 30, "check": True}
    subprocess.run(["kcat", "-b", log.bootstrap, "-P", "-t", topic, "-z", "lz4"], input=lines, **run)
    read = subprocess.run(["kcat", "-b", log.bootstrap, "-C", "-t", topic, "-e", "-q"], **run)
    assert read.stdout == lines
    grouped = subprocess.run(["kcat", "-b", log.bootstrap, "-G", f"kcat-{topic}", "-X", "auto.offset.reset=earliest", "-c", "1000", "-q", topic], **run)
    assert grouped.stdout == lines
    listed = subprocess.run(["kcat", "-b", log.bootstrap, "-L"], **run)
    assert f'topic "{topic}" with 1 partitions' in listed.stdout


# --- Java's console tools


@pytest.mark.kafka
def test_javas_console_tools(log, java):
    tools = "org.apache.kafka.tools"
    server = ("--bootstrap-server", log.bootstrap)
    topics, groups = f"{tools}.TopicCommand", f"{tools}.consumer.group.ConsumerGroupCommand"
    lines = "".join(f"{n} line\n" for n in range(1000))

    assert "Created topic java" in java(topics, *server, "--create", "--topic", "java", "--partitions", "2", "--config", "retention.ms=100000")
    described = java(topics, *server, "--describe", "--topic", "java")
    assert "PartitionCount: 2" in described and "retention.ms=100000" in described
    java(f"{tools}.ConsoleProducer", *server, "--topic", "java", stdin=lines)
    consume = ("--topic", "java", "--from-beginning", "--group", "java-group", "--max-messages", "1000", "--timeout-ms", "20000")
    read = java(f"{tools}.consumer.ConsoleConsumer", *server, *consume)
    assert sorted(read.splitlines()) == sorted(lines.splitlines())

    assert "java-group" in java(groups, *server, "--list")
    rows = [line.split() for line in java(groups, *server, "--describe", "--group", "java-group").splitlines() if line.startswith("java-group")]
    assert sum(int(row[3]) for row in rows) == 1000 and {row[5] for row in rows} == {"0"}  # committed, and no lag
    assert "java" in java(groups, *server, "--reset-offsets", "--to-earliest", "--execute", "--topic", "java", "--group", "java-group")
    assert "successful" in java(groups, *server, "--delete", "--group", "java-group")

    java(topics, *server, "--alter", "--topic", "java", "--partitions", "3")
    assert "PartitionCount: 3" in java(topics, *server, "--describe", "--topic", "java")
    java(topics, *server, "--delete", "--topic", "java")
    assert "java" not in java(topics, *server, "--list").split()


@pytest.mark.kafka
def test_javas_admin_tools(log, java, tmp_path):
    tools = "org.apache.kafka.tools"
    server = ("--bootstrap-server", log.bootstrap)
    java(f"{tools}.TopicCommand", *server, "--create", "--topic", "admin", "--config", "cleanup.policy=compact,delete", "--config", "segment.ms=100000")
    assert '"admin-0"' in java(f"{tools}.LogDirsCommand", *server, "--describe", "--topic-list", "admin")
    assert "LeaderId" in java(f"{tools}.MetadataQuorumCommand", *server, "describe", "--status")
    assert "No partition reassignments found" in java(f"{tools}.reassign.ReassignPartitionsCommand", *server, "--list")
    java(f"{tools}.LeaderElectionCommand", *server, "--election-type", "preferred", "--all-topic-partitions")
    assert "TransactionalId" in java(f"{tools}.TransactionsCommand", *server, "list")
    configs = "kafka.admin.ConfigCommand"
    assert "log.retention.ms" in java(configs, *server, "--describe", "--entity-type", "brokers", "--entity-name", "1", "--all")
    java(configs, *server, "--alter", "--entity-type", "topics", "--entity-name", "admin", "--add-config", "retention.ms=5")
    assert "retention.ms=5" in java(configs, *server, "--describe", "--entity-type", "topics", "--entity-name", "admin")
    java(configs, *server, "--alter", "--entity-type", "users", "--entity-name", "ann", "--add-config", "SCRAM-SHA-256=[password=secret]")
    assert "SCRAM-SHA-256" in java(configs, *server, "--describe", "--entity-type", "users", "--entity-name", "ann")


@pytest.mark.kafka
def test_javas_consumer_protocol_and_transactions(log, java):
    tools = "org.apache.kafka.tools"
    server = ("--bootstrap-server", log.bootstrap)
    java(f"{tools}.TopicCommand", *server, "--create", "--topic", "modern", "--partitions", "2")
    performance = ("--topic", "modern", "--num-records", "1000", "--record-size", "100", "--throughput", "-1", "--transactional-id", "perf")
    java(f"{tools}.ProducerPerformance", *performance, "--bootstrap-server", log.bootstrap, "--transaction-duration-ms", "200")
    consume = ("--topic", "modern", "--from-beginning", "--group", "modern-group", "--max-messages", "1000", "--timeout-ms", "30000")
    options = ("--isolation-level", "read_committed", "--command-property", "group.protocol=consumer")
    read = java(f"{tools}.consumer.ConsoleConsumer", *server, *consume, *options)
    assert len(read.splitlines()) == 1000
    groups = f"{tools}.consumer.group.ConsumerGroupCommand"
    rows = [line.split() for line in java(groups, *server, "--describe", "--group", "modern-group").splitlines() if line.startswith("modern-group")]
    assert len(rows) == 2 and {row[5] for row in rows} <= {"0", "1", "2"}  # a transaction's marker counts as lag


@pytest.mark.kafka
def test_javas_security_tools(java, tmp_path):
    users = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_root="r" user_ann="a";'
    log = EmbeddedLog(tmp_path / "log", "SASL_PLAINTEXT://127.0.0.1:0", {
        "embedded.log.sasl.jaas.config": users,
        "embedded.log.authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "embedded.log.super.users": "User:root",
    })
    log.start()

    def told(user, password, mechanism, module):
        path = tmp_path / f"{user}.properties"
        path.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\n"
                        f'sasl.jaas.config=org.apache.kafka.common.security.{module} required username="{user}" password="{password}";\n')
        return "--bootstrap-server", log.bootstrap, "--command-config", str(path)

    root = told("root", "r", "PLAIN", "plain.PlainLoginModule")
    allowed = ("--add", "--allow-principal", "User:bob", "--producer", "--topic", "java", "--resource-pattern-type", "prefixed")
    assert "WRITE" in java("org.apache.kafka.tools.AclCommand", *root, *allowed)
    assert "User:bob" in java("org.apache.kafka.tools.AclCommand", *root, "--list", "--principal", "User:bob")
    java("kafka.admin.ConfigCommand", *root, "--alter", "--entity-type", "users", "--entity-name", "bob", "--add-config", "SCRAM-SHA-512=[password=b]")
    bob = told("bob", "b", "SCRAM-SHA-512", "scram.ScramLoginModule")
    assert "Created topic java-new" in java("org.apache.kafka.tools.TopicCommand", *bob, "--create", "--topic", "java-new")
    log.stop()
