"""Request and response bodies: the JSON of Confluent's registry."""

import base64

from standalone.schema_registry.schema import AVRO, JSON, KINDS, Reference, RegistrySchema
from standalone.schema_registry.server import refusals
from standalone.schema_registry.server.refusals import Refusal

_REGISTER = {"schema", "schemaType", "references", "metadata", "ruleSet", "version", "id", "subject", "schemaTagsToAdd", "schemaTagsToRemove",
             "propagateSchemaTags", "guid", "deleted", "ts"}  # fmt: skip
_CONFIG = {"compatibility", "compatibilityLevel", "normalize", "alias", "validateFields", "validateNames", "validateRules", "compatibilityGroup",
           "compatibilityPolicy", "defaultMetadata", "overrideMetadata", "defaultRuleSet", "overrideRuleSet"}  # fmt: skip
_MAX_VERSION = (1 << 31) - 1


def schema_of(body):
    """The RegistrySchema of a request."""
    _known(body, _REGISTER)
    kind = body.get("schemaType") or AVRO
    kind = kind.upper() if isinstance(kind, str) else kind
    text = body.get("schema")
    if kind not in KINDS:
        raise refusals.invalid_schema(f"Invalid schema type {kind}")
    if text is None:
        raise refusals.invalid_schema("Empty schema")
    if not isinstance(text, str):
        raise Refusal(422, "schema must be a text that holds the schema")
    references = []
    for each in body.get("references") or ():
        try:
            references.append(Reference(str(each["name"]), str(each["subject"]), int(each["version"])))
        except (KeyError, TypeError, ValueError):
            raise Refusal(422, "references must be objects with name, subject and version") from None
    return RegistrySchema(text, kind, tuple(references))


def config_of(body):
    return _known(body, _CONFIG)


def _known(body, names):
    if not isinstance(body, dict):
        raise Refusal(400, "The body must be a JSON object")
    strange = next((each for each in body if each not in names), None)
    if strange is not None:
        raise Refusal(422, f"Unrecognized field: {strange}")
    return body


def version_of(text):
    """A number, or `latest`."""
    if text in ("latest", "-1"):
        return "latest"
    try:
        number = int(text)
    except ValueError:
        raise refusals.invalid_version(text) from None
    if not 1 <= number <= _MAX_VERSION:
        raise refusals.invalid_version(text)
    return number


def shown_schema(stored, registry, form=""):
    """The schema alone, for /schemas/ids/…."""
    shown = {"schema": text_of(stored, registry, form)}
    if stored.schema.kind != AVRO:
        shown["schemaType"] = stored.schema.kind
    if stored.schema.references:
        shown["references"] = [{"name": each.name, "subject": each.subject, "version": each.version} for each in stored.schema.references]
    for name, value in (("metadata", stored.metadata), ("ruleSet", stored.rules)):
        if value is not None:
            shown[name] = value
    return shown


def shown_version(stored, registry, form=""):
    """A version of a subject."""
    shown = {"subject": str(stored.subject), "version": stored.version, "id": stored.id, "guid": stored.guid, **shown_schema(stored, registry, form)}
    if stored.deleted:
        shown["deleted"] = True
    return shown


def text_of(stored, registry, form=""):
    """The schema in the requested format: for Protobuf, `serialized` is its descriptor in base64, for Confluent's Python client."""
    if form == "serialized" and stored.schema.kind not in (AVRO, JSON):
        return base64.b64encode(registry.serialized(stored, stored.subject or _any_subject())).decode()
    return stored.schema.text


def _any_subject():
    from standalone.schema_registry.server.settings import EVERYWHERE

    return EVERYWHERE
