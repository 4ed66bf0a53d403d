"""AvroConverter's column meaning, to the log: columns become flat arrays, of which a kernel writes the messages of a batch.

Marked for the rows engine are nulls where the schema has none or a default, Decimals of another scale than their schema's, Dates that are no
midnight. Declined are enums that stay enums, unions of more than null and one other, and lists of Python values.
"""

import numpy as np
import pyarrow as pa

from standalone import ByteColumn, DataError
from standalone.converters.avro import kernels as k
from standalone.converters.avro.names import is_union
from standalone.converters.avro.read_schema import optional_branch
from standalone.converters.json_values import DAY_MS, scale_of
from standalone.data import schema as s
from standalone.data.arrow import arrow_type, buffer_of
from standalone.data.column import nulls_of
from standalone.data.struct_column import StructColumn
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
_NOTHING = np.zeros(1, np.uint8)


class _Declined(Exception):
    """There is no column meaning of such a schema, or of such a column."""


class _Part:
    """A value of each row, or of each item of a list; `column` is the number of its flat column, None where it has none."""

    def __init__(self, schema, column, inner=()):
        self.schema, self.column, self.inner = schema, column, inner


class Encoding:
    """How columns of a schema become messages."""

    @classmethod
    def of(cls, schema, node, options, head):
        """None where the row meaning does it. The bytes `head` stand before each message."""
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
        """A required struct needs none: what is in it tells the same."""
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
        """(ByteColumn, rows it could not do or None), or None to be run by rows."""
        if column is None or isinstance(column, list) or not count:
            return None
        try:
            flat = _Flat(self._columns, self._options.ignores_defaults)
            flat.add(self._root, column, count)
        except _Declined:
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
    """Columns as flat arrays: for each its numbers and sizes, and the bytes that they name in one buffer."""

    def __init__(self, columns, ignores_defaults):
        self._ignores_defaults = ignores_defaults
        self._numbers, self._sizes = [None] * columns, [None] * columns
        self._buffers, self._held = [], {}
        self._end = 0
        self.bytes_in = 0

    def arrays(self):
        lengths = np.array([len(each) for each in self._numbers], np.int64)
        base = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)[:-1]])
        data = np.concatenate(self._buffers) if len(self._buffers) > 1 else self._buffers[0] if self._buffers else _NOTHING
        return base, np.concatenate(self._numbers), np.concatenate(self._sizes), data

    def add(self, part, column, count):
        schema = part.schema
        if isinstance(column, list):
            raise _Declined
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        if column is None:
            column = pa.nulls(count, arrow_type(schema))
        if isinstance(column, pa.Array) and column.type != arrow_type(schema):
            raise _Declined
        if schema.type == s.STRUCT:
            self._add_struct(part, column, count)
        elif schema.type in (s.ARRAY, s.MAP):
            self._add_list(part, column, count)
        elif schema.name == s.DECIMAL:
            self._add_decimals(part, column)
        elif schema.type in (s.STRING, s.BYTES):
            self._add_bytes(part, column)
        else:
            self._set(part, *_numbers_of(column, schema))

    def _set(self, part, numbers, sizes):
        if part.schema.default is not None and not self._ignores_defaults:
            sizes = np.where(sizes == k.NULL, k.REFUSED, sizes)  # within a struct the default is written, elsewhere a null: rows know
        self._numbers[part.column], self._sizes[part.column] = numbers, sizes.astype(np.int32)

    def _add_struct(self, part, column, count):
        if isinstance(column, StructColumn):
            if column.schema.with_(optional=part.schema.optional) != part.schema:
                raise _Declined
            sizes, columns = np.zeros(count, np.int32), column.parts
        elif isinstance(column, pa.StructArray):
            sizes, columns = _null_sizes(column), [column.field(at) for at in range(len(part.inner))]
        else:
            raise _Declined
        self._set(part, np.zeros(count, np.int64), sizes)
        for inner, each in zip(part.inner, columns):
            self.add(inner, each, count)

    def _add_list(self, part, column, count):
        if not isinstance(column, (pa.ListArray, pa.MapArray)):
            raise _Declined
        ends = buffer_of(column, count + 1).astype(np.int64)
        low, high = int(ends[0]), int(ends[-1])
        self._set(part, ends - low, np.append(_null_sizes(column), np.int32(0)))
        columns = [column.keys, column.items] if isinstance(column, pa.MapArray) else [column.values]
        for inner, each in zip(part.inner, columns):
            self.add(inner, each.slice(low, high - low), high - low)

    def _add_bytes(self, part, column):
        if not isinstance(column, ByteColumn):
            column = ByteColumn.from_arrow(column)
        self._add_slices(part, repair(column) if part.schema.type == s.STRING else column)

    def _add_slices(self, part, column, sizes=None):
        total = column.nbytes
        if len(column.data) > 2 * total + 4096 and id(column.data) not in self._held:
            column = column.compact()
        begin = self._held.get(id(column.data))
        if begin is None:
            begin = self._held[id(column.data)] = self._end
            self._buffers.append(column.data)
            self._end += len(column.data)
        self.bytes_in += total
        self._set(part, column.starts + begin, column.lengths if sizes is None else sizes)

    def _add_decimals(self, part, column):
        unscaled, scales = ByteColumn.from_arrow(column.field(0)), buffer_of(column.field(1))
        nulls = nulls_of(column) | (unscaled.lengths < 0)
        refused = ~nulls & ((scales != scale_of(part.schema)) | ~_is_shortest(unscaled))
        sizes = np.where(nulls, k.NULL, np.where(refused, k.REFUSED, unscaled.lengths)).astype(np.int32)
        self._add_slices(part, ByteColumn(unscaled.data, unscaled.starts, np.maximum(unscaled.lengths, 0)), sizes)


def _null_sizes(array):
    return np.where(nulls_of(array), k.NULL, 0).astype(np.int32)


def _is_shortest(column):
    """Which numbers are written as Java's BigInteger writes them: no byte is there for nothing."""
    if not len(column.data):
        return np.zeros(len(column), np.bool_)
    last = len(column.data) - 1
    first = column.data[np.clip(column.starts, 0, last)]
    second = column.data[np.clip(column.starts + 1, 0, last)]
    idle = ((first == 0) & (second < 0x80)) | ((first == 0xFF) & (second >= 0x80))
    return (column.lengths == 1) | (column.lengths > 1) & ~idle


def _numbers_of(column, schema):
    """(numbers, sizes) of an Arrow array of fixed width."""
    if isinstance(column, (ByteColumn, StructColumn)):
        raise _Declined
    values, sizes, kind = buffer_of(column), _null_sizes(column), schema.type
    if schema.name == s.DATE:
        sizes = np.where((sizes == 0) & (values % DAY_MS != 0), k.REFUSED, sizes)
        return (values // DAY_MS).astype(np.int32).astype(np.int64), sizes
    if schema.name == s.TIME:
        return values, np.where((sizes == 0) & ((values < 0) | (values > DAY_MS)), k.REFUSED, sizes)
    if kind == s.FLOAT32:
        return values.view(np.uint32).astype(np.int64), sizes
    if kind == s.FLOAT64:
        return values.view(np.int64), sizes
    return values.astype(np.int64), sizes
