"""Every request that the embedded log offers, in every version; and what it does with all others."""

import os
import pathlib
import socket

import pytest
from kafka.protocol import admin, consumer, metadata, producer, sasl
from kafka.protocol.producer import ProduceRequest
from pytest import param

from standalone.log.broker import messages
from standalone.log.broker.refusal import codes
from standalone.log.broker.server import HANDLERS
from tests.log.broker_clients import RawClient, batch, commit, fetch_request, make_topic, produce_request, values_of


@pytest.fixture
def client(log):
    with RawClient(log.bootstrap) as client:
        yield client


GROUP = {"group_id": "every", "member_id": "", "generation_id": -1}


def _topic_id(log):
    return log._node.topics.get("t").id


EVERY = {
    "Produce": lambda log, v: {
        "acks": -1,
        "topic_data": [
            ProduceRequest.TopicProduceData(
                name="t",
                topic_id=_topic_id(log),
                partition_data=[ProduceRequest.TopicProduceData.PartitionProduceData(index=0, records=bytes(batch([b"v"])))],
            )
        ],
    },
    "Fetch": lambda log, v: {
        "max_bytes": 1000,
        "forgotten_topics_data": [],
        "topics": [
            consumer.FetchRequest.FetchTopic(
                topic="t",
                topic_id=_topic_id(log),
                partitions=[consumer.FetchRequest.FetchTopic.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)],
            )
        ],
    },
    "ListOffsets": lambda log, v: {
        "replica_id": -1,
        "topics": [
            consumer.ListOffsetsRequest.ListOffsetsTopic(
                name="t",
                partitions=[
                    consumer.ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition(partition_index=0, timestamp=time) for time in (-1, -2, 0)
                ],
            )
        ],
    },
    "Metadata": lambda log, v: {"topics": [metadata.MetadataRequest.MetadataRequestTopic(name="t")]},
    "OffsetCommit": lambda log, v: {
        "group_id": "every",
        "generation_id_or_member_epoch": -1,
        "topics": [
            consumer.OffsetCommitRequest.OffsetCommitRequestTopic(
                name="t",
                partitions=[
                    consumer.OffsetCommitRequest.OffsetCommitRequestTopic.OffsetCommitRequestPartition(
                        partition_index=0, committed_offset=0, committed_metadata="m"
                    )
                ],
            )
        ],
    },
    "OffsetFetch": lambda log, v: (
        {
            "groups": [
                consumer.OffsetFetchRequest.OffsetFetchRequestGroup(
                    group_id="every",
                    topics=[consumer.OffsetFetchRequest.OffsetFetchRequestGroup.OffsetFetchRequestTopics(name="t", partition_indexes=[0])],
                )
            ]
        }
        if v >= 8
        else {"group_id": "every", "topics": [consumer.OffsetFetchRequest.OffsetFetchRequestTopic(name="t", partition_indexes=[0])]}
    ),
    "FindCoordinator": lambda log, v: {"coordinator_keys": ["every"]} if v >= 4 else {"key": "every"},
    "JoinGroup": lambda log, v: {
        "group_id": f"joined-{v}",
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 10_000,
        "group_instance_id": "i" if v >= 5 else None,
        "protocol_type": "consumer",
        "protocols": [consumer.JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"")],
    },
    "Heartbeat": lambda log, v: GROUP,
    "LeaveGroup": lambda log, v: (
        {"group_id": "every", "members": [consumer.LeaveGroupRequest.MemberIdentity(member_id="m", group_instance_id="i")]}
        if v >= 3
        else {"group_id": "every", "member_id": "m"}
    ),
    "SyncGroup": lambda log, v: {**GROUP, "assignments": []},
    "DescribeGroups": lambda log, v: {"groups": ["every", "nobody"]},
    "ListGroups": lambda log, v: {"states_filter": [], "types_filter": []},
    "ApiVersions": lambda log, v: {"client_software_name": "raw", "client_software_version": "1"},
    "CreateTopics": lambda log, v: {
        "topics": [
            admin.CreateTopicsRequest.CreatableTopic(
                name=f"created-{v}", num_partitions=-1 if v >= 4 else 1, replication_factor=1, assignments=[], configs=[]
            )
        ]
    },
    "DeleteTopics": lambda log, v: (
        {"topics": [admin.DeleteTopicsRequest.DeleteTopicState(name="none")]} if v >= 6 else {"topic_names": ["none"]}
    ),
    "DeleteRecords": lambda log, v: {
        "topics": [
            admin.DeleteRecordsRequest.DeleteRecordsTopic(
                name="t", partitions=[admin.DeleteRecordsRequest.DeleteRecordsTopic.DeleteRecordsPartition(partition_index=0, offset=0)]
            )
        ]
    },
    "InitProducerId": lambda log, v: {"transactional_id": None},
    "DescribeConfigs": lambda log, v: {
        "resources": [
            admin.DescribeConfigsRequest.DescribeConfigsResource(resource_type=2, resource_name="t", configuration_keys=None),
            admin.DescribeConfigsRequest.DescribeConfigsResource(resource_type=4, resource_name="1", configuration_keys=None),
        ],
        "include_documentation": True,
    },
    "CreatePartitions": lambda log, v: {
        "topics": [admin.CreatePartitionsRequest.CreatePartitionsTopic(name="none", count=2, assignments=None)]
    },
    "DeleteGroups": lambda log, v: {"groups_names": ["nobody"]},
    "IncrementalAlterConfigs": lambda log, v: {
        "resources": [
            admin.IncrementalAlterConfigsRequest.AlterConfigsResource(
                resource_type=2,
                resource_name="t",
                configs=[
                    admin.IncrementalAlterConfigsRequest.AlterConfigsResource.AlterableConfig(
                        name="retention.ms", config_operation=0, value="5"
                    )
                ],
            )
        ]
    },
    "OffsetDelete": lambda log, v: {"group_id": "nobody", "topics": []},
    "DescribeCluster": lambda log, v: {"endpoint_type": 1},
    "ConsumerGroupHeartbeat": lambda log, v: {"group_id": "modern", "member_id": f"m{v}", "member_epoch": 0, "subscribed_topic_names": ["t"], "topic_partitions": []},
    "ConsumerGroupDescribe": lambda log, v: {"group_ids": ["modern", "nobody"]},
    "ShareGroupHeartbeat": lambda log, v: {"group_id": "shared", "member_id": "m", "member_epoch": 0, "subscribed_topic_names": ["t"]},
    "ShareGroupDescribe": lambda log, v: {"group_ids": ["shared"]},
    "ShareFetch": lambda log, v: {"group_id": "shared", "member_id": "m", "max_records": 1, "topics": [], "forgotten_topics_data": []},
    "ShareAcknowledge": lambda log, v: {"group_id": "shared", "member_id": "m", "share_session_epoch": 1, "topics": []},
    "DescribeShareGroupOffsets": lambda log, v: {
        "groups": [messages.DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup(group_id="shared", topics=None)]
    },
    "AlterShareGroupOffsets": lambda log, v: {"group_id": "shared", "topics": []},
    "DeleteShareGroupOffsets": lambda log, v: {"group_id": "shared", "topics": []},
    "DescribeLogDirs": lambda log, v: {"topics": None},
    "AlterReplicaLogDirs": lambda log, v: {"dirs": []},
    "DescribeQuorum": lambda log, v: {
        "topics": [
            admin.DescribeQuorumRequest.TopicData(
                topic_name="__cluster_metadata", partitions=[admin.DescribeQuorumRequest.TopicData.PartitionData(partition_index=0)]
            )
        ]
    },
    "ListPartitionReassignments": lambda log, v: {"topics": None},
    "AlterPartitionReassignments": lambda log, v: {"topics": []},
    "ElectLeaders": lambda log, v: {"topic_partitions": [admin.ElectLeadersRequest.TopicPartitions(topic="t", partitions=[0])]},
    "OffsetForLeaderEpoch": lambda log, v: {
        "topics": [
            consumer.OffsetForLeaderEpochRequest.OffsetForLeaderTopic(
                topic="t", partitions=[consumer.OffsetForLeaderEpochRequest.OffsetForLeaderTopic.OffsetForLeaderPartition(partition=0, leader_epoch=0)]
            )
        ]
    },
    "DescribeClientQuotas": lambda log, v: {"components": [], "strict": False},
    "AlterClientQuotas": lambda log, v: {"entries": [], "validate_only": False},
    "DescribeAcls": lambda log, v: {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1},
    "CreateAcls": lambda log, v: {"creations": []},
    "DeleteAcls": lambda log, v: {"filters": []},
    "DescribeUserScramCredentials": lambda log, v: {"users": None},
    "AlterUserScramCredentials": lambda log, v: {"deletions": [], "upsertions": []},
    "AddPartitionsToTxn": lambda log, v: {
        "v3_and_below_transactional_id": "nobody",
        "v3_and_below_topics": [producer.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name="t", partitions=[0])],
    },
    "AddOffsetsToTxn": lambda log, v: {"transactional_id": "nobody", "group_id": "every"},
    "EndTxn": lambda log, v: {"transactional_id": "nobody"},
    "WriteTxnMarkers": lambda log, v: {"markers": []},
    "TxnOffsetCommit": lambda log, v: {"transactional_id": "nobody", "group_id": "every", "topics": []},
    "DescribeTransactions": lambda log, v: {"transactional_ids": ["nobody"]},
    "ListTransactions": lambda log, v: {"state_filters": [], "producer_id_filters": []},
    "DescribeProducers": lambda log, v: {"topics": [admin.DescribeProducersRequest.TopicRequest(name="t", partition_indexes=[0])]},
    "AlterConfigs": lambda log, v: {
        "resources": [
            admin.AlterConfigsRequest.AlterConfigsResource(
                resource_type=2,
                resource_name="t",
                configs=[admin.AlterConfigsRequest.AlterConfigsResource.AlterableConfig(name="cleanup.policy", value="compact,delete")],
            )
        ]
    },
    "ListConfigResources": lambda log, v: {"resource_types": [2, 4]},
    "DescribeTopicPartitions": lambda log, v: {"topics": [], "cursor": None},
    "SaslHandshake": lambda log, v: {"mechanism": "PLAIN"},
    "SaslAuthenticate": lambda log, v: {"auth_bytes": b"\0ann\0secret"},
}
MESSAGES = {
    kind.API_KEY: (kind, getattr(module, kind.__name__.replace("Request", "Response")))
    for module in (admin, consumer, metadata, producer, messages)
    for kind in vars(module).values()
    if isinstance(kind, type) and kind.__name__.endswith("Request")
}
MESSAGES[sasl.SaslHandshakeRequest.API_KEY] = sasl.SaslHandshakeRequest, sasl.SaslHandshakeResponse
MESSAGES[sasl.SaslAuthenticateRequest.API_KEY] = sasl.SaslAuthenticateRequest, sasl.SaslAuthenticateResponse


def _error_codes(message):
    """Every error code in an answer, at any depth."""
    found = []

    def look(value):
        if isinstance(value, dict):
            found.extend(code for key, code in value.items() if key == "error_code")
            for inner in value.values():
                look(inner)
        elif isinstance(value, list):
            for inner in value:
                look(inner)

    look(message.to_dict(json=False))
    return set(found)


# What the sample requests above are answered, where that is not a success.
REFUSED = {
    "ConsumerGroupDescribe": {0, codes.GroupIdNotFoundError.errno},
    **dict.fromkeys(
        ("ShareGroupDescribe", "DescribeShareGroupOffsets", "AlterShareGroupOffsets", "DeleteShareGroupOffsets"),
        {codes.GroupIdNotFoundError.errno},
    ),
    "ShareAcknowledge": {codes.ShareSessionNotFoundError.errno},
    "DescribeAcls": {codes.SecurityDisabledError.errno},
    "SaslHandshake": {codes.IllegalSaslStateError.errno},  # where nobody has to log in
    "SaslAuthenticate": {codes.IllegalSaslStateError.errno},
    "ElectLeaders": {0, codes.ElectionNotNeededError.errno},
    "AddOffsetsToTxn": {codes.InvalidProducerIdMappingError.errno},
    "EndTxn": {codes.InvalidProducerIdMappingError.errno},
    "DescribeTransactions": {codes.TransactionalIdNotFoundError.errno},
    "Heartbeat": {codes.UnknownMemberIdError.errno},
    "SyncGroup": {codes.UnknownMemberIdError.errno},
    "LeaveGroup": {0, codes.UnknownMemberIdError.errno},
    "DeleteTopics": {codes.UnknownTopicOrPartitionError.errno},
    "CreatePartitions": {codes.UnknownTopicOrPartitionError.errno},
    "DeleteGroups": {codes.GroupIdNotFoundError.errno},
    "OffsetDelete": {codes.GroupIdNotFoundError.errno},
}


@pytest.mark.parametrize("key", sorted(HANDLERS), ids=lambda key: MESSAGES[key][0].__name__)
def test_every_version_that_is_offered_is_answered(log, client, key):
    request_class, response_class = MESSAGES[key]
    name = request_class.__name__.removesuffix("Request")
    make_topic(client)
    client.produce("t", batch([b"v"]))
    commit(client, 0, group="every")
    row = HANDLERS[key]
    for version in range(row.low, row.high + 1):
        response = client.call(request_class(version=version, **EVERY[name](log, version)), response_class)
        expected = REFUSED.get(name, {0})
        if name == "DescribeGroups" and version >= 6:
            expected = {0, codes.GroupIdNotFoundError.errno}
        if name == "JoinGroup" and version == 4:
            expected = {codes.MemberIdRequiredError.errno}
        if name == "LeaveGroup" and version < 3:
            expected = {codes.UnknownMemberIdError.errno}
        assert _error_codes(response) <= expected, (version, response)


def test_api_versions_name_what_is_offered_and_nothing_else(client):
    answer = client.call(metadata.ApiVersionsRequest(version=3, client_software_name="raw"), metadata.ApiVersionsResponse)
    assert {key.api_key: (key.min_version, key.max_version) for key in answer.api_keys} == {
        key: (row.low, row.high) for key, row in HANDLERS.items()
    }


def test_a_newer_api_versions_request_is_answered_in_version_0_with_the_range(client):
    client.sock.sendall(b"\0\0\0\x10" + b"\0\x12" + b"\0\x63" + b"\0\0\0\x07" + b"\0\x01x" + b"\0what")
    data = client.receive_frame()
    assert data[:4] == b"\0\0\0\x07"
    answer = metadata.ApiVersionsResponse.decode(data[4:], version=0)
    assert answer.error_code == codes.UnsupportedVersionError.errno
    assert [(key.api_key, key.max_version) for key in answer.api_keys] == [(18, 4)]


@pytest.mark.parametrize(
    "sent",
    [
        param(b"GET / HTTP/1.1\r\n\r\n", id="a browser"),
        param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", id="TLS"),
        param(b"\xff\xff\xff\xff", id="a negative length"),
        param(b"\0\0\0\0", id="a length of nothing"),
        param(b"\0\0\0\x02\0\0", id="too short for a header"),
        param(b"\0\0\0\x0a\0\x16\0\x63\0\0\0\x01\xff\xff", id="a version that nobody knows"),
        param(b"\0\0\0\x0a\0\x04\0\0\0\0\0\x01\xff\xff", id="a request between brokers"),
        param(b"\0\0\0\x0c\0\x01\0\x04\0\0\0\x01\0\x01xy", id="a body that ends too soon"),
    ],
)
def test_who_speaks_otherwise_is_hung_up_on_and_others_are_served(log, client, sent):
    with socket.create_connection(log.bootstrap.split(":"), 5) as stranger:
        stranger.sendall(sent)
        assert stranger.recv(1) == b""
    assert make_topic(client).error_code == 0


def test_a_request_that_is_not_offered_is_answered_by_an_error_where_kafka_has_one(client):
    answer = client.call(admin.UpdateFeaturesRequest(version=1, feature_updates=[]), admin.UpdateFeaturesResponse)
    assert answer.error_code == codes.UnsupportedVersionError.errno
    assert make_topic(client).error_code == 0


# --- Frames


def test_requests_sent_in_one_go_are_answered_in_order(client):
    make_topic(client)
    frames = bytearray()
    for number in range(50):
        request = produce_request("t", batch([b"%d" % number]))
        request.with_header(correlation_id=number)
        frames += request.encode(header=True, framed=True)
    client.sock.sendall(frames)
    assert [int.from_bytes(client.receive_frame()[:4], "big") for _ in range(50)] == list(range(50))
    assert values_of(client.fetch("t", 0).records) == [(n, b"%d" % n) for n in range(50)]


def test_a_request_behind_one_that_waits_is_answered_after_it(log, client):
    make_topic(client)
    client.send(fetch_request("t", 0, max_wait_ms=10_000))
    request = produce_request("t", batch([b"late"]))
    request.with_header(correlation_id=99)
    client.sock.sendall(request.encode(header=True, framed=True))
    with RawClient(log.bootstrap) as other:
        other.produce("t", batch([b"v"]))
    first, second = client.receive_frame(), client.receive_frame()
    assert (first[:4], second[:4]) == (b"\0\0\0\x02", b"\0\0\0\x63")


def test_a_frame_may_come_byte_by_byte(client):
    make_topic(client)
    request = produce_request("t", batch([b"slow"]))
    request.with_header(correlation_id=5)
    for byte in request.encode(header=True, framed=True):
        client.sock.sendall(bytes([byte]))
    assert client.receive_frame()[:4] == b"\0\0\0\x05"


@pytest.mark.parametrize("size", [60_000, 65_532 - 300, 70_000, 1 << 20, 9 << 20])
def test_batches_around_the_sizes_of_the_buffers(client, size):
    make_topic(client, max_message_bytes=20 << 20)
    value = os.urandom(size)
    for number in range(3):
        assert client.produce("t", batch([value])).base_offset == number
    for number in range(3):
        assert values_of(client.fetch("t", number, partition_max_bytes=size + 500).records) == [(number, value)]


def test_no_frame_may_be_larger_than_100_mib(log):
    with socket.create_connection(log.bootstrap.split(":"), 5) as stranger:
        stranger.sendall(((100 << 20) + 1).to_bytes(4, "big"))
        assert stranger.recv(1) == b""


def test_the_page_about_the_embedded_log_lists_what_is_offered():
    page = (pathlib.Path(__file__).parents[2] / "docs/embedded-log.md").read_text()
    listed = [line for line in page.splitlines() if line.startswith("| ") and line.split()[1].isdigit()]
    offered = {
        f"| {key} | {row.request.__name__.removesuffix('Request')} | {row.low if row.low == row.high else f'{row.low}–{row.high}'} |"
        for key, row in HANDLERS.items()
    }
    assert set(listed) == offered
