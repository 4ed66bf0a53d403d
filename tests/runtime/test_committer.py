"""Committer: what a sink's task says of its offsets, and what the group is told of them."""

import numpy as np
import pytest

from standalone import ByteColumn, RetriableError
from standalone.errors import LogRetriableError
from standalone.runtime.failures.errant_records import Originals
from standalone.runtime.tasks.committer import Committer
from standalone.wire import Records
from tests.runtime.hand_clock import HandClock

PAIR, OTHER = ("t", 0), ("t", 1)


class Sink:
    """The task, its consumer, its letters and its meter in one; notes what it is asked."""

    def __init__(self, letters=False):
        self.says = lambda offsets: offsets
        self.letters_stored, self.topic = [], "letters"
        self.commits, self.waits, self.skipped, self.failed_commits = [], [], 0, 0
        self.refuses = None
        self.rewound, self.closed_after = [], None
        self.clock = HandClock()
        self.committer = Committer(
            self, self, rewind=self.rewound.append, letters=self if letters else None, originals=Originals(), meter=self, clock=self.clock,
            every_seconds=60, flush_seconds=5, stop_seconds=2,
        )  # fmt: skip
        self.committer.begin()

    def close(self):
        self.closed_after = len(self.commits)

    def pre_commit(self, offsets):
        return self.says(offsets)

    def commit(self, offsets, seconds):
        if self.refuses is not None:
            raise self.refuses
        self.commits.append(offsets)

    def stored(self, seconds):
        self.waits.append(seconds)
        return self.letters_stored.pop(0) if self.letters_stored else True

    def skipped_commit(self):
        self.skipped += 1

    def committed(self, seconds, well=True):
        self.failed_commits += not well


def test_what_was_put_is_committed_once():
    sink = Sink()
    sink.committer.put(PAIR, 5)
    sink.committer.commit()
    sink.committer.commit()
    assert sink.commits == [{PAIR: 5}]


@pytest.mark.parametrize("said, told", [(9, 5), (5, 5), (3, 3), (None, None)], ids=["beyond what it was given", "all of it", "a part", "nothing"])
def test_a_task_may_say_less_than_it_was_given_and_never_more(said, told):
    sink = Sink()
    sink.committer.put(PAIR, 5)
    sink.says = lambda offsets: {} if said is None else {PAIR: said}
    sink.committer.commit()
    assert sink.commits == ([] if told is None else [{PAIR: told}])


def test_a_task_says_nothing_of_partitions_that_it_was_not_asked_for():
    sink = Sink()
    sink.committer.put(PAIR, 5)
    sink.committer.put(OTHER, 7)
    sink.says = lambda offsets: {PAIR: 5, OTHER: 7, ("u", 0): 1}
    sink.committer.last_commit([PAIR], sink.close)
    assert sink.commits == [{PAIR: 5}]


@pytest.mark.parametrize("stored", [[False], [True, False]], ids=["before the flush", "of the flush itself"])
def test_offsets_are_committed_only_behind_letters_that_are_stored(stored):
    """A flush may report bad records, too: their letters are waited for as those are that were there before it."""
    sink = Sink(letters=True)
    sink.committer.put(PAIR, 5)
    sink.letters_stored = list(stored)
    sink.committer.commit()
    assert sink.commits == [] and sink.skipped == 1
    sink.committer.commit()
    assert sink.commits == [{PAIR: 5}]


def test_the_last_commit_waits_no_longer_than_a_stop_may_take():
    sink = Sink(letters=True)
    sink.committer.put(PAIR, 5)
    sink.committer.last_commit([PAIR], sink.close, final=True)
    sink.committer.put(PAIR, 6)
    sink.committer.commit()
    assert sink.waits == [2, 2, 5, 5]
    assert sink.closed_after == 0  # between the flush and the commit


def later(offsets):
    raise RetriableError("later")


def broken(offsets):
    raise ValueError("broken")


def test_a_task_that_cannot_flush_now_is_asked_again():
    sink = Sink()
    sink.committer.put(PAIR, 5)
    sink.says = later
    sink.committer.commit()
    assert (sink.commits, sink.skipped, sink.rewound) == ([], 1, [])
    sink.says = dict
    sink.committer.commit()
    assert sink.commits == [{PAIR: 5}]


def test_a_task_that_fails_to_flush_reads_on_behind_its_last_commit():
    sink = Sink()
    sink.committer.began(PAIR, 2)
    for offset, rewound in ((5, 2), (7, 6)):
        sink.committer.put(PAIR, offset)
        sink.says = broken
        sink.committer.commit()
        assert sink.rewound.pop() == {PAIR: rewound} and sink.failed_commits == 1
        sink.failed_commits, sink.says = 0, dict
        sink.committer.commit()  # nothing was put since
        sink.committer.put(PAIR, 6)
        sink.committer.commit()
    assert sink.commits == [{PAIR: 6}]


def test_a_task_that_fails_its_last_flush_is_closed_and_commits_nothing():
    sink = Sink()
    sink.committer.put(PAIR, 5)
    sink.says = broken
    sink.committer.last_commit([PAIR], sink.close)
    assert (sink.commits, sink.rewound, sink.closed_after, sink.failed_commits) == ([], [], 0, 1)


def test_a_commit_that_did_not_get_through_is_made_again():
    sink = Sink()
    sink.committer.put(PAIR, 5)
    sink.refuses = LogRetriableError("away")
    sink.committer.commit()
    sink.refuses = None
    sink.committer.commit()
    assert sink.commits == [{PAIR: 5}] and sink.failed_commits == 1


def test_a_commit_is_due_after_its_interval_or_when_it_is_asked_for():
    sink = Sink()
    assert sink.committer.due_in() == 60
    sink.clock.advance(59)
    assert sink.committer.due_in() == 1
    sink.committer.requested = True
    assert sink.committer.due_in() == 0
    sink.committer.commit()
    assert sink.committer.due_in() == 60


def test_what_was_let_go_is_not_committed_and_comes_anew():
    sink = Sink()
    sink.committer.put(PAIR, 5)
    sink.committer.commit()
    sink.committer.release([PAIR])
    sink.committer.commit()
    sink.committer.put(PAIR, 5)
    sink.committer.commit()
    assert sink.commits == [{PAIR: 5}, {PAIR: 5}]


def test_the_bytes_of_what_lies_before_a_commit_are_let_go_and_those_from_it_on_are_kept():
    """A record at the very offset that was committed comes next: its task may still report it."""
    sink = Sink()
    originals = sink.committer._originals
    originals.kept = True
    sink.committer.began(PAIR, 0)
    for low in (0, 5):
        offsets = np.arange(low, low + 5)
        originals.begin([(*PAIR, Records(5, values=ByteColumn.of([b"x"] * 5), offsets=offsets))])
    originals.begin([])
    for offset, known in ((4, [4, 5]), (5, [5, 9]), (9, [9]), (10, [])):
        sink.committer.put(PAIR, offset)
        sink.committer.commit()
        assert [each for each in known if originals.find(*PAIR, each) is None] == []
    assert originals.nbytes == 0
