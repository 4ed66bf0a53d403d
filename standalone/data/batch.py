"""A batch: consecutive records with the same key and value schema, as rows or columns.

Operations on columns are in data/column.py. Each view is built from the other on demand.
"""

import numpy as np

from standalone.data import schema as s
from standalone.data.column import (
    columnar,
    concat,
    concat_headers,
    concat_longs,
    concat_spread,
    cut,
    folded,
    is_stored_as,
    nbytes,
    nulls_of,
    one_piece,
    shape_of,
    spread,
    take,
    to_arrow,
    to_bytes,
    unshaped,
    values_of,
)
from standalone.data.record import SinkRecord, SourceRecord
from standalone.wire import NO_TIMESTAMP, NO_TIMESTAMP_TYPE, ByteColumn

NO_OFFSET = -1


class Batch:
    """The base of source and sink batches.

    `topic` and `partition` are one value for all rows, or a list with a value per row.
    """

    def __init__(self, count, topic, value=None, value_schema=None, key=None, key_schema=None, partition=None, timestamps=None, headers=None):
        self.count = count
        self.topic = topic
        self.partition = partition
        self.key = key
        self.key_schema = key_schema
        self.value = value
        self.value_schema = value_schema
        self.timestamps = timestamps  # int64 array of milliseconds, -1 is unset; or None
        self.headers = headers  # a list with a tuple of Headers per row; or None
        self._records = None
        self._arrow = {}  # cached by part: several parts of a sink may ask for it

    def __len__(self):
        return self.count

    @property
    def nbytes(self):
        """Estimated size of keys and values, to bound queues. Values in lists are not counted."""
        return nbytes(self.key) + nbytes(self.value)

    def nulls(self):
        """Boolean array of the rows whose value is null."""
        column = self.value
        if column is None:
            return np.ones(self.count, bool)
        if isinstance(column, list):
            return np.array([value is None for value in column], bool)
        return nulls_of(column.column if shape_of(column) is not None else column)

    def records(self):
        """The row view: a list of records."""
        if self._records is None:
            self._records = list(self._rows())
        return self._records

    def texts(self):
        """Return a ByteColumn of the values' Java toString texts (bytes unchanged), with nulls; None if the values are not columnar or
        no kernel formats them: then format record by record.
        """
        column, schema = self.value, self.value_schema
        shape = shape_of(column)
        if shape is not None:
            from standalone.data.java_text_column import java_texts

            return None if shape.type == s.BYTES else java_texts(column)
        if isinstance(column, ByteColumn):
            return column
        if column is None or not is_stored_as(column, schema):
            return None
        if schema.type in (s.STRING, s.BYTES) and not schema.logical:
            return to_bytes(column)
        from standalone.data.java_text_column import java_texts

        return java_texts(column, schema)

    def arrow(self, part="value"):
        """Return (schema, values or keys as an Arrow array as in data/arrow.py). Schemaless values of one shape get that as schema. Raise
        ValueError or TypeError if they are not columnar; the rows then show the error.
        """
        if part not in self._arrow:
            column, schema = unshaped(getattr(self, part), getattr(self, f"{part}_schema"))
            if schema is None:
                raise ValueError(f"the {part}s have no schema")
            if not isinstance(column, list):  # a list may hold a plain float for a float32
                column = columnar(column, schema, self.count)
            self._arrow[part] = schema, one_piece(to_arrow(column, schema, self.count))
        return self._arrow[part]

    def _parts(self, low, high):
        """Keyword arguments for a batch of rows low to high of this one."""
        names = ("topic", "partition", "key", "value", "timestamps", "headers")
        count = len(range(*slice(low, high).indices(self.count)))
        columns = {name: cut(getattr(self, name), low, high) for name in names}
        return {"count": count, "key_schema": self.key_schema, "value_schema": self.value_schema, **columns}

    def _shared_rows(self):
        count = self.count
        unset = [None] * count
        times = unset if self.timestamps is None else [None if t == NO_TIMESTAMP else t for t in self.timestamps.tolist()]
        return zip(
            spread(self.topic, count),
            spread(self.partition, count),
            values_of(self.key, self.key_schema, count),
            values_of(self.value, self.value_schema, count),
            times,
            self.headers if self.headers is not None else [()] * count,
        )


class SourceBatch(Batch):
    """Records polled from one source partition.

    `offset_of(row)` is the source offset after that row: where the next row begins. `more_follows`: the next poll will return
    records at once, so a chain that is faster with large batches waits for them.
    """

    def __init__(self, count, topic, value=None, value_schema=None, *, source_partition=None, offset_of=None, more_follows=False, **rest):
        super().__init__(count, topic, value, value_schema, **rest)
        self.source_partition = source_partition
        self.more_follows = more_follows
        self.offset_of = offset_of or (lambda row: None)

    @classmethod
    def runs(cls, records):
        """Group SourceRecords into batches by schema and source partition; order is kept."""
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
        """Whether both batches can be joined into one: they hold only values, sliced from buffers."""
        return (
            all(isinstance(batch.value, ByteColumn) and batch.key is batch.headers is batch._records is None for batch in (self, other))
            and (self.topic, self.partition, self.source_partition) == (other.topic, other.partition, other.source_partition)
            and (self.key_schema, self.value_schema) == (other.key_schema, other.value_schema)
            and (self.timestamps is None) == (other.timestamps is None)
        )

    @classmethod
    def join(cls, batches):
        """Concatenate batches that can be joined."""
        if len(batches) == 1:
            return batches[0]
        first, ends = batches[0], np.cumsum([len(batch) for batch in batches])

        def offset_of(row):
            at = int(np.searchsorted(ends, row, side="right"))
            return batches[at].offset_of(row - (int(ends[at - 1]) if at else 0))

        schemas = {"key_schema": first.key_schema, "value_schema": first.value_schema}
        return cls(source_partition=first.source_partition, offset_of=offset_of, **schemas, **joined_parts(batches))

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
    """Records of one partition for a sink.

    `offsets` are theirs in the log, ascending but not without gaps; `origin` is the (topic, partition) they were fetched from; `prepared` is
    what the task's `prepare` made of it, None where it was not asked.
    """

    prepared = None

    def __init__(self, count, topic, value=None, value_schema=None, *, offsets=None, timestamp_type=NO_TIMESTAMP_TYPE, origin=None, **rest):
        super().__init__(count, topic, value, value_schema, **rest)
        self.offsets = offsets
        self.timestamp_type = timestamp_type
        self.origin = origin or (topic, self.partition)

    def slice(self, low, high):
        """Rows low to high as a batch, without copying columns."""
        if low <= 0 and high >= self.count:
            return self
        part = SinkBatch(offsets=self.offsets[low:high], timestamp_type=self.timestamp_type, origin=self.origin, **self._parts(low, high))
        if self._records is not None:
            part._records = self._records[low:high]
        return part

    def take(self, rows):
        """These rows, an array of numbers, as a batch."""
        names = ("topic", "partition", "key", "value", "timestamps", "headers", "offsets")
        columns = {name: take(getattr(self, name), rows) for name in names}
        schemas = {"key_schema": self.key_schema, "value_schema": self.value_schema}
        return SinkBatch(len(rows), timestamp_type=self.timestamp_type, origin=self.origin, **schemas, **columns)

    @classmethod
    def runs(cls, records):
        """Group SinkRecords into batches by schema and origin; order is kept."""
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


def joined_parts(batches):
    """Concatenate batches of the same schemas: keyword arguments for a batch, without the schemas."""
    first, counts = batches[0], [batch.count for batch in batches]

    def each(name):
        return [getattr(batch, name) for batch in batches]

    parts = {name: concat(each(name), getattr(first, f"{name}_schema"), counts) for name in ("key", "value")}
    parts.update({name: concat_spread(each(name), counts) for name in ("topic", "partition")})
    parts.update(timestamps=concat_longs(each("timestamps"), counts, NO_TIMESTAMP), headers=concat_headers(each("headers"), counts))
    if hasattr(first, "offsets"):
        parts["offsets"] = concat_longs(each("offsets"), counts, NO_OFFSET)
    return {"count": sum(counts), **parts}


def _alike(a, b):
    return (a.value_schema is b.value_schema or a.value_schema == b.value_schema) and (a.key_schema is b.key_schema or a.key_schema == b.key_schema)


def columns_of(records):
    """The column view of records with the same schemas: lists of values; a single value if all rows share it."""
    first = records[0]
    times = [NO_TIMESTAMP if record.timestamp is None else record.timestamp for record in records]
    return {
        "topic": folded([record.topic for record in records]),
        "partition": folded([record.partition for record in records]),
        "key": [record.key for record in records],
        "key_schema": first.key_schema,
        "value": [record.value for record in records],
        "value_schema": first.value_schema,
        "timestamps": np.array(times, np.int64) if any(time != NO_TIMESTAMP for time in times) else None,
        "headers": [record.headers for record in records] if any(record.headers for record in records) else None,
    }
