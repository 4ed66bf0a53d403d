"""The test kit's worker with file connectors available, and a stock client to look at its topics."""

import time

from confluent_kafka import Consumer, KafkaError, TopicPartition

from standalone import local_worker
from standalone.local_worker import STRING, wait_for  # noqa: F401
from tests.suite.patience import PATIENCE_SECONDS


class LocalWorker(local_worker.LocalWorker):
    """`values` are those that a stock client sees."""

    def source(self, name, file, topic, **config):
        return self.create(name, {"connector.class": "FileStreamSource", "file": file, "topic": topic, **config})

    def sink(self, name, file, topics, **config):
        return self.create(name, {"connector.class": "FileStreamSink", "file": file, "topics": topics, **config})

    def values(self, topic, count, seconds=PATIENCE_SECONDS):
        return values(self.bootstrap, topic, count, seconds)


def values(bootstrap, topic, count, seconds=PATIENCE_SECONDS):
    """The values of partition 0, as a stock client sees them, read to the end: exactly `count`, no more."""
    settings = {"group.id": "looks", "auto.offset.reset": "earliest", "enable.auto.commit": False, "enable.partition.eof": True}
    consumer = Consumer({"bootstrap.servers": bootstrap, **settings})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found, at_the_end, deadline = [], False, time.monotonic() + seconds
    try:
        while not (at_the_end and len(found) >= count) and time.monotonic() < deadline:
            message = consumer.poll(0.2)
            if message is None:
                continue
            at_the_end = message.error() is not None and message.error().code() == KafkaError._PARTITION_EOF
            if message.error() is None:
                found.append(message.value())
    finally:
        consumer.close()
    assert len(found) == count, f"{len(found)} records in {topic}, not {count}: {found[:5]}…"
    return found
