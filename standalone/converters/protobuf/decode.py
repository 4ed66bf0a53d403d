"""ProtobufConverter's columnar form, decoding: a kernel scans messages of one type, then nested messages, level by level.

Strings and bytes are not copied out of the messages. The row form decodes messages of another layout, strings that are not UTF-8, unknown enum
numbers, invalid dates, maps with duplicate keys, and split messages; and a batch with many such rows as a whole.
Not supported: fields with a non-empty default, and maps whose keys are not primitive.
"""

import numpy as np
from google.protobuf.descriptor import FieldDescriptor as F

from standalone import ByteColumn
from standalone.converters import flat_columns as flat
from standalone.converters.protobuf import kernels as k
from standalone.converters.protobuf import names
from standalone.converters.protobuf.read_schema import real_oneofs, union_field_name
from standalone.converters.protobuf.values import may_be_null
from standalone.data import schema as s
from standalone.data.utf8_column import malformed
from standalone.kernels import readonly

MOST_BAD = 0.1  # of a batch, before the row form decodes all of it
FEW_BAD = 10  # so few never count as too many
KINDS = {
    **dict.fromkeys((F.TYPE_INT32, F.TYPE_ENUM), k.INT),
    **dict.fromkeys((F.TYPE_INT64, F.TYPE_UINT64), k.LONG_INT),
    **dict.fromkeys((F.TYPE_FIXED64, F.TYPE_SFIXED64, F.TYPE_DOUBLE), k.LONG_WORD),
    **dict.fromkeys((F.TYPE_STRING, F.TYPE_BYTES, F.TYPE_MESSAGE), k.BYTES_),
    **{F.TYPE_UINT32: k.UNSIGNED, F.TYPE_SINT32: k.ZIGZAG, F.TYPE_SINT64: k.LONG_ZIGZAG, F.TYPE_BOOL: k.BOOLEAN},
    **{F.TYPE_FIXED32: k.WORD, F.TYPE_FLOAT: k.WORD, F.TYPE_SFIXED32: k.SIGNED_WORD},
}
MOMENTS = {s.DATE: ("year", "month", "day"), s.TIME: ("hours", "minutes", "seconds", "nanos"), s.TIMESTAMP: ("seconds", "nanos")}
_MOST_SECONDS = 9_000_000_000_000_000
_NOTHING = readonly(np.empty(0, np.uint8))
_NO_CURSORS, _NO_NUMBERS, _NO_SIZES = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int32)


class _Declined(Exception):
    """This schema has no columnar form."""


class Decoding:
    """Decodes messages of a type into columns."""

    @classmethod
    def of(cls, schema, descriptor, options):
        """Return None if only the row form supports the schema."""
        try:
            return cls(schema, descriptor, options)
        except _Declined:
            return None

    def __init__(self, schema, descriptor, options):
        self.schema = schema
        self._root = _message_part(schema, descriptor, options)

    def decode(self, column, before):
        """Return (schema, column, failed rows or None), or None if too many rows failed. Each message begins with the bytes `before`."""
        bad = column.lengths < 0
        head = readonly(np.frombuffer(before, np.uint8))
        found = self._root.column(readonly(column.data), column.starts, np.maximum(column.lengths, 0), bad, head)
        rows = np.flatnonzero(bad)
        if len(rows) > max(FEW_BAD, MOST_BAD * len(column)):
            return None
        return self.schema, found, rows if len(rows) else None


# --- Parts: each builds a column from numbers and sizes, and marks rows that fail -----------------------------------


def _part(schema, field, options):
    """Return the part for a single value of a field."""
    if field.message_type is not None:
        return _message_part(schema, field.message_type, options)
    if field.type not in KINDS:
        raise _Declined
    if field.type == F.TYPE_ENUM and schema.type == s.STRING:
        return _Symbols(field.enum_type)
    if field.type == F.TYPE_ENUM:
        return _Numbers(schema, {each.number for each in field.enum_type.values} if field.enum_type.is_closed else None)
    if schema.type in (s.STRING, s.BYTES):
        return _Bytes(field.type == F.TYPE_STRING)
    return _Numbers(schema)


def _message_part(schema, descriptor, options):
    if descriptor.full_name in names.WRAPPERS and schema.type != s.STRUCT:
        field = descriptor.fields_by_name["value"]
        return _Wrapped(_part(schema, field, options), field)
    if schema.name == s.DECIMAL:
        return _Decimals(descriptor)
    if schema.logical:
        return _Moments(schema, descriptor)
    return _Structs(schema, descriptor, options)


class _Numbers:
    def __init__(self, schema, known=None):
        self._schema, self._known = schema, None if known is None else np.array(sorted(known), np.int64)

    def column(self, data, numbers, sizes, bad, head=_NOTHING):
        if self._known is not None:
            bad |= (sizes >= 0) & ~np.isin(numbers, self._known)
        return flat.numbers_column(self._schema, numbers, sizes)


class _Symbols:
    def __init__(self, descriptor):
        known = {each.number: each.name for each in descriptor.values}
        self._numbers = np.array(sorted(known), np.int64)
        self._names = [known[number] for number in self._numbers.tolist()]

    def column(self, data, numbers, sizes, bad, head=_NOTHING):
        at = np.minimum(np.searchsorted(self._numbers, numbers), len(self._numbers) - 1)
        bad |= (sizes >= 0) & (self._numbers[at] != numbers)
        return flat.symbols_column(self._names, at, sizes)


class _Bytes:
    def __init__(self, is_text):
        self._is_text = is_text

    def column(self, data, numbers, sizes, bad, head=_NOTHING):
        found = ByteColumn(data, numbers, sizes)
        if self._is_text:
            bad[malformed(found)] = True
        return found


class _Wrapped:
    """The value of a wrapper, such as google.protobuf.StringValue."""

    def __init__(self, part, field):
        self._part, self._level = part, _Level([field])

    def column(self, data, numbers, sizes, bad, head=_NOTHING):
        ((inner, inner_sizes),) = self._level.singles(data, numbers, sizes, bad, head)
        return self._part.column(data, inner, np.where(sizes < 0, k.NULL, np.maximum(inner_sizes, 0)).astype(np.int32), bad)


class _Decimals:
    def __init__(self, descriptor):
        self._level = _Level([descriptor.fields_by_name[name] for name in ("value", "scale")])

    def column(self, data, numbers, sizes, bad, head=_NOTHING):
        (starts, lengths), (scales, _) = self._level.singles(data, numbers, sizes, bad)
        bad |= (sizes >= 0) & (lengths <= 0)
        return flat.decimals_column(data, starts, np.where(sizes < 0, k.NULL, np.maximum(lengths, 0)).astype(np.int32), scales.astype(np.int32))


class _Moments:
    """Dates, times and timestamps."""

    def __init__(self, schema, descriptor):
        self._schema = schema
        self._level = _Level([descriptor.fields_by_name[name] for name in MOMENTS[schema.name]])

    def column(self, data, numbers, sizes, bad, head=_NOTHING):
        found = [values for values, _ in self._level.singles(data, numbers, sizes, bad)]
        if self._schema.name == s.DATE:
            days, wrong = np.zeros(len(numbers), np.int64), np.zeros(len(numbers), np.bool_)
            k.days_of(*map(readonly, found), days, wrong)
            bad |= (sizes >= 0) & wrong
            return flat.numbers_column(self._schema, days, sizes)
        *clock, nanos = found
        seconds = clock[0] if len(clock) == 1 else (clock[0] * 60 + clock[1]) * 60 + clock[2]
        bad |= (sizes >= 0) & (np.abs(seconds) > _MOST_SECONDS)
        return flat.numbers_column(self._schema, seconds * 1000 + nanos // 1_000_000, sizes)


class _Structs:
    def __init__(self, schema, descriptor, options):
        self._schema, self._required = schema, []
        oneofs = [] if options.flattens_unions else real_oneofs(descriptor)
        members = {field.name for oneof in oneofs for field in oneof.fields}
        slots = {field.name: oneof.index for oneof in descriptor.oneofs for field in oneof.fields if len(oneof.fields) > 1}
        fields = sorted(descriptor.fields, key=lambda field: field.number)
        self._level, places = _Level(fields, slots), {field.name: at for at, field in enumerate(fields)}
        self._required = [places[field.name] for field in fields if field.is_required]
        self._columns = [None] * len(schema.fields)
        for oneof in oneofs:
            union = schema.field(union_field_name(oneof, options))
            parts = [
                (places[field.name], _field_part(union.schema.fields[at].schema, field, options)) for at, field in enumerate(oneof.fields)
            ]
            self._columns[union.index] = _Union(union.schema, parts)
        for field in fields:
            if field.name not in members:
                place = schema.field(field.name)
                self._columns[place.index] = _Field(places[field.name], _field_part(place.schema, field, options), _default_of(field, options))

    def column(self, data, numbers, sizes, bad, head=_NOTHING):
        is_root, own = bool(len(head)), np.zeros(len(numbers), np.bool_)
        if is_root:
            own |= bad
        level = self._level.scanned(data, numbers, sizes, own, head)
        for at in self._required:
            own |= level.sizes[at] < 0
        columns = [each.column(data, level, own) for each in self._columns]
        bad |= own & (sizes >= 0)
        return flat.structs_column(self._schema, columns, len(numbers), sizes)


class _Field:
    """A field's column. `default` is the value of an absent field: None for a null."""

    def __init__(self, at, part, default):
        self.at, self._part, self._default = at, part, default

    def column(self, data, level, bad):
        if isinstance(self._part, _List):
            return self._part.column(data, level, self.at, bad)
        numbers, sizes = level.numbers[self.at], level.sizes[self.at]
        if self._default is not None:
            if self._default:
                numbers = np.where(sizes < 0, self._default, numbers)
            sizes = np.maximum(sizes, 0)
        return self._part.column(data, numbers, sizes, bad)


class _Union:
    """A oneof: a struct with one member set, or null if none is set."""

    def __init__(self, schema, parts):
        self._schema, self._members = schema, [_Field(at, part, None) for at, part in parts]

    def column(self, data, level, bad):
        columns = [each.column(data, level, bad) for each in self._members]
        sizes = np.max([level.sizes[each.at] for each in self._members], axis=0)
        return flat.structs_column(self._schema, columns, len(sizes), sizes)


class _List:
    """A repeated field: a list of items, or a map of their keys and values."""

    def __init__(self, schema, part):
        self._schema, self._part = schema, part

    def column(self, data, level, at, bad):
        numbers, sizes = level.items[at]
        counts = level.sizes[at].astype(np.int64)
        ends = np.cumsum(counts)
        wrong = np.zeros(len(numbers), np.bool_)
        if self._schema.type == s.ARRAY:
            columns = [self._part.column(data, numbers, sizes, wrong)]
        else:
            columns, twins = self._part.columns(data, numbers, sizes, wrong, ends)
            bad |= twins
        if wrong.any():
            bad[np.repeat(np.arange(len(counts)), counts)[wrong]] = True
        return flat.lists_column(self._schema, ends, np.zeros(len(counts), np.int32), columns, len(numbers))


class _Entries:
    """Keys and values of maps."""

    def __init__(self, schema, descriptor, options):
        if schema.key_schema.type in (s.STRUCT, s.ARRAY, s.MAP, s.FLOAT32, s.FLOAT64):  # equal floats may have different bits
            raise _Declined
        key, value = (descriptor.fields_by_name[name] for name in ("key", "value"))
        if key.message_type is not None or key.is_repeated or value.is_repeated or _number_of(key) or _number_of(value):
            raise _Declined
        self._level = _Level([key, value])
        self._parts = _part(schema.key_schema, key, options), _part(schema.value_schema, value, options)
        self._has_bytes = KINDS[key.type] == k.BYTES_

    def columns(self, data, numbers, sizes, bad, ends):
        found = [(each, np.maximum(lengths, 0)) for each, lengths in self._level.singles(data, numbers, sizes, bad)]
        twins = np.zeros(len(ends), np.bool_)
        k.mark_twins(readonly(ends), data, *map(readonly, found[0]), self._has_bytes, twins)
        return [part.column(data, *each, bad) for part, each in zip(self._parts, found)], twins


def _field_part(schema, field, options):
    if schema.type == s.MAP:
        return _List(schema, _Entries(schema, field.message_type, options))
    if field.is_repeated:
        return _List(schema, _part(schema.value_schema, field, options))
    return _part(schema, field, options)


def _default_of(field, options):
    """Return the value of an absent field: None for a null, else a number; an empty string or message starts at 0."""
    if may_be_null(field, options):
        return None
    return 0 if field.is_repeated else _number_of(field)


def _number_of(field):
    """Return a field's default as the kernels' number."""
    default = field.default_value
    if field.message_type is not None or not default and not isinstance(default, float):
        return 0
    if field.type in (F.TYPE_STRING, F.TYPE_BYTES):
        raise _Declined
    if field.type == F.TYPE_FLOAT:
        return int(np.array(default, np.float32).view(np.uint32))
    if field.type == F.TYPE_DOUBLE:
        return int(np.array(default, np.float64).view(np.int64))
    return (int(default) + (1 << 63)) % (1 << 64) - (1 << 63)


# --- Levels ---------------------------------------------------------------------------------------------------------


class _Level:
    """The fields of a message type that are read, and `scan` over its messages. `oneofs`: {field name: number of its oneof}."""

    def __init__(self, fields, oneofs=None):
        if any(field.type not in KINDS for field in fields):
            raise _Declined
        table = [
            (
                *(field.number, KINDS[field.type], k.WIRES[KINDS[field.type]], int(field.is_repeated)),
                *((oneofs or {}).get(field.name, -1), int(field.message_type is not None)),
            )
            for field in fields
        ]
        self._fields = readonly(np.array(table, np.int64).reshape(-1, 6))
        self._lists = [at for at, field in enumerate(fields) if field.is_repeated]

    def scanned(self, data, starts, lengths, bad, head=_NOTHING):
        return _Scanned(self._fields, self._lists, data, starts, lengths, bad, head)

    def singles(self, data, starts, lengths, bad, head=_NOTHING):
        """Return (numbers, sizes) of each field, none of which is repeated."""
        found = self.scanned(data, starts, lengths, bad, head)
        return list(zip(found.numbers, found.sizes))


class _Scanned:
    """`numbers` and `sizes` by field and row (for lists: item counts); `items` (numbers, sizes) of lists, by field."""

    def __init__(self, fields, lists, data, starts, lengths, bad, head):
        shape = len(fields), len(starts)
        self.numbers, self.sizes = np.zeros(shape, np.int64), np.full(shape, k.NULL, np.int32)
        self.sizes[lists] = 0
        self.items = {}
        given = data, readonly(starts), readonly(lengths), head, fields
        k.scan(*given, False, self.numbers, self.sizes, bad, _NO_CURSORS, _NO_NUMBERS, _NO_SIZES)
        if not lists:
            return
        counts = self.sizes[lists].sum(axis=1, dtype=np.int64)
        ends = np.cumsum(counts)
        cursors = np.zeros(len(fields), np.int64)
        cursors[lists] = ends - counts
        numbers, sizes = np.empty(int(ends[-1]), np.int64), np.empty(int(ends[-1]), np.int32)
        if len(numbers):
            k.scan(*given, True, self.numbers, self.sizes, bad, cursors, numbers, sizes)
        for at, low, high in zip(lists, (ends - counts).tolist(), ends.tolist()):
            self.items[at] = numbers[low:high], sizes[low:high]
