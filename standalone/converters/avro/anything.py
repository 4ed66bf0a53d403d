"""Schemaless values as Avro: a record in which the field for the value's type is set."""

from standalone import BigInt, DataError, Float32, Int8, Int16, Int32
from standalone.converters.avro.write_bare import text
from standalone.data.map_key import as_key

_FIELDS = "boolean bytes double float int long string array map".split()
_EMPTY = dict.fromkeys(_FIELDS)
_LOWEST, _HIGHEST = -(1 << 63), (1 << 63) - 1


def write(value):
    if value is None:
        return _EMPTY
    name = _field_of(value)
    if name == "array":
        value = [write(item) for item in value]
    elif name == "map":
        value = [{"key": write(key), "value": write(item)} for key, item in value.items()]
    elif name == "string":
        value = text(value)
    return {**_EMPTY, name: value}


def _field_of(value):
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (Int8, Int16, Int32)):
        return "int"
    if isinstance(value, int) and not isinstance(value, BigInt):
        if _LOWEST <= value <= _HIGHEST:
            return "long"
        raise DataError(f"AvroConverter: {value} exceeds 64 bits, and Avro has no larger integers. Send it as text.")
    if isinstance(value, float):
        return "float" if isinstance(value, Float32) else "double"
    for kind, name in ((str, "string"), (list, "array"), (dict, "map")):
        if isinstance(value, kind):
            return name
    raise DataError(
        f"AvroConverter: a {type(value).__name__} without a schema cannot be written; booleans, numbers, strings, lists and maps can. "
        "Give it a schema, or convert it to a string."
    )


def read(datum):
    for name in _FIELDS:
        value = datum[name]
        if value is not None:
            return _READ[name](value) if name in _READ else value
    return None


def _read_map(entries):
    found = {}
    for entry in entries:
        key = read(entry["key"])
        found[as_key(key) if isinstance(key, (list, dict)) else key] = read(entry["value"])
    return found


_READ = {"int": Int32, "float": Float32, "array": lambda items: [read(item) for item in items], "map": _read_map}
