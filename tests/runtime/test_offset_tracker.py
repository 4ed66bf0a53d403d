"""OffsetTracker: whatever order acknowledgements come in, the offset stored is that of the last record before which nothing is under way."""

import random

import pytest

from standalone.runtime.offsets import java_map
from standalone.runtime.offsets.tracker import OffsetTracker

PARTITION, OTHER = {"file": "a"}, {"file": "b"}


class Kept:
    """The offsets file and the memory of a task, as lists."""

    def __init__(self):
        self.stored, self.given, self.errors = [], [], []
        self.refuses = None
        self.tracker = OffsetTracker("c", self, self, self.errors.append)

    def append(self, connector, entries):
        if self.refuses is not None:
            raise self.refuses
        assert connector == "c"
        self.stored += [(partition["file"], offset["at"]) for partition, offset in entries]

    def give(self, size):
        self.given.append(size)

    def add(self, at, outstanding=1, size=0, partition=PARTITION):
        return self.tracker.add(partition, None if at is None else {"at": at}, outstanding, size)


@pytest.fixture
def kept():
    return Kept()


def test_an_offset_waits_for_all_that_was_polled_before_it(kept):
    first, second, third = (kept.add(at) for at in (1, 2, 3))
    kept.tracker.done(second)
    assert kept.stored == []
    kept.tracker.done(first)
    assert kept.stored == [("a", 2)], "one write, of the last that is complete from the front on"
    kept.tracker.done(third)
    assert kept.stored == [("a", 2), ("a", 3)]


def test_what_an_abandoned_task_sent_is_not_stored(kept):
    first, second = (kept.add(at, size=7) for at in (1, 2))
    kept.tracker.done(first)
    kept.tracker.abandon()
    kept.tracker.done(second)
    assert kept.stored == [("a", 1)], "its successor may have begun elsewhere by now, or the offsets been reset"
    assert kept.given == [7, 7]


def test_a_piece_for_several_topics_is_complete_with_the_last_of_them(kept):
    sent = kept.add(1, outstanding=3)
    for _ in range(2):
        kept.tracker.done(sent)
    assert kept.stored == [] and not kept.tracker.take_progress()
    kept.tracker.done(sent)
    assert kept.stored == [("a", 1)]


def test_what_has_no_offset_of_its_own_moves_nothing_and_holds_up_what_follows(kept):
    """Letters of a batch: the offset before them stays until the next good record's is stored."""
    first, letters, second = kept.add(1), kept.add(None), kept.add(2)
    kept.tracker.done(second)
    kept.tracker.done(first)
    assert kept.stored == [("a", 1)]
    kept.tracker.done(letters)
    assert kept.stored == [("a", 1), ("a", 2)]


def test_one_without_an_offset_behind_does_not_take_the_offset_away(kept):
    first, behind = kept.add(1), kept.add(None)
    kept.tracker.done(behind)
    kept.tracker.done(first)
    assert kept.stored == [("a", 1)]


def test_source_partitions_wait_for_each_other_never(kept):
    held, free = kept.add(1), kept.add(7, partition=OTHER)
    kept.tracker.done(free)
    assert kept.stored == [("b", 7)]
    kept.tracker.done(held)
    assert kept.stored == [("b", 7), ("a", 1)]


def test_what_nothing_was_sent_of_is_done_at_once_in_its_turn(kept):
    kept.add(1, outstanding=0)
    assert kept.stored == [("a", 1)] and kept.tracker.take_progress() and not kept.tracker.take_progress()
    held = kept.add(2)
    kept.add(3, outstanding=0)
    assert kept.stored == [("a", 1)]
    kept.tracker.done(held)
    assert kept.stored == [("a", 1), ("a", 3)]


def test_memory_is_given_back_as_much_as_was_taken(kept):
    first, second = kept.add(1, size=10), kept.add(2, size=7)
    kept.tracker.done(second)
    assert kept.given == []
    kept.tracker.done(first)
    assert kept.given == [17]


def test_an_offset_that_no_file_takes_is_told_and_its_memory_given_back(kept):
    kept.refuses = ValueError("no file takes this")
    kept.tracker.done(kept.add(1, size=5))
    assert kept.errors == [kept.refuses] and kept.given == [5] and not kept.tracker.take_progress()


@pytest.mark.parametrize("seed", range(20))
def test_in_any_order_the_offset_stored_is_never_ahead(seed, kept):
    chance = random.Random(seed)
    under_way, complete = {}, set()
    for at in range(40):
        outstanding = chance.randrange(3)
        under_way[at] = [kept.add(at, outstanding)] * outstanding
        complete |= {at} if not outstanding else set()
    waiting = [at for at, each in under_way.items() for _ in each]
    chance.shuffle(waiting)
    for at in waiting:
        kept.tracker.done(under_way[at].pop())
        complete |= {at} if not under_way[at] else set()
        behind = next((each for each in range(40) if each not in complete), 40) - 1
        assert kept.stored[-1:] == ([("a", behind)] if behind >= 0 else [])
    assert kept.stored == sorted(kept.stored) and kept.stored[-1] == ("a", 39)


@pytest.mark.parametrize("entries, capacity", [(0, 16), (11, 16), (12, 16), (13, 32), (24, 32), (25, 64)])
def test_java_s_map_is_as_large_as_java_makes_it(entries, capacity):
    """A HashMap grows once its entries are more than three quarters of it, not when they are as many."""
    data = java_map.write([(b"k%d" % at, b"v") for at in range(entries)])
    sizes = data.index(bytes([0x77, 8])) + 2
    assert int.from_bytes(data[sizes : sizes + 4], "big") == capacity
    assert int.from_bytes(data[sizes + 4 : sizes + 8], "big") == entries == len(java_map.read(data))
