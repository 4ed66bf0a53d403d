"""ProtobufConverter's columnar form, encoding: each message type's columns become flat arrays, from which a kernel writes the messages.
Nested messages are written first, and are bytes to their parents.

The rows engine gets rows with: nulls that have a default or are in lists; dates and times beyond Protobuf's range; strings that are not symbols
of their enum; numbers that the field cannot hold; Decimals of more than seven bytes. Not supported: native Protobuf maps, which are written
in key order; a Connect schema's maps are lists of entries.
"""

import numpy as np
from google.protobuf.descriptor import FieldDescriptor as F

from standalone import ByteColumn, DataError
from standalone.converters.flat_arrays import Buffers, NoArrays, decimals_of, lists_of, numbers_of, settled, structs_of
from standalone.converters.json_values import DAY_MS
from standalone.converters.protobuf import kernels as k
from standalone.converters.protobuf import names
from standalone.converters.protobuf.decode import KINDS, MOMENTS
from standalone.converters.protobuf.read_schema import is_map_entry
from standalone.converters.protobuf.values import scalar_of
from standalone.converters.protobuf.write_schema import is_union
from standalone.data import schema as s
from standalone.data.utf8_column import repair
from standalone.kernels import readonly

_MOST_BYTES_OF_A_FIELD = 15  # apart from bytes values
_NOTHING = readonly(np.empty(0, np.uint8))
_NO_PIECE = np.empty(0, np.int64), np.empty(0, np.int32)
_MESSAGES = {s.DATE: names.DATE, s.TIME: names.TIME, s.TIMESTAMP: names.TIMESTAMP, s.DECIMAL: names.DECIMAL}


class _Declined(Exception):
    """This schema has no columnar form."""


class Encoding:
    """Encodes columns of a schema as messages."""

    @classmethod
    def of(cls, schema, descriptor, options, head):
        """Return None if only the row form supports the schema. Each message begins with the bytes `head`."""
        try:
            return cls(schema, descriptor, options, head)
        except (_Declined, DataError):
            return None

    def __init__(self, schema, descriptor, options, head):
        self._schema, self._head = schema, readonly(np.frombuffer(head, np.uint8))
        self._root = _message_part(schema, descriptor, options)

    def encode(self, column, count):
        """Return (ByteColumn, failed rows or None), or None if the rows engine must encode it."""
        if column is None or isinstance(column, list) or not count:
            return None
        try:
            found = self._root.messages(settled(column, self._schema, count), count, self._head)
        except NoArrays:
            return None
        refused = found.lengths == k.REFUSED if self._schema.optional else found.lengths < 0
        lengths = np.maximum(found.lengths, k.NULL)
        return ByteColumn(found.data, found.starts, lengths), np.flatnonzero(refused) if refused.any() else None


# --- Parts: each converts a column to flat arrays, (numbers, sizes) -------------------------------------------------


def _part(schema, field, options):
    """Return the part for a single value of a field."""
    if field.message_type is not None:
        return _message_part(schema, field.message_type, options)
    scalar_of(schema, field)  # raises on a mismatch
    if field.type == F.TYPE_ENUM and schema.type == s.STRING:
        return _Symbols(field.enum_type)
    return _Bytes(schema) if schema.type in (s.STRING, s.BYTES) else _Numbers(schema, field)


def _message_part(schema, descriptor, options):
    if descriptor.full_name in names.WRAPPERS and not schema.logical and schema.type != s.STRUCT:
        field = descriptor.fields_by_name["value"]
        return _Wrapped(_Messages([(field, _part(schema, field, options))]))
    if schema.logical:
        if descriptor.full_name != _MESSAGES[schema.name]:
            raise _Declined
        return _Decimals(descriptor) if schema.name == s.DECIMAL else _Moments(schema, descriptor)
    if schema.type != s.STRUCT or is_union(schema):
        raise _Declined
    return _Structs(schema, descriptor, options)


class _Numbers:
    def __init__(self, schema, field):
        self._schema, self._kind = schema, KINDS[field.type]
        self._known = None
        if field.type == F.TYPE_ENUM and field.enum_type.is_closed:
            self._known = np.array([each.number for each in field.enum_type.values], np.int64)

    def arrays(self, column, count, buffers):
        numbers, sizes = numbers_of(column, self._schema)
        if self._kind in (k.UNSIGNED, k.WORD):
            return numbers & 0xFFFFFFFF, sizes
        if self._kind in (k.INT, k.ZIGZAG, k.SIGNED_WORD):
            sizes = np.where((sizes == 0) & (numbers.astype(np.int32) != numbers), k.REFUSED, sizes)
        if self._known is not None:
            sizes = np.where((sizes == 0) & ~np.isin(numbers, self._known), k.REFUSED, sizes)
        return numbers, sizes


class _Symbols:
    def __init__(self, descriptor):
        known = {name: each.number for name, each in descriptor.values_by_name.items()}
        self._symbols, self._numbers = ByteColumn.of([name.encode() for name in known]), np.array(list(known.values()), np.int64)

    def arrays(self, column, count, buffers):
        texts, symbols = _bytes_of(column), self._symbols
        at, sizes = np.zeros(count, np.int64), np.empty(count, np.int32)
        k.symbols_of(*map(readonly, (texts.data, texts.starts, texts.lengths, symbols.data, symbols.starts, symbols.lengths)), at, sizes)
        return self._numbers[at], sizes


class _Bytes:
    def __init__(self, schema):
        self._is_text = schema.type == s.STRING

    def arrays(self, column, count, buffers):
        found = repair(_bytes_of(column)) if self._is_text else _bytes_of(column)
        return buffers.add(found), found.lengths


def _bytes_of(column):
    return column if isinstance(column, ByteColumn) else ByteColumn.from_arrow(column)


class _Within:
    """A nested message: its bytes."""

    def arrays(self, column, count, buffers):
        found = self.messages(column, count)
        return buffers.add(ByteColumn(found.data, found.starts, np.maximum(found.lengths, 0))), found.lengths


class _Wrapped(_Within):
    """The value of a wrapper, such as google.protobuf.StringValue."""

    def __init__(self, level):
        self._level = level

    def messages(self, column, count, head=_NOTHING):
        buffers = Buffers()
        numbers, sizes = self._level.parts[0].arrays(column, count, buffers)
        return self._level.written([(numbers, sizes)], sizes, buffers, count, head)


class _Decimals(_Within):
    def __init__(self, descriptor):
        self._level = _Messages([(descriptor.fields_by_name[name], None) for name in ("value", "precision", "scale")])

    def messages(self, column, count, head=_NOTHING):
        unscaled, scales, sizes = decimals_of(column)
        digits, wrong, buffers = np.zeros(count, np.int64), np.zeros(count, np.bool_), Buffers()
        k.digits_of(*map(readonly, (unscaled.data, unscaled.starts, unscaled.lengths)), digits, wrong)
        sizes = np.where(wrong & (sizes >= 0), k.REFUSED, sizes).astype(np.int32)
        here = np.zeros(count, np.int32)
        flat = [(buffers.add(unscaled), np.maximum(sizes, 0)), (digits, here), (scales.astype(np.int64), here)]
        return self._level.written(flat, sizes, buffers, count, head)


class _Moments(_Within):
    """Dates, times and timestamps."""

    def __init__(self, schema, descriptor):
        self._schema, self._level = schema, _Messages([(descriptor.fields_by_name[name], None) for name in MOMENTS[schema.name]])

    def messages(self, column, count, head=_NOTHING):
        ms, sizes = numbers_of(column, self._schema)
        if self._schema.name == s.DATE:
            found, wrong = [np.zeros(count, np.int64) for _ in range(3)], ms % DAY_MS != 0
            k.dates_of(readonly(ms // DAY_MS), *found, wrong)
        else:
            seconds, nanos = ms // 1000, ms % 1000 * 1_000_000
            wrong = (ms < 0) | (ms >= DAY_MS) if self._schema.name == s.TIME else np.zeros(count, np.bool_)
            found = [seconds, nanos]
            if self._schema.name == s.TIME:
                found = [seconds // 3600, seconds // 60 % 60, seconds % 60, nanos]
        sizes = np.where((sizes == 0) & wrong, k.REFUSED, sizes)
        here = np.zeros(count, np.int32)
        return self._level.written([(each, here) for each in found], sizes, Buffers(), count, head)


class _Structs(_Within):
    def __init__(self, schema, descriptor, options):
        self._schema, self._ignores_defaults = schema, options.ignores_defaults
        fields = []  # (field descriptor, part)
        self._sources = []  # per field: (index in the struct, index in the union or None, Schema)
        for field in schema.fields:
            members = field.schema.fields if is_union(field.schema) else [field]
            for at, each in enumerate(members):
                found = descriptor.fields_by_name.get(options.scrubbed(each.name))
                if found is None:
                    raise _Declined
                fields.append((found, _field_part(each.schema, found, options)))
                self._sources.append((field.index, at if is_union(field.schema) else None, each.schema))
        self._level = _Messages(fields)

    def messages(self, column, count, head=_NOTHING):
        sizes, columns = structs_of(column, self._schema, count)
        buffers, flat, taken = Buffers(), [], {}
        for (place, member, schema), part in zip(self._sources, self._level.parts):
            each = columns[place]
            if member is not None:
                union = self._schema.fields[place].schema
                union_sizes, members = structs_of(settled(each, union, count), union, count)
                arrays = self._arrays(part, schema, members[member], count, buffers)
                # Write the first member that is set; a union that is not null has one.
                before = taken.setdefault(place, union_sizes < 0)
                taken[place] = before | (arrays[1][:count] != k.NULL)
                is_last = member == len(members) - 1
                own = np.where(before, k.NULL, arrays[1][:count])
                own = np.where(~taken[place], k.REFUSED, own) if is_last else own
                arrays = arrays[0], np.append(own, arrays[1][count:]), *arrays[2:]
            else:
                arrays = self._arrays(part, schema, each, count, buffers)
                if schema.default is not None and not self._ignores_defaults:
                    arrays = arrays[0], np.where(arrays[1] == k.NULL, k.REFUSED, arrays[1]), *arrays[2:]
            flat.append(arrays)
        return self._level.written(flat, sizes, buffers, count, head)

    def _arrays(self, part, schema, column, count, buffers):
        return part.arrays(settled(column, schema, count), count, buffers)


class _List:
    """A repeated field: (start of items, sizes, numbers of the items, sizes of the items)."""

    def __init__(self, schema, part):
        self._schema, self._part = schema, part

    def arrays(self, column, count, buffers):
        begins, sizes, (items,), inner = lists_of(column, count)
        return begins, np.append(sizes, np.int32(0)), *self._part.arrays(settled(items, self._schema.value_schema, inner), inner, buffers)


class _Entries:
    """A map, like `_List`: its items are messages with key and value."""

    def __init__(self, schema, descriptor, options):
        if schema.key_schema.type in (s.STRUCT, s.ARRAY, s.MAP):
            raise _Declined
        fields = [(descriptor.fields_by_name[name], each) for name, each in (("key", schema.key_schema), ("value", schema.value_schema))]
        if any(field.is_repeated for field, _ in fields):
            raise _Declined
        self._schemas = [each for _, each in fields]
        self._level = _Messages([(field, _part(each, field, options)) for field, each in fields])

    def arrays(self, column, count, buffers):
        begins, sizes, columns, inner = lists_of(column, count)
        own, flat = Buffers(), []
        for part, schema, each in zip(self._level.parts, self._schemas, columns):
            flat.append(part.arrays(settled(each, schema, inner), inner, own))
        found = self._level.written(flat, np.zeros(inner, np.int32), own, inner, _NOTHING)
        return begins, np.append(sizes, np.int32(0)), buffers.add(ByteColumn(found.data, found.starts, np.maximum(found.lengths, 0))), found.lengths


def _field_part(schema, field, options):
    if schema.type == s.MAP:
        if not is_map_entry(field) or field.message_type.GetOptions().map_entry:
            raise _Declined
        return _Entries(schema, field.message_type, options)
    if field.is_repeated != (schema.type == s.ARRAY):
        raise _Declined
    return _List(schema, _part(schema.value_schema, field, options)) if field.is_repeated else _part(schema, field, options)


# --- Levels ---------------------------------------------------------------------------------------------------------


class _Messages:
    """A message type for the kernel. `fields` are (field descriptor, part), in any order."""

    def __init__(self, fields):
        self.parts = [part for _, part in fields]
        self._order = sorted(range(len(fields)), key=lambda at: fields[at][0].number)
        table = []
        for at in self._order:
            field = fields[at][0]
            kind = KINDS[field.type]
            wire = 2 if field.is_repeated and field.is_packed else k.WIRES[kind]
            if field.is_repeated:
                how = k.PACKED if field.is_packed else k.EACH
            else:
                how = k.ALWAYS if field.has_presence else k.UNLESS_ZERO
            table.append((field.number << 3 | wire, kind, how))
        self._fields = readonly(np.array(table, np.int64).reshape(-1, 3))

    def written(self, flat, sizes, buffers, count, head):
        """Return a ByteColumn of messages, with length NULL or REFUSED if there is none. `flat` are the fields' arrays, in their order."""
        pieces, base, item_base, end = [_NO_PIECE], [], [], 0
        for at in self._order:
            own, items = flat[at][:2], flat[at][2:]
            base.append(end)
            end += len(own[0])
            item_base.append(end)
            pieces.append(own)
            if items:
                pieces.append(items)
                end += len(items[0])
        numbers = np.concatenate([each for each, _ in pieces])
        all_sizes = np.concatenate([each for _, each in pieces]).astype(np.int32)
        most = count * len(head) + len(numbers) * _MOST_BYTES_OF_A_FIELD + buffers.used + 16
        out, starts, lengths = np.empty(most, np.uint8), np.empty(count, np.int64), np.empty(count, np.int32)
        bad = sizes == k.REFUSED
        columns = (readonly(each) for each in (buffers.joined(), np.array(base, np.int64), numbers, all_sizes, np.array(item_base, np.int64)))
        end = k.encode(count, head, self._fields, sizes < 0, *columns, out, starts, lengths, bad)
        return ByteColumn(out[:end].copy(), starts, np.where(bad, k.REFUSED, lengths).astype(np.int32))
