import importlib.util
import pathlib
import sys

import pytest

from standalone.pipeline.session import SessionHolder


def _load(name, path):
    """As plugin.path does it: a file that is on no path becomes a module."""
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)


_load("pipeline_stages", pathlib.Path(__file__).parent / "stages.py")


@pytest.fixture(scope="session")
def spark_holder():
    """One Spark session for the whole run."""
    holder = SessionHolder({"spark.master": "local[2]"}, archive_after_seconds=None)
    holder.request()
    if holder.wait(120) is None:
        pytest.skip(f"no Spark session: {holder.failure}")
    yield holder
    holder.stop()
