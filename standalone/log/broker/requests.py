"""The table of supported requests, which ApiVersions reports; all others are rejected.

A row lists the operations that the client needs (ACLs). If the request names one resource (`named`), it is checked before the handler
runs; for several, each with its own error code, the handler checks through its call, which has the row's operations.
"""

from typing import Any, NamedTuple

from kafka.protocol import admin, consumer, metadata, producer, sasl

from standalone.log.broker import (
    cluster_api,
    configs_api,
    consumer_groups_api,
    groups_api,
    messages,
    produce_api,
    records_api,
    sasl_api,
    security_api,
    share_groups_api,
    share_records_api,
    topics_api,
    transactions_api,
)
from standalone.log.broker.operations import (
    ALTER,
    ALTER_CONFIGS,
    CLUSTER,
    CLUSTER_ACTION,
    CLUSTER_NAME,
    CREATE,
    DELETE,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    GROUP,
    READ,
    TOPIC,
    TRANSACTIONAL_ID,
    WRITE,
)
from standalone.log.broker.produce_messages import ProduceRequest
from standalone.log.broker.refusal import codes


class Row(NamedTuple):
    """handler(node, call, request) -> response, or None if the response follows later."""

    request: Any
    low: int  # version
    high: int
    handler: Any
    needs: dict = {}  # resource type -> operation
    named: str | None = None  # the field with the only resource, of the first type in `needs`; or CLUSTER_NAME

    @property
    def first_need(self):
        return next(iter(self.needs))


_GROUP_ID, _TRANSACTIONAL_ID = "group_id", "transactional_id"
_MEMBER = {GROUP: READ}
_TRANSACTION = {TRANSACTIONAL_ID: WRITE}
_CONFIGURED = (TOPIC, GROUP, CLUSTER)

REQUESTS = (
    Row(ProduceRequest, 3, 13, produce_api.produce, {TOPIC: WRITE, TRANSACTIONAL_ID: WRITE}),
    Row(consumer.FetchRequest, 4, 17, records_api.fetch, {TOPIC: READ}),
    Row(consumer.ListOffsetsRequest, 1, 10, records_api.list_offsets, {TOPIC: DESCRIBE}),
    Row(metadata.MetadataRequest, 0, 13, topics_api.metadata, {TOPIC: DESCRIBE}),
    Row(consumer.OffsetCommitRequest, 2, 9, groups_api.offset_commit, {GROUP: READ, TOPIC: READ}),
    Row(consumer.OffsetFetchRequest, 1, 9, groups_api.offset_fetch, {GROUP: DESCRIBE, TOPIC: DESCRIBE}),
    Row(metadata.FindCoordinatorRequest, 0, 6, groups_api.find_coordinator, {GROUP: DESCRIBE, TRANSACTIONAL_ID: DESCRIBE}),
    Row(consumer.JoinGroupRequest, 0, 9, groups_api.join_group, _MEMBER, _GROUP_ID),
    Row(consumer.HeartbeatRequest, 0, 4, groups_api.heartbeat, _MEMBER, _GROUP_ID),
    Row(consumer.LeaveGroupRequest, 0, 5, groups_api.leave_group, _MEMBER, _GROUP_ID),
    Row(consumer.SyncGroupRequest, 0, 5, groups_api.sync_group, _MEMBER, _GROUP_ID),
    Row(admin.DescribeGroupsRequest, 0, 6, groups_api.describe_groups, {GROUP: DESCRIBE}),
    Row(admin.ListGroupsRequest, 0, 5, groups_api.list_groups, {CLUSTER: DESCRIBE, GROUP: DESCRIBE}),
    Row(metadata.ApiVersionsRequest, 0, 4, topics_api.api_versions),
    Row(admin.CreateTopicsRequest, 2, 7, topics_api.create_topics, {CLUSTER: CREATE, TOPIC: CREATE}),
    Row(admin.DeleteTopicsRequest, 1, 6, topics_api.delete_topics, {TOPIC: DELETE}),
    Row(admin.DeleteRecordsRequest, 0, 2, records_api.delete_records, {TOPIC: DELETE}),
    Row(producer.InitProducerIdRequest, 0, 5, transactions_api.init_producer_id, _TRANSACTION),
    Row(admin.DescribeConfigsRequest, 1, 4, configs_api.describe_configs, dict.fromkeys(_CONFIGURED, DESCRIBE_CONFIGS)),
    Row(admin.CreatePartitionsRequest, 0, 3, topics_api.create_partitions, {TOPIC: ALTER}),
    Row(admin.DeleteGroupsRequest, 0, 2, groups_api.delete_groups, {GROUP: DELETE}),
    Row(admin.IncrementalAlterConfigsRequest, 0, 1, configs_api.incremental_alter_configs, dict.fromkeys(_CONFIGURED, ALTER_CONFIGS)),
    Row(consumer.OffsetDeleteRequest, 0, 0, groups_api.offset_delete, {GROUP: DELETE, TOPIC: READ}, _GROUP_ID),
    Row(admin.DescribeClusterRequest, 0, 2, topics_api.describe_cluster, {CLUSTER: DESCRIBE}),
    Row(producer.AddPartitionsToTxnRequest, 0, 3, transactions_api.add_partitions, {TRANSACTIONAL_ID: WRITE, TOPIC: WRITE}),
    Row(producer.AddOffsetsToTxnRequest, 0, 4, transactions_api.add_offsets, {TRANSACTIONAL_ID: WRITE, GROUP: READ}, _TRANSACTIONAL_ID),
    Row(producer.EndTxnRequest, 0, 5, transactions_api.end, _TRANSACTION, _TRANSACTIONAL_ID),
    Row(producer.WriteTxnMarkersRequest, 1, 2, transactions_api.write_markers, {CLUSTER: CLUSTER_ACTION}),
    Row(producer.TxnOffsetCommitRequest, 0, 5, transactions_api.offset_commit, {TRANSACTIONAL_ID: WRITE, GROUP: READ, TOPIC: READ}),
    Row(admin.DescribeTransactionsRequest, 0, 0, transactions_api.describe_transactions, {TRANSACTIONAL_ID: DESCRIBE, TOPIC: DESCRIBE}),
    Row(admin.ListTransactionsRequest, 0, 2, transactions_api.list_transactions, {TRANSACTIONAL_ID: DESCRIBE}),
    Row(admin.DescribeProducersRequest, 0, 0, transactions_api.describe_producers, {TOPIC: READ}),
    Row(admin.DescribeLogDirsRequest, 1, 5, cluster_api.describe_log_dirs, {CLUSTER: DESCRIBE}, CLUSTER_NAME),
    Row(admin.AlterReplicaLogDirsRequest, 1, 2, cluster_api.alter_replica_log_dirs, {CLUSTER: ALTER}),
    Row(admin.DescribeQuorumRequest, 0, 2, cluster_api.describe_quorum, {CLUSTER: DESCRIBE}, CLUSTER_NAME),
    Row(admin.ListPartitionReassignmentsRequest, 0, 0, cluster_api.list_partition_reassignments, {CLUSTER: DESCRIBE}, CLUSTER_NAME),
    Row(admin.AlterPartitionReassignmentsRequest, 0, 1, cluster_api.alter_partition_reassignments, {CLUSTER: ALTER}, CLUSTER_NAME),
    Row(admin.ElectLeadersRequest, 0, 2, cluster_api.elect_leaders, {CLUSTER: ALTER}, CLUSTER_NAME),
    Row(consumer.OffsetForLeaderEpochRequest, 2, 4, cluster_api.offset_for_leader_epoch, {TOPIC: DESCRIBE}),
    Row(admin.DescribeClientQuotasRequest, 0, 1, cluster_api.describe_client_quotas, {CLUSTER: DESCRIBE_CONFIGS}, CLUSTER_NAME),
    Row(admin.AlterClientQuotasRequest, 0, 1, cluster_api.alter_client_quotas, {CLUSTER: ALTER_CONFIGS}),
    Row(admin.DescribeAclsRequest, 1, 3, security_api.describe_acls, {CLUSTER: DESCRIBE}, CLUSTER_NAME),
    Row(admin.CreateAclsRequest, 1, 3, security_api.create_acls, {CLUSTER: ALTER}),
    Row(admin.DeleteAclsRequest, 1, 3, security_api.delete_acls, {CLUSTER: ALTER}),
    Row(admin.DescribeUserScramCredentialsRequest, 0, 0, security_api.describe_scram, {CLUSTER: DESCRIBE}, CLUSTER_NAME),
    Row(admin.AlterUserScramCredentialsRequest, 0, 0, security_api.alter_scram, {CLUSTER: ALTER}),
    Row(messages.ConsumerGroupHeartbeatRequest, 0, 1, consumer_groups_api.heartbeat, {GROUP: READ, TOPIC: DESCRIBE}, _GROUP_ID),
    Row(messages.ConsumerGroupDescribeRequest, 0, 1, consumer_groups_api.describe, {GROUP: DESCRIBE, TOPIC: DESCRIBE}),
    Row(admin.AlterConfigsRequest, 0, 2, configs_api.alter_configs, dict.fromkeys(_CONFIGURED, ALTER_CONFIGS)),
    Row(admin.ListConfigResourcesRequest, 0, 1, configs_api.list_config_resources, {CLUSTER: DESCRIBE_CONFIGS}, CLUSTER_NAME),
    Row(messages.ShareGroupHeartbeatRequest, 1, 1, share_groups_api.heartbeat, {GROUP: READ, TOPIC: DESCRIBE}, _GROUP_ID),
    Row(messages.ShareGroupDescribeRequest, 1, 1, share_groups_api.describe, {GROUP: DESCRIBE, TOPIC: DESCRIBE}),
    Row(messages.ShareFetchRequest, 1, 2, share_records_api.share_fetch, {GROUP: READ, TOPIC: READ}, _GROUP_ID),
    Row(messages.ShareAcknowledgeRequest, 1, 2, share_records_api.share_acknowledge, {GROUP: READ, TOPIC: READ}, _GROUP_ID),
    Row(messages.DescribeShareGroupOffsetsRequest, 0, 1, share_groups_api.describe_offsets, {GROUP: DESCRIBE, TOPIC: DESCRIBE}),
    Row(messages.AlterShareGroupOffsetsRequest, 0, 0, share_groups_api.alter_offsets, {GROUP: READ, TOPIC: READ}, _GROUP_ID),
    Row(messages.DeleteShareGroupOffsetsRequest, 0, 0, share_groups_api.delete_offsets, {GROUP: DELETE, TOPIC: READ}, _GROUP_ID),
    Row(sasl.SaslHandshakeRequest, 0, 1, sasl_api.handshake),
    Row(sasl.SaslAuthenticateRequest, 0, 2, sasl_api.authenticate),
    Row(admin.DescribeTopicPartitionsRequest, 0, 0, topics_api.describe_topic_partitions, {TOPIC: DESCRIBE}),
)
HANDLERS = {row.request.API_KEY: row for row in REQUESTS}
API_VERSIONS = metadata.ApiVersionsRequest.API_KEY
WITH_RECORDS = {producer.ProduceRequest.API_KEY, consumer.FetchRequest.API_KEY, messages.ShareFetchRequest.API_KEY}
BEFORE_LOGIN = {API_VERSIONS, sasl.SaslHandshakeRequest.API_KEY, sasl.SaslAuthenticateRequest.API_KEY}

_RESPONSES = {
    kind.API_KEY: kind
    for module in (admin, consumer, metadata, producer, messages)
    for kind in vars(module).values()
    if isinstance(kind, type) and kind.__name__.endswith("Response")
}


def refusal_of(key, version, refusal=None):
    """Return the response to a request that is rejected as a whole, by default with UNSUPPORTED_VERSION.

    None if the response has no field for an error, or the request is unknown.
    """
    kind = _RESPONSES.get(key)
    if kind is None or not 0 <= version <= kind.max_version:
        return None
    try:
        response = kind(version=version, error_code=refusal.code if refusal else codes.UnsupportedVersionError.errno)
        if refusal is not None and hasattr(response, "error_message"):
            response.error_message = refusal.message
        response.with_header(0)
        response.encode()
        return response
    except (TypeError, ValueError, AttributeError):
        return None
