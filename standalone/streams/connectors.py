"""Use any source connector as a stream and any sink connector as a writer, by `.option("connector.class", …)`, without Kafka in between.

    spark.readStream.format("connect").option("connector.class", "FileStreamSource").option("file", "a.log").load()
    df.write.format("connect").option("connector.class", "ElasticsearchSink").option("connection.url", …).mode("append").save()

The options are the connector's keys. A source's tasks run beside Spark's driver, and Spark stores their source offsets in its checkpoint: after
a restart they continue after the last batch; a repeated batch is polled again up to its end offsets. A sink has a task in each of
Spark's tasks, which is flushed and stopped after its rows. Delivery is at-least-once.
"""

import json
import threading

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, SimpleDataSourceStreamReader, WriterCommitMessage
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StringType, StructField, StructType, TimestampType

from standalone import properties
from standalone.clock import SYSTEM
from standalone.connector import ConnectorContext, OffsetReader, SinkTaskContext, SourceTaskContext
from standalone.data.batch import Batch
from standalone.data.column import values_of
from standalone.data.record import SinkRecord
from standalone.data.schema import SchemaBuilder
from standalone.data.sql_types import from_sql
from standalone.data.struct import Struct
from standalone.errors import ConfigError, ConnectError
from standalone.plugins import Plugins
from standalone.runtime.configuration.connector_config import ConnectorConfig
from standalone.streams import columns as c
from standalone.streams.fitting import field_of, fit

CONNECTOR_CLASS = "connector.class"
_SECONDS = 60.0  # within which a repeated batch must be polled again
_OWN = ("config", "topic.unset", "maxwaitms", "path")
_DEFAULT = StructType(
    [*(StructField(name, StringType()) for name in (c.TOPIC, c.KEY, c.VALUE)), StructField(c.TIMESTAMP, TimestampType())]
)


class _Running:
    """A started connector and its plan."""

    def __init__(self, options, sink):
        given = {key: value for key, value in options.items() if key.lower() not in _OWN}
        path = next((value for key, value in options.items() if key.lower() == "config"), None)
        props = {"name": "stream", **(properties.load(path) if path else {}), **given}
        if sink:
            props.setdefault("topics", "rows")
        self.plan = ConnectorConfig.of(props, Plugins())
        if (self.plan.kind == "sink") is not sink:
            raise ConfigError.of({CONNECTOR_CLASS: f"is a {self.plan.kind}: use it with {'readStream' if sink else 'writeStream'}"})
        self.name = self.plan["name"]
        self._connector = self.plan.connector_class()
        self._connector.initialize(_Context(self.name))
        self._connector.start(dict(self.plan.originals))

    def task_configs(self):
        return [{**self.plan.originals, **config} for config in self._connector.task_configs(self.plan["tasks.max"])]

    def new_task(self):
        return self.plan.connector_class.task_class()

    def chain(self):
        """Return a function that applies the transforms to a list of records."""
        links = [link.build() for link in self.plan.links()]

        def apply(records):
            for _, transform, predicate, negate in links:
                made = []
                for record in records:
                    if predicate is not None and bool(predicate.test(record)) is bool(negate):
                        made.append(record)
                    elif (changed := transform.apply(record)) is not None:
                        made += changed if isinstance(changed, list) else [changed]
                records = made
            return records

        return apply

    def stop(self):
        self._connector.stop()


class ConnectorReader(SimpleDataSourceStreamReader):
    """Offsets are {"offsets": JSON of [[source partition, source offset], …]}."""

    @staticmethod
    def schema(options):
        return _DEFAULT

    def __init__(self, options, schema):
        self._options, self._schema = dict(options), schema
        self._running = None
        self._tasks = []
        self._at = None  # the offsets after the last poll

    def __getstate__(self):
        return {**self.__dict__, "_running": None, "_tasks": [], "_at": None}

    def initialOffset(self):
        return {"offsets": "[]"}

    def read(self, start):
        self._go_to(start)
        deadline = SYSTEM.monotonic() + int({key.lower(): value for key, value in self._options.items()}.get("maxwaitms", 200)) / 1000
        quiet, found = threading.Event(), []
        while not found:
            for task in self._tasks:
                found += self._polled(task)
            if not found:
                if SYSTEM.monotonic() >= deadline:
                    break
                SYSTEM.wait(quiet, 0.01)
        for record in found:
            self._note(record)
        return iter([self._batch(found)] if found else []), self._shown()

    def readBetweenOffsets(self, start, end):
        self._at = None
        self._go_to(start)
        found, deadline, quiet = [], SYSTEM.monotonic() + _SECONDS, threading.Event()
        while self._shown() != end:
            polled = [record for task in self._tasks for record in self._polled(task)]
            for record in polled:
                self._note(record)
                found.append(record)
                if self._shown() == end:
                    break
            if not polled:
                if SYSTEM.monotonic() > deadline:
                    raise ConnectError(
                        f"The connector {self._running.plan.originals[CONNECTOR_CLASS]} did not reach the source offsets {end['offsets']} again: "
                        "its records no longer exist. Delete the query's checkpoint to start over."
                    )
                SYSTEM.wait(quiet, 0.01)
        self._at = None  # later records are polled again
        return iter([self._batch(found)] if found else [])

    def commit(self, end):
        for task in self._tasks:
            task.commit()

    def _polled(self, task):
        polled = task.poll()
        if isinstance(polled, Batch):
            return list(polled.records())
        return [record for each in polled or () for record in (each.records() if isinstance(each, Batch) else [each])]

    def _go_to(self, start):
        if self._at is not None and self._shown() == start:
            return
        for task in self._tasks:
            task.stop()
            task.close()
        self._tasks = []
        if self._running is None:
            self._running = _Running(self._options, sink=False)
            self._apply = self._running.chain()
        self._at = {_canonical(partition): (partition, offset) for partition, offset in json.loads(start["offsets"])}
        for number, config in enumerate(self._running.task_configs()):
            task = self._running.new_task()
            context = SourceTaskContext()
            context.connector, context.task, context.configs = self._running.name, number, config
            context.offset_reader = _Stored(dict(self._at))
            task.initialize(context)
            task.start(config)
            self._tasks.append(task)

    def _note(self, record):
        if record.source_partition is not None:
            self._at[_canonical(record.source_partition)] = record.source_partition, record.source_offset

    def _shown(self):
        return {"offsets": json.dumps([list(self._at[key]) for key in sorted(self._at)])}

    def _batch(self, records):
        return rows_of(self._apply(records), self._schema)


class _Stored(OffsetReader):
    def __init__(self, found):
        self._found = found

    def offset(self, partition):
        return self._found.get(_canonical(partition), (None, None))[1]


class _Context(ConnectorContext):
    def __init__(self, name):
        self.name = name
        self.error = None

    def request_task_reconfiguration(self):
        """Ignored: a stream's tasks are created when it starts; restart it to change them."""

    def raise_error(self, error):
        self.error = error

    def offset_reader(self):
        return _Stored({})


def rows_of(records, schema):
    """Convert Connect's records to a RecordBatch."""
    arrow = to_arrow_schema(schema, timezone="UTC")
    taken = {
        c.KEY: lambda record: record.key,
        c.VALUE: lambda record: record.value,
        c.TOPIC: lambda record: record.topic,
        c.PARTITION: lambda record: record.partition,
        c.TIMESTAMP: lambda record: record.timestamp,
    }
    arrays = []
    for field in arrow:
        take = taken.get(field.name) or (lambda record, name=field.name: field_of(record.value, name))
        fit_one = fit(field.type)
        found = (take(record) for record in records)
        arrays.append(pa.array([None if each is None else fit_one(each) for each in found], field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=arrow)


class ConnectorWriter(DataSourceArrowWriter):
    """Writes rows as sink records: `_topic`, `_partition`, `_offset`, `_timestamp`, `_key` and `_value` as when read, other columns as fields."""

    def __init__(self, options, schema):
        self._options, self._schema = dict(options), schema

    def write(self, iterator):
        from pyspark import TaskContext

        running, number = _Running(self._options, sink=True), TaskContext.get().partitionId()
        apply, task, offsets = running.chain(), running.new_task(), {}
        config = running.task_configs()[0]
        task.initialize(_SinkContext(running.name, number, config, offsets))
        task.start(config)
        try:
            count = 0
            for batch in iterator:
                records = self._records(batch, number, count)
                count += len(records)
                new = sorted({(record.topic, record.partition) for record in records} - set(offsets))
                if new:
                    offsets.update(dict.fromkeys(new, 0))
                    task.open(new)
                for record in records:
                    offsets[record.topic, record.partition] = record.offset + 1
                records = apply(records)
                if records:
                    task.put(_batches(records) if task.takes_batches else records)
            task.pre_commit(dict(offsets))
            task.close(list(offsets))
        finally:
            task.stop()
            running.stop()
        return WriterCommitMessage()

    def _records(self, batch, number, first):
        topics = (self._options.get("topics") or "rows").split(",")
        columns, parts = {}, []
        for field in self._schema.fields:
            column, schema = from_sql(batch.column(batch.schema.get_field_index(field.name)), field.dataType, True)
            if field.name in c.PARTS:
                columns[field.name] = values_of(column, schema, batch.num_rows), schema
            else:
                parts.append((field.name, values_of(column, schema, batch.num_rows), schema))
        value_schema = None
        if c.VALUE in columns:
            values, value_schema = columns[c.VALUE]
        else:
            builder = SchemaBuilder.struct()
            for name, _, schema in parts:
                builder.field(name, schema)
            value_schema = builder.build()
            values = [Struct.trusted(value_schema, list(row)) for row in zip(*(found for _, found, _ in parts))]
        get = lambda name, row, default: columns[name][0][row] if name in columns else default  # noqa: E731
        key_schema = columns[c.KEY][1] if c.KEY in columns else None
        made = []
        for row, value in enumerate(values):
            moment = get(c.TIMESTAMP, row, None)
            made.append(
                SinkRecord(
                    get(c.TOPIC, row, None) or topics[0],
                    get(c.PARTITION, row, number),
                    get(c.OFFSET, row, first + row),
                    key_schema=key_schema,
                    key=get(c.KEY, row, None),
                    value_schema=value_schema,
                    value=value,
                    timestamp=moment.ms if moment is not None else None,
                )
            )
        return made


class ConnectorStreamWriter(ConnectorWriter, DataSourceStreamArrowWriter):
    def commit(self, messages, batchId):
        """Nothing to do: each task has flushed its rows."""

    def abort(self, messages, batchId):
        """Nothing to do: flushed rows are written again, at-least-once."""


class _SinkContext(SinkTaskContext):
    def __init__(self, name, number, config, offsets):
        self.connector, self.task, self.configs = name, number, config
        self._offsets = offsets

    def assignment(self):
        return set(self._offsets)

    def offset(self, offsets):
        """Ignored: Spark repeats the task, which delivers its rows again."""

    def pause(self, *partitions):
        """Ignored: rows wait in Spark."""

    resume = pause

    def request_commit(self):
        """Ignored: the flush follows the last row."""

    def timeout(self, ms):
        """Ignored: Spark retries failed tasks by its own settings."""


def _batches(records):
    from standalone.data.batch import SinkBatch

    return list(SinkBatch.runs(records))


def _canonical(partition):
    return json.dumps(partition, sort_keys=True)
