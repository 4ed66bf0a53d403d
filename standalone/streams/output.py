"""Tables of Arrow as records of a topic: at-least-once, or in transactions, exactly once per batch of a query.

A transaction holds a batch's records and a mark {query: batch number} in the compacted topic connect-query-batches. Taking over the query's
transactional id fences an earlier process of the query; the mark then shows the last complete batch. A batch that Spark repeats after a
crash is recomputed for its state, but not written twice.
"""

import logging
import threading

import numpy as np
import orjson

from standalone.clock import SYSTEM
from standalone.errors import ConnectError, LogError
from standalone.log.client_config import ProducerConfig, TransactionalConfig
from standalone.log.producer import Producer, TransactionalProducer
from standalone.streams.columns import TOPIC, Encoder
from standalone.streams.ranges import Ranges
from standalone.streams.settings import settings_of
from standalone.wire import ByteColumn, Records

log = logging.getLogger(__name__)

MARKS = "connect-query-batches"
_WRITE_SECONDS = 120.0
_LOOK_SECONDS = 0.5


class OutputTopic:
    """The output of one query. Used by one thread; another may call `close`."""

    def __init__(self, query, topic, settings, encoder, *, transactional=True, partitions=None, configs=None):
        self.topic, self.transactional = topic, transactional
        self.written = 0
        self._query, self._encoder = query, encoder
        self._clients = settings.clients
        self._shape = partitions, configs or {}
        self._producer = self._thread = None
        self._done = -1  # last written batch

    def open(self):
        """Create the topic if needed, and take over the query from its previous process."""
        make_topic(self._clients, self.topic, *self._shape)
        properties = self._clients.properties("producer", defaults={"client.id": f"connect-query-{self._query}", "linger.ms": "0"})
        if not self.transactional:
            config = ProducerConfig.of(properties)
            self._run(Producer(self._clients.cluster(config), config, SYSTEM))
            return self
        make_topic(self._clients, MARKS, 1, {"cleanup.policy": "compact"})
        config = TransactionalConfig.of({**properties, "transactional.id": f"connect-query-{self._query}"})
        self._run(TransactionalProducer(self._clients.cluster(config), config, SYSTEM))
        self._producer.init_transactions()
        self._done = self._last_mark()
        return self

    def _run(self, producer):
        self._producer = producer
        self._thread = threading.Thread(target=producer.run, name=f"query-{self._query}-producer", daemon=True)
        self._thread.start()

    def write(self, batch, table, schema):
        """Write the rows of a batch; return False if they were already written."""
        if self.transactional and batch <= self._done:
            log.info("Batch %d of query %s is in the log already", batch, self._query)
            return False
        if table.num_rows:
            self._write(batch, table, schema)
        self._done = max(self._done, batch)
        return True

    def encoded(self, table, schema):
        """Return (Records, their partitions or None) of rows."""
        return self._encoder.records(self.topic, table, schema)

    def write_rows(self, rows):
        """Write [(key, value)] as bytes; with transactions all or none."""
        keys, values = zip(*rows)
        self._send([(self.topic, None, Records(len(rows), ByteColumn.of(list(keys)), ByteColumn.of(list(values))))])
        self.written += len(rows)

    def _write(self, batch, table, schema):
        sends = [(self.topic, partition, records) for partition, records in by_partition(*self.encoded(table, schema))]
        if self.transactional:
            sends.append((MARKS, 0, _mark(self._query, batch)))
        self._send(sends)
        self.written += table.num_rows

    def _send(self, sends):
        try:
            deliver(self._producer, sends)
            if self.transactional:
                self._producer.commit_transaction()
        except LogError:
            self._abort()
            raise

    def _abort(self):
        if self.transactional:
            try:
                self._producer.abort_transaction()
            except ConnectError as error:
                log.warning("The transaction of query %s could not be aborted; the broker aborts it at its timeout: %s", self._query, error)

    def close(self):
        if self._producer is not None:
            self._producer.close(0)
            self._thread.join()
            self._producer = None

    def _last_mark(self):
        ranges = Ranges(self._clients)
        try:
            pair = (MARKS, 0)
            # Our mark may be behind another query's open transaction: wait for that.
            low, high = ranges.begins([pair])[pair], ranges.ends([pair], also_open=True)[pair]
            found = -1
            for records in ranges.read(*pair, low, high):
                for key, value in zip(records.keys or (), records.values or ()):
                    if key == self._query.encode():
                        found = -1 if value is None else orjson.loads(value)["batch"]
            return found
        finally:
            ranges.close()


def forget(query, clients):
    """Reset the mark of a terminated query: a new one with its name starts at batch 0."""
    config = ProducerConfig.of(clients.properties("producer"))
    make_topic(clients, MARKS, 1, {"cleanup.policy": "compact"})
    with running(Producer(clients.cluster(config), config, SYSTEM)) as producer:
        deliver(producer, [(MARKS, 0, Records(1, ByteColumn.of([query.encode()]), ByteColumn.of([None])))])


def write_once(options, table, schema):
    """Write a table's rows to the topic in the options, or in its column `_topic`; return when acknowledged."""
    settings, low = settings_of(options), {key.lower(): value for key, value in options.items()}
    encoder = Encoder(settings.converter("key"), settings.converter("value"), delimiter=low.get("value.delimiter"), windows=low.get("key.windowed"))
    config = ProducerConfig.of(settings.clients.properties("producer"))
    sends = []
    for topic, part in _by_topic(table, low.get("topic")):
        sends += [(topic, partition, records) for partition, records in by_partition(*encoder.records(topic, part, schema))]
    with running(Producer(settings.clients.cluster(config), config, SYSTEM)) as producer:
        deliver(producer, sends)


def write_table(settings, source, table, schema):
    """Write rows to the topic of a stream or table; return when acknowledged."""
    from standalone.streams.made import form

    special = dict(form(source))
    delimiter, windows = special.get("value.delimiter"), special.get("key.windowed")
    encoder = Encoder(settings.converter("key"), settings.converter("value"), delimiter=delimiter, windows=windows)
    config = ProducerConfig.of(settings.clients.properties("producer"))
    with running(Producer(settings.clients.cluster(config), config, SYSTEM)) as producer:
        parts = by_partition(*encoder.records(source.topic, table, schema))
        deliver(producer, [(source.topic, partition, records) for partition, records in parts])


class running:
    """`with running(producer)`: runs its thread meanwhile."""

    def __init__(self, producer):
        self._producer = producer
        self._thread = threading.Thread(target=producer.run, name="write-rows", daemon=True)

    def __enter__(self):
        self._thread.start()
        return self._producer

    def __exit__(self, *_):
        self._producer.close()
        self._thread.join()


def deliver(producer, sends):
    """Send [(topic, partition or None, Records)] and wait until all are acknowledged. Raise LogError."""
    outcomes = []
    for topic, partition, records in sends:
        producer.send(topic, partition, records, outcomes.append)
    deadline = SYSTEM.monotonic() + _WRITE_SECONDS
    while not producer.flush(_LOOK_SECONDS):
        if SYSTEM.monotonic() > deadline:
            raise LogError(f"Rows for topic {sends[0][0]} were not acknowledged within {_WRITE_SECONDS:.0f} s.")
    for outcome in outcomes:
        if outcome.error is not None:
            raise outcome.error


def make_topic(clients, topic, partitions=None, configs=None):
    """Create a topic unless it exists; by default with the broker's number of partitions."""
    admin = clients.admin({})
    if topic not in admin.list_topics(internal=True):
        if admin.create_topics(topic, -1 if partitions is None else int(partitions), -1, configs or {}):
            log.info("Created topic %s", topic)


def by_partition(records, partitions):
    """Split rows that may name their partition: (partition or None, Records)."""
    if partitions is None:
        return [(None, records)] if len(records) else []
    found = {}
    for row, partition in enumerate(partitions):
        found.setdefault(partition, []).append(row)
    return [(partition, records.take(np.array(rows))) for partition, rows in found.items()]


def _by_topic(table, topic):
    import pyarrow as pa

    if TOPIC not in table.column_names:
        return [(topic, table)]
    names = [name or topic for name in table.column(TOPIC).to_pylist()]
    return [(name, table.take(pa.array([row for row, each in enumerate(names) if each == name]))) for name in dict.fromkeys(names)]


def _mark(query, batch):
    return Records(1, ByteColumn.of([query.encode()]), ByteColumn.of([orjson.dumps({"batch": batch})]))
