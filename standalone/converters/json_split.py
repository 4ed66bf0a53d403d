"""Splits JSON messages of one form into columns: kernels (json_scan.py) follow a list of steps through each message.

The steps of {"a":1,"b":{"c":"x"}} are: "{", the name "a", ":", a whole number, ",", the name "b", ":", an object that may be null, ...
Blanks may stand between them. A message that leaves the steps is bad, and nobody looks at it any further.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from standalone import ByteColumn
from standalone.converters.json_scan import ABSENT, BOOLEAN, ESCAPED, FLOAT, OBJECT, STRING, TOKEN, WHOLE, split, unescape
from standalone.converters.json_text import quoted
from standalone.data import schema as s
from standalone.data.arrow import arrow_type, to_arrow
from standalone.kernels import readonly

DAY_MS = 86_400_000

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
        split(self._data, readonly(column.starts), readonly(column.lengths), head, tail, self.form.steps, self.form.tokens, *arrays)
        root = self.form.root
        return self._top_string(root) if isinstance(root, Leaf) and root.schema.type == s.STRING else self._column(root, ~self.bad)

    def _top_string(self, leaf):
        """Strings stay where they are in the messages."""
        if leaf.schema.default is not None and self.form.fills_defaults:
            return self._column(leaf, ~self.bad)
        self._mark_nulls(leaf.schema, self.states[leaf.number] == ABSENT, ~self.bad)
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
        absent = (self.states[part.number] == ABSENT) | ~there
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
        lengths = np.where((states == ABSENT) | self.bad, -1, lengths).astype(np.int32)
        escaped = np.flatnonzero((states == ESCAPED) & ~self.bad)
        if not len(escaped):
            return ByteColumn(self._data, starts, lengths)
        side = np.empty(int(lengths[escaped].sum()), np.uint8)
        starts = starts.copy()
        size = unescape(self._data, escaped, starts, lengths, side, self.bad)
        data = np.concatenate([self._data, side[:size]])
        return ByteColumn(data, starts, np.where(self.bad, -1, lengths).astype(np.int32))
