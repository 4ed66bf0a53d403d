"""Commits of a group that wait for the disk: their order, and who reads them meanwhile."""

import threading

import pytest
from kafka.protocol.consumer import OffsetCommitRequest, OffsetCommitResponse, OffsetFetchRequest, OffsetFetchResponse

from standalone.log.broker import partitions
from standalone.log.broker.server import EmbeddedLog
from tests.log.broker_clients import RawClient, batch, make_topic, wait_for
from tests.suite.patience import PATIENCE_SECONDS


@pytest.fixture
def slow_disk(tmp_path, monkeypatch):
    """(a log with topic `t` of one record, an event before which no fsync ends)."""
    may_sync, sync = threading.Event(), partitions._sync_file
    may_sync.set()
    monkeypatch.setattr(partitions, "_sync_file", lambda *file: may_sync.wait(PATIENCE_SECONDS) and sync(*file))
    log = EmbeddedLog(tmp_path, "127.0.0.1:0", {"embedded.log.flush.interval.ms": "3600000"})
    log.start()
    with RawClient(log.bootstrap) as client:
        make_topic(client)
        for _ in range(3):
            client.produce("t", batch([b"v"]))
    may_sync.clear()
    yield log, may_sync
    may_sync.set()
    log.stop()


def committed_request(version=7):
    Topic = OffsetFetchRequest.OffsetFetchRequestTopic
    if version < 8:
        return OffsetFetchRequest(version=version, group_id="g", topics=[Topic(name="t", partition_indexes=[0])])
    Group = OffsetFetchRequest.OffsetFetchRequestGroup
    topics = [Group.OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
    return OffsetFetchRequest(version=version, groups=[Group(group_id="g", topics=topics)])


def commit_request(offset):
    Topic = OffsetCommitRequest.OffsetCommitRequestTopic
    part = Topic.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
    topics = [Topic(name="t", partitions=[part])]
    return OffsetCommitRequest(version=8, group_id="g", generation_id_or_member_epoch=-1, member_id="", topics=topics)


def has_come(log, count):
    """When so many requests wait."""
    wait_for(lambda: len([c for c in log._owner._connections if c.busy]) == count)


@pytest.mark.parametrize("version", [7, 8])
def test_who_takes_over_reads_the_commit_that_its_former_reader_has_on_the_way(slow_disk, version):
    log, may_sync = slow_disk
    with RawClient(log.bootstrap) as former, RawClient(log.bootstrap) as next_one:
        former.send(commit_request(3))
        has_come(log, 1)
        former.sock.close()  # without waiting for the answer
        next_one.send(committed_request(version))
        wait_for(lambda: [c.busy for c in log._owner._connections] == [True])  # the former one is gone
        may_sync.set()
        answer = next_one.receive(OffsetFetchResponse, version)
        topics = answer.topics if version < 8 else answer.groups[0].topics
        assert topics[0].partitions[0].committed_offset == 3


def test_commits_are_made_in_the_order_in_which_they_came(slow_disk):
    log, may_sync = slow_disk
    with RawClient(log.bootstrap) as first, RawClient(log.bootstrap) as second, RawClient(log.bootstrap) as third:
        first.send(commit_request(3))
        has_come(log, 1)
        second.send(commit_request(0))  # a reset, which waits for no record
        has_come(log, 2)
        may_sync.set()
        assert first.receive(OffsetCommitResponse, 8).topics[0].partitions[0].error_code == 0
        assert second.receive(OffsetCommitResponse, 8).topics[0].partitions[0].error_code == 0
        assert third.call(committed_request(), OffsetFetchResponse).topics[0].partitions[0].committed_offset == 0
