"""A chain on all cores, where it has links that have no column meaning: copies of it work a batch's pieces in other Python processes, those
of Spark (in a Spark job), or our own (processes.py).

A batch goes there in pieces, each pickled, and comes back as what the chain makes of each. The stages are copied, so this is only for
those that keep no state between records: the ones of this package, and others that say `stateless = True`.
"""

import collections
import hashlib
import pickle
import sys

import numpy as np

from standalone.data.batch import SourceBatch
from standalone.pipeline.outgoing import Sent, behind
from standalone.pipeline.processes import pool
from standalone.wire import ByteColumn, Records

LEAST_PIECE_ROWS = 500


def may_be_spread(chain):
    """Whether copies of the chain's stages do the same as the stages themselves."""
    stages = [chain.key_converter, chain.value_converter, chain.header_converter]
    stages += [stage for link in chain.links for stage in (link.transform, link.predicate) if stage is not None]
    return all(type(stage).__module__.startswith("standalone.") or stage.stateless for stage in stages)


def copied(chain):
    """The chain, pickled. Raises what pickle raises."""
    from pyspark import cloudpickle

    for stage in (each for link in chain.links for each in (link.transform, link.predicate) if each is not None):
        module = sys.modules.get(type(stage).__module__)
        if module is not None and not module.__name__.startswith("standalone."):
            cloudpickle.register_pickle_by_value(module)  # a file of plugin.path is on no path that a worker knows
    return cloudpickle.dumps(chain)


class Workers:
    """Hands one chain's batches to other processes. Raises what pickle, Spark or the processes raise; Busy where these have no time."""

    def __init__(self, chain, cores):
        self._stages = copied(chain)
        self._cores = cores

    def source(self, batch):
        """([Sent], failed rows, dropped rows) of a SourceBatch."""
        return _gathered(self._work("source", self._source_pieces(batch)))

    def sink(self, topic, partition, records):
        """([(rows, SinkBatch)], failed rows, dropped rows) of fetched records."""
        return _gathered(self._work("sink", self._sink_pieces(topic, partition, records)))

    def _source_pieces(self, batch):
        return [pickle.dumps(_source_piece(batch, low, high), 5) for low, high in self._cuts(batch.count)]

    def _sink_pieces(self, topic, partition, records):
        cuts = self._cuts(records.count)
        return [pickle.dumps((low, topic, partition, _compact(records.slice(low, high))), 5) for low, high in cuts]

    def _cuts(self, count):
        step = max(LEAST_PIECE_ROWS, -(-count // (self._cores * self.pieces_per_core)))
        return [(low, min(low + step, count)) for low in range(0, count, step)]


class SparkWorkers(Workers):
    """In Spark's Python processes."""

    pieces_per_core = 2

    def __init__(self, chain, holder):
        super().__init__(chain, holder.cores)
        self._holder = holder

    def _work(self, kind, pieces):
        import pyarrow as pa

        # A chunk of the table becomes a partition of Spark's.
        table = pa.concat_tables([pa.table({"piece": pa.array([piece], pa.binary())}) for piece in pieces])
        with self._holder.job():
            sent = self._holder.ready().createDataFrame(table)
            done = sent.mapInArrow(_worker(kind, self._stages, list(sys.path)), "piece binary").toArrow()
            del sent
        return done.column(0).to_pylist()


class OwnWorkers(Workers):
    """In our own."""

    pieces_per_core = 1

    def __init__(self, chain, cores):
        super().__init__(chain, cores)
        self._job = None  # what was begun last and not ended
        pool.join(cores)

    @property
    def are_up(self):
        return pool.is_up()

    def close(self):
        if self._job is not None:
            self._job.abandon()
        pool.leave()

    def begin_sink(self, topic, partition, records, behind=None):
        """Have fetched records worked meanwhile, behind the Begun that was given last and is not ended: a Begun for `end_sink`."""
        pieces = self._sink_pieces(topic, partition, records)
        self._job = _begun("sink", self._stages, pieces, behind and behind.job)
        return Begun(topic, partition, records, self._job)

    def end_sink(self, begun):
        """What `sink` gives."""
        if self._job is begun.job:
            self._job = None
        return _gathered(begun.job.answers())

    def _work(self, kind, pieces):
        return _begun(kind, self._stages, pieces).answers()


Begun = collections.namedtuple("Begun", "topic partition records job")


class Busy(Exception):
    """Another batch is in the processes."""


def _begun(kind, stages, pieces, behind=None):
    job = pool.begin(kind, stages, pieces, behind)
    if job is None:
        raise Busy
    return job


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


_pipelines = {}  # of this process, by the stages they were made of: it works many batches


def work_piece(kind, stages, piece):
    """Work one pickled piece: the pickled (done, failed rows, dropped rows). Called in the other process."""
    from standalone.pipeline.run import Pipeline

    key = hashlib.sha1(stages).digest()
    if key not in _pipelines:
        _pipelines[key] = Pipeline(pickle.loads(stages), cores=1)
    pipeline = _pipelines[key]
    if kind == "source":
        low, parts, source_partition, offsets = pickle.loads(piece)
        result = pipeline.source(SourceBatch(**parts, source_partition=source_partition, offset_of=offsets.__getitem__))
        done = [behind(Sent(*out), low) for out in result.out]
    else:
        low, topic, partition, records = pickle.loads(piece)
        result = pipeline.sink(topic, partition, records)
        done = [(low + np.searchsorted(records.offsets, batch.offsets), _in_columns(batch)) for batch in result.batches]
    return pickle.dumps((done, [low + failure.row for failure in result.failures], (low + result.dropped).tolist()), 5)


def _in_columns(batch):
    """A batch in columns: those are quicker to carry than records."""
    batch._records = None
    return batch


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
    for more, bad, gone in map(pickle.loads, pieces):
        done += more
        failed += bad
        dropped += gone
    return done, np.array(failed, np.int64), dropped
