"""Headers of a batch in columns: they stay in Python as lists, and the transforms' header edits are applied here."""

from standalone.data.column import values_of
from standalone.data.record import Header
from standalone.expression import is_expression


class Headers:
    """The HeaderEdits of one plan. `columns` are the expressions they need, by name; `schemas` those of the values."""

    def __init__(self, edits):
        self._edits = edits
        self.columns, self.schemas = {}, {}
        for at, edit in enumerate(edits):
            if edit.where is not None:
                self.columns[f"header_{at}_where"] = edit.where
            if edit.added is not None and is_expression(edit.added.value):
                self.columns[f"header_{at}"] = edit.added.value
                self.schemas[f"header_{at}"] = edit.shape or edit.added.schema

    def edited(self, batch, column_of, mask_of):
        """Apply all edits to the batch's headers: a list with a tuple per row, or None. The functions resolve the results of `columns`."""
        headers = batch.headers
        if headers is not None and self._edits:
            headers = [each or () for each in headers]
        for at, edit in enumerate(self._edits):
            mask = mask_of(f"header_{at}_where") if f"header_{at}_where" in self.columns else None
            if edit.added is None:
                headers = None if headers is None else _where(mask, headers, _without(headers, edit.dropped))
                continue
            if f"header_{at}" in self.columns:
                added = self._added(edit, column_of(f"header_{at}"), batch.count)
            else:
                added = [(edit.added,)] * batch.count
            if headers is None:
                headers = added if mask is None else _where(mask, [()] * batch.count, added)
            else:
                headers = _where(mask, headers, [(*old, *new) for old, new in zip(headers, added)])
        return headers

    def _added(self, edit, column, count):
        name, schema = edit.added.name, edit.added.schema
        return [(Header(name, value, schema),) for value in values_of(column, edit.shape or schema, count)]


def _without(headers, dropped):
    if not any(header.name in dropped for each in headers for header in each):
        return headers
    return [tuple(header for header in each if header.name not in dropped) for each in headers]


def _where(mask, old, new):
    """`new` where the mask is true, `old` elsewhere."""
    if mask is None or new is old:
        return new
    return [after if changed else before for before, after, changed in zip(old, new, mask.tolist())]
