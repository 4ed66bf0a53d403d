"""Choose partitions for records without one."""

import random

import numpy as np

from standalone.log.partitioner import NO_PARTITION, partition_for_keys


class Router:
    """Routes one topic's records. Rows with a key are hashed; rows without a key stick to a partition for a while.

    `round_robin`: each row goes to the next partition, as by Java's RoundRobinPartitioner.
    """

    def __init__(self, ignore_keys, stay_bytes, batch_bytes, round_robin=False):
        self._ignore_keys = ignore_keys
        self._round_robin, self._next = round_robin, 0
        self._stay_bytes, self._batch_bytes = stay_bytes, batch_bytes
        self._current = None
        self._bytes_here = 0

    def split(self, piece, topic):
        """Return [(partition, piece)]: the rows of each partition, in order."""
        if len(topic.partitions) == 1:
            return [(next(iter(topic.partitions)), piece)]
        if self._round_robin:
            led = np.array(_led(topic))
            chosen = led[(np.arange(len(piece)) + self._next) % len(led)]
            self._next += len(piece)
            return _by_partition(piece, chosen)
        keys = None if self._ignore_keys else piece.records.keys
        if keys is None:
            return self._chunks(piece, topic)
        chosen = partition_for_keys(keys, len(topic.partitions))
        unkeyed = chosen == NO_PARTITION
        if unkeyed.all():
            return self._chunks(piece, topic)
        if unkeyed.any():
            chosen[unkeyed] = self._stay(topic, piece.size * int(unkeyed.sum()) // len(piece))
        return _by_partition(piece, chosen)

    def _chunks(self, piece, topic):
        """Split rows without a key into batch-sized pieces for several partitions."""
        chunks = max(1, min(len(piece), piece.size // self._batch_bytes))
        edges = [len(piece) * chunk // chunks for chunk in range(chunks + 1)]
        parts = [piece.slice(low, high) for low, high in zip(edges, edges[1:])]
        return [(self._stay(topic, part.size), part) for part in parts]

    def _stay(self, topic, size):
        """Return the sticky partition for `size` more bytes."""
        current = topic.partitions.get(self._current)
        if current is None or current.leader < 0 or self._bytes_here >= self._stay_bytes:
            led = _led(topic)
            self._current = random.choice([index for index in led if index != self._current] or led)
            self._bytes_here = 0
        self._bytes_here += size
        return self._current


def _led(topic):
    """The partitions with a leader; all if none has one."""
    return [partition.index for partition in topic.partitions.values() if partition.leader >= 0] or list(topic.partitions)


def _by_partition(piece, chosen):
    """Return [(partition, piece)] by an array of each row's partition; row order is kept."""
    order = np.argsort(chosen, kind="stable")
    partitions, firsts = np.unique(chosen[order], return_index=True)
    if len(partitions) == 1:
        return [(int(partitions[0]), piece)]
    return [(int(partition), piece.take(rows)) for partition, rows in zip(partitions, np.split(order, firsts[1:]))]
