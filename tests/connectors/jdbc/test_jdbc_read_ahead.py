"""Rows that are read ahead come in their order, with their errors behind them; who wants no more of them ends their thread."""

import threading

import pytest

from connectors.jdbc.read_ahead import read_ahead
from tests.suite.patience import PATIENCE_SECONDS


def is_small(item):
    return item < 10


class Items:
    """A generator of these that notes in which threads it ran, and where it was closed."""

    def __init__(self, *items):
        self.threads, self.closed_in, self.read = [], None, []
        self.generator = self._generator(items)

    def _generator(self, items):
        try:
            for item in items:
                self.threads.append(threading.current_thread().name)
                self.read.append(item)
                if isinstance(item, Exception):
                    raise item
                yield item
        finally:
            self.closed_in = threading.current_thread().name


def test_they_come_in_order_and_from_the_first_large_one_on_by_another_thread():
    items = Items(1, 2, 30, 4, 50, 6)
    assert list(read_ahead(items.generator, is_small)) == [1, 2, 30, 4, 50, 6]
    here = threading.current_thread().name
    assert items.threads[:3] == [here] * 3 and set(items.threads[3:]) == {"jdbc-read-ahead"} == {items.closed_in}


def test_small_results_need_no_thread():
    items = Items(1, 2, 3)
    assert list(read_ahead(items.generator, is_small)) == [1, 2, 3]
    assert set(items.threads) == {threading.current_thread().name}


@pytest.mark.parametrize("before", [(), (1,), (10,), (10, 20, 30, 40)])
def test_an_error_comes_behind_what_was_read_before_it(before):
    found = []
    with pytest.raises(KeyError, match="lost"):
        for item in read_ahead(Items(*before, KeyError("lost")).generator, is_small):
            found.append(item)
    assert found == list(before)


def test_the_next_ones_are_read_while_one_is_worked_on():
    has_read = threading.Event()

    def items():
        yield 10
        yield 20
        has_read.set()
        yield 30

    ahead = read_ahead(items(), is_small)
    assert next(ahead) == 10
    assert has_read.wait(PATIENCE_SECONDS), "nothing was read ahead"
    assert list(ahead) == [20, 30]


def test_no_more_are_read_than_have_room():
    items = Items(*range(10, 1000))
    ahead = read_ahead(items.generator, is_small)
    assert [next(ahead) for _ in range(3)] == [10, 11, 12]
    ahead.close()
    assert len(items.read) <= 3 + 3  # one that waits, one that has no room, one that is read as it ends
    assert items.closed_in == "jdbc-read-ahead"
    assert all(thread.name != "jdbc-read-ahead" for thread in threading.enumerate())
