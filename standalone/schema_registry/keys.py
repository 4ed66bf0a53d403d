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
        "Addresses of the schema registry, http://host:port, separated by commas: the next one is asked where one does not answer. "
        "`embedded` is the worker's own (embedded.registry.listener), and beside the embedded log what is meant where nothing is said.",
        *(EMBEDDED, non_empty_list),
    ),
    Option("schema.registry.url.randomize", BOOLEAN, LOW, "Whether the first address to be asked is chosen at random.", False),
    Option("basic.auth.credentials.source", STRING, MEDIUM, "Where user and password come from: the URL, `basic.auth.user.info` or sasl.jaas.config.",
           "URL", one_of(*BASIC_SOURCES)),
    Option("basic.auth.user.info", PASSWORD, MEDIUM, "user:password, for basic.auth.credentials.source=USER_INFO.", ""),
    Option("schema.registry.basic.auth.user.info", PASSWORD, MEDIUM, "The old name of basic.auth.user.info.", ""),
    Option("bearer.auth.credentials.source", STRING, MEDIUM, "Where a bearer token comes from: bearer.auth.token, or an OAuth issuer.",
           "STATIC_TOKEN", one_of(*BEARER_SOURCES)),
    Option("bearer.auth.token", PASSWORD, MEDIUM, "The token, for STATIC_TOKEN.", ""),
    Option("bearer.auth.issuer.endpoint.url", STRING, MEDIUM, "Where an OAuth token is asked for, for OAUTHBEARER.", None),
    Option("bearer.auth.client.id", STRING, MEDIUM, "The OAuth client, for OAUTHBEARER.", None),
    Option("bearer.auth.client.secret", PASSWORD, MEDIUM, "The OAuth client's secret, for OAUTHBEARER.", None),
    Option("bearer.auth.scope", STRING, MEDIUM, "The OAuth scope, for OAUTHBEARER.", None),
    Option("bearer.auth.identity.pool.id", STRING, MEDIUM, "Sent as the header Confluent-Identity-Pool-Id beside a token.", None),
    Option("bearer.auth.logical.cluster", STRING, MEDIUM, "Sent as the header target-sr-cluster beside a token.", None),
    Option("bearer.auth.cache.expiry.buffer.seconds", INT, LOW, "How long before its end a token is asked for again.", 300, between(0, 3600)),
    Option("proxy.host", STRING, LOW, "Host of an HTTP proxy on the way to the registry; empty for none.", ""),
    Option("proxy.port", INT, LOW, "Port of that proxy.", -1),
    Option("http.connect.timeout.ms", INT, LOW, "How long a connection may take to be made.", 60000, at_least(1)),
    Option("http.read.timeout.ms", INT, LOW, "How long an answer may take.", 60000, at_least(1)),
    Option("max.retries", INT, LOW, "How often a request that failed for the moment is sent again, before errors.retry.* count.",
           3, at_least(0)),
    Option("retries.wait.ms", INT, LOW, "The pause before the first of these; each further one is twice as long.", 1000, at_least(0)),
    Option("retries.max.wait.ms", INT, LOW, "The longest of these pauses.", 20000, at_least(0)),
    Option("max.schemas.per.subject", INT, LOW, "How many schemas of a subject are remembered.", 1000, at_least(1)),
    Option("latest.cache.size", INT, LOW, "Of how many subjects the newest version is remembered.", 1000, at_least(1)),
    Option("latest.cache.ttl.sec", LONG, LOW, "How long the newest version of a subject is remembered; -1 forever.", 60, at_least(-1)),
    Option("missing.cache.size", INT, LOW, "How many answers that something is missing are remembered.", 10000, at_least(1)),
    Option("missing.id.cache.ttl.sec", LONG, LOW, "How long it is remembered that there is no such id; 0 not at all.", 0, at_least(0)),
    Option("missing.version.cache.ttl.sec", LONG, LOW, "How long it is remembered that there is no such version; 0 not at all.", 0, at_least(0)),
    Option("missing.schema.cache.ttl.sec", LONG, LOW, "How long it is remembered that a schema is not registered; 0 not at all.", 0, at_least(0)),
)  # fmt: skip
