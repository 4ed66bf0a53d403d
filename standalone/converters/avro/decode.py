"""AvroConverter's columnar form, decoding: a kernel reads the messages of one schema into flat arrays, which become columns.

Strings and bytes are not copied out of the messages. The row form decodes messages with another schema or invalid bytes, and the whole batch
if there are many of these. Not supported: maps whose keys are not primitive, or may be null.
"""

import numpy as np

from standalone import ByteColumn
from standalone.converters import flat_columns as flat
from standalone.converters.avro import kernels as k
from standalone.converters.avro.names import is_union
from standalone.converters.avro.read_schema import optional_branch
from standalone.converters.json_values import scale_of
from standalone.data import schema as s
from standalone.kernels import readonly

MOST_BAD = 0.1  # of a batch, before the row form decodes all of it
FEW_BAD = 10  # so few never count as too many
_STEPS = {
    "boolean": k.BOOLEAN,
    "int": k.INT,
    "long": k.LONG_INT,
    "float": k.FLOAT,
    "double": k.DOUBLE,
    "bytes": k.BYTES_,
    "string": k.BYTES_,
    "fixed": k.FIXED,
    "enum": k.ENUM,
}


class _Declined(Exception):
    """This schema has no columnar form."""


class _Part:
    """A value of each message, or of each list item: `column` is the number of its flat column, `inner` its parts."""

    def __init__(self, schema, node, column, inner=()):
        self.schema, self.node, self.column, self.inner = schema, node, column, inner


class Decoding:
    """Decodes messages of a schema into columns."""

    @classmethod
    def of(cls, schema, node, fails_on_rest):
        """Return None if only the row form supports the schema."""
        try:
            return cls(schema, node, fails_on_rest)
        except _Declined:
            return None

    def __init__(self, schema, node, fails_on_rest):
        self.schema = schema
        self._fails_on_rest = int(fails_on_rest)
        self._steps, self._is_inner, self._slots = [], [], 0
        self._root = self._part(schema, node, False)
        self._program = readonly(np.array(self._steps, np.int64).reshape(-1, 4))

    # --- Steps ---

    def _column(self, is_inner):
        self._is_inner.append(is_inner)
        return len(self._is_inner) - 1

    def _new_slots(self, count):
        self._slots += count
        return self._slots - count

    def _part(self, schema, node, is_inner):
        if node.type == "union":
            return self._union(schema, node, is_inner)
        kind = schema.type
        if kind == s.STRUCT:
            column = None
            if schema.optional:
                column = self._column(is_inner)
                self._steps.append((k.STRUCT, column, 0, 0))
            inner = [self._part(field.schema, each.node, is_inner) for field, each in zip(schema.fields, node.fields)]
            if column is None and not inner:
                raise _Declined  # nothing in the data would give their number
            return _Part(schema, node, column, inner)
        if kind in (s.ARRAY, s.MAP):
            return self._list(schema, node, is_inner)
        column = self._column(is_inner)
        step = k.DECIMAL if schema.name == s.DECIMAL and node.type == "bytes" else _STEPS[node.type]
        self._steps.append((step, column, node.size or len(node.symbols or ()), 0))
        return _Part(schema, node, column)

    def _list(self, schema, node, is_inner):
        column, slot, begin = self._column(is_inner), self._new_slots(2), len(self._steps)
        self._steps.append(None)
        if schema.type == s.ARRAY:
            inner = [self._part(schema.value_schema, node.inner, True)]
        else:
            key = schema.key_schema
            if key.optional or key.type in (s.STRUCT, s.ARRAY, s.MAP):
                raise _Declined
            if node.type == "map":
                names = self._column(True)
                self._steps.append((k.BYTES_, names, 0, 0))
                inner = [_Part(key, node, names), self._part(schema.value_schema, node.inner, True)]
            else:
                if [field.name for field in node.inner.fields] != ["key", "value"]:
                    raise _Declined
                inner = [self._part(each, field.node, True) for each, field in zip((key, schema.value_schema), node.inner.fields)]
        self._steps.append((k.ITEM, column, slot, begin + 1))
        self._steps[begin] = (k.LIST, column, slot, len(self._steps))
        return _Part(schema, node, column, inner)

    def _union(self, schema, node, is_inner):
        slot = self._new_slots(1)
        self._steps.append((k.UNION, 0, slot, len(node.branches)))
        one = optional_branch(node)
        if one is None and not is_union(schema):
            one = node.branches[0]
        if one is not None:
            return self._member(schema, one, slot, node.branches.index(one), is_inner)
        nulls = [at for at, branch in enumerate(node.branches) if branch.type == "null"]
        column = self._column(is_inner)
        self._steps.append((k.MEMBERS, column, slot, nulls[0] if nulls else -1))
        members = [(at, branch) for at, branch in enumerate(node.branches) if branch.type != "null"]
        inner = [self._member(field.schema, branch, slot, at, is_inner) for field, (at, branch) in zip(schema.fields, members)]
        return _Part(schema, node, column, inner)

    def _member(self, schema, branch, slot, number, is_inner):
        begin = len(self._steps)
        self._steps.append(None)
        part = self._part(schema, branch, is_inner)
        self._steps[begin] = (k.BRANCH, number, slot, len(self._steps))
        return part

    # --- Columns ---

    def decode(self, column, before):
        """Return (schema, column, failed rows or None), or None if too many rows failed. Each message begins with the bytes `before`."""
        found = _Flat(self, column, before)
        bad = np.flatnonzero(found.bad)
        if len(bad) > max(FEW_BAD, MOST_BAD * len(column)):
            return None
        decoded = found.column(self._root)
        return self.schema, decoded, bad if len(bad) else None


class _Flat:
    """The flat arrays of one batch, and the columns built from them."""

    def __init__(self, form, messages, before_each):
        count, head = len(messages), readonly(np.array(bytearray(before_each), np.uint8))
        self._data, starts, lengths = readonly(messages.data), readonly(messages.starts), readonly(messages.lengths)
        self.bad = np.zeros(count, np.bool_)
        columns = len(form._is_inner)
        is_inner = np.array(form._is_inner, np.bool_)
        self._fill, slots = np.zeros(columns, np.int64), np.zeros(form._slots, np.int64)
        before = np.zeros(columns + form._slots, np.int64)
        room = np.where(is_inner, max(64, 2 * count), count).astype(np.int64)
        self._base = _bases(room)
        self._numbers, self._sizes = np.empty(int(room.sum()), np.int64), np.empty(int(room.sum()), np.int32)
        row = 0
        while True:
            arrays = (self._fill, before, slots, self._numbers, self._sizes, self.bad)
            row = k.decode(
                *(self._data, row, starts, lengths, head, form._program, readonly(self._base), readonly(room)), form._fails_on_rest, *arrays
            )
            if row == count:
                break
            room = self._grown(room, is_inner)

    def _grown(self, room, is_inner):
        """Double the room for list items."""
        larger = np.where(is_inner, 2 * room, room)
        base = _bases(larger)
        numbers, sizes = np.empty(int(larger.sum()), np.int64), np.empty(int(larger.sum()), np.int32)
        for old, new, filled in zip(self._base.tolist(), base.tolist(), self._fill.tolist()):
            numbers[new : new + filled] = self._numbers[old : old + filled]
            sizes[new : new + filled] = self._sizes[old : old + filled]
        self._base, self._numbers, self._sizes = base, numbers, sizes
        return larger

    def _run(self, column):
        """Return (numbers, sizes) of a flat column."""
        low = int(self._base[column])
        high = low + int(self._fill[column])
        return self._numbers[low:high], self._sizes[low:high]

    def _count(self, part):
        return int(self._fill[part.column]) if part.column is not None else self._count(part.inner[0])

    def column(self, part):
        """Build a column as in data/batch.py."""
        schema = part.schema
        if schema.type == s.STRUCT:
            sizes = None if part.column is None else self._run(part.column)[1]
            return flat.structs_column(schema, [self.column(each) for each in part.inner], self._count(part), sizes)
        numbers, sizes = self._run(part.column)
        if schema.type in (s.ARRAY, s.MAP):
            return flat.lists_column(schema, numbers, sizes, [self.column(each) for each in part.inner], self._count(part.inner[0]))
        if part.node.type == "enum":
            return flat.symbols_column(part.node.symbols, numbers, sizes)
        if schema.name == s.DECIMAL:
            return flat.decimals_column(self._data, numbers, sizes, np.full(len(numbers), scale_of(schema), np.int32))
        if schema.type in (s.STRING, s.BYTES):
            return ByteColumn(self._data, numbers, sizes)
        return flat.numbers_column(schema, numbers, sizes)


def _bases(room):
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(room)[:-1]]) if len(room) else np.zeros(0, np.int64)
