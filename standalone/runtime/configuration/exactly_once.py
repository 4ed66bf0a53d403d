"""Exactly-once sources: the worker's keys, named as in Java's distributed mode, and checks of a connector's keys."""

from standalone.config import BOOLEAN, HIGH, INT, LOW, SHORT, STRING, ConfigDef, Option, at_least, case_insensitive_one_of, non_empty, parse_type
from standalone.connector import ConnectorTransactionBoundaries, ExactlyOnceSupport
from standalone.errors import ConfigError

SUPPORT, REQUIRED_KEY, BOUNDARY = "exactly.once.source.support", "exactly.once.support", "transaction.boundary"

OPTIONS = ConfigDef(
    Option(
        SUPPORT,
        STRING,
        HIGH,
        "`enabled`: every source writes its records and offsets in transactions, so that readers with isolation.level=read_committed see each "
        "record once. Offsets are then stored in offset.storage.topic. `preparing` is a step in the upgrade of a distributed cluster; here it "
        "means `disabled`.",
        "disabled",
        case_insensitive_one_of("disabled", "preparing", "enabled"),
    ),
    Option(
        "group.id",
        STRING,
        LOW,
        "For exactly-once sources: prefix of their transactional ids, which are GROUP-CONNECTOR-TASK. Workers that share a cluster and connector "
        "names need different ids, or they fence each other.",
        "connect-standalone",
        non_empty,
    ),
    Option(
        "offset.storage.topic",
        STRING,
        LOW,
        "For exactly-once sources: the compacted topic of their offsets, unless a connector sets offsets.storage.topic.",
        "connect-offsets",
        non_empty,
    ),
    Option("offset.storage.partitions", INT, LOW, "Partitions of that topic if it is created; -1: the broker's default.", 25, at_least(-1)),
    Option("offset.storage.replication.factor", SHORT, LOW, "Replication factor of that topic; -1: the broker's default.", -1, at_least(-1)),
)


def transactional_id(worker, connector, task):
    """The transactional id, in the format of Java's worker."""
    return f"{worker['group.id']}-{connector}-{task}"


def errors(props, connector_class, worker):
    """{key: message} of unsupported values in a source's configuration."""
    found = {}
    config = {key: value for key, value in props.items() if value is not None}
    if config.get(REQUIRED_KEY, "").strip().lower() == "required":
        supports = connector_class().exactly_once_support(config)
        if not worker.exactly_once:
            found[REQUIRED_KEY] = f"required, but exactly-once is disabled in the worker: set {SUPPORT}=enabled in its configuration"
        elif supports is None:
            found[REQUIRED_KEY] = f"required, but the connector does not say whether it supports it; {REQUIRED_KEY}=requested lets it run"
        elif supports is not ExactlyOnceSupport.SUPPORTED:
            found[REQUIRED_KEY] = "required, but the connector does not support it with this configuration"
    if worker.exactly_once and config.get(BOUNDARY, "").strip().lower() == "connector":
        if connector_class().can_define_transaction_boundaries(config) is not ConnectorTransactionBoundaries.SUPPORTED:
            found[BOUNDARY] = "the connector does not define its transactions' boundaries with this configuration: use poll or interval"
    if worker.exactly_once:
        given = config.get("producer.override.enable.idempotence")
        try:
            if given is not None and not parse_type("enable.idempotence", given, BOOLEAN):
                found["producer.override.enable.idempotence"] = f"must be true: the worker has {SUPPORT}=enabled"
        except ConfigError as error:
            found["producer.override.enable.idempotence"] = str(error)
    return found
