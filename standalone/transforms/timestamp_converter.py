"""TimestampConverter: convert timestamps between string, Unix time, Date, Time and Timestamp."""

from standalone import (
    BOOLEAN,
    HIGH,
    LOW,
    MEDIUM,
    NULL_IS_CHANGED,
    STRING,
    Change,
    ConfigDef,
    ConfigError,
    ConnectError,
    DataError,
    FieldTransform,
    Function,
    Option,
    Schema,
    date_schema,
    one_of,
    time_schema,
    timestamp_schema,
)
from standalone.data import schema as s
from standalone.data.struct import MOMENTS
from standalone.transforms import expressions, field_path, time_functions
from standalone.transforms.date_format import DateFormat
from standalone.transforms.field_path import PathTree
from standalone.transforms.struct_edit import FieldsChanged
from standalone.transforms.time_functions import DATE, TEXT, TIME, TIMESTAMP, UNIX, is_long

SCHEMAS = {  # form -> (required, optional)
    TEXT: (Schema.STRING, Schema.OPTIONAL_STRING),
    UNIX: (Schema.INT64, Schema.OPTIONAL_INT64),
    DATE: (date_schema(), date_schema(optional=True)),
    TIME: (time_schema(), time_schema(optional=True)),
    TIMESTAMP: (timestamp_schema(), timestamp_schema(optional=True)),
}
_LOGICAL = {s.DATE: DATE, s.TIME: TIME, s.TIMESTAMP: TIMESTAMP}
PER_SECOND = {"seconds": 1, "milliseconds": 1000, "microseconds": 1_000_000, "nanoseconds": 1_000_000_000}


class TimestampConverter(FieldTransform):
    """Convert a field, or the whole key or value, between timestamp types, in UTC.

    field=at, target.type=string, format=yyyy-MM-dd      {"at": 1700000000000}  ->  {"at": "2023-11-14"}
    target.type=unix, unix.precision=seconds, format=yyyy-MM-dd      "2023-11-14"  ->  1699920000
    """

    java_name = "org.apache.kafka.connect.transforms.TimestampConverter"
    config_def = ConfigDef(
        Option("field", STRING, HIGH, "The field to convert; empty for the whole key or value.", default=""),
        Option("target.type", STRING, HIGH, "The target type.", check=one_of(TEXT, UNIX, DATE, TIME, TIMESTAMP)),
        Option("format", STRING, MEDIUM, "Format of timestamps as strings, for parsing and formatting: a SimpleDateFormat pattern.", default=""),
        Option("unix.precision", STRING, LOW, "What numbers count.", default="milliseconds", check=one_of(*PER_SECOND)),
        Option("replace.null.with.default", BOOLEAN, MEDIUM, "Convert a field's default instead of its null.", default=True),
        field_path.OWN_SYNTAX,
    )

    nulls = NULL_IS_CHANGED

    def configure(self, config):
        self.target = config["target.type"]
        self.per_second = PER_SECOND[config["unix.precision"]]
        self.format = self._format(config["format"])
        self.field = config["field"]
        convert = Convert(self.target, self.per_second, self.format)
        if not self.field:
            return self.does(convert)
        tree = PathTree.of({field_path.field_path(self.field, config): convert})
        self.does(FieldsChanged(tree, "TimestampConverter", self.where, config["replace.null.with.default"]))

    def _format(self, pattern):
        if not pattern.strip():
            if self.target == TEXT:
                raise ConfigError.of({"format": "is missing, but target.type is string: say what the texts look like, as yyyy-MM-dd."})
            return None
        try:
            return DateFormat(pattern)
        except ValueError as error:
            raise ConfigError.of({"format": f"'{pattern}' is not a pattern of SimpleDateFormat: {error}."}) from None


class Convert(Change):
    """Converts any timestamp type to `target`."""

    def __init__(self, target, per_second, format):
        self.target = target
        self._reads = {form: time_functions.reader(form, per_second, format) for form in SCHEMAS}
        self._write = time_functions.writer(target, per_second, format)

    def of(self, schema, has_schema=True):
        target = SCHEMAS[self.target][schema.optional]
        form = _LOGICAL.get(schema.name) or {s.STRING: TEXT, s.INT64: UNIX}.get(schema.type)
        return NoPoint(schema, target) if form is None else Converted(self._reads[form], self._write, target)

    def bare(self, value):
        return None if value is None else self._write.row(*self._reads[form_of_value(value)].row(value))


class Converted(Function):
    """Parses one type to milliseconds since the epoch and formats them as another; by row it also passes on the zone in a string."""

    def __init__(self, read, write, schema):
        self._read = read
        self._write = write
        self.schema = schema

    def row(self, value):
        return self._write.row(*self._read.row(value))

    def column(self, column):
        ms, unread = self._read.column(column)
        made, unwritten = self._write.column(ms)
        return made, expressions.any_of([unread, unwritten])


class NoPoint(Function):
    """The conversion of other types: an error, even for null."""

    refuses_null = True

    def __init__(self, source, schema):
        self._source = source
        self.schema = schema

    def row(self, value):
        found = self._source.name or self._source.type
        raise ConnectError(f"TimestampConverter cannot convert a {found}: it takes string, int64, Date, Time and Timestamp.")

    def column(self, column):
        self.row(None)


def form_of_value(value):
    """Raises DataError if the class of a schemaless value is no timestamp type."""
    if isinstance(value, MOMENTS):
        return TIMESTAMP
    if is_long(value):
        return UNIX
    if isinstance(value, str):
        return TEXT
    raise DataError(f"TimestampConverter cannot convert a {type(value).__name__}: it takes texts, longs and points in time.")
