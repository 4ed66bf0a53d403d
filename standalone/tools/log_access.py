"""Access to Kafka for commands: admin, reading and writing records, independent of a worker.

    with LogAccess.at("localhost:9092") as log:
        log.admin.create_topics("orders", 3)
        log.write("orders", None, records)
        for topic, partition, records in log.read({("orders", 0): (0, 100)}): …

No connector's offsets are touched: offsets are committed only if a group is given.
"""

import threading

from standalone.clock import SYSTEM
from standalone.errors import ConnectError, NotFoundError
from standalone.log.admin import EARLIEST, LATEST, Admin
from standalone.log.client import Clusters
from standalone.log.client_config import AdminConfig, ConsumerConfig, ProducerConfig
from standalone.log.consumer import Consumer
from standalone.log.heartbeats import Heartbeats
from standalone.log.producer import Producer

_API_MS = "15000"  # short, because a user is waiting
_POLL_SECONDS = 0.5
_WRITE_SECONDS = 120
_KINDS = ("admin", "producer", "consumer")


class LogAccess:
    """`clients` has Java-named properties for admin, producer and consumer. Closed by `close`, or as a context."""

    def __init__(self, clients, clock=SYSTEM):
        limits = {"default.api.timeout.ms": _API_MS}
        self._clients = {kind: {**(limits if kind != "producer" else {}), **clients[kind]} for kind in _KINDS}
        self._clock = clock
        self._clusters = Clusters(clock)
        self._admin = self._producer = None
        self._sender = None

    @classmethod
    def at(cls, bootstrap, properties=None, clock=SYSTEM):
        """Connect to an address; `properties` are client properties, such as security.*, for all three clients."""
        return cls({kind: {**(properties or {}), "bootstrap.servers": bootstrap} for kind in _KINDS}, clock)

    @classmethod
    def of_worker(cls, config, connector=None, clock=SYSTEM):
        """Connect with the client settings of a WorkerConfig and of a connector's properties."""
        return cls({kind: config.client(kind, connector) for kind in _KINDS}, clock)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self._producer is not None:
            self._producer.close(0)
            self._sender.join()
        self._clusters.close()

    @property
    def bootstrap(self):
        return self._clients["admin"]["bootstrap.servers"]

    @property
    def admin(self):
        if self._admin is None:
            config = AdminConfig.of(self._clients["admin"])
            self._admin = Admin(self._clusters.get(config), config, self._clock)
        return self._admin

    # ---------------------------------------------------------------- metadata
    def partitions(self, topic):
        """The (topic, number) pairs of a topic. Raises NotFoundError."""
        if topic not in self.admin.list_topics(internal=True):
            raise NotFoundError(f"There is no topic '{topic}' at {self.bootstrap}.")
        return [(topic, number) for number in sorted(self.admin.describe_topics(topic)[topic].partitions)]

    def ranges(self, pairs):
        """{pair: (start offset, end offset)}"""
        pairs = list(pairs)
        begins, ends = (self.admin.list_offsets(dict.fromkeys(pairs, at)) if pairs else {} for at in (EARLIEST, LATEST))
        return {pair: (begins[pair], ends[pair]) for pair in pairs}

    # ---------------------------------------------------------------- reading
    def read(self, ranges, idle_seconds=None):
        """(topic, partition, wire.Records) of {pair: (from, to)}; with `to` None forever, or until idle for idle_seconds."""
        left = {pair: span for pair, span in ranges.items() if span[1] is None or span[0] < span[1]}
        if not left:
            return
        consumer = self._consumer()
        try:
            consumer.assign(sorted(left))
            for (topic, number), (low, _) in left.items():
                consumer.seek(topic, number, low)
            idle_since = self._clock.monotonic()
            while left:
                fetched = consumer.poll(_POLL_SECONDS)
                for topic, partition, records, _ in fetched:
                    records = _before(records, ranges[topic, partition][1])
                    if len(records):
                        yield topic, partition, records
                done = {pair for pair, (_, high) in left.items() if high is not None and consumer.position(pair) >= high}
                consumer.pause(sorted(done))
                left = {pair: span for pair, span in left.items() if pair not in done}
                if fetched:
                    idle_since = self._clock.monotonic()
                elif idle_seconds is not None and self._clock.monotonic() - idle_since >= idle_seconds:
                    return
        finally:
            consumer.close(0)

    def read_as(self, group, topics, from_beginning=False, idle_seconds=None):
        """(topic, partition, records, commit) as a member of a group, until idle for idle_seconds; `commit(count)` commits the first
        `count` records."""
        heartbeats = Heartbeats(self._clock)
        thread = threading.Thread(target=heartbeats.run, name="heartbeats", daemon=True)
        thread.start()
        reset = {"auto.offset.reset": "earliest" if from_beginning else "latest"}
        config = ConsumerConfig.of({**self._clients["consumer"], **reset})
        consumer = Consumer(self._clusters.get(config), config, self._clock, group, heartbeats=heartbeats)
        try:
            consumer.subscribe(list(topics))
            idle_since = self._clock.monotonic()
            while True:
                fetched = consumer.poll(_POLL_SECONDS)
                for topic, partition, records, _ in fetched:
                    yield topic, partition, records, _committer(consumer, (topic, partition), records)
                    idle_since = self._clock.monotonic()
                if not fetched and idle_seconds is not None and consumer.assignment() and self._clock.monotonic() - idle_since >= idle_seconds:
                    return
        finally:
            consumer.close(5.0, leave=True)
            heartbeats.stop()
            thread.join()

    def _consumer(self):
        config = ConsumerConfig.of(self._clients["consumer"])
        return Consumer(self._clusters.get(config), config, self._clock)

    # ---------------------------------------------------------------- writing
    def write(self, topic, partition, records):
        """Write records and wait for the acknowledgements. partition None: by key. Raises LogError with the number written."""
        if self._producer is None:
            config = ProducerConfig.of({"acks": "all", "delivery.timeout.ms": str(_WRITE_SECONDS * 1000), **self._clients["producer"]})
            self._producer = Producer(self._clusters.get(config), config, self._clock)
            self._sender = threading.Thread(target=self._producer.run, name="send", daemon=True)
            self._sender.start()
        finished, outcome = threading.Event(), []

        def done(delivered):
            outcome.append(delivered)
            finished.set()

        self._producer.send(topic, partition, records, done)
        while not self._clock.wait(finished, _POLL_SECONDS):
            if not self._sender.is_alive():
                raise ConnectError("The producer has ended unexpectedly; in-flight records may be lost.")
        if outcome[0].error is not None:
            raise outcome[0].error


def _before(records, high):
    if high is None or not len(records) or records.offsets[-1] < high:
        return records
    return records.slice(0, int(records.offsets.searchsorted(high)))


def _committer(consumer, pair, records):
    def commit(count):
        if count:
            consumer.commit({pair: int(records.offsets[count - 1]) + 1})

    return commit


def rows(records):
    """(offset, timestamp or -1, key, value, [(header's name, bytes or None)]) of each of wire.Records."""
    count = len(records)
    keys = [None] * count if records.keys is None else records.keys
    values = [None] * count if records.values is None else records.values
    times = [-1] * count if records.timestamps is None else records.timestamps.tolist()
    headers = records.headers or [None] * count
    for offset, time, key, value, each in zip(records.offsets.tolist(), times, keys, values, headers):
        yield offset, time, key, value, list(each or ())
