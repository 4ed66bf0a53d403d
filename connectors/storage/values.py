"""Convert a batch's values to columns of one schema for a file, without bad rows."""

import numpy as np
import pyarrow as pa

from standalone import ConnectError, DataError, Schema, SchemaBuilder, SinkBatch, Struct

_BAD = (ValueError, TypeError, OverflowError, ConnectError)  # pyarrow's errors are subclasses


def arrow_values(batch):
    """Return (schema, array, {row: error}) of a batch; bad rows are null. A schema is inferred for schemaless values.

    Raises DataError if no value has a columnar form.
    """
    if batch.value_schema is None:
        batch = with_schema(batch)
    try:
        return (*batch.arrow(), {})
    except _BAD:
        return _row_by_row(batch)


def _row_by_row(batch):
    arrays, bad, schema = [], {}, batch.value_schema
    null = null_of(schema)
    for row in range(len(batch)):
        try:
            _, array = batch.slice(row, row + 1).arrow()
        except _BAD as error:
            bad[row], array = DataError(f"The value does not fit its schema: {error}"), null
        arrays.append(array)
    return schema, pa.concat_arrays(arrays), bad


def of_schema(values, schema):
    """Convert Python values to the Arrow array that batches have for that schema."""
    return SinkBatch(len(values), "", list(values), schema, partition=0, offsets=np.arange(len(values))).arrow()[1]


def null_of(schema):
    """Return an array with one null."""
    return of_schema([None], schema.with_(optional=True))


def with_schema(batch):
    """Infer a schema for a batch of schemaless values: objects become structs."""
    try:
        schema, array = batch.arrow()
    except _BAD:
        values = batch.value if isinstance(batch.value, list) else [record.value for record in batch.records()]
        schema = inferred([value for value in values if value is not None])
        array = [shaped(value, schema) for value in values]
    return SinkBatch(
        len(batch), batch.topic, array, loosened(schema), partition=batch.partition, offsets=batch.offsets, timestamps=batch.timestamps,
        headers=batch.headers, key=batch.key, key_schema=batch.key_schema, timestamp_type=batch.timestamp_type, origin=batch.origin,
    )  # fmt: skip


def loosened(schema):
    """Return the schema with everything optional: later schemaless values may lack anything."""
    if schema.type == "struct":
        builder = SchemaBuilder("struct").optional()
        for field in schema.fields:
            builder.field(field.name, loosened(field.schema))
        return builder.build()
    if schema.type == "array":
        return SchemaBuilder.array(loosened(schema.value_schema)).optional().build()
    if schema.type == "map":
        return SchemaBuilder.map(schema.key_schema, loosened(schema.value_schema)).optional().build()
    return schema.with_(optional=True)


_OF_CLASS = {
    "bool": "boolean", "int": "int64", "Int64": "int64", "Int32": "int32", "Int16": "int16", "Int8": "int8", "float": "float64", "Float64": "float64",
    "Float32": "float32", "str": "string", "bytes": "bytes",
}  # fmt: skip
_WIDER = ("int8", "int16", "int32", "int64", "float32", "float64")


def inferred(values):
    """Infer the Schema of schemaless values: objects are structs, mixed numbers get the widest type. Raise DataError."""
    schema = None
    for value in values:
        if value is not None:
            schema = merged(schema, _of_value(value))
    return schema or Schema.OPTIONAL_STRING  # for nulls only, any type works


def _of_value(value):
    if isinstance(value, dict):
        builder = SchemaBuilder("struct").optional()
        for name, item in value.items():
            if not isinstance(name, str) or not name:
                raise DataError(f"Columnar files need objects with string keys; one is {name!r}.")
            builder.field(name, inferred([item]))
        return builder.build()
    if isinstance(value, (list, tuple)):
        return SchemaBuilder.array(inferred(value)).optional().build()
    if isinstance(value, Struct):
        return loosened(value.schema)
    kind = _OF_CLASS.get(type(value).__name__)
    if kind is None:
        raise DataError(f"Columnar files cannot store a {type(value).__name__} without a schema: give the topic's values a schema.")
    return Schema(kind, optional=True)


def merged(one, other):
    """Return the Schema that fits both; `one`'s fields come first. Raise DataError if there is none."""
    if one is None or one == other:
        return other
    if other is None:
        return one
    if one.type == other.type == "struct":
        names = dict.fromkeys([field.name for field in (*one.fields, *other.fields)])
        builder = SchemaBuilder("struct").optional()
        for name in names:
            sides = [side.field(name).schema if side.field(name) else None for side in (one, other)]
            builder.field(name, merged(*sides))
        return builder.build()
    if one.type == other.type == "array":
        return SchemaBuilder.array(merged(one.value_schema, other.value_schema)).optional().build()
    if one.type in _WIDER and other.type in _WIDER:
        return Schema(max(one.type, other.type, key=_WIDER.index), optional=True)
    raise DataError(f"Schemaless values mix {one.type} and {other.type}, which fit no column. Give the topic's values a schema.")


def shaped(value, schema):
    """Convert a schemaless value to the Schema."""
    if value is None:
        return None
    if schema.type == "struct" and isinstance(value, dict):
        return Struct(schema, {name: shaped(item, schema[name]) for name, item in value.items()})
    if schema.type == "array":
        return [shaped(item, schema.value_schema) for item in value]
    if schema.type in ("float32", "float64") and not isinstance(value, bool):
        return float(value)
    return int(value) if schema.type.startswith("int") else value
