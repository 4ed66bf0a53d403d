"""What executors import: our own packages and the files of plugin.path, in one archive."""

import os
import zipfile
from pathlib import Path

from standalone.errors import ConnectError
from standalone.machine_code import FOR_A_WHILE

PLUGINS = "plugin-path"  # the folder within for what plugin.path names: one folder for each of its entries
_OURS = ("standalone", "connectors")
_MOST_BYTES = 64 << 20
_LEFT_OUT = (".jar", ".pyc", ".so", ".nbi", ".nbc")


def make_archive(path, plugin_path):
    """Write it; [folder within the archive] of each entry of plugin.path."""
    ours = Path(__file__).parents[3]
    entries = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for package in _OURS:
            _add_folder(archive, ours / package, package)
        archive.writestr(FOR_A_WHILE, "")
        if (ours / "setup.cfg").exists():  # a checkout, whose plugins are declared there
            archive.write(ours / "setup.cfg", "setup.cfg")
        for number, entry in enumerate(filter(None, plugin_path or ())):
            entries.append(f"{PLUGINS}/{number}")
            _add_plugins(archive, Path(entry).expanduser().absolute(), entries[-1])
    return entries


def _add_plugins(archive, entry, within):
    if entry.is_file():
        archive.write(entry, f"{within}/{entry.name}")
    elif (entry / "__init__.py").exists():
        _add_folder(archive, entry, f"{within}/{entry.name}")
    elif entry.is_dir():
        for each in sorted(entry.iterdir()):
            if each.suffix == ".py":
                archive.write(each, f"{within}/{each.name}")
            elif each.is_dir() and ((each / "__init__.py").exists() or any(each.glob("*.py"))):
                _add_folder(archive, each, f"{within}/{each.name}")


def _add_folder(archive, folder, within):
    size = 0
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts and path.suffix not in _LEFT_OUT:
            size += path.stat().st_size
            if size > _MOST_BYTES:
                raise ConnectError(f"{folder} holds more than {_MOST_BYTES >> 20} MiB: too much to be sent to executors as a plugin.")
            archive.write(path, os.path.join(within, path.relative_to(folder)))
