"""A real server of S3's protocol for tests: versitygw, which keeps objects as files. Its program is built once, by Go, into a cache folder.

    python -m tests.servers.s3      runs one until Ctrl-C and prints its address
"""

import os
import shutil
import subprocess

from tests.servers.server import CACHE, Server, Unavailable, free_port, locked, run_until_interrupted, takes_connections

VERSION = "v1.8.0"
PROGRAMS = CACHE.parent / "bin"
ACCESS, SECRET = "lake-access", "lake-secret-key"
START_SECONDS = 30


def program():
    """The path of versitygw; it is built if it is not there."""
    found = shutil.which("versitygw") or str(PROGRAMS / "versitygw")
    if not os.access(found, os.X_OK):
        if not shutil.which("go"):
            raise Unavailable(f"versitygw is neither on the PATH nor at {found}, and go, which would build it, is not installed")
        with locked("s3.lock"):
            if not os.access(found, os.X_OK):
                _build()
    return found


def _build():
    """Ten minutes on a slow machine."""
    command = ["go", "install", f"github.com/versity/versitygw/cmd/versitygw@{VERSION}"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "GOBIN": str(PROGRAMS)})
    if done.returncode:
        raise Unavailable(f"go could not build versitygw: {done.stderr[-500:]}")


class S3Server(Server):
    """`url` is its endpoint; ACCESS and SECRET log in. It must keep metadata: without, it ignores conditions."""

    name = "s3"

    def __init__(self):
        super().__init__()
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}"

    def start(self):
        if self._make_folder():
            (self._folder / "objects").mkdir()
        environment = {**os.environ, "ROOT_ACCESS_KEY": ACCESS, "ROOT_SECRET_KEY": SECRET}
        self._begin([program(), "--port", f"127.0.0.1:{self._port}", "posix", self._folder / "objects"], env=environment)
        self._wait_until(lambda: takes_connections(self._port), START_SECONDS)
        return self

    def handed_over(self):
        return {"url": self.url, **super().handed_over()}


if __name__ == "__main__":
    run_until_interrupted(S3Server(), lambda server: server.url)
