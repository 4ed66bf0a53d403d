"""Streams in Python: the Kafka Streams DSL over DataFrames. A complete word count:

    from standalone.streams import Streams

    streams = Streams(spark, "word-count", {"bootstrap.servers": "localhost:9092"}, "checkpoints")
    lines = streams.stream("streams-plaintext-input", value="string")
    words = lines.flat_map("split(lower(value), ' ')")
    counts = words.group_by("value").count()
    counts.to("streams-wordcount-output")
    streams.run()

Rows have the columns `key`, `value` and `time`. map, filter, group_by and so on take a Spark SQL expression over these, a Column, or a
Python function (of the value; with two arguments, of key and value) with its result type.

| Kafka Streams | here |
|---|---|
| stream, table | stream, table |
| map, mapValues, filter, filterNot, flatMapValues, selectKey, merge | map, map_values, filter, filter_not, flat_map, select_key, merge |
| groupByKey, groupBy, count, reduce, aggregate | group_by_key, group_by, count, reduce, aggregate |
| windowedBy(TimeWindows, SessionWindows) | tumbling, hopping, session |
| join with a stream within a time, with a table | join(other, within), join(table) |
| to, through | to, through |
| process, transform | frame: any Spark DataFrame, by `with_frame` |
"""

import inspect
import os
import threading

from standalone.clock import SYSTEM
from standalone.errors import ConfigError, ConnectError
from standalone.streams import columns as c
from standalone.streams.output import OutputTopic
from standalone.streams.settings import Settings

_CONVERTERS = {
    "string": "StringConverter", "bigint": "LongConverter", "int": "IntegerConverter", "smallint": "ShortConverter", "double": "DoubleConverter",
    "float": "FloatConverter", "boolean": "BooleanConverter", "binary": "ByteArrayConverter",
}  # fmt: skip
_JSON = {"value.converter": "org.apache.kafka.connect.json.JsonConverter", "value.converter.schemas.enable": "false"}
_LOOK_SECONDS = 0.2


class Streams:
    """A program: its streams and the queries that `run` starts. `name` is the application id, which identifies its outputs."""

    def __init__(self, spark, name, options, folder):
        from standalone.streams.frames import register

        self._session = register(spark)
        self._name, self._options, self._folder = name, dict(options), folder
        self._outputs = []
        self._queries = []
        self._stopping = threading.Event()

    def stream(self, topic, value="string", key="string", starting="earliest"):
        """Read a topic as a Stream. `value` and `key` are Spark SQL types; a struct is JSON."""
        frame = self._read(self._session.readStream, topic, value, key, startingOffsets=starting)
        return Stream(self, frame)

    def table(self, topic, value="string", key="string"):
        """Read a topic as a Table: the newest value of each key."""
        from pyspark.sql import functions as f

        frame = self._read(self._session.read, topic, value, key).where("key IS NOT NULL")
        newest = frame.groupBy("key").agg(f.max_by(f.struct("value", "time", "gone"), "offset").alias("row"))
        return Table(self, newest.select("key", "row.*").where("NOT gone").drop("gone"))

    def run(self, seconds=None):
        """Run all queries until `stop`, or for so long; raise the error of a failed query."""
        self.start()
        deadline = None if seconds is None else SYSTEM.monotonic() + seconds
        try:
            while not self._stopping.is_set() and (deadline is None or SYSTEM.monotonic() < deadline):
                for query, _ in self._queries:
                    if not query.isActive:
                        raise query.exception() or ConnectError("Spark has ended a query.")
                SYSTEM.wait(self._stopping, _LOOK_SECONDS)
        finally:
            self.stop()

    def start(self):
        """Start all queries and return."""
        if not self._outputs:
            raise ConfigError("Nothing is written anywhere: end a stream or table with .to(topic).")
        for number, (frame, topic, mode) in enumerate(self._outputs):
            self._queries.append(self._started(number, frame, topic, mode))

    def stop(self):
        self._stopping.set()
        for query, output in self._queries:
            query.stop()
            output.close()
        self._queries = []

    def done(self):
        """Wait until everything now in the log is processed."""
        for query, _ in self._queries:
            query.processAllAvailable()

    def write(self, frame, topic, mode):
        self._outputs.append((frame, topic, mode))

    def _started(self, number, frame, topic, mode):
        name = f"{self._name}-{number}"
        key, value = (frame.schema[part].dataType.simpleString() for part in ("key", "value"))
        settings = Settings({**self._options, **_converters(key, value)})
        output = OutputTopic(name, topic, settings, c.Encoder(settings.converter("key"), settings.converter("value"))).open()
        named = frame.selectExpr(f"key AS {c.KEY}", f"value AS {c.VALUE}", f"time AS {c.TIMESTAMP}")

        def take(batch, at):
            output.write(at, batch.toArrow(), batch.schema)

        writer = named.writeStream.foreachBatch(take).outputMode(mode).option("checkpointLocation", os.path.join(self._folder, name))
        return writer.trigger(processingTime="0 seconds").start(), output

    def _read(self, reader, topic, value, key, **more):
        options = {**self._options, **_converters(key, value), **more, "topics": topic}
        columns = f"{c.KEY} {key}, {c.VALUE} {value}, {c.TIMESTAMP} timestamp, {c.OFFSET} bigint, {c.TOMBSTONE} boolean"
        frame = reader.format("connect").options(**options).schema(columns).load()
        return frame.selectExpr(f"{c.KEY} AS key", f"{c.VALUE} AS value", f"{c.TIMESTAMP} AS time", f"{c.OFFSET} AS offset", f"{c.TOMBSTONE} AS gone")


class _Rows:
    """Rows of key, value and time; `frame` is the DataFrame."""

    def __init__(self, streams, frame):
        self._streams, self.frame = streams, frame

    def with_frame(self, change):
        """Apply any Spark operation: `change` takes the DataFrame and returns one with the columns key, value and time."""
        return type(self)(self._streams, change(self.frame))

    def _with(self, **columns):
        from pyspark.sql import functions as f

        kept = {name: f.col(name) for name in ("key", "value", "time")}
        return type(self)(self._streams, self.frame.select(*(column.alias(name) for name, column in {**kept, **columns}.items())))

    def filter(self, condition):
        return type(self)(self._streams, self.frame.where(_column(condition, "boolean")))

    def filter_not(self, condition):
        return type(self)(self._streams, self.frame.where(~_column(condition, "boolean")))

    def map_values(self, change, returns="string"):
        return self._with(value=_column(change, returns))


class Table(_Rows):
    """One row per key."""


class Stream(_Rows):
    def map(self, key, value, key_returns="string", returns="string"):
        """Replace key and value."""
        return self._with(key=_column(key, key_returns), value=_column(value, returns))

    def select_key(self, key, returns="string"):
        return self._with(key=_column(key, returns))

    def flat_map(self, values, returns="array<string>"):
        """Emit a row for each item of the list computed from the value."""
        from pyspark.sql import functions as f

        return self._with(value=f.explode(_column(values, returns)))

    def merge(self, other):
        return Stream(self._streams, self.frame.select("key", "value", "time").unionByName(other.frame.select("key", "value", "time")))

    def group_by_key(self):
        return Grouped(self._streams, self.frame, "key")

    def group_by(self, key, returns="string"):
        """Group rows by this key."""
        return Grouped(self._streams, self._with(key=_column(key, returns)).frame, "key")

    def join(self, other, value="struct(left.value AS left, right.value AS right)", how="inner", within=None, grace="1 day"):
        """Join a Table by key, or a Stream: all pairs of a key that are `within` ("10 seconds") of each other."""
        from pyspark.sql import functions as f

        left, right = self.frame, other.frame
        if isinstance(other, Table):
            condition = f.expr("left.key = right.key")
        elif within is None:
            raise ConfigError('A join of two streams needs a time: within="10 seconds".')
        else:
            left, right = left.withWatermark("time", grace), right.withWatermark("time", grace)
            span = f"INTERVAL {within}"
            condition = f.expr(f"left.key = right.key AND right.time >= left.time - {span} AND right.time <= left.time + {span}")
        joined = left.alias("left").join(right.alias("right"), condition, how)
        later = "left.time" if isinstance(other, Table) else "greatest(left.time, right.time)"
        return Stream(self._streams, joined.selectExpr("coalesce(left.key, right.key) AS key", f"{value} AS value", f"{later} AS time"))

    def to(self, topic):
        """Write the rows to a topic."""
        self._streams.write(self.frame, topic, "append")

    def through(self, topic, **types):
        """Write the rows to a topic and read them from there."""
        self.to(topic)
        return self._streams.stream(topic, **types)


class Grouped:
    """Rows grouped by key, optionally by window: count, reduce or aggregate them."""

    def __init__(self, streams, frame, *by, window=None):
        self._streams, self._frame, self._by, self._window = streams, frame, by, window

    def tumbling(self, size, grace="1 day"):
        """Tumbling windows of that size ("1 minute"). Rows later than `grace` are dropped."""
        return self._windowed(f"window(time, '{size}')", grace)

    def hopping(self, size, advance, grace="1 day"):
        return self._windowed(f"window(time, '{size}', '{advance}')", grace)

    def session(self, gap, grace="1 day"):
        """Session windows, closed after `gap` without rows; each is emitted once, when closed."""
        return self._windowed(f"session_window(time, '{gap}')", grace)

    def _windowed(self, window, grace):
        return Grouped(self._streams, self._frame.withWatermark("time", grace), *self._by, window=window)

    def count(self):
        return self.aggregate("count(*)")

    def reduce(self, how, value="value"):
        """Reduce by a Spark SQL aggregate function: sum, min, max, avg, collect_list …"""
        return self.aggregate(f"{how}({value})")

    def aggregate(self, expression):
        """Aggregate by a Spark SQL expression, such as `struct(count(*) AS n, sum(value) AS s)`."""
        from pyspark.sql import functions as f

        by = [f.col(name) for name in self._by] + ([f.expr(self._window).alias("window")] if self._window else [])
        found = self._frame.groupBy(*by).agg(f.expr(expression).alias("value"), f.max("time").alias("time"))
        if self._window:
            key = "named_struct('key', key, 'start', unix_millis(window.start), 'end', unix_millis(window.end))"
            found = found.selectExpr(f"to_json({key}) AS key", "value", "time")
        return Aggregated(self._streams, found, "append" if self._window and self._window.startswith("session") else "update")


class Aggregated(_Rows):
    """A changing table: each change is a row."""

    def __init__(self, streams, frame, mode="update"):
        super().__init__(streams, frame)
        self._mode = mode

    def to(self, topic):
        self._streams.write(self.frame.where("key IS NOT NULL"), topic, self._mode)


def _column(said, returns):
    from pyspark.sql import Column
    from pyspark.sql import functions as f

    if isinstance(said, Column):
        return said
    if isinstance(said, str):
        return f.expr(said)
    several = len(inspect.signature(said).parameters) > 1
    return f.udf(said, returns)(*((f.col("key"), f.col("value")) if several else (f.col("value"),)))


def _converters(key, value):
    found = {"key.converter": _CONVERTERS.get(key)}
    if found["key.converter"] is None:
        raise ConfigError(f"A key must be one of {', '.join(_CONVERTERS)}, not {key}. Use to_json for a struct.")
    return {**found, **({"value.converter": _CONVERTERS[value]} if value in _CONVERTERS else _JSON)}
