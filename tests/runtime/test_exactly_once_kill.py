"""A worker whose sources write in transactions is killed: readers of committed records see each line once, in order (a short soak)."""

import importlib.util
import pathlib
import random
import sys

import pytest

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "soak"


@pytest.mark.slow
def test_lines_come_once_and_in_order_though_the_worker_is_killed(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    spec = importlib.util.spec_from_file_location("soak_exactly_once", FOLDER / "exactly_once.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    run = module.Run(tmp_path, None)
    try:
        module.soak(run, kills=2, lines=4000, chance=random.Random(3))
    finally:
        sys.modules["watched"].kill(run.process)
