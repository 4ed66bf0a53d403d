"""TimestampConverter: a point in time in another form: as text, as a number since the epoch, as a Date, Time or Timestamp."""

from standalone import (
    BOOLEAN,
    HIGH,
    LOW,
    MEDIUM,
    STRING,
    ConfigDef,
    ConfigError,
    ConnectError,
    DataError,
    FieldTransform,
    Instant,
    Int64,
    Option,
    Schema,
    date_schema,
    one_of,
    time_schema,
    timestamp_schema,
)
from standalone.data import schema as s
from standalone.data.java_calendar import DAY_MS
from standalone.data.java_numbers import wrapped
from standalone.data.struct import MOMENTS
from standalone.transforms import expressions, field_path, timestamp_columns
from standalone.transforms.date_format import DateFormat
from standalone.transforms.field_path import PathTree
from standalone.transforms.struct_copy import PerSchema, StructCopy, left_to_rows, need_names, need_struct_schema, struct_schema

TEXT, UNIX, DATE, TIME, TIMESTAMP = "string", "unix", "Date", "Time", "Timestamp"
SCHEMAS = {  # form -> (required, optional)
    TEXT: (Schema.STRING, Schema.OPTIONAL_STRING),
    UNIX: (Schema.INT64, Schema.OPTIONAL_INT64),
    DATE: (date_schema(), date_schema(optional=True)),
    TIME: (time_schema(), time_schema(optional=True)),
    TIMESTAMP: (timestamp_schema(), timestamp_schema(optional=True)),
}
_LOGICAL = {s.DATE: DATE, s.TIME: TIME, s.TIMESTAMP: TIMESTAMP}
PER_SECOND = {"seconds": 1, "milliseconds": 1000, "microseconds": 1_000_000, "nanoseconds": 1_000_000_000}
LONG_MAX = (1 << 63) - 1


class TimestampConverter(FieldTransform):
    """Turn a field, or the whole key or value, from any form of a point in time into another; all in UTC.

    field=at, target.type=string, format=yyyy-MM-dd      {"at": 1700000000000}  ->  {"at": "2023-11-14"}
    target.type=unix, unix.precision=seconds, format=yyyy-MM-dd      "2023-11-14"  ->  1699920000
    """

    java_name = "org.apache.kafka.connect.transforms.TimestampConverter"
    config_def = ConfigDef(
        Option("field", STRING, HIGH, "The field to convert; empty for the whole key or value.", default=""),
        Option("target.type", STRING, HIGH, "The form to turn it into.", check=one_of(TEXT, UNIX, DATE, TIME, TIMESTAMP)),
        Option("format", STRING, MEDIUM, "What texts look like, to be read and to be written: a SimpleDateFormat pattern.", default=""),
        Option("unix.precision", STRING, LOW, "What numbers count.", default="milliseconds", check=one_of(*PER_SECOND)),
        Option("replace.null.with.default", BOOLEAN, MEDIUM, "Convert a field's default in the place of its null.", default=True),
        field_path.OWN_SYNTAX,
    )

    def configure(self, config):
        self.target = config["target.type"]
        self.per_second = PER_SECOND[config["unix.precision"]]
        self.fills_defaults = config["replace.null.with.default"]
        self.format = self._format(config["format"])
        self.field = config["field"]
        self._tree = PathTree.of({field_path.field_path(self.field, config): True}) if self.field else None
        self._copies = PerSchema(lambda schema: self._copy(schema, self._tree, inside=False))

    def _format(self, pattern):
        if not pattern.strip():
            if self.target == TEXT:
                raise ConfigError.of({"format": "is missing, but target.type is string: say what the texts look like, as yyyy-MM-dd."})
            return None
        try:
            return DateFormat(pattern)
        except ValueError as error:
            raise ConfigError.of({"format": f"'{pattern}' is no pattern of SimpleDateFormat: {error}."}) from None

    # Row meaning: the truth.
    def apply(self, record):
        schema, value = self.part(record)
        if schema is None:
            if value is None:
                return record
            if self._tree is None:
                return self.with_part(record, None, self.convert(value, form_of_value(value)))
            field_path.need_map(value, "TimestampConverter", self.where)
            return self.with_part(record, None, self._converted_map(value, self._tree))
        if self._tree is None:
            form = form_of_schema(schema)
            made = None if value is None else self.convert(value, form)
            return self.with_part(record, SCHEMAS[self.target][schema.optional], made)
        if value is not None or schema.type != s.STRUCT:
            field_path.need_struct(value, "TimestampConverter", self.where)
        copy = self._copies[schema]
        if value is None:
            return self.with_part(record, copy.target, None)
        self._check_forms(schema)
        return self.with_part(record, copy.target, copy.row(value))

    def _check_forms(self, schema):
        """Also where the field is null, its schema must be that of a point in time."""
        for name, below in self._tree.inside.items():
            if below.said and name in schema:
                try:
                    form_of_schema(schema[name])
                except ConnectError as error:
                    field_path.say_field(name, error)
                    raise

    def _converted_map(self, value, tree):
        changed = dict(value)
        for name, below in tree.inside.items():
            item = value.get(name)
            try:
                if below.said:  # also where there is no such key: Java then puts a null
                    changed[name] = None if item is None else self.convert(item, form_of_value(item))
                elif item is not None:
                    field_path.need_map(item, "TimestampConverter", f"field '{name}'")
                    changed[name] = self._converted_map(item, below)
            except ConnectError as error:
                field_path.say_field(name, error)
                raise
        return changed

    def _copy(self, schema, tree, inside, checked=True):
        """A StructCopy with the conversion in it."""
        fields, changes = [], {}
        for field in schema.fields:
            below, made = tree.inside.get(field.name), field.schema
            if below is not None and below.said:
                changes[field.name] = _Conversion(self, field.schema)
                made = SCHEMAS[self.target][field.schema.optional]
            elif below is not None:
                need_struct_schema(field, "TimestampConverter")
                copy = changes[field.name] = self._copy(field.schema, below, inside=True, checked=checked)
                made = copy.target
            fields.append((field.name, made))
        target = struct_schema(fields, like=schema).with_(optional=schema.optional)
        return StructCopy(target, schema.fields, self.fills_defaults, changes, checked)

    def convert(self, value, form):
        """A value of that form in the target's form. Raises DataError."""
        ms, zone = self._read(value, form)
        if self.target == TEXT:
            return self.format.format(ms, zone)
        if self.target == UNIX:
            return Int64(self._count(ms))
        if self.target == DATE:
            return Instant(wrapped(ms - ms % DAY_MS, 64))
        return Instant(ms % DAY_MS if self.target == TIME else ms)

    def _read(self, value, form):
        """(milliseconds since the epoch, the zone that a text named)."""
        if form == TEXT:
            return self._parse(value)
        if form == UNIX:
            if not is_long(value):
                raise DataError(f"TimestampConverter reads an int64 as a number since the epoch; found a {type(value).__name__}.")
            return self._millis(value), None
        if not isinstance(value, MOMENTS):
            raise DataError(f"TimestampConverter expected a {form}; found a {type(value).__name__}.")
        return Instant.of(value).ms, None

    def _parse(self, text):
        if not isinstance(text, str):
            raise DataError(f"TimestampConverter expected a text; found a {type(text).__name__}.")
        if self.format is None:
            raise ConnectError("TimestampConverter cannot read texts: it was not told 'format'. Set it to a pattern such as yyyy-MM-dd.")
        try:
            return self.format.parse(text)
        except ValueError as error:
            raise DataError(f"TimestampConverter cannot read '{text}' by the format '{self.format.pattern}': {error}.") from None

    def _millis(self, count):
        if self.per_second <= 1000:
            return clipped(count * (1000 // self.per_second))
        return cut(count, self.per_second // 1000)

    def _count(self, ms):
        return cut(ms, 1000 // self.per_second) if self.per_second <= 1000 else clipped(ms * (self.per_second // 1000))

    # Column meaning: an expression (timestamp_columns.py).
    def columns(self, columns):
        known, value, has_schema = self.known_struct(columns) if self._tree else self.known_part(columns)
        with left_to_rows(ConnectError):
            if self._tree is None:
                made, failed = _Conversion(self, known).column(value)
                failed = None if failed is None else value.isNotNull() & failed
                return self.with_known_part(columns, SCHEMAS[self.target][known.optional], made, [failed], has_schema)
            need_names(known, self._tree.inside, has_schema)
            copy = self._copy(known, self._tree, inside=False, checked=has_schema)
            if self.is_null(columns):
                return self.with_known_part(columns, copy.target, expressions.literal(None, copy.target), [], has_schema)
            self._check_forms(known)
            made, failed = copy.column(value)
        # To keep a null among the structs would make all of them travel, which as they are travel only as far as they change.
        return self.with_known_part(columns, copy.target, made, [value.isNull(), failed], has_schema)


class _Conversion:
    """What is done to a field of a known schema, in both meanings. It takes no null."""

    def __init__(self, converter, schema):
        self._converter = converter
        self._schema = schema

    def row(self, value):
        return self._converter.convert(value, form_of_schema(self._schema))

    def column(self, column):
        converter = self._converter
        form = form_of_schema(self._schema)
        return timestamp_columns.convert(column, form, converter.target, converter.per_second, converter.format)


def form_of_schema(schema):
    """Raises ConnectError where a value of that schema is no point in time."""
    if schema.name in _LOGICAL:
        return _LOGICAL[schema.name]
    if schema.type == s.STRING:
        return TEXT
    if schema.type == s.INT64:
        return UNIX
    raise ConnectError(f"TimestampConverter cannot convert a {schema.name or schema.type}: it takes string, int64, Date, Time and Timestamp.")


def form_of_value(value):
    """Raises DataError where the class of a value without a schema tells of no point in time."""
    if isinstance(value, MOMENTS):
        return TIMESTAMP
    if is_long(value):
        return UNIX
    if isinstance(value, str):
        return TEXT
    raise DataError(f"TimestampConverter cannot convert a {type(value).__name__}: it takes texts, longs and points in time.")


def is_long(value):
    return type(value) in (int, Int64)


def clipped(number):
    return max(-LONG_MAX - 1, min(number, LONG_MAX))


def cut(number, by):
    """Division as Java's: towards zero."""
    return number // by if number >= 0 else -(-number // by)
