"""The keys that every connector has, Kafka's and this project's."""

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
    """A non-empty string without control characters."""
    if value is not None and (value == "" or any(ord(char) < 32 or 127 <= ord(char) < 160 for char in value)):
        raise ConfigError("must not be empty nor contain control characters")


def _version(group, order, name, display, importance=LOW, width=WIDTH_SHORT):
    doc = "Version of the plugin. Only one version of each is installed."
    return _option(group, order, width, name, STRING, importance, display, doc, None)


_aliases = Check("names, each once", lambda value: value is not None and len(set(value)) == len(value), "must name each alias once")
_not_negative = Check("[0,...]", lambda value: value is None or value >= 0, "must be at least 0")
_topics = Check(
    *("names, each once", lambda value: value is not None and len({*value, ""}) > len(value)),
    "must name each topic once, and none with no name",
)
_CONVERTER_DOC = "Converter of this connector's {}, instead of the worker's; it is configured by this configuration only."

CONNECTOR = ConfigDef(
    _option(
        *(COMMON, 1, WIDTH_MEDIUM, "name", STRING, HIGH, "Connector name", "Unique name of the connector."),
        check=_no_controls,
    ),
    _option(
        *(COMMON, 2, WIDTH_LONG, "connector.class", STRING, HIGH, "Connector class"),
        "Class of the connector: a supported Java class, its simple name with or without the suffix Connector, the name of an entry point, "
        "or a Python class as package.module:Class.",
    ),
    _version(COMMON, 3, "connector.plugin.version", "Connector version", MEDIUM, WIDTH_MEDIUM),
    _option(
        *(COMMON, 4, WIDTH_SHORT, "tasks.max", INT, HIGH, "Tasks max", "Maximum number of tasks."),
        *(1, at_least(1)),
    ),
    _option(
        *(COMMON, 5, WIDTH_SHORT, "tasks.max.enforce", BOOLEAN, LOW, "Enforce tasks max"),
        *("Whether a connector fails if it returns more task configurations than tasks.max.", True),
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
        *("Aliases of the transforms, in order. Each is configured by transforms.ALIAS.*.", "", _aliases),
    ),
    _option(
        *(PREDICATES, 13, WIDTH_LONG, "predicates", LIST, LOW, "Predicates"),
        *("Aliases of the predicates that transforms may use. Each is configured by predicates.ALIAS.*.", "", _aliases),
    ),
    _option(
        *(COMMON, 14, WIDTH_MEDIUM, "config.action.reload", STRING, LOW, "Reload Action"),
        "What to do when a value of a config provider expires: `restart` the connector, or `none`.",
        *("restart", case_insensitive_one_of("none", "restart")),
    ),
    _option(
        *(ERRORS, 1, WIDTH_MEDIUM, "errors.retry.timeout", LONG, MEDIUM, "Retry Timeout for Errors"),
        "How many milliseconds a converter or transform that raises a retriable error is retried, with a backoff that doubles from 300 ms; "
        "a negative number means no limit.",
        *(0,),
    ),
    _option(
        *(ERRORS, 2, WIDTH_MEDIUM, "errors.retry.delay.max.ms", LONG, MEDIUM, "Maximum Delay Between Retries for Errors"),
        *("Longest backoff between two attempts; also for polls and puts.", 60000),
    ),
    _option(
        *(ERRORS, 3, WIDTH_SHORT, "errors.tolerance", STRING, MEDIUM, "Error Tolerance"),
        "`none`: a record that fails in a converter or transform fails the task. `all`: it is skipped.",
        *("none", case_insensitive_one_of("none", "all")),
    ),
    _option(
        *(ERRORS, 4, WIDTH_SHORT, "errors.log.enable", BOOLEAN, MEDIUM, "Log Errors"),
        *("Whether to log each failed record as one ERROR line with the stage, the class and the error.", False),
    ),
    _option(
        *(ERRORS, 5, WIDTH_SHORT, "errors.log.include.messages", BOOLEAN, MEDIUM, "Log Error Details"),
        *("Whether that line includes the record's topic, partition, offset and timestamp. Its key and value are never logged.", False),
    ),
)

SOURCE = CONNECTOR.extend(
    _option(
        *(TOPICS, 1, WIDTH_LONG, "topic.creation.groups", LIST, LOW, "Topic Creation Groups"),
        "Names of topic groups, each configured by topic.creation.NAME.*. All other topics are created with topic.creation.default.*.",
        *("", _aliases),
    ),
    _option(
        *(EXACTLY_ONCE, 2, WIDTH_SHORT, "exactly.once.support", STRING, MEDIUM, "Exactly once support"),
        "`required`: invalid unless the worker has exactly.once.source.support=enabled and the connector reports that it supports it.",
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
        *("Length of a transaction with transaction.boundary=interval. Default: the worker's offset.flush.interval.ms.", None, _not_negative),
    ),
    _option(
        *(OFFSETS, 1, WIDTH_LONG, "offsets.storage.topic", STRING, LOW, "Offsets topic"),
        *("Topic for this connector's offsets, if the worker has exactly.once.source.support=enabled. Default: its offset.storage.topic.", None),
        *(non_empty,),
    ),
)

SINK = CONNECTOR.extend(
    _option(
        *(COMMON, 4, WIDTH_LONG, "topics", LIST, HIGH, "Topics", "Topics to read, separated by commas. Set either topics or topics.regex.", ""),
        check=_topics,
    ),
    _option(
        *(COMMON, 4, WIDTH_LONG, "topics.regex", STRING, HIGH, "Topics regex"),
        *("Regular expression for the topics to read, including topics created later. Set either topics or topics.regex.", "", regex_compiles),
    ),
    _option(
        *(ERRORS, 6, WIDTH_MEDIUM, "errors.deadletterqueue.topic.name", STRING, MEDIUM, "Dead Letter Queue Topic Name"),
        *("Topic for the original bytes of failed records, for any value of errors.tolerance; empty for none.", ""),
    ),
    _option(
        *(ERRORS, 7, WIDTH_MEDIUM, "errors.deadletterqueue.topic.replication.factor", SHORT, MEDIUM),
        *("Dead Letter Queue Topic Replication Factor", "Replication factor of that topic if it is created.", 3),
    ),
    _option(
        *(ERRORS, 8, WIDTH_MEDIUM, "errors.deadletterqueue.context.headers.enable", BOOLEAN, MEDIUM, "Enable Error Context Headers"),
        *("Whether such a record gets headers with its origin and the error.", False),
    ),
)
DEFINITIONS = {"source": SOURCE, "sink": SINK}

_RESTARTS = ConfigDef(*(replace(option, default=None, doc=f"{option.doc} Default: the worker's.") for option in restarts.OPTIONS))

_RUNS_ON = _option(
    *(COMMON, 15, WIDTH_SHORT, RUN_ON, STRING, LOW, "Tasks run on"),
    "Where the connector's tasks run: in the `worker`, or on the executors of the `cluster` of spark.master. Default: the worker's.",
    *(None, one_of(HERE, CLUSTER)),
)

# Keys that Java does not have. They are shown only in configurations that set them.
OWN = {
    "source": ConfigDef(
        *_RESTARTS,
        _RUNS_ON,
        _option(
            *(ERRORS, 6, WIDTH_MEDIUM, "errors.source.deadletterqueue.topic.name", STRING, MEDIUM, "Dead Letter Queue Topic Name"),
            *("Topic for records of a source that fail in a transform, a converter or the producer; empty for none.", ""),
        ),
        _option(
            *(ERRORS, 7, WIDTH_MEDIUM, "errors.source.deadletterqueue.topic.replication.factor", SHORT, MEDIUM),
            *("Dead Letter Queue Topic Replication Factor", "Replication factor of that topic if it is created; -1: the broker's default."),
            *(-1, at_least(-1)),
        ),
        _option(
            *(ERRORS, 8, WIDTH_MEDIUM, "errors.source.deadletterqueue.context.headers.enable", BOOLEAN, MEDIUM, "Enable Error Context Headers"),
            *("Whether such a record gets headers with its origin and the error.", True),
        ),
    ),
    "sink": ConfigDef(
        *_RESTARTS,
        _RUNS_ON,
        _option(
            *(ERRORS, 6, WIDTH_SHORT, "schema.drift", STRING, MEDIUM, "Schema Drift"),
            "What to do if the schema of a topic's values differs from the first schema that a task got: `evolve` passes the records on, `freeze` "
            "fails the task, `discard_row` skips them, `discard_value` projects them to the first schema, which drops new fields.",
            *(EVOLVE, one_of(*MODES)),
        ),
    ),
}
