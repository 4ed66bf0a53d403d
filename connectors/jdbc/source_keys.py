"""The keys of JdbcSource, by Confluent's names, and a few of our own."""

import re

from connectors.jdbc import keys
from connectors.jdbc.column import GRANULARITIES
from connectors.jdbc.keys import AnyCase
from connectors.jdbc.table import patterns_compile
from standalone import BOOLEAN, HIGH, INT, LIST, LONG, LOW, MEDIUM, PASSWORD, STRING, ConfigDef, ConfigError, Option, at_least, between, one_of

BULK, TIMESTAMP, INCREMENTING, BOTH = "bulk", "timestamp", "incrementing", "timestamp+incrementing"
NEVER_NUMBERED = "never"
_DATABASE, _MODE, _CONNECTOR = "Database", "Mode", "Connector"
_TOPIC_LENGTH = 249


def topic_prefix(name, value):
    """At most 249 letters, digits, dots, underscores and hyphens."""
    if value is None or len(value.strip()) > _TOPIC_LENGTH or not re.fullmatch(r"[A-Za-z0-9._-]*", value.strip()):
        raise ConfigError(f"'{name}' must have at most {_TOPIC_LENGTH} letters, digits, dots, underscores and hyphens, found {value!r}")


def mappings(name, value):
    """Entries of the form pattern:column, the pattern a regular expression of a table's full name."""
    for each in value or ():
        pattern, _, column = each.rpartition(":")
        if not pattern or not column.strip("[]|"):
            raise ConfigError(f"'{name}' must have entries of the form pattern:column, found {each!r}")
        patterns_compile(name, [pattern])


def list_mappings(name, value):
    """Entries of the form pattern:[column|column], the pattern a regular expression of a table's full name."""
    mappings(name, value)
    for each in value or ():
        listed = re.search(r":\[([^\[\]]*)\]$", each)
        if not listed or not all(part.strip() for part in listed[1].split("|")):
            raise ConfigError(f"'{name}' must have entries of the form pattern:[column|column], found {each!r}")


def _shown_in(*modes):
    class Shown:
        @staticmethod
        def valid_values(name, parsed):
            return []

        @staticmethod
        def visible(name, parsed):
            return parsed.get("mode") in modes

    return Shown()


class _Hidden:
    @staticmethod
    def valid_values(name, parsed):
        return []

    @staticmethod
    def visible(name, parsed):
        return False


_OF_COLUMNS = ("incrementing.column.name", "timestamp.column.name", "incrementing.column.mapping", "timestamp.columns.mapping", "validate.non.null")
_FILTERS = ("table.whitelist", "table.blacklist")


def _options():
    shared = keys.connection(_DATABASE, url_default="", url_dependents=_FILTERS)
    yield from (option for name, option in shared.items() if name != "dialect.name")
    yield Option(
        "table.whitelist",
        LIST,
        MEDIUM,
        "Names of the tables to read. Cannot be combined with the other three filters.",
        default=[],
        group=_DATABASE,
    )
    yield Option("table.blacklist", LIST, MEDIUM, "Names of the tables to exclude.", default=[], group=_DATABASE)
    yield Option(
        "table.include.list",
        LIST,
        MEDIUM,
        "Regular expressions for the full names of the tables to read.",
        default=[],
        check=patterns_compile,
        group=_DATABASE,
    )
    yield Option(
        "table.exclude.list",
        LIST,
        MEDIUM,
        "Regular expressions for the full names of the tables to exclude.",
        default=[],
        check=patterns_compile,
        group=_DATABASE,
    )
    yield Option(
        "catalog.pattern",
        STRING,
        MEDIUM,
        "Read only tables in catalogs that match this SQL LIKE pattern; empty: those without a catalog.",
        default=None,
        group=_DATABASE,
    )
    yield Option(
        "schema.pattern",
        STRING,
        HIGH,
        "Read only tables in schemas that match this SQL LIKE pattern; empty: those without a schema.",
        default=None,
        group=_DATABASE,
    )
    yield Option("numeric.precision.mapping", BOOLEAN, LOW, "Deprecated: the same as numeric.mapping=precision_only.", default=False, group=_DATABASE)
    yield Option(
        "numeric.mapping", STRING, LOW, "Type of NUMERIC columns. none: Connect's Decimal; precision_only: integers if the scale is 0 and "
        "they fit; best_fit: also doubles if 18 digits suffice; best_fit_eager_double: doubles for any other scale. A column without a scale "
        "becomes a string, or a double for the latter two.",
        default=None, check=AnyCase("none", "precision_only", "best_fit", "best_fit_eager_double"), group=_DATABASE,
    )  # fmt: skip
    yield shared["dialect.name"]
    yield Option(
        "date.calendar.system", STRING, LOW, "Calendar of days before 1582: Java's old one (LEGACY), or the proleptic Gregorian calendar "
        "(PROLEPTIC_GREGORIAN). No effect here: databases use the latter, and so does the source.",
        default="LEGACY", check=AnyCase("LEGACY", "PROLEPTIC_GREGORIAN"), group=_DATABASE,
    )  # fmt: skip
    yield Option(
        "mode", STRING, HIGH, "How to find new rows. bulk: read all rows each time; incrementing: rows with a higher number; timestamp: rows with "
        "a later time; timestamp+incrementing: rows with a later time, or with the same time and a higher number.",
        default="", check=AnyCase("", BULK, TIMESTAMP, INCREMENTING, BOTH), dependents=_OF_COLUMNS, group=_MODE,
        recommend=lambda name, parsed: [BULK, TIMESTAMP, INCREMENTING, BOTH],
    )  # fmt: skip
    yield Option(
        "incrementing.column.name",
        STRING,
        MEDIUM,
        "Column with ascending numbers. Empty: the table's only auto-increment column.",
        default="",
        group=_MODE,
        recommend=_shown_in(INCREMENTING, BOTH),
    )
    yield Option(
        "timestamp.column.name",
        LIST,
        MEDIUM,
        "Columns with the time of the last change; the first non-null value is used.",
        default=[],
        group=_MODE,
        recommend=_shown_in(TIMESTAMP, BOTH),
    )
    yield Option(
        "timestamp.columns.mapping",
        LIST,
        MEDIUM,
        "Timestamp columns of tables whose full names match: pattern:[column|column].",
        default=[],
        check=list_mappings,
        group=_MODE,
        recommend=_shown_in(TIMESTAMP, BOTH),
    )
    yield Option(
        "incrementing.column.mapping",
        LIST,
        MEDIUM,
        "Incrementing column of tables whose full names match: pattern:column.",
        default=[],
        check=mappings,
        group=_MODE,
        recommend=_shown_in(INCREMENTING, BOTH),
    )
    yield Option(
        "timestamp.initial",
        LONG,
        LOW,
        "Without a stored offset: read rows after this time, in milliseconds since the epoch; -1: now. Not set: all rows.",
        default=None,
        group=_MODE,
        recommend=_Hidden(),
    )
    yield Option(
        "validate.non.null",
        BOOLEAN,
        LOW,
        "Whether the task fails at the start if the incrementing column, or all timestamp columns, are nullable.",
        default=True,
        group=_MODE,
        recommend=_shown_in(INCREMENTING, TIMESTAMP, BOTH),
    )
    yield Option("query", STRING, MEDIUM, "A SELECT to read instead of tables; the conditions of the mode are added to it.", default="", group=_MODE)
    yield Option("query.masked", PASSWORD, MEDIUM, "The same, hidden in logs and REST responses.", default="", group=_MODE, recommend=_Hidden())
    yield keys.quoting(_MODE)
    yield Option("query.suffix", STRING, LOW, "SQL to append to every query, such as FOR READ ONLY.", default="", group=_MODE)
    yield Option(
        "transaction.isolation.mode", STRING, LOW, "Isolation level of the reading transactions.", default="DEFAULT",
        check=AnyCase("DEFAULT", "READ_UNCOMMITTED", "READ_COMMITTED", "REPEATABLE_READ", "SERIALIZABLE", "SQL_SERVER_SNAPSHOT"),
        recommend=lambda name, parsed: ["default", "read_uncommitted", "read_committed", "repeatable_read", "serializable", "sql_server_snapshot"],
        group=_MODE,
    )  # fmt: skip
    yield Option(
        "query.retry.attempts",
        INT,
        LOW,
        "Maximum number of retries of a query after a transient error (a lost connection, a lock); -1: no limit.",
        default=-1,
        group=_MODE,
    )
    yield Option(
        "late.rows.window.ms", LONG, LOW, "How long to look for rows with missing numbers in an incrementing column: such a row may be "
        "committed after a row with a higher number. 0: not at all; -1: until all transactions that were open when the gap was seen have ended, "
        "if the database reports them, else a minute.", default=-1, check=at_least(-1), group=_MODE, internal=True,
    )  # fmt: skip
    yield Option(
        "table.types", LIST, LOW, "Types of tables to read: TABLE, VIEW, PARTITIONED TABLE, MATERIALIZED VIEW …", default="TABLE", group=_CONNECTOR
    )
    yield Option("poll.interval.ms", INT, HIGH, "How long to wait between two polls of a table.", default=5000, group=_CONNECTOR)
    yield Option(
        "batch.max.rows",
        INT,
        LOW,
        "Maximum number of rows per poll. Not set: chosen by the task.",
        default=1000,
        group=_CONNECTOR,
    )
    yield Option(
        "max.buffer.size",
        INT,
        LOW,
        "No effect here: the worker limits the bytes of records in flight.",
        default=0,
        group=_CONNECTOR,
    )
    yield Option("poll.linger.ms", LONG, LOW, "No effect here: rows are published as they are read.", default=5000, group=_CONNECTOR)
    yield Option(
        "table.monitoring.startup.polling.limit.ms", LONG, LOW, "How long to wait for the list of tables at the start.", default=10000, internal=True
    )
    yield Option("table.poll.interval.ms", LONG, LOW, "How often to check for new and dropped tables.", default=60000, group=_CONNECTOR)
    yield Option(
        "topic.prefix",
        STRING,
        HIGH,
        "Prefix of topics, followed by the table's name; for a query, the whole topic.",
        default="",
        check=topic_prefix,
        group=_CONNECTOR,
    )
    yield Option(
        "topic.qualified", BOOLEAN, LOW, "Whether topics include the schema (schema.table), so that tables with the same name in two "
        "schemas do "
        "not clash.", default=False, group=_CONNECTOR, internal=True,
    )  # fmt: skip
    yield Option(
        "timestamp.delay.interval.ms",
        LONG,
        HIGH,
        "Minimum age of a row's timestamp before the row is read: time for transactions to commit.",
        default=0,
        group=_CONNECTOR,
    )
    yield keys.zone(_CONNECTOR)
    yield Option(
        "timestamp.granularity", STRING, LOW, "Type of timestamps. connect_logical: Connect's Timestamp, in milliseconds; or microseconds or "
        "nanoseconds since the epoch as an integer or a string, or a string such as 2020-01-31T23:59:59.123456.",
        default="connect_logical", check=one_of(*GRANULARITIES), recommend=lambda name, parsed: list(GRANULARITIES), group=_CONNECTOR,
    )  # fmt: skip


SOURCE = ConfigDef(*_options())
TASK = SOURCE.extend(
    Option("tables", LIST, HIGH, "The tables that the task reads. The connector sets it."),
    Option("tables.fetched", BOOLEAN, HIGH, "Whether the list of tables is known. The connector sets it.", default=False, internal=True),
    Option("engine.shutdown.timeout", INT, LOW, "No effect here.", default=10, check=between(0, 30), internal=True),
)
