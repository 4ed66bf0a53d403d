"""What became of a batch, and how its parts, done by several engines, are put together again."""

from dataclasses import dataclass, field

import numpy as np

from standalone.data.batch import SinkBatch, SourceBatch
from standalone.pipeline.ends import NO_ROWS
from standalone.pipeline.frame import pick
from standalone.pipeline.interleave import interleaved
from standalone.pipeline.outgoing import behind, divide, join

MOST_SPLITS = 64  # of a sink's batch, before it is taken apart into rows


@dataclass
class Result:
    """What became of a batch. Every row of it is in `out` (or `batches`), in `failures` or in `dropped`."""

    out: list = field(default_factory=list)  # of a source: Outgoings
    batches: list = field(default_factory=list)  # of a sink: SinkBatches, in the order of their offsets
    failures: list = field(default_factory=list)  # StageFailed, ascending by row
    dropped: np.ndarray = field(default_factory=lambda: NO_ROWS)  # rows, ascending

    @classmethod
    def joined(cls, results):
        """Of the results [(first row, Result)] of a batch's pieces."""
        whole = cls()
        for low, result in results:
            for failure in result.failures:
                failure.row += low
            whole.failures += result.failures
            whole.batches += result.batches
            whole.out += [behind(out, low) for out in result.out]
        whole.dropped = np.concatenate([low + result.dropped for low, result in results])
        return whole

    @classmethod
    def of(cls, failures, dropped, **done):
        return cls(failures=sorted(failures, key=lambda failure: failure.row), dropped=np.sort(np.array(dropped, np.int64)), **done)


@dataclass
class Stats:
    """Counts since the start: batches and records by the engine that did them."""

    rows_batches: int = 0
    rows_records: int = 0
    columns_batches: int = 0
    columns_records: int = 0
    spark_batches: int = 0  # those of the columns engine for which Spark had something to compute
    workers_batches: int = 0  # in other Python processes
    workers_records: int = 0
    redone_records: int = 0  # left to the rows engine by the columns engine
    failed_batches: int = 0  # that the columns engine broke on

    def records(self):
        """Records by the engine that did them."""
        return {"rows": self.rows_records + self.redone_records, "columns": self.columns_records, "workers": self.workers_records}


# --- Parts of a batch -------------------------------------------------------------------------------------------------


def divided(parts, count):
    """Encoded parts of a batch of that many rows as Outgoings."""
    if not parts:
        return []
    sent = join(parts)
    is_whole = sent.rows is not None and len(sent.rows) == count and (np.diff(sent.rows) == 1).all()  # a row may have given several
    return divide(sent._replace(rows=None) if is_whole else sent)


def lists_of(sent, kept):
    """Topic and partition of these rows, where there is one for each."""
    return {name: [part[at] for at in kept.tolist()] for name in ("topic", "partition") if isinstance(part := getattr(sent, name), list)}


def rows_of(batch, rows):
    """These rows of a SourceBatch as one of their own."""
    if len(rows) == batch.count:
        return batch
    lists = {name: getattr(batch, name) for name in ("topic", "partition", "headers")}
    part = SourceBatch(
        len(rows),
        value=pick(batch.value, rows),
        value_schema=batch.value_schema,
        key=pick(batch.key, rows),
        key_schema=batch.key_schema,
        timestamps=pick(batch.timestamps, rows),
        source_partition=batch.source_partition,
        offset_of=lambda at: batch.offset_of(int(rows[at])),
        **{name: pick(column, rows) if isinstance(column, list) else column for name, column in lists.items()},
    )
    return part


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
