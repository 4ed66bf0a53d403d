"""Convert schemaless (JSON-like) values to Avro data of a given Avro schema; bytes may be a string of their code points."""

from standalone import DataError, to_float32
from standalone.converters.avro.misfit import misfit
from standalone.converters.avro.tree import NO_DEFAULT


def bare_writer_of(node, name_in_union, path="$"):
    """Return a function from a schemaless value to a datum of the Node."""

    def inner(each, step):
        return bare_writer_of(each, name_in_union, path + step)

    kind = node.type
    if kind == "union":
        members = [(branch, name_in_union(branch), inner(branch, "")) for branch in node.branches]

        def choose(value):
            for branch, name, write in members:
                if _is_plausible(branch, value):
                    return None if value is None else (name, write(value))
            raise misfit(path, node, value)

        return choose
    if kind == "record":
        fields = [(field, inner(field.node, f".{field.name}")) for field in node.fields]
        known = {field.name for field in node.fields}

        def record(value):
            if not isinstance(value, dict):
                raise misfit(path, node, value)
            if strange := [name for name in value if name not in known]:
                raise DataError(
                    f"{path} has a field '{strange[0]}', which the Avro record {node.name} lacks. Its fields: {', '.join(sorted(known))}."
                )
            return {field.name: _field_datum(field, write, value, path, name_in_union) for field, write in fields}

        return record
    if kind == "array":
        item = inner(node.inner, "[]")
        return lambda value: [item(each) for each in value] if isinstance(value, list) else _raise(misfit(path, node, value))
    if kind == "map":
        item = inner(node.inner, "{}")
        return lambda value: {text(key): item(each) for key, each in value.items()} if isinstance(value, dict) else _raise(misfit(path, node, value))

    def leaf(value):
        if not _is_plausible(node, value):
            raise misfit(path, node, value)
        return _leaf(node, value)

    return leaf


def _leaf(node, value):
    if node.type in ("bytes", "fixed"):
        return value.encode("latin-1") if isinstance(value, str) else bytes(value)
    if node.type in ("float", "double"):
        return float(to_float32(value)) if node.type == "float" else float(value)
    return text(value) if node.type == "string" else value


def _field_datum(field, write, value, path, name_in_union):
    if field.name in value:
        return write(value[field.name])
    if field.default is NO_DEFAULT:
        raise DataError(f"{path} lacks the field '{field.name}', which has no default in the Avro schema. Send it, or give the field a default.")
    return default_datum(field, name_in_union)


def default_datum(field, name_in_union):
    """Return a field's default; for a union it may be of any member type."""
    return bare_writer_of(field.node, name_in_union, f"the default of {field.name}")(field.default)


def _raise(error):
    raise error


def _is_plausible(node, value):
    kind = node.type
    if kind == "null":
        return value is None
    if kind == "boolean":
        return isinstance(value, bool)
    if kind in ("int", "long"):
        return (
            isinstance(value, int)
            and not isinstance(value, bool)
            and -1 << (31 if kind == "int" else 63) <= value < 1 << (31 if kind == "int" else 63)
        )
    if kind in ("float", "double"):
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind in ("bytes", "fixed"):
        fit = isinstance(value, (bytes, bytearray)) or isinstance(value, str) and all(each < "\u0100" for each in value)
        return fit and (kind == "bytes" or len(value) == node.size)
    if kind == "enum":
        return value in node.symbols if isinstance(value, str) else False
    return isinstance(value, {"string": str, "array": list, "map": dict, "record": dict}[kind])


def text(value):
    """Return a string valid in UTF-8: an unpaired surrogate becomes a question mark, as in Java."""
    if value.isascii():
        return value
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-8", "replace").decode()
    return value
