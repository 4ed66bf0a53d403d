"""An Avro schema as a tree: resolves names and references, and validates the schema."""

import json
import re

from standalone import DataError

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
NAMED = ("record", "enum", "fixed")
NO_DEFAULT = object()
_KEYS = {"type", "name", "namespace", "doc", "fields", "symbols", "items", "values", "size", "default", "aliases", "order"}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Node:
    """One type. `name` is the full name of a record, enum or fixed; `props` are the attributes outside the Avro specification, and logicalType."""

    __slots__ = ("type", "name", "doc", "props", "fields", "inner", "symbols", "size", "branches", "default")

    def __init__(self, type, **parts):
        self.type = type
        for name in self.__slots__[1:]:
            setattr(self, name, parts.get(name))
        self.props = self.props or {}

    @property
    def logical(self):
        return self.props.get("logicalType")

    @property
    def simple_name(self):
        return self.name.rpartition(".")[2]

    @property
    def namespace(self):
        return self.name.rpartition(".")[0]


class NodeField:
    __slots__ = ("name", "node", "doc", "default")

    def __init__(self, name, node, doc, default):
        self.name, self.node, self.doc, self.default = name, node, doc, default


def parse(text, references=()):
    """Parse a schema's text into a Node. `references` are the texts of referenced schemas, dependencies first.

    Raises DataError if it is not an Avro schema, or is recursive, which no Connect schema can be.
    """
    names = {}
    for reference in references:
        _Parser(names).node(_json(reference), "")
    return _Parser(names).node(_json(text), "")


def _json(text):
    try:
        return json.loads(text)
    except ValueError as error:
        stripped = text.strip()
        if _NAME.fullmatch(stripped):  # older registries may store int for "int"
            return stripped
        raise DataError(f"The schema is not JSON: {error}. It begins with {text[:60]!r}.") from None


class _Parser:
    def __init__(self, names):
        self._names = names  # full name -> Node; None while its fields are being parsed

    def node(self, said, namespace):
        if isinstance(said, str):
            return self._by_name(said, namespace)
        if isinstance(said, list):
            return self._union(said, namespace)
        if not isinstance(said, dict) or "type" not in said:
            raise DataError(f"An Avro type must be a name, a list or an object with a 'type'; found {json.dumps(said)[:80]}.")
        kind = said["type"]
        if isinstance(kind, (dict, list)):
            return self.node(kind, namespace)
        props = {key: value for key, value in said.items() if key not in _KEYS}
        if kind in PRIMITIVES:
            return Node(kind, props=props)
        if kind == "array":
            return Node(kind, inner=self.node(_of(said, "items"), namespace), props=props)
        if kind == "map":
            return Node(kind, inner=self.node(_of(said, "values"), namespace), props=props)
        if kind in ("error", *NAMED):
            return self._named("record" if kind == "error" else kind, said, namespace, props)
        return self._by_name(kind, namespace)

    def _by_name(self, name, namespace):
        if name in PRIMITIVES:
            return Node(name)
        for full in (name,) if "." in name or not namespace else (f"{namespace}.{name}", name):
            if full in self._names:
                found = self._names[full]
                if found is None:
                    raise DataError(
                        f"The Avro record '{full}' refers to itself, and Connect schemas cannot be recursive: use a record with a different "
                        "name for the nested value, or make the field bytes or a string."
                    )
                return found
        raise DataError(f"The Avro schema uses the type '{name}', which is neither an Avro type nor defined before its use.")

    def _union(self, said, namespace):
        branches = [self.node(each, namespace) for each in said]
        if any(branch.type == "union" for branch in branches):
            raise DataError("An Avro union must not contain another union.")
        kinds = [branch.name or branch.type for branch in branches]
        if len(set(kinds)) < len(kinds):
            raise DataError(f"An Avro union must not contain the same type twice: {', '.join(kinds)}.")
        return Node("union", branches=branches)

    def _named(self, kind, said, namespace, props):
        name = _of(said, "name")
        if "." in name:
            full = name
        else:
            space = said["namespace"] if said.get("namespace") is not None else namespace
            full = f"{space}.{name}" if space else name
        if not all(_NAME.fullmatch(part) for part in full.split(".")):
            raise DataError(
                f"'{full}' is not an Avro name: use letters, digits and _, and no digit first. Set scrub.invalid.names=true to replace the rest."
            )
        if full in self._names:
            raise DataError(f"The Avro schema defines '{full}' twice. Give one of the structs another name.")
        inside = full.rpartition(".")[0]
        self._names[full] = None
        node = Node(kind, name=full, doc=said.get("doc"), props=props)
        if kind == "record":
            node.fields = [self._field(each, inside, full) for each in _of(said, "fields")]
            if len({field.name for field in node.fields}) < len(node.fields):
                raise DataError(f"The Avro record '{full}' has two fields of the same name.")
        elif kind == "enum":
            node.symbols, node.default = list(_of(said, "symbols")), said.get("default")
        else:
            node.size = _of(said, "size")
        self._names[full] = node
        return node

    def _field(self, said, namespace, record):
        name = _of(said, "name")
        if not _NAME.fullmatch(name):
            raise DataError(
                f"'{name}' in the record '{record}' is not an Avro name: use letters, digits and _, and no digit first. Set scrub.invalid.names=true "
                "to replace the rest."
            )
        return NodeField(name, self.node(_of(said, "type"), namespace), said.get("doc"), said.get("default", NO_DEFAULT))


def _of(said, key):
    if key not in said:
        raise DataError(f"The Avro {said.get('type')} {said.get('name', '')} has no '{key}'.")
    return said[key]
