"""Chains with links that have no column meaning: those are run by rows, over records made of the columns, the others in columns.

Nothing is done twice: each such link sees every record once, in order, also those that the columns engine could not do. What is marked
behind it goes on by rows from where it stands. A *place* is that of a record among those at hand; `rows` has the row that it came of.
"""

import numpy as np

from standalone.data.batch import SourceBatch, columns_of
from standalone.data.shaping import shaped
from standalone.errors import Stopped
from standalone.pipeline.ends import NO_ROWS, union
from standalone.pipeline.frame import Frame, sink_batch
from standalone.pipeline.rows import TRANSFORMATION, kept, listed
from standalone.stage import Predicate, QueryTransform, StageFailed, Transform


def stretches(links):
    """[(low, high, whether they are run by rows)] of a chain that has links of both kinds; None of others."""
    if any(isinstance(link.transform, QueryTransform) for link in links):
        return None
    kinds = [_has_no_columns(link) for link in links]
    if not any(kinds):
        return None
    bounds = [0, *(at for at in range(1, len(links)) if kinds[at] != kinds[at - 1]), len(links)]
    return [(low, high, kinds[low]) for low, high in zip(bounds, bounds[1:])]


def _has_no_columns(link):
    inherits = type(link.transform).columns is Transform.columns
    return inherits or link.predicate is not None and type(link.predicate).columns is Predicate.columns


class SinkStart:
    """Where the records of a sink come from. `frame` has their columns."""

    def __init__(self, engine, topic, partition, records, refused):
        self._engine, self._origin, self._records, self._refused = engine, (topic, partition), records, refused

    def record(self, row):
        return self._engine.decode(*self._origin, self._records, row, self._refused.get(row))

    def failed(self, row, failure):
        """The record of a failed row, as it came; None where it could not be read."""
        return self.record(row) if failure.stage == TRANSFORMATION else None

    def records(self, frame, rows):
        return sink_batch(frame, *self._origin).records()

    def frame(self, records):
        first = records[0]
        topic, partition, timestamp_type = first.original_topic, first.original_partition, first.timestamp_type
        for each in records:
            if each.original_topic != topic or each.original_partition != partition or each.timestamp_type != timestamp_type:
                return None
        offsets = np.array([record.original_offset for record in records], np.int64)
        return Frame(len(records), offsets=offsets, timestamp_type=timestamp_type, **columns_of(records))


class SourceStart:
    """The same of a source."""

    def __init__(self, batch):
        self._batch = batch

    def record(self, row):
        return self._batch.records()[row]

    def failed(self, row, failure):
        return self.record(row)

    def records(self, frame, rows):
        numbers = rows.tolist()
        parts = {name: getattr(frame, name) for name in ("partition", "key", "key_schema", "timestamps", "headers")}
        offset_of, source = self._batch.offset_of, self._batch.source_partition
        batch = SourceBatch(
            frame.count, frame.topic, frame.value, frame.value_schema, source_partition=source, offset_of=lambda at: offset_of(numbers[at]), **parts
        )
        return batch.records()

    def frame(self, records):
        return Frame(len(records), **columns_of(records))


class MixedRun:
    """One batch on its way through the chain: its columns are in `frame` (None where there are none any more), with their `places`;
    the places in `left` are for the rows engine. `rows` has the row of each place, `failures` what failed, by row.
    """

    def __init__(self, engine, start, frame, places, left, count):
        self._engine, self._start = engine, start
        self._made = None  # the records at the places, from the link `_begun` on; None: those that came
        self._begun = 0
        self.count = count
        self.rows = np.arange(count)
        self.frame, self.left = frame, left
        self.places = self.rows if places is None else places
        self.failures = {}

    def through(self, all_stretches, links, by_columns):
        """All links. Raises what `by_columns(links, frame)` raises, before anything was done by rows."""
        for low, high, is_by_rows in all_stretches:
            if is_by_rows:
                self._by_rows(low, high)
            elif self.frame is not None and self.frame.count:
                try:
                    frame, kept, _, left = by_columns(links[low:high], self.frame)
                except Stopped:
                    raise
                except Exception:
                    if self._made is None:
                        raise
                    self._leave_all()
                    continue
                self.left = union(self.left, np.unique(self.places[left]))
                self.frame, self.places = frame, self.places if kept is None else self.places[kept]

    def _by_rows(self, low, high):
        pairs = self._rest(low)
        if self.frame is not None and self.frame.count:
            rows = self.rows[self.places]
            ready = zip(self.places.tolist(), rows.tolist(), self._start.records(self.frame, rows))
            pairs = sorted([*ready, *pairs], key=lambda pair: pair[0]) if pairs else ready
        work, made = self._engine.part(low, high), []
        for _, row, record in pairs:
            try:
                result = work(record, row)
            except StageFailed as failure:
                self.fail(row, failure)
                continue
            if result.__class__ is list:
                made += [(row, each) for each in result]
            elif result is not None:
                made.append((row, result))
        if self.failures:  # of several records that came of one, all go with it
            made = [pair for pair in made if pair[0] not in self.failures]
        self._made = [record for _, record in made]
        self.rows = np.fromiter((row for row, _ in made), np.int64, len(made))
        self._begun = high
        self.frame, self.places, self.left = self._framed(), np.arange(len(made)), NO_ROWS
        if self.frame is None:
            self._leave_all()

    def _framed(self):
        """The records as columns; None where they have none in common."""
        first = self._made[0] if self._made else None
        if not all(_is(each.value_schema, first.value_schema) and _is(each.key_schema, first.key_schema) for each in self._made):
            return None
        frame, parts = self._start.frame(self._made) if self._made else None, {}
        if frame is None:
            return None
        for name in ("key", "value"):
            values = getattr(frame, name)
            if values.count(None) == len(values):
                parts[name] = None
            elif getattr(frame, f"{name}_schema") is None:
                parts[name] = shaped(values)
                if parts[name] is None:
                    return None
        return frame.with_(**parts)

    def _leave_all(self):
        self.left = np.arange(len(self.rows))
        self.frame, self.places = None, NO_ROWS

    def _rest(self, high, left=None):
        """[(place, row, record)] of the places left to the rows engine, behind the link `high`."""
        work, done = self._engine.part(self._begun, high), []
        for place in (self.left if left is None else left).tolist():
            row = int(self.rows[place])
            try:
                record = self._start.record(place) if self._made is None else self._made[place]
                done += [(place, row, each) for each in listed(work(record, row))]
            except StageFailed as failure:
                self.fail(row, failure)
        return done

    def rest(self, left=NO_ROWS):
        """The same behind all links, of those places, too; and takes from the frame what failed in another record of the same row."""
        if len(left):
            self.left = union(self.left, left)
        return self._rest(None)

    def fail(self, row, failure):
        """Note that a row failed."""
        if row not in self.failures:
            failure.record = self._start.failed(row, failure)
            self.failures[row] = kept(failure)

    def good(self, places):
        """Which of these places are of rows that did not fail: their indexes."""
        return np.flatnonzero(~np.isin(self.rows[places], list(self.failures)))

    def dropped(self, places, rest):
        """The rows of which nothing is left, given the places in columns and those by rows."""
        there = [self.rows[places], np.fromiter((row for _, row, _ in rest), np.int64, len(rest)), np.array(list(self.failures), np.int64)]
        return np.setdiff1d(np.arange(self.count), np.concatenate(there))


def _is(schema, other):
    return schema is other or schema == other
