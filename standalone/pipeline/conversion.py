"""Convert between bytes and columns with the kernels of a chain's converters; rows that fail are returned, not raised."""

import numpy as np

from standalone.data import schema as s
from standalone.data.column import concat, take, values_of
from standalone.errors import without_frames
from standalone.pipeline.columns.batch import ColumnBatch
from standalone.pipeline.columns.segments import NO_ROWS, ByRows
from standalone.pipeline.encoded import Outgoing, groups
from standalone.pipeline.repair import union
from standalone.wire import ByteColumn, Records


def _numbers(bad):
    return NO_ROWS if bad is None or not len(bad) else np.sort(np.asarray(bad, np.int64))


class Conversion:
    """The converters of one chain. `rows` is its rows engine, which converts headers: they are few and vary in type."""

    def __init__(self, chain, rows):
        self._key, self._value = chain.key_converter, chain.value_converter
        self._rows = rows

    # --- encoding ---

    def encode(self, batch, numbers):
        """Encode a batch: ([Outgoing], numbers left to the rows engine). `numbers` are its rows' numbers in the batch, None for all."""
        if not batch.count:
            return [], NO_ROWS
        if not isinstance(batch.topic, list):
            return self._encode_topic(batch, numbers)
        numbers = np.arange(batch.count) if numbers is None else numbers
        parts, left = [], NO_ROWS
        for topic, at in groups(batch.topic):
            more, bad = self._encode_topic(batch.take(at).with_(topic=topic), numbers[at])
            parts += more
            left = union(left, bad)
        return parts, left

    def _encode_topic(self, batch, numbers):
        count, topic = batch.count, batch.topic
        headers, bad = None, NO_ROWS
        if batch.headers is not None:
            headers, bad = _each(batch.headers, lambda row, each: self._rows.encode_headers(topic, each, row) if each else None)
        if self._key.writes_headers or self._value.writes_headers:
            headers = [[] if each is None else each for each in headers or [None] * count]
        keys, bad_keys = _encoded(self._key, topic, batch.key_schema, batch.key, count, headers)
        values, bad_values = _encoded(self._value, topic, batch.value_schema, batch.value, count, headers)
        bad = union(union(bad, bad_keys), bad_values)
        records = Records(count, keys, values, batch.timestamps, headers)
        if not len(bad):
            return [Outgoing(topic, batch.partition, records, numbers)], NO_ROWS
        numbers = np.arange(count) if numbers is None else numbers
        good = np.delete(np.arange(count), bad)
        return [Outgoing(topic, take(batch.partition, good), records.take(good), numbers[good])] if len(good) else [], numbers[bad]

    # --- decoding ---

    def decode(self, topic, partition, records, refused=None):
        """Return (batch of decoded rows, their numbers or None for all, numbers of the others). Raise ByRows if not columnar.

        Fills the dict `refused` with {row number: the value converter's error}.
        """
        key_schema, key, bad = decoded(self._key, topic, records.keys, records.count, None, records.headers)
        value_schema, value, bad_values = decoded(self._value, topic, records.values, records.count, refused, records.headers)
        bad = union(bad, bad_values)
        headers = None
        if records.headers is not None:
            headers, bad_headers = _each(records.headers, lambda row, each: self._rows.decode_headers(topic, each, row))
            headers = [each or () for each in headers]
            bad = union(bad, bad_headers)
        batch = ColumnBatch(
            records.count,
            topic,
            partition=partition,
            key=key,
            key_schema=key_schema,
            value=value,
            value_schema=value_schema,
            timestamps=records.timestamps,
            headers=headers,
            offsets=records.offsets,
            timestamp_type=records.timestamp_type,
        )
        if not len(bad):
            return batch, None, bad
        good = np.delete(np.arange(records.count), bad)
        return batch.take(good), good, bad

    # --- passthrough ---

    def hand_bytes_through(self, kind):
        """Whether both converters return a column of bytes unchanged: tested with a column of one row."""
        probe = ByteColumn.of([b"a"])

        def through(converter):
            if kind == "sink":
                decoded = converter.decode("topic", probe)
                return decoded is not None and decoded[1] is probe
            encoded = (converter.encode("topic", schema, probe, 1) for schema in (s.Schema.STRING, s.Schema.BYTES))
            return any(each is not None and each[0] is probe for each in encoded)

        try:
            return through(self._value) and through(self._key)
        except Exception:  # a converter that fails on the probe is not a passthrough
            return False


def _encoded(converter, topic, schema, column, count, headers):
    """Return (ByteColumn or None for nulls, row numbers that failed)."""
    encoded = converter.encode(topic, schema, column, count, headers) if converter.writes_headers else converter.encode(topic, schema, column, count)
    if encoded is not None:
        return encoded[0], _numbers(encoded[1])
    if column is not None:
        values = values_of(column, schema, count)
        items, bad = _each(values, lambda row, value: converter.written(topic, schema, value, headers and headers[row]))
        return ByteColumn.of(items), bad
    try:
        data = converter.written(topic, schema, None, None)  # the same for every row
    except Exception:
        return None, np.arange(count)  # the rows engine will report why
    return None if data is None else ByteColumn.repeat(data, count), NO_ROWS


def decoded(converter, topic, column, count, refused=None, headers=None):
    """Return (schema, column, row numbers that failed). Raise ByRows. Errors of single rows are added to `refused`."""
    if column is not None:
        found = converter.decode(topic, column, headers) if converter.reads_headers else converter.decode(topic, column)
        if found is None:
            raise ByRows

        def read(row):
            return converter.read(topic, column[row], headers and headers[row])

        schema, values, bad = found
        return schema, *_with_retried_rows(read, len(column), schema, values, _numbers(bad), {} if refused is None else refused)
    try:
        schema, value = converter.to_connect(topic, None)  # the same for every row
    except Exception as error:
        raise ByRows from error
    return schema, None if value is None else [value] * count, NO_ROWS


def _with_retried_rows(read, count, schema, values, bad, refused):
    """Retry bad rows with the row form; return (column with their values, rows still bad). A few unusual rows then stay in the batch;
    rows with errors or another schema do not."""
    if schema is None or not len(bad):
        return values, bad
    done = []
    for row in bad.tolist():
        try:
            found, value = read(row)
            if found == schema:
                done.append((row, value))
        except Exception as error:
            without_frames(error)
            refused[row] = error
    if not done:
        return values, bad
    rows = [row for row, _ in done]
    every = concat([values, [value for _, value in done]], schema, [count, len(done)])
    if type(every) is not type(values):
        return values, bad  # the column's type would change
    order = np.arange(count)
    order[rows] = count + np.arange(len(rows))
    return take(every, order), np.setdiff1d(bad, rows)


def _each(items, work):
    """Return (results, row numbers that failed, with None as result): the rows engine will retry those and report why."""
    results, bad = [], []
    for row, item in enumerate(items):
        try:
            results.append(work(row, item))
        except Exception:
            results.append(None)
            bad.append(row)
    return results, np.array(bad, np.int64)


