"""Shipping: which offset is behind which piece of a batch, whatever of it failed, was dropped or went to multiple topics."""

import numpy as np
import pytest

from standalone import DataError
from standalone.errors import LogFatalError
from standalone.log.intake import HeldBack
from standalone.pipeline.encoded import Outgoing
from standalone.runtime.offsets.tracker import OffsetTracker
from standalone.runtime.tasks import shipping
from standalone.runtime.tasks.shipping import Shipping, pieces_of
from standalone.stage import StageFailed
from standalone.wire import ByteColumn, Records


class Delivered:
    error, failed = None, []


class Refused:
    """Of these rows, for this: the others are in the log."""

    def __init__(self, rows, error):
        self.error, self.failed = error, [(np.array(rows), error)]


LOST = LogFatalError("the log is gone")
TOO_LARGE = LogFatalError("too large", "org.apache.kafka.common.errors.RecordTooLargeException")
HELD_BACK = HeldBack("for another")


class World:
    """A source's task around its shipping: producer, tolerance, memory, meter and offsets file in one."""

    def __init__(self, tolerates=True, has_letters=False, room=True):
        self.stored, self.sent, self.done, self.errors = [], [], [], []
        self.all, self.dead_letters = tolerates, self if has_letters else None
        self.room, self.letters_done = room, None
        self.tracker = OffsetTracker("c", self, self, self.errors.append)
        self.shipping = Shipping(
            self, topics=self, tracker=self.tracker, acknowledgements=self, tolerance=self, memory=self, meter=self, went_wrong=self.errors.append
        )

    def append(self, connector, entries):
        self.stored += [offset for _, offset in entries]

    def send(self, topic, partition, records, on_done):
        self.sent.append((topic, len(records)))
        self.done.append(on_done)

    def source(self, failures, on_stored):
        self.letters_done = on_stored
        if not self.all:
            raise DataError("not tolerated")

    def produce(self, topic, partition, records, failures, on_stored):
        self.refused = [failure.record.source_offset for failure in failures]
        if not self.all:
            raise DataError("not tolerated")
        on_stored()

    def take(self, size):
        return self.room

    def several(self, out):
        return {}

    def give(self, size): ...
    def left_out(self, count): ...
    def ensure(self, topic): ...
    def dropped(self, batch, out, count): ...
    def note(self, batch, outgoing, delivered, several): ...
    def answered(self, count, failed=0): ...

    def acknowledge(self):
        for done in self.done:
            done(Delivered)
        self.done = []


class Batch:
    source_partition = {"p": 1}

    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def offset_of(self, row):
        assert 0 <= row < self.count, f"there is no row {row}"
        return row


class Result:
    def __init__(self, out, failed=()):
        self.out = out
        self.failures = [StageFailed("TRANSFORMATION", "x", row, DataError("bad")) for row in failed]


def outgoing(rows=None, count=None, topic="t", size=1):
    count = len(rows) if count is None else count
    values = ByteColumn.of([b"x" * size] * count)
    return Outgoing(topic, None, Records(count, values=values), None if rows is None else np.array(rows))


@pytest.mark.parametrize(
    "count, out, failed, stored",
    [
        pytest.param(5, [outgoing(count=5)], [], [4], id="all of a batch"),
        pytest.param(5, [outgoing([0, 2])], [], [4], id="with rows dropped, the last too"),
        pytest.param(5, [], [], [4], id="nothing left of it"),
        pytest.param(5, [outgoing([0, 2]), outgoing([1, 3, 4], topic="u")], [], [4], id="to two topics"),
        pytest.param(5, [outgoing([0, 1, 3, 4])], [2], [4], id="a bad one in the middle: the next good one's offset is after it"),
        pytest.param(5, [outgoing([0, 1, 2, 3])], [4], [3], id="a bad one at the end: the offset before it"),
        pytest.param(5, [outgoing([0, 1])], [2, 3, 4], [1], id="three bad ones at the end"),
        pytest.param(5, [outgoing([0, 1, 3])], [2, 4], [3], id="a bad one in the middle, and one at the end"),
        pytest.param(3, [], [0, 1, 2], [], id="all of them bad"),
    ],
)
def test_the_offset_behind_a_batch(count, out, failed, stored):
    world = World()
    world.shipping.ship(Batch(count), Result(out, failed))
    assert [each for each in world.stored if out] == []
    world.acknowledge()
    assert world.stored == stored


def test_with_a_queue_for_bad_records_the_offset_waits_for_their_letters():
    world = World(has_letters=True)
    world.shipping.ship(Batch(3), Result([outgoing([0, 1])], [2]))
    world.acknowledge()
    assert world.stored == []
    world.letters_done()
    assert world.stored == [2]


def test_where_a_bad_record_fails_the_task_what_came_before_it_is_sent_and_nothing_else():
    world = World(tolerates=False)
    with pytest.raises(DataError):
        world.shipping.ship(Batch(5), Result([outgoing([0, 1, 3, 4])], [2]))
    world.acknowledge()
    assert world.sent == [("t", 2)] and world.stored == [1]


@pytest.mark.parametrize("rows", [None, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]])
def test_a_large_batch_goes_in_pieces_with_an_offset_behind_each(monkeypatch, rows):
    monkeypatch.setattr(shipping, "_PIECE_BYTES", 300)
    world = World()
    world.shipping.ship(Batch(12), Result([outgoing(rows, count=10, size=80)]))
    sizes = [count for _, count in world.sent]
    assert len(sizes) > 2 and sum(sizes) == 10
    world.acknowledge()
    behind = np.cumsum(sizes) - 1
    assert world.stored == [*behind[:-1].tolist(), 11], "the last piece stands for the rows dropped after it, too"


def test_what_came_of_one_record_stays_in_one_piece(monkeypatch):
    monkeypatch.setattr(shipping, "_PIECE_BYTES", 300)
    rows = [0, 0, 0, 0, 0, 0, 1, 2, 2, 3]
    pieces = [piece[0].rows.tolist() for piece in pieces_of(outgoing(rows, size=80))]
    assert sum(pieces, []) == rows and len(pieces) > 1
    assert all(before[-1] != after[0] for before, after in zip(pieces, pieces[1:]))


@pytest.mark.parametrize(
    "out, answers, stored",
    [
        pytest.param([outgoing(count=5)], [Refused([2], TOO_LARGE)], [1], id="one that is too large"),
        pytest.param([outgoing(count=5)], [Refused([2, 3, 4], LOST)], [1], id="all from there on"),
        pytest.param([outgoing(count=5)], [Refused([0], TOO_LARGE)], [], id="the first"),
        pytest.param([outgoing([1, 3, 3, 4])], [Refused([2], TOO_LARGE)], [2], id="the second of what came of one record"),
        pytest.param([outgoing([0, 3]), outgoing([1, 2], topic="u")], [Delivered, Refused([1], TOO_LARGE)], [1], id="to two topics"),
        pytest.param([outgoing([0, 3]), outgoing([1, 2], topic="u")], [Refused([1], TOO_LARGE), Refused([0, 1], HELD_BACK)], [0], id="and held back"),
    ],
)
def test_where_the_log_refuses_a_record_what_is_in_it_before_is_not_sent_again(out, answers, stored):
    world = World(tolerates=False)
    world.shipping.ship(Batch(5), Result(out))
    for done, answer in zip(world.done, answers):
        assert world.stored == []
        done(answer)
    assert world.errors and world.stored == stored


def test_what_is_under_way_before_a_refused_record_holds_its_offset_back():
    world = World(tolerates=False)
    for _ in range(2):
        world.shipping.ship(Batch(5), Result([outgoing(count=5)]))
    world.done[1](Refused([3], TOO_LARGE))
    assert world.stored == []
    world.done[0](Delivered)
    assert world.stored == [2]


def test_an_offset_is_not_stored_behind_a_bad_record_before_the_one_that_is_refused():
    """As where the bad one is the last: tolerated without a queue it moves no offset by itself."""
    world = World()
    world.shipping.ship(Batch(5), Result([outgoing([0, 2, 3, 4])], [1]))
    world.done[0](Refused([1], LOST))
    assert world.stored == [0]


def test_of_a_large_batch_that_goes_in_pieces_the_refused_record_is_told(monkeypatch):
    monkeypatch.setattr(shipping, "_PIECE_BYTES", 300)
    world = World()
    world.shipping.ship(Batch(12), Result([outgoing(count=12, size=80)]))
    size = world.sent[0][1]
    assert size > 1
    world.done[1](Refused([1], TOO_LARGE))
    assert world.refused == [size + 1]


def test_a_task_that_is_ending_hands_over_no_more():
    world = World(room=False)
    world.shipping.ship(Batch(3), Result([outgoing(count=3)]))
    assert world.sent == [] and world.stored == []
