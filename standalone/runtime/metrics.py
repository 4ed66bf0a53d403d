"""Task metrics, by the names of Connect's own. Each meter is written by its task's threads and read by others.

    meter = SourceMeter(clock)
    meter.polled(500, 0.002)
    meter.values()    {"source-task-metrics": {"source-record-poll-total": 500, ...}, "connector-task-metrics": {...}}

Rates, averages and maxima cover the last minute, as in Kafka: two windows of 30 s, the older of which expires.
"""

import threading

HALF_SECONDS = 30.0


class Sampled:
    """Count, sum and maximum of the values recorded within the last minute. Written by one thread."""

    __slots__ = ("_clock", "_now", "_before")

    def __init__(self, clock):
        self._clock = clock
        self._now = [clock.monotonic(), 0, 0.0, 0.0]  # start, count, sum, maximum
        self._before = None

    def note(self, value):
        half = self._half()
        half[1] += 1
        half[2] += value
        if value > half[3]:
            half[3] = value

    def _half(self):
        now = self._clock.monotonic()
        age = now - self._now[0]
        if age >= HALF_SECONDS:
            self._before = self._now if age < 2 * HALF_SECONDS else None
            self._now = [now, 0, 0.0, 0.0]
        return self._now

    def _seen(self):
        """(count, sum, maximum, seconds covered)"""
        now = self._clock.monotonic()
        halves = [half for half in (self._before, self._now) if half is not None and now - half[0] < 2 * HALF_SECONDS]
        if not halves:
            return 0, 0.0, 0.0, 1.0
        count, total = sum(half[1] for half in halves), sum(half[2] for half in halves)
        return count, total, max(half[3] for half in halves), max(1.0, now - halves[0][0])

    @property
    def average(self):
        count, total, _, _ = self._seen()
        return total / count if count else 0.0

    @property
    def greatest(self):
        return self._seen()[2]

    @property
    def rate(self):
        """The sum per second."""
        _, total, _, seconds = self._seen()
        return total / seconds


class Total:
    """A sum since the start, and its rate."""

    __slots__ = ("value", "_recent")

    def __init__(self, clock):
        self.value = 0
        self._recent = Sampled(clock)

    def add(self, count):
        self.value += count
        self._recent.note(count)

    @property
    def rate(self):
        return self._recent.rate


class TaskMeter:
    """What source and sink tasks have in common: states, batches, offset commits."""

    def __init__(self, clock):
        self._clock = clock
        self._since = clock.monotonic()
        self._state = "unassigned"
        self._spent = {}
        self._batch = Sampled(clock)
        self._commit = Sampled(clock)
        self._commits = {True: 0, False: 0}

    def entered(self, state):
        """The task has entered this state."""
        now = self._clock.monotonic()
        self._spent[self._state] = self._spent.get(self._state, 0.0) + now - self._since
        self._state, self._since = state.lower(), now

    def committed(self, seconds, well=True):
        """Record an offset commit that succeeded or failed."""
        self._commits[well] += 1
        self._commit.note(seconds * 1000)

    def values(self):
        now = self._clock.monotonic()
        spent = {**self._spent, self._state: self._spent.get(self._state, 0.0) + now - self._since}
        whole = sum(spent.values()) or 1.0
        commits = sum(self._commits.values()) or 1
        return {
            "connector-task-metrics": {
                "running-ratio": spent.get("running", 0.0) / whole,
                "pause-ratio": spent.get("paused", 0.0) / whole,
                "batch-size-avg": self._batch.average,
                "batch-size-max": self._batch.greatest,
                "offset-commit-avg-time-ms": self._commit.average,
                "offset-commit-max-time-ms": self._commit.greatest,
                "offset-commit-success-percentage": self._commits[True] / commits,
                "offset-commit-failure-percentage": self._commits[False] / commits,
            }
        }


class SourceMeter(TaskMeter):
    def __init__(self, clock):
        super().__init__(clock)
        self._poll = Sampled(clock)
        self._polled = Total(clock)
        self._written = Total(clock)
        self._active = Sampled(clock)
        self._left_out = self._answered = 0

    def polled(self, count, seconds):
        """Record a poll that returned this many records."""
        self._poll.note(seconds * 1000)
        self._batch.note(count)
        self._polled.add(count)

    def left_out(self, count):
        """Record polled records that are not produced: filtered out, or tolerated."""
        self._left_out += count
        self._active.note(self.active)

    def answered(self, count, refused=0):
        """Record this many produce responses. Called by the sender's thread."""
        self._answered += count
        self._written.add(count - refused)

    @property
    def records(self):
        """Records polled since the start."""
        return self._polled.value

    @property
    def active(self):
        return max(0, self._polled.value - self._left_out - self._answered)

    def values(self):
        return {
            **super().values(),
            "source-task-metrics": {
                "poll-batch-avg-time-ms": self._poll.average,
                "poll-batch-max-time-ms": self._poll.greatest,
                "source-record-poll-total": self._polled.value,
                "source-record-poll-rate": self._polled.rate,
                "source-record-write-total": self._written.value,
                "source-record-write-rate": self._written.rate,
                "source-record-active-count": self.active,
                "source-record-active-count-avg": self._active.average,
                "source-record-active-count-max": self._active.greatest,
            },
        }


class SinkMeter(TaskMeter):
    def __init__(self, clock):
        super().__init__(clock)
        self._put = Sampled(clock)
        self._read = Total(clock)
        self._sent = Total(clock)
        self._active = Sampled(clock)
        self._completed = Total(clock)
        self._skipped = Total(clock)
        self._uncommitted = 0
        self._sequence = 0
        self._partitions = self._lag = 0

    def read(self, count):
        """Record this many fetched records."""
        self._read.add(count)

    def put(self, count, seconds):
        """Record a put() of this many records."""
        self._put.note(seconds * 1000)
        self._batch.note(count)
        self._sent.add(count)
        self._uncommitted += count
        self._active.note(self._uncommitted)

    def committed(self, seconds, well=True):
        super().committed(seconds, well)
        self._sequence += 1
        if well:
            self._completed.add(1)
            self._uncommitted = 0

    @property
    def records(self):
        """Records put since the start."""
        return self._sent.value

    def assigned(self, partitions, lag):
        """Record the number of assigned partitions; `lag` has, for each, the number of records not yet put."""
        self._partitions, self._lag = partitions, max(lag.values(), default=0)

    def skipped_commit(self):
        """Record a skipped commit: a response came too late, or the task returned no offset."""
        self._skipped.add(1)

    def values(self):
        return {
            **super().values(),
            "sink-task-metrics": {
                "put-batch-avg-time-ms": self._put.average,
                "put-batch-max-time-ms": self._put.greatest,
                "sink-record-read-total": self._read.value,
                "sink-record-read-rate": self._read.rate,
                "sink-record-send-total": self._sent.value,
                "sink-record-send-rate": self._sent.rate,
                "sink-record-active-count": self._uncommitted,
                "sink-record-active-count-avg": self._active.average,
                "sink-record-active-count-max": self._active.greatest,
                "sink-record-lag-max": self._lag,
                "partition-count": self._partitions,
                "offset-commit-seq-no": self._sequence,
                "offset-commit-completion-total": self._completed.value,
                "offset-commit-completion-rate": self._completed.rate,
                "offset-commit-skip-total": self._skipped.value,
                "offset-commit-skip-rate": self._skipped.rate,
            },
        }


class Starts:
    """How many connectors, or tasks, were started, and how many starts succeeded."""

    def __init__(self):
        self._lock = threading.Lock()
        self.well = 0
        self.failed = 0

    def count(self, well):
        with self._lock:
            self.well += well
            self.failed += not well

    def values(self, what):
        attempts = self.well + self.failed
        return {
            f"{what}-startup-attempts-total": attempts,
            f"{what}-startup-success-total": self.well,
            f"{what}-startup-failure-total": self.failed,
            f"{what}-startup-success-percentage": self.well / attempts if attempts else 0.0,
            f"{what}-startup-failure-percentage": self.failed / attempts if attempts else 0.0,
        }
