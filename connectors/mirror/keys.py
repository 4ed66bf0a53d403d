"""The keys of the three mirror connectors, by MirrorMaker 2's names: those that all have, and what is common in reading them."""

import re

from standalone import BOOLEAN, CLASS, DOUBLE, HIGH, INT, LIST, LONG, LOW, MEDIUM, PASSWORD, SHORT, STRING, ConfigDef, Option, at_least, one_of

SOURCE, TARGET = "source", "target"
MIRROR = "org.apache.kafka.connect.mirror."
_TYPES = {"BOOLEAN": BOOLEAN, "CLASS": CLASS, "DOUBLE": DOUBLE, "INT": INT, "LIST": LIST, "LONG": LONG, "PASSWORD": PASSWORD, "SHORT": SHORT}
_TYPES["STRING"] = STRING
_IMPORTANCES = {"H": HIGH, "M": MEDIUM, "L": LOW}

# What Java's clients take for TLS and SASL, a line a key: importance, type, name, default (- for none).
_SECURITY = """
M STRING ssl.protocol TLSv1.3
M STRING ssl.provider -
L LIST ssl.cipher.suites -
M LIST ssl.enabled.protocols TLSv1.2,TLSv1.3
M STRING ssl.keystore.type JKS
H STRING ssl.keystore.location -
H PASSWORD ssl.keystore.password -
H PASSWORD ssl.key.password -
H PASSWORD ssl.keystore.key -
H PASSWORD ssl.keystore.certificate.chain -
H PASSWORD ssl.truststore.certificates -
M STRING ssl.truststore.type JKS
H STRING ssl.truststore.location -
H PASSWORD ssl.truststore.password -
L STRING ssl.keymanager.algorithm SunX509
L STRING ssl.trustmanager.algorithm PKIX
L STRING ssl.endpoint.identification.algorithm https
L STRING ssl.secure.random.implementation -
L CLASS ssl.engine.factory.class -
M STRING sasl.kerberos.service.name -
L STRING sasl.kerberos.kinit.cmd /usr/bin/kinit
L DOUBLE sasl.kerberos.ticket.renew.window.factor 0.8
L DOUBLE sasl.kerberos.ticket.renew.jitter 0.05
L LONG sasl.kerberos.min.time.before.relogin 60000
L DOUBLE sasl.login.refresh.window.factor 0.8
L DOUBLE sasl.login.refresh.window.jitter 0.05
L SHORT sasl.login.refresh.min.period.seconds 60
L SHORT sasl.login.refresh.buffer.seconds 300
M STRING sasl.mechanism GSSAPI
M PASSWORD sasl.jaas.config -
M CLASS sasl.client.callback.handler.class -
M CLASS sasl.login.callback.handler.class -
M CLASS sasl.login.class -
L INT sasl.login.connect.timeout.ms -
L INT sasl.login.read.timeout.ms -
L LONG sasl.login.retry.backoff.max.ms 10000
L LONG sasl.login.retry.backoff.ms 100
L STRING sasl.oauthbearer.scope.claim.name scope
L STRING sasl.oauthbearer.sub.claim.name sub
M STRING sasl.oauthbearer.token.endpoint.url -
M STRING sasl.oauthbearer.jwks.endpoint.url -
L LONG sasl.oauthbearer.jwks.endpoint.refresh.ms 3600000
L LONG sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms 10000
L LONG sasl.oauthbearer.jwks.endpoint.retry.backoff.ms 100
L INT sasl.oauthbearer.clock.skew.seconds 30
L LIST sasl.oauthbearer.expected.audience -
L STRING sasl.oauthbearer.expected.issuer -
L BOOLEAN sasl.oauthbearer.header.urlencode false
"""


def _security():
    for line in _SECURITY.strip().splitlines():
        importance, kind, name, default = line.split(" ")
        doc = "A setting of both clusters' clients, unless source.cluster. or target.cluster. before it says otherwise."
        yield Option(name, _TYPES[kind], _IMPORTANCES[importance], doc, None if default == "-" else default)


def patterns_are_right(name, value):
    """Regular expressions of whole names."""
    from standalone import ConfigError

    for each in value or ():
        try:
            re.compile(each)
        except re.error as error:
            raise ConfigError(f"'{each}' is no regular expression: {error}") from error


def class_key(name, ours, doc):
    """A key that names one of Java's classes: those in `ours` have a counterpart here."""
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
        "Whether it stands in the names of MirrorMaker's own topics, too; else they have dots.", default=True,
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
    *_security(),
)  # fmt: skip

SYNCS_LOCATION = Option(
    "offset-syncs.topic.location", STRING, LOW, "Which cluster has the topic of offset syncs.", default=SOURCE, check=one_of(SOURCE, TARGET)
)
TOPIC_FILTER = class_key("topic.filter.class", [f"{MIRROR}DefaultTopicFilter"], "What decides which topics are mirrored: topics and topics.exclude.")
POLL_TIMEOUT = Option(
    "consumer.poll.timeout.ms", LONG, LOW, "How long one look at the source cluster waits for records.", default=1000, check=at_least(0)
)


def seconds(name, default, doc):
    """The option of an interval."""
    return Option(name, LONG, LOW, doc, default=default, check=at_least(1))


# What stands before settings of clients (clients.py).
_CLIENTS = ("consumer.", "producer.", "admin.")
PASSING = (*_CLIENTS, *(f"{side}{kind}" for side in ("source.", "target.") for kind in ("cluster.", *_CLIENTS)))


class Names:
    """Whole names that fit one of these patterns, and none of those."""

    def __init__(self, include, exclude):
        self._include, self._exclude = [[re.compile(each) for each in patterns or ()] for patterns in (include, exclude)]

    def take(self, name):
        return any(each.fullmatch(name) for each in self._include) and not any(each.fullmatch(name) for each in self._exclude)


def cluster_errors(config, needed=(SOURCE, TARGET)):
    """{key: message}: the clusters must be named, and be two. Where one is is no key of its own: its alias bears the message."""
    errors = {}
    for side in needed:
        if not config.get(f"{side}.cluster.bootstrap.servers"):
            errors[f"{side}.cluster.alias"] = f"{side}.cluster.bootstrap.servers is missing: host:port of its brokers, separated by commas"
    if config.get("source.cluster.alias") == config.get("target.cluster.alias", TARGET):
        errors["target.cluster.alias"] = "is that of the source: a cluster cannot be mirrored to itself"
    return errors
