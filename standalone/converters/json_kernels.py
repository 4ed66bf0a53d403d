"""Kernels that write JSON text: escaped strings, base64 bytes, numbers in Jackson's format.

A row's text is data[start : start + length], or side[~start : ...] if start is negative (a string that was rewritten), or none if length
is -1: the parts that data/assemble.py joins.
"""

import numpy as np

from standalone.data.java_digits import write_double, write_float, write_int
from standalone.data.utf8_column import is_utf8
from standalone.kernels import BYTES, FLAGS, INTS, LONGS, LONGS_BY_ROW, REALS, SINGLES, compiled, copy, written

_HEX = np.frombuffer(b"0123456789ABCDEF", np.uint8)
_BASE64 = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8)
_SHORT = np.zeros(128, np.uint8)  # the letter of a short escape, by character
for _character, _letter in zip(b'"\\\b\f\n\r\t', b'"\\bfnrt'):
    _SHORT[_character] = _letter

MALFORMED = -2  # a size from `escaped_sizes`: not UTF-8


# --- Strings -------------------------------------------------------------------------------------------------------


@compiled
def escaped_sizes(data: BYTES, starts: LONGS, lengths: INTS, sizes: written(INTS)):
    """Compute each string's escaped size; 0 if nothing needs escaping, MALFORMED if not UTF-8. Return (sum, malformed count)."""
    total, malformed = 0, 0
    for row in range(len(starts)):
        sizes[row] = 0
        if lengths[row] <= 0:  # the slice of a null at 0 would be data[0:-1]: the whole batch for each null
            continue
        low, high = starts[row], starts[row] + lengths[row]
        special, wide = False, np.uint8(0)
        found = data[low:high]
        for place in range(len(found)):  # no early exit, so that the loop is vectorized
            byte = found[place]
            special |= (byte < 32) | (byte == 34) | (byte == 92) | (byte >= 240)
            wide |= byte
        if wide >= 128 and not is_utf8(data, low, high):
            sizes[row] = -2
            malformed += 1
        elif special:
            size = 0
            for place in range(low, high):
                byte = data[place]
                if byte >= 240:
                    size += 9  # four bytes become two escapes of six
                elif byte < 128 and _SHORT[byte]:
                    size += 2
                else:
                    size += 6 if byte < 32 else 1
            sizes[row] = size
            total += size
    return total, malformed


@compiled
def escape(data: BYTES, starts: LONGS, lengths: INTS, sizes: INTS, side: written(BYTES), new_starts: written(LONGS)):
    """Write the strings that need escaping to `side`; the others stay in place."""
    at = np.int64(0)
    for row in range(len(starts)):
        if sizes[row] == 0:
            new_starts[row] = starts[row]
            continue
        new_starts[row] = ~at
        place, end = starts[row], starts[row] + lengths[row]
        while place < end:
            byte = data[place]
            if byte >= 240:
                code = (np.int64(byte) & 7) << 18 | (np.int64(data[place + 1]) & 63) << 12
                code |= (np.int64(data[place + 2]) & 63) << 6 | np.int64(data[place + 3]) & 63
                at = _write_unit(0xD800 + (code - 0x10000 >> 10), side, at)
                at = _write_unit(0xDC00 + (code & 0x3FF), side, at)
                place += 4
                continue
            if byte < 128 and _SHORT[byte]:
                side[at], side[at + 1] = 92, _SHORT[byte]
                at += 2
            elif byte < 32:
                at = _write_unit(np.int64(byte), side, at)
            else:
                side[at] = byte
                at += 1
            place += 1


@compiled
def _write_unit(code, side, at):
    side[at], side[at + 1] = 92, 117
    for digit in range(4):
        side[at + 2 + digit] = _HEX[code >> 12 - 4 * digit & 15]
    return at + 6


@compiled
def base64(data: BYTES, starts: LONGS, lengths: INTS, side: written(BYTES), new_starts: written(LONGS), new_lengths: written(INTS)):
    at = np.int64(0)
    for row in range(len(starts)):
        new_starts[row] = ~at
        new_lengths[row] = -1
        if lengths[row] < 0:
            continue
        place, end = starts[row], starts[row] + lengths[row]
        begin = at
        while place < end:
            taken = min(3, end - place)
            bits = np.int64(data[place]) << 16
            if taken > 1:
                bits |= np.int64(data[place + 1]) << 8
            if taken > 2:
                bits |= np.int64(data[place + 2])
            for digit in range(4):
                side[at + digit] = _BASE64[bits >> 18 - 6 * digit & 63] if digit <= taken else 61
            at += 4
            place += 3
        new_lengths[row] = at - begin


# --- Numbers -------------------------------------------------------------------------------------------------------


@compiled
def ints(values: LONGS, valid: FLAGS, side: written(BYTES), new_starts: written(LONGS), new_lengths: written(INTS)):
    at = np.int64(0)
    for row in range(len(values)):
        new_starts[row] = ~at
        new_lengths[row] = -1
        if valid[row]:
            end = write_int(values[row], side, at)
            new_lengths[row] = end - at
            at = end


@compiled
def doubles(
    values: REALS, bits: LONGS, valid: FLAGS, side: written(BYTES), new_starts: written(LONGS), new_lengths: written(INTS),
    scratch: written(LONGS_BY_ROW),
):  # fmt: skip
    at = np.int64(0)
    for row in range(len(values)):
        new_starts[row] = ~at
        new_lengths[row] = -1
        if valid[row]:
            end = _quote_words(side, at, write_double(values[row], bits[row], side, at, scratch))
            new_lengths[row] = end - at
            at = end


@compiled
def floats(
    values: SINGLES, bits: INTS, valid: FLAGS, side: written(BYTES), new_starts: written(LONGS), new_lengths: written(INTS),
    scratch: written(LONGS_BY_ROW),
):  # fmt: skip
    at = np.int64(0)
    for row in range(len(values)):
        new_starts[row] = ~at
        new_lengths[row] = -1
        if valid[row]:
            end = _quote_words(side, at, write_float(values[row], bits[row], side, at, scratch))
            new_lengths[row] = end - at
            at = end


@compiled
def _quote_words(side, at, end):
    """Quote NaN and Infinity, which JSON lacks, as Jackson does."""
    if side[end - 1] < 65:
        return end
    for place in range(end, at, -1):
        side[place] = side[place - 1]
    side[at] = side[end + 1] = 34
    return end + 2


@compiled
def decimals(
    unscaled: BYTES, starts: LONGS, lengths: INTS, scales: INTS, side: written(BYTES), new_starts: written(LONGS),
    new_lengths: written(INTS), failed: written(FLAGS),
):  # fmt: skip
    """Write Decimals as numbers like BigDecimal; values beyond 64 bits are marked in `failed`."""
    at = np.int64(0)
    digits = np.empty(24, np.uint8)
    for row in range(len(starts)):
        new_starts[row] = ~at
        new_lengths[row] = -1
        size = lengths[row]
        if size < 0:
            continue
        if size > 8 or size == 0:
            failed[row] = True
            continue
        place = starts[row]
        number = np.int64(unscaled[place])
        number -= (number & 128) << 1  # sign-extend the first byte
        for each in range(place + 1, place + size):
            number = number << 8 | np.int64(unscaled[each])
        begin = at
        count = write_int(number, digits, 0)
        first = 0
        if number < 0:
            side[at] = 45
            at += 1
            first = 1
        at = _place_point(digits, first, count, np.int64(scales[row]), side, at)
        new_lengths[row] = at - begin


@compiled
def _place_point(digits, first, end, scale, side, at):
    count = end - first
    exponent = count - 1 - scale
    if scale == 0:
        copy(side, at, digits, first, count)
        return at + count
    if scale > 0 and exponent >= -6:
        whole = count - scale
        if whole <= 0:
            side[at], side[at + 1] = 48, 46
            at += 2
            for _ in range(-whole):
                side[at] = 48
                at += 1
            copy(side, at, digits, first, count)
            return at + count
        copy(side, at, digits, first, whole)
        side[at + whole] = 46
        copy(side, at + whole + 1, digits, first + whole, scale)
        return at + count + 1
    side[at] = digits[first]
    at += 1
    if count > 1:
        side[at] = 46
        copy(side, at + 1, digits, first + 1, count - 1)
        at += count
    if exponent == 0:
        return at
    side[at] = 69
    at += 1
    if exponent > 0:
        side[at] = 43
        at += 1
    return write_int(exponent, side, at)
