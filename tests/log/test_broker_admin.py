"""What admin tools ask of the embedded log; room and durability as the worker's keys set them."""

import os

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from kafka.protocol import admin, consumer, metadata
from kafka.protocol.producer import ProduceResponse
from pytest import param

from standalone.errors import ConfigError, StartError
from standalone.log.broker import options
from standalone.log.broker.refusal import codes
from standalone.log.broker.server import EmbeddedLog
from tests.log.broker_clients import RawClient, batch, make_topic, produce_request, running, wait_for
from tests.suite.patience import PATIENCE_SECONDS


@pytest.fixture
def started(tmp_path):
    """start(**config) -> (log, client)"""
    logs = []

    def start(**config):
        log = EmbeddedLog(tmp_path / "log", "127.0.0.1:0", {f"embedded.log.{name.replace('_', '.')}": value for name, value in config.items()})
        log.start()
        logs.append((log, RawClient(log.bootstrap)))
        return logs[-1]

    yield start
    for log, client in logs:
        client.sock.close()
        log.stop()


# --- Configs


def describe_configs(client, kind, name, *keys):
    Resource = admin.DescribeConfigsRequest.DescribeConfigsResource
    request = admin.DescribeConfigsRequest(
        version=4,
        resources=[Resource(resource_type=kind, resource_name=name, configuration_keys=list(keys) or None)],
        include_synonyms=True,
        include_documentation=True,
    )
    result = client.call(request, admin.DescribeConfigsResponse).results[0]
    assert result.error_code == 0
    return {config.name: config for config in result.configs}


def alter(client, request_class, Config, configs):
    Resource = request_class.AlterConfigsResource
    response_class = getattr(admin, request_class.__name__.replace("Request", "Response"))
    resource = Resource(resource_type=2, resource_name="t", configs=[Config(**config) for config in configs])
    return client.call(request_class(version=1, resources=[resource], validate_only=False), response_class).responses[0].error_code


def test_alter_configs_takes_the_place_of_all_that_was_set(started):
    _, client = started()
    make_topic(client, retention_ms=1, min_insync_replicas=1)
    Config = admin.AlterConfigsRequest.AlterConfigsResource.AlterableConfig
    assert alter(client, admin.AlterConfigsRequest, Config, [{"name": "segment.bytes", "value": "5000"}]) == 0
    found = describe_configs(client, 2, "t")
    assert (found["segment.bytes"].value, found["segment.bytes"].config_source) == ("5000", 1)
    assert found["retention.ms"].config_source == 5


@pytest.mark.parametrize(
    "operation, value, expected",
    [
        param(2, "compact", "delete,compact", id="append"),
        param(2, "delete", "delete", id="append what is there"),
        param(0, "compact", "compact", id="set"),
        param(3, "delete", "", id="subtract"),
        param(1, None, "delete", id="delete"),
    ],
)
def test_lists_are_altered_by_their_items(started, operation, value, expected):
    _, client = started()
    make_topic(client)
    request = admin.IncrementalAlterConfigsRequest
    change = {"name": "cleanup.policy", "config_operation": operation, "value": value}
    assert alter(client, request, request.AlterConfigsResource.AlterableConfig, [change]) == 0
    assert describe_configs(client, 2, "t", "cleanup.policy")["cleanup.policy"].value == expected


def test_a_config_names_its_synonyms(started):
    _, client = started(retention_ms=99)
    make_topic(client, retention_ms=5)
    found = describe_configs(client, 2, "t", "retention.ms")["retention.ms"]
    assert [(synonym.name, synonym.value, synonym.source) for synonym in found.synonyms] == [
        ("retention.ms", "5", 1),
        ("log.retention.ms", "99", 4),
        ("log.retention.ms", str(options.WEEK_MS), 5),
    ]


def test_the_broker_has_all_of_kafkas_configs_and_shows_no_password(started):
    _, client = started(num_partitions=3)
    found = describe_configs(client, 4, "1")
    assert len(found) == 340
    assert (found["num.partitions"].value, found["num.partitions"].config_source) == ("3", 4)
    assert all(config.value is None for config in found.values() if config.is_sensitive)
    assert found["ssl.key.password"].is_sensitive
    assert describe_configs(client, 4, "") == {}


# --- What a cluster is asked


def test_log_dirs_name_the_folder_and_the_size_of_each_partition(started):
    log, client = started()
    make_topic(client, partitions=2)
    data = batch([b"v"])
    client.produce("t", data)
    answer = client.call(admin.DescribeLogDirsRequest(version=4, topics=None), admin.DescribeLogDirsResponse).results[0]
    assert answer.log_dir == log._directory and 0 < answer.usable_bytes <= answer.total_bytes
    assert [part.partition_size for part in answer.topics[0].partitions] == [len(data), 0]


@pytest.mark.parametrize("epoch, current, expected", [(0, -1, (0, 0, 2)), (1, -1, (0, -1, -1)), (0, 7, (codes.UnknownLeaderEpochError.errno, -1, -1))])
def test_the_end_of_a_leader_epoch(started, epoch, current, expected):
    _, client = started()
    make_topic(client)
    client.produce("t", batch([b"v", b"w"]))
    Topic = consumer.OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    part = Topic.OffsetForLeaderPartition(partition=0, leader_epoch=epoch, current_leader_epoch=current)
    request = consumer.OffsetForLeaderEpochRequest(version=4, topics=[Topic(topic="t", partitions=[part])])
    found = client.call(request, consumer.OffsetForLeaderEpochResponse).topics[0].partitions[0]
    assert (found.error_code, found.leader_epoch, found.end_offset) == expected


def test_quotas_are_kept_and_shown(tmp_path):
    Entry = admin.AlterClientQuotasRequest.EntryData

    def change(client, **op):
        entity = [Entry.EntityData(entity_type="user", entity_name="ann")]
        entry = Entry(entity=entity, ops=[Entry.OpData(key="producer_byte_rate", **op)])
        assert client.call(admin.AlterClientQuotasRequest(version=1, entries=[entry], validate_only=False), admin.AlterClientQuotasResponse).entries[0].error_code == 0

    def shown(client):
        answer = client.call(admin.DescribeClientQuotasRequest(version=1, components=[], strict=False), admin.DescribeClientQuotasResponse)
        return [(entry.entity[0].entity_name, entry.values[0].value) for entry in answer.entries]

    with running(tmp_path) as client:
        change(client, value=1024.0, remove=False)
    with running(tmp_path) as client:
        assert shown(client) == [("ann", 1024.0)]
        change(client, value=0.0, remove=True)
        assert shown(client) == []


# --- Users and ACLs


def test_users_are_kept_without_their_passwords(started, tmp_path):
    log, _ = started()
    client = AdminClient({"bootstrap.servers": log.bootstrap})
    added = UserScramCredentialUpsertion("ann", ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 8192), b"very secret")
    client.alter_user_scram_credentials([added])["ann"].result(PATIENCE_SECONDS)
    log.stop()
    for name in os.listdir(tmp_path / "log"):
        if name.startswith("log.sqlite"):
            assert b"very secret" not in (tmp_path / "log" / name).read_bytes()
    log.start()
    client = AdminClient({"bootstrap.servers": log.bootstrap})
    found = client.describe_user_scram_credentials(["ann"])["ann"].result(PATIENCE_SECONDS).scram_credential_infos
    assert [(info.mechanism, info.iterations) for info in found] == [(ScramMechanism.SCRAM_SHA_256, 8192)]
    client.alter_user_scram_credentials([UserScramCredentialDeletion("ann", ScramMechanism.SCRAM_SHA_256)])["ann"].result(PATIENCE_SECONDS)
    with pytest.raises(KafkaException):
        client.describe_user_scram_credentials(["ann"])["ann"].result(PATIENCE_SECONDS)


def test_acls_are_said_to_be_disabled(started):
    _, client = started()
    request = admin.DescribeAclsRequest(version=3, resource_type_filter=1, pattern_type_filter=1, operation=1, permission_type=1)
    answer = client.call(request, admin.DescribeAclsResponse)
    assert answer.error_code == codes.SecurityDisabledError.errno and "no authorizer" in answer.error_message


# --- acks, room, address


def test_with_acks_fsync_what_is_acknowledged_is_on_the_disk(started, monkeypatch):
    log, client = started(acks="fsync", flush_interval_ms=3_600_000)
    make_topic(client)
    for number in range(3):
        assert client.produce("t", batch([b"v"])).base_offset == number
        assert log._node.topics.get("t").partitions[0].durable == number + 1

    def fail(fd):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fdatasync", fail)
    assert client.produce("t", batch([b"v"])).error_code == codes.KafkaStorageError.errno


def test_with_acks_fsync_those_who_wait_are_synced_together(started, monkeypatch):
    import threading

    log, client = started(acks="fsync")
    make_topic(client)
    free, syncs, sync = threading.Event(), [], os.fdatasync
    monkeypatch.setattr(os, "fdatasync", lambda fd: (syncs.append(fd), free.wait(PATIENCE_SECONDS), sync(fd)))
    others = [RawClient(log.bootstrap) for _ in range(5)]
    for other in others:
        other.send(produce_request("t", batch([b"v"])))
    wait_for(lambda: log._node.topics.get("t").partitions[0].end == 5)
    free.set()
    for other in others:
        assert other.receive(ProduceResponse, 9).responses[0].partition_responses[0].error_code == 0
        other.sock.close()
    assert len(syncs) <= 3


def test_beyond_the_bound_the_oldest_files_of_all_topics_go_but_none_of_compacted_ones(started):
    log, client = started(max_bytes=110_000, segment_bytes=10_000)
    for name, policy in (("old", "delete"), ("new", "delete"), ("kept", "compact")):
        make_topic(client, name, cleanup_policy=policy)
    from standalone import wire
    from standalone.log import record_batch

    keyed = record_batch.pack(wire.Records(1, keys=wire.ByteColumn.of([b"k"]), values=wire.ByteColumn.of([b"." * 9000])))
    for _ in range(3):
        assert client.produce("kept", bytearray(keyed)).error_code == 0
    for name in ("old", "new"):
        for _ in range(8):
            client.produce(name, batch([b"." * 9000]))
    log._owner.post(log._node._make_room)
    wait_for(lambda: sum(size for _, _, size, _, _ in log.sizes()) <= 110_000)
    starts = {topic: start for topic, _, _, start, _ in log.sizes()}
    assert starts["old"] > 0 and starts["new"] == starts["kept"] == 0


@pytest.mark.parametrize("listener", ["127.0.0.1:0", "0.0.0.0:0"])
def test_clients_are_told_the_advertised_address(tmp_path, listener):
    log = EmbeddedLog(tmp_path, listener, {"embedded.log.advertised.listeners": "kafka.example:19092"})
    log.start()
    with RawClient(log.bootstrap) as client:
        found = client.call(metadata.MetadataRequest(version=9, topics=[]), metadata.MetadataResponse).brokers[0]
        assert (found.host, found.port) == ("kafka.example", 19092)
        wanted = metadata.FindCoordinatorRequest(version=3, key="g", key_type=0)
        assert client.call(wanted, metadata.FindCoordinatorResponse).host == "kafka.example"
    log.stop()


def test_wrong_settings_are_refused(tmp_path):
    with pytest.raises(StartError, match="embedded.log.advertised.listeners"):
        EmbeddedLog(tmp_path, "127.0.0.1:0", {"embedded.log.advertised.listeners": "nowhere"})
    with pytest.raises(ConfigError) as wrong:
        options.settings({"embedded.log.acks": "sometimes"})
    assert set(wrong.value.errors) == {"embedded.log.acks"}
