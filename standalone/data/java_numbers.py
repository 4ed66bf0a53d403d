"""Numbers as Java reads them from text, and narrows them: Integer.parseInt, Double.parseDouble, (byte) of a double and similar."""

import decimal
import math
import re
import unicodedata
from decimal import Decimal
from fractions import Fraction

from standalone.data import schema as s
from standalone.data.scalars import CLASSES, WIDTHS, Float32, to_float32

BLANKS = "".join(map(chr, range(0x21)))  # what String.trim() takes away
_WHOLE = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_FLOATING = re.compile(rf"({_DECIMAL.pattern})[fFdD]?")
_HEX = re.compile(r"([+-]?)0[xX](?:([0-9a-fA-F]+)\.?|([0-9a-fA-F]*)\.([0-9a-fA-F]+))[pP]([+-]?[0-9]+)[fFdD]?")
_SPECIAL = re.compile(r"([+-]?)(NaN|Infinity)")
_FURTHEST = 5000  # powers of two beyond this are zero or infinity


def wrapped(number, bits):
    """The lowest bits of a whole number, with the sign that they then have."""
    half = 1 << bits - 1
    return (number + half & 2 * half - 1) - half


def with_ascii_digits(text):
    """The same with 0 to 9 for any decimal digit of Unicode's basic plane: Java's parsers read them all."""
    if text.isascii():
        return text
    return "".join([str(unicodedata.decimal(letter)) if letter.isdecimal() and letter <= "\uffff" else letter for letter in text])


# --- Narrowing -----------------------------------------------------------------------------------------------------


def clamped(number, bits):
    """A float as a whole number, rounded towards zero: what lies beyond becomes the outermost, what is no number 0."""
    if number != number:
        return 0
    limit = 1 << bits - 1
    return limit - 1 if number >= limit else -limit if number < -limit else int(number)


def whole_of_decimal(number, bits):
    """The lowest bits of a Decimal's whole part."""
    if not number or number.adjusted() < 0 or number.as_tuple().exponent >= 64:
        return 0  # below one, or a multiple of 2**64
    return wrapped(int(number), bits)


def narrowed(number, kind):
    """An int, float or Decimal as an integer type of that width: (byte), (short), (int) or (long) of it, in the class of that width.

    A float becomes an int (or a long) first and only then loses its upper bits: (byte) 300.7 is 44, (byte) 1e10 is -1.
    """
    bits = WIDTHS[kind]
    if not isinstance(number, Decimal) and -(1 << bits - 1) <= number < 1 << bits - 1:
        return CLASSES[kind](number)
    if isinstance(number, float):
        number = clamped(number, max(bits, 32))
    elif isinstance(number, Decimal):
        return CLASSES[kind](whole_of_decimal(number, bits))
    return CLASSES[kind](wrapped(number, bits))


# --- Reading -------------------------------------------------------------------------------------------------------


def decimal_of_text(text):
    """As new BigDecimal: a Decimal, or None where it is no number or more than that class holds."""
    text = with_ascii_digits(text)
    if not _DECIMAL.fullmatch(text):
        return None
    try:
        number = Decimal(text)
    except decimal.InvalidOperation:
        return None
    if not -(1 << 31) < number.as_tuple().exponent < 1 << 31:
        return None
    return number or number.copy_abs()  # Java's has no negative zero


def parse_whole(text, kind):
    """As Byte.parseByte … Long.parseLong, in the class of that width. Raises ValueError."""
    plain = with_ascii_digits(text)
    if not (plain.isascii() and plain.isdigit() or _WHOLE.fullmatch(plain)):
        raise ValueError(f"'{text}' is not a whole number")
    bits = WIDTHS[kind]
    number = _int(plain)
    if not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise ValueError(f"{text} does not fit {kind}")
    return CLASSES[kind](number)


def _int(digits):
    """Of digits that may be many: what is longer than any number of 64 bits is far beyond them all."""
    sign, digits = (-1 if digits[0] == "-" else 1), digits.lstrip("+-").lstrip("0")
    return sign * int(digits[:20] or "0")


def parse_floating(text, kind):
    """As Float.parseFloat or Double.parseDouble: with spaces around, 1e400, 0x1.8p3, 1.5f, NaN, -Infinity. Raises ValueError."""
    if kind == s.FLOAT64 and text.isascii() and text.isdigit():
        return float(text)
    text = text.strip(BLANKS)
    if match := _FLOATING.fullmatch(text):
        return float(match[1]) if kind == s.FLOAT64 else _single(match[1])
    if match := _SPECIAL.fullmatch(text):
        number = float(match[1] + match[2].lower())
        return number if kind == s.FLOAT64 else Float32(number)
    if match := _HEX.fullmatch(text):
        return _of_hex(match, kind)
    raise ValueError(f"'{text}' is no number")


def to_single(number):
    """The nearest Float32; one that is nearest to zero keeps its sign."""
    return to_float32(number) or Float32(math.copysign(0.0, number))


def _single(text):
    """Rounded once, from the digits themselves: by way of a double it might be rounded twice."""
    double = float(text)
    if double == 0 or math.isinf(double):
        return Float32(double)
    return to_single(Decimal(text) if half_way(double) else double)


def half_way(double):
    """Whether a double stands just between two floats, so that the digits after it decide."""
    _, exponent = math.frexp(double)
    step = math.ldexp(1.0, max(exponent, -125) - 25)
    return (double / step) % 2 == 1


def _of_hex(match, kind):
    sign, whole, front, fraction, exponent = match.groups()
    digits = whole if whole is not None else front + fraction
    mantissa = int(digits, 16)
    power = _int(exponent) - (0 if whole is not None else 4 * len(fraction))
    top = mantissa.bit_length() + power
    if mantissa == 0 or top < -_FURTHEST:
        number = 0.0 if kind == s.FLOAT64 else Float32(0.0)
    elif top > _FURTHEST:
        number = math.inf if kind == s.FLOAT64 else Float32(math.inf)
    else:
        exact = mantissa * Fraction(2) ** power
        number = _double_of(exact) if kind == s.FLOAT64 else to_float32(exact)
    number = math.copysign(number, -1.0 if sign == "-" else 1.0)
    return number if kind == s.FLOAT64 else Float32(number)


def _double_of(exact):
    try:
        return exact.numerator / exact.denominator
    except OverflowError:
        return math.inf
