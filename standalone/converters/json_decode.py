"""JsonConverter's columnar form, from the log: messages of one form, split by a kernel into columns.

What producers write by the million looks the same in every message but for the values: the same envelope, the same fields in the same
order. The first message shows that form; a kernel (json_split.py) goes over all of them, and each that is as expected becomes a row of
the columns, each that is not is left to the row form: other fields or another order, a null where none may be, a value of another
type or one that Jackson would bend, an escape that is half a letter.

Declined as a whole are schemas with maps, or with lists of anything but plain values, envelopes that do not begin with the schema, and
batches of which a good part is not as expected. Messages without a schema are expected to be of the shape that some of them show
(json_shape.py).
"""

import numpy as np

from standalone import DataError
from standalone.converters import json_shape, json_split
from standalone.converters.json_text import read_value
from standalone.data.struct_column import Shaped

MOST_BAD = 0.1  # of a batch, before it is left to the row form as a whole
FEW_BAD = 10  # messages never are too many
_BEFORE_SCHEMA = '{"schema":'
_BEFORE_PAYLOAD = ',"payload":'


def opening_of(data):
    """The bytes of an envelope up to its payload, where it begins with its schema and no blank is in between; else None."""
    opening, _ = _opened(data)
    return opening


def _opened(data):
    """(those bytes, the parsed schema) or (None, None)."""
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
    """(schema, column, rows it could not do or None), or None. `schema_of(parsed JSON)` gives the Schema."""
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
    """As `decode_envelopes`, of messages that are the payload alone (after the bytes `before`), of a schema that is known."""
    return _decode(column, before, b"", schema, fills_defaults)


class Shapes:
    """Decodes messages without a schema; a topic mostly keeps its shape, so the last one is tried first."""

    def __init__(self):
        self._last = None

    def decode(self, column):
        """(None, a Shaped, rows it could not do or None), or None for messages of no shape or of too many."""
        shape, split = self._last, self._last and _split(_form_of(self._last, False, True), column)
        for _ in range(2):
            if split is not None and _count(split) <= FEW_BAD:
                break
            other = json_shape.guess(column, split[1] if split else ())  # the second time with a look at what the first guess left out
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
    """(column, rows it could not do or None), or None where those are too many."""
    split = json_split.Split(form, column, opening, ending)
    decoded = split.column()
    bad = np.flatnonzero(split.bad)
    return None if len(bad) > max(FEW_BAD, MOST_BAD * len(column)) else (decoded, bad if len(bad) else None)


_forms = {}


def _form_of(schema, fills_defaults, is_shape=False):
    """The json_split.Form of a schema; None where it has parts that are not split."""
    key = (schema, fills_defaults, is_shape)
    if key not in _forms:
        if len(_forms) >= 1000:
            _forms.clear()
        try:
            _forms[key] = json_split.Form(*key)
        except (json_split.NotSplit, UnicodeEncodeError):  # half a letter in a name
            _forms[key] = None
    return _forms[key]
