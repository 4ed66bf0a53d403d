"""Find lists and maps with a null that their schema forbids, at any depth, in their buffers without Spark."""

import numpy as np

from standalone.data import schema as s
from standalone.data.arrow import buffer_of
from standalone.data.column import nulls_of

_NESTED = (s.STRUCT, s.ARRAY, s.MAP)


def misfits_within(array, schema):
    """Return a boolean array: which rows of an Arrow array of lists, maps or structs contain such a null. A null row contains none."""
    if schema.type == s.ARRAY:
        return _in_items(array, [(array.values, schema.value_schema)])
    if schema.type == s.MAP:
        return _in_items(array, [(array.keys, schema.key_schema.with_(optional=True)), (array.items, schema.value_schema)])
    found = np.zeros(len(array), bool)
    for field in schema.fields if schema.type == s.STRUCT else ():
        if not field.schema.optional and field.schema.default is None or field.schema.type in _NESTED:
            found |= _misfits(array.field(field.index), field.schema)
    return found & ~nulls_of(array)


def _misfits(array, schema):
    """Like `misfits_within`, but also true where a required value itself is null."""
    within = misfits_within(array, schema) if schema.type in _NESTED and not schema.logical else np.zeros(len(array), bool)
    return within if schema.optional else within | nulls_of(array)


def _in_items(lists, parts):
    """Which lists have a misfit among their items; `parts` are the item arrays with their schemas."""
    found = np.zeros(len(lists), bool)
    ends = buffer_of(lists, len(lists) + 1).astype(np.int64)
    for items, schema in parts:
        if schema.optional and schema.type not in _NESTED:
            continue
        wrong = _misfits(items.slice(ends[0], ends[-1] - ends[0]), schema)
        if wrong.any():
            before = np.concatenate([[0], np.cumsum(wrong)])
            found |= before[ends[1:] - ends[0]] > before[ends[:-1] - ends[0]]
    return found & ~nulls_of(lists)
