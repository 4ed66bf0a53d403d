"""The in-flight records of a share-partition equal a dict of records: each is acknowledged once or delivered again, and none is lost."""

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from pytest import param

from standalone.log.broker.in_flight import (
    ACCEPT,
    ACKNOWLEDGED,
    ACQUIRED,
    ARCHIVED,
    AVAILABLE,
    GAP,
    REJECT,
    RELEASE,
    RENEW,
    InFlight,
    Run,
)
from standalone.log.broker.refusal import Refusal, codes

LIMIT, LOCKS, LOCK_SECONDS = 3, 12, 10
MEMBERS = ("ann", "bob")
OVER = (ACKNOWLEDGED, ARCHIVED)


def acquire(state, first, last, member="ann", most=100, deadline=LOCK_SECONDS, locks=1000, **options):
    return [(run.first, run.last, run.count) for run in state.acquire([(first, last, True)], member, deadline, most, locks, **options)]


def acknowledge(state, first, last, *said, member="ann", deadline=0):
    state.acknowledge(member, [(first, last, list(said))], LIMIT, deadline)


class InFlightMachine(RuleBasedStateMachine):
    """The model is a list of records: [state, deliveries, member, deadline]; those before `start` are done with."""

    @initialize(start=st.integers(0, 5))
    def begin(self, start):
        self.state = InFlight(start)
        self.batches = []  # (first, last, kept) of the log
        self.start = self.end = start
        self.first = start  # of the log
        self.records = {}
        self.now = 0

    @property
    def log_end(self):
        return self.batches[-1][1] + 1 if self.batches else self.end

    def touched(self):
        """The start goes on over what is done with."""
        while self.start < self.end and self.records[self.start][0] in OVER:
            self.start += 1

    @rule(size=st.integers(1, 6), kept=st.sampled_from([True, True, True, False]), hole=st.sampled_from([0, 0, 0, 2]))
    def append(self, size, kept, hole):
        first = self.log_end + hole
        self.batches.append((first, first + size - 1, kept))

    @rule(
        member=st.sampled_from(MEMBERS),
        most=st.integers(1, 8),
        is_exact=st.booleans(),
        size=st.sampled_from([None, 1, 3]),
        limit=st.sampled_from([None, LIMIT]),
    )
    def fetch(self, member, most, is_exact, size, limit):
        offset = self.state.next_offset
        found = [each for each in self.batches if each[1] >= offset]
        acquired = self.state.acquire(found, member, self.now + LOCK_SECONDS, most, LOCKS, is_exact, size, limit)
        assert acquired or self.state.next_offset != offset or offset >= self.log_end or self.state.is_full(LOCKS)
        got = [offset for run in acquired for offset in range(run.first, run.last + 1)]
        assert got == sorted(set(got))
        assert len(got) <= most or not is_exact
        largest = max((last - first + 1 for first, last, _ in self.batches), default=0)
        assert len(got) < most + largest
        kept = {offset for first, last, kept in self.batches if kept for offset in range(first, last + 1)}
        assert set(got) <= kept
        for new in range(self.end, self.state.end):
            self.records[new] = [AVAILABLE if new in kept else ARCHIVED, 0, None, None]
        self.end = max(self.end, self.state.end)
        for run in acquired:
            for offset in range(run.first, run.last + 1):
                record = self.records[offset]
                assert record[0] == AVAILABLE and offset >= self.start
                self.records[offset] = [ACQUIRED, record[1] + 1, member, self.now + LOCK_SECONDS]
                assert run.count == self.records[offset][1] <= LIMIT
        assert self.state.end - self.state.start < LOCKS + max(largest, 1) + 2
        self.touched()

    @rule(data=st.data(), member=st.sampled_from(MEMBERS))
    def answer_for(self, data, member):
        first = data.draw(st.integers(max(self.start - 2, 0), self.end + 1))
        last = data.draw(st.integers(first, min(first + 6, self.end + 2)))
        kinds = st.sampled_from([GAP, ACCEPT, RELEASE, REJECT, RENEW])
        said = data.draw(st.one_of(kinds.map(lambda kind: [kind]), st.lists(kinds, min_size=last - first + 1, max_size=last - first + 1)))
        concerned = range(max(first, self.start), last + 1)
        may = last < self.start or all(
            offset in self.records and self.records[offset][0] == ACQUIRED and self.records[offset][2] == member for offset in concerned
        )
        before = list(self.state.runs), self.state.start
        try:
            self.state.acknowledge(member, [(first, last, said)], LIMIT, self.now + LOCK_SECONDS)
        except Refusal as refusal:
            assert not may
            assert refusal.code in (codes.InvalidRecordStateError.errno, codes.InvalidRequestError.errno)
            assert (list(self.state.runs), self.state.start) == before
            return
        assert may
        for offset in concerned:
            kind, record = said[0] if len(said) == 1 else said[offset - first], self.records[offset]
            if kind == RENEW:
                record[3] = self.now + LOCK_SECONDS
            elif kind == RELEASE:
                self.free(offset)
            else:
                record[:] = [ACKNOWLEDGED if kind == ACCEPT else ARCHIVED, record[1], None, None]
        self.touched()

    def free(self, offset):
        record = self.records[offset]
        record[:] = [ARCHIVED if record[1] >= LIMIT else AVAILABLE, record[1], None, None]

    @rule(seconds=st.integers(1, 12))
    def pass_time(self, seconds):
        self.now += seconds
        late = [offset for offset in range(self.start, self.end) if self.records[offset][0] == ACQUIRED and self.records[offset][3] <= self.now]
        assert self.state.expire(self.now, LIMIT) == bool(late)
        for offset in late:
            self.free(offset)
        self.touched()

    @rule(member=st.sampled_from(MEMBERS))
    def leave(self, member):
        self.state.release(member, LIMIT)
        for offset in range(self.start, self.end):
            if self.records[offset][0] == ACQUIRED and self.records[offset][2] == member:
                self.free(offset)
        self.touched()

    @rule(data=st.data())
    def delete_old_records(self, data):
        self.first = data.draw(st.integers(self.first, self.log_end))
        self.batches = [each for each in self.batches if each[1] >= self.first]
        self.state.start_at(self.first)
        for new in range(self.end, self.first):
            self.records[new] = [ARCHIVED, 0, None, None]
        self.start, self.end = max(self.start, self.first), max(self.end, self.first)
        self.touched()

    @rule()
    def crash(self):
        """What was under way is available, as before."""
        self.state = InFlight(self.state.start, self.state.rows())
        for offset in range(self.start, self.end):
            record = self.records[offset]
            if record[0] == ACQUIRED:
                record[:] = [AVAILABLE, record[1] - 1, None, None]
        self.end = self.state.end

    @invariant()
    def it_equals_the_model(self):
        if not hasattr(self, "state"):
            return
        found = {}
        for run in self.state.runs:
            for offset in range(run.first, run.last + 1):
                found[offset] = [run.state, run.count, run.member, run.deadline]
        assert (self.state.start, self.state.end) == (self.start, self.end)
        assert list(found) == list(range(self.start, self.end))
        for offset, row in found.items():
            record = self.records[offset]
            assert row == record or (row[0] == record[0] and row[0] in OVER)
        unfinished = [offset for offset in range(self.start, self.end) if self.records[offset][0] not in OVER]
        assert self.state.lag(self.log_end) == len(unfinished) + max(self.log_end - self.end, 0)
        for before, run in zip(self.state.runs, self.state.runs[1:]):
            assert before[2:] != run[2:], "neighbours that are alike are one run"


InFlightMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
test_records_under_way_equal_a_dict = InFlightMachine.TestCase


def test_a_record_that_was_delivered_too_often_is_archived():
    state = InFlight(0)
    for count in range(1, LIMIT + 1):
        assert acquire(state, 0, 0) == [(0, 0, count)]
        acknowledge(state, 0, 0, RELEASE)
    assert (state.start, state.runs) == (1, [])


@pytest.mark.parametrize(
    "said, left",
    [
        param([ACCEPT], (10, []), id="all accepted"),
        param([RELEASE], (0, [Run(0, 9, AVAILABLE, 1, batch=(0, 9))]), id="all released"),
        param(
            [ACCEPT] * 4 + [RELEASE] * 2 + [REJECT] * 4, (4, [Run(4, 5, AVAILABLE, 1, batch=(0, 9)), Run(6, 9, ARCHIVED, 1)]), id="each its own"
        ),
        param([RENEW] * 10, (0, [Run(0, 9, ACQUIRED, 1, "ann", 77, (0, 9))]), id="renewed"),
        param([GAP], (10, []), id="no records there"),
    ],
)
def test_what_is_said_of_records(said, left):
    state = InFlight(0)
    acquire(state, 0, 9)
    acknowledge(state, 0, 9, *said, deadline=77)
    assert (state.start, state.runs) == left


def test_an_exact_limit_cuts_batches_and_no_new_record_comes_while_too_many_are_under_way():
    state = InFlight(0)
    assert acquire(state, 0, 9, most=4, is_record_limit=True) == [(0, 3, 1)]
    assert acquire(state, 0, 9, most=4, locks=6, is_record_limit=True) == [(4, 5, 1)]
    assert state.is_full(6)
    acknowledge(state, 2, 2, RELEASE)
    assert acquire(state, 0, 9, most=4, locks=6, is_record_limit=True) == [(2, 2, 2)]
    acknowledge(state, 0, 3, ACCEPT)
    assert acquire(state, 0, 9, most=4, locks=6, is_record_limit=True) == [(6, 9, 1)]


def test_available_records_of_a_batch_that_was_cut_come_though_too_many_are_under_way():
    state = InFlight(0)
    acquire(state, 0, 9, most=4, is_record_limit=True)
    acknowledge(state, 0, 3, RELEASE)
    assert acquire(state, 0, 9, locks=4) == [(0, 3, 2)]


def deliver_until_archived(state, size, limit):
    """The offsets of each delivery of a batch that is always released."""
    found = []
    while state.start < size:
        runs = state.acquire([(0, size - 1, True)], "ann", LOCK_SECONDS, 1000, 1000, limit=limit)
        found.append([offset for run in runs for offset in range(run.first, run.last + 1)])
        state.release("ann", limit)
    return found


def test_records_that_were_delivered_often_come_in_smaller_parts_and_at_last_alone():
    """What Kafka 4.3 does: see tests/log/test_share_groups.py."""
    assert deliver_until_archived(InFlight(0), 5, 5) == [[0, 1, 2, 3, 4]] * 3 + [[0, 1], [0], [1], [2, 3], [2], [3], [4], [4]]
    assert [len(each) for each in deliver_until_archived(InFlight(0), 64, 10)[:11]] == [64, 64, 64, 64, 64, 32, 16, 8, 4, 1, 1]
    assert deliver_until_archived(InFlight(0), 3, 2) == [[0, 1, 2]] * 2


def test_new_records_do_not_come_with_records_that_were_delivered_often():
    state = InFlight(0)
    for _ in range(2):
        acquire(state, 0, 3, limit=4)
        state.release("ann", 4)
    assert acquire(state, 0, 9, limit=4) == [(0, 1, 3)]
    assert acquire(state, 2, 9, limit=4) == [(2, 3, 3)]
    assert acquire(state, 4, 9, limit=4) == [(4, 9, 1)]


def test_the_batch_size_of_a_fetch_divides_new_records_between_batches_of_the_log():
    state = InFlight(0)
    batches = [(first, first + 1, True) for first in range(0, 10, 2)]
    runs = state.acquire(batches, "ann", LOCK_SECONDS, 100, 1000, batch_size=3)
    assert [(run.first, run.last) for run in runs] == [(0, 3), (4, 7), (8, 9)]
    state.release("ann", 5)
    assert [(run.first, run.last, run.batch) for run in state.runs] == [(0, 3, (0, 3)), (4, 7, (4, 7)), (8, 9, (8, 9))]


def test_a_state_that_knows_more_than_the_log_is_cut():
    state = InFlight(8, [(8, 9, AVAILABLE, 1), (10, 12, ACKNOWLEDGED, 1)])
    state.end_at(10)
    assert (state.start, state.runs) == (8, [Run(8, 9, AVAILABLE, 1, batch=(8, 9))])
    state.end_at(3)
    assert (state.start, state.runs) == (3, [])
