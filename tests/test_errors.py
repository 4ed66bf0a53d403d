"""What is shown of an error: its class, its message, where it was raised and of what it came; with the frames, and when they are gone."""

import dataclasses
import gc
import weakref

import pytest

from standalone.errors import DataError, shown_class, trace_of, without_frames


@dataclasses.dataclass(frozen=True)
class Frozen(Exception):
    text: str


class Held:
    pass


def _inner(kind, held):
    raise kind("inner")


def _outer(kind, held):
    try:
        _inner(kind, held)
    except Exception as error:
        raise DataError("outer") from error


def failed(kind, held=None):
    try:
        _outer(kind, held)
    except DataError as error:
        return error


@pytest.mark.parametrize("kind", [ValueError, Frozen, DataError])
def test_a_trace_reads_the_same_without_the_frames(kind):
    error = failed(kind)
    before = trace_of(error)
    held = Held()
    of_held, gone = failed(kind, held), weakref.ref(held)
    del held
    for each in (error, of_held):
        without_frames(each)
        without_frames(each)
    assert gone() is None
    assert trace_of(error) == before
    lines = before.splitlines()
    assert [line.split("(")[0].removeprefix("\tat ") for line in lines if line.startswith("\tat")] == ["_outer", "failed", "_inner", "_outer"]
    assert lines[0] == "org.apache.kafka.connect.errors.DataException: outer"
    assert [line for line in lines if line.startswith("Caused")] == [f"Caused by: {shown_class(error.__cause__)}: {error.__cause__}"]


def test_an_error_raised_again_shows_where():
    error = failed(ValueError)
    without_frames(error)
    with pytest.raises(DataError) as raised:
        raise error
    assert "\tat test_an_error_raised_again_shows_where(" in trace_of(raised.value)


def test_causes_in_a_circle_come_to_an_end():
    one, other = DataError("one"), DataError("other")
    one.__cause__, other.__cause__ = other, one
    without_frames(one)
    assert trace_of(one).count("\n") == 2


def test_two_functions_of_one_text_are_told_apart():
    """Places are known again by the code and the instruction: other code that has the memory of one that is gone is no such code."""

    def trace_in(name):
        scope = {}
        exec(f"def {name}():\n    raise ValueError('x')\n", scope)
        try:
            scope[name]()
        except ValueError as error:
            return trace_of(error)

    for at in range(300):
        assert f"\tat function_{at}(" in trace_in(f"function_{at}")
        gc.collect(0)
