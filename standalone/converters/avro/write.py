"""Convert values to Avro data: a Connect schema and the Avro schema are compiled once into nested functions.

Usually the Avro schema is the Connect schema's own. If the configuration names another (use.latest.version, use.schema.id), fields are
matched by name, and a mismatch raises an error.
"""

from standalone import DataError, Float32, Instant, Struct, to_float32
from standalone.converters.avro import names
from standalone.converters.avro.misfit import misfit
from standalone.converters.avro.tree import NO_DEFAULT
from standalone.converters.avro.write_bare import default_datum, text
from standalone.converters.avro.write_schema import TYPES
from standalone.converters.json_values import DAY_MS, scale_of
from standalone.data import schema as s
from standalone.data.arrow import unscaled_bytes
from standalone.data.struct import fits


def writer_of(schema, node, options, name_in_union):
    """Return a function from a value of the Schema to a datum (binary.py) of the Node. A mismatch raises DataError, now or when called."""
    return _Compiler(options, name_in_union).of(schema, node, "$")


class _Compiler:
    def __init__(self, options, name_in_union):
        self._options = options
        self._name_in_union = name_in_union

    def of(self, schema, node, path):
        write = self._branch(schema, node, path) if node.type == "union" else self._value(schema, node, path)
        takes_null = node.type == "null" or node.type == "union" and any(branch.type == "null" for branch in node.branches)
        if takes_null and schema.optional:
            return lambda value: None if value is None else write(value)

        def checked(value):
            if value is None:
                if not schema.optional:
                    raise DataError(f"{path}: null for a required {schema.name or schema.type}.")
                raise misfit(path, node, None)
            return write(value)

        return checked

    def _branch(self, schema, node, path):
        if schema.type == s.STRUCT and names.is_union(schema):
            return self._union(schema, node, path)
        branch = self._matching(schema, node)
        if branch is None:
            return _misfits(path, node)
        write, name = self._value(schema, branch, path), self._name_in_union(branch)
        return lambda value: (name, write(value))

    def _union(self, schema, node, path):
        """A struct with one field set: the member of a union."""
        fills = not self._options.ignores_defaults
        members = [(field.name, self.of(field.schema, node, f"{path}.{field.name}")) for field in schema.fields]

        def write(value):
            _must_be_struct(schema, value, path)
            for name, member in members:
                item = value.get(name) if fills else value.stored(name)
                if item is not None:
                    return member(item)
            if schema.optional and any(branch.type == "null" for branch in node.branches):
                return None
            raise DataError(f"{path}: the struct represents a union, so one of its members must be set: {', '.join(name for name, _ in members)}.")

        return write

    def _matching(self, schema, node):
        """Find the union branch for a schema: by its name, or else the only branch of its type."""
        found = [branch for branch in node.branches if self._is_of(schema, branch)]
        own = self._own_name(schema)
        named = [branch for branch in found if branch.name is not None and branch.name == own]
        return named[0] if named else found[0] if found else None

    def _own_name(self, schema):
        if names.is_enum(schema):
            return schema.parameters.get(names.GENERAL_ENUM if self._options.generalized else names.ENUM)
        return names.scrubbed_full(schema.name) if self._options.scrubs else schema.name

    def _is_of(self, schema, node):
        kind = schema.type
        if kind == s.STRUCT:
            return node.type == "record"
        if kind == s.ARRAY:
            return node.type == "array"
        if kind == s.MAP:
            return node.type == ("map" if self._options.is_map(schema) else "array")
        if kind == s.STRING:
            return node.type in ("enum", "string") if names.is_enum(schema) else node.type == "string"
        if kind == s.BYTES:
            return node.type == "fixed" and node.size == int(schema.parameters[names.FIXED_SIZE]) if names.is_fixed(schema) else node.type == "bytes"
        return node.type == TYPES[kind]

    def _value(self, schema, node, path):
        kind = schema.type
        if kind == s.STRUCT and names.is_union(schema):
            return self._union(schema, node, path)
        if kind == s.STRUCT:
            return self._struct(schema, node, path) if node.type == "record" else _misfits(path, node)
        if kind == s.ARRAY:
            return self._array(schema, node, path) if node.type == "array" else _misfits(path, node)
        if kind == s.MAP:
            return self._map(schema, node, path)
        if schema.logical and node.type in ("bytes", "fixed", "int", "long"):
            return _logical(schema, node, path)
        if kind == s.STRING and node.type in ("string", "enum"):
            return _string(schema, path) if node.type == "string" else _enum(schema, node, path)
        if kind == s.BYTES and node.type in ("bytes", "fixed"):
            return _bytes(schema, node, path)
        if TYPES[kind] != node.type:
            return _misfits(path, node)
        return _plain(schema, path)

    def _struct(self, schema, node, path):
        options, parts, fills = self._options, [], not self._options.ignores_defaults
        nodes = {field.name: field for field in node.fields}
        for field in schema.fields:
            name = options.scrubbed(field.name)
            if name in nodes:
                default = field.schema.default if fills else None
                parts.append((name, field.index, default, self.of(field.schema, nodes.pop(name).node, f"{path}.{name}")))
        missing = [field for field in nodes.values() if field.default is NO_DEFAULT]
        constants = {name: default_datum(field, self._name_in_union) for name, field in nodes.items() if field.default is not NO_DEFAULT}

        def write(value):
            _must_be_struct(schema, value, path)
            if missing:
                raise DataError(
                    f"{path}: the record '{node.name}' has a field '{missing[0].name}' without a default, which the struct lacks. "
                    "Give that field a default in the registered schema, or add the field to the struct."
                )
            values, datum = value.values, dict(constants)
            for name, index, default, part in parts:
                item = values[index]
                datum[name] = part(default if item is None else item)
            return datum

        return write

    def _array(self, schema, node, path):
        write = self.of(schema.value_schema, node.inner, f"{path}[]")

        def write_all(value):
            if not isinstance(value, list):
                raise _wrong_class(schema, value, path)
            return [write(item) for item in value]

        return write_all

    def _map(self, schema, node, path):
        if self._options.is_map(schema):
            if node.type != "map":
                return _misfits(path, node)
            item, key = self.of(schema.value_schema, node.inner, f"{path}{{}}"), _key(path)

            def write(value):
                if not isinstance(value, dict):
                    raise _wrong_class(schema, value, path)
                return {key(name): item(each) for name, each in value.items()}

            return write
        if node.type != "array" or node.inner.type != "record":
            return _misfits(path, node)
        nodes = {field.name: field.node for field in node.inner.fields}
        if set(nodes) != {"key", "value"}:
            return _misfits(path, node)
        keys, items = self.of(schema.key_schema, nodes["key"], f"{path}.key"), self.of(schema.value_schema, nodes["value"], f"{path}.value")

        def write_entries(value):
            if not isinstance(value, dict):
                raise _wrong_class(schema, value, path)
            return [{"key": keys(key), "value": items(each)} for key, each in value.items()]

        return write_entries


def _misfits(path, node):
    def write(value):
        raise misfit(path, node, value)

    return write


def _must_be_struct(schema, value, path):
    if not isinstance(value, Struct):
        raise _wrong_class(schema, value, path)
    if value.schema is not schema and value.schema.with_(optional=schema.optional) != schema:
        raise DataError(f"{path}: the struct's schema differs from the declared schema.")


def _wrong_class(schema, value, path):
    return DataError(f"{path}: a {type(value).__name__} does not fit a schema of type {schema.name or schema.type}.")


def _plain(schema, path):
    exact, kind = schema.exact, schema.type

    def write(value):
        if value.__class__ is not exact and not fits(schema, value):
            raise _wrong_class(schema, value, path)
        return to_float32(value) if kind == s.FLOAT32 and value.__class__ is not Float32 else value

    return write


def _string(schema, path):
    def write(value):
        if value.__class__ is not str and not isinstance(value, str):
            raise _wrong_class(schema, value, path)
        return text(value)

    return write


def _key(path):
    def write(value):
        if not isinstance(value, str):
            raise DataError(f"{path}: keys of an Avro map must be strings; found {value!r}.")
        return text(value)

    return write


def _enum(schema, node, path):
    symbols = set(node.symbols)

    def write(value):
        if value not in symbols:
            raise misfit(path, node, value)
        return value

    return write


def _bytes(schema, node, path):
    size = node.size

    def write(value):
        if not fits(schema, value):
            raise _wrong_class(schema, value, path)
        if size is not None and len(value) != size:
            raise misfit(path, node, bytes(value))
        return bytes(value)

    return write


def _logical(schema, node, path):
    name = schema.name
    if name == s.DECIMAL:
        return _decimal(schema, node, path)
    if node.type != TYPES[schema.type]:
        return _misfits(path, node)

    def write(value):
        if not fits(schema, value):
            raise _wrong_class(schema, value, path)
        ms = Instant.of(value).ms
        if name == s.DATE:
            if ms % DAY_MS:
                raise DataError(f"{path}: a Date must be midnight in UTC, but it is {ms % DAY_MS} ms after midnight.")
            return (ms // DAY_MS + (1 << 31)) % (1 << 32) - (1 << 31)
        if name == s.TIME and not 0 <= ms <= DAY_MS:
            raise DataError(f"{path}: a Time must be within 1970-01-01; it is {ms} ms since the epoch.")
        return ms

    return write


def _decimal(schema, node, path):
    scale, size = scale_of(schema), node.size

    def write(value):
        if not fits(schema, value):
            raise _wrong_class(schema, value, path)
        unscaled, own = unscaled_bytes(value)
        if own != scale:
            raise DataError(f"{path}: a Decimal of scale {own}, but its schema has scale {scale}.")
        if size is not None and len(unscaled) <= size:
            return (b"\xff" if unscaled[0] & 0x80 else b"\0") * (size - len(unscaled)) + unscaled
        if size is not None:
            raise misfit(path, node, unscaled)
        return unscaled

    return write
