"""Kernels between Protobuf's bytes and flat arrays: one level of messages at a time, nested messages as slices of bytes.

The fields of a message type are a table sorted by field number, so one kernel, compiled at set-up, serves all types: (number, kind, wire
type, REPEATED or not, number of the oneof or -1, ONCE or not).
"""

import numpy as np

from standalone.converters.flat_arrays import NULL, REFUSED
from standalone.converters.words import long_word, put_long_word, put_word, word
from standalone.kernels import BYTES, FLAG, FLAGS, INTS, INTS_BY_ROW, LONG, LONGS, LONGS_BY_ROW, compiled, copy, written

NUMBER, KIND, WIRE, REPEATED, ONEOF, ONCE = range(6)  # columns of the table
LONG_INT, INT, UNSIGNED, ZIGZAG, LONG_ZIGZAG, BOOLEAN, WORD, SIGNED_WORD, LONG_WORD, BYTES_ = range(10)  # how a value is encoded
WIRES = (0, 0, 0, 0, 0, 0, 5, 5, 1, 2)  # by kind
ALWAYS, UNLESS_ZERO, PACKED, EACH = range(4)  # what is written: any value that is set; the same, except zeros; a packed list; item by item
_LAST_DAY = 2932896  # 9999-12-31, since the epoch
_FIRST_DAY = -719162  # 0001-01-01


@compiled
def _varint(data, at, end):
    """Return (64 bits as a signed number, end position); the end is -1 if invalid."""
    number = np.int64(0)
    for shift in range(0, 63, 7):
        if at >= end:
            return number, -1
        byte = np.int64(data[at])
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
    if at >= end or data[at] > 1:
        return number, -1
    if data[at] == 1:
        number = number - 0x7FFFFFFFFFFFFFFF - 1
    return number, at + 1


@compiled
def _number(kind, data, at, end):
    """Return (a number of that kind, end position); the end is -1 if invalid, or if protoc's classes would truncate it."""
    zero = np.int64(0)
    if kind == WORD or kind == SIGNED_WORD:
        if end - at < 4:
            return zero, -1
        number = word(data, at)
        if kind == SIGNED_WORD and number > 0x7FFFFFFF:
            number -= 0x100000000
        return number, at + 4
    if kind == LONG_WORD:
        if end - at < 8:
            return zero, -1
        return long_word(data, at), at + 8
    number, at = _varint(data, at, end)
    if kind == INT and (number < -0x80000000 or number > 0x7FFFFFFF):
        return zero, -1
    if (kind == UNSIGNED or kind == ZIGZAG) and (number < 0 or number > 0xFFFFFFFF):
        return zero, -1
    if kind == BOOLEAN and (number < 0 or number > 1):
        return zero, -1
    if kind == ZIGZAG or kind == LONG_ZIGZAG:
        number = (number >> 1 & 0x7FFFFFFFFFFFFFFF) ^ -(number & 1)
    return number, at


@compiled
def scan(
    data: BYTES,
    starts: LONGS,
    lengths: INTS,
    head: BYTES,
    fields: LONGS_BY_ROW,
    takes_items: FLAG,
    numbers: written(LONGS_BY_ROW),
    sizes: written(INTS_BY_ROW),
    bad: written(FLAGS),
    cursors: written(LONGS),
    item_numbers: written(LONGS),
    item_sizes: written(INTS),
):
    """Scan messages, each after the bytes `head`: each field's value by field and row, and for lists the number of items (sizes).

    With `takes_items` a second pass stores the items of lists, from `cursors` on. A message of another layout is marked, and so is one that
    contains a message field twice, or two members of a oneof. A length of -1 means null.
    """
    count = len(fields)
    for row in range(len(starts)):
        if lengths[row] < 0 or bad[row]:
            continue
        at = starts[row]
        end = at + lengths[row]
        is_bad = lengths[row] < len(head)
        if not is_bad:
            for place in range(len(head)):
                if data[at + place] != head[place]:
                    is_bad = True
            at += len(head)
        expected = 0
        while not is_bad and at < end:
            tag, at = _varint(data, at, end)
            if at < 0 or tag < 8 or tag > 0xFFFFFFFF:
                is_bad = True
                break
            number, wire = tag >> 3, tag & 7
            field = expected
            if field >= count or fields[field, NUMBER] != number:
                field = 0
                while field < count and fields[field, NUMBER] != number:
                    field += 1
            length = np.int64(0)
            if wire == 2:
                length, at = _varint(data, at, end)
                if at < 0 or length < 0 or length > end - at:
                    is_bad = True
                    break
            is_packed = False
            if field < count and fields[field, WIRE] != wire:
                is_packed = wire == 2 and fields[field, REPEATED] == 1
                if not is_packed:
                    field = count
            if field >= count:  # unknown field
                if wire == 0:
                    _, at = _varint(data, at, end)
                    is_bad = at < 0
                elif wire == 1 or wire == 5:
                    at += 8 if wire == 1 else 4
                    is_bad = at > end
                elif wire == 2:
                    at += length
                else:
                    is_bad = True  # a group, which may contain anything
                continue
            kind = fields[field, KIND]
            if fields[field, REPEATED] == 1:
                expected = field
                stop = at + length if is_packed else at + 1
                while at < stop:
                    if kind == BYTES_:
                        value, size = at, length
                        at += length
                        stop = at
                    else:
                        size = np.int64(0)
                        value, at = _number(kind, data, at, stop if is_packed else end)
                        if at < 0:
                            is_bad = True
                            break
                        if not is_packed:
                            stop = at
                    if takes_items:
                        item_numbers[cursors[field]] = value
                        item_sizes[cursors[field]] = size
                        cursors[field] += 1
                    else:
                        sizes[field, row] += 1
                continue
            expected = field + 1
            if kind == BYTES_:
                value, size = at, length
                at += length
            else:
                size = np.int64(0)
                value, at = _number(kind, data, at, end)
                if at < 0:
                    is_bad = True
                    break
            if takes_items:
                continue
            if sizes[field, row] >= 0 and fields[field, ONCE] == 1:
                is_bad = True
            if fields[field, ONEOF] >= 0:
                for other in range(count):
                    if other != field and fields[other, ONEOF] == fields[field, ONEOF] and sizes[other, row] >= 0:
                        is_bad = True
            numbers[field, row] = value
            sizes[field, row] = size
        if is_bad:
            bad[row] = True
            for field in range(count):
                sizes[field, row] = 0 if fields[field, REPEATED] == 1 else -1


# --- Writing --------------------------------------------------------------------------------------------------------


@compiled
def _size(number):
    """Return the size of a varint."""
    if number < 0:
        return 10
    size = 1
    while number > 0x7F:
        number >>= 7
        size += 1
    return size


@compiled
def _put_varint(out, at, number):
    """Write 64 bits as a varint; return its end."""
    if number < 0:
        for _ in range(9):
            out[at] = number & 0x7F | 0x80
            at += 1
            number >>= 7
        out[at] = 1
        return at + 1
    while number > 0x7F:
        out[at] = number & 0x7F | 0x80
        at += 1
        number >>= 7
    out[at] = number
    return at + 1


@compiled
def _written_as(kind, number):
    return (number << 1) ^ (number >> 63) if kind == ZIGZAG or kind == LONG_ZIGZAG else number


@compiled
def _put(out, at, kind, number):
    if kind == WORD or kind == SIGNED_WORD:
        put_word(out, at, number)
        return at + 4
    if kind == LONG_WORD:
        put_long_word(out, at, number)
        return at + 8
    return _put_varint(out, at, _written_as(kind, number))


@compiled
def encode(
    count: LONG,
    head: BYTES,
    fields: LONGS_BY_ROW,
    nulls: FLAGS,
    data: BYTES,
    base: LONGS,
    numbers: LONGS,
    sizes: INTS,
    item_base: LONGS,
    out: written(BYTES),
    starts: written(LONGS),
    lengths: written(INTS),
    bad: written(FLAGS),
):
    """Encode rows as messages; `fields` are (tag, kind, how). A row that cannot be encoded is marked and becomes null, like those in `nulls`.

    Values of field f begin at `base[f]` of numbers and sizes. For a list they are the starts of its items (plus the end after the last row),
    counted from `item_base[f]`.
    """
    at = 0
    for row in range(count):
        starts[row] = at
        lengths[row] = -1
        if nulls[row]:
            continue
        begin = at
        copy(out, at, head, 0, len(head))
        at += len(head)
        is_bad = False
        for field in range(len(fields)):
            tag, kind, how = fields[field, 0], fields[field, 1], fields[field, 2]
            place = base[field] + row
            size = sizes[place]
            if size < 0:
                is_bad = is_bad or size != NULL
                continue
            number = numbers[place]
            if how == ALWAYS or how == UNLESS_ZERO:
                if how == UNLESS_ZERO and (size == 0 if kind == BYTES_ else number == 0):
                    continue
                at = _put_varint(out, at, tag)
                if kind == BYTES_:
                    at = _put_varint(out, at, size)
                    copy(out, at, data, number, size)
                    at += size
                else:
                    at = _put(out, at, kind, number)
                continue
            low, high = item_base[field] + number, item_base[field] + numbers[place + 1]
            for item in range(low, high):
                is_bad = is_bad or sizes[item] < 0
            if is_bad or low == high:
                continue
            if how == PACKED:
                total = 0
                for item in range(low, high):
                    total += 4 if kind == WORD or kind == SIGNED_WORD else 8 if kind == LONG_WORD else _size(_written_as(kind, numbers[item]))
                at = _put_varint(out, at, tag)
                at = _put_varint(out, at, total)
                for item in range(low, high):
                    at = _put(out, at, kind, numbers[item])
                continue
            for item in range(low, high):
                at = _put_varint(out, at, tag)
                if kind == BYTES_:
                    at = _put_varint(out, at, sizes[item])
                    copy(out, at, data, numbers[item], sizes[item])
                    at += sizes[item]
                else:
                    at = _put(out, at, kind, numbers[item])
        if is_bad:
            at = begin
            bad[row] = True
        else:
            lengths[row] = at - begin
    return at


# --- Messages of well-known types -------------------------------------------------------------------------------


@compiled
def days_of(years: LONGS, months: LONGS, days: LONGS, out: written(LONGS), bad: written(FLAGS)):
    """Convert dates to days since the epoch; each must be within 0001-01-01 to 9999-12-31."""
    for row in range(len(years)):
        year, month, day = years[row], months[row], days[row]
        is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
        last = 30 if month == 4 or month == 6 or month == 9 or month == 11 else 31
        if month == 2:
            last = 29 if is_leap else 28
        if year < 1 or year > 9999 or month < 1 or month > 12 or day < 1 or day > last:
            bad[row] = True
            continue
        # Start the year in March, so that the leap day is its last
        if month <= 2:
            year -= 1
        since = (month + 9) % 12
        out[row] = 365 * year + year // 4 - year // 100 + year // 400 + (153 * since + 2) // 5 + day - 1 - 719468


@compiled
def dates_of(days: LONGS, years: written(LONGS), months: written(LONGS), month_days: written(LONGS), bad: written(FLAGS)):
    """Convert days since the epoch to dates."""
    for row in range(len(days)):
        day = days[row]
        if day < _FIRST_DAY or day > _LAST_DAY:
            bad[row] = True
            continue
        day += 719468
        era = day // 146097
        of_era = day - era * 146097
        year = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
        of_year = of_era - (365 * year + year // 4 - year // 100)
        since = (5 * of_year + 2) // 153
        month_days[row] = of_year - (153 * since + 2) // 5 + 1
        month = since + 3 if since < 10 else since - 9
        months[row] = month
        years[row] = year + era * 400 + (1 if month <= 2 else 0)


@compiled
def digits_of(data: BYTES, starts: LONGS, lengths: INTS, out: written(LONGS), bad: written(FLAGS)):
    """Count the decimal digits of big-endian two's complement integers; more than seven bytes are marked as bad."""
    for row in range(len(starts)):
        if lengths[row] < 0:
            continue
        if lengths[row] == 0 or lengths[row] > 7:
            bad[row] = True
            continue
        number = np.int64(data[starts[row]])
        if number > 0x7F:
            number -= 0x100
        for place in range(1, lengths[row]):
            number = number * 256 + np.int64(data[starts[row] + place])
        if number < 0:
            number = -number
        digits = 1
        while number > 9:
            number //= 10
            digits += 1
        out[row] = digits


@compiled
def symbols_of(
    data: BYTES,
    starts: LONGS,
    lengths: INTS,
    symbols: BYTES,
    symbol_starts: LONGS,
    symbol_lengths: INTS,
    numbers: written(LONGS),
    sizes: written(INTS),
):
    """Find each text in a list of symbols; REFUSED if it is none of them."""
    for row in range(len(starts)):
        sizes[row] = NULL
        if lengths[row] < 0:
            continue
        sizes[row] = REFUSED
        for symbol in range(len(symbol_starts)):
            if symbol_lengths[symbol] == lengths[row]:
                place = 0
                while place < lengths[row] and data[starts[row] + place] == symbols[symbol_starts[symbol] + place]:
                    place += 1
                if place == lengths[row]:
                    numbers[row] = symbol
                    sizes[row] = 0
                    break


@compiled
def mark_twins(ends: LONGS, data: BYTES, numbers: LONGS, sizes: INTS, is_bytes: FLAG, bad: written(FLAGS)):
    """Mark rows with duplicate items, such as keys of a map, or with too many items to compare."""
    low = 0
    for row in range(len(ends)):
        high = ends[row]
        if high - low > 64:
            bad[row] = True
        else:
            for one in range(low, high):
                for other in range(low, one):
                    if not is_bytes:
                        if numbers[one] == numbers[other]:
                            bad[row] = True
                    elif sizes[one] == sizes[other]:
                        place = 0
                        while place < sizes[one] and data[numbers[one] + place] == data[numbers[other] + place]:
                            place += 1
                        if place == sizes[one]:
                            bad[row] = True
        low = high
