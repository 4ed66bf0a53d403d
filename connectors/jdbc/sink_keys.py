"""The options of JdbcSink, by Confluent's names, and some additional ones."""

from connectors.jdbc import keys
from connectors.jdbc.keys import AnyCase
from standalone import BOOLEAN, HIGH, INT, LIST, LOW, MEDIUM, STRING, ConfigDef, Option, at_least, non_empty

INSERT, UPSERT, UPDATE = "insert", "upsert", "update"
NONE, KAFKA, RECORD_KEY, RECORD_VALUE = "none", "kafka", "record_key", "record_value"
_CONNECTION, _WRITES, _DATA, _DDL, _DML, _RETRIES = "Connection", "Writes", "Data Mapping", "DDL Support", "DML Support", "Retries"


class TableTypes(AnyCase):
    """Any of these."""

    def __call__(self, name, value):
        for each in value or ():
            super().__call__(name, each)


class _WithRecordKey:
    @staticmethod
    def valid_values(name, parsed):
        return []

    @staticmethod
    def visible(name, parsed):
        return parsed.get("pk.mode") == RECORD_KEY


def _options():
    shared = keys.connection(_CONNECTION, url_default=None)
    yield from (
        shared[name] for name in ("connection.url", "connection.user", "connection.password", "jdbc.credentials.provider.class", "dialect.name")
    )
    yield from (shared[name] for name in ("connection.attempts", "connection.backoff.ms"))
    yield Option(
        "insert.mode",
        STRING,
        HIGH,
        "insert: add rows; upsert: add rows, or update those with the same key; update: only update existing rows.",
        default=INSERT,
        check=AnyCase(INSERT, UPSERT, UPDATE),
        group=_WRITES,
    )
    yield Option(
        "batch.size",
        INT,
        MEDIUM,
        "Maximum number of rows per statement. If not set, all available rows.",
        default=3000,
        check=at_least(0),
        group=_WRITES,
    )
    yield Option(
        "delete.enabled",
        BOOLEAN,
        MEDIUM,
        "Whether a tombstone deletes the row with its key. Needs pk.mode=record_key.",
        default=False,
        group=_WRITES,
        recommend=_WithRecordKey(),
    )
    yield Option(
        "table.types",
        LIST,
        LOW,
        "No effect here: any table or updatable view with the name is written to.",
        default="TABLE",
        check=TableTypes("table", "partitioned table", "view"),
        group=_WRITES,
    )
    yield Option(
        "replace.null.with.default", BOOLEAN, LOW, "Whether to write a field's default, if it has one, instead of null.", default=True, group=_WRITES
    )
    yield Option(
        "table.name.format", STRING, MEDIUM, "Name of the table; ${topic} is the topic's name.", default="${topic}", check=non_empty, group=_DATA
    )
    yield Option(
        "pk.mode", STRING, HIGH, "Source of the primary key. none: no primary key; kafka: topic, partition and offset; record_key: the record's "
        "key, or fields of it; record_value: fields of the value.",
        default=NONE, check=AnyCase(NONE, KAFKA, RECORD_KEY, RECORD_VALUE), group=_DATA,
    )  # fmt: skip
    yield Option(
        "pk.fields", LIST, MEDIUM, "Columns of the primary key. With kafka, three names (default: __connect_topic, __connect_partition, "
        "__connect_offset); with record_key and record_value, the fields to use (default: all); for a key that is not a struct, its column.",
        default=[], group=_DATA,
    )  # fmt: skip
    yield Option(
        "fields.whitelist",
        LIST,
        MEDIUM,
        "Fields of the value to write. Default: all. The key's fields are always written.",
        default=[],
        group=_DATA,
    )
    yield keys.zone(_DATA)
    yield Option(
        "date.timezone",
        STRING,
        LOW,
        "No effect here: a Date has no time zone.",
        default="DB_TIMEZONE",
        check=AnyCase("db_timezone", "utc"),
        group=_DATA,
    )
    yield Option(
        "timestamp.fields.list",
        LIST,
        MEDIUM,
        "Integer or string fields to write as timestamps.",
        default=[],
        group=_DATA,
    )
    yield Option(
        "timestamp.precision.mode",
        STRING,
        LOW,
        "Unit of those integers, counted from the epoch.",
        default="MICROSECONDS",
        check=AnyCase("microseconds", "nanoseconds"),
        group=_DATA,
    )
    yield Option(
        "date.calendar.system", STRING, LOW, "Calendar of days before 1582: Java's old one (LEGACY), or the proleptic Gregorian calendar "
        "(PROLEPTIC_GREGORIAN). No effect here: databases use the latter, and so does the sink.",
        default="LEGACY", check=AnyCase("LEGACY", "PROLEPTIC_GREGORIAN"), group=_DATA,
    )  # fmt: skip
    yield Option(
        "string.output.value.column.name",
        STRING,
        LOW,
        "Column for values that are strings, not structs.",
        default="record_value",
        check=non_empty,
        group=_DATA,
    )
    yield Option("auto.create", BOOLEAN, MEDIUM, "Whether to create a missing table from the fields of the first record.", default=False, group=_DDL)
    yield Option(
        "auto.evolve",
        BOOLEAN,
        MEDIUM,
        "Whether to add missing columns, and to widen columns if no value changes by it.",
        default=False,
        group=_DDL,
    )
    yield keys.quoting(_DDL)
    yield Option("mssql.use.merge.holdlock", BOOLEAN, LOW, "No effect here: for SQL Server's MERGE.", default=True, group=_DML)
    yield Option(
        "max.retries",
        INT,
        MEDIUM,
        "Maximum number of retries after a transient error (a lost connection, a deadlock) before the task fails.",
        default=10,
        check=at_least(0),
        group=_RETRIES,
    )
    yield Option("retry.backoff.ms", INT, MEDIUM, "Backoff before each retry.", default=3000, check=at_least(0), group=_RETRIES)
    yield Option("trim.sensitive.log", BOOLEAN, LOW, "Whether to remove values from the database's error messages.", default=False, internal=True)
    yield Option(
        "exactly.once", BOOLEAN, MEDIUM, "Whether to store offsets in a table of the database, in the transaction of the rows, and to read them "
        "from there at the start: each record is then written exactly once.", default=False, group=_WRITES, internal=True,
    )  # fmt: skip
    yield Option(
        "exactly.once.table",
        STRING,
        LOW,
        "Table for those offsets.",
        default="connect_sink_offsets",
        check=non_empty,
        group=_WRITES,
        internal=True,
    )


SINK = ConfigDef(*_options())
