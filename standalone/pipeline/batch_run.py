"""One batch on its way through the segments of a chain. What a segment leaves to rows is done by rows, from where it is, in order.

A *place* is that of a record among those available; `rows` has the row that it came of. Links that remember records see each one once, in
order, also those that the segments before them could not do.
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
    """Where the records of a sink's batch come from: what was fetched. `refused` has what the value's converter said of single rows."""

    def __init__(self, engine, topic, partition, records=None, refused=None):
        self._engine, self._origin, self._records, self._refused = engine, (topic, partition), records, refused or {}
        self._decoded = {}

    def adopt(self, batch, rows):
        """These columns are what was fetched, decoded: their rows are not decoded again."""
        self._decoded = dict(zip(rows.tolist(), self.records(batch, rows)))

    def record(self, row):
        found = self._decoded.get(row)
        return self._engine.decode(*self._origin, self._records, row, self._refused.get(row)) if found is None else found

    def failed(self, row, failure):
        """The record of a failed row, as it came; None where it could not be read."""
        return self.record(row) if failure.stage == TRANSFORMATION else None

    def records(self, batch, rows):
        return sink_batch(batch, *self._origin).records()

    def carried(self, rows):
        """What another process needs to know for records of its own."""
        return self._origin

    def columns(self, records):
        """Records as a ColumnBatch; None where they are not alike."""
        first = records[0]
        topic, partition, timestamp_type = first.original_topic, first.original_partition, first.timestamp_type
        for each in records:
            if each.original_topic != topic or each.original_partition != partition or each.timestamp_type != timestamp_type:
                return None
        offsets = np.array([record.original_offset for record in records], np.int64)
        return ColumnBatch(len(records), offsets=offsets, timestamp_type=timestamp_type, **columns_of(records))


class SourceOrigin:
    """The same of a source: the batch that was polled."""

    def __init__(self, batch):
        self._batch = batch

    def adopt(self, batch, rows):
        """It was never decoded."""

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
        """What was `carried`, in the other process."""
        return cls(SourceBatch(len(offsets), None, source_partition=source_partition, offset_of=offsets.__getitem__))

    def columns(self, records):
        return ColumnBatch(len(records), **columns_of(records))


class BatchRun:
    """The batch's columns are in `batch` (None where there are none any more), with their `places`; the places in `left` are for the rows
    engine. `rows` has the row of each place, `failures` what failed, by row.
    """

    def __init__(self, engine, origin, batch, places, left, count):
        self._engine, self._origin = engine, origin
        self._made = None  # the records at the places, from the link `_begun` on; None: those that came
        self._begun = 0
        self._parked = []  # (place, row, record, the link that it is before): of no common columns
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
        """Whether all rows are in columns, each once."""
        return self.has_columns and self.places is self.rows and self._made is None and not len(self.left)

    @property
    def has_columns(self):
        return self.batch is not None and self.batch.count > 0

    def through(self, segment, failed):
        """Do one segment in columns, and say whether that was done; else the batch goes by rows. `failed(error)` is told of what should not
        have happened."""
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
        """Leave these places to rows, with all that was made of them so far."""
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
        if self._made is None:  # nothing of what was done so far stays
            self.by_columns = self.by_spark = False
        self.left = union(self.left, np.unique(self.places))
        self.batch, self.places = None, NO_ROWS

    def by_rows(self, segment):
        """One segment by rows, here: its links may remember what they see."""
        self.by_columns = False
        self.reason = self.reason or segment.describe()[0]
        pairs = self._rest(segment.low)
        if self.has_columns:
            rows = self.rows[self.places]
            ready = zip(self.places.tolist(), rows.tolist(), self._origin.records(self.batch, rows))
            pairs = sorted([*ready, *pairs], key=lambda pair: pair[0]) if pairs else ready
        made = [(row, record) for _, row, record in self._worked(pairs, segment.low, segment.high)]
        if self.failures:  # of multiple records that came of one, all go with it
            made = [pair for pair in made if pair[0] not in self.failures]
        self._made = [record for _, record in made]
        self.rows = np.fromiter((row for row, _ in made), np.int64, len(made))
        self._begun = segment.high
        self.batch, self.places, self.left, self._parked = self._in_columns(), np.arange(len(made)), NO_ROWS, []
        if self.batch is None:
            self.left, self.places = self.places, NO_ROWS

    def _in_columns(self):
        """The records as columns; None where they have none in common."""
        if not self._made:
            return None
        return alike_in_columns(self._made, self._origin.columns)

    def _worked(self, items, low, high):
        """[(place, row, record)] after the links from low to high; what fails is noted."""
        failures = []
        made = list(self._engine.through(items, low, high, failures))
        for row, failure in failures:
            self.fail(row, failure)
        return made

    def _rest(self, high, left=None):
        """[(place, row, record)] of the places left to rows, after the link `high`, in order."""
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
        """The same after all links."""
        return self._rest(None)

    def fail(self, row, failure):
        """Note that a row failed."""
        if row not in self.failures:
            failure.record = self._origin.failed(row, failure)
            self.failures[row] = kept(failure)

    def without_failed(self):
        """Take from the columns what came of rows that failed in another record of theirs."""
        if self.failures and self.has_columns:
            good = np.flatnonzero(~np.isin(self.rows[self.places], list(self.failures)))
            if len(good) < len(self.places):
                self.batch, self.places = self.batch.take(good), self.places[good]

    def dropped(self, there):
        """The rows of which nothing is left, given arrays of those of which something is."""
        gone = np.ones(self.count, bool)
        for rows in (*there, list(self.failures)):
            gone[rows] = False
        return np.flatnonzero(gone)


def alike_in_columns(records, columns):
    """Records as a ColumnBatch by the function `columns`; None where they have no columns in common."""
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
