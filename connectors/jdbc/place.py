"""The position of a source in a table: offsets in Confluent's form, and missing ids.

    {"incrementing": 17}    {"timestamp": 1577836800123, "timestamp_nanos": 123456000}    or both; ours adds "gaps": "12-14,16" if ids are missing

`timestamp_nanos` are the nanoseconds within the second; without them the milliseconds of `timestamp` count. Java's connector ignores "gaps".
"""

import bisect
from dataclasses import dataclass

import numpy as np

from standalone import ConnectError

INCREMENTING, TIMESTAMP, NANOS, GAPS = "incrementing", "timestamp", "timestamp_nanos", "gaps"
_SECOND = 1_000_000  # microseconds
_MOST_GAPS = 10_000


@dataclass(frozen=True)
class Place:
    """The last row: its timestamp in microseconds and its id, depending on the mode; `gaps` are ranges of missing ids to query again."""

    micros: int | None = None
    number: int | None = None
    gaps: tuple = ()

    @classmethod
    def of(cls, offset):
        """Return the Place of a stored offset. Raises ConnectError if it is invalid."""
        offset = offset or {}
        for name in (INCREMENTING, TIMESTAMP, NANOS):
            value = offset.get(name)
            if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
                raise ConnectError(f"The source offset {offset!r} must have an integer as '{name}'.")
        ms, nanos = offset.get(TIMESTAMP), offset.get(NANOS)
        micros = None
        if ms is not None:
            micros = ms * 1000 if nanos is None else ms // 1000 * _SECOND + nanos // 1000
        return cls(micros, offset.get(INCREMENTING), _ranges(offset.get(GAPS), offset))

    def offset(self):
        found = {}
        if self.number is not None:
            found[INCREMENTING] = self.number
        if self.micros is not None:
            found[TIMESTAMP], found[NANOS] = self.micros // 1000, self.micros % _SECOND * 1000
        if self.gaps:
            found[GAPS] = ",".join(f"{low}" if low == high else f"{low}-{high}" for low, high in self.gaps)
        return found


def _ranges(text, offset):
    try:
        pairs = [each.split("-") for each in text.split(",")] if text else []
        return tuple((int(pair[0]), int(pair[-1])) for pair in pairs)
    except (ValueError, AttributeError) as error:
        raise ConnectError(f"The source offset {offset!r} must have ranges such as 12-14,16 as '{GAPS}'.") from error


class Gaps:
    """Ids below the highest one read that have no row yet: their transactions may have been open when the others were read.

    A gap is queried until `is_over(mark)`, where the mark was stored with the gap: by then all transactions that could fill it have ended.
    """

    def __init__(self, ranges=(), mark=None):
        self._ranges = [(low, high, mark) for low, high in ranges]  # ascending

    def __bool__(self):
        return bool(self._ranges)

    def ranges(self, upto=None):
        return tuple((low, high) for low, high, _ in self._ranges if upto is None or high <= upto)

    def note(self, last, numbers, mark):
        """Add the gaps between the ascending ids of new rows after `last` (None: no row yet; databases count from 1). Return how many old gaps
        were given up."""
        numbers = np.asarray(numbers)
        before = np.append(min(0, numbers[0]) if last is None else last, numbers[:-1])
        for at in np.flatnonzero(numbers > before + 1).tolist():
            self._ranges.append((int(before[at]) + 1, int(numbers[at]) - 1, mark))
        too_many = len(self._ranges) - _MOST_GAPS
        if too_many > 0:
            del self._ranges[:too_many]
        return max(0, too_many)

    def holds(self, number):
        at = bisect.bisect_right(self._ranges, number, key=lambda each: each[0]) - 1
        return at >= 0 and number <= self._ranges[at][1]

    def fill(self, number):
        """Remove an id whose row was read."""
        at = bisect.bisect_right(self._ranges, number, key=lambda each: each[0]) - 1
        if at < 0 or number > self._ranges[at][1]:
            return
        low, high, mark = self._ranges[at]
        self._ranges[at : at + 1] = [part for part in ((low, number - 1, mark), (number + 1, high, mark)) if part[0] <= part[1]]

    def drop(self, is_over):
        self._ranges = [each for each in self._ranges if not is_over(each[2])]
