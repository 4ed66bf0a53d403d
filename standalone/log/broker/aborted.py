"""Aborted transactions of a partition, which read_committed consumers filter out.

The file holds rows (producer id, first offset, marker offset), appended with each marker. Rows lost in a crash are rebuilt from the
markers since the last producer snapshot.
"""

import os
from struct import Struct
from typing import NamedTuple

from standalone.private import open_private

FILE = "aborted.transactions"
_ROW = Struct("<qqq")


class Aborted(NamedTuple):
    producer_id: int
    first: int
    last: int  # offset of the marker


class AbortedTransactions:
    def __init__(self, folder, rows=()):
        self._path = os.path.join(folder, FILE)
        self._rows = list(rows)
        self._known = set(self._rows)

    @classmethod
    def load(cls, folder, start, end):
        """Load the rows between offsets `start` and `end`; rewrite the file if it holds others."""
        path = os.path.join(folder, FILE)
        try:
            with open(path, "rb") as file:
                data = file.read()
        except FileNotFoundError:
            return cls(folder)
        found = [Aborted(*row) for row in _ROW.iter_unpack(data[: len(data) // _ROW.size * _ROW.size])]
        rows = sorted({row for row in found if start <= row.last < end and row.first <= row.last}, key=lambda row: row.last)
        if len(rows) * _ROW.size != len(data):
            with open_private(path + ".new", "wb") as file:
                file.write(b"".join(_ROW.pack(*row) for row in rows))
            os.replace(path + ".new", path)
        return cls(folder, rows)

    def add(self, producer_id, first, last):
        row = Aborted(producer_id, first, last)
        if row in self._known:
            return
        self._rows.append(row)
        self._known.add(row)
        with open_private(self._path, "ab") as file:
            file.write(_ROW.pack(*row))

    def between(self, low, high):
        """Return the aborted transactions that a reader of offsets `low` to `high` (exclusive) may meet."""
        return [row for row in self._rows if row.last >= low and row.first < high]

    def trim(self, start):
        """Drop rows before `start`; the file is trimmed at the next start."""
        if self._rows and self._rows[0].last < start:
            self._rows = [row for row in self._rows if row.last >= start]
            self._known = set(self._rows)

    @staticmethod
    def sync(folder):
        path = os.path.join(folder, FILE)
        if os.path.exists(path):
            handle = os.open(path, os.O_RDONLY)
            try:
                os.fdatasync(handle)
            finally:
                os.close(handle)
