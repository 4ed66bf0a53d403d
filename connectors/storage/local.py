"""Local file systems. Files and their directory entries are fsynced when put in place."""

import contextlib
import errno
import os
import shutil

from standalone import ConnectError, RetriableError, check_allowed_file

# Permanent errors; all others (a full disk, an unreachable server) may pass and are retried.
_FOR_GOOD = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.EINVAL}


class LocalFiles:
    """File system operations of sinks. Paths are strings; a missing folder raises FileNotFoundError, other failures OSError."""

    spools_here = True  # a spool can be in the owner's folder, and be renamed to the file

    def __init__(self, root):
        self.name = self.root = root.rstrip("/") or "/"

    def close(self):
        pass

    def must_be_allowed(self, path):
        """Raise ConfigError if the worker's files.allowed.paths exclude the path."""
        check_allowed_file(path)

    def exists(self, path):
        return os.path.exists(path)

    def make_folders(self, path):
        """Create a folder and its parents."""
        made = path
        missing = []
        while made and not os.path.isdir(made):
            missing.append(made)
            made = os.path.dirname(made)
        os.makedirs(path, exist_ok=True)
        for each in missing:
            self.sync_folder(os.path.dirname(each) or ".")

    def make_below(self, top, path):
        """Create the folder `path` and its parents up to, but without, `top`; raise FileNotFoundError if `top` is gone."""
        made = top
        for part in os.path.relpath(path, top).split("/"):
            made = f"{made}/{part}"
            with contextlib.suppress(FileExistsError):
                os.mkdir(made)

    def write(self, path, spool):
        """Write the spool's content to a file."""
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
        """Rename atomically; an existing file is replaced, an existing folder is an error. Raise FileNotFoundError if the source is gone."""
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
        """Return the names of a folder's subfolders; none if it is missing."""
        try:
            return sorted(entry.name for entry in os.scandir(path) if entry.is_dir(follow_symlinks=False))
        except FileNotFoundError:
            return []

    def walk(self, path):
        """Yield the relative paths of all files below a folder."""
        for folder, _, names in os.walk(path):
            inner = os.path.relpath(folder, path)
            for name in names:
                yield name if inner == "." else f"{inner}/{name}"

    def wrong(self, what, error):
        """Return the error for a user: retriable or permanent."""
        text = f"{what}: {error.strerror or error} (errno {error.errno}). "
        if error.errno in _FOR_GOOD:
            return ConnectError(text + "Fix the cause, then restart the task: nothing is lost.")
        return RetriableError(text + "It is retried; nothing is lost.")
