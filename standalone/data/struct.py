"""Structs, and validation of values against schemas."""

import datetime
import decimal

from standalone.data import schema as s
from standalone.data.scalars import CLASSES, WIDTHS, Float32, Instant
from standalone.errors import DataError

MOMENTS = (Instant, datetime.datetime, datetime.date, datetime.time)
_POINTS = (s.DATE, s.TIME, s.TIMESTAMP)
_RANGES = {kind: (-(1 << bits - 1), (1 << bits - 1) - 1) for kind, bits in WIDTHS.items()}


class Struct:
    """Values by field name, in the schema's order and types.

    `struct["f"]` is the stored value or, if that is null, the field's default; `stored("f")` is the stored value.
    """

    __slots__ = ("schema", "values")

    def __init__(self, schema, values=None):
        if schema.type != s.STRUCT:
            raise DataError(f"A struct needs a schema of type struct, not {schema.type}.")
        self.schema = schema
        self.values = [None] * len(schema.fields)
        for name, value in (values or {}).items():
            self.put(name, value)

    @classmethod
    def trusted(cls, schema, values):
        """Build from values in field order without validation."""
        struct = cls.__new__(cls)
        struct.schema = schema
        struct.values = values
        return struct

    @classmethod
    def of_values(cls, schema, values):
        """Build from values in field order, validating each like `put`."""
        return cls.trusted(schema, [checked(field.schema, value, field.name) for field, value in zip(schema.fields, values)])

    def put(self, name, value):
        field = self._field(name)
        self.values[field.index] = checked(field.schema, value, name)
        return self

    def stored(self, name):
        return self.values[self._field(name).index]

    def get(self, name):
        field = self._field(name)
        value = self.values[field.index]
        return field.schema.default if value is None else value

    __getitem__ = get

    def _field(self, name):
        field = self.schema.field(name)
        if field is None:
            names = ", ".join(field.name for field in self.schema.fields)
            raise DataError(f"The struct has no field '{name}'. Its fields: {names or 'none'}.")
        return field

    def validate(self):
        """Raise DataError unless every field's value is valid."""
        for field, value in zip(self.schema.fields, self.values):
            if type(value) is field.schema.exact or value is None and (field.schema.optional or field.schema.default is not None):
                continue
            validate_value(field.schema, value, field.name)

    def to_dict(self):
        return {field.name: value for field, value in zip(self.schema.fields, self.values)}

    def __eq__(self, other):
        return isinstance(other, Struct) and self.schema == other.schema and self.values == other.values

    def __hash__(self):
        return hash(self.schema)

    def __repr__(self):
        return "Struct{" + ",".join(f"{k}={v}" for k, v in self.to_dict().items() if v is not None) + "}"


def checked(schema, value, name=None):
    """Return the value as the schema stores it. Raise DataError if invalid; `name` is the field's name."""
    if type(value) is not schema.exact:
        value = normal(schema, value)
        validate_value(schema, value, name)
    return value


def normal(schema, value):
    """Convert a datetime, date or time to an Instant for Date, Time and Timestamp; return others unchanged."""
    if schema.name in _POINTS and isinstance(value, MOMENTS):
        return Instant.of(value)
    return value


def validate_value(schema, value, name=None):
    """Raise DataError unless the value fits the schema. `name` is the field's name."""
    if value is None:
        if not schema.optional:
            raise DataError(f"{_where(name)}null does not fit a required schema of type {schema.name or schema.type}.")
        return
    if not fits(schema, value):
        raise DataError(f"{_where(name)}a {type(value).__name__} does not fit a schema of type {schema.name or schema.type}.")
    if schema.type == s.STRUCT:
        if value.schema is not schema and value.schema != schema:
            raise DataError(f"{_where(name)}the struct's schema differs from the declared schema.")
        value.validate()
    elif schema.type == s.ARRAY:
        for item in value:
            validate_value(schema.value_schema, item, name)
    elif schema.type == s.MAP:
        for key, item in value.items():
            validate_value(schema.key_schema, key, name)
            validate_value(schema.value_schema, item, name)


def _where(name):
    return f"Field '{name}': " if name else ""


def fits(schema, value):
    if schema.name == s.DECIMAL:
        return isinstance(value, decimal.Decimal)
    if schema.logical:
        return isinstance(value, MOMENTS)
    kind = schema.type
    if kind in WIDTHS:
        low, high = _RANGES[kind]
        return (type(value) is int or type(value) is CLASSES[kind]) and low <= value <= high
    if kind == s.FLOAT32:
        return isinstance(value, Float32) or type(value) is float
    if kind == s.FLOAT64:
        return isinstance(value, float) and not isinstance(value, Float32)
    if kind == s.BOOLEAN:
        return isinstance(value, bool)
    if kind == s.STRING:
        return isinstance(value, str)
    if kind == s.BYTES:
        return isinstance(value, (bytes, bytearray, memoryview))
    if kind == s.ARRAY:
        return isinstance(value, list)
    if kind == s.MAP:
        return isinstance(value, dict)
    return isinstance(value, Struct)
