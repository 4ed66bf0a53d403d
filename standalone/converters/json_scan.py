"""The kernels that follow the steps of a form (json_split.py) through JSON messages, and take the escapes out of strings.

A step is a token as it stands, a value of a kind, a list of such values, or an object that begins, as four numbers:
TOKEN, where it begins in the tokens, its length, 0
value, the leaf's number, 0, 0
LIST, the list's number, the kind of its items, the leaf's number
OBJECT, the object's number, the step behind it, 0

What is found of the leaves is in arrays of a row for each leaf; what is found of the items of lists is in arrays of a row for each list,
in which the items of all messages follow each other.
"""

import numpy as np

from standalone.data.utf8_column import is_utf8
from standalone.kernels import compiled

TOKEN, OBJECT, STRING, WHOLE, FLOAT, BOOLEAN, LIST = range(7)
FRACTION = 7  # a FLOAT that looks like no whole number
SINGLE = 8  # a FLOAT of which only the text is wanted: to round it twice would not be to round it once
ABSENT, PRESENT, ESCAPED, TEXT = 0, 1, 2, 3  # what a value is; of a TEXT, which is a number, only where it stands
_POWERS_OF_TEN = np.array([10.0**n for n in range(23)])  # each of them exact


@compiled
def split(data, first, row_starts, row_lengths, head, tail, steps, tokens, bad, present, ends, states, cells, reals, lengths, item_states, item_cells, item_reals, item_lengths):
    """Follow the steps through the messages from the row `first` on; returns the row behind the last one that was done, which is not
    the last of all where the items of lists need more room.

    A cell is where a text begins, a whole number or a boolean, or in `reals`, which are the same bytes, a float. `ends` has for each
    list where its items of each row end.
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
        at = _follow(data, at + len(head), end, steps, tokens, row, present, ends, states, cells, reals, lengths, item_states, item_cells, item_reals, item_lengths)
        if at < 0 or _behind_blanks(data, at, end) != end:
            bad[row] = True
            for each in range(len(ends)):
                ends[each, row] = ends[each, row - 1] if row else 0
    return len(row_starts)


@compiled
def _alike(data, at, text):
    """As `_same`, for long texts that mostly are: without a way out early, and on a slice, many bytes are compared at once."""
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
def _behind_blanks(data, at, end):
    while at < end and (data[at] == 32 or data[at] == 9 or data[at] == 10 or data[at] == 13):
        at += 1
    return at


@compiled
def _follow(data, at, end, steps, tokens, row, present, ends, states, cells, reals, lengths, item_states, item_cells, item_reals, item_lengths):
    """Where the steps end in a message; -1 where it leaves them."""
    step = 0
    while step < len(steps):
        at = _behind_blanks(data, at, end)
        if at >= end:
            return -1
        what, number = steps[step, 0], steps[step, 1]
        if what == TOKEN:
            length = steps[step, 2]
            if at + length > end or not _same(data, at, tokens, number, length):
                return -1
            at += length
        elif data[at] == 110:
            if at + 4 > end or data[at + 1] != 117 or data[at + 2] != 108 or data[at + 3] != 108:
                return -1
            at += 4
            if what == OBJECT:
                step = steps[step, 2] - 1
        elif what == OBJECT:
            present[number, row] = True
        elif what == LIST:
            states[steps[step, 3], row] = PRESENT
            at = _list(data, at, end, number, steps[step, 2], row, ends, item_states, item_cells, item_reals, item_lengths)
        else:
            at = _value(data, at, end, what, number, row, states, cells, reals, lengths)
        if at < 0:
            return -1
        step += 1
    return at


@compiled
def _value(data, at, end, kind, number, row, states, cells, reals, lengths):
    if kind == STRING:
        return _string(data, at, end, number, row, states, cells, lengths)
    if kind == WHOLE:
        return _whole(data, at, end, number, row, states, cells)
    if kind == BOOLEAN:
        return _boolean(data, at, end, number, row, states, cells)
    return _float(data, at, end, kind, number, row, states, cells, reals, lengths)


@compiled
def _list(data, at, end, number, kind, row, ends, states, cells, reals, lengths):
    """A list of plain values, of which none may be null."""
    if data[at] != 91:
        return -1
    at = _behind_blanks(data, at + 1, end)
    if at < end and data[at] == 93:
        return at + 1
    while at < end:
        at = _value(data, at, end, kind, number, ends[number, row], states, cells, reals, lengths)
        if at < 0:
            return -1
        ends[number, row] += 1
        at = _behind_blanks(data, at, end)
        if at < end and data[at] == 93:
            return at + 1
        if at >= end or data[at] != 44:
            return -1
        at = _behind_blanks(data, at + 1, end)
    return -1


@compiled
def _string(data, at, end, number, row, states, cells, lengths):
    if data[at] != 34:
        return -1
    rest = data[at + 1 : end]
    state, wide, place = PRESENT, np.uint8(0), np.uint64(0)  # an index that cannot be negative saves a question a byte
    size = np.uint64(len(rest))
    while place < size and rest[place] != 34:
        byte = rest[place]
        if byte < 32:
            return -1
        if byte == 92:
            state = ESCAPED
            place += np.uint64(1)
        wide |= byte
        place += np.uint64(1)
    length = np.int64(place)
    if place >= size or wide >= 128 and not is_utf8(data, at + 1, at + 1 + length):
        return -1
    states[number, row] = state
    cells[number, row] = at + 1
    lengths[number, row] = length
    return at + length + 2


@compiled
def _digits_end(data, at, end):
    while at < end and 48 <= data[at] <= 57:
        at += 1
    return at


@compiled
def _whole(data, at, end, number, row, states, cells):
    negative = data[at] == 45
    begin = at + 1 if negative else at
    place = _digits_end(data, begin, end)
    if place == begin or place - begin > 19 or place < end and _goes_on(data[place]):
        return -1
    value = np.uint64(0)
    for digit in range(begin, place):
        value = value * np.uint64(10) + np.uint64(data[digit] - 48)
    if value > np.uint64(0x7FFFFFFFFFFFFFFF) + np.uint64(negative):
        return -1
    states[number, row] = PRESENT
    cells[number, row] = -np.int64(value) if negative else np.int64(value)
    return place


@compiled
def _goes_on(byte):
    """Whether a byte behind a number makes it something else: anything but a blank, a comma or a bracket."""
    return not (byte == 44 or byte == 125 or byte == 93 or byte == 32 or byte == 9 or byte == 10 or byte == 13)


@compiled
def _float(data, at, end, kind, number, row, states, cells, reals, lengths):
    """A number. One that is not exact in a few steps is left as its text."""
    negative = data[at] == 45
    place = at + 1 if negative else at
    begin = place
    place = _digits_end(data, begin, end)
    if place == begin or data[begin] == 48 and place > begin + 1:
        return -1
    whole_end, point, exponent = place, place, 0
    if place < end and data[place] == 46:
        point = place + 1
        place = _digits_end(data, point, end)
        if place == point:
            return -1
        exponent = point - place
    digits_end = place
    if place < end and (data[place] == 69 or data[place] == 101):
        first = place + 1
        down = first < end and data[first] == 45
        if down or first < end and data[first] == 43:
            first += 1
        place = _digits_end(data, first, end)
        if place == first or place - first > 2:
            return -1
        power = 0
        for digit in range(first, place):
            power = power * 10 + (data[digit] - 48)
        exponent += -power if down else power
    if place - at > 40 or place < end and _goes_on(data[place]) or kind == FRACTION and place == whole_end:
        return -1
    value = np.int64(0)
    for digit in range(begin, min(digits_end, begin + 18)):
        if data[digit] != 46:
            value = value * 10 + (np.int64(data[digit]) - 48)
    exact = digits_end - begin <= 18 and value < 1 << 53 and -22 <= exponent <= 22 and not (value == 0 and negative)
    if kind == SINGLE or not exact:
        states[number, row] = TEXT
        cells[number, row] = at
        lengths[number, row] = place - at
        return place
    # Both are exact, so that the one rounding is the right one.
    real = np.float64(value) / _POWERS_OF_TEN[-exponent] if exponent < 0 else np.float64(value) * _POWERS_OF_TEN[exponent]
    states[number, row] = PRESENT
    reals[number, row] = -real if negative else real
    return place


@compiled
def _boolean(data, at, end, number, row, states, cells):
    if at + 4 <= end and data[at] == 116 and data[at + 1] == 114 and data[at + 2] == 117 and data[at + 3] == 101:
        cells[number, row] = 1
        place = at + 4
    elif at + 5 <= end and data[at] == 102 and data[at + 1] == 97 and data[at + 2] == 108 and data[at + 3] == 115 and data[at + 4] == 101:
        place = at + 5
    else:
        return -1
    states[number, row] = PRESENT
    return place


@compiled
def _hex(data, at, end):
    """The number that four hexadecimal digits say, or -1."""
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
def unescape(data, rows, starts, lengths, side, bad):
    """Write the strings of these rows without their escapes; returns the bytes written. Half a pair of surrogates makes a row bad."""
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
