"""JsonConverter's payload by row: values to JSON text, and parsed JSON to values.

A schema is compiled once into nested functions, so that records cost little.
"""

import binascii
import re
from decimal import Decimal

from standalone import BigInt, DataError, Float32, Instant, Struct, java_text, to_float32
from standalone.converters.json_text import MISSING, quoted
from standalone.data import schema as s
from standalone.data.arrow import decimal_of, unscaled_bytes
from standalone.data.java_numbers import half_way
from standalone.data.map_key import as_key
from standalone.data.struct import fits, validate_value

DAY_MS = 86_400_000
_LOWEST, _HIGHEST = -(1 << 63), (1 << 63) - 1


# --- Writing with a schema -----------------------------------------------------------------------------------------


def writer_of(schema, numeric_decimals, fills_defaults):
    """Return a function from a value to its JSON text."""
    if schema is None:
        return write_schemaless
    write = _logical_writer(schema, numeric_decimals) or _plain_writer(schema, numeric_decimals, fills_defaults)
    if schema.default is not None and fills_defaults:
        null = write(schema.default)
    elif schema.optional:
        null = "null"
    else:
        null = None
    exact, is_text, is_double = schema.exact, schema.exact is str, schema.exact is float

    def checked(value):
        if value is None:
            if null is None:
                raise DataError(f"JsonConverter: null for a required {_named(schema)} without a default.")
            return null
        if value.__class__ is exact:
            if is_text:
                return quoted(value)
            if is_double:
                return _float_text(value)
        return write(value)

    return checked


def _logical_writer(schema, numeric_decimals):
    if schema.name == s.DECIMAL:
        return _write_number if numeric_decimals else _decimal_bytes_writer(schema)
    if not schema.logical:
        return None
    name = schema.name

    def write(value):
        if not fits(schema, value):
            raise _wrong_class(schema, value)
        ms = Instant.of(value).ms
        if name == s.DATE:
            if ms % DAY_MS:
                raise DataError(f"JsonConverter: a Date must be midnight in UTC, but it is {ms % DAY_MS} ms after midnight.")
            return str(_wrapped(ms // DAY_MS, 32))
        if name == s.TIME and not 0 <= ms <= DAY_MS:
            raise DataError(f"JsonConverter: a Time must be within 1970-01-01; it is {ms} ms since the epoch.")
        return str(ms)

    return write


def _write_number(value):
    if not isinstance(value, Decimal):
        raise DataError(f"JsonConverter: expected a Decimal, found a {type(value).__name__}.")
    return str(value)


def _decimal_bytes_writer(schema):
    def write(value):
        if not isinstance(value, Decimal):
            raise _wrong_class(schema, value)
        unscaled, scale = unscaled_bytes(value)
        if scale != scale_of(schema):
            raise DataError(f"JsonConverter: a Decimal of scale {scale}, but its schema has scale {scale_of(schema)}.")
        return _base64(unscaled)

    return write


def scale_of(schema):
    """Return the scale of a Decimal's schema."""
    text = (schema.parameters or {}).get(s.SCALE)
    try:
        return int(text)
    except (TypeError, ValueError):
        raise DataError(f"A Decimal's schema needs a whole number as its parameter 'scale'; found {text!r}.") from None


def _plain_writer(schema, numeric_decimals, fills_defaults):
    kind = schema.type
    if kind == s.STRUCT:
        return _struct_writer(schema, numeric_decimals, fills_defaults)
    if kind in (s.ARRAY, s.MAP):
        return _container_writer(schema, numeric_decimals, fills_defaults)

    def write(value):
        if not fits(schema, value):
            raise _wrong_class(schema, value)
        if kind == s.STRING:
            return quoted(value)
        return _plain_text(value) if kind != s.FLOAT32 else _float_text(to_float32(value))

    return write


def _plain_text(value):
    """Return the JSON of a bool, number or bytes."""
    if isinstance(value, float):
        return _float_text(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _base64(value)
    return java_text(value)


def _float_text(value):
    text = java_text(value)
    return f'"{text}"' if text[-1] in "Ny" else text  # NaN and Infinity are not numbers in JSON


def _base64(data):
    return f'"{binascii.b2a_base64(data, newline=False).decode()}"'


def _struct_writer(schema, numeric_decimals, fills_defaults):
    parts = [(f"{quoted(field.name)}:", writer_of(field.schema, numeric_decimals, fills_defaults)) for field in schema.fields]

    def write(value):
        if not isinstance(value, Struct):
            raise _wrong_class(schema, value)
        if value.schema is not schema and value.schema != schema:
            raise DataError("JsonConverter: the struct's schema differs from the declared schema.")
        return "{" + ",".join([name + write(item) for (name, write), item in zip(parts, value.values)]) + "}"

    return write


def _container_writer(schema, numeric_decimals, fills_defaults):
    write_item = writer_of(schema.value_schema, numeric_decimals, fills_defaults)
    if schema.type == s.ARRAY:

        def write(value):
            if not isinstance(value, list):
                raise _wrong_class(schema, value)
            return "[" + ",".join(map(write_item, value)) + "]"

        return write
    write_key = writer_of(schema.key_schema, numeric_decimals, fills_defaults)
    has_text_keys = schema.key_schema is not None and schema.key_schema.type == s.STRING

    def write_map(value):
        if not isinstance(value, dict):
            raise _wrong_class(schema, value)
        entries = [(write_key(key), write_item(item)) for key, item in value.items()]
        if not has_text_keys:
            return "[" + ",".join(f"[{key},{item}]" for key, item in entries) + "]"
        named = {key if key[0] == '"' else f'"{key}"': item for key, item in entries}  # a null becomes the name "null"
        return "{" + ",".join(f"{key}:{item}" for key, item in named.items()) + "}"

    return write_map


def _wrong_class(schema, value):
    return DataError(f"JsonConverter: a {type(value).__name__} does not fit a schema of type {_named(schema)}.")


def _named(schema):
    return schema.name or schema.type


# --- Writing without a schema --------------------------------------------------------------------------------------


def write_schemaless(value):
    """Return a value's JSON text by its class."""
    kind = value.__class__
    if kind is str:
        return quoted(value)
    if kind is int and _LOWEST <= value <= _HIGHEST:
        return str(value)
    if value is None:
        return "null"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, (bool, bytes, bytearray, memoryview, float)) or isinstance(value, int) and fits_schemaless(value):
        return _plain_text(value)
    if isinstance(value, list):
        return "[" + ",".join(map(write_schemaless, value)) + "]"
    if isinstance(value, dict):
        entries = [(write_schemaless(key), write_schemaless(item)) for key, item in value.items()]
        if all([isinstance(key, str) for key in value]):
            return "{" + ",".join([f"{key}:{item}" for key, item in entries]) + "}"
        return "[" + ",".join([f"[{key},{item}]" for key, item in entries]) + "]"
    raise DataError(f"JsonConverter cannot write a {type(value).__name__} without its schema.")


def fits_schemaless(number):
    """Whether an int has a schema type: not a BigInt, nor beyond 64 bits."""
    return not isinstance(number, BigInt) and _LOWEST <= number <= _HIGHEST


# --- Reading -------------------------------------------------------------------------------------------------------


class Inexact(Exception):
    """The number was read as a float, but the exact value depends on its text."""


def reader_of(schema, fills_defaults=True):
    """Return a function from parsed JSON to the value. It expects Decimals for non-integers; with floats it may raise Inexact."""
    if schema is None:
        return read_schemaless
    read = _LOGICAL_READERS[schema.name](schema) if schema.logical else _plain_reader(schema, fills_defaults)
    default = schema.default if fills_defaults else None
    exact = str if schema.exact is str else None  # the type that a node and its value share

    def checked(node):
        if node.__class__ is exact:
            return node
        if node is not None:
            return read(node)
        if default is None and not schema.optional:
            raise DataError(f"JsonConverter: null for a required {_named(schema)}.")
        return default

    return checked


def read_schemaless(node):
    """Objects become maps, integers int64, other numbers float64."""
    if node is None or node is MISSING:
        return None
    if isinstance(node, (bool, str)):
        return node
    if isinstance(node, int):
        return _wrapped(node, 64)
    if isinstance(node, Decimal):
        return to_double(node)
    if isinstance(node, list):
        return [read_schemaless(item) for item in node]
    return {name: read_schemaless(item) for name, item in node.items()}


def to_double(number):
    """Convert like BigDecimal.doubleValue: a decimal zero has no sign, an underflow keeps it."""
    if isinstance(number, float):
        return number
    try:
        return float(number) if number else 0.0
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")


def _to_int(node, bits):
    """Convert like Jackson's intValue and longValue: the low bits of an integer, without fraction; 0 for other values."""
    if isinstance(node, bool):
        return 0
    if isinstance(node, int):
        return _wrapped(node, bits)
    if isinstance(node, float):
        raise Inexact
    if isinstance(node, Decimal):
        exponent = node.as_tuple().exponent
        if exponent >= 64 or node.adjusted() < 0 or not node:
            return 0  # a multiple of 2**64, or below 1
        return _wrapped(int(node), bits)
    return 0


def _wrapped(number, bits):
    half = 1 << bits - 1
    return (number + half & 2 * half - 1) - half


def _is_number(node):
    return isinstance(node, (int, float, Decimal)) and not isinstance(node, bool)


def _to_single(node):
    if not _is_number(node):
        return Float32(0.0)
    if isinstance(node, float):
        if half_way(node):
            raise Inexact
        return to_float32(node)
    return to_float32(node) if node else Float32(0.0)


def _plain_reader(schema, fills_defaults):
    kind = schema.type
    if kind in _INTS:
        bits = _INTS[kind]
        low, high = -(1 << bits - 1), (1 << bits - 1) - 1
        # Narrow 32-bit numbers like Java's casts.
        return lambda node: node if node.__class__ is int and low <= node <= high else _wrapped(_to_int(node, max(bits, 32)), bits)
    if kind == s.FLOAT64:
        return lambda node: to_double(node) if _is_number(node) else 0.0
    if kind == s.FLOAT32:
        return _to_single
    if kind == s.BOOLEAN:
        return lambda node: node is True
    if kind == s.STRING:
        return lambda node: node if isinstance(node, str) else None
    if kind == s.BYTES:
        return lambda node: from_base64(node) if isinstance(node, str) else None
    if kind == s.ARRAY:
        return _array_reader(schema, fills_defaults)
    return (_map_reader if kind == s.MAP else _struct_reader)(schema, fills_defaults)


_INTS = {s.INT8: 8, s.INT16: 16, s.INT32: 32, s.INT64: 64}


def _array_reader(schema, fills_defaults):
    read_item = reader_of(schema.value_schema, fills_defaults)

    def read(node):
        if isinstance(node, dict):
            node = node.values()  # Jackson iterates over an object's values like an array's
        return [read_item(item) for item in node] if not isinstance(node, (str, int, float, Decimal)) and node is not MISSING else []

    return read


def _map_reader(schema, fills_defaults):
    read_item = reader_of(schema.value_schema, fills_defaults)
    if schema.key_schema.type == s.STRING:

        def read(node):
            if not isinstance(node, dict):
                raise DataError(f"JsonConverter: a map with string keys must be an object in JSON; found a {type(node).__name__}.")
            return {name: read_item(item) for name, item in node.items()}

        return read
    read_key = reader_of(schema.key_schema, fills_defaults)

    def read_pairs(node):
        if not isinstance(node, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in node):
            raise DataError(f"JsonConverter: a map with other than string keys must be a list of pairs in JSON; found {str(node)[:60]}.")
        return {as_key(read_key(key)): read_item(item) for key, item in node}

    return read_pairs


def _struct_reader(schema, fills_defaults):
    parts = [(field.name, reader_of(field.schema, fills_defaults)) for field in schema.fields]
    required = [field for field in schema.fields if not field.schema.optional]
    containers = [field for field in schema.fields if field.schema.type in (s.ARRAY, s.MAP)]

    def read(node):
        if not isinstance(node, dict):
            raise DataError(f"JsonConverter: a struct must be an object in JSON; found a {type(node).__name__}.")
        get = node.get
        values = [read_field(get(name)) for name, read_field in parts]
        for field in required:
            if values[field.index] is None:
                validate_value(field.schema, None, field.name)
        for field in containers:
            validate_value(field.schema, values[field.index], field.name)
        return Struct.trusted(schema, values)

    return read


def _decimal_reader(schema):
    def read(node):
        if isinstance(node, float):
            raise Inexact
        if _is_number(node):
            number = Decimal(node)
            return number if number else number.copy_abs()
        if not isinstance(node, str):
            raise DataError(f"JsonConverter: a Decimal must be a number or base64 text in JSON; found a {type(node).__name__}.")
        unscaled = from_base64(node)
        if not unscaled:
            raise DataError("JsonConverter: a Decimal is empty: it needs at least one byte.")
        return decimal_of(unscaled, scale_of(schema))

    return read


def _date_reader(schema):
    def read(node):
        return Instant(_whole(schema, node, 32) * DAY_MS)

    return read


def _time_reader(schema):
    def read(node):
        ms = _whole(schema, node, 32)
        if not 0 <= ms <= DAY_MS:
            raise DataError(f"JsonConverter: a Time must be within a day; found {ms} ms.")
        return Instant(ms)

    return read


def _timestamp_reader(schema):
    return lambda node: Instant(_wrapped(_whole(schema, node), 64))


def _whole(schema, node, bits=None):
    is_whole = isinstance(node, int) and not isinstance(node, bool)
    if not is_whole or bits and node != _wrapped(node, bits):
        size = f" of {bits} bits" if bits else ""
        raise DataError(f"JsonConverter: a {schema.name.rpartition('.')[2]} must be a whole number{size} in JSON; found {str(node)[:60]}.")
    return node


_LOGICAL_READERS = {s.DECIMAL: _decimal_reader, s.DATE: _date_reader, s.TIME: _time_reader, s.TIMESTAMP: _timestamp_reader}


def from_base64(text):
    """Decode like Jackson: padding is required, whitespace is allowed only between groups of four."""
    if _STRICT.fullmatch(text):
        return binascii.a2b_base64(text)
    out, at = bytearray(), 0
    while True:
        while at < len(text) and text[at] <= " ":
            at += 1
        if at == len(text):
            return bytes(out)
        group = text[at : at + 4]
        at += 4
        data = group.rstrip("=") if group.endswith("=") else group
        if len(group) < 4 or len(data) < 2 or any(letter not in _BASE64 for letter in data):
            raise DataError(f"JsonConverter: bytes must be base64 text in JSON; found {group!r} in it.")
        number = 0
        for letter in data:
            number = number << 6 | _BASE64.index(letter)
        spare = 6 * len(data) % 8
        out += (number >> spare).to_bytes(len(data) * 6 // 8, "big")


_STRICT = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
