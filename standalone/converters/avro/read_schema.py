"""Convert Avro schemas to Connect schemas like Confluent's converter."""

import logging
from decimal import Decimal

from standalone import DataError, Field, Instant, Schema, to_float32
from standalone.converters.avro import names
from standalone.converters.avro.tree import NO_DEFAULT
from standalone.data import schema as s
from standalone.data.arrow import decimal_of
from standalone.data.struct import validate_value

log = logging.getLogger(__name__)

_PLAIN = {"boolean": s.BOOLEAN, "float": s.FLOAT32, "double": s.FLOAT64, "string": s.STRING, "bytes": s.BYTES}
_INT_LOGICAL = {"date": s.DATE, "time-millis": s.TIME}
_NARROW = {"int8": s.INT8, "int16": s.INT16}


def connect_schema(node, options, version=None):
    """Return the Schema of a Node (tree.py). `version` applies to structs without a version of their own."""
    return _Reader(options).of(node, version=version)


def is_map_entry(node):
    """Whether an array of this record represents a map."""
    return node.type == "record" and (
        node.name == f"{names.NAMESPACE}.{names.MAP_ENTRY}" or node.props.get("connect.internal.type") == names.MAP_ENTRY
    )


def optional_branch(node):
    """Return the other branch of a two-branch union with null; else None."""
    if node.type == "union" and len(node.branches) == 2:
        others = [branch for branch in node.branches if branch.type != "null"]
        return others[0] if len(others) == 1 else None
    return None


def member_name(node, index, options):
    """Return the struct field name of a union member; `index` is its position, nulls included."""
    if options.generalized:
        return f"{names.FIELD_PREFIX}{index}"
    if node.name is not None:
        return node.name if options.enhanced else node.simple_name
    return node.type


class _Reader:
    def __init__(self, options):
        self._options = options
        self._unions = 0

    def of(self, node, optional=False, default=NO_DEFAULT, doc=None, version=None):
        options = self._options
        if node.type == "union":
            if len(node.branches) == 1 and options.flattens_singletons:
                return self.of(node.branches[0], doc=doc)
            if (one := optional_branch(node)) is not None:
                return self.of(one, True, doc=doc)
        said = {"optional": optional, "parameters": {}}
        _BUILD[node.type](self, node, said)
        self._add_meta_data(node, said, doc, version)
        parameters = said["parameters"]
        parameters.update((key, str(each)) for key, each in node.props.items() if key.startswith("avro"))
        connect_default = node.props.get("connect.default")
        if default is NO_DEFAULT:
            default = NO_DEFAULT if connect_default is None else connect_default
        elif not options.discards_docs and options.meta_data and connect_default is None:
            parameters[names.FIELD_DEFAULT] = "true"
        self._name(node, said)
        schema = Schema(**said)
        return schema if default is NO_DEFAULT or default is None else self._with_default(schema, default)

    def _with_default(self, schema, default):
        if schema.type == s.STRUCT:
            log.debug("The default of a struct is ignored: %s.", schema.name)  # a schema cannot contain its own value
            return schema
        try:
            value = _default_of(schema, default, self._options)
            validate_value(schema, value)
        except (DataError, TypeError, ValueError, AttributeError) as error:
            log.warning("An invalid default in the Avro schema is ignored: %.100r is not a %s: %s", default, schema.name or schema.type, error)
            return schema
        return schema.with_(default=value)

    # --- one method per Avro type ---

    def _primitive(self, node, said):
        said["type"] = _PLAIN[node.type]
        if node.type == "bytes":
            self._maybe_decimal(node, said)

    def _fixed(self, node, said):
        said["type"] = s.BYTES
        self._maybe_decimal(node, said)
        said["parameters"][names.FIXED_SIZE] = str(node.size)

    def _maybe_decimal(self, node, said):
        if str(node.logical).lower() != "decimal":
            return
        scale, precision = node.props.get("scale"), node.props.get("precision")
        said.update(name=s.DECIMAL, version=1)
        said["parameters"][s.SCALE] = str(int(scale) if isinstance(scale, (int, float)) else 0)
        if precision is not None:
            if not isinstance(precision, (int, float)):
                raise DataError(f"The precision of an Avro decimal must be a number; found {precision!r}.")
            if int(precision) != names.DEFAULT_PRECISION:
                said["parameters"][names.PRECISION] = str(int(precision))

    def _int(self, node, said):
        logical, narrow = str(node.logical).lower(), node.props.get("connect.type")
        said["type"] = s.INT32
        if logical in _INT_LOGICAL:
            said.update(name=_INT_LOGICAL[logical], version=1)
        elif node.logical is None and narrow is not None:
            if narrow not in _NARROW:
                raise DataError(f"The connect.type of an Avro int is int8 or int16; found {narrow!r}.")
            said["type"] = _NARROW[narrow]

    def _long(self, node, said):
        said["type"] = s.INT64
        if str(node.logical).lower() == "timestamp-millis":
            said.update(name=s.TIMESTAMP, version=1)

    def _array(self, node, said):
        item = node.inner
        if is_map_entry(item):
            fields = {field.name: field.node for field in item.fields}
            if set(fields) != {"key", "value"}:
                raise DataError(
                    f"The Avro record '{item.name}' represents a map entry, but its fields are {', '.join(fields)} instead of key and value."
                )
            said.update(type=s.MAP, key_schema=self.of(fields["key"]), value_schema=self.of(fields["value"]))
        else:
            said.update(type=s.ARRAY, value_schema=self.of(item))

    def _map(self, node, said):
        said.update(type=s.MAP, key_schema=Schema.STRING, value_schema=self.of(node.inner))

    def _record(self, node, said):
        options, shows_docs = self._options, self._options.meta_data and not self._options.discards_docs
        said["type"] = s.STRUCT
        if shows_docs and node.doc is not None:
            said["parameters"][names.RECORD_DOC] = node.doc
        fields = []
        for at, field in enumerate(node.fields):
            if shows_docs and field.doc is not None:
                said["parameters"][names.FIELD_DOC + field.name] = field.doc
            doc = field.doc if options.discards_docs else None
            fields.append(Field(field.name, at, self.of(field.node, default=field.default, doc=doc)))
        said["fields"] = fields

    def _enum(self, node, said):
        options, parameters = self._options, said["parameters"]
        said["type"] = s.STRING
        if options.meta_data:
            if node.doc is not None:
                parameters["connect.enum.doc" if options.discards_docs else names.ENUM_DOC + node.simple_name] = node.doc
            if not options.discards_docs and node.default is not None:
                parameters[names.ENUM_DEFAULT + node.simple_name] = node.default
        param = names.GENERAL_ENUM if options.generalized else names.ENUM
        parameters[param] = node.name
        for at, symbol in enumerate(node.symbols):
            parameters[f"{param}.{symbol}"] = str(at) if options.generalized else symbol

    def _union(self, node, said):
        options = self._options
        name = names.UNION
        if options.generalized:
            name = f"{names.UNION_PREFIX}{self._unions}"
            self._unions += 1
            said["parameters"][names.GENERAL_UNION] = name
        fields = {}
        for at, branch in enumerate(node.branches):
            if branch.type == "null":
                said["optional"] = True
                continue
            field = member_name(branch, at, options)
            if field in fields:
                raise DataError(f"Two members of an Avro union both map to the field '{field}'. Set enhanced.avro.schema.support=true to keep both.")
            fields[field] = self.of(branch, True)
        said.update(type=s.STRUCT, name=name, fields=[Field(field, at, each) for at, (field, each) in enumerate(fields.items())])

    def _null(self, node, said):
        raise DataError("The Avro type null has no Connect schema by itself: use a union with another type.")

    # --- "connect." properties ---

    def _add_meta_data(self, node, said, doc, version):
        options, props, parameters = self._options, node.props, said["parameters"]
        if options.discards_docs:
            said["doc"] = doc if doc is not None else node.doc if node.doc is not None else props.get("connect.doc")
            if options.meta_data and node.doc is not None:
                parameters["connect.record.doc"] = node.doc
        elif options.meta_data:
            said["doc"] = props.get("connect.doc")
        own = props.get("connect.version")
        if own is None and version is not None:
            said.setdefault("version", version)
        if own is not None:
            if not isinstance(own, int):
                raise DataError(f"connect.version must be a number; found {own!r}.")
            if own >= 0:
                if said.get("version", own) != own:
                    raise DataError(f"connect.version is {own}, but schema {said['name']} has version {said['version']}.")
                said["version"] = own
        more = props.get("connect.parameters")
        if options.meta_data and more is not None:
            if not isinstance(more, dict) or not all(isinstance(each, str) for each in more.values()):
                raise DataError(f"connect.parameters must be an object with string values; found {more!r}.")
            parameters.update(more)

    def _name(self, node, said):
        name = node.props.get("connect.name", node.name)
        if name is None or name.startswith(names.DEFAULT_FULL_NAME):
            return
        if not isinstance(name, str):
            raise DataError(f"connect.name must be a string; found {name!r}.")
        if said.get("name", name) != name and not (node.type == "fixed" and said["name"] == s.DECIMAL and "connect.name" not in node.props):
            raise DataError(f"connect.name is '{name}', but its type is named '{said['name']}'.")
        said.setdefault("name", name)


_BUILD = {
    **dict.fromkeys(_PLAIN, _Reader._primitive),
    "int": _Reader._int,
    "long": _Reader._long,
    "fixed": _Reader._fixed,
    "array": _Reader._array,
    "map": _Reader._map,
    "record": _Reader._record,
    "enum": _Reader._enum,
    "union": _Reader._union,
    "null": _Reader._null,
}


def _default_of(schema, value, options):
    """Convert a default's JSON to a value."""
    if value is None:
        return None
    kind = schema.type
    if schema.name == s.DECIMAL:
        return _decimal(schema, value)
    if schema.name == s.DATE:
        return Instant(value * 86_400_000)
    if schema.logical:
        return Instant(value)
    if kind == s.FLOAT32:
        return to_float32(float(value))
    if kind == s.FLOAT64:
        return float(value)
    if kind == s.BYTES:
        return value.encode("latin-1")
    if kind == s.ARRAY:
        return [_default_of(schema.value_schema, item, options) for item in value]
    if kind == s.MAP:
        pairs = value.items() if isinstance(value, dict) else [(_default_of(schema.key_schema, key, options), item) for key, item in value]
        return {key: _default_of(schema.value_schema, item, options) for key, item in pairs}
    if kind == s.STRUCT:
        raise DataError("structs inside defaults are not supported")
    return value


def _decimal(schema, value):
    if isinstance(value, Decimal):
        return value
    return decimal_of(value.encode("latin-1"), int(schema.parameters[s.SCALE]))
