"""The in-flight records of a share-partition: their states, delivery counts and acquisition locks (KIP-932).

Records before the share-partition start offset, `start`, are complete. Each record from `start` to before `end` is AVAILABLE, ACQUIRED by a member
until a deadline, ACKNOWLEDGED or ARCHIVED: rejected, delivered too often, or not a record to deliver. Neighbours with the same state form a run. No
record from `end` on was ever acquired. This module does no I/O and reads no clock.

Each change makes a new list of runs, so a change that cannot be stored can be undone: `before = state.snapshot()` and `state.restore(before)`.
"""

from bisect import bisect_right
from itertools import groupby
from typing import NamedTuple

from standalone.log.broker.refusal import Refusal, codes

AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVED = 0, 1, 2, 4
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)  # acknowledge types
_TERMINAL = (ACKNOWLEDGED, ARCHIVED)


class Run(NamedTuple):
    first: int
    last: int
    state: int
    count: int = 0  # deliveries, including the current one
    member: str | None = None
    deadline: float | None = None  # of the acquisition lock
    batch: tuple | None = None  # (first, last) of the in-flight batch: the new records that one fetch acquired

    @property
    def size(self):
        return self.last - self.first + 1


class InFlight:
    def __init__(self, start, rows=()):
        """`rows` are those of `rows()`. Each becomes an in-flight batch."""
        self.start = start
        self.runs = [Run(*row, batch=tuple(row[:2])) for row in rows]

    @property
    def end(self):
        return self.runs[-1].last + 1 if self.runs else self.start

    @property
    def next_offset(self):
        """Where to fetch next: the first available record, or `end`."""
        return next((run.first for run in self.runs if run.state == AVAILABLE), self.end)

    def is_full(self, max_locks):
        """Whether no record can be acquired: `max_locks` are in flight, and none of them is available."""
        return self.end - self.start >= max_locks and self.next_offset == self.end

    @property
    def deadline(self):
        """When the first acquisition lock expires; None if no record is acquired."""
        return min((run.deadline for run in self.runs if run.state == ACQUIRED), default=None)

    def lag(self, log_end):
        """How many of the partition's records are not complete."""
        return max(log_end - self.end, 0) + sum(run.size for run in self.runs if run.state not in _TERMINAL)

    def rows(self):
        """For the store. Acquired records are stored as available, without the current delivery: after a crash nobody acknowledges them."""
        kept = [(r.first, r.last, AVAILABLE, r.count - 1) if r.state == ACQUIRED else (r.first, r.last, r.state, r.count) for r in self.runs]
        while kept and kept[-1][2:] == (AVAILABLE, 0):
            kept.pop()
        return kept

    def snapshot(self):
        return self.start, self.runs

    def restore(self, snapshot):
        self.start, self.runs = snapshot

    # --- Acquiring

    def acquire(self, batches, member, deadline, max_records, max_locks, is_record_limit=False, batch_size=None, limit=None):
        """Acquire available records of `batches`: (first, last, whether to deliver it) of the log's batches, in order. Returns the acquired runs.

        Acquires whole batches until they have `max_records`, or exactly that many if `is_record_limit`. Begins no new batch while `max_locks` records
        are in flight. Archives batches that are not delivered, and offsets between batches. After `batch_size` new records begins another in-flight
        batch.

        `limit` is the delivery count limit. From half of it on, ever fewer records of an in-flight batch are delivered together; the last delivery of
        a record is of that record alone. So a record that its consumers fail on does not archive its neighbours.
        """
        acquired = _Acquired(member, deadline, max_records, is_record_limit, limit)
        begin = self.end  # of the in-flight batch
        for first, last, is_delivered in batches:
            first = max(first, self.start)
            if is_record_limit or self.end - self.start >= max_locks:
                last = min(last, max(self.start + max_locks, self.end) - 1)
            if acquired.is_throttled:
                last = min(last, self.end - 1)
            if acquired.is_complete or first > max(last, self.end):
                break
            if last < first:
                continue
            if batch_size and first - begin >= batch_size and first >= self.end:
                acquired.end_batch(self._set_batch(begin))
                begin = self.end
            self._extend(first, last, is_delivered, acquired.room if is_record_limit else None)
            if not is_delivered:
                self._change(first, last, lambda run: run._replace(state=ARCHIVED) if run.state == AVAILABLE else run)
                continue
            for run in self._available(first, last):
                for taken in acquired.take(run, self):
                    self._change(taken.first, taken.last, lambda _, taken=taken: taken)
                if acquired.is_complete:
                    break
        self._set_batch(begin)
        self._advance()
        return acquired.runs

    def highest_count(self, batch):
        """The highest delivery count of the available records of an in-flight batch."""
        at, found = self._at(batch[0]), 0
        while at < len(self.runs) and self.runs[at].first <= batch[1]:
            if self.runs[at].state == AVAILABLE and self.runs[at].batch == batch:
                found = max(found, self.runs[at].count)
            at += 1
        return found

    def _extend(self, first, last, is_delivered, room):
        """Move `end` behind `last`, or behind `room` new records."""
        if first > self.end:
            self._add(Run(self.end, first - 1, ARCHIVED))
        begin = max(first, self.end)
        if room is not None:
            last = min(last, begin + room - 1)
        if last >= begin:
            self._add(Run(begin, last, AVAILABLE if is_delivered else ARCHIVED))

    def _add(self, run):
        if self.runs and _alike(self.runs[-1], run):
            run = self.runs[-1]._replace(last=run.last)
            self.runs = [*self.runs[:-1], run]
        else:
            self.runs = [*self.runs, run]

    def _available(self, first, last):
        found = self.runs[self._at(first) : bisect_right(self.runs, last, key=_first)]
        return [
            run._replace(first=max(run.first, first), last=min(run.last, last)) for run in found if run.state == AVAILABLE and run.last >= first
        ]

    def _set_batch(self, begin):
        """The records from `begin` on that are in no in-flight batch yet form one. Returns the batch."""
        batch, at = (begin, self.end - 1), self._at(begin)
        found = [run._replace(batch=batch) if run.batch is None and run.state not in _TERMINAL else run for run in self.runs[at:]]
        self.runs = [*self.runs[:at], *found]
        return batch

    # --- Acknowledging, releasing, expiring

    def acknowledge(self, member, batches, limit, deadline):
        """`batches`: (first, last, acknowledge types: one for all, or one each). Renewed locks expire at `deadline`. A Refusal changes nothing."""
        spans = [span for batch in batches if batch[1] >= self.start for span in self._spans(*batch)]
        if not spans:
            return
        low, high = max(self._at(spans[0][0]) - 1, 0), min(bisect_right(self.runs, spans[-1][1], key=_first) + 1, len(self.runs))
        pieces, at = [], 0
        for run in self.runs[low:high]:
            rest = run.first
            while at < len(spans) and spans[at][0] <= run.last:
                first, last, kind = spans[at]
                first, stop = max(first, rest), min(last, run.last)
                if run.state != ACQUIRED or run.member != member:
                    raise Refusal(codes.InvalidRecordStateError, f"Member {member} has not acquired all records from offset {first} to {last}.")
                if rest < first:
                    pieces.append(run._replace(first=rest, last=first - 1))
                pieces.append(_after(run._replace(first=first, last=stop), kind, limit, deadline))
                rest = stop + 1
                if last > run.last:
                    break
                at += 1
            if rest <= run.last:
                pieces.append(run._replace(first=rest))
        self.runs = [*self.runs[:low], *_joined(pieces), *self.runs[high:]]
        self._advance()

    def _spans(self, first, last, types):
        """(first, last, acknowledge type) of neighbours with the same type, from `start` on."""
        if max(first, self.start) >= self.end:
            raise Refusal(codes.InvalidRecordStateError, f"The record at offset {first} is not acquired.")
        if last >= self.end:
            raise Refusal(codes.InvalidRequestError, f"Offset {last} is after the last acquired offset {self.end - 1}.")
        skipped = max(self.start - first, 0)
        if len(types) == 1:
            return [(first + skipped, last, types[0])]
        found, begin = [], first + skipped
        for kind, alike in groupby(types[skipped:]):
            end = begin + sum(1 for _ in alike)
            found.append((begin, end - 1, kind))
            begin = end
        return found

    def release(self, member, limit):
        """Release all records that the member has acquired. Returns whether there were any. The delivery counts, as in Kafka since 4.3."""
        return self._release(lambda run: run.member == member, limit)

    def expire(self, now, limit):
        """Release the records whose acquisition locks have expired. Returns whether there were any."""
        return self._release(lambda run: run.deadline <= now, limit)

    def _release(self, chosen, limit):
        found = [_released(run, limit) if run.state == ACQUIRED and chosen(run) else run for run in self.runs]
        is_changed = any(new is not old for new, old in zip(found, self.runs))
        if is_changed:
            self.runs = _joined(found)
            self._advance()
        return is_changed

    def start_at(self, log_start):
        """The log deleted the records before `log_start`."""
        if log_start > self.start:
            self.start = log_start
            self.runs = [run._replace(first=max(run.first, log_start)) for run in self.runs if run.last >= log_start]
            self._advance()

    def end_at(self, log_end):
        """The log lost the records from `log_end` on."""
        self.start = min(self.start, log_end)
        self.runs = [run._replace(last=min(run.last, log_end - 1)) for run in self.runs if run.first < log_end]

    # --- Helpers

    def _at(self, offset):
        """The index of the run with the offset."""
        return max(bisect_right(self.runs, offset, key=_first) - 1, 0)

    def _change(self, first, last, changed):
        """Apply `changed` to each run, or part of one, from `first` to `last`."""
        low = max(self._at(first) - 1, 0)
        high = min(bisect_right(self.runs, last, key=_first) + 1, len(self.runs))
        pieces = []
        for run in self.runs[low:high]:
            if run.last < first or run.first > last:
                pieces.append(run)
                continue
            if run.first < first:
                pieces.append(run._replace(last=first - 1))
            pieces.append(changed(run._replace(first=max(run.first, first), last=min(run.last, last))))
            if run.last > last:
                pieces.append(run._replace(first=last + 1))
        self.runs = [*self.runs[:low], *_joined(pieces), *self.runs[high:]]

    def _advance(self):
        complete = 0
        for run in self.runs:
            if run.state not in _TERMINAL:
                break
            self.start, complete = run.last + 1, complete + 1
        if complete:
            self.runs = self.runs[complete:]


def _first(run):
    return run.first


def _alike(before, run):
    return before[2:] == run[2:] or (before.state == run.state and run.state in _TERMINAL)


def _joined(runs):
    """The runs, with neighbours that are alike joined."""
    found = []
    for run in runs:
        if found and _alike(found[-1], run):
            found[-1] = found[-1]._replace(last=run.last)
        else:
            found.append(run)
    return found


def _after(run, kind, limit, deadline):
    if kind == RENEW:
        return run._replace(deadline=deadline)
    if kind == RELEASE:
        return _released(run, limit)
    return Run(run.first, run.last, ACKNOWLEDGED if kind == ACCEPT else ARCHIVED, run.count)


def _released(run, limit):
    return run._replace(state=ARCHIVED if run.count >= limit else AVAILABLE, member=None, deadline=None)


class _Acquired:
    """What one fetch acquires."""

    def __init__(self, member, deadline, max_records, is_record_limit, limit):
        self.runs = []
        self.room = max_records
        self.is_complete = max_records <= 0
        self._member = member
        self._deadline = deadline
        self._is_record_limit = is_record_limit
        self._limit = limit or 0
        self._throttled_from = max(2, (self._limit + 1) // 2)
        self._batch = None  # the in-flight batch of the last run
        self._begin_batch(False)

    @property
    def is_throttled(self):
        """Whether it has part of an in-flight batch whose records were delivered often. Then it acquires no other one."""
        return self._is_batch_throttled and self._taken > 0

    def take(self, run, in_flight):
        """The acquired run, or part of one, in a list; [] if the fetch is complete before it."""
        if run.batch != self._batch:
            if self.is_throttled:
                return self._complete()
            self._batch = run.batch
            self._begin_batch(bool(self._limit and run.batch) and in_flight.highest_count(run.batch) >= self._throttled_from)
            if self._is_batch_throttled and self.runs:
                return self._complete()
        size = min(run.size, self.room) if self._is_record_limit else run.size
        if self._is_batch_throttled:
            size = self._throttled(run, size)
            if not size:
                return self._complete()
        taken = Run(run.first, run.first + size - 1, ACQUIRED, run.count + 1, self._member, self._deadline, run.batch)
        self._taken += size
        self.room -= size
        if self.runs and self.runs[-1].last + 1 == taken.first and self.runs[-1][2:] == taken[2:]:
            self.runs[-1] = self.runs[-1]._replace(last=taken.last)
        else:
            self.runs.append(taken)
        is_alone = self._limit > 2 and taken.count == self._limit
        self.is_complete = self.room <= 0 or (self._is_batch_throttled and (is_alone or self._taken == self._most))
        return [taken]

    def end_batch(self, batch):
        """The new records that it has form an in-flight batch."""
        if self.runs and self.runs[-1].batch is None:
            self.runs[-1] = self.runs[-1]._replace(batch=batch)

    def _begin_batch(self, is_throttled):
        self._is_batch_throttled = is_throttled
        self._taken = 0  # records of the in-flight batch
        self._most = None  # of them, if it is throttled

    def _throttled(self, run, size):
        """How many records of the run are acquired."""
        if self._limit > 2 and run.count == self._limit - 1:
            return 0 if self._taken else 1
        if run.count >= self._throttled_from and self._most is None:
            self._most = max(1, (run.batch[1] - run.batch[0] + 1) >> (run.count - self._throttled_from + 1))
        return min(size, self._most - self._taken) if self._most and self._most > self._taken else size

    def _complete(self):
        self.is_complete = True
        return []
