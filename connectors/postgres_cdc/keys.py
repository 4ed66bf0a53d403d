"""The options of PostgresCdcSource, with Debezium's names."""

from standalone import (
    BOOLEAN,
    HIGH,
    INT,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    PASSWORD,
    SHORT,
    STRING,
    ConfigDef,
    ConfigError,
    Option,
    at_least,
    case_insensitive_one_of,
    regex_compiles,
)

_CONNECTION, _TLS, _REPLICATION, _SNAPSHOT = "CONNECTION", "CONNECTION_ADVANCED_SSL", "CONNECTION_ADVANCED_REPLICATION", "CONNECTOR_SNAPSHOT"
_FILTERS, _CONNECTOR, _MORE, _ADVANCED = "FILTERS", "CONNECTOR", "CONNECTOR_ADVANCED", "ADVANCED"
_NOTHING = "No effect here"
PASSING = ("snapshot.select.statement.overrides.", "snapshot.mode.configuration.based.")
TOPIC_NAMES = "io.debezium.schema.SchemaTopicNamingStrategy"


def patterns(name, value):
    """Regular expressions of Java's, each of a whole name."""
    for each in value or ():
        regex_compiles(name, each)


def pgoutput_only(name, value):
    """pgoutput, which is part of PostgreSQL."""
    if str(value).lower() != "pgoutput":
        raise ConfigError(
            f"'{name}' must be pgoutput, which every PostgreSQL has: the output plug-in {value} is not supported"
        )


_KNOWN_TIMES = ("adaptive", "adaptive_time_microseconds", "isostring", "connect", "microseconds", "nanoseconds")
_MODES = ("always", "initial", "no_data", "never", "initial_only", "when_needed", "configuration_based")


def _optional(*words):
    check = case_insensitive_one_of(*words)
    return lambda name, value: None if value is None else check(name, value)


def _operations(name, value):
    """c, u, d, t or none."""
    for each in value or ():
        if each not in ("c", "u", "d", "t", "none"):
            raise ConfigError(f"'{name}' must be of c, u, d and t, or none, found {each!r}")


def _connection():
    group = _CONNECTION
    yield Option("database.hostname", STRING, HIGH, "The server.", group=group)
    yield Option("database.port", INT, HIGH, "Its port.", default=5432, group=group)
    yield Option("database.user", STRING, HIGH, "The user: a role with REPLICATION that may read the tables.", group=group)
    yield Option("database.password", PASSWORD, HIGH, "The password.", default=None, group=group)
    yield Option("database.dbname", STRING, HIGH, "The database.", group=group)
    yield Option("database.query.timeout.ms", INT, LOW, "How long a query may take; 0: forever.", default=600000, group=group)
    yield Option(
        "read.only",
        BOOLEAN,
        LOW,
        "Write nothing to the database: publication and replica identities stay unchanged.",
        default=False,
        group=group,
    )
    group = "CONNECTION_ADVANCED"
    yield Option(
        "database.initial.statements",
        STRING,
        LOW,
        "SQL to run on each new connection, separated by semicolons (;; stands for a semicolon in a statement).",
        default=None,
        group=group,
    )
    yield Option("database.tcpKeepAlive", BOOLEAN, MEDIUM, "Whether to use TCP keep-alive.", default=True, group=group)
    yield Option(
        "skip.messages.without.change",
        BOOLEAN,
        MEDIUM,
        "Skip updates that only change excluded columns; the table must have REPLICA IDENTITY FULL.",
        default=False,
        group=group,
    )
    group = _TLS
    yield Option(
        "database.sslmode",
        STRING,
        MEDIUM,
        "Whether to use TLS, and what to verify.",
        default="prefer",
        check=case_insensitive_one_of("disable", "allow", "prefer", "require", "verify-ca", "verify-full"),
        group=group,
    )
    yield Option("database.sslcert", STRING, MEDIUM, "File of the client certificate (PEM).", default=None, group=group)
    yield Option("database.sslkey", STRING, MEDIUM, "File of its key (PEM).", default=None, group=group)
    yield Option("database.sslpassword", PASSWORD, MEDIUM, "The password of that key.", default=None, group=group)
    yield Option("database.sslrootcert", STRING, MEDIUM, "File of the trusted certificates (PEM).", default=None, group=group)
    yield Option("database.sslfactory", STRING, MEDIUM, f"{_NOTHING}: a Java class.", default=None, group=group)


def _replication():
    group = _REPLICATION
    yield Option(
        "plugin.name", STRING, MEDIUM, "The server's output plug-in: pgoutput.", default="pgoutput", check=pgoutput_only, group=group
    )
    yield Option(
        "slot.name",
        STRING,
        MEDIUM,
        "The replication slot, for which the server retains unread changes. Each connector needs its own.",
        default="debezium",
        group=group,
    )
    yield Option(
        "slot.drop.on.stop",
        BOOLEAN,
        MEDIUM,
        "Whether the slot is dropped when the task stops: changes made while it is stopped are then lost.",
        default=False,
        group=group,
    )
    yield Option("slot.failover", BOOLEAN, MEDIUM, "Whether a new slot is synced to standby servers (PostgreSQL 17).", default=False, group=group)
    yield Option("slot.stream.params", STRING, LOW, "More options of START_REPLICATION: name=value;name=value.", default=None, group=group)
    yield Option("slot.max.retries", INT, LOW, "Maximum attempts to use a slot that another connection holds.", default=6, group=group)
    yield Option("slot.retry.delay.ms", LONG, LOW, "Pause between these attempts.", default=10000, group=group)
    yield Option("slot.seek.to.known.offset.on.start", BOOLEAN, LOW, f"{_NOTHING}, as the next one.", default=False, group=group, internal=True)
    yield Option(
        "offset.mismatch.strategy",
        STRING,
        LOW,
        f"{_NOTHING}: only stored offsets are confirmed, so the greater of slot and offset is right.",
        default="no_validation",
        check=case_insensitive_one_of("no_validation", "trust_offset", "trust_slot", "trust_greater_lsn"),
        group=group,
    )
    yield Option("publication.name", STRING, MEDIUM, "The publication with the tables.", default="dbz_publication", group=group)
    yield Option(
        "publication.autocreate.mode",
        STRING,
        MEDIUM,
        "Which publication to create if there is none. all_tables: for all tables (needs a superuser); "
        "filtered: for the tables that match the filters, updated at each start; no_tables: an empty one; disabled: none.",
        default="all_tables",
        check=case_insensitive_one_of("disabled", "all_tables", "filtered", "no_tables"),
        group=group,
    )
    yield Option(
        "replica.identity.autoset.values",
        STRING,
        MEDIUM,
        "Replica identities to set at the start: a pattern of schema.table, a colon and "
        "DEFAULT, FULL, NOTHING or INDEX name; several separated by commas.",
        default=None,
        group=group,
    )
    yield Option(
        "status.update.interval.ms", INT, MEDIUM, "Interval of status updates to the server.", default=10000, check=at_least(1), group=group
    )
    yield Option("lsn.flush.timeout.ms", LONG, MEDIUM, f"{_NOTHING}: status updates never wait.", default=30000, check=at_least(1), group=group)
    yield Option(
        "lsn.flush.timeout.action",
        STRING,
        MEDIUM,
        f"{_NOTHING}, as the one before.",
        default="fail",
        check=case_insensitive_one_of("fail", "warn", "ignore"),
        group=group,
    )
    yield Option(
        "xmin.fetch.interval.ms",
        LONG,
        MEDIUM,
        "Interval of queries for the slot's xmin, for source.xmin; 0: never.",
        default=0,
        check=at_least(0),
        group=group,
    )
    group = _CONNECTOR
    yield Option(
        "publish.via.partition.root",
        BOOLEAN,
        MEDIUM,
        "Whether a new publication reports changes of partitions as those of the partitioned table.",
        default=False,
        group=group,
    )
    yield Option(
        "lsn.flush.mode",
        STRING,
        LOW,
        "Who confirms to the server that its log is no longer needed. connector: this connector, once the "
        "records are acknowledged and their offset is stored; connector_and_driver: the same; manual: you.",
        default=None,
        check=_optional("connector", "manual", "connector_and_driver"),
        group=group,
    )
    yield Option("flush.lsn.source", BOOLEAN, LOW, "The old form of lsn.flush.mode: false is manual.", default=True, group=group)
    yield Option(
        "message.prefix.include.list",
        LIST,
        MEDIUM,
        "Prefixes of the logical messages (pg_logical_emit_message) to include.",
        default=None,
        check=patterns,
        group=group,
    )
    yield Option("message.prefix.exclude.list", LIST, MEDIUM, "Prefixes of logical messages to exclude.", default=None, check=patterns, group=group)


def _filters():
    group = _FILTERS
    for kind, of in (("schema", "schemas"), ("table", "tables, as schema.table,"), ("column", "columns, as schema.table.column,")):
        importance = MEDIUM if kind == "column" else HIGH
        dependents = ("table.include.list",) if kind == "schema" else ()
        yield Option(
            f"{kind}.include.list",
            LIST,
            importance,
            f"Regular expressions of the {of} to include; all others are excluded.",
            default=None,
            check=patterns,
            group=group,
            dependents=dependents,
        )
        yield Option(f"{kind}.exclude.list", LIST, MEDIUM, f"Regular expressions of the {of} to exclude.", default=None, check=patterns, group=group)
    yield Option("table.ignore.builtin", BOOLEAN, LOW, "Whether to ignore the server's system tables.", default=True, group=group)


def _snapshot():
    group = _SNAPSHOT
    yield Option(
        "snapshot.mode",
        STRING,
        MEDIUM,
        "When to read the tables' rows before streaming changes. initial: once; always: at each start; no_data (or "
        "never): not; initial_only: once, without changes; when_needed: once, and again if the server no longer has the changes; "
        "configuration_based: by the keys snapshot.mode.configuration.based.*.",
        default="initial",
        check=case_insensitive_one_of(*_MODES),
        group=group,
    )
    yield Option("snapshot.mode.custom.name", STRING, MEDIUM, f"{_NOTHING}: a Java class.", default=None, group=group)
    yield Option(
        "snapshot.isolation.mode",
        STRING,
        LOW,
        f"{_NOTHING}: rows are read at the slot's consistent point, in repeatable_read.",
        default="serializable",
        check=case_insensitive_one_of("serializable", "repeatable_read", "read_committed", "read_uncommitted"),
        group=group,
    )
    yield Option(
        "snapshot.locking.mode",
        STRING,
        LOW,
        "shared: table definitions are locked while rows are read; none: they are not.",
        default="none",
        check=case_insensitive_one_of("shared", "none"),
        group=group,
    )
    yield Option("snapshot.lock.timeout.ms", LONG, MEDIUM, "How long to wait for these locks.", default=10000, group=group)
    yield Option(
        "snapshot.query.mode",
        STRING,
        LOW,
        "select_all: all rows, or those of snapshot.select.statement.overrides.",
        default="select_all",
        check=case_insensitive_one_of("select_all"),
        group=group,
    )
    yield Option(
        "snapshot.select.statement.overrides",
        STRING,
        MEDIUM,
        "Tables (schema.table, separated by commas) of which only some rows are read: "
        "snapshot.select.statement.overrides.SCHEMA.TABLE has the SELECT.",
        default=None,
        group=group,
    )
    yield Option(
        "snapshot.tables.order.by.row.count",
        STRING,
        MEDIUM,
        "The order in which tables are read: by size, or by name.",
        default="disabled",
        check=case_insensitive_one_of("ascending", "descending", "disabled"),
        group=group,
    )
    yield Option(
        "snapshot.include.collection.list",
        LIST,
        MEDIUM,
        "Regular expressions of the included tables whose rows are read.",
        default=None,
        check=patterns,
        group=group,
    )
    yield Option("snapshot.delay.ms", LONG, LOW, "Delay before rows are read.", default=0, check=at_least(0), group=group)
    yield Option(
        "snapshot.fetch.size",
        INT,
        MEDIUM,
        f"{_NOTHING}: rows are streamed by COPY.",
        default=None,
        check=lambda name, value: None if value is None else at_least(0)(name, value),
        group=group,
    )
    yield Option("snapshot.max.threads", INT, MEDIUM, f"{_NOTHING}: tables are read one after the other.", default=1, check=at_least(1), group=group)


def _values():
    group = _CONNECTOR
    yield Option(
        "decimal.handling.mode",
        STRING,
        MEDIUM,
        "Type of numeric and money. precise: Connect's Decimal, or a struct of scale and value if the column has no scale; string; double.",
        default="precise",
        check=case_insensitive_one_of("precise", "string", "double"),
        group=group,
    )
    yield Option(
        "time.precision.mode",
        STRING,
        MEDIUM,
        "Types of dates and times. adaptive: milli- or microseconds, by the column; "
        "adaptive_time_microseconds: times in microseconds always; connect: Connect's types; isostring; microseconds; nanoseconds.",
        default="adaptive",
        check=case_insensitive_one_of(*_KNOWN_TIMES),
        group=group,
    )
    yield Option(
        "interval.handling.mode",
        STRING,
        LOW,
        "Type of intervals: microseconds (numeric, a month counts as 30.4375 days), or ISO strings.",
        default="numeric",
        check=case_insensitive_one_of("numeric", "string"),
        group=group,
    )
    yield Option(
        "hstore.handling.mode",
        STRING,
        LOW,
        "Type of hstore: a JSON string, or a map.",
        default="json",
        check=case_insensitive_one_of("json", "map"),
        group=group,
    )
    yield Option(
        "binary.handling.mode",
        STRING,
        LOW,
        "Type of bytea: bytes, or an encoded string.",
        default="bytes",
        check=case_insensitive_one_of("bytes", "base64", "base64-url-safe", "hex"),
        group=group,
    )
    yield Option("money.fraction.digits", SHORT, LOW, "Decimals of money.", default=2, group=group)
    yield Option("include.schema.comments", BOOLEAN, MEDIUM, "Whether column comments are added to the schemas.", default=False, group=group)
    yield Option(
        "tombstones.on.delete",
        BOOLEAN,
        MEDIUM,
        "Whether a tombstone follows each deletion, for compacted topics.",
        default=True,
        group=group,
    )
    yield Option(
        "schema.name.adjustment.mode",
        STRING,
        LOW,
        "How schema names are adjusted for Avro.",
        default="none",
        check=case_insensitive_one_of("none", "avro", "avro_unicode"),
        group=group,
    )
    yield Option(
        "field.name.adjustment.mode",
        STRING,
        LOW,
        "How field names are adjusted for Avro.",
        default="none",
        check=case_insensitive_one_of("none", "avro", "avro_unicode"),
        group=group,
    )
    group = _MORE
    yield Option(
        "include.unknown.datatypes",
        BOOLEAN,
        MEDIUM,
        "Whether columns of unknown types are included, as the bytes of their text.",
        default=False,
        group=group,
    )
    yield Option(
        "unavailable.value.placeholder",
        STRING,
        MEDIUM,
        "Placeholder for a large unchanged value, which the server does not send.",
        default="__debezium_unavailable_value",
        group=group,
    )
    yield Option(
        "schema.refresh.mode",
        STRING,
        MEDIUM,
        f"{_NOTHING}: a table's columns are read again whenever the server reports a change.",
        default="columns_diff",
        check=case_insensitive_one_of("columns_diff", "columns_diff_exclude_unchanged_toast"),
        group=group,
    )
    yield Option(
        "message.key.columns",
        STRING,
        MEDIUM,
        "Record keys other than the primary key: a pattern of schema.table, a colon and columns "
        "separated by commas; several separated by semicolons.",
        default=None,
        group=group,
    )
    yield Option(
        "provide.transaction.metadata",
        BOOLEAN,
        LOW,
        "Whether begin and end of transactions are published to the topic PREFIX.transaction.",
        default=False,
        group=group,
    )
    yield Option("streaming.delay.ms", LONG, LOW, "Delay between the snapshot and streaming.", default=0, check=at_least(0), group=group)
    yield Option(
        "event.converting.failure.handling.mode",
        STRING,
        MEDIUM,
        "What to do with a value that the column's schema cannot hold, such as NaN in "
        "a Decimal: fail, or null with a warning (warn) or without (skip). A column without nulls fails always.",
        default="warn",
        check=case_insensitive_one_of("skip", "warn", "fail"),
        group=group,
    )
    yield Option(
        "errors.max.retries",
        INT,
        LOW,
        "Maximum consecutive reconnects after a lost connection; -1: no limit, 0: none.",
        default=-1,
        group=group,
    )
    yield Option("converters", STRING, LOW, f"{_NOTHING}: classes of Java's.", default=None, group=group)
    yield Option("post.processors", STRING, LOW, f"{_NOTHING}: classes of Java's.", default=None, group=group)


def _rest():
    yield Option(
        "topic.prefix",
        STRING,
        HIGH,
        "Prefix of topic names, and the key of the stored offset.",
        check=_topic_prefix,
        group=_CONNECTOR,
    )
    group = _ADVANCED
    yield Option(
        "topic.naming.strategy",
        STRING,
        MEDIUM,
        "How topics are named: PREFIX.SCHEMA.TABLE.",
        default=TOPIC_NAMES,
        check=case_insensitive_one_of(TOPIC_NAMES),
        group=group,
    )
    yield Option("skipped.operations", LIST, LOW, "What to skip: c, u, d, t (truncations), or none.", default="t", check=_operations, group=group)
    yield Option("poll.interval.ms", LONG, MEDIUM, "How long a poll waits for changes.", default=500, group=group)
    yield Option("max.batch.size", INT, MEDIUM, "Maximum records per poll.", default=2048, check=at_least(1), group=group)
    yield Option("max.queue.size", INT, MEDIUM, f"{_NOTHING}: there is no queue; the server waits.", default=8192, group=group)
    yield Option("max.queue.size.in.bytes", LONG, MEDIUM, f"{_NOTHING}, as the one before.", default=0, check=at_least(0), group=group)
    yield Option(
        "event.processing.failure.handling.mode",
        STRING,
        MEDIUM,
        "What to do with an invalid value: fail the task, or use null if the column allows it, with a warning (warn) or without (skip).",
        default="fail",
        check=case_insensitive_one_of("skip", "warn", "fail", "ignore"),
        group=group,
    )
    yield Option(
        "retriable.restart.connector.wait.ms",
        LONG,
        LOW,
        "Pause before a reconnect after a lost connection.",
        default=10000,
        check=at_least(1),
        group=group,
    )
    yield Option(
        "incremental.snapshot.chunk.size",
        INT,
        MEDIUM,
        f"{_NOTHING}: there are no incremental snapshots.",
        default=1024,
        check=at_least(0),
        group=group,
    )
    yield Option(
        "incremental.snapshot.watermarking.strategy",
        STRING,
        LOW,
        f"{_NOTHING}, as the one before.",
        default="INSERT_INSERT",
        check=case_insensitive_one_of("INSERT_INSERT", "INSERT_DELETE"),
        group=group,
    )
    yield Option("signal.data.collection", LIST, MEDIUM, f"{_NOTHING}: signals are not read.", default=None, group=group)
    yield Option("signal.enabled.channels", LIST, MEDIUM, f"{_NOTHING}: signals are not read.", default="source", group=group)
    yield Option("signal.poll.interval.ms", LONG, MEDIUM, f"{_NOTHING}: signals are not read.", default=5000, check=at_least(1), group=group)
    yield Option("notification.enabled.channels", LIST, MEDIUM, f"{_NOTHING}: there are no notifications.", default=None, group=group)
    group = "ADVANCED_HEARTBEAT"
    yield Option(
        "heartbeat.interval.ms",
        INT,
        MEDIUM,
        "Heartbeat interval, which advances the offset even if no included table changes; 0: never.",
        default=0,
        check=at_least(0),
        group=group,
    )
    yield Option("heartbeat.topics.prefix", STRING, LOW, "Prefix of the heartbeat topic.", default="__debezium-heartbeat", group=group)
    yield Option("heartbeat.action.query", STRING, LOW, "SQL to run with each heartbeat.", default=None, group=group)


def _topic_prefix(name, value):
    """Letters, digits, dots, underscores and hyphens."""
    if not value or not all(each.isascii() and (each.isalnum() or each in "._-") for each in value):
        raise ConfigError(f"'{name}' must have letters, digits, dots, underscores and hyphens alone, found {value!r}")


SOURCE = ConfigDef(*_connection(), *_replication(), *_filters(), *_snapshot(), *_values(), *_rest())

# Options without effect; a configuration that sets one gets a warning.
IDLE = (
    "signal.data.collection",
    "notification.enabled.channels",
    "converters",
    "post.processors",
    "database.sslfactory",
    "snapshot.mode.custom.name",
)
