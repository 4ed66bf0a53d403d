"""What can be set on the embedded log: the worker's `embedded.log.*` keys, and the topic configs that it honours.

Both tables are plain data: the worker's reference is drawn from OPTIONS, DescribeConfigs answers from TOPIC_CONFIGS.
"""

from typing import Any, NamedTuple

from standalone.errors import ConfigError

BOOLEAN, STRING, INT, LONG = "BOOLEAN", "STRING", "INT", "LONG"
MAX_INT, MAX_LONG = (1 << 31) - 1, (1 << 63) - 1
WEEK_MS = 7 * 24 * 60 * 60 * 1000
UNSET = None


class LogOption(NamedTuple):
    name: str
    type: str
    default: Any
    doc: str
    low: int = 0  # of numbers
    high: int = MAX_LONG


OPTIONS = (
    LogOption(
        "embedded.log.dir",
        STRING,
        UNSET,
        "Folder of the embedded log: topics, group offsets. Default: the folder `log` under `state.dir`.",
    ),
    LogOption(
        "embedded.log.listener",
        STRING,
        "127.0.0.1:9092",
        "host:port on which the embedded log serves Kafka's protocol, without encryption or passwords: keep it on loopback. "
        "If the port is taken, the worker does not start.",
    ),
    LogOption(
        "embedded.log.flush.interval.ms",
        LONG,
        1000,
        "How long an acknowledged record may wait for its fsync. It survives a crash of the process at once, a loss of power "
        "after this time. Offsets are never made durable before the records they speak of.",
        low=1,
    ),
    LogOption(
        "embedded.log.segment.bytes",
        INT,
        256 << 20,
        "Size at which a partition begins a new file. Retention deletes whole files, so smaller files free disk sooner.",
        low=1024,
        high=MAX_INT,
    ),
    LogOption("embedded.log.retention.ms", LONG, WEEK_MS, "How long records are kept; -1 keeps them for ever.", low=-1),
    LogOption("embedded.log.retention.bytes", LONG, -1, "How many bytes a partition may keep; -1 sets no bound.", low=-1),
    LogOption("embedded.log.num.partitions", INT, 1, "Partitions of a topic made without saying how many.", low=1, high=10_000),
    LogOption("embedded.log.auto.create.topics.enable", BOOLEAN, True, "Whether a topic is made when a client first asks for it."),
    LogOption(
        "embedded.log.max.connections",
        INT,
        1000,
        "How many connections are served at once, and never more than half of the files that the process may open; more are closed at once.",
        low=1,
        high=MAX_INT,
    ),
    LogOption(
        "embedded.log.connections.max.idle.ms",
        LONG,
        600_000,
        "A connection on which nothing came or went for so long is closed; -1 keeps it for ever.",
        low=-1,
    ),
    LogOption(
        "embedded.log.max.message.bytes", INT, 1_048_588, "Largest record batch that is taken, as it comes: compressed.", high=MAX_INT
    ),
)


class TopicConfig(NamedTuple):
    type: str
    fallback: str | None  # the worker's key that gives the default
    default: Any
    allowed: tuple  # the values of a STRING
    low: int
    high: int
    doc: str


def _number(kind, fallback, low, high, doc):
    return TopicConfig(kind, fallback, UNSET, (), low, high, doc)


def _choice(default, allowed, doc):
    return TopicConfig(STRING, None, default, allowed, 0, 0, doc)


TOPIC_CONFIGS = {
    "cleanup.policy": _choice("delete", ("delete",), "Old files are deleted. Compaction is not offered."),
    "compression.type": _choice("producer", ("producer",), "Batches are kept as the producer compressed them."),
    "max.message.bytes": _number(INT, "embedded.log.max.message.bytes", 0, MAX_INT, "Largest record batch that is taken."),
    "message.timestamp.after.max.ms": TopicConfig(LONG, None, 3_600_000, (), 0, MAX_LONG, "How far ahead of the log's clock a record's timestamp may be."),
    "message.timestamp.before.max.ms": TopicConfig(LONG, None, MAX_LONG, (), 0, MAX_LONG, "How far behind it."),
    "message.timestamp.type": _choice("CreateTime", ("CreateTime", "LogAppendTime"), "Whose clock stamps the records."),
    "retention.bytes": _number(LONG, "embedded.log.retention.bytes", -1, MAX_LONG, "Bytes a partition may keep; -1: no bound."),
    "retention.ms": _number(LONG, "embedded.log.retention.ms", -1, MAX_LONG, "How long records are kept; -1: for ever."),
    "segment.bytes": _number(INT, "embedded.log.segment.bytes", 1024, MAX_INT, "Size at which a partition begins a new file."),
}


def settings(config):
    """Every `embedded.log.*` key with its typed value: those of `config` (texts or values), else the default."""
    parsed, errors = {}, {}
    for option in OPTIONS:
        value = config.get(option.name)
        try:
            parsed[option.name] = option.default if value is None else _typed(option.type, value, option.low, option.high)
        except ValueError as error:
            errors[option.name] = str(error)
    known = {option.name for option in OPTIONS}
    for key in config:
        if key.startswith("embedded.log.") and key not in known:
            errors[key] = "the embedded log has no such setting"
    if errors:
        raise ConfigError.of(errors)
    return parsed


def topic_values(overrides, defaults):
    """What a topic's configs are, typed: its own `overrides` (texts) over the worker's `defaults`."""
    values = {}
    for name, known in TOPIC_CONFIGS.items():
        if name in overrides:
            values[name] = _typed(known.type, overrides[name], known.low, known.high)
        else:
            values[name] = defaults[known.fallback] if known.fallback else known.default
    return values


def refuse_topic_config(name, text):
    """Why this topic config cannot be taken; None if it can."""
    known = TOPIC_CONFIGS.get(name)
    if known is None:
        return f"The embedded log does not honour the topic config '{name}'. It honours {', '.join(TOPIC_CONFIGS)}."
    if text is None:
        return f"Topic config '{name}' has no value."
    if known.allowed and text not in known.allowed:
        return f"Topic config '{name}' cannot be '{text}' on the embedded log; it may be {' or '.join(known.allowed)}."
    try:
        _typed(known.type, text, known.low, known.high)
    except ValueError as error:
        return f"Topic config '{name}': {error}."
    return None


def _typed(kind, value, low, high):
    if kind == STRING:
        return str(value)
    text = str(value).strip()
    if kind == BOOLEAN:
        if text.lower() not in ("true", "false"):
            raise ValueError(f"'{text}' is neither true nor false")
        return text.lower() == "true"
    try:
        number = int(text)
    except ValueError:
        raise ValueError(f"'{text}' is not a whole number") from None
    if not low <= number <= high:
        raise ValueError(f"{number} is not between {low} and {high}")
    return number
