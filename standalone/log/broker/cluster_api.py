"""Requests of admin tools: log folders, quorum, replicas and leaders, leader epochs, quotas.

Each handler gets the node, its call and the decoded request, and returns the response. There is one node, which leads every
partition in epoch 0 forever, so most responses are constant.
"""

import os

from kafka.protocol.admin import (
    AlterClientQuotasResponse,
    AlterPartitionReassignmentsResponse,
    AlterReplicaLogDirsResponse,
    DescribeClientQuotasResponse,
    DescribeLogDirsResponse,
    DescribeQuorumResponse,
    ElectLeadersResponse,
    ListPartitionReassignmentsResponse,
)
from kafka.protocol.consumer import OffsetForLeaderEpochResponse

from standalone.log.broker.node import NODE_ID
from standalone.log.broker.operations import CLUSTER, TOPIC
from standalone.log.broker.partitions import LEADER_EPOCH
from standalone.log.broker.refusal import NONE, Refusal, codes

QUORUM_TOPIC = "__cluster_metadata"
EXACT, DEFAULT, ANY = 0, 1, 2  # match types of a quota entity component
_QUOTAS = "quota"


def describe_log_dirs(node, call, request):
    """Versions 1-5. One folder, with the size of each partition and the free disk space."""
    Result = DescribeLogDirsResponse.DescribeLogDirsResult
    Topic = Result.DescribeLogDirsTopic
    wanted = None if request.topics is None else {topic.topic: set(topic.partitions) for topic in request.topics}
    topics = []
    for topic in node.topics:
        if wanted is not None and topic.name not in wanted:
            continue
        parts = [
            Topic.DescribeLogDirsPartition(
                version=call.version, partition_index=p.number, partition_size=p.size, offset_lag=0, is_future_key=False
            )
            for p in topic.partitions
            if wanted is None or not wanted[topic.name] or p.number in wanted[topic.name]
        ]
        topics.append(Topic(version=call.version, name=topic.name, partitions=parts))
    disk = os.statvfs(node.folder)
    result = Result(version=call.version, error_code=NONE, log_dir=node.folder, topics=topics)
    result.total_bytes, result.usable_bytes = disk.f_frsize * disk.f_blocks, disk.f_frsize * disk.f_bavail
    return DescribeLogDirsResponse(version=call.version, results=[result])


def alter_replica_log_dirs(node, call, request):
    """Versions 1-2. There is one folder: a replica can only stay in it."""
    Topic = AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult
    Part = Topic.AlterReplicaLogDirPartitionResult
    results = {}
    for folder in request.dirs:
        error = NONE if os.path.abspath(folder.path) == node.folder else codes.LogDirNotFoundError.errno
        if not call.may(CLUSTER):
            error = codes.ClusterAuthorizationFailedError.errno
        for topic in folder.topics:
            parts = [Part(version=call.version, partition_index=number, error_code=error) for number in topic.partitions]
            results.setdefault(topic.name, []).extend(parts)
    topics = [Topic(version=call.version, topic_name=name, partitions=parts) for name, parts in results.items()]
    return AlterReplicaLogDirsResponse(version=call.version, results=topics)


def describe_quorum(node, call, request):
    """Versions 0-2. This node is the only voter and the leader."""
    Topic = DescribeQuorumResponse.TopicData
    Part = Topic.PartitionData
    now = node.clock.now_ms()
    topics = []
    for topic in request.topics:
        parts = []
        for wanted in topic.partitions:
            if topic.topic_name != QUORUM_TOPIC or wanted.partition_index != 0:
                error = codes.UnknownTopicOrPartitionError.errno
                part = Part(
                    version=call.version, partition_index=wanted.partition_index, error_code=error, current_voters=[], observers=[]
                )
            else:
                voter = Part.ReplicaState(version=call.version, replica_id=NODE_ID, log_end_offset=node.store.writes)
                voter.last_fetch_timestamp = voter.last_caught_up_timestamp = now
                part = Part(
                    version=call.version,
                    partition_index=0,
                    error_code=NONE,
                    leader_id=NODE_ID,
                    leader_epoch=LEADER_EPOCH,
                    high_watermark=node.store.writes,
                    current_voters=[voter],
                    observers=[],
                )
            parts.append(part)
        topics.append(Topic(version=call.version, topic_name=topic.topic_name, partitions=parts))
    response = DescribeQuorumResponse(version=call.version, error_code=NONE, topics=topics)
    if call.version >= 2:
        host, port = call.address
        Node = DescribeQuorumResponse.Node
        listener = Node.Listener(version=call.version, name="CONTROLLER", host=host, port=port)
        response.nodes = [Node(version=call.version, node_id=NODE_ID, listeners=[listener])]
    return response


def list_partition_reassignments(node, call, request):
    """Version 0. The list is always empty."""
    return ListPartitionReassignmentsResponse(version=call.version, error_code=NONE, error_message=None, topics=[])


def alter_partition_reassignments(node, call, request):
    """Versions 0-1. A partition may be assigned to this node only, where it is; there is nothing to cancel."""
    Topic = AlterPartitionReassignmentsResponse.ReassignableTopicResponse
    topics = []
    for topic in request.topics:
        parts = []
        for wanted in topic.partitions:
            part = Topic.ReassignablePartitionResponse(
                version=call.version, partition_index=wanted.partition_index, error_code=NONE, error_message=None
            )
            try:
                node.topics.partition(topic.name, wanted.partition_index)
                if wanted.replicas is None:
                    raise Refusal(codes.NoReassignmentInProgressError, "No reassignment is in progress.")
                if list(wanted.replicas) != [NODE_ID]:
                    raise Refusal(
                        codes.InvalidReplicationAssignmentError, f"A partition can be assigned to broker {NODE_ID} alone: there is no other."
                    )
            except Refusal as refusal:
                part.error_code, part.error_message = refusal.code, refusal.message
            parts.append(part)
        topics.append(Topic(version=call.version, name=topic.name, partitions=parts))
    return AlterPartitionReassignmentsResponse(version=call.version, error_code=NONE, error_message=None, responses=topics)


def elect_leaders(node, call, request):
    """Versions 0-2. Every partition already has its preferred leader."""
    Result = ElectLeadersResponse.ReplicaElectionResult
    if request.topic_partitions is None:  # all partitions: those that need no election are not named
        return ElectLeadersResponse(version=call.version, replica_election_results=[])
    results = []
    for topic in request.topic_partitions:
        parts = []
        for number in topic.partitions:
            error, message = codes.ElectionNotNeededError.errno, "The leader is the one it should be."
            try:
                node.topics.partition(topic.topic, number)
            except Refusal as refusal:
                error, message = refusal.code, refusal.message
            parts.append(Result.PartitionResult(version=call.version, partition_id=number, error_code=error, error_message=message))
        results.append(Result(version=call.version, topic=topic.topic, partition_result=parts))
    return ElectLeadersResponse(version=call.version, replica_election_results=results)


def offset_for_leader_epoch(node, call, request):
    """Versions 2-4. Epoch 0 continues to the end of the log and is the latest."""
    Topic = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult
    topics = []
    for topic in request.topics:
        parts = []
        for wanted in topic.partitions:
            part = Topic.EpochEndOffset(version=call.version, partition=wanted.partition, error_code=NONE)
            try:
                call.require(TOPIC, topic.topic)
                partition = node.topics.partition(topic.topic, wanted.partition)
                if wanted.current_leader_epoch > LEADER_EPOCH:
                    raise Refusal(codes.UnknownLeaderEpochError)
                if wanted.leader_epoch == LEADER_EPOCH:
                    part.leader_epoch, part.end_offset = LEADER_EPOCH, partition.end
            except Refusal as refusal:
                part.error_code = refusal.code
            parts.append(part)
        topics.append(Topic(version=call.version, topic=topic.topic, partitions=parts))
    return OffsetForLeaderEpochResponse(version=call.version, topics=topics)


# --- Quotas: stored and described, not enforced


def describe_client_quotas(node, call, request):
    """Versions 0-1."""
    Entry = DescribeClientQuotasResponse.EntryData
    entries = []
    for body in node.store.documents(_QUOTAS).values():
        entity = {kind: name for kind, name in body["entity"]}
        if _matches(entity, request.components, request.strict):
            entries.append(
                Entry(
                    version=call.version,
                    entity=[Entry.EntityData(version=call.version, entity_type=kind, entity_name=name) for kind, name in body["entity"]],
                    values=[Entry.ValueData(version=call.version, key=key, value=value) for key, value in body["values"].items()],
                )
            )
    return DescribeClientQuotasResponse(version=call.version, error_code=NONE, error_message=None, entries=entries)


def _matches(entity, components, strict):
    for component in components:
        kind = component.entity_type
        if kind not in entity:
            return False
        if component.match_type == EXACT and entity[kind] != component.match:
            return False
        if component.match_type == DEFAULT and entity[kind] is not None:
            return False
    return not strict or set(entity) == {component.entity_type for component in components}


def alter_client_quotas(node, call, request):
    """Versions 0-1. Quotas are stored and described; no client is throttled."""
    Entry = AlterClientQuotasResponse.EntryData
    entries = []
    for wanted in request.entries:
        pairs = sorted(((entity.entity_type, entity.entity_name) for entity in wanted.entity), key=str)
        name, entity = repr(pairs), [Entry.EntityData(version=call.version, entity_type=kind, entity_name=value) for kind, value in pairs]
        if not call.may(CLUSTER):
            error = codes.ClusterAuthorizationFailedError.errno
            entries.append(Entry(version=call.version, error_code=error, error_message=None, entity=entity))
            continue
        body = node.store.documents(_QUOTAS).get(name, {"entity": pairs, "values": {}})
        for change in wanted.ops:
            if change.remove:
                body["values"].pop(change.key, None)
            else:
                body["values"][change.key] = change.value
        if not request.validate_only:
            if body["values"]:
                node.store.save_document(_QUOTAS, name, body)
            else:
                node.store.delete_document(_QUOTAS, name)
        entries.append(Entry(version=call.version, error_code=NONE, error_message=None, entity=entity))
    return AlterClientQuotasResponse(version=call.version, entries=entries)
