"""TLS and SASL options of Java's clients, for connectors that connect to servers themselves."""

from standalone import BOOLEAN, CLASS, DOUBLE, HIGH, INT, LIST, LONG, LOW, MEDIUM, PASSWORD, SHORT, STRING, Option

_TYPES = {
    "BOOLEAN": BOOLEAN, "CLASS": CLASS, "DOUBLE": DOUBLE, "INT": INT, "LIST": LIST, "LONG": LONG, "PASSWORD": PASSWORD, "SHORT": SHORT,
    "STRING": STRING,
}  # fmt: skip
_IMPORTANCES = {"H": HIGH, "M": MEDIUM, "L": LOW}

# One key per line: importance, type, name, default (- for none).
TLS = """
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
"""
SASL = """
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


def options(table, doc, prefix="", **more):
    """The Options of one of these tables."""
    for line in filter(None, table.splitlines()):
        importance, kind, name, default = line.split(" ")
        yield Option(prefix + name, _TYPES[kind], _IMPORTANCES[importance], doc, None if default == "-" else default, **more)
