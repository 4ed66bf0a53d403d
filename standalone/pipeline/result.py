"""What happened to a batch, and which engine did how much."""

from dataclasses import dataclass, field

import numpy as np

from standalone.pipeline.columns.segments import NO_ROWS

IDENTITY, ROWS, COLUMNS, SPARK = ENGINES = ("identity", "rows", "columns", "spark")


@dataclass
class Result:
    """What happened to a batch. Every row of it is in `out` (or `batches`), in `failures` or in `dropped`."""

    out: list = field(default_factory=list)  # of a source: Outgoings
    batches: list = field(default_factory=list)  # of a sink: SinkBatches, in the order of their offsets
    failures: list = field(default_factory=list)  # StageFailed, ascending by row
    dropped: np.ndarray = field(default_factory=lambda: NO_ROWS)  # rows, ascending

    @classmethod
    def of(cls, failures, dropped, **done):
        return cls(failures=sorted(failures, key=lambda failure: failure.row), dropped=np.sort(np.array(dropped, np.int64)), **done)


MOST_REASONS = 20


class EngineCounts:
    """Records since the start, by the engine that did them: identity (bytes handed through), rows, columns (edits of the schema), spark."""

    def __init__(self):
        self.records = dict.fromkeys(ENGINES, 0)
        self.batches = dict.fromkeys(ENGINES, 0)
        self.redone = 0  # by rows, of batches that columns or Spark did
        self.failed_batches = 0  # that an engine broke on
        self.reasons = {}  # why whole batches went by rows: how many records did

    def add(self, engine, count, redone=0, reason=None):
        if reason is not None and (reason in self.reasons or len(self.reasons) < MOST_REASONS):
            self.reasons[reason] = self.reasons.get(reason, 0) + count
        self.batches[engine] += 1
        self.records[engine] += count - redone
        self.records[ROWS] += redone
        self.redone += redone
