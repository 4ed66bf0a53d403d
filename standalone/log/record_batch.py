"""Record batches: Kafka's message format v2, from and to columns of bytes.

    pack, pack_all                                    wire.Records -> batches; computes exact sizes
    unpack                                            batches -> wire.Records; columns point into an uncompressed buffer
    Header, parse_header, headers, verify,            batch headers (batch_header.py)
    set_base_offset, set_append_time

The loops over records are in record_loops.py. Input is validated: any damaged bytes raise CorruptBatchError.
"""

import struct
from typing import NamedTuple

import numpy as np

from standalone import clock, wire
from standalone.errors import CorruptBatchError, LogFatalError
from standalone.kernels import readonly
from standalone.log import compression as codecs
from standalone.log import record_loops as loops
from standalone.log import varint
from standalone.log.batch_header import (
    CODEC_MASK,
    CONTROL_BIT,
    HEADER,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    MAGIC_AT,
    MAX_INT,
    PREFIX_BYTES,
    TRANSACTIONAL_BIT,
    Header,
    check_header,
    checksum,
    headers,
    next_sequence,
    parse_header,
    set_append_time,
    set_base_offset,
    set_checksum,
    verify,
    wrong_checksum,
    wrong_length,
    wrong_magic,
)
from standalone.wire import ByteColumn, Records

__all__ = [
    "Header",
    "Packed",
    "Unpacked",
    "headers",
    "next_sequence",
    "pack",
    "pack_all",
    "parse_header",
    "set_append_time",
    "set_base_offset",
    "unpack",
    "verify",
]

READ_UNCOMMITTED, READ_COMMITTED = "read_uncommitted", "read_committed"
LEAST_RECORD_BYTES = 7  # seven fields of one byte
CONTROL_KEY = struct.Struct(">hh")  # version and type: the key of a control batch's only record
ABORT = 0

# Batch headers as a structured dtype, a row per batch
HEADER_TYPES = (">i8", ">i4", ">i4", "i1", ">u4", ">i2", ">i4", ">i8", ">i8", ">i8", ">i2", ">i4", ">i4")
HEADER_FIELDS = np.dtype(list(zip(Header._fields, HEADER_TYPES)))
NO_BYTES, NO_INTS, NO_LONGS = (readonly(np.empty(0, kind)) for kind in (np.uint8, np.int32, np.int64))

DAMAGE = {
    loops.RECORD_LENGTH: "its length is invalid or reaches beyond the batch",
    loops.TIMESTAMP: "its timestamp is not a number",
    loops.OFFSET: "its offset does not follow the previous record's, or is beyond the batch's last offset",
    loops.KEY: "its key reaches beyond it",
    loops.VALUE: "its value reaches beyond it",
    loops.HEADERS: "its headers reach beyond it",
    loops.RECORD_REST: "extra bytes follow its headers",
    loops.BATCH_REST: "extra bytes follow the last record",
}


class Packed(NamedTuple):
    """One batch, with the rows low to high (exclusive)."""

    data: memoryview
    count: int
    low: int
    high: int
    max_timestamp: int


class Unpacked(NamedTuple):
    """The records of a buffer of batches: one Records, plus one after each change of the timestamp type; none without rows."""

    records: list
    next_offset: int | None  # after the last batch read, with or without rows
    consumed: int  # bytes of the batches read; the rest is truncated, or too much for one call


# Rows to batches


def pack(records, **options):
    """Pack all rows into one batch; keywords as for `pack_all`."""
    batches = list(pack_all(records, MAX_INT, **options))
    if len(batches) != 1:
        raise LogFatalError(f"{len(records)} records do not make one record batch but {len(batches)}: a batch holds 1 or more, up to 2 GiB.")
    return batches[0].data


def pack_all(
    records,
    max_batch_bytes,
    *,
    compression="none",
    level=None,
    producer_id=-1,
    producer_epoch=-1,
    base_sequence=-1,
    base_offset=0,
    keep_offsets=False,
    transactional=False,
    now_ms=None,
    leader_epoch=-1,
    timestamp_type=wire.CREATE_TIME,
):
    """Split the rows, in order, into batches (Packed) of at most `max_batch_bytes` before compression.

    A longer record gets its own batch. Rows without a timestamp get `now_ms` (by default the clock's; -1 leaves them without).
    `base_sequence` increases from batch to batch. Every batch starts at `base_offset`, since the broker assigns offsets; with
    `keep_offsets` rows keep theirs, including gaps.
    """
    if not len(records):
        return
    now = clock.SYSTEM.now_ms() if now_ms is None else now_ms
    columns = _columns(records)
    lengths = [column.lengths for column in columns]
    timestamps = NO_LONGS if records.timestamps is None else readonly(records.timestamps.astype(np.int64, copy=False))
    offsets = readonly(records.offsets) if keep_offsets else NO_LONGS
    plan = [np.empty(len(records), np.int64) for _ in range(3)]
    limit = min(max_batch_bytes, MAX_INT)
    count = loops.plan_batches(len(records), *lengths, timestamps, now, offsets, limit, *plan)
    lows, sizes, tops = (part[:count] for part in plan)
    if sizes.max() > MAX_INT:
        row = int(lows[sizes.argmax()])
        raise LogFatalError(f"Record {row} of {len(records)} takes {sizes.max()} bytes: a record batch holds at most 2 GiB.")
    out = np.empty(int(sizes.sum()), np.uint8)
    arrays = [array for column in columns for array in (column.data, column.starts, column.lengths)]
    loops.write_records(readonly(lows), len(records), *arrays, timestamps, now, offsets, out)

    firsts = timestamps[lows] if len(timestamps) else np.full(len(lows), wire.NO_TIMESTAMP)
    firsts = np.where(firsts == wire.NO_TIMESTAMP, now, firsts)
    attributes = codecs.number(compression)
    attributes |= LOG_APPEND_TIME_BIT if timestamp_type == wire.LOG_APPEND_TIME else 0
    attributes |= TRANSACTIONAL_BIT if transactional else 0
    highs = lows[1:].tolist() + [len(records)]
    end = 0
    for low, high, size, first_timestamp, top in zip(lows.tolist(), highs, sizes.tolist(), firsts.tolist(), tops.tolist()):
        batch = out[end : end + size]
        end += size
        if attributes & CODEC_MASK:
            batch = _compressed(batch, compression, level)
        HEADER.pack_into(
            batch,
            0,
            int(offsets[low]) if keep_offsets else base_offset,
            len(batch) - PREFIX_BYTES,
            leader_epoch,
            MAGIC,
            0,
            attributes,
            int(offsets[high - 1] - offsets[low]) if keep_offsets else high - low - 1,
            first_timestamp,
            top,
            producer_id,
            producer_epoch,
            base_sequence if base_sequence < 0 else next_sequence(base_sequence, low),
            high - low,
        )
        set_checksum(batch)
        yield Packed(memoryview(batch), high - low, low, high, top)


def _columns(records):
    """Keys, values and headers as columns for the kernels; headers as encoded in a record."""
    sections = None
    if records.headers is not None and any(records.headers):
        sections = ByteColumn.of(list(_encode_headers(records.headers)))
    absent = ByteColumn(NO_BYTES, NO_LONGS, NO_INTS)
    columns = (absent if column is None else column for column in (records.keys, records.values, sections))
    return [ByteColumn(readonly(column.data), readonly(column.starts), readonly(column.lengths)) for column in columns]


def _encode_headers(rows):
    sections, headers = {}, {}  # headers from a transform or dead letter queue are mostly the same in every row
    for row in rows:
        key = tuple(row or ())
        section = sections.get(key)
        if section is None:
            parts = [varint.encode(len(key))]
            for header in key:
                part = headers.get(header)
                if part is None:
                    part = headers[header] = _encode_header(*header)
                parts.append(part)
            section = sections[key] = b"".join(parts)
        yield section


def _encode_header(name, value):
    name = name.encode("utf-8", "replace")
    size = varint.encode(wire.NULL if value is None else len(value))
    return b"".join((varint.encode(len(name)), name, size, value or b""))


def _compressed(batch, compression, level):
    """Return the batch with compressed records, as an array whose header can be modified."""
    body = codecs.compress(batch[HEADER.size :], compression, level)
    return np.frombuffer(bytearray(HEADER.size) + memoryview(body), np.uint8)


# Batches to rows


def unpack(
    buffer,
    *,
    from_offset=None,
    check_crc=True,
    isolation=READ_UNCOMMITTED,
    aborted=(),
    stored_timestamps=False,
    max_decompressed_bytes=codecs.MAX_DECOMPRESSED_BYTES,
):
    """Return the rows of consecutive batches in `buffer`; a truncated batch at the end is left out.

    Rows below `from_offset` are dropped, since a batch may start before it. Control batches give no rows, nor, with `isolation`
    read_committed, do the transactions in `aborted` [(producer id, first offset)]. A LogAppendTime batch gives every row the log's
    time, unless `stored_timestamps` asks for the producer's.
    No batch may exceed `max_decompressed_bytes`. Beyond that total the rest is left: call again with the same buffer and
    `next_offset` as `from_offset`.
    Columns point into the buffer: it must stay as it is while they are in use.
    """
    data = readonly(np.frombuffer(buffer, np.uint8))
    positions, consumed = _find(data)
    if not len(positions):
        return Unpacked([], from_offset, 0)
    batches = data[positions[:, None] + np.arange(HEADER.size)].view(HEADER_FIELDS)[:, 0]
    _check_headers(batches)
    if check_crc:
        _check_checksums(data, positions, batches)
    wanted = (batches["attributes"] & CONTROL_BIT) == 0
    if from_offset is not None:
        wanted &= batches["base_offset"] + batches["last_offset_delta"] >= from_offset
    if isolation == READ_COMMITTED and len(aborted):
        wanted &= _committed(data, positions, batches, aborted)
    chosen = np.flatnonzero(wanted)
    source, starts, ends = _bodies(data, positions, batches, chosen, max_decompressed_bytes)
    read = len(batches)
    if len(starts) < len(chosen):  # enough for one call
        read = int(chosen[len(starts)])
        chosen, consumed = chosen[: len(starts)], int(positions[read])
    next_offset = int(batches["base_offset"][read - 1]) + int(batches["last_offset_delta"][read - 1]) + 1
    return Unpacked(_rows(source, starts, ends, batches[chosen], from_offset, stored_timestamps), next_offset, consumed)


def _find(data):
    """Return (starts of the whole batches, position after the last)."""
    positions = np.empty(len(data) // HEADER.size + 1, np.int64)
    found, end, wrong = loops.find_batches(data, positions)
    if wrong == loops.BAD_LENGTH:
        offset, length = struct.unpack_from(">qi", data, end)
        raise wrong_length(offset, length + PREFIX_BYTES)
    if wrong == loops.WRONG_MAGIC:
        raise wrong_magic(int(data[end + MAGIC_AT]), f"at byte {end} of {len(data)}")
    return positions[:found], end


def _check_headers(batches):
    last = batches["last_offset_delta"]
    bad = (last < 0) | (batches["count"] < 0) | (batches["count"] > last.astype(np.int64) + 1)
    bad |= (batches["base_offset"] < 0) | (batches["base_offset"] > 2**63 - 2 - MAX_INT)
    for row in batches[bad]:
        check_header(_header_of(row))


def _header_of(row):
    return Header._make(row.item())


def _check_checksums(data, positions, batches):
    ends = positions + batches["length"] + PREFIX_BYTES
    for row, (start, end, expected) in enumerate(zip(positions.tolist(), ends.tolist(), batches["crc"].tolist())):
        found = checksum(data[start:end])
        if found != expected:
            raise wrong_checksum(batches["base_offset"][row], expected, found)


def _committed(data, positions, batches, aborted):
    """Filter out batches of aborted transactions; each ends with its producer's abort marker."""
    begin = sorted(aborted, key=lambda transaction: transaction[1])
    open_producers = set()
    committed = np.ones(len(batches), bool)
    for row, fields in enumerate(batches):
        header = _header_of(fields)
        while begin and begin[0][1] <= header.last_offset:
            open_producers.add(begin.pop(0)[0])
        if header.is_control:
            if header.producer_id in open_producers and _is_abort(data[positions[row] : positions[row] + header.size], fields):
                open_producers.remove(header.producer_id)
        elif header.is_transactional and header.producer_id in open_producers:
            committed[row] = False
    return committed


def _is_abort(batch, fields):
    starts, ends = np.array([HEADER.size]), np.array([len(batch)])
    for records in _rows(batch, starts, ends, fields.reshape(1), None, True):
        key = records.keys[0] if records.keys is not None else None
        return key is not None and len(key) >= CONTROL_KEY.size and CONTROL_KEY.unpack_from(key)[1] == ABORT
    return False


def _bodies(data, positions, batches, chosen, max_decompressed_bytes):
    """Locate the records of the chosen batches: (array, starts, ends); fewer than chosen once there are enough bytes."""
    starts = positions[chosen] + HEADER.size
    ends = positions[chosen] + batches["length"][chosen] + PREFIX_BYTES
    numbers = batches["attributes"][chosen] & CODEC_MASK
    if not numbers.any():
        return data, starts, ends
    parts = []
    total = ratio = 0
    for start, end, number in zip(starts.tolist(), ends.tolist(), numbers.tolist()):
        if total >= max_decompressed_bytes:
            break
        body = data[start:end]
        if number:
            part = codecs.decompress(body, number, max_decompressed_bytes, int(1.2 * ratio * len(body)))
            ratio = len(part) / max(len(body), 1)
        else:
            part = body
        parts.append(part)
        total += len(part)
    ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
    starts = np.concatenate((ends[:1] * 0, ends[:-1]))
    return readonly(parts[0] if len(parts) == 1 else np.concatenate(parts)), starts, ends


def _rows(data, starts, ends, batches, from_offset, stored_timestamps):
    """The rows of batches whose records are in `data`: a Records per run of the same timestamp type."""
    counts = batches["count"].astype(np.int64)
    lying = counts > (ends - starts) // LEAST_RECORD_BYTES
    if lying.any():
        row = int(lying.argmax())
        raise CorruptBatchError(
            f"The record batch at offset {batches['base_offset'][row]} claims {counts[row]} records; "
            f"its {ends[row] - starts[row]} bytes cannot hold them."
        )
    by_log = (batches["attributes"] & LOG_APPEND_TIME_BIT) != 0
    flat = by_log & (not stored_timestamps)
    table = np.empty((len(batches), loops.BATCH_COLUMNS), np.int64)
    table[:, loops.START], table[:, loops.END], table[:, loops.COUNT] = starts, ends, counts
    table[:, loops.BASE_OFFSET], table[:, loops.LAST_DELTA] = batches["base_offset"], batches["last_offset_delta"]
    table[:, loops.BASE_TIME] = np.where(flat, batches["max_timestamp"], batches["first_timestamp"])
    table[:, loops.TIME_STEP] = ~flat
    total = int(counts.sum())
    # Untouched zeroed memory costs nothing if there are no keys or headers.
    keys, values, sections = ((np.zeros(total, np.int64), np.zeros(total, np.int32)) for _ in range(3))
    timestamps, offsets = np.empty(total, np.int64), np.empty(total, np.int64)
    rows_of, notes = np.zeros(len(batches), np.int64), np.zeros(loops.NOTES, np.int64)
    lowest = -1 if from_offset is None else from_offset
    wrong = loops.read_records(data, readonly(table), lowest, *keys, *values, *sections, timestamps, offsets, rows_of, notes)
    if wrong:
        batch, record = notes[loops.BATCH], notes[loops.RECORD]
        raise CorruptBatchError(
            f"Record {record} of the {counts[batch]} in the record batch at offset {batches['base_offset'][batch]} "
            f"is damaged: {DAMAGE[wrong]}."
        )
    count = int(rows_of.sum())
    if not count:
        return []
    whole = Records(
        count,
        ByteColumn(data, keys[0][:count], keys[1][:count]) if notes[loops.HAS_KEYS] else None,
        ByteColumn(data, values[0][:count], values[1][:count]) if notes[loops.HAS_VALUES] else None,
        timestamps[:count],
        _decode_headers(data, sections[0][:count], sections[1][:count]) if notes[loops.HAS_HEADERS] else None,
        offsets[:count],
    )
    types = np.repeat(np.where(by_log, wire.LOG_APPEND_TIME, wire.CREATE_TIME), rows_of)
    cuts = [0, *(np.flatnonzero(np.diff(types)) + 1).tolist(), count]
    runs = [whole] if len(cuts) == 2 else [whole.slice(low, high) for low, high in zip(cuts, cuts[1:])]
    for low, run in zip(cuts, runs):
        run.timestamp_type = int(types[low])
    return runs


def _decode_headers(data, starts, lengths):
    """The headers of each row, None if it has none; `read_records` has checked their lengths."""
    known = {}  # cache, as in _encode_headers
    rows = []
    data = memoryview(data)
    for start, length in zip(starts.tolist(), lengths.tolist()):
        if not length:
            rows.append(None)
            continue
        section = bytes(data[start : start + length])
        headers_of_row = known.get(section)
        if headers_of_row is None:
            headers_of_row = known[section] = _decode_section(section)
        rows.append(list(headers_of_row))
    return rows


def _decode_section(section):
    count, at = varint.decode(section, 0)
    found = []
    for _ in range(count):
        length, at = varint.decode(section, at)
        name = section[at : at + length].decode("utf-8", "replace")
        length, at = varint.decode(section, at + length)
        value = None if length < 0 else section[at : at + length]
        at += max(length, 0)
        found.append((name, value))
    return tuple(found)
