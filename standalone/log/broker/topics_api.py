"""ApiVersions, Metadata, DescribeCluster, CreateTopics, DeleteTopics, CreatePartitions, DescribeConfigs, IncrementalAlterConfigs.

Each gets the node, the call it answers and the decoded request, and returns the response.
"""

from kafka.protocol.admin import (
    CreatePartitionsResponse,
    CreateTopicsResponse,
    DeleteTopicsResponse,
    DescribeClusterResponse,
    DescribeConfigsResponse,
    IncrementalAlterConfigsResponse,
)
from kafka.protocol.metadata import ApiVersionsResponse, MetadataResponse

from standalone.log.broker import options
from standalone.log.broker.node import NODE_ID
from standalone.log.broker.partitions import LEADER_EPOCH
from standalone.log.broker.refusal import NONE, Refusal, codes

TOPIC, BROKER = 2, 4  # kinds of config resources
TOPIC_SOURCE, BROKER_SOURCE, DEFAULT_SOURCE = 1, 4, 5
SET, DELETE = 0, 1  # what IncrementalAlterConfigs may do to a value that is no list
TYPE_NUMBERS = {options.BOOLEAN: 1, options.STRING: 2, options.INT: 3, options.LONG: 5}

# What a client that asks for the broker's configs may look for, by Kafka's names.
BROKER_CONFIGS = {
    "auto.create.topics.enable": "embedded.log.auto.create.topics.enable",
    "log.retention.bytes": "embedded.log.retention.bytes",
    "log.retention.ms": "embedded.log.retention.ms",
    "log.segment.bytes": "embedded.log.segment.bytes",
    "message.max.bytes": "embedded.log.max.message.bytes",
    "num.partitions": "embedded.log.num.partitions",
}


def api_versions(node, call, request):
    """Versions 0-4: what this server does. A newer version is answered by the server itself, in version 0."""
    return ApiVersionsResponse(version=call.version, error_code=NONE, api_keys=_api_keys(node, call.version))


def api_versions_unknown(node, call):
    """To a version that is newer than ours: in version 0, with the range that we know, so that the client asks again."""
    keys = [key for key in _api_keys(node, 0) if key.api_key == ApiVersionsResponse.API_KEY]
    return ApiVersionsResponse(version=0, error_code=codes.UnsupportedVersionError.errno, api_keys=keys)


def _api_keys(node, version):
    Key = ApiVersionsResponse.ApiVersion
    return [Key(version=version, api_key=key, min_version=low, max_version=high) for key, low, high in node.api_versions]


def metadata(node, call, request):
    """Versions 0-13. One broker: this one, under the address by which the client reached it.

    A topic that does not exist is made, if the client allows and embedded.log.auto.create.topics.enable says so.
    """
    Topic = MetadataResponse.MetadataResponseTopic
    if request.topics is None or (call.version == 0 and not request.topics):
        found = [_describe(call, topic) for topic in node.topics]
    else:
        found = []
        for wanted in request.topics:
            try:
                found.append(_describe(call, _find_or_make(node, request, wanted)))
            except Refusal as refusal:
                found.append(
                    Topic(version=call.version, error_code=refusal.code, name=wanted.name, topic_id=wanted.topic_id, partitions=[])
                )
    host, port = call.address
    Broker = MetadataResponse.MetadataResponseBroker
    return MetadataResponse(
        version=call.version,
        brokers=[Broker(version=call.version, node_id=NODE_ID, host=host, port=port, rack=None)],
        cluster_id=node.store.cluster_id,
        controller_id=NODE_ID,
        topics=found,
    )


def _find_or_make(node, request, wanted):
    if wanted.name is None:
        topic = node.topics.by_id(wanted.topic_id)
        if topic is None:
            raise Refusal(codes.UnknownTopicIdError)
        return topic
    topic = node.topics.get(wanted.name)
    if topic is not None:
        return topic
    if request.allow_auto_topic_creation and node.settings["embedded.log.auto.create.topics.enable"]:
        return node.topics.create(wanted.name)
    raise Refusal(codes.UnknownTopicOrPartitionError)


def _describe(call, topic):
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
    return Topic(version=call.version, error_code=NONE, name=topic.name, topic_id=topic.id, is_internal=False, partitions=partitions)


def describe_cluster(node, call, request):
    """Versions 0-2: brokers, which is this one. Left out: controllers (endpoint type 2)."""
    if request.endpoint_type != 1:
        return DescribeClusterResponse(
            version=call.version,
            error_code=codes.UnsupportedEndpointTypeError.errno,
            error_message="The embedded log is one broker and has no controllers of their own.",
            cluster_id="",
            brokers=[],
        )
    host, port = call.address
    broker = DescribeClusterResponse.DescribeClusterBroker(version=call.version, broker_id=NODE_ID, host=host, port=port, rack=None)
    return DescribeClusterResponse(version=call.version, cluster_id=node.store.cluster_id, controller_id=NODE_ID, brokers=[broker])


def create_topics(node, call, request):
    """Versions 2-7. Replication factor 1 or -1, alone or by an assignment to this node; configs of options.TOPIC_CONFIGS."""
    Result = CreateTopicsResponse.CreatableTopicResult
    names = [wanted.name for wanted in request.topics]
    results = []
    for wanted in request.topics:
        result = Result(version=call.version, name=wanted.name, error_code=NONE, error_message=None, configs=None)
        try:
            if names.count(wanted.name) > 1:
                raise Refusal(codes.InvalidRequestError, f"Topic '{wanted.name}' is named more than once.")
            partitions = _partitions_wanted(node, wanted)
            configs = {config.name: config.value for config in wanted.configs}
            node.topics.check_new(wanted.name, partitions, configs)
            if not request.validate_only:
                result.topic_id = node.topics.create(wanted.name, partitions, configs).id
            result.num_partitions, result.replication_factor = partitions, 1
            if call.version >= 5:
                result.configs = _created_configs(node, call, configs)
        except Refusal as refusal:
            result.error_code, result.error_message = refusal.code, refusal.message
        results.append(result)
    return CreateTopicsResponse(version=call.version, topics=results)


def _created_configs(node, call, configs):
    Config = CreateTopicsResponse.CreatableTopicResult.CreatableTopicConfigs
    values = options.topic_values(configs, node.settings)
    return [
        Config(version=call.version, name=name, value=_text(value), config_source=_source(node, name, configs))
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
    """Versions 1-6. Records, configs and committed offsets go with the topic, at once."""
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
    """Versions 0-3. New partitions are empty and stand behind the old ones."""
    Result = CreatePartitionsResponse.CreatePartitionsTopicResult
    results = []
    for wanted in request.topics:
        result = Result(version=call.version, name=wanted.name, error_code=NONE, error_message=None)
        try:
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


def describe_configs(node, call, request):
    """Versions 1-4. Topics: what options.TOPIC_CONFIGS honours; the broker: a few of its keys, read only.

    Left out: synonyms, loggers.
    """
    Result = DescribeConfigsResponse.DescribeConfigsResult
    results = []
    for resource in request.resources:
        result = Result(
            version=call.version,
            error_code=NONE,
            error_message=None,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            configs=[],
        )
        try:
            result.configs = [
                Result.DescribeConfigsResourceResult(
                    version=call.version,
                    name=name,
                    value=_text(value),
                    read_only=resource.resource_type == BROKER,
                    config_source=source,
                    is_sensitive=False,
                    synonyms=[],
                    config_type=TYPE_NUMBERS[kind],
                    documentation=doc if request.include_documentation else None,
                )
                for name, kind, value, source, doc in _configs(node, resource)
                if not resource.configuration_keys or name in resource.configuration_keys
            ]
        except Refusal as refusal:
            result.error_code, result.error_message = refusal.code, refusal.message
        results.append(result)
    return DescribeConfigsResponse(version=call.version, results=results)


def _configs(node, resource):
    """[(name, type, value, source, doc)]"""
    if resource.resource_type == TOPIC:
        topic = _config_topic(node, resource.resource_name)
        return [
            (name, known.type, topic.values[name], _source(node, name, topic.configs), known.doc)
            for name, known in options.TOPIC_CONFIGS.items()
        ]
    if resource.resource_type == BROKER and resource.resource_name == str(NODE_ID):
        known = {option.name: option for option in options.OPTIONS}
        return [(name, known[key].type, node.settings[key], BROKER_SOURCE, known[key].doc) for name, key in BROKER_CONFIGS.items()]
    raise Refusal(codes.InvalidRequestError, f"The embedded log has configs of topics and of broker {NODE_ID}, no others.")


def incremental_alter_configs(node, call, request):
    """Versions 0-1. Topics only: SET and DELETE, all of a topic's changes or none.

    Left out: APPEND and SUBTRACT, for there is no list.
    """
    Response = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse
    responses = []
    for resource in request.resources:
        response = Response(
            version=call.version,
            error_code=NONE,
            error_message=None,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )
        try:
            if resource.resource_type != TOPIC:
                raise Refusal(
                    codes.InvalidRequestError, "Only topics can be configured; the worker's embedded.log.* keys are set in its file."
                )
            topic = _config_topic(node, resource.resource_name)
            node.topics.configure(topic, _altered(topic.configs, resource.configs), request.validate_only)
        except Refusal as refusal:
            response.error_code, response.error_message = refusal.code, refusal.message
        responses.append(response)
    return IncrementalAlterConfigsResponse(version=call.version, responses=responses)


def _altered(configs, changes):
    configs = dict(configs)
    for change in changes:
        if change.config_operation == SET:
            configs[change.name] = change.value
        elif change.config_operation == DELETE:
            configs.pop(change.name, None)
        else:
            raise Refusal(codes.InvalidConfigurationError, f"Topic config '{change.name}' is no list: it can be set or deleted.")
    return configs


def _config_topic(node, name):
    topic = node.topics.get(name)
    if topic is None:
        raise Refusal(codes.UnknownTopicOrPartitionError, f"There is no topic '{name}'.")
    return topic


def _source(node, name, own):
    """Where the value of a topic's config comes from."""
    if name in own:
        return TOPIC_SOURCE
    key = options.TOPIC_CONFIGS[name].fallback
    default = next((option.default for option in options.OPTIONS if option.name == key), None)
    return BROKER_SOURCE if key and node.settings[key] != default else DEFAULT_SOURCE


def _text(value):
    return str(value).lower() if isinstance(value, bool) else str(value)
