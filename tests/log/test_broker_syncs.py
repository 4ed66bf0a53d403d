"""What is fsynced before it is said to be durable: files, and the folders that hold their names."""

import os
import shutil
import threading

import pytest
from kafka.protocol.producer import ProduceResponse

from standalone.log.broker.partitions import Partition
from standalone.log.broker.server import EmbeddedLog
from tests.log import power
from tests.log.broker_clients import (
    RawClient,
    batch,
    delete_topic,
    fetch_request,
    list_offset,
    make_topic,
    produce_request,
    values_of,
    wait_for,
)
from tests.log.committed import committed
from tests.log.power import Power, lose_power
from tests.log.test_broker_limits import partitions_values
from tests.log.test_transactions import Writer

LATE = {"embedded.log.flush.interval.ms": "3600000"}  # nothing is synced by the by


@pytest.fixture
def synced(monkeypatch):
    """The paths that were fsynced, in order."""
    found = []
    for name in ("fsync", "fdatasync"):

        def noted(handle, sync=getattr(os, name)):
            found.append(os.readlink(f"/proc/self/fd/{handle}"))
            sync(handle)

        monkeypatch.setattr(os, name, noted)
    return found


def flushed(partition):
    flush = partition.begin_flush()
    flush.run()
    partition.end_flush(flush)


def test_the_first_sync_of_a_partition_makes_its_folder_durable_too_and_later_ones_do_not(tmp_path, synced):
    folder = str(tmp_path / "t-0")
    for _ in range(2):  # the second time as after a crash: a folder that is there may not be on the disk
        partition = Partition("t", 0, folder, {**partitions_values(), "segment.bytes": 1 << 20})
        partition.append(memoryview(batch([b"v"], now_ms=0)), 0)
        synced.clear()
        flushed(partition)
        assert synced[0].endswith(".log") and {folder, str(tmp_path)} <= set(synced)
        partition.append(memoryview(batch([b"v"], now_ms=0)), 0)
        synced.clear()
        flushed(partition)
        assert str(tmp_path) not in synced and len(synced) == 1
        partition.close()


def test_a_new_segment_makes_its_name_durable(tmp_path, synced):
    partition = Partition("t", 0, str(tmp_path / "t-0"), {**partitions_values(), "segment.bytes": 1 << 20})
    partition.append(memoryview(batch([b"v"], now_ms=0)), 0)
    flushed(partition)
    partition.roll()
    partition.append(memoryview(batch([b"v"], now_ms=0)), 0)
    synced.clear()
    flushed(partition)
    assert str(tmp_path / "t-0") in synced


def test_a_topic_is_made_and_deleted_with_its_folders_before_that_is_answered(tmp_path, synced):
    log = EmbeddedLog(tmp_path, "127.0.0.1:0")
    log.start()
    with RawClient(log.bootstrap) as client:
        for change in (make_topic, delete_topic):
            synced.clear()
            assert change(client).error_code == 0
            assert {str(tmp_path), str(tmp_path / "log.sqlite-wal")} <= set(synced)
    log.stop()


# --- A loss of power (power.py)


@pytest.mark.parametrize("acks", ["fsync", "write"])
def test_what_is_acknowledged_by_fsync_survives_a_loss_of_power(tmp_path, monkeypatch, acks):
    """By `write` it need not: that the same run loses something then shows that the test can see it."""
    Power(tmp_path / "log", tmp_path / "notes").install(monkeypatch.setattr)
    settings = {"embedded.log.acks": acks, "embedded.log.flush.interval.ms": "3600000", "embedded.log.segment.bytes": "20000"}
    log = EmbeddedLog(tmp_path / "log", "127.0.0.1:0", settings)
    log.start()
    acknowledged = {}
    with RawClient(log.bootstrap) as client:
        for name in ("one", "two"):
            make_topic(client, name)
        for number in range(60):
            for name in ("one", "two"):
                value = b"%d of %s %s" % (number, name.encode(), b"x" * 1000)
                assert client.produce(name, batch([value])).error_code == 0
                acknowledged.setdefault(name, []).append(value)
    monkeypatch.undo()  # the end of the first log is not of interest
    shutil.copytree(tmp_path / "notes", tmp_path / "kept")
    log.stop()
    lose_power(tmp_path / "log", tmp_path / "kept")
    after = EmbeddedLog(tmp_path / "log", "127.0.0.1:0", settings)
    after.start()
    found = {name: committed(after.bootstrap, name) for name in acknowledged}
    after.stop()
    assert (found == acknowledged) is (acks == "fsync")


def _lost(tmp_path, log):
    """The log as it is after a loss of power at this moment, started."""
    shutil.copytree(tmp_path / "notes", tmp_path / "kept")
    log.stop()
    lose_power(tmp_path / "log", tmp_path / "kept")
    after = EmbeddedLog(tmp_path / "log", "127.0.0.1:0", LATE | {"embedded.log.acks": "fsync"})
    after.start()
    return after


@pytest.fixture
def synced_log(tmp_path, monkeypatch):
    Power(tmp_path / "log", tmp_path / "notes").install(monkeypatch.setattr)
    log = EmbeddedLog(tmp_path / "log", "127.0.0.1:0", LATE | {"embedded.log.acks": "fsync"})
    log.start()
    yield log
    log.stop()


def test_how_a_transaction_ended_survives_a_loss_of_power(tmp_path, synced_log):
    with RawClient(synced_log.bootstrap) as client:
        make_topic(client, partitions=2)
    with Writer(synced_log.bootstrap, "mine") as writer:
        for value, end in ((b"first", writer.producer.commit_transaction), (b"aborted", writer.producer.abort_transaction)):
            writer.write("t", value)
            end()
    after = _lost(tmp_path, synced_log)
    with Writer(after.bootstrap, "mine") as writer:
        writer.write("t", b"second")
        writer.producer.commit_transaction()
    assert committed(after.bootstrap, "t") == [b"first", b"second"]
    after.stop()


def test_a_transaction_that_went_on_is_not_told_to_have_been_committed_before(tmp_path, synced_log):
    """The one before it was: anyone who asks for an end twice is told that it is done."""
    with RawClient(synced_log.bootstrap) as client:
        make_topic(client)
    with Writer(synced_log.bootstrap, "mine") as writer:
        writer.write("t", b"first")
        writer.producer.commit_transaction()
        writer.write("t", b"second")
        transactions = writer.producer._transactions
        after = _lost(tmp_path, synced_log)
        with Writer(after.bootstrap, "another") as stranger:
            transactions._cluster, transactions._coordinator = stranger.producer._transactions._cluster, None
            writer.producer.commit_transaction()
    assert committed(after.bootstrap, "t") == [b"first", b"second"]
    after.stop()


@pytest.mark.parametrize("first_end", ["commit_transaction", "abort_transaction"])
def test_the_end_of_a_transaction_does_not_end_the_next_one_after_a_loss_of_power(tmp_path, synced_log, first_end):
    """The records of the next one were synced, and the coordinator's file was not since the first one's end was acknowledged."""
    with RawClient(synced_log.bootstrap) as client:
        make_topic(client)
    with Writer(synced_log.bootstrap, "mine") as writer:
        writer.write("t", b"first")
        getattr(writer.producer, first_end)()
        shutil.copytree(tmp_path / "notes", tmp_path / "earlier")
        writer.write("t", b"second")
        for path in (tmp_path / "log").glob("log.sqlite*"):
            mark = power.mark_of(path)
            if (tmp_path / "earlier" / "bytes" / mark).exists():
                shutil.copy(tmp_path / "earlier" / "bytes" / mark, tmp_path / "notes" / "bytes" / mark)
        transactions = writer.producer._transactions
        after = _lost(tmp_path, synced_log)
        assert len(after._node.topics.partition("t", 0).producers.open_transactions) == 1
        with Writer(after.bootstrap, "another") as stranger:
            transactions._cluster, transactions._coordinator = stranger.producer._transactions._cluster, None
            writer.producer.commit_transaction()
    assert committed(after.bootstrap, "t") == ([b"first"] if first_end == "commit_transaction" else []) + [b"second"]
    after.stop()


def test_what_a_loss_of_power_may_take_back_is_not_read(tmp_path, synced_log, monkeypatch):
    held, sync = threading.Event(), os.fdatasync
    with RawClient(synced_log.bootstrap) as client, RawClient(synced_log.bootstrap) as reader:
        make_topic(client)
        monkeypatch.setattr(os, "fdatasync", lambda handle: (held.wait(60), sync(handle)))
        reader.send(fetch_request("t", 0, max_wait_ms=30_000))
        client.send(produce_request("t", batch([b"v"])))
        wait_for(lambda: synced_log._node.topics.partition("t", 0).end == 1)
        with RawClient(synced_log.bootstrap) as other:
            found = other.fetch("t", 0)
            assert (found.error_code, found.high_watermark, found.last_stable_offset, found.records) == (0, 0, 0, b"")
            assert list_offset(other, -1)[1] == 0
        held.set()
        assert client.receive(ProduceResponse, 9).responses[0].partition_responses[0].error_code == 0
        assert values_of(reader.fetched().records) == [(0, b"v")]
