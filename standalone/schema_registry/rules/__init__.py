"""Validity, equality and compatibility of schemas: one module per schema type.

    parsed = parse(schema, references)       raises DataError with the reason
    parsed.text                              the stored text, identical for schemas that differ only in whitespace
    parsed.normalized                        identical for equivalent schemas
    parsed.misfits(older)                    why this schema cannot read data of the older one: Misfits

Misfits have the names of Confluent's registry, which users search for.
"""

from standalone.errors import DataError
from standalone.schema_registry.schema import AVRO, JSON, PROTOBUF


def parse(schema, references=None):
    """Parse a RegistrySchema with its references, {name: RegistrySchema}. Raises DataError."""
    if schema.kind == AVRO:
        from standalone.schema_registry.rules.avro import AvroSchema as found
    elif schema.kind == PROTOBUF:
        from standalone.schema_registry.rules.protobuf import ProtobufSchema as found
    elif schema.kind == JSON:
        from standalone.schema_registry.rules.json_schema import JsonSchema as found
    else:
        raise DataError(f"Invalid schema type {schema.kind}: the kinds are AVRO, PROTOBUF and JSON.")
    if not schema.text.strip():
        raise DataError("Empty schema: it has no text.")
    return found(schema.text, {name: each.text for name, each in (references or {}).items()})
