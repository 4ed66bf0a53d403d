"""Schema registry access for commands: a client, and readers and writers of values."""

import json

from standalone.config import with_prefix
from standalone.errors import BadRequestError, ConfigError
from standalone.schema_registry.client import SchemaRegistryClient
from standalone.schema_registry.keys import URL
from standalone.schema_registry.schema import AVRO, JSON, PROTOBUF, Reference, RegistrySchema
from standalone.schema_registry.shown import differences, pretty, versions_of  # noqa: F401
from standalone.schema_registry.values import Reader, Writer

KINDS = {"avro": AVRO, "protobuf": PROTOBUF, "json-schema": JSON}


def client_of(props):
    """From `schema.registry.url`, `basic.auth.*` and so on. Retries only briefly, because a user is waiting."""
    return SchemaRegistryClient.from_config({"max.retries": "1", "retries.wait.ms": "200", **props})


def props_of_worker(props):
    """The registry's keys in a worker's properties: from its value converter, else its key converter; None if neither has any."""
    for key in ("value.converter.", "key.converter."):
        found = with_prefix(props, key)
        if URL in found:
            return found
    return None


def writer_of(client, topic, part, kind, props):
    """The Writer of a topic's keys or values (`part`), with the properties of Kafka's console tools: `value.schema`, `value.schema.id`, …"""
    text, id, references = (props.get(f"{part}.{name}") for name in ("schema", "schema.id", "refs"))
    if text is None and id is None:
        raise ConfigError.of({f"{part}.schema": f"is missing: give the {kind} schema, or {part}.schema.id"})
    if id is not None:
        schema = client.schema_by_id(int(id))
    else:
        schema = RegistrySchema(text, KINDS[kind], tuple(Reference(**each) for each in json.loads(references or "[]")))
    if schema.kind != KINDS[kind]:
        raise ConfigError.of({f"{part}.schema.id": f"is the id of a schema of type {schema.kind}, not {KINDS[kind]}"})
    subject = props.get(f"{part}.subject") or f"{topic}-{part}"
    registers = id is None and props.get("auto.register", props.get("auto.register.schemas", "true")).lower() == "true"
    return Writer(client, subject, schema, registers, props.get("normalize.schemas", "false").lower() == "true")


def reader_of(client):
    return Reader(client)


def version_number(text):
    if text == "latest" or text.isdigit():
        return text if text == "latest" else int(text)
    raise BadRequestError(f"'{text}' is not a version: use a number or latest.")
