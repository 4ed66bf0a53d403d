"""Convert values between types, for Cast and others, and infer schemas from values. Strings are parsed in value_text.py."""

import base64
from decimal import Decimal

from standalone.data import schema as s
from standalone.data.arrow import decimal_of
from standalone.data.java_numbers import clamped, decimal_of_text, narrowed, whole_of_decimal, wrapped
from standalone.data.java_text import java_text
from standalone.data.scalars import WIDTHS, BigInt, Float32, Instant, Int8, Int16, Int32, to_float32
from standalone.data.schema import Schema, SchemaBuilder
from standalone.data.struct import MOMENTS, Struct
from standalone.data.value_text import DAY_MS, parse, to_text
from standalone.errors import DataError

__all__ = ["convert", "infer_schema", "parse", "to_text"]


def convert(schema, from_schema, value):
    """Convert the value to `schema`. `from_schema` is its current schema, or None. Raise DataError."""
    if value is None:
        if schema.optional:
            return None
        raise DataError(f"null cannot be converted to a required {schema.name or schema.type}.")
    if schema.logical:
        return _TO_LOGICAL[schema.name](schema, from_schema, value)
    kind = schema.type
    if kind in WIDTHS:
        return narrowed(_whole(value, from_schema), kind)
    if kind == s.FLOAT32:
        return value if isinstance(value, Float32) else to_float32(_double(value, from_schema))
    if kind == s.FLOAT64:
        return _double(value, from_schema)
    if kind == s.BOOLEAN:
        return _boolean(value, from_schema)
    if kind == s.STRING:
        return to_text(value, from_schema)
    if kind == s.BYTES:
        return _bytes(value)
    return _container(kind, value)


def infer_schema(value):
    """Infer the schema of a value by its class; None if it has none, or its items have none in common."""
    for classes, schema in _INFERRED:
        if isinstance(value, classes):
            return schema
    if isinstance(value, Struct):
        return value.schema
    if isinstance(value, list):
        return _inferred_inside(value, lambda inner: SchemaBuilder.array(inner).build())
    if isinstance(value, dict):
        keys = _inferred_inside(value.keys(), lambda inner: inner)
        return keys and _inferred_inside(value.values(), lambda inner: SchemaBuilder.map(keys, inner).build())
    return None


_INFERRED = (
    (str, Schema.STRING),
    (bool, Schema.BOOLEAN),
    (Int8, Schema.INT8),
    (Int16, Schema.INT16),
    (Int32, Schema.INT32),
    (BigInt, None),
    (int, Schema.INT64),
    (Float32, Schema.FLOAT32),
    (float, Schema.FLOAT64),
    ((bytes, bytearray, memoryview), Schema.BYTES),
)


def _inferred_inside(items, around):
    """Return the type that all items share, ignoring their own items, as Java infers it."""
    if not items:
        return None
    schemas = [infer_schema(item) for item in items if item is not None]
    if None in schemas or len({schema.type for schema in schemas}) > 1:
        return None
    kind = schemas[0].type if schemas else None
    SchemaBuilder(kind)  # accepts any type
    return around(Schema(kind, optional=len(schemas) < len(items)))


def _whole(value, from_schema):
    """Convert like Java's longValue, including strings; a point in time becomes its number."""
    if isinstance(value, bool):
        raise _cannot(value, "a whole number")
    if isinstance(value, int):
        return wrapped(value, 64)
    if isinstance(value, float):
        return clamped(value, 64)
    number = decimal_of_text(value) if isinstance(value, str) else value
    if isinstance(number, Decimal):
        return whole_of_decimal(number, 64)
    if isinstance(value, MOMENTS) and from_schema is not None:
        ms = Instant.of(value).ms
        if from_schema.name == s.DATE:
            if ms % DAY_MS:
                raise DataError(f"A Date must be midnight in UTC, but it is {ms % DAY_MS} ms after midnight.")
            return ms // DAY_MS
        if from_schema.name == s.TIME:
            if not 0 <= ms <= DAY_MS:
                raise DataError(f"A Time must be within 1970-01-01; it is {ms} ms since the epoch.")
            return ms
        if from_schema.name == s.TIMESTAMP:
            return ms
    raise _cannot(value, "a whole number")


def _double(value, from_schema):
    if isinstance(value, bool):
        raise _cannot(value, "a number")
    number = decimal_of_text(value) if isinstance(value, str) else value
    if isinstance(number, (int, float, Decimal)):
        try:
            return float(number) if number or isinstance(number, float) else 0.0
        except OverflowError:
            return float("inf") if number > 0 else float("-inf")
    return float(_whole(value, from_schema))


def _boolean(value, from_schema):
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        found = parse(value)
        if found is None:
            raise _cannot(value, "a boolean")
        if isinstance(found[1], bool):
            return found[1]
    return _whole(value, from_schema) != 0


def _bytes(value):
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, str):
        try:
            return base64.b64decode(value, validate=True)
        except ValueError:
            raise _cannot(value, "bytes: a string must be base64") from None
    raise _cannot(value, "bytes")


def _container(kind, value):
    if isinstance(value, str):
        found = parse(value)
        value = found and found[1]
    if isinstance(value, {s.ARRAY: list, s.MAP: dict, s.STRUCT: Struct}[kind]):
        return value
    raise _cannot(value, {s.ARRAY: "a list", s.MAP: "a map", s.STRUCT: "a struct"}[kind])


def _to_decimal(schema, from_schema, value):
    if isinstance(value, Decimal):
        return value
    if isinstance(value, (bytes, bytearray, memoryview)):
        if not len(value):
            raise ValueError("empty bytes are not a number")
        return decimal_of(bytes(value), int((schema.parameters or {}).get(s.SCALE, "0")))
    if isinstance(value, str):
        number = decimal_of_text(value)
        if number is None:
            raise ValueError(f"'{value}' is not a number")
        return number
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return Decimal(java_text(float(value)))
    raise _cannot(value, "a Decimal")


def _read_moment(value):
    """Parse a string into its value."""
    if not isinstance(value, str):
        return value
    found = parse(value)
    if found is None:
        raise _cannot(value, "a point in time")
    return found[1]


def _to_date(schema, from_schema, value):
    value = _read_moment(value)
    if isinstance(value, MOMENTS):
        ms = Instant.of(value).ms
        if from_schema is None or from_schema.name == s.DATE:
            return Instant(ms)
        if from_schema.name == s.TIMESTAMP:
            return Instant(wrapped(_cut(ms, DAY_MS), 32) * DAY_MS)
    return Instant(wrapped(_whole(value, from_schema), 32) * DAY_MS)


def _to_time(schema, from_schema, value):
    value = _read_moment(value)
    if isinstance(value, MOMENTS):
        ms = Instant.of(value).ms
        if from_schema is None or from_schema.name == s.TIME:
            return Instant(ms)
        if from_schema.name == s.TIMESTAMP:
            return Instant(ms % DAY_MS)
    ms = wrapped(_whole(value, from_schema), 32)
    if not 0 <= ms <= DAY_MS:
        raise DataError(f"A Time must be within a day; found {ms} ms.")
    return Instant(ms)


def _to_timestamp(schema, from_schema, value):
    value = _read_moment(value)
    if isinstance(value, MOMENTS):
        ms = Instant.of(value).ms
        if from_schema is None or from_schema.name == s.TIMESTAMP:
            return Instant(ms)
        if from_schema.name == s.DATE:
            return Instant(_whole(value, from_schema) * DAY_MS)
    return Instant(_whole(value, from_schema))


_TO_LOGICAL = {s.DECIMAL: _to_decimal, s.DATE: _to_date, s.TIME: _to_time, s.TIMESTAMP: _to_timestamp}


def _cut(number, by):
    """Divide like Java: towards zero."""
    return number // by if number >= 0 else -(-number // by)


def _cannot(value, what):
    return DataError(f"A {type(value).__name__} cannot be converted to {what}.")
