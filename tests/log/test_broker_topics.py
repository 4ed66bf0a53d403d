"""Topics of the embedded log: names, configs, creation, deletion, and what is there after a restart."""

import logging
import time

import pytest
from kafka.protocol import admin, consumer, metadata, producer
from pytest import param

from standalone.log.broker import topics
from standalone.log.broker.refusal import codes
from standalone.log.broker.server import EmbeddedLog
from tests.log.broker_clients import (
    RawClient,
    batch,
    commit,
    delete_records,
    delete_topic,
    list_offset,
    make_topic,
    running,
    values_of,
    wait_for,
)

NOW_MS = int(time.time() * 1000)  # retention would delete older records at the next start


@pytest.fixture
def client(log):
    with RawClient(log.bootstrap) as client:
        yield client


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
        param({"cleanup_policy": "compact"}, 0, id="compaction"),
        param({"cleanup_policy": "compact,delete"}, 0, id="compaction and retention"),
        param({"cleanup_policy": "none"}, 40, id="no such policy"),
        param({"compression_type": "gzip"}, 0, id="recompression"),
        param({"min_insync_replicas": "1"}, 0, id="moot on one node"),
        param({"min_cleanable_dirty_ratio": "0.1"}, 0, id="a fraction"),
        param({"min_cleanable_dirty_ratio": "1.1"}, 40, id="a fraction above one"),
        param({"message_format_version": "3.0"}, 0, id="retired in Kafka 4"),
        param({"no_such_config": "1"}, 40, id="unknown"),
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
        wait_for(lambda: not (tmp_path / "0123.deleted").exists())


def test_producer_ids_are_never_given_twice(tmp_path):
    given = set()
    for _ in range(3):
        with running(tmp_path) as client:
            for _ in range(5):
                answer = client.call(producer.InitProducerIdRequest(version=4, transactional_id=None), producer.InitProducerIdResponse)
                assert answer.error_code == 0 and answer.producer_id not in given
                given.add(answer.producer_id)
