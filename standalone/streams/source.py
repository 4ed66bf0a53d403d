"""Topics as Spark's tables and streams: the data source `connect`, over our own log client and converters.

    spark.dataSource.register(ConnectDataSource)
    spark.readStream.format("connect").option("bootstrap.servers", "…").option("topics", "orders").schema("id bigint, name string").load()

An input partition is a range of offsets. Columns are explained in columns.py, connection options in settings.py; options of
this module:

| option | |
|---|---|
| `topics`, `subscribe` | comma-separated topic names |
| `topics.regex`, `subscribePattern` | or all topics whose whole name matches |
| `startingOffsets`, `endingOffsets` | `earliest`, `latest`, or JSON: {"topic": {"0": 23, "1": -2}} (-2 is earliest, -1 latest) |
| `maxOffsetsPerTrigger` | a batch of a stream has no more |
| `minPartitions` | ranges are cut until there are so many |
| `maxRecordsPerPartition` | the maximum number of offsets in an input partition; larger ranges are split |
| `maxWaitMs` | how long a stream that is at its end waits for a record before it says that there is none (500) |
| `errors.tolerance` | `all` skips records that cannot be read |
| `key.windowed`, `key.window.ms` | keys have a window of this kind after them: `time` (of that size) or `session` |
| `value.delimiter` | values are strings, cut by it into the fields of the schema |
| `topic` | written only: where to, unless a column `_topic` says so |
"""

import json
import threading

from pyspark.errors import PySparkNotImplementedError
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)

try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, SupportsTriggerAvailableNow
except ImportError as error:
    raise ImportError("Streams need Spark 4.2 or later: pip install 'pyspark>=4.2'. Only TableSink needs an earlier one.") from error
from pyspark.sql.types import StringType, StructField, StructType

from standalone.clock import SYSTEM
from standalone.errors import ConfigError
from standalone.streams.columns import KEY, META, VALUE, Decoder, spark_type
from standalone.streams.ranges import Ranges
from standalone.streams.settings import check_options, settings_of

CONNECTOR_CLASS = "connector.class"
_LOOK_SECONDS, _LONGEST_LOOK_SECONDS = 0.005, 0.04  # between looks at the ends of partitions, where nothing comes
_MAX_WAIT_MS = 500
_TOPICS_SECONDS = 5.0  # between looks for new topics and partitions
_EARLIEST, _LATEST = -2, -1


class ConnectDataSource(DataSource):
    """Options are case-insensitive strings without secrets; connections are opened on demand."""

    def __init__(self, options):
        super().__init__(options)
        self.options = {str(key): str(value) for key, value in dict(options).items()}
        check_options(self.options)

    @classmethod
    def name(cls):
        return "connect"

    def schema(self):
        """Without a given schema, infer it from the first topic's newest record."""
        if CONNECTOR_CLASS in self.options:
            return _connectors().ConnectorReader.schema(self.options)
        found = _newest_schemas(self.options)
        columns = [StructField(KEY, found[0]), StructField(VALUE, found[1])]
        return StructType([*columns, *(StructField(name, kind) for name, kind in META.items())])

    def reader(self, schema):
        if CONNECTOR_CLASS in self.options:
            raise ConfigError.of({CONNECTOR_CLASS: "can only be read as a stream: use spark.readStream"})
        return TopicReader(self.options, schema)

    def streamReader(self, schema):
        if CONNECTOR_CLASS in self.options:  # Spark then falls back to simpleStreamReader
            raise PySparkNotImplementedError(errorClass="NOT_IMPLEMENTED", messageParameters={"feature": "streamReader"})
        return TopicStreamReader(self.options, schema)

    def simpleStreamReader(self, schema):
        return _connectors().ConnectorReader(self.options, schema)

    def writer(self, schema, overwrite):
        if overwrite:
            raise ConfigError.of({"mode": "is overwrite, but topics are appended to: .mode('append')"})
        kind = _connectors().ConnectorWriter if CONNECTOR_CLASS in self.options else TopicWriter
        return kind(self.options, schema)

    def streamWriter(self, schema, overwrite):
        kind = _connectors().ConnectorStreamWriter if CONNECTOR_CLASS in self.options else TopicStreamWriter
        return kind(self.options, schema)


def _connectors():
    """Import lazily: processes that read topics start faster."""
    from standalone.streams import connectors

    return connectors


class Range(InputPartition):
    def __init__(self, topic, partition, low, high):
        super().__init__((topic, partition, low, high))
        self.topic, self.partition, self.low, self.high = topic, partition, low, high


class _Topics:
    """The base of batch and stream readers. It is pickled; connections are made where it is used."""

    def __init__(self, options, schema):
        self._options = {key.lower(): value for key, value in options.items()}
        self._raw = dict(options)
        self._schema = schema
        self._opened = None
        self._wanted()

    def __getstate__(self):
        return {**self.__dict__, "_opened": None}

    def _ranges(self):
        if self._opened is None:
            self._opened = Ranges(settings_of(self._raw).clients)
        return self._opened

    def _wanted(self):
        names = self._options.get("topics") or self._options.get("subscribe")
        pattern = self._options.get("topics.regex") or self._options.get("subscribepattern")
        if bool(names) == bool(pattern):
            raise ConfigError.of({"topics": "or topics.regex must be set, but not both"})
        return {"topics": [name.strip() for name in names.split(",")]} if names else {"pattern": pattern}

    def _pairs(self):
        return self._ranges().pairs(**self._wanted())

    def _at(self, key, default, pairs):
        """Return {pair: offset} of an offsets option."""
        said = self._options.get(key.lower(), default)
        if said in ("earliest", "latest"):
            return self._ranges().begins(pairs) if said == "earliest" else self._ranges().ends(pairs)
        try:
            found = {(topic, int(number)): int(offset) for topic, each in json.loads(said).items() for number, offset in each.items()}
        except (ValueError, AttributeError, TypeError):
            raise ConfigError.of({key: f'is "{said}": use earliest, latest, or JSON such as {{"topic": {{"0": 23}}}}'}) from None
        begins, ends = self._ranges().begins(pairs), self._ranges().ends(pairs)
        named = {pair: found.get(pair, _EARLIEST if default == "earliest" else _LATEST) for pair in pairs}
        places = {_EARLIEST: begins, _LATEST: ends}
        return {pair: places[offset][pair] if offset in places else offset for pair, offset in named.items()}

    def _cut(self, ranges):
        """Split ranges that have more than maxRecordsPerPartition, then halve the largest until there are minPartitions."""
        wanted, most = int(self._options.get("minpartitions", 0)), int(self._options.get("maxrecordsperpartition", 0))
        found = [part for each in ranges if each.high > each.low for part in _pieces(each, most)]
        while found and len(found) < wanted:
            largest = max(found, key=lambda each: each.high - each.low)
            if largest.high - largest.low < 2:
                break
            middle = (largest.low + largest.high) // 2
            at = found.index(largest)
            parts = [(largest.low, middle), (middle, largest.high)]
            found[at : at + 1] = [Range(largest.topic, largest.partition, *part) for part in parts]
        return found

    def read(self, partition):
        options = tuple(sorted(self._raw.items()))
        decoder = _kept(options, self._schema.json(), lambda: decoder_of(self._raw, self._schema))
        ranges = _kept(options, None, lambda: Ranges(settings_of(self._raw).clients))
        for records in ranges.read(partition.topic, partition.partition, partition.low, partition.high):
            yield decoder.batch(partition.topic, partition.partition, records)


def _pieces(whole, most):
    """Split a range into parts of about the same size, each of `most` offsets at the most (0: do not split)."""
    count = -(-(whole.high - whole.low) // most) if most > 0 else 1
    ends = [whole.low + (whole.high - whole.low) * number // count for number in range(count + 1)]
    return [Range(whole.topic, whole.partition, low, high) for low, high in zip(ends, ends[1:])]


class TopicReader(_Topics, DataSourceReader):
    def partitions(self):
        pairs = self._pairs()
        if not pairs and "topics" in self._wanted():
            raise ConfigError.of({"topics": f"names {', '.join(self._wanted()['topics'])}, which the log does not have"})
        begins, ends = self._at("startingOffsets", "earliest", pairs), self._at("endingOffsets", "latest", pairs)
        return self._cut(Range(*pair, begins[pair], ends[pair]) for pair in pairs)


class TopicStreamReader(_Topics, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offsets are {topic: {partition: offset}}. New partitions are read from their beginning."""

    _last = None  # for availableNow: where the stream ends
    _known, _look_again_at = (), 0.0  # its partitions, and when to look them up again

    def initialOffset(self):
        pairs = self._pairs()
        return _shown(self._at("startingOffsets", "latest", pairs))

    def getDefaultReadLimit(self):
        most = self._options.get("maxoffsetspertrigger")
        return ReadMaxRows(int(most)) if most else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self):
        self._last = self._ends_now({})

    def latestOffset(self, start, limit):
        start = _pairs_of(start)
        if self._last is not None:
            ends = {**start, **self._last}
        else:
            ends = self._wait_for_more(start)
        if isinstance(limit, ReadMaxRows):
            ends = _limited(start, ends, limit.max_rows, self._ranges)
        return _shown(ends)

    def _wait_for_more(self, start):
        """Ends, as soon as there is more than `start`. The broker is asked to wait; where it cannot, it is looked for, ever more seldom."""
        now = SYSTEM.monotonic()
        deadline, pause, quiet = now + int(self._options.get("maxwaitms", _MAX_WAIT_MS)) / 1000, _LOOK_SECONDS, threading.Event()
        if now >= self._look_again_at or not self._known:
            self._known, self._look_again_at = self._pairs(), now + _TOPICS_SECONDS
        while True:
            ends = {**start, **self._ranges().ends(self._known)}
            left = deadline - SYSTEM.monotonic()
            if ends != start or left <= 0:
                return ends
            if not self._ranges().wait_for_more({pair: ends[pair] for pair in self._known}, left):
                SYSTEM.wait(quiet, min(pause, left))
                pause = min(2 * pause, _LONGEST_LOOK_SECONDS)

    def _ends_now(self, start):
        return {**start, **self._ranges().ends(self._pairs())}

    def partitions(self, start, end):
        start, end = _pairs_of(start), _pairs_of(end)
        new = [pair for pair in end if pair not in start]
        begins = self._ranges().begins(new)
        return self._cut(Range(*pair, start.get(pair, begins.get(pair)), high) for pair, high in sorted(end.items()))

    def stop(self):
        if self._opened is not None:
            self._opened.close()


class _Written(WriterCommitMessage):
    pass


class _TopicWrites:
    """Each task produces its rows and waits for acknowledgement: at-least-once. (output.py: exactly-once.)"""

    def __init__(self, options, schema):
        self._raw, self._schema = dict(options), schema
        if not self._raw.get("topic") and "_topic" not in schema.fieldNames():
            raise ConfigError.of({"topic": "is missing: set it, or add a column _topic"})

    def write(self, iterator):
        import pyarrow as pa

        from standalone.streams.output import write_once

        for batch in iterator:
            if batch.num_rows:
                write_once(self._raw, pa.Table.from_batches([batch]), self._schema)
        return _Written()


class TopicWriter(_TopicWrites, DataSourceArrowWriter):
    pass


class TopicStreamWriter(_TopicWrites, DataSourceStreamArrowWriter):
    def commit(self, messages, batchId):
        pass

    def abort(self, messages, batchId):
        pass


def decoder_of(options, schema):
    settings, low = settings_of(options), {key.lower(): value for key, value in options.items()}
    window_ms = low.get("key.window.ms")
    return Decoder(
        schema,
        settings.converter("key"),
        settings.converter("value"),
        skips=low.get("errors.tolerance", "none") == "all",
        delimiter=low.get("value.delimiter"),
        windows=low.get("key.windowed"),
        window_ms=int(window_ms) if window_ms else None,
    )


_keeping = {}


def _kept(options, schema, make):
    """Spark keeps its Python workers: so are their connections, and converters with what they have learnt of schemas."""
    key = options, schema
    if key not in _keeping:
        if len(_keeping) > 32:
            oldest = _keeping.pop(next(iter(_keeping)))
            if isinstance(oldest, Ranges):
                oldest.close()
        _keeping[key] = make()
    return _keeping[key]


def _newest_schemas(options):
    """Return Spark's types of key and value of the newest record; strings if it has no schema."""
    reader = _Topics(options, None)
    pairs = reader._pairs()
    ends, begins = reader._ranges().ends(pairs), reader._ranges().begins(pairs)
    pair = next((pair for pair in pairs if ends[pair] > begins[pair]), None)
    if pair is None:
        raise ConfigError.of({"topics": "have no records to infer the columns from: pass .schema(…)"})
    settings, low = settings_of(options), ends[pair]
    while low > begins[pair]:
        low = max(begins[pair], low - 10)  # after transaction markers there may be no record
        for records in reader._ranges().read(*pair, low, ends[pair]):
            row = len(records) - 1
            found = []
            for part, column in (("key", records.keys), ("value", records.values)):
                schema, value = settings.converter(part).read(pair[0], column[row] if column is not None else None, None)
                found.append(spark_type(schema) or StringType())
            return found
    raise ConfigError.of({"topics": "have no records to infer the columns from: pass .schema(…)"})


def _limited(start, ends, most, ranges):
    """Limit ends to `most` offsets in total, proportionally to each partition's lag."""
    new = [pair for pair in ends if pair not in start]
    begins = {**start, **(ranges().begins(new) if new else {})}
    left = {pair: max(0, ends[pair] - begins[pair]) for pair in ends}
    total = sum(left.values())
    if total <= most:
        return ends
    shares = {pair: max(1, count * most // total) if count else 0 for pair, count in left.items()}
    return {pair: min(ends[pair], begins[pair] + shares[pair]) for pair in ends}


def _shown(offsets):
    shown = {}
    for (topic, partition), offset in sorted(offsets.items()):
        shown.setdefault(topic, {})[str(partition)] = offset
    return shown


def _pairs_of(shown):
    return {(topic, int(partition)): offset for topic, each in shown.items() for partition, offset in each.items()}
