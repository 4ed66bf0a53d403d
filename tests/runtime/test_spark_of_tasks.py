"""What a sink's task may have the worker's Spark session do, and what happens to that when Spark does not come, or goes."""

import threading

import pytest

from standalone import ConnectError, RetriableError
from standalone.pipeline.spark.job import SparkGone, alone
from standalone.runtime.tasks.sink_context import SinkContext


class Holder:
    """A holder of sessions by hand: it has one after this many looks, and knows which errors were its Java process's end."""

    def __init__(self, after=0, failure=None, ends_by=()):
        self.failure, self._after, self._ends_by = failure, after, ends_by
        self.jobs = 0

    def wait(self, timeout):
        self._after -= 1
        return self if self._after < 0 else None

    def job(self):
        self.jobs += 1
        return self

    def __enter__(self):
        return "session"

    def __exit__(self, *_):
        pass

    def died(self, session, error):
        return isinstance(error, tuple(self._ends_by))


def context(holder, stopping=None):
    return SinkContext("c", 0, {}, None, None, None, lambda work: alone(holder, work, stopping or threading.Event()))


def test_work_is_done_in_the_session_once_it_is_up():
    holder = Holder(after=3)
    assert context(holder).spark(lambda session: f"done in {session}") == "done in session" and holder.jobs == 1


def test_spark_that_does_not_start_fails_the_task_and_says_why():
    with pytest.raises(ConnectError, match="Spark does not start: no Java") as raised:
        context(Holder(after=9, failure="no Java")).spark(lambda session: None)
    assert not isinstance(raised.value, RetriableError)


def test_a_task_that_is_being_stopped_waits_no_longer():
    stopping = threading.Event()
    stopping.set()
    with pytest.raises(RetriableError, match="being stopped"):
        context(Holder(after=9), stopping).spark(lambda session: None)


def test_a_java_process_that_ends_under_the_work_lets_it_be_done_again():
    def work(session):
        raise OSError("the connection is gone")

    with pytest.raises(RetriableError, match="ended under the work"):
        context(Holder(ends_by=[OSError])).spark(work)
    with pytest.raises(OSError, match="the connection is gone"):
        context(Holder()).spark(work)
    with pytest.raises(SparkGone):
        alone(Holder(ends_by=[OSError]), work)
