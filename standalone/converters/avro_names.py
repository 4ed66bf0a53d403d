"""Names that Connect's schemas and Avro's carry for each other's sake."""

import re
from urllib.parse import quote_plus

NAMESPACE = "io.confluent.connect.avro"
DEFAULT_NAME = "ConnectDefault"
DEFAULT_FULL_NAME = f"{NAMESPACE}.{DEFAULT_NAME}"
MAP_ENTRY = "MapEntry"
UNION, ENUM, ANYTHING = f"{NAMESPACE}.Union", f"{NAMESPACE}.Enum", f"{NAMESPACE}.Anything"
RECORD_DOC, FIELD_DOC, ENUM_DOC = f"{NAMESPACE}.record.doc", f"{NAMESPACE}.field.doc.", f"{NAMESPACE}.enum.doc."
FIELD_DEFAULT, ENUM_DEFAULT = f"{NAMESPACE}.field.default", f"{NAMESPACE}.enum.default."
GENERAL_UNION, GENERAL_ENUM = "org.apache.kafka.connect.data.Union", "org.apache.kafka.connect.data.Enum"
UNION_PREFIX = "connect_union_"
FIELD_PREFIX = f"{UNION_PREFIX}field_"
FIXED_SIZE = "connect.fixed.size"
PRECISION = "connect.decimal.precision"
DEFAULT_PRECISION = 64

# Of values that have no schema: a record with one field set, or none for a null
ANYTHING_SCHEMA = (
    '{"type":"record","name":"Anything","namespace":"io.confluent.connect.avro","fields":['
    + ",".join(f'{{"name":"{each}","type":["null","{each}"],"default":null}}' for each in "boolean bytes double float int long string".split())
    + ',{"name":"array","type":["null",{"type":"array","items":"Anything"}]},'
    '{"name":"map","type":["null",{"type":"array","items":{"type":"record","name":"MapEntry","fields":'
    '[{"name":"key","type":"Anything"},{"name":"value","type":"Anything"}]}}]}]}'
)


def is_union(schema):
    """Whether a Connect struct stands for a union: of its fields one is set."""
    return schema.name == UNION or GENERAL_UNION in (schema.parameters or ())


def is_enum(schema):
    return schema.type == "string" and any(each in (schema.parameters or ()) for each in (GENERAL_ENUM, ENUM))


def is_fixed(schema):
    return schema.type == "bytes" and schema.name is not None and FIXED_SIZE in (schema.parameters or ())


def scrubbed(name, but_underscore=False):
    """A name of letters, digits and _ alone. Protobuf, moreover, takes none that begins with _."""
    if not name or re.fullmatch(r"[A-Za-z0-9_]+", name) and not _is_bad_start(name, but_underscore):
        return name
    encoded = quote_plus(name, safe="*")  # as Java's URLEncoder: it leaves letters, digits, '.', '-', '*' and '_'
    encoded = encoded.replace("~", "%7E")
    if _is_bad_start(encoded, but_underscore):
        encoded = "x" + encoded
    return re.sub(r"[^A-Za-z0-9_]", "_", encoded)


def _is_bad_start(name, but_underscore):
    return name[0].isdigit() or but_underscore and name[0] == "_"


def scrubbed_full(name):
    return ".".join(map(scrubbed, name.split("."))) if name else name
