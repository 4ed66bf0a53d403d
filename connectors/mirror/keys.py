"""The keys of the three mirror connectors, with MirrorMaker 2's names: shared keys and helpers."""

import re

from connectors import security_keys
from standalone import BOOLEAN, HIGH, LIST, LONG, LOW, MEDIUM, STRING, ConfigDef, Option, at_least, one_of

SOURCE, TARGET = "source", "target"
MIRROR = "org.apache.kafka.connect.mirror."
_SECURITY = "A setting of both clusters' clients, unless source.cluster. or target.cluster. before it says otherwise."


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
    Option("enabled", BOOLEAN, LOW, "Whether it does anything at all.", default=True),
    Option("source.cluster.alias", STRING, HIGH, "Name of the cluster that is read; remote topics begin with it."),
    Option("target.cluster.alias", STRING, HIGH, "Name of the cluster that is written to. What came from it is not sent back.", default="target"),
    Option("admin.timeout.ms", LONG, LOW, "How long a question to a cluster (topics, groups …) may take.", default=60000, check=at_least(1)),
    class_key(
        "replication.policy.class",
        [f"{MIRROR}DefaultReplicationPolicy", f"{MIRROR}IdentityReplicationPolicy"],
        "How topics are called on the target: alias.topic, or as on the source.",
    ),
    Option("replication.policy.separator", STRING, LOW, "Stands between alias and topic.", default="."),
    Option(
        "replication.policy.internal.topic.separator.enabled", BOOLEAN, LOW,
        "Whether it is in the names of MirrorMaker's own topics, too; else they have dots.", default=True,
    ),
    class_key(
        "forwarding.admin.class", ["org.apache.kafka.clients.admin.ForwardingAdmin"],
        "How topics, ACLs and configurations are changed on the target.",
    ),
    Option(
        "metric.reporters", LIST, LOW, "Java classes that are told of metrics; here they are at GET /metrics.",
        default="org.apache.kafka.common.metrics.JmxReporter",
    ),
    Option(
        "security.protocol", STRING, MEDIUM, "How both clusters are spoken to, unless source.cluster. or target.cluster. before it says otherwise.",
        default="PLAINTEXT", check=one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    ),
    *security_keys.options(security_keys.TLS + security_keys.SASL, _SECURITY),
)  # fmt: skip

SYNCS_LOCATION = Option(
    "offset-syncs.topic.location", STRING, LOW, "Which cluster has the topic of offset syncs.", default=SOURCE, check=one_of(SOURCE, TARGET)
)
TOPIC_FILTER = class_key("topic.filter.class", [f"{MIRROR}DefaultTopicFilter"], "What decides which topics are mirrored: topics and topics.exclude.")
POLL_TIMEOUT = Option(
    "consumer.poll.timeout.ms", LONG, LOW, "How long one look at the source cluster waits for records.", default=1000, check=at_least(0)
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
