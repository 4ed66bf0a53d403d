"""What is fsynced before it is said to be durable: files, and the folders that hold their names."""

import os
import shutil

import pytest

from standalone.log.broker.partitions import Partition
from standalone.log.broker.server import EmbeddedLog
from tests.log.broker_clients import RawClient, batch, delete_topic, make_topic
from tests.log.committed import committed
from tests.log.test_broker_limits import partitions_values


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


# --- A loss of power: what is left is what was synced


class Power:
    """Keeps, of a folder, what a loss of power would leave: of each file the bytes that were there when it was last synced."""

    def __init__(self, monkeypatch, folder, left):
        self._folder, self._left = str(folder), left
        for name in ("fsync", "fdatasync"):

            def synced(handle, sync=getattr(os, name)):
                self._keep(os.readlink(f"/proc/self/fd/{handle}"))  # before: what comes meanwhile may not be in it
                sync(handle)

            monkeypatch.setattr(os, name, synced)

    def _keep(self, path):
        if not path.startswith(self._folder + os.sep) or os.path.isdir(path):
            return
        paths = [path]
        if path.endswith("-wal"):
            paths.append(path.removesuffix("-wal"))  # SQLite syncs it by itself, before it empties its journal
        for each in paths:
            to = os.path.join(self._left, os.path.relpath(each, self._folder))
            os.makedirs(os.path.dirname(to), exist_ok=True)
            shutil.copyfile(each, to)


@pytest.mark.parametrize("acks", ["fsync", "write"])
def test_what_is_acknowledged_by_fsync_survives_a_loss_of_power(tmp_path, monkeypatch, acks):
    """By `write` it need not: that the same run loses something then shows that the test can see it."""
    left = tmp_path / "left"
    Power(monkeypatch, tmp_path / "log", left)
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
    after = EmbeddedLog(left, "127.0.0.1:0", settings)
    after.start()
    found = {name: committed(after.bootstrap, name) for name in acknowledged}
    after.stop()
    log.stop()
    assert (found == acknowledged) is (acks == "fsync")
