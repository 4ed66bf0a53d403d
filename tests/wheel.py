"""The wheel, built and installed into its own environment: what a user who never sees this repository gets."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import urllib.request

from tests.runtime.local import wait_for
from tests.servers.kafka_broker import free_port

ROOT = pathlib.Path(__file__).parent.parent
_SOURCES = ("setup.cfg", "pyproject.toml", "README.md", "LICENSE", "standalone", "connectors", "config")
_PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]


def build(folder):
    """The path of the wheel of this checkout; nothing is written into the checkout."""
    source = folder / "source"
    source.mkdir()
    for name in _SOURCES:
        path = ROOT / name
        if path.is_dir():
            shutil.copytree(path, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(path, source)
    _run([*_PIP, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder / "dist", source])
    return next((folder / "dist").glob("connect_standalone-*.whl"))


def install_beside(wheel, folder):
    """An environment with the wheel, and with everything else from the one that runs this: no package is fetched."""
    _run([sys.executable, "-m", "venv", "--without-pip", folder])
    _run([*_PIP, "--python", folder / "bin" / "python", "install", "--no-deps", "--no-index", wheel])
    lines = next(folder.glob("lib/python*/site-packages")) / "others.pth"
    lines.write_text("".join(f"{path}\n" for path in sys.path if path.endswith("site-packages")))
    return folder / "bin"


def install(wheel, folder, python=sys.executable, extras=""):
    """An environment with the wheel and what it needs, from the package index."""
    _run([python, "-m", "venv", folder])
    _run([folder / "bin" / "pip", "--disable-pip-version-check", "--quiet", "install", f"{wheel}{f'[{extras}]' if extras else ''}"])
    return folder / "bin"


def quickstart(commands, folder):
    """Run the quickstart by the commands in that folder of an environment, as the README tells; what `connectctl list` says of it."""
    folder.mkdir()
    _run([commands / "connectctl", "init", "."], folder)
    worker = folder / "connect-standalone.properties"
    port, log = free_port(), free_port()
    worker.write_text(f"{worker.read_text()}\nlisteners=http://127.0.0.1:{port}\nembedded.log.listener=127.0.0.1:{log}\n")
    files = ["connect-standalone.properties", "connect-file-source.properties", "connect-file-sink.properties"]
    with open(folder / "worker.log", "w+") as output:
        process = subprocess.Popen([commands / "connect-standalone", *files], cwd=folder, stdout=output, stderr=subprocess.STDOUT, env=_environment())
        try:
            wait_for(lambda: process.poll() is not None or _is_up(port), 120)
            assert process.poll() is None, (folder / "worker.log").read_text()
            (folder / "test.txt").write_text("foo\nbar\n")
            sink = folder / "test.sink.txt"
            wait_for(lambda: sink.exists() and sink.read_text() == "foo\nbar\n", 120)
            listed = _run([commands / "connectctl", "--url", f"http://127.0.0.1:{port}", "list", "--json"], folder)
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
            said = (folder / "worker.log").read_text()
            assert " WARN " not in said and " ERROR " not in said, said
            return json.loads(listed)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()


def _is_up(port):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
            return answer.status == 200
    except OSError:
        return False


def _environment():
    """Without what would lead the commands to this checkout."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}


def _run(command, folder=None):
    done = subprocess.run([str(part) for part in command], cwd=folder, env=_environment(), capture_output=True, text=True)
    assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout
