"""ShareGroupHeartbeat, ShareGroupDescribe, DescribeShareGroupOffsets, AlterShareGroupOffsets and DeleteShareGroupOffsets (KIP-932).

Each function gets the node, its call and the decoded request, and returns the response. share_group.py has the share group itself.
"""

import uuid

from standalone.log.broker import share_assignor
from standalone.log.broker.groups import DEAD
from standalone.log.broker.messages import (
    AlterShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponse,
    ShareGroupDescribeResponse,
    ShareGroupHeartbeatResponse,
)
from standalone.log.broker.operations import GROUP, TOPIC
from standalone.log.broker.partitions import LEADER_EPOCH
from standalone.log.broker.refusal import NONE, Refusal, codes

NO_OFFSET = -1
_NO_ID = uuid.UUID(int=0)


# --- Members


def heartbeat(node, call, request):
    """Version 1."""
    if not request.group_id:
        raise Refusal(codes.InvalidGroupIdError, "The group id is empty.")
    for name in request.subscribed_topic_names or ():
        call.require(TOPIC, name)
    share = node.groups.share(request.group_id)
    response = ShareGroupHeartbeatResponse(
        version=call.version,
        error_code=NONE,
        member_id=request.member_id,
        member_epoch=request.member_epoch,
        heartbeat_interval_ms=share.configs()["share.heartbeat.interval.ms"],
        assignment=None,
    )
    member, assignment = share.members.heartbeat(request, (call.client_id or "", call.peer))
    if member is not None:
        response.member_epoch = member.epoch
        call.still_true = share.members.still_true(member, request)
    if assignment is not None:
        Assignment = ShareGroupHeartbeatResponse.Assignment
        found = [
            Assignment.TopicPartitions(version=call.version, topic_id=topic.id, partitions=numbers)
            for topic, numbers in _by_topic(node, assignment)
        ]
        response.assignment = Assignment(version=call.version, topic_partitions=found)
    return response


def _by_topic(node, partitions):
    """[(topic, numbers of its partitions)], without deleted topics."""
    numbers = {}
    for name, number in sorted(partitions):
        numbers.setdefault(name, []).append(number)
    return [(node.topics.get(name), found) for name, found in numbers.items() if node.topics.get(name) is not None]


def describe(node, call, request):
    """Version 1."""
    Group = ShareGroupDescribeResponse.DescribedGroup
    groups = []
    for group_id in request.group_ids:
        described = Group(
            version=call.version, error_code=NONE, group_id=group_id, group_state=DEAD, assignor_name=share_assignor.NAME, members=[]
        )
        groups.append(described)
        try:
            call.require(GROUP, group_id)
            members = node.groups.known_share(group_id).members
            for member in members.members.values():
                for name in member.topics:
                    call.require(TOPIC, name)
        except Refusal as refusal:
            described.error_code, described.error_message = refusal.code, refusal.message
            continue
        described.group_state = members.state
        described.group_epoch = described.assignment_epoch = members.epoch
        described.members = [_member(node, call, Group.Member, members, member) for member in members.members.values()]
        if request.include_authorized_operations:
            described.authorized_operations = sum(1 << operation for operation in call.operations_on(GROUP, group_id))
    return ShareGroupDescribeResponse(version=call.version, groups=groups)


def _member(node, call, Member, members, member):
    TopicPartitions = Member.Assignment.TopicPartitions
    found = [
        TopicPartitions(version=call.version, topic_id=topic.id, topic_name=topic.name, partitions=numbers)
        for topic, numbers in _by_topic(node, members.assigned(member))
    ]
    return Member(
        version=call.version,
        member_id=member.id,
        rack_id=member.rack,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=f"/{member.host}",
        subscribed_topic_names=sorted(member.topics),
        assignment=Member.Assignment(version=call.version, topic_partitions=found),
    )


# --- Offsets


def describe_offsets(node, call, request):
    """Versions 0-1. The share-partition start offsets; -1 for a partition that the group never fetched. With version 1 also the lag."""
    Group = DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup
    groups = []
    for wanted in request.groups:
        group = Group(version=call.version, group_id=wanted.group_id, topics=[], error_code=NONE)
        groups.append(group)
        try:
            call.require(GROUP, wanted.group_id)
            share = node.groups.known_share(wanted.group_id)
        except Refusal as refusal:
            group.error_code, group.error_message = refusal.code, refusal.message
            continue
        asked = {topic.topic_name: topic.partitions for topic in wanted.topics or ()}
        if wanted.topics is None:
            for name, number in sorted(share.partitions):
                if call.may(TOPIC, name):
                    asked.setdefault(name, []).append(number)
        group.topics = [_offsets(node, call, share, name, numbers) for name, numbers in asked.items()]
    return DescribeShareGroupOffsetsResponse(version=call.version, groups=groups)


def _offsets(node, call, share, name, numbers):
    Topic = DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup.DescribeShareGroupOffsetsResponseTopic
    topic = node.topics.get(name) if call.may(TOPIC, name) else None
    found = Topic(version=call.version, topic_name=name, topic_id=topic.id if topic else _NO_ID, partitions=[])
    for number in numbers:
        part = Topic.DescribeShareGroupOffsetsResponsePartition(
            version=call.version, partition_index=number, start_offset=NO_OFFSET, leader_epoch=LEADER_EPOCH, lag=-1, error_code=NONE
        )
        found.partitions.append(part)
        try:
            call.require(TOPIC, name)
            node.topics.partition(name, number)
        except Refusal as refusal:
            part.error_code, part.error_message = refusal.code, refusal.message
            continue
        read = share.partitions.get((name, number))
        if read is not None:
            part.lag, part.start_offset = read.lag, read.in_flight.start
    return found


def alter_offsets(node, call, request):
    """Version 0. Only for a group without members."""
    Topic = AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic
    share = _without_members(node, request.group_id)
    topics = []
    for wanted in request.topics:
        topic = node.topics.get(wanted.topic_name) if call.may(TOPIC, wanted.topic_name) else None
        parts = []
        for part in wanted.partitions:
            answer = Topic.AlterShareGroupOffsetsResponsePartition(version=call.version, partition_index=part.partition_index, error_code=NONE)
            parts.append(answer)
            try:
                call.require(TOPIC, wanted.topic_name)
                partition = node.topics.partition(wanted.topic_name, part.partition_index)
                share.alter(topic, partition, part.start_offset)
            except Refusal as refusal:
                answer.error_code, answer.error_message = refusal.code, refusal.message
        topics.append(Topic(version=call.version, topic_name=wanted.topic_name, topic_id=topic.id if topic else _NO_ID, partitions=parts))
    return AlterShareGroupOffsetsResponse(version=call.version, error_code=NONE, responses=topics)


def delete_offsets(node, call, request):
    """Version 0. Only for a group without members."""
    Topic = DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic
    share = _without_members(node, request.group_id)
    topics = []
    for wanted in request.topics:
        name = wanted.topic_name
        answer = Topic(version=call.version, topic_name=name, topic_id=_NO_ID, error_code=NONE)
        topics.append(answer)
        try:
            call.require(TOPIC, name)
            topic = node.topics.get(name)
            if topic is None:
                raise Refusal(codes.UnknownTopicOrPartitionError, f"There is no topic '{name}'.")
            answer.topic_id = topic.id
            share.delete_offsets(name)
        except Refusal as refusal:
            answer.error_code, answer.error_message = refusal.code, refusal.message
    return DeleteShareGroupOffsetsResponse(version=call.version, error_code=NONE, responses=topics)


def _without_members(node, group_id):
    share = node.groups.known_share(group_id)
    if share.members.members:
        raise Refusal(codes.NonEmptyGroupError, f"Group '{group_id}' has members.")
    return share
