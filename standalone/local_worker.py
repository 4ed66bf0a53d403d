"""The test kit's worker: a whole worker in the test's process, with an embedded log on a free port, without Spark.

    with LocalWorker(tmp_path) as worker:
        records = worker.run_source({"connector.class": "FileStreamSource", "topic": "logs"}, lines=["foo", "bar"])
        worker.run_sink({"connector.class": "FileStreamSink", "file": "out", "topics": "logs"}, [b"one", b"two"])

`standalone.testing` exports all of it, `standalone.pytest_plugin` provides fixtures. Heavy imports are deferred.
"""

import atexit
import collections
import contextlib
import functools
import os
import threading
import time

STRING = "org.apache.kafka.connect.storage.StringConverter"
PATIENCE_SECONDS = float(os.environ.get("CONNECT_TEST_PATIENCE", 15))  # increase it on slow machines
_LOOK_SECONDS = 0.005
_QUIET_SECONDS = 0.05  # in which no further record may arrive

LogRecord = collections.namedtuple("LogRecord", "topic partition offset timestamp key value headers")
LogRecord.__doc__ = """A record in the log: key, value and headers ([(name, value)]) are bytes or None, timestamp is in ms or -1."""


def wait_for(condition, seconds=PATIENCE_SECONDS, what=""):
    """Wait until the condition returns a true value, and return it; AssertionError on timeout, with `what` or what that returns then."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() >= deadline:
            raise AssertionError(f"timed out after {seconds} s waiting for {what() if callable(what) else what or condition}")
        time.sleep(_LOOK_SECONDS)
    return found


def apply_transforms(config, record, spark=None):
    """Apply the transforms in a connector's properties: returns the record, None if it is dropped, or a list of several records.

    Takes the keys of the connector's file: `transforms`, `transforms.ALIAS.*`, `predicates`… Configuration errors are raised as one
    ConfigError; a transform's exceptions are raised unchanged. Sql runs in the session of the SessionHolder `spark`; without one, a
    session is started for the rest of the process.
    """
    from standalone.data.record import SinkRecord
    from standalone.plugins import Plugins
    from standalone.runtime.configuration.connector_config import ConnectorConfig

    kind = ("FileStreamSink", "topics") if isinstance(record, SinkRecord) else ("FileStreamSource", "topic")
    props = {"name": "tested", "connector.class": kind[0], "file": "unused", kind[1]: "unused", **config}
    records = [record]
    for link in ConnectorConfig.of(props, Plugins()).links():
        _, transform, predicate, negate = link.build()
        try:
            records = _applied(transform, predicate, negate, records, spark)
        finally:
            transform.close()
    return records if len(records) > 1 else records[0] if records else None


def _applied(transform, predicate, negate, records, spark):
    from standalone.pipeline.rows.engine import listed
    from standalone.pipeline.spark.sql import Query
    from standalone.stage import QueryTransform

    is_query = isinstance(transform, QueryTransform)
    apply = Query(transform.statement, spark or _own_spark()).record if is_query else transform.apply
    made = []
    for record in records:
        is_for_others = predicate is not None and bool(predicate.test(record)) is bool(negate)
        made += [record] if is_for_others else listed(apply(record))
    return made


@functools.cache
def _own_spark():
    from standalone.pipeline.spark.session import SessionHolder

    holder = SessionHolder(archive_after_seconds=None)
    atexit.register(holder.stop)
    holder.request()
    return holder


@contextlib.contextmanager
def failing(owner, method, error, times=1):
    """In this context the first `times` calls of a class's method raise the error; None: all calls."""
    original, left, lock = getattr(owner, method), [times], threading.Lock()

    def wrapped(*arguments, **named):
        with lock:
            fails = left[0] is None or left[0] > 0
            if fails and left[0] is not None:
                left[0] -= 1
        if fails:
            raise error
        return original(*arguments, **named)

    own = owner.__dict__.get(method)
    setattr(owner, method, wrapped)
    try:
        yield
    finally:
        if own is None:
            delattr(owner, method)
        else:
            setattr(owner, method, own)


class LocalWorker:
    """`with LocalWorker(folder) as worker:`; reusing the folder is a restart.

    Keyword arguments are worker properties, with two underscores for a dot. Both converters default to StringConverter.
    """

    def __init__(self, folder, **props):
        self.folder = folder
        self.props = {
            "bootstrap.servers": "embedded",
            "embedded.log.listener": "127.0.0.1:0",
            "embedded.log.retention.ms": "-1",  # tests use arbitrary timestamps; retention must not delete the records
            "listeners": "http://127.0.0.1:0",
            "embedded.registry.listener": "127.0.0.1:0",
            "key.converter": STRING,
            "value.converter": STRING,
            "offset.storage.file.filename": str(folder / "connect.offsets"),
            "offset.flush.interval.ms": "200",
            "spark.start": "lazy",
            "pipeline.engine": "rows",
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",  # the C2 compiler takes longer than it saves in a test
            **_keys(props),
        }
        self.files = []  # connector and statement files, as on the command line
        self.process = None
        self._client = None

    def __enter__(self):
        from standalone.runtime.process import Process

        self.process = Process()
        try:
            self.process.open(self.props)
        except BaseException:
            self.process.close()
            raise
        self.process.worker.session.archive_after_seconds = None  # short-lived workers would start the archive each time and never finish it
        self._opened()
        self.process.create_connectors(self.files)
        self._client = _LogClient(self.process.worker.log_settings({}))
        return self

    def _opened(self):
        """Start the worker without connectors."""

    def __exit__(self, *_):
        self._client.close()
        self.process.close()

    @property
    def herder(self):
        return self.process.herder

    @property
    def bootstrap(self):
        """Bootstrap servers for any Kafka client."""
        return self.process.worker.bootstrap

    # --- Connectors ----------------------------------------------------------------------------------------------------

    def create(self, name, config):
        """Create a connector like POST /connectors. Raises ConfigError with all errors."""
        return self.herder.create(name, _keys(config))

    def states(self, name):
        """The states of the connector and of each task."""
        status = self.herder.status(name)
        return [status["connector"]["state"]] + [task["state"] for task in status["tasks"]]

    def wait_states(self, name, *states, seconds=PATIENCE_SECONDS):
        wait_for(lambda: self.states(name) == list(states), seconds, lambda: f"{name} to be {states}, not {self.states(name)}")

    def trace(self, name):
        """Why the connector or one of its tasks FAILED, or None."""
        status = self.herder.status(name)
        return next((part["trace"] for part in (status["connector"], *status["tasks"]) if part["state"] == "FAILED"), None)

    def run_source(self, config, lines=None, count=None, topic=None, seconds=PATIENCE_SECONDS):
        """Run a source connector, delete it, and return the LogRecords that it published.

        `lines` are written to a file for its key `file`; the same number of records is expected unless `count` is given. The topic is
        that of its key `topic` unless `topic` is given.
        """
        config = _keys(config)
        name, topic = config.setdefault("name", "tested"), topic or config["topic"]
        if lines is not None:
            path = self.folder / f"{name}.lines"
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
            config["file"] = str(path)
            count = len(lines) if count is None else count
        before = self._count(topic)
        with self._running(name, config):
            found = self.records(topic, before + count, seconds, failed=lambda: self.trace(name))[before:]
        more = self._count(topic) - before - count
        assert not more, f"the connector published {more} records more than the expected {count}"
        return found

    def run_sink(self, config, messages, seconds=PATIENCE_SECONDS):
        """Run a sink connector until it has committed the offsets of all messages, then delete it.

        `messages` are sent to the first of its `topics`: values (bytes or str), (key, value) pairs, or LogRecords.
        """
        config = _keys(config)
        name, topic = config.setdefault("name", "tested"), config["topics"].split(",")[0].strip()
        self.send(topic, messages)
        with self._running(name, config):
            self.wait_committed(name, topic, seconds)

    def wait_committed(self, name, topic, seconds=PATIENCE_SECONDS):
        """Wait until a sink has committed the end offsets of the topic; fails early if it is FAILED."""
        ends = self._client.ends(topic)
        wait_for(lambda: self._fail_with(self.trace(name)) or self._committed(name, topic) == ends, seconds, f"{name} to commit {ends}")

    @contextlib.contextmanager
    def _running(self, name, config):
        self.create(name, config)
        try:
            yield
        finally:
            self.herder.delete(name)

    def _committed(self, name, topic):
        known = {}
        for entry in self.herder.offsets(name):
            if entry["partition"]["kafka_topic"] == topic:
                known[entry["partition"]["kafka_partition"]] = entry["offset"]["kafka_offset"]
        return known

    @staticmethod
    def _fail_with(trace):
        assert trace is None, f"the connector failed:\n{trace}"

    # --- The log -------------------------------------------------------------------------------------------------------

    def send(self, topic, messages):
        """Write to a topic, which is created if missing: values (bytes or str), (key, value) pairs, or LogRecords."""
        self._client.send(topic, [_message(topic, each) for each in messages])

    def records(self, topic, count, seconds=PATIENCE_SECONDS, failed=lambda: None):
        """Wait for `count` LogRecords in a topic and return them by partition and offset. AssertionError if there are more, or if one more
        arrives soon. Fails early if `failed()` returns a reason.
        """
        return self._client.read(topic, count, seconds, lambda: self._fail_with(failed()))

    def all_records(self, topic):
        """All LogRecords currently in the topic, by partition and offset, including duplicates."""
        return self._client.read_all(topic)

    def _count(self, topic):
        return self._client.count(topic)

    def values(self, topic, count, seconds=PATIENCE_SECONDS):
        """The values of these records."""
        return [record.value for record in self.records(topic, count, seconds)]

    @contextlib.contextmanager
    def log_outage(self):
        """In this context the embedded log is down; afterwards it is up again with its data."""
        log = self.process.worker._embedded
        log.stop()
        try:
            yield
        finally:
            log.start()

    @contextlib.contextmanager
    def log_refusing(self, times=None, for_good=False):
        """In this context the embedded log rejects records, with a retriable or a fatal error."""
        from standalone.log.broker.partitions import Partition
        from standalone.log.broker.refusal import Refusal, codes

        kind = codes.TopicAuthorizationFailedError if for_good else codes.NotEnoughReplicasError
        with failing(Partition, "_check", Refusal(kind, "refused by a test"), times):
            yield


def _keys(config):
    return {key.replace("__", "."): str(value) for key, value in config.items()}


def _message(topic, item):
    if isinstance(item, LogRecord):
        return item
    key, value = item if isinstance(item, tuple) else (None, item)
    return LogRecord(topic, None, None, -1, _bytes(key), _bytes(value), [])


def _bytes(item):
    return item.encode() if isinstance(item, str) else item


def read_all(bootstrap, topic):
    """All LogRecords currently in a topic of any log; an empty list if the topic does not exist."""
    client = _LogClient({"bootstrap.servers": bootstrap})
    try:
        return client.read_all(topic)
    finally:
        client.close()


class _LogClient:
    """Writes to the log and reads it, with the worker's own client."""

    def __init__(self, settings):
        from standalone.clock import SYSTEM
        from standalone.log.client import Clusters

        self._clock = SYSTEM
        self._clusters = Clusters(SYSTEM)
        self._props = dict(settings)

    def close(self):
        self._clusters.close()

    def send(self, topic, messages):
        import numpy as np

        from standalone.log.client_config import ProducerConfig
        from standalone.log.producer import Producer
        from standalone.wire import ByteColumn, Records

        config = ProducerConfig.of(self._props)
        producer = Producer(self._clusters.get(config), config, self._clock)
        self._admin().create_topics(topic)
        delivered = []
        sender = threading.Thread(target=producer.run, daemon=True)
        sender.start()
        for partition in dict.fromkeys(message.partition for message in messages):
            some = [message for message in messages if message.partition == partition]
            records = Records(
                len(some),
                ByteColumn.of([message.key for message in some]),
                ByteColumn.of([message.value for message in some]),
                np.array([message.timestamp for message in some], np.int64),
                [message.headers for message in some],
            )
            producer.send(topic, partition, records, delivered.append)
        assert producer.flush(PATIENCE_SECONDS), f"the log did not take the messages for '{topic}' within {PATIENCE_SECONDS} s"
        producer.close(0)
        sender.join()
        for each in delivered:
            if each.error is not None:
                raise each.error

    def _admin(self):
        from standalone.log.admin import Admin
        from standalone.log.client_config import AdminConfig

        config = AdminConfig.of(self._props)
        return Admin(self._clusters.get(config), config, self._clock)

    def ends(self, topic):
        """{partition: end offset} of the partitions with records."""
        from standalone.log.admin import LATEST

        admin = self._admin()
        pairs = [(topic, partition) for partition in admin.describe_topics(topic)[topic].partitions]
        return {partition: end for (_, partition), end in admin.list_offsets(dict.fromkeys(pairs, LATEST)).items() if end}

    def count(self, topic):
        """The number of records written to it."""
        return sum(self.ends(topic).values()) if topic in self._admin().list_topics() else 0

    def read_all(self, topic, seconds=PATIENCE_SECONDS):
        count = self.count(topic)
        return self.read(topic, count, seconds, lambda: None) if count else []

    def read(self, topic, count, seconds, check):
        from standalone.log.client_config import ConsumerConfig
        from standalone.log.consumer import Consumer

        deadline = time.monotonic() + seconds
        wait_for(lambda: check() or topic in self._admin().list_topics(), seconds, f"the topic '{topic}'")
        pairs = [(topic, partition) for partition in self._admin().describe_topics(topic)[topic].partitions]
        config = ConsumerConfig.of(self._props)
        consumer = Consumer(self._clusters.get(config), config, self._clock)
        found = []
        try:
            consumer.assign(pairs)
            for pair in pairs:
                consumer.seek(*pair, 0)
            while len(found) < count:
                check()
                assert time.monotonic() < deadline, f"{len(found)} of {count} records in '{topic}' after {seconds} s: {found[:5]}…"
                for each in consumer.poll(0.1):
                    found += _log_records(each.topic, each.partition, each.records)
            quiet_at = time.monotonic() + _QUIET_SECONDS
            while (at_the_end := self._is_at_the_end(consumer, pairs)) is False or time.monotonic() < quiet_at:
                assert time.monotonic() < deadline, f"the end of '{topic}' was not reached in {seconds} s"
                for each in consumer.poll(_QUIET_SECONDS if at_the_end else 0.1):
                    found += _log_records(each.topic, each.partition, each.records)
        finally:
            consumer.close(0)
        found.sort(key=lambda record: (record.partition, record.offset))
        assert len(found) == count, f"{len(found)} records in '{topic}', {len(found) - count} more than expected: {found[count:][:5]}…"
        return found

    def _is_at_the_end(self, consumer, pairs):
        from standalone.log.admin import LATEST

        ends = self._admin().list_offsets(dict.fromkeys(pairs, LATEST))
        return all(consumer.position(pair) >= end for pair, end in ends.items())


def _log_records(topic, partition, records):
    count = len(records)
    columns = (
        records.offsets.tolist(),
        records.timestamps.tolist(),
        [None] * count if records.keys is None else list(records.keys),
        [None] * count if records.values is None else list(records.values),
        [list(row or ()) for row in records.headers or [None] * count],
    )
    return [LogRecord(topic, partition, *row) for row in zip(*columns)]
