"""LogSource and FileStreamSource through the cases by which other followers of files are judged (tests/connectors/rotation_cases.py)."""

import pytest

from tests.connectors.logs.driven import Reader
from tests.connectors.rotation_cases import CASES, Scene
from tests.connectors.test_file_rotation import Reader as FileReader


class Driven:
    """One of our sources as the reader of a Scene."""

    def __init__(self, reader):
        self._reader = reader

    def start(self):
        self._reader.start()

    def stop(self):
        self._reader.stop()

    def kill(self):
        self._reader.poll(acknowledge=False)
        self._reader.stop()

    def moment(self):
        self._reader.poll()

    def catch_up(self, count=None):
        return self._reader.drain()


READERS = {
    "app.log": lambda folder: Reader(folder / "app.log"),
    "app*": lambda folder: Reader(folder / "app*"),
    "FileStreamSource": lambda folder: FileReader(folder / "app.log"),
}


# FileStreamSource reads no compressed files.
PAIRS = [(case, kind) for case in CASES for kind in READERS if not (case.packs and kind == "FileStreamSource")]


@pytest.mark.parametrize("case, kind", PAIRS, ids=[f"{case.family}: {case.name}-{kind}" for case, kind in PAIRS])
def test_every_line_comes_once_and_in_order(case, kind, tmp_path):
    reader = Driven(READERS[kind](tmp_path))
    scene = Scene(tmp_path, reader, **case.log)
    reader.start()
    try:
        case.act(scene)
        came = reader.catch_up()
        assert not scene.verdict(came), came
    finally:
        reader.stop()
