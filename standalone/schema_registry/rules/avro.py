"""Avro: parsed by fastavro, compared by Avro's rules of schema resolution."""

import json
import re

import fastavro
from fastavro.schema import SchemaParseException, UnknownType

from standalone.errors import DataError
from standalone.schema_registry.rules.misfit import Misfit

_PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NAMED = ("record", "error", "enum", "fixed")
_READ_AS = {  # reader -> writers beside itself
    "long": ("int",), "float": ("int", "long"), "double": ("int", "long", "float"), "bytes": ("string",), "string": ("bytes",),
}  # fmt: skip
# Attributes in the order in which Java writes them; others follow, aliases last.
_ORDER = {
    "record": ("doc", "fields"), "error": ("doc", "fields"), "enum": ("doc", "symbols", "default"), "fixed": ("doc", "size"),
    "array": ("items",), "map": ("values",),
}  # fmt: skip


class AvroSchema:
    def __init__(self, text, references):
        raw = _json(text)
        self._named = {}
        _check(raw)
        try:
            for each in references.values():
                fastavro.parse_schema(_json(each), self._named, _write_hint=False)
            self._top = fastavro.parse_schema(raw, self._named, _write_hint=False)
        except (SchemaParseException, UnknownType, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise DataError(f"The Avro schema is not valid: {_told(error)}.") from error
        self.text = _dumped(_canonical(raw, ""))
        self.normalized = _dumped(_without_order(_canonical(raw, "")))

    def misfits(self, older):
        return _Reading(self._named, older._named).between(self._top, older._top, "/", set())


def _check(schema):
    """Errors that Java detects and fastavro does not."""
    if isinstance(schema, list):
        kinds = []
        for each in schema:
            _check(each)
            kind = each if isinstance(each, str) else each.get("type") if isinstance(each, dict) else None
            if isinstance(each, list):
                raise DataError("The Avro schema is not valid: a union may not be in a union.")
            if isinstance(kind, str):
                kinds.append(f"{each.get('namespace', '')}.{each.get('name')}" if kind in _NAMED and isinstance(each, dict) else kind)
        if len(set(kinds)) < len(kinds):
            raise DataError(f"The Avro schema is not valid: a type occurs twice in the union {_dumped(kinds)}.")
        return
    if not isinstance(schema, dict):
        return
    kind = schema.get("type")
    if not isinstance(kind, str):
        if kind is None:
            raise DataError(f"The Avro schema is not valid: {_dumped(schema)} has no type.")
        _check(kind)
    if kind in _NAMED:
        _check_name(schema.get("name"), kind, dotted=True)
    if kind in ("record", "error"):
        if not isinstance(schema.get("fields"), list):
            raise DataError(f"The Avro schema is not valid: the record '{schema['name']}' has no list of fields.")
        names = [each.get("name") if isinstance(each, dict) else None for each in schema["fields"]]
        for name, field in zip(names, schema["fields"]):
            _check_name(name, "field")
            if names.count(name) > 1:
                raise DataError(f"The Avro schema is not valid: the record '{schema['name']}' has two fields '{name}'.")
            _check(field)
    elif kind == "enum":
        symbols = schema.get("symbols")
        if not isinstance(symbols, list) or len(set(map(str, symbols))) < len(symbols):
            raise DataError(f"The Avro schema is not valid: the enum '{schema['name']}' has no list of different symbols.")
        for symbol in symbols:
            _check_name(symbol, "symbol")
        if schema.get("default") is not None and schema["default"] not in symbols:
            raise DataError(f"The Avro schema is not valid: the default of the enum '{schema['name']}' is none of its symbols.")
    elif kind in ("array", "map"):
        inner = "items" if kind == "array" else "values"
        if inner not in schema:
            raise DataError(f"The Avro schema is not valid: {_dumped(schema)} has no {inner}.")
        _check(schema[inner])


def _check_name(name, what, dotted=False):
    if not isinstance(name, str) or not all(_NAME.fullmatch(part) for part in (name.split(".") if dotted else [name])):
        raise DataError(f"The Avro schema is not valid: {_dumped(name)} is not a name of a {what}.")


def _json(text):
    if text.strip() in _PRIMITIVES:
        return text.strip()  # Java's parser takes a bare name, too
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"The Avro schema is not valid: it is not JSON: {error}.") from error
    if not isinstance(found, (str, dict, list)):
        raise DataError("The Avro schema is not valid: it is neither a name nor an object nor a union.")
    return found


def _told(error):
    said = str(error).rstrip(".") or type(error).__name__
    if isinstance(error, UnknownType):
        return f"'{getattr(error, 'name', said)}' is not a known type"
    return f"{said} is missing" if isinstance(error, KeyError) else said


def _dumped(found):
    return json.dumps(found, separators=(",", ":"), ensure_ascii=False)


# ---- canonical text, as Java writes it


def _canonical(schema, space):
    if isinstance(schema, str):
        name, _, last = schema.rpartition(".")
        return last if name and name == space else schema
    if isinstance(schema, list):
        return [_canonical(each, space) for each in schema]
    kind = schema.get("type")
    if not isinstance(kind, str):
        return _canonical(kind, space)
    found = {"type": kind}
    if kind in _NAMED:
        own, name = _names(schema, space)
        found["name"] = name
        if own and own != space:
            found["namespace"] = own
        space = own
    elif kind not in _PRIMITIVES and kind not in _ORDER:
        return _canonical(kind, space)
    order = _ORDER.get(kind, ())
    for key in order:
        if schema.get(key) is not None:
            found[key] = _part(key, schema[key], space)
    known = {"type", "name", "namespace", "aliases", *order}
    found.update((key, value) for key, value in schema.items() if key not in known)
    if schema.get("aliases") and kind in _NAMED:
        found["aliases"] = schema["aliases"]
    return kind if kind in _PRIMITIVES and len(found) == 1 else found


def _part(key, value, space):
    if key == "fields":
        return [_field(each, space) for each in value]
    return _canonical(value, space) if key in ("items", "values") else value


def _field(field, space):
    found = {"name": field["name"], "type": _canonical(field["type"], space)}
    found.update((key, field[key]) for key in ("doc", "default") if key in field and (key == "default" or field[key] is not None))
    if str(field.get("order", "ascending")).lower() != "ascending":
        found["order"] = field["order"]
    if field.get("aliases"):
        found["aliases"] = field["aliases"]
    found.update((key, value) for key, value in field.items() if key not in ("name", "type", "doc", "default", "order", "aliases"))
    return found


def _names(schema, space):
    """(namespace, simple name)."""
    if "." in schema["name"]:
        own, _, name = schema["name"].rpartition(".")
        return own, name
    own = schema.get("namespace")
    return (space if own is None else own), schema["name"]


def _without_order(found):
    """Custom properties in a fixed order."""
    if isinstance(found, dict):
        fixed = [key for key in ("type", "name", "namespace", "doc", "fields", "symbols", "items", "values", "size", "default") if key in found]
        rest = sorted(key for key in found if key not in fixed)
        return {key: _without_order(found[key]) for key in (*fixed, *rest)}
    return [_without_order(each) for each in found] if isinstance(found, list) else found


# ---- resolution


class _Reading:
    """Resolution of data of one schema with another; both have their named types by full name."""

    def __init__(self, reader_names, writer_names):
        self._readers, self._writers = reader_names, writer_names

    def between(self, reader, writer, path, seen):
        reader, writer = _found(reader, self._readers), _found(writer, self._writers)
        kind, other = _kind(reader), _kind(writer)
        pair = _mark(reader), _mark(writer)
        if kind in _NAMED and pair in seen:
            return []
        seen = seen | {pair}
        if other == "union":
            return [
                misfit
                for number, each in enumerate(writer)
                for misfit in self._branch(reader, each, f"{path}{number if kind == 'union' else ''}", seen)
            ]
        if kind == "union":
            if any(not self.between(each, writer, path, seen) for each in reader):
                return []
            return [
                Misfit(
                    "MISSING_UNION_BRANCH",
                    path,
                    "The new schema's union has no type that reads the old schema's",
                    f"reader union lacking writer type: {other.upper()}",
                )
            ]
        if kind != other and not (kind in ("record", "error") and other in ("record", "error")):
            if other in _READ_AS.get(kind, ()):
                return []
            return [
                Misfit(
                    "TYPE_MISMATCH",
                    path,
                    "The type of the new schema does not read the old schema's",
                    f"reader type: {kind.upper()} not compatible with writer type: {other.upper()}",
                )
            ]
        if kind == "array":
            return self.between(reader["items"], writer["items"], f"{path}items/", seen)
        if kind == "map":
            return self.between(reader["values"], writer["values"], f"{path}values/", seen)
        if kind not in _NAMED:
            return []
        return [*self._names(reader, writer, path), *getattr(self, "_" + kind.replace("error", "record"))(reader, writer, path, seen)]

    def _branch(self, reader, branch, path, seen):
        found = self.between(reader, branch, path, seen)
        if not found or _kind(_found(reader, self._readers)) != "union":
            return found
        other = _kind(_found(branch, self._writers))
        return [
            Misfit(
                "MISSING_UNION_BRANCH",
                path,
                "The new schema's union lacks a type of the old schema's",
                f"reader union lacking writer type: {other.upper()}",
            )
        ]

    def _names(self, reader, writer, path):
        # As in the specification, names are compared without namespaces.
        if _last(reader["name"]) == _last(writer["name"]) or writer["name"] in _aliases(reader):
            return []
        return [Misfit("NAME_MISMATCH", f"{path}name", "The name of the type has changed", f"expected: {writer['name']}")]

    def _record(self, reader, writer, path, seen):
        writers, found = {each["name"]: each for each in writer["fields"]}, []
        for number, field in enumerate(reader["fields"]):
            old = next((writers[name] for name in (field["name"], *field.get("aliases", ())) if name in writers), None)
            where = f"{path}fields/{number}"
            if old is not None:
                found += self.between(field["type"], old["type"], f"{where}/type/", seen)
            elif "default" not in field and "default" not in (_enum_of(field["type"], self._readers) or ()):
                said = f"The field '{field['name']}' has no default value and is missing in the old schema"
                found.append(Misfit("READER_FIELD_MISSING_DEFAULT_VALUE", where, said, field["name"]))
        return found

    def _enum(self, reader, writer, path, seen):
        gone = [each for each in writer["symbols"] if each not in reader["symbols"]]
        if not gone or reader.get("default") is not None:
            return []
        return [Misfit("MISSING_ENUM_SYMBOLS", f"{path}symbols", "The new schema lacks symbols of the old one's enum", f"[{', '.join(gone)}]")]

    def _fixed(self, reader, writer, path, seen):
        if reader["size"] == writer["size"]:
            return []
        return [
            Misfit(
                "FIXED_SIZE_MISMATCH", f"{path}size", "The size of the fixed type has changed", f"expected: {writer['size']}, found: {reader['size']}"
            )
        ]


def _found(schema, names):
    """The type itself where it is named."""
    while True:
        if isinstance(schema, str) and schema not in _PRIMITIVES:
            schema = names[schema]
        elif isinstance(schema, dict) and not isinstance(schema["type"], str):
            schema = schema["type"]
        elif isinstance(schema, dict) and schema["type"] not in _PRIMITIVES and schema["type"] not in _ORDER:
            schema = schema["type"]
        else:
            return schema


def _kind(schema):
    return "union" if isinstance(schema, list) else schema if isinstance(schema, str) else schema["type"]


def _mark(schema):
    return schema["name"] if isinstance(schema, dict) and schema["type"] in _NAMED else id(schema)


def _last(name):
    return name.rpartition(".")[2]


def _aliases(schema):
    space = schema["name"].rpartition(".")[0]
    return {each if "." in each or not space else f"{space}.{each}" for each in schema.get("aliases", ())}


def _enum_of(schema, names):
    found = _found(schema, names)
    return found if isinstance(found, dict) and found["type"] == "enum" else None


def parsed_for_values(text, references):
    """(fastavro's schema, {full name: type}), without logical types: values are what is below them."""
    names = {}
    for each in references.values():
        fastavro.parse_schema(_bare(_json(each)), names, _write_hint=False)
    return fastavro.parse_schema(_bare(_json(text)), names, _write_hint=False), names


def _bare(schema):
    if isinstance(schema, dict):
        return {key: _bare(value) if key in ("type", "fields", "items", "values") else value for key, value in schema.items() if key != "logicalType"}
    return [_bare(each) for each in schema] if isinstance(schema, list) else schema
