"""State of a partition's idempotent producers: the last five batches of each, to detect duplicates.

A batch whose sequences match one of those five is a duplicate and is acknowledged with its known offset. Otherwise its first sequence must
follow the last one. An unknown producer may begin at any sequence, because its state may have expired. A snapshot is saved beside the
segments from time to time; recovery completes it from the batch headers.

For a producer with an open transaction, its first offset is stored too. Such a producer never expires before its transaction ends.
"""

import json
import logging
from collections import deque
from typing import NamedTuple

from standalone.log.batch_header import next_sequence
from standalone.log.broker.refusal import Refusal, codes

REMEMBERED_BATCHES = 5  # Kafka's limit of in-flight requests per idempotent producer
EXPIRATION_MS = 24 * 60 * 60 * 1000
MAX_PRODUCERS = 10_000  # per partition; beyond it the producer that was idle longest expires
NO_PRODUCER = -1

logger = logging.getLogger(__name__)


class BatchMetadata(NamedTuple):
    first_sequence: int
    last_sequence: int
    base_offset: int
    timestamp: int  # time of the append


class Producer:
    __slots__ = ("epoch", "batches", "transaction_start", "seen_ms")

    def __init__(self, epoch, kept=(), transaction_start=None, seen_ms=0):
        self.epoch = epoch
        self.batches = deque(kept, REMEMBERED_BATCHES)
        self.transaction_start = transaction_start  # first offset of the open transaction
        self.seen_ms = seen_ms


class Producers:
    def __init__(self):
        self._known = {}  # least recently active first
        self._open = {}  # those with an open transaction: producer id -> its first offset

    # --- Writing

    def check(self, header):
        """Return the `BatchMetadata` that this batch duplicates, or None if it is new and in sequence. Raise Refusal otherwise."""
        if header.producer_id == NO_PRODUCER:
            return None
        if header.base_sequence < 0 or header.producer_epoch < 0:
            raise Refusal(codes.InvalidRecordError, f"Producer {header.producer_id} sent a batch without a sequence.")
        producer = self._known.get(header.producer_id)
        if producer is None:
            return None
        if header.producer_epoch < producer.epoch:
            raise Refusal(
                codes.InvalidProducerEpochError,
                f"Producer {header.producer_id} is at epoch {producer.epoch}, the batch is of epoch {header.producer_epoch}.",
            )
        if header.producer_epoch > producer.epoch:
            if header.base_sequence != 0:
                raise _out_of_order(header, 0)
            return None
        for kept in producer.batches:
            if kept.first_sequence == header.base_sequence and kept.last_sequence == header.last_sequence:
                return kept
        expected = next_sequence(producer.batches[-1].last_sequence, 1) if producer.batches else 0
        if header.base_sequence != expected:
            raise _out_of_order(header, expected)
        return None

    def record(self, header, base_offset, now_ms):
        """Record an appended batch."""
        if header.producer_id == NO_PRODUCER:
            return
        producer = self._known.pop(header.producer_id, None)
        if producer is None or (producer.epoch != header.producer_epoch and not header.is_control):
            producer = Producer(header.producer_epoch, transaction_start=producer.transaction_start if producer else None)
        self._known[header.producer_id] = producer
        producer.seen_ms = now_ms
        if header.is_control:
            if header.producer_epoch > producer.epoch:  # a new epoch restarts sequences
                producer.epoch = header.producer_epoch
                producer.batches.clear()
            producer.transaction_start = None
            self._open.pop(header.producer_id, None)
            return
        producer.batches.append(BatchMetadata(header.base_sequence, header.last_sequence, base_offset, now_ms))
        if header.is_transactional and producer.transaction_start is None:
            producer.transaction_start = self._open[header.producer_id] = base_offset
        if len(self._known) > MAX_PRODUCERS:
            self._forget_one()

    def _forget_one(self):
        for producer_id in self._known:
            if producer_id not in self._open:
                del self._known[producer_id]
                return

    def expire(self, now_ms):
        """Drop producers idle for a day; they come first."""
        silent = []
        for producer_id, producer in self._known.items():
            if producer.seen_ms >= now_ms - EXPIRATION_MS:
                break
            if producer_id not in self._open:
                silent.append(producer_id)
        for producer_id in silent:
            del self._known[producer_id]

    # --- Queries

    @property
    def first_open_offset(self):
        """First offset of the oldest open transaction; None if none is open."""
        return min(self._open.values(), default=None)

    @property
    def open_transactions(self):
        """[(producer id, epoch)]"""
        return [(producer_id, self._known[producer_id].epoch) for producer_id in self._open]

    def transaction_start(self, producer_id):
        return self._open.get(producer_id)

    @property
    def highest_id(self):
        return max(self._known, default=NO_PRODUCER)

    def items(self):
        return self._known.items()

    def __len__(self):
        return len(self._known)

    # --- Snapshots

    def copy(self):
        """Return rows for `write`; another thread may encode them."""
        return [(i, p.epoch, tuple(p.batches), p.transaction_start, p.seen_ms) for i, p in self._known.items()]

    def save(self, end_offset):
        return encode(self.copy(), end_offset)

    @classmethod
    def load(cls, path, end_offset):
        """Return (state, offset from which to read batch headers); batches beyond the log's end are dropped."""
        producers = cls()
        try:
            with open(path, "rb") as file:
                saved = json.load(file)
            offset = int(saved["offset"])
            for producer_id, epoch, rows, *rest in saved["producers"]:
                kept = [BatchMetadata(*map(int, row)) for row in rows if row[2] < end_offset]
                start, seen_ms = rest or (None, kept[-1].timestamp if kept else 0)
                if start is not None and start >= end_offset:
                    start = None
                if kept or rest:
                    producers._known[int(producer_id)] = Producer(int(epoch), kept, start, seen_ms)
                    if start is not None:
                        producers._open[int(producer_id)] = start
        except FileNotFoundError:
            return cls(), 0
        except (ValueError, TypeError, KeyError, LookupError):
            logger.warning("%s cannot be read; the producers' sequences are taken from the log again.", path)
            return cls(), 0
        # A snapshot from beyond the log's end is useless: a transaction that it shows as ended may be open again, its marker lost.
        return (producers, offset) if offset <= end_offset else (cls(), 0)


def encode(rows, end_offset):
    """Encode a snapshot that covers the log up to `end_offset`."""
    # Row by row: json holds the GIL until it is done.
    return b'{"offset": %d, "producers": [%s]}' % (end_offset, ", ".join(map(json.dumps, rows)).encode())


def _out_of_order(header, expected):
    return Refusal(
        codes.OutOfOrderSequenceNumberError,
        f"Producer {header.producer_id} sent sequence {header.base_sequence} where {expected} must follow.",
    )
