"""A real PostgreSQL of Debian's packages, for tests; as root it runs as an unprivileged user.

    python -m tests.servers.postgresql      runs one until Ctrl-C and prints its URL
"""

import pathlib
import shutil
import signal
import subprocess

from tests.servers.server import Server, Unavailable, free_port, run_until_interrupted, unprivileged

START_SECONDS = 60
SETTINGS = (
    "fsync=off",
    "full_page_writes=off",
    "synchronous_commit=off",
    "max_connections=100",
    "shared_buffers=64MB",
    "wal_level=logical",
    "deadlock_timeout=200ms",
)


def programs():
    """The folder of initdb and postgres."""
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    if found:
        return found[-1].parent
    on_path = shutil.which("postgres")
    if on_path:
        return pathlib.Path(on_path).parent
    raise Unavailable("PostgreSQL is not installed (Debian: apt-get install postgresql)")


class PostgreSql(Server):
    """The port and the data stay the same through kill and restart. User and database are `postgres`; any password does."""

    name = "postgresql"
    stops_by = signal.SIGINT  # fast: anyone who is connected is sent away

    def __init__(self, settings=()):
        super().__init__()
        self._settings = (*SETTINGS, *settings)
        self.port = free_port()

    @property
    def jdbc(self):
        return f"jdbc:postgresql://127.0.0.1:{self.port}/postgres?user=postgres&password=not-looked-at"

    def start(self):
        binaries, is_new = programs(), self._make_folder()
        prefix = unprivileged(self._folder)
        (self._folder / "data" / "postmaster.pid").unlink(missing_ok=True)  # of one that was killed
        if is_new:
            made = subprocess.run(
                [*prefix, binaries / "initdb", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync", "-D", self._folder / "data"],
                capture_output=True, text=True, cwd=self._folder,
            )  # fmt: skip
            if made.returncode:
                raise Unavailable(f"initdb failed: {made.stderr[-500:]}")
        settings = [word for each in self._settings for word in ("-c", each)]
        self._begin([*prefix, binaries / "postgres", "-D", self._folder / "data", "-k", self._folder, "-p", self.port, *settings])
        self._wait_until_it_answers()
        return self

    def handed_over(self):
        return {"port": self.port, "jdbc": self.jdbc, **super().handed_over()}

    def _wait_until_it_answers(self):
        import psycopg

        def answers():
            psycopg.connect(host="127.0.0.1", port=self.port, user="postgres", dbname="postgres", connect_timeout=5).close()
            return True

        self._wait_until(answers, START_SECONDS, psycopg.OperationalError)


if __name__ == "__main__":
    run_until_interrupted(PostgreSql(), lambda server: server.jdbc)
