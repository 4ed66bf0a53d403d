"""The keys of the three mirror connectors, with MirrorMaker 2's names: shared keys and helpers."""

import re

from connectors import security_keys
from standalone import BOOLEAN, HIGH, LIST, LONG, LOW, MEDIUM, STRING, ConfigDef, Option, at_least, one_of

SOURCE, TARGET = "source", "target"
MIRROR = "org.apache.kafka.connect.mirror."
_SECURITY = "A setting of both clusters' clients; the prefix source.cluster. or target.cluster. overrides it."


def patterns_are_right(name, value):
    """Regular expressions of whole names."""
    from standalone import ConfigError

    for each in value or ():
        try:
            re.compile(each)
        except re.error as error:
            raise ConfigError(f"'{each}' is not a regular expression: {error}") from error


def class_key(name, ours, doc):
    """An option that names one of Java's classes; those in `ours` are supported."""
    return Option(name, STRING, LOW, f"{doc} One of {', '.join(ours)}.", default=ours[0], check=one_of(*ours))


BASE = ConfigDef(
    Option("enabled", BOOLEAN, LOW, "Whether the connector is active.", default=True),
    Option("source.cluster.alias", STRING, HIGH, "Name of the source cluster, the prefix of remote topics."),
    Option("target.cluster.alias", STRING, HIGH, "Name of the target cluster. Records that came from it are not mirrored back.", default="target"),
    Option("admin.timeout.ms", LONG, LOW, "Timeout of admin requests to a cluster (topics, groups …).", default=60000, check=at_least(1)),
    class_key(
        "replication.policy.class",
        [f"{MIRROR}DefaultReplicationPolicy", f"{MIRROR}IdentityReplicationPolicy"],
        "Names of topics on the target: alias.topic, or as on the source.",
    ),
    Option("replication.policy.separator", STRING, LOW, "Separator between alias and topic.", default="."),
    Option(
        "replication.policy.internal.topic.separator.enabled", BOOLEAN, LOW,
        "Whether MirrorMaker's internal topics use it, too; else they use dots.", default=True,
    ),
    class_key(
        "forwarding.admin.class", ["org.apache.kafka.clients.admin.ForwardingAdmin"],
        "How topics, ACLs and configurations are changed on the target.",
    ),
    Option(
        "metric.reporters", LIST, LOW, "Java classes that receive metrics; here metrics are at GET /metrics.",
        default="org.apache.kafka.common.metrics.JmxReporter",
    ),
    Option(
        "security.protocol", STRING, MEDIUM, "Protocol of both clusters; the prefix source.cluster. or target.cluster. overrides it.",
        default="PLAINTEXT", check=one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    ),
    *security_keys.options(security_keys.TLS + security_keys.SASL, _SECURITY),
)  # fmt: skip

SYNCS_LOCATION = Option(
    "offset-syncs.topic.location", STRING, LOW, "The cluster that stores the offset syncs topic.", default=SOURCE, check=one_of(SOURCE, TARGET)
)
TOPIC_FILTER = class_key("topic.filter.class", [f"{MIRROR}DefaultTopicFilter"], "Filter of topics to mirror, by topics and topics.exclude.")
POLL_TIMEOUT = Option(
    "consumer.poll.timeout.ms", LONG, LOW, "Poll timeout of the source cluster's consumer.", default=1000, check=at_least(0)
)


def seconds(name, default, doc):
    """An option for an interval in seconds."""
    return Option(name, LONG, LOW, doc, default=default, check=at_least(1))


# Prefixes of client settings (clients.py).
_CLIENTS = ("consumer.", "producer.", "admin.")
PASSING = (*_CLIENTS, *(f"{side}{kind}" for side in ("source.", "target.") for kind in ("cluster.", *_CLIENTS)))


class Names:
    """Matches whole names that fit one of these patterns and none of the excluded ones."""

    def __init__(self, include, exclude):
        self._include, self._exclude = [[re.compile(each) for each in patterns or ()] for patterns in (include, exclude)]

    def take(self, name):
        return any(each.fullmatch(name) for each in self._include) and not any(each.fullmatch(name) for each in self._exclude)


def cluster_errors(config, needed=(SOURCE, TARGET)):
    """Return {key: message}: both clusters must be configured and differ. A missing address is reported at the cluster's alias."""
    errors = {}
    for side in needed:
        if not config.get(f"{side}.cluster.bootstrap.servers"):
            errors[f"{side}.cluster.alias"] = f"{side}.cluster.bootstrap.servers is missing: host:port of its brokers, separated by commas"
    if config.get("source.cluster.alias") == config.get("target.cluster.alias", TARGET):
        errors["target.cluster.alias"] = "is the source's: a cluster cannot be mirrored to itself"
    return errors
