"""Read and write JSON like Jackson, which Kafka's JsonConverter uses.

Values are None, bool, int, Decimal (every number with a fraction or exponent, exactly as written), str, list, dict, and MISSING for text
without a value. Differences to Python's json: numbers may have leading zeros; text after the first value is ignored (a number must be
separated from it); NaN and Infinity are rejected; UTF-16 and UTF-32 are detected; malformed UTF-8 is rejected only for wrong lead
and continuation bytes and encoded surrogates; numbers beyond 1,000 characters and nesting beyond 1,000 levels are rejected.

Python's reader handles most text; only what it rejects is read by the one here.
"""

import json
import re
from decimal import Decimal, InvalidOperation
from json.encoder import encode_basestring

MISSING = type("Missing", (), {"__repr__": lambda self: "MISSING", "__bool__": lambda self: False})()
_LONGEST_NUMBER, _DEEPEST, _LONGEST_NAME = 1000, 1000, 50_000
_LONG_NAME = re.compile(r'"[^"]{50001}')
_BLANKS = re.compile(r"[ \t\r\n]*")
_NUMBER = re.compile(r"(-?)0*([0-9]+)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_PLAIN = re.compile(r'[^"\\\x00-\x1f]*')
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_HEX = re.compile(r"[0-9a-fA-F]{4}")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


class JsonError(ValueError):
    """The error in the text, and its position."""

    java_class = "com.fasterxml.jackson.core.JsonParseException"


def decimal(text):
    """Return the number exactly; as in BigDecimal, its scale must fit 32 bits."""
    _must_be_short(text)
    try:
        number = Decimal(text)
    except InvalidOperation:
        number = None
    if number is None or not -(1 << 31) < number.as_tuple().exponent < 1 << 31:
        raise JsonError(f"the exponent of {text[:60]} is out of range")
    return number


def _whole(text):
    _must_be_short(text)
    return int(text)


def _must_be_short(text):
    if len(text) > _LONGEST_NUMBER and (digits := sum(map(str.isdigit, text))) > _LONGEST_NUMBER:
        raise JsonError(f"a number of {digits} digits; at most {_LONGEST_NUMBER} are read")


def _refuse(word):
    raise JsonError(f"{word} is not JSON")


# Short texts cannot violate the limits that Python's reader does not check; long ones are checked.
_read_short = json.JSONDecoder(parse_float=decimal, parse_constant=_refuse).raw_decode
_read_long = json.JSONDecoder(parse_float=decimal, parse_int=_whole, parse_constant=_refuse).raw_decode


def parse(data):
    """Return the first value in bytes. Raise JsonError if invalid."""
    data = bytes(data)
    try:
        text = data.decode()
        value, end = read_value(text, _BLANKS.match(text).end())
        if end == len(text) or text[end] in " \t\r\n" or text[end - 1] in '}]"':
            return value
    except (ValueError, RecursionError):
        pass
    return _Reader(text_of(data)).document()


def read_value(text, start):
    """Return (value at `start`, its end) for text without Jackson's special cases. Raise ValueError for all other text."""
    if len(text) <= _LONGEST_NUMBER:
        return _read_short(text, start)
    deep = text.count("[") + text.count("{") > _DEEPEST
    if deep or len(text) > _LONGEST_NAME and _LONG_NAME.search(text):
        raise ValueError("needs the exact reader")
    return _read_long(text, start)


# --- Bytes to text -------------------------------------------------------------------------------------------------


def text_of(data):
    """Decode text in the encoding that its first bytes show. Invalid UTF-8 becomes characters that no reader accepts."""
    marks = () if len(data) < 4 else (  # Jackson detects no encoding in shorter texts
        (b"\x00\x00\xfe\xff", "utf-32-be"),
        (b"\xff\xfe\x00\x00", "utf-32-le"),
        (b"\xfe\xff", "utf-16-be"),
        (b"\xff\xfe", "utf-16-le"),
    )
    for mark, encoding in marks:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace")
    if marks and data.startswith(b"\xef\xbb\xbf"):
        return _from_utf8(data[3:])
    zeros = tuple(byte == 0 for byte in data[:4])
    if zeros[:3] == (True, True, True) and len(zeros) == 4:
        return data.decode("utf-32-be", "replace")
    if zeros[1:] == (True, True, True):
        return data.decode("utf-32-le", "replace")
    if zeros[:1] == (True,) and len(zeros) > 1:
        return data.decode("utf-16-be", "replace")
    if zeros[1:2] == (True,):
        return data.decode("utf-16-le", "replace")
    return _from_utf8(data)


def _from_utf8(data):
    try:
        return data.decode()
    except UnicodeDecodeError:
        return _PAIR.sub(_joined, _LENIENT.sub(_lenient, data.decode("latin-1")))


# Only the lead byte counts: overlong forms and code points beyond U+10FFFF are accepted, as in Jackson.
_LENIENT = re.compile("[\xc0-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf7][\x80-\xbf]{3}|[\x80-\xff]")


def _lenient(match):
    lead, *rest = map(ord, match[0])
    code = lead & 0x3F >> len(rest)
    for byte in rest:
        code = code << 6 | byte & 0x3F
    if not rest or len(rest) == 2 and 0xD800 <= code < 0xE000 or code < 0x80 and _is_escaped(match.string, match.start()):
        return chr(0xDC00 + lead) + "\x00"  # makes the reader fail at the NUL
    if len(rest) == 3 and not 0x10000 <= code < 0x110000:
        code -= 0x10000
        return chr((0xD800 | code >> 10) & 0xFFFF) + chr(0xDC00 | code & 0x3FF)  # the surrogates that Jackson makes of it
    if code < 0x80:
        return f"\\u{code:04x}"  # an escape, so that it cannot end a string
    return chr(code)


def _is_escaped(text, at):
    return (at - len(text[:at].rstrip("\\"))) % 2 == 1


# --- Text to values ------------------------------------------------------------------------------------------------


class _Reader:
    """Reads one text by Jackson's rules, without recursion."""

    def __init__(self, text):
        self.text = text
        self.at = 0

    def document(self):
        self._skip_whitespace()
        if self.at == len(self.text):
            return MISSING
        value = self._value()
        if not isinstance(value, _Open):
            self._must_be_set_off(value)
            return value
        root = value.items
        inside = [value]
        while inside:
            if len(inside) > _DEEPEST:
                raise self._wrong(f"nested deeper than {_DEEPEST} levels")
            item = self._next_item(inside[-1])
            if item is _END:
                inside.pop()
            elif isinstance(item, _Open):
                inside.append(item)
        return root

    def _must_be_set_off(self, value):
        """Check that a number or word ends at a delimiter."""
        following = self.text[self.at : self.at + 1]
        if following and not isinstance(value, str):
            is_word = value is None or isinstance(value, bool)
            if is_word and _goes_on(following) or not is_word and following not in " \t\r\n":
                raise self._wrong(f"'{following}' directly after a value")

    def _next_item(self, inside):
        """Read the next member of an object or array into it. Return _END if it is closed, an _Open if a nested one begins."""
        closing = "]" if isinstance(inside.items, list) else "}"
        self._skip_whitespace()
        if self._takes(closing) if inside.first else not self._takes(","):
            if not inside.first and not self._takes(closing):
                raise self._wrong(f"expected ',' or '{closing}'")
            return _END
        inside.first = False
        self._skip_whitespace()
        name = None
        if closing == "}":
            if not self._takes('"'):
                raise self._wrong("expected a field name in double quotes")
            name = self._string()
            if len(name) > _LONGEST_NAME:
                raise self._wrong(f"a name of {len(name)} characters; at most {_LONGEST_NAME} are read")
            self._skip_whitespace()
            if not self._takes(":"):
                raise self._wrong("expected ':'")
            self._skip_whitespace()
        value = self._value()
        item = value.items if isinstance(value, _Open) else value
        if closing == "}":
            inside.items[name] = item
        else:
            inside.items.append(item)
        return value

    def _value(self):
        if self._takes("{"):
            return _Open({})
        if self._takes("["):
            return _Open([])
        if self._takes('"'):
            return self._string()
        for word, value in (("null", None), ("true", True), ("false", False)):
            if self.text.startswith(word, self.at):
                self.at += len(word)
                following = self.text[self.at : self.at + 1]
                if following and _goes_on(following):
                    raise self._wrong(f"a word that begins with {word}")
                return value
        match = _NUMBER.match(self.text, self.at)
        if match is None:
            raise self._wrong("expected a value")
        self.at = match.end()
        if self.text[self.at : self.at + 1] in (".", "e", "E") and self.at < len(self.text):
            raise self._wrong("an incomplete number")
        sign, whole, fraction, exponent = match.groups()
        whole = whole.lstrip("0") or "0"
        if fraction or exponent:
            return decimal(sign + whole + (fraction or "") + (exponent or ""))
        return _whole(sign + whole)

    def _string(self):
        """Return the rest of a string after its opening quote."""
        parts = []
        while True:
            match = _PLAIN.match(self.text, self.at)
            parts.append(match[0])
            self.at = match.end()
            if self._takes('"'):
                text = "".join(parts)
                return _PAIR.sub(_joined, text) if len(parts) > 1 else text
            if not self._takes("\\"):
                raise self._wrong("a control character, a byte that is not UTF-8, or the end within a string")
            if self._takes("u"):
                code = _HEX.match(self.text, self.at)
                if code is None:
                    raise self._wrong("expected four hexadecimal digits after \\u")
                self.at = code.end()
                parts.append(chr(int(code[0], 16)))
            else:
                letter = self.text[self.at : self.at + 1]
                if letter not in _ESCAPES:
                    raise self._wrong(f"an invalid escape: \\{letter}")
                self.at += 1
                parts.append(_ESCAPES[letter])

    def _skip_whitespace(self):
        self.at = _BLANKS.match(self.text, self.at).end()

    def _takes(self, letter):
        if self.text.startswith(letter, self.at):
            self.at += 1
            return True
        return False

    def _wrong(self, what):
        return JsonError(f"{what}, at character {self.at}: {self.text[self.at : self.at + 20]!r}")


def _goes_on(letter):
    """Whether a letter would continue a word: every non-ASCII character would, and overlong ones (`_lenient`)."""
    return letter.isalnum() or letter in "_$\\" or letter >= "\x7f"


_END = object()


class _Open:
    """An object or array being read."""

    __slots__ = ("items", "first")

    def __init__(self, items):
        self.items = items
        self.first = True


def _joined(pair):
    high, low = map(ord, pair[0])
    return chr(0x10000 + (high - 0xD800 << 10) + (low - 0xDC00))


# --- Writing -------------------------------------------------------------------------------------------------------

_TO_ESCAPE = re.compile('[\x00-\x1f"\\\\\ud800-\udfff\U00010000-\U0010ffff]')
_SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def quoted(text):
    """Quote a string; characters beyond U+FFFF become two escapes, as in Jackson."""
    if text.isascii():
        written = encode_basestring(text)
        if len(written) == len(text) + 2:
            return written  # nothing needed escaping
    if _TO_ESCAPE.search(text) is None:
        return f'"{text}"'
    return f'"{_TO_ESCAPE.sub(_escaped, text)}"'


def _escaped(match):
    letter = match[0]
    if letter in _SHORT:
        return _SHORT[letter]
    code = ord(letter)
    if code < 0x10000:
        return f"\\u{code:04X}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04X}\\u{0xDC00 + (code & 0x3FF):04X}"
