"""Tolerance: what is counted, judged and written of records that fail, and when a source may continue after them."""

import numpy as np
import pytest

from standalone import DataError, SourceRecord
from standalone.runtime.failures.tolerance import ErrorCounters, Tolerance, ToleranceExceeded
from standalone.stage import StageFailed
from standalone.wire import ByteColumn, Records
from tests.runtime.hand_clock import HandClock

RECORDS = Records(3, values=ByteColumn.of([b"a", b"b", b"c"]), offsets=np.arange(3))
TROUBLE = OSError("the queue is away")


class Letters:
    """A dead letter queue that is told when its letters are stored, or not."""

    def __init__(self):
        self.letters, self.written, self._waiting = self, [], []

    def of_source(self, failures):
        return [failure.row for failure in failures]

    def of_sink(self, topic, partition, records, failures):
        return [failure.row for failure in failures]

    of_refused = of_sink

    def write(self, letters, on_done=lambda problem: None):
        self.written.append(letters)
        self._waiting.append(on_done)

    def answer(self, problem=None):
        for done in self._waiting:
            done(problem)


class World:
    def __init__(self, tolerance="all", has_letters=False):
        self.letters = Letters() if has_letters else None
        self.counters, self.stored = ErrorCounters(), []
        config = {"errors.tolerance": tolerance, "errors.log.enable": False, "errors.log.include.messages": False}
        self.tolerance = Tolerance(config, "c", 0, self.counters, HandClock(), self.letters)

    def on_stored(self):
        self.stored.append(True)

    @property
    def counted(self):
        return self.counters.total_record_failures, self.counters.total_record_errors, self.counters.total_records_skipped


def failures(*rows):
    return [StageFailed("TRANSFORMATION", "x", row, DataError("bad"), SourceRecord("t", "v", {"p": 1}, {"o": row})) for row in rows]


def of_source(world, failed):
    return world.tolerance.source(failed, world.on_stored)


def of_sink(world, failed):
    return world.tolerance.sink("t", 0, RECORDS, failed)


def of_produce(world, failed):
    return world.tolerance.produce("t", 0, RECORDS, failed, world.on_stored)


@pytest.mark.parametrize("judge", [of_source, of_sink, of_produce])
def test_all_are_counted_and_skipped_where_they_are_tolerated(judge):
    world = World()
    judge(world, failures(0, 2))
    assert world.counted == (2, 2, 2)
    assert world.counters.last_error_timestamp == HandClock().now_ms()


@pytest.mark.parametrize("judge", [of_source, of_sink])
def test_of_a_chain_the_first_alone_fails_the_task_and_is_counted(judge):
    """As if the records had come one by one: none after the first was ever looked at."""
    world = World("none", has_letters=True)
    with pytest.raises(ToleranceExceeded, match="errors.tolerance is none"):
        judge(world, failures(0, 2))
    assert world.counted == (1, 1, 0) and world.letters.written == [[0]]


@pytest.mark.parametrize("judge", [of_source, of_sink, of_produce])
def test_one_alone_fails_the_task_as_well(judge):
    world = World("none")
    with pytest.raises(ToleranceExceeded) as caught:
        judge(world, failures(1))
    assert str(caught.value.__cause__) == "bad" and world.counted == (1, 1, 0) and world.stored == []


@pytest.mark.parametrize("judge", [of_source, of_sink])
def test_where_nothing_failed_nothing_is_written_or_counted(judge):
    world = World("none", has_letters=True)
    assert not judge(world, [])
    assert world.counted == (0, 0, 0) and world.letters.written == [] and world.counters.last_error_timestamp == 0


@pytest.mark.parametrize("judge", [of_source, of_produce])
def test_a_source_goes_on_behind_letters_that_are_stored(judge):
    world = World(has_letters=True)
    judge(world, failures(1))
    assert world.stored == []
    world.letters.answer()
    assert world.stored == [True]


@pytest.mark.parametrize("judge", [of_source, of_produce])
def test_a_source_stays_before_letters_that_cannot_be_stored(judge):
    world = World(has_letters=True)
    judge(world, failures(1))
    world.letters.answer(TROUBLE)
    assert world.stored == []


def test_of_what_a_producer_is_refused_and_is_not_tolerated_the_offset_stays_though_its_letter_is_stored():
    world = World("none", has_letters=True)
    with pytest.raises(ToleranceExceeded):
        of_produce(world, failures(1))
    world.letters.answer()
    assert world.letters.written == [[1]] and world.stored == []


def test_without_a_queue_a_source_goes_on_at_once_behind_what_the_log_refused():
    world = World()
    of_produce(world, failures(1))
    assert world.stored == [True]


@pytest.mark.parametrize("has_letters, is_written", [(False, False), (True, True)])
def test_a_source_s_caller_is_told_whether_a_letter_is_on_its_way(has_letters, is_written):
    assert of_source(World(has_letters=has_letters), failures(1)) is is_written


@pytest.mark.parametrize("problem", [None, TROUBLE], ids=["stored", "not stored"])
def test_a_sink_s_own_report_is_done_when_its_letter_is(problem):
    world = World(has_letters=True)
    stored = world.tolerance.errant("t", 0, RECORDS, 1, DataError("bad"))
    assert not stored.done()
    world.letters.answer(problem)
    assert stored.exception(0) is problem and world.counted == (1, 1, 1)
