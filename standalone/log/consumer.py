"""Consumer: records of topics, as columns that point into the bytes as they were received; positions, pauses, commits.

The next fetch is under way while the caller works on what it was given: its answer waits in the socket, so that at most one
answer a broker is in memory besides what the caller holds. Nothing that heals by itself is raised: brokers that go and come back,
leaders that move, topics that are not there yet. Each such event is one line in the log.
"""

import collections
import logging
import re

import numpy as np

from kafka.protocol.consumer import ListOffsetsRequest

from standalone.errors import ConfigError, CorruptBatchError, LogFatalError, LogRetriableError
from standalone.log import fetch, record_batch
from standalone.log.broker_errors import broker_error, is_retriable, is_stale_metadata, java_class, timed_out
from standalone.log.client import Backoff
from standalone.log.client_config import ConsumerConfig
from standalone.log.group import ASK_SECONDS, ASSIGNED, LOST, Group
from standalone.log.link import Link, Trouble, Waker, wait

log = logging.getLogger(__name__)

Fetched = collections.namedtuple("Fetched", "topic partition records high_watermark")

MAX_BYTES = 8 * 1024 * 1024
MOST_RECEIVED = 2  # answers that a partition has in memory
SHARE_OF_JAVA = 1024 * 1024  # Java's max.partition.fetch.bytes: who leaves it there lets a lone partition have more
EARLIEST, LATEST = -2, -1
RESETS = {"earliest": EARLIEST, "latest": LATEST, "none": None}
MISSING_TOPIC_SECONDS = 1.0  # between looks for topics that are not there yet
OFFSET_OUT_OF_RANGE, UNKNOWN_TOPIC, UNKNOWN_TOPIC_ID, INCONSISTENT_TOPIC_ID = 1, 3, 100, 103
LIST_OFFSETS_CEILING = 7


class _Partition:
    """An assigned partition: where its reader is."""

    def __init__(self, topic, index):
        self.topic, self.index = topic, index
        self.position = None  # the next offset for the caller; None until it is found out
        self.fetched_to = None  # the next offset to fetch: ahead of `position` by what was received and not handed out
        self.reset = None  # EARLIEST or LATEST, where the log itself is to be asked for the position
        self.left_at = None  # the position that proved to be out of range
        self.looked_up = False  # whether the group was asked for its commit
        self.asking = False
        self.topic_id = None
        self.paused = False
        self.received = collections.deque()  # of _Received, in order: what was not handed out yet
        self.end = None
        self.damaged_at = None
        self.swelling = 1.0  # how many times larger its records are than what was received

    @property
    def pair(self):
        return self.topic, self.index

    def __str__(self):
        return f"{self.topic}-{self.index}"


class _Received(collections.namedtuple("_Received", "next_offset records end aborted")):
    """Bytes of a partition up to `next_offset`, not looked at yet."""


class _Broker:
    def __init__(self, node, config):
        self.link = None
        self.fetching = False
        self.backoff = Backoff(config, "reconnect.backoff")
        self.not_before = 0
        self.trouble = Trouble(f"The broker at {node.host}:{node.port} answers again.")


class _Nobody:
    """The listener of who does not want one."""

    def on_assigned(self, pairs):
        pass

    on_revoked = on_lost = on_assigned


class Consumer:
    """Used by one thread, but for `wakeup`. Partitions are (topic, index) pairs.

    `listener` has on_assigned(pairs), on_revoked(pairs) and on_lost(pairs), called inside `poll`: revoked while the offsets can still be
    committed, lost where that is over. A topic that was deleted and made anew is lost and assigned in one go, for its offsets begin again.
    """

    def __init__(self, cluster, config, clock, group_id=None, instance_id=None, listener=None, heartbeats=None, max_bytes=MAX_BYTES):
        """`heartbeats` (heartbeats.py) keeps the membership alive; without a group there is `assign` and no commits."""
        self._cluster, self._clock = cluster, clock
        self._config = config = ConsumerConfig.of(config)
        if config["auto.offset.reset"] not in RESETS:
            raise ConfigError.of({"auto.offset.reset": f"'{config['auto.offset.reset']}' is none of {', '.join(RESETS)}"})
        self._listener = listener or _Nobody()
        self._waker = Waker()
        self._woken = False
        self._group = Group(cluster, config, clock, self._waker, group_id, instance_id) if group_id is not None else None
        self._heartbeats = heartbeats
        if heartbeats is not None and self._group is not None:
            heartbeats.add(self._group)
        self._max_bytes = max(1, min(max_bytes, config["fetch.max.bytes"]))
        self._isolation = fetch.ISOLATION[config["isolation.level"]]
        self._names, self._pattern = [], None
        self._seen, self._missing = set(), set()
        self._looked, self._look_at = False, float("inf")  # whether topics were looked at, when to look again
        self._look_backoff, self._look_asked = Backoff(config, "retry.backoff"), False
        self._look_trouble = Trouble("Topics can be looked up again.")
        self._place_at, self._place_backoff = 0, Backoff(config, "retry.backoff")
        self._place_trouble = Trouble("The positions to read from are known.")
        self._partitions = {}  # pair -> _Partition, in the order in which they are fetched
        self._brokers = {}  # Node -> _Broker

    # ---- what to read

    def subscribe(self, topics=None, pattern=None):
        """Topics by name, or all whose whole name matches: a regular expression, or anything with `fullmatch`."""
        if pattern is not None and not hasattr(pattern, "fullmatch"):
            try:
                pattern = re.compile(pattern)
            except re.error as problem:
                raise ConfigError.of({"topics.regex": f"'{pattern}' is no regular expression: {problem}"}) from problem
        self._names, self._pattern = list(dict.fromkeys(topics or ())), pattern
        self._look_at = 0

    def assign(self, pairs):
        """Read these partitions, whoever else does: no group shares them out."""
        self._take(pairs)

    def assignment(self):
        return sorted(self._partitions)

    def seek(self, topic, partition, offset):
        part = self._assigned((topic, partition))
        part.position = part.fetched_to = offset
        part.reset = part.left_at = None
        part.received.clear()
        if part.topic_id is None:
            part.topic_id = self._topic_id(topic)

    def pause(self, pairs):
        """Hand nothing out of these; what has been received is kept."""
        for pair in pairs:
            self._assigned(pair).paused = True

    def resume(self, pairs):
        for pair in pairs:
            self._assigned(pair).paused = False

    def paused(self):
        return sorted(pair for pair, part in self._partitions.items() if part.paused)

    def position(self, pair, timeout_s=60.0):
        """The offset of the next record that `poll` will give; asks for it where that is not known yet."""
        part = self._assigned(pair)
        self._until(lambda: part.position is not None, timeout_s, f"Finding out where to read {part}")
        return part.position

    def lag(self):
        """{pair: records that are in the log and were not handed out}, as of the last answer."""
        known = {pair: part for pair, part in self._partitions.items() if part.end is not None and part.position is not None}
        return {pair: max(0, part.end - part.position) for pair, part in known.items()}

    def end_offsets(self, pairs, timeout_s=60.0):
        """{pair: the offset behind its last record}, asked for now."""
        return self._list_offsets(pairs, LATEST, timeout_s)

    def beginning_offsets(self, pairs, timeout_s=60.0):
        return self._list_offsets(pairs, EARLIEST, timeout_s)

    # ---- records

    def poll(self, timeout_s):
        """[Fetched], as soon as there is any; [] when the time is over or `wakeup` was called."""
        deadline = self._clock.monotonic() + timeout_s
        if self._group is not None:
            self._group.polling(True)
        try:
            while True:
                self._serve()
                self._follow_topics()
                self._follow_group()
                self._place()
                self._fetch()
                fetched = self._unpack()
                now = self._clock.monotonic()
                if fetched or self._woken or now >= deadline:
                    self._woken = False
                    return fetched
                self._wait(min(deadline, self._wakes_at()) - now)
        finally:
            if self._group is not None:
                self._group.polling(False)

    def wakeup(self):
        """From any thread: `poll` returns at once, the one that waits now or else the next."""
        self._woken = True
        self._waker.wake()

    # ---- commits

    def commit(self, offsets, timeout_s=60.0):
        """Commit {pair: offset of the next record, or (offset, metadata)} and wait until it is done.

        LogRetriableError where it could not be, and the records will come again; LogFatalError where it never will be.
        """
        self._group.commit(self._marked(offsets), timeout_s)

    def commit_async(self, offsets, on_done=lambda error: None):
        """`on_done(None or the error)` is called on this thread: at once, or by a later `poll` or `commit`."""
        self._group.commit_async(self._marked(offsets), on_done)

    def committed(self, pairs, timeout_s=60.0):
        """{pair: offset} of those that the group has committed."""
        return {pair: found.offset for pair, found in self._group.committed(pairs, timeout_s).items()}

    def close(self, timeout_s=5.0, leave=True):
        """With `leave` the group shares the partitions out again at once; without, this member may come back to them within its session.

        The listener is not called: who closes has flushed and committed, or does not want to.
        """
        if self._group is not None:
            if self._heartbeats is not None:
                self._heartbeats.remove(self._group)
            self._group.close(timeout_s, leave)
        for broker in self._brokers.values():
            if broker.link is not None:
                broker.link.close()
        self._waker.close()

    def _marked(self, offsets):
        """Each with the id of its topic as metadata, so that a topic made anew under the same name is told from the old one."""
        marked = {}
        for pair, offset in offsets.items():
            part = self._partitions.get(pair)
            marked[pair] = offset if isinstance(offset, tuple) else (offset, str(part.topic_id or "") if part is not None else "")
        return marked

    # ---- the group

    def _follow_group(self):
        if self._group is None or not self._looked:
            return
        while (event := self._group.advance()) is not None:
            if event is ASSIGNED:
                self._take(self._group.assignment)
                continue
            try:
                if self._partitions:
                    call = self._listener.on_lost if event is LOST else self._listener.on_revoked
                    call(self.assignment())
            finally:
                self._partitions = {}
                self._group.rejoin()

    def _take(self, pairs):
        self._partitions = {tuple(pair): _Partition(*pair) for pair in pairs}
        self._place_at = 0
        if any(self._cluster.leader(*pair) is None for pair in self._partitions):
            self._look_soon()
        if self._partitions:
            self._listener.on_assigned(self.assignment())

    # ---- topics

    def _follow_topics(self):
        now = self._clock.monotonic()
        if now < self._look_at:
            return
        try:
            wanted = set(self._names) | {topic for topic, _ in self._partitions}
            if self._group is not None:
                wanted |= self._group.watched
            found = self._look(wanted)
        except LogRetriableError as error:
            self._look_trouble.is_on(f"Topics cannot be looked up: {error}")
            self._look_at, self._look_asked = self._clock.monotonic() + self._look_backoff.next(), False
            return
        self._look_trouble.is_over()
        self._look_asked = False
        for topic in found.values():
            if topic.error_code and not is_retriable(topic.error_code):
                raise broker_error(topic.error_code, f"Reading topic '{topic.name}'")
        there = {name: topic for name, topic in found.items() if not topic.error_code}
        self._seen |= set(there)
        self._tell_missing(set(self._names) - set(there))
        without_leader = any(partition.leader < 0 for topic in there.values() for partition in topic.partitions.values())
        missing = self._missing or without_leader or any(topic not in there for topic, _ in self._partitions)
        age = self._config.seconds("metadata.max.age.ms")
        self._look_at = self._clock.monotonic() + (min(MISSING_TOPIC_SECONDS, age) if missing else age)
        for part in list(self._partitions.values()):
            if part.topic in there and part.topic_id is not None and there[part.topic].id not in (None, part.topic_id):
                self._made_anew(part, there[part.topic].id)
        self._looked = True
        if self._group is not None:
            self._group.subscribe(self._matching(there) if self._pattern is not None else self._names)
            self._group.partitions_counted({name: len(topic.partitions) for name, topic in there.items()})

    def _look(self, wanted):
        if self._pattern is not None:
            return self._cluster.refresh(None, timeout=ASK_SECONDS)
        found = self._cluster.refresh(sorted(wanted), timeout=ASK_SECONDS) if wanted else {}
        # Only what was never there is made: a deleted topic must not rise again because somebody still reads it.
        unborn = {name for name in self._names if name not in self._seen and (name not in found or found[name].error_code == UNKNOWN_TOPIC)}
        if unborn and self._config["allow.auto.create.topics"]:
            found.update(self._cluster.refresh(sorted(unborn), create=True, timeout=ASK_SECONDS))
        return found

    def _matching(self, there):
        hidden = self._config["exclude.internal.topics"]
        return [name for name, topic in there.items() if self._pattern.fullmatch(name) and not (hidden and topic.internal)]

    def _tell_missing(self, missing):
        for name in sorted(missing - self._missing):
            log.warning("Topic %s does not exist%s; waiting for it.", name, " any more" if name in self._seen else " yet")
        self._missing = missing

    def _look_soon(self):
        """What is known of the topics seems wrong: look again, the later the oftener it did not help."""
        if not self._look_asked:
            self._look_asked = True
            self._look_at = min(self._look_at, self._clock.monotonic() + self._look_backoff.next())

    def _topic_id(self, name):
        topic = self._cluster.known_topic(name)
        return topic.id if topic is not None else None

    def _made_anew(self, part, topic_id):
        """The topic was deleted and made again: its offsets begin again, and none of its records was read."""
        if RESETS[self._config["auto.offset.reset"]] is None:
            raise self._no_position(part, "its topic was deleted and made anew")
        log.warning("Topic %s was deleted and made anew: reading %s from its beginning instead of offset %s.", part.topic, part, part.position)
        self._listener.on_lost([part.pair])
        fresh = _Partition(*part.pair)
        fresh.looked_up, fresh.reset, fresh.topic_id = True, EARLIEST, topic_id
        self._partitions[part.pair] = fresh
        self._listener.on_assigned([part.pair])

    # ---- positions

    def _place(self):
        """Ask for the positions that are not known, at most once at a time each."""
        if self._clock.monotonic() < self._place_at:
            return
        waiting = [part for part in self._partitions.values() if part.position is None and not part.asking]
        if not waiting:
            return
        unasked = [part for part in waiting if not part.looked_up]
        if unasked and self._group is not None:
            for part in unasked:
                part.asking = True
            self._group.committed_async([part.pair for part in unasked], lambda found, error: self._looked_up(unasked, found, error))
        else:
            for part in unasked:
                self._never_read(part)
        self._ask_log([part for part in waiting if part.reset is not None and not part.asking])

    def _looked_up(self, parts, found, error):
        for part in parts:
            part.asking = False
        if error is not None:
            if not isinstance(error, LogRetriableError):
                raise error
            self._put_off_placing(error)
            return
        self._placed()
        for part in parts:
            if self._partitions.get(part.pair) is not part or part.position is not None:
                continue
            topic_id = self._topic_id(part.topic)
            committed = found.get(part.pair)
            if committed is None:
                self._never_read(part)
            elif topic_id is not None and _is_other_topic(committed.metadata, topic_id):
                if RESETS[self._config["auto.offset.reset"]] is None:
                    raise self._no_position(part, "its topic was deleted and made anew")
                log.warning("Topic %s was deleted and made anew since offset %d of %s was committed: reading it from its beginning.",
                            part.topic, committed.offset, part)
                part.looked_up, part.reset = True, EARLIEST
            else:
                part.looked_up = True
                self._start(part, committed.offset)

    def _never_read(self, part):
        part.looked_up, part.reset = True, RESETS[self._config["auto.offset.reset"]]
        if part.reset is None:
            raise self._no_position(part, "its group has committed none")

    def _no_position(self, part, why):
        return LogFatalError(
            f"There is no offset to read {part} from: {why}, and auto.offset.reset=none forbids to choose one. "
            "Commit an offset for it, or set auto.offset.reset to earliest or latest.",
            java_class("NoOffsetForPartitionException"),
        )

    def _start(self, part, offset):
        part.position = part.fetched_to = offset
        part.reset = part.left_at = None
        part.topic_id = part.topic_id or self._topic_id(part.topic)

    def _put_off_placing(self, error):
        self._place_trouble.is_on(f"The positions to read from cannot be found out: {error}")
        self._place_at = self._clock.monotonic() + self._place_backoff.next()
        self._look_soon()

    def _placed(self):
        self._place_trouble.is_over()
        self._place_backoff.reset()

    def _ask_log(self, parts):
        """ListOffsets to each leader, for the partitions that start where their log does or ends."""
        by_node = collections.defaultdict(list)
        for part in parts:
            leader = self._cluster.leader(*part.pair)
            if leader is None:
                self._look_soon()
            else:
                by_node[leader.node].append(part)
        for node, mine in by_node.items():
            broker = self._connected(node)
            if broker is None:
                continue
            for part in mine:
                part.asking = True
            self._send_list(broker, {part.pair: part.reset for part in mine}, lambda found, error, mine=mine: self._listed(mine, found, error))

    def _listed(self, parts, found, error):
        for part in parts:
            part.asking = False
        for part in parts:
            if self._partitions.get(part.pair) is not part or part.position is not None or part.reset is None:
                continue
            code, offset = found.get(part.pair, (UNKNOWN_TOPIC, None)) if error is None else (None, None)
            if code == 0:
                self._placed()
                self._reset_to(part, offset)
            elif code is None or is_retriable(code):
                self._put_off_placing(error or broker_error(code, f"Finding the offsets of {part}"))
            else:
                raise broker_error(code, f"Finding the offsets of {part}")

    def _reset_to(self, part, offset):
        if part.left_at is not None:
            if offset >= part.left_at:
                log.warning("Offset %d of %s is no longer in the log: going on at %d (auto.offset.reset).", part.left_at, part, offset)
            elif part.reset is LATEST:
                # The log ends before what was read of it: these are other records, and all of them are new.
                part.reset = EARLIEST
                return
            else:
                log.warning("The log of %s ends before offset %d, where it was read to: it was cut or made anew. Going on at %d.",
                            part, part.left_at, offset)
        self._start(part, offset)

    def _out_of_range(self, part):
        part.left_at, part.reset = part.position, RESETS[self._config["auto.offset.reset"]]
        if part.reset is None:
            raise self._no_position(part, f"offset {part.position}, the next to be read, is not in the log")
        part.position = part.fetched_to = None

    def _send_list(self, broker, wanted, on_done):
        """`on_done({pair: (error code, offset)}, error)` for {pair: EARLIEST or LATEST}."""
        One = ListOffsetsRequest.ListOffsetsTopic
        topics = collections.defaultdict(list)
        for (topic, partition), timestamp in wanted.items():
            topics[topic].append(One.ListOffsetsPartition(partition_index=partition, current_leader_epoch=-1, timestamp=timestamp))
        request = ListOffsetsRequest(
            replica_id=-1, isolation_level=self._isolation, topics=[One(name=topic, partitions=parts) for topic, parts in topics.items()]
        )

        def heard(answer, error):
            found = {(t.name, p.partition_index): (p.error_code, p.offset) for t in answer.topics for p in t.partitions} if answer else {}
            on_done(found, error)

        try:
            broker.link.send(request, heard, ceiling=LIST_OFFSETS_CEILING)
        except LogRetriableError as error:
            self._lost_broker(broker, error)
            on_done({}, error)

    def _list_offsets(self, pairs, timestamp, timeout_s):
        deadline = self._clock.monotonic() + timeout_s
        what, offsets = "Asking for offsets", {}
        while missing := [pair for pair in pairs if pair not in offsets]:
            outcome = []
            self._cluster.topic(missing[0][0], timeout=deadline - self._clock.monotonic())
            leader = self._cluster.leader(*missing[0])
            broker = self._connected(leader.node) if leader is not None else None
            if broker is None:
                self._look_soon()
            else:
                mine = [pair for pair in missing if (other := self._cluster.leader(*pair)) is not None and other.node == leader.node]
                self._send_list(broker, dict.fromkeys(mine, timestamp), lambda found, error: outcome.append(found))
                self._until(lambda: outcome, deadline - self._clock.monotonic(), what)
                offsets.update({pair: offset for pair, (code, offset) in outcome[0].items() if not code})
                for pair, (code, _) in outcome[0].items():
                    if code and not is_retriable(code):
                        raise broker_error(code, f"{what} of {pair[0]}-{pair[1]}")
            if missing[0] not in offsets:
                if self._clock.monotonic() >= deadline:
                    raise timed_out(f"{what} of {missing[0][0]}-{missing[0][1]}: no answer in time.")
                self._follow_topics()
                self._wait(self._config.seconds("retry.backoff.ms"))
        return offsets

    # ---- fetching

    def _fetch(self):
        """Send every broker that has nothing to do its next fetch."""
        by_node = collections.defaultdict(list)
        for part in self._partitions.values():
            if part.position is not None and not part.paused and len(part.received) < MOST_RECEIVED:
                leader = self._cluster.leader(*part.pair)
                if leader is None:
                    self._look_soon()
                else:
                    by_node[leader.node].append(part)
        for node, parts in by_node.items():
            broker = self._brokers.get(node)
            if (broker is None or not broker.fetching) and (broker := self._connected(node)) is not None:
                self._send_fetch(broker, parts, max(1, self._max_bytes // len(by_node)))

    def _send_fetch(self, broker, parts, max_bytes):
        config = self._config
        max_bytes = max(1, int(max_bytes / max(part.swelling for part in parts)))  # for what counts is the memory in the end
        share = config["max.partition.fetch.bytes"]
        request, ceiling = fetch.request(
            [(part.topic, part.topic_id, part.index, part.fetched_to) for part in parts],
            min_bytes=config["fetch.min.bytes"],
            max_wait_ms=config["fetch.max.wait.ms"],
            max_bytes=max_bytes,
            partition_bytes=max_bytes if len(parts) == 1 and share >= SHARE_OF_JAVA else min(share, max_bytes),
            isolation=self._isolation,
            rack=config["client.rack"],
        )
        by_id = broker.link.connection.version(request, ceiling) >= fetch.BY_ID
        sent = {((part.topic_id if by_id else part.topic), part.index): (part, part.fetched_to) for part in parts}
        # The broker fills its answer in this order: who came first this time comes last the next.
        for part in parts[:1]:
            self._partitions[part.pair] = self._partitions.pop(part.pair)
        try:
            broker.link.send(request, lambda answer, error: self._answered(broker, sent, answer, error), ceiling=ceiling, read=fetch.read)
        except LogRetriableError as error:
            self._lost_broker(broker, error)
        else:
            broker.fetching = True

    def _answered(self, broker, sent, answer, error):
        broker.fetching = False
        if error is not None:
            self._lost_broker(broker, error)
            return
        broker.trouble.is_over()
        code, answers = answer
        if code:
            self._refused(broker, code, "Fetching")
        for one in answers:
            part, offset = sent.get((one.topic, one.partition), (None, None))
            if part is None or self._partitions.get(part.pair) is not part or part.fetched_to != offset:
                continue  # it was let go, or sought elsewhere, meanwhile
            if one.error_code == OFFSET_OUT_OF_RANGE:
                if part.fetched_to == part.position:
                    self._out_of_range(part)
            elif one.error_code:
                self._refused(broker, one.error_code, f"Fetching {part}")
            else:
                broker.backoff.reset()
                self._look_backoff.reset()
                part.end = one.stable_offset if self._isolation else one.high_watermark
                if one.records is not None:
                    part.fetched_to = int(fetch.next_offset(np.frombuffer(one.records, np.uint8), offset))
                    part.received.append(_Received(part.fetched_to, one.records, one.high_watermark, one.aborted))

    def _refused(self, broker, code, what):
        if not (is_retriable(code) or is_stale_metadata(code) or code in (UNKNOWN_TOPIC_ID, INCONSISTENT_TOPIC_ID)):
            raise broker_error(code, what)
        broker.not_before = self._clock.monotonic() + broker.backoff.next()
        self._look_soon()

    def _unpack(self):
        """[Fetched] of what was received of partitions that are not paused."""
        fetched = []
        for part in list(self._partitions.values()):
            while part.received and not part.paused:
                received = part.received.popleft()
                try:
                    unpacked = record_batch.unpack(
                        received.records,
                        from_offset=part.position,
                        check_crc=self._config["check.crcs"],
                        isolation=self._config["isolation.level"],
                        aborted=received.aborted,
                    )
                except CorruptBatchError as error:
                    part.fetched_to = part.position
                    part.received.clear()
                    if part.damaged_at != part.position:
                        part.damaged_at = part.position
                        log.warning("Records of %s came damaged: %s Asking for them again.", part, error)
                    elif not fetched:
                        raise
                    break
                part.position = max(part.position, unpacked.next_offset)
                for records in unpacked.records:
                    fetched.append(Fetched(part.topic, part.index, records, received.end))
                    part.swelling = max(1.0, _buffer_bytes(records) / len(received.records))
                if part.position < received.next_offset:  # compressed records that would have taken too much memory at once
                    part.received.appendleft(received)
                    break
        return fetched

    # ---- connections

    def _connected(self, node):
        """The _Broker of a node, ready to be sent requests; None while it is not to be reached."""
        broker = self._brokers.get(node)
        if broker is None:
            broker = self._brokers[node] = _Broker(node, self._config)
        now = self._clock.monotonic()
        if now < broker.not_before:
            return None
        if broker.link is None or not broker.link.usable:
            try:
                connection = self._cluster.connect(node)
            except LogRetriableError as error:
                self._lost_broker(broker, error)
                return None
            broker.link = Link(connection, node, self._clock, self._config.seconds("request.timeout.ms"))
        return broker

    def _lost_broker(self, broker, error):
        broker.trouble.is_on(error)
        broker.fetching = False
        broker.not_before = self._clock.monotonic() + broker.backoff.next()
        self._look_soon()

    @property
    def _links(self):
        links = [broker.link for broker in self._brokers.values() if broker.link is not None]
        return links + (self._group.links if self._group is not None else [])

    def _serve(self):
        for link in self._links:
            link.serve()

    def _wait(self, seconds):
        wait(self._links, self._waker, seconds)

    def _wakes_at(self):
        """When something is to be done though nothing was heard."""
        now = self._clock.monotonic()
        times = [self._look_at] + [link.deadline for link in self._links]
        times += [broker.not_before for broker in self._brokers.values() if broker.not_before > now]
        if any(part.position is None and not part.asking for part in self._partitions.values()):
            times.append(self._place_at)
        if self._group is not None:
            times.append(self._group.wakes_at)
        return min(times)

    def _until(self, done, timeout_s, what):
        deadline = self._clock.monotonic() + timeout_s
        while not done():
            self._serve()
            self._follow_topics()
            self._place()
            if done():
                return
            now = self._clock.monotonic()
            if now >= deadline:
                raise timed_out(f"{what}: not known in time.")
            self._wait(min(deadline, self._wakes_at()) - now)

    def _assigned(self, pair):
        part = self._partitions.get(tuple(pair))
        if part is None:
            raise LogFatalError(f"Partition {pair[0]}-{pair[1]} is not assigned to this consumer now.", "java.lang.IllegalStateException")
        return part


def _buffer_bytes(records):
    return len(records.values.data) if records.values is not None else 0


def _is_other_topic(mark, topic_id):
    """Whether a commit's metadata names another topic than this; what others wrote there names none."""
    return bool(re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", mark or "")) and mark != str(topic_id)
