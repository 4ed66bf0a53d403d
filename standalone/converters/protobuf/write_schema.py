"""Convert Connect schemas to .proto text like Confluent's converter."""

from standalone import DataError
from standalone.converters.protobuf import names
from standalone.converters.shared_names import GENERAL_ENUM, GENERAL_UNION, scrubbed
from standalone.data import schema as s

_TYPES = {
    s.INT8: "int32",
    s.INT16: "int32",
    s.INT32: "int32",
    s.INT64: "int64",
    s.FLOAT32: "float",
    s.FLOAT64: "double",
    s.BOOLEAN: "bool",
    s.STRING: "string",
    s.BYTES: "bytes",
}
_LOGICAL = {s.DECIMAL: names.DECIMAL, s.DATE: names.DATE, s.TIME: names.TIME, s.TIMESTAMP: names.TIMESTAMP}
_UNSIGNED = {"uint32": "uint32", "fixed32": "uint32", "uint64": "uint64", "fixed64": "uint64"}


class ProtobufOptions:
    """The options of ProtobufConverter that affect schemas."""

    def __init__(self, config):
        self.enhanced = config["enhanced.protobuf.schema.support"]
        self.generalized = config["generalized.sum.type.support"]
        self.scrubs = config["scrub.invalid.names"]
        self.int_for_enums = config["int.for.enums"]
        self.optional_for_nullables = config["optional.for.nullables"]
        self.optional_for_proto2 = config["optional.for.proto2"]
        self.wrapper_for_nullables = config["wrapper.for.nullables"]
        self.wrapper_for_raw = config["wrapper.for.raw.primitives"]
        self.struct_for_nulls = config["generate.struct.for.nulls"]
        self.index_for_unions = config["generate.index.for.unions"]
        self.flattens_unions = config["flatten.unions"]
        self.ignores_defaults = config["ignore.default.for.nullables"]

    def scrubbed(self, name):
        return scrubbed(name, True) if self.scrubs else name


def is_union(schema):
    return schema.type == s.STRUCT and (str(schema.name).startswith(names.UNION) or GENERAL_UNION in (schema.parameters or ()))


def is_enum(schema):
    return schema.type in (s.STRING, s.INT32) and any(each in (schema.parameters or ()) for each in (GENERAL_ENUM, names.ENUM))


def proto_text(schema, options):
    """Return (.proto text, index path of the schema's message in it)."""
    if schema.type == s.STRUCT and not is_union(schema):
        return _Writer(options).file(schema), [0]
    if schema.type in _TYPES and not schema.logical:
        return names.WRAPPERS_TEXT + "\n", [list(names.WRAPPERS).index(names.WRAPPER_OF[_TYPES[schema.type]])]
    raise DataError(f"A Protobuf message must be a struct or a primitive; found {schema.name or schema.type}. HoistField wraps it in a struct.")


class _Writer:
    def __init__(self, options):
        self._options = options
        self._imports = {}
        self._unnamed = 0

    def file(self, schema):
        full = schema.name or self._new_name()
        space, _, name = full.rpartition(".")
        body = self._message(self._options.scrubbed(name), schema, "")
        lines = ['syntax = "proto3";', *([f"package {space};"] if space else []), ""]
        if self._imports:
            lines += [*(f'import "{each}";' for each in sorted(self._imports)), ""]
        return "\n".join([*lines, *body]) + "\n"

    def _new_name(self):
        self._unnamed += 1
        return f"{names.DEFAULT_NAME}{self._unnamed}"

    def _unqualified(self, name):
        return self._options.scrubbed((name or self._new_name()).rpartition(".")[2])

    def _message(self, name, schema, indent):
        fields, inner, known = [], [], {name: None}  # type names in this scope -> their types; the message's own maps to itself
        used = {int(tag) for field in schema.fields for tag in _tags(field.schema)}
        numbers = (number for number in range(1, 1 << 29) if number not in used and not 19000 <= number < 20000)
        for field in schema.fields:
            if is_union(field.schema):
                fields += self._oneof(field.schema, numbers, inner, known, indent)
            else:
                fields.append(self._field(field.name, field.schema, numbers, inner, known, indent + "  "))
        return [f"{indent}message {name} {{", *fields, *inner, f"{indent}}}"]

    def _oneof(self, schema, numbers, inner, known, indent):
        if self._options.generalized and GENERAL_UNION in (schema.parameters or ()):
            name = schema.parameters[GENERAL_UNION]
        else:
            name = self._unqualified(schema.name[len(names.UNION_PREFIX) :])
        lines = [self._field(field.name, field.schema.with_(optional=False), numbers, inner, known, indent + "    ") for field in schema.fields]
        return [f"{indent}  oneof {name} {{", *lines, f"{indent}  }}"]

    def _field(self, name, schema, numbers, inner, known, indent):
        name = self._options.scrubbed(name)
        label, tag = "", (schema.parameters or {}).get(names.TAG)
        number = int(tag) if tag is not None else next(numbers)
        if schema.type in (s.ARRAY, s.MAP):
            label = "repeated "
            schema = schema.value_schema if schema.type == s.ARRAY else schema
            if schema.type == s.ARRAY:
                raise DataError(f"The field '{name}' is a list of lists, which Protobuf does not support. Put the inner list into a struct.")
        elif self._options.optional_for_nullables and schema.optional:
            label = "optional "
        params = {}
        kind = self._type(name, schema, params, inner, known, indent[: -2 if len(indent) > 2 else None] or "")
        said = ""
        if params:
            self._imports[names.META_FILE] = True
            pairs = ", ".join(f'{{ key: "{key}", value: "{value}" }}' for key, value in params.items())
            said = f" [(confluent.field_meta) = {{ params: [{pairs}] }}]"
        return f"{indent}{label}{kind} {name} = {number}{said};"

    def _type(self, name, schema, params, inner, known, indent):
        if schema.name in _LOGICAL:
            return self._logical(schema, params)
        if is_enum(schema):
            return self._enum(schema, inner, known)
        kind, parameters = schema.type, schema.parameters or {}
        if kind == s.MAP:
            return self._map(schema, inner, known)
        if kind == s.STRUCT:
            message = self._unqualified(schema.name)
            message, is_new = _free_name(message + ("Message" if message == name else ""), schema, known)
            if is_new:
                inner += self._message(message, schema, "  ")
            return message
        if kind in (s.INT8, s.INT16):
            params["connect.type"] = kind
        own = parameters.get(names.TYPE, _TYPES[kind]) if kind in (s.INT32, s.INT64) else _TYPES[kind]
        if self._options.wrapper_for_nullables and schema.optional:
            self._imports[names.WRAPPERS_FILE] = True
            return names.WRAPPER_OF[_UNSIGNED.get(own, _TYPES[kind])]
        return own

    def _logical(self, schema, params):
        kind = _LOGICAL[schema.name]
        self._imports[names.FILES[kind]] = True
        if schema.name == s.DECIMAL:
            parameters = schema.parameters or {}
            if "connect.decimal.precision" in parameters:
                params["precision"] = parameters["connect.decimal.precision"]
            if s.SCALE in parameters:
                params["scale"] = parameters[s.SCALE]
        return kind

    def _enum(self, schema, inner, known):
        param = GENERAL_ENUM if GENERAL_ENUM in schema.parameters else names.ENUM
        name, is_new = _free_name(self._unqualified(schema.name or schema.parameters[param]), schema, known)
        if is_new:
            symbols = [(key[len(param) + 1 :], int(tag)) for key, tag in schema.parameters.items() if key.startswith(param + ".")]
            symbols.sort(key=lambda each: each[1] != 0)  # proto3 requires the symbol 0 first
            inner += [f"  enum {name} {{", *(f"    {symbol} = {tag};" for symbol, tag in symbols), "  }"]
        return name

    def _map(self, schema, inner, known):
        name, is_new = _free_name(_entry_name(self._unqualified(schema.name)), schema, known)
        if is_new:
            entry, numbers = [], iter((1, 2))
            fields = [
                self._field(key, each.with_(parameters=_without_tag(each)), numbers, entry, {name: None}, "    ")
                for key, each in (("key", schema.key_schema), ("value", schema.value_schema))
            ]
            inner += [f"  message {name} {{", *fields, *entry, "  }"]
        return name


def _free_name(name, schema, known):
    """Return (the name of a schema's type within its message, whether it is new). A name conflict gets a number before `Entry`."""
    form, found, number = _form(schema.with_(optional=False, parameters=_without_tag(schema))), name, 1
    while found in known and known[found] != form:
        number += 1
        found = f"{name[: -len('Entry')]}{number}Entry" if schema.type == s.MAP else f"{name}{number}"
    is_new = found not in known
    known[found] = form
    return found, is_new


def _form(schema):
    """Return a key for the text of a type."""
    inner = [_form(each) for each in (schema.key_schema, schema.value_schema) if each is not None]
    fields = [(field.name, _form(field.schema)) for field in schema.fields or ()]
    return schema.type, schema.name, schema.optional, sorted((schema.parameters or {}).items()), inner, fields


def _entry_name(name):
    if "_" in name:
        name = "".join(part[:1].upper() + part[1:].lower() for part in name.split("_"))
    return name + "Entry"


def _without_tag(schema):
    return {key: value for key, value in (schema.parameters or {}).items() if key != names.TAG}


def _tags(schema):
    """Return the tag numbers that a field, or the members of a union, require."""
    members = [field.schema for field in schema.fields] if is_union(schema) else [schema]
    return [each.parameters[names.TAG] for each in members if names.TAG in (each.parameters or ())]
