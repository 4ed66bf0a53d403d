"""Members of a group by the consumer protocol (KIP-848): the broker assigns partitions, members learn their assignment by heartbeats.

Each change of members, subscriptions or partitions begins a new group epoch with a target assignment for each member. A member first revokes
what its target lacks and reports it; then it moves to the group's epoch and gets the partitions its target adds, each once its previous owner
has revoked it. So members do not wait for all others, and no partition has two readers.

Members live in memory and rejoin after a restart; committed offsets are in the store.
"""

import re
import uuid

from standalone.log.broker import assignors
from standalone.log.broker.member_sessions import MemberSessions
from standalone.log.broker.refusal import InvalidRegularExpression, Refusal, codes

EMPTY, ASSIGNING, RECONCILING, STABLE = "Empty", "Assigning", "Reconciling", "Stable"
JOIN, LEAVE, LEAVE_FOR_A_WHILE = 0, -1, -2  # special epochs that members send
HEARTBEAT_MS, SESSION_MS = 1000, 45_000


class ConsumerMember:
    def __init__(self, member_id, instance_id, client):
        self.id = member_id
        self.instance_id = instance_id
        self.client_id, self.host = client
        self.rack = None
        self.epoch = 0
        self.previous_epoch = -1
        self.rebalance_ms = 300_000
        self.topics = frozenset()
        self.pattern = None
        self.assignor = None
        self.assigned = set()  # partitions that it may read
        self.revoking = set()  # partitions that it must revoke
        self.sent = None  # the assignment last sent to it
        self.deadline = 0.0
        self.revoke_deadline = None
        self.is_away = False  # a static member that left temporarily


def _is_whole(request):
    """Whether the request is complete, as on joining or after a lost response: then the response holds the assignment."""
    names = request.subscribed_topic_names is not None or getattr(request, "subscribed_topic_regex", None) is not None
    return request.member_epoch == JOIN or names and request.rebalance_timeout_ms >= 0 and request.topic_partitions is not None


def _tells(request):
    """Whether the request says more than that the member is alive."""
    topics = request.subscribed_topic_names, getattr(request, "subscribed_topic_regex", None), request.topic_partitions
    return request.rebalance_timeout_ms >= 0 or any(each is not None for each in (*topics, request.server_assignor, request.rack_id))


class ConsumerMembers(MemberSessions):
    """`topics` are the log's topics; times are the clock's monotonic seconds."""

    _session_seconds = SESSION_MS / 1000

    def __init__(self, topics, clock, timers):
        self.epoch = 0
        self.members = {}
        self._targets = {}  # member id -> set of partitions
        self._partitions = {}  # of all subscribed topics, as of the last target assignment
        self._topics = topics
        self._clock = clock
        self._timers = timers

    @property
    def state(self):
        if not self.members:
            return EMPTY
        settled = all(m.epoch == self.epoch and m.assigned == self.target(m) and not m.revoking for m in self.members.values())
        return STABLE if settled else RECONCILING

    @property
    def assignor(self):
        chosen = [member.assignor for member in self.members.values() if member.assignor]
        return max(chosen, key=chosen.count) if chosen else assignors.DEFAULT

    def target(self, member):
        return self._targets.get(member.id, set())

    def subscribed(self, member):
        """Return the existing topics that a member subscribes to."""
        names = {name for name in member.topics if self._topics.get(name)}
        if member.pattern:
            names |= {topic.name for topic in self._topics if member.pattern.fullmatch(topic.name)}
        return names

    # --- Heartbeats

    def heartbeat(self, request, client):
        """Return (member, its assignment or None if it knows it). Raise Refusal if the member is fenced or unknown, or the request is invalid."""
        if request.member_epoch in (LEAVE, LEAVE_FOR_A_WHILE):
            return self._leave(request), None
        member = self._joining(request, client) if request.member_epoch == JOIN else self._known(request)
        try:
            changed = self._take_in(member, request)
        except Refusal:
            if not member.epoch:
                del self.members[member.id]  # it never joined
            raise
        self._alive(member)
        if changed or request.member_epoch == JOIN or self._partitions != self._present():
            self._begin_epoch()
        owned = None if request.topic_partitions is None else self._owned(request.topic_partitions)
        self._reconcile(member, owned)
        assignment = frozenset(member.assigned)
        if assignment == member.sent and not _is_whole(request) and owned in (None, assignment):
            return member, None
        member.sent = assignment
        return member, assignment

    def still_true(self, member, request):
        """Return a thread-safe function: would the same heartbeat get the same response? None if this heartbeat changed or returned something."""
        epoch, changes = self.epoch, self._topics.changes
        settled = member.epoch == epoch and member.assigned == member.sent == self.target(member) and not member.revoking
        if not settled or _tells(request) or request.member_epoch != epoch:
            return None

        def still_true():
            if self.members.get(request.member_id) is not member or member.is_away or self._topics.changes != changes:
                return False
            if self.epoch != epoch:  # a new epoch begins with each change of members or of their topics
                return False
            self._alive(member)
            return True

        return still_true

    def _joining(self, request, client):
        instance_id = request.instance_id
        old = next((m for m in self.members.values() if instance_id and m.instance_id == instance_id), None)
        member_id = request.member_id or str(uuid.uuid4())
        if old is not None and old.id != member_id:
            if not old.is_away:
                raise Refusal(codes.UnreleasedInstanceIdError, f"Instance id {instance_id} belongs to another member that has not left.")
            # A static member returned under another id: it keeps its assignment.
            del self.members[old.id]
            self._targets[member_id] = self._targets.pop(old.id, set())
            old.id, old.is_away, old.sent = member_id, False, None
            self.members[member_id] = old
            return old
        member = self.members.get(member_id)
        if member is None:
            if not request.subscribed_topic_names and not getattr(request, "subscribed_topic_regex", None):
                raise Refusal(codes.InvalidRequestError, "A member that joins names the topics that it reads.")
            member = self.members[member_id] = ConsumerMember(member_id, instance_id, client)
            self._begin_session(member)
        else:  # it lost its epoch and owns nothing
            member.assigned, member.revoking, member.sent = set(), set(), None
        return member

    def _known(self, request):
        member = self.members.get(request.member_id)
        if member is None:
            raise Refusal(codes.UnknownMemberIdError, f"The group has no member {request.member_id}.")
        epoch = request.member_epoch
        if epoch == member.epoch:
            return member
        # The response that raised its epoch may have been lost.
        owned = self._owned(request.topic_partitions or ())
        if epoch == member.previous_epoch and owned <= member.assigned | member.revoking:
            member.sent = None
            return member
        raise Refusal(codes.FencedMemberEpochError, f"The member is at epoch {member.epoch}, it sent {epoch}.")

    def _take_in(self, member, request):
        """Update the member from the request; return whether that requires new targets."""
        before = (member.topics, member.pattern, member.assignor)
        if request.rack_id is not None:
            member.rack = request.rack_id
        if request.rebalance_timeout_ms >= 0:
            member.rebalance_ms = request.rebalance_timeout_ms
        if request.subscribed_topic_names is not None:
            member.topics = frozenset(request.subscribed_topic_names)
        pattern = getattr(request, "subscribed_topic_regex", None)
        if pattern is not None:
            try:
                member.pattern = re.compile(pattern) if pattern else None
            except re.error as error:
                raise Refusal(InvalidRegularExpression, f"'{pattern}' is not a regular expression: {error}.") from error
        if request.server_assignor is not None:
            if request.server_assignor not in assignors.ASSIGNORS:
                raise Refusal(
                    codes.UnsupportedAssignorError,
                    f"There is no assignor '{request.server_assignor}'; there are {', '.join(assignors.ASSIGNORS)}.",
                )
            member.assignor = request.server_assignor
        return before != (member.topics, member.pattern, member.assignor)

    def _leave(self, request):
        member = self.members.get(request.member_id)
        if member is None:
            raise Refusal(codes.UnknownMemberIdError, f"The group has no member {request.member_id}.")
        if request.member_epoch == LEAVE_FOR_A_WHILE and member.instance_id:
            member.is_away = True
            self._alive(member)
        else:
            self._remove(member)
        return None

    def remove_instance(self, instance_id, member_id):
        """Remove a member on an admin's request."""
        for member in list(self.members.values()):
            if (instance_id and member.instance_id == instance_id) or (not instance_id and member.id == member_id):
                self._remove(member)
                return True
        return False

    # --- Target assignments

    def _present(self):
        """Return {topic: partition count} of all subscribed topics that exist."""
        names = set()
        for member in self.members.values():
            names |= self.subscribed(member)
        return {name: len(self._topics.get(name).partitions) for name in names}

    def _begin_epoch(self):
        self.epoch += 1
        self._partitions = self._present()
        members = {member.id: self.subscribed(member) for member in self.members.values()}
        self._targets = assignors.ASSIGNORS[self.assignor](members, self._partitions, self._targets)

    def _reconcile(self, member, owned):
        target = self.target(member)
        if member.revoking and owned is not None and not owned & member.revoking:
            member.revoking = set()
            member.revoke_deadline = None
        surplus = member.assigned - target
        if surplus:
            member.assigned -= surplus
            member.revoking |= surplus
            deadline = self._clock.monotonic() + member.rebalance_ms / 1000
            member.revoke_deadline = deadline
            self._timers.after(member.rebalance_ms / 1000, lambda: self._check_revoked(member, deadline))
        if member.revoking:
            if member.epoch == 0:  # a new member has nothing to revoke
                member.revoking = set()
            else:
                return
        taken = set()
        for other in self.members.values():
            if other is not member:
                taken |= other.assigned | other.revoking
        member.assigned = target - taken
        if member.epoch != self.epoch:
            member.previous_epoch, member.epoch = member.epoch, self.epoch

    def _owned(self, topic_partitions):
        owned = set()
        for topic in topic_partitions:
            known = self._topics.by_id(topic.topic_id)
            if known is not None:
                owned.update((known.name, number) for number in topic.partitions)
        return owned

    def _remove(self, member):
        del self.members[member.id]
        self._targets.pop(member.id, None)
        self._begin_epoch()

    # --- Time

    def _check_revoked(self, member, deadline):
        """Remove the member if it has not revoked its partitions in time."""
        if self.members.get(member.id) is member and member.revoking and member.revoke_deadline == deadline:
            self._remove(member)

    # --- Commits

    def check_commit(self, member_id, epoch):
        member = self.members.get(member_id)
        if member is None:
            raise Refusal(codes.UnknownMemberIdError)
        if epoch != member.epoch:
            raise Refusal(codes.StaleMemberEpochError)
        self._alive(member)
