"""How often, how long and with which pauses a stage is tried again, on a clock that a test moves."""

import itertools

import pytest

from standalone import RetriableError
from standalone.errors import Stopped
from standalone.runtime.failures.retries import Retries
from standalone.runtime.failures.tolerance import ErrorCounters


class Clock:
    """Waiting moves it; it notes each wait, and may be stopped in one."""

    def __init__(self, stops_in=None):
        self.now, self.waits, self.stops_in = 0.0, [], stops_in

    def monotonic(self):
        return self.now

    def wait(self, event, seconds):
        self.waits.append(round(seconds, 3))
        self.now = round(self.now + seconds, 6)
        return len(self.waits) == self.stops_in


def retries(clock, timeout_ms, most_ms=60_000):
    return Retries({"errors.retry.timeout": timeout_ms, "errors.retry.delay.max.ms": most_ms}, ErrorCounters(), clock)


def failing(times):
    """A call that fails so often, and then returns how often it was called."""
    calls = itertools.count(1)

    def call():
        at = next(calls)
        if at <= times:
            raise RetriableError(f"attempt {at}")
        return at

    return call


def test_pauses_double_from_300_ms_until_the_call_succeeds():
    clock = Clock()
    tried = retries(clock, 60_000)
    assert tried(failing(3), RetriableError("first")) == 4
    assert clock.waits == [0.3, 0.6, 1.2, 2.4]
    assert (tried._counters.total_retries, tried._counters.total_record_failures) == (4, 4)


def test_without_a_time_for_it_nothing_is_tried_again():
    first = RetriableError("first")
    with pytest.raises(RetriableError) as caught:
        retries(Clock(), 0)(failing(0), first)
    assert caught.value is first


@pytest.mark.parametrize("timeout_ms, waits", [(900, [0.3, 0.6]), (901, [0.3, 0.6, 0.001]), (1000, [0.3, 0.6, 0.1])])
def test_the_time_for_it_bounds_the_last_pause_and_ends_with_the_last_error(timeout_ms, waits):
    clock = Clock()
    with pytest.raises(RetriableError, match=f"attempt {len(waits)}"):
        retries(clock, timeout_ms)(failing(99), RetriableError("first"))
    assert clock.waits == waits


def test_a_time_below_zero_never_ends():
    clock = Clock()
    assert retries(clock, -1)(failing(50), RetriableError("first")) == 51
    assert len(clock.waits) == 51


def test_pauses_beyond_the_bound_are_by_chance_below_it():
    pauses = list(itertools.islice(retries(Clock(), -1, most_ms=1000).pauses(), 60))
    assert pauses[:2] == [0.3, 0.6]
    assert all(0 <= pause <= 1.0 for pause in pauses[2:]) and len(set(pauses[2:])) > 50


def test_a_task_that_is_to_stop_ends_the_pause():
    clock = Clock(stops_in=2)
    with pytest.raises(Stopped, match="the record is redelivered"):
        retries(clock, -1)(failing(99), RetriableError("first"))
    assert len(clock.waits) == 2
