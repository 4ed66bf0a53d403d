"""A batch: a run of records that share key schema and value schema, seen as rows or as columns.

A column is one of
- None: null in every row,
- a `ByteColumn`: strings (as UTF-8) or bytes, sliced out of a buffer; what files and the log hold,
- an Arrow array of the schema's Arrow type (data/arrow.py),
- a `StructColumn`: structs of which none is null, as the columns of their fields,
- a `Shaped`: values without a schema that are all of one shape, as one of the above,
- a list of Python values, as they stand in records.
Each view is made from the other only when someone asks.
"""

import numpy as np

from standalone.data import schema as s
from standalone.data import utf8
from standalone.data.record import SinkRecord, SourceRecord
from standalone.data.struct import Struct
from standalone.data.struct_column import Shaped, StructColumn, cut, loosened, maps_of
from standalone.wire import NO_TIMESTAMP, NO_TIMESTAMP_TYPE, ByteColumn, concat


def values_of(column, schema, count):
    """The Python values of a column, as a list."""
    if column is None:
        return [None] * count
    if isinstance(column, list):
        return column
    if isinstance(column, ByteColumn):
        return utf8.texts_of(column) if schema is not None and schema.type == s.STRING else list(column)
    if isinstance(column, Shaped) and isinstance(column.column, StructColumn) and column.shape.fields:
        fields = list(zip(column.shape.fields, column.column.parts))
        parts = [values_of(None if part is None else Shaped(field.schema, part), None, count) for field, part in fields]
        return maps_of([field.name for field, _ in fields], parts)
    if isinstance(column, Shaped):
        return loosened(values_of(column.column, column.shape, count), column.shape)
    if isinstance(column, StructColumn):
        fields = [values_of(part, field.schema, count) for part, field in zip(column.parts, column.schema.fields)]
        trusted = Struct.trusted
        return [trusted(column.schema, list(row)) for row in zip(*fields)] if fields else [trusted(column.schema, []) for _ in range(count)]
    from standalone.data.arrow import from_arrow

    return from_arrow(column, schema)


class Batch:
    """What both kinds of batch share.

    `topic` and `partition` are one value for all rows, or a list with one for each.
    """

    def __init__(self, count, topic, value=None, value_schema=None, key=None, key_schema=None, partition=None, timestamps=None, headers=None):
        self.count = count
        self.topic = topic
        self.partition = partition
        self.key = key
        self.key_schema = key_schema
        self.value = value
        self.value_schema = value_schema
        self.timestamps = timestamps  # int64 array of milliseconds, -1 is unset | None
        self.headers = headers  # a list of tuples of Header, a row each | None
        self._records = None

    def __len__(self):
        return self.count

    @property
    def nbytes(self):
        """About what keys and values take: a bound for queues, not an account. Of values in lists nobody knows."""
        return sum(column.nbytes for column in (self.key, self.value) if column is not None and not isinstance(column, list))

    def records(self):
        """The row view: a list of records."""
        if self._records is None:
            self._records = list(self._rows())
        return self._records

    def texts(self):
        """The values as a ByteColumn of the texts that Java prints of them (bytes are as they are), null where they are null; or None
        where they are not in columns, or there is no quick way: then each record has its own.
        """
        column, schema = self.value, self.value_schema
        if column is None or isinstance(column, (list, StructColumn)):
            return None
        if isinstance(column, ByteColumn):
            return column
        if isinstance(column, Shaped):
            from standalone.data.java_text_column import java_texts

            return None if column.shape.type == s.BYTES else java_texts(column)
        is_text = schema is not None and schema.type in (s.STRING, s.BYTES) and not schema.logical
        return ByteColumn.from_arrow(column) if is_text else None

    def _parts(self, low, high):
        """What a batch of the rows low to high shares with this one, as keyword arguments."""
        rows = slice(low, high)
        return {
            "count": len(range(*rows.indices(self.count))),
            "topic": self.topic[rows] if isinstance(self.topic, list) else self.topic,
            "partition": self.partition[rows] if isinstance(self.partition, list) else self.partition,
            "key": cut(self.key, low, high),
            "key_schema": self.key_schema,
            "value": cut(self.value, low, high),
            "value_schema": self.value_schema,
            "timestamps": cut(self.timestamps, low, high),
            "headers": cut(self.headers, low, high),
        }

    def _shared_rows(self):
        count = self.count
        unset = [None] * count
        times = unset if self.timestamps is None else [None if t == NO_TIMESTAMP else t for t in self.timestamps.tolist()]
        return zip(
            self.topic if isinstance(self.topic, list) else [self.topic] * count,
            self.partition if isinstance(self.partition, list) else [self.partition] * count,
            values_of(self.key, self.key_schema, count),
            values_of(self.value, self.value_schema, count),
            times,
            self.headers if self.headers is not None else [()] * count,
        )


class SourceBatch(Batch):
    """Records polled from one source partition.

    `offset_of(row)` is the source offset behind that row: where the next one begins. `more_follows` tells that the next poll will
    find more at once: a chain that is quicker with large batches then waits for it.
    """

    def __init__(self, count, topic, value=None, value_schema=None, *, source_partition=None, offset_of=None, more_follows=False, **rest):
        super().__init__(count, topic, value, value_schema, **rest)
        self.source_partition = source_partition
        self.more_follows = more_follows
        self.offset_of = offset_of or (lambda row: None)

    @classmethod
    def runs(cls, records):
        """A list of SourceRecords as batches: a new one wherever schema or source partition change; order is kept."""
        start = 0
        for at in range(1, len(records) + 1):
            if at == len(records) or not _alike(records[start], records[at]) or records[start].source_partition != records[at].source_partition:
                yield cls._of(records[start:at])
                start = at

    @classmethod
    def _of(cls, records):
        first = records[0]
        batch = cls(len(records), source_partition=first.source_partition, offset_of=lambda row: records[row].source_offset, **columns_of(records))
        batch._records = records
        return batch

    def joins(self, other):
        """Whether the other batch can stand behind this one in one batch: both are values alone, sliced out of buffers."""
        return (
            all(isinstance(batch.value, ByteColumn) and batch.key is batch.headers is batch._records is None for batch in (self, other))
            and (self.topic, self.partition, self.source_partition) == (other.topic, other.partition, other.source_partition)
            and (self.key_schema, self.value_schema) == (other.key_schema, other.value_schema)
            and (self.timestamps is None) == (other.timestamps is None)
        )

    @classmethod
    def join(cls, batches):
        """Batches that join each other, as one."""
        if len(batches) == 1:
            return batches[0]
        first, ends = batches[0], np.cumsum([len(batch) for batch in batches])

        def offset_of(row):
            at = int(np.searchsorted(ends, row, side="right"))
            return batches[at].offset_of(row - (int(ends[at - 1]) if at else 0))

        return cls(
            int(ends[-1]),
            first.topic,
            concat([batch.value for batch in batches]),
            first.value_schema,
            source_partition=first.source_partition,
            offset_of=offset_of,
            partition=first.partition,
            key_schema=first.key_schema,
            timestamps=None if first.timestamps is None else np.concatenate([batch.timestamps for batch in batches]),
        )

    def _rows(self):
        for row, (topic, partition, key, value, timestamp, headers) in enumerate(self._shared_rows()):
            yield SourceRecord(
                topic,
                value,
                self.source_partition,
                self.offset_of(row),
                partition=partition,
                key_schema=self.key_schema,
                key=key,
                value_schema=self.value_schema,
                timestamp=timestamp,
                headers=headers,
            )


class SinkBatch(Batch):
    """Records of one partition of the log, on their way to a sink.

    `offsets` are theirs in the log, ascending but not without gaps; `origin` is the (topic, partition) they were fetched from.
    """

    def __init__(self, count, topic, value=None, value_schema=None, *, offsets=None, timestamp_type=NO_TIMESTAMP_TYPE, origin=None, **rest):
        super().__init__(count, topic, value, value_schema, **rest)
        self.offsets = offsets
        self.timestamp_type = timestamp_type
        self.origin = origin or (topic, self.partition)

    def slice(self, low, high):
        """The rows low to high as a batch of their own; columns are not copied."""
        if low <= 0 and high >= self.count:
            return self
        part = SinkBatch(offsets=self.offsets[low:high], timestamp_type=self.timestamp_type, origin=self.origin, **self._parts(low, high))
        if self._records is not None:
            part._records = self._records[low:high]
        return part

    @classmethod
    def runs(cls, records):
        """A list of SinkRecords as batches: a new one wherever schema or origin change; order is kept."""
        start = 0
        for at in range(1, len(records) + 1):
            if at == len(records) or not _alike(records[start], records[at]) or records[start].origin != records[at].origin:
                run = records[start:at]
                batch = cls(
                    len(run),
                    offsets=np.array([record.original_offset for record in run], np.int64),
                    timestamp_type=run[0].timestamp_type,
                    origin=run[0].origin,
                    **columns_of(run),
                )
                batch._records = run
                yield batch
                start = at

    def _rows(self):
        fetched, origin, timestamp_type = SinkRecord.fetched, self.origin, self.timestamp_type
        key_schema, value_schema = self.key_schema, self.value_schema
        for offset, (topic, partition, key, value, timestamp, headers) in zip(self.offsets.tolist(), self._shared_rows()):
            yield fetched(origin, offset, timestamp_type, topic, partition, key_schema, key, value_schema, value, timestamp, tuple(headers))


def _alike(a, b):
    return (a.value_schema is b.value_schema or a.value_schema == b.value_schema) and (a.key_schema is b.key_schema or a.key_schema == b.key_schema)


def columns_of(records):
    """The column view of records that are alike: lists of their values; one value where all rows have it."""
    first = records[0]

    def one_or_all(name):
        items = [getattr(record, name) for record in records]
        return items[0] if items.count(items[0]) == len(items) else items

    times = [NO_TIMESTAMP if record.timestamp is None else record.timestamp for record in records]
    return {
        "topic": one_or_all("topic"),
        "partition": one_or_all("partition"),
        "key": [record.key for record in records],
        "key_schema": first.key_schema,
        "value": [record.value for record in records],
        "value_schema": first.value_schema,
        "timestamps": np.array(times, np.int64) if any(time != NO_TIMESTAMP for time in times) else None,
        "headers": [record.headers for record in records] if any(record.headers for record in records) else None,
    }
