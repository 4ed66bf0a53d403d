"""A partition's queue in the producer: waiting records, packed batches, batches in flight, retries. Used by one thread.

A batch keeps its producer id, epoch and sequence over all retries, so the broker detects duplicates. It also rejects batches that follow a
failed one until that one has arrived, which preserves the order.
"""

import collections

import numpy as np

from standalone import wire
from standalone.errors import LogFatalError
from standalone.log import record_batch
from standalone.log.broker_errors import java_class

LAST_EPOCH = 2**15 - 1
NO_OFFSET = -1
OPENED_BATCHES = 2


class IdentityPending(Exception):
    """The producer id is being requested: try the batch again later."""


class Piece:
    """Rows of one send for one partition."""

    __slots__ = ("records", "rows", "delivery", "now_ms", "size")

    def __init__(self, records, rows, delivery, now_ms):
        self.records = records
        self.rows = rows  # row numbers within the send: a slice or an array
        self.delivery = delivery
        self.now_ms = now_ms  # timestamp for rows without one
        self.size = records.nbytes

    def __len__(self):
        return len(self.records)

    def slice(self, low, high):
        if low == 0 and high == len(self):
            return self
        by_range = isinstance(self.rows, slice)
        rows = slice(self.rows.start + low, self.rows.start + high) if by_range else self.rows[low:high]
        return Piece(self.records.slice(low, high), rows, self.delivery, self.now_ms)

    def take(self, numbers):
        """Select rows by their numbers within the piece."""
        rows = numbers + self.rows.start if isinstance(self.rows, slice) else self.rows[numbers]
        return Piece(self.records.take(numbers), rows, self.delivery, self.now_ms)


class Batch:
    """A packed batch and its pieces."""

    __slots__ = ("queue", "data", "sequence", "pieces", "count", "sent", "uncertain", "given_up", "attempts", "held_back")

    def __init__(self, queue, data, sequence, pieces):
        self.queue = queue
        self.data = data
        self.sequence = sequence  # of the first record
        self.pieces = pieces
        self.count = sum(map(len, pieces))
        self.sent = False  # in flight
        self.uncertain = False  # a response was lost: it may be in the log
        self.given_up = False  # failed while in flight: its response is ignored
        self.attempts = 0
        self.held_back = None  # the error if an earlier batch was rejected: do not send again

    @property
    def born(self):
        """When its oldest record was handed over."""
        return self.pieces[0].delivery.born

    def acknowledge(self, base_offset, log_append_time):
        at = base_offset
        for piece in self.pieces:
            piece.delivery.acknowledge(piece, self.queue.partition, at, log_append_time)
            at += len(piece) if at != NO_OFFSET else 0

    def fail(self, error):
        for piece in self.pieces:
            piece.delivery.fail(piece, error)


class PartitionQueue:
    """`next_batch` returns what to send; `answered`, `lost`, `split` and `refused` report its result."""

    def __init__(self, topic, partition, limit, most_in_flight, pack_options, new_identity, pause):
        self.topic, self.partition = topic, partition
        self.limit = limit  # maximum batch size before compression; reduced if a broker rejects it as too large
        self.in_flight = 0
        self.waiting_bytes = 0
        self.restarts = 0  # sequence restarts since the last acknowledged batch
        self.pause = pause  # retry backoff
        self._most_in_flight = most_in_flight
        self._pack_options = pack_options
        self._new_identity = new_identity  # returns (producer id, epoch) or raises IdentityPending; None without idempotence
        self._identity = None
        self._sequence = 0  # of the next record
        self._batches = collections.deque()  # packed and not acknowledged, in order
        self._opened = None  # [pieces, iterator of Packed, rows taken]: being packed batch by batch
        self._waiting = collections.deque()  # pieces
        # At first one batch in flight, since a broker without state for our producer id accepts any sequence first; likewise during
        # retries, since a broker detects duplicates only among the last five batches.
        self._one_at_a_time = True
        self._renumber = False

    def add(self, piece):
        self._waiting.append(piece)
        self.waiting_bytes += piece.size

    @property
    def name(self):
        return f"{self.topic}-{self.partition}"

    @property
    def empty(self):
        return not self._batches and not self._waiting and self._opened is None

    @property
    def born(self):
        """When its oldest record was handed over; only valid if not empty."""
        if self._batches:
            return self._batches[0].born
        return (self._opened[0] if self._opened else self._waiting)[0].delivery.born

    @property
    def waiting_since(self):
        """When the oldest unpacked record was handed over; only valid if no packed batch is sendable."""
        return self._waiting[0].delivery.born

    # ---- sending

    @property
    def sendable(self):
        """Whether this partition has a batch that may be sent now."""
        if self.in_flight >= (1 if self._one_at_a_time else self._most_in_flight):
            return False
        return self.begun or bool(self._waiting)

    @property
    def begun(self):
        """Whether the next batch is already packed."""
        return self._opened is not None or self.in_flight < len(self._batches)

    @property
    def full(self):
        """Whether waiting would not enlarge the next batch."""
        return self.begun or self.waiting_bytes >= self.limit

    def next_batch(self):
        """Return the next batch, the same until it is taken; only valid while `sendable`."""
        if self._identity is None and self._new_identity is not None:
            self._identity = self._new_identity()
        if self._renumber:
            self._number_again()
        for batch in self._batches:
            if not batch.sent:
                return batch
        return self._seal() if self._opened or self._waiting else None

    def follow(self, identity):
        """Adopt the identity of the current transaction: sequences restart. The previous transaction has nothing left here."""
        if self._identity not in (None, identity) and not self._batches and self._opened is None:
            self._identity, self._sequence, self._one_at_a_time = identity, 0, True

    def take(self, batch):
        """Mark the batch as in flight."""
        batch.sent = True
        batch.attempts += 1
        self.in_flight += 1

    # ---- results

    def answered(self, batch, base_offset, log_append_time):
        """Acknowledge the batch: it is in the log."""
        self._landed(batch)
        self._batches.remove(batch)
        self._one_at_a_time = any(other.attempts and not other.sent for other in self._batches)
        self.restarts = 0
        batch.acknowledge(base_offset, log_append_time)

    def lost(self, batch, uncertain=None):
        """Resend the batch and everything sent after it.

        uncertain: whether it may be in the log already; None leaves the earlier verdict.
        """
        self._landed(batch)
        if uncertain is not None:
            batch.uncertain = uncertain
        self._one_at_a_time = True

    def refused(self, batch, error):
        """Fail the batch for good; later batches continue without it."""
        self._landed(batch)
        self._batches.remove(batch)
        self._one_at_a_time = self._renumber = True
        batch.fail(error)

    def hold_back(self, error, behind=None, born=None):
        """Send nothing after a batch of this queue, or nothing handed over since `born`.

        Unsent records fail now; batches in flight, when their response arrives.
        """
        self._close()
        batches = list(self._batches)
        held = batches[batches.index(behind) + 1 :] if behind is not None else [batch for batch in batches if batch.born >= born]
        for batch in held:
            if batch.sent or batch.uncertain:
                batch.held_back = error
            else:
                self.refused(batch, error)
        waiting, self._waiting, self.waiting_bytes = self._waiting, collections.deque(), 0
        for piece in waiting:
            if behind is not None or piece.delivery.born >= born:
                piece.delivery.fail(piece, error)
            else:
                self.add(piece)

    def restart(self, batch):
        """The broker lost our sequence state: restart sequences at this batch, which is not in the log."""
        self.lost(batch, uncertain=False)
        self._renumber = True
        self.restarts += 1

    def split(self, batch):
        """Split a batch that is too large; return False if it is a single record."""
        if batch.count == 1:
            return False
        self.limit = max(1, min(self.limit, sum(piece.size for piece in batch.pieces)) // 2)
        self._divide(batch, [(packed.low, packed.high) for packed in self._pack(batch.pieces, batch.sequence)])
        return True

    def halve(self, batch):
        """Split a batch in two when the broker rejects it for an unnamed record."""
        self._divide(batch, [(0, batch.count // 2), (batch.count // 2, batch.count)])

    def leave_out(self, batch, bad):
        """Remove the rejected rows, [(row numbers, error)], and requeue the rest in the batch's place.

        Later sequences change, so batches that may be in the log already are not sent again.
        """
        if batch.uncertain:
            self.refused(batch, _unknown_outcome(batch, self.name))
            return
        self.lost(batch)
        self._renumber = True
        pieces, batch.pieces = batch.pieces, []
        failing, first = [], 0
        for piece in pieces:
            kept = np.ones(len(piece), bool)
            for numbers, error in bad:
                inside = numbers[(numbers >= first) & (numbers < first + len(piece))] - first
                kept[inside] = False
                failing += [(piece.take(inside), error)] if len(inside) else []
            if kept.any():
                batch.pieces.append(piece if kept.all() else piece.take(np.flatnonzero(kept)))
            first += len(piece)
        batch.count = sum(map(len, batch.pieces))
        if not batch.count:
            self._batches.remove(batch)
        elif self._identity is None:
            batch.data = self._pack_whole(batch.pieces, -1)
        for piece, error in failing:
            piece.delivery.fail(piece, error)

    def should_be_in_order(self, batch):
        """Whether all earlier batches are in the log, so its sequence should be the next."""
        return self._batches[0] is batch and not self._renumber

    def expire(self, born_before, error):
        """Fail records handed over before `born_before` that are not in flight."""
        while self._batches and self._batches[0].born < born_before and not self.in_flight:
            self.refused(self._batches[0], error)
        if self._batches:
            return
        self._close()
        while self._waiting and self._waiting[0].delivery.born < born_before:
            piece = self._next_piece()
            piece.delivery.fail(piece, error)

    def give_up(self, error):
        """Fail everything; responses to batches in flight are then ignored."""
        batches, self._batches = self._batches, collections.deque()
        self._renumber = self._renumber or bool(batches)
        self._one_at_a_time, self.in_flight = True, 0
        for batch in batches:
            batch.given_up = True
            batch.fail(error)
        self._close()
        while self._waiting:
            piece = self._next_piece()
            piece.delivery.fail(piece, error)

    # ---- packing

    def _landed(self, batch):
        if batch.sent:
            batch.sent = False
            self.in_flight -= 1

    def _seal(self):
        """Pack the next rows into a batch."""
        while True:
            if self._opened is None:
                self._open()
            pieces, packing, taken = self._opened
            packed = next(packing)
            inside = _cut(pieces, packed.low, packed.high)
            is_last = packed.high == sum(map(len, pieces))
            if is_last and self._waiting and sum(piece.size for piece in inside) < self.limit // 2:
                self._close()  # a small rest is merged with what follows
                continue
            self._opened = None if is_last else [pieces, packing, packed.high]
            batch = Batch(self, packed.data, self._sequence, inside)
            self._batches.append(batch)
            self._sequence = record_batch.next_sequence(self._sequence, packed.count)
            return batch

    def _open(self):
        """Start packing enough pieces for a batch, and more while that needs no copy."""
        pieces = [self._next_piece()]
        size = pieces[0].size
        while self._waiting and size < OPENED_BATCHES * self.limit:
            if size >= self.limit and not _same_buffers(pieces[0].records, self._waiting[0].records):
                break
            pieces.append(self._next_piece())
            size += pieces[-1].size
        self._opened = [pieces, self._pack(pieces, self._sequence), 0]

    def _close(self):
        """Return unpacked pieces to the front of the queue."""
        if self._opened is None:
            return
        pieces, _, taken = self._opened
        self._opened = None
        rest = _cut(pieces, taken, sum(map(len, pieces)))
        self._waiting.extendleft(reversed(rest))
        self.waiting_bytes += sum(piece.size for piece in rest)

    def _next_piece(self):
        piece = self._waiting.popleft()
        self.waiting_bytes -= piece.size
        return piece

    def _pack(self, pieces, sequence):
        options = {"producer_id": -1, "producer_epoch": -1, "base_sequence": -1}
        if self._identity is not None:
            options = {"producer_id": self._identity[0], "producer_epoch": self._identity[1], "base_sequence": sequence}
        return record_batch.pack_all(_merge(pieces), self.limit, now_ms=pieces[0].now_ms, **options, **self._pack_options)

    def _number_again(self):
        """Bump the epoch and renumber the remaining batches from sequence 0. Nothing is in flight.

        The broker cannot detect duplicates across the epochs, so batches that may be in the log already must not be sent again.
        """
        if self._pack_options.get("transactional"):
            raise LogFatalError(
                f"Records for partition {self.name} belong to a transaction in which others failed: it can only be aborted.",
                java_class("KafkaException"),
            )
        if self._identity is not None:
            producer_id, epoch = self._identity
            self._identity = (producer_id, epoch + 1) if epoch < LAST_EPOCH else self._new_identity(fresh=True)
            self._sequence = 0
            self._close()
            batches, self._batches = self._batches, collections.deque()
            for batch in batches:
                if batch.uncertain:
                    batch.fail(_unknown_outcome(batch, self.name))
                    continue
                batch.data, batch.sequence = self._pack_whole(batch.pieces, self._sequence), self._sequence
                self._sequence = record_batch.next_sequence(self._sequence, batch.count)
                self._batches.append(batch)
        self._renumber = False

    def _pack_whole(self, pieces, sequence):
        """Pack the pieces into one batch regardless of the limit."""
        limit, self.limit = self.limit, record_batch.MAX_INT
        try:
            (packed,) = self._pack(pieces, sequence)
            return packed.data
        finally:
            self.limit = limit

    def _divide(self, batch, spans):
        """Replace a batch by batches of its rows (low, high)."""
        self.lost(batch, uncertain=False)
        at = self._batches.index(batch)
        parts = []
        for low, high in spans:
            sequence, pieces = record_batch.next_sequence(batch.sequence, low), _cut(batch.pieces, low, high)
            parts.append(Batch(self, self._pack_whole(pieces, sequence), sequence, pieces))
        self._batches.rotate(-at)
        self._batches.popleft()
        self._batches.extendleft(reversed(parts))
        self._batches.rotate(at)


def _unknown_outcome(batch, name):
    return LogFatalError(
        f"{batch.count} records for partition {name} may or may not be in the log: their acknowledgement was lost, and earlier records "
        "failed for good, so a retry could duplicate them.",
        java_class("OutOfOrderSequenceException"),
    )


def _cut(pieces, low, high):
    """Return the pieces of rows low to high (exclusive), counted over all pieces."""
    inside, at = [], 0
    for piece in pieces:
        begin, end = max(low - at, 0), min(high - at, len(piece))
        if begin < end:
            inside.append(piece.slice(begin, end))
        at += len(piece)
    return inside


def _same_buffers(one, other):
    return all(
        a is b or (a is not None and b is not None and a.data is b.data)
        for a, b in ((one.keys, other.keys), (one.values, other.values))
    )


def _merge(pieces):
    """Concatenate the records of several pieces."""
    if len(pieces) == 1:
        return pieces[0].records
    count = sum(map(len, pieces))
    every = [piece.records for piece in pieces]
    same_time = all(piece.now_ms == pieces[0].now_ms for piece in pieces)
    timestamps = None
    if not same_time or any(records.timestamps is not None for records in every):
        timestamps = np.concatenate([_timestamps(piece) for piece in pieces])
    headers = None
    if any(records.headers is not None for records in every):
        headers = [row for records in every for row in (records.headers or [None] * len(records))]
    return wire.Records(
        count, _concat(every, [r.keys for r in every]), _concat(every, [r.values for r in every]), timestamps, headers
    )


def _concat(every, columns):
    if all(column is None for column in columns):
        return None
    nulls = wire.ByteColumn.repeat
    return wire.concat([column if column is not None else nulls(None, len(r)) for r, column in zip(every, columns)])


def _timestamps(piece):
    """Return the timestamps, unset ones replaced."""
    given = piece.records.timestamps
    if given is None:
        return np.full(len(piece), piece.now_ms, np.int64)
    return np.where(given == wire.NO_TIMESTAMP, piece.now_ms, given)
