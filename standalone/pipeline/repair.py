"""What rows did again, put back in order among what columns did: the only such place.

A sink's batch stays in columns where the records done again fit them.
"""

import numpy as np
import pyarrow as pa

from standalone.data import schema as s
from standalone.data import utf8
from standalone.data.arrow import to_arrow
from standalone.data.batch import SinkBatch, values_of
from standalone.data.column import one_piece
from standalone.data.struct import Struct
from standalone.data.struct_column import StructColumn, pick
from standalone.pipeline.columns.batch import NotColumns, columnar
from standalone.wire import NO_TIMESTAMP, ByteColumn, concat

_COLUMNS = (("key", "key_schema"), ("value", "value_schema"))
MOST_SPLITS = 64  # of a sink's batch, before it is taken apart into rows


def union(a, b):
    """Two ascending arrays of row numbers as one."""
    return a if not len(b) else b if not len(a) else np.union1d(a, b)


def merged(batch, numbers, again):
    """A batch (its rows have these numbers, None for all) and [(row, record)] as batches in the order of the rows."""
    if not again:
        return [] if batch is None else [batch]
    if batch is None:
        return list(SinkBatch.runs([record for _, record in again]))
    if len(again) > MOST_SPLITS:
        whole = interleaved(batch, numbers, again)
        if whole is not None:
            return [whole]
        every = sorted([*zip(numbers.tolist(), batch.records()), *again], key=lambda pair: pair[0])
        return list(SinkBatch.runs([record for _, record in every]))
    batches, low, run = [], 0, []
    for row, record in again:
        at = int(np.searchsorted(numbers, row))
        if at > low:
            batches += [*SinkBatch.runs(run), batch.slice(low, at)]
            low, run = at, []
        run.append(record)
    batches += SinkBatch.runs(run)
    return [*batches, batch.slice(low, len(batch))] if low < len(batch) else batches


def interleaved(batch, numbers, others):
    """Of a SinkBatch whose rows have these numbers and [(row, SinkRecord)] as one SinkBatch; None where the records have another schema."""
    runs = list(SinkBatch.runs([record for _, record in others]))
    if len(runs) != 1 or any(getattr(runs[0], name) != getattr(batch, name) for name in ("key_schema", "value_schema", "origin")):
        return None
    few = runs[0]
    order = np.argsort(np.concatenate([numbers, [row for row, _ in others]]), kind="stable")
    parts = {}
    for name, schema in _COLUMNS:
        values = values_of(getattr(few, name), getattr(few, schema), few.count)
        parts[name] = pick(joined(getattr(batch, name), getattr(batch, schema), batch.count, values), order)
    for name in ("topic", "partition"):
        parts[name] = _one_or_all(getattr(batch, name), batch.count, getattr(few, name), few.count, order)
    return SinkBatch(
        batch.count + few.count,
        offsets=np.concatenate([batch.offsets, few.offsets])[order],
        timestamp_type=batch.timestamp_type,
        origin=batch.origin,
        key_schema=batch.key_schema,
        value_schema=batch.value_schema,
        timestamps=_times(batch, few, order),
        headers=_headers(batch, few, order),
        **parts,
    )


def joined(column, schema, count, values):
    """The column with these values behind it, of the kind it was where they fit that."""
    if column is None and values.count(None) == len(values):
        return None
    if schema is not None:
        if isinstance(column, ByteColumn) and (more := _bytes(values, schema)) is not None:
            return concat([column, more])
        if isinstance(column, StructColumn) and all(isinstance(value, Struct) and value.schema == column.schema for value in values):
            fields = enumerate(zip(column.parts, column.schema.fields))
            parts = [joined(part, field.schema, count, [value.values[at] for value in values]) for at, (part, field) in fields]
            return StructColumn(column.schema, parts, count + len(values))
        if isinstance(column, (pa.Array, pa.ChunkedArray)):
            try:
                return pa.concat_arrays([one_piece(to_arrow(each, schema)) for each in (column, columnar(values, schema, len(values)))])
            except NotColumns:
                pass
    return values_of(column, schema, count) + values


def _bytes(values, schema):
    kind = str if schema.type == s.STRING else bytes if schema.type == s.BYTES and not schema.logical else None
    if kind is None or not all(value is None or isinstance(value, kind) for value in values):
        return None
    return ByteColumn.of([utf8.encode(value) if kind is str and value is not None else value for value in values])


def _one_or_all(many, many_count, few, few_count, order):
    if not isinstance(many, list) and not isinstance(few, list) and many == few:
        return many
    every = (many if isinstance(many, list) else [many] * many_count) + (few if isinstance(few, list) else [few] * few_count)
    return pick(every, order)


def _times(batch, few, order):
    if batch.timestamps is None and few.timestamps is None:
        return None
    both = (np.full(each.count, NO_TIMESTAMP, np.int64) if each.timestamps is None else each.timestamps for each in (batch, few))
    return np.concatenate(list(both))[order]


def _headers(batch, few, order):
    if batch.headers is None and few.headers is None:
        return None
    every = [row for each in (batch, few) for row in (each.headers if each.headers is not None else [()] * each.count)]
    return pick(every, order)
