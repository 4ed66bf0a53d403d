"""Format columns like Java's toString: kernels write maps, structs, lists and numbers.

`java_text.py` formats single values, and tests compare both.
"""

import numpy as np

from standalone.data import java_digits
from standalone.data import schema as s
from standalone.data.arrow import buffer_of
from standalone.data.assemble import NOTHING, Part, assembled, joined
from standalone.data.column import fields_of, nulls_of, one_piece, to_bytes, values_of
from standalone.data.java_text import java_text
from standalone.data.struct_column import Shaped
from standalone.data.utf8_column import repair
from standalone.kernels import readonly
from standalone.wire import ByteColumn

_INTS = (s.INT8, s.INT16, s.INT32, s.INT64)
_WORDS = np.frombuffer(b"truefalse", np.uint8)


def java_texts(column, schema=None):
    """Return a ByteColumn of the texts of a column with that schema, or of a Shaped, with nulls."""
    is_shaped = isinstance(column, Shaped)
    part = _part(column.column, column.shape, len(column), True) if is_shaped else _part(column, schema, len(column), False)
    return ByteColumn(part.data, part.starts, part.lengths)


def _part(column, schema, count, is_shaped):
    if schema.logical or schema.type == s.MAP:
        return _by_value(column, schema, count, is_shaped)
    column = one_piece(column)
    if schema.type == s.STRUCT:
        return (_maps if is_shaped else _structs)(column, schema, count)
    if schema.type == s.ARRAY:
        return _lists(column, schema, is_shaped)
    if schema.type in (s.STRING, s.BYTES):
        texts = to_bytes(column)
        texts = repair(texts) if schema.type == s.BYTES else texts
        return Part(texts.data, NOTHING, texts.starts, texts.lengths)
    return _numbers(column, schema.type)


def _maps(column, schema, count):
    parts = []
    for field, inner in zip(schema.fields, fields_of(column)):
        before = (("{" if not parts else ", ") + field.name + "=").encode()
        parts.append((before, _part(inner, field.schema, count, True), b"null"))
    texts = assembled(count, nulls_of(column), b"", parts, b"}" if parts else b"{}")
    return Part(texts.data, NOTHING, texts.starts, texts.lengths)


def _structs(column, schema, count):
    """Null fields are omitted. Commas depend on a field that is never null: fields before it are followed by a comma."""
    absent = nulls_of(column)
    found = [(field.name, _part(inner, field.schema, count, False)) for field, inner in zip(schema.fields, fields_of(column))]
    may_lack = [bool(((part.lengths < 0) & ~absent).any()) for _, part in found]
    if not all(may_lack):
        pivot = may_lack.index(False)
    elif found:
        return _by_value(column, schema, count, False)
    parts = []
    for at, (name, part) in enumerate(found):
        before, behind = f"{',' * (at > pivot)}{name}=".encode(), b"," * (at < pivot)
        if may_lack[at]:
            texts = assembled(count, part.lengths < 0, before, [(b"", part, b"")], behind)
            before, part = b"", Part(texts.data, NOTHING, texts.starts, texts.lengths)
        parts.append((before, part, b""))
    texts = assembled(count, absent, b"Struct{", parts, b"}")
    return Part(texts.data, NOTHING, texts.starts, texts.lengths)


def _lists(column, schema, is_shaped):
    ends = buffer_of(column, len(column) + 1).astype(np.int64)
    items = column.values.slice(ends[0], ends[-1] - ends[0])
    texts, none = _part(items, schema.value_schema, len(items), is_shaped), np.zeros(len(items), np.bool_)
    if (texts.lengths < 0).any():
        filled = assembled(len(items), none, b"", [(b"", texts, b"null")], b"")
    else:
        filled = ByteColumn(texts.data, texts.starts, texts.lengths)
    return joined(ends - ends[0], ~nulls_of(column), filled, none, b"[]", b", ", np.zeros(len(column), np.bool_))


def _numbers(column, kind):
    nulls, values, count = nulls_of(column), buffer_of(column), len(column)
    if kind == s.BOOLEAN:
        return Part(_WORDS, NOTHING, np.where(values, 0, 4), np.where(nulls, -1, np.where(values, 4, 5)).astype(np.int32))
    out, starts, lengths = np.empty(count * java_digits.LONGEST, np.uint8), np.empty(count, np.int64), np.empty(count, np.int32)
    valid = readonly(~nulls)
    if kind in _INTS:
        java_digits.ints(readonly(values.astype(np.int64)), valid, out, starts, lengths)
    else:
        write, bits = (java_digits.floats, np.int32) if kind == s.FLOAT32 else (java_digits.doubles, np.int64)
        write(readonly(values), readonly(values.view(bits)), valid, out, starts, lengths, java_digits.new_scratch())
    return Part(out, NOTHING, starts, lengths)


def _by_value(column, schema, count, is_shaped):
    """Format one by one: dates, Decimals and maps are rare."""
    values, schema = (values_of(Shaped(schema, column), None, count), None) if is_shaped else (values_of(column, schema, count), schema)
    texts = ByteColumn.of([None if value is None else java_text(value, schema).encode("utf-8", "replace") for value in values])
    return Part(texts.data, NOTHING, texts.starts, texts.lengths)
