"""Consumer groups: members, their assignments, and committed offsets.

Kafka's classic protocol. A group is EMPTY, then PREPARING (waiting for members to join), COMPLETING (all joined; the leader computes the
assignment) and STABLE. Members live in memory and rejoin after a restart; committed offsets are in the store. A join or sync waits for
other members, so both are answered by a callback: `reply(Joined | Synced)`.

A static member (with an instance id) that rejoins without a member id replaces its former self at once. If its subscription is unchanged
and the group is stable, there is no rebalance; the former self, if still running, is fenced.
"""

import functools
import uuid

from standalone.log.broker.consumer_group import ConsumerMembers
from standalone.log.broker.in_order import InOrder
from standalone.log.broker.member import Committed, Joined, Member, Synced
from standalone.log.broker.refusal import NONE, Refusal, codes
from standalone.log.broker.share_group import ShareGroup
from standalone.log.broker.subscription import same_subscription, subscribed_topics

EMPTY, PREPARING, COMPLETING, STABLE, DEAD = "Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead"
MIN_SESSION_MS, MAX_SESSION_MS = 100, 30 * 60 * 1000
MAX_METADATA = 4096


class Group:
    """One group. Times are the clock's monotonic seconds."""

    def __init__(self, group_id, store, clock, timers):
        self.id = group_id
        self.state = EMPTY
        self.protocol_type = None
        self.protocol = None
        self.generation = 0
        self.leader = None
        self.members = {}
        self.offsets = {}  # (topic, partition) -> Committed
        self.commits = InOrder()  # commits in progress: each waits until the records before it are durable
        self._static = {}  # instance id -> member id
        self._promised = {}  # member ids that were issued and have not joined yet -> deadline
        self._store = store
        self._clock = clock
        self._timers = timers
        self._rebalance_timer = None
        self.consumers = None  # ConsumerMembers, of a group by the consumer protocol
        self.share = None  # ShareGroup, of a share group

    @property
    def holds_nothing(self):
        if self.share is not None:
            return self.share.is_unused
        return self.is_empty and not self._promised and not self.offsets and not self.commits.is_waiting

    @property
    def is_empty(self):
        if self.share is not None:
            return not self.share.members.members
        return self.state == EMPTY and not self.members and not self.has_consumers

    @property
    def has_consumers(self):
        """Whether it has members of the consumer protocol (KIP-848)."""
        return self.consumers is not None and bool(self.consumers.members)

    # --- Joining

    def join(self, member_id, instance_id, client, session_ms, rebalance_ms, protocol_type, protocols, must_know_its_id, reply):
        """`client` is (client id, host); with `must_know_its_id`, a new member first receives its id and joins again with it."""
        error = self._why_not_join(session_ms, protocol_type, protocols)
        if self.has_consumers or self.share is not None:
            error = codes.InconsistentGroupProtocolError
        else:
            self.consumers = None
        if error:
            return reply(Joined(error.errno, member_id))
        try:
            member = self._joining(member_id, instance_id, client, must_know_its_id, session_ms)
        except _MemberIdRequired as required:
            return reply(Joined(codes.MemberIdRequiredError.errno, required.member_id))
        except Refusal as refusal:
            return reply(Joined(refusal.code, member_id))
        replaced = bool(instance_id) and not member_id and bool(member.protocols)
        before = member.protocols
        member.session_ms = session_ms
        member.rebalance_ms = rebalance_ms if rebalance_ms > 0 else session_ms
        member.protocols = tuple(protocols)
        member.client_id, member.host = client
        if not self.members:
            self.protocol_type = protocol_type
        newcomer = member.id not in self.members
        self.members[member.id] = member
        self._alive(member)
        if newcomer:
            self._timers.after(session_ms / 1000, lambda: self._check_session(member))
        member.answer_join(Joined(codes.UnknownMemberIdError.errno, member.id))  # repeated join: the first one's client no longer waits
        if self._needs_no_rebalance(member, before, newcomer, replaced):
            return reply(self._joined(member, skip_assignment=replaced and member.id == self.leader))
        member.on_joined = reply
        if self.state == PREPARING:
            self._complete_if_all_joined()
        else:
            self._prepare()

    def _why_not_join(self, session_ms, protocol_type, protocols):
        if not MIN_SESSION_MS <= session_ms <= MAX_SESSION_MS:
            return codes.InvalidSessionTimeoutError
        if not protocol_type or not protocols:
            return codes.InconsistentGroupProtocolError
        if self.members:
            shared = self._shared_protocols()
            if protocol_type != self.protocol_type or not shared & {name for name, _ in protocols}:
                return codes.InconsistentGroupProtocolError
        return None

    def _joining(self, member_id, instance_id, client, must_know_its_id, session_ms):
        """Return the member that joins, old or new. Raise Refusal if it may not."""
        if member_id:
            if instance_id:
                self._check_instance(member_id, instance_id)
            if member_id in self.members:
                return self.members[member_id]
            if self._promised.pop(member_id, None) is None:
                raise Refusal(codes.UnknownMemberIdError)
            return Member(member_id, None, *client)
        new_id = f"{instance_id or client[0] or 'member'}-{uuid.uuid4()}"
        if instance_id:
            old_id = self._static.get(instance_id)
            self._static[instance_id] = new_id
            if old_id in self.members:
                return self._replace(old_id, new_id)
            return Member(new_id, instance_id, *client)
        if must_know_its_id:
            self._promised[new_id] = self._clock.monotonic() + session_ms / 1000
            self._timers.after(session_ms / 1000, self._forget_promises)
            raise _MemberIdRequired(new_id)
        return Member(new_id, None, *client)

    def _replace(self, old_id, new_id):
        """Give a returning static member's place to its new id; the old id is fenced."""
        member = self.members.pop(old_id)
        member.answer_join(Joined(codes.FencedInstanceIdError.errno, old_id))
        member.answer_sync(Synced(codes.FencedInstanceIdError.errno))
        member.id = new_id
        self.members[new_id] = member
        if self.leader == old_id:
            self.leader = new_id
        return member

    def _needs_no_rebalance(self, member, before, newcomer, replaced):
        if newcomer or self.state in (EMPTY, PREPARING):
            return False
        unchanged = member.protocols == before
        if self.state == COMPLETING:
            return unchanged and not replaced  # it may have missed the response
        if replaced:
            same = self._choose_protocol() == self.protocol and same_subscription(self.protocol_type, before, member.protocols)
            return same
        return unchanged and member.id != self.leader  # a leader that rejoins requests a rebalance

    def _joined(self, member, skip_assignment=False):
        members = ()
        if member.id == self.leader:
            members = tuple((m.id, m.instance_id, m.metadata(self.protocol)) for m in self.members.values())
        return Joined(NONE, member.id, self.generation, self.protocol_type, self.protocol, self.leader, skip_assignment, members)

    # --- Rebalancing

    def _prepare(self):
        if self.state == COMPLETING:
            for member in self.members.values():
                member.answer_sync(Synced(codes.RebalanceInProgressError.errno))
        self.state = PREPARING
        self._set_rebalance_timer(self._complete_without_the_missing)
        self._complete_if_all_joined()

    def _set_rebalance_timer(self, action):
        if self._rebalance_timer:
            self._rebalance_timer.cancel()
        longest = max((member.rebalance_ms for member in self.members.values()), default=0)
        self._rebalance_timer = self._timers.after(longest / 1000, action)

    def _complete_if_all_joined(self):
        if not self._promised and all(member.on_joined for member in self.members.values()):
            self._complete()

    def _complete_without_the_missing(self):
        """The rebalance timed out: static members keep their place for their session, other absent members are removed."""
        if self.state != PREPARING:
            return
        self._promised.clear()
        for member in [m for m in self.members.values() if not m.on_joined and not m.instance_id]:
            self._remove(member)
        if self.members and not any(member.on_joined for member in self.members.values()):
            self._set_rebalance_timer(self._complete_without_the_missing)
            return
        self._complete()

    def _complete(self):
        self._rebalance_timer.cancel()
        self.generation += 1
        if not self.members:
            self.state, self.protocol, self.leader = EMPTY, None, None
            return
        self.protocol = self._choose_protocol()
        present = [member for member in self.members.values() if member.on_joined]
        if self.leader not in self.members or not self.members[self.leader].on_joined:
            self.leader = present[0].id
        self.state = COMPLETING
        self._set_rebalance_timer(self._complete_without_the_silent)
        for member in self.members.values():
            member.assignment = b""
        for member in present:
            self._alive(member)
            member.answer_join(self._joined(member))

    def _complete_without_the_silent(self):
        """The sync timed out: remove the members, leader or not, that did not send SyncGroup."""
        if self.state != COMPLETING:
            return
        for member in [m for m in self.members.values() if not m.on_synced]:
            self._remove(member)
        self._prepare()

    def _shared_protocols(self):
        names = [{name for name, _ in member.protocols} for member in self.members.values()]
        return set.intersection(*names) if names else set()

    def _choose_protocol(self):
        """Choose the protocol that most members prefer among those that all support."""
        shared = self._shared_protocols()
        votes = [next(name for name, _ in member.protocols if name in shared) for member in self.members.values()]
        return max(votes, key=votes.count)

    # --- Syncing, heartbeats, leaving

    def sync(self, member_id, instance_id, generation, protocol_type, protocol, assignments, reply):
        try:
            member = self._check_member(member_id, instance_id, generation)
            if (protocol_type and protocol_type != self.protocol_type) or (protocol and protocol != self.protocol):
                raise Refusal(codes.InconsistentGroupProtocolError)
            if self.state == PREPARING:
                raise Refusal(codes.RebalanceInProgressError)
        except Refusal as refusal:
            return reply(Synced(refusal.code))
        self._alive(member)
        if self.state == STABLE:
            return reply(self._synced(member))
        member.answer_sync(Synced(codes.UnknownMemberIdError.errno))
        member.on_synced = reply
        if member_id == self.leader:
            for other in self.members.values():
                other.assignment = assignments.get(other.id, b"")
            self.state = STABLE
            self._rebalance_timer.cancel()
            for other in self.members.values():
                self._alive(other)
                other.answer_sync(self._synced(other))

    def _synced(self, member):
        return Synced(NONE, self.protocol_type, self.protocol, member.assignment)

    def heartbeat(self, member_id, instance_id, generation):
        """Return the error code for the member."""
        try:
            member = self._check_member(member_id, instance_id, generation)
        except Refusal as refusal:
            return refusal.code
        self._alive(member)
        return codes.RebalanceInProgressError.errno if self.state == PREPARING else NONE

    def leave(self, member_id, instance_id):
        """Return the error code. An instance id without a member id removes any member with that instance id."""
        if instance_id:
            if instance_id not in self._static:
                return codes.UnknownMemberIdError.errno
            if member_id and self._static[instance_id] != member_id:
                return codes.FencedInstanceIdError.errno
            member_id = self._static[instance_id]
        if self._promised.pop(member_id, None) is not None:
            if self.state == PREPARING:
                self._complete_if_all_joined()
            return NONE
        member = self.members.get(member_id)
        if member is None:
            return codes.UnknownMemberIdError.errno
        self._remove(member)
        self._go_on_without()
        return NONE

    def _check_instance(self, member_id, instance_id):
        if instance_id not in self._static:
            raise Refusal(codes.UnknownMemberIdError)
        if self._static[instance_id] != member_id:
            raise Refusal(codes.FencedInstanceIdError)

    def _check_member(self, member_id, instance_id, generation):
        if instance_id:
            self._check_instance(member_id, instance_id)
        if member_id not in self.members:
            raise Refusal(codes.UnknownMemberIdError)
        if generation != self.generation:
            raise Refusal(codes.IllegalGenerationError)
        return self.members[member_id]

    def _remove(self, member):
        del self.members[member.id]
        if member.instance_id and self._static.get(member.instance_id) == member.id:
            del self._static[member.instance_id]
        member.answer_join(Joined(codes.UnknownMemberIdError.errno, member.id))
        member.answer_sync(Synced(codes.UnknownMemberIdError.errno))

    def _go_on_without(self):
        if self.state == PREPARING:
            self._complete_if_all_joined()
        elif self.state in (COMPLETING, STABLE):
            self._prepare()

    # --- Sessions

    def _alive(self, member):
        member.deadline = self._clock.monotonic() + member.session_ms / 1000

    def _check_session(self, member):
        """Check whether the session has expired; each member has one such timer."""
        if self.members.get(member.id) is not member:
            return
        if member.on_joined:
            self._alive(member)  # it waits for other members: not its own timeout
        left = member.deadline - self._clock.monotonic()
        if left > 0:
            self._timers.after(left, lambda: self._check_session(member))
            return
        self._remove(member)
        self._go_on_without()

    def _forget_promises(self):
        now = self._clock.monotonic()
        for member_id in [m for m, deadline in self._promised.items() if deadline <= now]:
            del self._promised[member_id]
        if self.state == PREPARING:
            self._complete_if_all_joined()

    # --- Offsets

    def check_commit(self, member_id, instance_id, generation):
        """Raise Refusal if the member must not commit; a client without membership (generation -1) may commit while the group is empty."""
        if self.share is not None:
            raise Refusal(codes.GroupIdNotFoundError, f"Group '{self.id}' is a share group, which commits no offsets.")
        if self.has_consumers:
            return self.consumers.check_commit(member_id, generation)
        if generation < 0 and not member_id and not instance_id:
            if self.state != EMPTY:
                raise Refusal(codes.UnknownMemberIdError)
            return
        if self.state == EMPTY and not self.members and generation < 0:
            return
        member = self._check_member(member_id, instance_id, generation)
        if self.state == COMPLETING:
            raise Refusal(codes.RebalanceInProgressError)
        self._alive(member)

    def commit(self, committed, now_ms):
        """committed: {(topic, partition): Committed}"""
        rows = [(*key, new.offset, new.leader_epoch, new.metadata, now_ms) for key, new in committed.items()]
        self._store.save_offsets(self.id, rows)
        self.offsets.update(committed)

    def delete_offset(self, topic, number):
        if not self.is_empty:
            if self.protocol_type != "consumer" and not self.has_consumers:
                raise Refusal(codes.NonEmptyGroupError)
            if topic in self._subscribed():
                raise Refusal(codes.GroupSubscribedToTopicError)
        self._store.delete_offsets(self.id, [(topic, number)])
        self.offsets.pop((topic, number), None)

    def _subscribed(self):
        topics = set()
        if self.has_consumers:
            for member in self.consumers.members.values():
                topics |= self.consumers.subscribed(member)
        for member in self.members.values():
            for _, metadata in member.protocols:
                topics.update(subscribed_topics(metadata) or ())
        return topics


class Groups:
    """All groups, including those known only by their offsets."""

    def __init__(self, store, topics, clock, timers, configs=None):
        self._store = store
        self._configs = configs
        self._topics = topics
        self._clock = clock
        self._timers = timers
        self._by_id = {}
        for group_id, topic, number, offset, leader_epoch, metadata, _ in store.offsets():
            self.make(group_id).offsets[topic, number] = Committed(offset, leader_epoch, metadata)
        for group_id, topic, number, topic_id, start, rows in store.shares():
            self.share(group_id).load(topic, number, topic_id, start, rows)

    def __iter__(self):
        return iter(sorted(self._by_id.values(), key=lambda group: group.id))

    def get(self, group_id):
        return self._by_id.get(group_id)

    def make(self, group_id):
        group = self._by_id.get(group_id)
        if group is None:
            group = self._by_id[group_id] = Group(group_id, self._store, self._clock, self._timers)
        return group

    def consumers(self, group_id):
        """Return the members of the consumer protocol; an empty group switches to it. Raise Refusal if classic members exist."""
        group = self.make(group_id)
        if group.consumers is None:
            if group.members or group.state != EMPTY or group.share is not None:
                raise Refusal(
                    codes.GroupIdNotFoundError,
                    f"Group '{group_id}' has members by the classic protocol, or is a share group; both at once are not offered.",
                )
            group.consumers = ConsumerMembers(self._topics, self._clock, self._timers)
        return group.consumers

    def share(self, group_id):
        """Return the ShareGroup, created if the id is unknown. Raise Refusal if the id belongs to a group of another type."""
        group = self.make(group_id)
        if group.share is None:
            if not group.holds_nothing:
                raise Refusal(codes.GroupIdNotFoundError, f"Group '{group_id}' is not a share group.")
            group.consumers = None
            values = functools.partial(self._configs.values, group_id)
            group.share = ShareGroup(group_id, self._topics, self._store, self._clock, self._timers, values)
        return group.share

    def known_share(self, group_id):
        """Return the ShareGroup. Raise Refusal if it does not exist."""
        group = self._by_id.get(group_id)
        if group is None or group.share is None:
            raise Refusal(codes.GroupIdNotFoundError, f"There is no share group '{group_id}'.")
        return group.share

    def delete(self, group_id):
        """Delete a group; raise Refusal if it is unknown or has members."""
        group = self._by_id.get(group_id)
        if group is None:
            raise Refusal(codes.GroupIdNotFoundError, f"There is no group '{group_id}'.")
        if not group.is_empty:
            raise Refusal(codes.NonEmptyGroupError, f"Group '{group_id}' has members.")
        self._store.delete_group(group_id)
        if group.share is not None:
            group.share.close()
        group.state = DEAD
        del self._by_id[group_id]

    def tidy(self):
        """Drop groups without state: those whose last member left without a commit, or whose join was refused."""
        for group in [group for group in self._by_id.values() if group.holds_nothing]:
            group.state = DEAD
            del self._by_id[group.id]

    def forget_topic(self, topic):
        """Drop the committed offsets of a deleted topic."""
        for group in self._by_id.values():
            for key in [key for key in group.offsets if key[0] == topic]:
                del group.offsets[key]
            if group.share is not None:
                group.share.forget_topic(topic)


class _MemberIdRequired(Exception):
    def __init__(self, member_id):
        super().__init__(member_id)
        self.member_id = member_id
