"""Encoded records for the producer: parts joined in row order, then divided by topic and partition."""

from typing import Any, NamedTuple

import numpy as np

from standalone.data.column import concat, concat_headers, concat_longs, concat_spread, folded, spread, take
from standalone.data.schema import Schema
from standalone.wire import NO_TIMESTAMP, ByteColumn, Records


class Outgoing(NamedTuple):
    """Records for one topic, and one partition if set; before division, topic and partition may be lists with a value per row.

    `rows` are their row numbers in the batch, ascending; None for all.
    """

    topic: Any
    partition: Any
    records: Records
    rows: Any = None


def of_rows(done):
    """Build an Outgoing from the rows engine's list of (row, record, (key, value, headers) as bytes)."""
    rows, records, parts = zip(*done)
    keys, values, headers = map(list, zip(*parts))
    times = [NO_TIMESTAMP if record.timestamp is None else record.timestamp for record in records]
    encoded = Records(
        len(rows),
        None if keys.count(None) == len(keys) else ByteColumn.of(keys),
        ByteColumn.of(values),
        None if times.count(NO_TIMESTAMP) == len(times) else np.array(times, np.int64),
        headers if any(headers) else None,
    )
    topics, partitions = [record.topic for record in records], [record.partition for record in records]
    return Outgoing(folded(topics), folded(partitions), encoded, np.array(rows, np.int64))


def join(parts):
    """Join several Outgoings in row order."""
    if len(parts) == 1:
        return parts[0]
    rows = np.concatenate([part.rows for part in parts])
    order = np.argsort(rows, kind="stable")
    counts = [part.records.count for part in parts]

    def each(name):
        return [getattr(part.records, name) for part in parts]

    keys, values = (concat(each(name), Schema.OPTIONAL_BYTES, counts) for name in ("keys", "values"))
    times, headers = concat_longs(each("timestamps"), counts, NO_TIMESTAMP), concat_headers(each("headers"), counts)
    topic, partition = (take(concat_spread([getattr(part, name) for part in parts], counts), order) for name in ("topic", "partition"))
    return Outgoing(topic, partition, Records(len(rows), keys, values, times, headers).take(order), rows[order])


def without(parts, rows):
    """Return the Outgoings without these rows."""
    if not len(rows):
        return parts
    left = []
    for part in parts:
        kept = np.flatnonzero(~np.isin(part.rows, rows))
        if len(kept):
            left.append(Outgoing(take(part.topic, kept), take(part.partition, kept), part.records.take(kept), part.rows[kept]))
    return left


def divided(parts, count):
    """Divide all Outgoings of a batch with `count` rows."""
    if not parts:
        return []
    whole = join(parts)
    has_all = whole.rows is not None and len(whole.rows) == count and (np.diff(whole.rows) == 1).all()  # a row may have produced several
    return divide(whole._replace(rows=None) if has_all else whole)


def divide(sent):
    """Divide Outgoings by topic and partition: order is kept within a topic or, if every row names its partition, within a partition."""
    if not sent.records.count:
        return []
    if not isinstance(sent.topic, list) and not isinstance(sent.partition, list):
        return [Outgoing(sent.topic, sent.partition, sent.records, sent.rows)]
    out = []
    for topic, at in groups(spread(sent.topic, sent.records.count)):
        partitions = take(sent.partition, at)
        if not isinstance(partitions, list):
            out.append(_piece(sent, topic, partitions, at))
        elif None in partitions:
            # A record without a partition may go to any, so only adjacent rows can be joined without reordering.
            bounds = [0, *(row for row in range(1, len(at)) if partitions[row] != partitions[row - 1]), len(at)]
            out.extend(_piece(sent, topic, partitions[low], at[low:high]) for low, high in zip(bounds, bounds[1:]))
        else:
            out.extend(_piece(sent, topic, partition, at[inner]) for partition, inner in groups(partitions))
    return out


def groups(values):
    """Return (value, its places) for each distinct value, in order of first occurrence."""
    numbers = {}
    codes = np.fromiter((numbers.setdefault(value, len(numbers)) for value in values), np.int64, len(values))
    order = np.argsort(codes, kind="stable")
    return zip(numbers, np.split(order, np.cumsum(np.bincount(codes))[:-1]))


def _piece(sent, topic, partition, at):
    rows = at if sent.rows is None else sent.rows[at]
    return Outgoing(topic, partition, sent.records if len(at) == sent.records.count else sent.records.take(at), rows)
