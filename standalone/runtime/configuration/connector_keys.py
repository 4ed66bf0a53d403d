"""The keys that every connector has, Kafka's and our own."""

from dataclasses import replace

from standalone.config import (
    BOOLEAN,
    CLASS,
    HIGH,
    INT,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    REQUIRED,
    SHORT,
    STRING,
    WIDTH_LONG,
    WIDTH_MEDIUM,
    WIDTH_SHORT,
    Check,
    ConfigDef,
    Option,
    at_least,
    case_insensitive_one_of,
    non_empty,
    one_of,
    regex_compiles,
)
from standalone.errors import ConfigError
from standalone.runtime.cluster.options import CLUSTER, HERE, RUN_ON
from standalone.runtime.failures.schema_drift import EVOLVE, MODES
from standalone.runtime.supervision import restarts

COMMON, ERRORS, TRANSFORMS, PREDICATES = "Common", "Error Handling", "Transforms", "Predicates"
TOPICS, EXACTLY_ONCE, OFFSETS = "Topic Creation", "Exactly Once Support", "offsets.topic"


def _option(group, order, width, name, type, importance, display, doc, default=REQUIRED, check=None):
    return Option(name, type, importance, doc, default, check, None, group, order, width, display)


def _no_controls(name, value):
    """A string that is not empty and has no control characters."""
    if value is not None and (value == "" or any(ord(char) < 32 or 127 <= ord(char) < 160 for char in value)):
        raise ConfigError("must not be empty nor hold control characters")


def _version(group, order, name, display, importance=LOW, width=WIDTH_SHORT):
    doc = "Version of that plugin. There is one version of each here."
    return _option(group, order, width, name, STRING, importance, display, doc, None)


_aliases = Check("names, each once", lambda value: value is not None and len(set(value)) == len(value), "must name each alias once")
_not_negative = Check("[0,...]", lambda value: value is None or value >= 0, "must be at least 0")
_topics = Check(
    *("names, each once", lambda value: value is not None and len({*value, ""}) > len(value)),
    "must name each topic once, and none with no name",
)
_CONVERTER_DOC = "Converter of this connector's {} instead of the worker's; it takes its keys from this configuration only."

CONNECTOR = ConfigDef(
    _option(
        *(COMMON, 1, WIDTH_MEDIUM, "name", STRING, HIGH, "Connector name", "Name of the connector; no two have the same."),
        check=_no_controls,
    ),
    _option(
        *(COMMON, 2, WIDTH_LONG, "connector.class", STRING, HIGH, "Connector class"),
        "The connector: a Java class that has a counterpart here, its simple name with or without Connector, the name of an entry point, "
        "or a Python class as package.module:Class.",
    ),
    _version(COMMON, 3, "connector.plugin.version", "Connector version", MEDIUM, WIDTH_MEDIUM),
    _option(
        *(COMMON, 4, WIDTH_SHORT, "tasks.max", INT, HIGH, "Tasks max", "How many tasks the connector may have at most."),
        *(1, at_least(1)),
    ),
    _option(
        *(COMMON, 5, WIDTH_SHORT, "tasks.max.enforce", BOOLEAN, LOW, "Enforce tasks max"),
        *("Whether a connector that makes more tasks than tasks.max fails.", True),
    ),
    *(
        option
        for place, (part, what) in enumerate((("key", "keys"), ("value", "values"), ("header", "headers")))
        for option in (
            _option(
                *(COMMON, 6 + 2 * place, WIDTH_SHORT, f"{part}.converter", CLASS, LOW, f"{part.capitalize()} converter class"),
                *(_CONVERTER_DOC.format(what), None),
            ),
            _version(COMMON, 7 + 2 * place, f"{part}.converter.plugin.version", f"{part.capitalize()} converter version"),
        )
    ),
    _option(
        *(TRANSFORMS, 12, WIDTH_LONG, "transforms", LIST, LOW, "Transforms"),
        *("Aliases of the transforms, in the order in which records pass them. Each is described by transforms.ALIAS.*.", "", _aliases),
    ),
    _option(
        *(PREDICATES, 13, WIDTH_LONG, "predicates", LIST, LOW, "Predicates"),
        *("Aliases of the predicates that transforms may name. Each is described by predicates.ALIAS.*.", "", _aliases),
    ),
    _option(
        *(COMMON, 14, WIDTH_MEDIUM, "config.action.reload", STRING, LOW, "Reload Action"),
        "What happens when a value that a config provider gave has expired: `restart` the connector, or `none`.",
        *("restart", case_insensitive_one_of("none", "restart")),
    ),
    _option(
        *(ERRORS, 1, WIDTH_MEDIUM, "errors.retry.timeout", LONG, MEDIUM, "Retry Timeout for Errors"),
        "Milliseconds for which a converter or transform that fails for the moment is tried again, with pauses that double from 300 ms on; "
        "a negative number sets no bound.",
        *(0,),
    ),
    _option(
        *(ERRORS, 2, WIDTH_MEDIUM, "errors.retry.delay.max.ms", LONG, MEDIUM, "Maximum Delay Between Retries for Errors"),
        *("Longest pause between two attempts, of a poll or a put, too.", 60000),
    ),
    _option(
        *(ERRORS, 3, WIDTH_SHORT, "errors.tolerance", STRING, MEDIUM, "Error Tolerance"),
        "`none`: a record that cannot be converted or transformed fails the task. `all`: it is skipped.",
        *("none", case_insensitive_one_of("none", "all")),
    ),
    _option(
        *(ERRORS, 4, WIDTH_SHORT, "errors.log.enable", BOOLEAN, MEDIUM, "Log Errors"),
        *("Whether each record that fails is one ERROR line in the log, with the stage, the class and what was wrong.", False),
    ),
    _option(
        *(ERRORS, 5, WIDTH_SHORT, "errors.log.include.messages", BOOLEAN, MEDIUM, "Log Error Details"),
        *("Whether that line says which record it was: topic, partition, offset and timestamp, never its key or value.", False),
    ),
)

SOURCE = CONNECTOR.extend(
    _option(
        *(TOPICS, 1, WIDTH_LONG, "topic.creation.groups", LIST, LOW, "Topic Creation Groups"),
        "Names of groups of topics, each described by topic.creation.NAME.*. All other topics are made by topic.creation.default.*.",
        *("", _aliases),
    ),
    _option(
        *(EXACTLY_ONCE, 2, WIDTH_SHORT, "exactly.once.support", STRING, MEDIUM, "Exactly once support"),
        "`required`: refused unless the worker has exactly.once.source.support=enabled and the connector says that it supports it.",
        *("requested", case_insensitive_one_of("requested", "required")),
    ),
    _option(
        *(EXACTLY_ONCE, 3, WIDTH_SHORT, "transaction.boundary", STRING, MEDIUM, "Transaction Boundary"),
        "Where transactions end, where the worker has exactly.once.source.support=enabled: with each `poll`, after an `interval`, or where the "
        "`connector` says.",
        *("poll", case_insensitive_one_of("poll", "interval", "connector")),
    ),
    _option(
        *(EXACTLY_ONCE, 4, WIDTH_SHORT, "transaction.boundary.interval.ms", LONG, LOW, "Transaction boundary interval"),
        *("Length of a transaction where transaction.boundary=interval. Default: the worker's offset.flush.interval.ms.", None, _not_negative),
    ),
    _option(
        *(OFFSETS, 1, WIDTH_LONG, "offsets.storage.topic", STRING, LOW, "Offsets topic"),
        *("Topic for this connector's offsets, where the worker has exactly.once.source.support=enabled. Default: its offset.storage.topic.", None),
        *(non_empty,),
    ),
)

SINK = CONNECTOR.extend(
    _option(
        *(COMMON, 4, WIDTH_LONG, "topics", LIST, HIGH, "Topics", "Topics to read, separated by commas. This or topics.regex.", ""),
        check=_topics,
    ),
    _option(
        *(COMMON, 4, WIDTH_LONG, "topics.regex", STRING, HIGH, "Topics regex"),
        *("Regular expression of the names of topics to read, those that come later too. This or topics.", "", regex_compiles),
    ),
    _option(
        *(ERRORS, 6, WIDTH_MEDIUM, "errors.deadletterqueue.topic.name", STRING, MEDIUM, "Dead Letter Queue Topic Name"),
        *("Topic that takes the records that fail, as they stood in the log, whatever errors.tolerance says; empty for none.", ""),
    ),
    _option(
        *(ERRORS, 7, WIDTH_MEDIUM, "errors.deadletterqueue.topic.replication.factor", SHORT, MEDIUM),
        *("Dead Letter Queue Topic Replication Factor", "Replication factor of that topic, where it has to be made.", 3),
    ),
    _option(
        *(ERRORS, 8, WIDTH_MEDIUM, "errors.deadletterqueue.context.headers.enable", BOOLEAN, MEDIUM, "Enable Error Context Headers"),
        *("Whether such a record says in headers where it came from and what was wrong.", False),
    ),
)
DEFINITIONS = {"source": SOURCE, "sink": SINK}

_RESTARTS = ConfigDef(*(replace(option, default=None, doc=f"{option.doc} Default: the worker's.") for option in restarts.OPTIONS))

_RUNS_ON = _option(
    *(COMMON, 15, WIDTH_SHORT, RUN_ON, STRING, LOW, "Tasks run on"),
    "Where its tasks run: in the `worker`, or on the executors of the `cluster` of spark.master. Default: the worker's.",
    *(None, one_of(HERE, CLUSTER)),
)

# Keys that Java has not. A configuration without them is shown as Java shows it.
OWN = {
    "source": ConfigDef(
        *_RESTARTS,
        _RUNS_ON,
        _option(
            *(ERRORS, 6, WIDTH_MEDIUM, "errors.source.deadletterqueue.topic.name", STRING, MEDIUM, "Dead Letter Queue Topic Name"),
            *("Topic that takes the records of a source that fail in a transform, a converter or the producer; empty for none.", ""),
        ),
        _option(
            *(ERRORS, 7, WIDTH_MEDIUM, "errors.source.deadletterqueue.topic.replication.factor", SHORT, MEDIUM),
            *("Dead Letter Queue Topic Replication Factor", "Replication factor of that topic, where it has to be made; -1 leaves it to the broker."),
            *(-1, at_least(-1)),
        ),
        _option(
            *(ERRORS, 8, WIDTH_MEDIUM, "errors.source.deadletterqueue.context.headers.enable", BOOLEAN, MEDIUM, "Enable Error Context Headers"),
            *("Whether such a record says in headers where it came from and what was wrong.", True),
        ),
    ),
    "sink": ConfigDef(
        *_RESTARTS,
        _RUNS_ON,
        _option(
            *(ERRORS, 6, WIDTH_SHORT, "schema.drift", STRING, MEDIUM, "Schema Drift"),
            "When the schema of a topic's values is another one than the first that a task was given: `evolve` lets the records continue, `freeze` "
            "fails the task, `discard_row` skips them, `discard_value` sees them through the first schema, without the fields that are new.",
            *(EVOLVE, one_of(*MODES)),
        ),
    ),
}
