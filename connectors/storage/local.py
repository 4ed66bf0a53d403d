"""Folders of this machine. What is put in place is on the disk: files, and the entries of the folders that name them."""

import contextlib
import errno
import os
import shutil

from standalone import ConnectError, RetriableError, check_allowed_file

# What no waiting fixes; all else (a full disk, a server away) may be over at the next attempt.
_FOR_GOOD = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.EINVAL}


class LocalFiles:
    """What a sink does to a file system. Paths are strings; a folder that is missing raises FileNotFoundError, what fails an OSError."""

    spools_here = True  # a spool can be in the owner's folder, and become the file by a rename

    def __init__(self, root):
        self.name = self.root = root.rstrip("/") or "/"

    def close(self):
        pass

    def must_be_allowed(self, path):
        """Raise ConfigError where the worker's files.allowed.paths leave it out."""
        check_allowed_file(path)

    def exists(self, path):
        return os.path.exists(path)

    def make_folders(self, path):
        """With those above it."""
        made = path
        missing = []
        while made and not os.path.isdir(made):
            missing.append(made)
            made = os.path.dirname(made)
        os.makedirs(path, exist_ok=True)
        for each in missing:
            self.sync_folder(os.path.dirname(each) or ".")

    def make_below(self, top, path):
        """The folder `path`, with those above it, but not `top`: where that is gone FileNotFoundError says so."""
        made = top
        for part in os.path.relpath(path, top).split("/"):
            made = f"{made}/{part}"
            with contextlib.suppress(FileExistsError):
                os.mkdir(made)

    def write(self, path, spool):
        """A file of what is in the spool."""
        if spool.path is not None:
            spool.spill()
            descriptor = os.open(spool.path, os.O_RDWR | os.O_CLOEXEC)
            try:
                os.ftruncate(descriptor, len(spool))
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            self.rename(spool.path, path)
            return
        self.write_bytes(path, spool.parts())

    def write_bytes(self, path, parts):
        with open(path, "wb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())

    def read(self, path):
        with open(path, "rb") as file:
            return file.read()

    def rename(self, source, target):
        """Atomically; what already exists is replaced, or for a folder an error. FileNotFoundError where the source is gone."""
        os.rename(source, target)

    def delete(self, path):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)

    def delete_folder(self, path):
        shutil.rmtree(path, ignore_errors=True)

    def sync_folders(self, paths):
        for path in dict.fromkeys(paths):
            self.sync_folder(path)

    def sync_folder(self, path):
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def folders(self, path):
        """The names of the folders in one; none where it is missing."""
        try:
            return sorted(entry.name for entry in os.scandir(path) if entry.is_dir(follow_symlinks=False))
        except FileNotFoundError:
            return []

    def walk(self, path):
        """The files below a folder, however deep: their paths from there."""
        for folder, _, names in os.walk(path):
            inner = os.path.relpath(folder, path)
            for name in names:
                yield name if inner == "." else f"{inner}/{name}"

    def wrong(self, what, error):
        """The error for a user: one that is tried again, or one that is for good."""
        text = f"{what}: {error.strerror or error} (errno {error.errno}). "
        if error.errno in _FOR_GOOD:
            return ConnectError(text + "Fix that, then restart the task: nothing is lost.")
        return RetriableError(text + "It is tried again; nothing is lost.")
