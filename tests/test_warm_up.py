"""Nobody waits for a compiler: not after the set-up, and not where there was none."""

import importlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import pytest

from standalone.kernels import kernels
from standalone.warm_up import MODULES
from tests.command import Command
from tests.runtime.local import STRING, wait_for
from tests.suite.night import IS_NIGHT

JSON = "org.apache.kafka.connect.json.JsonConverter"
INSTALLATIONS = 10 if IS_NIGHT else 1  # without compiled code
SECONDS = 60  # on a machine that does much else, where to compile takes minutes
for module in MODULES:
    importlib.import_module(module)
QUICKLY_COMPILED = ("standalone.kernels.gather", "standalone.kernels.join")
KERNELS = [kernel.name for kernel in kernels() if kernel.signature and kernel.name.startswith("standalone.")]
SINK = {
    "name": "sink",
    "connector.class": "FileStreamSink",
    "topics": "t",
    "value.converter": JSON,
    "value.converter.schemas.enable": "false",
    "transforms": "add,rename,mask",
    "transforms.add.type": "org.apache.kafka.connect.transforms.InsertField$Value",
    "transforms.add.static.field": "from",
    "transforms.add.static.value": "here",
    "transforms.rename.type": "org.apache.kafka.connect.transforms.ReplaceField$Value",
    "transforms.rename.renames": "line:text",
    "transforms.mask.type": "org.apache.kafka.connect.transforms.MaskField$Value",
    "transforms.mask.fields": "secret",
}


class Installation:
    """A worker with a source of JSON strings, and a sink that reads them as JSON through three links."""

    def __init__(self, folder, cache):
        folder.mkdir(exist_ok=True)
        self.cache = cache
        self.lines, self.written = folder / "lines", folder / "written"
        self.lines.touch()
        self.command = Command(folder)
        self.files = [
            self.command.connector("source.properties", name="source", topic="t", file=str(self.lines)),
            self.command.file("sink.properties", "".join(f"{key}={value}\n" for key, value in {**SINK, "file": self.written}.items())),
        ]

    def __enter__(self):
        self._began = time.monotonic()
        worker = self.command.worker(key__converter=STRING, value__converter=STRING, spark__start="lazy")
        self.command.start(worker, *self.files, NUMBA_CACHE_DIR=str(self.cache))
        return self

    def __exit__(self, *_):
        self.command.stop(signal.SIGTERM)

    def send(self, count):
        """Write so many records and wait until they came out."""
        before = self.came()
        with self.lines.open("a") as file:
            file.write('{"line":"some text","n":1.5,"secret":"x"}\n' * count)
        wait_for(lambda: self.came() == before + count, what=f"{count} records: {self.command.output()[-2000:]}")

    def seconds(self):
        """Since the worker was started."""
        return time.monotonic() - self._began

    def came(self):
        return self.written.read_text().count("{text=some text, n=1.5, secret=, from=here}\n") if self.written.exists() else 0

    def code(self):
        return sorted(path.name for path in self.cache.glob("[!.]*")) if self.cache.exists() else []

    def compiling(self):
        """The processes that compile for this installation."""
        found = []
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                is_ours = str(self.cache).encode() in (folder / "environ").read_bytes()
                if is_ours and b"standalone.warm_up" in (folder / "cmdline").read_bytes():
                    found.append(int(folder.name))
            except OSError:
                continue
        return found


@pytest.mark.parametrize("at", range(INSTALLATIONS))
def test_the_first_record_of_an_installation_without_compiled_code_waits_for_no_compiler(tmp_path, at):
    with Installation(tmp_path / "worker", tmp_path / "cache") as installation:
        installation.send(1)
        assert installation.seconds() < SECONDS
        assert len(installation.code()) < len(KERNELS) and len(installation.compiling()) == 1
        installation.send(500)
    wait_for(lambda: not installation.compiling(), what="the compiling process to end with its worker")
    assert "WARN" not in installation.command.output()


def test_after_the_set_up_nothing_is_left_to_be_compiled(tmp_path):
    """All but a few kernels have their code from this run's own folder: each has a file, named by what it is made from."""

    def set_up():
        ran = subprocess.run([sys.executable, "-m", "standalone.warm_up"], env=environment, stderr=subprocess.PIPE, text=True, timeout=600)
        return ran.returncode, ran.stderr

    cache = tmp_path / "cache"
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    total = len(KERNELS)
    missing = total if IS_NIGHT else keep_code(cache, all_but=QUICKLY_COMPILED)
    assert set_up() == (0, f"Compiling: 0 of {missing}\nCompiling: {missing} of {missing}\n")
    assert set_up() == (0, "")
    with Installation(tmp_path / "worker", cache) as installation:
        before = installation.code()
        installation.send(1)
        installation.send(30_000)
        assert len(before) == total and installation.code() == before and installation.compiling() == []


def keep_code(cache, all_but):
    """Copy the machine code that this process runs to that folder, but for those kernels'; how many they are."""
    cache.mkdir(mode=0o700)
    left_out = 0
    for kernel in kernels():
        if kernel.signature and kernel.name.startswith("standalone."):
            path = kernel._code.path()
            assert path is not None, f"{kernel.name} was compiled before the first test"
            if kernel.name in all_but:
                left_out += 1
            else:
                shutil.copy(path, cache)
    assert left_out == len(all_but)
    return left_out


def test_a_set_up_that_can_keep_nothing_says_so(tmp_path):
    (tmp_path / "file").touch()
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "file")}
    ran = subprocess.run([sys.executable, "-m", "standalone.warm_up"], env=environment, stderr=subprocess.PIPE, text=True, timeout=60)
    assert ran.returncode == 1 and "set NUMBA_CACHE_DIR to a writable folder" in ran.stderr and "Traceback" not in ran.stderr
