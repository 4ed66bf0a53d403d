"""A real server of S3's protocol for tests: versitygw, which keeps objects as files. Its program is built once, by Go, into a cache folder.

    python tests/servers/s3.py      runs one until Ctrl-C and prints its address
"""

import contextlib
import fcntl
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).parent
VERSION = "v1.8.0"
CACHE = pathlib.Path(os.environ.get("CONNECT_TEST_CACHE") or pathlib.Path.home() / ".cache/connect-standalone")
ACCESS, SECRET = "lake-access", "lake-secret-key"
START_SECONDS = 30


class Unavailable(Exception):
    """No server can be had here; says why."""


def program():
    """The path of versitygw; it is built if it is not there."""
    found = shutil.which("versitygw") or str(CACHE / "bin" / "versitygw")
    if not os.access(found, os.X_OK):
        if not shutil.which("go"):
            raise Unavailable(f"versitygw is neither on the PATH nor at {found}, and go, which would build it, is not installed")
        (CACHE / "bin").mkdir(parents=True, exist_ok=True)
        with open(CACHE / "bin" / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not os.access(found, os.X_OK):
                _build()
    return found


def _build():
    """Ten minutes on a slow machine."""
    command = ["go", "install", f"github.com/versity/versitygw/cmd/versitygw@{VERSION}"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "GOBIN": str(CACHE / "bin")})
    if done.returncode:
        raise Unavailable(f"go could not build versitygw: {done.stderr[-500:]}")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class S3Server:
    """`url` is its endpoint; ACCESS and SECRET log in. It must keep metadata: without, it ignores conditions."""

    def start(self):
        path = program()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="connect-test-s3-"))
        (self.folder / "objects").mkdir()
        for _ in range(3):  # another may take the port in between
            port = free_port()
            self.url = f"http://127.0.0.1:{port}"
            environment = {**os.environ, "ROOT_ACCESS_KEY": ACCESS, "ROOT_SECRET_KEY": SECRET}
            with open(self.folder / "log", "wb") as log:
                command = [path, "--port", f"127.0.0.1:{port}", "posix", str(self.folder / "objects")]
                self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True)
            if self._answers(port):
                return self
        told = (self.folder / "log").read_text(errors="replace")[-500:]
        self.stop()
        raise Unavailable(f"versitygw did not start: {told}")

    def _answers(self, port):
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self.process.poll() is None:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port), 1).close()
                return True
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(0.05)
        return False

    def handed_over(self):
        """What another process needs to know to use it, and to stop it in our place."""
        return {"url": self.url, "pid": self.process.pid, "folder": str(self.folder)}

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    server = S3Server().start()
    try:
        print(server.url, flush=True)
        signal.pause()
    finally:
        server.stop()
