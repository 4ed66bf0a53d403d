"""Stateless links without a columnar form: run record by record in Spark's Python workers, on all cores.

A batch is sent in pieces (pieces.py), each pickled as columns, and returns as columns if the records still share a schema, else as records.
The stages are copied, so this is only for stages without state between records: those of this package, and others with
`stateless = True`.
"""

import gc
import hashlib
import pickle
import sys

import numpy as np

from standalone.pipeline.batch_run import SinkOrigin, SourceOrigin, alike_in_columns
from standalone.pipeline.columns.batch import ColumnBatch, joined_batches
from standalone.pipeline.columns.segments import ByRows, Segment
from standalone.pipeline.rows.engine import RowsEngine
from standalone.pipeline.spark import job
from standalone.pipeline.spark.pieces import InFiles, InJob, are_here

PIECES_PER_CORE = 2
LEAST_PIECE_ROWS = 500
ROWS_AT_ONCE = 2000  # of a piece, in the worker: as records so many stay near the processor, and the next ones use their memory again
JOB_BYTES = 64 << 20  # pieces pass through Java's heap as they are


def may_be_copied(links):
    """Whether copies of the stages behave like the originals."""
    stages = [stage for link in links for stage in (link.transform, link.predicate) if stage is not None]
    return all(type(stage).__module__.startswith("standalone.") or stage.stateless for stage in stages)


def copied(chain):
    """Pickle the chain. Raise pickle's errors."""
    from pyspark import cloudpickle

    for stage in (each for link in chain.links for each in (link.transform, link.predicate) if each is not None):
        module = sys.modules.get(type(stage).__module__)
        if module is not None and not module.__name__.startswith("standalone."):
            cloudpickle.register_pickle_by_value(module)  # workers cannot import files of plugin.path
    return cloudpickle.dumps(chain)


class PythonLinks(Segment):
    """The segment of such links. It requests Spark once a batch is large enough."""

    title = "links of Python"

    def __init__(self, low, chain, holder, is_worth_a_job):
        """`chain` has only these links. Raise pickle's errors."""
        super().__init__(low, len(chain.links))
        self._kind, self._stages = chain.kind, copied(chain)
        self._holder, self._way = holder, InFiles if are_here(holder.conf["spark.master"]) else InJob
        self._is_worth_a_job = is_worth_a_job

    def run(self, batch, origin, rows):
        if not self._is_worth_a_job(batch.count):
            raise ByRows("it is too small for a Spark job, or Spark is not up")
        cores = self._holder.cores
        step = max(LEAST_PIECE_ROWS, -(-batch.count // (cores * PIECES_PER_CORE)))
        cuts = _cuts(batch.count, step)
        work = _worker(self._way.work, self._kind, self._stages, list(sys.path))
        with self._way(pickled_pieces(batch, origin, rows, cuts)) as pieces:
            tables = job.run(self._holder, pieces.table, lambda session, chunk: _mapped(session, chunk, work), JOB_BYTES)
            return made_of(pieces.results(tables), origin, rows, cuts)

    def describe(self):
        return ["links of Python: in Spark's Python workers"]


def pickled_pieces(batch, origin, rows, cuts):
    """Pickle one piece per cut."""
    return [pickle.dumps((batch.piece(low, high), origin.carried(rows[low:high])), 5) for low, high in cuts]


def made_of(results, origin, rows, cuts):
    """What came back of the pieces: (a ColumnBatch or a list of records, their rows or None for all, the rows to do again)."""
    whole, numbers, redo = _joined([pickle.loads(each) for each in results], origin, rows, cuts)
    return whole, None if np.array_equal(numbers, np.arange(len(rows))) else numbers, redo


def _joined(done, origin, rows, cuts):
    """What was made of the rows of each cut as one."""
    numbers = [low + numbers for (low, _), (_, numbers, _) in zip(cuts, done)]
    redo = np.concatenate([low + redo for (low, _), (_, _, redo) in zip(cuts, done)])
    made = [each for each, _, _ in done]
    filled = [each for each in made if not isinstance(each, list) or each]
    whole = joined_batches(filled) if filled and all(isinstance(each, ColumnBatch) for each in filled) else None
    if whole is None:
        whole = [record for each, at in zip(made, numbers) for record in _records(each, at, origin, rows)]
    return whole, np.concatenate(numbers), redo


def _records(made, numbers, origin, rows):
    return made if isinstance(made, list) else origin.records(made, rows[numbers])


def _mapped(session, chunk, work):
    return session.createDataFrame(chunk).mapInArrow(work, "piece binary").toArrow()


def _worker(way, kind, stages, path):
    """Return the function that runs in Spark's Python worker. It is pickled by value and finds this package by our path."""

    def work(batches):
        import sys

        sys.path.extend(entry for entry in path if entry not in sys.path)
        import pyarrow as pa

        from standalone.pipeline.spark.python import work_piece

        for batch in batches:
            done = [way(cell, lambda piece: work_piece(kind, stages, piece)) for cell in batch.column(0).to_pylist()]
            yield pa.RecordBatch.from_arrays([pa.array(done, pa.binary())], ["piece"])

    return work


_engines = {}  # of this process, by their stages: it processes many batches


def work_piece(kind, stages, piece):
    """Process one pickled piece in the worker; return the pickled (ColumnBatch or records, their rows, failed rows)."""
    key = hashlib.sha1(stages).digest()
    if key not in _engines:
        _engines[key] = RowsEngine(pickle.loads(stages))
    batch, carried = pickle.loads(piece)
    origin = SinkOrigin(None, *carried) if kind == "sink" else SourceOrigin.carried_here(*carried)
    rows = np.arange(batch.count)
    cuts = _cuts(batch.count, ROWS_AT_ONCE)
    gc.disable()  # or Python would look through all these records again and again for rings, for a third of the time
    try:
        done = [_worked(_engines[key], batch.cut(low, high), rows[low:high], origin) for low, high in cuts]
        return pickle.dumps(_joined(done, origin, rows, cuts), 5)
    finally:
        gc.enable()


def _cuts(count, step):
    return [(low, min(low + step, count)) for low in range(0, count, step)]


def _worked(engine, batch, rows, origin):
    records = origin.records(batch, rows)
    failures = []
    made = list(engine.through(((row, row, record) for row, record in enumerate(records)), 0, None, failures))
    failed = {row for row, _ in failures}
    if failed:
        made = [each for each in made if each[1] not in failed]
    records = [record for _, _, record in made]
    numbers = np.fromiter((row for _, row, _ in made), np.int64, len(made))
    columns = alike_in_columns(records, origin.columns) if records else None
    return records if columns is None else columns, numbers, np.array(sorted(failed), np.int64)
