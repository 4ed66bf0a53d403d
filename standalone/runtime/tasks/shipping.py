"""Sends a source's processed batches to the producer, in pieces with an offset after each, and handles the responses."""

import numpy as np

from standalone.data.record import SourceRecord
from standalone.errors import ConnectError
from standalone.log.intake import HeldBack
from standalone.runtime.failures.tolerance import KAFKA_PRODUCE, SOURCE_TASK
from standalone.stage import StageFailed

_PIECE_BYTES = 1 << 20  # an offset may be stored after each: about the size of one request
# Errors caused by the record: with errors.tolerance=all it is skipped. All other errors may be transient, or need an operator.
# (If the broker rejects a whole batch for one record, the producer has found that record.)
_FAULTS_OF_RECORDS = {
    f"org.apache.kafka.common.errors.{name}Exception"
    for name in ("RecordTooLarge", "RecordBatchTooLarge", "InvalidRecord", "InvalidTimestamp", "InvalidTopic", "UnsupportedForMessageFormat")
}


class Shipping:
    """`went_wrong(error)`, called on any thread, fails the task."""

    def __init__(self, producer, *, topics, tracker, acknowledgements, tolerance, memory, meter, went_wrong):
        self._producer = producer
        self._topics = topics  # creates a topic before its first record, if configured
        self._tracker = tracker
        self._acknowledgements = acknowledgements
        self._tolerance = tolerance
        self._letters = tolerance.dead_letters
        self._memory = memory
        self._meter = meter
        self._went_wrong = went_wrong
        self.closing = False  # do not wait any more: unacknowledged records are sent again after a restart

    def ship(self, batch, result):
        """Send the chain's results for this batch. Raises ToleranceExceeded after sending the records before the bad one."""
        out, failures = result.out, result.failures
        self._meter.left_out(len(batch) - sum(len(outgoing.records) for outgoing in out))
        if not failures:
            self._hand_over(batch, out, len(batch))
            return
        if not self._tolerance.all:
            self._ship_before(batch, out, failures[0].row)
        # Before the batch's records, so that no offset of it is stored before the letters are.
        letters = self._tracker.add(batch.source_partition, None, 1, 0) if self._letters is not None else None
        self._tolerance.source(failures, lambda: self._tracker.done(letters))
        unreported = [failure.row for failure in failures] if self._letters is None else ()
        self._hand_over(batch, out, len(batch), unreported)

    def _ship_before(self, batch, out, row):
        """Send the records before the one that fails the task, as if they had been sent one by one."""
        before = []
        for outgoing in out:
            rows = np.arange(len(outgoing.records)) if outgoing.rows is None else outgoing.rows
            count = int(np.searchsorted(rows, row))
            if count:
                before.append(outgoing._replace(records=outgoing.records.slice(0, count), rows=rows[:count]))
        if row:
            self._hand_over(batch, before, row)

    def _hand_over(self, batch, out, count, unreported=()):
        """Send the records in pieces, an offset after each; `count` rows of the batch are done then, except that the offsets of `unreported` rows
        are stored only together with that of a later row."""
        pieces = list(pieces_of(out[0])) if len(out) == 1 else [[outgoing] for outgoing in out] or [[]]
        if len(out) > 1:  # multiple topics: rows interleave, so one offset follows all
            pieces = [out]
        last = 0
        several = self._acknowledgements.several(out)
        for at, piece in enumerate(pieces):
            if at == len(pieces) - 1:
                last = _reported(count, unreported)
            else:
                records, rows = piece[0].records, piece[0].rows
                last = last + len(records) if rows is None else int(rows[-1]) + 1
            size = sum(outgoing.records.nbytes for outgoing in piece)
            if not self._memory.take(size):
                return
            offset = batch.offset_of(last - 1) if last else None
            sent = _Sent(self._tracker.add(batch.source_partition, offset, len(piece), size), batch, unreported, len(piece))
            for outgoing in piece:
                self._topics.ensure(outgoing.topic)
                self._producer.send(outgoing.topic, outgoing.partition, outgoing.records, self._on_done(sent, outgoing, several))
        self._acknowledgements.dropped(batch, out, count)

    # ---------------------------------------------------------------- the sender's thread
    def _on_done(self, sent, outgoing, several):
        def done(delivered):
            try:
                self._settle(sent, outgoing, delivered)
                self._acknowledgements.note(sent.batch, outgoing, delivered, several)
            except BaseException as error:  # else the task would continue without storing offsets
                self._went_wrong(error)

        return done

    def _settle(self, sent, outgoing, delivered):
        sent.waiting -= 1
        if delivered.error is None:
            self._meter.answered(len(outgoing.records))
            self._tracker.done(sent.tracked)
        elif not self.closing:
            self._refused(sent, outgoing, delivered)
        if not sent.waiting and sent.fails:
            self._store_before(sent)

    def _store_before(self, sent):
        """The task fails: store the offset before the first refused record, so that a restart does not repeat the records in the log."""
        count = _reported(sent.first_refused, sent.unreported)
        if count and not self.closing:
            self._tracker.done_before(sent.tracked, sent.batch.offset_of(count - 1))

    def _refused(self, sent, outgoing, delivered):
        """The broker rejected some of them."""
        sent.refused(outgoing, delivered)
        batch, count = sent.batch, len(outgoing.records)
        failures = []
        for rows, error in delivered.failed:
            if isinstance(error, HeldBack):
                continue
            if getattr(error, "java_class", None) not in _FAULTS_OF_RECORDS:
                sent.fails = True
                self._went_wrong(error)
                return
            for row in np.arange(count)[rows].tolist():
                at = row if outgoing.rows is None else int(outgoing.rows[row])
                time = None if outgoing.records.timestamps is None else int(outgoing.records.timestamps[row])
                record = SourceRecord(outgoing.topic, None, batch.source_partition, batch.offset_of(at), partition=outgoing.partition, timestamp=time)
                failures.append(StageFailed(KAFKA_PRODUCE, None, row, error, record, SOURCE_TASK))
        if not failures:  # the task fails by the error for which they were held back
            sent.fails = True
            return
        self._meter.answered(count, len(failures))
        try:
            self._tolerance.produce(outgoing.topic, outgoing.partition, outgoing.records, failures, lambda: self._tracker.done(sent.tracked))
        except ConnectError as problem:
            sent.fails = True
            self._went_wrong(problem)


class _Sent:
    """A piece on its way. Only the sender's thread changes it."""

    __slots__ = ("tracked", "batch", "unreported", "waiting", "fails", "first_refused")

    def __init__(self, tracked, batch, unreported, waiting):
        self.tracked, self.batch, self.unreported = tracked, batch, unreported
        self.waiting = waiting  # deliveries that are not settled
        self.fails = False  # the task, by a record that is not in the log
        self.first_refused = None  # row of the batch

    def refused(self, outgoing, delivered):
        first = min(int(np.arange(len(outgoing.records))[rows][0]) for rows, _ in delivered.failed)
        row = first if outgoing.rows is None else int(outgoing.rows[first])
        self.first_refused = row if self.first_refused is None else min(row, self.first_refused)


def _reported(last, unreported):
    """How many of the first `last` rows of a batch an offset may stand for."""
    for row in reversed(unreported):
        last -= row == last - 1
    return last


def pieces_of(outgoing):
    """Split one Outgoing into pieces of about _PIECE_BYTES, each a list of one."""
    records, rows = outgoing.records, outgoing.rows
    size = records.nbytes
    if size <= _PIECE_BYTES:
        yield [outgoing]
        return
    rows = np.arange(len(records)) if rows is None else rows  # those of the batch, not of the piece
    step = max(1, len(records) * _PIECE_BYTES // size)
    low = 0
    while low < len(records):
        high = min(low + step, len(records))
        while high < len(records) and rows[high] == rows[high - 1]:
            high += 1  # all results of one record stay together: the offset follows them
        yield [outgoing._replace(records=records.slice(low, high), rows=rows[low:high])]
        low = high
