"""Group: a member of a consumer group (classic protocol): join, assignment, leave. Commits are in commits.py.

It uses kafka-python's messages and assignors but not its coordinator, which needs an event-loop thread and a second transport per
consumer, blocks heartbeats while a listener flushes, and never lets a static member leave. Here nothing blocks on the group: `advance`
takes one step per poll of the task, and Heartbeats (heartbeats.py) keeps all members of the process alive from one thread.

    UNJOINED ── JoinGroup ──▶ JOINING ── SyncGroup ──▶ STABLE ── the group rebalances: `let_go` ──▶ UNJOINED

With eager strategies, all partitions are revoked before a rejoin. With the cooperative strategy, a partition is revoked only when the
group moves it to another member; the group then rebalances once more, to assign it there.
"""

import collections
import functools
import logging

from kafka.protocol.consumer import HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest, SyncGroupRequest

from standalone.errors import LogError, LogFatalError
from standalone.log import error_codes as codes
from standalone.log.assignment import Assignment
from standalone.log.broker_errors import broker_error, is_retriable
from standalone.log.group_link import ASSIGNED, LOST, REVOKED, GroupLink
from standalone.log.steps import Underway
from standalone.log.subscription import ASK_SECONDS

log = logging.getLogger(__name__)

PROTOCOL_TYPE = "consumer"
UNJOINED, JOINING, STABLE, CLOSED = "unjoined", "joining", "stable", "closed"
NO_GENERATION, NO_MEMBER = -1, ""

Membership = collections.namedtuple("Membership", "generation member_id")


class Group(GroupLink):
    """A member of the classic protocol."""

    def __init__(self, cluster, config, clock, waker, group_id, instance_id=None):
        super().__init__(cluster, config, clock, waker, group_id, instance_id)
        self._shares = Assignment(config["partition.assignment.strategy"])
        self._retry_at = 0
        self._topics = self._joined_topics = []  # sorted: a rejoining member must send the same bytes
        self._counts = None  # leader only: partition counts of all topics of the group at the last assignment
        self._expected = None
        self._is_new = False  # the consumer has not been notified of the assignment
        self.assignment = []  # sorted (topic, partition); valid while STABLE
        self._owned = set()  # partitions that the consumer reads
        self._joins_after = False  # it revoked partitions, so another rebalance must follow
        self._forgotten = False  # the group did not know it when it rejoined: its partitions are lost
        # Everything below is guarded by the lock.
        self._state = UNJOINED
        self._verdict = None  # REVOKED, LOST or an error: how a STABLE membership ended
        self._generation, self._member_id = NO_GENERATION, NO_MEMBER
        self._heartbeat_at, self._heartbeat_awaited = 0, False

    # ---- membership, step by step

    def subscribe(self, topics):
        """Set the topics of this member; a change triggers a rejoin."""
        self._topics = sorted(topics)

    def advance(self):
        """Take the next step without waiting. Return (REVOKED or LOST, pairs): release these and call `let_go`; (ASSIGNED, pairs): read these
        too and call `taken`; or None."""
        with self._lock:
            state, verdict = self._state, self._verdict
        if isinstance(verdict, LogError):
            raise verdict
        if self._forgotten:
            return LOST, sorted(self._owned)
        if state is UNJOINED and self._clock.monotonic() >= self._retry_at:
            self._join()
        if state is not STABLE:
            return None
        if verdict is None and self._topics != self._joined_topics:
            verdict = REVOKED
        if verdict is LOST:
            return LOST, sorted(self._owned)
        if verdict is REVOKED:
            return REVOKED, self._to_revoke_before_joining()
        given_up = self._owned.difference(self.assignment)
        if given_up:
            self._joins_after = True
            return REVOKED, sorted(given_up)
        added = [pair for pair in self.assignment if pair not in self._owned]
        if added or self._is_new:
            return ASSIGNED, added
        if self._joins_after:  # lets their new owners get the revoked partitions
            self._join()
        return None

    def _to_revoke_before_joining(self):
        """All partitions if eager; if cooperative, only those of topics no longer wanted."""
        if not self._shares.is_cooperative:
            return sorted(self._owned)
        return sorted(pair for pair in self._owned if pair[0] not in self._topics)

    def let_go(self, event, pairs):
        """These are released: the next `advance` may rejoin."""
        self._owned.difference_update(pairs)
        if self._forgotten:
            self._forgotten = False
            return
        with self._lock:
            if self._joins_after and self._verdict is None and self._topics == self._joined_topics:
                return
            if self._verdict is LOST:
                self._generation = NO_GENERATION
            self._verdict, self._state = None, UNJOINED
        self._is_new = False
        if not self._shares.is_cooperative:
            self.assignment = []

    def taken(self, pairs):
        """These are being read."""
        self._owned.update(pairs)
        self._is_new = False

    @property
    def watched(self):
        """Topics whose partition counts the group's leader watches."""
        return set(self._counts or ())

    def partitions_counted(self, counts):
        """Compare the current {topic: partitions} with the last assignment; the leader reassigns if they differ."""
        if self._counts is None or self._state is not STABLE:
            return
        changed = sorted(topic for topic, count in self._counts.items() if counts.get(topic, 0) != count)
        if changed:
            log.info("Group %s: partitions of %s changed; reassigning.", self.group_id, ", ".join(changed))
            self.is_rebalancing()

    @property
    def wakes_at(self):
        """When to call `advance` even if no response arrives."""
        return self._retry_at if self._state is UNJOINED else float("inf")

    def _join(self):
        self._joins_after = False
        self._joined_topics = list(self._topics)
        offers = self._shares.offers(self._joined_topics, () if self._forgotten else self._owned)
        request = JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=self._config["session.timeout.ms"],
            rebalance_timeout_ms=self._config["max.poll.interval.ms"],
            member_id=self._member_id,
            group_instance_id=self.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name=name, metadata=metadata) for name, metadata in offers],
        )
        # The broker responds when all members have joined, each of which may take its whole max.poll.interval.ms.
        self._take_step(request, self._joined, self._config.seconds("max.poll.interval.ms") + 5)

    def _forget_owned(self):
        """Mark all partitions as lost: other members may already own them."""
        self._forgotten = bool(self._owned)

    def _take_step(self, request, handler, timeout_s=None):
        with self._lock:
            self._state = JOINING
        self.send(request, handler, timeout_s)

    def _joined(self, answer, error):
        if error is not None:
            return self._put_off(error)
        code = answer.error_code
        if code:
            if code == codes.UNKNOWN_MEMBER_ID:
                self._forget_owned()
            if code in (codes.MEMBER_ID_REQUIRED, codes.UNKNOWN_MEMBER_ID):
                with self._lock:
                    self._member_id = answer.member_id if code == codes.MEMBER_ID_REQUIRED else NO_MEMBER
                return self._join()
            return self._refused(code, "Joining")
        with self._lock:
            self._generation, self._member_id = answer.generation_id, answer.member_id
        self._strategy, self._counts, self._expected = answer.protocol_name, None, None
        if answer.leader != answer.member_id:
            return self._sync([])
        members, topics = self._shares.decode_members(answer.members)
        steps = self.cluster.refreshing(topics, timeout=ASK_SECONDS, wait_for_brokers=False) if topics else _nothing()
        self._asking = Underway(steps, functools.partial(self._assign, answer, members, topics))
        self._asking.advance()

    def _assign(self, answer, members, topics, found, error):
        """As leader, compute the assignment, now that the topics' partitions are known."""
        self._asking = None
        if error is not None:
            return self._put_off(error)
        partitions = {name: set(topic.partitions) for name, topic in found.items() if not topic.error_code}
        self._counts = {topic: len(partitions.get(topic, ())) for topic in topics}
        computed = self._shares.share_out(self._strategy, members, partitions)
        if answer.skip_assignment:
            self._expected = computed.get(answer.member_id)
            return self._sync([])
        self._sync([SyncGroupRequest.SyncGroupRequestAssignment(member, data) for member, data in computed.items()])

    def _sync(self, assignments):
        request = SyncGroupRequest(
            group_id=self.group_id,
            generation_id=self._generation,
            member_id=self._member_id,
            group_instance_id=self.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=self._strategy,
            assignments=assignments,
        )
        self._take_step(request, self._synced)

    def _synced(self, answer, error):
        if error is not None:
            return self._put_off(error)
        if answer.error_code:
            return self._refused(answer.error_code, "Being assigned partitions")
        pairs = self._shares.pairs(answer.assignment)
        if self._expected is not None and pairs != self._shares.pairs(self._expected):
            # The broker returned a rejoining leader's old assignment, but its subscription or the topics have changed.
            return self._join()
        if any(topic not in self._joined_topics for topic, _ in pairs):
            # Likewise for a follower: only a new member makes the leader reassign.
            self._send_leave()
            self._forget_owned()
            return self._join()
        self._shares.remember(self._strategy, answer.assignment, self._generation)
        self.assignment, self._is_new = pairs, True
        now = self._clock.monotonic()
        with self._lock:
            self._state, self._verdict = STABLE, None
            self._heartbeat_at, self._heartbeat_awaited = now + self.heartbeat_seconds, False
        self._backoff.reset()
        self._outage.ends()
        log.info("Group %s: joined generation %d%s with %d partitions.",
                 self.group_id, self._generation, " as its leader" if self._counts is not None else "", len(pairs))

    def _refused(self, code, doing):
        """Handle a failed join or sync: retry, or fail permanently."""
        if code in (codes.UNKNOWN_MEMBER_ID, codes.ILLEGAL_GENERATION, codes.REBALANCE_IN_PROGRESS) or is_retriable(code):
            with self._lock:
                if code == codes.UNKNOWN_MEMBER_ID:
                    self._member_id = NO_MEMBER
                if code in (codes.UNKNOWN_MEMBER_ID, codes.ILLEGAL_GENERATION):
                    self._forget_owned()
                if code in (codes.COORDINATOR_NOT_AVAILABLE, codes.NOT_COORDINATOR):
                    self._coordinator = None
            return self._put_off(broker_error(code, f"{doing} in group '{self.group_id}'"), quiet=code == codes.REBALANCE_IN_PROGRESS)
        with self._lock:
            self._verdict = self._fatal(code, f"{doing} in group '{self.group_id}'")

    def _put_off(self, error, quiet=False):
        with self._lock:
            self._state = UNJOINED
            if self._link is None or self._link.closed:
                self._coordinator = None
        self._retry_at = self._clock.monotonic() + self._backoff.next()
        if not quiet:
            self._outage.begins(f"Group {self.group_id}: {error}")

    def _hints(self):
        return {
            codes.INCONSISTENT_GROUP_PROTOCOL: "Other members use a different partition.assignment.strategy, or it is not a consumer group.",
            codes.INVALID_SESSION_TIMEOUT: f"session.timeout.ms={self._config['session.timeout.ms']} is outside what the broker allows "
                                     "(its group.min.session.timeout.ms to group.max.session.timeout.ms).",
        }

    # ---- queries about the membership

    @property
    def is_between(self):
        """Whether it rejoins while it keeps its partitions: uncommitted offsets can be committed later."""
        with self._lock:
            return self._shares.is_cooperative and self._state in (UNJOINED, JOINING) and bool(self._owned)

    @property
    def membership(self):
        """Return (generation, member id) while commits are possible; None otherwise."""
        with self._lock:
            holds = self._state is STABLE and self._verdict in (None, REVOKED)
            return Membership(self._generation, self._member_id) if holds else None

    def is_rebalancing(self):
        self._judge(REVOKED)

    def is_lost(self):
        self._judge(LOST)

    def is_over(self, code, what):
        """End the membership with an error, which every `advance` raises from now on."""
        error = self._fatal(code, what)
        self._judge(error)
        return error

    def _judge(self, verdict):
        with self._lock:
            if self._state is STABLE and self._verdict in (None, REVOKED):
                self._verdict = verdict

    # ---- leaving

    def close(self, timeout_s, leave=True):
        """With `leave` the group knows at once; without, it keeps the member's place until its session ends."""
        with self._lock:
            known, waiting, refused = self._member_id != NO_MEMBER, self._state is JOINING, isinstance(self._verdict, LogFatalError)
            self._state = CLOSED
        try:
            if leave and not refused and (known or waiting and self.instance_id):
                self._leave(timeout_s, waiting)
        except LogError as error:
            log.warning("Group %s: could not leave, so its partitions are not read for %d ms: %s",
                        self.group_id, self._config["session.timeout.ms"], error)
        finally:
            for each in [*self.underway, *self.links]:
                each.close()

    def _leave(self, timeout_s, waiting):
        deadline = self._clock.monotonic() + timeout_s
        if waiting and self._link is not None:
            self._link.close()  # while a join is pending, the broker answers nothing on this connection
        outcome = []
        self._send_leave(lambda answer, error: outcome.append(error or answer))
        self.wait_for(outcome, deadline, f"Leaving group '{self.group_id}'")
        answer = outcome[0]
        if isinstance(answer, LogError):
            raise answer
        code = answer.error_code or next((member.error_code for member in answer.members), 0)
        if code not in (0, codes.UNKNOWN_MEMBER_ID):
            raise broker_error(code, f"Leaving group '{self.group_id}'")
        log.info("Group %s: left.", self.group_id)

    def _send_leave(self, handler=lambda answer, error: None):
        self.send(self._leave_request(), handler)
        with self._lock:
            self._member_id, self._generation = NO_MEMBER, NO_GENERATION

    def _leave_request(self):
        member = LeaveGroupRequest.MemberIdentity(member_id=self._member_id, group_instance_id=self.instance_id)
        return LeaveGroupRequest(group_id=self.group_id, member_id=self._member_id, members=[member])

    # ---- for Heartbeats, on its thread

    def keep_place(self):
        """Continue joining: heartbeats need the generation from the response, and other members may wait for this member's next step."""
        if not self.acting.acquire(blocking=False):
            return
        self._is_kept = True
        try:
            if self._state is JOINING:
                self.serve()
            if self._state is UNJOINED and self._may_join_unseen():
                self._join()
        finally:
            self._is_kept = False
            self.acting.release()

    def _may_join_unseen(self):
        now = self._clock.monotonic()
        with self._lock:
            is_known, is_away = self._member_id != NO_MEMBER, self._is_away(now)
        return is_known and not is_away and not self._forgotten and now >= self._retry_at

    @property
    def heartbeat_seconds(self):
        """Seconds between two heartbeats."""
        return self._config.seconds("heartbeat.interval.ms")

    def heartbeat_due(self):
        """When to send the next heartbeat; infinity without a membership, or while one is in flight."""
        with self._lock:
            keeping = self._state is STABLE and self._verdict in (None, REVOKED) and not self._heartbeat_awaited
            return self._heartbeat_at if keeping else float("inf")

    def heartbeat(self, node):
        """Return (request, handler): a heartbeat, or a leave request if max.poll.interval.ms is exceeded."""
        now = self._clock.monotonic()
        with self._lock:
            if self._is_away(now):
                request = self._leave_request()
                self._verdict, self._member_id = LOST, NO_MEMBER
                log.warning(self._AWAY, self.group_id, self._config["max.poll.interval.ms"])
                return request, lambda answer, error: None
            request = HeartbeatRequest(
                group_id=self.group_id,
                generation_id=self._generation,
                member_id=self._member_id,
                group_instance_id=self.instance_id,
            )
            self._heartbeat_awaited = True
            self._heartbeat_at = now + self.heartbeat_seconds
            return request, functools.partial(self._heard, node, (self._generation, self._member_id))

    def heartbeat_failed(self, node, error):
        """Handle a heartbeat that failed: retry soon, perhaps with another coordinator."""
        with self._lock:
            self._heartbeat_awaited = False
            self._heartbeat_at = self._clock.monotonic() + self._config.seconds("retry.backoff.max.ms")
            if self._coordinator == node:
                self._coordinator = None
        self._outage.begins(f"Group {self.group_id}: {error}")

    def _heard(self, node, membership, answer, error):
        if error is not None:
            return self.heartbeat_failed(node, error)
        with self._lock:
            self._heartbeat_awaited = False
            if self._state is not STABLE or membership != (self._generation, self._member_id):
                return  # from a previous membership
        code = answer.error_code
        if not code:
            return self._outage.ends()
        if code == codes.REBALANCE_IN_PROGRESS:
            self.is_rebalancing()
        elif code in (codes.UNKNOWN_MEMBER_ID, codes.ILLEGAL_GENERATION):
            log.warning("Group %s: the group has continued without this member; joining again.", self.group_id)
            self.is_lost()
        elif is_retriable(code):
            return self.heartbeat_failed(node if code in (codes.COORDINATOR_NOT_AVAILABLE, codes.NOT_COORDINATOR) else None,
                                         broker_error(code, f"A heartbeat to group '{self.group_id}'"))
        else:
            self.is_over(code, f"A heartbeat to group '{self.group_id}'")
        self._waker.wake()


def _nothing():
    """Steps for no topics."""
    yield from ()
    return {}
