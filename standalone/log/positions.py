"""Positions: where to read each partition: from committed offsets or by auto.offset.reset; and detection of log truncation."""

import collections
import functools
import logging
import re

from kafka.protocol.consumer import ListOffsetsRequest, OffsetForLeaderEpochRequest

from standalone.errors import LogFatalError, LogRetriableError
from standalone.log import error_codes as codes
from standalone.log.broker_errors import broker_error, is_retriable, is_stale_metadata, java_class
from standalone.log.retry import Backoff, Outage

log = logging.getLogger(__name__)

EARLIEST, LATEST = -2, -1
RESETS = {"earliest": EARLIEST, "latest": LATEST, "none": None}
ISOLATION = {"read_uncommitted": 0, "read_committed": 1}
LIST_OFFSETS_CEILING = 7
NO_EPOCH, CONSUMER = -1, -1  # an unknown epoch; the replica id of a consumer
_MARK = re.compile(r"([^/\s]+)/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")  # cluster id, topic id
MADE_ANEW = "its topic was deleted and recreated"


class Partition:
    """An assigned partition and its read position."""

    def __init__(self, topic, index):
        self.topic, self.index = topic, index
        self.topic_id = None
        self.position = None  # next offset for the caller; None until known
        self.fetched_to = None  # next offset to fetch: ahead of `position` by the buffered records
        self.received = collections.deque()  # buffered records, in order
        self.paused = False
        self.end = None  # log end offset, as of the last response
        self.not_before = 0  # when to fetch again after an error
        self.backoff = None
        self.damaged_at = None
        self.epoch = self.fetched_epoch = NO_EPOCH  # leader epoch of the record before `position`, and before `fetched_to`
        self.leader_epoch = NO_EPOCH  # of the leader last validated
        self.validating = False  # while a new leader validates the position (KIP-320)
        self.replica, self.replica_until = None, 0  # the leader's preferred read replica, and how long to use it
        self.inflation = 1.0  # decompressed size / received size
        self.looked_up = self.asking = False  # whether the group's commit was fetched; whether a request is in flight
        self.reset = None  # EARLIEST, LATEST or a timestamp if the offset must be listed
        self.left_at = None  # the position that was out of range

    @property
    def pair(self):
        return self.topic, self.index

    def start(self, offset, epoch=NO_EPOCH):
        """Read from an offset; `epoch` is that of the record before it, if known."""
        self.position = self.fetched_to = offset
        self.epoch = self.fetched_epoch = epoch
        self.leader_epoch, self.validating = NO_EPOCH, False
        self.reset = self.left_at = None
        self.received.clear()

    def __str__(self):
        return f"{self.topic}-{self.index}"


class Positions:
    """Non-blocking: `place` sends requests; responses arrive through the links of the group and the leaders."""

    def __init__(self, partitions, cluster, config, clock, group, leaders, subscription):
        self._partitions = partitions  # {pair: Partition}, shared with the consumer
        self._cluster = cluster
        self._config, self._clock, self._group, self._leaders, self._subscription = config, clock, group, leaders, subscription
        policy = config["auto.offset.reset"]
        self._policy = RESETS.get(policy, policy)  # EARLIEST, LATEST, milliseconds before now, or None
        self._place_at, self._backoff = 0, Backoff(config, "retry.backoff")
        self._outage = Outage("The positions to read from are known.")

    def place(self):
        """Request the unknown positions that are not being requested."""
        waiting = self._waiting()
        if not waiting or self._clock.monotonic() < self._place_at:
            return
        unasked = [part for part in waiting if not part.looked_up]
        if unasked and self._group is not None:
            for part in unasked:
                part.asking = True
            self._group.commits.read_async([part.pair for part in unasked], functools.partial(self._looked_up, unasked))
        else:
            for part in unasked:
                self._never_read(part)
        self._ask_log([part for part in waiting if part.reset is not None and not part.asking])

    @property
    def wakes_at(self):
        return self._place_at if self._waiting() else float("inf")

    def out_of_range(self, part):
        """Handle that `part.position` is not in the log."""
        if self._policy is None:
            raise self._no_position(part, f"offset {part.position}, the next to read, is not in the log")
        self._leave(part)

    def _leave(self, part):
        part.left_at, part.reset = part.position, self._reset_point
        part.position = part.fetched_to = None
        part.received.clear()

    @property
    def _reset_point(self):
        """EARLIEST, LATEST or a timestamp in milliseconds."""
        return self._policy if self._policy < 0 else max(0, self._clock.now_ms() - self._policy)

    def begin_again(self, part, topic_id):
        """Return a Partition for a topic recreated under the same name, none of whose records was read."""
        if self._policy is None:
            raise self._no_position(part, MADE_ANEW)
        log.warning("Topic %s was deleted and recreated: reading %s from its beginning, not from offset %s.",
                    part.topic, part, part.position)
        fresh = Partition(*part.pair)
        fresh.topic_id, fresh.paused = topic_id, part.paused
        fresh.looked_up, fresh.reset = True, EARLIEST
        return fresh

    def mark(self, part):
        """Metadata for a commit: the ids of its cluster and topic. Mirrors copy it unchanged to other clusters."""
        cluster_id = self._cluster.known_cluster_id
        return f"{cluster_id}/{part.topic_id}" if cluster_id and part.topic_id is not None else ""

    # ---- validation by a new leader (KIP-320)

    def validate(self, parts):
        """Return the partitions that may be read. After a leader change, first ask the new leader where the last read epoch ends."""
        valid, asked = [], collections.defaultdict(list)
        for part in parts:
            known = self._cluster.leader(*part.pair)
            if known is None or known.epoch == part.leader_epoch or known.epoch == NO_EPOCH:
                valid.append(part)
            elif part.fetched_epoch == NO_EPOCH:
                part.leader_epoch = known.epoch
                valid.append(part)
            else:
                asked[known.node].append((part, known.epoch))
        for node, mine in asked.items():
            leader = self._leaders.connected(node)
            if leader is None:
                continue
            if OffsetForLeaderEpochRequest.API_KEY in leader.link.connection.versions:
                self._ask_epochs(leader, mine)
                continue
            for part, epoch in mine:
                part.leader_epoch = epoch
                valid.append(part)
        return valid

    def _ask_epochs(self, leader, asked):
        Topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
        topics = collections.defaultdict(list)
        for part, epoch in asked:
            part.validating = True
            topics[part.topic].append(Topic.OffsetForLeaderPartition(
                partition=part.index, current_leader_epoch=epoch, leader_epoch=part.fetched_epoch))
        request = OffsetForLeaderEpochRequest(
            replica_id=CONSUMER, topics=[Topic(topic=topic, partitions=partitions) for topic, partitions in topics.items()])
        sent = [(part, epoch, part.fetched_to) for part, epoch in asked]
        handler = functools.partial(self._heard_epochs, leader, sent)
        try:
            leader.link.send(request, handler)
        except LogRetriableError as error:
            handler(None, error)

    def _heard_epochs(self, leader, sent, answer, error):
        for part, _, _ in sent:
            part.validating = False
        if error is not None:
            return self._leaders.lost(leader, error)
        self._leaders.answered(leader)
        found = {(topic.topic, each.partition): each for topic in answer.topics for each in topic.partitions}
        for part, epoch, fetched_to in sent:
            one = found.get(part.pair)
            if one is None or self._partitions.get(part.pair) is not part or part.fetched_to != fetched_to:
                continue
            if one.error_code:
                if not (is_retriable(one.error_code) or is_stale_metadata(one.error_code)):
                    raise broker_error(one.error_code, f"Validating the position of {part} with its new leader")
                part.backoff = part.backoff or Backoff(self._config, "retry.backoff")
                part.not_before = self._clock.monotonic() + part.backoff.next()
                self._subscription.look_soon()
            else:
                self._heard_end(part, one.leader_epoch, one.end_offset)
                part.leader_epoch = epoch

    def _heard_end(self, part, epoch, end):
        """Handle the leader's answer: the end offset of the last read epoch, or of an earlier one."""
        if end >= part.fetched_to:
            return
        if 0 <= part.position <= end:
            part.start(part.position, min(part.epoch, epoch))  # discards buffered records
            return
        lost = LogFatalError(
            f"The log of {part} was truncated below offset {part.position}, the next to read: records already read are no longer in it, "
            "and new ones may reuse their offsets. auto.offset.reset=none does not allow to continue. Commit an offset, or set auto.offset.reset.",
            java_class("LogTruncationException").replace("common.errors", "clients.consumer"),
        )
        if self._policy is None:
            raise lost
        if epoch == NO_EPOCH or end < 0:
            log.warning("The log of %s was truncated before offset %d, the next to read, and nothing of it is left: continuing by "
                        "auto.offset.reset.", part, part.position)
            return self._leave(part)
        log.warning("The log of %s was truncated to offset %d by an unclean election: %d records already read are no longer in it. Continuing "
                    "at offset %d.", part, end, part.position - end, end)
        part.start(end, epoch)

    # ---- by the log's offsets

    def ask(self, leader, wanted, on_done):
        """List offsets and call `on_done({pair: (error code, offset)}, error)`; `wanted` is {pair: EARLIEST, LATEST or a timestamp}."""
        Topic = ListOffsetsRequest.ListOffsetsTopic
        topics = collections.defaultdict(list)
        for (topic, index), timestamp in wanted.items():
            topics[topic].append(Topic.ListOffsetsPartition(partition_index=index, current_leader_epoch=-1, timestamp=timestamp))
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=ISOLATION[self._config["isolation.level"]],
            topics=[Topic(name=topic, partitions=parts) for topic, parts in topics.items()],
        )

        def heard(answer, error):
            if error is not None:
                self._leaders.lost(leader, error)
                return on_done({}, error)
            self._leaders.answered(leader)
            on_done({(t.name, p.partition_index): (p.error_code, p.offset) for t in answer.topics for p in t.partitions}, None)

        try:
            leader.link.send(request, heard, ceiling=LIST_OFFSETS_CEILING)
        except LogRetriableError as error:
            heard(None, error)

    def _waiting(self):
        return [part for part in self._partitions.values() if part.position is None and not part.asking]

    def _is_waiting(self, part):
        """Whether a response about it is still needed."""
        return self._partitions.get(part.pair) is part and part.position is None

    # ---- by the group's commits

    def _looked_up(self, parts, found, error):
        for part in parts:
            part.asking = False
        if error is not None:
            return self._put_off(error)
        self._succeeded()
        for part in filter(self._is_waiting, parts):
            part.looked_up = True
            committed = found.get(part.pair)
            if part.topic_id is None:
                part.topic_id = self._subscription.topic_id(part.topic)
            if committed is None:
                self._never_read(part)
            elif _is_of_recreated_topic(committed.metadata, self.mark(part)):
                if self._policy is None:
                    raise self._no_position(part, MADE_ANEW)
                log.warning("Topic %s was deleted and recreated since offset %d of %s was committed: reading it from its beginning.",
                            part.topic, committed.offset, part)
                part.reset = EARLIEST
            else:
                part.start(committed.offset, committed.epoch)

    def _never_read(self, part):
        if self._policy is None:
            raise self._no_position(part, "its group has no committed offset")
        part.looked_up, part.reset = True, self._reset_point

    def _no_position(self, part, why):
        return LogFatalError(
            f"There is no offset to read {part} from: {why}, and auto.offset.reset=none does not choose one. "
            "Commit an offset for it, or set auto.offset.reset to earliest or latest.",
            java_class("NoOffsetForPartitionException"),
        )

    # ---- by the log

    def _ask_log(self, parts):
        by_pair = {part.pair: part for part in parts}
        for node, pairs in self._leaders.of(by_pair).items():
            leader = self._leaders.connected(node)
            if leader is not None:
                mine = [by_pair[pair] for pair in pairs]
                for part in mine:
                    part.asking = True
                self.ask(leader, {part.pair: part.reset for part in mine}, functools.partial(self._listed, mine))

    def _listed(self, parts, found, error):
        for part in parts:
            part.asking = False
        if error is not None:
            return self._put_off(error)
        for part in filter(self._is_waiting, parts):
            code, offset = found.get(part.pair, (codes.UNKNOWN_TOPIC_OR_PARTITION, None))
            if code:
                self._put_off(broker_error(code, f"Finding the offsets of {part}"))
            else:
                self._succeeded()
                self._reset_to(part, offset)

    def _reset_to(self, part, offset):
        if offset < 0:
            part.reset = LATEST  # no record is that recent
            return
        if part.left_at is not None and offset >= part.left_at:
            log.warning("Offset %d of %s is no longer in the log: continuing at %d (auto.offset.reset).", part.left_at, part, offset)
        elif part.left_at is not None:
            if part.reset == LATEST:
                part.reset = EARLIEST  # the log ends before the position: its records are new
                return
            log.warning("The log of %s ends before offset %d, the next to read: it was truncated or recreated. Continuing at %d.",
                        part, part.left_at, offset)
        if part.topic_id is None:
            part.topic_id = self._subscription.topic_id(part.topic)
        part.start(offset)

    def _put_off(self, error):
        if not isinstance(error, LogRetriableError):
            raise error
        self._outage.begins(f"Finding the positions to read from failed: {error}")
        self._place_at = self._clock.monotonic() + self._backoff.next()
        self._subscription.look_soon()

    def _succeeded(self):
        self._outage.ends()
        self._backoff.reset()


def _is_of_recreated_topic(found, own):
    """Whether a commit's metadata names another topic id of the same cluster; other metadata means nothing."""
    found, own = _MARK.fullmatch(found or ""), _MARK.fullmatch(own)
    return bool(found and own) and found.group(1) == own.group(1) and found.group(2) != own.group(2)
