"""ApiVersions, Metadata, DescribeCluster, CreateTopics, DeleteTopics, CreatePartitions, DescribeTopicPartitions.

Each handler gets the node, its call and the decoded request, and returns the response.
"""

import uuid

from kafka.protocol.admin import (
    CreatePartitionsResponse,
    CreateTopicsResponse,
    DeleteTopicsResponse,
    DescribeClusterResponse,
    DescribeTopicPartitionsResponse,
)
from kafka.protocol.metadata import ApiVersionsResponse, MetadataResponse

from standalone.log.broker import options
from standalone.log.broker.configs_api import as_text, source_of
from standalone.log.broker.node import NODE_ID
from standalone.log.broker.operations import CLUSTER, CREATE, DESCRIBE, DESCRIBE_CONFIGS, TOPIC
from standalone.log.broker.partitions import LEADER_EPOCH
from standalone.log.broker.refusal import NONE, Refusal, codes

UNKNOWN_ID = uuid.UUID(int=0)
# KIP-932: share groups; KIP-890: each end of a transaction raises the epoch
FEATURES = (("share.version", 1), ("transaction.version", 2))

def api_versions(node, call, request):
    """Versions 0-4. The supported requests. The server answers newer versions itself, in version 0."""
    response = ApiVersionsResponse(version=call.version, error_code=NONE, api_keys=_api_keys(node, call.version))
    if call.version >= 3:
        Supported, Finalized = ApiVersionsResponse.SupportedFeatureKey, ApiVersionsResponse.FinalizedFeatureKey
        response.supported_features = [Supported(version=call.version, name=name, min_version=1, max_version=level) for name, level in FEATURES]
        response.finalized_features = [
            Finalized(version=call.version, name=name, min_version_level=level, max_version_level=level) for name, level in FEATURES
        ]
        response.finalized_features_epoch = 0
    return response


def api_versions_unknown(node, call):
    """Answer a newer version in version 0 with the supported range, so that the client retries."""
    keys = [key for key in _api_keys(node, 0) if key.api_key == ApiVersionsResponse.API_KEY]
    return ApiVersionsResponse(version=0, error_code=codes.UnsupportedVersionError.errno, api_keys=keys)


def _api_keys(node, version):
    Key = ApiVersionsResponse.ApiVersion
    return [Key(version=version, api_key=key, min_version=low, max_version=high) for key, low, high in node.api_versions]


def metadata(node, call, request):
    """Versions 0-13. One broker: this one, with the address that the client connected to.

    An unknown topic is created if the client allows it and embedded.log.auto.create.topics.enable is set.
    """
    Topic = MetadataResponse.MetadataResponseTopic
    if request.topics is None or (call.version == 0 and not request.topics):
        found = [_describe(call, request, topic) for topic in node.topics if call.may(TOPIC, topic.name)]
    else:
        found = []
        for wanted in request.topics:
            try:
                found.append(_describe(call, request, _find_or_make(node, call, request, wanted)))
            except Refusal as refusal:
                found.append(
                    Topic(version=call.version, error_code=refusal.code, name=wanted.name, topic_id=wanted.topic_id, partitions=[])
                )
    host, port = call.address
    Broker = MetadataResponse.MetadataResponseBroker
    response = MetadataResponse(
        version=call.version,
        brokers=[Broker(version=call.version, node_id=NODE_ID, host=host, port=port, rack=None)],
        cluster_id=node.store.cluster_id,
        controller_id=NODE_ID,
        topics=found,
    )
    if request.include_cluster_authorized_operations and call.may(CLUSTER, operation=DESCRIBE):
        response.authorized_operations = call.operations_on(CLUSTER)
    return response


def _find_or_make(node, call, request, wanted):
    if wanted.name is None:
        topic = node.topics.by_id(wanted.topic_id)
        if topic is None or not call.may(TOPIC, topic.name):
            raise Refusal(codes.UnknownTopicIdError)
        return topic
    call.require(TOPIC, wanted.name)
    topic = node.topics.get(wanted.name)
    if topic is not None:
        return topic
    if request.allow_auto_topic_creation and node.settings["embedded.log.auto.create.topics.enable"]:
        if not call.may(CLUSTER, operation=CREATE):
            call.require(TOPIC, wanted.name, CREATE)
        return node.topics.create(wanted.name)
    raise Refusal(codes.UnknownTopicOrPartitionError)


def _describe(call, request, topic):
    Topic = MetadataResponse.MetadataResponseTopic
    partitions = [
        Topic.MetadataResponsePartition(
            version=call.version,
            error_code=NONE,
            partition_index=partition.number,
            leader_id=NODE_ID,
            leader_epoch=LEADER_EPOCH,
            replica_nodes=[NODE_ID],
            isr_nodes=[NODE_ID],
            offline_replicas=[],
        )
        for partition in topic.partitions
    ]
    described = Topic(
        version=call.version, error_code=NONE, name=topic.name, topic_id=topic.id, is_internal=False, partitions=partitions
    )
    if request.include_topic_authorized_operations:
        described.authorized_operations = call.operations_on(TOPIC, topic.name)
    return described


def describe_cluster(node, call, request):
    """Versions 0-2. The only broker. Not implemented: controllers (endpoint type 2)."""
    if request.endpoint_type != 1:
        return DescribeClusterResponse(
            version=call.version,
            error_code=codes.UnsupportedEndpointTypeError.errno,
            error_message="The embedded log is a single broker without separate controllers.",
            cluster_id="",
            brokers=[],
        )
    host, port = call.address
    broker = DescribeClusterResponse.DescribeClusterBroker(version=call.version, broker_id=NODE_ID, host=host, port=port, rack=None)
    response = DescribeClusterResponse(
        version=call.version, cluster_id=node.store.cluster_id, controller_id=NODE_ID, brokers=[broker]
    )
    if request.include_cluster_authorized_operations and call.may(CLUSTER, operation=DESCRIBE):
        response.authorized_operations = call.operations_on(CLUSTER)
    return response


def create_topics(node, call, request):
    """Versions 2-7. Replication factor 1 or -1, or a manual assignment to this node; all of Kafka's topic configs."""
    Result = CreateTopicsResponse.CreatableTopicResult
    names = [wanted.name for wanted in request.topics]
    results = []
    for wanted in request.topics:
        result = Result(version=call.version, name=wanted.name, error_code=NONE, error_message=None, configs=None)
        try:
            if not call.may(CLUSTER):
                call.require(TOPIC, wanted.name)
            if names.count(wanted.name) > 1:
                raise Refusal(codes.InvalidRequestError, f"Topic '{wanted.name}' is named more than once.")
            partitions = _partitions_wanted(node, wanted)
            configs = {config.name: config.value for config in wanted.configs}
            node.topics.check_new(wanted.name, partitions, configs)
            if not request.validate_only:
                result.topic_id = node.topics.create(wanted.name, partitions, configs).id
            result.num_partitions, result.replication_factor = partitions, 1
            if call.version >= 5 and not call.may(TOPIC, wanted.name, DESCRIBE_CONFIGS):
                result.topic_config_error_code = codes.TopicAuthorizationFailedError.errno
                result.num_partitions = result.replication_factor = -1
            elif call.version >= 5:
                result.configs = _created_configs(node, call, configs)
        except Refusal as refusal:
            result.error_code, result.error_message = refusal.code, refusal.message
        results.append(result)
    return CreateTopicsResponse(version=call.version, topics=results)


def _created_configs(node, call, configs):
    Config = CreateTopicsResponse.CreatableTopicResult.CreatableTopicConfigs
    values = options.topic_values(configs, node.settings)
    return [
        Config(version=call.version, name=name, value=as_text(value), config_source=source_of(node, name, configs))
        for name, value in values.items()
    ]


def _partitions_wanted(node, wanted):
    if wanted.assignments:
        numbers = sorted(assignment.partition_index for assignment in wanted.assignments)
        elsewhere = any(list(assignment.broker_ids) != [NODE_ID] for assignment in wanted.assignments)
        if numbers != list(range(len(numbers))) or elsewhere:
            raise Refusal(
                codes.InvalidReplicationAssignmentError, f"Every partition, from 0 on, can be assigned to broker {NODE_ID} alone."
            )
        return len(numbers)
    if wanted.replication_factor not in (-1, 1):
        raise Refusal(
            codes.InvalidReplicationFactorError,
            f"Topic '{wanted.name}' cannot have {wanted.replication_factor} replicas: the embedded log is a single node. Use 1 or -1.",
        )
    return node.settings["embedded.log.num.partitions"] if wanted.num_partitions == -1 else wanted.num_partitions


def delete_topics(node, call, request):
    """Versions 1-6. Deletes records, configs and committed offsets at once."""
    Result = DeleteTopicsResponse.DeletableTopicResult
    if call.version >= 6:
        wanted = [(state.name, state.topic_id) for state in request.topics]
    else:
        wanted = [(name, None) for name in request.topic_names]
    results = []
    for name, topic_id in wanted:
        result = Result(version=call.version, name=name, topic_id=topic_id, error_code=NONE, error_message=None)
        try:
            topic = node.topics.by_id(topic_id) if name is None else node.topics.get(name)
            if topic is not None and name is None and not call.may(TOPIC, topic.name, DESCRIBE):
                raise Refusal(codes.TopicAuthorizationFailedError)  # without the name, which this client may not see
            if topic is not None or name is not None:
                call.require(TOPIC, topic.name if topic is not None else name)
            if topic is None and name is None:
                raise Refusal(codes.UnknownTopicIdError, f"There is no topic with the id {topic_id}.")
            if topic is None:
                raise Refusal(codes.UnknownTopicOrPartitionError, f"There is no topic '{name}'.")
            result.name, result.topic_id = topic.name, topic.id
            node.topics.delete(topic)
            node.groups.forget_topic(topic.name)
        except Refusal as refusal:
            result.error_code, result.error_message = refusal.code, refusal.message
        results.append(result)
    return DeleteTopicsResponse(version=call.version, responses=results)


def create_partitions(node, call, request):
    """Versions 0-3. New, empty partitions follow the existing ones."""
    Result = CreatePartitionsResponse.CreatePartitionsTopicResult
    results = []
    for wanted in request.topics:
        result = Result(version=call.version, name=wanted.name, error_code=NONE, error_message=None)
        try:
            call.require(TOPIC, wanted.name)
            topic = node.topics.get(wanted.name)
            if topic is None:
                raise Refusal(codes.UnknownTopicOrPartitionError, f"There is no topic '{wanted.name}'.")
            if any(list(assignment.broker_ids) != [NODE_ID] for assignment in wanted.assignments or ()):
                raise Refusal(codes.InvalidReplicationAssignmentError, f"A partition can be assigned to broker {NODE_ID} alone.")
            node.topics.grow(topic, wanted.count, request.validate_only)
        except Refusal as refusal:
            result.error_code, result.error_message = refusal.code, refusal.message
        results.append(result)
    return CreatePartitionsResponse(version=call.version, results=results)


def describe_topic_partitions(node, call, request):
    """Version 0. The named topics, or all, from the cursor on, up to the limit of partitions."""
    Topic = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
    Cursor = DescribeTopicPartitionsResponse.Cursor
    names = sorted(topic.name for topic in request.topics) or [topic.name for topic in node.topics if call.may(TOPIC, topic.name)]
    first, begin = (request.cursor.topic_name, request.cursor.partition_index) if request.cursor else ("", 0)
    room, topics, cursor = max(request.response_partition_limit, 1), [], None
    for name in names:
        if name < first:
            continue
        topic = node.topics.get(name)
        if topic is None or not call.may(TOPIC, name):
            error = (codes.UnknownTopicOrPartitionError if call.may(TOPIC, name) else codes.TopicAuthorizationFailedError).errno
            topics.append(Topic(version=call.version, error_code=error, name=name, topic_id=UNKNOWN_ID, partitions=[]))
            continue
        if not room:
            cursor = Cursor(version=call.version, topic_name=name, partition_index=0)
            break
        low = begin if name == first else 0
        chosen = topic.partitions[low : low + room]
        parts = [
            Topic.DescribeTopicPartitionsResponsePartition(
                version=call.version,
                error_code=NONE,
                partition_index=partition.number,
                leader_id=NODE_ID,
                leader_epoch=LEADER_EPOCH,
                replica_nodes=[NODE_ID],
                isr_nodes=[NODE_ID],
                eligible_leader_replicas=[],
                last_known_elr=[],
                offline_replicas=[],
            )
            for partition in chosen
        ]
        topics.append(
            Topic(
                version=call.version,
                error_code=NONE,
                name=name,
                topic_id=topic.id,
                partitions=parts,
                topic_authorized_operations=sum(1 << operation for operation in call.operations_on(TOPIC, name)),
            )
        )
        room -= len(parts)
        if low + len(parts) < len(topic.partitions):
            cursor = Cursor(version=call.version, topic_name=name, partition_index=low + len(parts))
            break
    return DescribeTopicPartitionsResponse(version=call.version, topics=topics, next_cursor=cursor)
