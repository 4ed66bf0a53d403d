"""Client keys of Java that have no effect here, with the reason. Each such key that is set, and each unknown key, is logged once.

The keys with an effect are in client_config.py; a test checks that both together cover all of Kafka's keys.
"""

import difflib
import logging
import threading

log = logging.getLogger(__name__)

_METRICS = "the worker serves its metrics at GET /metrics"
_JVM = "it configures the JVM's TLS; this worker uses OpenSSL"
_BROKER = "it is for brokers, which validate tokens; clients only send them"
_ASSERTION = "tokens come from the client credentials grant or a file, not from assertions"
_CLASS = "it names a Java class, which cannot run here"
_BYTES = "records are bytes here; the connector's converters serialize and deserialize them"

COMMON = {
    "config.providers": "the worker's config.providers resolve values before a client gets them",
    "enable.metrics.push": f"no metrics are pushed to brokers; {_METRICS}",
    "metadata.recovery.rebootstrap.trigger.ms": "the client rebootstraps as soon as no known broker answers",
    "metric.reporters": f"{_CLASS}; {_METRICS}",
    "metrics.num.samples": _METRICS,
    "metrics.recording.level": _METRICS,
    "metrics.sample.window.ms": _METRICS,
    "sasl.client.callback.handler.class": _CLASS,
    "sasl.kerberos.kinit.cmd": "the Kerberos library gets tickets from a keytab or the ticket cache itself",
    "sasl.kerberos.min.time.before.relogin": "a ticket is requested when a connection needs one",
    "sasl.kerberos.ticket.renew.jitter": "a ticket is requested when a connection needs one",
    "sasl.kerberos.ticket.renew.window.factor": "a ticket is requested when a connection needs one",
    "sasl.login.callback.handler.class": f"{_CLASS}; tokens come from sasl.oauthbearer.token.endpoint.url, which may be a file",
    "sasl.login.class": _CLASS,
    "sasl.login.read.timeout.ms": "sasl.login.connect.timeout.ms also limits reading",
    "sasl.oauthbearer.assertion.algorithm": _ASSERTION,
    "sasl.oauthbearer.assertion.claim.aud": _ASSERTION,
    "sasl.oauthbearer.assertion.claim.exp.seconds": _ASSERTION,
    "sasl.oauthbearer.assertion.claim.iss": _ASSERTION,
    "sasl.oauthbearer.assertion.claim.jti.include": _ASSERTION,
    "sasl.oauthbearer.assertion.claim.nbf.seconds": _ASSERTION,
    "sasl.oauthbearer.assertion.claim.sub": _ASSERTION,
    "sasl.oauthbearer.assertion.file": _ASSERTION,
    "sasl.oauthbearer.assertion.private.key.file": _ASSERTION,
    "sasl.oauthbearer.assertion.private.key.passphrase": _ASSERTION,
    "sasl.oauthbearer.assertion.template.file": _ASSERTION,
    "sasl.oauthbearer.clock.skew.seconds": _BROKER,
    "sasl.oauthbearer.expected.audience": _BROKER,
    "sasl.oauthbearer.expected.issuer": _BROKER,
    "sasl.oauthbearer.jwks.endpoint.refresh.ms": _BROKER,
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": _BROKER,
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": _BROKER,
    "sasl.oauthbearer.jwks.endpoint.url": _BROKER,
    "sasl.oauthbearer.jwt.retriever.class": _CLASS,
    "sasl.oauthbearer.jwt.validator.class": _CLASS,
    "sasl.oauthbearer.scope.claim.name": _BROKER,
    "sasl.oauthbearer.sub.claim.name": _BROKER,
    "security.providers": _JVM,
    "socket.connection.setup.timeout.max.ms": "each connection attempt has socket.connection.setup.timeout.ms; the backoff between attempts grows",
    "ssl.engine.factory.class": _CLASS,
    "ssl.keymanager.algorithm": _JVM,
    "ssl.provider": _JVM,
    "ssl.secure.random.implementation": _JVM,
    "ssl.trustmanager.algorithm": _JVM,
}
PRODUCER = {
    "interceptor.classes": _CLASS,
    "key.serializer": _BYTES,
    "metadata.max.idle.ms": "a topic's metadata is fetched when a record is sent to it",
    "partitioner.adaptive.partitioning.enable": "records without a key go to random partitions, regardless of the brokers' queues",
    "partitioner.availability.timeout.ms": "records without a key go to partitions that have a leader",
    "transaction.timeout.ms": "only the producers of exactly-once sources have transactions",
    "transaction.two.phase.commit.enable": "a source's transactions commit with its offsets, without an external coordinator",
    "value.serializer": _BYTES,
}
CONSUMER = {
    "interceptor.classes": _CLASS,
    "internal.throw.on.fetch.stable.offset.unsupported": "it is internal to Java's consumer",
    "key.deserializer": _BYTES,
    "share.acknowledgement.mode": "it is for share groups; a sink's tasks form a consumer group",
    "share.acquire.mode": "it is for share groups; a sink's tasks form a consumer group",
    "value.deserializer": _BYTES,
}
ADMIN = {
    "bootstrap.controllers": "the controller is found through bootstrap.servers",
    "retries": "transient failures are retried for default.api.timeout.ms",
}

_told, _lock = set(), threading.Lock()


def tell(config):
    """Log each key of a ClientConfig that has no effect, once per process. Values may be secret and are not logged."""
    for name in config.ignored:
        with _lock:
            if (config.KIND, name) in _told:
                continue
            _told.add((config.KIND, name))
        if name in config.NO_EFFECT:
            log.warning("The %s setting '%s' has no effect here: %s.", config.KIND, name, config.NO_EFFECT[name])
        else:
            near = difflib.get_close_matches(name, [*config.KEYS, *config.NO_EFFECT], 1, 0.8)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            log.warning("'%s' is not a setting of Kafka's %s, and has no effect.%s", name, config.KIND, hint)


def to_markdown(configs):
    """Return a table of every key: its default, or why it has no effect."""
    for config in configs:
        yield f"## {config.KIND.capitalize()}\n\n| key | default | |\n|---|---|---|\n"
        for name in sorted({*config.KEYS, *config.NO_EFFECT}):
            default = "" if name in config.NO_EFFECT else _shown(config.KEYS[name][1])
            note = f"no effect: {config.NO_EFFECT[name]}" if name in config.NO_EFFECT else ""
            yield f"| `{name}` | {default} | {note} |\n"
        yield "\n"


def _shown(default):
    text = "" if default is None else str(default)
    return f"`{text.replace('org.apache.kafka.clients.consumer.', '')}`" if text else ""
