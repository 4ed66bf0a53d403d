"""What takes too long for every commit runs at night: tests and parameters that are marked `night`.

    @pytest.mark.night                                       a test
    @pytest.mark.parametrize("kind", ["a", *night("b")])     a value
    CONNECT_TEST_NIGHT=1 scripts/test tests/streams          with them; scripts/nightly sets it

docs/CONTRIBUTING.md lists the files, and which tests of every commit hold the same behaviour.
"""

import os

import pytest

IS_NIGHT = os.environ.get("CONNECT_TEST_NIGHT") == "1"


def night(*values):
    """These parameters, for the night alone."""
    return [pytest.param(value, marks=pytest.mark.night) for value in values]


def pytest_collection_modifyitems(config, items):
    if IS_NIGHT:
        return
    left_out = [item for item in items if item.get_closest_marker("night")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("night")]
