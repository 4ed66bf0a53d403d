"""Slices of many lines at once: the position of the n-th blank or quote in each line, and text between such positions."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from standalone import ByteColumn

NONE = -1


class Places:
    """Positions of one byte in the lines of a column. The lines are contiguous in their buffer."""

    def __init__(self, column, byte):
        self.at = np.flatnonzero(column.data == ord(byte))
        self._ends = column.starts + column.lengths
        self._first = np.searchsorted(self.at, column.starts)
        self.count = np.searchsorted(self.at, self._ends) - self._first

    def nth(self, number):
        """The position of the n-th in each line, or -1."""
        return self._where(self._first + number, self.count > number)

    def behind(self, places):
        """The first one in each line at or after that position, or -1."""
        found = np.searchsorted(self.at, places)
        return self._where(found, (places >= 0) & (found < self._first + self.count))

    def before(self, places):
        """The last one in each line before that position, or -1."""
        found = np.searchsorted(self.at, places) - 1
        return self._where(found, (places >= 0) & (found >= self._first))

    def _where(self, numbers, is_there):
        if not len(self.at):
            return np.full(len(numbers), NONE, np.int64)
        return np.where(is_there, self.at[np.minimum(np.maximum(numbers, 0), len(self.at) - 1)], NONE)


def texts(data, starts, ends, is_there):
    """Slices as an Arrow array of strings, null if `is_there` is false."""
    lengths = np.where(is_there, ends - starts, NONE).astype(np.int32)
    return ByteColumn(data, np.where(is_there, starts, 0).astype(np.int64), lengths).to_arrow(text=True).cast(pa.string())


def numbers(array, kind):
    """Strings as integers, null if they are not integers."""
    is_one = pc.fill_null(pc.match_substring_regex(array, r"^\d{1,18}$"), False)
    if not pc.all(is_one).as_py():
        array = pc.if_else(is_one, array, pa.scalar(None, array.type))
    return array.cast(pa.int64()).cast(kind, safe=False)


def valid(column):
    """The column with invalid UTF-8 replaced."""
    try:
        column.data.tobytes().decode()
        return column
    except UnicodeDecodeError:
        return ByteColumn.of([item.decode("utf-8", "replace").encode() for item in column])


def given(array, but="-"):
    """Null for the placeholder of an unknown value."""
    return pc.if_else(pc.equal(array, but), pa.scalar(None, array.type), array)
