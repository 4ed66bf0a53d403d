"""Splits JSON messages of one form into columns: a kernel that follows a list of steps through each message.

The steps of {"a":1,"b":{"c":"x"}} are: "{", the name "a", ":", a whole number, ",", the name "b", ":", an object that may be null, ...
Blanks may stand between them. A message that leaves the steps is bad, and nobody looks at it any further.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from standalone import ByteColumn
from standalone.converters.json_text import quoted
from standalone.data import schema as s
from standalone.data.arrow import arrow_type, to_arrow
from standalone.data.utf8_column import is_utf8
from standalone.kernels import compiled, readonly

DAY_MS = 86_400_000
# Steps: a token as it stands, a value of a kind, an object that begins. A step is (what, a, b, c):
# TOKEN, where it begins in the tokens, its length, 0
# value, number of the leaf, 0, 0
# OBJECT, number of the object, the step behind it, number of the first leaf behind it
TOKEN, OBJECT, STRING, WHOLE, FLOAT, BOOLEAN = range(6)
_ABSENT, _PRESENT, _ESCAPED = 0, 1, 2

_BITS = {s.INT8: 8, s.INT16: 16, s.INT32: 32, s.INT64: 64, s.DATE: 32, s.TIME: 32, s.TIMESTAMP: 64}
_KINDS = {s.STRING: STRING, s.FLOAT32: FLOAT, s.FLOAT64: FLOAT, s.BOOLEAN: BOOLEAN, **dict.fromkeys(_BITS, WHOLE)}


class NotSplit(ValueError):
    """A schema with parts that are left to the row meaning."""


class Leaf:
    """A plain value in each message."""

    def __init__(self, schema, number):
        self.schema = schema
        self.number = number


class Object:
    """An object in each message. `parts` are leaves and objects by the schema's fields."""

    def __init__(self, schema, number):
        self.schema = schema
        self.number = number
        self.parts = []


class Form:
    """The steps through the messages of one schema."""

    def __init__(self, schema, fills_defaults):
        self.fills_defaults = fills_defaults
        self.leaves, self.objects = [], []
        self._steps, self._tokens = [], bytearray()
        self.root = self._value(schema)
        self.steps = readonly(np.array(self._steps, np.int64).reshape(-1, 4))
        self.tokens = readonly(np.frombuffer(bytes(self._tokens), np.uint8))

    def _value(self, schema):
        kind = schema.logical or schema.type
        if kind == s.STRUCT:
            return self._object(schema)
        if kind not in _KINDS or schema.logical and s.LOGICAL[kind] != schema.type:
            raise NotSplit(kind)
        leaf = Leaf(schema, len(self.leaves))
        self.leaves.append(leaf)
        self._steps.append((_KINDS[kind], leaf.number, 0, 0))
        return leaf

    def _object(self, schema):
        if schema.default is not None:
            raise NotSplit("a struct with a default")
        found = Object(schema, len(self.objects))
        self.objects.append(found)
        begin = len(self._steps)
        self._steps.append(None)
        self._token("{")
        for field in schema.fields:
            if found.parts:
                self._token(",")
            self._token(quoted(field.name))
            self._token(":")
            found.parts.append(self._value(field.schema))
        self._token("}")
        self._steps[begin] = (OBJECT, found.number, len(self._steps), len(self.leaves))
        return found

    def _token(self, text):
        token = text.encode()
        self._steps.append((TOKEN, len(self._tokens), len(token), 0))
        self._tokens += token


class Split:
    """What the kernel found: where each leaf's value stands in each message, or what it is."""

    def __init__(self, form, count):
        self.form = form
        self.count = count
        leaves, objects = len(form.leaves), len(form.objects)
        self.bad = np.zeros(count, np.bool_)
        self.states = np.zeros((leaves, count), np.int8)
        self.starts = np.zeros((leaves, count), np.int64)
        self.lengths = np.zeros((leaves, count), np.int32)
        self.numbers = np.zeros((leaves, count), np.int64)
        self.present = np.zeros((objects, count), np.bool_)

    def columns(self, column, opening, ending):
        """The column of the whole messages; rows that are not of the form are marked in `bad`."""
        self._data = readonly(column.data)
        head, tail = (readonly(np.frombuffer(text, np.uint8)) for text in (opening, ending))
        arrays = (self.bad, self.states, self.starts, self.lengths, self.numbers, self.present)
        _split(self._data, readonly(column.starts), readonly(column.lengths), head, tail, self.form.steps, self.form.tokens, *arrays)
        root = self.form.root
        return self._top_string(root) if isinstance(root, Leaf) and root.schema.type == s.STRING else self._column(root, ~self.bad)

    def _top_string(self, leaf):
        """Strings stay where they are in the messages."""
        if leaf.schema.default is not None and self.form.fills_defaults:
            return self._column(leaf, ~self.bad)
        self._mark_nulls(leaf.schema, self.states[leaf.number] == _ABSENT, ~self.bad)
        return self._strings(leaf.number)

    def _column(self, part, there):
        """The Arrow array of a leaf or an object. `there` are the rows in which it stands at all."""
        schema = part.schema
        if isinstance(part, Object):
            present = self.present[part.number]
            self._mark_nulls(schema, ~present, there)
            inside = there & present
            arrays = [self._column(each, inside) for each in part.parts]
            mask = None if inside.all() else pa.array(~inside)
            if not arrays:
                return pa.array([{} if each else None for each in inside.tolist()], arrow_type(schema))
            return pa.StructArray.from_arrays(arrays, fields=list(arrow_type(schema)), mask=mask)
        absent = (self.states[part.number] == _ABSENT) | ~there
        array = self._leaf(part, there & ~absent)
        if schema.default is not None and self.form.fills_defaults:
            default = to_arrow([schema.default], schema)[0]
            return pc.if_else(pa.array(absent & there), default, array) if (absent & there).any() else array
        self._mark_nulls(schema, absent, there)
        return array

    def _mark_nulls(self, schema, absent, there):
        if not schema.optional:
            self.bad |= absent & there

    def _leaf(self, leaf, valid):
        schema, number = leaf.schema, leaf.number
        kind = schema.logical or schema.type
        mask = None if valid.all() else ~valid
        if kind == s.STRING:
            found = self._strings(number)
            return ByteColumn(found.data, found.starts, np.where(valid, found.lengths, -1).astype(np.int32)).to_arrow(text=True)
        if kind == s.BOOLEAN:
            return pa.array(self.numbers[number] == 1, mask=mask)
        if kind in _BITS:
            return self._whole(kind, number, valid, mask)
        return self._floats(kind, number, valid)

    def _whole(self, kind, number, valid, mask):
        values = self.numbers[number]
        bits = _BITS[kind]
        if bits < 64:
            self.bad |= valid & ((values < -(1 << bits - 1)) | (values >= 1 << bits - 1))
        if kind == s.TIME:
            self.bad |= valid & ((values < 0) | (values > DAY_MS))
        if kind == s.DATE:
            values = np.where(self.bad, 0, values) * DAY_MS
        if kind in s.LOGICAL:
            return pa.array(values, mask=mask)
        return pa.array(values.astype(f"int{bits}"), mask=mask)

    def _floats(self, kind, number, valid):
        lengths = np.where(valid & ~self.bad, self.lengths[number], -1).astype(np.int32)
        texts = ByteColumn(self._data, self.starts[number], lengths).to_arrow(text=True)
        array = pc.cast(texts, pa.float32() if kind == s.FLOAT32 else pa.float64())
        # Of -0.0 Java's BigDecimal forgets the sign, of -1e-400 it does not: the rows engine knows.
        values = array.to_numpy(zero_copy_only=False)
        self.bad |= valid & (values == 0) & (self._data[np.where(lengths > 0, self.starts[number], 0)] == 45)
        return array

    def _strings(self, number):
        states, starts, lengths = self.states[number], self.starts[number], self.lengths[number]
        lengths = np.where((states == _ABSENT) | self.bad, -1, lengths).astype(np.int32)
        escaped = np.flatnonzero((states == _ESCAPED) & ~self.bad)
        if not len(escaped):
            return ByteColumn(self._data, starts, lengths)
        side = np.empty(int(lengths[escaped].sum()), np.uint8)
        starts = starts.copy()
        size = _unescape(self._data, escaped, starts, lengths, side, self.bad)
        data = np.concatenate([self._data, side[:size]])
        return ByteColumn(data, starts, np.where(self.bad, -1, lengths).astype(np.int32))


# --- The kernels ---------------------------------------------------------------------------------------------------


@compiled
def _split(data, row_starts, row_lengths, head, tail, steps, tokens, bad, states, starts, lengths, numbers, present):
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
    state, wide, place = 1, np.uint8(0), np.uint64(0)  # an index that cannot be negative saves a question a byte
    size = np.uint64(len(rest))
    while place < size and rest[place] != 34:
        byte = rest[place]
        if byte < 32:
            return -1
        if byte == 92:
            state = 2
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
    states[number, row] = 1
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
    states[number, row] = 1
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
    states[number, row] = 1
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
def _unescape(data, rows, starts, lengths, side, bad):
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
