"""Convert values to readable text and back, for SimpleHeaderConverter and casts of strings.

`to_text` formats numbers like Java, strings unchanged (quoted inside lists and maps), bytes as base64, points in time as
ISO 8601, lists and structs much like JSON. `parse` infers the type of a text: null, boolean, list, map, point in time, the
smallest matching number type, or else a string.
"""

import base64
import re
from decimal import Decimal

from standalone.data import schema as s
from standalone.data.java_numbers import BLANKS, decimal_of_text, to_single, with_ascii_digits
from standalone.data.java_text import civil, java_text
from standalone.data.map_key import as_key, set_item
from standalone.data.scalars import CLASSES, WIDTHS, Instant, Int8
from standalone.data.schema import Schema, SchemaBuilder
from standalone.data.struct import MOMENTS, Struct
from standalone.errors import DataError

DAY_MS = 86_400_000


# --- To text -------------------------------------------------------------------------------------------------------


def to_text(value, schema=None, inside=False):
    """Return the text of a value; None for null. `inside`: in a list, map or struct. The schema tells a float32 from a float64."""
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
    raise DataError(f"A {type(value).__name__} cannot be written as text.")


def _moment_text(ms):
    """Format as a time if on the first day (or before), as a date if at midnight, else as both."""
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
    """Return (schema, value) of a string; None for null."""
    if text == "":
        return Schema.STRING, ""
    return _Reader(text).value(inside=False)


def _cast(schema, value):
    from standalone.data.values import convert  # imported here: the two modules need each other

    return convert(schema, None, value)


class _Reader:
    """Reads tokens: the characters : , { } [ ] " without a preceding backslash, and the text between."""

    _MARKS = frozenset(':,{}[]"')

    def __init__(self, text):
        self.text = text
        self.at = 0
        self.peeked = None  # a token read ahead

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
        if not token.strip(BLANKS):
            return Schema.STRING, token
        token = token.strip(BLANKS)
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
        """Take a word; null, true and false count only if they are the whole text."""
        start = self._position()
        if self._takes(word):
            if inside or not self._has_next():
                return True
            self._back_to(start)
        return False

    def _quoted(self):
        """Return the rest of a string after its opening quote."""
        parts = []
        while self._has_next() and not self._takes('"', skip_blanks=False):
            parts.append(self._next())
        content = "".join(parts)
        return _moment(content) or (Schema.STRING, content)

    def _moment(self, token):
        """Parse a point in time that begins with this token; the colons split a time into five tokens."""
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
                return SchemaBuilder.array(common.schema).build(), [_cast(common.schema, item) for item in items]
            if self._takes(","):
                raise DataError("a list with a missing item")
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
                raise DataError("a map with a missing entry")
            key = self.value(inside=True)
            if key is None or key[1] is None:
                raise DataError("a map with null as a key")
            if not self._takes(":"):
                raise DataError("a map without a colon after a key")
            found = self.value(inside=True)
            self._takes(",")
            keys.add(key)
            values.add(found)
            set_item(entries, key[1], found and found[1])
        raise DataError("a map that is not closed")

    def _finished_map(self, entries, key_schema, value_schema):
        if key_schema is None:
            return Schema(s.MAP), entries
        entries = {as_key(_cast(key_schema, key)): item for key, item in entries.items()}
        if value_schema is not None:
            entries = {key: _cast(value_schema, item) for key, item in entries.items()}
        return Schema(s.MAP, key_schema=key_schema, value_schema=value_schema), entries

    # Tokenizing

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
            while not self.peeked.strip(BLANKS) and self.at < len(self.text):
                self.peeked = self._read()
        if (self.peeked.strip(BLANKS) if skip_blanks else self.peeked) != expected:
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


class _Common:
    """The schema that all values so far have or can be cast to; None if there is none."""

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
    """Parse into the smallest number type that is exact, or a float, or a Decimal; None if it is not a number."""
    number = decimal_of_text(token)
    if number is None:
        return None
    scale = -number.as_tuple().exponent
    if not number:
        return Schema.INT8, Int8(0)
    if -20 < number.adjusted() < 20 and number == number.to_integral_value():
        for kind, bits in WIDTHS.items():
            if -(1 << bits - 1) <= number < 1 << bits - 1:
                return Schema(kind), CLASSES[kind](number)
    if scale != 0:
        single, double = to_single(number), float(number)
        if abs(single) != float("inf"):
            return Schema.FLOAT32, single
        if abs(double) != float("inf"):
            return Schema.FLOAT64, double
    return s.decimal_schema(scale), number


_PART = r"[ \t]*(-?[0-9]+)"
_DATE = f"{_PART}-{_PART}-{_PART}"
_TIME = rf"{_PART}:{_PART}:{_PART}\.{_PART}Z"
_MOMENTS = {
    10: (re.compile(_DATE), s.date_schema()),
    13: (re.compile(_TIME), s.time_schema()),
    24: (re.compile(f"{_DATE}T{_TIME}"), s.timestamp_schema()),
}


def _moment(token):
    """Parse a date, time or both, by its length; out-of-range fields carry over, as in Java: 2020-02-30 is 1 March."""
    token = with_ascii_digits(token.replace("\\:", ":"))
    length = len(token) if token.isascii() else len(token.encode("utf-16-le", "surrogatepass")) // 2  # length as in Java
    pattern, schema = _MOMENTS.get(length, (None, None))
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
    """Return the first day of a month since the epoch; before 15 October 1582 by the Julian calendar."""
    shifted, in_year = (year - 1, month + 9) if month <= 2 else (year, month - 3)
    days = 365 * shifted + shifted // 4 + (153 * in_year + 2) // 5
    gregorian = days - shifted // 100 + shifted // 400 - 719_468
    return gregorian if gregorian >= -141_427 else days - 719_470
