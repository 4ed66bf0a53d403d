"""Where a source is in a table: its offsets, in Confluent's form, and the numbers that it has missed.

    {"incrementing": 17}    {"timestamp": 1577836800123, "timestamp_nanos": 123456000}    both    and of ours, where there are any: "gaps": "12-14,16"

`timestamp_nanos` are those within the second; without it the milliseconds count. Java's connector leaves "gaps" unread.
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
    """Behind which row: its time (microseconds) and its number, as far as the mode has them; `gaps` are the ranges of numbers to look for again."""

    micros: int | None = None
    number: int | None = None
    gaps: tuple = ()

    @classmethod
    def of(cls, offset):
        """Of a stored offset; raises ConnectError where it is none."""
        offset = offset or {}
        for name in (INCREMENTING, TIMESTAMP, NANOS):
            value = offset.get(name)
            if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
                raise ConnectError(f"The source offset {offset!r} must have a whole number as '{name}'.")
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
        raise ConnectError(f"The source offset {offset!r} must have ranges of numbers such as 12-14,16 as '{GAPS}'.") from error


class Gaps:
    """Numbers below the highest that was read of which no row was seen: their transactions may not have ended when the others were read.

    A gap is looked for until `is_over(mark)` of what was noted when it was missed: by then whoever could have filled it has ended.
    """

    def __init__(self, ranges=(), mark=None):
        self._ranges = [(low, high, mark) for low, high in ranges]  # ascending

    def __bool__(self):
        return bool(self._ranges)

    def ranges(self, upto=None):
        return tuple((low, high) for low, high, _ in self._ranges if upto is None or high <= upto)

    def note(self, last, numbers, mark):
        """The ascending numbers of new rows behind `last` (None: there were none, and databases count from 1): what is between them is missing.
        Returns how many old gaps had to be given up."""
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
        """A row of that number was seen."""
        at = bisect.bisect_right(self._ranges, number, key=lambda each: each[0]) - 1
        if at < 0 or number > self._ranges[at][1]:
            return
        low, high, mark = self._ranges[at]
        self._ranges[at : at + 1] = [part for part in ((low, number - 1, mark), (number + 1, high, mark)) if part[0] <= part[1]]

    def drop(self, is_over):
        self._ranges = [each for each in self._ranges if not is_over(each[2])]
