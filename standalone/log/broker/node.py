"""What all handlers share: the topics, the groups, the store, the clock; and flushing. Owned by one thread."""

import logging

from standalone.log.broker.groups import Groups
from standalone.log.broker.store import Store
from standalone.log.broker.topics import Topics

NODE_ID = 1
HOUSEKEEPING_SECONDS = 60

logger = logging.getLogger(__name__)


class Node:
    """`hand_over(flushes, then)` has flushes run elsewhere and calls `then` on the owner's thread when they are over."""

    def __init__(self, folder, settings, clock, timers, hand_over):
        self.settings = settings
        self.clock = clock
        self.timers = timers
        self.port = None  # the server's, once it is bound
        self.api_versions = []  # [(key, lowest, highest)]
        self.store = Store(folder)
        self.topics = Topics(folder, self.store, settings)
        self.groups = Groups(self.store, self.topics, clock, timers)
        self.appends = 0  # how many there were
        self.flushed_appends = 0  # how many of them are durable
        self._hand_over = hand_over
        self._flush_timer = None
        self._flushes_on_the_way = 0
        if any(partition.is_dirty for partition in self.topics.partitions()):
            self.appends += 1  # a crash left bytes that may not be on the disk
            self._arm_flush_timer()
        self.keep_house()

    # --- Appending and flushing

    @property
    def is_dirty(self):
        """Whether something appended is not durable yet; may be asked by any thread."""
        return self.appends != self.flushed_appends

    def appended(self, partition, size):
        self.appends += 1
        self._arm_flush_timer()
        if partition.waiting:
            partition.wake(size)

    def flush(self, then, partitions=None):
        """fsync everything appended so far (to these partitions), then call `then(errors)`."""
        upto = self.appends if partitions is None else None
        chosen = list(self.topics.partitions()) if partitions is None else partitions
        flushes = [partition.begin_flush() for partition in chosen if partition.is_dirty]
        self._flushes_on_the_way += 1

        def over():
            for flush in flushes:
                flush.partition.end_flush(flush)
            self._flushes_on_the_way -= 1
            errors = [partition.failed for partition in chosen if partition.failed and not partition.closed]
            if upto is not None and not errors:
                self.flushed_appends = max(self.flushed_appends, upto)
            if self.is_dirty:
                self._arm_flush_timer()
            then(errors)

        if flushes:
            self._hand_over(flushes, over)
        else:
            over()

    def _arm_flush_timer(self):
        if self._flush_timer is None and not self._flushes_on_the_way:
            self._flush_timer = self.timers.after(self.settings["embedded.log.flush.interval.ms"] / 1000, self._flush_by_timer)

    def _flush_by_timer(self):
        self._flush_timer = None
        self.flush(lambda errors: None)

    # --- Housekeeping

    def keep_house(self):
        now = self.clock.now_ms()
        for partition in self.topics.partitions():
            try:
                partition.expire(now)
            except OSError as error:
                logger.error("%s: old segments could not be deleted: %s", partition, error)
        self.groups.tidy()
        self.timers.after(HOUSEKEEPING_SECONDS, self.keep_house)

    def close(self):
        """A last flush, by this thread, and a clean end of every file."""
        for partition in self.topics.partitions():
            if partition.is_dirty:
                flush = partition.begin_flush()
                flush.run()
                partition.end_flush(flush)
            partition.close()
        self.store.close()
