"""A JDBC sink's task fed by hand."""

import contextlib
import itertools

from connectors.jdbc.sink import JdbcSinkTask
from standalone import SchemaBuilder, SinkRecord, Struct
from standalone.data.batch import SinkBatch


class Context:
    """What a task asks its worker for, noted down."""

    connector = "tested"

    def __init__(self, reports):
        self.reported = []  # (offset, what was wrong)
        self.wound = {}
        self.waits = []
        self._reports = reports

    def errant_record_reporter(self):
        return self if self._reports else None

    def report(self, record, error):
        self.reported.append((record.original_offset, str(error)))

    def timeout(self, ms):
        self.waits.append(ms)

    def offset(self, offsets):
        self.wound.update(offsets)


class Sink:
    """put(records) of a task with these options. Every second put is of prepared batches, as in a worker with a backlog."""

    def __init__(self, database, reports=False, **options):
        self.context = Context(reports)
        self._numbers = itertools.count()
        self._is_prepared = itertools.cycle((False, True))
        self.task = JdbcSinkTask()
        self.task.initialize(self.context)
        self.task.start({"name": "tested", "topics": "t", "connection.url": database.url, "auto.create": "true", "retry.backoff.ms": "1", **options})

    def put(self, *records):
        batches = list(SinkBatch.runs(list(records)))
        for batch in batches if next(self._is_prepared) else ():
            self.prepare(batch)
        self.task.put(batches)

    def prepare(self, batch):
        with contextlib.suppress(Exception):  # put raises it again
            batch.prepared = self.task.prepare(batch)

    def put_values(self, schema, *values, keys=None, key_schema=None):
        """Values as dicts (None: a tombstone) of topic t, one after the other."""
        keys = keys or [None] * len(values)
        self.put(*[self.record(schema, value, key=key, key_schema=key_schema) for value, key in zip(values, keys)])

    def record(self, schema, value, key=None, key_schema=None, topic="t", offset=None):
        value = Struct(schema, value) if isinstance(value, dict) else value
        offset = next(self._numbers) if offset is None else offset
        return SinkRecord(topic, 0, offset, value=value, value_schema=schema if value is not None else None, key=key, key_schema=key_schema)

    def close(self):
        self.task.stop()


@contextlib.contextmanager
def sinks(database):
    """start(**options) -> a Sink; all are closed after the test."""
    made = []

    def start(**options):
        made.append(Sink(database, **options))
        return made[-1]

    try:
        yield start
    finally:
        for each in made:
            each.close()


def struct(**fields):
    builder = SchemaBuilder.struct()
    for name, schema in fields.items():
        builder.field(name, schema)
    return builder.build()
