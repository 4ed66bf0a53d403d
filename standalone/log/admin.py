"""Admin client: topics, configs, offsets and groups, each in one blocking call.

All calls share the cluster's connections. Transient failures (a controller that moves, a coordinator that loads) are retried for
default.api.timeout.ms; a permanent failure raises a LogError with Java's name in `java_class`. A partition is always a pair
(topic, number).
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
BROKER_DEFAULT = -1  # default partition count or replication factor
NO_OFFSET = -1

TOPIC_RESOURCE = 2
UNKNOWN_TOPIC_GRACE_S = 1.0
SET, DELETE = 0, 1
SET_ON_TOPIC = 1  # config source
OFFSETS_BY_NAME = 9  # later versions of OffsetFetch and OffsetCommit name topics by id


@dataclasses.dataclass(frozen=True)
class Member:
    id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: bytes  # encoded assignment from the group protocol


@dataclasses.dataclass(frozen=True)
class Group:
    id: str
    state: str  # Empty, Stable, PreparingRebalance, CompletingRebalance, Dead
    protocol_type: str
    members: list


class Admin:
    """An admin client, thread-safe like the cluster."""

    def __init__(self, cluster, config, clock):
        self._config = AdminConfig.of(config)
        client_keys.tell(self._config)
        self._cluster, self._clock = cluster.of_client(self._config["client.id"]), clock

    def close(self):
        """Do nothing: the connections belong to the cluster, which others share."""

    # ---- topics

    def create_topics(self, name, partitions=BROKER_DEFAULT, replication=BROKER_DEFAULT, configs=None):
        """Create a topic; return False if it exists."""
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
        """Increase a topic's partition count to `count`."""
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
        """Delete topics. If some fail, the others are still deleted, and the first failure is raised."""

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
        """Return the names of all topics as a set."""
        topics = self._repeat(lambda timeout: self._cluster.topics(timeout))
        return {name for name, topic in topics.items() if internal or not topic.internal}

    def describe_topics(self, *names):
        """Fetch {name: client.Topic} from the cluster; raise if a topic does not exist."""

        def attempt(timeout):
            found = self._cluster.refresh(list(names), timeout=timeout)
            for name in names:
                code = found[name].error_code if name in found else codes.UNKNOWN_TOPIC_OR_PARTITION
                raise_for(code, f"Describing topic '{name}'")
            return {name: found[name] for name in names}

        return self._repeat(attempt)

    def describe_configs(self, topic):
        """Return all of a topic's settings with defaults as {name: value}; a sensitive value is None."""
        return {config.name: config.value for config in self._configs(topic)}

    def own_configs(self, topic):
        """Return {name: value} of the settings that are set on the topic itself."""
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
        """Set a topic's settings {name: value}; None resets one to its default. Others do not change."""
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
        """Return {partition: offset} for {partition: EARLIEST, LATEST or milliseconds}; NO_OFFSET if no record is that late.

        With `isolation` 1 (read committed), LATEST is the last stable offset.
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
        """Delete the records before {partition: offset} (LATEST: all); return {partition: new start offset}."""
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
        """Send one request to each leader; return {partition: the value that `read` extracts from its part of the response}."""
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
        """Return {group: state} for all groups of the cluster."""

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
        """Return a Group; a group that does not exist is Dead and has no members."""

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
        """Return {group: Group}."""
        return {group: self.describe_group(group) for group in groups}

    def delete_group(self, group):
        """Delete a group without members, with its offsets."""

        def attempt(timeout, node):
            (result,) = self._cluster.request(DeleteGroupsRequest(groups_names=[group]), node, timeout).results
            raise_for(result.error_code, f"Deleting group '{group}'")

        self._repeat_at_coordinator(group, attempt)

    def remove_members(self, group, instance_ids):
        """Remove static members so that their partitions are free at once; an unknown member is no error."""
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
        """Return {partition: committed offset} for the given partitions, or for all with a committed offset."""
        return {partition: offset for partition, (offset, _) in self.group_commits(group, partitions).items()}

    def group_commits(self, group, partitions=None):
        """Return {partition: (committed offset, metadata)} for the given partitions, or for all with a committed offset."""
        kind = OffsetFetchRequest.OffsetFetchRequestGroup

        def topics(of):
            if partitions is None:
                return None
            return [of(name=name, partition_indexes=numbers) for name, numbers in _by_topic(partitions).items()]

        def attempt(timeout, node):
            request = OffsetFetchRequest(
                group_id=group,
                topics=topics(OffsetFetchRequest.OffsetFetchRequestTopic),
                # since version 8, replaces the two arguments above
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
        """Commit {partition: offset or (offset, metadata)} for a group without members."""
        kind = OffsetCommitRequest.OffsetCommitRequestTopic

        part = kind.OffsetCommitRequestPartition
        outside = {"generation_id_or_member_epoch": -1, "member_id": "", "group_instance_id": None}  # a commit from outside the group
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
        """Delete a group's offsets for these partitions; a partition without one is no error."""
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

    # ---- retries

    def ask(self, attempt):
        """Call `attempt(cluster, seconds left)` with this client's retries."""
        return self._repeat(lambda timeout: attempt(self._cluster, timeout))

    def _repeat(self, attempt):
        """Call attempt(seconds left) until it succeeds, fails permanently, or default.api.timeout.ms is over."""
        started = self._clock.monotonic()
        deadline = started + self._config.seconds("default.api.timeout.ms")
        backoff = Backoff(self._config, "retry.backoff")
        while True:
            try:
                return attempt(max(0.1, deadline - self._clock.monotonic()))
            except LogRetriableError as error:
                pause = backoff.next()
                if error.java_class == java_name(codes.UNKNOWN_TOPIC_OR_PARTITION):  # may be a new topic; more likely it does not exist
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
