"""Convert Connect schemas to JSON Schemas like Confluent's converter: properties that begin with "connect." hold what JSON Schema lacks."""

import json

from standalone import DataError
from standalone.converters.shared_names import GENERAL_ENUM, GENERAL_UNION
from standalone.data import schema as s

NAMESPACE = "io.confluent.connect.json"
ENUM, ONE_OF, ID = f"{NAMESPACE}.Enum", f"{NAMESPACE}.OneOf", f"{NAMESPACE}.Id"
NULL_MARKER = "<NULL>"
UNION_PREFIX = "connect_union_"
_NUMBERS = {s.INT8: "integer", s.INT16: "integer", s.INT32: "integer", s.INT64: "integer", s.FLOAT32: "number", s.FLOAT64: "number"}


def is_union(schema):
    return schema.type == s.STRUCT and (schema.name == ONE_OF or GENERAL_UNION in (schema.parameters or ()))


def has_text_keys(schema):
    """Whether a Connect map becomes a JSON object; others become lists of entries."""
    return schema.key_schema.type == s.STRING and not schema.key_schema.optional


class JsonSchemaWriter:
    """`value_json(schema, value)` returns a default's JSON."""

    def __init__(self, additional_properties, generalized, value_json):
        self._additional, self._generalized, self._value_json = additional_properties, generalized, value_json

    def text(self, schema):
        return json.dumps(self._of(schema), separators=(",", ":"), ensure_ascii=False)

    def _of(self, schema, index=None, ignores_optional=False):
        if schema.type == s.STRUCT and (is_union(schema) or schema.optional):
            said = self._union(schema) if is_union(schema) else {"oneOf": [{"type": "null"}, self._of(schema.with_(optional=False))]}
        else:
            said = self._described(self._base(schema), schema)
            if schema.optional and not ignores_optional:
                if index is not None:
                    return {"connect.index": index, "oneOf": [{"type": "null"}, said]}
                return {"oneOf": [{"type": "null"}, said]}
        return said if index is None else _with_index(said, index)

    def _union(self, schema):
        members = [self._of(field.schema.with_(optional=False), field.index, True) for field in schema.fields]
        return {"oneOf": [{"type": "null"}, *members] if schema.optional else members}

    def _base(self, schema):
        kind = schema.type
        if kind in _NUMBERS:
            return {"type": _NUMBERS[kind], "connect.type": kind}
        if kind == s.BOOLEAN:
            return {"type": "boolean"}
        if kind == s.STRING:
            parameters = schema.parameters or {}
            if GENERAL_ENUM in parameters or ENUM in parameters:
                name = (GENERAL_ENUM if self._generalized else ENUM) + "."
                symbols = [key[len(name) :] for key in parameters if key.startswith(name)]
                return {"enum": [None if each == NULL_MARKER else each for each in symbols]}
            return {"type": "string"}
        if kind == s.BYTES:
            return {"type": "number" if schema.name == s.DECIMAL else "string", "connect.type": "bytes"}
        if kind == s.ARRAY:
            return {"type": "array", "items": self._of(schema.value_schema)}
        if kind == s.MAP:
            if has_text_keys(schema):
                return {"type": "object", "connect.type": "map", "additionalProperties": self._of(schema.value_schema)}
            entry = {"key": self._of(schema.key_schema, 0), "value": self._of(schema.value_schema, 1)}
            return {"type": "array", "connect.type": "map", "items": {"type": "object", "properties": entry}}
        if kind == s.STRUCT:
            said = {"type": "object"}
            if schema.fields:
                said["properties"] = {field.name: self._of(field.schema, field.index) for field in schema.fields}
            if not self._additional:
                said["additionalProperties"] = False
            return said
        raise DataError(f"A schema of type {kind} has no JSON Schema.")

    def _described(self, said, schema):
        if schema.name is not None:
            said["title"] = schema.name
        if schema.version is not None:
            said["connect.version"] = schema.version
        if schema.doc is not None:
            said["description"] = schema.doc
        parameters = {key: value for key, value in (schema.parameters or {}).items() if not key.startswith(NAMESPACE)}
        if parameters:
            said["connect.parameters"] = parameters
        if schema.default is not None:
            said["default"] = self._value_json(schema, schema.default)
        if ID in (schema.parameters or ()):
            said["$id"] = schema.parameters[ID]
        return said


def _with_index(said, index):
    said["connect.index"] = index
    return said
