"""A batch as columns with their schemas, as conversion produces it and segments pass it on."""

import pyarrow as pa

from standalone.data import column
from standalone.data.batch import SinkBatch, SourceBatch, joined_parts
from standalone.wire import NO_TIMESTAMP

_POLLED = ("count", "topic", "partition", "key", "key_schema", "value", "value_schema", "timestamps", "headers")
_ROWS = ("topic", "partition", "key", "value", "timestamps", "headers", "offsets")  # attributes that may differ per row


class ColumnBatch:
    """A batch as columns. `topic` and `partition` are one value for all rows, or a list with a value per row; `offsets` is set for sinks only."""

    __slots__ = ("count", *_ROWS, "key_schema", "value_schema", "timestamp_type")

    def __init__(self, count, topic, **parts):
        self.count = count
        self.topic = topic
        for name in self.__slots__[2:]:
            setattr(self, name, parts.get(name))

    @classmethod
    def of_source(cls, batch):
        return cls(**{name: getattr(batch, name) for name in _POLLED})

    def with_(self, **changes):
        parts = {name: getattr(self, name) for name in self.__slots__}
        return ColumnBatch(**{**parts, **changes})

    @property
    def key_shape(self):
        return column.shape_of(self.key)

    @property
    def value_shape(self):
        return column.shape_of(self.value)

    def take(self, rows):
        """Return a batch of these rows only."""
        return self.with_(count=len(rows), **{name: column.take(getattr(self, name), rows) for name in _ROWS})

    def cut(self, low, high):
        """The rows from low to high, not copied."""
        return self.with_(count=high - low, **{name: column.cut(getattr(self, name), low, high) for name in _ROWS})

    def piece(self, low, high):
        """Copy rows low to high into their own buffers, for another process."""
        return self.with_(count=high - low, **{name: column.compact(getattr(self, name), low, high) for name in _ROWS})


def joined_batches(batches):
    """Concatenate batches; None if their schemas differ."""
    first = batches[0]
    for name in ("key_schema", "value_schema", "key_shape", "value_shape", "timestamp_type"):
        if any(getattr(batch, name) != getattr(first, name) for batch in batches):
            return None
    return first.with_(**joined_parts(batches))


def sink_batch(batch, topic, partition):
    """Convert to a batch for a sink, with records from that partition."""
    return SinkBatch(origin=(topic, partition), **{name: getattr(batch, name) for name in ColumnBatch.__slots__})


def source_batch(batch, source_partition, offset_of):
    """Convert to a source's batch as polled."""
    return SourceBatch(source_partition=source_partition, offset_of=offset_of, **{name: getattr(batch, name) for name in _POLLED})


# --- What a batch has besides key and value, in Arrow --------------------------------------------------------------


def arrow_each(given, count, kind):
    """One value for all rows, or a list with a value per row."""
    return pa.array(given, kind) if isinstance(given, list) else pa.repeat(pa.scalar(given, kind), count)


def arrow_times(timestamps, count):
    if timestamps is None:
        return pa.nulls(count, pa.int64())
    unset = timestamps == NO_TIMESTAMP
    return pa.array(timestamps, pa.int64(), mask=unset if unset.any() else None)


def timestamps_of(column):
    """Convert an Arrow array of timestamps to a batch's timestamps."""
    if column is None:
        return None
    return (column.fill_null(NO_TIMESTAMP) if column.null_count else column).to_numpy(zero_copy_only=False)
