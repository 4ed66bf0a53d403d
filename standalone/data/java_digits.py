"""Format columns of numbers like Java: kernels that write text into a buffer.

Floating-point digits are those of JDK 17; `java_text.py` formats single numbers, and tests compare both.
A kernel `write_…(value, out, at, scratch)` writes at `out[at:]` and returns the end. It needs room for 26 bytes, and a `scratch` from
`new_scratch()` per thread.
"""

import numpy as np

from standalone.kernels import BYTES, FLAGS, INTS, LONGS, LONGS_BY_ROW, REALS, SINGLES, compiled, written

LONGEST = 26  # -1.7976931348623157E-308 and one spare byte
_LIMBS = 40  # of 32 bits: enough for 5**324 times its factor
_POWERS_OF_5 = np.array([5**n for n in range(28)], np.int64)
_BITS_OF_POWERS = np.array([0] + [(5**n).bit_length() for n in range(1, 27)], np.int64)
_SMALLEST = np.int64(-(1 << 63))
_LOG10_2 = 0.301029995663981
_DOUBLE, _SINGLE = np.int64(53), np.int64(24)  # bits of precision; a Python int would compile each kernel once per value


def new_scratch():
    """Return room for five big integers and the digits."""
    return np.zeros((6, _LIMBS), np.int64)


# --- Integers, booleans --------------------------------------------------------------------------------------------


@compiled
def write_int(value, out, at):
    """Write an int64."""
    value = np.int64(value)
    rest = np.uint64(value)
    if value < 0:
        out[at] = 45
        at += 1
        rest = np.uint64(-value) if value > _SMALLEST else np.uint64(1) << np.uint64(63)
    length, limit = 1, np.uint64(10)
    while length < 19 and rest >= limit:
        length += 1
        limit *= np.uint64(10)
    for place in range(at + length - 1, at - 1, -1):
        out[place] = np.uint8(48) + np.uint8(rest % np.uint64(10))
        rest //= np.uint64(10)
    return at + length


@compiled
def write_bool(value, out, at):
    word = b"true" if value else b"false"
    for letter in word:
        out[at] = letter
        at += 1
    return at


# --- Floating point ------------------------------------------------------------------------------------------------


@compiled
def write_double(value, bits, out, at, scratch):
    """Write a float64, given also as its bits in an int64."""
    exponent = bits >> 52 & 0x7FF
    fraction = bits & 0xFFFFFFFFFFFFF
    if exponent == 0x7FF or exponent == 0 and fraction == 0:
        return _write_special(value, bits < 0, out, at)
    if exponent:
        return _write(exponent - 1023, fraction | 1 << 52, _DOUBLE, bits < 0, out, at, scratch)
    width = _width(fraction)
    return _write(width - 1075, fraction << 53 - width, width, bits < 0, out, at, scratch)


@compiled
def write_float(value, bits, out, at, scratch):
    """Write a float32, given also as its bits in an int32."""
    exponent = np.int64(bits) >> 23 & 0xFF
    fraction = np.int64(bits) & 0x7FFFFF
    if exponent == 0xFF or exponent == 0 and fraction == 0:
        return _write_special(value, bits < 0, out, at)
    if exponent:
        return _write(exponent - 127, (fraction | 1 << 23) << 29, _SINGLE, bits < 0, out, at, scratch)
    width = _width(fraction)
    return _write(width - 150, fraction << 53 - width, width, bits < 0, out, at, scratch)


@compiled
def _width(number):
    width = 0
    while number:
        width += 1
        number >>= 1
    return width


@compiled
def _write_special(value, negative, out, at):
    if value != value:
        word = b"NaN"
    elif value == 0:
        word = b"-0.0" if negative else b"0.0"
    else:
        word = b"-Infinity" if negative else b"Infinity"
    for letter in word:
        out[at] = letter
        at += 1
    return at


@compiled
def _write(exponent, fraction, precision, negative, out, at, scratch):
    """The same as java_text's `_digits` and `_placed`."""
    digits = scratch[5]
    tail = 0
    while not fraction >> tail & 1:
        tail += 1
    used = 53 - tail
    below_point = max(0, used - exponent - 1)
    if below_point == 0 and exponent <= 62:
        count, point = _whole_digits(fraction << exponent - 52 if exponent >= 52 else fraction >> 52 - exponent, exponent, precision, digits)
    else:
        count, point = _free_digits(exponent, fraction, precision, tail, used, below_point, digits, scratch)
    if negative:
        out[at] = 45
        at += 1
    return _place(digits, count, point, out, at)


@compiled
def _place(digits, count, point, out, at):
    if 0 < point < 8:
        for place in range(max(count, point)):
            if place == point:
                out[at] = 46
                at += 1
            out[at] = 48 + digits[place] if place < count else 48
            at += 1
        if count <= point:
            out[at], out[at + 1] = 46, 48
            at += 2
        return at
    if -3 < point <= 0:
        out[at], out[at + 1] = 48, 46
        at += 2
        for _ in range(-point):
            out[at] = 48
            at += 1
        for place in range(count):
            out[at] = 48 + digits[place]
            at += 1
        return at
    out[at], out[at + 1] = 48 + digits[0], 46
    at += 2
    if count == 1:
        out[at] = 48
        at += 1
    for place in range(1, count):
        out[at] = 48 + digits[place]
        at += 1
    out[at] = 69
    return write_int(point - 1, out, at + 1)


@compiled
def _whole_digits(number, exponent, precision, digits):
    beyond = exponent - precision - 1
    dropped = int(beyond * _LOG10_2) if beyond > 1 else 0
    if dropped:
        divisor = 1
        for _ in range(dropped):
            divisor *= 10
        rest = number % divisor
        number = number // divisor + (1 if rest >= divisor // 2 else 0)
    length = 0
    rest = number
    while rest:
        length += 1
        rest //= 10
    for place in range(length - 1, -1, -1):
        digits[place] = number % 10
        number //= 10
    count = length
    while count > 1 and digits[count - 1] == 0:
        count -= 1
    return count, length + dropped


@compiled
def _bits_of_5_to(power):
    return _BITS_OF_POWERS[power] if power < 27 else 3 * power


@compiled
def _free_digits(exponent, fraction, precision, tail, used, below_point, digits, scratch):
    mantissa = fraction / 4503599627370496.0
    point = int(np.floor((mantissa - 1.5) * 0.289529654 + 0.176091259 + exponent * _LOG10_2))
    b2 = max(0, -point) + below_point + exponent
    s2 = max(0, point) + below_point
    m2 = b2 - precision
    b2 -= used - 1
    common = min(b2, s2)
    b2, s2, m2 = b2 - common, s2 - common, m2 - common
    if used == 1:
        m2 -= 1
    if m2 < 0:
        b2, s2, m2 = b2 - m2, s2 - m2, 0
    b5, s5 = max(0, -point), max(0, point)
    wide = max(used + b2 + _bits_of_5_to(b5), s2 + 1 + _bits_of_5_to(s5 + 1))
    if wide < 64:
        return _small_digits(fraction >> tail, point, b2, s2, m2, b5, s5, wide < 32, digits)
    limbs = scratch[:, : wide // 32 + 3]
    return _large_digits(fraction >> tail, point, b2, s2, m2, b5, s5, digits, limbs)


@compiled
def _small_digits(number, point, b2, s2, m2, b5, s5, narrow, digits):
    """For numbers that fit a machine word; overflows of the margin are as in JDK 17."""
    b = number * _POWERS_OF_5[b5] << b2
    s = _POWERS_OF_5[s5] << s2
    m = _POWERS_OF_5[b5] << m2
    tens = s * 10
    digit, b = b // s, 10 * (b % s)
    m = _wrapped(np.uint64(m) * np.uint64(10), narrow)
    low, high = b < m or m <= 0, _wrapped(np.uint64(b) + np.uint64(m), narrow) > tens or m <= 0
    count = 0
    if digit or high:
        digits[0], count = digit, 1
    else:
        point -= 1
    if not -3 <= point < 8:
        low = high = False
    while not (low or high):
        digit, b = b // s, 10 * (b % s)
        m = _wrapped(np.uint64(m) * np.uint64(10), narrow)
        low, high = b < m or m <= 0, _wrapped(np.uint64(b) + np.uint64(m), narrow) > tens or m <= 0
        digits[count] = digit
        count += 1
    if high:
        over = b - (tens - b)  # b is below tens, which fits 63 bits; twice b might not
        if not low or over > 0 or (over == 0 and digits[count - 1] % 2 == 1):
            point += _round_up(digits, count)
    return count, point + 1


@compiled
def _wrapped(number, narrow):
    """Reinterpret a uint64, whose overflow is defined, as a signed word."""
    return np.int64(np.int32(number)) if narrow else np.int64(number)


@compiled
def _round_up(digits, count):
    at = count - 1
    while at > 0 and digits[at] == 9:
        digits[at] = 0
        at -= 1
    if digits[at] == 9:
        digits[at] = 1
        return 1
    digits[at] += 1
    return 0


# Big integers are 32-bit limbs in int64, least significant first.


@compiled
def _large_digits(number, point, b2, s2, m2, b5, s5, digits, limbs):
    b, s, m, tens, total = limbs[0], limbs[1], limbs[2], limbs[3], limbs[4]
    _set(b, number, b5, b2)
    _set(s, 1, s5, s2)
    _set(m, 1, b5, m2)
    tens[:] = s
    _times(tens, 10)
    digit = _step(b, s, m)
    low, high = _compare(b, m) < 0, _sum_reaches(b, m, tens, total)
    count = 0
    if digit or high:
        digits[0], count = digit, 1
    else:
        point -= 1
    if not -3 <= point < 8:
        low = high = False
    while not (low or high):
        digits[count] = _step(b, s, m)
        count += 1
        low, high = _compare(b, m) < 0, _sum_reaches(b, m, tens, total)
    if high:
        up = not low
        if low:
            total[:] = b
            _times(total, 2)
            order = _compare(total, tens)
            up = order > 0 or (order == 0 and digits[count - 1] % 2 == 1)
        if up:
            point += _round_up(digits, count)
    return count, point + 1


@compiled
def _set(limbs, number, power_of_5, shift):
    """Set limbs to number * 5**power_of_5 << shift."""
    limbs[:] = 0
    limbs[0], limbs[1] = number & 0xFFFFFFFF, number >> 32
    while power_of_5 > 0:
        chunk = min(power_of_5, 13)
        _times(limbs, _POWERS_OF_5[chunk])
        power_of_5 -= chunk
    whole, bits = shift // 32, shift % 32
    for place in range(len(limbs) - 1, -1, -1):
        high = limbs[place - whole] if place >= whole else 0
        low = limbs[place - whole - 1] if place > whole else 0
        limbs[place] = (high << bits | low >> 32 - bits) & 0xFFFFFFFF


@compiled
def _times(limbs, factor):
    carry = 0
    for place in range(len(limbs)):
        product = limbs[place] * factor + carry
        limbs[place] = product & 0xFFFFFFFF
        carry = product >> 32


@compiled
def _compare(a, b):
    for place in range(len(a) - 1, -1, -1):
        if a[place] != b[place]:
            return 1 if a[place] > b[place] else -1
    return 0


@compiled
def _step(b, s, m):
    """Return the next digit; multiply the remainder of b, and m, by ten."""
    digit = 0
    while _compare(b, s) >= 0:
        borrow = 0
        for place in range(len(b)):
            rest = b[place] - s[place] - borrow
            borrow = 1 if rest < 0 else 0
            b[place] = rest & 0xFFFFFFFF
        digit += 1
    _times(b, 10)
    _times(m, 10)
    return digit


@compiled
def _sum_reaches(a, b, limit, total):
    """Whether a + b >= limit."""
    carry = 0
    for place in range(len(a)):
        added = a[place] + b[place] + carry
        total[place] = added & 0xFFFFFFFF
        carry = added >> 32
    return _compare(total, limit) >= 0


# --- Columns -------------------------------------------------------------------------------------------------------


@compiled
def ints(values: LONGS, valid: FLAGS, out: written(BYTES), starts: written(LONGS), lengths: written(INTS)):
    """Write int64s one after another; return the bytes written. `lengths` is -1 where `valid` is false."""
    at = np.int64(0)  # kernels are compiled separately for the literal 0
    for row in range(len(values)):
        starts[row] = at
        lengths[row] = -1
        if valid[row]:
            end = write_int(values[row], out, at)
            lengths[row] = end - at
            at = end
    return at


@compiled
def doubles(
    values: REALS, bits: LONGS, valid: FLAGS, out: written(BYTES), starts: written(LONGS), lengths: written(INTS),
    scratch: written(LONGS_BY_ROW),
):  # fmt: skip
    """Like `ints`, for float64s and their bits."""
    at = np.int64(0)
    for row in range(len(values)):
        starts[row] = at
        lengths[row] = -1
        if valid[row]:
            end = write_double(values[row], bits[row], out, at, scratch)
            lengths[row] = end - at
            at = end
    return at


@compiled
def floats(
    values: SINGLES, bits: INTS, valid: FLAGS, out: written(BYTES), starts: written(LONGS), lengths: written(INTS),
    scratch: written(LONGS_BY_ROW),
):  # fmt: skip
    """Like `ints`, for float32s and their bits."""
    at = np.int64(0)
    for row in range(len(values)):
        starts[row] = at
        lengths[row] = -1
        if valid[row]:
            end = write_float(values[row], bits[row], out, at, scratch)
            lengths[row] = end - at
            at = end
    return at
