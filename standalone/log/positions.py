"""Positions: where each partition is read, and how that is found out: by the group's commits, or by auto.offset.reset."""

import collections
import functools
import logging
import re

from kafka.protocol.consumer import ListOffsetsRequest

from standalone.errors import ConfigError, LogFatalError, LogRetriableError
from standalone.log.broker_errors import broker_error, java_class
from standalone.log.client import Backoff
from standalone.log.link import Trouble

log = logging.getLogger(__name__)

EARLIEST, LATEST = -2, -1
RESETS = {"earliest": EARLIEST, "latest": LATEST, "none": None}
ISOLATION = {"read_uncommitted": 0, "read_committed": 1}
LIST_OFFSETS_CEILING = 7
UNKNOWN_TOPIC = 3
MADE_ANEW = "its topic was deleted and made anew"


class Partition:
    """An assigned partition: where its reader is."""

    def __init__(self, topic, index):
        self.topic, self.index = topic, index
        self.topic_id = None
        self.position = None  # the next offset for the caller; None until it is found out
        self.fetched_to = None  # the next offset to fetch: ahead of `position` by what was received and not handed out
        self.received = collections.deque()  # what was not handed out yet, in order
        self.paused = False
        self.end = None  # the log's, as of the last answer
        self.not_before = 0  # when to fetch again after a refusal
        self.backoff = None
        self.damaged_at = None
        self.swelling = 1.0  # how many times larger its records are than what was received
        self.looked_up = self.asking = False  # whether the group was asked for its commit; whether somebody is being asked
        self.reset = None  # EARLIEST or LATEST, where the log is to be asked for the position
        self.left_at = None  # the position that proved to be out of range

    @property
    def pair(self):
        return self.topic, self.index

    def start(self, offset):
        self.position = self.fetched_to = offset
        self.reset = self.left_at = None
        self.received.clear()

    def __str__(self):
        return f"{self.topic}-{self.index}"


class Positions:
    """Nothing waits: `place` asks, and the answers come by the links of the group and of the leaders."""

    def __init__(self, partitions, config, clock, group, leaders, subscription):
        self._partitions = partitions  # {pair: Partition}, the consumer's own
        self._config, self._clock, self._group, self._leaders, self._subscription = config, clock, group, leaders, subscription
        if config["auto.offset.reset"] not in RESETS:
            raise ConfigError.of({"auto.offset.reset": f"'{config['auto.offset.reset']}' is none of {', '.join(RESETS)}"})
        self._policy = RESETS[config["auto.offset.reset"]]
        self._place_at, self._backoff = 0, Backoff(config, "retry.backoff")
        self._trouble = Trouble("The positions to read from are known.")

    def place(self):
        """Ask for the positions that are not known and not asked for."""
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
        """The log does not have `part.position`."""
        if self._policy is None:
            raise self._no_position(part, f"offset {part.position}, the next to be read, is not in the log")
        part.left_at, part.reset = part.position, self._policy
        part.position = part.fetched_to = None

    def begin_again(self, part, topic_id):
        """A Partition for the topic that was made anew under the name of the old one: none of its records was read."""
        if self._policy is None:
            raise self._no_position(part, MADE_ANEW)
        log.warning("Topic %s was deleted and made anew: reading %s from its beginning, not from offset %s.",
                    part.topic, part, part.position)
        fresh = Partition(*part.pair)
        fresh.topic_id, fresh.paused = topic_id, part.paused
        fresh.looked_up, fresh.reset = True, EARLIEST
        return fresh

    def ask(self, leader, wanted, on_done):
        """`on_done({pair: (error code, offset)}, error)` for {pair: EARLIEST or LATEST}."""
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
        """Whether an answer about it is still of use."""
        return self._partitions.get(part.pair) is part and part.position is None

    # ---- by the group

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
            elif part.topic_id is not None and _is_other_topic(committed.metadata, part.topic_id):
                if self._policy is None:
                    raise self._no_position(part, MADE_ANEW)
                log.warning("Topic %s was deleted and made anew since offset %d of %s was committed: reading it from its beginning.",
                            part.topic, committed.offset, part)
                part.reset = EARLIEST
            else:
                part.start(committed.offset)

    def _never_read(self, part):
        if self._policy is None:
            raise self._no_position(part, "its group has committed none")
        part.looked_up, part.reset = True, self._policy

    def _no_position(self, part, why):
        return LogFatalError(
            f"There is no offset to read {part} from: {why}, and auto.offset.reset=none forbids to choose one. "
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
            code, offset = found.get(part.pair, (UNKNOWN_TOPIC, None))
            if code:
                self._put_off(broker_error(code, f"Finding the offsets of {part}"))
            else:
                self._succeeded()
                self._reset_to(part, offset)

    def _reset_to(self, part, offset):
        if part.left_at is not None and offset >= part.left_at:
            log.warning("Offset %d of %s is no longer in the log: going on at %d (auto.offset.reset).", part.left_at, part, offset)
        elif part.left_at is not None:
            if part.reset == LATEST:
                part.reset = EARLIEST  # the log ends before what was read of it: its records are others, and all of them new
                return
            log.warning("The log of %s ends before offset %d, where it was read to: it was cut or made anew. Going on at %d.",
                        part, part.left_at, offset)
        if part.topic_id is None:
            part.topic_id = self._subscription.topic_id(part.topic)
        part.start(offset)

    def _put_off(self, error):
        if not isinstance(error, LogRetriableError):
            raise error
        self._trouble.is_on(f"The positions to read from cannot be found out: {error}")
        self._place_at = self._clock.monotonic() + self._backoff.next()
        self._subscription.look_soon()

    def _succeeded(self):
        self._trouble.is_over()
        self._backoff.reset()


def _is_other_topic(mark, topic_id):
    """Whether a commit's metadata names another topic than this; what others wrote there names none."""
    return bool(re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", mark or "")) and mark != str(topic_id)
