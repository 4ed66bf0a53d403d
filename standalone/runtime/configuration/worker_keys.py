"""The keys of worker.properties: Kafka's, with Kafka's defaults unless those are unsafe, and this project's own.

A key of Kafka's always has Kafka's meaning. Some have no effect (metrics, Java's class loading): they are accepted, so that a file for Java
works unchanged, and their documentation says so.
"""

import os
import re

from standalone.config import (
    BOOLEAN,
    CLASS,
    HIGH,
    INT,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    PASSWORD,
    REQUIRED,
    STRING,
    ConfigDef,
    Option,
    all_of,
    at_least,
    between,
    case_insensitive_one_of,
    non_empty_list,
    one_of,
)
from standalone.errors import ConfigError
from standalone.log.broker.options import OPTIONS as EMBEDDED_LOG
from standalone.log.client_config import parse_address
from standalone.runtime.cluster import options as cluster
from standalone.runtime.configuration import exactly_once
from standalone.runtime.supervision import restarts

EMBEDDED = "embedded"
CONVERTERS = {"key.converter": "converter", "value.converter": "converter", "header.converter": "header_converter"}

_URL = re.compile(r"(https?)://\[?([0-9a-zA-Z\-%._:]*)\]?:([0-9]+)", re.IGNORECASE)
_HEADER_RULE = re.compile(r'\s*"?(?:add|set|addDate|setDate)\s+[^\s:]+\s*:\s*[^,]*"?\s*', re.IGNORECASE)
_NO_EFFECT = " Accepted for compatibility with Java; it has no effect here."


def servers(name, value):
    """`embedded`, or host:port of one or more brokers."""
    if value == [EMBEDDED]:
        return
    for server in value or [""]:
        try:
            parse_address(server)
        except ValueError as error:
            raise ConfigError(f"{error}, or '{EMBEDDED}' alone for the embedded log") from None


def urls(name, value):
    """URLs in the form http://host:port."""
    for url in value or ():
        parse_listener(url)


def parse_listener(url):
    """(scheme, host, port) of `http://host:port`; an empty host means loopback."""
    match = _URL.fullmatch(url)
    if not match or int(match[3]) > 65535:
        raise ConfigError(f"'{url}' is not a listener; write http://host:port, or http://:port to listen on localhost only")
    return match[1].lower(), match[2], int(match[3])


def registry_listener(name, value):
    """host:port"""
    parse_listener(value if "//" in value else f"http://{value}")


def absolute_paths(name, value):
    """Absolute paths."""
    for path in value or ():
        if not os.path.isabs(path):
            raise ConfigError(f"'{path}' is not an absolute path")


def header_rules(name, value):
    """Rules in the form `add X-Header: value`, separated by commas."""
    for rule in re.split(r',(?=\s*"?(?:add|set))', value or "", flags=re.IGNORECASE):
        if rule and not _HEADER_RULE.fullmatch(rule.replace(",", " ")):
            raise ConfigError(f"'{rule.strip()}' is not a rule; write `add`, `set`, `addDate` or `setDate`, a name, a colon and a value")


POLICIES = ("All", "None", "Principal", "Allowlist")


def policy(name, value):
    """One of [All, None, Principal, Allowlist], or the name of its Java class."""
    if policy_of(value) is None:
        raise ConfigError(f"must be one of {', '.join(POLICIES)}; the policy '{value}' is not supported")


def policy_of(value):
    simple = (value or "").rpartition(".")[2]
    simple = simple.removesuffix("ConnectorClientConfigOverridePolicy")
    return next((each for each in POLICIES if each == simple), None)


def _option(name, type, importance, default, doc, check=None):
    return Option(name, type, importance, doc, default, check)


_KAFKA = ConfigDef(
    _option(
        *("bootstrap.servers", LIST, HIGH, EMBEDDED),
        "host:port of one or more Kafka brokers, separated by commas. `embedded` starts the embedded log, which speaks Kafka's protocol "
        "(see embedded.log.*).",
        all_of(non_empty_list, servers),
    ),
    _option(
        *("client.dns.lookup", STRING, MEDIUM, "use_all_dns_ips"),
        "Which of a broker's DNS addresses to try.",
        one_of("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
    ),
    _option("key.converter", CLASS, HIGH, REQUIRED, "Converter of record keys. `key.converter.*` configures it."),
    _option("key.converter.plugin.version", STRING, LOW, None, "Version of the key converter." + _NO_EFFECT),
    _option(
        "value.converter", CLASS, HIGH, REQUIRED, "Converter of record values. `value.converter.*` configures it."
    ),
    _option("value.converter.plugin.version", STRING, LOW, None, "Version of the value converter." + _NO_EFFECT),
    _option(
        *("task.shutdown.graceful.timeout.ms", LONG, LOW, 5000),
        "How long all tasks together may take to stop when the worker stops.",
        at_least(0),
    ),
    _option(
        *("offset.flush.interval.ms", LONG, LOW, 1000),
        "How often to commit offsets: source offsets are synced to their file, sink offsets are committed to the log. With Kafka's default of "
        "60000, up to a minute of records is repeated after a crash.",
        at_least(1),
    ),
    _option(
        *("offset.flush.timeout.ms", LONG, LOW, 5000),
        "How long an offset commit may take; after that it is retried at the next interval.",
        at_least(0),
    ),
    _option(
        *("plugin.path", LIST, LOW, None),
        "Folders with plugins: Python files and packages directly in them, or one folder further down; or paths of Python files. "
        "Jars are skipped.",
    ),
    _option(
        *("plugin.discovery", STRING, LOW, "hybrid_warn"),
        "How Java finds plugins." + _NO_EFFECT,
        case_insensitive_one_of("only_scan", "hybrid_warn", "hybrid_fail", "service_load"),
    ),
    _option("metrics.sample.window.ms", LONG, LOW, 30000, "Length of the sample window for metrics.", at_least(0)),
    _option("metrics.num.samples", INT, LOW, 2, "Number of sample windows.", at_least(1)),
    _option("metrics.recording.level", STRING, LOW, "INFO", "Which metrics to record." + _NO_EFFECT, one_of("INFO", "DEBUG", "TRACE")),
    _option("metric.reporters", LIST, LOW, "org.apache.kafka.common.metrics.JmxReporter", "Java classes that publish metrics." + _NO_EFFECT),
    _option(
        *("header.converter", CLASS, LOW, "org.apache.kafka.connect.storage.SimpleHeaderConverter"),
        "Converter of record headers. `header.converter.*` configures it.",
    ),
    _option("header.converter.plugin.version", STRING, LOW, None, "Version of the header converter." + _NO_EFFECT),
    _option("config.providers", LIST, LOW, "", "Names of config providers. Configurations reference their values as ${name:path:key}."),
    _option(
        *("connector.client.config.override.policy", STRING, MEDIUM, "All"),
        "Which client settings a connector may override by producer.override.*, consumer.override.* and admin.override.*: All, None, "
        "Principal (security.protocol, sasl.mechanism, sasl.jaas.config) or Allowlist "
        "(connector.client.config.override.allowlist).",
        policy,
    ),
    _option("topic.creation.enable", BOOLEAN, LOW, True, "Whether source connectors may create topics with topic.creation.*."),
    _option("ssl.protocol", STRING, MEDIUM, "TLSv1.3", "Newest TLS version to offer."),
    _option("ssl.provider", STRING, MEDIUM, None, "Java's security provider." + _NO_EFFECT),
    _option("ssl.cipher.suites", LIST, LOW, "", "Enabled cipher suites; empty: all suites of the TLS version."),
    _option("ssl.enabled.protocols", LIST, MEDIUM, "TLSv1.2,TLSv1.3", "Enabled TLS versions."),
    _option("ssl.keystore.type", STRING, MEDIUM, "JKS", "Format of the key store: PEM, PKCS12 or JKS."),
    _option(
        *("ssl.keystore.location", STRING, HIGH, None),
        "Path of the key store: own certificate and key. For https listeners it is reloaded when it changes.",
    ),
    _option("ssl.keystore.password", PASSWORD, HIGH, None, "Password of the key store."),
    _option("ssl.key.password", PASSWORD, HIGH, None, "Password of the private key."),
    _option("ssl.keystore.key", PASSWORD, HIGH, None, "Private key as PEM text."),
    _option("ssl.keystore.certificate.chain", PASSWORD, HIGH, None, "Certificate chain as PEM text."),
    _option("ssl.truststore.certificates", PASSWORD, HIGH, None, "Trusted certificates as PEM text."),
    _option("ssl.truststore.type", STRING, MEDIUM, "JKS", "Format of the trust store: PEM, PKCS12 or JKS."),
    _option(
        *("ssl.truststore.location", STRING, HIGH, None),
        "Path of the trust store: trusted certificates. For https listeners it is reloaded when it changes.",
    ),
    _option("ssl.truststore.password", PASSWORD, HIGH, None, "Password of the trust store."),
    _option("ssl.keymanager.algorithm", STRING, LOW, "SunX509", "Java's key manager." + _NO_EFFECT),
    _option("ssl.trustmanager.algorithm", STRING, LOW, "PKIX", "Java's trust manager." + _NO_EFFECT),
    _option(
        "ssl.endpoint.identification.algorithm", STRING, LOW, "https", "`https` verifies a server's host name; empty disables the check."
    ),
    _option("ssl.secure.random.implementation", STRING, LOW, None, "Java's source of random numbers." + _NO_EFFECT),
    _option("ssl.engine.factory.class", CLASS, LOW, None, "Java class that creates TLS connections." + _NO_EFFECT),
    _option("topic.tracking.enable", BOOLEAN, LOW, True, "Whether to track the topics that a connector uses."),
    _option("topic.tracking.allow.reset", BOOLEAN, LOW, True, "Whether the REST API may reset the tracked topics."),
    _option(
        *("listeners", LIST, LOW, "http://:8083"),
        "Addresses of the REST API: http://host:port and https://host:port (see ssl.*), separated by commas. No host means localhost only "
        "(127.0.0.1); 0.0.0.0 means all interfaces (Java's default).",
        all_of(non_empty_list, urls),
    ),
    _option("rest.advertised.host.name", STRING, LOW, None, "Host name in the worker_id of statuses."),
    _option("rest.advertised.port", INT, LOW, None, "Port in the worker_id of statuses."),
    _option("rest.advertised.listener", STRING, LOW, None, "Listener, http or https, whose address is in the worker_id of statuses."),
    _option("access.control.allow.origin", STRING, LOW, "", "Origins whose pages may call the REST API (CORS)."),
    _option("access.control.allow.methods", STRING, LOW, "", "Methods that such pages may use; empty: GET, POST and HEAD."),
    _option("response.http.headers.config", STRING, LOW, "", "Headers to add to responses of the REST API.", header_rules),
    _option(
        *("ssl.client.auth", STRING, LOW, "none"),
        "Whether clients of an https listener must present a certificate.",
        one_of("required", "requested", "none"),
    ),
    _option(
        *("rest.extension.classes", LIST, LOW, ""),
        "Extensions of the REST API: BasicAuthSecurityRestExtension (or its full Java name; see rest.basic.auth.file), or Python classes "
        "derived from standalone.rest.extension.RestExtension, as package.module:Class.",
    ),
    _option("admin.listeners", LIST, LOW, None, "Listeners that serve /admin. Not set: `listeners`; empty: none.", urls),
    _option(
        *("offset.storage.file.filename", STRING, HIGH, REQUIRED),
        "Path of the source offsets file. A file of Java's worker is imported, and backed up with the suffix .java.",
    ),
)


def _embedded_log_option(option):
    check = between(option.low, option.high) if option.type in (INT, LONG) else None
    return Option(option.name, option.type, LOW, option.doc, option.default, check)


_OWN = ConfigDef(
    _option(
        *("state.dir", STRING, MEDIUM, None),
        "Folder of the worker's state besides source offsets, and of the embedded log. Default: offset.storage.file.filename with the suffix "
        "`.state`.",
    ),
    _option(
        *("rest.basic.auth.file", STRING, MEDIUM, None),
        "File of `name=password` lines for BasicAuthSecurityRestExtension. Not set: the file in the JAAS entry KafkaConnect "
        "(KAFKA_OPTS=-Djava.security.auth.login.config=FILE), as for Java.",
    ),
    _option(
        *("rest.allowed.hosts", LIST, MEDIUM, ""),
        "Additional host names and addresses by which clients may call the REST API, for example those of a proxy or a forwarded port. Always "
        "allowed are loopback, the listeners' hosts, the local address of the connection and rest.advertised.host.name. Requests for any other "
        "host get 403, which prevents DNS rebinding; * allows all.",
    ),
    _option(
        *("rest.hide.secrets", BOOLEAN, MEDIUM, None),
        "Whether REST responses show `[hidden]` instead of passwords (values of config providers are always hidden). Default: true, unless an "
        "extension authenticates callers (rest.extension.classes): then passwords are shown, as in Java, so that tools which compare "
        "configurations find the values they sent.",
    ),
    _option(
        *("files.allowed.paths", LIST, MEDIUM, None),
        "Absolute paths of folders and files, separated by commas, that file connectors may access, including everything below them. Symbolic "
        "links are resolved first. Not set: all.",
        absolute_paths,
    ),
    _option(
        *("rest.ui.enable", BOOLEAN, LOW, True),
        "Whether the REST API serves the web UI at /ui: connectors, their configuration and offsets, topics and their newest records.",
    ),
    _option(
        *("pipeline.engine", STRING, LOW, "auto"),
        "How to run converters and transforms: `rows`, record by record; `spark`, whole batches in columns, computed by Spark; `auto` decides for "
        "each batch.",
        one_of("auto", "spark", "rows"),
    ),
    _option(
        *("pipeline.columns.min.records", INT, LOW, 20000),
        "Minimum number of records in a batch for `auto` to use Spark.",
        at_least(1),
    ),
    _option(
        *("pipeline.memory.bytes", LONG, MEDIUM, 512 << 20),
        "How many bytes of records all tasks together may hold between poll and acknowledgement.",
        at_least(1 << 20),
    ),
    _option(
        *("pipeline.task.memory.bytes", LONG, LOW, 64 << 20),
        "How many bytes of records one task may hold between poll and acknowledgement; beyond that a source waits for the log.",
        at_least(1 << 16),
    ),
    _option(
        *("spark.start", STRING, LOW, "auto"),
        "When to start the Spark session, in the background: `auto`, once a chain has work for Spark; `eager`, with the worker; `lazy`, with the "
        "first batch that is large enough. Any other spark.* key is a setting of the session.",
        one_of("auto", "eager", "lazy"),
    ),
    *cluster.OPTIONS,
    _option(
        *("sql.functions", LIST, LOW, ""),
        "Python files (ending in .py) and modules, separated by commas, with functions for SQL statements: those decorated with "
        "@function(type) of standalone.streams.",
    ),
    *restarts.OPTIONS,
    _option(
        *("task.failure.exit", BOOLEAN, LOW, False),
        "Whether the worker exits with code 4 once a task or connector has failed permanently: it has no restarts by task.restart.* left, or "
        "they are off.",
    ),
    _option(
        *("log.format", STRING, LOW, None),
        "Format of log lines: `text`, as in Connect, or `json`, one object per line. The option --log-format overrides it. Default: text.",
        one_of("text", "json"),
    ),
    *map(_embedded_log_option, EMBEDDED_LOG),
    _option(
        *("embedded.registry.enable", BOOLEAN, LOW, False),
        "Whether the worker's own schema registry starts with the worker. If false, it starts once a converter needs it "
        "(schema.registry.url=embedded, the default of converters with the embedded log).",
    ),
    _option(
        *("embedded.registry.listener", STRING, LOW, "127.0.0.1:8081"),
        "host:port of the worker's own schema registry, compatible with clients of Confluent's registry. It has no authentication.",
        registry_listener,
    ),
    _option(
        *("embedded.registry.file", STRING, LOW, None),
        "Path of the file with the schemas of the worker's own registry. Default: schemas.db in state.dir.",
    ),
)

WORKER = _KAFKA + exactly_once.OPTIONS + _OWN
