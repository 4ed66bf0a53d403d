"""A batch's values in one schema, on their way into a file: as columns where they can be, and without the rows that are bad."""

import numpy as np
import pyarrow as pa

from standalone import ConnectError, DataError, Schema, SchemaBuilder, SinkBatch, Struct

_BAD = (ValueError, TypeError, OverflowError, ConnectError)  # pyarrow's errors are such


def arrow_values(batch):
    """(schema, array, {row: error}) of a batch: the rows that are bad are null in the array. Values without a schema get one that fits them all.

    Raises DataError where no value can be said in columns.
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
    """Python values as an Arrow array of the type that batches have for that schema."""
    return SinkBatch(len(values), "", list(values), schema, partition=0, offsets=np.arange(len(values))).arrow()[1]


def null_of(schema):
    """An array of one null."""
    return of_schema([None], schema.with_(optional=True))


def with_schema(batch):
    """A batch of values without a schema as one of values with the schema that fits all of them: objects become structs."""
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
    """The same with all in it optional: of values without a schema nobody knows what the next one lacks."""
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
    """The Schema of values without one: objects are structs, and numbers of multiple kinds are of the widest. Raises DataError."""
    schema = None
    for value in values:
        if value is not None:
            schema = merged(schema, _of_value(value))
    return schema or Schema.OPTIONAL_STRING  # of nothing but nulls any will do


def _of_value(value):
    if isinstance(value, dict):
        builder = SchemaBuilder("struct").optional()
        for name, item in value.items():
            if not isinstance(name, str) or not name:
                raise DataError(f"Files of columns take objects whose keys are texts; one is {name!r}.")
            builder.field(name, inferred([item]))
        return builder.build()
    if isinstance(value, (list, tuple)):
        return SchemaBuilder.array(inferred(value)).optional().build()
    if isinstance(value, Struct):
        return loosened(value.schema)
    kind = _OF_CLASS.get(type(value).__name__)
    if kind is None:
        raise DataError(f"A {type(value).__name__} without a schema has no place in files of columns: give the topic's values a schema.")
    return Schema(kind, optional=True)


def merged(one, other):
    """The Schema that holds the values of both; fields of both, those of the first first. Raises DataError where there is none."""
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
    raise DataError(f"Values without a schema are now a {one.type}, now a {other.type}: no column holds both. Give the topic's values a schema.")


def shaped(value, schema):
    """A value without a schema as the Schema holds it."""
    if value is None:
        return None
    if schema.type == "struct" and isinstance(value, dict):
        return Struct(schema, {name: shaped(item, schema[name]) for name, item in value.items()})
    if schema.type == "array":
        return [shaped(item, schema.value_schema) for item in value]
    if schema.type in ("float32", "float64") and not isinstance(value, bool):
        return float(value)
    return int(value) if schema.type.startswith("int") else value
