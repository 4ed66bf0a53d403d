"""Group requests: FindCoordinator, membership, committed offsets, describing groups. One handler per request.

Each handler gets the node, its call and the decoded request; it returns the response, or None if the response follows later.
Group logic is in groups.py; here requests are parsed and responses built.
"""

import functools

from kafka.protocol.admin import DeleteGroupsResponse, DescribeGroupsResponse, ListGroupsResponse
from kafka.protocol.consumer import (
    HeartbeatResponse,
    JoinGroupResponse,
    LeaveGroupResponse,
    OffsetCommitResponse,
    OffsetDeleteResponse,
    OffsetFetchResponse,
    SyncGroupResponse,
)
from kafka.protocol.metadata import FindCoordinatorResponse

from standalone.log.broker.groups import DEAD, EMPTY, MAX_METADATA, PREPARING
from standalone.log.broker.member import Committed
from standalone.log.broker.node import NODE_ID
from standalone.log.broker.operations import CLUSTER, CLUSTER_ACTION, GROUP, TOPIC, TRANSACTIONAL_ID
from standalone.log.broker.refusal import NONE, Refusal, codes

GROUP_KEY, TRANSACTION_KEY, SHARE_KEY = 0, 1, 2
CLASSIC, CONSUMER, SHARE = "classic", "consumer", "share"
NO_OFFSET, NO_EPOCH = -1, -1
_NEVER = Committed(NO_OFFSET, NO_EPOCH, "")


def find_coordinator(node, call, request):
    """Versions 0-6. This node coordinates every group, every transaction and, from version 6 on, every share partition."""
    host, port = call.address

    def answer(key):
        try:
            _require_coordinated(call, request.key_type, key)
        except Refusal as refusal:
            return {"error_code": refusal.code, "error_message": refusal.message, "node_id": -1, "host": "", "port": -1}
        return {"error_code": NONE, "error_message": None, "node_id": NODE_ID, "host": host, "port": port}

    if call.version < 4:
        return FindCoordinatorResponse(version=call.version, **answer(request.key))
    Coordinator = FindCoordinatorResponse.Coordinator
    found = [Coordinator(version=call.version, key=key, **answer(key)) for key in request.coordinator_keys]
    return FindCoordinatorResponse(version=call.version, coordinators=found)


def _require_coordinated(call, kind, key):
    if kind == SHARE_KEY and call.version >= 6:
        call.require(CLUSTER, operation=CLUSTER_ACTION)
        if len(key.rsplit(":", 2)) != 3:
            raise Refusal(codes.InvalidRequestError, f"'{key}' names no share partition: groupId:topicId:partition does.")
    elif kind in (GROUP_KEY, TRANSACTION_KEY):
        call.require(GROUP if kind == GROUP_KEY else TRANSACTIONAL_ID, key)
    else:
        raise Refusal(codes.InvalidRequestError, f"Groups, transactions and share partitions have coordinators, nothing of kind {kind}.")


# --- Members


def join_group(node, call, request):
    """Versions 0-9. Responds when all members have joined. No initial rebalance delay: a second member starts another rebalance."""

    def reply(joined):
        Member = JoinGroupResponse.JoinGroupResponseMember
        members = [
            Member(version=call.version, member_id=member_id, group_instance_id=instance_id, metadata=metadata)
            for member_id, instance_id, metadata in joined.members
        ]
        # Versions below 7 cannot encode null.
        protocol = joined.protocol if joined.protocol is not None or call.version >= 7 else ""
        call.answer(
            JoinGroupResponse(
                version=call.version,
                error_code=joined.error,
                generation_id=joined.generation,
                protocol_type=joined.protocol_type,
                protocol_name=protocol,
                leader=joined.leader if call.version >= 9 or not joined.skip_assignment else "",
                skip_assignment=joined.skip_assignment,
                member_id=joined.member_id,
                members=members if call.version >= 9 or not joined.skip_assignment else [],
            )
        )

    if not request.group_id:
        return _join_refused(call, request, codes.InvalidGroupIdError)
    group = node.groups.get(request.group_id)
    if group is None and request.member_id:
        return _join_refused(call, request, codes.UnknownMemberIdError)
    node.groups.make(request.group_id).join(
        request.member_id,
        request.group_instance_id,
        (call.client_id, call.peer),
        request.session_timeout_ms,
        request.rebalance_timeout_ms if call.version >= 1 else request.session_timeout_ms,
        request.protocol_type,
        [(protocol.name, protocol.metadata) for protocol in request.protocols],
        call.version >= 4,
        reply,
    )
    return None


def _join_refused(call, request, kind):
    protocol = None if call.version >= 7 else ""
    return JoinGroupResponse(
        version=call.version, error_code=kind.errno, protocol_name=protocol, leader="", member_id=request.member_id, members=[]
    )


def sync_group(node, call, request):
    """Versions 0-5. Responds when the leader has sent the assignment."""

    def reply(synced):
        call.answer(
            SyncGroupResponse(
                version=call.version,
                error_code=synced.error,
                protocol_type=synced.protocol_type,
                protocol_name=synced.protocol,
                assignment=synced.assignment,
            )
        )

    group = node.groups.get(request.group_id)
    if group is None:
        return SyncGroupResponse(version=call.version, error_code=codes.UnknownMemberIdError.errno, assignment=b"")
    group.sync(
        request.member_id,
        request.group_instance_id,
        request.generation_id,
        request.protocol_type,
        request.protocol_name,
        {assignment.member_id: assignment.assignment for assignment in request.assignments},
        reply,
    )
    return None


def heartbeat(node, call, request):
    """Versions 0-4."""
    group = node.groups.get(request.group_id)
    error = codes.UnknownMemberIdError.errno
    if group is not None:
        lives = functools.partial(group.heartbeat, request.member_id, request.group_instance_id, request.generation_id)
        error = lives()
        if error == NONE:
            call.still_true = lambda: lives() == NONE
    return HeartbeatResponse(version=call.version, error_code=error)


def leave_group(node, call, request):
    """Versions 0-5. From version 3 on, several members at once, also by instance id, as admin clients remove them."""
    group = node.groups.get(request.group_id)

    def leave(member_id, instance_id):
        if group is not None and group.has_consumers:
            removed = group.consumers.remove_instance(instance_id, member_id)
            return NONE if removed else codes.UnknownMemberIdError.errno
        return group.leave(member_id, instance_id) if group is not None else codes.UnknownMemberIdError.errno

    if call.version < 3:
        return LeaveGroupResponse(version=call.version, error_code=leave(request.member_id, None))
    Member = LeaveGroupResponse.MemberResponse
    members = [
        Member(
            version=call.version,
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            error_code=leave(member.member_id, member.group_instance_id),
        )
        for member in request.members
    ]
    return LeaveGroupResponse(version=call.version, error_code=NONE, members=members)


# --- Committed offsets


def offset_commit(node, call, request):
    """Versions 2-9. The records before a committed offset are fsynced first, so no offset outlives its records. A group's commits are stored
    in the order received, even if one of them waits for an fsync.

    Offsets do not expire; the retention time of versions 2-4 is ignored. Not implemented: member epochs of the consumer protocol.
    """
    Topic = OffsetCommitResponse.OffsetCommitResponseTopic
    errors, wanted = {}, {}
    try:
        call.require(GROUP, request.group_id)
        _check_commit(node, request)
        whole = NONE
    except Refusal as refusal:
        whole = refusal.code
    behind = []
    for topic in request.topics:
        for part in topic.partitions:
            key = (topic.name, part.partition_index)
            errors[key] = whole
            if whole != NONE:
                continue
            try:
                call.require(TOPIC, topic.name)
                partition = node.topics.partition(*key)
                if len(part.committed_metadata or "") > MAX_METADATA:
                    raise Refusal(codes.OffsetMetadataTooLargeError)
            except Refusal as refusal:
                errors[key] = refusal.code
                continue
            wanted[key] = Committed(part.committed_offset, part.committed_leader_epoch, part.committed_metadata or "")
            if partition.durable < min(part.committed_offset, partition.end):
                behind.append(partition)

    def flushed(flush_errors):
        try:
            if flush_errors:
                raise Refusal(codes.KafkaStorageError, flush_errors[0])
            if wanted:
                node.groups.make(request.group_id).commit(wanted, node.clock.now_ms())
        except Refusal:
            # The disk is full or failing: clients retry after this code, but not after KAFKA_STORAGE_ERROR.
            errors.update(dict.fromkeys(wanted, codes.CoordinatorNotAvailableError.errno))
        topics = [
            Topic(
                version=call.version,
                name=topic.name,
                partitions=[
                    Topic.OffsetCommitResponsePartition(
                        version=call.version, partition_index=part.partition_index, error_code=errors[topic.name, part.partition_index]
                    )
                    for part in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        call.answer(OffsetCommitResponse(version=call.version, topics=topics))

    if wanted:
        flushed = node.groups.make(request.group_id).commits.enter(flushed)
    if behind:
        node.flush(flushed, behind)
    else:
        flushed([])


def _check_commit(node, request):
    if not request.group_id:
        raise Refusal(codes.InvalidGroupIdError)
    generation = request.generation_id_or_member_epoch
    group = node.groups.get(request.group_id)
    if group is None:
        if generation >= 0:
            raise Refusal(codes.IllegalGenerationError)
        return
    group.check_commit(request.member_id, request.group_instance_id, generation)


def offset_fetch(node, call, request):
    """Versions 1-9. A partition without a commit is -1. Waits for commits in progress: a member's successor asks for them."""
    if call.version > 1 and call.version < 8:
        call.require(GROUP, request.group_id)
    names = [request.group_id] if call.version < 8 else [wanted.group_id for wanted in request.groups]
    _when_committed([group for group in map(node.groups.get, names) if group is not None], lambda: call.answer(_offsets(node, call, request)))


def _when_committed(groups, then):
    """Call `then` after the commits that are in progress now."""
    if not groups:
        then()
        return

    def go_on():
        _when_committed(groups[1:], then)

    if groups[0].commits.is_waiting:
        go_on = groups[0].commits.enter(go_on)
    go_on()


def _offsets(node, call, request):
    if call.version < 8:
        Topic = OffsetFetchResponse.OffsetFetchResponseTopic
        topics = _fetched(node, call, request, request.group_id, request.topics, Topic, Topic.OffsetFetchResponsePartition)
        return OffsetFetchResponse(version=call.version, error_code=NONE, topics=topics)
    Group = OffsetFetchResponse.OffsetFetchResponseGroup
    Topic = Group.OffsetFetchResponseTopics
    groups = []
    for wanted in request.groups:
        group = Group(version=call.version, group_id=wanted.group_id, topics=[], error_code=NONE)
        try:
            call.require(GROUP, wanted.group_id)
            group.topics = _fetched(node, call, request, wanted.group_id, wanted.topics, Topic, Topic.OffsetFetchResponsePartitions)
        except Refusal as refusal:
            group.error_code = refusal.code
        groups.append(group)
    return OffsetFetchResponse(version=call.version, groups=groups)


def _fetched(node, call, request, group_id, topics, Topic, Partition):
    version = call.version
    forbidden = NONE if call.may(GROUP, group_id) else codes.GroupAuthorizationFailedError.errno  # version 1 reports it per partition

    def error(name, number):
        if forbidden or not call.may(TOPIC, name):
            return forbidden or codes.TopicAuthorizationFailedError.errno
        unstable = request.require_stable and node.transactions.has_pending_offset(group_id, name, number)
        return codes.UnstableOffsetCommitError.errno if unstable else NONE

    def found(name, number):
        if forbidden or not call.may(TOPIC, name):
            return _NEVER
        return known.get((name, number), _NEVER)

    group = node.groups.get(group_id)
    known = group.offsets if group is not None else {}
    if topics is None:
        asked = {}
        for name, number in sorted(known):
            if call.may(TOPIC, name):
                asked.setdefault(name, []).append(number)
    else:
        asked = {topic.name: topic.partition_indexes for topic in topics}
    return [
        Topic(
            version=version,
            name=name,
            partitions=[
                Partition(
                    version=version,
                    partition_index=number,
                    committed_offset=committed.offset,
                    committed_leader_epoch=committed.leader_epoch,
                    metadata=committed.metadata,
                    error_code=error(name, number),
                )
                for number, committed in ((number, found(name, number)) for number in numbers)
            ],
        )
        for name, numbers in asked.items()
    ]


def offset_delete(node, call, request):
    """Version 0. Refused while a member subscribes to the topic."""
    Topic = OffsetDeleteResponse.OffsetDeleteResponseTopic
    group = node.groups.get(request.group_id)
    if group is None:
        return OffsetDeleteResponse(version=call.version, error_code=codes.GroupIdNotFoundError.errno, topics=[])
    topics = []
    for wanted in request.topics:
        parts = []
        for part in wanted.partitions:
            error = NONE
            try:
                call.require(TOPIC, wanted.name)
                group.delete_offset(wanted.name, part.partition_index)
            except Refusal as refusal:
                error = refusal.code
            Part = Topic.OffsetDeleteResponsePartition
            parts.append(Part(version=call.version, partition_index=part.partition_index, error_code=error))
        topics.append(Topic(version=call.version, name=wanted.name, partitions=parts))
    return OffsetDeleteResponse(version=call.version, error_code=NONE, topics=topics)


# --- Describing groups


def list_groups(node, call, request):
    """Versions 0-5, filtered by state and by type."""
    Group = ListGroupsResponse.ListedGroup
    all_of_them = call.may(CLUSTER)
    states = {state.lower() for state in request.states_filter or ()}
    types = {kind.lower() for kind in request.types_filter or ()}
    groups = [
        Group(
            version=call.version,
            group_id=group.id,
            protocol_type=group.protocol_type or "" if kind == CLASSIC else kind,
            group_state=state,
            group_type=kind,
        )
        for group, kind, state in map(_kind_and_state, node.groups)
        if (all_of_them or call.may(GROUP, group.id))
        and (not states or state.lower() in states) and (not types or kind in types)
    ]
    return ListGroupsResponse(version=call.version, error_code=NONE, groups=groups)


def _kind_and_state(group):
    if group.consumers is not None:
        return group, CONSUMER, group.consumers.state
    if group.share is not None:
        return group, SHARE, group.share.members.state
    return group, CLASSIC, group.state


def describe_groups(node, call, request):
    """Versions 0-6. An unknown group is Dead, and from version 6 on also an error."""
    Group = DescribeGroupsResponse.DescribedGroup
    groups = []
    for group_id in request.groups:
        if not call.may(GROUP, group_id):
            error = codes.GroupAuthorizationFailedError.errno
            blank = dict.fromkeys(("group_state", "protocol_type", "protocol_data"), "")
            groups.append(Group(version=call.version, error_code=error, error_message=None, group_id=group_id, members=[], **blank))
            continue
        group = node.groups.get(group_id)
        if group is not None and (group.consumers is not None or group.share is not None):
            group = None  # ConsumerGroupDescribe or ShareGroupDescribe reports it
        if group is None:
            error = codes.GroupIdNotFoundError.errno if call.version >= 6 else NONE
            message = f"There is no group '{group_id}'." if call.version >= 6 else None
            groups.append(
                Group(
                    version=call.version,
                    error_code=error,
                    error_message=message,
                    group_id=group_id,
                    group_state=DEAD,
                    protocol_type="",
                    protocol_data="",
                    members=[],
                )
            )
            continue
        settled = group.state not in (EMPTY, PREPARING)
        described = Group(
            version=call.version,
            error_code=NONE,
            group_id=group_id,
            group_state=group.state,
            protocol_type=group.protocol_type or "",
            protocol_data=(group.protocol or "") if settled else "",
            members=[
                Group.DescribedGroupMember(
                    version=call.version,
                    member_id=member.id,
                    group_instance_id=member.instance_id,
                    client_id=member.client_id or "",
                    client_host=f"/{member.host}",
                    member_metadata=member.metadata(group.protocol) if settled else b"",
                    member_assignment=member.assignment,
                )
                for member in group.members.values()
            ],
        )
        if request.include_authorized_operations:
            described.authorized_operations = call.operations_on(GROUP, group_id)
        groups.append(described)
    return DescribeGroupsResponse(version=call.version, groups=groups)


def delete_groups(node, call, request):
    """Versions 0-2. Only groups without members."""
    Result = DeleteGroupsResponse.DeletableGroupResult
    results = []
    for group_id in request.groups_names:
        error = NONE
        try:
            call.require(GROUP, group_id)
            node.groups.delete(group_id)
        except Refusal as refusal:
            error = refusal.code
        results.append(Result(version=call.version, group_id=group_id, error_code=error))
    return DeleteGroupsResponse(version=call.version, results=results)
