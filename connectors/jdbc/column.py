"""A database column, and the schema of its values in a record.

Dialects map column types to a `kind`; all other code depends only on the kind. Values that are read (arrow.py) have these Arrow types:

    BOOLEAN, INT8 … INT64, FLOAT32, FLOAT64, STRING, BYTES      the same type
    DECIMAL                                                     strings of plain decimals
    DATE                                                        int64, days since the epoch
    TIME, TIMESTAMP                                             int64, microseconds of the day, or since the epoch (UTC)
    ARRAY                                                       lists of these
"""

from dataclasses import dataclass, replace

from standalone import Schema, SchemaBuilder, date_schema, decimal_schema, time_schema, timestamp_schema

BOOLEAN, INT8, INT16, INT32, INT64 = "boolean", "int8", "int16", "int32", "int64"
FLOAT32, FLOAT64, STRING, BYTES = "float32", "float64", "string", "bytes"
DECIMAL, DATE, TIME, TIMESTAMP, ARRAY = "decimal", "date", "time", "timestamp", "array"
PLAIN = (BOOLEAN, INT8, INT16, INT32, INT64, FLOAT32, FLOAT64, STRING, BYTES)
INTEGERS = (INT8, INT16, INT32, INT64)

CONNECT_LOGICAL = "connect_logical"
GRANULARITIES = (
    CONNECT_LOGICAL, "micros_long", "micros_string", "micros_iso_datetime_string", "nanos_long", "nanos_string", "nanos_iso_datetime_string",
)  # fmt: skip
_MOST_DIGITS = 18  # all numbers of so many digits fit int64


@dataclass(frozen=True)
class Column:
    name: str
    kind: str
    nullable: bool = True
    type_name: str = ""  # in the database
    precision: int | None = None  # of a DECIMAL; None if not declared
    scale: int | None = None
    item: "Column | None" = None  # of an ARRAY
    is_key: bool = False
    has_default: bool = False
    counts: bool = False  # autoincrement
    is_zoned: bool = False  # a TIMESTAMP with time zone, or always in UTC; otherwise local time

    def with_(self, **changes):
        return replace(self, **changes)


@dataclass(frozen=True)
class Mapping:
    """The options that map columns to fields: numeric.mapping, timestamp.granularity, db.timezone."""

    numeric: str = "none"
    granularity: str = CONNECT_LOGICAL
    zone: str = "UTC"
    legacy_calendar: bool = True

    def schema(self, column):
        """Return the schema of a column's values."""
        optional, kind = column.nullable, self.kind(column)
        if kind in PLAIN:
            return getattr(Schema, f"OPTIONAL_{kind.upper()}" if optional else kind.upper())
        if kind == ARRAY:
            array = SchemaBuilder.array(self.schema(column.item))
            return (array.optional() if optional else array).build()
        if kind == DECIMAL:
            return decimal_schema(column.scale, optional=optional)
        return {DATE: date_schema, TIME: time_schema, TIMESTAMP: timestamp_schema}[kind](optional=optional)

    def kind(self, column):
        """Return the kind of the values in records: a DECIMAL may become a number or string, a TIMESTAMP an integer or string."""
        if column.kind == TIMESTAMP and self.granularity != CONNECT_LOGICAL:
            return INT64 if self.granularity.endswith("_long") else STRING
        return self._decimal(column.precision, column.scale) if column.kind == DECIMAL else column.kind

    def _decimal(self, precision, scale):
        if scale is None:  # each value has its own scale, but Connect's Decimal has one for all: strings are exact
            return FLOAT64 if self.numeric.startswith("best_fit") else STRING
        is_whole = scale == 0 if self.numeric == "precision_only" else scale < 1
        if self.numeric != "none" and is_whole and precision is not None and precision <= _MOST_DIGITS:
            return _smallest(precision)
        is_double = self.numeric == "best_fit_eager_double" or self.numeric == "best_fit" and (precision or 99) <= _MOST_DIGITS
        return FLOAT64 if is_double and scale > 0 else DECIMAL


def _smallest(precision):
    return INT64 if precision > 9 else INT32 if precision > 4 else INT16 if precision > 2 else INT8


def struct_schema(name, columns, mapping):
    """Return the schema of a row. As in Java, its name is the table name; for a query it has none."""
    builder = SchemaBuilder.struct()
    if name:
        builder.name(name)
    for column in columns:
        builder.field(column.name, mapping.schema(column))
    return builder.build()
