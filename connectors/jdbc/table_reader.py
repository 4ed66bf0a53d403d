"""Read one table or query from its stored offset on: query after query, each in batches."""

import contextlib
import logging

from connectors.jdbc.arrow import struct_array
from connectors.jdbc.column import struct_schema
from connectors.jdbc.modes import Mode
from connectors.jdbc.place import Gaps, Place
from connectors.jdbc.read_ahead import read_ahead
from connectors.jdbc.source_keys import BULK, INCREMENTING
from standalone import ConnectError, SourceBatch

log = logging.getLogger(__name__)

GOOD_ROWS = 20_000  # rows in a batch, if batch.max.rows is not set
_SMALL_BYTES = 1 << 20  # a batch with fewer rows and fewer bytes is likely the last one
_LATE_MICROS = 60_000_000  # how long to query missing ids, if the database does not report open transactions
_SOON_MICROS = 1_000_000  # at least: a session may have taken an id and not yet started to write
_SLOW_MICROS = 60_000_000  # log a warning if an open transaction delays rows for so long


class TableReader:
    """`due` is the monotonic time of the next query. A query that has started is read to its end first."""

    def __init__(self, config, dialect, mapping, table, stored):
        self.due = 0.0
        self.table = table
        self._dialect, self._mapping = dialect, mapping
        self._mode = Mode(config, table, dialect)
        secret = config["query.masked"]
        self._query = config["query"] or (secret.value if secret else "")
        self._suffix = f" {config['query.suffix']}" if config["query.suffix"] else ""
        self._rows = max(1, config["batch.max.rows"]) if "batch.max.rows" in config.originals else GOOD_ROWS
        self._topic = _topic(config, table)
        self._delay = config["timestamp.delay.interval.ms"] * 1000
        self._window = config["late.rows.window.ms"]
        self._initial = config["timestamp.initial"]
        self.partition = _partition(table, self._mode.name)
        self._place = stored
        self._gaps = Gaps(stored.gaps) if self._looks_for_late_rows else None
        self._restored = self._gaps is not None and bool(self._gaps)
        self._batches = None
        self._warned = False

    @property
    def _looks_for_late_rows(self):
        return self._mode.name == INCREMENTING and self._window != 0 and self._dialect.ids_may_come_late

    @property
    def is_reading(self):
        return self._batches is not None

    def next(self, connection):
        """Return the next batch, or None at the end of the query."""
        if self._batches is None:
            self._dialect.begin_read(connection)
            self._batches = self._begun(connection)
        batch = next(self._batches, None)
        if batch is None:
            self._batches = None
            self._dialect.end_read(connection)
        return batch

    def forget(self):
        """After a lost connection: the next query starts after the last returned batch."""
        if self._batches is not None:
            self._batches.close()
        self._batches = None

    # --- One query -------------------------------------------------------------------------------------------------------
    def _begun(self, connection):
        base = self._query or f"SELECT * FROM {self._dialect.full(self.table)}"
        columns = self._columns(connection, base)
        schema = struct_schema(self.table and self.table.name, columns, self._mapping)
        if self._mode.name == BULK:
            yield from self._bulk(connection, base, columns, schema)
            return
        self._mode.take(columns)
        source = f"({self._query}) AS connect_query" if self._query else self._dialect.full(self.table)
        end = self._end(connection) if self._mode.is_timed else None
        if self._place.micros is None and self._mode.is_timed and self._initial is not None:
            start = self._dialect.now(connection) if self._initial == -1 else self._initial * 1000
            self._place = Place(start, self._place.number)
        if self._gaps is not None:
            yield from self._late(connection, source, columns, schema)
        mark = self._mark(connection) if self._gaps is not None else None
        sql = f"SELECT {self._dialect.chosen(columns)} FROM {source} {self._mode.conditions(self._place, end)}{self._suffix}"
        with contextlib.closing(self._chunks(connection, sql, columns)) as chunks:
            for (count, arrays), following in _with_following(chunks):
                yield self._batch(count, arrays, following, columns, schema, mark)

    def _chunks(self, connection, sql, columns):
        """Yield (number of rows, an Arrow array for each column) for each batch of a query."""
        chunks = self._dialect.read(connection, sql, columns, self._rows)
        return read_ahead(chunks, self._is_small) if self._dialect.reads_ahead else chunks

    def _is_small(self, chunk):
        count, arrays = chunk
        return count < self._rows and sum(array.nbytes for array in arrays) < _SMALL_BYTES

    def _columns(self, connection, base):
        if self.table is None:
            return self._dialect.describe(connection, base)
        columns = self._dialect.columns(connection, self.table)
        if columns is None:
            raise ConnectError(f"Table '{self.table}' does not exist in {self._dialect.location.shown}, or the user has no access to it.")
        return columns

    def _bulk(self, connection, base, columns, schema):
        chosen = self._dialect.chosen(columns)
        if chosen != "*":
            base = f"SELECT {chosen} FROM {f'({self._query}) AS connect_query' if self._query else self._dialect.full(self.table)}"
        with contextlib.closing(self._chunks(connection, f"{base}{self._suffix}", columns)) as chunks:
            for (count, arrays), following in _with_following(chunks):
                value = struct_array(schema, columns, arrays, self._mapping)
                yield SourceBatch(count, self._topic, value, schema, source_partition=self.partition, more_follows=following is not None)

    def _batch(self, count, arrays, following, columns, schema, mark):
        mode, before = self._mode, self._place
        numbers, micros = mode.numbers(columns, arrays), mode.micros(columns, arrays)
        next_micros = None
        if following is not None and micros is not None:
            next_micros = int(mode.micros(columns, following[1])[0])
        place = mode.places(numbers, micros, before, next_micros)
        self._place = place(count - 1)
        offset_of = lambda row: place(row).offset()  # noqa: E731
        if self._gaps is not None:
            given_up = self._gaps.note(before.number, numbers, mark)
            if given_up:
                log.warning(
                    "%s: giving up %d ranges of missing ids, as there are too many: rows committed late there would be lost",
                    self.table or "query",
                    given_up,
                )
            if self._gaps:
                known = self._gaps.ranges()
                offset_of = lambda row: Place(None, int(numbers[row]), _below(known, int(numbers[row]))).offset()  # noqa: E731
        return self._as_batch(count, arrays, columns, schema, offset_of, more_follows=following is not None)

    def _as_batch(self, count, arrays, columns, schema, offset_of, more_follows=False):
        value = struct_array(schema, columns, arrays, self._mapping)
        return SourceBatch(count, self._topic, value, schema, source_partition=self.partition, offset_of=offset_of, more_follows=more_follows)

    # --- Rows committed late ---------------------------------------------------------------------------------------------
    def _end(self, connection):
        """Return the time up to which rows are read: open transactions may still add later rows."""
        now = self._dialect.now(connection)
        held = self._dialect.horizon(connection) if self._window == -1 else None
        if held is not None and now - held > _SLOW_MICROS and not self._warned:
            log.warning(
                "%s: an open transaction delays the rows of the last %d s: see pg_stat_activity",
                self.table or "query",
                (now - held) // 1_000_000,
            )
        self._warned = held is not None and now - held > _SLOW_MICROS
        return min(now, now if held is None else held) - self._delay

    def _mark(self, connection):
        """Return the time and the current transaction id, which are stored with each new gap."""
        known = self._dialect.transactions_before(connection) if self._window == -1 else None
        return self._dialect.now(connection), None if known is None else known[0]

    def _late(self, connection, source, columns, schema):
        """Yield the rows that have filled gaps; then drop the gaps that no open transaction can fill."""
        if not self._gaps:
            return
        now, known = self._dialect.now(connection), self._dialect.transactions_before(connection) if self._window == -1 else None
        if self._restored:  # their age is unknown
            self._gaps = Gaps(self._gaps.ranges(), (now, None if known is None else known[0]))
            self._restored = False
        sql = f"SELECT {self._dialect.chosen(columns)} FROM {source} {self._mode.missed(self._gaps.ranges())}{self._suffix}"
        for _, arrays in self._dialect.read(connection, sql, columns, self._rows):
            numbers = self._mode.numbers(columns, arrays).tolist()
            rows = [row for row, number in enumerate(numbers) if self._gaps.holds(number)]
            if not rows:
                continue
            places = []
            for row in rows:
                self._gaps.fill(numbers[row])
                places.append(Place(None, self._place.number, self._gaps.ranges()))
            log.info("%s: %d rows were committed late", self.table or "query", len(rows))
            yield self._as_batch(len(rows), [array.take(rows) for array in arrays], columns, schema, lambda row, places=places: places[row].offset())

        def is_over(mark):
            seen, transaction = mark
            if known is not None and transaction is not None:
                return now - seen >= _SOON_MICROS and known[1] >= transaction
            return now - seen >= (_LATE_MICROS if self._window == -1 else self._window * 1000)

        self._gaps.drop(is_over)


def _below(ranges, number):
    return tuple(each for each in ranges if each[1] < number)


def _with_following(chunks):
    """Yield each chunk with the following one, or None."""
    chunk = next(chunks, None)
    while chunk is not None:
        following = next(chunks, None)
        yield chunk, following
        chunk = following


def _topic(config, table):
    prefix = config["topic.prefix"].strip()
    if table is None:
        return prefix
    return prefix + (".".join(table.parts[-2:]) if config["topic.qualified"] else table.name)


def _partition(table, mode):
    if table is None:
        return {"query": "query"}
    return {"table": table.name} if mode == BULK else {"table": table.full, "protocol": "1"}


def stored_place(reader, partition, table, catalog=None):
    """Return the Place of a stored offset. Confluent's current partition form precedes the older one, which has only the table name."""
    forms = [partition]
    if table is not None:
        forms += [{"table": f"{catalog}.{table.full}", "protocol": "1"}] if catalog else []
        forms += [{"table": table.name}]
    for offset in reader.offsets(forms):
        if offset is not None:
            return Place.of(offset)
    return Place()
