"""A batch as columns with their schemas: what conversion makes of bytes, and what the segments of a chain hand on."""

import numpy as np
import pyarrow as pa

from standalone.data import column, utf8
from standalone.data import schema as s
from standalone.data.arrow import arrow_type, to_arrow
from standalone.data.batch import SinkBatch
from standalone.data.scalars import CLASSES, Float32, Instant
from standalone.data.struct import Struct
from standalone.data.struct_column import Shaped, StructColumn, pick
from standalone.pipeline.columns.types import has_parts
from standalone.wire import NO_TIMESTAMP, ByteColumn


class NotColumns(ValueError):
    """These values are no column of that schema: what is wrong with them is for the rows engine to say."""


class ColumnBatch:
    """A batch as columns. `topic` and `partition` are one value for all rows, or a list with one for each; `offsets` only for sinks."""

    _COLUMNS = ("key", "key_schema", "value", "value_schema", "timestamps", "headers", "offsets", "timestamp_type")
    __slots__ = ("count", "topic", "partition", *_COLUMNS)

    def __init__(self, count, topic, **parts):
        self.count = count
        self.topic = topic
        for name in self.__slots__[2:]:
            setattr(self, name, parts.get(name))

    @classmethod
    def of_source(cls, batch):
        names = ("partition", "key", "key_schema", "value", "value_schema", "timestamps", "headers")
        return cls(batch.count, batch.topic, **{name: getattr(batch, name) for name in names})

    def with_(self, **changes):
        parts = {name: getattr(self, name) for name in self.__slots__}
        return ColumnBatch(**{**parts, **changes})

    @property
    def key_shape(self):
        return self.key.shape if isinstance(self.key, Shaped) else None

    @property
    def value_shape(self):
        return self.value.shape if isinstance(self.value, Shaped) else None

    def take(self, rows):
        """These rows alone."""
        return self._each(len(rows), lambda items: pick(items, rows))

    def piece(self, low, high):
        """The rows from low to high, in buffers of their own: to be carried to another process."""
        return self._each(high - low, lambda items: column.compact(items, low, high))

    def _each(self, count, change):
        """The same with each part that has an item for each row changed."""
        names = ["key", "value", "timestamps", "offsets"]
        names += [name for name in ("topic", "partition", "headers") if isinstance(getattr(self, name), list)]
        return self.with_(count=count, **{name: change(getattr(self, name)) for name in names})


def joined_batches(batches):
    """Several as one; None where they are not alike."""
    first, counts = batches[0], [batch.count for batch in batches]
    for name in ("key_schema", "value_schema", "key_shape", "value_shape", "timestamp_type"):
        if any(getattr(batch, name) != getattr(first, name) for batch in batches):
            return None

    def every(name, default):
        if all(getattr(batch, name) is None for batch in batches):
            return None
        return [item for batch in batches for item in (getattr(batch, name) or [default] * batch.count)]

    def one_or_all(name):
        given = [getattr(batch, name) for batch in batches]
        if not any(isinstance(each, list) for each in given) and given.count(given[0]) == len(given):
            return given[0]
        return [item for each, count in zip(given, counts) for item in (each if isinstance(each, list) else [each] * count)]

    times = [batch.timestamps for batch in batches]
    if all(time is None for time in times):
        timestamps = None
    else:
        unset = (np.full(count, NO_TIMESTAMP, np.int64) for count in counts)
        timestamps = np.concatenate([none if time is None else time for time, none in zip(times, unset)])
    return first.with_(
        count=sum(counts),
        topic=one_or_all("topic"),
        partition=one_or_all("partition"),
        key=column.concat([batch.key for batch in batches], first.key_schema, counts),
        value=column.concat([batch.value for batch in batches], first.value_schema, counts),
        timestamps=timestamps,
        headers=every("headers", ()),
        offsets=None if first.offsets is None else np.concatenate([batch.offsets for batch in batches]),
    )


def sink_batch(batch, topic, partition):
    """The same as a batch for a sink, whose records came from that partition."""
    return SinkBatch(
        batch.count,
        batch.topic,
        batch.value,
        batch.value_schema,
        offsets=batch.offsets,
        timestamp_type=batch.timestamp_type,
        origin=(topic, partition),
        key=batch.key,
        key_schema=batch.key_schema,
        partition=batch.partition,
        timestamps=batch.timestamps,
        headers=batch.headers,
    )


# --- Columns out of values -----------------------------------------------------------------------------------------

_EXACT = {s.STRING: {str}, s.BYTES: {bytes}, s.BOOLEAN: {bool}, s.FLOAT64: {float}, s.FLOAT32: {Float32}}
_EXACT.update({kind: {int, width} for kind, width in CLASSES.items()})


def columnar(column, schema, count):
    """A column of that schema as a ByteColumn of valid text or bytes, a StructColumn, or an Arrow array. Raises NotColumns."""
    if isinstance(column, ByteColumn):
        if schema.type == s.STRING:
            return repaired(column)
        if schema.type == s.BYTES and not schema.logical:
            return column
        raise NotColumns(f"bytes are no {schema.name or schema.type}")
    if isinstance(column, StructColumn) and has_parts(schema):
        return column
    try:
        if isinstance(column, list):
            return _of_values(column, schema)
        array = to_arrow(column, schema, count)
    except (ValueError, TypeError, OverflowError) as error:
        raise NotColumns(str(error)) from error
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _of_values(values, schema):
    """An Arrow array of Python values: of exactly the classes that the schema says, or the rows engine must judge them."""
    kind = arrow_type(schema)
    classes = set(map(type, values)) - {type(None)}
    if schema.name == s.DECIMAL:
        return to_arrow(values, schema)
    if schema.logical:
        _must_be(classes, {Instant}, schema)
        return pa.array([None if value is None else value.ms for value in values], kind)
    if schema.type in _EXACT:
        _must_be(classes, _EXACT[schema.type], schema)
        return pa.array(values, kind)
    nulls = pa.array([value is None for value in values], pa.bool_()) if None in values else None
    if schema.type == s.STRUCT:
        _must_be(classes, {Struct}, schema)
        if not all(value is None or value.schema is schema or value.schema == schema for value in values):
            raise NotColumns("structs of another schema")
        if not schema.fields:
            return to_arrow(values, schema)
        blank = [None] * len(schema.fields)
        columns = zip(*(blank if value is None else value.values for value in values))
        parts = [_of_values(list(column), field.schema) for column, field in zip(columns, schema.fields)]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=nulls)
    _must_be(classes, {list} if schema.type == s.ARRAY else {dict}, schema)
    ends = np.cumsum([0] + [len(value or ()) for value in values], dtype=np.int32)
    if schema.type == s.ARRAY:
        items = _of_values([item for value in values for item in value or ()], schema.value_schema)
        return pa.ListArray.from_arrays(pa.array(ends), items, type=kind, mask=nulls)
    keys = _of_values([key for value in values for key in value or ()], schema.key_schema)
    if keys.null_count:
        raise NotColumns("a null among the keys of a map")
    items = _of_values([item for value in values for item in (value or {}).values()], schema.value_schema)
    return pa.MapArray.from_arrays(pa.array(ends), keys, items, type=kind, mask=nulls)


def _must_be(found, allowed, schema):
    if not found <= allowed:
        raise NotColumns(f"a {', '.join(sorted(each.__name__ for each in found - allowed))} is no {schema.name or schema.type}")


def repaired(column):
    """The same texts, with U+FFFD where the bytes are no UTF-8; the column itself where all of them are."""
    if not len(column) or _all_valid(column):
        return column
    packed = column.compact()
    if packed is not column and _all_valid(packed):
        return column
    return ByteColumn.of([None if item is None else utf8.encode(utf8.decode(item)) for item in packed])


def _all_valid(column):
    """Whether all items are UTF-8, by one look at the whole stretch of the buffer that they lie in."""
    filled = column.lengths > 0
    starts = column.starts if filled.all() else column.starts[filled]
    if not len(starts):
        return True
    ends = starts + (column.lengths if len(starts) == len(column) else column.lengths[filled])
    low, high = int(starts.min()), int(ends.max())
    inner = ends[ends < high]
    # No item may begin or end in the midst of a character of the stretch.
    if _continues(column.data[starts]) or _continues(column.data[inner]):
        return False
    text = pa.py_buffer(np.ascontiguousarray(column.data[low:high]))
    bounds = pa.py_buffer(np.array([0, high - low], np.int64))
    try:
        pa.Array.from_buffers(pa.large_string(), 1, [None, bounds, text]).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _continues(first_bytes):
    return bool(((first_bytes & 0xC0) == 0x80).any())
