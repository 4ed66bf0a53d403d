"""One batch on its way through the segments of a chain. The rows engine continues with records that a segment cannot process, in order.

A *place* is a record's index among the current records; `rows` has each place's original row. Stateful links see each record once and in
order, including those that earlier segments could not process.
"""

import logging

import numpy as np

from standalone.data.arrow import NotColumns
from standalone.data.batch import SourceBatch, columns_of
from standalone.data.shaping import shaped
from standalone.errors import Stopped
from standalone.pipeline.columns.batch import ColumnBatch, sink_batch, source_batch
from standalone.pipeline.columns.segments import NO_ROWS, ByRows, short
from standalone.pipeline.repair import union
from standalone.pipeline.rows.engine import TRANSFORMATION, kept
from standalone.pipeline.spark.job import SparkGone

log = logging.getLogger(__name__)


class SinkOrigin:
    """The origin of a sink's batch: the fetched records. `refused` has the value converter's errors by row."""

    def __init__(self, engine, topic, partition, records=None, refused=None):
        self._engine, self._origin, self._records, self._refused = engine, (topic, partition), records, refused or {}
        self._decoded = {}

    def adopt(self, batch, rows):
        """Use these decoded columns: their rows are not decoded again."""
        self._decoded = dict(zip(rows.tolist(), self.records(batch, rows)))

    def record(self, row):
        found = self._decoded.get(row)
        return self._engine.decode(*self._origin, self._records, row, self._refused.get(row)) if found is None else found

    def failed(self, row, failure):
        """Return a failed row's original record; None if it could not be decoded."""
        return self.record(row) if failure.stage == TRANSFORMATION else None

    def records(self, batch, rows):
        return sink_batch(batch, *self._origin).records()

    def carried(self, rows):
        """Return what another process needs to build its own records."""
        return self._origin

    def columns(self, records):
        """Convert records to a ColumnBatch; None if they differ in topic, partition or timestamp type."""
        first = records[0]
        topic, partition, timestamp_type = first.original_topic, first.original_partition, first.timestamp_type
        for each in records:
            if each.original_topic != topic or each.original_partition != partition or each.timestamp_type != timestamp_type:
                return None
        offsets = np.array([record.original_offset for record in records], np.int64)
        return ColumnBatch(len(records), offsets=offsets, timestamp_type=timestamp_type, **columns_of(records))


class SourceOrigin:
    """The origin of a source's batch: the polled records."""

    def __init__(self, batch):
        self._batch = batch

    def adopt(self, batch, rows):
        """Do nothing: source records need no decoding."""

    def record(self, row):
        return self._batch.records()[row]

    def failed(self, row, failure):
        return self.record(row)

    def records(self, batch, rows):
        numbers = rows.tolist()
        offset_of = self._batch.offset_of
        return source_batch(batch, self._batch.source_partition, lambda at: offset_of(numbers[at])).records()

    def carried(self, rows):
        return self._batch.source_partition, [self._batch.offset_of(row) for row in rows.tolist()]

    @classmethod
    def carried_here(cls, source_partition, offsets):
        """Rebuild the origin from `carried`, in the other process."""
        return cls(SourceBatch(len(offsets), None, source_partition=source_partition, offset_of=offsets.__getitem__))

    def columns(self, records):
        return ColumnBatch(len(records), **columns_of(records))


class BatchRun:
    """A batch in `batch` (columns, or None if none are left) with their `places`; the rows engine processes the places in `left`. `rows` has
    each place's row, `failures` the failures by row.
    """

    def __init__(self, engine, origin, batch, places, left, count):
        self._engine, self._origin = engine, origin
        self._made = None  # records by place, from link `_begun` on; None: the original ones
        self._begun = 0
        self._parked = []  # (place, row, record, next link) without common columns
        self.count = count
        self.rows = np.arange(count)
        self.batch, self.left = batch, left
        self._came = batch
        self.places = self.rows if places is None else places
        self.failures = {}
        self.by_spark = False  # whether a job did some of it
        self.reason = None  # why all of it went by rows, where it did
        self.by_columns = True  # but for single rows
        self.ready = None  # the SinkBatch, where it was prepared

    @property
    def is_whole(self):
        """Whether all rows are in columns, once each."""
        return self.has_columns and self.places is self.rows and self._made is None and not len(self.left)

    @property
    def has_columns(self):
        return self.batch is not None and self.batch.count > 0

    def through(self, segment, failed):
        """Run one segment in columns; return False if the batch must go by rows. `failed(error)` is called for unexpected
        errors."""
        try:
            batch, rows, redo = segment.run(self.batch, self._origin, self.rows[self.places])
        except (ByRows, NotColumns, SparkGone) as reason:
            self.reason = str(reason)
            self.leave_all()
            return False
        except Stopped:
            raise
        except Exception as error:
            failed(error)
            self.reason = f"{type(error).__name__}: {short(error)}"
            self.leave_all()
            return False
        left = np.unique(self.places[redo])
        if rows is not None:
            self.places = self.places[rows]
        if isinstance(batch, list):
            self._parked += [(place, int(self.rows[place]), record, segment.high) for place, record in zip(self.places.tolist(), batch)]
            self.batch, self.places = None, NO_ROWS
        else:
            self.batch = batch
        self.leave(left)
        return True

    def leave(self, places):
        """Leave these places to the rows engine, with the results so far."""
        if not len(places):
            return
        self.left = union(self.left, places)
        self._parked = [each for each in self._parked if each[0] not in places]
        if self.has_columns:
            good = np.flatnonzero(~np.isin(self.places, places))
            if len(good) < len(self.places):
                self.batch, self.places = self.batch.take(good), self.places[good]

    def leave_all(self):
        if self.has_columns and self.batch is self._came:
            self._origin.adopt(self.batch, self.places)
        if self._made is None:  # no earlier result is kept
            self.by_columns = self.by_spark = False
        self.left = union(self.left, np.unique(self.places))
        self.batch, self.places = None, NO_ROWS

    def by_rows(self, segment):
        """Run one segment by rows in this thread, since its links may be stateful."""
        self.by_columns = False
        self.reason = self.reason or segment.describe()[0]
        pairs = self._rest(segment.low)
        if self.has_columns:
            rows = self.rows[self.places]
            ready = zip(self.places.tolist(), rows.tolist(), self._origin.records(self.batch, rows))
            pairs = sorted([*ready, *pairs], key=lambda pair: pair[0]) if pairs else ready
        made = [(row, record) for _, row, record in self._worked(pairs, segment.low, segment.high)]
        if self.failures:  # a failure also fails the other records of its row
            made = [pair for pair in made if pair[0] not in self.failures]
        self._made = [record for _, record in made]
        self.rows = np.fromiter((row for row, _ in made), np.int64, len(made))
        self._begun = segment.high
        self.batch, self.places, self.left, self._parked = self._in_columns(), np.arange(len(made)), NO_ROWS, []
        if self.batch is None:
            self.left, self.places = self.places, NO_ROWS

    def _in_columns(self):
        """Convert the records to columns; None if they have none in common."""
        if not self._made:
            return None
        return alike_in_columns(self._made, self._origin.columns)

    def _worked(self, items, low, high):
        """Return [(place, row, record)] after links low to high; failures are recorded."""
        failures = []
        made = list(self._engine.through(items, low, high, failures))
        for row, failure in failures:
            self.fail(row, failure)
        return made

    def _rest(self, high, left=None):
        """Return [(place, row, record)] of the places left to the rows engine, after link `high`, in order."""
        items = []
        for place in (self.left if left is None else left).tolist():
            row = int(self.rows[place])
            try:
                items.append((place, row, self._origin.record(place) if self._made is None else self._made[place]))
            except Exception as failure:
                if not hasattr(failure, "stage"):
                    raise
                self.fail(row, failure)
        done = self._worked(items, self._begun, high)
        for begun in sorted({each[3] for each in self._parked}):
            parked = [each[:3] for each in self._parked if each[3] == begun]
            done = sorted(done + self._worked(parked, begun, high), key=lambda item: item[0])
        return done

    def rest(self):
        """Like `_rest`, after all links."""
        return self._rest(None)

    def fail(self, row, failure):
        """Record the failure of a row."""
        if row not in self.failures:
            failure.record = self._origin.failed(row, failure)
            self.failures[row] = kept(failure)

    def without_failed(self):
        """Remove from the columns the records whose row failed through another record."""
        if self.failures and self.has_columns:
            good = np.flatnonzero(~np.isin(self.rows[self.places], list(self.failures)))
            if len(good) < len(self.places):
                self.batch, self.places = self.batch.take(good), self.places[good]

    def dropped(self, there):
        """Return the rows without any result; the arguments are arrays of rows that have one."""
        gone = np.ones(self.count, bool)
        for rows in (*there, list(self.failures)):
            gone[rows] = False
        return np.flatnonzero(gone)


def alike_in_columns(records, columns):
    """Convert records to a ColumnBatch with the function `columns`; None if they have no common columns."""
    first = records[0]
    if not all(_is(each.value_schema, first.value_schema) and _is(each.key_schema, first.key_schema) for each in records):
        return None
    batch, parts = columns(records), {}
    if batch is None:
        return None
    for name in ("key", "value"):
        values = getattr(batch, name)
        if values.count(None) == len(values):
            parts[name] = None
        elif getattr(batch, f"{name}_schema") is None:
            parts[name] = shaped(values)
            if parts[name] is None:
                return None
    return batch.with_(**parts)


def _is(schema, other):
    return schema is other or schema == other


def warn(what, error):
    log.warning("%s: %s: %s", what, type(error).__name__, short(error))
