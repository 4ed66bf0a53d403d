"""What has come for one table and is not committed yet."""

import numpy as np

from connectors.tables.columns import joined
from standalone import DataError


class Buffer:
    def __init__(self):
        self._pieces = []  # (pair, offsets, rows)
        self._ends = {}  # pair -> the offset after its last record, also if that is not a row
        self._required = None
        self._shape = None  # a table of no rows that has the columns of all
        self.nbytes = 0

    def add(self, pair, offsets, rows, required, end):
        """Rows with the offset of each, in their order."""
        self._ends[pair] = end
        if rows is None or not len(rows):
            return
        self._shape = self._with(rows)
        self._pieces.append((pair, offsets, rows))
        self.nbytes += rows.nbytes
        if required is not None:
            self._required = set(required) if self._required is None else self._required & required

    def takes(self, rows):
        """Whether one column holds what is here and these rows."""
        try:
            self._with(rows)
        except DataError:
            return False
        return True

    def _with(self, rows):
        return rows.slice(0, 0) if self.is_empty else joined([self._shape, rows.slice(0, 0)])

    def drop(self, pair, offset):
        """Forget what is before that offset of a partition; None: all of it."""
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
        """All of them, or those of one partition, as one table."""
        return joined([rows for mine, _, rows in self._pieces if pair in (None, mine)])

    def pairs(self):
        """Partitions that rows are of, in the order of their first."""
        return list(dict.fromkeys(pair for pair, _, _ in self._pieces))

    def ends(self):
        """{pair: the offset after its last record}"""
        return dict(self._ends)

    def first(self, pair):
        """The offset of its first row, or None."""
        return next((int(offsets[0]) for mine, offsets, _ in self._pieces if mine == pair), None)

    @property
    def required(self):
        """Columns that no row may lack."""
        return self._required or set()

    @property
    def is_empty(self):
        return not self._pieces

    @property
    def count(self):
        return sum(len(rows) for _, _, rows in self._pieces)


