"""The modules that executors import: this project's packages and the files of plugin.path, in one archive, with their bytecode.

    modules = Modules(plugin_path)
    modules.send(session)     executors of that session unpack the archive before their next task
"""

import contextlib
import importlib.util
import marshal
import os
import struct
import tempfile
import threading
import zipfile
from pathlib import Path

from standalone.errors import ConnectError
from standalone.machine_code import FOR_A_WHILE
from standalone.pipeline.spark.executors import ARCHIVE

PLUGINS = "plugin-path"  # folder in the archive with one folder for each entry of plugin.path
_OURS = ("standalone", "connectors")
_MOST_BYTES = 64 << 20
_LEFT_OUT = (".jar", ".pyc", ".so", ".nbi", ".nbc")
_BY_TIME, _UNCHECKED = 0, 1  # flags in a bytecode file: valid for a source of that time and size; valid whatever the source's time is


class Modules:
    """The archive, created on first use. Thread-safe."""

    def __init__(self, plugin_path):
        self._plugin_path = plugin_path
        self._lock = threading.Lock()
        self._folder = None
        self._entries = []
        self._sent_to = None  # the session to whose executors it was sent

    def plugins(self):
        """[folder in the archive] of each entry of plugin.path."""
        with self._lock:
            self._path()
            return self._entries

    def send(self, session):
        with self._lock:
            if self._sent_to is not session:
                session.sparkContext.addArchive(f"{self._path()}#{ARCHIVE}")
                self._sent_to = session

    def close(self):
        with self._lock:
            folder, self._folder = self._folder, None
        if folder is not None:
            folder.cleanup()

    def _path(self):
        if self._folder is None:
            folder = tempfile.TemporaryDirectory(prefix="connect-modules-", ignore_cleanup_errors=True)
            self._entries = make_archive(os.path.join(folder.name, "modules.zip"), self._plugin_path)
            self._folder = folder
        return os.path.join(self._folder.name, "modules.zip")


def make_archive(path, plugin_path):
    """Write the archive; return [folder in the archive] of each entry of plugin.path."""
    ours = Path(__file__).parents[3]
    entries = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for package in _OURS:
            _add_folder(archive, ours / package, package)
        archive.writestr(FOR_A_WHILE, "")
        if (ours / "setup.cfg").exists():  # a source checkout, which declares its plugins there
            archive.write(ours / "setup.cfg", "setup.cfg")
        for number, entry in enumerate(filter(None, plugin_path or ())):
            entries.append(f"{PLUGINS}/{number}")
            _add_plugins(archive, Path(entry).expanduser().absolute(), entries[-1])
    return entries


def _add_plugins(archive, entry, within):
    if entry.is_file():
        _add_file(archive, entry, f"{within}/{entry.name}")
    elif (entry / "__init__.py").exists():
        _add_folder(archive, entry, f"{within}/{entry.name}")
    elif entry.is_dir():
        for each in sorted(entry.iterdir()):
            if each.suffix == ".py":
                _add_file(archive, each, f"{within}/{each.name}")
            elif each.is_dir() and ((each / "__init__.py").exists() or any(each.glob("*.py"))):
                _add_folder(archive, each, f"{within}/{each.name}")


def _add_folder(archive, folder, within):
    size = 0
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts and path.suffix not in _LEFT_OUT:
            size += path.stat().st_size
            if size > _MOST_BYTES:
                raise ConnectError(f"{folder} has more than {_MOST_BYTES >> 20} MiB, which is too much to send to executors as a plugin.")
            _add_file(archive, path, os.path.join(within, path.relative_to(folder)))


def _add_file(archive, path, within):
    archive.write(path, within)
    if path.suffix == ".py" and (bytecode := _bytecode(path)) is not None:
        archive.writestr(importlib.util.cache_from_source(within), bytecode)


def _bytecode(path):
    """Compile the file to bytecode that is valid wherever it is unpacked; None if that fails. Without it each process on an executor would
    compile all its imports."""
    source, found = path.read_bytes(), path.stat()
    by_time = importlib.util.MAGIC_NUMBER + struct.pack("<III", _BY_TIME, int(found.st_mtime) & 0xFFFFFFFF, found.st_size & 0xFFFFFFFF)
    cached = b""
    with contextlib.suppress(OSError):
        cached = Path(importlib.util.cache_from_source(path)).read_bytes()  # saves compiling
    if cached.startswith(by_time):
        code = cached[len(by_time) :]
    else:
        try:
            code = marshal.dumps(compile(source, str(path), "exec", dont_inherit=True))
        except (SyntaxError, ValueError):
            return None
    return importlib.util.MAGIC_NUMBER + struct.pack("<I", _UNCHECKED) + importlib.util.source_hash(source) + code
