"""JsonSchemaConverter's values: as in JsonConverter, except maps and unions."""

import json

from standalone import DataError, Struct
from standalone.converters.json_schema.write import has_text_keys, is_union
from standalone.converters.json_text import quoted
from standalone.converters.json_values import reader_of as plain_reader
from standalone.converters.json_values import writer_of as plain_writer
from standalone.data import schema as s
from standalone.data.map_key import as_key

# --- Writing --------------------------------------------------------------------------------------------------------


def writer_of(schema, numeric_decimals, ignores_defaults):
    """Return a function from a value to its JSON text; None for a required null, which is omitted."""
    write = _writer(schema, numeric_decimals, ignores_defaults)
    null = write(schema.default) if schema.default is not None and not ignores_defaults else "null" if schema.optional else None
    return lambda value: null if value is None else write(value)


def _writer(schema, numeric_decimals, ignores_defaults):
    def inner(each):
        return writer_of(each, numeric_decimals, ignores_defaults)

    if schema.type == s.STRUCT:
        write = (_write_union if is_union(schema) else _write_struct)([(field.name, inner(field.schema)) for field in schema.fields])
        fills = not ignores_defaults

        def write_struct(value):
            if not isinstance(value, Struct) or value.schema is not schema and value.schema != schema:
                raise DataError("JsonSchemaConverter: the value is not a struct of the declared schema.")
            if fills:
                return write([field.schema.default if item is None else item for field, item in zip(schema.fields, value.values)])
            return write(value.values)

        return write_struct
    if schema.type == s.ARRAY:
        item = inner(schema.value_schema)
        return lambda value: f"[{','.join(item(each) or 'null' for each in _must_be(list, value))}]"
    if schema.type == s.MAP:
        return _map_writer(schema, inner(schema.key_schema), inner(schema.value_schema))
    return plain_writer(schema, numeric_decimals, not ignores_defaults)


def _write_struct(parts):
    named = [(quoted(name) + ":", write) for name, write in parts]

    def write(values):
        texts = [(name, each(item)) for (name, each), item in zip(named, values)]
        return "{" + ",".join(name + text for name, text in texts if text is not None) + "}"

    return write


def _write_union(parts):
    def write(values):
        for (_, each), item in zip(parts, values):
            if item is not None:
                return each(item)
        return "null"

    return write


def _map_writer(schema, key, item):
    if has_text_keys(schema):
        return lambda value: "{" + ",".join(f"{quoted(name)}:{item(each) or 'null'}" for name, each in _must_be(dict, value).items()) + "}"
    return lambda value: (
        "[" + ",".join(f'{{"key":{key(name) or "null"},"value":{item(each) or "null"}}}' for name, each in _must_be(dict, value).items()) + "]"
    )


def _must_be(kind, value):
    if not isinstance(value, kind):
        raise DataError(f"JsonSchemaConverter: expected a {'list' if kind is list else 'map'}, found a {type(value).__name__}.")
    return value


def is_plain(schema):
    """Whether such values have the same JSON as in JsonConverter: no maps or unions at any depth."""
    if schema.type == s.STRUCT:
        return not is_union(schema) and all(is_plain(field.schema) for field in schema.fields)
    return is_plain(schema.value_schema) if schema.type == s.ARRAY else schema.type != s.MAP


def default_json(numeric_decimals):
    """Return a function from (schema, value) to a default's JSON."""
    return lambda schema, value: json.loads(writer_of(schema, numeric_decimals, False)(value))


# --- Reading --------------------------------------------------------------------------------------------------------


def reader_of(schema):
    """Return a function from parsed JSON to the value."""
    read = _reader(schema)

    def checked(node):
        if node is not None:
            return read(node)
        if schema.default is None and not schema.optional:
            raise DataError(f"JsonSchemaConverter: null for a required {schema.name or schema.type}.")
        return schema.default

    return checked


def _reader(schema):
    kind = schema.type
    if kind == s.STRUCT:
        return _union_reader(schema) if is_union(schema) else _struct_reader(schema)
    if kind == s.ARRAY:
        item = reader_of(schema.value_schema)
        return lambda node: [item(each) for each in _must_be_node(list, node)]
    if kind == s.MAP:
        return _map_reader(schema)
    read = plain_reader(schema)
    if schema.name == s.DECIMAL or kind != s.BYTES:
        return read
    return lambda node: read(node) if isinstance(node, str) else node


def _struct_reader(schema):
    readers = [(field.name, reader_of(field.schema), field.schema.default) for field in schema.fields]

    def read(node):
        _must_be_node(dict, node)
        return Struct.trusted(schema, [each(node[name]) if name in node else default for name, each, default in readers])

    return read


def _union_reader(schema):
    readers = [reader_of(field.schema) for field in schema.fields]

    def read(node):
        best, most = None, -1
        for at, field in enumerate(schema.fields):
            fit = _fit(field.schema, node)
            if fit > most:
                best, most = at, fit
            if fit == _EXACT:
                break
        if best is None:
            raise DataError(
                f"JsonSchemaConverter: no member of the union accepts a {type(node).__name__}: {', '.join(f.schema.type for f in schema.fields)}."
            )
        values = [None] * len(readers)
        values[best] = readers[best](node)
        return Struct.trusted(schema, values)

    return read


_EXACT = 1 << 30
_OF_TYPE = {
    **dict.fromkeys((s.INT8, s.INT16, s.INT32, s.INT64), lambda node: isinstance(node, int) and not isinstance(node, bool)),
    **dict.fromkeys((s.FLOAT32, s.FLOAT64), lambda node: not isinstance(node, (bool, str, list, dict))),
    s.BOOLEAN: lambda node: isinstance(node, bool),
    s.STRING: lambda node: isinstance(node, str),
    s.BYTES: lambda node: isinstance(node, str) or not isinstance(node, (bool, int, list, dict)),
    s.ARRAY: lambda node: isinstance(node, list),
    s.MAP: lambda node: isinstance(node, (list, dict)),
}


def _fit(schema, node):
    """Rate how well JSON fits a union member: among structs, the one with the most matching fields."""
    if schema.type == s.STRUCT:
        return sum(field.name in node for field in schema.fields) if isinstance(node, dict) else -1
    return _EXACT if _OF_TYPE[schema.type](node) else -1


def _map_reader(schema):
    key, item = reader_of(schema.key_schema), reader_of(schema.value_schema)
    if has_text_keys(schema):
        return lambda node: {name: item(each) for name, each in _must_be_node(dict, node).items()}

    def read(node):
        found = {}
        for entry in _must_be_node(list, node):
            if not isinstance(entry, dict) or len(entry) != 2:
                raise DataError("JsonSchemaConverter: a map entry must be an object with 'key' and 'value'.")
            found[as_key(key(entry.get("key")))] = item(entry.get("value"))
        return found

    return read


def _must_be_node(kind, node):
    if not isinstance(node, kind):
        wanted = "an array" if kind is list else "an object"
        raise DataError(f"JsonSchemaConverter: expected {wanted}, found {json.dumps(node, default=str)[:60]}.")
    return node
