"""The embedded log as a server: what it offers in every version, how it waits, what it refuses, how it starts and stops."""

import logging
import os
import socket
import threading
import time

import pytest
from kafka.protocol import admin, consumer, metadata, producer
from kafka.protocol.consumer import FetchResponse
from kafka.protocol.producer import ProduceRequest
from pytest import param

from standalone.errors import ConfigError, StartError
from standalone.log.broker import options, topics
from standalone.log.broker.refusal import codes
from standalone.log.broker.server import HANDLERS, EmbeddedLog

from tests.log.broker_clients import RawClient, ServerProcess, batch, fetch_request, produce_request, values_of, wait_for

NOW_MS = int(time.time() * 1000)  # retention would delete older records at the next start


@pytest.fixture
def log(tmp_path):
    log = EmbeddedLog(tmp_path / "log", "127.0.0.1:0")
    log.start()
    yield log
    log.stop()


@pytest.fixture
def client(log):
    with RawClient(log.bootstrap) as client:
        yield client


def make_topic(client, name="t", partitions=1, **configs):
    Topic = admin.CreateTopicsRequest.CreatableTopic
    pairs = [Topic.CreatableTopicConfig(name=key.replace("_", "."), value=str(value)) for key, value in configs.items()]
    topic = Topic(name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=pairs)
    request = admin.CreateTopicsRequest(version=7, topics=[topic], timeout_ms=1000, validate_only=False)
    return client.call(request, admin.CreateTopicsResponse).topics[0]


def delete_topic(client, name="t"):
    request = admin.DeleteTopicsRequest(version=5, topic_names=[name], timeout_ms=1000)
    return client.call(request, admin.DeleteTopicsResponse).responses[0]


def list_offset(client, timestamp, topic="t"):
    Topic = consumer.ListOffsetsRequest.ListOffsetsTopic
    part = Topic.ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    request = consumer.ListOffsetsRequest(version=7, replica_id=-1, topics=[Topic(name=topic, partitions=[part])])
    found = client.call(request, consumer.ListOffsetsResponse).topics[0].partitions[0]
    assert found.error_code == 0
    return found.timestamp, found.offset


def delete_records(client, offset):
    Topic = admin.DeleteRecordsRequest.DeleteRecordsTopic
    part = Topic.DeleteRecordsPartition(partition_index=0, offset=offset)
    request = admin.DeleteRecordsRequest(version=2, topics=[Topic(name="t", partitions=[part])], timeout_ms=1000)
    return client.call(request, admin.DeleteRecordsResponse).topics[0].partitions[0]


def commit(client, offset, group="g", topic="t"):
    Topic = consumer.OffsetCommitRequest.OffsetCommitRequestTopic
    part = Topic.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
    request = consumer.OffsetCommitRequest(
        version=8, group_id=group, generation_id_or_member_epoch=-1, member_id="", topics=[Topic(name=topic, partitions=[part])]
    )
    return client.call(request, consumer.OffsetCommitResponse).topics[0].partitions[0].error_code


# --- Every request in every version

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
}
MESSAGES = {
    kind.API_KEY: (kind, getattr(module, kind.__name__.replace("Request", "Response")))
    for module in (admin, consumer, metadata, producer)
    for kind in vars(module).values()
    if isinstance(kind, type) and kind.__name__.endswith("Request")
}


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


# What the sample requests above are answered, where that is no success.
REFUSED = {
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
    _, low, high, _ = HANDLERS[key]
    for version in range(low, high + 1):
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
        key: (low, high) for key, (_, low, high, _) in HANDLERS.items()
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
        param(b"\0\0\0\x0a\0\x16\0\x63\0\0\0\x01\xff\xff", id="a version that is not offered"),
        param(b"\0\0\0\x0a\0\x1a\0\0\0\0\0\x01\xff\xff", id="a transaction's request"),
        param(b"\0\0\0\x0c\0\x01\0\x04\0\0\0\x01\0\x01xy", id="a body that ends too soon"),
    ],
)
def test_who_speaks_otherwise_is_hung_up_on_and_others_are_served(log, client, sent):
    with socket.create_connection(log.bootstrap.split(":"), 5) as stranger:
        stranger.sendall(sent)
        assert stranger.recv(1) == b""
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


# --- Produce and Fetch


def test_without_acks_there_is_no_answer(client):
    make_topic(client)
    client.send(produce_request("t", batch([b"v"]), acks=0))
    assert list_offset(client, -1) == (-1, 1)


def test_an_error_without_acks_hangs_up(client):
    client.send(produce_request("nowhere", batch([b"v"]), acks=0))
    with pytest.raises(ConnectionError):
        client.receive_frame()


@pytest.mark.parametrize(
    "data, options, error",
    [
        param(batch([b"v"]), {"topic": "nowhere"}, codes.UnknownTopicOrPartitionError, id="no such topic"),
        param(batch([b"v"]), {"partition": 1}, codes.UnknownTopicOrPartitionError, id="no such partition"),
        param(batch([b"v"]), {"acks": 2}, codes.InvalidRequiredAcksError, id="acks of 2"),
        param(batch([b"v" * 2_000_000]), {}, codes.MessageSizeTooLargeError, id="too large"),
        param(batch([b"v"])[:-3], {}, codes.CorruptRecordError, id="cut"),
        param(batch([b"v"] * 99, compression="zstd"), {"version": 6}, codes.UnsupportedCompressionTypeError, id="zstd in an old version"),
    ],
)
def test_what_cannot_be_produced(client, data, options, error):
    make_topic(client)
    answer = client.produce(**{"topic": "t", "data": data, **options})
    assert answer.error_code == error.errno and answer.base_offset == -1
    assert list_offset(client, -1) == (-1, 0)


def test_a_repeat_is_answered_with_its_first_offset_and_kept_once(client):
    make_topic(client)
    data = batch([b"v", b"w"], producer_id=3, producer_epoch=0, base_sequence=0)
    client.produce("t", batch([b"before"]))
    assert [client.produce("t", data).base_offset for _ in range(3)] == [1, 1, 1]
    gap = client.produce("t", batch([b"x"], producer_id=3, producer_epoch=0, base_sequence=5))
    assert gap.error_code == codes.OutOfOrderSequenceNumberError.errno
    assert list_offset(client, -1) == (-1, 3)


@pytest.mark.parametrize(
    "limits, count",
    [
        param({}, 10, id="all"),
        param({"max_bytes": 350, "partition_max_bytes": 350}, 3, id="as many whole batches as fit"),
        param({"max_bytes": 350}, 3, id="by the request's bound"),
        param({"partition_max_bytes": 350}, 3, id="by the partition's bound"),
        param({"partition_max_bytes": 1}, 1, id="one, however large"),
        param({"max_bytes": 0}, 1, id="one, though nothing is asked for"),
    ],
)
def test_fetch_gives_whole_batches(client, limits, count):
    make_topic(client)
    for number in range(10):
        client.produce("t", batch([b"%d" % number + b"." * 30]))
    found = client.fetch("t", 0, **limits)
    assert [offset for offset, _ in values_of(found.records)] == list(range(count))
    assert len(found.records) == count * 99  # nothing but whole batches
    assert (found.high_watermark, found.last_stable_offset, found.log_start_offset) == (10, 10, 0)


@pytest.mark.parametrize("offset", [-1, 2, 1 << 40])
def test_an_offset_that_is_not_there(client, offset):
    make_topic(client)
    client.produce("t", batch([b"v"]))
    assert client.fetch("t", offset, max_wait_ms=5000).error_code == codes.OffsetOutOfRangeError.errno


def test_a_waiting_fetch_is_answered_when_a_record_lands(log, client):
    make_topic(client)
    waits = []
    with RawClient(log.bootstrap) as other:
        for number in range(20):
            client.send(fetch_request("t", number, max_wait_ms=10_000))
            other.produce("t", batch([b"%d" % number]))
            begun = time.monotonic()
            assert values_of(client.fetched().records) == [(number, b"%d" % number)]
            waits.append(time.monotonic() - begun)
    assert sorted(waits)[10] < 0.05


def test_a_fetch_waits_for_its_min_bytes(log, client):
    make_topic(client)
    client.send(fetch_request("t", 0, min_bytes=150, max_wait_ms=10_000))
    with RawClient(log.bootstrap) as other:
        for number in range(3):
            other.produce("t", batch([b"." * 30]))
            if number < 1:
                assert other.fetch("t", 0, min_bytes=150, max_wait_ms=1).records  # time is over: what is there
    assert [offset for offset, _ in values_of(client.fetched().records)] == [0, 1]  # the second made it enough


def test_a_fetch_waits_no_longer_than_it_says(client):
    make_topic(client)
    begun = time.monotonic()
    assert not client.fetch("t", 0, max_wait_ms=150).records
    assert 0.14 < time.monotonic() - begun < 2


def test_a_waiting_fetch_is_told_that_its_topic_is_deleted(log, client):
    make_topic(client)
    client.send(fetch_request("t", 0, max_wait_ms=10_000))
    with RawClient(log.bootstrap) as other:
        wait_for(lambda: log._node.topics.get("t").partitions[0].waiting)
        delete_topic(other)
    assert client.fetched().error_code == codes.UnknownTopicOrPartitionError.errno


def test_a_client_that_goes_is_waited_for_no_longer(log, client):
    make_topic(client)
    with RawClient(log.bootstrap) as other:
        other.send(fetch_request("t", 0, max_wait_ms=600_000))
        wait_for(lambda: log._node.topics.get("t").partitions[0].waiting)
    wait_for(lambda: not log._node.topics.get("t").partitions[0].waiting)


def test_a_fetch_session_is_never_begun(client):
    make_topic(client)
    request = fetch_request("t", 0)
    request.session_epoch = 0
    client.send(request)
    assert client.receive(FetchResponse, 11).session_id == 0
    request.session_id = 5
    client.send(request)
    assert client.receive(FetchResponse, 11).error_code == codes.FetchSessionIdNotFoundError.errno


def test_a_slow_reader_holds_up_nobody(log, client):
    make_topic(client, max_message_bytes=20 << 20)
    client.produce("t", batch([os.urandom(15 << 20)]))
    with RawClient(log.bootstrap) as slow:
        slow.send(fetch_request("t", 0, max_bytes=20 << 20, partition_max_bytes=20 << 20))
        for _ in range(20):
            client.produce("t", batch([b"v"]))
        assert len(slow.fetched().records) > 15 << 20


# --- Offsets by time


def test_offsets_by_time(client):
    make_topic(client)
    for time_ms in (100, 300, 200):
        client.produce("t", batch([b"a", b"b"], now_ms=time_ms))
    found = {time_ms: list_offset(client, time_ms) for time_ms in (-1, -2, -3, 0, 100, 101, 300, 301)}
    assert found == {
        -1: (-1, 6),
        -2: (-1, 0),
        -3: (300, 2),
        0: (100, 0),
        100: (100, 0),
        101: (300, 2),
        300: (300, 2),
        301: (-1, -1),
    }


def test_an_empty_topic_has_no_offset_of_any_time(client):
    make_topic(client)
    assert [list_offset(client, time_ms) for time_ms in (0, -3, -1, -2)] == [(-1, -1), (-1, -1), (-1, 0), (-1, 0)]


# --- Topics


@pytest.mark.parametrize(
    "name, legal",
    [
        ("a", True),
        ("a.b-c_D9", True),
        ("x" * 249, True),
        ("x" * 250, False),
        ("", False),
        (".", False),
        ("..", False),
        ("...", True),
        ("a/b", False),
        ("a b", False),
        ("\u00e4", False),
        ("a\n", False),
        ("-", True),
    ],
)
def test_names_of_topics(client, name, legal):
    assert topics.is_legal(name) == legal
    assert make_topic(client, name).error_code == (0 if legal else codes.InvalidTopicError.errno)
    if legal:
        assert client.produce(name, batch([b"v"])).error_code == 0


@pytest.mark.parametrize(
    "configs, error",
    [
        param({"retention_ms": "60000"}, 0, id="known"),
        param({"retention_ms": "soon"}, 40, id="no number"),
        param({"segment_bytes": "1"}, 40, id="too small"),
        param({"cleanup_policy": "compact"}, 40, id="compaction"),
        param({"compression_type": "gzip"}, 40, id="recompression"),
        param({"min_insync_replicas": "1"}, 40, id="not honoured"),
    ],
)
def test_configs_of_topics(client, configs, error):
    answer = make_topic(client, **configs)
    assert answer.error_code == error
    if error:
        assert next(iter(configs)).replace("_", ".") in answer.error_message


def test_topics_are_made_when_first_asked_for(log, client):
    def ask(name, allow=True):
        topic = metadata.MetadataRequest.MetadataRequestTopic(name=name)
        request = metadata.MetadataRequest(version=9, topics=[topic], allow_auto_topic_creation=allow)
        return client.call(request, metadata.MetadataResponse).topics[0]

    assert ask("asked", allow=False).error_code == codes.UnknownTopicOrPartitionError.errno
    assert ask("asked").error_code == 0 and len(ask("asked", allow=False).partitions) == 1
    assert ask("not/legal").error_code == codes.InvalidTopicError.errno


def test_topics_are_not_made_where_that_is_turned_off(tmp_path):
    log = EmbeddedLog(tmp_path, "127.0.0.1:0", {"embedded.log.auto.create.topics.enable": "false"})
    log.start()
    try:
        with RawClient(log.bootstrap) as client:
            topic = metadata.MetadataRequest.MetadataRequestTopic(name="t")
            answer = client.call(metadata.MetadataRequest(version=9, topics=[topic]), metadata.MetadataResponse)
            assert answer.topics[0].error_code == codes.UnknownTopicOrPartitionError.errno
    finally:
        log.stop()


def test_a_topic_made_again_is_empty_and_has_no_offsets_of_groups(client):
    make_topic(client)
    client.produce("t", batch([b"old"]))
    assert commit(client, 1) == 0
    assert delete_topic(client).error_code == 0
    assert delete_topic(client).error_code == codes.UnknownTopicOrPartitionError.errno
    make_topic(client)
    assert list_offset(client, -1) == (-1, 0)
    wanted = consumer.OffsetFetchRequest(version=7, group_id="g", topics=None)
    assert client.call(wanted, consumer.OffsetFetchResponse).topics == []


def test_what_was_deleted_by_hand_is_deleted_after_a_restart(tmp_path):
    with running(tmp_path) as client:
        make_topic(client)
        for number in range(3):
            client.produce("t", batch([b"%d" % number, b"second"], now_ms=NOW_MS))
        assert delete_records(client, 3).low_watermark == 3
        assert delete_records(client, 99).error_code == codes.OffsetOutOfRangeError.errno
        assert list_offset(client, 0) == (NOW_MS, 3)
    with running(tmp_path) as client:
        assert list_offset(client, -2) == (-1, 3)
        assert delete_records(client, -1).low_watermark == 6
    with running(tmp_path) as client:
        assert (list_offset(client, -2), list_offset(client, -1)) == ((-1, 6), (-1, 6))
        assert client.produce("t", batch([b"next"])).base_offset == 6


class running:
    """A client of a log that is started for this block and stopped well after it."""

    def __init__(self, folder, **config):
        self.log = EmbeddedLog(folder, "127.0.0.1:0", config)

    def __enter__(self):
        self.log.start()
        self.client = RawClient(self.log.bootstrap)
        return self.client

    def __exit__(self, *_):
        self.client.sock.close()
        self.log.stop()


def test_all_is_there_after_a_restart(tmp_path):
    with running(tmp_path) as client:
        made = make_topic(client, partitions=2, retention_ms=12345)
        client.produce("t", batch([b"v"]), partition=1)
        commit(client, 0)
        cluster = client.call(admin.DescribeClusterRequest(version=0), admin.DescribeClusterResponse).cluster_id
    with running(tmp_path) as client:
        topic = client.call(
            metadata.MetadataRequest(version=12, topics=[metadata.MetadataRequest.MetadataRequestTopic(name="t")]), metadata.MetadataResponse
        )
        assert topic.topics[0].topic_id == made.topic_id and len(topic.topics[0].partitions) == 2
        assert topic.cluster_id == cluster
        assert values_of(client.fetch("t", 0, partition=1).records) == [(0, b"v")]
        resource = admin.DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=2, resource_name="t", configuration_keys=["retention.ms"]
        )
        found = client.call(admin.DescribeConfigsRequest(version=1, resources=[resource]), admin.DescribeConfigsResponse)
        assert [(c.name, c.value, c.config_source) for c in found.results[0].configs] == [("retention.ms", "12345", 1)]


def test_without_its_sqlite_file_the_topics_are_found_by_their_folders(tmp_path, caplog):
    with running(tmp_path) as client:
        make_topic(client, "a-b", partitions=2)
        client.produce("a-b", batch([b"v"]), partition=1)
    for path in tmp_path.glob("log.sqlite*"):
        path.unlink()
    with caplog.at_level(logging.WARNING), running(tmp_path) as client:
        assert values_of(client.fetch("a-b", 0, partition=1).records) == [(0, b"v")]
    assert "'a-b'" in caplog.text


def test_what_a_deletion_left_behind_goes_at_the_next_start(tmp_path):
    (tmp_path / "0123.deleted").mkdir()
    with running(tmp_path):
        assert not (tmp_path / "0123.deleted").exists()


def test_producer_ids_are_never_given_twice(tmp_path):
    given = set()
    for _ in range(3):
        with running(tmp_path) as client:
            for _ in range(5):
                answer = client.call(producer.InitProducerIdRequest(version=4, transactional_id=None), producer.InitProducerIdResponse)
                assert answer.error_code == 0 and answer.producer_id not in given
                given.add(answer.producer_id)


def test_there_are_no_transactions(client):
    answer = client.call(producer.InitProducerIdRequest(version=4, transactional_id="mine"), producer.InitProducerIdResponse)
    assert answer.error_code == codes.TransactionalIdAuthorizationFailedError.errno
    found = client.call(metadata.FindCoordinatorRequest(version=3, key="mine", key_type=1), metadata.FindCoordinatorResponse)
    assert found.error_code and "transactions" in found.error_message


# --- Durability


class Recorder:
    """Notes each fsync and each commit of offsets, in order."""

    def __init__(self, monkeypatch):
        from standalone.log.broker.store import Store

        self.events = []
        sync, save = os.fdatasync, Store.save_offsets
        monkeypatch.setattr(os, "fdatasync", lambda fd: (self.events.append("fsync"), sync(fd)))
        monkeypatch.setattr(Store, "save_offsets", lambda *args: (self.events.append("offsets"), save(*args)))


@pytest.fixture
def unhurried(tmp_path):
    """A log that does not fsync of its own accord."""
    log = EmbeddedLog(tmp_path, "127.0.0.1:0", {"embedded.log.flush.interval.ms": "3600000"})
    log.start()
    with RawClient(log.bootstrap) as client:
        make_topic(client)
        yield log, client
    log.stop()


def test_sync_makes_durable_what_was_acknowledged_and_costs_nothing_when_clean(unhurried, monkeypatch):
    log, client = unhurried
    recorder = Recorder(monkeypatch)
    log.sync()
    assert recorder.events == []
    client.produce("t", batch([b"v"]))
    partition = log._node.topics.get("t").partitions[0]
    assert partition.durable == 0
    log.sync()
    assert partition.durable == 1 and recorder.events == ["fsync"]
    log.sync()
    assert recorder.events == ["fsync"]


def test_records_are_fsynced_before_the_offset_behind_them_is_kept(unhurried, monkeypatch):
    log, client = unhurried
    recorder = Recorder(monkeypatch)
    client.produce("t", batch([b"v"]))
    assert commit(client, 1) == 0
    assert recorder.events == ["fsync", "offsets"]
    client.produce("t", batch([b"w"]))
    assert commit(client, 1) == 0  # nothing new is spoken of
    assert recorder.events == ["fsync", "offsets", "offsets"]


def test_records_are_fsynced_after_the_interval(tmp_path):
    log = EmbeddedLog(tmp_path, "127.0.0.1:0", {"embedded.log.flush.interval.ms": 20})
    log.start()
    with RawClient(log.bootstrap) as client:
        make_topic(client)
        client.produce("t", batch([b"v"]))
        wait_for(lambda: log._node.topics.get("t").partitions[0].durable == 1)
    log.stop()


def test_sync_says_that_the_disk_failed(unhurried, monkeypatch):
    from standalone.errors import LogError

    log, client = unhurried
    client.produce("t", batch([b"v"]))

    def fail(fd):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fdatasync", fail)
    for _ in range(2):
        with pytest.raises(LogError, match="Input/output error"):
            log.sync()
    assert commit(client, 1) == codes.CoordinatorNotAvailableError.errno
    assert client.produce("t", batch([b"w"])).error_code == codes.KafkaStorageError.errno
    assert make_topic(client, "other").error_code == 0


def test_a_full_disk_refuses_records_and_the_server_goes_on(tmp_path):
    server = ServerProcess(tmp_path, file_limit=300_000)
    with RawClient(server.bootstrap) as client:
        make_topic(client)
        kept = 0
        while (answer := client.produce("t", batch([b"%d" % kept + b"." * 5000]))).error_code == 0:
            assert answer.base_offset == kept
            kept += 1
        assert answer.error_code == codes.KafkaStorageError.errno and kept > 10
        assert client.produce("t", batch([b"small"])).base_offset == kept
        make_topic(client, "other")
        assert client.produce("other", batch([b"v"])).error_code == 0
        assert len(values_of(client.fetch("t", 0).records)) == kept + 1
    errors = server.stop()
    assert "File too large" in errors and "Traceback" not in errors
    with running(tmp_path) as client:
        assert list_offset(client, -1) == (-1, kept + 1)
        assert len(values_of(client.fetch("t", 0).records)) == kept + 1


# --- Starting and stopping


def test_a_taken_port_is_an_error_that_names_it(log, tmp_path):
    second = EmbeddedLog(tmp_path / "second", log.bootstrap)
    with pytest.raises(StartError, match=f"embedded.log.listener: cannot listen on {log.bootstrap}"):
        second.start()
    second.stop()


def test_a_taken_folder_is_an_error_that_names_it_and_its_holder(tmp_path):
    server = ServerProcess(tmp_path)
    with pytest.raises(StartError, match=f"{tmp_path} is in use by another process .pid {server.process.pid}."):
        EmbeddedLog(tmp_path, "127.0.0.1:0").start()
    server.stop()
    with running(tmp_path):
        pass


@pytest.mark.parametrize("listener", ["", "9092", "host:", ":x", "h:70000"])
def test_a_listener_that_is_none(tmp_path, listener):
    with pytest.raises(StartError, match="embedded.log.listener"):
        EmbeddedLog(tmp_path, listener)


def test_a_damaged_sqlite_file_is_refused_by_name(tmp_path):
    (tmp_path / "log.sqlite").write_bytes(b"this is no database" * 100)
    with pytest.raises(StartError, match="log.sqlite"):
        EmbeddedLog(tmp_path, "127.0.0.1:0").start()
    (tmp_path / "log.sqlite").unlink()
    with running(tmp_path):
        pass


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StartError, match="embedded.log.dir"):
        EmbeddedLog(tmp_path / "file" / "log", "127.0.0.1:0").start()


def test_it_can_be_stopped_twice_and_leaves_no_thread(tmp_path):
    before = set(threading.enumerate())
    log = EmbeddedLog(tmp_path, "127.0.0.1:0")
    log.start()
    log.stop()
    log.stop()
    assert set(threading.enumerate()) <= before


def test_a_wildcard_listener_names_the_address_that_the_client_used(tmp_path):
    log = EmbeddedLog(tmp_path, "0.0.0.0:0")
    log.start()
    with RawClient(log.bootstrap) as client:
        found = client.call(metadata.MetadataRequest(version=9, topics=[]), metadata.MetadataResponse)
        assert f"{found.brokers[0].host}:{found.brokers[0].port}" == log.bootstrap
    log.stop()


def test_an_idle_server_needs_no_cpu(tmp_path):
    server = ServerProcess(tmp_path)
    with RawClient(server.bootstrap) as client:
        make_topic(client)
        client.fetch("t", 0, max_wait_ms=1)
        before = _cpu_seconds(server.process.pid)
        client.fetch("t", 0, max_wait_ms=1500)
        assert _cpu_seconds(server.process.pid) - before <= 0.03
    server.stop()


def _cpu_seconds(pid):
    fields = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# --- Options


def test_every_option_has_a_type_a_default_and_a_doc():
    assert len({option.name for option in options.OPTIONS}) == len(options.OPTIONS)
    for option in options.OPTIONS:
        assert option.name.startswith("embedded.log.") and option.doc.endswith(".")
    assert options.settings({})["embedded.log.retention.ms"] == 7 * 24 * 3600 * 1000


def test_texts_become_values():
    found = options.settings({"embedded.log.num.partitions": " 3 ", "embedded.log.auto.create.topics.enable": "False", "name": "x"})
    assert (found["embedded.log.num.partitions"], found["embedded.log.auto.create.topics.enable"]) == (3, False)


def test_all_wrong_options_are_named_at_once():
    with pytest.raises(ConfigError) as wrong:
        options.settings({"embedded.log.num.partitions": "0", "embedded.log.segment.bytes": "x", "embedded.log.nonsense": "1"})
    assert set(wrong.value.errors) == {"embedded.log.num.partitions", "embedded.log.segment.bytes", "embedded.log.nonsense"}
