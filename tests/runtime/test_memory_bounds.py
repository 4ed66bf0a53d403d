"""The memory budget at its very bounds: what fits to the byte passes, and a batch larger than all of it passes once nothing is held."""

import threading

from standalone.runtime.tasks.memory import MemoryBudget
from tests.suite.patience import PATIENCE_SECONDS


def in_background(call):
    done = threading.Event()
    threading.Thread(target=lambda: (call(), done.set()), daemon=True).start()
    return done


def test_what_fills_the_whole_to_the_byte_passes():
    budget = MemoryBudget(100, 100)
    first, second = budget.share(), budget.share()
    assert first.take(40) and second.take(10)
    assert in_background(lambda: second.take(50)).wait(PATIENCE_SECONDS)


def test_a_batch_larger_than_the_bound_waits_until_nothing_is_held_and_passes_then():
    share = MemoryBudget(1000, 100).share()
    share.take(60)
    share.take(30)
    large = in_background(lambda: share.take(500))
    share.give(60)
    assert not large.wait(0.1)
    share.give(30)
    assert large.wait(PATIENCE_SECONDS)
