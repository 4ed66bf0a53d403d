"""Parse and narrow numbers like Java: Integer.parseInt, Double.parseDouble, (byte) casts and similar."""

import decimal
import math
import re
import unicodedata
from decimal import Decimal
from fractions import Fraction

from standalone.data import schema as s
from standalone.data.scalars import CLASSES, WIDTHS, Float32, to_float32

BLANKS = "".join(map(chr, range(0x21)))  # characters that String.trim() removes
_WHOLE = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_FLOATING = re.compile(rf"({_DECIMAL.pattern})[fFdD]?")
_HEX = re.compile(r"([+-]?)0[xX](?:([0-9a-fA-F]+)\.?|([0-9a-fA-F]*)\.([0-9a-fA-F]+))[pP]([+-]?[0-9]+)[fFdD]?")
_SPECIAL = re.compile(r"([+-]?)(NaN|Infinity)")
_FURTHEST = 5000  # powers of two beyond it are zero or infinity


def wrapped(number, bits):
    """Return an integer's lowest bits as a signed number."""
    half = 1 << bits - 1
    return (number + half & 2 * half - 1) - half


def with_ascii_digits(text):
    """Replace all decimal digits of Unicode's basic plane by 0 to 9, which Java's parsers accept."""
    if text.isascii():
        return text
    return "".join([str(unicodedata.decimal(letter)) if letter.isdecimal() and letter <= "\uffff" else letter for letter in text])


# --- Narrowing -----------------------------------------------------------------------------------------------------


def clamped(number, bits):
    """Round a float towards zero and clamp it to the type's range; NaN becomes 0."""
    if number != number:
        return 0
    limit = 1 << bits - 1
    return limit - 1 if number >= limit else -limit if number < -limit else int(number)


def whole_of_decimal(number, bits):
    """Return the lowest bits of a Decimal's integer part."""
    if not number or number.adjusted() < 0 or number.as_tuple().exponent >= 64:
        return 0  # below one, or a multiple of 2**64
    return wrapped(int(number), bits)


def narrowed(number, kind):
    """Cast an int, float or Decimal to an integer type like Java's (byte), (short), (int) or (long), in that width's class.

    A float becomes an int (or a long) first, and then loses its upper bits: (byte) 300.7 is 44, (byte) 1e10 is -1.
    """
    bits = WIDTHS[kind]
    if not isinstance(number, Decimal) and -(1 << bits - 1) <= number < 1 << bits - 1:
        return CLASSES[kind](number)
    if isinstance(number, float):
        number = clamped(number, max(bits, 32))
    elif isinstance(number, Decimal):
        return CLASSES[kind](whole_of_decimal(number, bits))
    return CLASSES[kind](wrapped(number, bits))


# --- Parsing -------------------------------------------------------------------------------------------------------


def decimal_of_text(text):
    """Parse like new BigDecimal: a Decimal, or None if it is not a number or exceeds that class's range."""
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
    """Parse like Byte.parseByte … Long.parseLong, into the class of that width. Raise ValueError."""
    plain = with_ascii_digits(text)
    if not (plain.isascii() and plain.isdigit() or _WHOLE.fullmatch(plain)):
        raise ValueError(f"'{text}' is not a whole number")
    bits = WIDTHS[kind]
    number = _int(plain)
    if not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise ValueError(f"{text} does not fit {kind}")
    return CLASSES[kind](number)


def _int(digits):
    """Parse digits, possibly very many: anything longer than 64 bits is simply out of range."""
    sign, digits = (-1 if digits[0] == "-" else 1), digits.lstrip("+-").lstrip("0")
    return sign * int(digits[:20] or "0")


def parse_floating(text, kind):
    """Parse like Float.parseFloat or Double.parseDouble: surrounding spaces, 1e400, 0x1.8p3, 1.5f, NaN, -Infinity. Raise ValueError."""
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
    raise ValueError(f"'{text}' is not a number")


def to_single(number):
    """Return the nearest Float32; an underflow keeps its sign."""
    return to_float32(number) or Float32(math.copysign(0.0, number))


def _single(text):
    """Round once, from the digits: rounding via a double could round twice."""
    double = float(text)
    if double == 0 or math.isinf(double):
        return Float32(double)
    return to_single(Decimal(text) if half_way(double) else double)


def half_way(double):
    """Whether a double lies exactly between two floats, so that further digits decide."""
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
