"""Options of the embedded log: the worker's `embedded.log.*` keys, and topic configs.

Both tables are plain data: the worker's reference page is generated from OPTIONS; DescribeConfigs responds from TOPIC_CONFIGS.
"""

from typing import Any, NamedTuple

from standalone.errors import ConfigError
from standalone.log.broker.security_options import AUTHORIZERS, CLIENT_AUTH, MECHANISMS, PREFIX, SECURITY_OPTIONS

BOOLEAN, STRING, INT, LONG, DOUBLE, LIST, PASSWORD = "BOOLEAN", "STRING", "INT", "LONG", "DOUBLE", "LIST", "PASSWORD"
MAX_INT, MAX_LONG = (1 << 31) - 1, (1 << 63) - 1
WEEK_MS = 7 * 24 * 60 * 60 * 1000
UNSET = None
FSYNC = "fsync"
ACKS = ("write", FSYNC)


class LogOption(NamedTuple):
    name: str
    type: str
    default: Any
    doc: str
    low: int = 0  # lower bound of a number
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
        "host:port of the embedded log, without encryption or authentication: keep it on loopback. Or as Kafka's "
        "listeners: prefixed with PLAINTEXT://, SSL://, SASL_PLAINTEXT:// or SASL_SSL://; multiple listeners are separated by commas. "
        "If a port is taken, the worker does not start.",
    ),
    LogOption(
        "embedded.log.acks",
        STRING,
        "write",
        "When a record is acknowledged: write, once it is written, so that it survives a crash of the process; fsync, once it is on the "
        "disk, so that it survives a loss of power as well. Writes during an fsync share the next one.",
    ),
    LogOption(
        "embedded.log.max.bytes",
        LONG,
        -1,
        "Maximum size of all topics together; beyond it the oldest segments of topics without compaction are deleted. "
        "-1: no limit.",
        low=-1,
    ),
    LogOption(
        "embedded.log.flush.interval.ms",
        LONG,
        1000,
        "Maximum delay from acknowledgement to fsync. A record survives a crash of the process at once, and a loss of power "
        "after this time. Offsets never become durable before their records.",
        low=1,
    ),
    LogOption(
        "embedded.log.segment.bytes",
        INT,
        256 << 20,
        "Size at which a partition rolls a new segment. Retention deletes whole segments, so smaller ones free disk space sooner.",
        low=1024,
        high=MAX_INT,
    ),
    LogOption("embedded.log.retention.ms", LONG, WEEK_MS, "How long to retain records; -1: forever.", low=-1),
    LogOption("embedded.log.retention.bytes", LONG, -1, "Maximum size of a partition; -1: no limit.", low=-1),
    LogOption("embedded.log.num.partitions", INT, 1, "Default number of partitions of new topics.", low=1, high=10_000),
    LogOption("embedded.log.auto.create.topics.enable", BOOLEAN, True, "Whether to create a topic when a client first requests it."),
    LogOption(
        "embedded.log.max.connections",
        INT,
        1000,
        "Maximum number of connections, limited to half of the process's file limit; further ones are closed at once.",
        low=1,
        high=MAX_INT,
    ),
    LogOption(
        "embedded.log.connections.max.idle.ms",
        LONG,
        600_000,
        "How long a connection may be idle before it is closed; -1: forever.",
        low=-1,
    ),
    LogOption(
        "embedded.log.max.message.bytes", INT, 1_048_588, "Maximum size of a record batch, after compression.", high=MAX_INT
    ),
    *(LogOption(PREFIX + name, kind, default, doc, 0, MAX_INT if kind == INT else MAX_LONG) for name, kind, default, doc in SECURITY_OPTIONS),
)
_CHOICES = {"embedded.log.acks": ACKS, "embedded.log.authorizer.class.name": AUTHORIZERS, "embedded.log.ssl.client.auth": CLIENT_AUTH}


class TopicConfig(NamedTuple):
    type: str
    default: Any  # None: taken from the worker's key `fallback`
    doc: str
    fallback: str | None = None
    synonym: str | None = None  # broker config with the default of Kafka's topics
    allowed: tuple = ()  # allowed values of a STRING or LIST
    low: int = 0
    high: int = MAX_LONG


MOOT = "Stored and shown, but without effect on a log with one node."
CODECS = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")

# All of Kafka's topic configs, so that any client can create its topics. Those with MOOT as doc have no effect.
TOPIC_CONFIGS = {
    "cleanup.policy": TopicConfig(
        LIST,
        "delete",
        "delete: delete old segments by time and size. compact: retain the last record of each key.",
        None,
        "log.cleanup.policy",
        ("delete", "compact"),
    ),
    "compression.gzip.level": TopicConfig(INT, -1, MOOT, None, "compression.gzip.level", (), -1, 9),
    "compression.lz4.level": TopicConfig(INT, 9, MOOT, None, "compression.lz4.level", (), 1, 17),
    "compression.type": TopicConfig(
        STRING, "producer", "No effect here: batches are stored as the producer compressed them.", None, "compression.type", CODECS
    ),
    "compression.zstd.level": TopicConfig(INT, 3, MOOT, None, "compression.zstd.level", (), -131072, 22),
    "delete.retention.ms": TopicConfig(
        LONG, 86_400_000, "How long a compacted topic retains tombstones.", None, "log.cleaner.delete.retention.ms"
    ),
    "file.delete.delay.ms": TopicConfig(LONG, 60_000, MOOT, None, "log.segment.delete.delay.ms"),
    "flush.messages": TopicConfig(LONG, MAX_LONG, MOOT, None, "log.flush.interval.messages", (), 1),
    "flush.ms": TopicConfig(LONG, MAX_LONG, MOOT, None, "log.flush.interval.ms"),
    "follower.replication.throttled.replicas": TopicConfig(LIST, "", MOOT),
    "index.interval.bytes": TopicConfig(INT, 4096, MOOT, None, "log.index.interval.bytes", (), 0, MAX_INT),
    "leader.replication.throttled.replicas": TopicConfig(LIST, "", MOOT),
    "local.retention.bytes": TopicConfig(LONG, -2, MOOT, None, "log.local.retention.bytes", (), -2),
    "local.retention.ms": TopicConfig(LONG, -2, MOOT, None, "log.local.retention.ms", (), -2),
    "max.compaction.lag.ms": TopicConfig(
        LONG, MAX_LONG, "Maximum time before a record is compacted.", None, "log.cleaner.max.compaction.lag.ms", (), 1
    ),
    "max.message.bytes": TopicConfig(
        INT, None, "Maximum size of a record batch.", "embedded.log.max.message.bytes", "message.max.bytes", (), 0, MAX_INT
    ),
    "message.timestamp.after.max.ms": TopicConfig(
        LONG, 3_600_000, "How far a record's timestamp may be ahead of the log's clock.", None, "log.message.timestamp.after.max.ms"
    ),
    "message.timestamp.before.max.ms": TopicConfig(
        LONG, MAX_LONG, "How far a record's timestamp may be behind the log's clock.", None, "log.message.timestamp.before.max.ms"
    ),
    "message.timestamp.type": TopicConfig(
        STRING, "CreateTime", "Origin of timestamps: the producer or the log.", None, "log.message.timestamp.type", ("CreateTime", "LogAppendTime")
    ),
    "min.cleanable.dirty.ratio": TopicConfig(
        DOUBLE,
        0.5,
        "Minimum ratio of uncompacted records before a partition is compacted again.",
        None,
        "log.cleaner.min.cleanable.ratio",
        (),
        0,
        1,
    ),
    "min.compaction.lag.ms": TopicConfig(
        LONG, 0, "Records younger than this are not compacted.", None, "log.cleaner.min.compaction.lag.ms"
    ),
    "min.insync.replicas": TopicConfig(INT, 1, MOOT, None, "min.insync.replicas", (), 1, MAX_INT),
    "preallocate": TopicConfig(BOOLEAN, False, MOOT, None, "log.preallocate"),
    "remote.log.copy.disable": TopicConfig(BOOLEAN, False, MOOT),
    "remote.log.delete.on.disable": TopicConfig(BOOLEAN, False, MOOT),
    "remote.storage.enable": TopicConfig(BOOLEAN, False, MOOT),
    "retention.bytes": TopicConfig(
        LONG, None, "Maximum size of a partition; -1: no limit.", "embedded.log.retention.bytes", "log.retention.bytes", (), -1
    ),
    "retention.ms": TopicConfig(
        LONG, None, "How long to retain records; -1: forever.", "embedded.log.retention.ms", "log.retention.ms", (), -1
    ),
    "segment.bytes": TopicConfig(
        INT,
        None,
        "Size at which a partition rolls a new segment.",
        "embedded.log.segment.bytes",
        "log.segment.bytes",
        (),
        1024,
        MAX_INT,
    ),
    "segment.index.bytes": TopicConfig(INT, 10_485_760, MOOT, None, "log.index.size.max.bytes", (), 4, MAX_INT),
    "segment.jitter.ms": TopicConfig(LONG, 0, MOOT, None, "log.roll.jitter.ms"),
    "segment.ms": TopicConfig(LONG, WEEK_MS, "Age at which a partition rolls a new segment, if it has records.", None, "log.roll.ms", (), 1),
    "unclean.leader.election.enable": TopicConfig(BOOLEAN, False, MOOT, None, "unclean.leader.election.enable"),
}
# From before Kafka 4: accepted from clients that still set them, but never described, as newer clients do not know them.
RETIRED_TOPIC_CONFIGS = ("message.downconversion.enable", "message.format.version", "message.timestamp.difference.max.ms")


def settings(config):
    """Return every `embedded.log.*` key with its typed value: from `config` (strings or values), else the default."""
    parsed, errors = {}, {}
    for option in OPTIONS:
        value = config.get(option.name)
        try:
            parsed[option.name] = option.default if value is None else _typed(option.type, value, option.low, option.high)
        except ValueError as error:
            errors[option.name] = str(error)
    for name, choices in _CHOICES.items():
        if parsed.get(name) not in choices:
            errors.setdefault(name, f"may be {' or '.join(filter(None, choices))}")
    unknown = [name for name in parsed["embedded.log.sasl.enabled.mechanisms"].split(",") if name and name.upper() not in MECHANISMS]
    if unknown:
        errors["embedded.log.sasl.enabled.mechanisms"] = f"{', '.join(unknown)} cannot be used; there are {', '.join(MECHANISMS)}"
    known = {option.name for option in OPTIONS}
    for key in config:
        if key.startswith("embedded.log.") and key not in known:
            errors[key] = "the embedded log has no such setting"
    if errors:
        raise ConfigError.of(errors)
    return parsed


def topic_values(overrides, defaults):
    """Return a topic's typed configs: its `overrides` (strings) over the worker's `defaults`."""
    values = {}
    for name, known in TOPIC_CONFIGS.items():
        if name in overrides:
            values[name] = _typed(known.type, overrides[name], known.low, known.high)
        else:
            values[name] = defaults[known.fallback] if known.fallback else known.default
    return values


def refuse_topic_config(name, text):
    """Return why this topic config is invalid, or None if it is valid."""
    known = TOPIC_CONFIGS.get(name)
    if known is None:
        return None if name in RETIRED_TOPIC_CONFIGS else f"Kafka has no topic config '{name}'. It has {', '.join(TOPIC_CONFIGS)}."
    try:
        typed_config(f"Topic config '{name}'", known, text)
    except ValueError as error:
        return str(error)
    return None


def typed_config(what, known, text):
    """The value of a config of a topic or a group; ValueError: it cannot be that."""
    if text is None:
        raise ValueError(f"{what} has no value.")
    try:
        value = _typed(known.type, text, known.low, known.high)
    except ValueError as error:
        raise ValueError(f"{what}: {error}.") from None
    chosen = [item for item in value.split(",") if item] if known.type == LIST else [value]
    if known.allowed and not set(chosen) <= set(known.allowed):
        raise ValueError(f"{what} cannot be '{text}'; it may be {' or '.join(known.allowed)}.")
    return value


def _typed(kind, value, low, high):
    if kind == STRING:
        return str(value)
    if kind == PASSWORD:
        return str(getattr(value, "value", value))
    text = ",".join(value) if isinstance(value, (list, tuple)) else str(value).strip()
    if kind == LIST:
        return ",".join(item.strip() for item in text.split(",") if item.strip())
    if kind == BOOLEAN:
        if text.lower() not in ("true", "false"):
            raise ValueError(f"'{text}' is neither true nor false")
        return text.lower() == "true"
    try:
        number = float(text) if kind == DOUBLE else int(text)
    except ValueError:
        raise ValueError(f"'{text}' is not a {'' if kind == DOUBLE else 'whole '}number") from None
    if not low <= number <= high:
        raise ValueError(f"{number} is not between {low} and {high}")
    return number
