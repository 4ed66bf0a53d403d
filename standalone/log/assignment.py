"""Assignment: distribute partitions among a group's members, by kafka-python's assignors under Java's names."""

import collections

from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from kafka.structs import TopicPartition

from standalone.errors import ConfigError

STRATEGIES = {
    "org.apache.kafka.clients.consumer.RangeAssignor": RangePartitionAssignor,
    "org.apache.kafka.clients.consumer.RoundRobinAssignor": RoundRobinPartitionAssignor,
    "org.apache.kafka.clients.consumer.StickyAssignor": StickyPartitionAssignor,
    "org.apache.kafka.clients.consumer.CooperativeStickyAssignor": CooperativeStickyAssignor,
}

Member = collections.namedtuple("Member", "member_id group_instance_id metadata")


class Assignment:
    """The strategies of partition.assignment.strategy; a group uses one that all its members support."""

    def __init__(self, names):
        unknown = [name for name in names if name not in STRATEGIES]
        if unknown or not names:
            problem = f"{', '.join(unknown) or 'nothing'} is not supported; supported are {', '.join(STRATEGIES)}"
            raise ConfigError.of({"partition.assignment.strategy": problem})
        self._strategies = {STRATEGIES[name].name: STRATEGIES[name]() for name in names}

    @property
    def is_cooperative(self):
        """Whether members keep their partitions during a rebalance: only if every strategy is cooperative, as in Java."""
        return set(self._strategies) == {CooperativeStickyAssignor.name}

    def offers(self, topics, owned=()):
        """Return [(strategy, subscription metadata)] for a member that wants `topics` and currently owns `owned`."""
        if self.is_cooperative:
            self._strategies[CooperativeStickyAssignor.name].member_assignment = [TopicPartition(*pair) for pair in sorted(owned)]
        return [(name, strategy.metadata(topics).encode()) for name, strategy in self._strategies.items()]

    def decode_members(self, members):
        """Return [Member] from a JoinGroup response, and the union of their topics."""
        decoded = [Member(m.member_id, m.group_instance_id, ConsumerProtocolSubscription.decode(bytes(m.metadata))) for m in members]
        return decoded, sorted({topic for member in decoded for topic in member.metadata.topics})

    def share_out(self, strategy, members, partitions):
        """Assign {topic: partition indexes}; return {member id: encoded assignment}."""
        for member in members:
            member.metadata.topics = [topic for topic in member.metadata.topics if topic in partitions]
        # kafka-python's assignor loses members when static and dynamic ones alternate.
        members = sorted(members, key=lambda member: member.group_instance_id is None)
        assigned = self._strategies[strategy].assign(_Partitions(partitions), members)
        return {member: assignment.encode() for member, assignment in assigned.items()}

    def pairs(self, data):
        """Decode an assignment into a sorted list of (topic, partition)."""
        if not data:
            return []
        assignment = ConsumerProtocolAssignment.decode(bytes(data))
        return sorted((topic, index) for topic, indexes in assignment.assigned_partitions for index in indexes)

    def remember(self, strategy, data, generation):
        """Remember the assignment for the sticky strategy. The cooperative one sends it on the next join (`offers`)."""
        if strategy == StickyPartitionAssignor.name and data:
            self._strategies[strategy].on_assignment(ConsumerProtocolAssignment.decode(bytes(data)), generation)


class _Partitions:
    """The part of kafka-python's cluster metadata that its assignors use."""

    def __init__(self, partitions):
        self._partitions = partitions

    def topics(self):
        return set(self._partitions)

    def partitions_for_topic(self, topic):
        return self._partitions.get(topic)
