"""A lake's sink by hand: records go in as a worker would put them, files are read back as others would read them."""

import csv
import gzip
import io
import json
import pathlib
import re

import fastavro
import numpy as np
import pyarrow.orc as orc
import pyarrow.parquet as pq

from connectors.storage.sink import LakeSinkTask
from standalone import SinkBatch

NAME = re.compile(r"(.+)\+(\d+)\+(\d+)\+(\d+)(\..*)")


class Context:
    """What a task asks of its worker."""

    def __init__(self, reports=None):
        self.reports = reports
        self.offsets, self.timeouts = {}, []

    def errant_record_reporter(self):
        return None if self.reports is None else self

    def report(self, record, error):
        self.reports.append((record.offset, str(error)))

    def offset(self, offsets):
        self.offsets.update(offsets)

    def timeout(self, ms):
        self.timeouts.append(ms)


class Lake:
    """One task after the other over the records of topics: a list for each partition, from offset 0 on. Offsets are committed as a worker commits."""

    task_class = LakeSinkTask

    def __init__(self, root, props, reports=None, topic="t"):
        self.root = pathlib.Path(root)
        self.props = {"store.url": str(root), "flush.size": "10", **{key: str(value) for key, value in props.items()}}
        self.topic = topic
        self.now = 1_700_000_000_000
        self.reports = reports
        self.committed = {}
        self.task = None

    def start(self, *partitions):
        """A new task, as after a restart: it begins where the group stands, or where it says itself."""
        self.task = task = self.task_class()
        task.now_ms = lambda: self.now
        self.context = Context(self.reports)
        task.initialize(self.context)
        task.start(self.props)
        pairs = [(self.topic, partition) for partition in partitions or (0,)]
        task.open(pairs)
        self.positions = {pair: self.context.offsets.get(pair, self.committed.get(pair, 0)) for pair in pairs}
        return self

    def put(self, *batches):
        self.task.put(list(batches))
        for batch in batches:
            self.positions[batch.origin] = int(batch.offsets[-1]) + 1

    def tick(self, ms=0):
        """Time goes by, and nothing comes."""
        self.now += ms
        self.task.put([])

    def commit(self):
        self.committed.update(self.task.pre_commit(dict(self.positions)))
        return self.committed

    def stop(self):
        self.task.stop()

    # --- What others see ---
    def paths(self, topic=None):
        """Below the topic's folder, in the order of offsets."""
        place = self.root / "topics" / (topic or self.topic)
        found = [str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()]
        return sorted(found, key=lambda path: (int(NAME.fullmatch(path.rpartition("/")[2])[3]), path))

    def read(self, path):
        return read_file(self.root / "topics" / self.topic / path)

    def rows(self):
        return [row for path in self.paths() for row in self.read(path)]


def batch(values, schema=None, first=0, topic="t", partition=0, timestamps=None, offsets=None):
    offsets = np.arange(first, first + len(values)) if offsets is None else np.array(offsets)
    times = None if timestamps is None else np.array(timestamps, np.int64)
    return SinkBatch(len(values), topic, values, schema, partition=partition, offsets=offsets, timestamps=times)


def read_file(path):
    """The records of a file, by the library that others read such files with."""
    kind = path.name.removesuffix(".gz").rpartition(".")[2]
    if kind == "parquet":
        return pq.read_table(path, partitioning=None).to_pylist(maps_as_pydicts="strict")
    if kind == "orc":
        return [{name: _plain(item) for name, item in row.items()} for row in orc.read_table(path).to_pylist(maps_as_pydicts="strict")]
    data = path.read_bytes()
    if path.name.endswith(".gz"):
        data = gzip.decompress(data)
    if kind == "avro":
        return list(fastavro.reader(io.BytesIO(data)))
    if kind == "json":
        return [json.loads(line) for line in data.decode().splitlines()]
    if kind == "csv":
        return list(csv.DictReader(io.StringIO(data.decode())))
    return data.decode().splitlines() if kind == "txt" else data


def _plain(item):
    return item.to_pydatetime() if hasattr(item, "to_pydatetime") else item
