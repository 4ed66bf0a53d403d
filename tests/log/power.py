"""A loss of power: what is left of a folder is what was synced.

Of each file that is the bytes that were there when it was last synced; its name, and that it has gone, are there from the next sync of its
folder on. A file whose name was synced, and whose bytes were not, is empty. SQLite syncs by itself: its database is taken as it is when
its journal is synced, for it is written only by who syncs that.
"""

import fcntl
import json
import os
import shutil
import threading

_SQLITE, _JOURNAL = ".sqlite", "-wal"
_GENERATION = 0x80087601  # FS_IOC_GETVERSION: the number of an inode is given again
_NAMES, _BYTES = "names.json", "bytes"


class Power:
    """Notes what is synced in `folder`, in another folder: before the sync, for what comes meanwhile may not be in it."""

    def __init__(self, folder, notes):
        self._folder, self._notes = os.path.realpath(folder), str(notes)
        self._lock = threading.Lock()
        self._names = {}  # path of a folder -> {name: the bytes' mark, or None of a folder}
        os.makedirs(os.path.join(self._notes, _BYTES), exist_ok=True)
        if os.path.isdir(self._folder):  # all that is there at the start came from the disk
            self._note_tree()

    def install(self, replace=setattr):
        """Until this process ends, or as long as `replace`, such as monkeypatch.setattr, has it."""
        for name in ("fsync", "fdatasync"):

            def synced(handle, sync=getattr(os, name)):
                self._note(os.readlink(f"/proc/self/fd/{handle}"))
                sync(handle)

            replace(os, name, synced)

    def _note(self, path):
        if path != self._folder and not path.startswith(self._folder + os.sep):
            return
        with self._lock:
            if os.path.isdir(path):
                self._note_names(path)
            else:
                self._note_bytes(path)
                if path.endswith(_SQLITE + _JOURNAL):
                    self._note_bytes(path.removesuffix(_JOURNAL))
                    self._note_names(os.path.dirname(path))  # SQLite's own work, too
            self._save()

    def _note_tree(self):
        for place, _, names in os.walk(self._folder):
            for name in names:
                self._note_bytes(os.path.join(place, name))
            self._note_names(place)
        self._save()

    def _note_bytes(self, path):
        try:
            mark = mark_of(path)
            to = os.path.join(self._notes, _BYTES, mark)
            shutil.copyfile(path, to + ".new")
        except FileNotFoundError:
            return  # deleted meanwhile
        os.replace(to + ".new", to)

    def _note_names(self, folder):
        found = {}
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            try:
                found[name] = None if os.path.isdir(path) else mark_of(path)
            except FileNotFoundError:
                continue
        self._names[os.path.relpath(folder, self._folder)] = found

    def _save(self):
        path = os.path.join(self._notes, _NAMES)
        with open(path + ".new", "w") as file:
            json.dump(self._names, file)
        os.replace(path + ".new", path)


def lose_power(folder, notes):
    """Make the folder what was synced of it; nobody has it open any more."""
    with open(os.path.join(notes, _NAMES)) as file:
        names = json.load(file)
    shutil.rmtree(folder)
    _restore(names, str(folder), os.path.join(notes, _BYTES), ".")
    shutil.rmtree(notes)


def _restore(names, folder, kept, place):
    os.makedirs(os.path.join(folder, place), exist_ok=True)
    for name, mark in names.get(place, {}).items():
        path = os.path.normpath(os.path.join(place, name))
        if mark is None:
            _restore(names, folder, kept, path)
        elif os.path.exists(os.path.join(kept, mark)):
            shutil.copyfile(os.path.join(kept, mark), os.path.join(folder, path))
        else:
            open(os.path.join(folder, path), "wb").close()


def mark_of(path):
    with open(path, "rb") as file:
        try:
            generation = int.from_bytes(fcntl.ioctl(file, _GENERATION, bytes(8))[:4], "little")
        except OSError:
            generation = 0  # the file system has none
        return f"{os.fstat(file.fileno()).st_ino}-{generation}"
