"""Connectors that misbehave on demand, for the tests of the runtime. Named by path: tests.runtime.plugins:Name."""

import collections
import threading

from standalone import (
    HIGH,
    STRING,
    ConfigDef,
    Option,
    RetriableError,
    Schema,
    SinkConnector,
    SinkTask,
    SourceConnector,
    SourceRecord,
    SourceTask,
    Transform,
)

SAID = collections.defaultdict(list)  # connector's name -> what its task was told, in order
RELEASE = threading.Event()


class ListTask(SourceTask):
    """Polls the numbers up to `count`, `each` at a time; says what it is called with."""

    def start(self, config):
        self.name, self.topic = config["name"], config["topic"]
        self.count, self.each = int(config.get("count", 10)), int(config.get("each", 3))
        self.retries = int(config.get("retries", 0))
        stored = self.context.offset_reader.offset({"list": self.name})
        self.next = stored["next"] if stored else 0
        self.over = threading.Event()
        SAID[self.name].append(("start", self.next))

    def poll(self):
        if self.retries:
            self.retries -= 1
            raise RetriableError("not now")
        numbers = range(self.next, min(self.count, self.next + self.each))
        if not numbers:
            self.over.wait(0.05)
            return None
        self.next = numbers[-1] + 1
        return [
            SourceRecord(self.topic, str(n), {"list": self.name}, {"next": n + 1}, value_schema=Schema.STRING, key=str(n % 3), key_schema=Schema.STRING)
            for n in numbers
        ]

    def commit_record(self, record, metadata):
        SAID[self.name].append(("record", record.value, metadata and metadata["offset"]))

    def commit(self):
        SAID[self.name].append(("commit",))

    def stop(self):
        self.over.set()

    def close(self):
        SAID[self.name].append(("close",))


class ListSource(SourceConnector):
    task_class = ListTask
    config_def = ConfigDef(Option("topic", STRING, HIGH, "Where to."))

    def validate(self, config):
        return {"count": "must not be 13"} if config.get("count") == "13" else {}


class HangingTask(SourceTask):
    """A task that heeds nothing."""

    def poll(self):
        RELEASE.wait()


class HangingSource(SourceConnector):
    task_class = HangingTask


class OddValidationSource(HangingSource):
    """Its own fault, whatever the configuration."""

    def validate(self, config):
        raise {"KeyError": KeyError("missing"), "SystemExit": SystemExit(0)}[config["raises"]]


class HangingStartSource(SourceConnector):
    task_class = HangingTask

    def start(self, config):
        RELEASE.wait()


class NoteTask(SinkTask):
    """Keeps what it is given; `retries` puts are refused first, `fails` is a value it never takes, `rewind` is read twice."""

    def start(self, config):
        self.name = config["name"]
        self.retries = int(config.get("retries", 0))
        self.fails = config.get("fails")
        self.rewind = config.get("rewind")

    def open(self, partitions):
        SAID[self.name].append(("open", partitions))

    def put(self, records):
        if records and self.retries:
            self.retries -= 1
            SAID[self.name].append(("refused", len(records)))
            self.context.timeout(20)
            raise RetriableError("not now")
        for record in records:
            if record.value == self.fails:
                raise ValueError(f"never {record.value}")
        for record in records:
            SAID[self.name].append(("put", record.value, record.offset))
            if record.value == self.rewind:
                self.rewind = None
                self.context.offset({(record.topic, record.partition): record.offset})
        if records:
            SAID[self.name].append(("batch", len(records)))
            self.context.request_commit()

    def flush(self, offsets):
        SAID[self.name].append(("flush", dict(offsets)))

    def close(self, partitions):
        SAID[self.name].append(("close", partitions))

    def stop(self):
        SAID[self.name].append(("stop",))


class NoteSink(SinkConnector):
    task_class = NoteTask


class FailOn(Transform):
    """Raises on one value, drops another."""

    config_def = ConfigDef(Option("bad", STRING, HIGH, "Raises on it.", None), Option("drop", STRING, HIGH, "Drops it.", None))

    def configure(self, config):
        self.bad, self.drop = config["bad"], config["drop"]

    def apply(self, record):
        if record.value == self.bad:
            raise TypeError(f"bad value {record.value}")
        return None if record.value == self.drop else record


FAILING = {}  # connector's name (or name|connector) -> how often it still fails


def _fail(key):
    if FAILING.get(key):
        FAILING[key] -= 1
        raise RuntimeError(f"{key} is down")


class FailingTask(SourceTask):
    """Fails when it starts as often as FAILING says; then sends one record."""

    def start(self, config):
        self.name, self.topic, self.sent = config["name"], config["topic"], False
        self.over = threading.Event()
        SAID[self.name].append(("start", dict(config)))
        _fail(self.name)

    def poll(self):
        if self.sent:
            self.over.wait(0.05)
            return None
        self.sent = True
        return [SourceRecord(self.topic, "well", {"p": self.name}, {"n": 1}, value_schema=Schema.STRING)]

    def stop(self):
        self.over.set()


class FailingSource(SourceConnector):
    task_class = FailingTask

    def start(self, config):
        self.config = config
        _fail(f"{config['name']}|connector")


class TellingTask(SourceTask):
    def start(self, config):
        raise RuntimeError(f"cannot log in with {config['secret']}")


class TellingSource(SourceConnector):
    task_class = TellingTask


class ThreeTasksSource(FailingSource):
    def task_configs(self, max_tasks):
        return [dict(self.config)] * 3
