"""A short form of scripts/soak/spark_kill.py: Spark's Java process ends again and again under chains, and no record is lost, repeated or skipped."""

import importlib.util
import pathlib
import sys

import pytest

PATIENCE_SECONDS = 60  # until jobs are done again, on a machine where much else runs

pytestmark = pytest.mark.spark


@pytest.fixture
def soak(spark_holder, monkeypatch):
    """The script as a module; the run's own Spark session is the worker's, for a process holds no second one."""
    path = pathlib.Path(__file__).parents[2] / "scripts" / "soak" / "spark_kill.py"
    spec = importlib.util.spec_from_file_location("spark_kill", path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "spark_kill", module)
    spec.loader.exec_module(module)
    monkeypatch.setattr("standalone.runtime.worker.SessionHolder", lambda conf, start, prepare=None: _Shared(spark_holder))
    return module


class _Shared:
    """The session of all tests, which a worker must not end."""

    def __init__(self, holder):
        self._holder = holder
        self.start = "auto"

    def __getattr__(self, name):
        return getattr(self._holder, name)

    def stop(self, *given):
        pass


@pytest.mark.last
def test_a_java_that_is_killed_again_and_again_costs_no_record(soak, tmp_path):
    """All chains with each tolerance in one worker: a start of Java costs more than all the rest."""
    wrong, pauses = soak.soak(tmp_path, 1)
    assert not wrong and len(pauses) == 1 and max(pauses) < PATIENCE_SECONDS, (wrong, pauses)
