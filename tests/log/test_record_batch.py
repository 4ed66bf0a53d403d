"""Record batches: against what Java wrote, against kafka-python in both directions, and as a round trip over anything."""

import base64
import json
import pathlib
import struct

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kafka.record import MemoryRecords
from kafka.record.default_records import DefaultRecordBatchBuilder
from pytest import param

from standalone import wire
from standalone.errors import ConfigError, CorruptBatchError, LogFatalError
from standalone.log import compression, record_batch, varint
from standalone.log.batch_header import ATTRIBUTES_AT, CONTROL_BIT, HEADER, set_checksum
from standalone.log.record_batch import pack, pack_all, unpack
from standalone.wire import ByteColumn, Records

GOLDEN = [json.loads(line) for line in (pathlib.Path(__file__).parents[1] / "golden" / "batches.jsonl").open()]
CODECS = compression.NAMES
NOW = 1_700_000_000_000
quick = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])


# What is in records, as plain tuples


def rows_of(records):
    """[(offset, timestamp, key, value, headers)]"""
    count = len(records)
    keys = list(records.keys) if records.keys is not None else [None] * count
    values = list(records.values) if records.values is not None else [None] * count
    timestamps = records.timestamps.tolist() if records.timestamps is not None else [wire.NO_TIMESTAMP] * count
    headers = [row or [] for row in records.headers] if records.headers is not None else [[]] * count
    return list(zip(records.offsets.tolist(), timestamps, keys, values, headers))


def records_of(rows, first_offset=0):
    """Records out of [(key, value, timestamp, headers)]."""
    keys, values, timestamps, headers = zip(*rows)
    return Records(
        len(rows),
        ByteColumn.of(keys) if any(key is not None for key in keys) else None,
        ByteColumn.of(values) if any(value is not None for value in values) else None,
        np.array(timestamps, np.int64),
        list(headers) if any(headers) else None,
        np.arange(first_offset, first_offset + len(rows)),
    )


def values_of(*values):
    return Records(len(values), values=ByteColumn.of(values), offsets=np.arange(len(values)))


def unpacked_rows(buffer, **options):
    return [row for records in unpack(buffer, **options).records for row in rows_of(records)]


def log_of(batches, leader_epoch=7):
    """Batches as a log keeps them: one after the other, each at its offset."""
    out, offset = bytearray(), 0
    for batch in batches:
        at = len(out)
        out += batch.data
        record_batch.set_base_offset(out, at, offset, leader_epoch)
        offset += batch.count
    return out


def with_records(body, count, last_offset_delta=None, attributes=0):
    """A batch with a right header and checksum around whatever bytes."""
    batch = bytearray(HEADER.size) + body
    last = count - 1 if last_offset_delta is None else last_offset_delta
    HEADER.pack_into(batch, 0, 0, len(batch) - 12, 0, 2, 0, attributes, last, NOW, NOW, -1, -1, -1, count)
    set_checksum(np.frombuffer(batch, np.uint8))
    return bytes(batch)


def a_record(*, time=0, offset=0, key=None, value=b"v", section=b"\0", extra=b"", length=None):
    def field(item):
        return varint.encode(-1) if item is None else varint.encode(len(item)) + item

    body = b"\0" + varint.encode(time) + varint.encode(offset) + field(key) + field(value) + section + extra
    return varint.encode(len(body) if length is None else length) + body


# Golden


def plain(value):
    return None if value is None else base64.b64decode(value)


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: f"{case['id']}-{case['codec']}")
def test_a_batch_that_java_wrote(case):
    batch = plain(case["batch"])
    header = record_batch.verify(batch)
    assert {
        "codec": header.codec,
        "baseOffset": header.base_offset,
        "lastOffset": header.last_offset,
        "timestampType": ["CREATE_TIME", "LOG_APPEND_TIME"][header.timestamp_type],
        "maxTimestamp": header.max_timestamp,
        "producerId": header.producer_id,
        "producerEpoch": header.producer_epoch,
        "baseSequence": header.base_sequence,
        "transactional": header.is_transactional,
        "leaderEpoch": header.leader_epoch,
        "crc": header.crc,
    } == {key: case[key] for key in case if key not in ("id", "batch", "records")}
    wanted = []
    for row in case["records"]:
        row_headers = [(name, plain(value)) for name, value in row["headers"]]
        wanted.append((row["offset"], row["timestamp"], plain(row["key"]), plain(row["value"]), row_headers))
    (records,) = unpack(batch).records
    assert rows_of(records) == wanted
    assert records.timestamp_type == header.timestamp_type
    assert rows_of(unpack(again(batch, header)).records[0]) == wanted
    if header.codec == "none":
        assert bytes(again(batch, header)) == batch


def again(batch, header):
    """The batch, packed from what it was unpacked to."""
    (records,) = unpack(batch, stored_timestamps=True).records
    packed = pack(
        records,
        compression=header.codec,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        keep_offsets=True,
        transactional=header.is_transactional,
        now_ms=-1,
        leader_epoch=header.leader_epoch,
    )
    if header.timestamp_type == wire.LOG_APPEND_TIME:
        record_batch.set_append_time(packed, 0, header.max_timestamp)
    return packed


# Round trips over anything

items = st.none() | st.binary(max_size=40) | st.integers(60, 9000).map(lambda size: b"x" * size)
header_lists = st.lists(st.tuples(st.text(max_size=9), st.none() | st.binary(max_size=9)), max_size=3)
rows = st.lists(st.tuples(items, items, st.integers(0, 2**62) | st.integers(NOW, NOW + 99), header_lists), min_size=1, max_size=40)


@quick
@given(rows=rows, codec=st.sampled_from(CODECS), limit=st.integers(62, 30_000))
def test_what_is_packed_is_unpacked_in_batches_of_any_size(rows, codec, limit):
    batches = list(pack_all(records_of(rows), limit, compression=codec))
    assert [batch.low for batch in batches] == [0] + [batch.high for batch in batches[:-1]]
    assert all(batch.max_timestamp == max(row[2] for row in rows[batch.low : batch.high]) for batch in batches)
    buffer = log_of(batches)
    unpacked = unpack(buffer)
    assert [row for records in unpacked.records for row in rows_of(records)] == rows_of(records_of(rows))
    assert (unpacked.next_offset, unpacked.consumed) == (len(rows), len(buffer))


@quick
@given(rows=rows, limit=st.integers(62, 30_000))
def test_batches_are_as_full_as_the_limit_lets_them_be(rows, limit):
    batches = list(pack_all(records_of(rows), limit))
    for batch, following in zip(batches, batches[1:] + [None]):
        assert len(batch.data) <= limit or batch.count == 1
        if following is not None:
            with_one_more = pack(records_of(rows[batch.low : batch.high + 1]))
            assert len(with_one_more) > limit


@quick
@given(rows=rows, codec=st.sampled_from(CODECS), data=st.data())
def test_a_buffer_that_is_cut_off_gives_the_whole_batches_before(rows, codec, data):
    batches = list(pack_all(records_of(rows), 400, compression=codec))
    buffer = log_of(batches)
    cut = data.draw(st.integers(0, len(buffer)))
    unpacked = unpack(buffer[:cut])
    ends = np.cumsum([len(batch.data) for batch in batches])
    whole = int(np.searchsorted(ends, cut, side="right"))
    count = batches[whole - 1].high if whole else 0
    assert [row for records in unpacked.records for row in rows_of(records)] == rows_of(records_of(rows))[:count]
    assert unpacked.consumed == (ends[whole - 1] if whole else 0)
    assert unpacked.next_offset == (count if whole else None)


@quick
@given(rows=rows, codec=st.sampled_from(CODECS), data=st.data())
def test_any_byte_changed_behind_the_checksum_is_noticed(rows, codec, data):
    batch = bytearray(pack(records_of(rows), compression=codec))
    batch[data.draw(st.integers(ATTRIBUTES_AT, len(batch) - 1))] ^= data.draw(st.integers(1, 255))
    with pytest.raises(CorruptBatchError):
        unpack(batch)
    with pytest.raises(CorruptBatchError):
        record_batch.verify(batch)


@settings(quick, max_examples=300)
@given(rows=rows, data=st.data())
def test_damage_under_a_right_checksum_never_reads_beyond_the_buffer(rows, data):
    batch = bytearray(pack(records_of(rows), compression=data.draw(st.sampled_from(CODECS))))
    for _ in range(data.draw(st.integers(1, 4))):
        batch[data.draw(st.integers(ATTRIBUTES_AT, len(batch) - 1))] = data.draw(st.integers(0, 255))
    set_checksum(np.frombuffer(batch, np.uint8))
    try:
        found = unpack(batch, max_decompressed_bytes=1 << 20).records
    except CorruptBatchError:
        return
    for records in found:
        for column in (records.keys, records.values):
            if column is not None:
                assert (column.lengths >= -1).all() and (column.starts >= 0).all()
                assert (column.starts + np.maximum(column.lengths, 0) <= len(column.data)).all()


@settings(quick, max_examples=200)
@given(st.binary(max_size=200))
def test_no_bytes_at_all_make_more_than_an_error(junk):
    for buffer in (junk, with_records(junk, 1), with_records(junk, max(1, len(junk) // 8))):
        try:
            unpack(buffer)
        except CorruptBatchError:
            pass


@quick
@given(rows=rows, codec=st.sampled_from(CODECS), data=st.data())
def test_rows_below_the_offset_asked_for_are_dropped(rows, codec, data):
    buffer = log_of(pack_all(records_of(rows), 300, compression=codec))
    start = data.draw(st.integers(0, len(rows) + 2))
    unpacked = unpack(buffer, from_offset=start)
    assert [row for records in unpacked.records for row in rows_of(records)] == rows_of(records_of(rows))[start:]
    assert unpacked.next_offset == len(rows)


# kafka-python reads ours and we read its

SOME = [
    (None, b"one", NOW, []),
    (b"k", None, NOW + 5, [("a", b"1"), ("b", None)]),
    (b"", b"", NOW - 3, []),
    (b"k" * 300, b"v" * 70_000, NOW, []),
]


@pytest.mark.parametrize("codec", [codec for codec in CODECS if codec != "snappy"])
def test_kafka_python_reads_what_we_pack(codec):
    buffer = bytes(log_of(pack_all(records_of(SOME), 1000, compression=codec, producer_id=9, producer_epoch=2, base_sequence=100)))
    theirs = []
    memory = MemoryRecords(buffer)
    while memory.has_next():
        batch = memory.next_batch()
        assert batch.validate_crc()
        assert (batch.producer_id, batch.producer_epoch, batch.leader_epoch) == (9, 2, 7)
        assert batch.base_sequence == 100 + batch.base_offset
        theirs += [(row.offset, row.timestamp, row.key, row.value, list(row.headers)) for row in batch]
    assert theirs == rows_of(records_of(SOME))


@pytest.mark.parametrize("codec", [codec for codec in CODECS if codec != "snappy"])
def test_we_read_what_kafka_python_builds(codec):
    builder = DefaultRecordBatchBuilder(2, CODECS.index(codec), False, 9, 2, 100, 1 << 20)
    for offset, (key, value, timestamp, headers) in enumerate(SOME):
        builder.append(offset, timestamp, key, value, headers)
    built = bytes(builder.build())
    assert unpacked_rows(built) == rows_of(records_of(SOME))
    if codec == "none":
        assert bytes(pack(records_of(SOME), producer_id=9, producer_epoch=2, base_sequence=100, leader_epoch=0)) == built


# Packing


def test_rows_without_a_timestamp_get_the_time_they_are_packed_at():
    records = Records(3, values=ByteColumn.of([b"a", b"b", b"c"]), timestamps=np.array([-1, 5, -1]))
    assert [row[1] for row in unpacked_rows(pack(records, now_ms=NOW))] == [NOW, 5, NOW]
    records.timestamps = None
    assert [row[1] for row in unpacked_rows(pack(records, now_ms=NOW))] == [NOW] * 3
    assert [row[1] for row in unpacked_rows(pack(records, now_ms=-1))] == [-1] * 3


def test_sequences_go_on_from_batch_to_batch_and_begin_again_after_the_largest():
    batches = list(pack_all(values_of(*[b"v" * 50] * 4), 200, producer_id=1, producer_epoch=0, base_sequence=2**31 - 2))
    assert [batch.count for batch in batches] == [2, 2]
    first, second = (record_batch.parse_header(batch.data) for batch in batches)
    assert (first.base_sequence, first.last_sequence, second.base_sequence) == (2**31 - 2, 2**31 - 1, 0)


def test_a_record_that_is_too_long_comes_alone():
    batches = list(pack_all(values_of(b"a", b"b" * 500, b"c", b"d"), 100))
    assert [(batch.low, batch.high) for batch in batches] == [(0, 1), (1, 2), (2, 4)]


def test_no_rows_make_no_batch():
    assert list(pack_all(Records(0), 1000)) == []
    with pytest.raises(LogFatalError, match="0 records"):
        pack(Records(0))


def test_values_anywhere_in_a_buffer_are_packed():
    data = np.frombuffer(b"..one..two", np.uint8)
    overlapping = ByteColumn(data, np.array([7, 2, 2, 0]), np.array([3, 3, 8, -1], np.int32))
    every_second = Records(4, values=overlapping).take(np.array([0, 2]))
    assert [row[3] for row in unpacked_rows(pack(Records(4, values=overlapping)))] == [b"two", b"one", b"one..two", None]
    assert [row[3] for row in unpacked_rows(pack(every_second))] == [b"two", b"one..two"]


def test_a_header_name_that_is_no_text_is_written_as_java_does():
    records = Records(1, headers=[[("\ud800", b"x")]])
    assert unpacked_rows(pack(records, now_ms=NOW)) == [(0, NOW, None, None, [("?", b"x")])]


def test_a_codec_that_nobody_knows_is_refused_by_name():
    with pytest.raises(ConfigError, match="'brotli' is not a codec. Known are: none, gzip, snappy, lz4, zstd"):
        pack(values_of(b"v"), compression="brotli")


# Unpacking


def test_uncompressed_values_stay_in_the_buffer_that_was_read():
    buffer = bytes(log_of(pack_all(values_of(*[b"v" * 100] * 50), 1000)))
    (records,) = unpack(buffer).records
    assert np.shares_memory(records.values.data, np.frombuffer(buffer, np.uint8))
    assert records.keys is None and records.headers is None


def test_batches_of_several_codecs_make_one_run_of_records():
    rows = [(None, b"%d" % number * 30, NOW, []) for number in range(10)]
    batches = []
    for at, codec in zip(range(0, 10, 2), CODECS):
        batches += pack_all(records_of(rows[at : at + 2]), 10_000, compression=codec)
    (records,) = unpack(log_of(batches)).records
    assert rows_of(records) == rows_of(records_of(rows))


def test_the_log_s_own_time_is_every_row_s_time_and_parts_the_rows():
    batches = list(pack_all(records_of([(None, b"v", NOW + number, []) for number in range(4)]), 62 + 8))
    buffer = log_of(batches)
    at = len(batches[0].data)
    for position in (at, 2 * at):
        record_batch.set_append_time(buffer, position, NOW + 1000)
    runs = unpack(buffer).records
    assert [(run.timestamp_type, run.timestamps.tolist()) for run in runs] == [
        (wire.CREATE_TIME, [NOW]),
        (wire.LOG_APPEND_TIME, [NOW + 1000] * 2),
        (wire.CREATE_TIME, [NOW + 3]),
    ]
    assert [row[1] for row in unpacked_rows(buffer, stored_timestamps=True)] == [NOW, NOW + 1, NOW + 2, NOW + 3]


def test_control_batches_give_no_rows_but_the_offset_goes_on():
    unpacked = unpack(marker(0, 1))
    assert (unpacked.records, unpacked.next_offset, unpacked.consumed) == ([], 1, len(marker(0, 1)))


def marker(kind, producer_id, offset=0):
    """The end of a transaction: kind 0 aborts, 1 commits."""
    record = Records(1, keys=ByteColumn.of([struct.pack(">hh", 0, kind)]), values=ByteColumn.of([bytes(6)]))
    batch = bytearray(pack(record, now_ms=NOW, producer_id=producer_id, producer_epoch=0, transactional=True, base_offset=offset))
    batch[ATTRIBUTES_AT + 1] |= CONTROL_BIT
    set_checksum(np.frombuffer(batch, np.uint8))
    return batch


def test_aborted_transactions_are_read_only_where_uncommitted_ones_are():
    def written(offset, value, producer_id=-1):
        return pack(values_of(value), now_ms=NOW, base_offset=offset, producer_id=producer_id, transactional=producer_id >= 0)

    buffer = b"".join(
        [
            written(0, b"plain"),
            written(1, b"aborted", 5),
            written(2, b"other's", 6),
            marker(0, 5, 3),
            written(4, b"committed", 5),
            marker(1, 5, 5),
            marker(1, 6, 6),
        ]
    )
    committed = unpack(buffer, isolation="read_committed", aborted=[(5, 1)])
    assert [row[3] for records in committed.records for row in rows_of(records)] == [b"plain", b"other's", b"committed"]
    assert committed.next_offset == 7
    assert [row[3] for row in unpacked_rows(buffer)] == [b"plain", b"aborted", b"other's", b"committed"]
    assert [row[3] for row in unpacked_rows(buffer, aborted=[(5, 1)])] == [b"plain", b"aborted", b"other's", b"committed"]


def test_a_batch_that_compaction_emptied_only_moves_the_offset_on():
    unpacked = unpack(with_records(b"", 0, last_offset_delta=9))
    assert (unpacked.records, unpacked.next_offset) == ([], 10)


def test_a_call_unpacks_no_more_than_is_asked_for_and_the_next_goes_on():
    rows = [(None, b"%d" % number * 5000, NOW, []) for number in range(6)]
    buffer = log_of(pack_all(records_of(rows), 6000, compression="zstd"))
    seen, start = [], 0
    while start < len(rows):
        unpacked = unpack(buffer, from_offset=start, max_decompressed_bytes=6000)
        assert sum(map(len, unpacked.records)) == 2
        seen += [row for records in unpacked.records for row in rows_of(records)]
        start = unpacked.next_offset
    assert seen == rows_of(records_of(rows))


@pytest.mark.parametrize("codec", CODECS[1:])
def test_a_batch_that_holds_too_much_is_refused(codec):
    batch = pack(values_of(bytes(1 << 20)), compression=codec)
    assert len(batch) < 60_000
    assert len(unpack(batch, max_decompressed_bytes=2 << 20).records) == 1
    with pytest.raises(CorruptBatchError, match=f"{codec} data .*{1 << 19}"):
        unpack(batch, max_decompressed_bytes=1 << 19)


@pytest.mark.parametrize(
    "body, count, message",
    [
        param(a_record(key=b"k")[:-2], 1, "its length is invalid or reaches beyond", id="cut off"),
        param(a_record(length=-3), 1, "its length is invalid", id="negative length"),
        param(b"\xff" * 30, 1, "its length is invalid", id="a varint without end"),
        param(b"\x90\x80\x80\x80\x80\x00" + a_record()[1:], 1, "its length is invalid", id="a varint of six bytes"),
        param(varint.encode(7) + b"\0" + b"\xff" * 6, 1, "its timestamp is not a number", id="timestamp without end"),
        param(a_record(offset=1), 1, "its offset", id="offset beyond the batch"),
        param(a_record() + a_record(), 2, "Record 1 of the 2 .* its offset", id="the same offset twice"),
        param(varint.encode(8) + b"\0\0\0" + varint.encode(-2) + b"\x02v\0\0", 1, "its key", id="key of negative length"),
        param(varint.encode(8) + b"\0\0\0" + varint.encode(60) + b"\x02v\0\0", 1, "its key", id="key beyond the record"),
        param(varint.encode(7) + b"\0\0\0\x01" + varint.encode(50) + b"v\0", 1, "its value", id="value beyond the record"),
        param(a_record(section=varint.encode(-1)), 1, "its headers", id="headers of negative number"),
        param(a_record(section=varint.encode(30) + bytes(10)), 1, "its headers", id="more headers than bytes"),
        param(a_record(section=varint.encode(1) + varint.encode(-1) + b"\0"), 1, "its headers", id="header without a name"),
        param(a_record(section=varint.encode(1) + b"\0" + varint.encode(9)), 1, "its headers", id="header beyond the record"),
        param(a_record(extra=b"zz"), 1, "extra bytes follow its headers", id="bytes after a record"),
        param(a_record() + b"zzz", 1, "extra bytes follow the last record", id="bytes after the last record"),
        param(a_record(), 50, "claims 50 records", id="more records than bytes"),
        param(a_record() + a_record(offset=1, value=b"w" * 30), 3, "Record 2 of the 3", id="a record fewer than claimed"),
    ],
)
def test_damaged_records_are_named(body, count, message):
    with pytest.raises(CorruptBatchError, match=message):
        unpack(with_records(body, count))


@pytest.mark.parametrize(
    "field, value, message",
    [
        param("length", 20, "32 bytes long", id="shorter than a header"),
        param("length", -1, "11 bytes long", id="negative length"),
        param("magic", 1, "message format v1, which is not supported", id="old format"),
        param("magic", 0, "message format v0, which is not supported", id="oldest format"),
        param("magic", 3, "v2 is the newest known", id="format of the future"),
        param("count", -1, "-1 records", id="negative count"),
        param("last_offset_delta", -1, "contradicts itself", id="negative last offset"),
        param("count", 2, "contradicts itself", id="more records than offsets"),
        param("base_offset", -1, "contradicts itself", id="negative offset"),
        param("attributes", 7, "codec 7", id="unknown codec"),
        param("crc", 1, "at offset 0 is corrupt: .* should be 0x00000001, its bytes make 0x", id="wrong checksum"),
    ],
)
def test_a_header_that_cannot_be_is_named(field, value, message):
    batch = bytearray(pack(values_of(b"v"), now_ms=NOW))
    header = record_batch.parse_header(batch)._replace(**{field: value})
    HEADER.pack_into(batch, 0, *header)
    if field != "crc":
        set_checksum(np.frombuffer(batch, np.uint8))
    with pytest.raises(CorruptBatchError, match=message):
        unpack(bytes(batch))
    if field != "attributes":
        with pytest.raises(CorruptBatchError):
            record_batch.verify(bytes(batch))


def test_a_checksum_need_not_be_looked_at():
    batch = bytearray(pack(values_of(b"v"), now_ms=NOW))
    batch[-2] = ord("w")
    assert [row[3] for row in unpacked_rows(batch, check_crc=False)] == [b"w"]


# From outside


def test_headers_tell_each_whole_batch_and_where_it_is():
    batches = list(pack_all(values_of(*[b"v" * 40] * 5), 170))
    buffer = log_of(batches) + bytes(batches[0].data[:70])
    found = list(record_batch.headers(buffer))
    assert [at for at, _ in found] == [0, *np.cumsum([len(batch.data) for batch in batches])[:-1]]
    assert [(header.base_offset, header.next_offset, header.count) for _, header in found] == [(0, 2, 2), (2, 4, 2), (4, 5, 1)]


def test_a_base_offset_is_written_without_a_new_checksum():
    buffer = bytearray(b"before" + pack(values_of(b"v"), now_ms=NOW))
    crc = record_batch.parse_header(buffer, 6).crc
    record_batch.set_base_offset(buffer, 6, 1 << 40, 3)
    header = record_batch.verify(buffer, 6)
    assert (header.base_offset, header.leader_epoch, header.crc) == (1 << 40, 3, crc)


def test_a_batch_that_is_not_whole_is_not_verified():
    batch = bytes(pack(values_of(b"v" * 50)))
    with pytest.raises(CorruptBatchError, match="too few for a record batch"):
        record_batch.verify(batch[:40])
    with pytest.raises(CorruptBatchError, match=f"is {len(batch)} bytes long, but only 80 bytes"):
        record_batch.verify(batch[:80])


@given(st.integers(-(2**63), 2**63 - 1))
def test_a_varint_is_what_it_was(value):
    encoded = varint.encode(value)
    data = np.frombuffer(encoded + b"\xff", np.uint8)
    out = np.zeros(12, np.uint8)
    assert varint.decode(encoded, 0) == (value, len(encoded))
    assert varint.read(data, 0, len(encoded), 10) == (value, len(encoded))
    assert varint.read(data, 0, len(encoded) - 1, 10)[1] == varint.BAD
    assert varint.size_of(value) == varint.write(out, 0, value) == len(encoded)
    assert out[: len(encoded)].tobytes() == encoded
