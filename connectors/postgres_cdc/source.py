"""PostgresCdcSource: publish the rows of PostgreSQL tables and all changes from the server's log, like Debezium's connector.

session.py    one connection: snapshot, then changes      snapshot.py   rows           stream.py     changes
position.py   offsets and confirmations                    shapes.py     schemas        records.py    envelopes
kinds.py      types                                                      pgoutput.py   the protocol   connection.py libpq
"""

import logging
import threading
import time

from connectors.postgres_cdc.connection import asking, refused
from connectors.postgres_cdc.keys import IDLE, PASSING, SOURCE
from connectors.postgres_cdc.position import Position
from connectors.postgres_cdc.publication import check_server, drop_slot
from connectors.postgres_cdc.session import Session, SlotInUse
from standalone import ConfigError, ConnectError, ExactlyOnceSupport, SourceConnector, SourceTask

log = logging.getLogger(__name__)

_WITHOUT_ROWS = ("no_data", "never")


class PostgresCdcSourceConnector(SourceConnector):
    """Publish the rows of tables, then each committed change: the row before and after, with its origin and time."""

    java_name = "io.debezium.connector.postgresql.PostgresConnector"
    config_def = SOURCE
    passing = PASSING

    def validate(self, config):
        try:
            return _errors(SOURCE.parse(config))
        except ConfigError as error:
            return {name: message for name, message in error.errors.items() if name not in SOURCE}

    def try_out(self, config):
        import psycopg

        try:
            parsed = SOURCE.parse(config)
        except ConfigError:
            return {}
        try:
            with asking(parsed) as connection:
                check_server(connection)
                may = connection.execute("SELECT rolsuper OR rolreplication FROM pg_roles WHERE rolname = current_user").fetchone()[0]
        except ConnectError as error:
            return {"database.hostname": str(error)}
        except (psycopg.Error, OSError) as error:
            return {"database.hostname": str(refused(error, parsed))}
        if not may:
            return {"database.user": f'lacks the REPLICATION attribute: ALTER ROLE "{parsed["database.user"]}" REPLICATION'}
        return {}

    def exactly_once_support(self, config):
        """Changes can be resumed exactly, snapshots cannot: an interrupted snapshot starts again."""
        mode = config.get("snapshot.mode", "initial").lower()
        return ExactlyOnceSupport.SUPPORTED if mode in _WITHOUT_ROWS else ExactlyOnceSupport.UNSUPPORTED

    def start(self, config):
        self.config = config
        errors = _errors(SOURCE.parse(config))
        if errors:
            raise ConfigError.of(errors, "PostgresCdcSource cannot start")

    def task_configs(self, max_tasks):
        return [dict(self.config)]  # one log has one reader

    def alter_offsets(self, config, offsets):
        server = config.get("topic.prefix")
        for partition, offset in offsets:
            if partition != {"server": server}:
                raise ConnectError(f'The source partition {partition!r} must be {{"server": "{server}"}}.')
            if offset is not None:
                Position.of(offset)
        return True


class PostgresCdcSourceTask(SourceTask):
    """Reads the snapshot, then changes; reconnects after a lost connection and continues after the last returned record."""

    java_name = "io.debezium.connector.postgresql.PostgresConnectorTask"

    def start(self, config):
        self.config = config
        parsed = self._parsed = SOURCE.parse(config)
        self._stopped = threading.Event()
        self._session = None
        self._failures = self._slot_tries = 0
        self._was_open = self._resumes = self._has_told = False
        self._count, self._wait = parsed["max.batch.size"], min(max(parsed["poll.interval.ms"], 1) / 1000, 0.5)
        self._beat_every = parsed["heartbeat.interval.ms"] / 1000
        self._beat_at = time.monotonic() + self._beat_every
        self._partition = {"server": parsed["topic.prefix"]}
        self._position = self._stored()
        for name in IDLE:
            if parsed[name]:
                log.warning("%s has no effect here", name)

    def _stored(self):
        offset = self.context.offset_reader.offset(self._partition)
        return None if offset is None else Position.of(offset)

    def poll(self):
        if self._stopped.is_set():
            return None
        import psycopg

        try:
            if self._session is None:
                self._session = Session(self._parsed, self._position, self._resumes, self._stopped, self.context.task or 0)
                self._session.open()
                self._was_open = True
            beats = self._heartbeat()  # first, so that records already read are not lost by an error below
            records = beats + self._session.read(self._count, self._wait)
            self._has_told |= bool(records)
            self._failures = self._slot_tries = 0
            return records or None
        except SlotInUse as error:
            self._close()
            self._slot_tries += 1
            if self._slot_tries > self._parsed["slot.max.retries"]:
                raise ConnectError(f"{error} Gave up after {self._slot_tries} attempts (slot.max.retries).") from error
            log.warning("%s Retrying in %d ms", error, self._parsed["slot.retry.delay.ms"])
            self._stopped.wait(self._parsed["slot.retry.delay.ms"] / 1000)
        except (psycopg.Error, OSError) as error:
            self._close()
            if not self._stopped.is_set():
                self._failed(error)
        except BaseException:
            self._close()
            raise
        return None

    def _heartbeat(self):
        if not self._beat_every or time.monotonic() < self._beat_at:
            return []
        self._beat_at = time.monotonic() + self._beat_every
        return self._session.heartbeat()

    def _failed(self, error):
        told, most = refused(error, self._parsed), self._parsed["errors.max.retries"]
        if not self._was_open or not _passes(error):
            raise told from error
        self._failures += 1
        if 0 <= most < self._failures:
            raise ConnectError(f"{told} Gave up after {self._failures} failures (errors.max.retries).") from error
        pause = self._parsed["retriable.restart.connector.wait.ms"]
        log.warning("The connection is lost, reconnecting in %d ms: %s", pause, told)
        self._stopped.wait(pause / 1000)

    def commit(self):
        if self._session is not None:
            self._session.commit(self._stored(), not self._has_told)

    def stop(self):
        self._stopped.set()
        session = self._session
        if session is not None:
            session.interrupt()

    def close(self):
        self._close()
        if self._parsed["slot.drop.on.stop"] and self._stopped.is_set():
            import psycopg

            try:
                with asking(self._parsed) as connection:
                    drop_slot(connection, self._parsed)
            except (psycopg.Error, OSError) as error:
                log.warning("The slot could not be dropped: %s", refused(error, self._parsed))

    def _close(self):
        session, self._session = self._session, None
        if session is not None:
            if session.position is not None:
                self._position, self._resumes = session.position, True
            session.close()


def _passes(error):
    """Whether the error is transient: a lost connection, or a server that starts or stops."""
    import psycopg

    state = getattr(error, "sqlstate", None) or ""
    if state[:2] in ("08", "53", "57", "58"):
        return state != "57014"  # a statement timeout
    return isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError, OSError)) and not state


def _errors(parsed):
    errors = {}
    for kind in ("schema", "table", "column"):
        if parsed[f"{kind}.include.list"] and parsed[f"{kind}.exclude.list"]:
            errors[f"{kind}.exclude.list"] = f"cannot be combined with {kind}.include.list"
    name = parsed["slot.name"]
    if not 0 < len(name) < 64 or not all(each in "abcdefghijklmnopqrstuvwxyz0123456789_" for each in name):
        errors["slot.name"] = f"must have at most 63 small letters, digits and underscores, found {name!r}"
    return errors


PostgresCdcSourceConnector.task_class = PostgresCdcSourceTask
