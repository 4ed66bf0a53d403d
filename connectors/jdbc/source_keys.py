"""The configuration keys of JdbcSource: Confluent's, and a few of our own."""

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
    """Entries pattern:column, where the pattern is a regular expression for full table names."""
    for each in value or ():
        pattern, _, column = each.rpartition(":")
        if not pattern or not column.strip("[]|"):
            raise ConfigError(f"'{name}' must have entries of the form pattern:column, found {each!r}")
        patterns_compile(name, [pattern])


def list_mappings(name, value):
    """Entries pattern:[column|column], where the pattern is a regular expression for full table names."""
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
        "The names of the tables to read; all others are ignored. Cannot be combined with the other three filters.",
        default=[],
        group=_DATABASE,
    )
    yield Option("table.blacklist", LIST, MEDIUM, "The names of tables to ignore.", default=[], group=_DATABASE)
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
        "Regular expressions for the full names of tables to ignore.",
        default=[],
        check=patterns_compile,
        group=_DATABASE,
    )
    yield Option(
        "catalog.pattern",
        STRING,
        MEDIUM,
        "Read only tables in catalogs that match this LIKE pattern; an empty pattern selects tables without a catalog.",
        default=None,
        group=_DATABASE,
    )
    yield Option(
        "schema.pattern",
        STRING,
        HIGH,
        "Read only tables in schemas that match this LIKE pattern; an empty pattern selects tables without a schema.",
        default=None,
        group=_DATABASE,
    )
    yield Option("numeric.precision.mapping", BOOLEAN, LOW, "The older form of numeric.mapping=precision_only.", default=False, group=_DATABASE)
    yield Option(
        "numeric.mapping", STRING, LOW, "The type of NUMERIC columns. none: Connect's Decimal; precision_only: integers, if the scale is 0 and the "
        "precision at most 18; best_fit: also doubles, if the precision is at most 18; best_fit_eager_double: doubles for all columns with a "
        "scale. Columns without declared scale become exact strings, with the last two settings doubles.",
        default=None, check=AnyCase("none", "precision_only", "best_fit", "best_fit_eager_double"), group=_DATABASE,
    )  # fmt: skip
    yield shared["dialect.name"]
    yield Option(
        "date.calendar.system", STRING, LOW, "The calendar for dates before 1582: Julian (LEGACY) or PROLEPTIC_GREGORIAN. No effect "
        "here: dates are always read as proleptic Gregorian, as databases store them.",
        default="LEGACY", check=AnyCase("LEGACY", "PROLEPTIC_GREGORIAN"), group=_DATABASE,
    )  # fmt: skip
    yield Option(
        "mode", STRING, HIGH, "How new rows are found. bulk: all rows at each poll; incrementing: rows with a higher id; timestamp: rows with a "
        "later timestamp; timestamp+incrementing: rows with a later timestamp, or the same and a higher id.",
        default="", check=AnyCase("", BULK, TIMESTAMP, INCREMENTING, BOTH), dependents=_OF_COLUMNS, group=_MODE,
        recommend=lambda name, parsed: [BULK, TIMESTAMP, INCREMENTING, BOTH],
    )  # fmt: skip
    yield Option(
        "incrementing.column.name",
        STRING,
        MEDIUM,
        "The incrementing column. By default the table's only autoincrement column.",
        default="",
        group=_MODE,
        recommend=_shown_in(INCREMENTING, BOTH),
    )
    yield Option(
        "timestamp.column.name",
        LIST,
        MEDIUM,
        "Columns with the time of the last change; the first one that is not null counts.",
        default=[],
        group=_MODE,
        recommend=_shown_in(TIMESTAMP, BOTH),
    )
    yield Option(
        "timestamp.columns.mapping",
        LIST,
        MEDIUM,
        "Timestamp columns for tables whose full names match: pattern:[column|column].",
        default=[],
        check=list_mappings,
        group=_MODE,
        recommend=_shown_in(TIMESTAMP, BOTH),
    )
    yield Option(
        "incrementing.column.mapping",
        LIST,
        MEDIUM,
        "The incrementing column for tables whose full names match: pattern:column.",
        default=[],
        check=mappings,
        group=_MODE,
        recommend=_shown_in(INCREMENTING, BOTH),
    )
    yield Option(
        "timestamp.initial",
        LONG,
        LOW,
        "Without a stored offset, read rows after this time in milliseconds since the epoch; -1 is now. By default all rows are read.",
        default=None,
        group=_MODE,
        recommend=_Hidden(),
    )
    yield Option(
        "validate.non.null",
        BOOLEAN,
        LOW,
        "Whether the task fails if the incrementing column or all timestamp columns are nullable.",
        default=True,
        group=_MODE,
        recommend=_shown_in(INCREMENTING, TIMESTAMP, BOTH),
    )
    yield Option(
        "query",
        STRING,
        MEDIUM,
        "A SELECT to read instead of tables. The connector wraps it to add the conditions of the mode.",
        default="",
        group=_MODE,
    )
    yield Option(
        "query.masked", PASSWORD, MEDIUM, "The same as query, but hidden in logs and REST responses.", default="", group=_MODE, recommend=_Hidden()
    )
    yield keys.quoting(_MODE)
    yield Option("query.suffix", STRING, LOW, "SQL that is appended to every query, such as FOR READ ONLY.", default="", group=_MODE)
    yield Option(
        "transaction.isolation.mode", STRING, LOW, "The isolation level of the transactions that read.", default="DEFAULT",
        check=AnyCase("DEFAULT", "READ_UNCOMMITTED", "READ_COMMITTED", "REPEATABLE_READ", "SERIALIZABLE", "SQL_SERVER_SNAPSHOT"),
        recommend=lambda name, parsed: ["default", "read_uncommitted", "read_committed", "repeatable_read", "serializable", "sql_server_snapshot"],
        group=_MODE,
    )  # fmt: skip
    yield Option(
        "query.retry.attempts",
        INT,
        LOW,
        "How often a query is retried after a transient error (a lost connection, a lock timeout); -1: without limit.",
        default=-1,
        group=_MODE,
    )
    yield Option(
        "late.rows.window.ms", LONG, LOW, "How long missing ids of an incrementing column are queried again: their rows may be committed after "
        "rows with higher ids. 0: never; -1: until all transactions that were open when the gap was found have ended, or one minute if the "
        "database does not report transactions.", default=-1, check=at_least(-1), group=_MODE, internal=True,
    )  # fmt: skip
    yield Option(
        "table.types",
        LIST,
        LOW,
        "The types of tables to read: TABLE, VIEW, PARTITIONED TABLE, MATERIALIZED VIEW …",
        default="TABLE",
        group=_CONNECTOR,
    )
    yield Option("poll.interval.ms", INT, HIGH, "The pause between two polls of a table.", default=5000, group=_CONNECTOR)
    yield Option(
        "batch.max.rows",
        INT,
        LOW,
        "The maximum number of rows in a batch. If not set, batches have 20,000 rows.",
        default=1000,
        group=_CONNECTOR,
    )
    yield Option(
        "max.buffer.size",
        INT,
        LOW,
        "No effect here: the worker limits the bytes of unsent records.",
        default=0,
        group=_CONNECTOR,
    )
    yield Option("poll.linger.ms", LONG, LOW, "No effect here: rows are sent as soon as they are read.", default=5000, group=_CONNECTOR)
    yield Option(
        "table.monitoring.startup.polling.limit.ms",
        LONG,
        LOW,
        "No effect here: the connector lists the tables when it starts.",
        default=10000,
        internal=True,
    )
    yield Option("table.poll.interval.ms", LONG, LOW, "How often the connector looks for new and dropped tables.", default=60000, group=_CONNECTOR)
    yield Option(
        "topic.prefix",
        STRING,
        HIGH,
        "The prefix of topic names, before the table name; for a query, the topic name.",
        default="",
        check=topic_prefix,
        group=_CONNECTOR,
    )
    yield Option(
        "topic.qualified", BOOLEAN, LOW, "Whether topic names contain the schema (schema.table), for tables with the same name in several "
        "schemas.", default=False, group=_CONNECTOR, internal=True,
    )  # fmt: skip
    yield Option(
        "timestamp.delay.interval.ms",
        LONG,
        HIGH,
        "Read only rows whose timestamp is at least this old, so that open transactions can commit.",
        default=0,
        group=_CONNECTOR,
    )
    yield keys.zone(_CONNECTOR)
    yield Option(
        "timestamp.granularity", STRING, LOW, "The type of timestamps. connect_logical: Connect's Timestamp in milliseconds; or micro- or "
        "nanoseconds since the epoch as an integer or string, or a string such as 2020-01-31T23:59:59.123456.",
        default="connect_logical", check=one_of(*GRANULARITIES), recommend=lambda name, parsed: list(GRANULARITIES), group=_CONNECTOR,
    )  # fmt: skip


SOURCE = ConfigDef(*_options())
TASK = SOURCE.extend(
    Option("tables", LIST, HIGH, "The tables of the task. Set by the connector."),
    Option("tables.fetched", BOOLEAN, HIGH, "Whether the list of tables is known. Set by the connector.", default=False, internal=True),
    Option("engine.shutdown.timeout", INT, LOW, "No effect here.", default=10, check=between(0, 30), internal=True),
)
