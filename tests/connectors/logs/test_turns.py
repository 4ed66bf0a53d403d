"""The line in which files of one name wait for each other: nobody leaves it before its turn."""

import itertools

import pytest

from connectors.file.rotation import Place
from connectors.logs import turns
from connectors.logs.log_file import LogFile
from connectors.logs.ready import Ready
from connectors.logs.turns import SECONDS_FOR_PREDECESSOR, Turns

_inodes = itertools.count(1)


@pytest.fixture
def clock(monkeypatch):
    """Seconds that are set by hand."""

    class Clock:
        now = 0.0

        def monotonic(self):
            return self.now

    clock = Clock()
    monkeypatch.setattr(turns, "time", clock)
    return clock


@pytest.fixture
def line(clock):
    return Turns(Ready())


def files(count):
    return [LogFile("app.log", "app.log", (0, inode, 0), Place(0, inode)) for inode in itertools.islice(_inodes, count)]


def before(file):
    return [] if file.after is None else [file.after, *before(file.after)]


def test_who_gets_into_the_line_stands_between(line):
    first, second, third, last = files(4)
    for new in (first, second, third):
        line.wait_for(last, new)
    assert before(last) == [third, second, first]


def test_a_line_is_taken_into_another_whole(line):
    first, copy, missed, last = files(4)
    line.wait_for(last, first)
    line.wait_for(missed, copy)
    line.wait_for(last, missed)
    assert before(last) == [missed, copy, first]
    line.wait_for(last, copy)
    assert before(last) == [missed, copy, first], "it stood there already"


def test_nobody_waits_for_who_waits_for_it(line):
    first, second = files(2)
    line.wait_for(second, first)
    line.wait_for(first, second)
    assert (before(first), before(second)) == ([], [first])


def test_who_is_gone_hands_on_whom_it_waited_for(line):
    first, gone, last = files(3)
    gone.dead_at = 1.0
    line.wait_for(gone, first)
    line.wait_for(last, gone)
    assert before(last) == [first] and line.must_wait(last)


def test_a_file_and_those_before_it_come_behind_another(line):
    copy, file, other = files(3)
    line.wait_for(file, copy)
    line.stand_behind(file, other)
    assert before(file) == [copy, other]


def test_a_file_is_not_given_up_while_those_before_it_are_read(line, clock):
    first, second, last = files(3)
    line.wait_for(second, first)
    line.wait_for(last, second)
    for _ in range(int(5 * SECONDS_FOR_PREDECESSOR)):
        clock.now += 1
        line.look()
        line.heard_of(first)
        assert line.must_wait(last)


def test_a_file_is_given_up_that_brings_nothing(line, clock):
    first, last = files(2)
    line.wait_for(last, first)
    clock.now += 100 * SECONDS_FOR_PREDECESSOR
    line.look()
    assert line.must_wait(last), "nobody has looked meanwhile: it had no chance to bring anything"
    for _ in range(int(SECONDS_FOR_PREDECESSOR)):
        clock.now += 1
        line.look()
    assert not line.must_wait(last)
