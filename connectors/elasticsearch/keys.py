"""The keys of ElasticsearchSink, with the names of Confluent's connector, and conflicts between them."""

import re
import urllib.parse

from connectors import security_keys
from standalone import (
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
    ConfigError,
    Option,
    at_least,
    between,
    case_insensitive_one_of,
    non_empty,
)

MAX_INT = 2**31 - 1
DAYS_7, DAY, HOURS_12 = 604_800_000, 86_400_000, 43_200_000
HTTPS = "elastic.https."
DISABLED, INDEX, DATASTREAM, ALIAS_INDEX, ALIAS_DATASTREAM = "DISABLED", "INDEX", "DATASTREAM", "ALIAS_INDEX", "ALIAS_DATASTREAM"
_STREAM_PART = re.compile(r'[^\\/*?"<>| ,#\-:A-Z]{0,100}')
_TOPIC = "${topic}"


def _are_addresses(name, value):
    """Addresses like http://host:9200."""
    for each in value or [""]:
        found = urllib.parse.urlsplit(each)
        if found.scheme not in ("http", "https") or not found.hostname:
            raise ConfigError(f"'{each}' is not an address: write http://host:9200, or several separated by commas")


def _stream_part(name, value):
    r"""At most 100 characters in lower case, none of \ / * ? " < > | space , # - :"""
    if value and not _STREAM_PART.fullmatch(value.replace(_TOPIC, "")):
        rule = r'100 characters in lower case at most, none of \ / * ? " < > | , # - : or a space'
        raise ConfigError(f"'{value}' is not part of a data stream's name: {rule}")


def _keytab(name, value):
    """A file whose name ends in keytab."""
    if value is not None and not value.endswith("keytab"):
        raise ConfigError(f"'{value}' is not a keytab: its name must end in keytab")


def _connection():
    def option(name, kind, importance, doc, **rest):
        return Option(name, kind, importance, doc, group="Connector", **rest)

    yield option("connection.url", LIST, HIGH, "Addresses of the nodes, used round-robin; unreachable ones are skipped.", check=_are_addresses)
    yield option("connection.username", STRING, MEDIUM, "Name to log in with.", default=None)
    yield option("connection.password", PASSWORD, MEDIUM, "Its password.", default=None)
    yield option(
        "connection.api.key", PASSWORD, MEDIUM, "An encoded API key, as issued by the server, instead of name and password.", default=None
    )
    yield option(
        "external.resource.usage", STRING, HIGH, "Whether topics go to existing resources, named in topic.to.external.resource.mapping.",
        default=DISABLED, check=case_insensitive_one_of("index", "datastream", "alias_index", "alias_datastream", "disabled"),
    )  # fmt: skip
    yield option("topic.to.external.resource.mapping", LIST, HIGH, "topic:resource pairs: the target of each topic.", default=[])
    yield option("max.external.resource.mappings", INT, MEDIUM, "Maximum number of such pairs.", default=15, check=at_least(1))
    yield option(
        "data.stream.type", STRING, LOW, "Type of data stream: logs, metrics, or another that has an index template; none: topics go to indices.",
        default="NONE", recommend=lambda name, parsed: ["logs", "metrics", "none"], check=non_empty,
    )  # fmt: skip
    yield option("data.stream.dataset", STRING, LOW, "The second part of the data stream's name.", default="", check=_stream_part)
    yield option("data.stream.namespace", STRING, LOW, "Its third part; ${topic} is the topic's name.", default=_TOPIC, check=_stream_part)
    yield option(
        "data.stream.timestamp.field", LIST, LOW, "The first of these fields in a document becomes @timestamp; else the record's timestamp does.",
        default=[],
    )  # fmt: skip
    yield option("batch.size", INT, MEDIUM, "Maximum documents per request.", default=2000, check=between(1, 1_000_000))
    yield option("bulk.size.bytes", LONG, LOW, "Approximate maximum bytes per request; -1: no limit.", default=5_242_880, check=between(-1, MAX_INT))
    yield option("max.in.flight.requests", INT, MEDIUM, "Maximum requests in flight.", default=5, check=between(1, 1000))
    yield option(
        "max.buffered.records", INT, LOW, "Maximum documents buffered by a task; then it accepts no more.", default=20000, check=between(1, MAX_INT)
    )
    yield option("linger.ms", LONG, LOW, "How long an incomplete request waits for more documents.", default=1, check=between(0, DAYS_7))
    yield option(
        "flush.timeout.ms", LONG, LOW, "Timeout of a flush, and of documents waiting for a buffer.", default=180_000, check=between(1000, DAYS_7)
    )
    yield option("flush.synchronously", BOOLEAN, LOW, "Whether a commit waits until everything is acknowledged.", default=False)
    yield option(
        "max.retries", INT, LOW, "Maximum retries of a request, or of its temporarily rejected documents.",
        default=5, check=between(0, MAX_INT),
    )  # fmt: skip
    yield option("retry.backoff.ms", LONG, LOW, "Backoff before the first retry; it doubles with each.", default=100, check=between(0, DAY))
    yield option("connection.compression", BOOLEAN, LOW, "Whether requests are compressed (gzip).", default=False)
    yield option(
        "max.connection.idle.time.ms", INT, LOW, "Connections idle for longer are replaced; -1: never.", default=60_000, check=between(-1, DAY)
    )
    yield option("connection.timeout.ms", INT, LOW, "Connection timeout.", default=1000, check=between(0, HOURS_12))
    yield option("read.timeout.ms", INT, LOW, "Timeout of a response.", default=3000, check=between(0, DAYS_7))
    yield option("use.autogenerated.ids", BOOLEAN, MEDIUM, "Whether the server generates ids; retries then create duplicates.", default=False)
    yield option("type.name", STRING, LOW, "Has no effect: servers only have the type _doc.", default="_doc")


def _conversion():
    def option(name, kind, importance, doc, **rest):
        return Option(name, kind, importance, doc, group="Data Conversion", **rest)

    yield option("key.ignore", BOOLEAN, HIGH, "Whether ids are topic+partition+offset, not the key.", default=False)
    yield option("schema.ignore", BOOLEAN, LOW, "Whether the server detects field types itself instead of using schemas.", default=False)
    yield option(
        "compact.map.entries", BOOLEAN, LOW, 'Whether maps with string keys are objects; else lists of {"key": …, "value": …}.', default=True
    )
    yield option("topic.key.ignore", LIST, LOW, "Topics to which key.ignore=true applies.", default=[])
    yield option("topic.schema.ignore", LIST, LOW, "Topics to which schema.ignore=true applies.", default=[])
    yield option("drop.invalid.message", BOOLEAN, LOW, "Whether invalid documents are dropped; else they fail the task.", default=False)
    yield option(
        "behavior.on.null.values", STRING, LOW, "What to do with a null value: skip it, delete the document, or fail.",
        default="FAIL", check=case_insensitive_one_of("ignore", "delete", "fail"),
    )  # fmt: skip
    yield option(
        "behavior.on.malformed.documents", STRING, LOW,
        "What to do with a document that the server rejects: skip it, log a warning, fail the task, or report it (dead letter queue).",
        default="FAIL", check=case_insensitive_one_of("ignore", "warn", "fail", "report"),
    )  # fmt: skip
    yield option("external.version.header", STRING, LOW, "The header with a document's version, instead of the offset.", default="")
    yield option(
        "write.method", STRING, LOW, "Whether a record replaces the document (insert) or is merged into it (upsert).",
        default="INSERT", check=case_insensitive_one_of("insert", "upsert"),
    )  # fmt: skip


KEYS = ConfigDef(
    *_connection(),
    *_conversion(),
    Option("proxy.host", STRING, LOW, "Host of a proxy to the server.", default="", group="Proxy"),
    Option("proxy.port", INT, LOW, "Its port.", default=8080, check=between(1, 65535), group="Proxy"),
    Option("proxy.username", STRING, LOW, "User name for the proxy.", default="", group="Proxy"),
    Option("proxy.password", PASSWORD, LOW, "Its password.", default=None, group="Proxy"),
    Option(
        "elastic.security.protocol", STRING, MEDIUM, "Whether elastic.https.* applies.",
        default="PLAINTEXT", check=case_insensitive_one_of("plaintext", "ssl"), group="Security",
    ),
    *security_keys.options(security_keys.TLS, "TLS setting for the server, as in Kafka's clients.", HTTPS, group="Security"),
    Option("kerberos.user.principal", STRING, LOW, "Kerberos is not supported here; see docs/elasticsearch.md.", default=None, group="Kerberos"),
    Option("kerberos.keytab.path", STRING, LOW, "Kerberos is not supported here.", default=None, check=_keytab, group="Kerberos"),
    Option("taskId", INT, LOW, "The task's number.", default=0, internal=True),
)  # fmt: skip


def is_upsert(config):
    return config["write.method"].upper() == "UPSERT"


def is_stream(config):
    """Whether records go to data streams."""
    return config["data.stream.type"].upper() != "NONE" or config["external.resource.usage"].upper() in (DATASTREAM, ALIAS_DATASTREAM)


def resources(config):
    """Return {topic: index, alias or data stream} of the configured pairs. Raise ConfigError."""
    found = {}
    for pair in config["topic.to.external.resource.mapping"]:
        topic, colon, resource = (part.strip() for part in pair.partition(":"))
        if not topic or not resource:
            raise ConfigError(f"'{pair}' is not a pair: write topic:resource")
        if topic in found:
            raise ConfigError(f"the topic '{topic}' is in two pairs")
        found[topic] = resource
    return found


def contradictions(config):
    """Return {key: message} of conflicting keys."""
    found = {}

    def both(one, other, message):
        found.setdefault(one, message)
        found.setdefault(other, message)

    if (config["connection.username"] is None) != (config["connection.password"] is None):
        both("connection.username", "connection.password", "connection.username and connection.password must both be set, or neither")
    if config["connection.username"] is not None and config["connection.api.key"] is not None:
        both("connection.username", "connection.api.key", "set either a name and a password, or an API key")
    if config["linger.ms"] > config["flush.timeout.ms"]:
        both("linger.ms", "flush.timeout.ms", f"linger.ms={config['linger.ms']} is more than flush.timeout.ms={config['flush.timeout.ms']}")
    needed = config["batch.size"] * config["max.in.flight.requests"]
    if config["max.buffered.records"] < needed:
        message = f"max.buffered.records must be at least batch.size times max.in.flight.requests, which is {needed}"
        for key in ("max.buffered.records", "batch.size", "max.in.flight.requests"):
            found[key] = message
    for key in ("kerberos.user.principal", "kerberos.keytab.path"):
        if config[key] is not None:
            found[key] = "Kerberos is not supported here: log in by connection.username or connection.api.key"
    if not config["proxy.host"]:
        for key in ("proxy.username", "proxy.password"):
            if config[key]:
                found[key] = f"{key} is set, but proxy.host is not"
    if bool(config["proxy.username"]) != (config["proxy.password"] is not None):
        both("proxy.username", "proxy.password", "proxy.username and proxy.password must both be set, or neither")
    _check_tls(config, found)
    _check_targets(config, found, both)
    _check_ways(config, found, both)
    return found


def _check_tls(config, found):
    secure = [url.startswith("https:") for url in config["connection.url"]]
    is_ssl = config["elastic.security.protocol"].upper() == "SSL"
    if is_ssl and not all(secure):
        found["elastic.security.protocol"] = "SSL, but not all addresses of connection.url begin with https://"
    if any(secure) and not all(secure):
        found["connection.url"] = "either all addresses must begin with https://, or none"


def _check_targets(config, found, both):
    usage, kind, pairs = config["external.resource.usage"].upper(), config["data.stream.type"].upper(), config["topic.to.external.resource.mapping"]
    if usage != DISABLED and (kind != "NONE" or config["data.stream.dataset"]):
        message = "set either data.stream.* or external.resource.usage"
        both("external.resource.usage", "data.stream.type", message)
        found["data.stream.dataset"] = message
    if (kind != "NONE") != bool(config["data.stream.dataset"]):
        both("data.stream.type", "data.stream.dataset", "data.stream.type and data.stream.dataset must both be set, or neither")
    if usage == DISABLED and pairs:
        both("external.resource.usage", "topic.to.external.resource.mapping", "pairs are given, but external.resource.usage is disabled")
    if usage != DISABLED and not pairs:
        both("external.resource.usage", "topic.to.external.resource.mapping", f"external.resource.usage={usage.lower()} needs topic:resource pairs")
    if len(pairs) > config["max.external.resource.mappings"]:
        most = config["max.external.resource.mappings"]
        found["topic.to.external.resource.mapping"] = f"{len(pairs)} pairs; max.external.resource.mappings={most}"
    try:
        known = resources(config)
    except ConfigError as error:
        found["topic.to.external.resource.mapping"] = str(error)
        return
    topics = {topic.strip() for topic in config.originals.get("topics", "").split(",") if topic.strip()}
    if usage != DISABLED and pairs and topics != set(known) and topics:
        wrong = ", ".join(sorted(topics ^ set(known)))
        found["topic.to.external.resource.mapping"] = f"topics and pairs must name the same topics; these occur in only one of them: {wrong}"


def _check_ways(config, found, both):
    if is_stream(config) and config["behavior.on.null.values"].upper() == "DELETE":
        found["behavior.on.null.values"] = "documents of data streams cannot be deleted: set ignore or fail"
    if is_upsert(config) and is_stream(config):
        found["write.method"] = "documents of data streams cannot be updated: set write.method=insert"
    if is_upsert(config) and config["use.autogenerated.ids"]:
        both("write.method", "use.autogenerated.ids", "upsert needs its own ids: set use.autogenerated.ids=false")
    if config["data.stream.timestamp.field"] and not is_stream(config):
        found["data.stream.timestamp.field"] = "is only for data streams"
    tolerates = config.originals.get("errors.tolerance", "none").strip().lower() == "all"
    keeps = config.originals.get("errors.deadletterqueue.topic.name") or config.originals.get("errors.log.enable", "").strip().lower() == "true"
    if config["behavior.on.malformed.documents"].upper() == "REPORT" and not (tolerates and keeps):
        found["behavior.on.malformed.documents"] = "report needs errors.tolerance=all and errors.deadletterqueue.topic.name"
