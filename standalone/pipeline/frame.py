"""A batch as columns with their schemas, and the leaves that a plan ships to Spark or leaves where they are.

A struct that is null in no row is taken apart: each field is a leaf of its own and goes its own way. Everything else is one leaf.
"""

import numpy as np
import pyarrow as pa

from standalone.data import schema as s
from standalone.data import utf8
from standalone.data.arrow import arrow_type, to_arrow
from standalone.data.batch import SinkBatch
from standalone.data.scalars import CLASSES, Float32, Instant
from standalone.data.struct import Struct
from standalone.data.struct_column import Shaped, StructColumn, pick
from standalone.pipeline.types import has_parts
from standalone.wire import NO_TIMESTAMP, ByteColumn


class NotColumns(ValueError):
    """These values are no column of that schema: what is wrong with them is for the rows engine to say."""


class Frame:
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
        return Frame(**{**parts, **changes})

    @property
    def key_shape(self):
        return self.key.shape if isinstance(self.key, Shaped) else None

    @property
    def value_shape(self):
        return self.value.shape if isinstance(self.value, Shaped) else None

    def take(self, rows):
        """These rows alone."""
        names = ["key", "value", "timestamps", "offsets"]
        names += [name for name in ("topic", "partition", "headers") if isinstance(getattr(self, name), list)]
        return self.with_(count=len(rows), **{name: pick(getattr(self, name), rows) for name in names})


def sink_batch(frame, topic, partition):
    """A frame's records as a batch for a sink, which came from that partition."""
    return SinkBatch(
        frame.count,
        frame.topic,
        frame.value,
        frame.value_schema,
        offsets=frame.offsets,
        timestamp_type=frame.timestamp_type,
        origin=(topic, partition),
        key=frame.key,
        key_schema=frame.key_schema,
        partition=frame.partition,
        timestamps=frame.timestamps,
        headers=frame.headers,
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


# --- Leaves --------------------------------------------------------------------------------------------------------


HEADER_NAMES = s.SchemaBuilder.array(s.Schema.STRING).build()


class Leaf:
    """One column that goes its way as a whole: its name for Spark, its schema, and whether any row is null."""

    __slots__ = ("name", "schema", "nullable")

    def __init__(self, name, schema, nullable):
        self.name = name
        self.schema = schema
        self.nullable = nullable

    def _key(self):
        return (self.name, self.schema, self.nullable)

    def __eq__(self, other):
        return isinstance(other, Leaf) and self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def __str__(self):
        return self.name


class Leaves:
    """A frame taken apart. `shape` says how, and is the same for all frames that one plan serves: what it knows of `topic`, `partition`,
    `key`, `value`, `timestamp` and `offset` is a plain value, a Leaf, a tuple of such for a struct's fields, NULL or UNKNOWN.
    """

    NULL = "null in every row"
    UNKNOWN = "of no known type"

    def __init__(self, frame, seen_nulls):
        """`seen_nulls` is a set that remembers which leaves ever had a null: those count as nullable from then on, or there
        would be a plan to compile for each way in which nulls can be spread over the fields.
        """
        self.columns = {}  # of each leaf by its name
        self.worked = {}  # what was worked out of them (nodes.py), for those who ask again
        self._seen_nulls = seen_nulls
        self.count = frame.count
        self.shape = {
            "topic": self._one_or_all("topic", frame.topic, s.Schema.OPTIONAL_STRING),
            "partition": self._one_or_all("partition", frame.partition, s.Schema.OPTIONAL_INT32),
            "timestamp": self._timestamp(frame.timestamps),
            "offset": self.NULL if frame.offsets is None else self._leaf("offset", pa.array(frame.offsets), s.Schema.INT64),
            "key": self._part("k", frame.key, frame.key_schema),
            "value": self._part("v", frame.value, frame.value_schema),
            "header_names": self._header_names(frame.headers),
        }
        self.key = (
            *self.shape.values(),
            frame.key_schema,
            frame.value_schema,
            frame.key_shape,
            frame.value_shape,
            frame.timestamp_type,
        )

    def _one_or_all(self, name, given, schema):
        return self._leaf(name, pa.array(given, arrow_type(schema)), schema) if isinstance(given, list) else given

    def _timestamp(self, timestamps):
        if timestamps is None:
            return self.NULL
        unset = timestamps == NO_TIMESTAMP
        array = pa.array(timestamps, mask=unset if unset.any() else None)
        return self._leaf("timestamp", array, s.Schema.OPTIONAL_INT64)

    def _header_names(self, headers):
        """One leaf, for those who ask which headers a row has: few do, so it is made an array only for them."""
        if headers is None or not any(headers):
            return self.NULL
        self.columns["header_names"] = headers
        return Leaf("header_names", HEADER_NAMES, False)

    def _part(self, name, column, schema):
        if isinstance(column, Shaped):
            column, schema = column.column, column.shape
        if schema is None:
            return self.UNKNOWN
        if column is None:
            return self.NULL
        return self._taken_apart(name, columnar(column, schema, self.count), schema)

    def _taken_apart(self, name, column, schema):
        if isinstance(column, StructColumn) or has_parts(schema) and not isinstance(column, ByteColumn) and not column.null_count:
            parts = zip(column.parts if isinstance(column, StructColumn) else column.flatten(), schema.fields)
            return tuple(self._taken_apart(f"{name}_{field.index}", part, field.schema) for part, field in parts)
        return self._leaf(name, column, schema)

    def _leaf(self, name, column, schema):
        self.columns[name] = column
        if (column.lengths < 0).any() if isinstance(column, ByteColumn) else column.null_count:
            self._seen_nulls.add((name, schema))
        return Leaf(name, schema, (name, schema) in self._seen_nulls)

    def arrow(self, leaf, count=None):
        """The column of a leaf as an Arrow array: all of it, or its first rows."""
        column = self.columns[leaf.name]
        if count is not None:
            column = column.slice(0, count) if isinstance(column, ByteColumn) else column[:count]
        if leaf.schema is HEADER_NAMES:
            names = [[header.name for header in each or ()] for each in column]
            return pa.array(names, arrow_type(HEADER_NAMES))
        return to_arrow(column, leaf.schema)


def leaves_in(shape):
    """All leaves of one part of a shape."""
    if isinstance(shape, Leaf):
        return [shape]
    return [leaf for part in shape for leaf in leaves_in(part)] if isinstance(shape, tuple) else []
