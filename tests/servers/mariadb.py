"""A real MariaDB of Debian's packages, for tests; as root it runs as an unprivileged user.

    python tests/servers/mariadb.py      runs one until Ctrl-C and prints its URL
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
UNPRIVILEGED = 65534  # nobody
SETTINGS = (
    "--no-defaults", "--local-infile=1", "--bind-address=127.0.0.1", "--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=64M", "--skip-log-bin",
    "--innodb-log-file-size=16M", "--performance-schema=OFF",
)  # fmt: skip


class Unavailable(Exception):
    """No server can be had here; says why."""


def program(name):
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/libexec")
    if found is None:
        raise Unavailable(f"{name} is not installed (Debian: apt-get install mariadb-server)")
    return found


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class MariaDb:
    """The port and the data stay the same through kill and restart. The user is `root`, with this password."""

    password = "very-secret-word"

    def __init__(self):
        self.port = free_port()
        self._folder = self._process = None

    @property
    def jdbc(self):
        return f"jdbc:mariadb://127.0.0.1:{self.port}/"

    def start(self):
        """Start it, and wait until it answers; raises Unavailable where that cannot be."""
        server, is_new = program("mariadbd"), self._folder is None
        if is_new:
            self._folder = pathlib.Path(tempfile.mkdtemp(prefix="connect-test-mariadb-"))
            self._prefix = self._unprivileged()
            made = subprocess.run(
                [*self._prefix, program("mariadb-install-db"), "--no-defaults", "--auth-root-authentication-method=normal", f"--datadir={self._folder}/data",
                 f"--tmpdir={self._folder}", "--skip-test-db"],
                capture_output=True, text=True, cwd=self._folder,
            )  # fmt: skip
            if made.returncode:
                raise Unavailable(f"mariadb-install-db failed: {(made.stdout + made.stderr)[-500:]}")
        command = [*self._prefix, server, *SETTINGS, f"--datadir={self._folder}/data", f"--socket={self._folder}/s", f"--tmpdir={self._folder}", f"--port={self.port}"]
        with open(self._folder / "log", "ab") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd=self._folder)
        self._wait_until_it_answers(is_new)
        return self

    def handed_over(self):
        """What another process needs to know to use it and to end it."""
        return {"pid": self._process.pid, "folder": str(self._folder), "port": self.port, "jdbc": self.jdbc, "password": self.password}

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def stop(self):
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(20)
        if self._process is not None and self._process.poll() is None:
            self.kill()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _unprivileged(self):
        if os.getuid():
            return []
        if not shutil.which("setpriv"):
            raise Unavailable("setpriv is not installed, and the server does not run as root")
        shutil.chown(self._folder, UNPRIVILEGED, UNPRIVILEGED)
        return ["setpriv", f"--reuid={UNPRIVILEGED}", f"--regid={UNPRIVILEGED}", "--clear-groups"]

    def _wait_until_it_answers(self, is_new):
        import pymysql

        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                # A new one has a root without a password, who may come by the address of this machine.
                with pymysql.connect(host="127.0.0.1", port=self.port, user="root", password="" if is_new else self.password) as connection:
                    if is_new:
                        connection.cursor().execute(f"SET PASSWORD = PASSWORD('{self.password}')")
                return
            except pymysql.OperationalError as error:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise Unavailable(f"MariaDB does not come up: {error}; it said: {(self._folder / 'log').read_text()[-500:]}") from error
                time.sleep(0.05)


if __name__ == "__main__":
    server = MariaDb().start()
    print(server.jdbc, flush=True)
    try:
        signal.pause()
    except KeyboardInterrupt:
        server.stop()
