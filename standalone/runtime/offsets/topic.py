"""Source offsets in a compacted topic, in the format of Connect's distributed workers: for exactly-once sources.

A record's key is ["connector",{source partition}], its value {source offset}, or null for a reset offset; both are JSON. Only offsets of
committed transactions count. For a source partition that is not in the topic, the offsets file is read: so a connector that switches to
transactions continues where it was. Offsets in the topic are also copied to the file, for a worker that stops using transactions.
"""

import logging
import threading

import orjson

from standalone.connector import OffsetReader
from standalone.errors import ConnectError
from standalone.log.client_config import ConsumerConfig, ProducerConfig
from standalone.log.consumer import Consumer
from standalone.log.producer import Producer
from standalone.wire import ByteColumn, Records

log = logging.getLogger(__name__)

_LOOK_SECONDS = 0.5
_LONGEST_READ_SECONDS = 120.0  # open transactions of other producers may have to end first
_WRITE_SECONDS = 30.0
_ABSENT = object()


class OffsetsTopic:
    """Of one connector; `clients` creates clients from its configuration. Thread-safe."""

    def __init__(self, topic, connector, clients, file, clock, partitions, replication):
        self.topic = topic
        self._connector = connector
        self._clients = clients
        self._file = file
        self._clock = clock
        self._shape = partitions, replication
        self._found = None  # canonical partition -> (partition, offset or None)
        self._lock = threading.Lock()

    # ---------------------------------------------------------------- reading
    def load(self):
        """Read the topic again; create it if it does not exist."""
        found = self._read()
        with self._lock:
            self._found = found

    def get(self, connector, partition):
        self._loaded()
        with self._lock:
            _, offset = self._found.get(canonical(partition), (None, _ABSENT))
        return self._file.get(connector, partition) if offset is _ABSENT else offset

    def all(self, connector):
        """[(source partition, source offset), …], read now."""
        self.load()
        entries = {canonical(partition): (partition, offset) for partition, offset in self._file.all(connector)}
        with self._lock:
            entries.update(self._found)
        return [(partition, offset) for partition, offset in entries.values() if offset is not None]

    def reader(self, connector):
        return _Reader(self, connector)

    def _loaded(self):
        if self._found is None:
            self.load()

    def _read(self):
        admin = self._clients.admin(self._connector)
        partitions, replication = self._shape
        if self.topic not in admin.list_topics(internal=True):
            if admin.create_topics(self.topic, partitions, replication, {"cleanup.policy": "compact"}):
                log.info("Created topic %s for source offsets", self.topic)
        pairs = [(self.topic, number) for number in admin.describe_topics(self.topic)[self.topic].partitions]
        ends = admin.list_offsets(dict.fromkeys(pairs, -1))  # includes open transactions: they must be committed or aborted before all is read
        begins = admin.list_offsets(dict.fromkeys(pairs, -2))
        found = {}
        left = {pair for pair in pairs if ends[pair] > begins[pair]}
        if left:
            self._read_to(ends, begins, left, found)
        return found

    def _read_to(self, ends, begins, left, found):
        own = {"auto.offset.reset": "earliest", "isolation.level": "read_committed", "allow.auto.create.topics": "false"}
        given = self._clients.properties("consumer", self._connector)
        config = ConsumerConfig.of({**{key: value for key, value in given.items() if not key.startswith("group.")}, **own})
        consumer = Consumer(self._clients.cluster(config), config, self._clock)
        deadline = self._clock.monotonic() + _LONGEST_READ_SECONDS
        try:
            consumer.assign(sorted(left))
            for pair in left:
                consumer.seek(*pair, begins[pair])
            while left:
                for _, _, records, _ in consumer.poll(_LOOK_SECONDS):
                    self._take(records, found)
                left = {pair for pair in left if consumer.position(pair) < ends[pair]}
                if left and self._clock.monotonic() > deadline:
                    raise ConnectError(
                        f"The topic {self.topic} of source offsets could not be read to its end within {_LONGEST_READ_SECONDS:.0f} s: another "
                        "producer has an open transaction in it. Restart the task once that transaction has ended (transaction.timeout.ms)."
                    )
        finally:
            consumer.close(0)

    def _take(self, records, found):
        for key, value in zip(records.keys or (), records.values or [None] * len(records)):
            try:
                connector, partition = orjson.loads(key)
                offset = None if value is None else orjson.loads(value)
            except (ValueError, TypeError):
                log.warning("The topic %s of source offsets holds a record that is not an offset; it is skipped", self.topic)
                continue
            if connector == self._connector["name"]:
                found[canonical(partition)] = partition, offset

    # ---------------------------------------------------------------- writing
    def send(self, producer, connector, entries, on_done):
        """Send offsets within the producer's transaction."""
        producer.send(self.topic, None, offset_records(connector, entries), on_done)

    def committed(self, connector, entries):
        """The transaction with these offsets is committed."""
        with self._lock:
            for partition, offset in entries:
                self._found[canonical(partition)] = partition, offset
        try:
            self._file.append(connector, entries)
        except ConnectError as error:
            log.warning("The offsets are in topic %s, but not in the file for a worker without exactly-once: %s", self.topic, error)

    def append(self, connector, entries):
        """Set offsets on an operator's request; the connector is stopped."""
        self._loaded()
        config = ProducerConfig.of(self._clients.properties("producer", self._connector, {"client.id": f"offsets-{connector}"}))
        producer = Producer(self._clients.cluster(config), config, self._clock)
        thread = threading.Thread(target=producer.run, name=f"offsets-{connector}", daemon=True)
        thread.start()
        outcome = []
        try:
            producer.send(self.topic, None, offset_records(connector, entries), outcome.append)
            delivered = producer.flush(_WRITE_SECONDS)
        finally:
            producer.close(0)
            thread.join()
        if not delivered or outcome[0].error is not None:
            why = f": {outcome[0].error}" if outcome and outcome[0].error is not None else f" within {_WRITE_SECONDS:.0f} s"
            raise ConnectError(f"The offsets of connector '{connector}' could not be written to topic {self.topic}{why}")
        self.committed(connector, entries)

    def sync(self):
        """Acknowledged offsets are durable in the log; sync the file too."""
        return self._file.sync()


class _Reader(OffsetReader):
    def __init__(self, store, connector):
        self._store, self._name = store, connector

    def offset(self, partition):
        return self._store.get(self._name, partition)


def offset_records(connector, entries):
    """Source offsets in Connect's format: key ["connector",{partition}], value {offset} or null."""
    try:
        keys = [orjson.dumps([connector, partition]) for partition, _ in entries]
        values = [None if offset is None else orjson.dumps(offset) for _, offset in entries]
    except TypeError as error:
        raise ConnectError(
            f"A source offset of connector '{connector}' cannot be stored: {error}. "
            "Partitions and offsets must be dicts of strings, numbers and booleans."
        ) from error
    return Records(len(entries), keys=ByteColumn.of(keys), values=ByteColumn.of(values))


def canonical(partition):
    return orjson.dumps(partition, option=orjson.OPT_SORT_KEYS)
