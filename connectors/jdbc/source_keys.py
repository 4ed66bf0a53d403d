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
        "The tables to read, by their names; all others are left. Together with no other of the four filters.",
        default=[],
        group=_DATABASE,
    )
    yield Option("table.blacklist", LIST, MEDIUM, "The tables to leave, by their names.", default=[], group=_DATABASE)
    yield Option(
        "table.include.list",
        LIST,
        MEDIUM,
        "Regular expressions of the full names of the tables to read.",
        default=[],
        check=patterns_compile,
        group=_DATABASE,
    )
    yield Option(
        "table.exclude.list",
        LIST,
        MEDIUM,
        "Regular expressions of the full names of the tables to leave.",
        default=[],
        check=patterns_compile,
        group=_DATABASE,
    )
    yield Option(
        "catalog.pattern",
        STRING,
        MEDIUM,
        "Only tables of catalogs that fit this pattern of SQL's LIKE; an empty one: those without a catalog.",
        default=None,
        group=_DATABASE,
    )
    yield Option(
        "schema.pattern",
        STRING,
        HIGH,
        "Only tables of schemas that fit this pattern of SQL's LIKE; an empty one: those without a schema.",
        default=None,
        group=_DATABASE,
    )
    yield Option("numeric.precision.mapping", BOOLEAN, LOW, "The older way to say numeric.mapping=precision_only.", default=False, group=_DATABASE)
    yield Option(
        "numeric.mapping", STRING, LOW, "What NUMERIC columns become. none: Connect's Decimal; precision_only: whole numbers where there are no "
        "decimals and "
        "they fit; best_fit: also doubles where 18 digits do; best_fit_eager_double: doubles wherever there are decimals. A column without a scale "
        "is a "
        "text, exactly, or a double for the latter two.",
        default=None, check=AnyCase("none", "precision_only", "best_fit", "best_fit_eager_double"), group=_DATABASE,
    )  # fmt: skip
    yield shared["dialect.name"]
    yield Option(
        "date.calendar.system", STRING, LOW, "Days before 1582: Java's old calendar (LEGACY), or today's carried back (PROLEPTIC_GREGORIAN). "
        "Databases "
        "mean the latter, and so is it read in either case.",
        default="LEGACY", check=AnyCase("LEGACY", "PROLEPTIC_GREGORIAN"), group=_DATABASE,
    )  # fmt: skip
    yield Option(
        "mode", STRING, HIGH, "How new rows are found. bulk: all rows each time; incrementing: those of a higher number than before; timestamp: of "
        "a later "
        "time; timestamp+incrementing: of a later time or, at the same, a higher number.",
        default="", check=AnyCase("", BULK, TIMESTAMP, INCREMENTING, BOTH), dependents=_OF_COLUMNS, group=_MODE,
        recommend=lambda name, parsed: [BULK, TIMESTAMP, INCREMENTING, BOTH],
    )  # fmt: skip
    yield Option(
        "incrementing.column.name",
        STRING,
        MEDIUM,
        "The column of ascending numbers. Left empty: the table's only one that counts by itself.",
        default="",
        group=_MODE,
        recommend=_shown_in(INCREMENTING, BOTH),
    )
    yield Option(
        "timestamp.column.name",
        LIST,
        MEDIUM,
        "Columns of the time of the last change; the first that is not null counts.",
        default=[],
        group=_MODE,
        recommend=_shown_in(TIMESTAMP, BOTH),
    )
    yield Option(
        "timestamp.columns.mapping",
        LIST,
        MEDIUM,
        "The same for tables whose full names fit: pattern:[column|column].",
        default=[],
        check=list_mappings,
        group=_MODE,
        recommend=_shown_in(TIMESTAMP, BOTH),
    )
    yield Option(
        "incrementing.column.mapping",
        LIST,
        MEDIUM,
        "The incrementing column for tables whose full names fit: pattern:column.",
        default=[],
        check=mappings,
        group=_MODE,
        recommend=_shown_in(INCREMENTING, BOTH),
    )
    yield Option(
        "timestamp.initial",
        LONG,
        LOW,
        "Without a stored offset: the time to begin behind, in milliseconds since the epoch; -1: now. Left out: all rows.",
        default=None,
        group=_MODE,
        recommend=_Hidden(),
    )
    yield Option(
        "validate.non.null",
        BOOLEAN,
        LOW,
        "Whether the task refuses to start where an incrementing column, or all timestamp columns, may be null.",
        default=True,
        group=_MODE,
        recommend=_shown_in(INCREMENTING, TIMESTAMP, BOTH),
    )
    yield Option(
        "query", STRING, MEDIUM, "A SELECT to read in place of tables; the conditions of the mode are put around it.", default="", group=_MODE
    )
    yield Option("query.masked", PASSWORD, MEDIUM, "The same, hidden in logs and answers.", default="", group=_MODE, recommend=_Hidden())
    yield keys.quoting(_MODE)
    yield Option("query.suffix", STRING, LOW, "SQL to be after every query, such as FOR READ ONLY.", default="", group=_MODE)
    yield Option(
        "transaction.isolation.mode", STRING, LOW, "The isolation of the transactions that read.", default="DEFAULT",
        check=AnyCase("DEFAULT", "READ_UNCOMMITTED", "READ_COMMITTED", "REPEATABLE_READ", "SERIALIZABLE", "SQL_SERVER_SNAPSHOT"),
        recommend=lambda name, parsed: ["default", "read_uncommitted", "read_committed", "repeatable_read", "serializable", "sql_server_snapshot"],
        group=_MODE,
    )  # fmt: skip
    yield Option(
        "query.retry.attempts",
        INT,
        LOW,
        "How often a query is tried again after an error that passes (a lost connection, a lock); -1: forever.",
        default=-1,
        group=_MODE,
    )
    yield Option(
        "late.rows.window.ms", LONG, LOW, "How long a number that was left out in an incrementing column is looked for again: its row may be "
        "committed later "
        "than a higher one's. 0: not at all; -1: until every transaction that ran when it was missed has ended, where the database says that, "
        "else a "
        "minute.", default=-1, check=at_least(-1), group=_MODE, internal=True,
    )  # fmt: skip
    yield Option(
        "table.types", LIST, LOW, "What counts as a table: TABLE, VIEW, PARTITIONED TABLE, MATERIALIZED VIEW …", default="TABLE", group=_CONNECTOR
    )
    yield Option("poll.interval.ms", INT, HIGH, "How long to wait between two looks at a table.", default=5000, group=_CONNECTOR)
    yield Option(
        "batch.max.rows",
        INT,
        LOW,
        "How many rows the task hands on at once at most. If not given, as many as serve it well.",
        default=1000,
        group=_CONNECTOR,
    )
    yield Option(
        "max.buffer.size",
        INT,
        LOW,
        "No effect here: what is read and not yet written is bounded in bytes by the worker.",
        default=0,
        group=_CONNECTOR,
    )
    yield Option("poll.linger.ms", LONG, LOW, "No effect here: rows are handed on as they are read.", default=5000, group=_CONNECTOR)
    yield Option(
        "table.monitoring.startup.polling.limit.ms", LONG, LOW, "How long the start waits for the list of tables.", default=10000, internal=True
    )
    yield Option(
        "table.poll.interval.ms", LONG, LOW, "How often to look for new tables, and for those that are gone.", default=60000, group=_CONNECTOR
    )
    yield Option(
        "topic.prefix",
        STRING,
        HIGH,
        "Stands before the table's name in the topic's; of a query it is the topic.",
        default="",
        check=topic_prefix,
        group=_CONNECTOR,
    )
    yield Option(
        "topic.qualified", BOOLEAN, LOW, "Whether the schema, too, is in the topic's name (schema.table), so that tables of one name in two "
        "schemas do "
        "not clash.", default=False, group=_CONNECTOR, internal=True,
    )  # fmt: skip
    yield Option(
        "timestamp.delay.interval.ms",
        LONG,
        HIGH,
        "How old a timestamp must be for its row to be read: time for transactions to be committed.",
        default=0,
        group=_CONNECTOR,
    )
    yield keys.zone(_CONNECTOR)
    yield Option(
        "timestamp.granularity", STRING, LOW, "What timestamps become. connect_logical: Connect's Timestamp, of milliseconds; or micro- or "
        "nanoseconds since the "
        "epoch as a number or a text, or a text such as 2020-01-31T23:59:59.123456.",
        default="connect_logical", check=one_of(*GRANULARITIES), recommend=lambda name, parsed: list(GRANULARITIES), group=_CONNECTOR,
    )  # fmt: skip


SOURCE = ConfigDef(*_options())
TASK = SOURCE.extend(
    Option("tables", LIST, HIGH, "The tables that the task reads. The connector sets it."),
    Option("tables.fetched", BOOLEAN, HIGH, "Whether the list of tables is known. The connector sets it.", default=False, internal=True),
    Option("engine.shutdown.timeout", INT, LOW, "No effect here.", default=10, check=between(0, 30), internal=True),
)
