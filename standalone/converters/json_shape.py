"""Guess the common layout of a batch's messages as a Schema: the same fields in the same order, one type per field.

The guess is based on a sample and verified by the kernel that reads all messages: those with another layout are left out of the column. A
field is optional if a null was seen. If no value was seen (only nulls, empty lists), any type is right.
"""

from decimal import Decimal

import numpy as np

from standalone import Field, Schema
from standalone.converters import json_text
from standalone.data import schema as s

SAMPLES = 40
_NULL, _ANY = "null", "any"


def guess(column, others=()):
    """Return the most frequent layout of a sample, or None if it has no columnar form; the sample includes some of
    the rows in `others`.
    """
    picked = _some(np.flatnonzero(column.lengths > 0)) + _some(np.asarray(others, np.int64))
    if not picked:
        return None
    groups = []  # [layout, number of messages]
    for row in picked:
        form = _form_at(column, row)
        for group in groups:
            if (joined := _join(group[0], form)) is not None:
                group[0] = joined
                group[1] += 1
                break
        else:
            groups.append([form, 1])
    form, count = max(groups, key=lambda group: group[1])
    return None if form is None else _schema(form, False)


def _some(rows):
    """Pick a few of these at random positions: different kinds of messages often alternate."""
    if len(rows) <= SAMPLES:
        return rows.tolist()
    return rows[np.unique(np.random.default_rng(1).integers(0, len(rows), SAMPLES))].tolist()


def _form_at(column, row):
    try:
        return _form(json_text.parse(column[row]))
    except (json_text.JsonError, RecursionError):
        return None


def _form(node):
    """Describe a layout: a string for a primitive, ("list", items), ("struct", ((name, layout), ...)), ("null or", layout) if it may be null;
    None without a columnar form.
    """
    if node is None:
        return _NULL
    if isinstance(node, bool):
        return s.BOOLEAN
    if isinstance(node, str):
        return s.STRING
    if isinstance(node, int):
        return s.INT64
    if isinstance(node, Decimal):
        return s.FLOAT64
    if isinstance(node, list):
        form = _ANY
        for item in map(_form, node):
            form = _join(form, item) if isinstance(item, str) and item != _NULL else None
            if form is None:
                return None
        return ("list", form)
    if not isinstance(node, dict) or not node:
        return None
    fields = tuple((name, _form(item)) for name, item in node.items())
    return None if any(form is None for _, form in fields) else ("struct", fields)


def _join(a, b):
    """Return the layout that covers both, or None."""
    if a == b:
        return a
    if a is None or b is None:
        return None
    if _NULL in (a, b):
        other = b if a == _NULL else a
        return other if other[0] == "null or" else ("null or", other)
    if _ANY in (a, b):
        return b if a == _ANY else a
    if "null or" in (a[0], b[0]):
        joined = _join(*(each[1] if each[0] == "null or" else each for each in (a, b)))
        return joined and ("null or", joined)
    if isinstance(a, str) or isinstance(b, str) or a[0] != b[0]:
        return None
    if a[0] == "list":
        joined = _join(a[1], b[1])
        return joined and ("list", joined)
    if [name for name, _ in a[1]] != [name for name, _ in b[1]]:
        return None
    fields = tuple((name, _join(form, other)) for (name, form), (_, other) in zip(a[1], b[1]))
    return None if any(form is None for _, form in fields) else ("struct", fields)


def _schema(form, optional):
    if form in (_NULL, _ANY):
        return Schema(s.STRING, optional=optional or form == _NULL)
    if isinstance(form, str):
        return Schema(form, optional=optional)
    kind, inside = form
    if kind == "null or":
        return _schema(inside, True)
    if kind == "list":
        return Schema(s.ARRAY, optional=optional, value_schema=_schema(inside, False))
    fields = [Field(name, at, _schema(each, False)) for at, (name, each) in enumerate(inside)]
    return Schema(s.STRUCT, optional=optional, fields=fields)
