"""The judge of overlapping calls is itself judged: it finds the order where there is one, and no other."""

import pytest

from standalone.errors import NotFoundError
from tests.runtime.one_order import Answer, one_order

RUNS = ("1", "STARTED")


def call(act, said=None, at=(0, 9), n="2"):
    return Answer("a", act, n, said, *at)


@pytest.mark.parametrize(
    "answers, before, after, explained",
    [
        pytest.param([], RUNS, RUNS, True, id="nothing was called"),
        pytest.param([], RUNS, None, False, id="nothing was called, and it is gone"),
        pytest.param([call("put", True)], None, ("2", "STARTED"), True, id="it is made"),
        pytest.param([call("put", True)], RUNS, ("2", "STARTED"), False, id="it is made although it was there"),
        pytest.param([call("put", False), call("stop")], RUNS, ("2", "STOPPED"), True, id="two changes"),
        pytest.param([call("put", False), call("stop")], RUNS, ("1", "STOPPED"), False, id="two changes, one of which is lost"),
        pytest.param([call("put", False), call("patch", n="3")], RUNS, ("2", "STARTED"), True, id="either is the last"),
        pytest.param([call("put", False, (0, 1)), call("patch", None, (2, 3), "3")], RUNS, ("2", "STARTED"), False, id="the first is not the last"),
        pytest.param([call("delete"), call("put", True)], RUNS, ("2", "STARTED"), True, id="deleted, then made"),
        pytest.param([call("delete"), call("put", False)], RUNS, None, True, id="changed, then deleted"),
        pytest.param([call("delete"), call("put", False)], RUNS, ("2", "STARTED"), False, id="deleted and changed"),
        pytest.param([call("delete"), call("delete")], RUNS, None, False, id="deleted twice"),
        pytest.param([call("delete"), call("delete", NotFoundError)], RUNS, None, True, id="deleted by one"),
        pytest.param([call("pause", NotFoundError)], RUNS, RUNS, False, id="what is there is not found"),
        pytest.param([call("get", "1"), call("patch")], RUNS, ("2", "STARTED"), True, id="looked at before the change"),
        pytest.param([call("patch", None, (0, 1)), call("get", "1", (2, 3))], RUNS, ("2", "STARTED"), False, id="an old answer"),
        pytest.param([call("reset")], RUNS, RUNS, False, id="offsets of a connector that runs"),
        pytest.param([call("reset"), call("stop"), call("resume")], RUNS, RUNS, True, id="offsets between a stop and a resume"),
    ],
)
def test_calls_are_explained_by_one_order_or_by_none(answers, before, after, explained):
    assert one_order(answers, before, after) is explained
