"""LookAhead hands over what the chain was begun with, in order, within its bounds; what is forgotten is told, and nothing else is lost."""

import pytest
from pytest import param

from standalone.runtime.tasks.look_ahead import MOST_BATCHES, MOST_BYTES, LookAhead


class Work:
    """A batch at work that is done when the test says so, or when it is waited for."""

    def __init__(self, name, under_way=True, error=None):
        self.name, self.is_under_way, self.error = name, under_way, error
        self.was_waited_for = False

    def result(self):
        self.was_waited_for, self.is_under_way = self.is_under_way, False
        if self.error is not None:
            raise self.error
        return self.name.upper()


def begun(*works, nbytes=1):
    """A LookAhead that was given these, by their names."""
    ahead = LookAhead()
    for work in works:
        ahead.add(work.name, work, nbytes)
    return ahead


def names(done):
    return [batch for batch, _ in done]


def test_batches_come_in_order_whichever_is_done_first():
    a, b, c = Work("a"), Work("b", under_way=False), Work("c", under_way=False)
    ahead = begun(a, b)
    assert list(ahead.done()) == [] and ahead.is_busy
    a.is_under_way = False
    ahead.add("c", c, 1)
    assert list(ahead.done()) == [("a", "A"), ("b", "B"), ("c", "C")] and not ahead.is_busy


def test_what_is_still_worked_on_is_waited_for_only_where_the_caller_has_nothing_else_to_do():
    a, b = Work("a"), Work("b")
    ahead = begun(a, b)
    assert names(ahead.done(wait=True)) == ["a"] and a.was_waited_for and not b.was_waited_for
    assert names(ahead.all_done()) == ["b"] and b.was_waited_for


@pytest.mark.parametrize(
    "count, nbytes, handed_over",
    [
        param(MOST_BATCHES - 1, 1, 0, id="few and small ones wait"),
        param(MOST_BATCHES, 1, 1, id="too many: the first is waited for"),
        param(MOST_BATCHES + 2, 1, 3, id="as many as there are too many"),
        param(2, MOST_BYTES // 2, 1, id="too large together"),
        param(1, MOST_BYTES, 1, id="one that is too large by itself"),
        param(2, MOST_BYTES // 2 - 1, 0, id="just not too large"),
    ],
)
def test_what_is_under_way_is_bounded_in_batches_and_in_bytes(count, nbytes, handed_over):
    works = [Work(str(at)) for at in range(count)]
    assert names(begun(*works, nbytes=nbytes).done()) == [work.name for work in works[:handed_over]]


def test_what_is_done_here_is_done_when_its_turn_has_come_and_not_before():
    a, here = Work("a"), Work("b", under_way=False)
    ahead = begun(a, here)
    done = ahead.done(wait=True)
    assert next(done) == ("a", "A")
    here.result = lambda: pytest.fail("it was processed before it was asked for")
    assert ahead.is_busy
    with pytest.raises(pytest.fail.Exception):
        next(done)


def test_what_is_forgotten_is_told_in_order_and_the_rest_still_comes():
    ahead = LookAhead()
    for partition, offset in ((0, 10), (1, 5), (0, 20), (1, 9)):
        ahead.add((partition, offset), Work(f"{partition}/{offset}"), 1)
    assert ahead.forget(lambda batch: batch[0] == 0) == [(0, 10), (0, 20)]
    assert names(ahead.all_done()) == [(1, 5), (1, 9)]
    assert ahead.forget() == [] and not ahead.is_busy


def test_forgotten_batches_leave_room():
    ahead = begun(*(Work(str(at)) for at in range(MOST_BATCHES)))
    ahead.forget(lambda batch: batch == "0")
    assert names(ahead.done()) == []


def test_what_a_batch_raises_is_raised_in_its_turn_and_those_behind_it_are_still_there():
    ahead = begun(Work("a", False), Work("b", False, ValueError("the task fails")), Work("c", False))
    done = ahead.done()
    assert next(done) == ("a", "A")
    with pytest.raises(ValueError, match="the task fails"):
        next(done)
    assert names(ahead.all_done()) == ["c"]
