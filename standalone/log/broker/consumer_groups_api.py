"""ConsumerGroupHeartbeat, ConsumerGroupDescribe: groups of the consumer protocol (KIP-848). The logic is in consumer_group.py."""

from standalone.log.broker.consumer_group import HEARTBEAT_MS
from standalone.log.broker.groups import DEAD
from standalone.log.broker.messages import ConsumerGroupDescribeResponse, ConsumerGroupHeartbeatResponse
from standalone.log.broker.operations import GROUP, TOPIC
from standalone.log.broker.refusal import NONE, Refusal, codes

CONSUMER_MEMBER = 1


def heartbeat(node, call, request):
    """Versions 0-1. Join, heartbeat and leave."""
    response = ConsumerGroupHeartbeatResponse(
        version=call.version,
        error_code=NONE,
        member_id=request.member_id,
        member_epoch=request.member_epoch,
        heartbeat_interval_ms=HEARTBEAT_MS,
        assignment=None,
    )
    try:
        if not request.group_id:
            raise Refusal(codes.InvalidGroupIdError, "A group needs an id.")
        for name in request.subscribed_topic_names or ():
            call.require(TOPIC, name)
        consumers = node.groups.consumers(request.group_id)
        member, assignment = consumers.heartbeat(request, (call.client_id or "", call.peer))
        if member is not None:
            response.member_id, response.member_epoch = member.id, member.epoch
            call.still_true = consumers.still_true(member, request)
        if assignment is not None:
            Assignment = ConsumerGroupHeartbeatResponse.Assignment
            response.assignment = Assignment(
                version=call.version, topic_partitions=_by_topic(node, call, assignment, Assignment.TopicPartitions, named=False)
            )
    except Refusal as refusal:
        response.error_code, response.error_message = refusal.code, refusal.message
    return response


def _by_topic(node, call, partitions, TopicPartitions, named):
    topics = {}
    for name, number in sorted(partitions):
        topics.setdefault(name, []).append(number)
    found = []
    for name, numbers in topics.items():
        topic = node.topics.get(name)
        if topic is not None:
            more = {"topic_name": name} if named else {}
            found.append(TopicPartitions(version=call.version, topic_id=topic.id, partitions=numbers, **more))
    return found


def describe(node, call, request):
    """Versions 0-1. Groups of the classic protocol are not found here; DescribeGroups describes them."""
    Group = ConsumerGroupDescribeResponse.DescribedGroup
    groups = []
    for group_id in request.group_ids:
        group = node.groups.get(group_id)
        why_not = _why_not_described(call, group, group_id)
        if why_not:
            groups.append(
                Group(
                    version=call.version,
                    error_code=why_not.code,
                    error_message=why_not.message,
                    group_id=group_id,
                    group_state=DEAD,
                    assignor_name="",
                    members=[],
                )
            )
            continue
        consumers = group.consumers
        described = Group(
            version=call.version,
            error_code=NONE,
            group_id=group_id,
            group_state=consumers.state,
            group_epoch=consumers.epoch,
            assignment_epoch=consumers.epoch,
            assignor_name=consumers.assignor,
            members=[_member(node, call, Group.Member, consumers, member) for member in consumers.members.values()],
        )
        if request.include_authorized_operations:
            described.authorized_operations = sum(1 << operation for operation in call.operations_on(GROUP, group_id))
        groups.append(described)
    return ConsumerGroupDescribeResponse(version=call.version, groups=groups)


def _why_not_described(call, group, group_id):
    """Return a Refusal or None."""
    if not call.may(GROUP, group_id):
        return Refusal(codes.GroupAuthorizationFailedError)
    if group is None or group.consumers is None:
        return Refusal(codes.GroupIdNotFoundError, f"There is no group '{group_id}' by the consumer protocol.")
    topics = {name for member in group.consumers.members.values() for name, _ in member.assigned | group.consumers.target(member)}
    if not all(call.may(TOPIC, name) for name in topics):
        return Refusal(codes.TopicAuthorizationFailedError, f"Group '{group_id}' reads topics that may not be described.")
    return None


def _member(node, call, Member, consumers, member):
    def assignment(partitions):
        TopicPartitions = Member.Assignment.TopicPartitions
        return Member.Assignment(version=call.version, topic_partitions=_by_topic(node, call, partitions, TopicPartitions, named=True))

    described = Member(
        version=call.version,
        member_id=member.id,
        instance_id=member.instance_id,
        rack_id=member.rack,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=f"/{member.host}",
        subscribed_topic_names=sorted(member.topics),
        subscribed_topic_regex=member.pattern.pattern if member.pattern else None,
        assignment=assignment(member.assigned),
        target_assignment=assignment(consumers.target(member)),
    )
    described.member_type = CONSUMER_MEMBER
    return described
