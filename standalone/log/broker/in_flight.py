"""A partition's in-flight records of a share group: which member has them, how often each was delivered, and which are done (KIP-932).

Offsets below `start` are done. From there to below `end`, each record is available, acquired by a member until a deadline, acknowledged, or
archived: rejected, delivered too often, or no record at all. Neighbours in the same state form a run. From `end` on nothing was acquired
yet. Nothing here waits, writes or reads a clock.

Each change creates a new list of runs, so that it can be undone if the write fails: `before = state.mark()` and `state.take_back(before)`.
"""

from bisect import bisect_right
from itertools import groupby
from typing import NamedTuple

from standalone.log.broker.refusal import Refusal, codes

AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVED = 0, 1, 2, 4
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)  # acknowledgement types
_OVER = (ACKNOWLEDGED, ARCHIVED)


class Run(NamedTuple):
    first: int
    last: int
    state: int
    count: int = 0  # deliveries, including the current one
    member: str | None = None
    deadline: float | None = None

    @property
    def size(self):
        return self.last - self.first + 1


class InFlight:
    def __init__(self, start, rows=()):
        """`rows` is the result of `rows()`."""
        self.start = start
        self.runs = _joined([Run(*row) for row in rows])

    @property
    def end(self):
        return self.runs[-1].last + 1 if self.runs else self.start

    @property
    def next_offset(self):
        """The first record that may be acquired, if it exists."""
        return next((run.first for run in self.runs if run.state == AVAILABLE), self.end)

    def is_full(self, most):
        """Whether no new records may be acquired, with a limit of `most` in flight."""
        return self.end - self.start >= most and self.next_offset == self.end

    @property
    def deadline(self):
        """When the first lock expires; None if there is none."""
        return min((run.deadline for run in self.runs if run.state == ACQUIRED), default=None)

    def unfinished(self, log_end):
        """How many of the partition's records are not done."""
        return max(log_end - self.end, 0) + sum(run.size for run in self.runs if run.state not in _OVER)

    def rows(self):
        """The rows to store. Acquired records become available: after a crash no member would acknowledge them."""
        kept = [(r.first, r.last, AVAILABLE, r.count - 1) if r.state == ACQUIRED else (r.first, r.last, r.state, r.count) for r in self.runs]
        while kept and kept[-1][2:] == (AVAILABLE, 0):
            kept.pop()
        return kept

    def mark(self):
        return self.start, self.runs

    def take_back(self, mark):
        self.start, self.runs = mark

    # --- Delivering

    def acquire(self, batches, member, deadline, most, locks, is_exact=False):
        """Acquire available records in `batches` for the member; return the runs (first, last, whether to deliver them), in order.

        Acquires about `most` records: whole batches until there are that many, or exactly that many if `is_exact`. Starts no new batch once
        `locks` records are in flight. Records that are not delivered, and offsets between batches, are archived.
        """
        acquired, room = [], most
        for first, last, is_kept in batches:
            first = max(first, self.start)
            if is_exact or self.end - self.start >= locks:
                last = min(last, max(self.start + locks, self.end) - 1)
            if room <= 0 or first > max(last, self.end):
                break
            if last < first:
                continue
            self._reach(first, last, is_kept, room if is_exact else None)
            if not is_kept:
                self._change(first, last, lambda run: run._replace(state=ARCHIVED) if run.state == AVAILABLE else run)
                continue
            for run in self._available(first, last):
                if is_exact and run.size > room:
                    run = run._replace(last=run.first + room - 1)
                taken = Run(run.first, run.last, ACQUIRED, run.count + 1, member, deadline)
                self._change(run.first, run.last, lambda _, taken=taken: taken)
                acquired.append(taken)
                room -= run.size
                if is_exact and room <= 0:
                    break
        self._advance()
        return acquired

    def _reach(self, first, last, is_kept, room):
        """Create runs up to `last`, or for as many new records as wanted."""
        if first > self.end:
            self._add(Run(self.end, first - 1, ARCHIVED))
        begin = max(first, self.end)
        if room is not None:
            last = min(last, begin + room - 1)
        if last >= begin:
            self._add(Run(begin, last, AVAILABLE if is_kept else ARCHIVED))

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

    # --- Acknowledging

    def acknowledge(self, member, batches, limit, deadline):
        """`batches`: (first, last, the type for each, or for all). Applies all, or none and raises Refusal. Renewed locks get `deadline`."""
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
                    raise Refusal(codes.InvalidRecordStateError, f"Not all of the offsets {first} to {last} are acquired by member {member}.")
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

    def _spans(self, first, last, said):
        """(first, last, type) of neighbours with the same type, from the start onward."""
        if max(first, self.start) >= self.end:
            raise Refusal(codes.InvalidRecordStateError, f"Offset {first} was not acquired.")
        if last >= self.end:
            raise Refusal(codes.InvalidRequestError, f"Offset {last} is after the last one that was acquired, {self.end - 1}.")
        skipped = max(self.start - first, 0)
        if len(said) == 1:
            return [(first + skipped, last, said[0])]
        found, begin = [], first + skipped
        for kind, alike in groupby(said[skipped:]):
            end = begin + sum(1 for _ in alike)
            found.append((begin, end - 1, kind))
            begin = end
        return found

    def release(self, member):
        """Make the member's records available again, as if never delivered; return whether there were any."""
        return self._set_free(lambda run: run.member == member, lambda run: Run(run.first, run.last, AVAILABLE, run.count - 1))

    def expire(self, now, limit):
        """Release expired locks; return whether there were any."""
        return self._set_free(lambda run: run.deadline <= now, lambda run: _released(run, limit))

    def _set_free(self, chosen, freed):
        found = [freed(run) if run.state == ACQUIRED and chosen(run) else run for run in self.runs]
        is_changed = any(new is not old for new, old in zip(found, self.runs))
        if is_changed:
            self.runs = _joined(found)
            self._advance()
        return is_changed

    def begin_at(self, log_start):
        """Earlier records were deleted from the log."""
        if log_start > self.start:
            self.start = log_start
            self.runs = [run._replace(first=max(run.first, log_start)) for run in self.runs if run.last >= log_start]
            self._advance()

    def end_at(self, log_end):
        """The log was truncated."""
        self.start = min(self.start, log_end)
        self.runs = [run._replace(last=min(run.last, log_end - 1)) for run in self.runs if run.first < log_end]

    # --- Helpers

    def _at(self, offset):
        """The index of the run that contains the offset."""
        return max(bisect_right(self.runs, offset, key=_first) - 1, 0)

    def _change(self, first, last, changed):
        """Replace each run, or part of one, from `first` to `last` by the result of `changed`."""
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
        over = 0
        for run in self.runs:
            if run.state not in _OVER:
                break
            self.start, over = run.last + 1, over + 1
        if over:
            self.runs = self.runs[over:]


def _first(run):
    return run.first


def _alike(before, run):
    return before[2:] == run[2:] or (before.state == run.state and run.state in _OVER)


def _joined(runs):
    """Join neighbours in the same state."""
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
    return Run(run.first, run.last, ARCHIVED if run.count >= limit else AVAILABLE, run.count)
