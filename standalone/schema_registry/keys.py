"""The keys of a client of the schema registry, under Confluent's names and at Confluent's defaults."""

from standalone.config import (
    BOOLEAN,
    HIGH,
    INT,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    PASSWORD,
    STRING,
    ConfigDef,
    Option,
    at_least,
    between,
    non_empty_list,
    one_of,
)

EMBEDDED = "embedded"
URL = "schema.registry.url"
HEADERS = "request.header."
SSL = "schema.registry.ssl."

BASIC_SOURCES = ("URL", "USER_INFO", "SASL_INHERIT")
BEARER_SOURCES = ("STATIC_TOKEN", "OAUTHBEARER", "SASL_OAUTHBEARER_INHERIT")

CLIENT = ConfigDef(
    Option(
        *(URL, LIST, HIGH),
        "URLs of the schema registry, http://host:port, separated by commas; if one is unavailable, the next is used. `embedded` is the worker's "
        "own (embedded.registry.listener), which is also the default with the embedded log.",
        *(EMBEDDED, non_empty_list),
    ),
    Option("schema.registry.url.randomize", BOOLEAN, LOW, "Whether to start with a random URL.", False),
    Option("basic.auth.credentials.source", STRING, MEDIUM, "Source of user and password: the URL, `basic.auth.user.info` or sasl.jaas.config.",
           "URL", one_of(*BASIC_SOURCES)),
    Option("basic.auth.user.info", PASSWORD, MEDIUM, "user:password, for basic.auth.credentials.source=USER_INFO.", ""),
    Option("schema.registry.basic.auth.user.info", PASSWORD, MEDIUM, "The old name of basic.auth.user.info.", ""),
    Option("bearer.auth.credentials.source", STRING, MEDIUM, "Source of the bearer token: bearer.auth.token, or an OAuth issuer.",
           "STATIC_TOKEN", one_of(*BEARER_SOURCES)),
    Option("bearer.auth.token", PASSWORD, MEDIUM, "The token, for STATIC_TOKEN.", ""),
    Option("bearer.auth.issuer.endpoint.url", STRING, MEDIUM, "Token endpoint of the OAuth issuer, for OAUTHBEARER.", None),
    Option("bearer.auth.client.id", STRING, MEDIUM, "The OAuth client, for OAUTHBEARER.", None),
    Option("bearer.auth.client.secret", PASSWORD, MEDIUM, "The OAuth client's secret, for OAUTHBEARER.", None),
    Option("bearer.auth.scope", STRING, MEDIUM, "The OAuth scope, for OAUTHBEARER.", None),
    Option("bearer.auth.identity.pool.id", STRING, MEDIUM, "Sent with a token as the header Confluent-Identity-Pool-Id.", None),
    Option("bearer.auth.logical.cluster", STRING, MEDIUM, "Sent with a token as the header target-sr-cluster.", None),
    Option("bearer.auth.cache.expiry.buffer.seconds", INT, LOW, "How long before its expiry to renew a token.", 300, between(0, 3600)),
    Option("proxy.host", STRING, LOW, "Host of an HTTP proxy to the registry; empty: none.", ""),
    Option("proxy.port", INT, LOW, "Port of that proxy.", -1),
    Option("http.connect.timeout.ms", INT, LOW, "Timeout for connecting.", 60000, at_least(1)),
    Option("http.read.timeout.ms", INT, LOW, "Timeout for a response.", 60000, at_least(1)),
    Option("max.retries", INT, LOW, "Maximum number of retries after a transient error, before errors.retry.* applies.",
           3, at_least(0)),
    Option("retries.wait.ms", INT, LOW, "Backoff before the first retry; it doubles with each further one.", 1000, at_least(0)),
    Option("retries.max.wait.ms", INT, LOW, "Maximum backoff.", 20000, at_least(0)),
    Option("max.schemas.per.subject", INT, LOW, "Maximum number of cached schemas per subject.", 1000, at_least(1)),
    Option("latest.cache.size", INT, LOW, "Maximum number of cached newest versions.", 1000, at_least(1)),
    Option("latest.cache.ttl.sec", LONG, LOW, "How long to cache the newest version of a subject; -1: forever.", 60, at_least(-1)),
    Option("missing.cache.size", INT, LOW, "Maximum number of cached 404 responses.", 10000, at_least(1)),
    Option("missing.id.cache.ttl.sec", LONG, LOW, "How long to cache that an id does not exist; 0: not at all.", 0, at_least(0)),
    Option("missing.version.cache.ttl.sec", LONG, LOW, "How long to cache that a version does not exist; 0: not at all.", 0, at_least(0)),
    Option("missing.schema.cache.ttl.sec", LONG, LOW, "How long to cache that a schema is not registered; 0: not at all.", 0, at_least(0)),
)  # fmt: skip
