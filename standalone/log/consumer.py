"""Consumer: records as columns that point into the received bytes; positions, pause and resume, commits.

    subscription.py  which topics          group.py or consumer_protocol.py, commits.py  assignment and commits
    positions.py     start offsets        leaders.py, fetch.py  which broker to fetch from, and the fetch

The next fetch is in flight while the caller processes records: its response waits in the socket, so at most one response per broker
is in memory besides the caller's records. Transient problems are not raised (brokers that restart, leaders that move, topics that do
not exist yet); each is logged once.
"""

import collections
import contextlib
import functools
import logging

import numpy as np

from standalone.errors import CorruptBatchError, LogFatalError, LogRetriableError
from standalone.log import client_keys, fetch, record_batch
from standalone.log import error_codes as codes
from standalone.log.broker_errors import broker_error, is_retriable, is_stale_metadata, timed_out
from standalone.log.client_config import ConsumerConfig
from standalone.log.consumer_protocol import ConsumerProtocolGroup
from standalone.log.group import Group
from standalone.log.group_link import ASSIGNED, LOST
from standalone.log.leaders import Leaders
from standalone.log.link import Waker, wait
from standalone.log.positions import EARLIEST, ISOLATION, LATEST, Partition, Positions
from standalone.log.retry import Backoff
from standalone.log.subscription import Subscription

log = logging.getLogger(__name__)

Fetched = collections.namedtuple("Fetched", "topic partition records high_watermark")

MAX_BYTES = 8 * 1024 * 1024
MOST_RECEIVED = 2  # responses that a partition holds in memory
LONGEST_WAIT_MS = 5000  # fetches of an idle partition wait twice as long each time, up to this; one record resets it
JAVA_SHARE_BYTES = 1024 * 1024  # Java's max.partition.fetch.bytes: at this value or above, a lone partition may get more
NO_REPLICA = -1

_Received = collections.namedtuple("_Received", "next_offset epoch records end aborted")  # undecoded bytes of a partition


class _NoListener:
    """A rebalance listener that does nothing."""

    def on_assigned(self, pairs):
        pass

    on_revoked = on_lost = on_assigned


class Consumer:
    """Used by one thread, except `wakeup`. Partitions are (topic, index) pairs.

    `listener` has on_assigned(pairs), on_revoked(pairs) and on_lost(pairs), called inside `poll`: on revoked, offsets can still be
    committed; on lost, not any more. A recreated topic is lost and assigned at once, as its offsets restart.
    """

    def __init__(
        self, cluster, config, clock, group_id=None, instance_id=None, listener=None, heartbeats=None, max_bytes=MAX_BYTES, relayed=None
    ):
        """`heartbeats` (heartbeats.py) keeps the membership alive; without a group there is only `assign`, and no commits. `relayed(waker)` makes
        the group of a consumer whose membership lives in another process (relayed_group.py)."""
        self._config = config = ConsumerConfig.of(config)
        client_keys.tell(config)
        self._cluster, self._clock = cluster.of_client(config["client.id"]), clock
        cluster = self._cluster
        self._listener = listener or _NoListener()
        self._max_bytes = max(1, min(max_bytes, config["fetch.max.bytes"]))
        # With fetch.min.bytes=1 the broker responds as soon as a byte arrives, so a longer wait delays nothing.
        self._may_wait_longer = "fetch.max.wait.ms" not in config.given and config["fetch.min.bytes"] <= 1
        self._isolation = ISOLATION[config["isolation.level"]]
        self._waker, self._woken = Waker(), False
        self._partitions = {}  # pair -> Partition, in fetch order
        self._subscription = Subscription(cluster, config, clock)
        self._leaders = Leaders(cluster, config, clock, self._subscription.look_soon)
        member = ConsumerProtocolGroup if config["group.protocol"] == "consumer" else Group
        self._group = member(cluster, config, clock, self._waker, group_id, instance_id) if group_id is not None else None
        if relayed is not None:
            self._group = relayed(self._waker)
        self._acting = self._group.acting if self._group is not None else contextlib.nullcontext()  # held around everything that may touch the group
        self._positions = Positions(self._partitions, cluster, config, clock, self._group, self._leaders, self._subscription)
        self._heartbeats = heartbeats if self._group is not None and relayed is None else None
        if self._heartbeats is not None:
            self._heartbeats.add(self._group)

    # ---- subscription

    def subscribe(self, topics=None, pattern=None):
        """Subscribe to topics by name, or by pattern: a regular expression, or any object with `fullmatch`."""
        self._subscription.want(topics, pattern)

    def assign(self, pairs):
        """Read these partitions without a group."""
        self._subscription.look_now()
        self._take(pairs)

    def assignment(self):
        return sorted(self._partitions)

    def seek(self, topic, partition, offset):
        part = self._assigned((topic, partition))
        part.start(offset)
        if part.topic_id is None:
            part.topic_id = self._subscription.topic_id(topic)

    def pause(self, pairs):
        """Return no records of these; received ones stay buffered."""
        for pair in pairs:
            self._assigned(pair).paused = True

    def resume(self, pairs):
        for pair in pairs:
            self._assigned(pair).paused = False

    def paused(self):
        return sorted(pair for pair, part in self._partitions.items() if part.paused)

    def position(self, pair, timeout_s=60.0):
        """Return the offset of the next record from `poll`; fetch it if unknown."""
        part = self._assigned(pair)
        with self._acting:
            self._until(lambda: part.position is not None, self._clock.monotonic() + timeout_s, f"Finding the position of {part}")
        return part.position

    def lag(self):
        """Return {pair: number of records behind the log's end}, as of the last response."""
        known = {pair: part for pair, part in list(self._partitions.items()) if part.end is not None and part.position is not None}
        return {pair: max(0, part.end - part.position) for pair, part in known.items()}

    def end_offsets(self, pairs, timeout_s=60.0):
        """Fetch {pair: end offset} from the brokers."""
        with self._acting:
            return self._ask_offsets(pairs, LATEST, timeout_s)

    def beginning_offsets(self, pairs, timeout_s=60.0):
        with self._acting:
            return self._ask_offsets(pairs, EARLIEST, timeout_s)

    # ---- records

    def poll(self, timeout_s):
        """Return [Fetched] as soon as there are records; [] after the timeout or `wakeup`."""
        with self._acting:
            if self._group is not None:
                self._group.polling(True)
            try:
                return self._poll(self._clock.monotonic() + timeout_s)
            finally:
                if self._group is not None:
                    self._group.polling(False)

    def _poll(self, deadline):
        while True:
            self._serve()
            for step in (self._follow_topics, self._follow_group, self._positions.place, self._fetch):
                if not self._woken:  # each may take a moment while brokers are unavailable
                    step()
            fetched = self._unpack()
            now = self._clock.monotonic()
            if fetched or self._woken or now >= deadline:
                self._woken = False
                return fetched
            self._wait(min(deadline, self._wakes_at()) - now)

    def wakeup(self):
        """Make the current `poll`, or the next one, return at once. Callable from any thread."""
        self._woken = True
        self._waker.wake()

    # ---- commits

    def commit(self, offsets, timeout_s=60.0):
        """Commit {pair: next offset, or (offset, metadata), or another consumer's `marked` value}; wait for the result.

        LogRetriableError: not committed, the records will be redelivered. LogFatalError: it never will be.
        """
        with self._acting:
            self._group.commits.write(self._marked(offsets), timeout_s)

    def commit_async(self, offsets, on_done=lambda error: None):
        """Call `on_done(None or the error)` on this thread: at once, or in a later `poll` or `commit`."""
        with self._acting:
            self._group.commits.write_async(self._marked(offsets), on_done)

    def committed(self, pairs, timeout_s=60.0):
        """Return {pair: committed offset} for the pairs with one."""
        return {pair: offset for pair, (offset, _, _) in self.marks(pairs, timeout_s).items()}

    def marks(self, pairs, timeout_s=60.0):
        """Return {pair: (offset, metadata, epoch)} for the pairs with a committed offset."""
        with self._acting:
            return {pair: tuple(found) for pair, found in self._group.commits.read(pairs, timeout_s).items()}

    def close(self, timeout_s=5.0, leave=True):
        """With `leave` the group rebalances at once; without, this member may get its partitions back within its session.

        The listener is not called: the caller has flushed and committed, or does not want to.
        """
        if self._heartbeats is not None:
            self._heartbeats.remove(self._group)
        if self._group is not None:
            with self._acting:
                self._group.close(timeout_s, leave)
        self._subscription.close()
        self._leaders.close()
        self._waker.close()

    def _marked(self, offsets):
        """Add the leader epoch to each offset, and as metadata the topic's id, which detects a topic recreated under the same name."""
        marked = {}
        for pair, offset in offsets.items():
            if isinstance(offset, tuple) and len(offset) == 3:
                marked[pair] = offset
                continue
            part = self._partitions.get(pair)
            offset, metadata = offset if isinstance(offset, tuple) else (offset, None)
            if metadata is None:
                metadata = self._positions.mark(part) if part is not None else ""
            marked[pair] = offset, metadata, part.epoch if part is not None else -1
        return marked

    # ---- topics and group

    def _follow_topics(self):
        if self._subscription.due:
            watched = self._group.watched if self._group is not None else set()
            self._subscription.look(watched | {topic for topic, _ in self._partitions})
        there = self._subscription.take_found()
        if there is None:
            return
        for part in list(self._partitions.values()):
            if part.topic in there and part.topic_id is not None and there[part.topic].id not in (None, part.topic_id):
                fresh = self._positions.begin_again(part, there[part.topic].id)
                self._listener.on_lost([part.pair])
                self._partitions[part.pair] = fresh
                self._listener.on_assigned([part.pair])
        if self._group is not None:
            self._group.subscribe(self._subscription.chosen)
            self._group.partitions_counted({name: len(topic.partitions) for name, topic in there.items()})

    def _follow_group(self):
        if self._group is None or self._subscription.chosen is None:
            return
        while (step := self._group.advance()) is not None:
            event, pairs = step
            if event is ASSIGNED:
                self._add(pairs)
                self._group.taken(pairs)
                continue
            held = [pair for pair in pairs if pair in self._partitions]
            try:
                if held:
                    (self._listener.on_lost if event is LOST else self._listener.on_revoked)(held)
            finally:
                for pair in held:
                    del self._partitions[pair]
                self._group.let_go(event, pairs)

    def _take(self, pairs):
        self._partitions.clear()
        self._add(pairs)

    def _add(self, pairs):
        self._partitions.update({tuple(pair): Partition(*pair) for pair in pairs})
        if pairs:
            self._listener.on_assigned(sorted(map(tuple, pairs)))

    # ---- fetching

    def expect(self, max_bytes):
        """Set how many bytes one fetch requests, up to fetch.max.bytes."""
        self._max_bytes = max(1, min(max_bytes, self._config["fetch.max.bytes"]))

    def _fetch(self):
        """Send the next fetch to every idle broker."""
        now = self._clock.monotonic()
        ready = [
            part
            for part in self._partitions.values()
            if part.position is not None and not part.paused and len(part.received) < MOST_RECEIVED and part.not_before <= now
            and not part.validating
        ]
        by_node = self._leaders.to_read(self._positions.validate(ready))
        for node, parts in by_node.items():
            if not self._leaders.is_fetching(node, parts) and (leader := self._leaders.connected(node)) is not None:
                self._send_fetch(leader, parts, self._max_bytes / len(by_node))

    def _send_fetch(self, leader, parts, max_bytes):
        config = self._config
        # Request less of compressed records: their decompressed size counts.
        max_bytes = max(1, int(max_bytes / max(part.inflation for part in parts)))
        share = config["max.partition.fetch.bytes"]
        wait_ms = self._wait_ms(leader)
        request, ceiling = fetch.request(
            [(part.topic, part.topic_id, part.index, part.fetched_to, part.leader_epoch) for part in parts],
            min_bytes=config["fetch.min.bytes"],
            max_wait_ms=wait_ms,
            max_bytes=max_bytes,
            partition_bytes=max_bytes if len(parts) == 1 and share >= JAVA_SHARE_BYTES else min(share, max_bytes),
            isolation=self._isolation,
            rack=config["client.rack"],
        )
        by_id = leader.link.connection.version(request, ceiling) >= fetch.BY_ID
        sent = {((part.topic_id if by_id else part.topic), part.index): (part, part.fetched_to) for part in parts}
        # A broker fills its response in request order, so move the first partition to the end for the next fetch.
        self._partitions[parts[0].pair] = self._partitions.pop(parts[0].pair)
        leader.fetching = {part.pair: (part, part.fetched_to) for part in parts}
        leader.waits_long = wait_ms > config["fetch.max.wait.ms"]
        handler = functools.partial(self._answered, leader, sent)
        try:
            leader.link.send(request, handler, ceiling=ceiling, read=fetch.read)
        except LogRetriableError as error:
            self._leaders.lost(leader, error)

    def _wait_ms(self, leader):
        """How long the broker may wait for records: longer the longer the partition is idle, as each fetch costs both sides."""
        least = self._config["fetch.max.wait.ms"]
        if not self._may_wait_longer or leader.link.busy:
            return least
        return max(least, min(least << min(leader.empty_fetches, 10), LONGEST_WAIT_MS, self._config["request.timeout.ms"] // 2))

    def _answered(self, leader, sent, answer, error):
        leader.fetching = None
        if error is not None:
            self._leaders.lost(leader, error)
            return
        self._leaders.answered(leader)
        code, answers = answer
        leader.empty_fetches = 0 if code or any(one.error_code or one.records for one in answers) else leader.empty_fetches + 1
        if code:
            self._refused([part for part, _ in sent.values()], code)
        for one in answers:
            part, offset = sent.get((one.topic, one.partition), (None, None))
            if part is None or self._partitions.get(part.pair) is not part or part.fetched_to != offset:
                continue  # released or sought meanwhile
            if one.error_code and part.replica is not None:
                part.replica = None  # after any error, ask the leader next
            elif one.error_code == codes.OFFSET_OUT_OF_RANGE:
                if not part.received:
                    self._positions.out_of_range(part)
            elif one.error_code:
                self._refused([part], one.error_code)
            else:
                part.backoff = None
                if one.replica != NO_REPLICA:
                    part.replica, part.replica_until = one.replica, self._clock.monotonic() + self._config.seconds("metadata.max.age.ms")
                part.end = one.stable_offset if self._isolation else one.high_watermark
                self._subscription.is_right()
                if one.records is not None:
                    next_offset, epoch = fetch.next_offset(np.frombuffer(one.records, np.uint8), offset)
                    part.fetched_to = int(next_offset)
                    part.fetched_epoch = max(part.fetched_epoch, int(epoch))
                    part.received.append(_Received(part.fetched_to, part.fetched_epoch, one.records, one.high_watermark, one.aborted))

    def _refused(self, parts, code):
        if not (is_retriable(code) or is_stale_metadata(code) or code in (codes.UNKNOWN_TOPIC_ID, codes.INCONSISTENT_TOPIC_ID)):
            raise broker_error(code, f"Fetching {', '.join(map(str, parts))}")
        for part in parts:
            part.backoff = part.backoff or Backoff(self._config, "retry.backoff")
            part.not_before = self._clock.monotonic() + part.backoff.next()
        self._subscription.look_soon()

    def _unpack(self):
        """Return [Fetched] from the received bytes of partitions that are not paused."""
        fetched = []
        for part in self._partitions.values():
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
                    part.start(part.position, part.epoch)
                    if part.damaged_at != part.position:
                        part.damaged_at = part.position
                        log.warning("Records of %s are corrupt: %s They are fetched again.", part, error)
                    elif not fetched:
                        raise
                    break
                part.position, part.epoch = max(part.position, unpacked.next_offset), received.epoch
                for records in unpacked.records:
                    fetched.append(Fetched(part.topic, part.index, records, received.end))
                    part.inflation = max(1.0, _buffer_bytes(records) / len(received.records))
                if part.position < received.next_offset:  # the batch would take too much memory decompressed at once; the rest follows
                    part.received.appendleft(received)
                    break
        return fetched

    # ---- waiting

    @property
    def _links(self):
        return self._leaders.links + (self._group.links if self._group is not None else [])

    def _serve(self):
        if self._group is not None:
            self._group.hear()
        for link in self._links:
            link.serve()
        for each in self._underway:
            each.advance()

    @property
    def _underway(self):
        return self._leaders.underway + self._subscription.underway + (self._group.underway if self._group is not None else [])

    def _wait(self, seconds):
        wait(self._links, self._waker, seconds, self._underway)

    def _wakes_at(self):
        """When to act even if no response arrives."""
        now = self._clock.monotonic()
        times = [self._subscription.look_at, self._leaders.wakes_at, self._positions.wakes_at]
        times += [link.deadline for link in self._links] + [each.until for each in self._underway]
        times += [part.not_before for part in self._partitions.values() if part.not_before > now]
        if self._group is not None and self._subscription.chosen is not None:
            times.append(self._group.wakes_at)
        return min(times)

    def _until(self, done, deadline, what):
        """Wait for a condition other than records, without calling the listener."""
        while not done():
            self._serve()
            self._follow_topics()
            self._positions.place()
            now = self._clock.monotonic()
            if not done() and now >= deadline:
                raise timed_out(f"{what} timed out.")
            if not done():
                self._wait(min(deadline, self._wakes_at()) - now)

    def _ask_offsets(self, pairs, timestamp, timeout_s):
        deadline = self._clock.monotonic() + timeout_s
        offsets = {}
        while missing := [pair for pair in pairs if pair not in offsets]:
            for topic, index in missing:
                if index not in self._cluster.partitions(topic, timeout=max(0, deadline - self._clock.monotonic())):
                    raise LogFatalError(f"Topic {topic} has no partition {index}.")
            outcomes = []
            asked = [(self._leaders.connected(node), mine) for node, mine in self._leaders.of(missing).items()]
            asked = [(leader, mine) for leader, mine in asked if leader is not None]
            for leader, mine in asked:
                self._positions.ask(leader, dict.fromkeys(mine, timestamp), lambda found, error: outcomes.append(found))
            self._until(lambda: len(outcomes) == len(asked), deadline, "Asking for offsets")
            for (topic, index), (code, offset) in ((pair, answer) for found in outcomes for pair, answer in found.items()):
                if not code:
                    offsets[topic, index] = offset
                elif not is_retriable(code):
                    raise broker_error(code, f"Asking for the offsets of {topic}-{index}")
            if len(offsets) < len(set(pairs)):
                if self._clock.monotonic() >= deadline:
                    raise timed_out("Listing offsets timed out.")
                self._wait(self._config.seconds("retry.backoff.ms"))
                self._serve()
        return offsets

    def _assigned(self, pair):
        part = self._partitions.get(tuple(pair))
        if part is None:
            problem = f"Partition {pair[0]}-{pair[1]} is not assigned to this consumer now."
            raise LogFatalError(problem, "java.lang.IllegalStateException")
        return part


def _buffer_bytes(records):
    return len(records.values.data) if records.values is not None else 0
