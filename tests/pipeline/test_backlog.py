"""A backlog waits for Spark, few records never do, and nobody waits for long."""

import threading

import pytest
from pytest import param

from standalone.pipeline import backlog
from standalone.pipeline.backlog import BY_ROWS_FIRST, LARGE, MOST_SECONDS, TOO_MUCH, Backlog


class Starting:
    """A session that is up after this many looks at it; never, where that is None."""

    def __init__(self, looks=None, fails=False):
        self.looks, self.fails, self.waited = looks, fails, []

    def ready(self):
        return self if self.looks is not None and len(self.waited) >= self.looks else None

    @property
    def is_starting(self):
        return self.ready() is None and not (self.fails and self.waited)

    def wait_for_start(self, timeout):
        self.waited.append(timeout)


class Clock:
    """Time goes by as somebody waits."""

    def __init__(self, session):
        self._session = session

    def monotonic(self):
        return sum(self._session.waited)


def of(monkeypatch, session, *counts, stopping=None):
    monkeypatch.setattr(backlog, "time", Clock(session))
    made = Backlog(session, stopping)
    for count in counts:
        made.done_by_rows(count)
    return made


@pytest.mark.parametrize(
    "counts, waits",
    [
        param([], False, id="nothing was done yet"),
        param([BY_ROWS_FIRST - 1], False, id="a second's work is done by rows"),
        param([BY_ROWS_FIRST], True, id="then the rest waits"),
        param([LARGE] * (BY_ROWS_FIRST // LARGE), True, id="in however many batches"),
        param([BY_ROWS_FIRST, LARGE - 1], False, id="a small batch says that nothing is after it"),
        param([LARGE - 1] * BY_ROWS_FIRST, False, id="a steady trickle is none"),
    ],
)
def test_what_is_a_backlog(monkeypatch, counts, waits):
    session = Starting(looks=3)
    made = of(monkeypatch, session, *counts)
    assert made.waits is waits
    assert made.spark_is_up() is waits
    assert len(session.waited) == (3 if waits else 0)


@pytest.mark.parametrize(
    "counts, follows, waits",
    [
        param([], TOO_MUCH, False, id="the first batch goes by rows at once"),
        param([LARGE], TOO_MUCH, True, id="then the rest waits"),
        param([LARGE], TOO_MUCH - 1, False, id="rows are done with less before Spark is up"),
        param([LARGE - 1], TOO_MUCH, False, id="a small batch is no part of it"),
    ],
)
def test_where_it_is_known_how_much_follows_few_records_go_by_rows(monkeypatch, counts, follows, waits):
    made = of(monkeypatch, Starting(looks=3), *counts)
    made.follows = lambda: follows
    assert made.waits is waits and made.spark_is_up() is waits


def test_nobody_waits_longer_than_that_for_one_start(monkeypatch):
    session = Starting()
    made = of(monkeypatch, session, BY_ROWS_FIRST)
    assert not made.spark_is_up() and not made.waits
    assert sum(session.waited) == pytest.approx(MOST_SECONDS)
    made.done_by_rows(BY_ROWS_FIRST)
    assert not made.spark_is_up() and sum(session.waited) == pytest.approx(MOST_SECONDS)


def test_a_start_that_fails_ends_the_waiting(monkeypatch):
    session = Starting(fails=True)
    assert not of(monkeypatch, session, BY_ROWS_FIRST).spark_is_up()
    assert len(session.waited) == 1


def test_a_task_that_stops_waits_for_nothing(monkeypatch):
    session, stopping = Starting(looks=3), threading.Event()
    stopping.set()
    assert not of(monkeypatch, session, BY_ROWS_FIRST, stopping=stopping).spark_is_up() and not session.waited


def test_behind_a_session_the_next_start_is_waited_for_anew(monkeypatch):
    session = Starting(looks=3)
    made = of(monkeypatch, session, BY_ROWS_FIRST)
    assert made.spark_is_up()
    session.looks, session.waited = 5, []
    assert not made.waits and not made.spark_is_up()  # its first records go by rows again
    made.done_by_rows(BY_ROWS_FIRST)
    assert made.waits and made.spark_is_up() and len(session.waited) == 5
