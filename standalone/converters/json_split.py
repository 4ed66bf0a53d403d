"""Split JSON messages of the same layout into columns: kernels (json_scan.py) scan each message by a list of steps.

The steps of {"a":1,"b":{"c":"x"}} are: "{" with the name "a" and ":", an integer, "," with the name "b" and ":", an object that may be
null, ... Whitespace may be anywhere between. A message that does not follow the steps is bad and not scanned further.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from standalone import ByteColumn, DataError
from standalone.converters import json_bytes
from standalone.converters.json_scan import (
    ABSENT,
    BOOLEAN,
    ESCAPED,
    FLOAT,
    FRACTION,
    LIST,
    OBJECT,
    SINGLE,
    STRING,
    TEXT,
    TOKEN,
    WHOLE,
    split,
    unescape,
)
from standalone.converters.json_text import quoted
from standalone.converters.json_values import from_base64, scale_of
from standalone.data import schema as s
from standalone.data.arrow import arrow_type
from standalone.data.column import to_arrow
from standalone.data.struct_column import StructColumn
from standalone.kernels import readonly

DAY_MS = 86_400_000

_BITS = {s.INT8: 8, s.INT16: 16, s.INT32: 32, s.INT64: 64, s.DATE: 32, s.TIME: 32, s.TIMESTAMP: 64}
_KINDS = {s.STRING: STRING, s.FLOAT32: SINGLE, s.FLOAT64: FLOAT, s.BOOLEAN: BOOLEAN, **dict.fromkeys(_BITS, WHOLE)}
_KINDS.update({s.BYTES: STRING, s.DECIMAL: STRING})  # strings in base64
_ITEMS = (s.STRING, s.BOOLEAN, s.FLOAT64, s.INT8, s.INT16, s.INT32, s.INT64)


class NotSplit(ValueError):
    """A schema with parts that only the row form supports."""


class Leaf:
    """A primitive value in each message."""

    def __init__(self, schema, number):
        self.schema = schema
        self.number = number


class List:
    """A list of primitive values in each message; `number` is its leaf's number."""

    def __init__(self, schema, number, list_number):
        self.schema = schema
        self.number = number
        self.list_number = list_number


class Object:
    """An object in each message. `parts` are leaves, lists and objects in the schema's order."""

    def __init__(self, schema, number):
        self.schema = schema
        self.number = number
        self.parts = []


class Form:
    """The steps for messages of one schema. If the schema was guessed, each value must have exactly its type: 1 is not a float."""

    def __init__(self, schema, fills_defaults=False, is_shape=False):
        self.fills_defaults = fills_defaults
        self.leaves = self.lists = self.objects = 0
        self._kinds = {**_KINDS, s.FLOAT64: FRACTION} if is_shape else _KINDS
        self._is_shape = is_shape
        self._steps, self._tokens = [], bytearray()
        self.root = self._value(schema)
        self.steps = readonly(np.array(self._steps, np.int64).reshape(-1, 4))
        self.tokens = readonly(np.frombuffer(bytes(self._tokens), np.uint8))

    def _value(self, schema):
        kind = schema.logical or schema.type
        if kind == s.STRUCT:
            return self._object(schema)
        self.leaves += 1
        if kind == s.ARRAY:
            if schema.value_schema.logical or schema.value_schema.type not in _ITEMS or schema.default is not None:
                raise NotSplit("a list of non-primitive values, or with a default")
            self.lists += 1
            self._steps.append((LIST, self.lists - 1, self._kinds[schema.value_schema.type], self.leaves - 1))
            return List(schema, self.leaves - 1, self.lists - 1)
        if kind not in self._kinds or schema.logical and s.LOGICAL[kind] != schema.type:
            raise NotSplit(kind)
        if kind == s.DECIMAL:
            _must_have_a_scale(schema)
        self._steps.append((self._kinds[kind], self.leaves - 1, 0, 0))
        return Leaf(schema, self.leaves - 1)

    def _object(self, schema):
        if schema.default is not None:
            raise NotSplit("a struct with a default")
        found = Object(schema, self.objects)
        self.objects += 1
        begin = len(self._steps)
        self._steps.append(None)
        for field in schema.fields:
            self._token(("," if found.parts else "{") + quoted(field.name) + ":")
            found.parts.append(self._value(field.schema))
        if not schema.fields:
            self._token("{")
        self._token("}")
        self._steps[begin] = (OBJECT, found.number, len(self._steps), 0)
        return found

    def _token(self, text):
        token = text.encode()
        self._steps.append((TOKEN, len(self._tokens), len(token), 0))
        self._tokens += token


def _must_have_a_scale(schema):
    try:
        scale_of(schema)
    except DataError as error:
        raise NotSplit("a Decimal without a scale") from error


class Split:
    """The messages of one column as columns, and which rows do not match the form."""

    def __init__(self, form, column, opening=b"", ending=b""):
        self._form = form
        self.count = count = len(column)
        data, starts, lengths = readonly(column.data), readonly(column.starts), readonly(column.lengths)
        head, tail = (readonly(np.frombuffer(text, np.uint8)) for text in (opening, ending))
        self.bad = np.zeros(count, np.bool_)
        self._present = np.zeros((form.objects, count), np.bool_)
        self._ends = np.zeros((form.lists, count), np.int64)
        self._found = _Values(data, form.leaves, count, self.bad)
        longest = int(lengths.max()) if count else 0
        room = max(4 * count, longest) if form.lists else 0
        items, row = _Values(data, form.lists, room), 0
        while True:
            arrays = (self.bad, self._present, self._ends, *self._found.arrays, *items.arrays)
            row = split(data, row, starts, lengths, head, tail, form.steps, form.tokens, *arrays)
            if row == count:
                break
            items = items.with_room(2 * items.count)
        self._items = items

    def column(self):
        """Return the column of the whole messages. Marks more rows in `bad`."""
        root = self._form.root
        if isinstance(root, Leaf) and root.schema.type == s.STRING and not (root.schema.default is not None and self._form.fills_defaults):
            self._mark_nulls(root.schema, self._found.absent(root.number), ~self.bad)
            return self._found.strings(root.number)
        return self._column(root, ~self.bad)

    def _column(self, part, there):
        """Return the column of a part. `there` are the rows in which it is present."""
        schema = part.schema
        if isinstance(part, Object):
            return self._struct(part, there)
        absent = self._found.absent(part.number) | ~there
        if isinstance(part, List):
            self._mark_nulls(schema, absent, there)
            return self._list(part, absent)
        fills = schema.default is not None and self._form.fills_defaults
        if schema.type == s.STRING and not fills:
            self._mark_nulls(schema, absent, there)
            found = self._found.strings(part.number)
            return found if there.all() else ByteColumn(found.data, found.starts, np.where(absent, -1, found.lengths).astype(np.int32))
        array = self._leaf(part, there & ~absent)
        if fills:
            default = to_arrow([schema.default], schema)[0]
            return pc.if_else(pa.array(absent & there), default, array) if (absent & there).any() else array
        self._mark_nulls(schema, absent, there)
        return array

    def _struct(self, part, there):
        schema, present = part.schema, self._present[part.number]
        self._mark_nulls(schema, ~present, there)
        inside = there & present
        columns = [self._column(each, inside) for each in part.parts]
        if not (there & ~present & ~self.bad).any():
            return StructColumn(schema, columns, self.count)
        mask, kind = pa.array(~inside), arrow_type(schema)
        if not columns:
            return pa.array([{} if each else None for each in inside.tolist()], kind)
        arrays = [to_arrow(column, each.schema) for column, each in zip(columns, part.parts)]
        return pa.StructArray.from_arrays(arrays, fields=list(kind), mask=mask)

    def _mark_nulls(self, schema, absent, there):
        if not schema.optional:
            self.bad |= absent & there

    def _list(self, part, absent):
        ends = np.concatenate([np.zeros(1, np.int64), self._ends[part.list_number]])
        total = int(ends[-1])
        kind = part.schema.value_schema.type
        items = self._items.first(total)
        if kind == s.STRING:
            array = items.strings(part.list_number).to_arrow(text=True)
        elif kind == s.BOOLEAN:
            array = pa.array(items.booleans(part.list_number))
        elif kind in _BITS:
            array = pa.array(_narrow(kind, items.cells[part.list_number], items.bad))
        else:
            array = pa.array(items.doubles(part.list_number, np.ones(total, np.bool_)))
        if items.bad.any():
            wrong = np.concatenate([np.zeros(1, np.int64), np.cumsum(items.bad)])
            self.bad |= wrong[ends[1:]] > wrong[ends[:-1]]
        mask = pa.array(absent) if absent.any() else None
        return pa.ListArray.from_arrays(pa.array(ends.astype(np.int32)), array, type=arrow_type(part.schema), mask=mask)

    def _leaf(self, leaf, valid):
        schema, number = leaf.schema, leaf.number
        kind = schema.logical or schema.type
        mask = None if valid.all() else ~valid
        if kind == s.STRING:
            found = self._found.strings(number)
            return ByteColumn(found.data, found.starts, np.where(valid, found.lengths, -1).astype(np.int32)).to_arrow(text=True)
        if kind in (s.BYTES, s.DECIMAL):
            return self._bytes(schema, number, valid)
        if kind == s.BOOLEAN:
            return pa.array(self._found.booleans(number), mask=mask)
        if kind in _BITS:
            return self._whole(kind, number, valid, mask)
        if kind == s.FLOAT64:
            return pa.array(self._found.doubles(number, valid), mask=mask)
        texts, bad = self._found.texts(number, valid & ~self.bad)
        self.bad |= bad
        return pc.cast(texts, pa.float32())

    def _bytes(self, schema, number, valid):
        """Bytes out of strings in base64, and the unscaled numbers of Decimals."""
        strings = self._found.strings(number)
        strings = ByteColumn(strings.data, strings.starts, np.where(valid, strings.lengths, -1).astype(np.int32))
        found = json_bytes.decoded(strings)
        if found is None:
            found = self._bytes_with_care(strings)
        if schema.logical != s.DECIMAL:
            return found.to_arrow().cast(pa.binary())
        self.bad |= found.lengths == 0  # no number, not even 0
        return json_bytes.decimals(found, scale_of(schema))

    def _bytes_with_care(self, strings):
        found = []
        for row, text in enumerate(strings):
            data = None
            if text is not None:
                try:
                    data = from_base64(text.decode())
                except DataError:
                    self.bad[row] = True
            found.append(data)
        return ByteColumn.of(found)

    def _whole(self, kind, number, valid, mask):
        values = self._found.cells[number]
        outside = np.zeros(self.count, np.bool_)
        narrowed = _narrow(kind, values, outside)
        self.bad |= valid & outside
        if kind == s.TIME:
            self.bad |= valid & ((values < 0) | (values > DAY_MS))
        if kind == s.DATE:
            values = np.where(self.bad, 0, values) * DAY_MS
        if kind in s.LOGICAL:
            return pa.array(values, mask=mask)
        return pa.array(narrowed, mask=mask)


def _narrow(kind, values, outside):
    """Narrow integers to the type's bits; mark those that do not fit."""
    bits = _BITS[kind]
    if bits < 64:
        outside |= (values < -(1 << bits - 1)) | (values >= 1 << bits - 1)
    return values.astype(f"int{bits}")


class _Values:
    """The kernel's results for leaves by row, or for list items: positions or values."""

    def __init__(self, data, kinds, count, bad=None):
        self._data = data
        self.count = count
        self.bad = np.zeros(count, np.bool_) if bad is None else bad
        self.states = np.zeros((kinds, count), np.int8)
        self.cells = np.zeros((kinds, count), np.int64)
        self.lengths = np.zeros((kinds, count), np.int32)  # untouched zeroed memory costs nothing

    @property
    def arrays(self):
        return self.states, self.cells, self.cells.view(np.float64), self.lengths

    def with_room(self, count):
        larger = _Values(self._data, len(self.states), count)
        for old, new in zip(self.arrays[:2] + self.arrays[3:], larger.arrays[:2] + larger.arrays[3:]):
            new[:, : self.count] = old
        return larger

    def first(self, count):
        part = object.__new__(_Values)
        part._data, part.count, part.bad = self._data, count, np.zeros(count, np.bool_)
        part.states, part.cells, part.lengths = (array[:, :count] for array in (self.states, self.cells, self.lengths))
        return part

    def absent(self, number):
        return self.states[number] == ABSENT

    def booleans(self, number):
        return self.cells[number] == 1

    def doubles(self, number, valid):
        """Return float64s, undefined where not valid. Marks rows for the rows engine."""
        reals, left = self.cells[number].view(np.float64), valid & (self.states[number] == TEXT) & ~self.bad
        if left.any():
            texts, bad = self.texts(number, left)
            self.bad |= bad
            rows = np.flatnonzero(left)
            reals = reals.copy()
            reals[rows] = pc.cast(texts.take(pa.array(rows)), pa.float64()).to_numpy(zero_copy_only=False)
        return reals

    def texts(self, number, valid):
        """Return (an Arrow array of the numbers' texts where valid, a mask of negative zeros).

        Java's BigDecimal drops the sign of -0.0 but not of -1e-400: the rows engine handles both.
        """
        texts = ByteColumn(self._data, self.cells[number], np.where(valid, self.lengths[number], -1).astype(np.int32)).to_arrow(text=True)
        negative = valid & (self._data[np.where(valid, self.cells[number], 0)] == 45)
        if not negative.any():
            return texts, negative
        zero = pc.fill_null(pc.equal(pc.cast(texts, pa.float32()), 0), False).to_numpy(zero_copy_only=False)
        return texts, zero & negative

    def strings(self, number):
        """Return a ByteColumn of the strings, with nulls. Marks rows with an unpaired surrogate."""
        states, starts, lengths = self.states[number], self.cells[number], self.lengths[number]
        lengths = np.where((states == ABSENT) | self.bad, -1, lengths).astype(np.int32)
        escaped = np.flatnonzero((states == ESCAPED) & ~self.bad)
        if not len(escaped):
            return ByteColumn(self._data, starts, lengths)
        side = np.empty(int(lengths[escaped].sum()), np.uint8)
        starts = starts.copy()
        size = unescape(self._data, escaped, starts, lengths, side, self.bad)
        data = np.concatenate([self._data, side[:size]])
        return ByteColumn(data, starts, np.where(self.bad, -1, lengths).astype(np.int32))
