import pytest

from tests.connectors.logs.driven import Reader
from tests.connectors.rotated_log import Log


@pytest.fixture
def log(tmp_path):
    return Log(str(tmp_path))


@pytest.fixture
def reader():
    """Makes readers, and stops them in the end."""
    made = []

    def make(paths, start=True, **props):
        made.append(Reader(paths, **props))
        return made[-1].start() if start else made[-1]

    yield make
    for each in made:
        each.stop()
