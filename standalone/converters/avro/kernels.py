"""Kernels between Avro bytes and flat arrays: one decodes a batch of messages by the steps of their schema, one encodes a batch.

A schema becomes a list of steps (decode.py, encode.py), so one kernel, compiled at set-up, serves all schemas. A column of the flat arrays
is a range of `numbers` (int64) and `sizes` (int32) from `base` on. Numbers hold integers, float bits, the start of bytes (whose length is
the size), or the end of a list's items; a size of -1 is a null.
"""

import numpy as np

from standalone.converters.flat_arrays import NULL, REFUSED  # noqa: F401
from standalone.converters.words import long_word, put_long_word, put_word, word
from standalone.kernels import BYTES, FLAGS, INTS, LONG, LONGS, LONGS_BY_ROW, compiled, copy, written

# Decoding steps (step, column, a, b); a and b are explained beside each
BOOLEAN, INT, LONG_INT, FLOAT, DOUBLE, BYTES_, FIXED, ENUM, DECIMAL = range(9)  # FIXED: a size; ENUM: a symbols
UNION = 9  # a slot, b number of branches
BRANCH = 10  # a slot, column branch number, b its last step
STRUCT = 11  # a struct, null or not
MEMBERS = 12  # a struct of union members: a slot, b the null branch
LIST = 13  # a slot, b its last step
ITEM = 14  # end of an item: a slot, b first step of items


@compiled
def _varint(data, at, end):
    """Return (zigzag number, end position); the end is -1 if invalid. Apart from the lowest bit, 63 bits suffice."""
    if at >= end:
        return 0, -1
    byte = np.int64(data[at])  # shifted bytes are unsigned, and numba makes floats of mixed signs
    at += 1
    sign = byte & 1
    number = (byte & 0x7F) >> 1
    shift = 6
    while byte >= 0x80:
        if at >= end or shift > 62:
            return 0, -1
        byte = np.int64(data[at])
        at += 1
        if shift == 62 and byte > 1:
            return 0, -1
        number |= (byte & 0x7F) << shift
        shift += 7
    return (-number - 1 if sign else number), at


@compiled
def _block(data, at, end):
    """Return (item count of the next block of a list, 0 at its end; position of the items), -1 for the position if invalid."""
    number, at = _varint(data, at, end)
    if at >= 0 and number < 0:
        number = -number
        _, at = _varint(data, at, end)  # size of the block in bytes
    if number > end - at:
        return 0, -1
    return number, at


@compiled
def decode(
    data: BYTES,
    row: LONG,
    starts: LONGS,
    lengths: INTS,
    head: BYTES,
    steps: LONGS_BY_ROW,
    base: LONGS,
    room: LONGS,
    fails_on_rest: LONG,
    fill: written(LONGS),
    before: written(LONGS),
    slots: written(LONGS),
    numbers: written(LONGS),
    sizes: written(INTS),
    bad: written(FLAGS),
):
    """Decode messages from `row` on. Return the number done: fewer than all if a column is full.

    `fill` is how much of each column is used, `slots` hold state of unions (branch) and lists (items left in the block, items so far). An
    invalid message is marked and gets nulls.
    """
    count = len(steps)
    while row < len(starts):
        for column in range(len(fill)):
            before[column] = fill[column]
        for slot in range(len(slots)):
            before[len(fill) + slot] = slots[slot]
        at = starts[row]
        end = at + lengths[row]
        is_bad = lengths[row] < len(head)
        if not is_bad:
            for place in range(len(head)):
                if data[at + place] != head[place]:
                    is_bad = True
            at += len(head)
        until = 0  # steps before it are skipped: a null, or another branch
        fills = False  # the message is invalid and gets nulls
        step = 0
        full = False
        while True:
            if is_bad:
                # Restart the message, filling nulls
                for column in range(len(fill)):
                    fill[column] = before[column]
                for slot in range(len(slots)):
                    slots[slot] = before[len(fill) + slot]
                bad[row] = True
                is_bad = False
                fills = True
                until = count
                step = 0
            if step == count:
                if fills or not fails_on_rest or at == end:
                    break
                is_bad = True
                continue
            kind, column, a, b = steps[step, 0], steps[step, 1], steps[step, 2], steps[step, 3]
            absent = step < until
            number = 0
            size = 0
            if kind == UNION:
                number = -1
                if not absent:
                    number, at = _varint(data, at, end)
                    is_bad = at < 0 or number < 0 or number >= b
                slots[a] = number
                step += 1
                continue
            if kind == BRANCH:
                if not absent and slots[a] != column:
                    until = b
                step += 1
                continue
            if kind == ITEM:
                until = 0  # a null in this item says nothing about the next
                slots[a + 1] += 1
                slots[a] -= 1
                if slots[a] > 0:
                    step = b
                    continue
                # Next block, or end of the list
                number, at = _block(data, at, end)
                if at < 0:
                    is_bad = True
                    continue
                if number > 0:
                    slots[a] = number
                    step = b
                    continue
                number = slots[a + 1]
            elif kind == LIST:
                if absent:
                    number = slots[a + 1]
                    size = -1
                    step = b - 1
                else:
                    number, at = _block(data, at, end)
                    if at < 0:
                        is_bad = True
                        continue
                    if number > 0:
                        slots[a] = number
                        step += 1
                        continue
                    number = slots[a + 1]
                    step = b - 1
            elif absent:
                size = -1
            elif kind == MEMBERS:
                if slots[a] == b:
                    size = -1
            elif kind == STRUCT:
                pass
            elif kind == INT or kind == LONG_INT or kind == ENUM:
                number, at = _varint(data, at, end)
                if at < 0 or kind == INT and (number < -0x80000000 or number > 0x7FFFFFFF) or kind == ENUM and (number < 0 or number >= a):
                    is_bad = True
                    continue
            elif kind == BYTES_ or kind == DECIMAL:
                length, at = _varint(data, at, end)
                if at < 0 or length < 0 or length > end - at or length > 0x7FFFFFFF or kind == DECIMAL and length == 0:
                    is_bad = True
                    continue
                number = at
                size = length
                at += length
            elif kind == FIXED:
                if a > end - at:
                    is_bad = True
                    continue
                number = at
                size = a
                at += a
            elif kind == BOOLEAN:
                if at >= end or data[at] > 1:
                    is_bad = True
                    continue
                number = np.int64(data[at])
                at += 1
            elif kind == FLOAT:
                if end - at < 4:
                    is_bad = True
                    continue
                number = word(data, at)
                at += 4
            else:
                if end - at < 8:
                    is_bad = True
                    continue
                number = long_word(data, at)
                at += 8
            if fill[column] == room[column]:
                full = True
                break
            place = base[column] + fill[column]
            numbers[place] = number
            sizes[place] = size
            fill[column] += 1
            step += 1
        if full:
            for column in range(len(fill)):
                fill[column] = before[column]
            for slot in range(len(slots)):
                slots[slot] = before[len(fill) + slot]
            bad[row] = False
            return row
        row += 1
    return row


@compiled
def _put_varint(out, at, number):
    """Write a zigzag number; return its end position."""
    sign = 0
    if number < 0:
        sign = 1
        number = -(number + 1)
    byte = (number & 0x3F) << 1 | sign
    number >>= 6
    while number > 0:
        out[at] = byte | 0x80
        at += 1
        byte = number & 0x7F
        number >>= 7
    out[at] = byte
    return at + 1


# Encoding steps (step, column, level, a, b). A level is the rows, or the items of a list.
OPTIONAL = 9  # of the following column: a branch for null, b branch for a value, c last step of the value
WRITE_LIST = 13  # a level of its items, c last step
END_ITEM = 14  # a level, c first step of items


@compiled
def encode(
    count: LONG,
    head: BYTES,
    steps: LONGS_BY_ROW,
    data: BYTES,
    base: LONGS,
    numbers: LONGS,
    sizes: INTS,
    cursors: written(LONGS),
    ends: written(LONGS),
    out: written(BYTES),
    starts: written(LONGS),
    lengths: written(INTS),
    bad: written(FLAGS),
):
    """Encode rows as messages. A row that cannot be encoded is marked, and becomes null."""
    last = len(steps)
    at = 0
    for row in range(count):
        cursors[0] = row
        begin = at
        copy(out, at, head, 0, len(head))
        at += len(head)
        step = 0
        is_bad = False
        while step < last and not is_bad:
            kind, column, level = steps[step, 0], steps[step, 1], steps[step, 2]
            a, b, c = steps[step, 3], steps[step, 4], steps[step, 5]
            if kind == END_ITEM:
                cursors[a] += 1
                if cursors[a] < ends[a]:
                    step = c
                else:
                    out[at] = 0
                    at += 1
                    step += 1
                continue
            place = base[column] + cursors[level]
            size = sizes[place]
            if kind == OPTIONAL:
                if size == NULL:
                    at = _put_varint(out, at, a)
                    step = c
                else:
                    at = _put_varint(out, at, b)
                    step += 1
                continue
            if size < 0:
                is_bad = True
                continue
            number = numbers[place]
            if kind == WRITE_LIST:
                end = numbers[place + 1]
                if number == end:
                    out[at] = 0
                    at += 1
                    step = c
                    continue
                at = _put_varint(out, at, end - number)
                cursors[a] = number
                ends[a] = end
            elif kind == INT:
                at = _put_varint(out, at, number)
            elif kind == BYTES_ or kind == FIXED:
                if kind == BYTES_:
                    at = _put_varint(out, at, size)
                elif size != a:
                    is_bad = True
                    continue
                copy(out, at, data, number, size)
                at += size
            elif kind == BOOLEAN:
                out[at] = number
                at += 1
            elif kind == FLOAT:
                put_word(out, at, number)
                at += 4
            elif kind == DOUBLE:
                put_long_word(out, at, number)
                at += 8
            step += 1
        if is_bad:
            at = begin
            bad[row] = True
            lengths[row] = -1
        else:
            lengths[row] = at - begin
        starts[row] = begin
    return at
