"""The requests that the embedded log does: ApiVersions answers from this table, and nothing else is done."""

from typing import Any, NamedTuple

from kafka.protocol import admin, consumer, metadata, producer

from standalone.log.broker import (
    cluster_api,
    configs_api,
    consumer_groups_api,
    groups_api,
    messages,
    records_api,
    security_api,
    topics_api,
    transactions_api,
)
from standalone.log.broker.opaque import ProduceRequest
from standalone.log.broker.refusal import codes


class Row(NamedTuple):
    """handler(node, call, request) -> response, or None if the call is answered later."""

    request: Any
    low: int  # version
    high: int
    handler: Any


REQUESTS = (
    Row(ProduceRequest, 3, 13, records_api.produce),
    Row(consumer.FetchRequest, 4, 17, records_api.fetch),
    Row(consumer.ListOffsetsRequest, 1, 10, records_api.list_offsets),
    Row(metadata.MetadataRequest, 0, 13, topics_api.metadata),
    Row(consumer.OffsetCommitRequest, 2, 9, groups_api.offset_commit),
    Row(consumer.OffsetFetchRequest, 1, 9, groups_api.offset_fetch),
    Row(metadata.FindCoordinatorRequest, 0, 6, groups_api.find_coordinator),
    Row(consumer.JoinGroupRequest, 0, 9, groups_api.join_group),
    Row(consumer.HeartbeatRequest, 0, 4, groups_api.heartbeat),
    Row(consumer.LeaveGroupRequest, 0, 5, groups_api.leave_group),
    Row(consumer.SyncGroupRequest, 0, 5, groups_api.sync_group),
    Row(admin.DescribeGroupsRequest, 0, 6, groups_api.describe_groups),
    Row(admin.ListGroupsRequest, 0, 5, groups_api.list_groups),
    Row(metadata.ApiVersionsRequest, 0, 4, topics_api.api_versions),
    Row(admin.CreateTopicsRequest, 2, 7, topics_api.create_topics),
    Row(admin.DeleteTopicsRequest, 1, 6, topics_api.delete_topics),
    Row(admin.DeleteRecordsRequest, 0, 2, records_api.delete_records),
    Row(producer.InitProducerIdRequest, 0, 5, transactions_api.init_producer_id),
    Row(admin.DescribeConfigsRequest, 1, 4, configs_api.describe_configs),
    Row(admin.CreatePartitionsRequest, 0, 3, topics_api.create_partitions),
    Row(admin.DeleteGroupsRequest, 0, 2, groups_api.delete_groups),
    Row(admin.IncrementalAlterConfigsRequest, 0, 1, configs_api.incremental_alter_configs),
    Row(consumer.OffsetDeleteRequest, 0, 0, groups_api.offset_delete),
    Row(admin.DescribeClusterRequest, 0, 2, topics_api.describe_cluster),
    Row(producer.AddPartitionsToTxnRequest, 0, 3, transactions_api.add_partitions),
    Row(producer.AddOffsetsToTxnRequest, 0, 4, transactions_api.add_offsets),
    Row(producer.EndTxnRequest, 0, 4, transactions_api.end),
    Row(producer.WriteTxnMarkersRequest, 1, 2, transactions_api.write_markers),
    Row(producer.TxnOffsetCommitRequest, 0, 4, transactions_api.offset_commit),
    Row(admin.DescribeTransactionsRequest, 0, 0, transactions_api.describe_transactions),
    Row(admin.ListTransactionsRequest, 0, 2, transactions_api.list_transactions),
    Row(admin.DescribeProducersRequest, 0, 0, transactions_api.describe_producers),
    Row(admin.DescribeLogDirsRequest, 1, 5, cluster_api.describe_log_dirs),
    Row(admin.AlterReplicaLogDirsRequest, 1, 2, cluster_api.alter_replica_log_dirs),
    Row(admin.DescribeQuorumRequest, 0, 2, cluster_api.describe_quorum),
    Row(admin.ListPartitionReassignmentsRequest, 0, 0, cluster_api.list_partition_reassignments),
    Row(admin.AlterPartitionReassignmentsRequest, 0, 1, cluster_api.alter_partition_reassignments),
    Row(admin.ElectLeadersRequest, 0, 2, cluster_api.elect_leaders),
    Row(consumer.OffsetForLeaderEpochRequest, 2, 4, cluster_api.offset_for_leader_epoch),
    Row(admin.DescribeClientQuotasRequest, 0, 1, cluster_api.describe_client_quotas),
    Row(admin.AlterClientQuotasRequest, 0, 1, cluster_api.alter_client_quotas),
    Row(admin.DescribeAclsRequest, 1, 3, security_api.describe_acls),
    Row(admin.CreateAclsRequest, 1, 3, security_api.create_acls),
    Row(admin.DeleteAclsRequest, 1, 3, security_api.delete_acls),
    Row(admin.DescribeUserScramCredentialsRequest, 0, 0, security_api.describe_scram),
    Row(admin.AlterUserScramCredentialsRequest, 0, 0, security_api.alter_scram),
    Row(messages.ConsumerGroupHeartbeatRequest, 0, 1, consumer_groups_api.heartbeat),
    Row(messages.ConsumerGroupDescribeRequest, 0, 1, consumer_groups_api.describe),
    Row(admin.AlterConfigsRequest, 0, 2, configs_api.alter_configs),
    Row(admin.ListConfigResourcesRequest, 0, 1, configs_api.list_config_resources),
    Row(admin.DescribeTopicPartitionsRequest, 0, 0, topics_api.describe_topic_partitions),
)
HANDLERS = {row.request.API_KEY: row for row in REQUESTS}
API_VERSIONS = metadata.ApiVersionsRequest.API_KEY

_RESPONSES = {
    kind.API_KEY: kind
    for module in (admin, consumer, metadata, producer)
    for kind in vars(module).values()
    if isinstance(kind, type) and kind.__name__.endswith("Response")
}


def refusal_of(key, version):
    """The answer to a request that is not offered: UNSUPPORTED_VERSION. None where Kafka's protocol has no field for it, or nobody knows it."""
    kind = _RESPONSES.get(key)
    if kind is None or not 0 <= version <= kind.max_version:
        return None
    try:
        response = kind(version=version, error_code=codes.UnsupportedVersionError.errno)
        response.with_header(0)
        response.encode()
        return response
    except (TypeError, ValueError, AttributeError):
        return None
