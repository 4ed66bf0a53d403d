"""Group: one member of one consumer group: how it joins, what it is assigned, how it leaves. Its commits are in commits.py.

It speaks kafka-python's messages and uses its assignors, but not its coordinator: that needs an event-loop thread and a second
transport for each consumer, blocks heartbeats while a listener flushes and never lets a static member leave. Here nothing waits for
the group: `advance` goes one step further whenever the task polls, and Heartbeats (heartbeats.py) keeps all members of the process
alive from one thread.

    UNJOINED ── JoinGroup ──▶ JOINING ── SyncGroup ──▶ STABLE ── the group rebalances: `rejoin` ──▶ UNJOINED

Partitions change hands eagerly, whatever the strategy: all are let go before the group is joined anew.
"""

import collections
import functools
import logging
import threading

from kafka.protocol.consumer import HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest, SyncGroupRequest

from standalone.errors import LogError, LogFatalError, LogRetriableError
from standalone.log import error_codes as codes
from standalone.log.assignment import Assignment
from standalone.log.broker_errors import broker_error, is_retriable, java_class, timed_out
from standalone.log.commits import Commits
from standalone.log.link import Link, wait
from standalone.log.retry import Backoff, Outage
from standalone.log.steps import Underway
from standalone.log.subscription import ASK_SECONDS

log = logging.getLogger(__name__)

PROTOCOL_TYPE = "consumer"
UNJOINED, JOINING, STABLE, CLOSED = "unjoined", "joining", "stable", "closed"
REVOKED, LOST, ASSIGNED = "revoked", "lost", "assigned"  # what `advance` asks the consumer to act upon
NO_GENERATION, NO_MEMBER = -1, ""

Membership = collections.namedtuple("Membership", "generation member_id")


class Group:
    """Used by the task's thread, but for the methods under "for Heartbeats"; what those learn ends the task's wait by `waker`."""

    def __init__(self, cluster, config, clock, waker, group_id, instance_id=None):
        self.cluster, self.group_id, self.instance_id = cluster, group_id, instance_id
        self.client_id = cluster.client_id
        self._config, self._clock, self._waker = config, clock, waker
        self.commits = Commits(self, cluster, config, clock, waker)
        self._shares = Assignment(config["partition.assignment.strategy"])
        self._backoff = Backoff(config, "retry.backoff")
        self._retry_at = 0
        self._link = None
        self._opening = self._asking = None  # Underway: to the coordinator; for the partitions of topics, by the leader
        self._unsent = []  # (request, handler, timeout, ceiling) while there is no link
        self._topics = self._joined_topics = []  # sorted: a member that returns must say the same in the same bytes
        self._counts = None  # the leader's: partitions of every topic of the group when it assigned them
        self._expected = None
        self._fresh = False
        self.assignment = []  # (topic, partition) in order; meant while STABLE
        self._outage = Outage(f"Group {group_id}: its coordinator answers again.")
        self._lock = threading.Lock()  # over all below, which the heartbeat thread shares
        self._state = UNJOINED
        self._verdict = None  # REVOKED, LOST or an error: what has become of a STABLE membership
        self._generation, self._member_id = NO_GENERATION, NO_MEMBER
        self._coordinator = None
        self._heartbeat_at, self._heartbeat_awaited = 0, False
        self._polling, self._last_poll = False, clock.monotonic()

    # ---- membership, step by step

    def subscribe(self, topics):
        """The topics that this member wants; a change makes it join anew."""
        self._topics = sorted(topics)

    def advance(self):
        """Go on without waiting. REVOKED or LOST: let the partitions go and call `rejoin`; ASSIGNED: `assignment` is new; or None."""
        with self._lock:
            state, verdict = self._state, self._verdict
        if isinstance(verdict, LogError):
            raise verdict
        if state is UNJOINED and self._clock.monotonic() >= self._retry_at:
            self._join()
        if state is STABLE:
            if verdict is None and self._topics != self._joined_topics:
                verdict = REVOKED
            if verdict is None and self._fresh:
                self._fresh = False
                return ASSIGNED
            return verdict
        return None

    def rejoin(self):
        """The partitions are let go: join as soon as `advance` is called."""
        with self._lock:
            if self._verdict is LOST:
                self._generation = NO_GENERATION
            self._verdict, self._state = None, UNJOINED
        self.assignment, self._fresh = [], False

    @property
    def watched(self):
        """Topics whose partitions the leader of the group keeps an eye on."""
        return set(self._counts or ())

    def partitions_counted(self, counts):
        """{topic: partitions} as they are now: the leader assigns anew when they are not what it knew."""
        if self._counts is None or self._state is not STABLE:
            return
        changed = sorted(topic for topic, count in self._counts.items() if counts.get(topic, 0) != count)
        if changed:
            log.info("Group %s: partitions of %s changed; assigning anew.", self.group_id, ", ".join(changed))
            self.is_rebalancing()

    @property
    def wakes_at(self):
        """When `advance` is worth another call though nothing was heard."""
        return self._retry_at if self._state is UNJOINED else float("inf")

    @property
    def links(self):
        return [self._link] if self._link is not None else []

    def polling(self, now_polling):
        """Whether the task is inside `poll`: max.poll.interval.ms counts while it is not."""
        with self._lock:
            self._polling, self._last_poll = now_polling, self._clock.monotonic()

    def _join(self):
        self._joined_topics = list(self._topics)
        offers = self._shares.offers(self._joined_topics)
        request = JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=self._config["session.timeout.ms"],
            rebalance_timeout_ms=self._config["max.poll.interval.ms"],
            member_id=self._member_id,
            group_instance_id=self.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name=name, metadata=metadata) for name, metadata in offers],
        )
        # The broker answers when all members have come, each of which may take its whole poll interval.
        self._take_step(request, self._joined, self._config.seconds("max.poll.interval.ms") + 5)

    def _take_step(self, request, handler, timeout_s=None):
        with self._lock:
            self._state = JOINING
        self.send(request, handler, timeout_s)

    def _joined(self, answer, error):
        if error is not None:
            return self._put_off(error)
        code = answer.error_code
        if code:
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
        """This member leads the group, and knows the topics' partitions now."""
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
            # The broker gave a returning leader what it had before: its subscription, or the topics, have changed since.
            return self._join()
        if any(topic not in self._joined_topics for topic, _ in pairs):
            # As above, for a member that does not lead: only one that is new makes the leader assign anew.
            self._send_leave()
            return self._join()
        self._shares.remember(self._strategy, answer.assignment, self._generation)
        self.assignment, self._fresh = pairs, True
        now = self._clock.monotonic()
        with self._lock:
            self._state, self._verdict = STABLE, None
            self._heartbeat_at, self._heartbeat_awaited = now + self.heartbeat_seconds, False
        self._backoff.reset()
        self._outage.ends()
        log.info("Group %s: joined generation %d%s with %d partitions.",
                 self.group_id, self._generation, " as its leader" if self._counts is not None else "", len(pairs))

    def _refused(self, code, doing):
        """A join or sync that did not succeed: come again, or say why it never will."""
        if code in (codes.UNKNOWN_MEMBER_ID, codes.ILLEGAL_GENERATION, codes.REBALANCE_IN_PROGRESS) or is_retriable(code):
            with self._lock:
                if code == codes.UNKNOWN_MEMBER_ID:
                    self._member_id = NO_MEMBER
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

    def _fatal(self, code, what):
        if code == codes.FENCED_INSTANCE_ID:
            return LogFatalError(
                f"{what}: another member has taken group.instance.id '{self.instance_id}'. Another worker runs the same connector "
                "with the same state: stop one of the two, or give each its own state.dir.",
                java_class("FencedInstanceIdException"),
            )
        hints = {
            codes.INCONSISTENT_GROUP_PROTOCOL: "Its other members use another partition.assignment.strategy, or it is no group of consumers.",
            codes.INVALID_SESSION_TIMEOUT: f"session.timeout.ms={self._config['session.timeout.ms']} is outside what the broker allows "
                                     "(its group.min.session.timeout.ms to group.max.session.timeout.ms).",
        }
        error = broker_error(code, what)
        return LogFatalError(" ".join(filter(None, [str(error), hints.get(code)])), error.java_class)

    # ---- what others learn of the membership

    @property
    def membership(self):
        """Generation and member id, while commits can be made with them; None otherwise."""
        with self._lock:
            holds = self._state is STABLE and self._verdict in (None, REVOKED)
            return Membership(self._generation, self._member_id) if holds else None

    def is_rebalancing(self):
        self._judge(REVOKED)

    def is_lost(self):
        self._judge(LOST)

    def is_over(self, code, what):
        """The broker will not have this member any more; the error that every `advance` raises from now on."""
        error = self._fatal(code, what)
        self._judge(error)
        return error

    def answered(self):
        self._outage.ends()

    def _judge(self, verdict):
        with self._lock:
            if self._state is STABLE and self._verdict in (None, REVOKED):
                self._verdict = verdict

    # ---- the coordinator

    def send(self, request, handler, timeout_s=None, ceiling=None):
        """To the coordinator, wherever it is by now: at once, or as soon as it is found and connected to; `handler(None, error)` if it is not."""
        self._unsent.append((request, handler, timeout_s, ceiling))
        if self._opening is not None:
            return
        if self._link is not None and self._link.usable and self._link.node == self._coordinator:
            self._send_unsent()
        else:
            self._opening = Underway(self._reaching_coordinator(), self._reached)
            self._opening.advance()

    def _reaching_coordinator(self):
        node = self._coordinator or (yield from self.finding_coordinator())
        if self._link is not None and self._link.usable and self._link.node == node:
            return self._link
        connection = yield from self.cluster.connecting(node)
        return Link(connection, node, self._clock, self._config.seconds("request.timeout.ms"))

    def _reached(self, link, error):
        self._opening = None
        if error is None:
            former, self._link = self._link, link
            if former is not None and former is not link:
                former.close(LogRetriableError(f"The connection to the coordinator of group '{self.group_id}' is made anew."))
            return self._send_unsent()
        self.forget_coordinator()
        unsent, self._unsent = self._unsent, []
        for _, handler, _, _ in unsent:
            handler(None, error)

    def _send_unsent(self):
        unsent, self._unsent = self._unsent, []
        for request, handler, timeout_s, ceiling in unsent:
            try:
                self._link.send(request, handler, timeout_s, ceiling)
            except LogRetriableError as error:
                handler(None, error)

    @property
    def underway(self):
        """What is asked or connected to without waiting, as steps (steps.py) of the task's thread."""
        return [each for each in (self._opening, self._asking) if each is not None]

    def forget_coordinator(self):
        """It says that it is not, or not able."""
        with self._lock:
            self._coordinator = None

    def wait_for(self, outcome, deadline, what):
        """Until the answer to a request on this link has filled `outcome`."""
        while not outcome:
            left = deadline - self._clock.monotonic()
            if left <= 0:
                raise timed_out(f"{what}: no answer in time.")
            wait(self.links, self._waker, min([left, *(each.until - self._clock.monotonic() for each in self.underway)]), self.underway)
            self.serve()

    def serve(self):
        """Hear what is there, and go on with what can go on."""
        for link in self.links:
            link.serve()
        for each in self.underway:
            each.advance()

    # ---- the end

    def close(self, timeout_s, leave=True):
        """With `leave` the group knows at once; without, it keeps the member's place until its session ends."""
        with self._lock:
            known, waiting, refused = self._member_id != NO_MEMBER, self._state is JOINING, isinstance(self._verdict, LogFatalError)
            self._state = CLOSED
        try:
            if leave and not refused and (known or waiting and self.instance_id):
                self._leave(timeout_s, waiting)
        except LogError as error:
            log.warning("Group %s: could not leave, so that its partitions rest for %d ms: %s",
                        self.group_id, self._config["session.timeout.ms"], error)
        finally:
            for each in [*self.underway, *self.links]:
                each.close()

    def _leave(self, timeout_s, waiting):
        deadline = self._clock.monotonic() + timeout_s
        if waiting and self._link is not None:
            self._link.close()  # the broker answers nothing on it before the join
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

    @property
    def heartbeat_seconds(self):
        """Between two."""
        return self._config.seconds("heartbeat.interval.ms")

    def heartbeat_due(self):
        """When the next heartbeat is to be sent; infinity while there is no membership to keep, or one is under way."""
        with self._lock:
            keeping = self._state is STABLE and self._verdict in (None, REVOKED) and not self._heartbeat_awaited
            return self._heartbeat_at if keeping else float("inf")

    @property
    def coordinator(self):
        """The Node to send it to, or None while that is not known."""
        return self._coordinator

    def finding_coordinator(self):
        """The steps (steps.py) to that it is known."""
        node = yield from self.cluster.finding_coordinator(self.group_id, ASK_SECONDS)
        with self._lock:
            self._coordinator = node
        return node

    def heartbeat(self, node):
        """(request, handler): a heartbeat, or the farewell of a member whose task has been away for too long."""
        now = self._clock.monotonic()
        limit = self._config["max.poll.interval.ms"]
        with self._lock:
            if not self._polling and now - self._last_poll > limit / 1000:
                request = self._leave_request()
                self._verdict, self._member_id = LOST, NO_MEMBER
                log.warning("Group %s: the task has not asked for records for %d ms (max.poll.interval.ms): it leaves the group, and "
                            "what it has not committed will come again.", self.group_id, limit)
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
        """It could not be sent, or was not answered: soon again, and the coordinator may be another by then."""
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
                return  # about a membership that is no more
        code = answer.error_code
        if not code:
            return self._outage.ends()
        if code == codes.REBALANCE_IN_PROGRESS:
            self.is_rebalancing()
        elif code in (codes.UNKNOWN_MEMBER_ID, codes.ILLEGAL_GENERATION):
            log.warning("Group %s: the group has gone on without this member; joining again.", self.group_id)
            self.is_lost()
        elif is_retriable(code):
            return self.heartbeat_failed(node if code in (codes.COORDINATOR_NOT_AVAILABLE, codes.NOT_COORDINATOR) else None,
                                         broker_error(code, f"A heartbeat to group '{self.group_id}'"))
        else:
            self.is_over(code, f"A heartbeat to group '{self.group_id}'")
        self._waker.wake()


def _nothing():
    """Steps to what is known of no topics."""
    yield from ()
    return {}
