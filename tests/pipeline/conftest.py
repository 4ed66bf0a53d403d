import importlib.util
import pathlib
import sys

import pytest

from standalone.pipeline import run
from standalone.pipeline.processes import pool
from standalone.pipeline.run import Pipeline


def _load(name, path):
    """As plugin.path does it: a file that is on no path becomes a module."""
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)


_load("pipeline_stages", pathlib.Path(__file__).parent / "stages.py")


@pytest.fixture
def spread_pipeline(monkeypatch):
    """Makes pipelines of a chain, which spread even some hundred records over processes; these end with them."""
    monkeypatch.setattr(run, "MIN_ROWS_TO_SPREAD", 100)
    made = []

    def make(chain, engine="auto"):
        made.append(Pipeline(chain, engine, cores=2))
        return made[-1]

    yield make
    for each in made:
        each.close()
    assert not pool._processes
