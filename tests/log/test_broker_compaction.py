"""Compaction: the last record of each key stays, at its offset; deleted keys go after a while; readers notice nothing."""

import logging
import os
import random

import pytest
from pytest import param

from standalone import wire
from standalone.errors import CorruptBatchError
from standalone.log import record_batch
from standalone.log.broker import compaction, options
from standalone.log.broker.partitions import Partition
from standalone.log.broker.refusal import codes
from standalone.log.broker.server import EmbeddedLog
from tests.log.broker_clients import RawClient, batch, make_topic, wait_for

DEFAULTS = options.settings({})
DAY_MS = 24 * 3600 * 1000


def keyed(pairs, now_ms=0, **config):
    keys, values = zip(*pairs)
    records = wire.Records(len(pairs), keys=wire.ByteColumn.of(list(keys)), values=wire.ByteColumn.of(list(values)))
    return bytearray(record_batch.pack(records, now_ms=now_ms, **config))


def opened(folder, **configs):
    texts = {"cleanup.policy": "compact", "segment.bytes": "1024", "min.cleanable.dirty.ratio": "0"}
    texts |= {name.replace("_", "."): str(value) for name, value in configs.items()}
    return Partition("t", 0, str(folder / "t-0"), options.topic_values(texts, DEFAULTS))


def put(partition, *pairs, now_ms=0, **config):
    return partition.append(memoryview(keyed(pairs, now_ms, **config)), now_ms).base_offset


def flushed(partition):
    flush = partition.begin_flush()
    flush.run()
    partition.end_flush(flush)


def compact(partition, now_ms=0):
    """As the log does it, in one thread."""
    partition.roll()
    flushed(partition)
    job = compaction.plan(partition, now_ms)
    if job:
        job.run()
        job.finish()
        assert job.error is None
    return job


def rows(partition):
    """[(offset, key, value)] as a consumer reads them."""
    found, offset = [], partition.start
    while (piece := partition.read(offset, 1 << 20, at_least_one=True)) is not None:
        unpacked = record_batch.unpack(piece.read())  # checks every checksum
        for records in unpacked.records:
            for at, key, value in zip(records.offsets.tolist(), records.keys, records.values or [None] * len(records)):
                if at >= offset:
                    found.append((at, key, value))
        offset = unpacked.next_offset
    return found


@pytest.mark.parametrize("compression", ["none", "gzip", "lz4", "snappy", "zstd"])
def test_the_last_record_of_each_key_stays_at_its_offset(tmp_path, compression):
    partition = opened(tmp_path)
    rng, latest, offset = random.Random(7), {}, 0
    for _ in range(60):
        pairs = [(b"%d" % rng.randrange(9), b"%d" % rng.randrange(10**6) + b"." * 40) for _ in range(rng.randrange(1, 5))]
        put(partition, *pairs, compression=compression)
        for key, value in pairs:
            latest[key] = (offset, value)
            offset += 1
    before = partition.size
    compact(partition)
    expected = sorted((at, key, value) for key, (at, value) in latest.items())
    assert rows(partition) == expected and partition.end == offset and partition.size < before
    partition.close()
    again = opened(tmp_path)
    assert rows(again) == expected and again.end == offset
    assert [again.read(at, 1 << 20, True) is not None for at in range(expected[-1][0])] == [True] * expected[-1][0]
    assert put(again, (b"0", b"new")) == offset


def test_a_second_compaction_takes_what_came_since(tmp_path):
    partition = opened(tmp_path)
    put(partition, (b"a", b"1"), (b"b", b"1"))
    compact(partition)
    put(partition, (b"a", b"2"))
    compact(partition)
    assert [(key, value) for _, key, value in rows(partition)] == [(b"b", b"1"), (b"a", b"2")]


def test_a_key_that_was_deleted_is_told_for_a_while_and_then_forgotten(tmp_path):
    partition = opened(tmp_path, delete_retention_ms=1000)
    put(partition, (b"a", b"1"), (b"b", b"1"))
    put(partition, (b"a", None))
    compact(partition, now_ms=10_000)
    assert [(key, value) for _, key, value in rows(partition)] == [(b"b", b"1"), (b"a", None)]
    put(partition, (b"c", b"1"))
    compact(partition, now_ms=10_500)
    assert (b"a", None) in [(key, value) for _, key, value in rows(partition)]
    partition.close()
    partition = opened(tmp_path, delete_retention_ms=1000)
    put(partition, (b"d", b"1"))
    compact(partition, now_ms=11_600)
    assert [key for _, key, _ in rows(partition)] == [b"b", b"c", b"d"]


@pytest.mark.parametrize(
    "configs, now_ms, worth_it",
    [
        param({"min_cleanable_dirty_ratio": 0.5}, 0, False, id="too little is new"),
        param({"min_cleanable_dirty_ratio": 0.1}, 0, True, id="enough is new"),
        param({"min_cleanable_dirty_ratio": 1, "max_compaction_lag_ms": 5}, 1000, True, id="what is new is old enough"),
        param({"min_cleanable_dirty_ratio": 0, "min_compaction_lag_ms": 5000}, 1000, False, id="all is too young"),
    ],
)
def test_when_a_compaction_is_worth_it(tmp_path, configs, now_ms, worth_it):
    partition = opened(tmp_path, **configs)
    partition.values["min.cleanable.dirty.ratio"], ratio = 0, partition.values["min.cleanable.dirty.ratio"]
    lag, partition.values["min.compaction.lag.ms"] = partition.values["min.compaction.lag.ms"], 0
    for number in range(40):
        put(partition, (b"%d" % number, b"." * 200))
    compact(partition)
    partition.values["min.cleanable.dirty.ratio"], partition.values["min.compaction.lag.ms"] = ratio, lag
    for number in range(10):
        put(partition, (b"%d" % number, b"." * 200))
    assert (compact(partition, now_ms) is not None) == worth_it


def test_what_a_transaction_wrote_stays_if_it_was_committed(tmp_path):
    partition = opened(tmp_path, delete_retention_ms=1000)

    def write(sequence, *pairs):
        put(partition, *pairs, producer_id=5, producer_epoch=0, base_sequence=sequence, transactional=True)

    write(0, (b"a", b"committed"))
    partition.end_transaction(5, 0, True, 0)
    write(1, (b"a", b"aborted"), (b"b", b"aborted"))
    partition.end_transaction(5, 0, False, 0)
    write(3, (b"c", b"open"))
    put(partition, (b"a", b"behind"))
    partition.roll()
    put(partition, (b"z", b"z"))
    compact(partition)
    assert len(rows(partition)) == 6  # nothing is touched that reaches beyond the open transaction
    partition.end_transaction(5, 0, True, 0)
    compact(partition, now_ms=DAY_MS)
    assert [(key, value) for _, key, value in rows(partition)] == [(b"c", b"open"), (b"a", b"behind"), (b"z", b"z")]
    partition.close()
    os.unlink(tmp_path / "t-0" / "producers.json")
    again = opened(tmp_path)
    assert again.last_stable_offset == again.end


def test_a_crash_in_the_midst_leaves_what_was_there(tmp_path):
    partition = opened(tmp_path)
    for number in range(30):
        put(partition, (b"%d" % (number % 3), b"%d" % number + b"." * 100))
    partition.roll()
    flushed(partition)
    job = compaction.plan(partition, 0)
    job.run()  # and the process dies
    before = rows(partition)
    again = opened(tmp_path)
    assert rows(again) == before
    assert not [name for name in os.listdir(tmp_path / "t-0") if name.endswith(".cleaned")]


def test_a_segment_that_retention_took_meanwhile_does_not_come_back(tmp_path):
    partition = opened(tmp_path)
    for number in range(30):
        put(partition, (b"%d" % (number % 3), b"%d" % number + b"." * 100))
    partition.roll()
    flushed(partition)
    job = compaction.plan(partition, 0)
    job.run()
    partition.trim(20)
    job.finish()
    assert partition.start == 20 and [key for _, key, _ in rows(partition)] == [b"0", b"1", b"2"]
    assert not [name for name in os.listdir(tmp_path / "t-0") if name.endswith(".cleaned")]


def test_a_batch_that_nobody_can_read_is_kept_as_it_is(tmp_path, monkeypatch):
    partition = opened(tmp_path)
    put(partition, (b"a", b"1"))
    put(partition, (b"a", b"2"))

    def fail(*_, **__):
        raise CorruptBatchError("garbage")

    partition.roll()
    flushed(partition)
    job = compaction.plan(partition, 0)
    with monkeypatch.context() as patched:
        patched.setattr(record_batch, "unpack", fail)
        job.run()
    job.finish()
    assert [value for _, _, value in rows(partition)] == [b"1", b"2"]


def test_a_compacted_topic_takes_no_record_without_a_key(tmp_path, caplog):
    log = EmbeddedLog(tmp_path, "127.0.0.1:0")
    log.start()
    with RawClient(log.bootstrap) as client:
        make_topic(client, cleanup_policy="compact", min_cleanable_dirty_ratio="0", segment_bytes=1024)
        assert client.produce("t", batch([b"v"])).error_code == codes.InvalidRecordError.errno
        import time

        now = int(time.time() * 1000)
        for number in range(20):
            assert client.produce("t", keyed([(b"k", b"%d" % number * 400)], now)).error_code == 0
        log.sync()
        with caplog.at_level(logging.INFO):
            log._owner.post(lambda: log._node._look_after(list(log._node.topics.partitions())))
            wait_for(lambda: "compacted up to" in caplog.text)
        size = log.sizes()[0][2]
        assert size < 2000
        fetched = record_batch.unpack(client.fetch("t", 0).records)
        assert fetched.next_offset >= 19
    log.stop()
