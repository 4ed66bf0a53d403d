"""The rows engine on all cores: a chain that has no column meaning is worked by rows inside a Spark job, in Python processes of Spark's.

A batch goes there in pieces, each pickled, and comes back as what the rows engine makes of each. The stages are copied, so this is
only for those that keep no state between records: the ones of this package, and others that say `stateless = True`.
"""

import hashlib
import pickle
import sys

import numpy as np

from standalone.data.batch import SinkBatch, SourceBatch
from standalone.pipeline.outgoing import Sent
from standalone.pipeline.rows import RowsEngine, sink_rows, source_rows
from standalone.wire import ByteColumn, Records

PIECES_PER_CORE = 2
LEAST_PIECE_ROWS = 500


def may_be_spread(chain):
    """Whether copies of the chain's stages do the same as the stages themselves."""
    stages = [chain.key_converter, chain.value_converter, chain.header_converter]
    stages += [stage for link in chain.links for stage in (link.transform, link.predicate) if stage is not None]
    return all(type(stage).__module__.startswith("standalone.") or stage.stateless for stage in stages)


class Workers:
    """Hands one chain's batches to Spark's Python processes. Raises what pickle or Spark raise."""

    def __init__(self, chain, holder):
        from pyspark import cloudpickle

        for stage in (each for link in chain.links for each in (link.transform, link.predicate) if each is not None):
            module = sys.modules.get(type(stage).__module__)
            if module is not None and not module.__name__.startswith("standalone."):
                cloudpickle.register_pickle_by_value(module)  # a file of plugin.path is on no path that a worker knows
        self._stages = cloudpickle.dumps(chain)
        self._holder = holder

    def source(self, batch):
        """([Sent], failed rows, dropped rows) of a SourceBatch."""
        return _gathered(self._run("source", [_source_piece(batch, low, high) for low, high in self._cuts(batch.count)]))

    def sink(self, topic, partition, records):
        """([(rows, SinkBatch)], failed rows, dropped rows) of fetched records."""
        pieces = [(low, topic, partition, _compact(records.slice(low, high))) for low, high in self._cuts(records.count)]
        return _gathered(self._run("sink", pieces))

    def _cuts(self, count):
        step = max(LEAST_PIECE_ROWS, -(-count // (self._holder.cores * PIECES_PER_CORE)))
        return [(low, min(low + step, count)) for low in range(0, count, step)]

    def _run(self, kind, pieces):
        import pyarrow as pa

        # A chunk of the table becomes a partition of Spark's.
        table = pa.concat_tables([pa.table({"piece": pa.array([pickle.dumps(piece, 5)], pa.binary())}) for piece in pieces])
        with self._holder.job():
            sent = self._holder.ready().createDataFrame(table)
            done = sent.mapInArrow(_worker(kind, self._stages, list(sys.path)), "piece binary").toArrow()
            del sent
        return [pickle.loads(piece) for piece in done.column(0).to_pylist()]


def _worker(kind, stages, path):
    """The function that runs in Spark's Python process. It is sent by value and finds this package by our own path."""

    def work(batches):
        import sys

        sys.path.extend(entry for entry in path if entry not in sys.path)
        import pyarrow as pa

        from standalone.pipeline.workers import work_piece

        for batch in batches:
            done = [work_piece(kind, stages, piece) for piece in batch.column(0).to_pylist()]
            yield pa.RecordBatch.from_arrays([pa.array(done, pa.binary())], ["piece"])

    return work


_engines = {}  # of this process, by the stages they were made of: Spark's processes live on from job to job


def work_piece(kind, stages, piece):
    """Work one pickled piece: the pickled (done, failed rows, dropped rows). Called in Spark's Python process."""
    key = hashlib.sha1(stages).digest()
    if key not in _engines:
        _engines[key] = RowsEngine(pickle.loads(stages))
    engine = _engines[key]
    if kind == "source":
        low, parts, source_partition, offsets = pickle.loads(piece)
        batch = SourceBatch(**parts, source_partition=source_partition, offset_of=offsets.__getitem__)
        sent, failures, dropped = source_rows(engine, batch.records(), range(low, low + batch.count))
        done = [Sent.of_rows(sent)] if sent.rows else []
    else:
        low, topic, partition, records = pickle.loads(piece)
        done, failures, dropped = sink_rows(engine, topic, partition, records, range(records.count))
        done = _batches(done, low)
        dropped = [low + row for row in dropped]
        for failure in failures:
            failure.row += low
    return pickle.dumps((done, [failure.row for failure in failures], dropped), 5)


def _batches(done, low):
    """Records as (their rows, SinkBatch), in columns: those are quicker to carry than records."""
    batches, start = [], 0
    for batch in SinkBatch.runs([record for _, record in done]):
        rows = np.array([low + row for row, _ in done[start : start + batch.count]], np.int64)
        batch._records = None
        batches.append((rows, batch))
        start += batch.count
    return batches


def _source_piece(batch, low, high):
    def cut(column):
        return column.slice(low, high).compact() if isinstance(column, ByteColumn) else None if column is None else column[low:high]

    def one_or_all(given):
        return given[low:high] if isinstance(given, list) else given

    parts = {
        "count": high - low,
        "topic": one_or_all(batch.topic),
        "partition": one_or_all(batch.partition),
        "key": cut(batch.key),
        "key_schema": batch.key_schema,
        "value": cut(batch.value),
        "value_schema": batch.value_schema,
        "timestamps": cut(batch.timestamps),
        "headers": cut(batch.headers),
    }
    return low, parts, batch.source_partition, [batch.offset_of(row) for row in range(low, high)]


def _compact(records):
    columns = [column if column is None else column.compact() for column in (records.keys, records.values)]
    return Records(records.count, *columns, records.timestamps, records.headers, records.offsets, records.timestamp_type)


def _gathered(pieces):
    done, failed, dropped = [], [], []
    for more, bad, gone in pieces:
        done += more
        failed += bad
        dropped += gone
    return done, np.array(failed, np.int64), dropped
