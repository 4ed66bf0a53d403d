"""The database of a configuration: its dialect, and a connection that is reopened after a failure."""

import contextlib
import logging
import threading

from connectors.jdbc.dialects import dialect_of
from connectors.jdbc.url import parse
from standalone import ConnectError

log = logging.getLogger(__name__)

_OWN = ("connection.url", "connection.user", "connection.password", "connection.attempts", "connection.backoff.ms")


class Database:
    """`connection` is opened at first use; `drop` closes it in any state. `stopped` ends all waits."""

    def __init__(self, config, stopped=None):
        extra = {
            name.removeprefix("connection."): value for name, value in config.originals.items() if name.startswith("connection.") and name not in _OWN
        }
        password = config["connection.password"]
        self.location = parse(config["connection.url"], config["connection.user"], password.value if password is not None else None, extra)
        isolation = {"isolation": config["transaction.isolation.mode"]} if "transaction.isolation.mode" in config else {}
        self.dialect = dialect_of(config, self.location, **isolation)
        self._attempts, self._pause = config["connection.attempts"], config["connection.backoff.ms"] / 1000
        self._stopped = stopped or threading.Event()
        self._connection = None

    @property
    def connection(self):
        if self._connection is None:
            self._connection = self._opened()
        return self._connection

    def interrupt(self):
        """From another thread: end a running query with an error."""
        connection = self._connection
        if connection is not None:
            with contextlib.suppress(self.dialect.error, AttributeError):  # it may be closed concurrently
                self.dialect.interrupt(connection)

    def _opened(self):
        try:
            self.dialect.error  # noqa: B018  imports the driver
        except ImportError as error:
            raise ConnectError(
                f"The driver for {self.location.shown} is not installed ({error}): run pip install 'connect-standalone[jdbc]'."
            ) from error
        for attempt in range(1, self._attempts + 1):
            try:
                return self.dialect.connect()
            except self.dialect.error as error:
                problem = self.dialect.said(error)
            if attempt < self._attempts and not self._stopped.is_set():
                log.warning("Cannot connect to %s (attempt %d of %d): %s", self.location.shown, attempt, self._attempts, problem)
                self._stopped.wait(self._pause)
        raise ConnectError(
            f"Cannot connect to {self.location.shown} after {self._attempts} attempts: {problem}. Check connection.url, connection.user and "
            f"connection.password, and whether the database is running."
        )

    def drop(self):
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.close()
            except self.dialect.error:
                pass  # already lost
