"""Names that map between Connect's schemas and Avro's."""

from standalone.converters.shared_names import GENERAL_ENUM, GENERAL_UNION, scrubbed

NAMESPACE = "io.confluent.connect.avro"
DEFAULT_NAME = "ConnectDefault"
DEFAULT_FULL_NAME = f"{NAMESPACE}.{DEFAULT_NAME}"
MAP_ENTRY = "MapEntry"
UNION, ENUM, ANYTHING = f"{NAMESPACE}.Union", f"{NAMESPACE}.Enum", f"{NAMESPACE}.Anything"
RECORD_DOC, FIELD_DOC, ENUM_DOC = f"{NAMESPACE}.record.doc", f"{NAMESPACE}.field.doc.", f"{NAMESPACE}.enum.doc."
FIELD_DEFAULT, ENUM_DEFAULT = f"{NAMESPACE}.field.default", f"{NAMESPACE}.enum.default."
UNION_PREFIX = "connect_union_"
FIELD_PREFIX = f"{UNION_PREFIX}field_"
FIXED_SIZE = "connect.fixed.size"
PRECISION = "connect.decimal.precision"
DEFAULT_PRECISION = 64

# The schema of schemaless values: a record with one field set, or none for a null
ANYTHING_SCHEMA = (
    '{"type":"record","name":"Anything","namespace":"io.confluent.connect.avro","fields":['
    + ",".join(f'{{"name":"{each}","type":["null","{each}"],"default":null}}' for each in "boolean bytes double float int long string".split())
    + ',{"name":"array","type":["null",{"type":"array","items":"Anything"}]},'
    '{"name":"map","type":["null",{"type":"array","items":{"type":"record","name":"MapEntry","fields":'
    '[{"name":"key","type":"Anything"},{"name":"value","type":"Anything"}]}}]}]}'
)


def is_union(schema):
    """Whether a Connect struct represents a union: exactly one of its fields is set."""
    return schema.name == UNION or GENERAL_UNION in (schema.parameters or ())


def is_enum(schema):
    return schema.type == "string" and any(each in (schema.parameters or ()) for each in (GENERAL_ENUM, ENUM))


def is_fixed(schema):
    return schema.type == "bytes" and schema.name is not None and FIXED_SIZE in (schema.parameters or ())


def scrubbed_full(name):
    return ".".join(map(scrubbed, name.split("."))) if name else name
