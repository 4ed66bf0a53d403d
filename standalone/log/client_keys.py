"""Keys of Java's clients that have no effect here, and why: each that is set is named once in the log, and so is one that Kafka does not know.

What has an effect is in client_config.py; a test holds both together to all the keys there are.
"""

import difflib
import logging
import threading

log = logging.getLogger(__name__)

_METRICS = "the worker's metrics are at GET /metrics, whatever is set for clients"
_JVM = "it is about the JVM's own TLS; here it is OpenSSL's"
_BROKER = "it is about brokers that check tokens, and clients only send them"
_ASSERTION = "tokens are asked for by client credentials or read from a file, not by assertions"
_CLASS = "it names a Java class, which cannot run here"
_BYTES = "records come as bytes from the connector's converters, or go there"

COMMON = {
    "config.providers": "values are looked up by the worker's config.providers, before a client sees them",
    "enable.metrics.push": f"no metrics are pushed to brokers; {_METRICS}",
    "metadata.recovery.rebootstrap.trigger.ms": "bootstrap.servers are asked as soon as no known broker answers",
    "metric.reporters": f"{_CLASS}; {_METRICS}",
    "metrics.num.samples": _METRICS,
    "metrics.recording.level": _METRICS,
    "metrics.sample.window.ms": _METRICS,
    "sasl.client.callback.handler.class": _CLASS,
    "sasl.kerberos.kinit.cmd": "tickets are asked for by the Kerberos library itself, of a keytab or of the ticket cache",
    "sasl.kerberos.min.time.before.relogin": "a ticket is asked for when a connection needs one",
    "sasl.kerberos.ticket.renew.jitter": "a ticket is asked for when a connection needs one",
    "sasl.kerberos.ticket.renew.window.factor": "a ticket is asked for when a connection needs one",
    "sasl.login.callback.handler.class": f"{_CLASS}; tokens come from sasl.oauthbearer.token.endpoint.url, which may be a file",
    "sasl.login.class": _CLASS,
    "sasl.login.read.timeout.ms": "sasl.login.connect.timeout.ms is the limit of reading, too",
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
    "socket.connection.setup.timeout.max.ms": "each attempt at a connection has socket.connection.setup.timeout.ms; the pauses between them grow",
    "ssl.engine.factory.class": _CLASS,
    "ssl.keymanager.algorithm": _JVM,
    "ssl.provider": _JVM,
    "ssl.secure.random.implementation": _JVM,
    "ssl.trustmanager.algorithm": _JVM,
}
PRODUCER = {
    "interceptor.classes": _CLASS,
    "key.serializer": _BYTES,
    "metadata.max.idle.ms": "a topic is asked for when something is sent to it",
    "partitioner.adaptive.partitioning.enable": "records without a key go to partitions at random, whatever waits for their brokers",
    "partitioner.availability.timeout.ms": "records without a key go to partitions that have a leader",
    "transaction.timeout.ms": "it is one of exactly-once sources, whose producers alone have transactions",
    "transaction.two.phase.commit.enable": "a source's transactions end with its offsets in them, and nobody else's word is waited for",
    "value.serializer": _BYTES,
}
CONSUMER = {
    "interceptor.classes": _CLASS,
    "internal.throw.on.fetch.stable.offset.unsupported": "it is internal to Java's consumer",
    "key.deserializer": _BYTES,
    "share.acknowledgement.mode": "it is one of share groups, and a sink's tasks form a consumer group",
    "share.acquire.mode": "it is one of share groups, and a sink's tasks form a consumer group",
    "value.deserializer": _BYTES,
}
ADMIN = {
    "bootstrap.controllers": "the controller is found by way of bootstrap.servers",
    "retries": "what fails for the moment is tried again for default.api.timeout.ms",
}

_told, _lock = set(), threading.Lock()


def tell(config):
    """Name each key of a ClientConfig that has no effect, once in the life of the process. Values may be secret and are not shown."""
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
    """A table of every key: its default, or why it has no effect."""
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
