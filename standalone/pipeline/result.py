"""The result of a batch, and counters per engine."""

from dataclasses import dataclass, field

import numpy as np

from standalone.pipeline.columns.segments import NO_ROWS

IDENTITY, ROWS, COLUMNS, SPARK = ENGINES = ("identity", "rows", "columns", "spark")


@dataclass
class Result:
    """The result of a batch. Every row is in `out` (or `batches`), in `failures` or in `dropped`."""

    out: list = field(default_factory=list)  # Outgoings of a source
    batches: list = field(default_factory=list)  # SinkBatches of a sink, in offset order
    failures: list = field(default_factory=list)  # StageFailed, ascending by row
    dropped: np.ndarray = field(default_factory=lambda: NO_ROWS)  # row numbers, ascending

    @classmethod
    def of(cls, failures, dropped, **done):
        return cls(failures=sorted(failures, key=lambda failure: failure.row), dropped=np.sort(np.array(dropped, np.int64)), **done)


MOST_REASONS = 20


class EngineCounts:
    """Records since the start by engine: identity (bytes passed through), rows, columns (schema edits), spark."""

    def __init__(self):
        self.records = dict.fromkeys(ENGINES, 0)
        self.batches = dict.fromkeys(ENGINES, 0)
        self.redone = 0  # by rows, from columnar or Spark batches
        self.failed_batches = 0  # batches that an engine failed on
        self.reasons = {}  # why whole batches went by rows -> number of records

    def add(self, engine, count, redone=0, reason=None):
        if reason is not None and (reason in self.reasons or len(self.reasons) < MOST_REASONS):
            self.reasons[reason] = self.reasons.get(reason, 0) + count
        self.batches[engine] += 1
        self.records[engine] += count - redone
        self.records[ROWS] += redone
        self.redone += redone
