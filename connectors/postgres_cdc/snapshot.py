"""Read all tables at one position of the log; streaming starts exactly there, so no change is missing or duplicated.

The position is that of a replication slot's creation, at which the server exports a snapshot. If the slot already exists, a temporary one
serves for this.
"""

import contextlib
import logging
import select
import time

from connectors.postgres_cdc.connection import asking, lsn_of
from connectors.postgres_cdc.position import Position
from connectors.postgres_cdc.records import Place
from connectors.postgres_cdc.texts import copied

log = logging.getLogger(__name__)

_FIRST, _FIRST_OF_TABLE, _LAST_OF_TABLE, _LAST, _BETWEEN = "first", "first_in_data_collection", "last_in_data_collection", "last", "true"


def quoted(*names):
    return ".".join('"' + name.replace('"', '""') + '"' for name in names)


class Moment:
    """A log position and the name of its exported snapshot; valid while the connection that created it does nothing else."""

    def __init__(self, answer):
        self.lsn = lsn_of(answer["consistent_point"])
        self.name = answer["snapshot_name"]


class Snapshot:
    """`records(stopped)` yields SourceRecords, and None while waiting; then `position` is where changes begin."""

    def __init__(self, config, moment, catalog, shapes, records, filters):
        self._config, self._catalog, self._shapes, self._records, self._filters = config, catalog, shapes, records, filters
        self.position = Position(moment.lsn)
        self._connection = asking(config)
        run = self._connection.execute
        run("SET statement_timeout = 0")
        run("BEGIN ISOLATION LEVEL REPEATABLE READ")
        run(f"SET TRANSACTION SNAPSHOT '{moment.name}'")
        self._micros, self._xid = run(
            "SELECT (extract(epoch FROM transaction_timestamp()) * 1000000)::int8, (txid_snapshot_xmax(txid_current_snapshot()) % 4294967296)::int8"
        ).fetchone()
        self._tables = self._chosen()

    def cancel(self):
        """Cancel the running query, from another thread."""
        with contextlib.suppress(Exception):  # may be closed at the same time
            self._connection.cancel_safe(timeout=2)

    def close(self):
        self._connection.close()

    def records(self, stopped):
        """Yield each row when the next one has arrived: only then it is known not to be the last."""
        waiting, count = None, 0
        started = time.monotonic()
        for schema, table, oid, sql in self._tables:
            shape = self._shapes.of(self._catalog.relation(oid, schema, table))
            begins = True
            for line in self._lines(sql(shape), stopped):
                if line is None:
                    yield None
                    continue
                if waiting is not None:
                    shape_before, row, mark = waiting
                    yield self._made(shape_before, row, _LAST_OF_TABLE if begins and mark != _FIRST else mark)
                waiting = (shape, copied(line), _FIRST if count == 0 else _FIRST_OF_TABLE if begins else _BETWEEN)
                begins = False
                count += 1
        if waiting is not None:
            yield self._made(*waiting[:2], _LAST)
        log.info("The snapshot read %d rows of %d tables in %.1f s", count, len(self._tables), time.monotonic() - started)

    def _made(self, shape, row, mark):
        position = Position(self.position.commit, xid=self._xid, is_snapshot=True, is_complete=mark == _LAST)
        place = Place(self._micros, self.position.commit, self._xid, snapshot=mark)
        offset = position.offset(micros=self._micros)
        return self._records.made(self._records.read(shape, row, place), offset, offset)[0]

    # --- Queries -----------------------------------------------------------------------------------------------------------
    def _chosen(self):
        """Return [(schema, table, oid, function from its shape to the SQL of its rows)]."""
        config = self._config
        via_root = config["publish.via.partition.root"]
        found = [each for each in self._catalog.tables(via_root) if self._filters.table(*each[:2]) and self._filters.snapshot(*each[:2])]
        order = config["snapshot.tables.order.by.row.count"].lower()
        if order != "disabled":
            found.sort(key=lambda each: each[3], reverse=order == "descending")
        if config["snapshot.locking.mode"].lower() == "shared" and found:
            self._connection.execute(f"SET LOCAL lock_timeout = {config['snapshot.lock.timeout.ms']}")
            self._connection.execute(f"LOCK TABLE {', '.join(quoted(*each[:2]) for each in found)} IN ACCESS SHARE MODE")
        return [(schema, table, oid, self._query(schema, table)) for schema, table, oid, _ in found]

    def _query(self, schema, table):
        config, name = self._config, f"{schema}.{table}"
        listed = [each.strip() for each in (config["snapshot.select.statement.overrides"] or "").split(",")]
        override = config.originals.get(f"snapshot.select.statement.overrides.{name}") if name in listed else None
        only = "" if config["publish.via.partition.root"] else "ONLY "  # rows of inheriting tables belong to those tables
        rows = f"({override.strip().rstrip(';')}) AS chosen" if override else f"{only}{quoted(schema, table)}"
        return lambda shape: f"COPY (SELECT {', '.join(quoted(each.name) for each in shape.relation.columns)} FROM {rows}) TO STDOUT"

    def _lines(self, sql, stopped):
        """Yield the lines of a COPY from libpq; None while there are none."""
        import psycopg

        pgconn = self._connection.pgconn
        result = pgconn.exec_(sql.encode())
        if result.status != psycopg.pq.ExecStatus.COPY_OUT:
            raise psycopg.errors.error_from_result(result, encoding="utf-8")
        while True:
            size, line = pgconn.get_copy_data(1)
            if size > 0:
                yield bytes(line)
            elif size < 0:
                break
            else:
                if stopped.is_set():
                    return
                if not select.select([pgconn.socket], [], [], 0.25)[0]:
                    yield None
                pgconn.consume_input()
        while (result := pgconn.get_result()) is not None:
            if result.status != psycopg.pq.ExecStatus.COMMAND_OK:
                raise psycopg.errors.error_from_result(result, encoding="utf-8")
