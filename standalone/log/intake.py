"""From a producer's inbox to its partition queues: assign partitions, and fail records that can never be sent."""

import collections

import numpy as np

from standalone.errors import LogFatalError
from standalone.log.broker_errors import java_class
from standalone.log.client_config import ROUND_ROBIN
from standalone.log.routing import Router

RECORD_OVERHEAD_BYTES = 61 + 21  # batch header, and the maximum overhead per record
HEADER_OVERHEAD_BYTES = 10


class HeldBack(LogFatalError):
    """Not sent because an earlier record was rejected; nothing is wrong with this one."""


class Intake:
    """Used by the sender's thread only. `queue_of(topic, partition)` returns the queue of a partition.

    `halts`: send nothing after a rejected record; otherwise later records would be duplicated once it is fixed and sent again.
    """

    def __init__(self, config, cluster, queue_of, halts=False):
        self._config, self._cluster, self._queue_of = config, cluster, queue_of
        self._halts = halts
        self._halted = None  # the error that holds back all later records
        self._largest = config["max.request.size"]
        self._unrouted = {}  # topic -> pieces without a partition, in order
        self._routers = {}  # topic -> Router

    @property
    def empty(self):
        return not self._unrouted

    def halt(self, error, born=0):
        """Accept nothing more; records handed over since `born` without a partition fail too."""
        self._halted = self._halted or error
        for name, pieces in list(self._unrouted.items()):
            self._unrouted[name] = collections.deque(piece for piece in pieces if piece.delivery.born < born)
            fail_all([piece for piece in pieces if piece.delivery.born >= born], error)

    def admit(self, delivery):
        if not len(delivery.records):
            delivery.finish()
            return
        piece = delivery.whole()
        if self._halted is not None:
            fail_all([piece], self._halted)
            return
        sizes = _sizes(piece.records) if self._may_be_too_large(delivery) else None
        if sizes is not None and (sizes > self._largest).any():
            piece = self._without_too_large(piece, sizes)
            if not len(piece):
                return
        self._unrouted.setdefault(delivery.topic, collections.deque()).append(piece)

    def route(self):
        """Pass records to their partitions' queues; return the topics whose metadata must be fetched first."""
        unknown = set()
        for name in list(self._unrouted):
            topic = self._cluster.known_topic(name)
            if topic is None or not self._route_topic(topic):
                unknown.add(name)
            else:
                del self._unrouted[name]
        return unknown

    def expire(self, born_before, error):
        """Fail records handed over before `born_before`; return when the oldest of the rest was handed over, or None."""
        oldest = None
        for name, pieces in list(self._unrouted.items()):
            while pieces and pieces[0].delivery.born < born_before:
                fail_all([pieces.popleft()], error)
            if pieces:
                oldest = min(oldest or pieces[0].delivery.born, pieces[0].delivery.born)
            else:
                del self._unrouted[name]
        return oldest

    def give_up(self, name, error):
        """Fail a topic's records."""
        fail_all(self._unrouted.pop(name, ()), error)

    def give_up_all(self, error):
        for name in list(self._unrouted):
            self.give_up(name, error)

    def _route_topic(self, topic):
        """Route a topic's records; return whether all found a partition or failed."""
        pieces = self._unrouted[topic.name]
        while pieces:
            wanted = pieces[0].delivery.partition
            if wanted is None:
                router = self._routers.get(topic.name)
                if router is None:
                    config = self._config
                    round_robin = config["partitioner.class"] == ROUND_ROBIN
                    router = Router(config["partitioner.ignore.keys"], config["batch.size"], self._largest, round_robin)
                    self._routers[topic.name] = router
                for partition, part in router.split(pieces[0], topic):
                    self._queue_of(topic.name, partition).add(part)
            elif wanted in topic.partitions:
                self._queue_of(topic.name, wanted).add(pieces[0])
            elif topic.fetched_at < pieces[0].delivery.born:
                self._cluster.forget(topic.name)  # partitions may have been added
                return False
            else:
                last = len(topic.partitions) - 1
                message = f"Topic '{topic.name}' has no partition {wanted}: its partitions are 0 to {last}."
                fail_all([pieces[0]], LogFatalError(message, java_class("TimeoutException")))
            pieces.popleft()
        return True

    def _may_be_too_large(self, delivery):
        records = delivery.records
        if records.headers is None and delivery.size + RECORD_OVERHEAD_BYTES <= self._largest:
            return False  # all of them together exceed the limit
        most = sum(int(column.lengths.max()) for column in (records.keys, records.values) if column is not None)
        return records.headers is not None or most + RECORD_OVERHEAD_BYTES > self._largest

    def _without_too_large(self, piece, sizes):
        topic = piece.delivery.topic
        too_large = np.flatnonzero(sizes > self._largest)
        if not self._halts:
            for row in too_large.tolist():
                fail_all([piece.take(np.array([row]))], self._too_large(topic, sizes[row]))
            return piece.take(np.flatnonzero(sizes <= self._largest))
        row = int(too_large[0])
        self._halted = held_back(topic)
        fail_all([piece.slice(row, row + 1)], self._too_large(topic, sizes[row]))
        if row + 1 < len(piece):
            fail_all([piece.slice(row + 1, len(piece))], self._halted)
        return piece.slice(0, row)

    def _too_large(self, topic, size):
        return LogFatalError(
            f"A record for topic '{topic}' is {size} bytes, larger than max.request.size ({self._largest}). "
            "Increase producer.override.max.request.size in the connector, and the topic's max.message.bytes.",
            java_class("RecordTooLargeException"),
        )


def held_back(topic):
    return HeldBack(f"Not sent: an earlier record for topic '{topic}' was rejected.")


def fail_all(pieces, error):
    for piece in pieces:
        piece.delivery.fail(piece, error)


def _sizes(records):
    """Return an upper bound of each row's size as its own batch, computed as in Java."""
    sizes = np.full(len(records), RECORD_OVERHEAD_BYTES, np.int64)
    for column in (records.keys, records.values):
        if column is not None:
            sizes += np.maximum(column.lengths, 0)
    if records.headers is not None:
        sizes += np.fromiter(map(_headers_size, records.headers), np.int64, len(records))
    return sizes


def _headers_size(headers):
    return sum(len(name.encode()) + len(value or b"") + HEADER_OVERHEAD_BYTES for name, value in headers or ())
