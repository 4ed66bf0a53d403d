"""Stream changes from a position on: convert pgoutput messages to records with their positions."""

import struct
import time

from connectors.postgres_cdc.pgoutput import Begin, Change, Commit, Message, Relation, Truncate, decode
from connectors.postgres_cdc.position import Position
from connectors.postgres_cdc.records import OPERATIONS, NullInRequired, Place

_XLOG, _KEEPALIVE = ord("w"), ord("k")


class Stream:
    """`position` is after the last returned record; `confirmed` is notified of progress."""

    def __init__(self, config, replication, position, confirmed, catalog, shapes, records, filters):
        import psycopg

        self._lost = psycopg.Error, OSError
        self._replication, self._confirmed = replication, confirmed
        self._shape_maker, self._records, self._filters = shapes, records, filters
        self._catalog = catalog
        self.position = position
        self._from = position  # what was processed of the first transaction
        self._relations, self._shapes, self._nullable = {}, {}, {}
        self._failure = None
        self._skipped = {each for each in config["skipped.operations"] or () if each != "none"}
        self._tells_transactions = config["provide.transaction.metadata"]
        self._transaction = None
        self._xmin_every, self._xmin_at, self.xmin, self._slot = config["xmin.fetch.interval.ms"] / 1000, 0.0, None, config["slot.name"]

    def read(self, count, seconds):
        """Return up to about `count` SourceRecords; wait up to `seconds` for the first message."""
        if self._failure is not None:
            raise self._failure
        found = []
        try:
            while len(found) < count:
                data = self._replication.read(0.0 if found else seconds)
                if data is None or not self._take(data, found):
                    break
        except self._lost as error:  # of either connection: column types are queried on the other one
            if not found:
                raise
            self._failure = error  # return the records found first
        return found

    def _take(self, data, found):
        """Process a message; return whether to read on at once."""
        if data[0] == _XLOG:
            (start,) = struct.unpack_from(">Q", data, 1)
            found += self._told(decode(data[25:]), start)
        elif data[0] == _KEEPALIVE:
            end, _, must_answer = struct.unpack_from(">QqB", data, 1)
            self._alive(end, must_answer)
            return bool(found)
        return True

    def heartbeat(self):
        """Return a record that only carries the position."""
        offset = self._offset(None, None)
        return self._emitted(self._records.made(self._records.heartbeat(), offset, offset))

    def _alive(self, end, must_answer):
        if self._transaction is None and end > self.position.commit and not self._is_within_first():
            self.position = Position(end)
            self._confirmed.done(end)
        if must_answer:
            self._replication.confirm(self._confirmed.lsn)

    def _is_within_first(self):
        """Whether the first transaction still has messages that were processed before the start."""
        return self._from is not None and (self._from.event or self._from.upto_lsn)

    # --- One message -----------------------------------------------------------------------------------------------------
    def _told(self, message, lsn):
        if isinstance(message, Change):
            return self._changed(message, lsn)
        if isinstance(message, Relation):
            self._relations[message.oid] = message
            self._shapes.pop(message.oid, None)
            self._nullable.pop(message.oid, None)
        elif isinstance(message, Begin):
            self._begin(message)
        elif isinstance(message, Commit):
            return self._end(message)
        elif isinstance(message, Truncate):
            return self._truncated(message, lsn)
        elif isinstance(message, Message):
            return self._messaged(message, lsn)
        return []

    def _begin(self, told):
        done = self._from if self._from is not None and self._from.xid == told.xid else None
        self._transaction, self._from = _Transaction(told, done), None
        if done is None:  # otherwise the position is inside it and stays until something new comes, as the connection may be lost before
            self.position = Position(self.position.commit, 0, told.xid)

    def _end(self, told):
        transaction, self._transaction = self._transaction, None
        self.position = Position(told.end_lsn)
        records = []
        if self._tells_transactions and transaction.total:
            parts = self._records.transaction("END", transaction.identity, transaction.begin.micros, transaction.counts)
            records = self._emitted(self._records.made(parts, None, self._offset(told.end_lsn, "COMMIT")))
        self._confirmed.done(told.end_lsn)
        return records

    def _changed(self, change, lsn):
        relation, operation = self._relations[change.relation], OPERATIONS[change.kind]
        if operation in self._skipped or not self._filters.table(relation.schema, relation.table):
            self._count(lsn)
            return []
        return self._returned_records(lsn, _KINDS[operation], lambda place, block: self._records_of(change, place, block))

    def _records_of(self, change, place, block):
        while True:
            try:
                return self._records.changed(self._shape(change.relation), change, place, block)
            except NullInRequired as found:  # the column was nullable when this change was written
                self._nullable.setdefault(change.relation, set()).add(str(found))
                self._shapes.pop(change.relation, None)

    def _shape(self, oid):
        shape = self._shapes.get(oid)
        if shape is None:
            shape = self._shapes[oid] = self._shape_maker.of(self._relations[oid], self._nullable.get(oid, ()))
        return shape

    def _truncated(self, told, lsn):
        taken = [self._relations[oid] for oid in told.relations if oid in self._relations]
        taken = [each for each in taken if self._filters.table(each.schema, each.table)]
        if "t" in self._skipped or not taken:
            self._count(lsn)
            return []
        return self._returned_records(
            lsn, "TRUNCATE",
            lambda place, block: [part for each in taken for part in self._records.truncated(self._shape(each.oid), place, block)],
        )  # fmt: skip

    def _messaged(self, told, lsn):
        is_taken = self._filters.message(told.prefix)
        if told.is_transactional and self._transaction is not None:
            if not is_taken:
                self._count(lsn)
                return []
            return self._returned_records(lsn, "MESSAGE", lambda place, block: self._records.message(told, place, block))
        if not is_taken or told.lsn < self.position.commit:
            return []
        place = Place(time.time_ns() // 1000, told.lsn, None, self.position.commit, xmin=self.xmin)
        made = self._records.message(told, place, _no_block)
        self.position = Position(max(told.lsn + 1, self.position.commit))  # beyond it the server will not send it again
        offset = self._offset(told.lsn, "MESSAGE")
        return self._emitted(self._records.made(made, offset, offset))

    # --- Counting --------------------------------------------------------------------------------------------------------
    def _count(self, lsn):
        """Count the current message as processed."""
        self.position, _ = self._counted(lsn)

    def _counted(self, lsn):
        """Return (position after the current message, whether it is new)."""
        transaction = self._transaction
        transaction.event += 1
        if transaction.was_done(lsn):
            return self.position, False
        return Position(self.position.commit, transaction.event, transaction.begin.xid), True

    def _returned_records(self, lsn, kind, parts):
        """Return the records of `parts(place, block)`; `block(table)` returns the transaction block, and counts."""
        transaction = self._transaction
        before = self._offset(lsn, kind)
        behind, is_new = self._counted(lsn)
        if not is_new and not self._tells_transactions:
            self.position = behind
            return []
        begin, is_first = transaction.begin, transaction.total == 0
        place = Place(begin.micros, lsn, begin.xid, self.position.commit, xmin=self._xmin())
        made = parts(place, self._block if self._tells_transactions else _no_block)
        self.position = behind  # not earlier: what failed is repeated
        if not is_new or not made:
            return []
        if self._tells_transactions and is_first:
            made = self._records.transaction("BEGIN", transaction.identity, begin.micros) + made
        return self._emitted(self._records.made(made, before, self._offset(lsn, kind)))

    def _block(self, table):
        return self._records.block(self._transaction.identity, *self._transaction.counted(table))

    def _offset(self, lsn, kind):
        micros = self._transaction.begin.micros if self._transaction is not None else None
        return self.position.offset(lsn, micros, kind)

    def _emitted(self, records):
        self._confirmed.emitted(self.position)
        return records

    def _xmin(self):
        if self._xmin_every and time.monotonic() >= self._xmin_at:
            self._xmin_at = time.monotonic() + self._xmin_every
            self.xmin = self._catalog.xmin(self._slot)
        return self.xmin


def _no_block(table):
    return None


_KINDS = {"c": "INSERT", "u": "UPDATE", "d": "DELETE"}


class _Transaction:
    """The current transaction; `done` messages of it were processed before the start."""

    def __init__(self, begin, done):
        self.begin = begin
        self.identity = f"{begin.xid}:{begin.final_lsn}"
        self._done = done
        self.event = self.total = 0
        self.counts = {}

    def counted(self, table):
        """Count one more event, in total and per table."""
        self.total += 1
        self.counts[table] = self.counts.get(table, 0) + 1
        return self.total, self.counts[table]

    def was_done(self, lsn):
        if self._done is None:
            return False
        if self._done.upto_lsn is not None:
            return lsn <= self._done.upto_lsn
        return self.event <= self._done.event
