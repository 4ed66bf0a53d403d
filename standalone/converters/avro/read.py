"""Convert Avro data to Connect values: an Avro schema and its Connect schema are compiled once into nested functions."""

from standalone import DataError, Float32, Instant, SerializationError, Struct
from standalone.converters.avro.names import is_union
from standalone.converters.avro.read_schema import is_map_entry, optional_branch
from standalone.converters.json_values import DAY_MS, scale_of
from standalone.data import schema as s
from standalone.data.arrow import decimal_of
from standalone.data.map_key import as_key


def reader_of(schema, node):
    """Return a function from a datum (binary.py) to the value; None if they are identical."""
    if node.type == "union":
        return _union(schema, node)
    read = _value(schema, node)
    if read is None:
        return None
    return read if not schema.optional else lambda datum: None if datum is None else read(datum)


def _union(schema, node):
    if (one := optional_branch(node)) is not None:
        return reader_of(schema, one)
    if not is_union(schema):  # a union of one type, which equals that type
        read = reader_of(schema, node.branches[0])
        return (lambda datum: datum[1]) if read is None else lambda datum: read(datum[1])
    members, at = {}, 0
    for number, branch in enumerate(node.branches):
        if branch.type != "null":
            members[number] = at, reader_of(schema.fields[at].schema, branch)
            at += 1

    def read_member(datum):
        if datum is None:
            return None
        place, read = members[datum[0]]
        values = [None] * at
        values[place] = datum[1] if read is None else read(datum[1])
        return Struct.trusted(schema, values)

    return read_member


def _value(schema, node):
    kind = schema.type
    if schema.name == s.DECIMAL and node.type in ("bytes", "fixed"):
        scale = scale_of(schema)
        return lambda datum: _decimal(datum, scale)
    if schema.name == s.DATE:
        return lambda datum: Instant(_int32(datum) * DAY_MS)
    if schema.logical:
        return Instant if node.type == "long" else lambda datum: Instant(_int32(datum))
    if kind == s.STRUCT:
        return _record(schema, node)
    if kind == s.ARRAY:
        read = reader_of(schema.value_schema, node.inner)
        return read and (lambda datum: [read(item) for item in datum])
    if kind == s.MAP:
        return _map(schema, node)
    if kind in (s.INT8, s.INT16):
        return _narrowed(8 if kind == s.INT8 else 16)
    if kind == s.INT32:
        return _int32
    return Float32 if kind == s.FLOAT32 else None


def _int32(datum):
    if -0x80000000 <= datum <= 0x7FFFFFFF:
        return datum
    raise SerializationError(f"The bytes do not match their schema: {datum} exceeds the 32 bits of an int.")


def _narrowed(bits):
    """Truncate to an int, as Java does."""
    half = 1 << bits - 1
    return lambda datum: (_int32(datum) + half) % (2 * half) - half


def _decimal(datum, scale):
    if not datum:
        raise DataError("An Avro decimal is empty: it needs at least one byte.")
    return decimal_of(datum, scale)


def _record(schema, node):
    parts = [(field.name, reader_of(each.schema, field.node)) for field, each in zip(node.fields, schema.fields)]
    if not any(read for _, read in parts):
        return lambda datum: Struct.trusted(schema, list(datum.values()))

    def read_record(datum):
        return Struct.trusted(schema, [datum[name] if read is None else read(datum[name]) for name, read in parts])

    return read_record


def _map(schema, node):
    if node.type == "map":
        read = reader_of(schema.value_schema, node.inner)
        return read and (lambda datum: {key: read(item) for key, item in datum.items()})
    assert is_map_entry(node.inner)
    nodes = {field.name: field.node for field in node.inner.fields}
    keys, items = (reader_of(each, nodes[name]) for each, name in ((schema.key_schema, "key"), (schema.value_schema, "value")))
    needs_key = schema.key_schema.type in (s.STRUCT, s.ARRAY, s.MAP)

    def read_entries(datum):
        found = {}
        for entry in datum:
            key = entry["key"] if keys is None else keys(entry["key"])
            found[as_key(key) if needs_key else key] = entry["value"] if items is None else items(entry["value"])
        return found

    return read_entries
