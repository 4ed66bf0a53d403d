"""StringConverter's columnar form, encoding: strings and bytes are passed on unchanged, kernels format numbers."""

import numpy as np

from standalone import ByteColumn
from standalone.data import java_digits
from standalone.data import schema as s
from standalone.data.arrow import buffer_of
from standalone.data.column import is_stored_as, nulls_of, one_piece, shape_of, to_bytes
from standalone.data.java_text_column import java_texts
from standalone.kernels import readonly

_INTS = (s.INT8, s.INT16, s.INT32, s.INT64)
_WORDS = np.frombuffer(b"truefalse", np.uint8)


def encode(schema, column):
    """Return (ByteColumn, None), or None without a kernel: lists, maps and structs with a schema, logical types."""
    shape = shape_of(column)
    if shape is not None:
        return None if shape.type == s.BYTES else (java_texts(column), None)  # bytes are written unchanged
    if schema is None or schema.logical or schema.type not in s.PRIMITIVES or not is_stored_as(column, schema):
        return None
    if schema.type in (s.STRING, s.BYTES):
        return to_bytes(column), None
    return _written(schema.type, one_piece(column)), None


def _written(kind, column):
    nulls, values, count = nulls_of(column), buffer_of(column), len(column)
    if kind == s.BOOLEAN:
        lengths = np.where(nulls, -1, np.where(values, 4, 5)).astype(np.int32)
        return ByteColumn(_WORDS, np.where(values, 0, 4), lengths)
    out, starts, lengths = np.empty(count * java_digits.LONGEST, np.uint8), np.empty(count, np.int64), np.empty(count, np.int32)
    valid = readonly(~nulls)
    if kind in _INTS:
        size = java_digits.ints(readonly(values.astype(np.int64)), valid, out, starts, lengths)
    else:
        write, bits = (java_digits.floats, np.int32) if kind == s.FLOAT32 else (java_digits.doubles, np.int64)
        size = write(readonly(values), readonly(values.view(bits)), valid, out, starts, lengths, java_digits.new_scratch())
    return ByteColumn(out[:size].copy(), starts, lengths)
