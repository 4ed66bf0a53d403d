"""Clients of the two clusters, configured by MirrorMaker 2's keys.

    source.cluster.X    all clients of the source cluster       target.cluster.X    all of the target
    consumer.X          consumers of both sides, overridden by source.consumer.X; likewise producer. and admin.
    security.protocol, ssl.X, sasl.X    both clusters, overridden by the above
"""

import threading

from connectors.mirror.keys import BASE
from standalone import ByteColumn
from standalone.log import SYSTEM, Admin, AdminConfig, Clusters, Consumer, ConsumerConfig, Producer, ProducerConfig, Records

_SHARED = tuple(name for name in BASE.names() if name.startswith(("ssl.", "sasl.", "security.")))
_LOOK_SECONDS = 0.5


class Clients:
    """Clients of one cluster, `side`, for one connector or task. Close it."""

    def __init__(self, config, side):
        self._config, self._side = config, side
        self._clusters = Clusters(SYSTEM)
        self._admin = None

    @property
    def admin(self):
        if self._admin is None:
            config = AdminConfig.of({**self._properties("admin"), "default.api.timeout.ms": self._config.get("admin.timeout.ms", "60000")})
            self._admin = Admin(self._clusters.get(config), config, SYSTEM)
        return self._admin

    def consumer(self, **more):
        """Return a consumer without a group; it reads from the beginning unless it seeks."""
        defaults = {"auto.offset.reset": "earliest", "enable.auto.commit": "false"}
        config = ConsumerConfig.of({**defaults, **self._properties("consumer"), **more, "allow.auto.create.topics": "false"})
        return Consumer(self._clusters.get(config), config, SYSTEM)

    def writer(self):
        config = ProducerConfig.of({**self._properties("producer"), "acks": "all"})
        return Writer(Producer(self._clusters.get(config), config, SYSTEM))

    def read_all(self, topic, seconds, done=None):
        """Return (key, value) pairs of a small topic, from its beginning to its current end; none if it does not exist.

        `done` {partition: offset} holds the end of the last call, where this call starts; it is updated.
        """
        done = {} if done is None else done
        if topic not in self.admin.list_topics(internal=True):
            return
        pairs = [(topic, number) for number in self.admin.describe_topics(topic)[topic].partitions]
        begins, ends = (self.admin.list_offsets(dict.fromkeys(pairs, at)) for at in (-2, -1))
        begins = {pair: done[pair] if begins[pair] <= done.get(pair, -1) <= ends[pair] else begins[pair] for pair in pairs}
        left = {pair for pair in pairs if begins[pair] < ends[pair]}
        if not left:
            return
        consumer = self.consumer()
        deadline = SYSTEM.monotonic() + seconds
        try:
            consumer.assign(sorted(left))
            for pair in left:
                consumer.seek(*pair, begins[pair])
            while left and SYSTEM.monotonic() < deadline:
                for _, _, records, _ in consumer.poll(_LOOK_SECONDS):
                    yield from pairs_of(records)
                done.update((pair, consumer.position(pair)) for pair in left)
                left = {pair for pair in left if done[pair] < ends[pair]}
        finally:
            consumer.close(0)

    def make_topic(self, name, partitions, replication, configs):
        """Create a topic unless it exists; return whether it was created."""
        return name not in self.admin.list_topics(internal=True) and self.admin.create_topics(name, partitions, replication, configs)

    def close(self):
        self._clusters.close()

    def _properties(self, kind):
        config = self._config
        found = {name: config[name] for name in _SHARED if config.get(name) is not None}
        for prefix in (f"{self._side}.cluster.", f"{kind}.", f"{self._side}.{kind}."):
            found.update({key[len(prefix) :]: value for key, value in config.items() if key.startswith(prefix)})
        not_the_clients = ("alias", "poll.timeout.ms") if kind == "consumer" else ("alias", "timeout.ms")
        return {key: value for key, value in found.items() if key not in not_the_clients}


class Writer:
    """Writes occasional records to one partition, with or without waiting for the acknowledgement."""

    def __init__(self, producer):
        self._producer = producer
        self._thread = threading.Thread(target=producer.run, name="mirror-writer", daemon=True)
        self._thread.start()

    def write(self, topic, partition, key, value, on_done):
        records = Records(1, keys=ByteColumn.of([key]), values=ByteColumn.of([value]))
        self._producer.send(topic, partition, records, lambda delivered: on_done(delivered.error))

    def close(self, seconds=0):
        self._producer.close(seconds)
        self._thread.join()


def pairs_of(records):
    """Return (key, value) of each record."""
    none = [None] * len(records)
    return zip(records.keys if records.keys is not None else none, records.values if records.values is not None else none)
