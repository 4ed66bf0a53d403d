"""HDFS, by hdfs-native: the name node's and the data nodes' own protocols, without Java."""

import errno
import functools
from urllib.parse import unquote, urlsplit

from standalone import ConnectError, RetriableError

# Give up on an unreachable name node after seconds instead of the library's three minutes: the task retries by itself.
_PATIENCE = {"dfs.client.failover.max.attempts": "4"}
_FOR_GOOD = ("AccessControlException", "PermissionDenied", "permission denied", "InvalidPath", "UnsupportedFeature", "UnresolvedPath")


def _as_os_errors(method):
    """Convert the library's errors to OSError, as for local files."""

    @functools.wraps(method)
    def wrapped(self, *arguments):
        try:
            return method(self, *arguments)
        except OSError:
            raise
        except Exception as error:
            raise OSError(errno.EIO, f"{type(error).__name__}: {error}") from error

    return wrapped


class HdfsFiles:
    """File system operations of sinks, with the interface of LocalFiles. Paths are those on HDFS, without the name node's address."""

    spools_here = False

    def __init__(self, url, root, client, options):
        self.name, self.root = url, root or "/"
        self._client, self._options = client, options

    def close(self):
        pass

    def must_be_allowed(self, path):
        pass  # the restriction is for local files

    @_as_os_errors
    def exists(self, path):
        try:
            self._client.get_file_info(path)
        except FileNotFoundError:
            return False
        return True

    @_as_os_errors
    def make_folders(self, path):
        self._client.mkdirs(path, create_parent=True)

    @_as_os_errors
    def make_below(self, top, path):
        """Create the folder `path` and its parents up to, but without, `top`; raise FileNotFoundError if `top` is gone."""
        made = top
        for part in path[len(top) :].strip("/").split("/"):
            made = f"{made}/{part}"
            if not self.exists(made):
                self._client.mkdirs(made, create_parent=False)

    def write(self, path, spool):
        self.write_bytes(path, spool.chunks())

    @_as_os_errors
    def write_bytes(self, path, parts):
        # Without its folder the file must not be created: another task may have renamed the folder.
        with self._client.create(path, self._options(overwrite=True, create_parent=False)) as file:
            for part in parts:
                file.write(part)
            file.hsync()

    @_as_os_errors
    def read(self, path):
        with self._client.read(path) as file:
            return bytes(file.read())

    @_as_os_errors
    def rename(self, source, target):
        self._client.rename(source, target, overwrite=True)

    @_as_os_errors
    def delete(self, path):
        self._client.delete(path, False)

    @_as_os_errors
    def delete_folder(self, path):
        self._client.delete(path, True)

    def sync_folders(self, paths):
        pass  # the name node persists an entry before it responds

    @_as_os_errors
    def folders(self, path):
        try:
            return sorted(each.path.rpartition("/")[2] for each in self._client.list_status(path) if each.isdir)
        except FileNotFoundError:
            return []

    @_as_os_errors
    def walk(self, path):
        """Yield the relative paths of all files below a folder."""
        try:
            return [each.path[len(path) :].strip("/") for each in self._client.list_status(path, True) if not each.isdir]
        except FileNotFoundError:
            return []

    def wrong(self, what, error):
        """Return the error for a user: retriable or permanent."""
        text = f"{what}: {error.strerror or error}. "
        if any(word in text for word in _FOR_GOOD):
            return ConnectError(text + "Fix the cause, then restart the task: nothing is lost.")
        return RetriableError(text + "It is retried; nothing is lost.")


def open_hdfs(url, values):
    """Open the file system of a URL: hdfs://namenode:8020/folder, or hdfs://nameservice/folder with hadoop.conf.dir."""
    from hdfs_native import Client, WriteOptions

    parts = urlsplit(url)
    return HdfsFiles(url, unquote(parts.path).rstrip("/"), Client(f"{parts.scheme}://{parts.netloc}", **client_arguments(values)), WriteOptions)


def client_arguments(values):
    if values["hadoop.conf.dir"]:
        arguments = {"config": {}, "config_dir": values["hadoop.conf.dir"]}
    else:
        arguments = {"config": dict(_PATIENCE)}
    if values["hdfs.authentication.kerberos"]:
        arguments["config"]["hadoop.security.authentication"] = "kerberos"
        if values["hdfs.namenode.principal"]:
            arguments["config"]["dfs.namenode.kerberos.principal"] = values["hdfs.namenode.principal"]
        for name in ("principal", "keytab"):
            if values[f"connect.hdfs.{name}"]:
                arguments[f"kerberos_{name}"] = values[f"connect.hdfs.{name}"]
    return arguments
