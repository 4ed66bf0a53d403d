"""JSON Schema: validated against its metaschema, and compared with another schema by the documents that each accepts.

A schema with several keywords is a set of constraints (`_Node`); each is compared with its counterpart.
"""

import json

from standalone.errors import DataError
from standalone.schema_registry.rules.misfit import Misfit

_SPECS = {
    "string": ("minLength", "maxLength", "pattern", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "object": ("properties", "required", "additionalProperties", "minProperties", "maxProperties", "dependencies", "dependentRequired",
               "dependentSchemas", "patternProperties", "propertyNames", "unevaluatedProperties"),
    "array": ("items", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains", "prefixItems", "unevaluatedItems"),
}  # fmt: skip
_SUMS = {"allOf": "all", "anyOf": "any", "oneOf": "one"}
_DEEPEST = 64


class JsonSchema:
    def __init__(self, text, references):
        from jsonschema import SchemaError

        self._raw = _loaded(text)
        self._others = {name: _loaded(each) for name, each in references.items()}
        try:
            draft_of(self._raw).check_schema(self._raw)
        except SchemaError as error:
            raise DataError(f"The JSON schema is not valid: {error.message.rstrip('.')}.") from None
        self._check(self._raw)
        self.text = json.dumps(self._raw, separators=(",", ":"), ensure_ascii=False)
        self.normalized = json.dumps(self._raw, separators=(",", ":"), ensure_ascii=False, sort_keys=True)

    def misfits(self, older):
        found = _Found()
        _compare(_Node.of(older._raw, older, older._raw), _Node.of(self._raw, self, self._raw), "#/", found, ())
        return found.misfits

    def referred(self, where, top):
        """(schema, its document) of a $ref; None if it cannot be resolved."""
        document, _, pointer = where.partition("#")
        if document:
            top = self._others.get(document, self._others.get(document.rpartition("/")[2]))
            if top is None:
                return None
        at = top
        for step in filter(None, pointer.split("/")):
            step = step.replace("~1", "/").replace("~0", "~")
            try:
                at = at[int(step)] if isinstance(at, list) else at[step]
            except (KeyError, ValueError, IndexError, TypeError):
                return _by_anchor(top, pointer)
        return at, top

    def _check(self, schema):
        """Check that each $ref resolves within the schema or to one of its references."""
        if isinstance(schema, dict):
            where = schema.get("$ref")
            if isinstance(where, str) and not where.startswith(("http://json-schema.org/", "https://json-schema.org/")):
                own = self._raw.get("$id") if isinstance(self._raw, dict) else None
                if where != own and self.referred(where, self._raw) is None:
                    raise DataError(f"The JSON schema is not valid: its $ref '{where}' leads nowhere.")
            for each in schema.values():
                self._check(each)
        elif isinstance(schema, list):
            for each in schema:
                self._check(each)


def draft_of(raw):
    """The validator of a schema's draft; draft 7, the default of Confluent's registry, if it names none."""
    from jsonschema import Draft7Validator
    from jsonschema.validators import validator_for

    return validator_for(raw, default=Draft7Validator)


def _loaded(text):
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"The JSON schema is not valid: it is not JSON: {error}.") from error
    if not isinstance(found, (dict, bool)):
        raise DataError("The JSON schema is not valid: it is neither an object nor true or false.")
    return found


def _by_anchor(top, name):
    if isinstance(top, dict):
        if name in (top.get("$anchor"), str(top.get("$id", "")).lstrip("#")) and name:
            return top, top
        for each in top.values():
            if (found := _by_anchor(each, name)) is not None:
                return found
    elif isinstance(top, list):
        for each in top:
            if (found := _by_anchor(each, name)) is not None:
                return found
    return None


class _Found:
    def __init__(self):
        self.misfits = []

    def add(self, kind, path, said, more=""):
        self.misfits.append(Misfit(kind, path, said, more))


class _Node:
    """One constraint of a schema: `kind` with its `raw` keywords, or all, any or one of `parts`."""

    def __init__(self, kind, raw, schema, top, parts=()):
        self.kind, self.raw, self.schema, self.top, self.parts = kind, raw, schema, top, parts

    @classmethod
    def of(cls, raw, schema, top, depth=0):
        if raw is True or raw is None:
            return cls("empty", {}, schema, top)
        if raw is False:
            return cls("false", {}, schema, top)
        if isinstance(raw.get("$ref"), str) and depth < _DEEPEST:
            found = schema.referred(raw["$ref"], top)
            if found is not None:
                return cls.of(found[0], schema, found[1], depth + 1)
        said = [cls(_SUMS[key], raw, schema, top, tuple(cls.of(each, schema, top, depth + 1) for each in raw[key])) for key in _SUMS if raw.get(key)]
        if "not" in raw:
            said.append(cls("not", raw, schema, top))
        if "enum" in raw or "const" in raw:
            said.append(cls("enum", {**raw, "enum": raw.get("enum", [raw.get("const")])}, schema, top))
        kind = raw.get("type")
        if isinstance(kind, list):
            typed = tuple(
                cls.of({**{k: v for k, v in raw.items() if k not in (*_SUMS, "not", "enum", "const")}, "type": each}, schema, top, depth + 1)
                for each in kind
            )
            said.insert(0, typed[0] if len(typed) == 1 else cls("any", raw, schema, top, typed))
        elif kind is not None:
            said.insert(0, cls("number" if kind == "integer" else kind, raw, schema, top))
        else:
            implied = next((each for each, keys in _SPECS.items() if any(key in raw for key in keys if key != "format")), None)
            if implied:
                said.insert(0, cls(implied, raw, schema, top))
        if not said:
            return cls("empty", raw, schema, top)
        return said[0] if len(said) == 1 else cls("all", raw, schema, top, tuple(said))

    def inner(self, raw):
        return _Node.of(raw, self.schema, self.top)


def _fits(older, newer, path, seen):
    found = _Found()
    _compare(older, newer, path, found, seen)
    return not found.misfits


def _compare(older, newer, path, found, seen):
    pair = id(older.raw), id(newer.raw), older.kind, newer.kind
    if pair in seen or len(seen) > _DEEPEST:
        return
    seen = (*seen, pair)
    if not older.parts and newer.parts:
        if len(newer.parts) == 1 or newer.kind in ("any", "one"):
            if any(_fits(older, part, path, seen) for part in newer.parts):
                return
    elif older.parts and not newer.parts and len(older.parts) == 1:
        if _fits(older.parts[0], newer, path, seen):
            return
    if bool(older.parts) != bool(newer.parts) or not older.parts and older.kind != newer.kind:
        if older.kind != "false" and newer.kind != "empty":
            found.add("TYPE_CHANGED", path, "The type has changed", f"{older.kind} -> {newer.kind}")
        return
    if older.parts:
        _combined(older, newer, path, found, seen)
    elif older.kind in _COMPARE:
        _COMPARE[older.kind](older, newer, path, found, seen)


def _limits(older, newer, path, found, keys):
    """Compare upper (max…) or lower limits: a limit may be relaxed, but not tightened."""
    for key in keys:
        before, after = older.raw.get(key), newer.raw.get(key)
        if before == after or after is None:
            continue
        name = "".join(f"_{each}" if each.isupper() else each for each in key).upper()
        upper = "max" in key.lower()
        if before is None or isinstance(before, bool) or isinstance(after, bool):
            found.add(f"{name}_ADDED", f"{path}{key}", f"The limit {key} is new", str(after))
        elif after < before if upper else after > before:
            found.add(f"{name}_{'DECREASED' if upper else 'INCREASED'}", f"{path}{key}", f"The limit {key} is tighter", f"{before} -> {after}")


def _string(older, newer, path, found, seen):
    _limits(older, newer, path, found, ("maxLength", "minLength"))
    before, after = older.raw.get("pattern"), newer.raw.get("pattern")
    if after is not None and after != before:
        found.add("PATTERN_CHANGED" if before is not None else "PATTERN_ADDED", f"{path}pattern", "The pattern is new or another", after)


def _number(older, newer, path, found, seen):
    _limits(older, newer, path, found, ("maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum"))
    before, after = older.raw.get("multipleOf"), newer.raw.get("multipleOf")
    if after is not None and after != before:
        if before is None:
            found.add("MULTIPLE_OF_ADDED", f"{path}multipleOf", "multipleOf is new", str(after))
        elif after % before == 0:
            found.add("MULTIPLE_OF_EXPANDED", f"{path}multipleOf", "multipleOf is greater", f"{before} -> {after}")
        elif before % after != 0:
            found.add("MULTIPLE_OF_CHANGED", f"{path}multipleOf", "multipleOf is another", f"{before} -> {after}")
    if newer.raw.get("type") == "integer" and older.raw.get("type") != "integer":
        found.add("TYPE_NARROWED", path, "A number has become an integer")


def _enum(older, newer, path, found, seen):
    before, after = older.raw["enum"], newer.raw["enum"]
    if all(each in after for each in before):
        return
    narrowed = all(each in before for each in after)
    found.add("ENUM_ARRAY_NARROWED" if narrowed else "ENUM_ARRAY_CHANGED", f"{path}enum", "Values of the enum are gone", str(before))


def _not(older, newer, path, found, seen):
    if not _fits(newer.inner(newer.raw["not"]), older.inner(older.raw["not"]), f"{path}not/", seen):
        found.add("NOT_TYPE_EXTENDED", f"{path}not", "What is ruled out has grown")


# ---- objects


def _object(older, newer, path, found, seen):
    _limits(older, newer, path, found, ("maxProperties", "minProperties"))
    _required(older, newer, path, found)
    _rest(older, newer, path, found, seen, "additionalProperties", "ADDITIONAL_PROPERTIES")
    _dependencies(older, newer, path, found, seen)
    before, after = older.raw.get("properties") or {}, newer.raw.get("properties") or {}
    for name in (*before, *(each for each in after if each not in before)):
        where = f"{path}properties/{name}"
        if name not in after:
            _property_gone(name, before[name], older, newer, where, found, seen)
        elif name not in before:
            _property_new(name, after[name], older, newer, where, found, seen)
        else:
            _compare(older.inner(before[name]), newer.inner(after[name]), f"{where}/", found, seen)


def _required(older, newer, path, found):
    before, after = set(older.raw.get("required") or ()), newer.raw.get("required") or ()
    old_properties, properties = older.raw.get("properties") or {}, newer.raw.get("properties") or {}
    for name in after:
        if name not in before and name in old_properties and not _has_default(properties.get(name)):
            found.add("REQUIRED_ATTRIBUTE_ADDED", f"{path}required/{name}", "A property that was there is required now, and has no default", name)


def _has_default(raw):
    return isinstance(raw, dict) and "default" in raw


def _rest_of(node, name):
    """The constraint of unnamed properties: True for anything, False for nothing, else a schema."""
    import re

    for pattern, schema in (node.raw.get("patternProperties") or {}).items():
        try:
            if re.search(pattern, name):
                return schema
        except re.error:
            continue
    return node.raw.get("additionalProperties", True)


def _property_gone(name, raw, older, newer, where, found, seen):
    rest = _rest_of(newer, name)
    if rest is True or rest == {}:
        return
    if rest is False:
        if raw is not False:
            found.add("PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", where, "A property is gone, and others are not allowed", name)
    elif not _fits(older.inner(raw), newer.inner(rest), where, seen):
        found.add(
            "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", where, "A property is gone, and the schema of others is not its own", name
        )


def _property_new(name, raw, older, newer, where, found, seen):
    rest = _rest_of(older, name)
    if rest is True or rest == {}:
        if raw is not True and raw != {}:
            said = "A property is new where any was allowed: it may have held something else"
            found.add("PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL", where, said, name)
        return
    if rest is not False and not _fits(older.inner(rest), newer.inner(raw), where, seen):
        said = "A property is new, and is not what properties of no name had to be"
        found.add("PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", where, said, name)
    if name in (newer.raw.get("required") or ()) and not _has_default(raw):
        found.add("REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL", where, "A property is new and required, and has no default", name)


def _rest(older, newer, path, found, seen, key, name):
    before, after = older.raw.get(key, True), newer.raw.get(key, True)
    if before == after or after is True or after == {} or before is False:
        return
    if after is False:
        found.add(f"{name}_REMOVED", f"{path}{key}", f"{key} are allowed no more")
    elif before is True or before == {}:
        found.add(f"{name}_NARROWED", f"{path}{key}", f"{key} may be less than anything now")
    else:
        _compare(older.inner(before), newer.inner(after), f"{path}{key}/", found, seen)


def _dependencies(older, newer, path, found, seen):
    before, after = _all_dependencies(older), _all_dependencies(newer)
    for name, now in after.items():
        was, where = before.get(name), f"{path}dependencies/{name}"
        if isinstance(now, list):
            if not isinstance(was, list):
                found.add("DEPENDENCY_ARRAY_ADDED", where, "A property asks for others now", name)
            elif not set(now) <= set(was):
                extended = set(was) <= set(now)
                found.add("DEPENDENCY_ARRAY_EXTENDED" if extended else "DEPENDENCY_ARRAY_CHANGED", where, "A property asks for more others", name)
        elif was is None or isinstance(was, list):
            found.add("DEPENDENCY_SCHEMA_ADDED", where, "A property asks for a schema now", name)
        else:
            _compare(older.inner(was), newer.inner(now), f"{where}/", found, seen)


def _all_dependencies(node):
    return {**(node.raw.get("dependencies") or {}), **(node.raw.get("dependentRequired") or {}), **(node.raw.get("dependentSchemas") or {})}


# ---- arrays


def _array(older, newer, path, found, seen):
    _limits(older, newer, path, found, ("maxItems", "minItems"))
    if newer.raw.get("uniqueItems") and not older.raw.get("uniqueItems"):
        found.add("UNIQUE_ITEMS_ADDED", f"{path}uniqueItems", "Items have to be unique now")
    (before, old_rest), (after, rest) = _items(older), _items(newer)
    if old_rest != rest:
        _rest(
            _with(older, "additionalItems", old_rest), _with(newer, "additionalItems", rest), path, found, seen, "additionalItems", "ADDITIONAL_ITEMS"
        )
    for number in range(max(len(before), len(after))):
        where = f"{path}items/{number}"
        if number >= len(after):
            if rest is False:
                if before[number] is not False:
                    found.add("ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL", where, "An item is gone, and others are not allowed")
            elif not _fits(older.inner(before[number]), newer.inner(rest), where, seen):
                found.add(
                    "ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", where, "An item is gone, and the schema of others is not its own"
                )
        elif number >= len(before):
            if old_rest is True or old_rest == {}:
                if after[number] is not True and after[number] != {}:
                    found.add("ITEM_ADDED_TO_OPEN_CONTENT_MODEL", where, "An item is new where any was allowed")
            elif old_rest is not False and not _fits(older.inner(old_rest), newer.inner(after[number]), where, seen):
                found.add("ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", where, "An item is new, and is not what further items had to be")
        else:
            _compare(older.inner(before[number]), newer.inner(after[number]), f"{where}/", found, seen)


def _items(node):
    """([schemas of the first items], the schema of all further ones)."""
    items, first = node.raw.get("items", True), node.raw.get("prefixItems")
    if first is not None:
        return first, items
    if isinstance(items, list):
        return items, node.raw.get("additionalItems", True)
    return [], items


def _with(node, key, value):
    return _Node(node.kind, {**node.raw, key: value}, node.schema, node.top)


# ---- all, any, one of


def _combined(older, newer, path, found, seen):
    if older.kind != newer.kind and newer.kind != "any" and not (older.kind == "all" and newer.kind == "one"):
        found.add("COMBINED_TYPE_CHANGED", path, "What is asked of the alternatives has changed", f"{older.kind} -> {newer.kind}")
        return
    before, after = len(older.parts), len(newer.parts)
    if newer.kind == "all" and after > before:
        found.add("PRODUCT_TYPE_EXTENDED", path, "More is asked for at once", f"{before} -> {after}")
    if newer.kind != "all" and older.kind != "all" and after < before:
        found.add("SUM_TYPE_NARROWED", path, "An alternative is gone", f"{before} -> {after}")
    wanted = min(before, after) if newer.kind == "all" or older.kind != "all" else 1
    if _matched(older, newer, path, seen) < wanted:
        found.add("COMBINED_TYPE_SUBSCHEMAS_CHANGED", path, "An alternative is another")


def _matched(older, newer, path, seen):
    """The size of the largest matching of parts of the one to compatible parts of the other."""
    edges = [[n for n, part in enumerate(newer.parts) if _fits(each, part, path, seen)] for each in older.parts]
    taken = {}

    def place(number, tried):
        for other in edges[number]:
            if other not in tried:
                tried.add(other)
                if other not in taken or place(taken[other], tried):
                    taken[other] = number
                    return True
        return False

    return sum(place(number, set()) for number in range(len(edges)))


_COMPARE = {"string": _string, "number": _number, "enum": _enum, "not": _not, "object": _object, "array": _array}
