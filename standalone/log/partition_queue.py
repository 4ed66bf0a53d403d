"""The records on their way to one partition: waiting, packed into batches, under way, to be sent again. One thread's.

A batch keeps its producer id, epoch and sequence through every repetition, so that the broker knows it again: nothing is
doubled, and what follows a batch that failed is refused until that batch has arrived: nothing is out of order.
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
    """The producer id is being asked for: the batch comes another time."""


class Piece:
    """Rows of one send that go to one partition."""

    __slots__ = ("records", "rows", "delivery", "now_ms", "size")

    def __init__(self, records, rows, delivery, now_ms):
        self.records = records
        self.rows = rows  # which rows of the send they are: a slice or an array
        self.delivery = delivery
        self.now_ms = now_ms  # the time of rows that have none
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
        """The rows with these numbers, within the piece."""
        rows = numbers + self.rows.start if isinstance(self.rows, slice) else self.rows[numbers]
        return Piece(self.records.take(numbers), rows, self.delivery, self.now_ms)


class Batch:
    """One packed batch and the pieces in it."""

    __slots__ = ("queue", "data", "sequence", "pieces", "count", "sent", "uncertain", "given_up", "attempts", "held_back")

    def __init__(self, queue, data, sequence, pieces):
        self.queue = queue
        self.data = data
        self.sequence = sequence  # of its first record
        self.pieces = pieces
        self.count = sum(map(len, pieces))
        self.sent = False  # and not answered
        self.uncertain = False  # an answer was lost: it may be in the log, or not
        self.given_up = False  # while it was under way: whatever happens to it
        self.attempts = 0
        self.held_back = None  # the error of what must not be sent again: something before it was refused

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
    """`next_batch` gives what is to be sent; `answered`, `lost`, `split` and `refused` say what happened to it."""

    def __init__(self, topic, partition, limit, most_in_flight, pack_options, new_identity, pause):
        self.topic, self.partition = topic, partition
        self.limit = limit  # bytes a batch before compression; less once a broker finds that too large
        self.in_flight = 0
        self.waiting_bytes = 0
        self.restarts = 0  # of the sequence, since something last arrived
        self.pause = pause  # after a failure
        self._most_in_flight = most_in_flight
        self._pack_options = pack_options
        self._new_identity = new_identity  # gives (producer id, epoch), or raises IdentityPending; None without idempotence
        self._identity = None
        self._sequence = 0  # of the next record to be packed
        self._batches = collections.deque()  # packed and not acknowledged, in order
        self._opened = None  # [pieces, iterator of Packed, rows taken]: what is packed a batch at a time
        self._waiting = collections.deque()  # pieces
        # One batch at a time: at first, because a broker that knows nothing of our sequence takes whichever comes first; and
        # while something is to be repeated, because a broker knows again the last five batches only.
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
        """When the oldest record in it was handed over; ask only while it is not empty."""
        if self._batches:
            return self._batches[0].born
        return (self._opened[0] if self._opened else self._waiting)[0].delivery.born

    @property
    def waiting_since(self):
        """When the oldest record that is not packed was handed over; ask only while nothing packed is to be sent."""
        return self._waiting[0].delivery.born

    # ---- out

    @property
    def sendable(self):
        """Whether there is something that may go now, as far as this partition is concerned."""
        if self.in_flight >= (1 if self._one_at_a_time else self._most_in_flight):
            return False
        return self.begun or bool(self._waiting)

    @property
    def begun(self):
        """Whether what goes next is packed already."""
        return self._opened is not None or self.in_flight < len(self._batches)

    @property
    def full(self):
        """Whether waiting would not make the next batch larger."""
        return self.begun or self.waiting_bytes >= self.limit

    def next_batch(self):
        """The batch to send next, still the same one until it is taken; ask only while `sendable`."""
        if self._identity is None and self._new_identity is not None:
            self._identity = self._new_identity()
        if self._renumber:
            self._number_again()
        for batch in self._batches:
            if not batch.sent:
                return batch
        return self._seal() if self._opened or self._waiting else None

    def follow(self, identity):
        """Another transaction may have begun under another identity: in it sequences start over. Of the one before nothing is left."""
        if self._identity not in (None, identity) and not self._batches and self._opened is None:
            self._identity, self._sequence, self._one_at_a_time = identity, 0, True

    def take(self, batch):
        """It is under way."""
        batch.sent = True
        batch.attempts += 1
        self.in_flight += 1

    # ---- what happened to a batch

    def answered(self, batch, base_offset, log_append_time):
        """It is in the log."""
        self._landed(batch)
        self._batches.remove(batch)
        self._one_at_a_time = any(other.attempts and not other.sent for other in self._batches)
        self.restarts = 0
        batch.acknowledge(base_offset, log_append_time)

    def lost(self, batch, uncertain=None):
        """It has to be sent again, and so has all that was sent after it.

        uncertain: whether it may be in the log already; None where this says nothing about earlier attempts.
        """
        self._landed(batch)
        if uncertain is not None:
            batch.uncertain = uncertain
        self._one_at_a_time = True

    def refused(self, batch, error):
        """It will never be in the log; what follows continues without it."""
        self._landed(batch)
        self._batches.remove(batch)
        self._one_at_a_time = self._renumber = True
        batch.fail(error)

    def hold_back(self, error, behind=None, born=None):
        """Send nothing more of what is after a batch of this queue, or of what was handed over since a moment.

        What was not sent fails now; what is under way, when it comes back.
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
        """The broker lost count of our sequence: begin another, with this batch, which is not in the log, as its first."""
        self.lost(batch, uncertain=False)
        self._renumber = True
        self.restarts += 1

    def split(self, batch):
        """Make multiple batches of one that is too large; False if it is a single record."""
        if batch.count == 1:
            return False
        self.limit = max(1, min(self.limit, sum(piece.size for piece in batch.pieces)) // 2)
        self._divide(batch, [(packed.low, packed.high) for packed in self._pack(batch.pieces, batch.sequence)])
        return True

    def halve(self, batch):
        """Make two batches of one that is refused for a record in it, nobody says which."""
        self._divide(batch, [(0, batch.count // 2), (batch.count // 2, batch.count)])

    def leave_out(self, batch, bad):
        """The broker wants no batch with these rows in it, [(row numbers, error)]: what is left is in the batch's place.

        Behind it all have other sequences, so that of a batch which may be in the log already nothing is sent again.
        """
        if batch.uncertain:
            self.refused(batch, _unknown_fate(batch, self.name))
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
        """Whether all before it is in the log, so that its sequence ought to be the next."""
        return self._batches[0] is batch and not self._renumber

    def expire(self, born_before, error):
        """Give up what was handed over before a moment and is not under way."""
        while self._batches and self._batches[0].born < born_before and not self.in_flight:
            self.refused(self._batches[0], error)
        if self._batches:
            return
        self._close()
        while self._waiting and self._waiting[0].delivery.born < born_before:
            piece = self._next_piece()
            piece.delivery.fail(piece, error)

    def give_up(self, error):
        """Fail all that is in it; answers to what is under way find it given up."""
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
        """The next rows as a batch."""
        while True:
            if self._opened is None:
                self._open()
            pieces, packing, taken = self._opened
            packed = next(packing)
            inside = _cut(pieces, packed.low, packed.high)
            is_last = packed.high == sum(map(len, pieces))
            if is_last and self._waiting and sum(piece.size for piece in inside) < self.limit // 2:
                self._close()  # a small end goes with what waits after it
                continue
            self._opened = None if is_last else [pieces, packing, packed.high]
            batch = Batch(self, packed.data, self._sequence, inside)
            self._batches.append(batch)
            self._sequence = record_batch.next_sequence(self._sequence, packed.count)
            return batch

    def _open(self):
        """Begin to pack as many pieces as make a batch, and more while that copies nothing."""
        pieces = [self._next_piece()]
        size = pieces[0].size
        while self._waiting and size < OPENED_BATCHES * self.limit:
            if size >= self.limit and not _same_buffers(pieces[0].records, self._waiting[0].records):
                break
            pieces.append(self._next_piece())
            size += pieces[-1].size
        self._opened = [pieces, self._pack(pieces, self._sequence), 0]

    def _close(self):
        """What is opened waits again, in front."""
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
        """A new epoch, in which what is left has the sequences from 0 on. Nothing is under way.

        In it the broker would not know again what it may have had before: of such a batch nobody can say whether to send it.
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
                    batch.fail(_unknown_fate(batch, self.name))
                    continue
                batch.data, batch.sequence = self._pack_whole(batch.pieces, self._sequence), self._sequence
                self._sequence = record_batch.next_sequence(self._sequence, batch.count)
                self._batches.append(batch)
        self._renumber = False

    def _pack_whole(self, pieces, sequence):
        """The bytes of one batch of these, whatever the limit is now."""
        limit, self.limit = self.limit, record_batch.MAX_INT
        try:
            (packed,) = self._pack(pieces, sequence)
            return packed.data
        finally:
            self.limit = limit

    def _divide(self, batch, spans):
        """Put batches of these rows (low, high) of it in its place."""
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


def _unknown_fate(batch, name):
    return LogFatalError(
        f"{batch.count} records for partition {name} may be in the log or not: their acknowledgement was lost, and records before "
        "them failed for good, so that they can neither be asked for nor be sent again without a risk of doubles.",
        java_class("OutOfOrderSequenceException"),
    )


def _cut(pieces, low, high):
    """The pieces of the rows low to high (exclusive) of all pieces together."""
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
    """The records of multiple pieces one after another."""
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
    """With the unset ones set."""
    given = piece.records.timestamps
    if given is None:
        return np.full(len(piece), piece.now_ms, np.int64)
    return np.where(given == wire.NO_TIMESTAMP, piece.now_ms, given)
