"""What one client can cost the embedded log and the others: memory, connections, time on the owner's thread; and ids after a recovery."""

import os
import socket
import threading
import time

import numpy as np
import pytest
from kafka.protocol import consumer, producer
from pytest import param

from standalone.log import batch_header
from standalone.log.broker import partitions, segments
from standalone.log.broker.refusal import codes
from standalone.log.broker.server import EmbeddedLog
from tests.log.broker_clients import RawClient, ServerProcess, batch, delete_topic, list_offset, make_topic, running, values_of, wait_for
from tests.suite.patience import PATIENCE_SECONDS

DAY_MS = 24 * 3600 * 1000


@pytest.fixture
def client(log):
    with RawClient(log.bootstrap) as client:
        yield client


# --- Producer ids


def new_id(client):
    answer = client.call(producer.InitProducerIdRequest(version=4, transactional_id=None), producer.InitProducerIdResponse)
    assert answer.error_code == 0
    return answer.producer_id


def test_a_producer_is_not_taken_for_another_after_the_sqlite_file_was_moved_away(tmp_path):
    with running(tmp_path) as client:
        make_topic(client)
        first = new_id(client)
        assert client.produce("t", batch([b"old"], producer_id=first, producer_epoch=0, base_sequence=0)).base_offset == 0
    for name in os.listdir(tmp_path):
        if name.startswith("log.sqlite"):
            os.unlink(tmp_path / name)
    with running(tmp_path) as client:
        second = new_id(client)
        assert second > first
        assert client.produce("t", batch([b"new"], producer_id=second, producer_epoch=0, base_sequence=0)).base_offset == 1
        assert [value for _, value in values_of(client.fetch("t", 0).records)] == [b"old", b"new"]


def test_a_partition_knows_a_bounded_number_of_producers(tmp_path, monkeypatch):
    from standalone.log.broker import producers

    monkeypatch.setattr(producers, "MAX_PRODUCERS", 3)
    known = producers.Producers()
    for producer_id in (1, 2, 3, 1, 4):  # 2 was silent for longest
        header = batch_header.parse_header(batch([b"v"], producer_id=producer_id, producer_epoch=0, base_sequence=len(known)))
        known.record(header, 0, 0)
    assert sorted(producer_id for producer_id, _ in known.items()) == [1, 3, 4]


def test_a_flush_does_not_write_every_producer_again(tmp_path):
    values = {**partitions_values(), "segment.bytes": 1 << 20}
    partition = partitions.Partition("t", 0, str(tmp_path / "t-0"), values)
    for producer_id in range(50):
        partition.append(memoryview(batch([b"v"], now_ms=0, producer_id=producer_id, producer_epoch=0, base_sequence=0)), 0)
        flush = partition.begin_flush()
        flush.run()
        partition.end_flush(flush)
    assert not os.path.exists(tmp_path / "t-0" / partitions.PRODUCERS_FILE)


def partitions_values():
    from standalone.log.broker import options

    return options.topic_values({}, options.settings({}))


# --- Timestamps


def test_a_timestamp_too_far_ahead_is_refused(client):
    make_topic(client)
    now = int(time.time() * 1000)
    assert client.produce("t", batch([b"v"], now_ms=now + DAY_MS)).error_code == codes.InvalidTimestampError.errno
    assert client.produce("t", batch([b"v"], now_ms=now + 60_000)).error_code == 0
    make_topic(client, "free", **{"message_timestamp_after_max_ms": 2 * DAY_MS, "message_timestamp_before_max_ms": 1000})
    assert client.produce("free", batch([b"v"], now_ms=now + DAY_MS)).error_code == 0
    assert client.produce("free", batch([b"v"], now_ms=now - DAY_MS)).error_code == codes.InvalidTimestampError.errno


def test_records_from_the_future_that_are_there_expire_by_the_time_they_were_written(tmp_path):
    values = {**partitions_values(), "segment.bytes": 1024, "retention.ms": 1000, "message.timestamp.after.max.ms": 1 << 62}
    partition = partitions.Partition("t", 0, str(tmp_path / "t-0"), values)
    now = int(time.time() * 1000)
    for number in range(5):
        partition.append(memoryview(batch([b"%d" % number * 900], now_ms=now + 1000 * DAY_MS)), now)
    assert len(partition.segments) == 5
    values["message.timestamp.after.max.ms"] = 3_600_000  # as it is by default, since
    partition.expire(now + 60_000)
    assert (partition.start, partition.end, len(partition.segments)) == (5, 5, 1)


# --- Memory


def resident_bytes(pid):
    return int(open(f"/proc/{pid}/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_length_alone_costs_no_memory(tmp_path):
    server = ServerProcess(tmp_path)
    server.wait_until_idle()
    before = resident_bytes(server.process.pid)
    strangers = []
    for _ in range(10):
        strangers.append(socket.create_connection(server.bootstrap.split(":"), 5))
        strangers[-1].sendall((100 << 20).to_bytes(4, "big") + b"\0")
    with RawClient(server.bootstrap) as client:
        assert make_topic(client).error_code == 0
        virtual = int(open(f"/proc/{server.process.pid}/statm").read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    assert resident_bytes(server.process.pid) - before < 20 << 20
    assert virtual < 4 << 30  # nor address space: 10 times 100 MB would show in what is reserved
    for stranger in strangers:
        stranger.close()
    server.stop()


def test_the_buffer_of_a_request_grows_with_what_arrives(log, client):
    make_topic(client, max_message_bytes=20 << 20)
    with socket.create_connection(log.bootstrap.split(":"), 5) as stranger:
        stranger.sendall((90 << 20).to_bytes(4, "big") + b"\0" * 100_000)
        body = wait_for(lambda: next((c._body for c in log._owner._connections if c._have >= 100_000), None))
        assert len(body) <= 400_000
    value = os.urandom(9 << 20)
    assert client.produce("t", batch([value])).error_code == 0
    assert values_of(client.fetch("t", 0, partition_max_bytes=10 << 20, max_bytes=10 << 20).records) == [(0, value)]


# --- What is in a batch


def garbage(now_ms):
    """A batch of which the header is right, and the checksum, and nothing else."""
    data = batch([b"v" * 100], now_ms=now_ms)
    data[batch_header.HEADER.size :] = b"\xff" * (len(data) - batch_header.HEADER.size)
    batch_header.set_checksum(np.frombuffer(data, np.uint8))
    return data


def damaged(at, compression="none"):
    """A batch of twenty records of which the byte at `at`, after the header, is another, with a checksum that fits."""
    data = batch([b"some words %d" % number for number in range(20)], compression=compression)
    data[batch_header.HEADER.size + at if at >= 0 else at] ^= 0x55
    batch_header.set_checksum(np.frombuffer(data, np.uint8))
    return data


def recounted(count):
    """A batch of twenty records that says it has others."""
    data = batch([b"v"] * 20)
    header = batch_header.parse_header(data)._replace(count=count, last_offset_delta=count - 1)
    batch_header.HEADER.pack_into(data, 0, *header)
    batch_header.set_checksum(np.frombuffer(data, np.uint8))
    return data


@pytest.mark.parametrize(
    "sent",
    [
        param(garbage(0), id="nothing of it is a record"),
        param(damaged(0), id="a record's length"),
        param(damaged(4), id="a key's length"),
        param(damaged(5), id="a value's length"),
        param(damaged(-1), id="the last headers"),
        param(recounted(19), id="fewer records than there are"),
        param(recounted(21), id="more records than there are"),
        param(recounted(2_000_000_000), id="far more"),
        *(param(damaged(at, codec), id=codec) for codec, at in (("gzip", -6), ("zstd", -6), ("lz4", 7), ("snappy", -6))),
    ],
)
def test_records_that_nobody_could_read_are_refused_whatever_their_checksum(client, sent):
    make_topic(client)
    answer = client.produce("t", sent)
    assert answer.error_code == codes.CorruptRecordError.errno and answer.error_message
    assert client.produce("t", batch([b"v"])).base_offset == 0


def test_a_batch_of_garbage_does_not_end_the_connections_that_ask_for_offsets(client, monkeypatch):
    monkeypatch.setattr(partitions, "check_records", lambda *_, **__: None)  # as it was kept before records were looked at
    make_topic(client)
    now = int(time.time() * 1000)
    client.produce("t", batch([b"v"], now_ms=now - 2000))
    client.produce("t", garbage(now - 1000))
    client.produce("t", batch([b"w"], now_ms=now - 500))
    end = list_offset(client, -1)[1]
    assert list_offset(client, now - 2000) == (now - 2000, 0)
    assert list_offset(client, now - 700) == (now - 500, end - 1)
    assert list_offset(client, now - 1500)[1] in (1, end - 1)


# --- Connections


def test_more_connections_than_allowed_are_closed_and_others_served(tmp_path):
    log = EmbeddedLog(tmp_path, "127.0.0.1:0", {"embedded.log.max.connections": 3})
    log.start()
    clients = [RawClient(log.bootstrap) for _ in range(3)]
    for client in clients:
        list_topics(client)
    with RawClient(log.bootstrap) as fourth, pytest.raises(OSError):
        list_topics(fourth)
    clients.pop().sock.close()

    def served():
        with RawClient(log.bootstrap) as another:
            try:
                list_topics(another)
            except OSError:
                return False
            return True

    wait_for(served)
    list_topics(clients[0])
    log.stop()


def list_topics(client):
    from kafka.protocol import metadata

    return client.call(metadata.MetadataRequest(version=9, topics=None), metadata.MetadataResponse)


@pytest.mark.parametrize(
    "sent",
    [
        param(b"", id="nothing was ever sent"),
        param((1000).to_bytes(4, "big") + b"half", id="a request that is never finished"),
    ],
)
def test_an_idle_connection_is_closed(tmp_path, sent):
    log = EmbeddedLog(tmp_path, "127.0.0.1:0", {"embedded.log.connections.max.idle.ms": 50})
    log.start()
    with socket.create_connection(log.bootstrap.split(":"), 5) as stranger:
        stranger.sendall(sent)
        assert stranger.recv(1) == b""
    log.stop()


def test_a_client_that_waits_for_records_is_not_idle(tmp_path):
    log = EmbeddedLog(tmp_path, "127.0.0.1:0", {"embedded.log.connections.max.idle.ms": 50})
    log.start()
    with RawClient(log.bootstrap) as client:
        make_topic(client)
        assert client.fetch("t", 0, max_wait_ms=400).error_code == 0
    log.stop()


# --- The owner's thread


@pytest.mark.parametrize("deed", ["unlink", "rmtree", "fsync"])
def test_a_slow_disk_holds_up_nobody(log, client, monkeypatch, deed):
    """A file that takes long to delete or to sync: heartbeats of others are answered meanwhile."""
    free = threading.Event()
    make_topic(client, segment_bytes=1024)
    for number in range(4):
        client.produce("t", batch([b"%d" % number * 900]))
    module = {"unlink": os, "rmtree": segments.shutil if hasattr(segments, "shutil") else __import__("shutil"), "fsync": os}[deed]
    real = getattr(module, deed)
    met = threading.Event()

    def slow(*args, **kwargs):
        met.set()
        free.wait(PATIENCE_SECONDS)
        return real(*args, **kwargs)

    monkeypatch.setattr(module, deed, slow)
    with RawClient(log.bootstrap) as other:
        if deed == "unlink":
            client.send(_delete_records(3))
        elif deed == "rmtree":
            client.send(_delete_topic())
        else:
            client.send(_create_topic())
        assert met.wait(PATIENCE_SECONDS)
        begun = time.monotonic()
        heartbeat(other)
        assert time.monotonic() - begun < 20
        free.set()
    client.receive_frame()


def heartbeat(client):
    return client.call(consumer.HeartbeatRequest(version=4, group_id="g", generation_id=1, member_id="m"), consumer.HeartbeatResponse)


def _delete_records(offset):
    from kafka.protocol import admin

    Topic = admin.DeleteRecordsRequest.DeleteRecordsTopic
    part = Topic.DeleteRecordsPartition(partition_index=0, offset=offset)
    return admin.DeleteRecordsRequest(version=2, topics=[Topic(name="t", partitions=[part])], timeout_ms=1000)


def _delete_topic():
    from kafka.protocol import admin

    return admin.DeleteTopicsRequest(version=5, topic_names=["t"], timeout_ms=1000)


def _create_topic():
    from kafka.protocol import admin

    Topic = admin.CreateTopicsRequest.CreatableTopic
    topic = Topic(name="another", num_partitions=1, replication_factor=1, assignments=[], configs=[])
    return admin.CreateTopicsRequest(version=7, topics=[topic], timeout_ms=1000)


def test_a_topic_is_on_the_disk_before_its_maker_hears_of_it(log, client, monkeypatch):
    synced = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (synced.append(os.readlink(f"/proc/self/fd/{fd}")), real(fd)))
    make_topic(client, "durable")
    assert any(path.endswith("log.sqlite-wal") for path in synced)
    synced.clear()
    delete_topic(client, "durable")
    assert any(path.endswith("log.sqlite-wal") for path in synced)


def test_the_folder_of_a_new_partition_is_synced_with_its_name(log, client, monkeypatch):
    synced = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (synced.append(os.readlink(f"/proc/self/fd/{fd}")), real(fd)))
    make_topic(client)
    client.produce("t", batch([b"v"]))
    log.sync()
    assert log._directory in synced and os.path.join(log._directory, "t-0") in synced
