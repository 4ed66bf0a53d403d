"""What a stock client finds in a topic, up to its end now: committed values alone, or every record. And how far a group has come."""

import time

from confluent_kafka import Consumer, KafkaError, TopicPartition

from standalone.tools.log_access import LogAccess
from tests.suite.patience import PATIENCE_SECONDS


def committed(bootstrap, topic, partitions=1):
    """The values that a reader of committed records meets, partition by partition."""
    return [value for _, value in _read(bootstrap, topic, "read_committed", partitions)]


def everything(bootstrap, topic, partitions=1):
    """(key, value) of all records, also of aborted and open transactions."""
    return _read(bootstrap, topic, "read_uncommitted", partitions)


def group_offsets(bootstrap, group):
    """{(topic, partition): offset} that the group has committed; nothing of a group that there is not.

    librdkafka's admin client ends the process with a segmentation fault where the broker says that it is not the group's coordinator, as a
    fresh one does in its first moments (librdkafka#5040, in 2.14 still): it is not asked.
    """
    with LogAccess.at(bootstrap) as log:
        return log.admin.group_offsets(group)


def _read(bootstrap, topic, isolation, partitions):
    consumer = Consumer({
        "bootstrap.servers": bootstrap, "group.id": "looks", "enable.auto.commit": False, "isolation.level": isolation,
        "enable.partition.eof": True, "auto.offset.reset": "earliest", "fetch.wait.max.ms": 20, "log_level": 0,
    })  # fmt: skip
    found = []
    try:
        known = consumer.list_topics(topic, PATIENCE_SECONDS).topics[topic]
        if known.error is not None:
            return []
        for partition in range(partitions):
            consumer.assign([TopicPartition(topic, partition, 0)])
            deadline = time.monotonic() + PATIENCE_SECONDS
            while True:
                assert time.monotonic() < deadline, f"{topic}-{partition} was not read to its end"
                message = consumer.poll(0.2)
                if message is None:
                    continue
                if message.error() is None:
                    found.append((message.key(), message.value()))
                elif message.error().code() == KafkaError._PARTITION_EOF:
                    break
    finally:
        consumer.close()
    return found
