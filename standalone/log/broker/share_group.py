"""A share group (KIP-932): its members, and what of each partition is delivered, acknowledged or to be delivered again.

What was acknowledged is in the store before that is answered, so that it survives a crash of the process as group offsets do. A loss of power may
take the last of it, which repeats records, or records of the log that were acknowledged: then the state is cut where the log ends.
"""

import logging

from standalone.log.broker.in_flight import InFlight
from standalone.log.broker.refusal import Refusal, codes
from standalone.log.broker.share_members import ShareMembers

EARLIEST, LATEST = "earliest", "latest"

logger = logging.getLogger(__name__)


class SharePartition:
    """A partition of the log as the group reads it."""

    def __init__(self, topic_id, partition, in_flight):
        self.topic_id = topic_id
        self.partition = partition
        self.in_flight = in_flight
        self.waiting = set()  # share fetches that wait for records to be available again; each has wake()
        self.timer = None  # for the lock that ends first

    @property
    def key(self):
        return self.partition.topic, self.partition.number

    @property
    def lag(self):
        self.in_flight.begin_at(self.partition.start)
        return self.in_flight.unfinished(self.partition.high_watermark)

    def row(self):
        return *self.key, self.topic_id.hex, self.in_flight.start, self.in_flight.rows()

    def wake(self):
        for fetch in list(self.waiting):
            fetch.wake()

    def end(self):
        """It is no part of the group any more."""
        if self.timer:
            self.timer.cancel()
        self.wake()


class ShareGroup:
    """`configs()` gives the group's configs, typed."""

    def __init__(self, group_id, topics, store, clock, timers, configs):
        self.id = group_id
        self.configs = configs
        self.members = ShareMembers(topics, clock, timers, configs)
        self.partitions = {}  # (topic, partition) -> SharePartition
        self.is_deleted = False
        self._topics = topics
        self._store = store
        self._clock = clock
        self._timers = timers

    @property
    def holds_nothing(self):
        return not self.members.members and not self.partitions

    # --- Coming and going of partitions

    def load(self, topic, number, topic_id, start, rows):
        """As it is in the store; nothing, if it speaks of a topic that is gone."""
        known = self._topics.by_id(topic_id)
        if known is None or known.name != topic or number >= len(known.partitions):
            return
        in_flight = InFlight(start, rows)
        in_flight.end_at(known.partitions[number].end)
        self.partitions[topic, number] = SharePartition(topic_id, known.partitions[number], in_flight)

    def open(self, topic, partition):
        """The SharePartition; a new one begins where share.auto.offset.reset says. Refusal: it cannot be kept."""
        if self.is_deleted:
            raise Refusal(codes.GroupIdNotFoundError, f"There is no share group '{self.id}' any more.")
        share = self.partitions.get((topic.name, partition.number))
        if share is None:
            share = SharePartition(topic.id, partition, InFlight(self._reset(partition)))
            self._save([share])
            self.partitions[share.key] = share
        return share

    def _reset(self, partition):
        from standalone.log.broker.records_api import offset_for  # which needs what needs this

        reset = self.configs()["share.auto.offset.reset"]
        if reset == EARLIEST:
            return partition.start
        if reset != LATEST:
            offset = offset_for(partition, self._clock.now_ms() - reset, committed_only=False)[1]
            if offset >= 0:
                return offset
        return partition.high_watermark

    def alter(self, topic, partition, offset):
        """Have the group begin there."""
        if offset < 0:
            raise Refusal(codes.InvalidRequestError, f"{partition} has no offset {offset}.")
        share = SharePartition(topic.id, partition, InFlight(min(max(offset, partition.start), partition.end)))
        self._save([share])
        former, self.partitions[share.key] = self.partitions.get(share.key), share
        if former is not None:
            former.end()

    def delete_offsets(self, topic):
        """Forget how far the group is in this topic; whether there was anything."""
        keys = [key for key in self.partitions if key[0] == topic]
        if keys:
            self._store.delete_shares(self.id, topic)
            self._drop(keys)
        return bool(keys)

    def forget_topic(self, topic):
        """It is gone, and the store knows it."""
        self._drop([key for key in self.partitions if key[0] == topic])

    def close(self):
        """The group is deleted."""
        self.is_deleted = True
        self._drop(list(self.partitions))

    def _drop(self, keys):
        for share in [self.partitions.pop(key) for key in keys]:
            share.end()

    # --- Records

    @property
    def lock_ms(self):
        return self.configs()["share.record.lock.duration.ms"]

    @property
    def _deadline(self):
        return self._clock.monotonic() + self.lock_ms / 1000

    def acquire(self, share, batches, member_id, most, is_exact):
        """As InFlight.acquire."""
        locks = self.configs()["share.partition.max.record.locks"]
        acquired = share.in_flight.acquire(batches, member_id, self._deadline, most, locks, is_exact)
        if acquired:
            self._watch(share, acquired[0].deadline)
        return acquired

    def acknowledge(self, member_id, asked):
        """asked: {SharePartition: batches of InFlight.acknowledge}. {SharePartition: Refusal, or None}"""
        outcome, marks = {}, {}
        limit, deadline = self.configs()["share.delivery.count.limit"], self._deadline
        for share, batches in asked.items():
            mark = share.in_flight.mark()
            try:
                share.in_flight.acknowledge(member_id, batches, limit, deadline)
            except Refusal as refusal:
                outcome[share] = refusal
            else:
                outcome[share], marks[share] = None, mark
        try:
            self._save(marks)
        except Refusal as refusal:
            for share, mark in marks.items():
                share.in_flight.take_back(mark)
                outcome[share] = refusal
        else:
            for share in marks:
                share.wake()
        return outcome

    def release(self, member_id):
        """Its session is over: what it has others may have."""
        self._freed([share for share in self.partitions.values() if share.in_flight.release(member_id)])

    def _freed(self, shares):
        try:
            self._save(shares)
        except Refusal:
            pass  # said by the store; after a crash they are available as well, by what was kept before
        for share in shares:
            share.wake()

    def _save(self, shares):
        if shares:
            self._store.save_shares(self.id, [share.row() for share in shares])

    # --- Locks that end

    def _watch(self, share, deadline):
        if share.timer is not None:
            if share.timer.action is not None and share.timer.due <= deadline:
                return
            share.timer.cancel()
        share.timer = self._timers.after(max(deadline - self._clock.monotonic(), 0), lambda: self._expire(share))

    def _expire(self, share):
        share.timer = None
        is_changed = share.in_flight.expire(self._clock.monotonic(), self.configs()["share.delivery.count.limit"])
        deadline = share.in_flight.deadline
        if deadline is not None:
            self._watch(share, deadline)
        if is_changed:
            self._freed([share])
