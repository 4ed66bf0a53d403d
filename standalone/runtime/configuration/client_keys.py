"""The keys of Kafka's producers, consumers and admin clients, as Java defines them: used to validate producer.override.* and the like.

log/client_config.py says which of them have an effect here. One key per line: its clients (producer, consumer, admin), name, type,
importance and default (-: none, !: required, "": empty string).
"""

from standalone.config import REQUIRED, Option

_KEYS = """
p acks STRING LOW all
c allow.auto.create.topics BOOLEAN MEDIUM true
c auto.commit.interval.ms INT LOW 5000
c auto.offset.reset STRING MEDIUM latest
p batch.size INT MEDIUM 16384
a bootstrap.controllers LIST HIGH ""
pc bootstrap.servers LIST HIGH !
a bootstrap.servers LIST HIGH ""
p buffer.memory LONG HIGH 33554432
c check.crcs BOOLEAN LOW true
pca client.dns.lookup STRING MEDIUM use_all_dns_ips
c client.id STRING LOW ""
pa client.id STRING MEDIUM ""
c client.rack STRING LOW ""
p compression.gzip.level INT MEDIUM -1
p compression.lz4.level INT MEDIUM 9
p compression.type STRING HIGH none
p compression.zstd.level INT MEDIUM 3
pca config.providers LIST LOW ""
a connections.max.idle.ms LONG MEDIUM 300000
pc connections.max.idle.ms LONG MEDIUM 540000
ca default.api.timeout.ms INT MEDIUM 60000
p delivery.timeout.ms INT MEDIUM 120000
c enable.auto.commit BOOLEAN MEDIUM true
p enable.idempotence BOOLEAN LOW true
a enable.metrics.push BOOLEAN LOW false
pc enable.metrics.push BOOLEAN LOW true
c exclude.internal.topics BOOLEAN MEDIUM true
c fetch.max.bytes INT MEDIUM 52428800
c fetch.max.wait.ms INT LOW 500
c fetch.min.bytes INT HIGH 1
c group.id STRING HIGH -
c group.instance.id STRING MEDIUM -
c group.protocol STRING HIGH classic
c group.remote.assignor STRING MEDIUM -
c heartbeat.interval.ms INT HIGH 3000
pc interceptor.classes LIST LOW ""
c internal.throw.on.fetch.stable.offset.unsupported BOOLEAN LOW false
c isolation.level STRING MEDIUM read_uncommitted
c key.deserializer CLASS HIGH !
p key.serializer CLASS HIGH !
p linger.ms LONG MEDIUM 5
p max.block.ms LONG MEDIUM 60000
p max.in.flight.requests.per.connection INT LOW 5
c max.partition.fetch.bytes INT HIGH 1048576
c max.poll.interval.ms INT MEDIUM 300000
c max.poll.records INT MEDIUM 500
p max.request.size INT MEDIUM 1048576
pca metadata.max.age.ms LONG LOW 300000
p metadata.max.idle.ms LONG LOW 300000
pca metadata.recovery.rebootstrap.trigger.ms LONG LOW 300000
pca metadata.recovery.strategy STRING LOW rebootstrap
pca metric.reporters LIST LOW org.apache.kafka.common.metrics.JmxReporter
pca metrics.num.samples INT LOW 2
pca metrics.recording.level STRING LOW INFO
pca metrics.sample.window.ms LONG LOW 30000
c partition.assignment.strategy LIST MEDIUM class @RangeAssignor,class @CooperativeStickyAssignor
p partitioner.adaptive.partitioning.enable BOOLEAN LOW true
p partitioner.availability.timeout.ms LONG LOW 0
p partitioner.class CLASS MEDIUM -
p partitioner.ignore.keys BOOLEAN MEDIUM false
p receive.buffer.bytes INT MEDIUM 32768
ca receive.buffer.bytes INT MEDIUM 65536
pca reconnect.backoff.max.ms LONG LOW 1000
pca reconnect.backoff.ms LONG LOW 50
pca request.timeout.ms INT MEDIUM 30000
p retries INT HIGH 2147483647
a retries INT LOW 2147483647
pca retry.backoff.max.ms LONG LOW 1000
pca retry.backoff.ms LONG LOW 100
pca sasl.client.callback.handler.class CLASS MEDIUM -
pca sasl.jaas.config PASSWORD MEDIUM -
pca sasl.kerberos.kinit.cmd STRING LOW /usr/bin/kinit
pca sasl.kerberos.min.time.before.relogin LONG LOW 60000
pca sasl.kerberos.service.name STRING MEDIUM -
pca sasl.kerberos.ticket.renew.jitter DOUBLE LOW 0.05
pca sasl.kerberos.ticket.renew.window.factor DOUBLE LOW 0.8
pca sasl.login.callback.handler.class CLASS MEDIUM -
pca sasl.login.class CLASS MEDIUM -
pca sasl.login.connect.timeout.ms INT LOW -
pca sasl.login.read.timeout.ms INT LOW -
pca sasl.login.refresh.buffer.seconds SHORT LOW 300
pca sasl.login.refresh.min.period.seconds SHORT LOW 60
pca sasl.login.refresh.window.factor DOUBLE LOW 0.8
pca sasl.login.refresh.window.jitter DOUBLE LOW 0.05
pca sasl.login.retry.backoff.max.ms LONG LOW 10000
pca sasl.login.retry.backoff.ms LONG LOW 100
pca sasl.mechanism STRING MEDIUM GSSAPI
pca sasl.oauthbearer.assertion.algorithm STRING MEDIUM RS256
pca sasl.oauthbearer.assertion.claim.aud STRING MEDIUM -
pca sasl.oauthbearer.assertion.claim.exp.seconds INT LOW 300
pca sasl.oauthbearer.assertion.claim.iss STRING MEDIUM -
pca sasl.oauthbearer.assertion.claim.jti.include BOOLEAN MEDIUM false
pca sasl.oauthbearer.assertion.claim.nbf.seconds INT LOW 60
pca sasl.oauthbearer.assertion.claim.sub STRING MEDIUM -
pca sasl.oauthbearer.assertion.file STRING MEDIUM -
pca sasl.oauthbearer.assertion.private.key.file STRING MEDIUM -
pca sasl.oauthbearer.assertion.private.key.passphrase PASSWORD MEDIUM -
pca sasl.oauthbearer.assertion.template.file STRING MEDIUM -
pca sasl.oauthbearer.client.credentials.client.id STRING MEDIUM -
pca sasl.oauthbearer.client.credentials.client.secret PASSWORD MEDIUM -
pca sasl.oauthbearer.clock.skew.seconds INT LOW 30
pca sasl.oauthbearer.expected.audience LIST HIGH ""
pca sasl.oauthbearer.expected.issuer STRING HIGH -
pca sasl.oauthbearer.header.urlencode BOOLEAN LOW false
pca sasl.oauthbearer.jwks.endpoint.refresh.ms LONG LOW 3600000
pca sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms LONG LOW 10000
pca sasl.oauthbearer.jwks.endpoint.retry.backoff.ms LONG LOW 100
pca sasl.oauthbearer.jwks.endpoint.url STRING MEDIUM -
pca sasl.oauthbearer.jwt.retriever.class CLASS MEDIUM org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever
pca sasl.oauthbearer.jwt.validator.class CLASS MEDIUM org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator
pca sasl.oauthbearer.scope STRING MEDIUM -
pca sasl.oauthbearer.scope.claim.name STRING LOW scope
pca sasl.oauthbearer.sub.claim.name STRING LOW sub
pca sasl.oauthbearer.token.endpoint.url STRING MEDIUM -
pca security.protocol STRING MEDIUM PLAINTEXT
pca security.providers STRING LOW -
pca send.buffer.bytes INT MEDIUM 131072
c session.timeout.ms INT HIGH 45000
c share.acknowledgement.mode STRING MEDIUM implicit
c share.acquire.mode STRING MEDIUM BATCH_OPTIMIZED
pca socket.connection.setup.timeout.max.ms LONG MEDIUM 30000
pca socket.connection.setup.timeout.ms LONG MEDIUM 10000
pca ssl.cipher.suites LIST LOW ""
pca ssl.enabled.protocols LIST MEDIUM TLSv1.2,TLSv1.3
pca ssl.endpoint.identification.algorithm STRING LOW https
pca ssl.engine.factory.class CLASS LOW -
pca ssl.key.password PASSWORD HIGH -
pca ssl.keymanager.algorithm STRING LOW SunX509
pca ssl.keystore.certificate.chain PASSWORD HIGH -
pca ssl.keystore.key PASSWORD HIGH -
pca ssl.keystore.location STRING HIGH -
pca ssl.keystore.password PASSWORD HIGH -
pca ssl.keystore.type STRING MEDIUM JKS
pca ssl.protocol STRING MEDIUM TLSv1.3
pca ssl.provider STRING MEDIUM -
pca ssl.secure.random.implementation STRING LOW -
pca ssl.trustmanager.algorithm STRING LOW PKIX
pca ssl.truststore.certificates PASSWORD HIGH -
pca ssl.truststore.location STRING HIGH -
pca ssl.truststore.password PASSWORD HIGH -
pca ssl.truststore.type STRING MEDIUM JKS
p transaction.timeout.ms INT LOW 60000
p transaction.two.phase.commit.enable BOOLEAN LOW false
p transactional.id STRING LOW -
c value.deserializer CLASS HIGH !
p value.serializer CLASS HIGH !
"""
_DEFAULTS = {"-": None, "!": REQUIRED, '""': ""}
_KINDS = {"p": "producer", "c": "consumer", "a": "admin"}
_DOC = "Setting of the connector's {}, as in Kafka."


def _options():
    found = {kind: {} for kind in _KINDS.values()}
    for line in _KEYS.strip().splitlines():
        kinds, name, type, importance, default = line.split(" ", 4)
        default = _DEFAULTS[default] if default in _DEFAULTS else default.replace("@", "org.apache.kafka.clients.consumer.")
        for kind in map(_KINDS.get, kinds.strip()):
            found[kind][name] = Option(name, type, importance, _DOC.format(kind), default, internal=name.startswith("internal."))
    return found


OPTIONS = _options()  # kind -> name -> Option
