"""What a partition remembers of idempotent producers: the last five batches of each, so that a retry is not kept twice.

A batch whose sequences are among those five is a repeat and is answered with the offset it has. Otherwise its first sequence
must follow the last one. A producer that the partition does not know may begin anywhere, because what was known may have
expired. The state is saved beside the segments and brought up to date from their headers.
"""

import json
import logging
from collections import deque
from typing import NamedTuple

from standalone.log.batch_header import next_sequence
from standalone.log.broker.refusal import Refusal, codes

REMEMBERED_BATCHES = 5  # a producer may have so many requests on the way
EXPIRATION_MS = 24 * 60 * 60 * 1000
NO_PRODUCER = -1

logger = logging.getLogger(__name__)


class Kept(NamedTuple):
    first_sequence: int
    last_sequence: int
    base_offset: int
    timestamp: int  # when it was taken


class _Producer:
    __slots__ = ("epoch", "batches")

    def __init__(self, epoch, kept=()):
        self.epoch = epoch
        self.batches = deque(kept, REMEMBERED_BATCHES)


class Producers:
    def __init__(self):
        self._known = {}

    def check(self, header):
        """The `Kept` of which this batch is a repeat, or None if it is new and may follow. Refusal otherwise."""
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
        expected = next_sequence(producer.batches[-1].last_sequence, 1)
        if header.base_sequence != expected:
            raise _out_of_order(header, expected)
        return None

    def record(self, header, base_offset, now_ms):
        """The batch was kept."""
        if header.producer_id == NO_PRODUCER:
            return
        producer = self._known.get(header.producer_id)
        if producer is None or producer.epoch != header.producer_epoch:
            producer = self._known[header.producer_id] = _Producer(header.producer_epoch)
        producer.batches.append(Kept(header.base_sequence, header.last_sequence, base_offset, now_ms))

    def expire(self, now_ms):
        for producer_id, producer in list(self._known.items()):
            if producer.batches[-1].timestamp < now_ms - EXPIRATION_MS:
                del self._known[producer_id]

    def save(self, end_offset):
        """As bytes, with the offset up to which the log's batches are known."""
        rows = [[producer_id, producer.epoch, list(producer.batches)] for producer_id, producer in self._known.items()]
        return json.dumps({"offset": end_offset, "producers": rows}).encode()

    @classmethod
    def load(cls, path, end_offset):
        """(state, the offset from which the log's headers must be read); batches beyond the log's end are forgotten."""
        producers = cls()
        try:
            with open(path, "rb") as file:
                saved = json.load(file)
            offset = int(saved["offset"])
            for producer_id, epoch, rows in saved["producers"]:
                kept = [Kept(*map(int, row)) for row in rows if row[2] < end_offset]
                if kept:
                    producers._known[int(producer_id)] = _Producer(int(epoch), kept)
        except FileNotFoundError:
            return cls(), 0
        except (ValueError, TypeError, KeyError, LookupError):
            logger.warning("%s cannot be read; the producers' sequences are taken from the log again.", path)
            return cls(), 0
        return producers, min(offset, end_offset)

    def __len__(self):
        return len(self._known)


def _out_of_order(header, expected):
    return Refusal(
        codes.OutOfOrderSequenceNumberError,
        f"Producer {header.producer_id} sent sequence {header.base_sequence} where {expected} must follow.",
    )
