"""Bad records that a sink task finds itself, in put() or later: looks up their original bytes, and reports them.

`Originals` holds fetched records until their offsets are committed, for tasks that may report; `Reporter` is the object such a task gets.
`BadRecordSearch` finds the bad records in a batch that put() rejected, for a task whose put may be repeated.
"""

import collections

import numpy as np

from standalone.connector import ErrantRecordReporter
from standalone.errors import ConnectError, DataError, Stopped
from standalone.wire import NO_TIMESTAMP, ByteColumn, Records

COMMIT_BYTES = 32 << 20  # held since the last commit: beyond this a commit is due, which frees them
_MOST_BYTES = 64 << 20  # beyond this the oldest are freed; a later report serializes them again


class Originals:
    def __init__(self):
        self.kept = False  # whether records before the current put may be looked up
        self.nbytes = 0
        self._current = {}  # (topic, partition) -> list of wire.Records
        self._older = {}  # (topic, partition) -> deque of wire.Records, ascending

    def begin(self, fetched):
        """Records [(topic, partition, records)] that are about to be put."""
        self._current = collections.defaultdict(list)
        for topic, partition, records in fetched:
            self._current[topic, partition].append(records)
            if self.kept:
                self._older.setdefault((topic, partition), collections.deque()).append(records)
                self.nbytes += records.nbytes
        while self.nbytes > _MOST_BYTES and (pair := max(self._older, key=lambda pair: len(self._older[pair]), default=None)) is not None:
            self._drop(pair)

    def forget(self, pair, offset=float("inf")):
        """Records before that offset will not be looked up any more."""
        while self._older.get(pair) and self._older[pair][0].offsets[-1] < offset:
            self._drop(pair)

    def find(self, topic, partition, offset):
        """(wire.Records, row) of a record, or None."""
        pair = topic, partition
        for records in (*self._current.get(pair, ()), *self._older.get(pair, ())):
            if len(records):
                row = int(np.searchsorted(records.offsets, offset))
                if row < len(records) and int(records.offsets[row]) == offset:
                    return records, row
        return None

    def _drop(self, pair):
        self.nbytes -= self._older[pair].popleft().nbytes
        if not self._older[pair]:
            del self._older[pair]


class Reporter(ErrantRecordReporter):
    def __init__(self, originals, tolerance, chain):
        self._originals = originals
        self._tolerance = tolerance
        self._chain = chain
        self._last = None, {}  # the last fetched records, and the Futures of their reported rows

    def report(self, record, error):
        """If a transform made multiple records of one, the first report counts: the queue gets the original record once."""
        topic, partition, offset = record.original_topic, record.original_partition, record.original_offset
        records, row = self._originals.find(topic, partition, offset) or (self._written(record), 0)
        if self._last[0] is not records:
            self._last = records, {}
        reported = self._last[1]
        if row not in reported:
            reported[row] = self._tolerance.errant(topic, partition, records, row, error)
        return reported[row]

    def _written(self, record):
        chain = self._chain
        try:
            headers = [
                (header.name, chain.header_converter.from_header(record.topic, header.name, header.schema, header.value))
                for header in record.headers
            ]
            key = chain.key_converter.written(record.topic, record.key_schema, record.key, headers)
            value = chain.value_converter.written(record.topic, record.value_schema, record.value, headers)
        except Exception as error:
            where = f"{record.original_topic}-{record.original_partition} at offset {record.original_offset}"
            raise ConnectError(f"The record of {where} was reported but cannot be written to the dead letter queue: {error}") from error
        time = NO_TIMESTAMP if record.timestamp is None else record.timestamp
        return Records(
            1,
            ByteColumn.of([key]),
            ByteColumn.of([value]),
            np.array([time], np.int64),
            [headers],
            np.array([record.original_offset], np.int64),
            record.timestamp_type,
        )


class BadRecordSearch:
    """Bisects a rejected batch until each bad record is alone.

    A record rejected alone with a DataError is bad. Any other error may mean that the sink is unavailable: the record counts as bad if the
    sink still accepts the last batch that succeeded, else the task fails as it would without this search.
    """

    def __init__(self, put, report):
        self._put = put  # put(items); raises
        self._report = report  # report(record, error); raises if errors are not tolerated
        self._passed = None  # one item that the sink accepted: SinkRecords, or SinkBatches

    def passed(self, items):
        """The sink accepted these."""
        if items:
            self._passed = [items[-1].slice(len(items[-1]) - 1, len(items[-1]))] if hasattr(items[-1], "records") else items[-1:]

    def release(self, pairs):
        """Forget an accepted item of these partitions as a probe: a put of it would be skipped."""
        if self._passed and self._passed[0].origin in pairs:
            self._passed = None

    def find(self, items, error):
        """Put all of them that can be put, report the others."""
        suspects = []
        self._divide(items, error, suspects)
        if suspects:
            self._must_be_bad(suspects[0][1])
        for record, problem in suspects:
            self._report(record, problem)

    def _divide(self, items, error, suspects):
        halves = _halves(items)
        if halves is None:
            (item,) = items
            record = item.records()[0] if hasattr(item, "records") else item
            if isinstance(error, DataError):
                self._report(record, error)
            elif self._passed is None:
                suspects.append((record, error))  # no accepted item to probe with yet: decided at the end
            else:
                self._must_be_bad(error)
                self._report(record, error)
            return
        for half in halves:
            try:
                self._put(half)
            except Stopped:
                raise
            except Exception as problem:
                self._divide(half, problem, suspects)
            else:
                self.passed(half)

    def _must_be_bad(self, error):
        """Raise the error if the sink now also rejects what it accepted before."""
        if self._passed is None:
            raise error
        try:
            self._put(self._passed)
        except Exception:
            raise error from None


def _halves(items):
    """SinkRecords, or SinkBatches, in two halves, in order; None if there is only one record."""
    if len(items) > 1:
        return items[: len(items) // 2], items[len(items) // 2 :]
    (item,) = items
    if hasattr(item, "records") and len(item) > 1:
        middle = len(item) // 2
        return [item.slice(0, middle)], [item.slice(middle, len(item))]
    return None
