"""A share group (KIP-932): its members and its share-partitions.

The store has an acknowledgement before the response, so it survives a crash of the process, as committed offsets do. A power loss may lose the last
acknowledgements; their records are delivered again. It may also lose acknowledged records of the log; the state is then cut at the end of the log.
"""

import logging

from standalone.log.broker.in_flight import InFlight
from standalone.log.broker.refusal import Refusal, codes
from standalone.log.broker.share_members import ShareMembers

EARLIEST, LATEST = "earliest", "latest"

logger = logging.getLogger(__name__)


class SharePartition:
    """A share-partition: a partition of the log, and the state of its records in the group."""

    def __init__(self, topic_id, partition, in_flight):
        self.topic_id = topic_id
        self.partition = partition
        self.in_flight = in_flight
        self.waiting = set()  # share fetches that wait for available records; each has wake()
        self.timer = None  # for the acquisition lock that expires first

    @property
    def key(self):
        return self.partition.topic, self.partition.number

    @property
    def lag(self):
        self.in_flight.start_at(self.partition.start)
        return self.in_flight.lag(self.partition.high_watermark)

    def row(self):
        return *self.key, self.topic_id.hex, self.in_flight.start, self.in_flight.rows()

    def wake(self):
        for fetch in list(self.waiting):
            fetch.wake()

    def close(self):
        """The group has removed it."""
        if self.timer:
            self.timer.cancel()
        self.wake()


class ShareGroup:
    """`configs()` returns the group's configs, typed."""

    def __init__(self, group_id, topics, store, clock, timers, configs):
        self.id = group_id
        self.configs = configs
        self.members = ShareMembers(topics, clock, timers, configs)
        self.partitions = {}  # (topic, partition) -> SharePartition
        self.is_deleted = False
        self._had_partitions = False
        self._topics = topics
        self._store = store
        self._clock = clock
        self._timers = timers

    @property
    def is_unused(self):
        """Whether it never had a member or a share-partition. A group that had one exists until it is deleted, as in Kafka."""
        return not self.members.epoch and not self._had_partitions

    # --- Share-partitions

    def load(self, topic, number, topic_id, start, rows):
        """Add a share-partition from the store, unless its topic was deleted."""
        known = self._topics.by_id(topic_id)
        if known is None or known.name != topic or number >= len(known.partitions):
            return
        in_flight = InFlight(start, rows)
        in_flight.end_at(known.partitions[number].end)
        self._add(SharePartition(topic_id, known.partitions[number], in_flight))

    def open(self, topic, partition):
        """The SharePartition. share.auto.offset.reset sets the start offset of a new one. Refusal: it cannot be stored."""
        if self.is_deleted:
            raise Refusal(codes.GroupIdNotFoundError, f"Share group '{self.id}' was deleted.")
        share = self.partitions.get((topic.name, partition.number))
        if share is None:
            share = SharePartition(topic.id, partition, InFlight(self._reset(partition)))
            self._save([share])
            self._add(share)
        return share

    def _add(self, share):
        self.partitions[share.key] = share
        self._had_partitions = True

    def _reset(self, partition):
        from standalone.log.broker.records_api import offset_for  # imports this module indirectly

        reset = self.configs()["share.auto.offset.reset"]
        if reset == EARLIEST:
            return partition.start
        if reset != LATEST:
            offset = offset_for(partition, self._clock.now_ms() - reset, committed_only=False)[1]
            if offset >= 0:
                return offset
        return partition.high_watermark

    def alter(self, topic, partition, offset):
        """Set the share-partition start offset, and forget the states of all records."""
        if offset < 0:
            raise Refusal(codes.InvalidRequestError, f"{offset} is not an offset of {partition}.")
        share = SharePartition(topic.id, partition, InFlight(min(max(offset, partition.start), partition.end)))
        self._save([share])
        former = self.partitions.get(share.key)
        self._add(share)
        if former is not None:
            former.close()

    def delete_offsets(self, topic):
        """Remove the share-partitions of the topic. Returns whether there were any."""
        keys = [key for key in self.partitions if key[0] == topic]
        if keys:
            self._store.delete_shares(self.id, topic)
            self._drop(keys)
        return bool(keys)

    def forget_topic(self, topic):
        """The topic was deleted, in the store too."""
        self._drop([key for key in self.partitions if key[0] == topic])

    def close(self):
        """The group was deleted."""
        self.is_deleted = True
        self._drop(list(self.partitions))

    def _drop(self, keys):
        for share in [self.partitions.pop(key) for key in keys]:
            share.close()

    # --- Records

    @property
    def lock_ms(self):
        return self.configs()["share.record.lock.duration.ms"]

    @property
    def _deadline(self):
        return self._clock.monotonic() + self.lock_ms / 1000

    @property
    def _delivery_limit(self):
        return self.configs()["share.delivery.count.limit"]

    def acquire(self, share, batches, member_id, max_records, is_record_limit, batch_size):
        """As InFlight.acquire."""
        locks, limit = self.configs()["share.partition.max.record.locks"], self._delivery_limit
        acquired = share.in_flight.acquire(batches, member_id, self._deadline, max_records, locks, is_record_limit, batch_size, limit)
        if acquired:
            self._watch(share, acquired[0].deadline)
        return acquired

    def acknowledge(self, member_id, asked):
        """`asked`: {SharePartition: batches of InFlight.acknowledge}. Returns {SharePartition: Refusal or None}."""
        outcome, snapshots = {}, {}
        limit, deadline = self._delivery_limit, self._deadline
        for share, batches in asked.items():
            snapshot = share.in_flight.snapshot()
            try:
                share.in_flight.acknowledge(member_id, batches, limit, deadline)
            except Refusal as refusal:
                outcome[share] = refusal
            else:
                outcome[share], snapshots[share] = None, snapshot
        try:
            self._save(snapshots)
        except Refusal as refusal:
            for share, snapshot in snapshots.items():
                share.in_flight.restore(snapshot)
                outcome[share] = refusal
        else:
            for share in snapshots:
                share.wake()
        return outcome

    def release(self, member_id):
        """Its share session is closed: release all records that it has acquired."""
        self._released([share for share in self.partitions.values() if share.in_flight.release(member_id, self._delivery_limit)])

    def _released(self, shares):
        try:
            self._save(shares)
        except Refusal:
            pass  # logged by the store; after a crash the records are available by the former rows, too
        for share in shares:
            share.wake()

    def _save(self, shares):
        if shares:
            self._store.save_shares(self.id, [share.row() for share in shares])

    # --- Acquisition locks

    def _watch(self, share, deadline):
        if share.timer is not None:
            if share.timer.action is not None and share.timer.due <= deadline:
                return
            share.timer.cancel()
        share.timer = self._timers.after(max(deadline - self._clock.monotonic(), 0), lambda: self._expire(share))

    def _expire(self, share):
        share.timer = None
        is_changed = share.in_flight.expire(self._clock.monotonic(), self._delivery_limit)
        deadline = share.in_flight.deadline
        if deadline is not None:
            self._watch(share, deadline)
        if is_changed:
            self._released([share])
