"""Values as readable text and back, and casts between types: what headers are written in, and what Cast and others build on.

`to_text` writes numbers as Java does, texts as they are (inside lists and maps in quotes), bytes in base64, points in time in
ISO 8601, lists and structs much like JSON. `parse` finds out what a text may be: null, a boolean, a list, a map, a point in time, the
smallest number type that holds it, or else a string.
"""

import base64
import decimal
import math
import re
from decimal import Decimal

from standalone.data import schema as s
from standalone.data.arrow import decimal_of
from standalone.data.java_text import civil, java_text
from standalone.data.scalars import BigInt, Float32, Instant, Int8, Int16, Int32, Int64, to_float32
from standalone.data.schema import Schema, SchemaBuilder
from standalone.data.struct import MOMENTS, Struct
from standalone.errors import DataError

DAY_MS = 86_400_000
_SIZES = {s.INT8: (8, Int8), s.INT16: (16, Int16), s.INT32: (32, Int32), s.INT64: (64, Int64)}
_DIGIT = r"(?:[0-9]|(?![\U00010000-\U0010ffff])\d)"  # any decimal digit of Unicode's basic plane: Java's chars
_NUMBER = re.compile(rf"[+-]?(?:{_DIGIT}+\.?{_DIGIT}*|\.{_DIGIT}+)(?:[eE][+-]?{_DIGIT}+)?")


# --- To text -------------------------------------------------------------------------------------------------------


def to_text(value, schema=None, inside=False):
    """The text of a value; None of null. `inside` a list, a map or a struct. The schema tells where a plain float stands for a float32."""
    if value is None:
        return "null" if inside else None
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"' if inside else value
    if isinstance(value, (bool, int, float, Decimal)):
        return java_text(value, schema)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return to_text(base64.b64encode(value).decode(), None, inside)
    if isinstance(value, MOMENTS):
        return _moment_text(Instant.of(value).ms)
    keys, items = (schema.key_schema, schema.value_schema) if schema is not None else (None, None)
    if isinstance(value, list):
        return "[" + ",".join([to_text(item, items, True) for item in value]) + "]"
    if isinstance(value, dict):
        return "{" + ",".join([f"{to_text(key, keys, True)}:{to_text(item, items, True)}" for key, item in value.items()]) + "}"
    if isinstance(value, Struct):
        fields = value.schema.fields
        return "{" + ",".join([f"{to_text(each.name, None, True)}:{to_text(value.get(each.name), each.schema, True)}" for each in fields]) + "}"
    raise DataError(f"A {type(value).__name__} has no text that could be read again.")


def _moment_text(ms):
    """A time of the first day (or before it), the date of a midnight, both of all else."""
    days, rest = divmod(ms, DAY_MS)
    seconds, milliseconds = divmod(rest, 1000)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{milliseconds:03}Z"
    if ms < DAY_MS:
        return clock
    year, month, day = civil(days)
    date = f"{year:04}-{month:02}-{day:02}"
    return date if rest == 0 else f"{date}T{clock}"


# --- From text -----------------------------------------------------------------------------------------------------


def parse(text):
    """(schema, value) of a text; None where it says null."""
    if text == "":
        return Schema.STRING, ""
    return _Reader(text).value(inside=False)


class _Reader:
    """Reads a text as tokens: the marks : , { } [ ] " where no backslash stands before them, and what lies between."""

    _MARKS = frozenset(':,{}[]"')

    def __init__(self, text):
        self.text = text
        self.at = 0
        self.peeked = None  # a token that was read, but not taken

    def value(self, inside):
        if not self._has_next():
            return None
        if inside and self._takes('"'):
            return self._quoted()
        start = self._position()
        if self._takes_alone("null", inside):
            return None
        for word, value in (("true", True), ("false", False)):
            if self._takes_alone(word, inside):
                return Schema.BOOLEAN, value
        try:
            if self._takes("["):
                return self._list()
            if self._takes("{"):
                return self._map()
        except DataError:
            self._back_to(start)
        token = self._next()
        if not token.strip(_JAVA_BLANKS):
            return Schema.STRING, token
        token = token.strip(_JAVA_BLANKS)
        found = None
        if token[0].isdigit():
            found = self._moment(token)
        if found is None and (token[0].isdigit() or token[0] in "+-"):
            found = _number(token)
        if found is None:
            if inside:
                raise DataError("a bare word inside a list or a map")
            return Schema.STRING, self.text
        return found

    def _takes_alone(self, word, inside):
        """Take a word; a whole text says null, true or false only where it says nothing else."""
        start = self._position()
        if self._takes(word):
            if inside or not self._has_next():
                return True
            self._back_to(start)
        return False

    def _quoted(self):
        """The rest of a string whose opening quote has been taken."""
        parts = []
        while self._has_next() and not self._takes('"', skip_blanks=False):
            parts.append(self._next())
        content = "".join(parts)
        return _moment(content) or (Schema.STRING, content)

    def _moment(self, token):
        """A point in time that begins with this token: the colons of a time make five tokens of it."""
        start = self._position()
        rest = self._next_four()
        found = _moment(token + rest) if rest is not None else None
        if found is None:
            self._back_to(start)
            found = _moment(token)
        return found

    def _list(self):
        items, common = [], _Common()
        while self._has_next():
            if self._takes("]"):
                if common.schema is None:
                    return Schema(s.ARRAY), items
                return SchemaBuilder.array(common.schema).build(), [convert(common.schema, None, item) for item in items]
            if self._takes(","):
                raise DataError("a list with nothing between two commas")
            found = self.value(inside=True)
            common.add(found)
            items.append(found and found[1])
            here = self._position()
            if self._takes("]"):
                self._back_to(here)
            elif not self._takes(","):
                raise DataError("a list without a comma between two items")
        raise DataError("a list that is not closed")

    def _map(self):
        entries, keys, values = {}, _Common(), _Common()
        while self._has_next():
            if self._takes("}"):
                return self._finished_map(entries, keys.schema, values.schema)
            if self._takes(","):
                raise DataError("a map with nothing between two commas")
            key = self.value(inside=True)
            if key is None or key[1] is None:
                raise DataError("a map with null as a key")
            if not self._takes(":"):
                raise DataError("a map without a colon behind a key")
            found = self.value(inside=True)
            self._takes(",")
            keys.add(key)
            values.add(found)
            try:
                entries[key[1]] = found and found[1]
            except TypeError:
                raise DataError("a map with a list or a map as a key") from None
        raise DataError("a map that is not closed")

    def _finished_map(self, entries, key_schema, value_schema):
        if key_schema is None:
            return Schema(s.MAP), entries
        entries = {convert(key_schema, None, key): item for key, item in entries.items()}
        if value_schema is not None:
            entries = {key: convert(value_schema, None, item) for key, item in entries.items()}
        return Schema(s.MAP, key_schema=key_schema, value_schema=value_schema), entries

    # Tokens

    def _has_next(self):
        return self.peeked is not None or self.at < len(self.text)

    def _next(self):
        token = self._read() if self.peeked is None else self.peeked
        self.peeked = None
        return token

    def _next_four(self):
        start = begin = self._position()
        for _ in range(4):
            if not self._has_next():
                self._back_to(start)
                return None
            self._next()
        return self.text[begin : self.at]

    def _takes(self, expected, skip_blanks=True):
        if not self._has_next():
            return False
        if self.peeked is None:
            self.peeked = self._read()
        if skip_blanks:
            while not self.peeked.strip(_JAVA_BLANKS) and self.at < len(self.text):
                self.peeked = self._read()
        if (self.peeked.strip(_JAVA_BLANKS) if skip_blanks else self.peeked) != expected:
            return False
        self.peeked = None
        return True

    def _read(self):
        start, escaped = self.at, False
        while self.at < len(self.text):
            letter = self.text[self.at]
            if letter in self._MARKS and not escaped:
                if self.at == start:
                    self.at += 1
                return self.text[start : self.at]
            escaped = letter == "\\" and not escaped
            self.at += 1
        return self.text[start:]

    def _position(self):
        return self.at - len(self.peeked or "")

    def _back_to(self, position):
        self.at = position
        self.peeked = None


_JAVA_BLANKS = "".join(map(chr, range(0x21)))


class _Common:
    """The one schema that all values so far have or can be cast to; None where there is none."""

    _WIDER = (s.INT8, s.INT16, s.INT32, s.INT64, s.FLOAT32, s.FLOAT64)

    def __init__(self):
        self.schema = None
        self._given_up = False

    def add(self, found):
        if found is None or found[0] is None or self._given_up:
            return
        self.schema = found[0] if self.schema is None else self._merged(self.schema, found[0])
        self._given_up = self.schema is None

    def _merged(self, a, b):
        if a.type == b.type:
            return b
        if a.type not in self._WIDER or b.type not in self._WIDER:
            return None
        return b if self._WIDER.index(b.type) > self._WIDER.index(a.type) else a


def _number(token):
    """The smallest number type that holds it exactly, or a float, or a Decimal; None where it is no number."""
    if not _NUMBER.fullmatch(token):
        return None
    try:
        number = Decimal(token)
    except decimal.InvalidOperation:
        return None
    scale = -number.as_tuple().exponent
    if not -(1 << 31) < scale < 1 << 31:
        return None  # more than BigDecimal holds
    if not number:
        return Schema.INT8, Int8(0)
    if -20 < number.adjusted() < 20 and number == number.to_integral_value():
        for kind, (bits, own) in _SIZES.items():
            if -(1 << bits - 1) <= number < 1 << bits - 1:
                return Schema(kind), own(number)
    if scale != 0:
        single, double = _single(number), float(number)
        if abs(single) != float("inf"):
            return Schema.FLOAT32, single
        if abs(double) != float("inf"):
            return Schema.FLOAT64, double
    return s.decimal_schema(scale), number


def _single(number):
    """The nearest Float32; what is nearest to zero keeps its sign."""
    return to_float32(number) or Float32(math.copysign(0.0, number))


_PART = rf"[ \t]*(-?{_DIGIT}+)"
_DATE = f"{_PART}-{_PART}-{_PART}"
_TIME = rf"{_PART}:{_PART}:{_PART}\.{_PART}Z"
_MOMENTS = {
    10: (re.compile(_DATE), s.date_schema()),
    13: (re.compile(_TIME), s.time_schema()),
    24: (re.compile(f"{_DATE}T{_TIME}"), s.timestamp_schema()),
}


def _moment(token):
    """A date, a time or both, known by its length; fields that run over carry, as in Java: 2020-02-30 is 1 March."""
    token = token.replace("\\:", ":")
    pattern, schema = _MOMENTS.get(len(token), (None, None))
    match = pattern and pattern.match(token)
    if not match:
        return None
    numbers = [int(part) for part in match.groups()]
    ms = 0
    if len(numbers) in (3, 7):
        year, month, day = numbers[:3]
        ms = _day_of(year + (month - 1) // 12, (month - 1) % 12 + 1) * DAY_MS + (day - 1) * DAY_MS
    if len(numbers) in (4, 7):
        hours, minutes, seconds, milliseconds = numbers[-4:]
        ms += ((hours * 60 + minutes) * 60 + seconds) * 1000 + milliseconds
    return schema, Instant(ms)


def _day_of(year, month):
    """The first of a month, counted from the epoch; before 15 October 1582 by the Julian calendar."""
    shifted, in_year = (year - 1, month + 9) if month <= 2 else (year, month - 3)
    days = 365 * shifted + shifted // 4 + (153 * in_year + 2) // 5
    gregorian = days - shifted // 100 + shifted // 400 - 719_468
    return gregorian if gregorian >= -141_427 else days - 719_470


# --- Casts ---------------------------------------------------------------------------------------------------------


def convert(schema, from_schema, value):
    """The value as `schema` holds it. `from_schema` says what it is, or None. Raises DataError."""
    if value is None:
        if schema.optional:
            return None
        raise DataError(f"null cannot be made a required {schema.name or schema.type}.")
    if schema.logical:
        return _TO_LOGICAL[schema.name](schema, from_schema, value)
    kind = schema.type
    if kind in _SIZES:
        bits, own = _SIZES[kind]
        return own(_wrapped(_whole(value, from_schema), bits))
    if kind == s.FLOAT32:
        return value if isinstance(value, Float32) else to_float32(_double(value, from_schema))
    if kind == s.FLOAT64:
        return _double(value, from_schema)
    if kind == s.BOOLEAN:
        return _boolean(value, from_schema)
    if kind == s.STRING:
        return to_text(value, from_schema)
    if kind == s.BYTES:
        return _bytes(value)
    return _container(kind, value)


def infer_schema(value):
    """The schema of a value by its class; None where it has none, or none in common inside."""
    for classes, schema in _INFERRED:
        if isinstance(value, classes):
            return schema
    if isinstance(value, Struct):
        return value.schema
    if isinstance(value, list):
        return _inferred_inside(value, lambda inner: SchemaBuilder.array(inner).build())
    if isinstance(value, dict):
        keys = _inferred_inside(value.keys(), lambda inner: inner)
        return keys and _inferred_inside(value.values(), lambda inner: SchemaBuilder.map(keys, inner).build())
    return None


_INFERRED = (
    (str, Schema.STRING),
    (bool, Schema.BOOLEAN),
    (Int8, Schema.INT8),
    (Int16, Schema.INT16),
    (Int32, Schema.INT32),
    (BigInt, None),
    (int, Schema.INT64),
    (Float32, Schema.FLOAT32),
    (float, Schema.FLOAT64),
    ((bytes, bytearray, memoryview), Schema.BYTES),
)


def _inferred_inside(items, wrapped):
    """The type that all items have, without what is inside of them, as Java infers it."""
    if not items:
        return None
    schemas = [infer_schema(item) for item in items if item is not None]
    if None in schemas or len({schema.type for schema in schemas}) > 1:
        return None
    kind = schemas[0].type if schemas else None
    SchemaBuilder(kind)  # refuses none at all
    return wrapped(Schema(kind, optional=len(schemas) < len(items)))


def _whole(value, from_schema):
    """As Java's longValue, also of a text; of a point in time the number that stands for it."""
    if isinstance(value, bool):
        raise _cannot(value, "a whole number")
    if isinstance(value, int):
        return _wrapped(value, 64)
    if isinstance(value, float):
        return _long_of_double(value)
    if isinstance(value, Decimal):
        return _long_of_decimal(value)
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        return _long_of_decimal(Decimal(value))
    if isinstance(value, MOMENTS) and from_schema is not None:
        ms = Instant.of(value).ms
        if from_schema.name == s.DATE:
            if ms % DAY_MS:
                raise DataError(f"A Date must be midnight in UTC, but it has {ms % DAY_MS} ms of the day.")
            return ms // DAY_MS
        if from_schema.name == s.TIME:
            if not 0 <= ms <= DAY_MS:
                raise DataError(f"A Time must lie within 1970-01-01; it is {ms} ms since the epoch.")
            return ms
        if from_schema.name == s.TIMESTAMP:
            return ms
    raise _cannot(value, "a whole number")


def _long_of_double(value):
    if value != value:
        return 0
    limit = (1 << 63) - 1
    return limit if value >= limit else -limit - 1 if value <= -limit - 1 else int(value)


def _long_of_decimal(value):
    if not value or value.adjusted() < 0 or value.as_tuple().exponent >= 64:
        return 0  # below one, or a multiple of 2**64
    return _wrapped(int(value), 64)


def _double(value, from_schema):
    if isinstance(value, bool):
        raise _cannot(value, "a number")
    if isinstance(value, (int, float, Decimal)) or isinstance(value, str) and _NUMBER.fullmatch(value):
        number = Decimal(value) if isinstance(value, str) else value
        try:
            return float(number) if number or isinstance(number, float) else 0.0
        except OverflowError:
            return float("inf") if number > 0 else float("-inf")
    return float(_whole(value, from_schema))


def _boolean(value, from_schema):
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        found = parse(value)
        if found is None:
            raise _cannot(value, "a boolean")
        if isinstance(found[1], bool):
            return found[1]
    return _whole(value, from_schema) != 0


def _bytes(value):
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, str):
        try:
            return base64.b64decode(value, validate=True)
        except ValueError:
            raise _cannot(value, "bytes: a text must be base64") from None
    raise _cannot(value, "bytes")


def _container(kind, value):
    if isinstance(value, str):
        found = parse(value)
        value = found and found[1]
    if isinstance(value, {s.ARRAY: list, s.MAP: dict, s.STRUCT: Struct}[kind]):
        return value
    raise _cannot(value, {s.ARRAY: "a list", s.MAP: "a map", s.STRUCT: "a struct"}[kind])


def _to_decimal(schema, from_schema, value):
    if isinstance(value, Decimal):
        return value
    if isinstance(value, (bytes, bytearray, memoryview)):
        return decimal_of(bytes(value), int((schema.parameters or {}).get(s.SCALE, "0")))
    if isinstance(value, str):
        if not _NUMBER.fullmatch(value):
            raise ValueError(f"'{value}' is no number")
        return Decimal(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return Decimal(java_text(float(value)))
    raise _cannot(value, "a Decimal")


def _read_moment(value):
    """A text as what it says."""
    if not isinstance(value, str):
        return value
    found = parse(value)
    if found is None:
        raise _cannot(value, "a point in time")
    return found[1]


def _to_date(schema, from_schema, value):
    value = _read_moment(value)
    if isinstance(value, MOMENTS):
        ms = Instant.of(value).ms
        if from_schema is None or from_schema.name == s.DATE:
            return Instant(ms)
        if from_schema.name == s.TIMESTAMP:
            return Instant(_wrapped(_cut(ms, DAY_MS), 32) * DAY_MS)
    return Instant(_wrapped(_whole(value, from_schema), 32) * DAY_MS)


def _to_time(schema, from_schema, value):
    value = _read_moment(value)
    if isinstance(value, MOMENTS):
        ms = Instant.of(value).ms
        if from_schema is None or from_schema.name == s.TIME:
            return Instant(ms)
        if from_schema.name == s.TIMESTAMP:
            return Instant(ms % DAY_MS)
    ms = _wrapped(_whole(value, from_schema), 32)
    if not 0 <= ms <= DAY_MS:
        raise DataError(f"A Time must lie within a day; found {ms} ms.")
    return Instant(ms)


def _to_timestamp(schema, from_schema, value):
    value = _read_moment(value)
    if isinstance(value, MOMENTS):
        ms = Instant.of(value).ms
        if from_schema is None or from_schema.name == s.TIMESTAMP:
            return Instant(ms)
        if from_schema.name == s.DATE:
            return Instant(_whole(value, from_schema) * DAY_MS)
    return Instant(_whole(value, from_schema))


_TO_LOGICAL = {s.DECIMAL: _to_decimal, s.DATE: _to_date, s.TIME: _to_time, s.TIMESTAMP: _to_timestamp}


def _cut(number, by):
    """Division as Java's: towards zero."""
    return number // by if number >= 0 else -(-number // by)


def _wrapped(number, bits):
    half = 1 << bits - 1
    return (number + half & 2 * half - 1) - half


def _cannot(value, what):
    return DataError(f"A {type(value).__name__} cannot be made {what}.")
