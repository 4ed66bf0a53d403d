"""Records as bytes on their way to the log: parts joined in the order of their rows, then divided by topic and partition."""

from typing import Any, NamedTuple

import numpy as np

from standalone.wire import NO_TIMESTAMP, ByteColumn, Records, concat


class Outgoing(NamedTuple):
    """Records for one topic, and for one partition where it is said.

    `rows` are the rows of the batch they came from, ascending; None for all.
    """

    topic: str
    partition: Any
    records: Records
    rows: Any = None


class Encoded(NamedTuple):
    """Encoded records: `topic` and `partition` are one value for all, or a list with one for each; `rows` an array, or None for all."""

    topic: Any
    partition: Any
    records: Records
    rows: Any = None

    @classmethod
    def of_rows(cls, sent):
        """Of what the rows engine encoded: rows.engine.EncodedRows."""
        keys = None if sent.keys.count(None) == len(sent.keys) else ByteColumn.of(sent.keys)
        headers = sent.headers if any(sent.headers) else None
        records = Records(len(sent.rows), keys, ByteColumn.of(sent.values), sent.times(), headers)
        return cls(_one_or_all(sent.topics), _one_or_all(sent.partitions), records, np.array(sent.rows, np.int64))


def _one_or_all(items):
    return items[0] if items.count(items[0]) == len(items) else items


def join(parts):
    """Several Encoded as one, in the order of their rows."""
    if len(parts) == 1:
        return parts[0]
    rows = np.concatenate([part.rows for part in parts])
    order = np.argsort(rows, kind="stable")
    both = [part.records for part in parts]
    records = Records(
        len(rows),
        _joined_bytes(both, "keys"),
        _joined_bytes(both, "values"),
        _joined_times(both),
        _joined_headers(both),
    )
    topic, partition = (_joined_values(parts, name, order) for name in ("topic", "partition"))
    return Encoded(topic, partition, records.take(order), rows[order])


def _joined_bytes(parts, name):
    columns = [getattr(part, name) for part in parts]
    if all(column is None for column in columns):
        return None
    return concat([ByteColumn.repeat(None, part.count) if column is None else column for part, column in zip(parts, columns)])


def _joined_times(parts):
    if all(part.timestamps is None for part in parts):
        return None
    return np.concatenate([np.full(part.count, NO_TIMESTAMP, np.int64) if part.timestamps is None else part.timestamps for part in parts])


def _joined_headers(parts):
    if all(part.headers is None for part in parts):
        return None
    return [row for part in parts for row in (part.headers if part.headers is not None else [None] * part.count)]


def _joined_values(parts, name, order):
    values = [getattr(part, name) for part in parts]
    if not any(isinstance(value, list) for value in values) and values.count(values[0]) == len(values):
        return values[0]
    every = [item for part, value in zip(parts, values) for item in (value if isinstance(value, list) else [value] * part.records.count)]
    return [every[at] for at in order.tolist()]


def without(parts, rows):
    """Encoded parts but for what came of these rows."""
    if not len(rows):
        return parts
    left = []
    for part in parts:
        kept = np.flatnonzero(~np.isin(part.rows, rows))
        if len(kept):
            lists = {name: [given[at] for at in kept.tolist()] for name in ("topic", "partition") if isinstance(given := getattr(part, name), list)}
            left.append(part._replace(records=part.records.take(kept), rows=part.rows[kept], **lists))
    return left


def divided(parts, count):
    """Encoded parts of a batch of that many rows as Outgoings."""
    if not parts:
        return []
    whole = join(parts)
    has_all = whole.rows is not None and len(whole.rows) == count and (np.diff(whole.rows) == 1).all()  # a row may have given several
    return divide(whole._replace(rows=None) if has_all else whole)


def divide(sent):
    """A list of Outgoings: the order of rows is kept within each topic or, where every row names its partition, within each partition."""
    if not sent.records.count:
        return []
    if not isinstance(sent.topic, list) and not isinstance(sent.partition, list):
        return [Outgoing(sent.topic, sent.partition, sent.records, sent.rows)]
    topics = sent.topic if isinstance(sent.topic, list) else [sent.topic] * sent.records.count
    out = []
    for topic, at in _groups(topics):
        partitions = [sent.partition[row] for row in at.tolist()] if isinstance(sent.partition, list) else None
        if partitions is None:
            out.append(_piece(sent, topic, sent.partition, at))
        elif None in partitions:
            # A record without a partition may go to any: only neighbours can be joined without one overtaking another.
            bounds = [0, *(row for row in range(1, len(at)) if partitions[row] != partitions[row - 1]), len(at)]
            out.extend(_piece(sent, topic, partitions[low], at[low:high]) for low, high in zip(bounds, bounds[1:]))
        else:
            out.extend(_piece(sent, topic, partition, at[inner]) for partition, inner in _groups(partitions))
    return out


def _groups(values):
    """(value, its places) for each different value, in the order in which they first come."""
    numbers = {}
    codes = np.fromiter((numbers.setdefault(value, len(numbers)) for value in values), np.int64, len(values))
    order = np.argsort(codes, kind="stable")
    return zip(numbers, np.split(order, np.cumsum(np.bincount(codes))[:-1]))


def _piece(sent, topic, partition, at):
    rows = at if sent.rows is None else sent.rows[at]
    return Outgoing(topic, partition, sent.records if len(at) == sent.records.count else sent.records.take(at), rows)
