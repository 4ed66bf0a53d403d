"""The keys of worker.properties: Kafka's, at Kafka's defaults but where those are unsafe, and our own.

A key of Kafka's never has another meaning here. Some have none (metrics, Java's class loading): they are taken, so that a file made
for Java runs unchanged, and their documentation says so.
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
_NO_EFFECT = " Taken for the sake of files made for Java; it has no effect here."


def servers(name, value):
    """`embedded`, or host:port of one or more brokers."""
    if value == [EMBEDDED]:
        return
    for server in value or [""]:
        try:
            parse_address(server)
        except ValueError as error:
            raise ConfigError(f"{error}, or '{EMBEDDED}' alone for a log of the worker's own") from None


def urls(name, value):
    """URLs like http://host:port."""
    for url in value or ():
        parse_listener(url)


def parse_listener(url):
    """(scheme, host, port) of `http://host:port`; an empty host means loopback."""
    match = _URL.fullmatch(url)
    if not match or int(match[3]) > 65535:
        raise ConfigError(f"'{url}' is not a listener; write http://host:port, or http://:port for this machine alone")
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
    """Rules like `add X-Header: value`, separated by commas."""
    for rule in re.split(r',(?=\s*"?(?:add|set))', value or "", flags=re.IGNORECASE):
        if rule and not _HEADER_RULE.fullmatch(rule.replace(",", " ")):
            raise ConfigError(f"'{rule.strip()}' is not a rule; write `add`, `set`, `addDate` or `setDate`, a name, a colon and a value")


POLICIES = ("All", "None", "Principal", "Allowlist")


def policy(name, value):
    """One of [All, None, Principal, Allowlist], or the name of its Java class."""
    if policy_of(value) is None:
        raise ConfigError(f"must be one of {', '.join(POLICIES)}; '{value}' is a policy that is not here")


def policy_of(value):
    simple = (value or "").rpartition(".")[2]
    simple = simple.removesuffix("ConnectorClientConfigOverridePolicy")
    return next((each for each in POLICIES if each == simple), None)


def _option(name, type, importance, default, doc, check=None):
    return Option(name, type, importance, doc, default, check)


_KAFKA = ConfigDef(
    _option(
        *("bootstrap.servers", LIST, HIGH, EMBEDDED),
        "host:port of one or more Kafka brokers, separated by commas. `embedded` starts a log of the worker's own that speaks Kafka's "
        "protocol (see embedded.log.*).",
        all_of(non_empty_list, servers),
    ),
    _option(
        *("client.dns.lookup", STRING, MEDIUM, "use_all_dns_ips"),
        "Which of the addresses that DNS gives for a broker are tried.",
        one_of("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
    ),
    _option("key.converter", CLASS, HIGH, REQUIRED, "Converter between keys and the bytes in the log. `key.converter.*` are its own keys."),
    _option("key.converter.plugin.version", STRING, LOW, None, "Version of the converter of keys." + _NO_EFFECT),
    _option(
        "value.converter", CLASS, HIGH, REQUIRED, "Converter between values and the bytes in the log. `value.converter.*` are its own keys."
    ),
    _option("value.converter.plugin.version", STRING, LOW, None, "Version of the converter of values." + _NO_EFFECT),
    _option(
        *("task.shutdown.graceful.timeout.ms", LONG, LOW, 5000),
        "How long tasks may take to end when the worker stops, all together.",
        at_least(0),
    ),
    _option(
        *("offset.flush.interval.ms", LONG, LOW, 1000),
        "How often offsets are made durable: source offsets in their file, those of sinks in the log. Kafka's default of 60000 repeats up "
        "to a minute of records after a crash.",
        at_least(1),
    ),
    _option(
        *("offset.flush.timeout.ms", LONG, LOW, 5000),
        "How long making offsets durable may take before it is given up and tried again at the next interval.",
        at_least(0),
    ),
    _option(
        *("plugin.path", LIST, LOW, None),
        "Folders with plugins: Python files and packages in them, or one folder further down; a Python file itself may be named, too. "
        "Jars are skipped.",
    ),
    _option(
        *("plugin.discovery", STRING, LOW, "hybrid_warn"),
        "How Java finds plugins." + _NO_EFFECT,
        case_insensitive_one_of("only_scan", "hybrid_warn", "hybrid_fail", "service_load"),
    ),
    _option("metrics.sample.window.ms", LONG, LOW, 30000, "Length of a window over which rates are measured.", at_least(0)),
    _option("metrics.num.samples", INT, LOW, 2, "How many such windows are kept.", at_least(1)),
    _option("metrics.recording.level", STRING, LOW, "INFO", "Which metrics are kept." + _NO_EFFECT, one_of("INFO", "DEBUG", "TRACE")),
    _option("metric.reporters", LIST, LOW, "org.apache.kafka.common.metrics.JmxReporter", "Java classes that publish metrics." + _NO_EFFECT),
    _option(
        *("header.converter", CLASS, LOW, "org.apache.kafka.connect.storage.SimpleHeaderConverter"),
        "Converter between headers and their bytes. `header.converter.*` are its own keys.",
    ),
    _option("header.converter.plugin.version", STRING, LOW, None, "Version of the converter of headers." + _NO_EFFECT),
    _option("config.providers", LIST, LOW, "", "Names of providers whose values are in configurations as ${name:path:key}."),
    _option(
        *("connector.client.config.override.policy", STRING, MEDIUM, "All"),
        "Which client settings a connector may set for itself by producer.override.*, consumer.override.* and admin.override.*: All, None, "
        "Principal (security.protocol, sasl.mechanism, sasl.jaas.config) or Allowlist "
        "(connector.client.config.override.allowlist).",
        policy,
    ),
    _option("topic.creation.enable", BOOLEAN, LOW, True, "Whether source connectors may make topics by their topic.creation.* keys."),
    _option("ssl.protocol", STRING, MEDIUM, "TLSv1.3", "Newest TLS version that is offered."),
    _option("ssl.provider", STRING, MEDIUM, None, "Java's security provider." + _NO_EFFECT),
    _option("ssl.cipher.suites", LIST, LOW, "", "Cipher suites that may be used; empty allows all that the TLS version knows."),
    _option("ssl.enabled.protocols", LIST, MEDIUM, "TLSv1.2,TLSv1.3", "TLS versions that may be used."),
    _option("ssl.keystore.type", STRING, MEDIUM, "JKS", "Format of the key store: PEM, PKCS12 or JKS."),
    _option(
        *("ssl.keystore.location", STRING, HIGH, None),
        "File of the key store: own certificate and key. Of https listeners: read again when it changes.",
    ),
    _option("ssl.keystore.password", PASSWORD, HIGH, None, "Password of the key store."),
    _option("ssl.key.password", PASSWORD, HIGH, None, "Password of the private key."),
    _option("ssl.keystore.key", PASSWORD, HIGH, None, "Private key as PEM text."),
    _option("ssl.keystore.certificate.chain", PASSWORD, HIGH, None, "Certificate chain as PEM text."),
    _option("ssl.truststore.certificates", PASSWORD, HIGH, None, "Trusted certificates as PEM text."),
    _option("ssl.truststore.type", STRING, MEDIUM, "JKS", "Format of the trust store: PEM, PKCS12 or JKS."),
    _option(
        *("ssl.truststore.location", STRING, HIGH, None),
        "File of the trust store: certificates that are trusted. Of https listeners: read again when it changes.",
    ),
    _option("ssl.truststore.password", PASSWORD, HIGH, None, "Password of the trust store."),
    _option("ssl.keymanager.algorithm", STRING, LOW, "SunX509", "Java's key manager." + _NO_EFFECT),
    _option("ssl.trustmanager.algorithm", STRING, LOW, "PKIX", "Java's trust manager." + _NO_EFFECT),
    _option(
        "ssl.endpoint.identification.algorithm", STRING, LOW, "https", "`https` checks the host name of a server; empty does not check it."
    ),
    _option("ssl.secure.random.implementation", STRING, LOW, None, "Java's source of random numbers." + _NO_EFFECT),
    _option("ssl.engine.factory.class", CLASS, LOW, None, "Java class that makes TLS connections." + _NO_EFFECT),
    _option("topic.tracking.enable", BOOLEAN, LOW, True, "Whether the topics that a connector uses are noted."),
    _option("topic.tracking.allow.reset", BOOLEAN, LOW, True, "Whether a request may reset those notes."),
    _option(
        *("listeners", LIST, LOW, "http://:8083"),
        "Where the REST API is served: http://host:port and https://host:port (see ssl.*), separated by commas. No host means this machine "
        "alone (127.0.0.1); 0.0.0.0 means all interfaces (Java's default).",
        all_of(non_empty_list, urls),
    ),
    _option("rest.advertised.host.name", STRING, LOW, None, "Host that the worker calls its own in worker_id."),
    _option("rest.advertised.port", INT, LOW, None, "Port that the worker calls its own in worker_id."),
    _option("rest.advertised.listener", STRING, LOW, None, "Which listener, http or https, the worker calls its own."),
    _option("access.control.allow.origin", STRING, LOW, "", "Origins whose pages may call the REST API (CORS)."),
    _option("access.control.allow.methods", STRING, LOW, "", "Methods that such pages may use; empty allows GET, POST and HEAD."),
    _option("response.http.headers.config", STRING, LOW, "", "Headers added to the answers of the REST API.", header_rules),
    _option(
        *("ssl.client.auth", STRING, LOW, "none"),
        "Whether clients of an https listener show a certificate.",
        one_of("required", "requested", "none"),
    ),
    _option(
        *("rest.extension.classes", LIST, LOW, ""),
        "What extends the REST API: BasicAuthSecurityRestExtension (or its full Java name; see rest.basic.auth.file), or Python classes "
        "derived from standalone.rest.extension.RestExtension, as package.module:Class.",
    ),
    _option("admin.listeners", LIST, LOW, None, "Where /admin is served; not given: on `listeners`; empty: nowhere.", urls),
    _option(
        *("offset.storage.file.filename", STRING, HIGH, REQUIRED),
        "File of the source offsets. A file that Java's worker wrote is imported and kept beside it with the suffix .java.",
    ),
)


def _embedded_log_option(option):
    check = between(option.low, option.high) if option.type in (INT, LONG) else None
    return Option(option.name, option.type, LOW, option.doc, option.default, check)


_OWN = ConfigDef(
    _option(
        *("state.dir", STRING, MEDIUM, None),
        "Folder of what the worker remembers beside source offsets, and of the embedded log. Default: offset.storage.file.filename "
        "with `.state` after it.",
    ),
    _option(
        *("rest.basic.auth.file", STRING, MEDIUM, None),
        "File of `name=password` lines for BasicAuthSecurityRestExtension. Left out: the file that the JAAS entry KafkaConnect names "
        "(KAFKA_OPTS=-Djava.security.auth.login.config=FILE), as for Java.",
    ),
    _option(
        *("rest.allowed.hosts", LIST, MEDIUM, ""),
        "Names and addresses, beside its own, by which clients may call the REST API: what a proxy or a forwarded port makes of them. Its own "
        "are loopback, the listeners' hosts, the address at which a request arrives and rest.advertised.host.name. Requests that name another "
        "host are refused with 403, so that no page of a stranger's can pass for the worker's own (DNS rebinding); * lets all pass.",
    ),
    _option(
        *("rest.hide.secrets", BOOLEAN, MEDIUM, None),
        "Whether answers of the REST API show `[hidden]` in place of passwords that configurations hold (values of config providers are hidden "
        "in any case). Default: true, unless an extension asks who calls (rest.extension.classes): then they are shown, as Java shows them, so "
        "that tools which compare configurations find what they sent.",
    ),
    _option(
        *("files.allowed.paths", LIST, MEDIUM, None),
        "Folders and files, as absolute paths separated by commas, that file connectors may read and write, with all below them; what a "
        "symbolic link points at counts. Not given: all.",
        absolute_paths,
    ),
    _option(
        *("rest.ui.enable", BOOLEAN, LOW, True),
        "Whether the REST listener serves a web page at /ui: connectors, their configuration and offsets, topics and their newest records.",
    ),
    _option(
        *("pipeline.engine", STRING, LOW, "auto"),
        "What runs converters and transforms: `rows`, record by record; `spark`, whole batches in columns, computed by Spark; `auto` chooses for "
        "each batch.",
        one_of("auto", "spark", "rows"),
    ),
    _option(
        *("pipeline.columns.min.records", INT, LOW, 20000),
        "From how many records on `auto` sends a batch through Spark.",
        at_least(1),
    ),
    _option(
        *("pipeline.memory.bytes", LONG, MEDIUM, 512 << 20),
        "How much all tasks together may hold in memory between polling and acknowledgement.",
        at_least(1 << 20),
    ),
    _option(
        *("pipeline.task.memory.bytes", LONG, LOW, 64 << 20),
        "How much one task may hold in memory between polling and acknowledgement; a source that is ahead of the log waits.",
        at_least(1 << 16),
    ),
    _option(
        *("spark.start", STRING, LOW, "auto"),
        "When the Spark session starts, in the background: `auto`, as soon as a chain has something for Spark to compute; `eager`, with "
        "the worker; `lazy`, with the first batch that is large enough for it. Any other spark.* key is a setting of the session.",
        one_of("auto", "eager", "lazy"),
    ),
    *cluster.OPTIONS,
    _option(
        *("sql.functions", LIST, LOW, ""),
        "Python files (ending in .py) and modules, separated by commas, whose functions statements of SQL may call: those that are marked with "
        "@function(type) of standalone.streams.",
    ),
    *restarts.OPTIONS,
    _option(
        *("task.failure.exit", BOOLEAN, LOW, False),
        "Whether the worker ends, with exit code 4, once a task or a connector has failed permanently: it is not, or no more, restarted by "
        "task.restart.*.",
    ),
    _option(
        *("log.format", STRING, LOW, None),
        "How log lines look: `text`, as Connect's, or `json`, an object a line. The command's --log-format goes before it. Default: text.",
        one_of("text", "json"),
    ),
    *map(_embedded_log_option, EMBEDDED_LOG),
    _option(
        *("embedded.registry.enable", BOOLEAN, LOW, False),
        "Whether the worker's own schema registry starts with the worker. Left at false it starts once a converter asks for it "
        "(schema.registry.url=embedded, the default of converters beside the embedded log).",
    ),
    _option(
        *("embedded.registry.listener", STRING, LOW, "127.0.0.1:8081"),
        "host:port at which the worker's own schema registry is served, to any client of Confluent's registry. It asks nobody who they are.",
        registry_listener,
    ),
    _option(
        *("embedded.registry.file", STRING, LOW, None),
        "File of the schemas of the worker's own registry. Default: schemas.db in state.dir.",
    ),
)

WORKER = _KAFKA + exactly_once.OPTIONS + _OWN
