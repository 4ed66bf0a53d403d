"""Offset syncs: which offset of a source partition stands where on the target. Noted by the source connector, read by checkpoints.

Syncs are few: the first of a run, one after each gap, one every offset.lag.max records. An offset between two of them is translated to
just after the earlier one: a group that moves over reads some records again and misses none.
"""

import bisect
import collections
import logging
import threading

from connectors.mirror.formats import OffsetSync, read_sync, sync_key, sync_value

log = logging.getLogger(__name__)

MOST = 1024  # syncs that are kept of a partition; beyond that every second of the older half goes
NO_PLACE = -1  # of an offset before the first sync: nobody knows


class _Partition:
    __slots__ = ("last_sync", "upstream", "downstream", "pending")

    def __init__(self):
        self.last_sync = self.upstream = self.downstream = None
        self.pending = None


class SyncWriter:
    """`note` on the task's thread, `write` with each commit: the newest sync of each partition that has one due."""

    def __init__(self, writer, topic, most_lag):
        self._writer, self._topic, self._most_lag = writer, topic, most_lag
        self._partitions = collections.defaultdict(_Partition)

    def note(self, pair, first, last, first_there, last_there):
        """Records `first` to `last` of the source are at `first_there` to `last_there`, in order; gaps of the source lie anywhere between."""
        part = self._partitions[pair]
        is_new = part.last_sync is None or first - part.upstream != 1 or first_there < part.downstream
        if is_new or self._is_stale(part, first_there):
            part.pending, part.last_sync = (first, first_there), first_there
        if last - first != last_there - first_there or self._is_stale(part, last_there):
            part.pending, part.last_sync = (last, last_there), last_there
        part.upstream, part.downstream = last, last_there

    def _is_stale(self, part, there):
        return there - (part.last_sync + 1) >= self._most_lag

    def write(self):
        for (topic, number), part in self._partitions.items():
            if part.pending is not None:
                sync = OffsetSync(topic, number, *part.pending)
                part.pending = None
                self._writer.write(self._topic, 0, sync_key(sync), sync_value(sync), self._written)

    def _written(self, error):
        if error is not None:
            log.warning("An offset sync could not be written to %s: groups are translated to an older one. %s", self._topic, error)

    def close(self, seconds):
        self.write()
        self._writer.close(seconds)


class SyncStore:
    """What has been read of a topic of syncs. Thread-safe."""

    def __init__(self):
        self._syncs = {}  # (topic, number) -> ([upstream, …], [downstream, …])
        self._lock = threading.Lock()

    def take(self, records):
        """(key, value) of the topic, in order."""
        for key, value in records:
            if value is not None:
                self._add(read_sync(key, value))

    def _add(self, sync):
        with self._lock:
            upstreams, downstreams = self._syncs.setdefault((sync.topic, sync.partition), ([], []))
            # What is at or after it belongs to a topic that was recreated, or to an earlier pass over the same records.
            at = min(bisect.bisect_left(upstreams, sync.upstream), bisect.bisect_left(downstreams, sync.downstream))
            upstreams[at:], downstreams[at:] = [sync.upstream], [sync.downstream]
            if len(upstreams) > MOST:
                half = len(upstreams) // 2
                for each in (upstreams, downstreams):
                    each[:half] = each[:half:2]

    def translate(self, topic, number, upstream):
        """The offset on the target that stands for one of the source; None where nothing is known of the partition, NO_PLACE before all syncs."""
        with self._lock:
            upstreams, downstreams = self._syncs.get((topic, number), ((), ()))
            if not upstreams:
                return None
            at = bisect.bisect_right(upstreams, upstream) - 1
            if at < 0:
                return NO_PLACE
            return downstreams[at] + (upstream > upstreams[at])
