"""Avro's JSON encoding: a union's value is wrapped with its type name, {"string": "x"}, and bytes are a string of their codes.

Input may omit the type name if only one type fits. Logical types use their underlying type: a date is a number of days.
"""

import io
import json

import fastavro

from standalone.errors import DataError, SerializationError
from standalone.schema_registry.rules.avro import parsed_for_values

_NUMBERS = {"int": (-(1 << 31), (1 << 31) - 1), "long": (-(1 << 63), (1 << 63) - 1)}
_SHOWN = {
    **{dict: "an object", list: "an array", str: "a text", bool: "true or false", type(None): "null"},
    **{int: "a number", float: "a number with a fraction"},
}
_HELD = {"boolean": bool, "int": int, "long": int, "float": float, "double": float, "string": str, "bytes": bytes, "array": list, "map": dict}


class AvroCodec:
    def __init__(self, text, references):
        self._schema, self._names = parsed_for_values(text, references)

    def encode(self, value):
        data = io.BytesIO()
        fastavro.schemaless_writer(data, self._schema, self._taken(self._schema, value, ""), strict=True)
        return data.getvalue()

    def decode(self, data):
        source = io.BytesIO(data)
        try:
            found = fastavro.schemaless_reader(source, self._schema, None, return_record_name=True, return_named_type=True)
        except (EOFError, IndexError, ValueError, KeyError, TypeError, UnicodeDecodeError) as error:
            raise SerializationError(f"The bytes are not of the Avro schema: {error or type(error).__name__}.") from error
        return self._shown(self._schema, found)

    # ---- JSON -> value
    def _taken(self, schema, value, path):
        schema = self._type(schema)
        kind = _kind(schema)
        if kind == "union":
            return self._of_union(schema, value, path)
        if kind in ("record", "error"):
            return self._of_record(schema, value, path)
        if kind == "array":
            self._need(isinstance(value, list), "an array", value, path)
            return [self._taken(schema["items"], each, f"{path}[{number}]") for number, each in enumerate(value)]
        if kind == "map":
            self._need(isinstance(value, dict), "a map (an object)", value, path)
            return {key: self._taken(schema["values"], each, f"{path}[{key!r}]") for key, each in value.items()}
        if kind == "enum":
            self._need(value in schema["symbols"], f"one of {', '.join(schema['symbols'])}", value, path)
            return value
        if kind in ("bytes", "fixed"):
            return self._of_bytes(schema, kind, value, path)
        if kind in _NUMBERS:
            low, high = _NUMBERS[kind]
            fits = isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
            self._need(fits, f"{'an' if kind == 'int' else 'a'} {kind}", value, path)
            return value
        if kind in ("float", "double"):
            fits = isinstance(value, (int, float)) and not isinstance(value, bool) or value in ("NaN", "Infinity", "-Infinity")
            self._need(fits, f"a {kind}", value, path)
            return float(value)
        wanted = {"string": str, "boolean": bool, "null": type(None)}[kind]
        self._need(isinstance(value, wanted), _SHOWN[wanted] if kind != "string" else "a string", value, path)
        return value

    def _of_record(self, schema, value, path):
        self._need(isinstance(value, dict), f"a record {schema['name']} (an object)", value, path)
        found = {}
        for field in schema["fields"]:
            name, where = field["name"], f"{path}.{field['name']}" if path else field["name"]
            if name in value:
                found[name] = self._taken(field["type"], value[name], where)
            elif "default" in field:
                found[name] = self._taken(field["type"], field["default"], where)
            else:
                raise DataError(f"The field '{where}' is missing: the schema has no default for it.")
        strange = next((name for name in value if name not in {field["name"] for field in schema["fields"]}), None)
        if strange is not None:
            names = ", ".join(field["name"] for field in schema["fields"])
            raise DataError(f"There is no field '{strange}' in the record {schema['name']}; its fields are {names}.")
        return found

    def _of_union(self, union, value, path):
        branches = {self._name(each): each for each in union}
        if value is None and "null" in branches:
            return None
        if isinstance(value, dict) and len(value) == 1 and (name := next(iter(value))) in branches:
            return _named(name, branches[name], self._taken(branches[name], value[name], path), self._type)
        fitting = []
        for name, each in branches.items():
            try:
                fitting.append((name, each, self._taken(each, value, path)))
            except DataError as error:
                problem = error
        if len(fitting) == 1 or fitting and not isinstance(value, dict):
            return _named(*fitting[0], self._type)
        if len(branches) == 2 and "null" in branches and not fitting:
            raise problem if next(iter(branches)) == "null" else self._taken_error(branches, value, path)
        raise DataError(f"{_at(path)}must be one of {', '.join(branches)}, written as {{\"TYPE\": VALUE}}, and is {_told(value)}.")

    def _taken_error(self, branches, value, path):
        try:
            self._taken(next(each for name, each in branches.items() if name != "null"), value, path)
        except DataError as error:
            return error

    def _of_bytes(self, schema, kind, value, path):
        self._need(isinstance(value, str) and all(ord(each) < 256 for each in value), "bytes (a text whose characters are the bytes)", value, path)
        data = value.encode("latin-1")
        if kind == "fixed" and len(data) != schema["size"]:
            raise DataError(f"{_at(path)}must have {schema['size']} bytes, and has {len(data)}.")
        return data

    def _need(self, fits, wanted, value, path):
        if not fits:
            raise DataError(f"{_at(path)}must be {wanted}, and is {_told(value)}.")

    # ---- value -> JSON
    def _shown(self, schema, value):
        schema = self._type(schema)
        kind = _kind(schema)
        if kind == "union":
            return self._shown_union(schema, value)
        if kind in ("record", "error"):
            value = value[1] if isinstance(value, tuple) else value
            return {field["name"]: self._shown(field["type"], value[field["name"]]) for field in schema["fields"]}
        if kind == "array":
            return [self._shown(schema["items"], each) for each in value]
        if kind == "map":
            return {key: self._shown(schema["values"], each) for key, each in value.items()}
        if kind in ("bytes", "fixed"):
            return value.decode("latin-1")
        if kind in ("float", "double") and value != value:
            return "NaN"
        if kind in ("float", "double") and value in (float("inf"), float("-inf")):
            return "Infinity" if value > 0 else "-Infinity"
        return value

    def _shown_union(self, union, value):
        if value is None:
            return None
        branches = {self._name(each): each for each in union}
        if isinstance(value, tuple):
            name, value = value
            return {name: self._shown(branches[name], value)}
        for name, each in branches.items():
            if _holds(_kind(self._type(each)), value):
                return {name: self._shown(each, value)}
        raise SerializationError(f"A value of type {type(value).__name__} is of no type of its union.")

    # ---- types
    def _type(self, schema):
        while isinstance(schema, dict) and not (isinstance(schema["type"], str) and schema["type"] not in self._names):
            schema = schema["type"]
        return self._names.get(schema, schema) if isinstance(schema, str) else schema

    def _name(self, schema):
        found = self._type(schema)
        return found if isinstance(found, str) else found.get("name", found["type"])


def _kind(schema):
    return "union" if isinstance(schema, list) else schema if isinstance(schema, str) else schema["type"]


def _named(name, schema, value, type_of):
    """A union's value with fastavro's type hint."""
    return (name, value) if _kind(type_of(schema)) in ("record", "error", "enum", "fixed") else (_kind(type_of(schema)), value)


def _holds(kind, value):
    wanted = _HELD.get(kind)
    if wanted is None or isinstance(value, bool) and wanted is not bool or not isinstance(value, wanted):
        return False
    return kind != "int" or _NUMBERS["int"][0] <= value <= _NUMBERS["int"][1]


def _at(path):
    return f"The field '{path}' " if path else "The value "


def _told(value):
    kind = _SHOWN.get(type(value), type(value).__name__)
    text = json.dumps(value, ensure_ascii=False)
    return kind if value is None or len(text) > 60 else f"{kind}: {text}"
