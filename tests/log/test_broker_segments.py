"""Partitions on disk: append, read, find by time, trim, expire and come back equal a list; damage is cut, never served."""

import logging
import os

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from pytest import param

from standalone.log.broker import options
from standalone.log.broker.control import control_batch
from standalone.log.broker.partitions import Partition
from standalone.log.broker.refusal import Refusal, codes
from standalone.log.broker.segments import INDEX_INTERVAL, Segment
from tests.log.broker_clients import batch, values_of

DEFAULTS = options.settings({})


def values(**configs):
    """Of a topic that takes every timestamp, for the tests' clock is at 0."""
    configs = {"message_timestamp_after_max_ms": options.MAX_LONG, "segment_ms": options.MAX_LONG, **configs}
    return options.topic_values({name.replace("_", "."): str(value) for name, value in configs.items()}, DEFAULTS)


def opened(folder, start=0, **configs):
    return Partition("t", 0, str(folder / "t-0"), values(**configs), start)


def flushed(partition):
    flush = partition.begin_flush()
    flush.run()
    partition.end_flush(flush)
    assert not partition.is_dirty


def all_values(partition, limit=1 << 20):
    """[(offset, value)] as a consumer would read them."""
    found, offset = [], partition.start
    while (piece := partition.read(offset, limit, at_least_one=True)) is not None:
        rows = values_of(piece.read())
        found += [row for row in rows if row[0] >= offset]
        offset = rows[-1][0] + 1
    return found


def big(number):
    return [b"%d" % number + b"." * 3000]


def test_batches_that_fill_a_limit_to_the_byte_are_read_and_no_part_of_one_more(tmp_path):
    partition = opened(tmp_path)
    for number in range(3):
        data = batch([b"%d" % number])
        partition.append(memoryview(data), 0)
    for limit, count in ((2 * len(data), 2), (2 * len(data) - 1, 1), (3 * len(data) - 1, 2), (3 * len(data), 3)):
        assert [value for _, value in values_of(partition.read(0, limit, at_least_one=False).read())] == [b"0", b"1", b"2"][:count]


# --- Against a model


class PartitionMachine(RuleBasedStateMachine):
    """The model is the list of all values ever appended, and where the partition begins."""

    @initialize(segment_bytes=st.sampled_from([1024, 5000, 1 << 20]))
    def open(self, segment_bytes):
        import pathlib
        import tempfile

        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name)
        self.configs = {"segment_bytes": segment_bytes}
        self.partition = opened(self.path, **self.configs)
        self.kept, self.times, self.start = [], [], 0

    @rule(count=st.integers(1, 6), size=st.sampled_from([0, 10, 400, 9000]), time_ms=st.integers(0, 50))
    def append(self, count, size, time_ms):
        new = [b"%d:" % (len(self.kept) + n) + b"x" * size for n in range(count)]
        appended = self.partition.append(memoryview(batch(new, now_ms=time_ms)), 0)
        assert appended.base_offset == len(self.kept)
        self.kept += new
        self.times += [time_ms] * count

    @rule(part=st.floats(0, 1))
    def trim(self, part):
        self.start = max(self.start, int(part * len(self.kept)))
        self.partition.trim(self.start)

    @rule()
    def flush(self):
        flushed(self.partition)

    @rule()
    def stop_and_start(self):
        if self.partition.is_dirty:
            flushed(self.partition)
        self.partition.close()
        self.partition = opened(self.path, self.start, **self.configs)

    @rule()
    def die_and_start(self):
        self.partition = opened(self.path, self.start, **self.configs)

    @rule(torn=st.binary(min_size=1, max_size=200))
    def die_in_the_midst_of_a_write_and_start(self, torn):
        os.makedirs(self.path / "t-0", exist_ok=True)
        with open(self.partition.segments[-1].path, "ab") as file:
            file.write(bytes(batch([b"never acknowledged"] * 9))[: len(torn)] + torn)
        self.partition = opened(self.path, self.start, **self.configs)

    @precondition(lambda self: self.kept)
    @rule(lost=st.data())
    def lose_indexes_and_start(self, lost):
        for name in sorted(os.listdir(self.path / "t-0") if (self.path / "t-0").exists() else ()):
            if not name.endswith(".log") and lost.draw(st.booleans()):
                os.unlink(self.path / "t-0" / name)
        self.partition = opened(self.path, self.start, **self.configs)

    @rule(limit=st.integers(0, 30_000), part=st.floats(0, 1))
    def read(self, limit, part):
        offset = self.start + int(part * (len(self.kept) - self.start))
        piece = self.partition.read(offset, limit, at_least_one=True)
        if offset == len(self.kept):
            assert piece is None
            return
        rows = values_of(piece.read())
        assert rows[0][0] <= offset <= rows[-1][0]
        assert rows == [(n, self.kept[n]) for n in range(rows[0][0], rows[-1][0] + 1)]
        assert sum(len(r) for _, r in rows) <= max(limit, piece.length)
        strict = self.partition.read(offset, limit, at_least_one=False)
        assert strict is None or strict.length <= limit

    @rule(time_ms=st.integers(0, 51))
    def find_by_time(self, time_ms):
        found = next((header for header, _ in self.partition.since(time_ms)), None)
        expected = next((n for n in range(self.start, len(self.kept)) if self.times[n] >= time_ms), None)
        assert (found is None) == (expected is None)
        if found:
            assert found.base_offset <= expected < found.next_offset

    @invariant()
    def holds_what_the_model_holds(self):
        if not hasattr(self, "partition"):
            return
        assert (self.partition.start, self.partition.end) == (self.start, len(self.kept))
        assert all_values(self.partition) == list(enumerate(self.kept))[self.start :]

    def teardown(self):
        if hasattr(self, "folder"):
            self.folder.cleanup()


TestPartition = PartitionMachine.TestCase
TestPartition.settings = settings(
    max_examples=40, stateful_step_count=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)


# --- The files


def test_a_segment_file_is_the_batches_one_behind_the_other(tmp_path):
    partition = opened(tmp_path)
    sent = [batch([b"a", b"b"]), batch([b"c"])]
    for data in sent:
        partition.append(memoryview(data), 0)
    assert (tmp_path / "t-0" / "00000000000000000000.log").read_bytes() == b"".join(sent)
    assert values_of(b"".join(sent)) == [(0, b"a"), (1, b"b"), (2, b"c")]


def test_segments_are_named_after_their_first_offset(tmp_path):
    partition = opened(tmp_path, segment_bytes=4096)
    for number in range(3):
        partition.append(memoryview(batch(big(number) + [b"second"])), 0)
    names = sorted(name for name in os.listdir(tmp_path / "t-0") if name.endswith(".log"))
    assert names == [f"{offset:020d}.log" for offset in (0, 2, 4)]


def test_a_clean_stop_needs_no_scan(tmp_path, monkeypatch):
    partition = opened(tmp_path, segment_bytes=8000)
    for number in range(30):
        partition.append(memoryview(batch(big(number))), 0)
    flushed(partition)
    partition.close()
    monkeypatch.setattr(Segment, "_recover", lambda *_: pytest.fail("the segment was scanned"))
    again = opened(tmp_path, segment_bytes=8000)
    assert again.end == 30 and again.durable == 30


def test_after_a_crash_only_what_follows_the_last_flush_is_checked(tmp_path, monkeypatch):
    partition = opened(tmp_path)
    for number in range(20):
        partition.append(memoryview(batch(big(number))), 0)
    flushed(partition)
    partition.append(memoryview(batch([b"after the flush"])), 0)
    checked = []
    whole = Segment._is_whole
    monkeypatch.setattr(Segment, "_is_whole", lambda *args: checked.append(args[2].base_offset) or whole(*args))
    assert opened(tmp_path).end == 21
    assert checked == [20]


# --- Damage


def cut_in_a_batch(path, batches):
    os.truncate(path, path.stat().st_size - 5)
    return len(batches) - 1


def flip_a_byte_of_the_last_batch(path, batches):
    with open(path, "r+b") as file:
        file.seek(-3, os.SEEK_END)
        file.write(b"\xff")
    return len(batches) - 1


def flip_a_byte_of_the_second_batch(path, batches):
    with open(path, "r+b") as file:
        file.seek(len(batches[0]) + 70)
        file.write(b"\xff")
    return 1


def append_zeros(path, batches):
    with open(path, "ab") as file:
        file.write(bytes(5000))
    return len(batches)


def append_half_a_header(path, batches):
    with open(path, "ab") as file:
        file.write(batches[0][:30])
    return len(batches)


def append_a_batch_of_the_past(path, batches):
    with open(path, "ab") as file:
        file.write(batches[0])
    return len(batches)


@pytest.mark.parametrize(
    "damage",
    [
        cut_in_a_batch,
        flip_a_byte_of_the_last_batch,
        flip_a_byte_of_the_second_batch,
        append_zeros,
        append_half_a_header,
        append_a_batch_of_the_past,
    ],
)
def test_an_unflushed_end_is_cut_at_the_first_bad_batch_with_one_warning(tmp_path, caplog, damage):
    partition = opened(tmp_path)
    sent = [batch([b"batch %d" % number]) for number in range(5)]
    for data in sent:
        partition.append(memoryview(data), 0)
    path = tmp_path / "t-0" / f"{0:020d}.log"
    good = damage(path, sent)
    cut = path.stat().st_size - sum(map(len, sent[:good]))
    with caplog.at_level(logging.WARNING):
        again = opened(tmp_path)
    assert all_values(again) == [(n, b"batch %d" % n) for n in range(good)]
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert str(path) in caplog.text and f"{cut} bytes" in caplog.text
    assert again.append(memoryview(batch([b"next"])), 0).base_offset == good


@pytest.mark.parametrize(
    "content",
    [
        param(b"", id="empty"),
        param(b"short", id="short"),
        param(os.urandom(240), id="noise"),
        param(bytes(240), id="zeros"),
        param((5).to_bytes(8, "little") + bytes(16), id="of another segment"),
        param(bytes(24) + (1).to_bytes(8, "little") + (10**9).to_bytes(8, "little") + bytes(8), id="beyond the end"),
    ],
)
def test_an_index_that_makes_no_sense_is_made_again(tmp_path, content):
    partition = opened(tmp_path, segment_bytes=100_000)
    for number in range(100):
        partition.append(memoryview(batch(big(number))), 0)
    flushed(partition)
    expected = all_values(partition)
    partition.close()
    for path in (tmp_path / "t-0").glob("*.index"):
        path.write_bytes(content)
    again = opened(tmp_path, segment_bytes=100_000)
    assert all_values(again) == expected
    flushed(again) if again.is_dirty else None
    assert all_values(opened(tmp_path, segment_bytes=100_000)) == expected


def test_a_gap_where_the_end_of_an_older_segment_was_cut_is_stepped_over(tmp_path):
    partition = opened(tmp_path, segment_bytes=4096)
    for number in range(3):
        partition.append(memoryview(batch(big(number))), 0)
    os.truncate(tmp_path / "t-0" / f"{1:020d}.log", 100)
    again = opened(tmp_path, segment_bytes=4096)
    assert [offset for offset, _ in all_values(again)] == [0, 2]
    assert values_of(again.read(1, 1 << 20, at_least_one=True).read())[0][0] == 2


def test_a_failed_write_leaves_nothing_and_the_next_one_works(tmp_path, monkeypatch, caplog):
    partition = opened(tmp_path)
    partition.append(memoryview(batch([b"first"])), 0)
    write = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: write(fd, data[:40], at) if len(data) > 60 else _no_space())
    with pytest.raises(Refusal) as refused:
        partition.append(memoryview(batch([b"x" * 100])), 0)
    assert refused.value.code == codes.KafkaStorageError.errno
    monkeypatch.undo()
    assert partition.append(memoryview(batch([b"second"])), 0).base_offset == 1
    assert all_values(partition) == all_values(opened(tmp_path)) == [(0, b"first"), (1, b"second")]


def _no_space():
    raise OSError(28, "No space left on device")


def test_after_a_failed_fsync_nothing_more_is_taken(tmp_path, monkeypatch):
    partition = opened(tmp_path)
    partition.append(memoryview(batch([b"first"])), 0)
    flush = partition.begin_flush()
    monkeypatch.setattr(os, "fdatasync", lambda fd: (_ for _ in ()).throw(OSError(5, "Input/output error")))
    flush.run()
    partition.end_flush(flush)
    assert partition.durable == 0
    with pytest.raises(Refusal, match="Input/output error"):
        partition.append(memoryview(batch([b"second"])), 0)


# --- What a batch must be


def of_old_format(data):
    data[16] = 1
    return data


def damaged(data):
    data[-1] ^= 1
    return data


def claims_more_records(data):
    data[57:61] = (9).to_bytes(4, "big")
    return _with_right_checksum(data)


def _with_right_checksum(data):
    import numpy as np

    from standalone.log import batch_header

    batch_header.set_checksum(np.frombuffer(data, np.uint8))
    return data


@pytest.mark.parametrize(
    "data, error",
    [
        param(batch([b"v"])[:40], codes.CorruptRecordError, id="too short for a header"),
        param(batch([b"v"])[:-1], codes.CorruptRecordError, id="cut"),
        param(damaged(batch([b"v"])), codes.CorruptRecordError, id="wrong checksum"),
        param(of_old_format(batch([b"v"])), codes.UnsupportedForMessageFormatError, id="message format 1"),
        param(batch([b"v"]) + batch([b"w"]), codes.InvalidRecordError, id="two batches"),
        param(claims_more_records(batch([b"v"])), codes.InvalidRecordError, id="records and offsets disagree"),
        param(batch([b"v" * 3000]), codes.MessageSizeTooLargeError, id="too large"),
        param(control_batch(1, 0, True, 0), codes.InvalidRecordError, id="the log's own marker"),
    ],
)
def test_a_batch_that_may_not_be_kept(tmp_path, data, error):
    partition = opened(tmp_path, max_message_bytes=2000)
    with pytest.raises(Refusal) as refused:
        partition.append(memoryview(data), 0)
    assert refused.value.code == error.errno
    assert partition.end == 0 and partition.size == 0


def test_log_append_time_is_written_into_the_batch(tmp_path):
    partition = opened(tmp_path, message_timestamp_type="LogAppendTime")
    assert partition.append(memoryview(batch([b"v"], now_ms=5)), 777) == (0, 777)
    from standalone.log import record_batch

    records = record_batch.unpack(partition.read(0, 1000, at_least_one=True).read()).records[0]  # checks the checksum
    assert records.timestamps.tolist() == [777] and records.timestamp_type == 1


# --- Old records


def aged(tmp_path, **configs):
    """Three segments, of times 100, 200, 300."""
    partition = opened(tmp_path, segment_bytes=4096, **configs)
    for number, time_ms in enumerate((100, 200, 300)):
        partition.append(memoryview(batch(big(number), now_ms=time_ms)), 0)
    return partition


def test_segments_that_end_where_the_partition_begins_are_gone_and_do_not_come_back(tmp_path):
    partition = aged(tmp_path)
    partition.trim(2)
    assert (partition.start, [segment.base_offset for segment in partition.segments]) == (2, [2])
    partition.trim(1)
    assert partition.start == 2
    with pytest.raises(Refusal):
        partition.read(1, 1000, at_least_one=True)


@pytest.mark.parametrize("more, start", [(0, 1), (1, 0), (-1, 1)], ids=["to the byte", "a byte more than is left", "a byte less"])
def test_by_size_a_segment_goes_as_soon_as_the_others_fill_the_bound(tmp_path, more, start):
    (tmp_path / "measured").mkdir()
    size = aged(tmp_path / "measured").segments[0].size
    partition = aged(tmp_path, retention_ms=-1, retention_bytes=2 * size + more)
    partition.expire(0)
    assert partition.start == start


@pytest.mark.parametrize(
    "configs, now_ms, start",
    [
        param({"retention_ms": 1000}, 1000, 0, id="nothing is old enough"),
        param({"retention_ms": 1000}, 1150, 1, id="the first segment"),
        param({"retention_ms": 1000}, 1250, 2, id="two segments"),
        param({"retention_ms": 1000}, 1301, 3, id="all of them, the one written to as well"),
        param({"retention_ms": -1}, 1 << 60, 0, id="kept forever"),
        param({"retention_ms": -1, "retention_bytes": 4000}, 0, 1, id="by size: whole segments beyond the bound"),
        param({"retention_ms": -1, "retention_bytes": 0}, 0, 2, id="by size: never the one written to"),
    ],
)
def test_retention(tmp_path, configs, now_ms, start):
    partition = aged(tmp_path, **configs)
    partition.expire(now_ms)
    assert (partition.start, partition.end) == (start, 3)
    assert len([name for name in os.listdir(tmp_path / "t-0") if name.endswith(".log")]) == (3 - start or 1)
    if start < 3:
        assert [offset for offset, _ in all_values(partition)] == list(range(start, 3))
    assert opened(tmp_path, segment_bytes=4096).end == 3  # also where nothing is left


def test_an_answer_on_its_way_outlives_its_deleted_segment(tmp_path):
    partition = aged(tmp_path, retention_ms=0)
    piece = partition.read(0, 1 << 20, at_least_one=True)
    partition.expire(1 << 40)
    assert values_of(piece.read()) == [(0, big(0)[0])]


@pytest.mark.parametrize("offset", [4, -2])
def test_a_partition_cannot_be_trimmed_beyond_its_end(tmp_path, offset):
    with pytest.raises(Refusal):
        aged(tmp_path).trim(offset)


# --- Producers


def idempotent(sequence, count=1):
    return memoryview(batch([b"s%d" % sequence] * count, producer_id=5, producer_epoch=0, base_sequence=sequence))


@pytest.mark.parametrize("flush_at", [None, 3, 7])
@pytest.mark.parametrize("lose_state", [False, True])
def test_producers_are_known_after_a_crash(tmp_path, flush_at, lose_state):
    partition = opened(tmp_path, segment_bytes=1024)
    for sequence in range(8):
        partition.append(idempotent(sequence), 0)
        if sequence == flush_at:
            flush = partition.last_flush()
            flush.run()
            partition.end_flush(flush)
    if lose_state and flush_at is not None:
        os.unlink(tmp_path / "t-0" / "producers.json")
    again = opened(tmp_path, segment_bytes=1024)
    assert again.append(idempotent(7), 0).base_offset == 7  # a repeat of what was kept
    assert again.end == 8
    with pytest.raises(Refusal):
        again.append(idempotent(9), 0)
    assert again.append(idempotent(8), 0).base_offset == 8


def test_the_index_finds_its_way_in_a_large_segment(tmp_path):
    partition = opened(tmp_path)
    for number in range(500):
        partition.append(memoryview(batch([b"%d" % number, b"." * 400], now_ms=number)), 0)
    assert len(partition.segments[0].index.offsets) == pytest.approx(partition.size / INDEX_INTERVAL, rel=0.1)
    for number in (0, 1, 249, 499):
        assert values_of(partition.read(number * 2, 100, at_least_one=True).read())[0] == (number * 2, b"%d" % number)
        assert next(partition.since(number))[0].base_offset == number * 2
