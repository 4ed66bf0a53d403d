"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs, ListConfigResources: configs of topics, of groups, of the broker and of its loggers.

Each handler gets the node, its call and the decoded request, and returns the response. The broker's configs list all of Kafka's:
those that a worker key sets have its value, the others show Kafka's default, which does not affect this log. They are read-only.
"""

import functools
import importlib.resources

from kafka.protocol.admin import (
    AlterConfigsResponse,
    DescribeConfigsResponse,
    IncrementalAlterConfigsResponse,
    ListConfigResourcesResponse,
)

from standalone.log.broker import operations, options
from standalone.log.broker.group_configs import GROUP_CONFIGS
from standalone.log.broker.node import NODE_ID
from standalone.log.broker.refusal import NONE, Refusal, codes
from standalone.log.broker.security_options import PREFIX, SECURITY_OPTIONS

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32  # kinds of config resources
TOPIC_SOURCE, BROKER_SOURCE, DEFAULT_SOURCE, GROUP_SOURCE = 1, 4, 5, 8
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3  # what IncrementalAlterConfigs does
TYPE_NUMBERS = {"BOOLEAN": 1, "STRING": 2, "INT": 3, "SHORT": 4, "LONG": 5, "DOUBLE": 6, "LIST": 7, "CLASS": 8, "PASSWORD": 9}

# Broker configs that a worker key sets.
BROKER_CONFIGS = {
    "auto.create.topics.enable": "embedded.log.auto.create.topics.enable",
    "connections.max.idle.ms": "embedded.log.connections.max.idle.ms",
    "listeners": "embedded.log.listener",
    "log.dir": "embedded.log.dir",
    "log.retention.bytes": "embedded.log.retention.bytes",
    "log.retention.ms": "embedded.log.retention.ms",
    "log.segment.bytes": "embedded.log.segment.bytes",
    "max.connections": "embedded.log.max.connections",
    "message.max.bytes": "embedded.log.max.message.bytes",
    "num.partitions": "embedded.log.num.partitions",
    **{name: PREFIX + name for name, *_ in SECURITY_OPTIONS},
}
FIXED_BROKER_CONFIGS = {
    "broker.id": str(NODE_ID),
    "node.id": str(NODE_ID),
    "process.roles": "broker,controller",
    "default.replication.factor": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}


@functools.cache
def kafkas_broker_configs():
    """Return [(name, type, default)] of Kafka 4.3's broker configs; a default may be None."""
    text = importlib.resources.files(__package__).joinpath("broker_configs.tsv").read_text()
    rows = (line.split("\t") for line in text.splitlines())
    return [(name, kind, None if default == "null" else default) for name, kind, default in rows]


def describe_configs(node, call, request):
    """Versions 1-4, with synonyms and documentation."""
    Result = DescribeConfigsResponse.DescribeConfigsResult
    Config = Result.DescribeConfigsResourceResult
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
            _require(call, resource)
            result.configs = [
                Config(
                    version=call.version,
                    name=name,
                    value=value,
                    read_only=resource.resource_type == BROKER,
                    config_source=source,
                    is_sensitive=kind == "PASSWORD",
                    synonyms=_synonyms(call, Config, synonyms) if request.include_synonyms else [],
                    config_type=TYPE_NUMBERS[kind],
                    documentation=doc if request.include_documentation else None,
                )
                for name, kind, value, source, synonyms, doc in _configs(node, resource)
                if not resource.configuration_keys or name in resource.configuration_keys
            ]
        except Refusal as refusal:
            result.error_code, result.error_message = refusal.code, refusal.message
        results.append(result)
    return DescribeConfigsResponse(version=call.version, results=results)


def _require(call, resource):
    """Raise Refusal if the client may not describe or alter the configs of this resource."""
    if resource.resource_type == TOPIC:
        call.require(operations.TOPIC, resource.resource_name)
    elif resource.resource_type == GROUP:
        call.require(operations.GROUP, resource.resource_name)
    else:
        call.require(operations.CLUSTER)


def _synonyms(call, Config, synonyms):
    return [Config.DescribeConfigsSynonym(version=call.version, name=name, value=value, source=source) for name, value, source in synonyms]


def _configs(node, resource):
    """Return [(name, type, value, source, synonyms, doc)]; a synonym is (name, value, source), highest precedence first."""
    kind, name = resource.resource_type, resource.resource_name
    if kind == TOPIC:
        topic = config_topic(node, name)
        return [_topic_config(node, topic, name, known) for name, known in options.TOPIC_CONFIGS.items()]
    if kind == BROKER and name in ("", str(NODE_ID)):
        # An empty name asks for the cluster-wide dynamic defaults, of which there are none.
        return [_broker_config(node, *row) for row in kafkas_broker_configs()] if name else []
    if kind == GROUP:
        if not name:
            raise Refusal(codes.InvalidRequestError, "A group needs an id.")
        own = node.group_configs.own(name)
        return [_group_config(own, name, known) for name, known in GROUP_CONFIGS.items()]
    if kind in (BROKER_LOGGER, CLIENT_METRICS):
        return []
    raise Refusal(codes.InvalidRequestError, f"The embedded log has configs of topics, groups and broker {NODE_ID}, none of '{name}'.")


def _group_config(own, name, known):
    default = as_text(known.default)
    synonyms = [(name, own[name], GROUP_SOURCE)] if name in own else []
    if known.synonym:
        synonyms.append((known.synonym, default, DEFAULT_SOURCE))
    return name, known.type, own.get(name, default), GROUP_SOURCE if name in own else DEFAULT_SOURCE, synonyms, known.doc


def _topic_config(node, topic, name, known):
    value, source = as_text(topic.values[name]), source_of(node, name, topic.configs)
    synonyms = [(name, value, TOPIC_SOURCE)] if name in topic.configs else []
    if known.fallback and source_of(node, name, {}) == BROKER_SOURCE:
        synonyms.append((known.synonym, as_text(node.settings[known.fallback]), BROKER_SOURCE))
    if known.synonym:
        synonyms.append((known.synonym, as_text(_default(known)), DEFAULT_SOURCE))
    return name, known.type, value, source, synonyms, known.doc


def _broker_config(node, name, kind, default):
    key = BROKER_CONFIGS.get(name)
    value, source, doc = default, DEFAULT_SOURCE, "Kafka's default; not used here."
    if key is not None and node.settings[key] is not None:
        option = _option(key)
        value, doc = as_text(node.settings[key]), option.doc
        source = BROKER_SOURCE if node.settings[key] != option.default else DEFAULT_SOURCE
    elif name in FIXED_BROKER_CONFIGS:
        value, source, doc = FIXED_BROKER_CONFIGS[name], BROKER_SOURCE, "The embedded log is one node."
    if kind == "PASSWORD":
        value = None
    return name, kind, value, source, [(name, value, source)], doc


def alter_configs(node, call, request):
    """Versions 0-2. Topics and groups only: replaces all of a resource's configs."""
    Response = AlterConfigsResponse.AlterConfigsResourceResponse
    responses = [
        _alter(node, call, request, resource, Response, lambda own, values, known, changes: {change.name: change.value for change in changes})
        for resource in request.resources
    ]
    return AlterConfigsResponse(version=call.version, responses=responses)


def incremental_alter_configs(node, call, request):
    """Versions 0-1. Topics and groups only: SET and DELETE, APPEND and SUBTRACT for lists; all changes of a resource or none."""
    Response = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse
    responses = [_alter(node, call, request, resource, Response, _changed) for resource in request.resources]
    return IncrementalAlterConfigsResponse(version=call.version, responses=responses)


def _alter(node, call, request, resource, Response, changed):
    kind, name = resource.resource_type, resource.resource_name
    response = Response(version=call.version, error_code=NONE, error_message=None, resource_type=kind, resource_name=name)
    try:
        _require(call, resource)
        if kind == GROUP:
            own = node.group_configs.own(name)
            node.group_configs.configure(name, changed(own, own, GROUP_CONFIGS, resource.configs), request.validate_only)
            return response
        if kind != TOPIC:
            raise Refusal(
                codes.InvalidRequestError, "Only topics and groups can be configured; the worker's embedded.log.* keys are set in its file."
            )
        topic = config_topic(node, name)
        configs = changed(topic.configs, topic.values, options.TOPIC_CONFIGS, resource.configs)
        node.topics.configure(topic, configs, request.validate_only)
    except Refusal as refusal:
        response.error_code, response.error_message = refusal.code, refusal.message
    return response


def _changed(own, values, known, changes):
    configs = dict(own)
    for change in changes:
        name, what = change.name, change.config_operation
        if what == DELETE:
            configs.pop(name, None)
        elif what == SET:
            configs[name] = change.value
        elif what in (APPEND, SUBTRACT):
            if name not in known or known[name].type != options.LIST:
                raise Refusal(codes.InvalidConfigurationError, f"Config '{name}' is not a list: it can be set or deleted.")
            had = [item for item in values[name].split(",") if item]
            named = [item.strip() for item in (change.value or "").split(",") if item.strip()]
            left = [item for item in had if item not in named]
            configs[name] = ",".join(had + [item for item in named if item not in had] if what == APPEND else left)
        else:
            raise Refusal(codes.InvalidRequestError, f"There is no operation {what} on configs.")
    return configs


def list_config_resources(node, call, request):
    """Versions 0-1: topics, this broker, groups with their own configs; there are no client metrics."""
    kinds = set(request.resource_types or ()) if call.version else {CLIENT_METRICS}
    Resource = ListConfigResourcesResponse.ConfigResource
    found = [(TOPIC, topic.name) for topic in node.topics] + [(BROKER, str(NODE_ID)), (BROKER_LOGGER, str(NODE_ID))]
    found += [(GROUP, group_id) for group_id in node.group_configs]
    chosen = [(kind, name) for kind, name in found if kind in kinds or (call.version and not kinds)]
    resources = [Resource(version=call.version, resource_name=name, resource_type=kind) for kind, name in chosen]
    return ListConfigResourcesResponse(version=call.version, error_code=NONE, config_resources=resources)


def config_topic(node, name):
    topic = node.topics.get(name)
    if topic is None:
        raise Refusal(codes.UnknownTopicOrPartitionError, f"There is no topic '{name}'.")
    return topic


def source_of(node, name, own):
    """Return the source of a topic config's value."""
    if name in own:
        return TOPIC_SOURCE
    key = options.TOPIC_CONFIGS[name].fallback
    return BROKER_SOURCE if key and node.settings[key] != _option(key).default else DEFAULT_SOURCE


def _default(known):
    return _option(known.fallback).default if known.fallback else known.default


def _option(key):
    return next(option for option in options.OPTIONS if option.name == key)


def as_text(value):
    return str(value).lower() if isinstance(value, bool) else str(value)
