"""Errors for values that do not match an Avro schema, with the wording of Avro's own."""

import json

from standalone import DataError, Instant, Struct

_TOKENS = ((bool, ("VALUE_FALSE", "VALUE_TRUE")), (int, "VALUE_NUMBER_INT"), (float, "VALUE_NUMBER_FLOAT"), (str, "VALUE_STRING"))
_TOKENS += ((bytes, "VALUE_STRING"), (list, "START_ARRAY"), (dict, "START_OBJECT"), (Struct, "START_OBJECT"))
_MOST_SHOWN = 80


def misfit(path, node, value):
    """`path` is the value's location, such as "$.order.lines[]"."""
    wanted = _wanted(node)
    said = f"Expected {wanted}. Got {_token(value)}: {path} is {_shown(value)}, and the Avro schema has {_schema(node)} there."
    return DataError(f"{said} {_advice(node, value)}".strip())


def _token(value):
    if value is None:
        return "VALUE_NULL"
    for kind, token in _TOKENS:
        if isinstance(value, kind):
            return token if isinstance(token, str) else token[value]
    return type(value).__name__


def _wanted(node):
    return "union" if node.type == "union" else node.type + (f" {node.name}" if node.name else "")


def _schema(node):
    if node.type == "union":
        return f"a union of {', '.join(branch.name or branch.type for branch in node.branches)}"
    if node.type == "record":
        return f"the record {node.name} with the fields {', '.join(field.name for field in node.fields) or '(none)'}"
    if node.type == "enum":
        return f"the enum {node.name} of {', '.join(node.symbols)}"
    return f"the type {node.type}" + (f" of {node.size} bytes" if node.type == "fixed" else "")


def _shown(value):
    if isinstance(value, Struct):
        value = value.to_dict()
    try:
        text = json.dumps(value, ensure_ascii=False, default=lambda each: repr(each) if not isinstance(each, Instant) else each.ms)
    except (TypeError, ValueError):
        text = repr(value)
    kind = {dict: "an object", list: "an array", str: "a text", bool: "a boolean", int: "a whole number", float: "a number", bytes: "bytes"}.get(
        type(value)
    )
    text = text if len(text) <= _MOST_SHOWN else text[: _MOST_SHOWN - 1] + "…"
    return "null" if value is None else f"{kind} {text}" if kind else text


def _advice(node, value):
    if value is None:
        return "Make the type a union with null, or give a value."
    if isinstance(value, (dict, Struct)) and node.type not in ("record", "map", "union"):
        return f"Send a plain {node.type}, or use a schema of type record with these fields."
    if node.type in ("int", "long") and isinstance(value, int) and not isinstance(value, bool):
        return "The number does not fit: int has 32 bits, long 64."
    if node.type == "enum" and isinstance(value, str):
        return "Send one of its symbols, or add this one to the schema."
    return ""
