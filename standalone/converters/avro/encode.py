"""AvroConverter's columnar form, encoding: columns become flat arrays, from which a kernel writes the messages of a batch.

The rows engine gets rows with: nulls where the schema forbids them or has a default, Decimals whose scale differs from the schema's, Dates
that are not midnight. Not supported: enums kept as enums, unions other than `["null", type]`, and lists of Python values.
"""

import numpy as np

from standalone import ByteColumn, DataError
from standalone.converters.avro import kernels as k
from standalone.converters.avro.names import is_union
from standalone.converters.avro.read_schema import optional_branch
from standalone.converters.flat_arrays import Buffers, NoArrays, decimals_of, lists_of, numbers_of, settled, structs_of
from standalone.converters.json_values import DAY_MS, scale_of
from standalone.data import schema as s
from standalone.data.utf8_column import repair
from standalone.kernels import readonly

_STEPS = {
    "boolean": k.BOOLEAN,
    "int": k.INT,
    "long": k.INT,
    "float": k.FLOAT,
    "double": k.DOUBLE,
    "bytes": k.BYTES_,
    "string": k.BYTES_,
    "fixed": k.FIXED,
}
_MOST_BYTES_OF_A_NUMBER = 10


class _Declined(Exception):
    """This schema has no columnar form."""


class _Part:
    """A value of each row, or of each list item; `column` is the number of its flat column, None if it has none."""

    def __init__(self, schema, column, inner=()):
        self.schema, self.column, self.inner = schema, column, inner


class Encoding:
    """Encodes columns of a schema as messages."""

    @classmethod
    def of(cls, schema, node, options, head):
        """Return None if only the row form supports the schema. Each message begins with the bytes `head`."""
        try:
            return cls(schema, node, options, head)
        except (_Declined, DataError):
            return None

    def __init__(self, schema, node, options, head):
        self._schema = schema
        self._options = options
        self._head = readonly(np.array(bytearray(head), np.uint8))
        self._steps, self._columns, self._levels = [], 0, 1
        self._root = self._part(schema, node, 0)
        self._program = readonly(np.array(self._steps, np.int64).reshape(-1, 6))

    # --- Steps ---

    def _new_column(self):
        self._columns += 1
        return self._columns - 1

    def _part(self, schema, node, level):
        if schema.type == s.STRUCT and is_union(schema):
            raise _Declined
        if node.type != "union":
            if schema.optional:
                raise _Declined
            return self._value(schema, node, level, self._column_of(schema))
        one = optional_branch(node)
        if one is None or not schema.optional:
            raise _Declined
        column = self._new_column()
        begin = len(self._steps)
        self._steps.append(None)
        part = self._value(schema, one, level, column)
        number = node.branches.index(one)
        self._steps[begin] = (k.OPTIONAL, column, level, 1 - number, number, len(self._steps))
        return part

    def _column_of(self, schema):
        """Return the number of a new flat column; a required struct needs none, as its fields show the same."""
        return None if schema.type == s.STRUCT else self._new_column()

    def _value(self, schema, node, level, column):
        kind = schema.type
        if kind == s.STRUCT:
            if column is None:
                column = self._new_column()
            self._steps.append((k.STRUCT, column, level, 0, 0, 0))
            if len(schema.fields) != len(node.fields):
                raise _Declined
            return _Part(schema, column, [self._part(field.schema, each.node, level) for field, each in zip(schema.fields, node.fields)])
        if kind in (s.ARRAY, s.MAP):
            return self._list(schema, node, level, column)
        if node.type not in _STEPS:
            raise _Declined
        self._steps.append((_STEPS[node.type], column, level, node.size or 0, 0, 0))
        return _Part(schema, column)

    def _list(self, schema, node, level, column):
        inner_level, begin = self._levels, len(self._steps)
        self._levels += 1
        self._steps.append(None)
        if schema.type == s.ARRAY:
            inner = [self._part(schema.value_schema, node.inner, inner_level)]
        elif node.type == "map":
            if schema.key_schema.optional:
                raise _Declined
            names = self._new_column()
            self._steps.append((k.BYTES_, names, inner_level, 0, 0, 0))
            inner = [_Part(schema.key_schema, names), self._part(schema.value_schema, node.inner, inner_level)]
        else:
            if schema.key_schema.optional or schema.key_schema.type in (s.STRUCT, s.ARRAY, s.MAP):
                raise _Declined
            inner = [self._part(each, field.node, inner_level) for each, field in zip((schema.key_schema, schema.value_schema), node.inner.fields)]
        self._steps.append((k.END_ITEM, column, level, inner_level, 0, begin + 1))
        self._steps[begin] = (k.WRITE_LIST, column, level, inner_level, 0, len(self._steps))
        return _Part(schema, column, inner)

    # --- Columns ---

    def encode(self, column, count):
        """Return (ByteColumn, failed rows or None), or None if the rows engine must encode it."""
        if column is None or isinstance(column, list) or not count:
            return None
        try:
            flat = _Flat(self._columns, self._options.ignores_defaults)
            flat.add(self._root, column, count)
        except NoArrays:
            return None
        return self._written(flat, count)

    def _written(self, flat, count):
        base, numbers, sizes, data = flat.arrays()
        numbers_in = int((sizes >= 0).sum()) + len(sizes)
        most = count * len(self._head) + numbers_in * (_MOST_BYTES_OF_A_NUMBER + 2) + int(np.maximum(flat.bytes_in, 0)) + 16
        out, starts, lengths = np.empty(most, np.uint8), np.empty(count, np.int64), np.empty(count, np.int32)
        bad = np.zeros(count, np.bool_)
        levels = np.zeros(self._levels, np.int64), np.zeros(self._levels, np.int64)
        columns = (readonly(each) for each in (data, base, numbers, sizes))
        end = k.encode(count, self._head, self._program, *columns, *levels, out, starts, lengths, bad)
        return ByteColumn(out[:end].copy(), starts, lengths), np.flatnonzero(bad) if bad.any() else None


class _Flat:
    """Columns as flat arrays: each column's numbers and sizes, and one buffer with the bytes that they reference."""

    def __init__(self, columns, ignores_defaults):
        self._ignores_defaults = ignores_defaults
        self._numbers, self._sizes = [None] * columns, [None] * columns
        self._buffers = Buffers()

    @property
    def bytes_in(self):
        return self._buffers.used

    def arrays(self):
        lengths = np.array([len(each) for each in self._numbers], np.int64)
        base = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)[:-1]])
        return base, np.concatenate(self._numbers), np.concatenate(self._sizes), self._buffers.joined()

    def add(self, part, column, count):
        schema, column = part.schema, settled(column, part.schema, count)
        if schema.type == s.STRUCT:
            sizes, columns = structs_of(column, schema, count)
            self._set(part, np.zeros(count, np.int64), sizes)
            for inner, each in zip(part.inner, columns):
                self.add(inner, each, count)
        elif schema.type in (s.ARRAY, s.MAP):
            begins, sizes, columns, inner_count = lists_of(column, count)
            self._set(part, begins, np.append(sizes, np.int32(0)))
            for inner, each in zip(part.inner, columns):
                self.add(inner, each, inner_count)
        elif schema.name == s.DECIMAL:
            unscaled, scales, sizes = decimals_of(column)
            sizes = np.where((sizes >= 0) & (scales != scale_of(schema)), k.REFUSED, sizes)
            self._set(part, self._buffers.add(unscaled), sizes)
        elif schema.type in (s.STRING, s.BYTES):
            column = column if isinstance(column, ByteColumn) else ByteColumn.from_arrow(column)
            column = repair(column) if schema.type == s.STRING else column
            self._set(part, self._buffers.add(column), column.lengths)
        else:
            self._set(part, *_numbers_of(column, schema))

    def _set(self, part, numbers, sizes):
        if part.schema.default is not None and not self._ignores_defaults:
            sizes = np.where(sizes == k.NULL, k.REFUSED, sizes)  # within a struct Java writes the default, elsewhere a null: left to the row form
        self._numbers[part.column], self._sizes[part.column] = numbers, sizes.astype(np.int32)


def _numbers_of(column, schema):
    """Return (numbers, sizes) of a fixed-width Arrow array."""
    numbers, sizes = numbers_of(column, schema)
    if schema.name == s.DATE:
        sizes = np.where((sizes == 0) & (numbers % DAY_MS != 0), k.REFUSED, sizes)
        return (numbers // DAY_MS).astype(np.int32).astype(np.int64), sizes
    if schema.name == s.TIME:
        return numbers, np.where((sizes == 0) & ((numbers < 0) | (numbers > DAY_MS)), k.REFUSED, sizes)
    return numbers, sizes
