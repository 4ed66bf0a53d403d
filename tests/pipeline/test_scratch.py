"""The folders of Java processes: what a killed worker has left is cleared away, what is in use stays."""

import os
import subprocess
import sys

import pytest

from standalone.pipeline.spark import scratch

OTHER = "import sys; from standalone.pipeline.spark import scratch; made = scratch.make(); print(made[0], flush=True); sys.stdin.read()"


@pytest.fixture
def others(tmp_path, monkeypatch):
    """Starts processes that have made a folder."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    started = []

    def start():
        process = subprocess.Popen(
            [sys.executable, "-c", OTHER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(tmp_path)}
        )
        started.append(process)
        return process, process.stdout.readline().strip()

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_what_a_killed_worker_has_left_is_cleared_away(others, tmp_path):
    killed, left = others()
    _, used = others()
    assert os.path.isdir(left)
    killed.kill()
    killed.wait()
    own, lock = scratch.make()
    with lock:
        assert sorted(os.listdir(tmp_path)) == sorted(map(os.path.basename, (used, own)))


def test_a_folder_stays_as_long_as_java_runs(others, tmp_path):
    folder, lock = scratch.make()
    java = subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=(lock.fileno(),))
    lock.close()  # as the system does it for a worker that was killed
    others()
    assert os.path.isdir(folder)
    java.communicate()
    others()
    assert not os.path.exists(folder)
