"""Index mappings: build them from schemas, and find fields that an existing mapping lacks."""

from connectors.elasticsearch.documents import ARRAY, MAP, STRUCT

_PLAIN = {
    "int8": "byte",
    "int16": "short",
    "int32": "integer",
    "int64": "long",
    "float32": "float",
    "float64": "double",
    "boolean": "boolean",
    "bytes": "binary",
}
_LOGICAL = {
    "org.apache.kafka.connect.data.Decimal": "double",
    "org.apache.kafka.connect.data.Date": "date",
    "org.apache.kafka.connect.data.Time": "date",
    "org.apache.kafka.connect.data.Timestamp": "date",
}
# Strings are searchable by words and, if short, as a whole.
_TEXT = {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}}
_NUMBERS = {"byte", "short", "integer", "long", "float", "double", "half_float", "scaled_float", "unsigned_long"}
_TEXTS = {"text", "keyword", "match_only_text", "constant_keyword", "wildcard", "ip", "date", "version", "search_as_you_type"}
# Schema type -> mapping types that accept its values.
_FITS = {"text": _TEXTS | {"binary"}, "double": _NUMBERS, "date": {"date", "date_nanos", "long"}, "boolean": {"boolean", "keyword", "text"}}
_FITS |= {kind: _NUMBERS | {"date", "date_nanos", "keyword", "text"} for kind in ("byte", "short", "integer", "long", "float")}


def mapping_of(schema):
    """Return the mapping of a field; for the document's schema {"properties": …}. `schema` is that of the adjusted values."""
    if schema.name in _LOGICAL:
        return _with_default({"type": _LOGICAL[schema.name]}, schema)
    if schema.type == STRUCT:
        return {"properties": {field.name: mapping_of(field.schema) for field in schema.fields}}
    if schema.type == ARRAY:
        return mapping_of(schema.value_schema)  # any field may have several values
    if schema.type == MAP:
        return {"type": "object", "dynamic": True}  # keys become fields dynamically
    kind = _PLAIN.get(schema.type)
    return dict(_TEXT) if kind is None else _with_default({"type": kind}, schema)


def _with_default(mapping, schema):
    """Index a null as the schema's default."""
    default = schema.default
    if default is None or mapping["type"] == "binary":
        return mapping
    shown = default.ms if hasattr(default, "ms") else float(default) if mapping["type"] == "double" else default
    return {**mapping, "null_value": shown}


def lacking(wanted, found, path=""):
    """Return (missing properties, [descriptions of conflicting ones]). Both arguments are "properties"."""
    more, conflicts = {}, []
    for name, field in wanted.items():
        there = found.get(name)
        where = f"{path}{name}"
        if there is None:
            more[name] = field
            continue
        if "properties" in field:
            if "properties" in there or there.get("type", "object") in ("object", "nested"):
                inner, problems = lacking(field["properties"], there.get("properties", {}), f"{where}.")
                conflicts += problems
                if inner:
                    # The server requires the type nested to be repeated.
                    more[name] = {**({"type": there["type"]} if "type" in there else {}), "properties": inner}
            else:
                conflicts.append(f"'{where}' is of type {there.get('type')} there, and a struct in the schema")
            continue
        kind, has = field["type"], there.get("type", "object")
        if kind != has and has not in _FITS.get(kind, ()):
            conflicts.append(f"'{where}' is of type {has} there, but the schema requires {kind}")
    return more, conflicts
