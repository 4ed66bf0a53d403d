"""Convert Connect schemas to Avro schemas like Confluent's converter: properties that begin with "connect." hold what Avro lacks."""

import json
import math

from standalone import DataError, Instant
from standalone.converters.avro import names
from standalone.converters.json_values import scale_of
from standalone.data import schema as s
from standalone.data.arrow import unscaled_bytes

TYPES = {
    s.INT8: "int",
    s.INT16: "int",
    s.INT32: "int",
    s.INT64: "long",
    s.FLOAT32: "float",
    s.FLOAT64: "double",
    s.BOOLEAN: "boolean",
    s.STRING: "string",
    s.BYTES: "bytes",
}
_LOGICAL = {s.DATE: "date", s.TIME: "time-millis", s.TIMESTAMP: "timestamp-millis"}
_INVALID = object()


class SchemaOptions:
    """The options of AvroConverter that affect schemas."""

    def __init__(self, config):
        self.meta_data = config["connect.meta.data"]
        self.enhanced = config["enhanced.avro.schema.support"]
        self.generalized = config["generalized.sum.type.support"]
        self.scrubs = config["scrub.invalid.names"]
        self.discards_docs = config["discard.type.doc.default"]
        self.optional_map_keys = config["allow.optional.map.keys"]
        self.flattens_singletons = config["flatten.singleton.unions"]
        self.ignores_defaults = config["ignore.default.for.nullables"]

    def is_map(self, schema):
        """Whether a Connect map becomes an Avro map; others become arrays of entries."""
        return schema.key_schema.type == s.STRING and (self.optional_map_keys or not schema.key_schema.optional)

    def scrubbed(self, name):
        return names.scrubbed(name) if self.scrubs else name


def avro_text(schema, options):
    """Return the Avro schema as text."""
    said = _tidied(_Writer(options).of(schema), "", {})
    return json.dumps(said, separators=(",", ":"), ensure_ascii=False)


class _Writer:
    """Writes one schema. First every use of a named type is a full definition with "namespace"; `_tidied` then removes duplicates."""

    def __init__(self, options):
        self._options = options
        self._known = {}  # Schema that is not optional -> its JSON: an unnamed struct is named once
        self._count = 0
        self._entries = []  # fields of entries of unnamed maps: the first kind is MapEntry, the second MapEntry2

    def of(self, schema, ignores_optional=False):
        if schema is None:
            return json.loads(names.ANYTHING_SCHEMA)
        if schema.type == s.STRUCT:
            if names.is_union(schema):
                branches = [self.of(field.schema.with_(optional=False), True) for field in schema.fields]
                return ["null", *branches] if schema.optional else branches
            if schema.optional:
                return ["null", self.of(schema.with_(optional=False))]
        if not schema.optional and schema in self._known:
            return self._known[schema]
        base = self._base(schema)
        if isinstance(base, dict):
            self._describe(base, schema)
            if set(base) == {"type"} and isinstance(base["type"], str):
                base = base["type"]
        if not schema.optional:
            self._known[schema] = base
        elif not ignores_optional:
            return [base, "null"] if schema.default is not None else ["null", base]
        return base

    def _base(self, schema):
        kind, options = schema.type, self._options
        if kind == s.STRUCT:
            return self._record(schema)
        if kind == s.ARRAY:
            return {"type": "array", "items": self.of(schema.value_schema)}
        if kind == s.MAP:
            if options.is_map(schema):
                return {"type": "map", "values": self.of(schema.value_schema)}
            return {"type": "array", "items": self._map_entry(schema)}
        if (options.enhanced or options.generalized) and names.is_enum(schema):
            return self._enum(schema)
        if names.is_fixed(schema):
            return {"type": "fixed", **self._named(schema), "size": int(schema.parameters[names.FIXED_SIZE])}
        return {"type": TYPES[kind]}

    def _named(self, schema, doc=None):
        """ "name", "namespace" and doc of a definition."""
        if schema.name is None:
            self._count += 1
            said = {"name": names.DEFAULT_NAME + (str(self._count) if self._count > 1 else ""), "namespace": names.NAMESPACE}
        else:
            space, _, name = (names.scrubbed_full(schema.name) if self._options.scrubs else schema.name).rpartition(".")
            said = {"name": name, "namespace": space}
        return {**said, "doc": doc} if doc is not None else said

    def _record(self, schema):
        options, parameters = self._options, schema.parameters or {}
        doc = parameters.get("connect.record.doc" if options.discards_docs else names.RECORD_DOC)
        said = {"type": "record", **self._named(schema, doc), "fields": []}
        for field in schema.fields:
            doc = field.schema.doc if options.discards_docs else parameters.get(names.FIELD_DOC + field.name)
            said["fields"].append(self._field(options.scrubbed(field.name), field.schema, doc))
        return said

    def _field(self, name, schema, doc=None):
        said = {"name": name, "type": self.of(schema)}
        if doc is not None:
            said["doc"] = doc
        if schema.default is not None:
            default = _field_default(schema, schema.default, self._options)
            if default is not _INVALID:
                said["default"] = default
        elif schema.optional:
            said["default"] = None
        return said

    def _map_entry(self, schema):
        fields = [self._field("key", schema.key_schema), self._field("value", schema.value_schema)]
        if schema.name is not None:
            return {"type": "record", **self._named(schema), "fields": fields, "connect.internal.type": names.MAP_ENTRY}
        said = {"type": "record", "name": names.MAP_ENTRY, "namespace": names.NAMESPACE, "fields": fields}
        if fields not in self._entries:
            self._entries.append(fields)
        if number := self._entries.index(fields):  # Java's converter fails on a second kind of entry, but reads this one
            said.update({"name": f"{names.MAP_ENTRY}{number + 1}", "connect.internal.type": names.MAP_ENTRY})
        return said

    def _enum(self, schema):
        options, parameters = self._options, schema.parameters
        param = names.GENERAL_ENUM if options.generalized else names.ENUM
        simple = self._named(schema)["name"]
        space, _, name = parameters.get(param, parameters.get(names.ENUM) or parameters.get(names.GENERAL_ENUM) or simple).rpartition(".")
        said = {"type": "enum", "name": name, "namespace": space}
        doc = parameters.get("connect.enum.doc" if options.discards_docs else names.ENUM_DOC + simple)
        if doc is not None:
            said["doc"] = doc
        said["symbols"] = [key[len(param) + 1 :] for key in parameters if key.startswith(param + ".")]
        if not options.discards_docs and names.ENUM_DEFAULT + simple in parameters:
            said["default"] = parameters[names.ENUM_DEFAULT + simple]
        return said

    def _describe(self, said, schema):
        """Add the properties that Avro lacks."""
        parameters = schema.parameters or {}
        is_decimal = schema.name == s.DECIMAL
        if is_decimal:
            scale, precision = scale_of(schema), int(parameters.get(names.PRECISION, names.DEFAULT_PRECISION))
            said["scale"], said["precision"] = scale, precision
        if self._options.meta_data:
            self._add_meta_data(said, schema, parameters)
        if is_decimal:
            said["logicalType"] = "decimal"
        elif schema.name in _LOGICAL:
            said["logicalType"] = _LOGICAL[schema.name]
        said.update((key, value) for key, value in parameters.items() if key.startswith("avro"))

    def _add_meta_data(self, said, schema, parameters):
        discards = self._options.discards_docs
        if schema.doc is not None:
            said["connect.doc"] = schema.doc
        if schema.version is not None:
            said["connect.version"] = schema.version
        if shown := {key: value for key, value in parameters.items() if discards or key != names.FIELD_DEFAULT}:
            said["connect.parameters"] = shown
        if schema.default is not None and (discards or names.FIELD_DEFAULT not in parameters):
            said["connect.default"] = default_json(schema, schema.default, self._options)
        if schema.name is not None:
            said["connect.name"] = schema.name
        if schema.type in (s.INT8, s.INT16):
            said["connect.type"] = schema.type


# --- Names ----------------------------------------------------------------------------------------------------------


def _tidied(said, space, seen):
    """Keep each definition at its first occurrence and replace later ones by the name; omit a namespace equal to the enclosing
    record's. `seen` are the definitions so far, by full name."""
    if isinstance(said, str):
        return said
    if isinstance(said, list):
        return [_tidied(each, space, seen) for each in said]
    if "name" in said:
        return _tidied_definition(said, space, seen)
    return {key: _tidied(each, space, seen) if key in ("items", "values") else each for key, each in said.items()}


def _tidied_definition(said, space, seen):
    own = said["namespace"]
    full = f"{own}.{said['name']}" if own else said["name"]
    if full in seen:
        if seen[full] != said:
            raise DataError(f"Two different schemas have the name '{full}', which Avro does not allow. Rename one of them.")
        return said["name"] if own == space else full
    seen[full] = said
    found = {key: each for key, each in said.items() if key != "namespace" or own != space}
    if "fields" in said:
        found["fields"] = [{**field, "type": _tidied(field["type"], own, seen)} for field in said["fields"]]
    return found


# --- Defaults -------------------------------------------------------------------------------------------------------


def default_json(schema, value, options):
    """Return a default as JSON for "connect.default"."""
    if value is None:
        return None
    if schema.name == s.DECIMAL:
        return unscaled_bytes(value)[0].decode("latin-1")
    if schema.logical:
        ms = Instant.of(value).ms
        return ms // 86_400_000 if schema.name == s.DATE else ms
    kind = schema.type
    if kind in (s.FLOAT32, s.FLOAT64):
        return float(value) if math.isfinite(value) else "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if kind == s.BYTES:
        return bytes(value).decode("latin-1")
    if kind == s.ARRAY:
        return [default_json(schema.value_schema, item, options) for item in value]
    if kind == s.MAP:
        if options.is_map(schema):
            return {key: default_json(schema.value_schema, item, options) for key, item in value.items()}
        return [[default_json(schema.key_schema, key, options), default_json(schema.value_schema, item, options)] for key, item in value.items()]
    if kind == s.STRUCT:
        parts = {field.name: default_json(field.schema, item, options) for field, item in zip(schema.fields, value.values)}
        if names.is_union(schema):
            return next((each for each in parts.values() if each is not None), None)
        return {options.scrubbed(name): each for name, each in parts.items()}
    if kind in TYPES:
        return value
    raise DataError(f"Avro cannot express a default of type {kind}.")


def _field_default(schema, value, options):
    """Return a record field's default; _INVALID if Avro does not allow it, so that only "connect.default" has it."""
    kind = schema.type
    if kind in (s.FLOAT32, s.FLOAT64) and not math.isfinite(value):
        return _INVALID
    if kind == s.MAP and (not options.is_map(schema) or any(key is None for key in value)):
        return _INVALID
    if kind in (s.ARRAY, s.MAP):
        items = value if kind == s.ARRAY else value.values()
        if any(item is not None and _field_default(schema.value_schema, item, options) is _INVALID for item in items):
            return _INVALID
    return default_json(schema, value, options)
