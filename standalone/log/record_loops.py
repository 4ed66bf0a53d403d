"""Kernels of the record-batch codec: encode rows and decode bytes without the GIL.

An absent column is an array of length 0. Every length is checked before use: kernels have no bounds checks.
"""

import numpy as np

from standalone.kernels import BYTES, FLAG, INTS, LONG, LONGS, LONGS_BY_ROW, compiled, copy, written
from standalone.log import varint
from standalone.log.varint import BAD, INT_BYTES, LONG_BYTES

BATCH_OVERHEAD = 61  # batch header size
UNSET, NULL = -1, -1

# Error codes that `find_batches` and `read_records` return
FINE, BAD_LENGTH, WRONG_MAGIC = 0, 1, 2
RECORD_LENGTH, TIMESTAMP, OFFSET, KEY, VALUE, HEADERS, RECORD_REST, BATCH_REST, NO_KEY = 1, 2, 3, 4, 5, 6, 7, 8, 9

# Columns of the matrix that describes batches for `read_records`, a row per batch
START, END, COUNT, BASE_OFFSET, LAST_DELTA, BASE_TIME, TIME_STEP = range(7)
BATCH_COLUMNS = 7

# What `read_records` reports: the position of an error, and which columns have values
BATCH, RECORD, HAS_KEYS, HAS_VALUES, HAS_HEADERS = range(5)
NOTES = 5


@compiled
def _field_size(length):
    """Size of a length and its bytes; null has only the length."""
    return varint.size_of(np.int64(length)) + max(np.int64(length), 0)


@compiled
def _body_size(row, time_delta, offset_delta, key_lengths, value_lengths, section_lengths):
    size = 1 + varint.size_of(time_delta) + varint.size_of(offset_delta)
    size += _field_size(key_lengths[row]) if len(key_lengths) else 1
    size += _field_size(value_lengths[row]) if len(value_lengths) else 1
    size += section_lengths[row] if len(section_lengths) else 1
    return size


@compiled
def _moment(timestamps, row, now):
    if len(timestamps) == 0 or timestamps[row] == UNSET:
        return now
    return timestamps[row]


@compiled
def plan_batches(
    count: LONG, key_lengths: INTS, value_lengths: INTS, section_lengths: INTS, timestamps: LONGS, now: LONG, offsets: LONGS, limit: LONG,
    lows: written(LONGS), sizes: written(LONGS), tops: written(LONGS),
):  # fmt: skip
    """Greedily split `count` rows into batches of at most `limit` bytes; return the number of batches.

    Sets each batch's first row (lows), size in bytes (sizes) and latest timestamp (tops).
    """
    batches = 0
    low = 0
    size = BATCH_OVERHEAD
    base = top = _moment(timestamps, 0, now)
    for row in range(count):
        moment = _moment(timestamps, row, now)
        delta = offsets[row] - offsets[low] if len(offsets) else row - low
        body = _body_size(row, moment - base, delta, key_lengths, value_lengths, section_lengths)
        if row > low and size + body + varint.size_of(body) > limit:
            lows[batches], sizes[batches], tops[batches] = low, size, top
            batches += 1
            low, size, base, top = row, BATCH_OVERHEAD, moment, moment
            body = _body_size(row, 0, 0, key_lengths, value_lengths, section_lengths)
        size += body + varint.size_of(body)
        top = max(top, moment)
    lows[batches], sizes[batches], tops[batches] = low, size, top
    return batches + 1


@compiled
def write_records(
    lows: LONGS, count: LONG, keys: BYTES, key_starts: LONGS, key_lengths: INTS, values: BYTES, value_starts: LONGS, value_lengths: INTS,
    sections: BYTES, section_starts: LONGS, section_lengths: INTS, timestamps: LONGS, now: LONG, offsets: LONGS, out: written(BYTES),
):  # fmt: skip
    """Write the rows of every planned batch, with room for each header."""
    at = 0
    for batch in range(len(lows)):
        low = lows[batch]
        high = lows[batch + 1] if batch + 1 < len(lows) else count
        base = _moment(timestamps, low, now)
        at += BATCH_OVERHEAD
        for row in range(low, high):
            time_delta = _moment(timestamps, row, now) - base
            delta = offsets[row] - offsets[low] if len(offsets) else row - low
            at = varint.write(out, at, _body_size(row, time_delta, delta, key_lengths, value_lengths, section_lengths))
            out[at] = 0  # attributes, which are unused
            at = varint.write(out, at + 1, time_delta)
            at = varint.write(out, at, delta)
            if len(key_lengths):
                at = _write_field(out, at, keys, key_starts[row], np.int64(key_lengths[row]))
            else:
                at = varint.write(out, at, NULL)
            if len(value_lengths):
                at = _write_field(out, at, values, value_starts[row], np.int64(value_lengths[row]))
            else:
                at = varint.write(out, at, NULL)
            if len(section_lengths):
                copy(out, at, sections, section_starts[row], np.int64(section_lengths[row]))
                at += section_lengths[row]
            else:
                out[at] = 0
                at += 1
    return at


@compiled
def _write_field(out, at, data, start, length):
    at = varint.write(out, at, length)
    if length > 0:
        copy(out, at, data, start, length)
        at += length
    return at


@compiled
def find_batches(data: BYTES, positions: written(LONGS)):
    """Find the starts of whole batches in `data`; return (count, position after the last, error code there)."""
    at = 0
    found = 0
    while len(data) - at > 16:
        length = np.int64(np.int32((np.uint32(data[at + 8]) << 24) | (np.uint32(data[at + 9]) << 16)
                                   | (np.uint32(data[at + 10]) << 8) | np.uint32(data[at + 11])))
        magic = data[at + 16]
        if length < 0:
            return found, at, BAD_LENGTH
        if length > len(data) - at - 12:
            break
        if magic != 2:
            return found, at, WRONG_MAGIC
        if length < BATCH_OVERHEAD - 12:
            return found, at, BAD_LENGTH
        positions[found] = at
        found += 1
        at += 12 + length
    return found, at, FINE


@compiled
def read_records(
    data: BYTES, batches: LONGS_BY_ROW, from_offset: LONG, key_starts: written(LONGS), key_lengths: written(INTS),
    value_starts: written(LONGS), value_lengths: written(INTS), section_starts: written(LONGS), section_lengths: written(INTS),
    timestamps: written(LONGS), offsets: written(LONGS), rows_of: written(LONGS), notes: written(LONGS),
):  # fmt: skip
    """Find every record at or above `from_offset`; return an error code.

    `rows_of` gets the row count of each batch. Starts of nulls and of missing headers stay unset.
    """
    row = 0
    for batch in range(len(batches)):
        at, end = batches[batch, START], batches[batch, END]
        base_offset, last_delta = batches[batch, BASE_OFFSET], batches[batch, LAST_DELTA]
        base_time, time_step = batches[batch, BASE_TIME], batches[batch, TIME_STEP]
        first_row = row
        previous = -1
        notes[BATCH] = batch
        for record in range(batches[batch, COUNT]):
            notes[RECORD] = record
            length, at = varint.read(data, at, end, INT_BYTES)
            if at == BAD or length < 0 or length > end - at:
                return RECORD_LENGTH
            stop = at + length
            time_delta, at = varint.read(data, at + 1, stop, LONG_BYTES)
            if at == BAD:
                return TIMESTAMP
            delta, at = varint.read(data, at, stop, INT_BYTES)
            if at == BAD or delta <= previous or delta > last_delta:
                return OFFSET
            previous = delta
            key_length, at = varint.read(data, at, stop, INT_BYTES)
            if at == BAD or key_length < NULL or key_length > stop - at:
                return KEY
            key_start = at
            at += max(key_length, 0)
            value_length, at = varint.read(data, at, stop, INT_BYTES)
            if at == BAD or value_length < NULL or value_length > stop - at:
                return VALUE
            value_start = at
            at += max(value_length, 0)
            section_start = at
            if at < stop and data[at] == 0:
                at += 1
            else:
                at = _skip_headers(data, at, stop)
                if at == BAD:
                    return HEADERS
            if at != stop:
                return RECORD_REST
            if base_offset + delta < from_offset:
                continue
            key_lengths[row] = key_length
            if key_length != NULL:
                key_starts[row] = key_start
                notes[HAS_KEYS] = 1
            value_lengths[row] = value_length
            if value_length != NULL:
                value_starts[row] = value_start
                notes[HAS_VALUES] = 1
            if at - section_start > 1:
                section_starts[row] = section_start
                section_lengths[row] = at - section_start
                notes[HAS_HEADERS] = 1
            timestamps[row] = base_time + time_step * time_delta
            offsets[row] = base_offset + delta
            row += 1
        if at != end:
            return BATCH_REST
        rows_of[batch] = row - first_row
    return FINE


@compiled
def check_records(data: BYTES, at: LONG, count: LONG, keyed: FLAG):
    """Check for exactly `count` records from `at` on, with keys if `keyed`: (error code, record with the error)."""
    end = np.int64(len(data))
    for record in range(count):
        length, at = varint.read(data, at, end, INT_BYTES)
        if at == BAD or length < 0 or length > end - at:
            return RECORD_LENGTH, record
        stop = at + length
        _, at = varint.read(data, at + 1, stop, LONG_BYTES)
        if at == BAD:
            return TIMESTAMP, record
        delta, at = varint.read(data, at, stop, INT_BYTES)
        if at == BAD or delta != record:
            return OFFSET, record
        key_length, at = varint.read(data, at, stop, INT_BYTES)
        if at == BAD or key_length < NULL or key_length > stop - at:
            return KEY, record
        if keyed and key_length == NULL:
            return NO_KEY, record
        at += max(key_length, 0)
        value_length, at = varint.read(data, at, stop, INT_BYTES)
        if at == BAD or value_length < NULL or value_length > stop - at:
            return VALUE, record
        at += max(value_length, 0)
        if at < stop and data[at] == 0:
            at += 1
        else:
            at = _skip_headers(data, at, stop)
            if at == BAD:
                return HEADERS, record
        if at != stop:
            return RECORD_REST, record
    return (FINE, count) if at == end else (BATCH_REST, count)


@compiled
def _skip_headers(data, at, stop):
    """Return the position after a record's headers, or BAD."""
    count, at = varint.read(data, at, stop, INT_BYTES)
    if at == BAD or count < 0 or count > stop - at:
        return BAD
    for _ in range(count):
        length, at = varint.read(data, at, stop, INT_BYTES)
        if at == BAD or length < 0 or length > stop - at:
            return BAD
        length, at = varint.read(data, at + length, stop, INT_BYTES)
        if at == BAD or length < NULL or length > stop - at:
            return BAD
        at += max(length, 0)
    return at
