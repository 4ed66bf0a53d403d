"""JsonConverter's columnar form, encoding: kernels write the JSON of a whole batch from Arrow buffers and byte columns.

A schema is compiled once into nested writers, each of which produces a text per row of its column. Rows for the rows engine (a forbidden
null, a Decimal whose scale differs from the schema's, a Date that is not midnight) are marked.
Not supported: lists of Python values, which the row form encodes as fast, by their classes.
"""

import numpy as np

from standalone import ByteColumn, DataError
from standalone.converters import json_kernels as k
from standalone.converters.json_text import quoted
from standalone.converters.json_values import DAY_MS, scale_of, writer_of
from standalone.data import schema as s
from standalone.data.arrow import buffer_of
from standalone.data.assemble import NOTHING, Part, assembled, joined
from standalone.data.column import fields_of, is_stored_as, null_count, nulls_of, one_piece, to_bytes
from standalone.data.java_digits import LONGEST, new_scratch
from standalone.data.utf8_column import repair
from standalone.kernels import readonly


def plan(schema, opening, numeric_decimals, fills_defaults):
    """Return a Plan for columns of a schema; `opening` is the envelope before its payload, or None without an envelope."""
    return Plan(schema, opening, _Writer(schema, numeric_decimals, fills_defaults))


def payload_plan(schema, before, numeric_decimals, fills_defaults):
    """Return a Plan for payloads only, each after the bytes `before`."""
    made = plan(schema, None, numeric_decimals, fills_defaults)
    made._before = before
    return made


def shape_plan(shape, opening):
    """Return a Plan for schemaless values of that shape; None if the row form must encode them."""
    return Plan(shape, opening, _Writer(shape, False, False, is_shape=True), is_shape=True) if _can_be_shape(shape) else None


def _can_be_shape(shape):
    if shape.type == s.STRUCT:
        return all(_can_be_shape(field.schema) for field in shape.fields)
    if shape.type == s.ARRAY:
        return _can_be_shape(shape.value_schema)
    return not shape.logical and shape.type != s.MAP


class Plan:
    def __init__(self, schema, opening, writer, is_shape=False):
        self._schema = schema
        self._is_shape = is_shape
        self._writer = writer
        self._before, self._behind = (opening.encode(), b"}") if opening is not None else (b"", b"")

    def encode(self, column, count):
        """Return (ByteColumn, failed rows or None), or None if the rows engine must encode it."""
        column = one_piece(column)
        if not count or not is_stored_as(column, self._schema):
            return None
        failed = np.zeros(count, np.bool_)
        texts = self._writer.rows(column, count, failed, self._before, self._behind)
        if self._is_shape and null_count(column):  # a schemaless null is a null message, not the word null
            texts = ByteColumn(texts.data, texts.starts, np.where(nulls_of(column), -1, texts.lengths).astype(np.int32))
        return texts, np.flatnonzero(failed) if failed.any() else None


class _Writer:
    """Writes columns of one schema. `null` is the text of a null, or None if nulls are forbidden: such rows are marked."""

    def __init__(self, schema, numeric_decimals, fills_defaults, is_shape=False):
        self._schema = schema
        self._kind = schema.logical or schema.type
        self._numeric = numeric_decimals
        try:
            self.null = b"null" if is_shape else writer_of(schema, numeric_decimals, fills_defaults)(None).encode()
        except DataError:
            self.null = None

        def inner(each):
            return _Writer(each, numeric_decimals, fills_defaults, is_shape)

        self._fields = []
        if self._kind == s.STRUCT:
            for field in schema.fields:
                before = ("," if self._fields else "{") + quoted(field.name) + ":"
                self._fields.append((before.encode(), inner(field.schema)))
        elif self._kind in (s.ARRAY, s.MAP):
            self._items = inner(schema.value_schema)
            self._keys = inner(schema.key_schema) if self._kind == s.MAP else None
        elif self._kind == s.DECIMAL and not numeric_decimals:
            try:
                self._scale = scale_of(schema)
            except DataError:
                self._scale = None

    def rows(self, column, count, failed, before=b"", behind=b""):
        """Return a ByteColumn of the texts between `before` and `behind`; failed rows are marked and have no text."""
        if self._kind == s.STRUCT:
            absent = nulls_of(column)
            parts = self._struct_parts(column, count, failed, absent)
            ending = b"}" if parts else b"{}"
            if not absent.any():
                return assembled(count, failed, before, parts, ending + behind)
            texts = assembled(count, failed | absent, b"", parts, ending)
            part = Part(texts.data, NOTHING, texts.starts, texts.lengths)
        else:
            part = self.part(column, count, failed)
        return assembled(count, failed, b"", [(before, part, self._null_or_mark(part, failed))], behind)

    def _null_or_mark(self, part, failed, apart=None):
        """Return the text of a null; if there is none, mark rows without a text, except those in `apart`."""
        if self.null is not None:
            return self.null
        absent = part.lengths < 0
        failed |= absent if apart is None else absent & ~apart
        return b""

    def _struct_parts(self, column, count, failed, absent):
        parts = []
        for inner, (before, writer) in zip(fields_of(column), self._fields):
            inside = np.zeros(count, np.bool_)
            part = writer.part(inner, count, inside)
            null = writer._null_or_mark(part, inside)
            failed |= inside & ~absent
            parts.append((before, part, null))
        return parts

    def part(self, column, count, failed):
        """Return a text per row, none for nulls."""
        return _WRITE[self._kind](self, column, count, failed)

    # --- one method per type ---

    def _strings(self, column, count, failed):
        column = to_bytes(column)
        data, starts, lengths = readonly(column.data), readonly(column.starts), readonly(column.lengths)
        sizes = np.empty(count, np.int32)
        total, malformed = k.escaped_sizes(data, starts, lengths, sizes)
        if malformed:
            return self._strings(repair(column), count, failed)
        if not total:
            return Part(data, NOTHING, starts, lengths, True)
        side, new_starts = np.empty(total, np.uint8), np.empty(count, np.int64)
        k.escape(data, starts, lengths, readonly(sizes), side, new_starts)
        return Part(data, side, new_starts, np.where(sizes, sizes, lengths), True)

    def _bytes(self, column, count, failed):
        column = to_bytes(column)
        side = np.empty(int(((np.maximum(column.lengths, 0).astype(np.int64) + 2) // 3).sum()) * 4, np.uint8)
        starts, lengths = np.empty(count, np.int64), np.empty(count, np.int32)
        k.base64(readonly(column.data), readonly(column.starts), readonly(column.lengths), side, starts, lengths)
        return Part(NOTHING, side, starts, lengths, True)

    def _ints(self, column, count, failed):
        return _int_part(buffer_of(column).astype(np.int64), ~nulls_of(column))

    def _dates(self, column, count, failed):
        ms, valid = buffer_of(column), ~nulls_of(column)
        failed |= valid & (ms % DAY_MS != 0)
        return _int_part((ms // DAY_MS).astype(np.int32).astype(np.int64), valid)

    def _times(self, column, count, failed):
        ms, valid = buffer_of(column), ~nulls_of(column)
        failed |= valid & ((ms < 0) | (ms > DAY_MS))
        return _int_part(ms, valid)

    def _floats(self, column, count, failed):
        values = buffer_of(column)
        side, starts, lengths = np.empty(count * LONGEST + 2, np.uint8), np.empty(count, np.int64), np.empty(count, np.int32)
        write, bits = (k.floats, np.int32) if self._kind == s.FLOAT32 else (k.doubles, np.int64)
        write(readonly(values), readonly(values.view(bits)), readonly(~nulls_of(column)), side, starts, lengths, new_scratch())
        return Part(NOTHING, side, starts, lengths)

    def _booleans(self, column, count, failed):
        values = buffer_of(column)
        lengths = np.where(nulls_of(column), -1, np.where(values, 4, 5)).astype(np.int32)
        return Part(_WORDS, NOTHING, np.where(values, 0, 4), lengths)

    def _decimals(self, column, count, failed):
        nulls = nulls_of(column)
        unscaled, scales = ByteColumn.from_arrow(column.field(0)), buffer_of(column.field(1))
        sizes = np.where(nulls, -1, unscaled.lengths).astype(np.int32)
        if not self._numeric:
            failed |= ~nulls & (scales != self._scale) if self._scale is not None else ~nulls
            return self._bytes(ByteColumn(unscaled.data, unscaled.starts, sizes), count, failed)
        # A plain number has at most six zeros after the point, or an exponent of eleven characters.
        side, starts, lengths = np.empty(count * 44 + 8, np.uint8), np.empty(count, np.int64), np.empty(count, np.int32)
        k.decimals(readonly(unscaled.data), readonly(unscaled.starts), readonly(sizes), readonly(scales), side, starts, lengths, failed)
        return Part(NOTHING, side, starts, lengths)

    def _structs(self, column, count, failed):
        absent = nulls_of(column)
        parts = self._struct_parts(column, count, failed, absent)
        texts = assembled(count, failed | absent, b"", parts, b"}" if parts else b"{}")
        return Part(texts.data, NOTHING, texts.starts, texts.lengths)

    def _arrays(self, column, count, failed):
        ends = buffer_of(column, count + 1).astype(np.int64)
        items = column.values.slice(ends[0], ends[-1] - ends[0])
        inside = np.zeros(len(items), np.bool_)
        texts = self._items.rows(items, len(items), inside)
        return joined(ends - ends[0], ~nulls_of(column), texts, inside, b"[]", b",", failed)

    def _maps(self, column, count, failed):
        ends = buffer_of(column, count + 1).astype(np.int64)
        keys, items = (each.slice(ends[0], ends[-1] - ends[0]) for each in (column.keys, column.items))
        count = len(keys)
        inside = np.zeros(count, np.bool_)
        key_part, part = self._keys.part(keys, count, inside), self._items.part(items, count, inside)
        null_key, null = self._keys._null_or_mark(key_part, inside), self._items._null_or_mark(part, inside)
        if self._schema.key_schema.type == s.STRING:
            inside |= key_part.lengths < 0  # a null becomes the name "null", which may collide with another key
            opening, between, closing, brackets = b"", b":", b"", b"{}"
        else:
            opening, between, closing, brackets = b"[", b",", b"]", b"[]"
        texts = assembled(count, inside, b"", [(opening, key_part, null_key), (between, part, null)], closing)
        return joined(ends - ends[0], ~nulls_of(column), texts, inside, brackets, b",", failed)


_WRITE = {
    s.STRING: _Writer._strings,
    s.BYTES: _Writer._bytes,
    s.BOOLEAN: _Writer._booleans,
    s.FLOAT32: _Writer._floats,
    s.FLOAT64: _Writer._floats,
    s.DECIMAL: _Writer._decimals,
    s.DATE: _Writer._dates,
    s.TIME: _Writer._times,
    s.TIMESTAMP: _Writer._ints,
    s.STRUCT: _Writer._structs,
    s.ARRAY: _Writer._arrays,
    s.MAP: _Writer._maps,
    **{kind: _Writer._ints for kind in (s.INT8, s.INT16, s.INT32, s.INT64)},
}
_WORDS = np.frombuffer(b"truefalse", np.uint8)


def _int_part(values, valid):
    count = len(values)
    side, starts, lengths = np.empty(count * 20 + 1, np.uint8), np.empty(count, np.int64), np.empty(count, np.int32)
    k.ints(readonly(values), readonly(valid), side, starts, lengths)
    return Part(NOTHING, side, starts, lengths)
