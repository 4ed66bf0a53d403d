"""The checker of scripts/soak/transactions.py: a round of it on the embedded log, and that it finds what does not fit."""

import importlib.util
import pathlib
import sys

import pytest
from pytest import param

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def checker():
    folder = ROOT / "scripts" / "soak"
    sys.path.insert(0, str(folder))
    try:
        spec = importlib.util.spec_from_file_location("soak_transactions", folder / "transactions.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.path.remove(str(folder))


def test_a_round_with_kills_and_pauses_fits(checker, tmp_path):
    log = checker.Embedded(tmp_path / "log").start()
    try:
        wrong, told = checker.a_round(log, 0, 3, "short")
    finally:
        log.stop()
    assert wrong == [], told


FINAL = {(0, 0): b"p:0", (0, 1): b"p:1", (0, 3): b"t:0", (0, 4): b"t:1"}


@pytest.mark.parametrize(
    "plain, transactions, seen, final, said",
    [
        param({b"p:0": True, b"p:1": True}, [("committed", [b"t:0", b"t:1"])], [FINAL], FINAL, None, id="all fits"),
        param({b"p:2": True}, [], [], FINAL, "lost", id="an acknowledged record is missing"),
        param({b"p:2": False}, [], [], FINAL, None, id="one that was not acknowledged may be"),
        param({}, [("committed", [b"t:1", b"t:2"])], [], FINAL, "lost", id="a part of a committed transaction is missing"),
        param({}, [("aborted", [b"t:1"])], [], FINAL, "dirty", id="an aborted record is seen"),
        param({}, [("unknown", [b"t:1", b"t:2"])], [], FINAL, "torn", id="a transaction is torn"),
        param({}, [("unknown", [b"t:0", b"t:1"])], [], FINAL, None, id="one that was not answered may be there"),
        param({}, [], [], {**FINAL, (1, 0): b"p:0"}, "doubled", id="a record is there twice"),
        param({}, [], [], {(0, 0): b"p:1", (0, 1): b"p:0"}, "order", id="out of order"),
        param({}, [], [{(0, 0): b"p:9"}], FINAL, "unstable", id="a reader saw what is not there"),
        param({}, [], [{(0, 1): b"p:1"}], FINAL, "unstable", id="a reader skipped a record"),
    ],
)
def test_the_checker_finds_what_does_not_fit(checker, plain, transactions, seen, final, said):
    notes = checker.Notes()
    notes.plain, notes.transactions, notes.seen = plain, transactions, seen
    assert [each.partition(":")[0] for each in checker.check(notes, final)] == ([said] if said else [])
