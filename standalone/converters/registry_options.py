"""Options shared by all converters with a schema registry, with Confluent's names and defaults."""

import logging
import uuid

from standalone import BOOLEAN, HIGH, INT, LIST, LOW, MEDIUM, PASSWORD, SHORT, STRING, Option, at_least, case_insensitive_one_of, one_of
from standalone.config import Check
from standalone.converters.part import PART
from standalone.converters.subject_names import ASSOCIATED, STRATEGIES
from standalone.schema_registry.keys import CLIENT

log = logging.getLogger(__name__)

_SCHEMA_ID = "io.confluent.kafka.serializers.schema.id."
PREFIX_ID, HEADER_ID = f"{_SCHEMA_ID}PrefixSchemaIdSerializer", f"{_SCHEMA_ID}HeaderSchemaIdSerializer"
DUAL_ID = f"{_SCHEMA_ID}DualSchemaIdDeserializer"
NULL_CONTEXT = "io.confluent.kafka.serializers.context.NullContextNameStrategy"
_CEL = "io.confluent.kafka.schemaregistry.rules.cel.CelValidator"


NO_RULES = "Rules of data contracts are not run here"
NO_CLASSES = "Values become structs, not objects of classes"

# Options accepted for compatibility with Java configurations, and why they have no effect here
WITHOUT_EFFECT = {
    "propagate.schema.tags": NO_RULES,
    "rule.executors": NO_RULES,
    "rule.actions": NO_RULES,
    "rule.service.loader.enable": NO_RULES,
    "rule.metrics.enable": NO_RULES,
    "validation.rules.execution": NO_RULES,
    "validation.rules.executor.class": NO_RULES,
    "validation.rules.fail.fast": NO_RULES,
    "execution.environment": NO_RULES,
    "schema.reflection": NO_CLASSES,
    "schema.format": "Schemas are fetched in the format in which they are registered",
}


def without_effect(reasons):
    """Return a function that makes options without effect; `reasons` gives the reason for each."""

    def option(name, kind, importance, default, check=None):
        return Option(name, kind, importance, f"Has no effect. {reasons[name]}.", default, check)

    return option


_unused = without_effect(WITHOUT_EFFECT)


def _part_options(part):
    return (
        Option(
            f"{part}.subject.name.strategy",
            STRING,
            MEDIUM,
            f"How subjects of {part} schemas are named: by topic (Topic, or Associated, which is the same here), by the "
            "record name, or by both.",
            ASSOCIATED,
            one_of(*STRATEGIES),
        ),
        Option(
            f"{part}.schema.id.serializer",
            STRING,
            MEDIUM,
            f"How messages identify the {part}'s schema: by its id before the {part}'s bytes, or by its GUID in the header "
            f"__{part}_schema_id.",
            PREFIX_ID,
            one_of(PREFIX_ID, HEADER_ID),
        ),
        Option(
            f"{part}.schema.id.deserializer",
            STRING,
            MEDIUM,
            f"Where to find the identifier of a {part}'s schema: in the header __{part}_schema_id and, if absent, before the "
            f"{part}'s bytes; or only there.",
            DUAL_ID,
            one_of(DUAL_ID, f"{_SCHEMA_ID}PrefixSchemaIdDeserializer"),
        ),
    )


def _client_option(name, **changes):
    """The registry client's option, as converters declare it."""
    found = next(option for option in CLIENT if option.name == name)
    attributes = {field: getattr(found, field) for field in ("name", "type", "importance", "doc", "default", "check")}
    return Option(**{**attributes, **changes})


_SSL = (
    ("protocol", STRING, MEDIUM, "TLSv1.3", "The newest TLS version to use."),
    ("provider", STRING, MEDIUM, None, "Has no effect: Python's own TLS is used."),
    ("cipher.suites", LIST, LOW, None, "Allowed cipher suites. Default: all."),
    ("enabled.protocols", LIST, MEDIUM, ["TLSv1.2", "TLSv1.3"], "Allowed TLS versions."),
    ("keystore.type", STRING, MEDIUM, "JKS", "JKS, PKCS12 or PEM."),
    ("keystore.location", STRING, HIGH, None, "File with the client's key and certificate."),
    ("keystore.password", PASSWORD, HIGH, None, "Password of that file."),
    ("key.password", PASSWORD, HIGH, None, "Password of the key in it."),
    ("keystore.key", PASSWORD, HIGH, None, "The client's key as PEM."),
    ("keystore.certificate.chain", PASSWORD, HIGH, None, "The client's certificates as PEM."),
    ("truststore.certificates", PASSWORD, HIGH, None, "Trusted certificates, as PEM."),
    ("truststore.type", STRING, MEDIUM, "JKS", "JKS, PKCS12 or PEM."),
    ("truststore.location", STRING, HIGH, None, "File with the trusted certificates."),
    ("truststore.password", PASSWORD, HIGH, None, "Password of that file."),
    ("keymanager.algorithm", STRING, LOW, "SunX509", "Has no effect: Python's own TLS is used."),
    ("trustmanager.algorithm", STRING, LOW, "PKIX", "Has no effect: Python's own TLS is used."),
    ("endpoint.identification.algorithm", STRING, LOW, "https", "Empty: do not verify that the certificate belongs to the host."),
    ("secure.random.implementation", STRING, LOW, None, "Has no effect: Python's own TLS is used."),
    ("engine.factory.class", STRING, LOW, None, "Has no effect: Python's own TLS is used."),
)  # fmt: skip


def _is_guid(text):
    try:
        return text is None or bool(uuid.UUID(text))
    except ValueError:
        return False


_IS_GUID = Check("a GUID", _is_guid, "must be a GUID, such as 79c3ca44-1e0a-4d33-a5cf-2e1f04a3b2c1")

OPTIONS = (
    PART,
    _client_option("schema.registry.url"),
    _client_option("schema.registry.url.randomize"),
    _client_option("max.schemas.per.subject"),
    Option("normalize.schemas", BOOLEAN, MEDIUM, "Let the registry normalize a schema before it is compared or stored.", False),
    Option("auto.register.schemas", BOOLEAN, MEDIUM, "Register schemas of written values; else they must be registered already.", True),
    _unused("propagate.schema.tags", BOOLEAN, LOW, False),
    Option("use.schema.id", INT, LOW, "Write with the schema of this id if auto.register.schemas=false; -1 for none.", -1),
    Option("use.schema.guid", STRING, LOW, "Like use.schema.id, by the schema's GUID; use.schema.id takes precedence.", None, _IS_GUID),
    Option("id.compatibility.strict", BOOLEAN, LOW, "With use.schema.id or .guid: reject a schema that is not compatible with that one.", True),
    Option("use.latest.version", BOOLEAN, LOW, "Write with the newest schema of the subject if auto.register.schemas=false.", False),
    Option("latest.compatibility.strict", BOOLEAN, LOW, "With use.latest.version: reject a schema that is not compatible with the newest one.", True),
    _client_option("latest.cache.size"),
    _client_option("latest.cache.ttl.sec", type=INT, default=-1),
    Option("use.latest.with.metadata", STRING, LOW, "Write with the newest schema with this metadata: comma-separated name=value.", None),
    _unused("schema.format", STRING, LOW, None),
    _unused("execution.environment", STRING, MEDIUM, None, case_insensitive_one_of("all", "client", "gateway", "server", "none")),
    _unused("rule.executors", LIST, LOW, []),
    _unused("rule.actions", LIST, LOW, []),
    _unused("rule.service.loader.enable", BOOLEAN, LOW, True),
    _unused("rule.metrics.enable", BOOLEAN, LOW, True),
    _unused("validation.rules.executor.class", STRING, LOW, _CEL),
    _unused("validation.rules.fail.fast", BOOLEAN, LOW, False),
    _client_option("basic.auth.credentials.source"),
    _client_option("bearer.auth.credentials.source"),
    _client_option("schema.registry.basic.auth.user.info"),
    _client_option("basic.auth.user.info"),
    _client_option("bearer.auth.token"),
    _client_option("bearer.auth.issuer.endpoint.url"),
    _client_option("bearer.auth.client.id"),
    _client_option("bearer.auth.client.secret"),
    _client_option("bearer.auth.scope"),
    Option("bearer.auth.scope.claim.name", STRING, LOW, "Has no effect: the issuer's token is sent unchanged.", "scope"),
    Option("bearer.auth.sub.claim.name", STRING, LOW, "Has no effect: the issuer's token is sent unchanged.", "sub"),
    _client_option("bearer.auth.identity.pool.id"),
    _client_option("bearer.auth.logical.cluster"),
    _client_option("bearer.auth.cache.expiry.buffer.seconds", type=SHORT),
    Option("bearer.auth.custom.provider.class", STRING, MEDIUM, "Has no effect: Java classes are not supported.", None),
    Option("context.name.strategy", STRING, MEDIUM, "The context of subjects: the default one.", NULL_CONTEXT, one_of(NULL_CONTEXT)),
    *_part_options("key"),
    *_part_options("value"),
    _unused("schema.reflection", BOOLEAN, LOW, False),
    _client_option("proxy.host"),
    _client_option("proxy.port"),
    _client_option("http.connect.timeout.ms"),
    _client_option("http.read.timeout.ms"),
    _client_option("max.retries"),
    _client_option("retries.wait.ms"),
    _client_option("retries.max.wait.ms"),
    *(Option(f"schema.registry.ssl.{name}", kind, importance, doc, default) for name, kind, importance, default, doc in _SSL),
)  # fmt: skip

DATA_OPTIONS = (
    Option("schemas.cache.config", INT, LOW, "How many schemas are cached.", 1000, at_least(1)),
    Option("generalized.sum.type.support", BOOLEAN, MEDIUM, "Describe enums and unions by parameters that all three formats share.", False),
    Option("ignore.default.for.nullables", BOOLEAN, MEDIUM, "Write a null in an optional field as null instead of the field's default.", False),
)
_RULES_FROM = case_insensitive_one_of("disabled", "before_domain_rules", "after_domain_rules")
VALIDATION_RULES = _unused("validation.rules.execution", STRING, MEDIUM, "DISABLED", _RULES_FROM)


def tell_of_unused(name, config, more=()):
    """Log once which of the configured options have no effect, and why."""
    for key, reason in {**WITHOUT_EFFECT, **dict(more)}.items():
        if key in getattr(config, "originals", {}):
            log.warning("%s: %s has no effect. %s.", name, key, reason)
