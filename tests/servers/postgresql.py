"""A real PostgreSQL of Debian's packages, for tests; as root it runs as an unprivileged user.

python tests/servers/postgresql.py      runs one until Ctrl-C and prints its URL
"""

import contextlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time

START_SECONDS = 60
UNPRIVILEGED = 65534  # nobody: it refuses to run as root
SETTINGS = (
    "fsync=off",
    "full_page_writes=off",
    "synchronous_commit=off",
    "max_connections=100",
    "shared_buffers=64MB",
    "wal_level=logical",
    "deadlock_timeout=200ms",
)


class Unavailable(Exception):
    """No server can be had here; says why."""


def programs():
    """The folder of initdb and postgres."""
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    if found:
        return found[-1].parent
    on_path = shutil.which("postgres")
    if on_path:
        return pathlib.Path(on_path).parent
    raise Unavailable("PostgreSQL is not installed (Debian: apt-get install postgresql)")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def unprivileged(folder):
    """What stands before a command that must not run as root; the folder is made that user's."""
    if os.getuid():
        return []
    if not shutil.which("setpriv"):
        raise Unavailable("setpriv is not installed, and the server does not run as root")
    shutil.chown(folder, UNPRIVILEGED, UNPRIVILEGED)
    return ["setpriv", f"--reuid={UNPRIVILEGED}", f"--regid={UNPRIVILEGED}", "--clear-groups"]


class PostgreSql:
    """The port and the data stay the same through kill and restart. User and database are `postgres`; any password does."""

    def __init__(self, settings=()):
        self._settings = (*SETTINGS, *settings)
        self.port = free_port()
        self._folder = self._process = None

    @property
    def jdbc(self):
        return f"jdbc:postgresql://127.0.0.1:{self.port}/postgres?user=postgres&password=not-looked-at"

    def start(self):
        """Start it, and wait until it answers; raises Unavailable where that cannot be."""
        binaries = programs()
        if self._folder is not None:
            (self._folder / "data" / "postmaster.pid").unlink(missing_ok=True)  # of one that was killed
        if self._folder is None:
            self._folder = pathlib.Path(tempfile.mkdtemp(prefix="connect-test-postgresql-"))
            self._prefix = unprivileged(self._folder)
            made = subprocess.run(
                [*self._prefix, binaries / "initdb", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync", "-D", self._folder / "data"],
                capture_output=True, text=True, cwd=self._folder,
            )  # fmt: skip
            if made.returncode:
                raise Unavailable(f"initdb failed: {made.stderr[-500:]}")
        settings = [word for each in self._settings for word in ("-c", each)]
        command = [*self._prefix, binaries / "postgres", "-D", self._folder / "data", "-k", self._folder, "-p", str(self.port), *settings]
        with open(self._folder / "log", "ab") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd=self._folder)
        self._wait_until_it_answers()
        return self

    def handed_over(self):
        """What another process needs to know to use it and to end it."""
        return {"pid": self._process.pid, "folder": str(self._folder), "port": self.port, "jdbc": self.jdbc}

    def kill(self):
        """As if the machine had lost its power: the server and all that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def stop(self):
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)  # fast: whoever is connected is sent away
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(20)
        if self._process is not None and self._process.poll() is None:
            self.kill()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _wait_until_it_answers(self):
        import psycopg

        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                psycopg.connect(host="127.0.0.1", port=self.port, user="postgres", dbname="postgres", connect_timeout=5).close()
                return
            except psycopg.OperationalError as error:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise Unavailable(f"PostgreSQL does not come up: {error}; it said: {(self._folder / 'log').read_text()[-500:]}") from error
                time.sleep(0.05)


if __name__ == "__main__":
    server = PostgreSql().start()
    print(server.jdbc, flush=True)
    try:
        signal.pause()
    except KeyboardInterrupt:
        server.stop()
