"""After the last step of the set-up the quickstart's lines wait for no compiler."""

import pathlib
import signal
import subprocess
import sys

from tests.command import Command
from tests.runtime.local import wait_for

CONFIG = pathlib.Path(__file__).parents[1] / "config"


def test_nothing_is_left_to_be_compiled_for_the_quickstart(tmp_path, monkeypatch):
    def compiled():
        return sorted(path.name for path in cache.rglob("*.nbc"))

    cache, lines, written = tmp_path / "cache", tmp_path / "test.txt", tmp_path / "test.sink.txt"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(cache))
    subprocess.run([sys.executable, "-m", "standalone.warm_up"], check=True, timeout=300)
    before = compiled()
    command = Command(tmp_path)
    json = "org.apache.kafka.connect.json.JsonConverter"
    lines.write_text("foo\nbar\n")
    connectors = [str(CONFIG / f"connect-file-{kind}.properties") for kind in ("source", "sink")]
    command.start(command.worker(key__converter=json, value__converter=json), *connectors)
    try:
        wait_for(lambda: written.exists() and written.read_text() == lines.read_text(), 60, "the lines")
        with lines.open("a") as file:
            file.write("and many more\n" * 30_000)
        wait_for(lambda: written.read_text() == lines.read_text(), 60, "all lines")
    finally:
        command.stop(signal.SIGTERM)
    assert len(before) > 20 and compiled() == before
