"""A member of a consumer group by the consumer protocol (KIP-848): the broker assigns partitions through heartbeats.

A heartbeat carries the member's subscription and owned partitions; the response carries its assignment and the epoch for its commits. The
member first revokes what it must give up and reports that; new partitions follow once their previous owner has revoked them. Members do
not wait for each other, and keep reading the partitions that stay theirs.

One heartbeat is in flight at a time: the task's thread sends it when something has changed, Heartbeats otherwise. If the task is busy for
long and reads no response, Heartbeats sends the next heartbeat in its place, as a full request.
"""

import collections
import functools
import logging
import uuid

from standalone.errors import LogError, LogFatalError
from standalone.log import error_codes as codes
from standalone.log.broker.messages import ConsumerGroupHeartbeatRequest
from standalone.log.broker_errors import broker_error, is_retriable
from standalone.log.group import Membership
from standalone.log.group_link import ASSIGNED, LOST, REVOKED, GroupLink
from standalone.log.steps import Underway
from standalone.log.subscription import ASK_SECONDS

log = logging.getLogger(__name__)

JOIN, LEAVE, LEAVE_FOR_A_WHILE = 0, -1, -2  # special epochs that are sent
TASK, HEARTBEATS = "task", "heartbeats"
FIRST_INTERVAL_SECONDS = 3.0  # until the broker sends its heartbeat interval
_COMES_AGAIN = (codes.UNKNOWN_MEMBER_ID, codes.FENCED_MEMBER_EPOCH)


class ConsumerProtocolGroup(GroupLink):
    watched = frozenset()  # the broker watches topics

    def __init__(self, cluster, config, clock, waker, group_id, instance_id=None):
        super().__init__(cluster, config, clock, waker, group_id, instance_id)
        self._topics = None
        self._owned = set()  # partitions that the consumer reads
        self._assignor = config["group.remote.assignor"]
        self._member_id = str(uuid.uuid4())
        # Everything below is guarded by the lock.
        self._epoch = JOIN
        self._given = None  # {topic id: partitions}, the broker's last assignment
        self._names = {}  # topic id -> name
        self._told = None  # last reported (topics, owned partitions); None: the next heartbeat is a full one
        self._verdict = None  # LOST, or an error that every `advance` raises
        self._awaited = None  # TASK or HEARTBEATS, whose heartbeat is in flight
        self._sent = 0  # number of heartbeats; responses to all but the last are ignored
        self._leaves = False  # max.poll.interval.ms is exceeded, and the group must be told
        self._left = False
        self._retry_at = self._heartbeat_at = 0
        self._interval = FIRST_INTERVAL_SECONDS

    # ---- membership, step by step

    def subscribe(self, topics):
        self._topics = tuple(sorted(topics))

    def partitions_counted(self, counts):
        pass

    def advance(self):
        """Take the next step without waiting. Return (REVOKED or LOST, pairs): release these and call `let_go`; (ASSIGNED, pairs): read these
        too and call `taken`; or None."""
        with self._lock:
            verdict, given = self._verdict, self._given
        if isinstance(verdict, LogError):
            raise verdict
        if verdict is LOST:
            return LOST, sorted(self._owned)
        if given is not None:
            target = self._resolved(given)
            if surplus := self._owned - target:
                return REVOKED, sorted(surplus)
            if added := target - self._owned:
                return ASSIGNED, sorted(added)
        self._tell()
        return None

    def let_go(self, event, pairs):
        with self._lock:
            self._owned.difference_update(pairs)
            if event is LOST:
                self._verdict, self._epoch, self._given, self._told, self._leaves = None, JOIN, None, None, False

    def taken(self, pairs):
        with self._lock:
            self._owned.update(pairs)

    @property
    def assignment(self):
        return sorted(self._owned)

    @property
    def wakes_at(self):
        with self._lock:
            return self._retry_at if self._has_changes() and not self._awaited else float("inf")

    def _resolved(self, given):
        """Return the assigned {pair}s whose topic names are known; request metadata for the others."""
        unknown = [topic_id for topic_id in given if topic_id not in self._names]
        if unknown:
            self._names.update({topic.id: topic.name for topic in map(self.cluster.known_topic, self._topics or ()) if topic is not None})
        if any(topic_id not in self._names for topic_id in unknown) and self._asking is None and self._clock.monotonic() >= self._retry_at:
            steps = self.cluster.refreshing(list(self._topics), timeout=ASK_SECONDS, wait_for_brokers=False)
            self._asking = Underway(steps, self._heard_of_topics)
            self._asking.advance()
        return {(self._names[topic_id], index) for topic_id, indexes in given.items() if topic_id in self._names for index in indexes}

    def _heard_of_topics(self, found, error):
        self._asking = None
        self._retry_at = self._clock.monotonic() + self._backoff.next()
        for topic in (found or {}).values():
            if not topic.error_code:
                self._names[topic.id] = topic.name

    def _has_changes(self):
        """Whether a heartbeat must be sent before its interval ends; holds the lock."""
        if self._left or self._topics is None or isinstance(self._verdict, LogError):
            return False
        return self._epoch == JOIN or self._told != (self._topics, frozenset(self._owned))

    def _tell(self):
        now = self._clock.monotonic()
        with self._lock:
            if self._awaited or now < self._retry_at or not self._has_changes():
                return
            request, handler = self._next(now, TASK)
        self.send(request, handler)

    def _next(self, now, sender):
        """Return (request, handler) of the next heartbeat; holds the lock."""
        if self._awaited:
            self._told = None  # its response, perhaps with an assignment, may never be read
        told = self._topics, frozenset(self._owned)
        # The broker answers a full heartbeat with the assignment, others only when the assignment has changed.
        whole, news = self._epoch == JOIN or self._told is None, told != self._told
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=self._member_id,
            member_epoch=self._epoch,
            instance_id=self.instance_id,
            rack_id=(self._config["client.rack"] or None) if whole else None,
            rebalance_timeout_ms=self._config["max.poll.interval.ms"] if whole else -1,
            subscribed_topic_names=list(self._topics) if news else None,
            server_assignor=self._assignor if whole else None,
            topic_partitions=self._by_topic() if news else None,
        )
        return request, functools.partial(self._heard, self._under_way(sender, now), self._epoch, told)

    def _under_way(self, sender, now):
        """Return the number of the heartbeat being sent; holds the lock."""
        self._awaited, self._heartbeat_at = sender, now + self._interval
        self._sent += 1
        return self._sent

    def _by_topic(self):
        known = list(self._names.items())  # copied at once: the other thread may add to it
        ids, topics = {name: topic_id for topic_id, name in known}, collections.defaultdict(list)
        for name, index in sorted(self._owned):
            topics[ids[name]].append(index)
        Topic = ConsumerGroupHeartbeatRequest.TopicPartitions
        return [Topic(topic_id=topic_id, partitions=indexes) for topic_id, indexes in topics.items()]

    def _heard(self, number, epoch, told, answer, error):
        """Handle a response, on the thread that sent the heartbeat."""
        now = self._clock.monotonic()
        with self._lock:
            if number != self._sent:
                return  # another has been sent in its place
            self._awaited = None
            if self._left or epoch != self._epoch:
                return self._waker.wake()  # from a previous membership
            code = error is None and answer.error_code
            if error is None and not code:
                self._accepted(answer, told, now)
            elif code in _COMES_AGAIN and epoch != JOIN:
                log.warning("Group %s: the group has continued without this member; joining again.", self.group_id)
                self._verdict = LOST
            elif error is not None or is_retriable(code) or code in (codes.UNRELEASED_INSTANCE_ID, *_COMES_AGAIN):
                self._put_off(code, error, now)
            else:
                self._verdict = self._fatal(code, f"A heartbeat to group '{self.group_id}'", answer.error_message)
        self._waker.wake()

    def _accepted(self, answer, told, now):
        joined = self._epoch == JOIN
        self._epoch, self._told = answer.member_epoch, told
        if answer.heartbeat_interval_ms > 0:
            self._interval = answer.heartbeat_interval_ms / 1000
        self._heartbeat_at = now + self._interval
        if answer.assignment is not None:
            self._given = {topic.topic_id: list(topic.partitions) for topic in answer.assignment.topic_partitions}
        if joined:
            log.info("Group %s: joined by the consumer protocol, in epoch %d.", self.group_id, self._epoch)
        self._retry_at = 0
        self._backoff.reset()
        self._outage.ends()

    def _put_off(self, code, error, now):
        if isinstance(error, LogFatalError):
            self._verdict = error
            return
        if error is not None or code in (codes.COORDINATOR_NOT_AVAILABLE, codes.NOT_COORDINATOR):
            self._coordinator = None
        self._retry_at = self._heartbeat_at = now + self._backoff.next()
        self._told = None
        self._outage.begins(f"Group {self.group_id}: {error or broker_error(code, 'A heartbeat')}")

    def _hints(self):
        return {
            codes.UNSUPPORTED_ASSIGNOR: "group.remote.assignor names an assignor that the broker lacks. Remove it to use the broker's default.",
            codes.UNSUPPORTED_VERSION: "The brokers do not support group.protocol=consumer, or have it disabled: set group.protocol=classic.",
            codes.GROUP_ID_NOT_FOUND: "The group has members of the classic protocol, and the broker does not allow both: stop them first, or "
                                      "set group.protocol=classic.",
        }

    # ---- queries about the membership

    is_between = False  # commits continue during a rebalance

    @property
    def membership(self):
        with self._lock:
            holds = self._epoch > 0 and self._verdict is None and not self._left
            return Membership(self._epoch, self._member_id) if holds else None

    def is_rebalancing(self):
        pass

    def is_lost(self):
        with self._lock:
            if self._epoch > 0 and self._verdict is None:
                self._verdict = LOST

    def is_over(self, code, what):
        """End the membership with an error, which every `advance` raises from now on."""
        with self._lock:
            self._verdict = self._fatal(code, what)
            return self._verdict

    # ---- leaving

    def close(self, timeout_s, leave=True):
        """With `leave` the group knows at once; without, members, static ones included, keep their place until the session ends."""
        with self._lock:
            known = self._epoch > 0 or self._awaited is not None  # the group knows this member, or will once it reads the heartbeat in flight
            known, self._left = known and not isinstance(self._verdict, LogFatalError), True
        try:
            if known and (leave or self.instance_id):
                outcome = []
                self.send(self._farewell(LEAVE if leave else LEAVE_FOR_A_WHILE), lambda answer, error: outcome.append(error or answer))
                self.wait_for(outcome, self._clock.monotonic() + timeout_s, f"Leaving group '{self.group_id}'")
                if isinstance(outcome[0], LogError):
                    raise outcome[0]
                log.info("Group %s: left.", self.group_id)
        except LogError as error:
            log.warning("Group %s: could not leave, so its partitions are not read until its session ends: %s", self.group_id, error)
        finally:
            for each in [*self.underway, *self.links]:
                each.close()

    def _farewell(self, epoch):
        return ConsumerGroupHeartbeatRequest(
            group_id=self.group_id, member_id=self._member_id, member_epoch=epoch, instance_id=self.instance_id
        )

    # ---- for Heartbeats, on its thread

    @property
    def heartbeat_seconds(self):
        return self._interval

    def heartbeat_due(self):
        """When to send the next heartbeat; infinity without a membership, or while one is in flight."""
        with self._lock:
            return self._heartbeat_at if self._keeps else float("inf")

    @property
    def _keeps(self):
        """Whether the group needs heartbeats; holds the lock. A heartbeat from the task does not count: the task may be busy and read no response."""
        if self._left or self._awaited is HEARTBEATS or isinstance(self._verdict, LogError):
            return False
        return self._leaves or self._verdict is None and (self._epoch > 0 or self._awaited is TASK)

    def heartbeat(self, node):
        """Return (request, handler): a heartbeat, or a leave request if max.poll.interval.ms is exceeded. None: one was already sent."""
        now = self._clock.monotonic()
        with self._lock:
            if not self._keeps:
                return None
            if not self._leaves and self._is_away(now):
                self._verdict, self._leaves = LOST, True
                log.warning(self._AWAY, self.group_id, self._config["max.poll.interval.ms"])
            if self._leaves:
                request = self._farewell(LEAVE_FOR_A_WHILE if self.instance_id else LEAVE)
                return request, functools.partial(self._has_left, self._under_way(HEARTBEATS, now))
            return self._next(now, HEARTBEATS)

    def _has_left(self, number, answer, error):
        """Note that the group knows, or retry: otherwise its partitions would be unread until the session ends."""
        with self._lock:
            if number != self._sent:
                return
            self._awaited = None
            if error is not None:
                self._put_off(0, error, self._clock.monotonic())
            elif is_retriable(answer.error_code):
                self._put_off(answer.error_code, None, self._clock.monotonic())
            else:
                self._leaves = False
        self._waker.wake()

    def heartbeat_failed(self, node, error):
        """Handle a heartbeat that could not be sent: retry soon, perhaps with another coordinator."""
        with self._lock:
            if self._awaited is HEARTBEATS:
                self._awaited = None
            self._put_off(0, error, self._clock.monotonic())
        self._waker.wake()
