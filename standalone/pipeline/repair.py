"""Merge the rows engine's results back into the order of a columnar batch.

A sink's batch stays columnar if the redone records fit its schema.
"""

import numpy as np

from standalone.data.batch import SinkBatch, joined_parts
from standalone.data.column import take

MOST_SPLITS = 64  # splits of a sink's batch, before it becomes single records


def union(a, b):
    """Return the union of two ascending arrays of row numbers."""
    return a if not len(b) else b if not len(a) else np.union1d(a, b)


def merged(batch, numbers, again):
    """Merge a batch (row numbers `numbers`, None for all) and [(row, record)] into batches in row order."""
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
    """Merge a SinkBatch with these row numbers and [(row, SinkRecord)] into one SinkBatch; None if schemas differ."""
    runs = list(SinkBatch.runs([record for _, record in others]))
    if len(runs) != 1 or any(getattr(runs[0], name) != getattr(batch, name) for name in ("key_schema", "value_schema", "origin")):
        return None
    order = np.argsort(np.concatenate([numbers, [row for row, _ in others]]), kind="stable")
    parts = {name: take(part, order) for name, part in joined_parts([batch, *runs]).items()}
    names = ("timestamp_type", "origin", "key_schema", "value_schema")
    return SinkBatch(**parts, **{name: getattr(batch, name) for name in names})
