"""A real MariaDB of Debian's packages, for tests; as root it runs as an unprivileged user.

    python -m tests.servers.mariadb      runs one until Ctrl-C and prints its URL
"""

import os
import shutil
import subprocess

from tests.servers.server import Server, Unavailable, free_port, run_until_interrupted, unprivileged

START_SECONDS = 60
SETTINGS = (
    "--no-defaults", "--local-infile=1", "--bind-address=127.0.0.1", "--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=64M", "--skip-log-bin",
    "--innodb-log-file-size=16M", "--performance-schema=OFF",
)  # fmt: skip


def program(name):
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/libexec")
    if found is None:
        raise Unavailable(f"{name} is not installed (Debian: apt-get install mariadb-server)")
    return found


class MariaDb(Server):
    """The port and the data stay the same through kill and restart. The user is `root`, with this password."""

    name = "mariadb"
    password = "very-secret-word"

    def __init__(self):
        super().__init__()
        self.port = free_port()

    @property
    def jdbc(self):
        return f"jdbc:mariadb://127.0.0.1:{self.port}/"

    def start(self):
        server, is_new = program("mariadbd"), self._make_folder()
        prefix = unprivileged(self._folder)
        if is_new:
            made = subprocess.run(
                [*prefix, program("mariadb-install-db"), "--no-defaults", "--auth-root-authentication-method=normal", f"--datadir={self._folder}/data",
                 f"--tmpdir={self._folder}", "--skip-test-db"],
                capture_output=True, text=True, cwd=self._folder,
            )  # fmt: skip
            if made.returncode:
                raise Unavailable(f"mariadb-install-db failed: {(made.stdout + made.stderr)[-500:]}")
        where = [f"--datadir={self._folder}/data", f"--socket={self._folder}/s", f"--tmpdir={self._folder}", f"--port={self.port}"]
        self._begin([*prefix, server, *SETTINGS, *where])
        self._wait_until_it_answers(is_new)
        return self

    def handed_over(self):
        return {"port": self.port, "jdbc": self.jdbc, "password": self.password, **super().handed_over()}

    def _wait_until_it_answers(self, is_new):
        import pymysql

        def answers():
            # A new one has a root without a password, who may come by the address of this machine.
            with pymysql.connect(host="127.0.0.1", port=self.port, user="root", password="" if is_new else self.password) as connection:
                if is_new:
                    connection.cursor().execute(f"SET PASSWORD = PASSWORD('{self.password}')")
            return True

        self._wait_until(answers, START_SECONDS, pymysql.OperationalError)


if __name__ == "__main__":
    run_until_interrupted(MariaDb(), lambda server: server.jdbc)
