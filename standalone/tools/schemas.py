"""Schemas for those who work with a registry beside a worker: a client of it, and values in and out."""

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
    """Of `schema.registry.url`, `basic.auth.*` and so on. People wait: it tries again, not for minutes."""
    return SchemaRegistryClient.from_config({"max.retries": "1", "retries.wait.ms": "200", **props})


def props_of_worker(props):
    """The registry's keys in a worker's strings: those of its converters of values, else of keys; None where there are none."""
    for key in ("value.converter.", "key.converter."):
        found = with_prefix(props, key)
        if URL in found:
            return found
    return None


def writer_of(client, topic, part, kind, props):
    """The Writer of the keys or values (`part`) of a topic, by `value.schema`, `value.schema.id`, … as in Kafka's console tools."""
    text, id, references = (props.get(f"{part}.{name}") for name in ("schema", "schema.id", "refs"))
    if text is None and id is None:
        raise ConfigError.of({f"{part}.schema": f"is missing: the {kind} schema of what is written, or {part}.schema.id"})
    if id is not None:
        schema = client.schema_by_id(int(id))
    else:
        schema = RegistrySchema(text, KINDS[kind], tuple(Reference(**each) for each in json.loads(references or "[]")))
    if schema.kind != KINDS[kind]:
        raise ConfigError.of({f"{part}.schema.id": f"is the id of a schema of the kind {schema.kind}, not {KINDS[kind]}"})
    subject = props.get(f"{part}.subject") or f"{topic}-{part}"
    registers = id is None and props.get("auto.register", props.get("auto.register.schemas", "true")).lower() == "true"
    return Writer(client, subject, schema, registers, props.get("normalize.schemas", "false").lower() == "true")


def reader_of(client):
    return Reader(client)


def version_number(text):
    if text == "latest" or text.isdigit():
        return text if text == "latest" else int(text)
    raise BadRequestError(f"'{text}' is not a version: write a number, or latest.")
