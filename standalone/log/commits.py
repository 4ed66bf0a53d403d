"""Commits: a group member commits offsets and reads committed ones."""

import collections
import functools
import logging

from kafka.protocol.consumer import OffsetCommitRequest, OffsetFetchRequest

from standalone.errors import LogRetriableError
from standalone.log import error_codes as codes
from standalone.log.broker_errors import broker_error, java_class
from standalone.log.link import wait
from standalone.log.retry import Backoff
from standalone.log.subscription import ASK_SECONDS

log = logging.getLogger(__name__)

NO_OFFSET = -1
NAMES_CEILING = 9  # the highest versions of both requests that identify topics by name

Committed = collections.namedtuple("Committed", "offset metadata epoch")


class Commits:
    """Used by the task's thread. Responses arrive while the task polls or waits here."""

    def __init__(self, group, cluster, config, clock, waker):
        self._group, self._cluster, self._config, self._clock, self._waker = group, cluster, config, clock, waker

    def write(self, offsets, timeout_s):
        """Commit {(topic, partition): (offset, metadata, leader epoch)}; raise LogRetriableError if the records will be redelivered."""

        def attempt(on_done):
            self.write_async(offsets, lambda error: on_done(None, error))

        what = f"Committing offsets of group '{self._group.group_id}'"
        self._repeat(attempt, timeout_s, what, lambda: self._group.membership is not None)

    def write_async(self, offsets, on_done):
        """Call `on_done(None or an error)` on this thread, now or during a later poll or commit."""
        membership = self._group.membership
        if membership is None:
            return on_done(self._rebalancing("Committing offsets") if self._group.is_between else self._not_ours())
        Topic = OffsetCommitRequest.OffsetCommitRequestTopic
        topics = collections.defaultdict(list)
        for (topic, index), (offset, metadata, epoch) in offsets.items():
            topics[topic].append(Topic.OffsetCommitRequestPartition(
                partition_index=index, committed_offset=offset, committed_leader_epoch=epoch, committed_metadata=metadata))
        request = OffsetCommitRequest(
            group_id=self._group.group_id,
            generation_id_or_member_epoch=membership.generation,
            member_id=membership.member_id,
            group_instance_id=self._group.instance_id,
            retention_time_ms=-1,
            topics=[Topic(name=topic, partitions=parts) for topic, parts in topics.items()],
        )
        self._group.send(request, self._group.for_task(functools.partial(self._written, on_done)), ceiling=NAMES_CEILING)

    def read(self, pairs, timeout_s):
        """Return {(topic, partition): Committed} for the pairs with a committed offset."""
        return self._repeat(functools.partial(self.read_async, pairs), timeout_s, self._reading, lambda: True)

    def read_async(self, pairs, on_done):
        """Call `on_done(result of read or None, None or an error)`."""
        topics = collections.defaultdict(list)
        for topic, index in pairs:
            topics[topic].append(index)
        Single, Many = OffsetFetchRequest.OffsetFetchRequestTopic, OffsetFetchRequest.OffsetFetchRequestGroup
        named = [Many.OffsetFetchRequestTopics(name=topic, partition_indexes=indexes) for topic, indexes in topics.items()]
        request = OffsetFetchRequest(
            group_id=self._group.group_id,
            topics=[Single(name=topic, partition_indexes=indexes) for topic, indexes in topics.items()],
            groups=[Many(group_id=self._group.group_id, topics=named)],  # since version 8, replaces the two arguments above
            require_stable=True,
        )
        self._group.send(request, self._group.for_task(functools.partial(self._read, on_done)), ceiling=NAMES_CEILING)

    def _written(self, on_done, answer, error):
        if error is None:
            self._group.answered()
            answered = [(topic.name, part.partition_index, part.error_code) for topic in answer.topics for part in topic.partitions]
            error = next(filter(None, (self._error_of(*one) for one in answered if one[2])), None)
        on_done(error)

    def _error_of(self, topic, index, code):
        what = f"Committing the offset of {topic}-{index} in group '{self._group.group_id}'"
        if code in (codes.ILLEGAL_GENERATION, codes.UNKNOWN_MEMBER_ID, codes.FENCED_MEMBER_EPOCH):
            self._group.is_lost()
            return self._not_ours()
        if code == codes.FENCED_INSTANCE_ID:
            return self._group.is_over(code, what)
        if code == codes.REBALANCE_IN_PROGRESS:
            self._group.is_rebalancing()
            return self._rebalancing(what)
        if code == codes.STALE_MEMBER_EPOCH:  # the group's epoch has moved on, the member has not heard yet
            return self._rebalancing(what)
        if code in (codes.COORDINATOR_NOT_AVAILABLE, codes.NOT_COORDINATOR):
            self._group.forget_coordinator()
        if code == codes.UNKNOWN_TOPIC_OR_PARTITION and not self._exists(topic):
            log.warning("Group %s: topic %s is deleted; the offset of its partition %d is not committed.", self._group.group_id, topic, index)
            return None
        return broker_error(code, what)

    def _exists(self, topic):
        try:
            found = self._cluster.refresh([topic], timeout=ASK_SECONDS).get(topic)
        except LogRetriableError:
            return True  # the commit may still take effect
        return found is not None and found.error_code != codes.UNKNOWN_TOPIC_OR_PARTITION

    def _rebalancing(self, what):
        return LogRetriableError(f"{what}: group '{self._group.group_id}' is rebalancing.", java_class("RebalanceInProgressException"))

    def _not_ours(self):
        return LogRetriableError(
            f"Offsets of group '{self._group.group_id}' cannot be committed: this member has lost its partitions to a rebalance, and the "
            "records since the last commit will be redelivered. If the task was too slow, increase max.poll.interval.ms.",
            java_class("CommitFailedException"),
        )

    def _read(self, on_done, answer, error):
        if error is not None:
            return on_done(None, error)
        group = answer.groups[0] if answer.groups else answer  # a list since version 8
        parts = {(topic.name, part.partition_index): part for topic in group.topics for part in topic.partitions}
        code = group.error_code or next((part.error_code for part in parts.values() if part.error_code), 0)
        if code:
            if code in (codes.COORDINATOR_NOT_AVAILABLE, codes.NOT_COORDINATOR):
                self._group.forget_coordinator()
            return on_done(None, broker_error(code, self._reading))
        self._group.answered()
        found = {pair: Committed(part.committed_offset, part.metadata, part.committed_leader_epoch) for pair, part in parts.items()}
        on_done({pair: committed for pair, committed in found.items() if committed.offset != NO_OFFSET}, None)

    @property
    def _reading(self):
        return f"Reading the offsets of group '{self._group.group_id}'"

    def _repeat(self, attempt, timeout_s, what, worth_repeating):
        """Repeat `attempt(on_done)` after retriable errors until the timeout; return its result."""
        deadline = self._clock.monotonic() + timeout_s
        backoff = Backoff(self._config, "retry.backoff")
        while True:
            outcome = []
            attempt(lambda value, error: outcome.append((value, error)))
            self._group.wait_for(outcome, deadline, what)
            value, error = outcome[0]
            if error is None:
                return value
            pause = backoff.next()
            if not isinstance(error, LogRetriableError) or not worth_repeating() or self._clock.monotonic() + pause > deadline:
                raise error
            wait([], self._waker, pause)
