"""What the worker keeps is its owner's alone: new files of its state, its offsets, its log and what it says are 0600."""

import ast
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys

import pytest

from tests.command import GOOD
from tests.runtime.local import LocalWorker, wait_for

ROOT = pathlib.Path(__file__).parent.parent.parent
WRITES = re.compile(r"[wax+]")


@pytest.fixture(autouse=True)
def open_umask():
    before = os.umask(0)
    yield
    os.umask(before)


def modes(folder, but=()):
    return {
        str(path.relative_to(folder)): oct(stat.S_IMODE(path.stat().st_mode)) for path in folder.rglob("*") if path.is_file() and path.name not in but
    }


def test_what_a_worker_keeps(tmp_path):
    shutil.copy(ROOT / "tests/golden/java-offsets.bin", tmp_path / "connect.offsets")
    with LocalWorker(tmp_path, offset__flush__interval__ms="20") as worker:
        worker.run_source({"connector.class": "FileStreamSource", "topic": "t"}, lines=["one", "two"])
        worker.run_sink({"connector.class": "FileStreamSink", "file": str(tmp_path / "out"), "topics": "t"}, [b"three"])
        found = modes(tmp_path, but=("out", "tested.lines"))
    assert {"connect.offsets", "connect.offsets.java", "connect.offsets.state/state.sqlite", "connect.offsets.state/log/log.sqlite"} <= set(found)
    assert any(name.endswith("/00000000000000000000.log") for name in found)
    found.update(modes(tmp_path, but=("out", "tested.lines")))
    assert {name: mode for name, mode in found.items() if mode != "0o600"} == {}
    assert stat.S_IMODE((tmp_path / "connect.offsets.state").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o666, "what a sink writes is for others, as the umask says"


def test_what_a_daemon_says(tmp_path):
    props = tmp_path / "worker.properties"
    props.write_text("".join(f"{key}={value}\n" for key, value in {**GOOD, "no.such.converter": "x", "key.converter": "no.such.Converter"}.items()))
    command = [sys.executable, "-m", "standalone.cli.worker", "-daemon", str(props)]
    subprocess.run(command, cwd=ROOT, env={**os.environ, "LOG_DIR": str(tmp_path / "logs")}, timeout=60, check=True)
    said = tmp_path / "logs" / "connect-standalone.out"
    assert stat.S_IMODE(said.stat().st_mode) == 0o600
    wait_for(lambda: "no.such.Converter" in said.read_text(), what="it to say why it ends")


def _creating_calls(tree):
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Name) and node.func.id == "open":
            mode = node.args[1].value if len(node.args) > 1 and isinstance(node.args[1], ast.Constant) else "r"
            if WRITES.search(mode) and not mode.startswith("r") and not any(keyword.arg == "opener" for keyword in node.keywords):
                yield node.lineno


# Caches and settings of Spark, which hold nothing of anybody's data.
OTHERS = {"machine_code.py", "pipeline/spark/archive.py", "pipeline/spark/session.py", "warm_up.py", "local_worker.py", "testing.py", "suites.py", "rest/tls.py"}


@pytest.mark.parametrize("path", sorted((ROOT / "standalone").rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT / "standalone")))
def test_no_file_is_made_in_another_way(path):
    if str(path.relative_to(ROOT / "standalone")) in OTHERS:
        return
    assert list(_creating_calls(ast.parse(path.read_text()))) == [], "open_private makes files that are the owner's alone"
