"""What tests of error handling share: records put into a topic, and all that is in one, as stock clients do it."""

import random
import time

from confluent_kafka import Consumer, Producer, TopicPartition

from tests.suite.patience import PATIENCE_SECONDS

PREFIX = "__connect.errors."
HERE = "tests.runtime.bad_plugins"
TIME = time.time_ns() // 1_000_000


def produce(bootstrap, topic, records):
    """[(key, value, headers)] of strings into partition 0, at the times TIME, TIME + 1, …: of now, or the log would let them go"""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20})
    for at, (key, value, headers) in enumerate(records):
        producer.produce(topic, value, key, partition=0, headers=headers, timestamp=TIME + at)
        producer.poll(0)
    assert producer.flush(30) == 0


def messages(bootstrap, topic, count, seconds=PATIENCE_SECONDS):
    """The first `count` messages of partition 0; fails if there are fewer, or one more."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "looks", "auto.offset.reset": "earliest", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found, deadline = [], time.monotonic() + seconds
    try:
        while len(found) < count and time.monotonic() < deadline:
            message = consumer.poll(0.2)
            if message is not None and not message.error():
                found.append(message)
        assert len(found) == count, f"{len(found)} of {count} records in {topic}"
        _, high = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)
        assert high == count, f"{high} records in {topic}, not {count}"
    finally:
        consumer.close()
    return found


def context(message):
    """{name without prefix: text} of the headers that say what was wrong."""
    return {name[len(PREFIX) :]: value and value.decode() for name, value in message.headers() or () if name.startswith(PREFIX)}


def own_headers(message):
    return [(name, value) for name, value in message.headers() or () if not name.startswith(PREFIX)]


def half_bad(count, seed):
    """For each of so many records whether it is bad: a random half."""
    bad = set(random.Random(seed).sample(range(count), count // 2))
    return [row in bad for row in range(count)]
