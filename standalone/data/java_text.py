"""Format values like Java's `toString` on JDK 17 in UTC.

The text of a double is that of JDK 17, which is not always the shortest that parses to the same number; JDK 19 fixed that.
`data/java_digits.py` does the same for whole columns.
"""

import decimal
import math
import struct

from standalone.data import schema as s
from standalone.data import utf8
from standalone.data.scalars import Float32, Instant, Int8, Int16, Int32, Int64, to_float32
from standalone.data.struct import MOMENTS, Struct

_DOUBLE_BITS = struct.Struct(">d")
_FLOAT_BITS = struct.Struct(">f")
_DAYS = ("Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed")  # the epoch was a Thursday
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def java_text(value, schema=None):
    """Return the text of any value of a record. The schema tells a float32 from a float64."""
    kind = value.__class__
    if kind is str:
        return value
    write = _PLAIN.get(kind)
    if write is not None:
        return write(value)
    if kind is float and (schema is None or schema.type != s.FLOAT32):
        return double_text(value)
    if kind is dict:
        return _map_text(value, schema)
    if isinstance(value, (list, tuple)):
        return _list_text(value, schema)
    if isinstance(value, Struct):
        return _struct_text(value)
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, float):
        return float_text(to_float32(value)) if isinstance(value, Float32) or kind is float else double_text(value)
    if isinstance(value, dict):
        return _map_text(value, schema)
    if isinstance(value, decimal.Decimal):
        return str(value)
    if isinstance(value, MOMENTS):
        return date_text(Instant.of(value).ms)
    if isinstance(value, memoryview):
        return f"java.nio.HeapByteBuffer[pos=0 lim={value.nbytes} cap={value.nbytes}]"
    if isinstance(value, (bytes, bytearray)):
        # Java prints the array's memory address; its text is more useful.
        return utf8.decode(value)
    return str(value)


def _list_text(value, schema):
    items = None if schema is None else schema.value_schema
    return "[" + ", ".join([item if item.__class__ is str else java_text(item, items) for item in value]) + "]"


def _map_text(value, schema):
    keys, items = (None, None) if schema is None else (schema.key_schema, schema.value_schema)
    parts = []
    for key, item in value.items():
        if key.__class__ is not str:
            key = java_text(key, keys)
        kind = item.__class__
        if kind is not str and kind is not int:  # those two need no conversion
            write = _PLAIN.get(kind)
            item = java_text(item, items) if write is None else write(item)
        parts.append(f"{key}={item}")
    return "{" + ", ".join(parts) + "}"


def _struct_text(struct):
    parts = []
    for field, item in zip(struct.schema.fields, struct.values):
        if item is not None:
            if item.__class__ is not str:
                item = java_text(item, field.schema)
            parts.append(f"{field.name}={item}")
    return "Struct{" + ",".join(parts) + "}"


# Most values, by their exact class; others are examined step by step.
_PLAIN = {
    **dict.fromkeys((int, Int8, Int16, Int32, Int64), int.__repr__),
    bool: {False: "false", True: "true"}.__getitem__,
    type(None): lambda value: "null",
    decimal.Decimal: str,  # Python and Java follow the same rules of the General Decimal Arithmetic
    Instant: lambda value: date_text(value.ms),
}


# --- Floating point ------------------------------------------------------------------------------------------------


# Without an exponent, Python and Java differ only at the limit of a double's precision: Python's digits are the shortest that parse to
# the same number, Java's are generated one by one. With up to twelve digits both agree.
_SHORT = 13


def double_text(value):
    """Format like Double.toString."""
    if 1e-3 <= value < 1e7 or -1e7 < value <= -1e-3:
        text = float.__repr__(value)
        if len(text) <= _SHORT:
            return text
    if math.isfinite(value) and value:
        (bits,) = struct.unpack(">q", _DOUBLE_BITS.pack(value))
        exponent = bits >> 52 & 0x7FF
        fraction = bits & (1 << 52) - 1
        if exponent:
            digits, point = _digits(exponent - 1023, fraction | 1 << 52, 53)
        else:
            width = fraction.bit_length()
            digits, point = _digits(width - 1 - 52 - 1022, fraction << 53 - width, width)
        return ("-" if value < 0 else "") + _placed(digits, point)
    return _special(value)


def float_text(value):
    """Format like Float.toString."""
    if math.isfinite(value) and value:
        (bits,) = struct.unpack(">i", _FLOAT_BITS.pack(value))
        exponent = bits >> 23 & 0xFF
        fraction = bits & (1 << 23) - 1
        if exponent:
            digits, point = _digits(exponent - 127, (fraction | 1 << 23) << 29, 24)
        else:
            width = fraction.bit_length()
            digits, point = _digits(width - 1 - 23 - 126, fraction << 53 - width, width)
        return ("-" if value < 0 else "") + _placed(digits, point)
    return _special(value)


def _special(value):
    if value != value:
        return "NaN"
    sign = "-" if math.copysign(1, value) < 0 else ""
    return sign + ("0.0" if value == 0 else "Infinity")


def _placed(digits, point):
    """Insert the decimal point, `point` places after the start of the digits."""
    if 0 < point < 8:
        return f"{digits[:point]:0<{point}}.{digits[point:] or '0'}"
    if -3 < point <= 0:
        return "0." + "0" * -point + digits
    return f"{digits[0]}.{digits[1:] or '0'}E{point - 1}"


_LOG10_2 = 0.301029995663981


def _digits(exponent, fraction, precision):
    """Return the decimal digits of fraction / 2**52 * 2**exponent, and the position of the point.

    `fraction` has 53 bits, of which the upper `precision` count. Digits are generated until they identify the number at that
    precision: free-format output after Steele and White, with the quirks of JDK 17.
    """
    tail = (fraction & -fraction).bit_length() - 1
    used = 53 - tail
    below_point = max(0, used - exponent - 1)
    if below_point == 0 and exponent <= 62:
        return _whole_digits(fraction << exponent >> 52, exponent, precision)
    point = _estimated_point(exponent, fraction)

    # value = b / divisor; m / divisor is half the distance to the next number of this precision.
    b2 = max(0, -point) + below_point + exponent
    s2 = max(0, point) + below_point
    m2 = b2 - precision
    b2 -= used - 1
    common = min(b2, s2)
    b2, s2, m2 = b2 - common, s2 - common, m2 - common
    if used == 1:
        m2 -= 1  # below a power of two the distance is half as large; JDK 17 uses it for both sides
    if m2 < 0:
        b2, s2, m2 = b2 - m2, s2 - m2, 0
    b5, s5 = max(0, -point), max(0, point)
    b = (fraction >> tail) * 5**b5 << b2
    divisor = 5**s5 << s2
    m = 5**b5 << m2
    b_bits = used + b2 + _bits_of_5_to(b5)
    tens_bits = s2 + 1 + _bits_of_5_to(s5 + 1)
    wide = max(b_bits, tens_bits)
    word = 32 if wide < 32 else 64 if wide < 64 else 0
    tens = divisor * 10

    def step():
        nonlocal b, m
        digit, b = divmod(b, divisor)
        b, m = b * 10, m * 10
        if not word:
            return digit, b < m, b + m >= tens
        m = _wrapped(m, word)  # JDK 17 overflows here, and notices only if the sign flips
        return (digit, b < m, _wrapped(b + m, word) > tens) if m > 0 else (digit, True, True)

    digit, low, high = step()
    digits = []
    if digit or high:
        digits.append(digit)
    else:
        point -= 1
    if not -3 <= point < 8:
        low = high = False  # a number with an exponent has at least two digits
    while not (low or high):
        digit, low, high = step()
        digits.append(digit)
    if high and (not low or 2 * b > tens or 2 * b == tens and digits[-1] % 2):
        point += _round_up(digits)
    return "".join(map(str, digits)), point + 1


def _whole_digits(number, exponent, precision):
    """Format a number without a fraction; digits beyond its precision are rounded away."""
    beyond = exponent - precision - 1
    dropped = int(beyond * _LOG10_2) if beyond > 1 else 0
    if dropped:
        number, rest = divmod(number, 10**dropped)
        number += 2 * rest >= 10**dropped
    text = str(number)
    return text.rstrip("0"), len(text) + dropped


def _round_up(digits):
    """Add one to the last digit; return 1 if that adds a leading digit."""
    at = len(digits) - 1
    while at > 0 and digits[at] == 9:
        digits[at] = 0
        at -= 1
    if digits[at] == 9:
        digits[at] = 1
        return 1
    digits[at] += 1
    return 0


def _estimated_point(exponent, fraction):
    """Estimate the decimal exponent, or one more, by the logarithm's tangent at 1.5."""
    mantissa = fraction / (1 << 52)
    return math.floor((mantissa - 1.5) * 0.289529654 + 0.176091259 + exponent * _LOG10_2)


def _bits_of_5_to(power):
    return (5**power).bit_length() if 0 < power < 27 else 3 * power


def _wrapped(number, bits):
    half = 1 << bits - 1
    return (number + half & 2 * half - 1) - half


# --- Dates ---------------------------------------------------------------------------------------------------------


def date_text(ms):
    """Format like Date.toString in UTC: Thu Jan 01 00:00:00 UTC 1970. Before 15 October 1582 the Julian calendar applies."""
    days, rest = divmod(ms, 86_400_000)
    year, month, day = civil(days)
    seconds = rest // 1000
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{_DAYS[days % 7]} {_MONTHS[month - 1]} {day:02} {clock} UTC {year if year > 0 else 1 - year}"


_GREGORIAN_START = -141_427  # 1582-10-15, in days since the epoch


def civil(days):
    """Return (year, month, day) of a day since the epoch, in the calendar of its time; the year before 1 is 0."""
    if days >= _GREGORIAN_START:
        era, of_era = divmod(days + 719_468, 146_097)
        of_era_year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
        year = of_era_year + era * 400
        of_year = of_era - (365 * of_era_year + of_era_year // 4 - of_era_year // 100)
    else:
        era, of_era = divmod(days + 719_470, 1461)
        of_era_year = (of_era - of_era // 1460) // 365
        year = of_era_year + era * 4
        of_year = of_era - 365 * of_era_year
    shifted = (5 * of_year + 2) // 153  # months counted from March
    month = shifted + 3 if shifted < 10 else shifted - 9
    return year + (month <= 2), month, of_year - (153 * shifted + 2) // 5 + 1
