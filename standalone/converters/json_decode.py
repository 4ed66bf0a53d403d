"""JsonConverter's columnar form, decoding: a kernel splits messages of the same layout into columns.

Messages of a topic usually differ only in their values: the same envelope, the same fields in the same order. The first message shows the
layout; a kernel (json_split.py) scans all messages, and those that match become rows of the columns. The row form decodes the others: with
other fields or another order, a forbidden null, a value of another type or one that Jackson would convert, an unpaired surrogate.

The row form decodes the whole batch if the schema has maps, or lists of anything but primitives, if envelopes do not begin with the schema, or
if many messages do not match. Messages without a schema are expected to have the most frequent layout of a sample
(json_shape.py).
"""

import numpy as np

from standalone import DataError
from standalone.converters import json_shape, json_split
from standalone.converters.json_text import read_value
from standalone.data.struct_column import Shaped

MOST_BAD = 0.1  # of a batch, before the row form decodes all of it
FEW_BAD = 10  # so few never count as too many
_BEFORE_SCHEMA = '{"schema":'
_BEFORE_PAYLOAD = ',"payload":'


def opening_of(data):
    """Return the bytes of an envelope before its payload, if it begins with the schema and has no whitespace there; else None."""
    opening, _ = _opened(data)
    return opening


def _opened(data):
    """Return (those bytes, the parsed schema) or (None, None)."""
    try:
        text = data.decode()
        if text.startswith(_BEFORE_SCHEMA):
            node, end = read_value(text, len(_BEFORE_SCHEMA))
            if text.startswith(_BEFORE_PAYLOAD, end):
                return text[: end + len(_BEFORE_PAYLOAD)].encode(), node
    except (ValueError, RecursionError):
        pass
    return None, None


def decode_envelopes(column, schema_of, fills_defaults):
    """Return (schema, column, failed rows or None), or None. `schema_of(parsed JSON)` returns the Schema."""
    rows = np.flatnonzero(column.lengths > 0)
    opening, node = _opened(column[int(rows[0])]) if len(rows) else (None, None)
    if opening is None or node is None:
        return None
    try:
        schema = schema_of(node)
    except DataError:
        return None
    return _decode(column, opening, b"}", schema, fills_defaults)


def decode_payloads(column, schema, fills_defaults, before=b""):
    """Like `decode_envelopes`, for messages without envelope (after the bytes `before`) with a known schema."""
    return _decode(column, before, b"", schema, fills_defaults)


class Shapes:
    """Decodes messages without a schema; a topic usually keeps its layout, so the last one is tried first."""

    def __init__(self):
        self._last = None

    def decode(self, column):
        """Return (None, a Shaped, failed rows or None), or None if there is no common layout or too many rows failed."""
        shape, split = self._last, self._last and _split(_form_of(self._last, False, True), column)
        for _ in range(2):
            if split is not None and _count(split) <= FEW_BAD:
                break
            other = json_shape.guess(column, split[1] if split else ())  # the second attempt samples the messages that failed the first
            form = other and other != shape and _form_of(other, False, True)
            again = form and _split(form, column)
            if not again or split is not None and _count(again) >= _count(split):
                break
            self._last, shape, split = other, other, again
        return split and (None, Shaped(shape, split[0]), split[1])


def _count(split):
    return 0 if split[1] is None else len(split[1])


def _decode(column, opening, ending, schema, fills_defaults):
    form = _form_of(schema, fills_defaults)
    if form is None:
        return None
    split = _split(form, column, opening, ending)
    return split and (schema, *split)


def _split(form, column, opening=b"", ending=b""):
    """Return (column, failed rows or None), or None if too many rows failed."""
    split = json_split.Split(form, column, opening, ending)
    decoded = split.column()
    bad = np.flatnonzero(split.bad)
    return None if len(bad) > max(FEW_BAD, MOST_BAD * len(column)) else (decoded, bad if len(bad) else None)


_forms = {}


def _form_of(schema, fills_defaults, is_shape=False):
    """Return the json_split.Form of a schema; None if it has unsupported parts."""
    key = (schema, fills_defaults, is_shape)
    if key not in _forms:
        if len(_forms) >= 1000:
            _forms.clear()
        try:
            _forms[key] = json_split.Form(*key)
        except (json_split.NotSplit, UnicodeEncodeError):  # unpaired surrogate in a name
            _forms[key] = None
    return _forms[key]
