"""Kernels that scan JSON messages by the steps of a Form (json_split.py), and unescape strings.

A step is a token, a value, a list of values, or the start of an object, as four numbers:
TOKEN, start in the tokens, length, 0: a bracket, or a bracket or comma with the following name and colon
value, leaf number, 0, 0
LIST, list number, kind of its items, leaf number
OBJECT, object number, the step after it, 0

Results of leaves are arrays with a row per leaf; results of list items are arrays with a row per list, in which the items of all messages
follow each other.
"""

import numpy as np

from standalone.data.utf8_column import is_utf8
from standalone.kernels import (
    BYTES,
    CODES_BY_ROW,
    FLAGS,
    FLAGS_BY_ROW,
    INTS,
    INTS_BY_ROW,
    LONG,
    LONGS,
    LONGS_BY_ROW,
    REALS_BY_ROW,
    compiled,
    word_at,
    written,
)

TOKEN, OBJECT, STRING, WHOLE, FLOAT, BOOLEAN, LIST = range(7)
FRACTION = 7  # a FLOAT that does not look like an integer
SINGLE = 8  # a FLOAT needed as text only: rounding twice would differ from rounding once
ABSENT, PRESENT, ESCAPED, TEXT = 0, 1, 2, 3  # state of a value; of a TEXT, a number, only the position is stored
_ONES, _HIGHS = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
_QUOTES, _BACKSLASHES, _BLANKS = _ONES * np.uint64(34), _ONES * np.uint64(92), _ONES * np.uint64(32)
_POWERS_OF_TEN = np.array([10.0**n for n in range(23)])  # all exact


@compiled
def split(
    data: BYTES, first: LONG, row_starts: LONGS, row_lengths: INTS, head: BYTES, tail: BYTES, steps: LONGS_BY_ROW, tokens: BYTES,
    bad: written(FLAGS), present: written(FLAGS_BY_ROW), ends: written(LONGS_BY_ROW), states: written(CODES_BY_ROW),
    cells: written(LONGS_BY_ROW), reals: written(REALS_BY_ROW), lengths: written(INTS_BY_ROW), item_states: written(CODES_BY_ROW),
    item_cells: written(LONGS_BY_ROW), item_reals: written(REALS_BY_ROW), item_lengths: written(INTS_BY_ROW),
):  # fmt: skip
    """Scan the messages from row `first` on; return the row after the last one done, which is before the end if list items need more
    room.

    A cell is the start of a string, an integer or boolean, or a float in `reals`, which shares the memory. `ends` has the end of each row's
    items per list.
    """
    room = item_states.shape[1]
    for row in range(first, len(row_starts)):
        at = row_starts[row]
        end = at + row_lengths[row] - len(tail)
        for each in range(len(ends)):
            ends[each, row] = ends[each, row - 1] if row else 0
            if ends[each, row] + (row_lengths[row] >> 1) + 1 > room:
                return row
        if row_lengths[row] < 0 or end < at + len(head) or not _alike(data, at, head) or not _alike(data, end, tail):
            bad[row] = True
            continue
        at += len(head)
        step = 0
        while step < len(steps):  # a single loop: a call with so many arrays costs more than it does
            what, number = steps[step, 0], steps[step, 1]
            if what == TOKEN:
                length = steps[step, 2]
                at = _token(data, at, end, tokens, number, length)
                if at < 0:
                    break
                step += 1
                continue
            at = _after_blanks(data, at, end)
            if at >= end:
                at = -1
                break
            if data[at] == 110:
                at = _null(data, at, end)
                if what == OBJECT:
                    step = steps[step, 2] - 1
            elif what == OBJECT:
                present[number, row] = True
            elif what == STRING:
                state, length = _string(data, at, end)
                states[number, row], cells[number, row], lengths[number, row] = state, at + 1, length
                at = at + length + 2 if length >= 0 else -1
            elif what == WHOLE:
                at, value = _whole(data, at, end)
                states[number, row], cells[number, row] = PRESENT, value
            elif what == BOOLEAN:
                at, value = _boolean(data, at, end)
                states[number, row], cells[number, row] = PRESENT, value
            elif what == LIST:
                kind = steps[step, 2]
                states[steps[step, 3], row] = PRESENT
                at = _after_blanks(data, at + 1, end) if data[at] == 91 else -1
                more = 0 <= at < end and data[at] != 93
                while more:  # items must not be null
                    item = ends[number, row]
                    if kind == STRING:
                        state, length = _string(data, at, end)
                        item_states[number, item], item_cells[number, item], item_lengths[number, item] = state, at + 1, length
                        at = at + length + 2 if length >= 0 else -1
                    elif kind == WHOLE:
                        at, value = _whole(data, at, end)
                        item_states[number, item], item_cells[number, item] = PRESENT, value
                    elif kind == BOOLEAN:
                        at, value = _boolean(data, at, end)
                        item_states[number, item], item_cells[number, item] = PRESENT, value
                    else:
                        begin = at
                        at, state, real = _float(data, at, end, kind)
                        item_states[number, item] = state
                        if state == TEXT:
                            item_cells[number, item], item_lengths[number, item] = begin, at - begin
                        else:
                            item_reals[number, item] = real
                    if at < 0:
                        break
                    ends[number, row] += 1
                    at = _after_blanks(data, at, end)
                    more = at < end and data[at] == 44
                    if more:
                        at = _after_blanks(data, at + 1, end)
                        if at >= end:
                            at = -1
                            break
                at = at + 1 if 0 <= at < end and data[at] == 93 else -1
            else:
                begin = at
                at, state, real = _float(data, at, end, what)
                states[number, row] = state
                if state == TEXT:
                    cells[number, row], lengths[number, row] = begin, at - begin
                else:
                    reals[number, row] = real
            if at < 0:
                break
            step += 1
        if at < 0 or _after_blanks(data, at, end) != end:
            bad[row] = True
            for each in range(len(ends)):
                ends[each, row] = ends[each, row - 1] if row else 0
    return len(row_starts)


@compiled
def _alike(data, at, text):
    """Whether the text is there. No early exit, and on a slice, so that long, mostly equal texts are compared with vector
    instructions."""
    found = data[at : at + len(text)]
    different = np.uint8(0)
    for place in range(len(text)):
        different |= found[place] ^ text[place]
    return different == 0


@compiled
def _same(data, at, text, begin, length):
    for place in range(length):
        if data[at + place] != text[begin + place]:
            return False
    return True


@compiled
def _token(data, at, end, tokens, begin, length):
    """Return the end of a token; -1 if it is not there."""
    if at + length <= end and _same(data, at, tokens, begin, length):
        return at + length
    at = _after_blanks(data, at, end)
    if at >= end or data[at] != tokens[begin]:
        return -1
    at = at + 1
    if length == 1:
        return at
    at, length = _after_blanks(data, at, end), length - 2
    if at + length > end or not _same(data, at, tokens, begin + 1, length):
        return -1
    at = _after_blanks(data, at + length, end)
    return at + 1 if at < end and data[at] == 58 else -1


@compiled
def _after_blanks(data, at, end):
    while at < end and (data[at] == 32 or data[at] == 9 or data[at] == 10 or data[at] == 13):
        at += 1
    return at


@compiled
def _null(data, at, end):
    return at + 4 if at + 4 <= end and data[at + 1] == 117 and data[at + 2] == 108 and data[at + 3] == 108 else -1


@compiled
def _string(data, at, end):
    """Return (PRESENT or ESCAPED, length) of a quoted string; length -1 if invalid."""
    if data[at] != 34:
        return ABSENT, -1
    at += 1
    begin, state, wide = at, PRESENT, False
    while True:
        while at + 8 <= end:  # eight bytes at once until one may be special
            word = word_at(data, at)
            quotes, slashes = word ^ _QUOTES, word ^ _BACKSLASHES
            special = (quotes - _ONES) & ~quotes | (slashes - _ONES) & ~slashes | (word - _BLANKS) & ~word | word
            if special & _HIGHS:
                break
            at += 8
        stop = min(at + 8, end)
        while at < stop:
            byte = data[at]
            if byte == 34:
                if wide and not is_utf8(data, begin, at):
                    return ABSENT, -1
                return state, at - begin
            if byte < 32:
                return ABSENT, -1
            if byte == 92:
                state = ESCAPED
                at += 1
            elif byte >= 128:
                wide = True
            at += 1
        if at >= end:
            return ABSENT, -1


@compiled
def _digits_end(data, at, end):
    while at < end and 48 <= data[at] <= 57:
        at += 1
    return at


@compiled
def _whole(data, at, end):
    """Return (end, integer), or (-1, 0)."""
    negative = data[at] == 45
    begin = at + 1 if negative else at
    place = begin
    value = np.uint64(0)
    while place < end and 48 <= data[place] <= 57:
        value = value * np.uint64(10) + np.uint64(data[place] - 48)
        place += 1
    if place == begin or place - begin > 19 or place < end and _goes_on(data[place]):
        return -1, np.int64(0)
    if value > np.uint64(0x7FFFFFFFFFFFFFFF) + np.uint64(negative):
        return -1, np.int64(0)
    return place, -np.int64(value) if negative else np.int64(value)


@compiled
def _goes_on(byte):
    """Whether a byte after a number is invalid: anything but whitespace, a comma or a bracket."""
    return not (byte == 44 or byte == 125 or byte == 93 or byte == 32 or byte == 9 or byte == 10 or byte == 13)


@compiled
def _float(data, at, end, kind):
    """Return (end or -1, PRESENT or TEXT, number). A number that is not exact in a few operations stays a text."""
    negative = data[at] == 45
    place = at + 1 if negative else at
    begin = place
    place = _digits_end(data, begin, end)
    if place == begin or data[begin] == 48 and place > begin + 1:
        return -1, ABSENT, 0.0
    whole_end, point, exponent = place, place, 0
    if place < end and data[place] == 46:
        point = place + 1
        place = _digits_end(data, point, end)
        if place == point:
            return -1, ABSENT, 0.0
        exponent = point - place
    digits_end = place
    if place < end and (data[place] == 69 or data[place] == 101):
        first = place + 1
        down = first < end and data[first] == 45
        if down or first < end and data[first] == 43:
            first += 1
        place = _digits_end(data, first, end)
        if place == first or place - first > 2:
            return -1, ABSENT, 0.0
        power = 0
        for digit in range(first, place):
            power = power * 10 + (np.int64(data[digit]) - 48)
        exponent += -power if down else power
    if place - at > 40 or place < end and _goes_on(data[place]) or kind == FRACTION and place == whole_end:
        return -1, ABSENT, 0.0
    value = np.int64(0)
    for digit in range(begin, min(digits_end, begin + 18)):
        if data[digit] != 46:
            value = value * 10 + (np.int64(data[digit]) - 48)
    exact = digits_end - begin <= 18 and value < 1 << 53 and -22 <= exponent <= 22 and not (value == 0 and negative)
    if kind == SINGLE or not exact:
        return place, TEXT, 0.0
    # Both operands are exact, so the single rounding is correct.
    real = np.float64(value) / _POWERS_OF_TEN[-exponent] if exponent < 0 else np.float64(value) * _POWERS_OF_TEN[exponent]
    return place, PRESENT, -real if negative else real


@compiled
def _boolean(data, at, end):
    """Return (end, 1 or 0), or (-1, 0)."""
    if at + 4 <= end and data[at] == 116 and data[at + 1] == 114 and data[at + 2] == 117 and data[at + 3] == 101:
        return at + 4, 1
    if at + 5 <= end and data[at] == 102 and data[at + 1] == 97 and data[at + 2] == 108 and data[at + 3] == 115 and data[at + 4] == 101:
        return at + 5, 0
    return -1, 0


@compiled
def _hex(data, at, end):
    """Return the value of four hexadecimal digits, or -1."""
    if at + 4 > end:
        return -1
    code = 0
    for place in range(at, at + 4):
        byte = data[place]
        if 48 <= byte <= 57:
            digit = byte - 48
        elif 65 <= byte <= 70:
            digit = byte - 55
        elif 97 <= byte <= 102:
            digit = byte - 87
        else:
            return -1
        code = code * 16 + digit
    return code


@compiled
def unescape(data: BYTES, rows: LONGS, starts: written(LONGS), lengths: written(INTS), side: written(BYTES), bad: written(FLAGS)):
    """Unescape the strings of these rows; return the number of bytes written. An unpaired surrogate makes a row bad."""
    out = 0
    for row in rows:
        at, end = starts[row], starts[row] + lengths[row]
        begin = out
        while at < end:
            byte = data[at]
            if byte != 92:
                side[out] = byte
                out += 1
                at += 1
                continue
            letter = data[at + 1]
            at += 2
            if letter == 117:
                code = _hex(data, at, end)
                at += 4
                if 0xD800 <= code < 0xDC00 and at + 6 <= end and data[at] == 92 and data[at + 1] == 117:
                    low = _hex(data, at + 2, end)
                    if 0xDC00 <= low < 0xE000:
                        code = 0x10000 + (code - 0xD800 << 10) + (low - 0xDC00)
                        at += 6
                if code < 0 or 0xD800 <= code < 0xE000:
                    bad[row] = True
                    break
                out = _write_letter(code, side, out)
                continue
            if letter == 34 or letter == 92 or letter == 47:
                side[out] = letter
            elif letter == 98:
                side[out] = 8
            elif letter == 102:
                side[out] = 12
            elif letter == 110:
                side[out] = 10
            elif letter == 114:
                side[out] = 13
            elif letter == 116:
                side[out] = 9
            else:
                bad[row] = True
                break
            out += 1
        starts[row] = len(data) + begin
        lengths[row] = out - begin
    return out


@compiled
def _write_letter(code, side, out):
    if code < 0x80:
        side[out] = code
        return out + 1
    if code < 0x800:
        side[out], side[out + 1] = 0xC0 | code >> 6, 0x80 | code & 63
        return out + 2
    if code < 0x10000:
        side[out], side[out + 1], side[out + 2] = 0xE0 | code >> 12, 0x80 | code >> 6 & 63, 0x80 | code & 63
        return out + 3
    side[out], side[out + 1] = 0xF0 | code >> 18, 0x80 | code >> 12 & 63
    side[out + 2], side[out + 3] = 0x80 | code >> 6 & 63, 0x80 | code & 63
    return out + 4
