"""Stages and tasks that fail on records that say so, for the tests of error handling. Named by path: tests.runtime.bad_plugins:Name."""

import collections
import threading

from standalone import (
    HIGH,
    STRING,
    ConfigDef,
    Converter,
    DataError,
    HeaderConverter,
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

PUT = collections.defaultdict(list)  # connector's name -> (offset, value) of what its sink took, in order
TOLD = collections.defaultdict(list)  # connector's name -> (row, (topic, offset) or None) of what its source's task was told
CALLS = collections.Counter()  # by what was called
GATE = threading.Event()  # closed: what waits for it hangs


class PickyConverter(Converter, HeaderConverter):
    """Text; refuses what begins with `bad`, and `busy` strings as often as their number says."""

    def configure(self, config):
        self._asked = collections.Counter()

    def from_connect(self, topic, schema, value):
        return None if value is None else self._judged(value).encode()

    def to_connect(self, topic, data):
        return Schema.OPTIONAL_STRING, None if data is None else self._judged(data.decode())

    def from_header(self, topic, name, schema, value):
        return self.from_connect(topic, schema, value)

    def to_header(self, topic, name, data):
        return self.to_connect(topic, data)

    def _judged(self, text):
        CALLS[text] += 1
        if text.startswith("bad"):
            raise DataError(f"refused by the converter: {len(text)} letters")
        if text.startswith("busy"):
            self._asked[text] += 1
            if self._asked[text] <= int(text[4:]):
                raise RetriableError("the registry is away")
        return text


class PickyTransform(Transform):
    """Hands on a record whose value does not begin with `word`."""

    config_def = ConfigDef(Option("word", STRING, HIGH, "What it refuses.", "bad"))

    def configure(self, config):
        self.word = config["word"]

    def apply(self, record):
        if record.value is not None and record.value.startswith(self.word):
            raise ValueError(f"refused by the transform: {self.word}")
        return record


class Split(Transform):
    """A record for each part of a value like `a+b`, none for `none`; a part `x>topic` goes to that topic."""

    def apply(self, record):
        if "+" not in record.value and record.value != "none":
            return record
        parts = [part.partition(">") for part in record.value.split("+") if part != "none"]
        return [record.with_(value=value, topic=topic or record.topic) for value, _, topic in parts]


class LettersTask(SourceTask):
    """Polls the values of `values`, separated by commas, all at once; then nothing. A value `keyless…` has no key."""

    def start(self, config):
        self.over = threading.Event()
        stored = self.context.offset_reader.offset({"from": "list"})
        self.next = stored["next"] if stored else 0
        self.values, self.topic = config["values"].split(","), config["topic"]
        self.sizes = int(config.get("repeat", 1))

    def poll(self):
        rows = range(self.next, len(self.values))
        self.next = len(self.values)
        if not rows:
            self.over.wait(0.05)
        return [self._record(row, self.values[row]) for row in rows]

    def _record(self, row, value):
        value = value.replace("large", "large" * self.sizes)
        place = {"source_partition": {"from": "list"}, "source_offset": {"next": row + 1}}
        key = {} if value.startswith("keyless") else {"key": f"k{row}", "key_schema": Schema.STRING}
        return SourceRecord(self.topic, value, value_schema=Schema.STRING, timestamp=1000 + row, **key, **place)

    def commit_record(self, record, metadata):
        TOLD[self.context.connector].append((record.source_offset["next"] - 1, metadata and (metadata["topic"], metadata["offset"])))

    def stop(self):
        self.over.set()


class LettersSource(SourceConnector):
    task_class = LettersTask


class ReportingTask(SinkTask):
    """Reports what begins with `bad`; `how`: put reports at once, flush reports what put has kept, raise fails the put."""

    def start(self, config):
        self.name, self.how = config["name"], config.get("how", "put")
        self.kept = []
        self.reporter = self.context.errant_record_reporter()

    def put(self, records):
        self.kept += records
        if self.how == "put":
            self._take()

    def flush(self, offsets):
        self._take()
        PUT[self.name].append(("flush", dict(offsets)))

    def _take(self):
        records, self.kept = self.kept, []
        for record in records:
            if record.value.startswith("bad"):
                self.reporter.report(record, DataError(f"refused by the sink at {record.offset}"))
            else:
                PUT[self.name].append((record.offset, record.value))


class ReportingSink(SinkConnector):
    task_class = ReportingTask


class UpsertTask(SinkTask):
    """Keeps the last value of each offset, so that putting again changes nothing; a batch with a bad value is refused as a whole."""

    put_is_idempotent = True
    error = ValueError

    def start(self, config):
        self.name, self.away = config["name"], config.get("away")
        PUT[self.name] = {}

    def put(self, records):
        CALLS["puts"] += 1
        if any(record.value == self.away for record in records):
            self.gone = True
        if getattr(self, "gone", False):
            raise OSError("the store is away")
        if any(record.value.startswith("bad") for record in records):
            raise self.error("one of these cannot be stored")
        PUT[self.name].update((record.offset, record.value) for record in records)


class UpsertSink(SinkConnector):
    task_class = UpsertTask


class NoteTask(SinkTask):
    def start(self, config):
        self.name = config["name"]

    def put(self, records):
        PUT[self.name] += [(record.offset, record.value, record.key, [header.value for header in record.headers]) for record in records]


class NoteSink(SinkConnector):
    task_class = NoteTask
