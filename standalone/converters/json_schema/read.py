"""Convert JSON Schemas to Connect schemas like Confluent's converter. Recursive schemas are rejected: Connect schemas cannot be recursive."""

import logging

from standalone import DataError, Field, Schema
from standalone.converters.json_schema.write import ENUM, NULL_MARKER, ONE_OF, UNION_PREFIX
from standalone.converters.shared_names import GENERAL_ENUM, GENERAL_UNION
from standalone.data import schema as s
from standalone.data.struct import validate_value

log = logging.getLogger(__name__)

_CONNECT_NUMBERS = {s.INT8, s.INT16, s.INT32, s.INT64, s.FLOAT32, s.FLOAT64, s.BYTES}


class JsonSchemaReader:
    """`resolve(reference)` returns the parsed schema of a $ref, `value_of(schema, node)` the value of a default's JSON."""

    def __init__(self, resolve, value_of, generalized=False, optional_if_not_required=False, flattens_singletons=True):
        self._resolve, self._value_of = resolve, value_of
        self._generalized, self._optional_if_not_required = generalized, optional_if_not_required
        self._flattens_singletons = flattens_singletons
        self._open = []  # $refs being resolved
        self._unions = 0

    def schema(self, node, version=None):
        return self._of(node, version=version)

    def _of(self, node, optional=False, version=None):
        if not isinstance(node, dict):
            raise DataError(f"A JSON Schema needs a type to read values; found {node!r}.")
        if "$ref" in node:
            return self._referred(node["$ref"], optional, version)
        if "allOf" in node:
            return self._all_of(node, optional, version)
        members = node.get("oneOf") or node.get("anyOf")
        if members is None and isinstance(node.get("type"), list):
            members = [{**node, "type": each} for each in node["type"]]
            if len(members) == 1:
                return self._of(members[0], optional, version)
        if members is not None:
            others = [each for each in members if not _is_null(each)]
            if len(members) == 1 and self._flattens_singletons:
                return self._of(members[0], optional, version)
            if len(members) == 2 and len(others) == 1:
                return self._of(others[0], True, version)
            said = self._union(members)
        else:
            said = self._plain(node)
        return self._described(said, node, optional, version)

    def _referred(self, reference, optional, version):
        if reference in self._open:
            raise DataError(f"The JSON Schema refers to itself by '{reference}', and Connect schemas cannot be recursive.")
        self._open.append(reference)
        try:
            return self._of(self._resolve(reference), optional, version)
        finally:
            self._open.pop()

    def _union(self, members):
        name = f"{UNION_PREFIX}{self._unions}" if self._generalized else ONE_OF
        self._unions += 1
        said = {"type": s.STRUCT, "name": name, "fields": [], "optional": any(map(_is_null, members))}
        if self._generalized:
            said["parameters"] = {GENERAL_UNION: name}
        prefix = f"{UNION_PREFIX}field_" if self._generalized else f"{ONE_OF}.field."
        for at, member in enumerate(each for each in members if not _is_null(each)):
            said["fields"].append(Field(f"{prefix}{at}", at, self._of(member, True)))
        return said

    def _plain(self, node):
        kind, connect = node.get("type"), node.get("connect.type")
        if "enum" in node and kind in (None, "string"):
            return self._enum(node["enum"])
        if "const" in node and kind is None:
            kind = _type_of(node["const"])
        if kind is None:
            kind = "object" if "properties" in node or "additionalProperties" in node else "array" if "items" in node else None
        if kind == "boolean":
            return {"type": s.BOOLEAN}
        if kind in ("integer", "number"):
            if connect is not None and connect not in _CONNECT_NUMBERS:
                raise DataError(f"The connect.type of a number is one of {', '.join(sorted(_CONNECT_NUMBERS))}; found {connect!r}.")
            return {"type": connect or (s.INT64 if kind == "integer" else s.FLOAT64)}
        if kind == "string":
            return {"type": s.BYTES if connect == s.BYTES else s.STRING}
        if kind == "array":
            return self._array(node, connect)
        if kind == "object":
            return self._object(node, connect)
        raise DataError(
            f"A JSON Schema of type {kind!r} has no Connect schema. Use boolean, integer, number, string, array, object, or a union."
        )

    def _enum(self, symbols):
        name = GENERAL_ENUM if self._generalized else ENUM
        parameters = {name: ""}
        for at, each in enumerate(symbols):
            symbol = NULL_MARKER if each is None else str(each)
            parameters[f"{name}.{symbol}"] = str(at) if self._generalized else symbol
        return {"type": s.STRING, "parameters": parameters}

    def _array(self, node, connect):
        items = node.get("items")
        if not isinstance(items, dict):
            raise DataError("A JSON Schema of an array needs the schema of its items: 'items' is missing, or a list.")
        if connect == s.MAP and "properties" in items:
            entry = items["properties"]
            return {"type": s.MAP, "key_schema": self._of(entry["key"]), "value_schema": self._of(entry["value"])}
        return {"type": s.ARRAY, "value_schema": self._of(items)}

    def _object(self, node, connect):
        if connect == s.MAP:
            return {"type": s.MAP, "key_schema": Schema.STRING, "value_schema": self._of(node["additionalProperties"])}
        return {"type": s.STRUCT, "fields": self._fields(node.get("properties") or {}, node.get("required") or ())}

    def _fields(self, properties, required):
        placed = {}
        for name, each in properties.items():
            index = each.get("connect.index") if isinstance(each, dict) else None
            placed[len(placed) if index is None else index] = name
        fields = []
        for index in sorted(placed):
            name = placed[index]
            optional = self._optional_if_not_required and name not in required
            fields.append(Field(name, len(fields), self._of(properties[name], optional)))
        return fields

    def _all_of(self, node, optional, version):
        """allOf: for objects, merge their properties; otherwise use the most specific schema."""
        properties, required = {}, set()
        self._collect({**node}, properties, required)
        if properties:
            return self._described({"type": s.STRUCT, "fields": self._fields(properties, required)}, node, optional, version)
        parts = [{key: each for key, each in node.items() if key != "allOf"}, *node["allOf"]]
        for wanted in (
            lambda each: "oneOf" in each or "anyOf" in each,
            lambda each: "enum" in each,
            lambda each: "type" in each,
            lambda each: "$ref" in each,
        ):
            for part in parts:
                if wanted(part):
                    return self._of(part, optional, version)
        raise DataError("A JSON Schema with 'allOf' has no type, in itself or within 'allOf'.")

    def _collect(self, node, properties, required):
        properties.update(node.get("properties") or {})
        required.update(node.get("required") or ())
        for part in node.get("allOf") or ():
            self._collect(self._resolve(part["$ref"]) if "$ref" in part else part, properties, required)

    def _described(self, said, node, optional, version):
        parameters = {**said.pop("parameters", {}), **(node.get("connect.parameters") or {})}
        own = node.get("connect.version", version)
        said = {"optional": optional, **said, "parameters": parameters, "version": own, "doc": node.get("description")}
        said["optional"] = said["optional"] or optional
        said["name"] = said.get("name") or node.get("title")
        schema = Schema(**said)
        if node.get("default") is None or schema.type == s.STRUCT:
            return schema
        try:
            value = self._value_of(schema, node["default"])
            validate_value(schema, value)
        except DataError as error:
            log.warning("An invalid default in the JSON Schema is ignored: %.100r: %s", node["default"], error)
            return schema
        return schema.with_(default=value)


def _is_null(node):
    return isinstance(node, dict) and node.get("type") == "null"


def _type_of(value):
    return "boolean" if isinstance(value, bool) else "integer" if isinstance(value, int) else "number" if isinstance(value, float) else "string"
