"""The kernels that follow the steps of a form (json_split.py) through JSON messages, and take the escapes out of strings.

A step is a token as it stands, a value of a kind, or an object that begins, as four numbers:
TOKEN, where it begins in the tokens, its length, 0
value, the leaf's number, 0, 0
OBJECT, the object's number, the step behind it, the number of the first leaf behind it
"""

import numpy as np

from standalone.data.utf8_column import is_utf8
from standalone.kernels import compiled

TOKEN, OBJECT, STRING, WHOLE, FLOAT, BOOLEAN = range(6)
ABSENT, PRESENT, ESCAPED = 0, 1, 2  # what a value is; a string with escapes is present, too


@compiled
def split(data, row_starts, row_lengths, head, tail, steps, tokens, bad, states, starts, lengths, numbers, present):
    for row in range(len(row_starts)):
        at = row_starts[row]
        end = at + row_lengths[row] - len(tail)
        if row_lengths[row] < 0 or end < at + len(head) or not _alike(data, at, head) or not _alike(data, end, tail):
            bad[row] = True
            continue
        at = _follow(data, at + len(head), end, steps, tokens, row, states, starts, lengths, numbers, present)
        bad[row] = at < 0 or _behind_blanks(data, at, end) != end


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
def _follow(data, at, end, steps, tokens, row, states, starts, lengths, numbers, present):
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
        elif what == STRING:
            at = _string(data, at, end, number, row, states, starts, lengths)
        elif what == WHOLE:
            at = _whole(data, at, end, number, row, states, numbers)
        elif what == FLOAT:
            at = _float(data, at, end, number, row, states, starts, lengths)
        else:
            at = _boolean(data, at, end, number, row, states, numbers)
        if at < 0:
            return -1
        step += 1
    return at


@compiled
def _string(data, at, end, number, row, states, starts, lengths):
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
    starts[number, row] = at + 1
    lengths[number, row] = length
    return at + length + 2


@compiled
def _digits_end(data, at, end):
    while at < end and 48 <= data[at] <= 57:
        at += 1
    return at


@compiled
def _whole(data, at, end, number, row, states, numbers):
    negative = data[at] == 45
    begin = at + 1 if negative else at
    place = _digits_end(data, begin, end)
    if place == begin or place - begin > 18 or place < end and _goes_on(data[place]):
        return -1
    value = np.int64(0)
    for digit in range(begin, place):
        value = value * 10 + (np.int64(data[digit]) - 48)
    states[number, row] = PRESENT
    numbers[number, row] = -value if negative else value
    return place


@compiled
def _goes_on(byte):
    """Whether a byte behind a number makes it something else: anything but a blank, a comma or a bracket."""
    return not (byte == 44 or byte == 125 or byte == 93 or byte == 32 or byte == 9 or byte == 10 or byte == 13)


@compiled
def _float(data, at, end, number, row, states, starts, lengths):
    place = at + 1 if data[at] == 45 else at
    begin = place
    place = _digits_end(data, begin, end)
    if place == begin or data[begin] == 48 and place > begin + 1:
        return -1
    if place < end and data[place] == 46:
        begin = place + 1
        place = _digits_end(data, begin, end)
        if place == begin:
            return -1
    if place < end and (data[place] == 69 or data[place] == 101):
        begin = place + 1
        if begin < end and (data[begin] == 43 or data[begin] == 45):
            begin += 1
        place = _digits_end(data, begin, end)
        if place == begin or place - begin > 2:
            return -1
    if place - at > 40 or place < end and _goes_on(data[place]):
        return -1
    states[number, row] = PRESENT
    starts[number, row] = at
    lengths[number, row] = place - at
    return place


@compiled
def _boolean(data, at, end, number, row, states, numbers):
    if at + 4 <= end and data[at] == 116 and data[at + 1] == 114 and data[at + 2] == 117 and data[at + 3] == 101:
        numbers[number, row] = 1
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
