"""A consumer and a producer to run against a fake or real cluster, for tests of the client."""

import contextlib
import threading
import time

from standalone import wire
from standalone.clock import SYSTEM
from standalone.log.client import Cluster, Clusters
from standalone.log.client_config import ConsumerConfig, ProducerConfig
from standalone.log.consumer import Consumer
from standalone.log.heartbeats import Heartbeats
from standalone.log.producer import Producer
from tests.suite.patience import PATIENCE_SECONDS


def until(condition, what="it", seconds=PATIENCE_SECONDS):
    """Wait for a condition with a deadline."""
    deadline, event = time.monotonic() + seconds, threading.Event()
    while not (found := condition()):
        assert time.monotonic() < deadline, f"{what} did not come about"
        event.wait(0.01)
    return found


class Reader:
    """A consumer, its cluster and what it has read, offset and value, by partition."""

    def __init__(self, cluster, topic, group=None, heartbeats=None, listener=None, **settings):
        settings = {name.replace("_", "."): value for name, value in settings.items()}
        self.config = ConsumerConfig.of({"bootstrap.servers": cluster.bootstrap, "auto.offset.reset": "earliest", **settings})
        self.cluster = Cluster(self.config, SYSTEM)
        self.consumer = Consumer(self.cluster, self.config, SYSTEM, group, "one" if group else None, listener, heartbeats)
        self.found = []
        if group is None:
            self.consumer.assign([(topic, 0)])
        else:
            self.consumer.subscribe([topic])

    def read(self, count, seconds=PATIENCE_SECONDS):
        """The values of at least `count` records in all."""
        deadline = time.monotonic() + seconds
        while len(self.found) < count:
            assert time.monotonic() < deadline, self.found
            for _, _, records, _ in self.consumer.poll(0.2):
                self.found += zip(records.offsets.tolist(), list(records.values))
        return [value for _, value in self.found]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.consumer.close(0.2)
        self.cluster.close()


class Writer:
    """A producer and its thread, and what happened to each send."""

    def __init__(self, bootstrap, clusters=None, halts=False, **settings):
        settings = {name.replace("_", "."): value for name, value in settings.items()}
        self.config = ProducerConfig.of({"bootstrap.servers": bootstrap, **settings})
        self.clusters = clusters or Clusters(SYSTEM)
        self.producer = Producer(self.clusters.get(self.config), self.config, SYSTEM, halts)
        self.results = []
        self.thread = threading.Thread(target=self.producer.run)
        self.thread.start()

    def send(self, topic, values, partition=0):
        results = []
        self.producer.send(topic, partition, wire.Records(len(values), values=wire.ByteColumn.of(values)), results.append)
        self.results.append(results)
        return results

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.producer.close(0)
        self.thread.join(PATIENCE_SECONDS)
        assert not self.thread.is_alive()
        self.clusters.close()


def fill(cluster, topic, values, partition=0):
    with Writer(cluster.bootstrap) as writer:
        done = writer.send(topic, values, partition)
        until(lambda: done, "the acknowledgement")
        assert done[0].error is None


@contextlib.contextmanager
def beating():
    heartbeats = Heartbeats(SYSTEM)
    thread = threading.Thread(target=heartbeats.run)
    thread.start()
    try:
        yield heartbeats, thread
    finally:
        heartbeats.stop()
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive()
