"""Exactly-once sources: the worker's keys, by the names they have in Java's distributed mode, and what a connector's keys must fit."""

from standalone.config import BOOLEAN, HIGH, INT, LOW, SHORT, STRING, ConfigDef, Option, at_least, case_insensitive_one_of, non_empty, parse_type
from standalone.connector import ConnectorTransactionBoundaries, ExactlyOnceSupport
from standalone.errors import ConfigError

SUPPORT, REQUIRED_KEY, BOUNDARY = "exactly.once.source.support", "exactly.once.support", "transaction.boundary"

OPTIONS = ConfigDef(
    Option(
        SUPPORT,
        STRING,
        HIGH,
        "`enabled`: every source writes its records, and the offsets after them, in transactions, so that readers with "
        "isolation.level=read_committed see each record once. Offsets are then in offset.storage.topic. `preparing` is what a cluster of "
        "workers needs on its way there; here it is `disabled`.",
        "disabled",
        case_insensitive_one_of("disabled", "preparing", "enabled"),
    ),
    Option(
        "group.id",
        STRING,
        LOW,
        "Of exactly-once sources: their transactional ids are GROUP-CONNECTOR-TASK. Workers that share a cluster and names of connectors need "
        "ids of their own, or they fence each other.",
        "connect-standalone",
        non_empty,
    ),
    Option(
        "offset.storage.topic",
        STRING,
        LOW,
        "Of exactly-once sources: the compacted topic of their offsets, unless a connector names another (offsets.storage.topic).",
        "connect-offsets",
        non_empty,
    ),
    Option("offset.storage.partitions", INT, LOW, "Its partitions, where it has to be made; -1: the broker's default.", 25, at_least(-1)),
    Option("offset.storage.replication.factor", SHORT, LOW, "Its replication factor; -1: the broker's default.", -1, at_least(-1)),
)


def transactional_id(worker, connector, task):
    """As Java's worker names it."""
    return f"{worker['group.id']}-{connector}-{task}"


def errors(props, connector_class, worker):
    """{key: message} of what a source's keys ask for and cannot have."""
    found = {}
    config = {key: value for key, value in props.items() if value is not None}
    if config.get(REQUIRED_KEY, "").strip().lower() == "required":
        supports = connector_class().exactly_once_support(config)
        if not worker.exactly_once:
            found[REQUIRED_KEY] = f"required, but the worker does not write in transactions: set {SUPPORT}=enabled in its configuration"
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
