"""Topics, configs, offsets and groups: what is asked and changed now and then, each in one blocking call.

Everything goes over the cluster's shared connections. What fails for the moment (a controller that moves, a coordinator that
loads) is tried again for default.api.timeout.ms; what fails permanently is a LogError with Java's name in `java_class`.
A partition is written (topic, number) throughout.
"""

import collections
import dataclasses

from kafka.protocol.admin import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteGroupsRequest,
    DeleteRecordsRequest,
    DeleteTopicsRequest,
    DescribeConfigsRequest,
    DescribeGroupsRequest,
    IncrementalAlterConfigsRequest,
    ListGroupsRequest,
)
from kafka.protocol.consumer import (
    LeaveGroupRequest,
    ListOffsetsRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
)

from standalone.errors import LogRetriableError
from standalone.log import client_keys
from standalone.log import error_codes as codes
from standalone.log.broker_errors import broker_error, java_class, java_name, raise_for
from standalone.log.client_config import AdminConfig
from standalone.log.retry import Backoff

EARLIEST, LATEST = -2, -1  # in place of a timestamp
BROKER_DEFAULT = -1  # of a topic's partitions or replication factor
NO_OFFSET = -1

TOPIC_RESOURCE = 2
UNKNOWN_TOPIC_GRACE_S = 1.0
SET, DELETE = 0, 1
SET_ON_TOPIC = 1  # of the sources that a setting may have
OFFSETS_BY_NAME = 9  # later versions of OffsetFetch and OffsetCommit name topics by id


@dataclasses.dataclass(frozen=True)
class Member:
    id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: bytes  # as the members agreed on it


@dataclasses.dataclass(frozen=True)
class Group:
    id: str
    state: str  # Empty, Stable, PreparingRebalance, CompletingRebalance, Dead
    protocol_type: str
    members: list


class Admin:
    """Thread-safe, as the cluster is."""

    def __init__(self, cluster, config, clock):
        self._config = AdminConfig.of(config)
        client_keys.tell(self._config)
        self._cluster, self._clock = cluster.of_client(self._config["client.id"]), clock

    def close(self):
        """Nothing here is the admin's own: the connections are the cluster's, which others use."""

    # ---- topics

    def create_topics(self, name, partitions=BROKER_DEFAULT, replication=BROKER_DEFAULT, configs=None):
        """Make a topic; False if it was there already."""
        kind = CreateTopicsRequest.CreatableTopic
        settings = [kind.CreatableTopicConfig(name=key, value=str(value)) for key, value in (configs or {}).items()]
        topic = kind(name=name, num_partitions=partitions, replication_factor=replication, assignments=[], configs=settings)
        what = f"Creating topic '{name}' ({partitions} partitions, replication factor {replication}; -1 is the broker's default)"

        def attempt(timeout):
            request = CreateTopicsRequest(topics=[topic], timeout_ms=_milliseconds(timeout))
            answer = self._cluster.request(request, self._cluster.controller(timeout), timeout)
            (result,) = answer.topics
            if result.error_code == codes.TOPIC_ALREADY_EXISTS:
                return False
            raise_for(result.error_code, what, result.error_message)
            return True

        return self._repeat(attempt)

    def create_partitions(self, name, count):
        """Give a topic more partitions, so that it has `count`."""
        kind = CreatePartitionsRequest.CreatePartitionsTopic

        def attempt(timeout):
            request = CreatePartitionsRequest(
                topics=[kind(name=name, count=count, assignments=None)], timeout_ms=_milliseconds(timeout), validate_only=False
            )
            (result,) = self._cluster.request(request, self._cluster.controller(timeout), timeout).results
            raise_for(result.error_code, f"Giving topic '{name}' {count} partitions", result.error_message)

        self._repeat(attempt)
        self._cluster.forget(name)

    def delete_topics(self, *names):
        """Delete topics; raises for the first that cannot be, which others are deleted nonetheless."""

        def attempt(timeout):
            states = [DeleteTopicsRequest.DeleteTopicState(name=name) for name in names]
            request = DeleteTopicsRequest(topics=states, topic_names=list(names), timeout_ms=_milliseconds(timeout))
            answer = self._cluster.request(request, self._cluster.controller(timeout), timeout)
            for result in answer.responses:
                raise_for(result.error_code, f"Deleting topic '{result.name}'", result.error_message)

        self._repeat(attempt)
        for name in names:
            self._cluster.forget(name)

    def list_topics(self, internal=False):
        """The names of all topics, as a set."""
        topics = self._repeat(lambda timeout: self._cluster.topics(timeout))
        return {name for name, topic in topics.items() if internal or not topic.internal}

    def describe_topics(self, *names):
        """{name: client.Topic}, asked for now; raises where one does not exist."""

        def attempt(timeout):
            found = self._cluster.refresh(list(names), timeout=timeout)
            for name in names:
                code = found[name].error_code if name in found else codes.UNKNOWN_TOPIC_OR_PARTITION
                raise_for(code, f"Describing topic '{name}'")
            return {name: found[name] for name in names}

        return self._repeat(attempt)

    def describe_configs(self, topic):
        """{name: value} of a topic's settings, defaults too; a value is None where the broker keeps it secret."""
        return {config.name: config.value for config in self._configs(topic)}

    def own_configs(self, topic):
        """{name: value} of what is set on the topic itself."""
        return {config.name: config.value for config in self._configs(topic) if config.config_source == SET_ON_TOPIC}

    def _configs(self, topic):
        resource = DescribeConfigsRequest.DescribeConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=topic)

        def attempt(timeout):
            answer = self._cluster.request(DescribeConfigsRequest(resources=[resource]), timeout=timeout)
            (result,) = answer.results
            raise_for(result.error_code, f"Describing the configuration of topic '{topic}'", result.error_message)
            return result.configs

        return self._repeat(attempt)

    def incremental_alter_configs(self, topic, configs):
        """Set a topic's settings {name: value}; None puts one back to its default. Others stay as they are."""
        kind = IncrementalAlterConfigsRequest.AlterConfigsResource
        change = kind.AlterableConfig
        changes = [
            change(name=name, config_operation=DELETE, value=None)
            if value is None
            else change(name=name, config_operation=SET, value=str(value))
            for name, value in configs.items()
        ]
        resource = kind(resource_type=TOPIC_RESOURCE, resource_name=topic, configs=changes)

        def attempt(timeout):
            request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
            answer = self._cluster.request(request, self._cluster.controller(timeout), timeout)
            (result,) = answer.responses
            raise_for(result.error_code, f"Changing the configuration of topic '{topic}'", result.error_message)

        self._repeat(attempt)

    # ---- offsets of partitions

    def list_offsets(self, wanted, isolation=0):
        """{partition: offset} of {partition: EARLIEST, LATEST or milliseconds}; NO_OFFSET where no record is that late.

        With `isolation` 1 (read committed) the end is where the first transaction begins that is still open.
        """
        kind = ListOffsetsRequest.ListOffsetsTopic
        part = kind.ListOffsetsPartition

        def request(timeout, topics):
            asked = [
                kind(name=name, partitions=[part(partition_index=n, timestamp=wanted[name, n]) for n in numbers])
                for name, numbers in topics.items()
            ]
            return ListOffsetsRequest(replica_id=-1, isolation_level=isolation, topics=asked, timeout_ms=_milliseconds(timeout))

        return self._ask_leaders(request, wanted, "Asking for an offset of {}", lambda partition: partition.offset)

    def delete_records(self, before):
        """Delete what is before {partition: offset} (LATEST: everything); {partition: first offset left}."""
        kind = DeleteRecordsRequest.DeleteRecordsTopic
        part = kind.DeleteRecordsPartition

        def request(timeout, topics):
            asked = [
                kind(name=name, partitions=[part(partition_index=n, offset=before[name, n]) for n in numbers])
                for name, numbers in topics.items()
            ]
            return DeleteRecordsRequest(topics=asked, timeout_ms=_milliseconds(timeout))

        return self._ask_leaders(request, before, "Deleting records of {}", lambda partition: partition.low_watermark)

    def _ask_leaders(self, request, partitions, what, read):
        """One request to each leader; {partition: what `read` finds in its part of the answer}."""
        found = {}

        def attempt(timeout):
            nodes = collections.defaultdict(lambda: collections.defaultdict(list))
            for name, number in partitions:
                if (name, number) in found:
                    continue
                topic = self._cluster.topic(name, timeout=timeout)
                place = what.format(f"{name}-{number}")
                if number not in topic.partitions:
                    raise broker_error(codes.UNKNOWN_TOPIC_OR_PARTITION, place, f"the topic has {len(topic.partitions)} partitions")
                leader = self._cluster.leader(name, number)
                if leader is None:
                    self._cluster.forget(name)
                    raise LogRetriableError(f"{place}: the partition has no leader.", java_class("LeaderNotAvailableException"))
                nodes[leader.node][name].append(number)
            for node, topics in nodes.items():
                for topic in self._cluster.request(request(timeout, topics), node, timeout).topics:
                    for partition in topic.partitions:
                        if partition.error_code:
                            self._cluster.forget(topic.name)
                        raise_for(partition.error_code, what.format(f"{topic.name}-{partition.partition_index}"))
                        found[topic.name, partition.partition_index] = read(partition)
            return found

        return self._repeat(attempt)

    # ---- groups

    def list_groups(self):
        """{group: state} of every group of the cluster."""

        def attempt(timeout):
            self._cluster.refresh([], timeout=timeout)
            found = {}
            for node in self._cluster.nodes():
                answer = self._cluster.request(ListGroupsRequest(states_filter=[], types_filter=[]), node, timeout)
                raise_for(answer.error_code, f"Listing the groups of broker {node.id}")
                found.update((group.group_id, group.group_state) for group in answer.groups)
            return found

        return self._repeat(attempt)

    def describe_group(self, group):
        """A Group; one that does not exist is Dead and has no members."""

        def attempt(timeout, node):
            answer = self._cluster.request(DescribeGroupsRequest(groups=[group]), node, timeout)
            (found,) = answer.groups
            if found.error_code == codes.GROUP_ID_NOT_FOUND:
                return Group(group, "Dead", "", [])
            raise_for(found.error_code, f"Describing group '{group}'", found.error_message)
            members = [
                Member(member.member_id, member.group_instance_id, member.client_id, member.client_host, bytes(member.member_assignment))
                for member in found.members
            ]
            return Group(group, found.group_state, found.protocol_type, members)

        return self._repeat_at_coordinator(group, attempt)

    def describe_groups(self, *groups):
        """{group: Group}."""
        return {group: self.describe_group(group) for group in groups}

    def delete_group(self, group):
        """Delete a group without members, and its offsets."""

        def attempt(timeout, node):
            (result,) = self._cluster.request(DeleteGroupsRequest(groups_names=[group]), node, timeout).results
            raise_for(result.error_code, f"Deleting group '{group}'")

        self._repeat_at_coordinator(group, attempt)

    def remove_members(self, group, instance_ids):
        """Let static members leave, so that their partitions are free at once; who is not there is no error."""
        kind = LeaveGroupRequest.MemberIdentity
        members = [kind(member_id="", group_instance_id=instance, reason="stopped") for instance in instance_ids]

        def attempt(timeout, node):
            answer = self._cluster.request(LeaveGroupRequest(group_id=group, members=members), node, timeout)
            for code in (answer.error_code, *(member.error_code for member in answer.members)):
                if code != codes.UNKNOWN_MEMBER_ID:
                    raise_for(code, f"Removing members of group '{group}'")

        if members:
            self._repeat_at_coordinator(group, attempt)

    def group_offsets(self, group, partitions=None):
        """{partition: committed offset} of the given partitions, or of all that have one."""
        return {partition: offset for partition, (offset, _) in self.group_commits(group, partitions).items()}

    def group_commits(self, group, partitions=None):
        """{partition: (committed offset, its metadata)} of the given partitions, or of all that have one."""
        kind = OffsetFetchRequest.OffsetFetchRequestGroup

        def topics(of):
            if partitions is None:
                return None
            return [of(name=name, partition_indexes=numbers) for name, numbers in _by_topic(partitions).items()]

        def attempt(timeout, node):
            request = OffsetFetchRequest(
                group_id=group,
                topics=topics(OffsetFetchRequest.OffsetFetchRequestTopic),
                # instead of the two above, since version 8
                groups=[kind(group_id=group, topics=topics(kind.OffsetFetchRequestTopics))],
                require_stable=True,
            )
            answer = self._cluster.request(request, node, timeout, ceiling=OFFSETS_BY_NAME)
            answer = answer.groups[0] if answer.groups else answer
            raise_for(answer.error_code, f"Asking for the offsets of group '{group}'")
            found = {}
            for topic in answer.topics:
                for partition in topic.partitions:
                    place = topic.name, partition.partition_index
                    raise_for(partition.error_code, f"Asking for the offset of group '{group}' in {place[0]}-{place[1]}")
                    if partition.committed_offset != NO_OFFSET:
                        found[place] = partition.committed_offset, partition.metadata or ""
            return found

        return self._repeat_at_coordinator(group, attempt)

    def alter_group_offsets(self, group, offsets):
        """Commit {partition: offset, or (offset, metadata)} for a group that has no members."""
        kind = OffsetCommitRequest.OffsetCommitRequestTopic

        part = kind.OffsetCommitRequestPartition
        outside = {"generation_id_or_member_epoch": -1, "member_id": "", "group_instance_id": None}  # of every generation
        commits = {partition: each if isinstance(each, tuple) else (each, "") for partition, each in offsets.items()}

        def attempt(timeout, node):
            topics = [
                kind(
                    name=name,
                    partitions=[
                        part(partition_index=n, committed_offset=commits[name, n][0], committed_metadata=commits[name, n][1]) for n in numbers
                    ],
                )
                for name, numbers in _by_topic(commits).items()
            ]
            request = OffsetCommitRequest(group_id=group, topics=topics, **outside)
            answer = self._cluster.request(request, node, timeout, ceiling=OFFSETS_BY_NAME)
            _raise_for_partitions(answer, f"Setting the offset of group '{group}' in")

        self._repeat_at_coordinator(group, attempt)

    def delete_group_offsets(self, group, partitions):
        """Forget a group's offsets of partitions; one that has none is no error."""
        kind = OffsetDeleteRequest.OffsetDeleteRequestTopic

        def attempt(timeout, node):
            topics = [
                kind(name=name, partitions=[kind.OffsetDeleteRequestPartition(partition_index=number) for number in numbers])
                for name, numbers in _by_topic(partitions).items()
            ]
            answer = self._cluster.request(OffsetDeleteRequest(group_id=group, topics=topics), node, timeout)
            raise_for(answer.error_code, f"Deleting offsets of group '{group}'")
            _raise_for_partitions(answer, f"Deleting the offset of group '{group}' in")

        self._repeat_at_coordinator(group, attempt)

    # ---- trying again

    def ask(self, attempt):
        """What `attempt(cluster, seconds left)` gives, tried again as all here."""
        return self._repeat(lambda timeout: attempt(self._cluster, timeout))

    def _repeat(self, attempt):
        """What attempt(seconds left) gives, tried again until default.api.timeout.ms is over while it fails for the moment."""
        started = self._clock.monotonic()
        deadline = started + self._config.seconds("default.api.timeout.ms")
        backoff = Backoff(self._config, "retry.backoff")
        while True:
            try:
                return attempt(max(0.1, deadline - self._clock.monotonic()))
            except LogRetriableError as error:
                pause = backoff.next()
                if error.java_class == java_name(codes.UNKNOWN_TOPIC_OR_PARTITION):  # it may be new; more likely it does not exist
                    deadline = min(deadline, started + UNKNOWN_TOPIC_GRACE_S)
                if self._clock.monotonic() + pause >= deadline:
                    raise
                self._cluster.pause(pause)

    def _repeat_at_coordinator(self, group, attempt):
        return self._repeat(lambda timeout: attempt(timeout, self._cluster.coordinator(group, timeout)))


def _raise_for_partitions(answer, what):
    for topic in answer.topics:
        for partition in topic.partitions:
            raise_for(partition.error_code, f"{what} {topic.name}-{partition.partition_index}")


def _by_topic(partitions):
    topics = collections.defaultdict(list)
    for name, number in partitions:
        topics[name].append(number)
    return topics


def _milliseconds(seconds):
    return int(min(seconds * 1000, 2**31 - 1))
