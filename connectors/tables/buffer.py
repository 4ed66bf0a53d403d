"""Uncommitted rows of one table."""

import numpy as np

from connectors.tables.columns import joined
from standalone import DataError


class Buffer:
    def __init__(self):
        self._pieces = []  # (pair, offsets, rows)
        self._ends = {}  # pair -> offset after its last record, even if that is not a row
        self._required = None
        self._shape = None  # an empty table with the columns of all pieces
        self.nbytes = 0

    def add(self, pair, offsets, rows, required, end):
        """Add rows with their offsets, in order."""
        self._ends[pair] = end
        if rows is None or not len(rows):
            return
        self._shape = self._with(rows)
        self._pieces.append((pair, offsets, rows))
        self.nbytes += rows.nbytes
        if required is not None:
            self._required = set(required) if self._required is None else self._required & required

    def takes(self, rows):
        """Whether the existing and the new rows have compatible columns."""
        try:
            self._with(rows)
        except DataError:
            return False
        return True

    def _with(self, rows):
        return rows.slice(0, 0) if self.is_empty else joined([self._shape, rows.slice(0, 0)])

    def drop(self, pair, offset):
        """Drop a partition's rows before that offset; None: all of them."""
        kept = []
        for each in self._pieces:
            mine, offsets, rows = each
            if mine == pair:
                low = len(offsets) if offset is None else int(np.searchsorted(offsets, offset))
                each = (mine, offsets[low:], rows.slice(low)) if low else each
            if len(each[1]):
                kept.append(each)
        self._pieces = kept
        if offset is None or self._ends.get(pair, offset) <= offset:
            self._ends.pop(pair, None)
        self.nbytes = sum(rows.nbytes for _, _, rows in kept)

    def rows(self, pair=None):
        """Return all rows, or those of one partition, as one table."""
        return joined([rows for mine, _, rows in self._pieces if pair in (None, mine)])

    def pairs(self):
        """Partitions with rows, in order of their first row."""
        return list(dict.fromkeys(pair for pair, _, _ in self._pieces))

    def ends(self):
        """{pair: offset after its last record}."""
        return dict(self._ends)

    def first(self, pair):
        """The offset of its first row, or None."""
        return next((int(offsets[0]) for mine, offsets, _ in self._pieces if mine == pair), None)

    @property
    def required(self):
        """Columns that must not be null in any row."""
        return self._required or set()

    @property
    def is_empty(self):
        return not self._pieces

    @property
    def count(self):
        return sum(len(rows) for _, _, rows in self._pieces)


