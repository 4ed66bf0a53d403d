"""Connections to the database: one for queries, one for replication.

psycopg does not support replication, but its PGconn is libpq, which does: START_REPLICATION switches the connection to COPY in both directions.
"""

import contextlib
import select
import struct
import threading
import time

from standalone import ConnectError

_EPOCH_SECONDS = 946_684_800  # 2000-01-01
CONNECT_SECONDS = 10
_TLS = ("sslmode", "sslcert", "sslkey", "sslpassword", "sslrootcert")
_SETTINGS = "-c DateStyle=ISO,MDY -c IntervalStyle=postgres -c TimeZone=UTC -c bytea_output=hex -c extra_float_digits=1 -c client_encoding=UTF8"


def conninfo(config, **more):
    """Return libpq's connection parameters for a configuration."""
    from psycopg.conninfo import make_conninfo

    password = config["database.password"]
    tls = {name: getattr(value, "value", value) for name in _TLS if (value := config[f"database.{name}"])}
    return make_conninfo(
        host=config["database.hostname"], port=config["database.port"], user=config["database.user"], dbname=config["database.dbname"],
        password=password.value if password is not None else None, options=_SETTINGS, connect_timeout=CONNECT_SECONDS,
        keepalives=int(config["database.tcpKeepAlive"]), application_name=f"connect-standalone {config['topic.prefix']}", **tls, **more,
    )  # fmt: skip


def asking(config):
    """Open a connection for queries in autocommit mode."""
    import psycopg

    connection = psycopg.connect(conninfo(config), autocommit=True)
    timeout = config["database.query.timeout.ms"]
    try:
        connection.execute(f"SET statement_timeout = {max(0, timeout)}")
        for statement in _statements(config["database.initial.statements"]):
            connection.execute(statement)
    except psycopg.Error:
        connection.close()
        raise
    return connection


def _statements(text):
    """Split at semicolons; a double semicolon stands for one."""
    parts = (text or "").replace(";;", "\0").split(";")
    return [part.replace("\0", ";").strip() for part in parts if part.strip()]


def lsn_text(lsn):
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def lsn_of(text):
    high, _, low = text.partition("/")
    return (int(high, 16) << 32) + int(low, 16)


class Replication:
    """A connection in replication mode. Another thread may call `confirm` during `read`."""

    def __init__(self, config):
        import psycopg
        from psycopg import pq

        self._pq, self._error = pq, psycopg.OperationalError
        self._lock = threading.Lock()  # only one thread may use a PGconn at a time
        self._connection = pq.PGconn.connect_start(conninfo(config, replication="database").encode())
        try:
            self._connect()
        except BaseException:
            self._connection.finish()
            raise

    def _connect(self):
        """Connect step by step: PGconn.connect would hold the GIL until the server responds."""
        status, deadline = self._pq.PollingStatus, time.monotonic() + CONNECT_SECONDS
        while True:
            step = status.FAILED if self._connection.status == self._pq.ConnStatus.BAD else self._connection.connect_poll()
            if step == status.OK:
                return
            if step == status.FAILED:
                raise self._failed()
            socket, left = [self._connection.socket], deadline - time.monotonic()
            if left <= 0 or not any(select.select(socket if step == status.READING else [], socket if step == status.WRITING else [], [], left)):
                raise self._error(f"the server did not respond within {CONNECT_SECONDS} s")

    def command(self, sql):
        """Run a replication command; return its only row as {column: text}, or {} if it has none."""
        import psycopg

        result = self._connection.exec_(sql.encode())
        if result.status == self._pq.ExecStatus.COPY_BOTH:
            return {}
        if result.status not in (self._pq.ExecStatus.TUPLES_OK, self._pq.ExecStatus.COMMAND_OK):
            if self._connection.status == self._pq.ConnStatus.BAD:  # without a code of SQL it would count as permanent
                raise self._failed()
            raise psycopg.errors.error_from_result(result, encoding="utf-8")
        if not result.ntuples:
            return {}
        found = {result.fname(at).decode(): result.get_value(0, at) for at in range(result.nfields)}
        return {name: value.decode() if value is not None else None for name, value in found.items()}

    def start(self, slot, lsn, options):
        told = ", ".join(f"\"{name}\" '{value}'" for name, value in options.items())
        self.command(f'START_REPLICATION SLOT "{slot}" LOGICAL {lsn_text(lsn)} ({told})')
        self._connection.nonblocking = 1

    def read(self, seconds):
        """Return the next message (bytes), or None after the timeout. Raise psycopg.Error if the stream ends."""
        while True:
            with self._lock:
                size, data = self._connection.get_copy_data(1)
                if size > 0:
                    return bytes(data)
                if size < 0:
                    raise self._ended()
                socket = self._connection.socket
            if not select.select([socket], [], [], max(0.0, seconds))[0]:
                return None
            with self._lock:
                self._connection.consume_input()
            seconds = 0.0

    def confirm(self, lsn, asks=False):
        """Confirm that everything before `lsn` is stored, and that this client is alive. With `asks` the server replies with its position."""
        micros = int((time.time() - _EPOCH_SECONDS) * 1e6)
        with self._lock:
            self._connection.put_copy_data(struct.pack(">cQQQqB", b"r", lsn, lsn, lsn, micros, asks))
            self._connection.flush()

    def cancel(self):
        """Cancel, from another thread: a pending command fails with an error."""
        with contextlib.suppress(self._error, AttributeError):
            self._connection.get_cancel().cancel()

    def close(self):
        with self._lock, contextlib.suppress(self._error):
            self._connection.finish()

    def _ended(self):
        import psycopg

        result = self._connection.get_result()
        if result is not None and result.status == self._pq.ExecStatus.FATAL_ERROR:
            return psycopg.errors.error_from_result(result, encoding="utf-8")
        return self._failed()

    def _failed(self):
        said = self._connection.get_error_message() if hasattr(self._connection, "get_error_message") else self._connection.error_message.decode()
        return self._error(said.strip() or "the server ended the stream")


def refused(error, config):
    """Convert a database error to a ConnectError, without the password."""
    said = " ".join(str(error).split())
    password = config["database.password"]
    if password is not None and password.value:
        said = said.replace(password.value, "[hidden]")
    return ConnectError(f"PostgreSQL at {config['database.hostname']}:{config['database.port']}/{config['database.dbname']}: {said}")
