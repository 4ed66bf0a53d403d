"""What fuzzing kept (tests/log/corpus), and some inputs that were hard once, given to the codec, the parser, the log and its logins."""

import logging
import pathlib
import tracemalloc

import pytest

from tests.log.fuzz_targets import TARGETS

CORPUS = pathlib.Path(__file__).parent / "corpus"


@pytest.mark.parametrize("name", TARGETS)
def test_what_fuzzing_kept_is_dealt_with(name, caplog):
    caplog.set_level(logging.CRITICAL)
    target = TARGETS[name]()
    inputs = sorted((CORPUS / name).glob("*"))
    assert inputs
    for path in inputs:
        target(path.read_bytes())  # what is loaded late takes memory once
    tracemalloc.start()
    try:
        for path in inputs:
            try:
                target(path.read_bytes())
            except Exception as error:
                raise AssertionError(f"{path}: {error}") from error
    finally:
        tracemalloc.stop()
        if name == "log":
            target.close()
