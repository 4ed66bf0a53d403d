"""A batch split into leaves: columns that stay in Python or are sent to Spark.

A struct without null rows is split: each field is its own leaf. Everything else is one leaf.
"""

import pyarrow as pa

from standalone.data import schema as s
from standalone.data.arrow import arrow_type
from standalone.data.column import columnar, fields_of, null_count, to_arrow, unshaped
from standalone.pipeline.columns.batch import arrow_each, arrow_times

HEADER_NAMES = s.SchemaBuilder.array(s.Schema.STRING).build()


class Leaf:
    """One column: its name in Spark, its schema, and whether any row is null."""

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
    """A split batch. `shape` is the same for all batches that a plan can process: its `topic`, `partition`,
    `key`, `value`, `timestamp` and `offset` are each a plain value, a Leaf, a tuple of these for a struct's fields, NULL or UNKNOWN.
    """

    NULL = "null in every row"
    UNKNOWN = "of no known type"

    def __init__(self, batch, seen_nulls):
        """`seen_nulls` remembers which leaves ever had a null: these count as nullable from then on. Otherwise each combination of
        nullable fields would compile its own plan.
        """
        self.columns = {}  # leaf name -> column
        self._seen_nulls = seen_nulls
        self.count = batch.count
        self.shape = {
            "topic": self._one_or_all("topic", batch.topic, s.Schema.OPTIONAL_STRING),
            "partition": self._partition(batch.partition),
            "timestamp": self._timestamp(batch.timestamps),
            "offset": self.NULL if batch.offsets is None else self._leaf("offset", pa.array(batch.offsets), s.Schema.INT64),
            "key": self._part("k", batch.key, batch.key_schema),
            "value": self._part("v", batch.value, batch.value_schema),
            "header_names": self._header_names(batch.headers),
        }
        self.key = (
            *self.shape.values(),
            batch.key_schema,
            batch.value_schema,
            batch.key_shape,
            batch.value_shape,
            batch.timestamp_type,
        )

    def _one_or_all(self, name, given, schema):
        return self._leaf(name, pa.array(given, arrow_type(schema)), schema) if isinstance(given, list) else given

    def _partition(self, partition):
        """A leaf even if all rows share the partition: a plan serves all of a topic's partitions."""
        schema = s.Schema.OPTIONAL_INT32
        if partition is None or isinstance(partition, list):
            return self._one_or_all("partition", partition, schema)
        return self._leaf("partition", arrow_each(partition, self.count, pa.int32()), schema)

    def _timestamp(self, timestamps):
        if timestamps is None:
            return self.NULL
        return self._leaf("timestamp", arrow_times(timestamps, self.count), s.Schema.OPTIONAL_INT64)

    def _header_names(self, headers):
        """A leaf of header names, built only on demand, since few transforms need it."""
        if headers is None or not any(headers):
            return self.NULL
        self.columns["header_names"] = headers
        return Leaf("header_names", HEADER_NAMES, False)

    def _part(self, name, column, schema):
        column, schema = unshaped(column, schema)
        if schema is None:
            return self.UNKNOWN
        if column is None:
            return self.NULL
        return self._split_parts(name, columnar(column, schema, self.count), schema)

    def _split_parts(self, name, column, schema):
        if schema.type == s.STRUCT and not null_count(column):
            parts = zip(fields_of(column), schema.fields)
            return tuple(self._split_parts(f"{name}_{field.index}", part, field.schema) for part, field in parts)
        return self._leaf(name, column, schema)

    def _leaf(self, name, column, schema):
        self.columns[name] = column
        if null_count(column):
            self._seen_nulls.add((name, schema))
        return Leaf(name, schema, (name, schema) in self._seen_nulls)

    def arrow(self, leaf):
        """Return a leaf's column as an Arrow array."""
        column = self.columns[leaf.name]
        if leaf.schema is HEADER_NAMES:
            names = [[header.name for header in each or ()] for each in column]
            return pa.array(names, arrow_type(HEADER_NAMES))
        return to_arrow(column, leaf.schema)


def leaves_in(shape):
    """Return all leaves in one part of a shape."""
    if isinstance(shape, Leaf):
        return [shape]
    return [leaf for part in shape for leaf in leaves_in(part)] if isinstance(shape, tuple) else []
