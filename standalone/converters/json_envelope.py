"""Connect schemas as JSON and back: the "schema" of JsonConverter's envelope."""

from standalone import DataError, SchemaBuilder
from standalone.converters.json_text import quoted
from standalone.data import schema as s

_NAMES = {kind: kind for kind in s.PRIMITIVES} | {s.FLOAT32: "float", s.FLOAT64: "double"}
_TYPES = {name: kind for kind, name in _NAMES.items()}


def write_schema(schema, default_text, field=None):
    """Return a schema's JSON text, for field `field` if given. `default_text(schema)` returns its default's JSON."""
    if schema is None:
        return "null"
    if schema.type == s.STRUCT:
        fields = ",".join(write_schema(each.schema, default_text, each.name) for each in schema.fields)
        parts = ['"type":"struct"', f'"fields":[{fields}]']
    elif schema.type == s.ARRAY:
        parts = ['"type":"array"', f'"items":{write_schema(schema.value_schema, default_text)}']
    elif schema.type == s.MAP:
        keys, values = (write_schema(each, default_text) for each in (schema.key_schema, schema.value_schema))
        parts = ['"type":"map"', f'"keys":{keys}', f'"values":{values}']
    else:
        parts = [f'"type":"{_NAMES[schema.type]}"']
    parts.append(f'"optional":{"true" if schema.optional else "false"}')
    if schema.name is not None:
        parts.append(f'"name":{quoted(schema.name)}')
    if schema.version is not None:
        parts.append(f'"version":{schema.version}')
    if schema.doc is not None:
        parts.append(f'"doc":{quoted(schema.doc)}')
    if schema.parameters:
        pairs = ",".join(f"{quoted(name)}:{quoted(value)}" for name, value in schema.parameters.items())
        parts.append(f'"parameters":{{{pairs}}}')
    if schema.default is not None:
        parts.append(f'"default":{default_text(schema)}')
    if field is not None:
        parts.append(f'"field":{quoted(field)}')
    return "{" + ",".join(parts) + "}"


def read_schema(node, default_of):
    """Return the Schema of parsed JSON; None for null. `default_of(schema, node)` parses a default. Raise DataError if invalid."""
    if node is None:
        return None
    kind = node.get("type") if isinstance(node, dict) else None
    if not isinstance(kind, str):
        raise DataError(f"A JSON schema must be an object with a string 'type'; found {_shown(node)}.")
    if kind == s.STRUCT:
        builder = _struct(node, default_of)
    elif kind == s.ARRAY:
        builder = SchemaBuilder.array(read_schema(_part(node, "items", "array"), default_of))
    elif kind == s.MAP:
        keys, values = (read_schema(_part(node, name, "map"), default_of) for name in ("keys", "values"))
        builder = SchemaBuilder.map(keys, values)
    elif kind in _TYPES:
        builder = SchemaBuilder(_TYPES[kind])
    else:
        raise DataError(f"A JSON schema has the unknown type '{kind}'. Known types: {', '.join([*_TYPES, s.ARRAY, s.MAP, s.STRUCT])}.")
    builder.optional() if node.get("optional") is True else builder.required()
    if isinstance(node.get("name"), str):
        builder.name(node["name"])
    if isinstance(node.get("version"), int) and not isinstance(node["version"], bool):
        builder.version(((node["version"] + (1 << 31)) & 0xFFFFFFFF) - (1 << 31))
    if isinstance(node.get("doc"), str):
        builder.doc(node["doc"])
    if isinstance(node.get("parameters"), dict):
        for name, value in node["parameters"].items():
            if not isinstance(value, str):
                raise DataError(f"A JSON schema's parameters must be strings; '{name}' is {_shown(value)}.")
            builder.parameter(name, value)
    if "default" in node:
        default = default_of(builder.build(), node["default"])
        if default is not None or not builder.build().optional:
            builder.default(default)
    return builder.build()


def _struct(node, default_of):
    fields = node.get("fields")
    if not isinstance(fields, list):
        raise DataError(f"A JSON schema of a struct needs a list of 'fields'; found {_shown(fields)}.")
    builder = SchemaBuilder.struct()
    for each in fields:
        name = each.get("field") if isinstance(each, dict) else None
        if not isinstance(name, str):
            raise DataError(f"Each of a struct's 'fields' needs its name as 'field'; found {_shown(each)}.")
        builder.field(name, read_schema(each, default_of))
    return builder


def _part(node, name, kind):
    part = node.get(name)
    if part is None:
        raise DataError(f"A JSON schema of type {kind} needs '{name}': the schema of its items.")
    return part


def _shown(node):
    return f"{type(node).__name__} {str(node)[:60]}"
