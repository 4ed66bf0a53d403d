"""The memory budget: bounded for one and for all, never a deadlock."""

import threading

from standalone.runtime.tasks.memory import MemoryBudget
from tests.runtime.local import wait_for
from tests.suite.patience import PATIENCE_SECONDS


def in_background(call):
    done = threading.Event()
    threading.Thread(target=lambda: (call(), done.set()), daemon=True).start()
    return done


def test_a_task_waits_at_its_own_bound_and_goes_on_when_some_is_given_back():
    share = MemoryBudget(1000, 100).share()
    assert share.take(60) and share.take(40)
    third = in_background(lambda: share.take(1))
    assert not third.wait(0.2)
    share.give(60)
    assert third.wait(PATIENCE_SECONDS)


def test_all_together_wait_at_the_whole():
    budget = MemoryBudget(100, 90)
    first, second = budget.share(), budget.share()
    assert first.take(45) and first.take(40)  # more than an equal part, but there is room
    assert second.take(5)
    more = in_background(lambda: second.take(60))
    assert not more.wait(0.2)
    first.give(60)
    assert more.wait(PATIENCE_SECONDS)


def test_who_holds_nothing_passes_with_any_size():
    share = MemoryBudget(10, 10).share()
    assert share.take(1000)


def test_closing_lets_a_waiting_task_go():
    share = MemoryBudget(10, 10).share()
    share.take(10)
    answers = []
    waiting = in_background(lambda: answers.append(share.take(5)))
    assert not waiting.wait(0.1)
    share.close()
    wait_for(lambda: answers == [False])


def test_what_a_closed_share_held_is_free_for_others():
    budget = MemoryBudget(100, 100)
    gone, other = budget.share(), budget.share()
    gone.take(90)
    other.take(5)
    gone.close()
    assert other.take(90)
