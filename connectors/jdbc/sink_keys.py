"""The keys of JdbcSink, by Confluent's names, and a few of our own."""

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
        "insert: rows are added; upsert: rows of a known key are changed; update: only those.",
        default=INSERT,
        check=AnyCase(INSERT, UPSERT, UPDATE),
        group=_WRITES,
    )
    yield Option(
        "batch.size",
        INT,
        MEDIUM,
        "How many rows one statement writes at most. If not given, as many as there are at once.",
        default=3000,
        check=at_least(0),
        group=_WRITES,
    )
    yield Option(
        "delete.enabled",
        BOOLEAN,
        MEDIUM,
        "Whether a record whose value is null deletes the row of its key. Needs pk.mode=record_key.",
        default=False,
        group=_WRITES,
        recommend=_WithRecordKey(),
    )
    yield Option(
        "table.types",
        LIST,
        LOW,
        "No effect here: whatever has the name is written to, a view where the database lets it.",
        default="TABLE",
        check=TableTypes("table", "partitioned table", "view"),
        group=_WRITES,
    )
    yield Option(
        "replace.null.with.default", BOOLEAN, LOW, "Whether a null is written as its field's default, where it has one.", default=True, group=_WRITES
    )
    yield Option(
        "table.name.format", STRING, MEDIUM, "The table's name; ${topic} stands for the topic's.", default="${topic}", check=non_empty, group=_DATA
    )
    yield Option(
        "pk.mode", STRING, HIGH, "Where the primary key comes from. none: there is none; kafka: topic, partition and offset; record_key: the "
        "record's key, or "
        "fields of it; record_value: fields of its value.",
        default=NONE, check=AnyCase(NONE, KAFKA, RECORD_KEY, RECORD_VALUE), group=_DATA,
    )  # fmt: skip
    yield Option(
        "pk.fields", LIST, MEDIUM, "The names of the key's columns. With kafka three of them (__connect_topic, __connect_partition, "
        "__connect_offset, if not "
        "given); with record_key and record_value the fields to take, all if not given; for a key that is not a struct its column's name.",
        default=[], group=_DATA,
    )  # fmt: skip
    yield Option(
        "fields.whitelist",
        LIST,
        MEDIUM,
        "The fields of the value to write; all, if not given. The key's are always written.",
        default=[],
        group=_DATA,
    )
    yield keys.zone(_DATA)
    yield Option(
        "date.timezone",
        STRING,
        LOW,
        "No effect here: a Date is a day, in whatever zone.",
        default="DB_TIMEZONE",
        check=AnyCase("db_timezone", "utc"),
        group=_DATA,
    )
    yield Option(
        "timestamp.fields.list",
        LIST,
        MEDIUM,
        "Fields of whole numbers or texts that are points in time, and are written as such.",
        default=[],
        group=_DATA,
    )
    yield Option(
        "timestamp.precision.mode",
        STRING,
        LOW,
        "What those whole numbers count since the epoch.",
        default="MICROSECONDS",
        check=AnyCase("microseconds", "nanoseconds"),
        group=_DATA,
    )
    yield Option(
        "date.calendar.system", STRING, LOW, "Days before 1582: Java's old calendar (LEGACY), or today's carried back (PROLEPTIC_GREGORIAN). "
        "Databases mean "
        "the latter, and so is it written in either case.",
        default="LEGACY", check=AnyCase("LEGACY", "PROLEPTIC_GREGORIAN"), group=_DATA,
    )  # fmt: skip
    yield Option(
        "string.output.value.column.name",
        STRING,
        LOW,
        "The column of values that are texts, not structs.",
        default="record_value",
        check=non_empty,
        group=_DATA,
    )
    yield Option(
        "auto.create", BOOLEAN, MEDIUM, "Whether a table that is missing is made, of the fields of the first record.", default=False, group=_DDL
    )
    yield Option(
        "auto.evolve",
        BOOLEAN,
        MEDIUM,
        "Whether columns that are missing are added, and those that are too narrow widened where no value changes by it.",
        default=False,
        group=_DDL,
    )
    yield keys.quoting(_DDL)
    yield Option("mssql.use.merge.holdlock", BOOLEAN, LOW, "No effect here: of SQL Server's MERGE.", default=True, group=_DML)
    yield Option(
        "max.retries",
        INT,
        MEDIUM,
        "How often a write is tried again after an error that passes (a lost connection, a deadlock), before the task fails.",
        default=10,
        check=at_least(0),
        group=_RETRIES,
    )
    yield Option("retry.backoff.ms", INT, MEDIUM, "How long to wait before each such try.", default=3000, check=at_least(0), group=_RETRIES)
    yield Option("trim.sensitive.log", BOOLEAN, LOW, "Whether values are left out of what the database says in errors.", default=False, internal=True)
    yield Option(
        "exactly.once", BOOLEAN, MEDIUM, "Whether offsets are written to a table of the database, in the transaction of the rows, and read from "
        "there at the start: each record "
        "is then written once, whatever is killed.", default=False, group=_WRITES, internal=True,
    )  # fmt: skip
    yield Option(
        "exactly.once.table",
        STRING,
        LOW,
        "The table of those offsets.",
        default="connect_sink_offsets",
        check=non_empty,
        group=_WRITES,
        internal=True,
    )


SINK = ConfigDef(*_options())
