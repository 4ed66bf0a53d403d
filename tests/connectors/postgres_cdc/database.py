"""A database of a test's own, and a task of PostgresCdcSource that reads it, polled by hand."""

import contextlib
import json
import time

from connectors.postgres_cdc.source import PostgresCdcSourceConnector, PostgresCdcSourceTask
from standalone.connector import OffsetReader
from tests.connectors.polled import PolledTask
from tests.suite.patience import PATIENCE_SECONDS


class Database:
    def __init__(self, port, name):
        self.port, self.name = port, name

    def __enter__(self):
        self._admin(f"CREATE DATABASE {self.name}")
        return self

    def __exit__(self, *_):
        self.end_connections()
        slots = f"SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = '{self.name}'"
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                self._admin(slots)
                return self._admin(f"DROP DATABASE {self.name} WITH (FORCE)")
            except Exception:  # a connection that was ended still holds its slot for a moment
                if time.monotonic() > deadline:
                    raise

    def _admin(self, sql):
        with contextlib.closing(self.connect("postgres")) as connection:
            connection.autocommit = True
            connection.execute(sql)

    def connect(self, name=None):
        import psycopg

        return psycopg.connect(host="127.0.0.1", port=self.port, user="postgres", dbname=name or self.name, options="-c TimeZone=UTC")

    def run(self, *statements):
        """In one transaction."""
        with self.connect() as connection:
            for each in statements:
                connection.execute(each)

    def rows(self, sql):
        with self.connect() as connection:
            return connection.execute(sql).fetchall()

    def end_connections(self):
        """Those of this database alone: other tests use the same server."""
        self._admin(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{self.name}' AND pid <> pg_backend_pid()")

    def config(self, **options):
        return {
            "name": "tested", "connector.class": "PostgresCdcSource", "database.hostname": "127.0.0.1", "database.port": str(self.port),
            "database.user": "postgres", "database.password": "not-looked-at", "database.dbname": self.name, "topic.prefix": "p",
            "slot.name": f"slot_{self.name}", "publication.name": f"publication_{self.name}", "poll.interval.ms": "20",
            "retriable.restart.connector.wait.ms": "20", "slot.retry.delay.ms": "100", "slot.max.retries": "600", **options,
        }  # fmt: skip

    def slot(self):
        """(confirmed_flush_lsn, active) of the connector's slot, None where there is none."""
        found = self.rows(f"SELECT confirmed_flush_lsn - '0/0', active FROM pg_replication_slots WHERE slot_name = 'slot_{self.name}'")
        return (int(found[0][0]), found[0][1]) if found else None


class Stored(OffsetReader):
    """The worker's stored offsets."""

    def __init__(self):
        self.offsets = {}

    def offset(self, partition):
        return self.offsets.get(json.dumps(partition, sort_keys=True))

    def store(self, record):
        self.offsets[json.dumps(record.source_partition, sort_keys=True)] = json.loads(json.dumps(record.source_offset))


class Driver:
    """start(**options) -> a Task; all are closed after the test. `stored` outlives them, as a worker's offsets do."""

    def __init__(self, database):
        self._database, self.stored, self._tasks = database, Stored(), []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for task in self._tasks:
            task.close()

    def start(self, **options):
        config = self._database.config(**options)
        connector = PostgresCdcSourceConnector()
        connector.start(config)
        task = Task(connector.task_configs(1)[0], self.stored)
        self._tasks.append(task)
        return task


class Task(PolledTask):
    def __init__(self, config, stored):
        super().__init__(PostgresCdcSourceTask(), config, stored)
        self._stored, self._is_open = stored, True

    def poll(self):
        return self._task.poll() or []

    def poll_all(self):
        """What was kept for `take`, and what comes now."""
        found, self._rest = self._rest + self.poll(), []
        return found

    def take(self, count, is_all=True, stores=True):
        """As always; with `stores` their offset is stored."""
        records = super().take(count, is_all)
        if stores and count:
            self._stored.store(records[-1])
        return records

    def take_until(self, is_last, stores=True):
        """Up to the record that is the last."""
        records = []
        while not records or not is_last(records[-1]):
            records += self.take(1, is_all=False, stores=stores)
        return records

    def until_streaming(self, upto=0):
        """Until it streams changes, and has done with all up to that LSN; what comes meanwhile is kept for `take`."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self._task._session is None or self._task._session.position is None or self._task._session.position.commit < upto:
            assert time.monotonic() < deadline, "no changes are streamed"
            self._rest += self.poll()
        return self

    def commit(self):
        """The worker's sync, so often that the server is told of what is stored."""
        for _ in range(3):
            self._task.commit()

    def close(self):
        if self._is_open:
            self._is_open = False
            self._task.stop()
            self._task.close()

    def kill(self):
        """As if the process had ended: nothing is told to the server any more."""
        if self._is_open:
            self._is_open = False
            self._task.close()


def values(records):
    """What is told: (operation, what is now or, of a deletion, what was), None for a tombstone."""
    told = []
    for record in records:
        if record.value is None:
            told.append(None)
        else:
            struct = record.value["after"] or record.value["before"]
            told.append((record.value["op"], *(struct.values if struct is not None else ())))
    return told
