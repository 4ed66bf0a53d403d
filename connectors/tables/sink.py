"""TableSink: write topics to Iceberg and Delta tables, exactly-once, by Spark.

    keys.py     options                               store.py              create, widen, append, merge: one Spark job per commit
    routes.py   which table a record goes to          iceberg.py, delta.py  how a table records offsets
    columns.py  records as a table's rows             buffer.py             uncommitted rows

Rows are buffered in columns until the commit interval is over. A commit first reads the table's offsets, drops rows that it already has, and
writes the rest with their offsets: so the next commit repairs a restart, or a commit with unknown outcome.
"""

import functools
import time

import numpy as np
import pyarrow as pa

from connectors.tables import keys
from connectors.tables.buffer import Buffer
from connectors.tables.columns import NUMBER, joined, rows_of
from connectors.tables.keys import DELTA, TableSettings
from connectors.tables.routes import Routes
from standalone import ConfigError, ConnectError, DataError, RetriableError, SinkConnector, SinkTask


class TableSinkConnector(SinkConnector):
    """Write topics to Iceberg or Delta tables: append, or upsert by key; new fields become columns.

    iceberg.catalog.type=hadoop   iceberg.catalog.warehouse=file:///data/lake   iceberg.tables=db.orders
    """

    java_name = "org.apache.iceberg.connect.IcebergSinkConnector"
    config_def = keys.KEYS
    passing = keys.PASSING

    def validate(self, config):
        try:
            parsed = self.config_def.parse(config)
        except ConfigError:
            return {}  # the definition reports errors
        try:
            Routes(parsed, config)
        except ConfigError as error:
            return error.errors
        return keys.refusals(parsed, config)

    def task_configs(self, max_tasks):
        return [dict(self.config) for _ in range(max_tasks)]  # tasks share the topics' partitions


class TableSinkTask(SinkTask):
    takes_batches = True
    now = staticmethod(time.monotonic)

    def start(self, config):
        values = self._values = keys.KEYS.parse(config)
        self._originals = dict(config)
        self._routes = Routes(values, config)
        self._store = _kind(values)(values, self._originals, self.context.connector)
        self._reporter = self.context.errant_record_reporter()
        self._settings, self._buffers = {}, {}
        self._next = {}  # pair -> offset after the last buffered record
        self._since = None  # when the first uncommitted record arrived
        self._number = 0
        self._commits, self._rows = 0, 0

    def put(self, records):
        for batch in records:
            taken = self._next.get(batch.origin)
            if taken is not None:  # a repeated put
                batch = batch.slice(int(batch.offsets.searchsorted(taken)), len(batch))
            if len(batch):
                self._take(batch)
                self._next[batch.origin] = int(batch.offsets[-1]) + 1
        if not any(not buffer.is_empty for buffer in self._buffers.values()):
            self._since = None
            return
        self._since = self.now() if self._since is None else self._since
        due = self._since + self._values["iceberg.control.commit.interval-ms"] / 1000 - self.now()
        if due <= 0 or sum(buffer.nbytes for buffer in self._buffers.values()) >= self._values["commit.max.bytes"]:
            self._commit()
        else:
            self.context.timeout(max(1, int(due * 1000)))

    def pre_commit(self, offsets):
        return {pair: self._safe(pair, offset) for pair, offset in offsets.items()}

    def close(self, partitions):
        for pair in partitions:
            self._next.pop(pair, None)
            for buffer in self._buffers.values():
                buffer.drop(pair, None)

    def metrics(self):
        return {f"{self._values['table.format']}-commits-total": self._commits, f"{self._values['table.format']}-rows-total": self._rows}

    # --- Buffering ---

    def _take(self, batch):
        parts, refused = [], []
        for table, numbers in self._routes.of(batch):
            part = batch if numbers is None else batch.take(numbers)
            rows, required, bad = self._rows_of(part, self._settings_of(table))
            offsets = None if rows is None else part.offsets[rows[NUMBER].to_numpy() - self._number]
            if rows is not None and (np.diff(offsets) < 0).any():
                order = np.argsort(offsets, kind="stable")
                rows, offsets = rows.take(pa.array(order)), offsets[order]
            self._number += len(part)
            parts.append((table, offsets, rows, required))
            refused += [(part, row, bad[row]) for row in sorted(bad)]
        if not all(rows is None or self._buffer(table).takes(rows) for table, _, rows, _ in parts):
            # The new value does not fit the buffered column type: commit the buffer first, then let the table decide. Do so before buffering
            # anything, since the whole put may be repeated.
            self._commit()
        for part, row, error in refused:
            self._report(part.records()[row], error)
        for table, offsets, rows, required in parts:
            self._buffer(table).add(batch.origin, offsets, rows, required, int(batch.offsets[-1]) + 1)

    def _rows_of(self, part, settings):
        """Like columns.rows_of; if that rejects the whole batch, record by record."""
        try:
            return rows_of(part, self._number, settings.ids, settings.is_upsert)
        except DataError as error:
            if len(part) == 1:
                return None, None, {0: error}
        pieces, required, bad = [], None, {}
        for row in range(len(part)):
            try:
                rows, wants, errors = rows_of(part.slice(row, row + 1), self._number + row, settings.ids, settings.is_upsert)
                whole = joined([*pieces, rows]) if rows is not None else None
            except DataError as error:
                bad[row] = error
                continue
            if errors:
                bad[row] = next(iter(errors.values()))
            pieces = pieces if whole is None else [whole]
            required = wants if required is None or wants is None else required & wants
        return (pieces[0] if pieces else None), required, bad

    def _buffer(self, table):
        return self._buffers.setdefault(table, Buffer())

    def _settings_of(self, table):
        if table not in self._settings:
            if "." not in table:
                raise ConnectError(f"'{table}' is not a table name: it needs a database, as in db.{table}. See table.name.format.")
            self._settings[table] = TableSettings(self._values, self._originals, table)
        return self._settings[table]

    def _report(self, record, error):
        if self._reporter is None:
            raise error
        self._reporter.report(record, error)

    # --- Committing ---

    def _commit(self):
        try:
            for table, buffer in list(self._buffers.items()):
                if not buffer.is_empty:
                    settings = self._settings_of(table)
                    work = functools.partial(self._store.commit, table=table, settings=settings, buffer=buffer)
                    written = self.context.spark(work)
                    self._commits += 1
                    self._rows += written
                    self._buffers[table] = Buffer()
        except RetriableError:
            self.context.timeout(self._values["retry.backoff.ms"])
            raise
        self._since = None
        self.context.request_commit()

    def _safe(self, pair, offset):
        """Return the offset up to which everything is in the tables."""
        firsts = [first for buffer in self._buffers.values() if (first := buffer.first(pair)) is not None]
        return min([offset, *firsts])


def _kind(values):
    if values["table.format"] == DELTA:
        from connectors.tables.delta import DeltaTables

        return DeltaTables
    from connectors.tables.iceberg import IcebergTables

    return IcebergTables


TableSinkConnector.task_class = TableSinkTask
