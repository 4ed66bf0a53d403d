"""The members of a share group (KIP-932). The log assigns the partitions; members get their assignments in heartbeat responses.

A change of members, subscriptions or partitions begins a new group epoch. Each member gets its new assignment with its next heartbeat; it need not
wait until others revoke partitions, as partitions are shared. Members are in memory only: they rejoin after a restart of the log.
"""

from standalone.log.broker import share_assignor
from standalone.log.broker.member_sessions import MemberSessions
from standalone.log.broker.refusal import Refusal, codes

EMPTY, STABLE = "Empty", "Stable"
JOIN, LEAVE = 0, -1  # member epochs in requests
MAX_MEMBERS = 200  # Kafka's default of group.share.max.size


class ShareMember:
    def __init__(self, member_id, client):
        self.id = member_id
        self.client_id, self.host = client
        self.rack = None
        self.epoch = self.previous_epoch = 0
        self.topics = frozenset()
        self.sent = None  # the assignment in the last response that had one
        self.deadline = 0.0


class ShareMembers(MemberSessions):
    """`topics` are the log's; `configs()` returns the group's configs; times are monotonic seconds of the clock."""

    def __init__(self, topics, clock, timers, configs):
        self.epoch = 0
        self.members = {}
        self._assigned = {}  # member id -> set of partitions
        self._partitions = {}  # of all subscribed topics, as of the assignment
        self._topics = topics
        self._clock = clock
        self._timers = timers
        self._configs = configs

    @property
    def state(self):
        return STABLE if self.members else EMPTY

    def assigned(self, member):
        return self._assigned.get(member.id, set())

    # --- Heartbeats

    def heartbeat(self, request, client):
        """(member, its assignment), without assignment if it has not changed; (None, None) if the member left. Refusal: it is fenced or unknown."""
        if request.member_epoch == LEAVE:
            self._remove(self._known(request.member_id))
            return None, None
        if request.member_epoch < JOIN:
            raise Refusal(codes.InvalidRequestError, f"{request.member_epoch} is not an epoch of a share group member.")
        member = self._joining(request, client) if request.member_epoch == JOIN else self._continuing(request)
        if request.rack_id is not None:
            member.rack = request.rack_id
        before = member.topics
        if request.subscribed_topic_names is not None:
            member.topics = frozenset(request.subscribed_topic_names)
        self._alive(member)
        if member.topics != before or self._partitions != self._present():
            self._begin_epoch()
        if member.epoch != self.epoch:
            member.previous_epoch, member.epoch = member.epoch, self.epoch
        assignment = frozenset(self.assigned(member))
        is_whole = request.member_epoch == JOIN or request.subscribed_topic_names is not None
        if assignment == member.sent and not is_whole:
            return member, None
        member.sent = assignment
        return member, assignment

    def still_true(self, member, request):
        """As in ConsumerMembers: a function for any thread, or None if this heartbeat changed something."""
        epoch, changes = self.epoch, self._topics.changes
        if request.subscribed_topic_names is not None or request.rack_id is not None or request.member_epoch != epoch:
            return None

        def still_true():
            if self.members.get(request.member_id) is not member or self._topics.changes != changes or self.epoch != epoch:
                return False
            self._alive(member)
            return True

        return still_true

    def _joining(self, request, client):
        if not request.member_id:
            raise Refusal(codes.InvalidRequestError, "The member id is empty. Members of share groups choose their own ids.")
        member = self.members.get(request.member_id)
        if member is None:
            if not request.subscribed_topic_names:
                raise Refusal(codes.InvalidRequestError, "A member must subscribe to topics when it joins.")
            if len(self.members) >= MAX_MEMBERS:
                raise Refusal(codes.GroupMaxSizeReachedError, f"The group has {MAX_MEMBERS} members already.")
            member = self.members[request.member_id] = ShareMember(request.member_id, client)
            self._begin_session(member)
        return member

    def _known(self, member_id):
        member = self.members.get(member_id)
        if member is None:
            raise Refusal(codes.UnknownMemberIdError, f"The group has no member {member_id}.")
        return member

    def _continuing(self, request):
        member = self._known(request.member_id)
        if request.member_epoch not in (member.epoch, member.previous_epoch):  # the response with the new epoch may have been lost
            raise Refusal(codes.FencedMemberEpochError, f"The member's epoch is {member.epoch}, not {request.member_epoch}.")
        if request.member_epoch != member.epoch:
            member.sent = None
        return member

    # --- The assignment

    def _present(self):
        """{topic: number of its partitions} of all subscribed topics."""
        names = set().union(*(member.topics for member in self.members.values()))
        found = {name: self._topics.get(name) for name in names}
        return {name: len(topic.partitions) for name, topic in found.items() if topic is not None}

    def _begin_epoch(self):
        self.epoch += 1
        self._partitions = self._present()
        self._assigned = share_assignor.simple({member.id: member.topics for member in self.members.values()}, self._partitions)

    def _remove(self, member):
        del self.members[member.id]
        self._begin_epoch()

    # --- Time

    @property
    def _session_seconds(self):
        return self._configs()["share.session.timeout.ms"] / 1000
