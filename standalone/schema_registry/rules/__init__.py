"""What makes a schema valid, when two are the same, and whether a newer one may follow an older: one file a kind.

    parsed = parse(schema, references)       raises DataError with the reason
    parsed.text                              as it is stored: two that differ in spaces alone are one
    parsed.normalized                        the same for two that mean the same
    parsed.misfits(older)                    why what was written with the older schema cannot be read with this one: Misfits

Confluent's registry names each kind of misfit; so do we, because people search for these names.
"""

from standalone.errors import DataError
from standalone.schema_registry.schema import AVRO, JSON, PROTOBUF


def parse(schema, references=None):
    """A RegistrySchema with {name: RegistrySchema} of what it refers to. Raises DataError."""
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
