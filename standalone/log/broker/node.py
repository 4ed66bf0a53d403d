"""The broker's state, shared by all handlers: topics, groups, store, clock; and flushing. Owned by one thread."""

import logging

from standalone.log.broker import compaction
from standalone.log.broker.group_configs import GroupConfigs
from standalone.log.broker.groups import Groups
from standalone.log.broker.options import FSYNC
from standalone.log.broker.produce_api import Together
from standalone.log.broker.records import Preparation
from standalone.log.broker.share_sessions import ShareSessions
from standalone.log.broker.store import Store
from standalone.log.broker.topics import Topics
from standalone.log.broker.transactions import Transactions
from standalone.log.broker.users import Users

NODE_ID = 1
HOUSEKEEPING_SECONDS = 15
_BYTES_UNTIL_ROOM_IS_MADE = 16 << 20
_PARTITIONS_A_TURN = 100  # checked before other requests are served

logger = logging.getLogger(__name__)


class Node:
    """`hand_over(jobs, then)` runs jobs on a thread that may wait for the disk, then calls `then` on the owner's thread.

    `compact(jobs, then)` does the same for longer jobs.
    """

    def __init__(self, folder, settings, clock, timers, hand_over, compact):
        self.folder = folder
        self.settings = settings
        self.shows_synced_only = settings["embedded.log.acks"] == FSYNC
        self.clock = clock
        self.timers = timers
        self.api_versions = []  # [(key, lowest, highest)]
        self.store = Store(folder)
        self.topics = Topics(folder, self.store, settings, lambda jobs: hand_over(jobs, None))
        self._skip_known_producer_ids()
        self.group_configs = GroupConfigs(self.store)
        self.groups = Groups(self.store, self.topics, clock, timers, self.group_configs)
        self.share_sessions = ShareSessions()
        self.transactions = Transactions(self)
        self.users = Users(self.store)
        self.produces = Together(self)
        self._new_bytes = 0
        self.appends = 0  # number of appends so far
        self.flushed_appends = 0  # number of them that are durable
        self._hand_over = hand_over
        self._compact = compact
        self._flush_timer = None
        self._is_flushing = False
        self._flush_waiting = []  # (then, partitions or None) for the next flush
        self._dirty = {partition for partition in self.topics.partitions() if partition.is_dirty}
        if self._dirty:
            self.appends += 1  # after a crash, bytes may be in the page cache only
            if self.shows_synced_only:
                self._sync_now()
            self._arm_flush_timer()
        self.transactions.recover()
        self.beside(Preparation())
        self._keep_house()

    def _skip_known_producer_ids(self):
        """Skip producer ids found in the records: if the store is older, a reused id would make new batches look like duplicates."""
        highest = -1
        for partition in self.topics.partitions():
            found = partition.highest_producer_id() if self.store.is_new else partition.producers.highest_id
            highest = max(highest, found)
        self.store.skip_producer_ids(highest)

    def _sync_now(self):
        """fsync before serving anyone: a reader must never see a smaller end offset than before."""
        for partition in self._dirty:
            flush = partition.begin_flush()
            flush.run()
            partition.end_flush(flush)

    # --- Appending and flushing

    @property
    def is_dirty(self):
        """Whether an append is not durable yet. Any thread may call it."""
        return self.appends != self.flushed_appends

    def appended(self, partition, size):
        self.appends += 1
        self._new_bytes += size
        if self._new_bytes >= _BYTES_UNTIL_ROOM_IS_MADE:
            self._new_bytes = 0
            self._make_room()
        self._dirty.add(partition)
        self._arm_flush_timer()
        if partition.waiting and not self.shows_synced_only:
            partition.wake(size)

    def flush(self, then, partitions=None):
        """fsync everything appended so far (to these partitions, or the store), then call `then(errors)`.

        One flush runs at a time. Requests that arrive during a flush share the next one.
        """
        self.flush_all([(then, partitions)])

    def flush_all(self, asked):
        """Like `flush` for each (then, partitions), with one fsync."""
        self._flush_waiting += asked
        if not self._is_flushing:
            self._begin_flush()

    def _begin_flush(self):
        waiting, self._flush_waiting = self._flush_waiting, []
        upto = None
        chosen = set()
        for _, partitions in waiting:
            if partitions is None:
                upto = self.appends
                chosen |= self._dirty
            else:
                chosen.update(partitions)
        flushes = [partition.begin_flush() for partition in chosen if partition.is_dirty]
        self._is_flushing = True

        def over():
            for flush in flushes:
                flush.partition.end_flush(flush)
            self._dirty = {p for p in self._dirty if p.is_dirty or (p.failed and not p.closed)}
            self._is_flushing = False
            failed = {partition: partition.failed for partition in chosen if partition.failed and not partition.closed}
            if upto is not None and not failed:
                self.flushed_appends = max(self.flushed_appends, upto)
            if self.is_dirty:
                self._arm_flush_timer()
            for then, partitions in waiting:
                then([why for partition, why in failed.items() if partitions is None or partition in partitions])
            if self._flush_waiting and not self._is_flushing:
                self._begin_flush()

        if flushes:
            self._hand_over(flushes, over)
        else:
            over()

    def beside(self, job):
        """Run `job.run` on a background thread that blocks no request, not even an fsync."""
        self._compact([job], None)

    def _arm_flush_timer(self):
        if self._flush_timer is None and not self._is_flushing:
            self._flush_timer = self.timers.after(self.settings["embedded.log.flush.interval.ms"] / 1000, self._flush_by_timer)

    def _flush_by_timer(self):
        self._flush_timer = None
        self.flush(lambda errors: None)

    # --- Housekeeping

    def _keep_house(self):
        self._look_after(list(self.topics.partitions()))
        self.groups.tidy()
        self.transactions.tidy()
        if self.store.has_long_journal():
            self.store.shorten_journal()
            self.flush(lambda errors: None, [self.store])
        self.timers.after(HOUSEKEEPING_SECONDS, self._keep_house)

    def _look_after(self, partitions):
        """Check a few partitions at a time, so that requests do not wait for all."""
        now = self.clock.now_ms()
        for partition in partitions[:_PARTITIONS_A_TURN]:
            if partition.closed:
                continue
            try:
                partition.expire(now)
                if "compact" in partition.policy and not partition.is_compacting:
                    self._begin_compaction(partition, now)
            except OSError as error:
                logger.error("%s: old segments could not be deleted: %s", partition, error)
        rest = partitions[_PARTITIONS_A_TURN:]
        if rest:
            self.timers.after(0, lambda: self._look_after(rest))
        else:
            self._make_room()

    def _begin_compaction(self, partition, now):
        job = compaction.plan(partition, now)
        if job is None:
            return
        partition.is_compacting = True

        def over():
            partition.is_compacting = False
            try:
                job.finish()
            except OSError as error:
                logger.error("%s could not be compacted: %s", partition, error)

        self._compact([job], over)

    def _make_room(self):
        """Delete the oldest segments until all topics together are within embedded.log.max.bytes."""
        bound = self.settings["embedded.log.max.bytes"]
        if bound < 0:
            return
        surplus = sum(partition.size for partition in self.topics.partitions()) - bound
        while surplus > 0:
            candidates = [p for p in self.topics.partitions() if "delete" in p.policy and p.size]
            # Prefer partitions with several segments: deleting an active segment only creates a new one.
            candidates = [p for p in candidates if len(p.segments) > 1] or candidates
            oldest = min(candidates, key=lambda p: p.segments[0].max_timestamp, default=None)
            if oldest is None:
                return
            size = oldest.size
            try:
                if not oldest.drop_oldest():
                    return
            except OSError as error:
                logger.error("%s: room could not be made: %s", oldest, error)
                return
            surplus -= size - oldest.size

    def close(self):
        """Flush a last time on this thread, then close every file."""
        for partition in self.topics.partitions():
            flush = partition.last_flush()
            if flush is not None:
                flush.run()
                partition.end_flush(flush)
            partition.close()
        self.store.close()
