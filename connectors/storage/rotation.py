"""File rotation of a topic partition: by record count, by record time, or by wall clock."""

import datetime

import numpy as np

DAY_MS = 86_400_000
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_MS = datetime.timedelta(milliseconds=1)


class Rotation:
    """flush.size, rotate.interval.ms, rotate.schedule.interval.ms. Record time counts from a file's first record."""

    def __init__(self, flush_size, interval_ms, schedule_ms, zone, by_clock=False, on_partition_change=False):
        self._flush_size = max(1, flush_size)
        self._interval_ms = interval_ms
        self._schedule_ms = schedule_ms
        self._zone = zone
        self._by_clock = by_clock  # records have the time at which they are written
        self._on_partition_change = on_partition_change and interval_ms > 0
        self.begin()

    @property
    def wants_times(self):
        return self._interval_ms > 0

    def begin(self, now_ms=None):
        """Start new files."""
        self._count = 0
        self._base = None
        self._folder = None
        self._next = None if self._schedule_ms <= 0 or now_ms is None else self._next_after(now_ms)

    def room(self, low, times, folders_of, folders, now_ms):
        """Return the end of the rows from `low` on that still go into the open files; `low` if these must be closed first. `times` and
        `folders_of` hold each row's time and folder index."""
        high = min(len(folders_of), low + self._flush_size - self._count)
        if self._next is None and self._schedule_ms > 0:
            self._next = self._next_after(now_ms)
        if self._count and self._next is not None and now_ms >= self._next:
            return low
        if self._interval_ms > 0:
            base = int(times[low]) if self._base is None else self._base
            high = _first(times[low:high] - base >= self._interval_ms, low, high)
        if self._on_partition_change:
            folder = folders[folders_of[low]] if self._folder is None else self._folder
            number = folders.index(folder) if folder in folders else -1
            high = _first(folders_of[low:high] != number, low, high)
        return high

    def add(self, low, high, times, folder):
        """Record that these rows were written, the last of them into that folder."""
        if self._base is None and times is not None:
            self._base = int(times[low])
        self._folder = folder
        self._count += high - low

    @property
    def is_full(self):
        return self._count >= self._flush_size

    def is_due(self, now_ms):
        """Whether the files must be closed even without new records."""
        if not self._count:
            return False
        if self._next is not None and now_ms >= self._next:
            return True
        return self._by_clock and self._interval_ms > 0 and self._base is not None and now_ms - self._base >= self._interval_ms

    def due_in_ms(self, now_ms):
        """Milliseconds until they must be closed, or None."""
        ends = [] if self._next is None or not self._count else [self._next]
        if self._by_clock and self._interval_ms > 0 and self._base is not None:
            ends.append(self._base + self._interval_ms)
        return max(0, min(ends) - now_ms) if ends else None

    def _next_after(self, now_ms):
        """Return the next rotation time, at multiples of the interval after local midnight."""
        local = (_EPOCH + now_ms * _MS).astimezone(self._zone)
        midnight = (local.replace(hour=0, minute=0, second=0, microsecond=0) - _EPOCH) // _MS
        past = now_ms - midnight
        return midnight + (past // self._schedule_ms + 1) * self._schedule_ms


def _first(found, low, high):
    at = np.flatnonzero(found[: high - low])
    return low + int(at[0]) if len(at) else high
