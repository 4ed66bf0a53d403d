"""Offset syncs: pairs of source and target offsets. Written by the source connector, read by the checkpoint connector.

Syncs are sparse: at the first record, after each gap, and every offset.lag.max records. An offset between two syncs translates to just after
the earlier one: a migrated group rereads some records and misses none.
"""

import bisect
import collections
import logging
import threading

from connectors.mirror.formats import OffsetSync, read_sync, sync_key, sync_value

log = logging.getLogger(__name__)

MOST = 1024  # syncs per partition; beyond it every second one of the older half is dropped
NO_PLACE = -1  # an offset before the first sync: unknown


class _Partition:
    __slots__ = ("last_sync", "upstream", "downstream", "pending")

    def __init__(self):
        self.last_sync = self.upstream = self.downstream = None
        self.pending = None


class SyncWriter:
    """Call `note` on the task's thread and `write` with each commit, which writes each partition's newest due sync."""

    def __init__(self, writer, topic, most_lag):
        self._writer, self._topic, self._most_lag = writer, topic, most_lag
        self._partitions = collections.defaultdict(_Partition)

    def note(self, pair, first, last, first_there, last_there):
        """Record that source records `first` to `last` have offsets `first_there` to `last_there`; gaps on the source may lie between."""
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
            log.warning("Failed to write an offset sync to %s: group offsets are translated by an older one. %s", self._topic, error)

    def close(self, seconds):
        self.write()
        self._writer.close(seconds)


class SyncStore:
    """The syncs read from a topic. Thread-safe."""

    def __init__(self):
        self._syncs = {}  # (topic, number) -> ([upstream, …], [downstream, …])
        self._lock = threading.Lock()

    def take(self, records):
        """Add (key, value) records of the topic, in order."""
        for key, value in records:
            if value is not None:
                self._add(read_sync(key, value))

    def _add(self, sync):
        with self._lock:
            upstreams, downstreams = self._syncs.setdefault((sync.topic, sync.partition), ([], []))
            # Later syncs belong to a recreated topic, or to an earlier pass over the same records.
            at = min(bisect.bisect_left(upstreams, sync.upstream), bisect.bisect_left(downstreams, sync.downstream))
            upstreams[at:], downstreams[at:] = [sync.upstream], [sync.downstream]
            if len(upstreams) > MOST:
                half = len(upstreams) // 2
                for each in (upstreams, downstreams):
                    each[:half] = each[:half:2]

    def translate(self, topic, number, upstream):
        """Return the target offset for a source offset; None for an unknown partition, NO_PLACE before the first sync."""
        with self._lock:
            upstreams, downstreams = self._syncs.get((topic, number), ((), ()))
            if not upstreams:
                return None
            at = bisect.bisect_right(upstreams, upstream) - 1
            if at < 0:
                return NO_PLACE
            return downstreams[at] + (upstream > upstreams[at])
