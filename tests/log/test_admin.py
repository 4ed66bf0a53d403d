"""The admin against the embedded log and a real Kafka."""

import uuid

import pytest

from standalone.clock import SYSTEM
from standalone.errors import LogError, LogFatalError, LogRetriableError
from standalone.log.admin import EARLIEST, LATEST, NO_OFFSET, Admin
from standalone.log.client import Cluster


@pytest.fixture(scope="module")
def admin(broker):
    config = {"bootstrap.servers": broker}
    cluster = Cluster(config, SYSTEM)
    yield Admin(cluster, config, SYSTEM)
    cluster.close()


@pytest.fixture
def topic(admin):
    """A topic of two partitions, the first with five records of the timestamps 1000 to 5000."""
    name = f"admin-{uuid.uuid4()}"
    admin.create_topics(name, 2)
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": "%s:%d" % admin._cluster.config["bootstrap.servers"][0]})
    for number in range(1, 6):
        producer.produce(name, f"v{number}", partition=0, timestamp=1000 * number)
    assert producer.flush(10) == 0
    return name


def test_a_topic_is_created_once_and_its_settings_hold(admin):
    name = f"admin-{uuid.uuid4()}"
    assert admin.create_topics(name, 3, 1, {"retention.ms": 1234, "cleanup.policy": "compact"}) is True
    assert admin.create_topics(name, 5) is False
    assert list(admin.describe_topics(name)[name].partitions) == [0, 1, 2]
    assert name in admin.list_topics()
    configs = admin.describe_configs(name)
    assert (configs["retention.ms"], configs["cleanup.policy"]) == ("1234", "compact")


def test_settings_change_one_by_one(admin, topic):
    admin.incremental_alter_configs(topic, {"retention.ms": 77, "max.message.bytes": "2000"})
    admin.incremental_alter_configs(topic, {"retention.ms": None})
    configs = admin.describe_configs(topic)
    assert (configs["retention.ms"], configs["max.message.bytes"]) == ("-1", "2000")


def test_a_deleted_topic_is_gone(admin, topic):
    admin.delete_topics(topic)
    assert topic not in admin.list_topics()
    with pytest.raises(LogRetriableError) as caught:
        admin.describe_topics(topic)
    assert caught.value.java_class == "org.apache.kafka.common.errors.UnknownTopicOrPartitionException"


@pytest.mark.parametrize(
    "partitions, replication, configs, java_class",
    [
        pytest.param(1, 3, {}, "InvalidReplicationFactorException", id="more replicas than brokers"),
        pytest.param(0, 1, {}, "InvalidPartitionsException", id="no partitions"),
        pytest.param(1, 1, {"retention.ms": "soon"}, "InvalidConfigurationException", id="a setting that is no number"),
    ],
)
def test_a_topic_that_cannot_be_created_says_why(admin, partitions, replication, configs, java_class):
    with pytest.raises(LogFatalError, match="Creating topic 'x'") as caught:
        admin.create_topics("x", partitions, replication, configs)
    assert caught.value.java_class == f"org.apache.kafka.common.errors.{java_class}"


def test_offsets_by_place_and_by_time(admin, topic):
    wanted = {(topic, 0): EARLIEST, (topic, 1): LATEST}
    assert admin.list_offsets(wanted) == {(topic, 0): 0, (topic, 1): 0}
    assert admin.list_offsets({(topic, 0): LATEST}) == {(topic, 0): 5}
    assert admin.list_offsets({(topic, 0): 2500}) == {(topic, 0): 2}
    assert admin.list_offsets({(topic, 0): 6000}) == {(topic, 0): NO_OFFSET}


def test_records_are_deleted_before_an_offset(admin, topic):
    assert admin.delete_records({(topic, 0): 3}) == {(topic, 0): 3}
    assert admin.list_offsets({(topic, 0): EARLIEST}) == {(topic, 0): 3}
    assert admin.delete_records({(topic, 0): LATEST}) == {(topic, 0): 5}


def test_an_unknown_partition_is_named(admin, topic):
    with pytest.raises(LogError, match=f"{topic}-9"):
        admin.list_offsets({(topic, 9): LATEST})


def test_offsets_of_a_group_are_set_read_and_forgotten(admin, topic):
    group = f"group-{uuid.uuid4()}"
    assert admin.group_offsets(group) == {}
    admin.alter_group_offsets(group, {(topic, 0): 4, (topic, 1): 0})
    assert admin.group_offsets(group) == {(topic, 0): 4, (topic, 1): 0}
    assert admin.group_offsets(group, [(topic, 0)]) == {(topic, 0): 4}
    assert admin.list_groups()[group] == "Empty"
    admin.delete_group_offsets(group, [(topic, 1)])
    assert admin.group_offsets(group) == {(topic, 0): 4}
    admin.delete_group(group)
    assert group not in admin.list_groups()
    assert admin.describe_group(group).state == "Dead"


def test_a_static_member_is_seen_and_removed(admin, topic, broker):
    from confluent_kafka import Consumer

    group = f"group-{uuid.uuid4()}"
    consumer = Consumer({"bootstrap.servers": broker, "group.id": group, "group.instance.id": "one", "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    try:
        assert consumer.poll(20) is not None
        found = admin.describe_groups(group)[group]
        assert (found.state, [member.instance_id for member in found.members]) == ("Stable", ["one"])
        with pytest.raises(LogFatalError, match="Deleting group") as caught:
            admin.delete_group(group)
        assert caught.value.java_class == "org.apache.kafka.common.errors.GroupNotEmptyException"
        admin.remove_members(group, ["one", "never there"])
        assert admin.describe_group(group).members == []
    finally:
        consumer.close()
