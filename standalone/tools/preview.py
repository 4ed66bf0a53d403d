"""Reads records for a preview without side effects: no offset is stored, no group joined, nothing written.

A source's task runs with read-only offsets. A sink's topics are read without a group. Both accept lines as input instead. The worker need
not be running, but a sink's log must be.
"""

import contextlib

import numpy as np

from standalone.clock import SYSTEM
from standalone.connector import ConnectorContext, OffsetReader, SourceTaskContext
from standalone.data.batch import SourceBatch
from standalone.data.record import SourceRecord
from standalone.data.schema import Schema
from standalone.errors import BadRequestError, ConnectError, RetriableError
from standalone.pipeline.chain import Chain, Link
from standalone.pipeline.spark.session import SessionHolder
from standalone.runtime.configuration.connector_config import ConnectorConfig
from standalone.runtime.configuration.worker_config import WorkerConfig
from standalone.runtime.offsets.journal import OffsetsFile
from standalone.stage import QueryTransform
from standalone.tools import trace
from standalone.tools.log_access import LogAccess
from standalone.wire import ByteColumn, Records

_TOPIC = "preview"  # of lines, if the configuration has no topic


class ConnectorPreview:
    """One connector from its files. `take…` reads records, `traces` and `explain` show how the chain processes them."""

    def __init__(self, worker_props, name, config, bootstrap=None, clock=SYSTEM):
        if bootstrap:
            worker_props = {**worker_props, "bootstrap.servers": bootstrap}
        self.worker = WorkerConfig.of(worker_props)
        self.plan = ConnectorConfig.of({**config, "name": name}, self.worker.plugins, self.worker)
        converters = [self.plan.converter(part, self.worker) for part in ("key", "value", "header")]
        self.chain = Chain(self.plan.kind, *converters, [Link(*link.build()) for link in self.plan.links()])
        self._clock = clock

    @property
    def is_source(self):
        return self.plan.kind == "source"

    # ---------------------------------------------------------------- records
    def take(self, count, seconds, from_beginning=False, newest=False):
        """At most `count` input records, read for about `seconds`: SourceRecords, or (topic, partition, Records)."""
        if self.is_source:
            return self._polled(count, seconds, from_beginning)
        return self._fetched(count, seconds, newest)

    def take_lines(self, lines, count, key_separator=None):
        """The same from lines (bytes): strings for a source, as a file source polls them; serialized values for a sink's converters."""
        lines = [line for _, line in zip(range(count), lines)]
        topic = self._topic_of_lines()
        if self.is_source:
            return [SourceRecord(topic, line.decode("utf-8", "replace"), value_schema=Schema.STRING) for line in lines]
        keys, values = [], []
        for line in lines:
            key, found, value = line.partition(key_separator) if key_separator else (None, b"", line)
            if key_separator and not found:
                key, value = None, line
            keys.append(key)
            values.append(value)
        column = ByteColumn.of(keys) if any(key is not None for key in keys) else None
        times = np.full(len(lines), self._clock.now_ms(), np.int64)
        return [(topic, 0, Records(len(lines), column, ByteColumn.of(values), times, None, np.arange(len(lines))))] if lines else []

    def _topic_of_lines(self):
        if self.is_source:
            return self.plan.originals.get("topic") or _TOPIC
        return next(iter(self.plan.subscription.get("topics") or ()), _TOPIC)

    def _polled(self, count, seconds, from_beginning):
        offsets = OffsetsFile(self.worker["offset.storage.file.filename"])
        reader = _NoOffsets() if from_beginning else offsets.load().reader(self.plan["name"])
        connector = self.plan.connector_class()
        connector.initialize(_Context(self.plan["name"], reader))
        connector.start(dict(self.plan.originals))
        found, deadline = [], self._clock.monotonic() + seconds
        try:
            for number, config in enumerate(connector.task_configs(self.plan["tasks.max"])):
                if len(found) < count:
                    found += self._polled_by(number, {**self.plan.originals, **config}, reader, count - len(found), deadline)
        finally:
            connector.stop()
        return found

    def _polled_by(self, number, config, reader, count, deadline):
        """The records that one task polls. It is then stopped, without any commit call."""
        task = self.plan.connector_class.task_class()
        task.initialize(_task_context(self.plan["name"], number, config, reader))
        found = []
        try:
            task.start(config)
            while len(found) < count and self._clock.monotonic() < deadline:
                with contextlib.suppress(RetriableError):
                    found += _records(task.poll())
        finally:
            task.stop()
            task.close()
        return found[:count]

    def _fetched(self, count, seconds, newest):
        found, left = [], count
        with LogAccess.of_worker(self.worker, self.plan.originals, self._clock) as log:
            pairs = [pair for topic in self._topics(log) for pair in log.partitions(topic)]
            spans = {
                pair: (max(begin, end - count), end) if newest else (begin, min(end, begin + count))
                for pair, (begin, end) in log.ranges(pairs).items()
            }
            for topic, partition, records in log.read(spans, seconds):
                if newest:
                    found.append((topic, partition, records))
                    continue
                found.append((topic, partition, records.slice(0, left)))
                left -= len(found[-1][2])
                if left <= 0:
                    break
        return _newest(found, count) if newest else found

    def _topics(self, log):
        subscription = self.plan.subscription
        if subscription.get("topics"):
            return subscription["topics"]
        return [topic for topic in sorted(log.admin.list_topics()) if subscription["pattern"].fullmatch(topic)]

    # ---------------------------------------------------------------- processing
    def traces(self, taken, holder=None):
        """The trace of each record; starts Spark if a transform is an SQL statement."""
        with self._session(holder, any(isinstance(link.transform, QueryTransform) for link in self.chain.links)) as holder:
            shown = trace.Preview(self.chain, holder)
            if self.is_source:
                return [shown.source(record) for record in taken]
            return [shown.sink(topic, partition, records, row) for topic, partition, records in taken for row in range(len(records))]

    def explain(self, taken, holder=None):
        """(description of the compiled chain, [{title, spark}]); starts Spark."""
        if not taken:
            raise BadRequestError("No records to compile the chain for: its plan depends on their schemas. Pipe lines in with --stdin.")
        with self._session(holder, bool(self.chain.links)) as holder:
            return trace.explain(self.chain, list(SourceBatch.runs(taken)) if self.is_source else taken, holder)

    @contextlib.contextmanager
    def _session(self, holder, is_needed):
        """The given SessionHolder, or a new one; with a started session if one is needed."""
        own = holder is None
        if own:
            holder = SessionHolder(self.worker.spark(), "lazy", archive_after_seconds=None)
        try:
            if is_needed:
                holder.request()
                if holder.wait() is None:
                    raise ConnectError(f"Spark does not start: {holder.failure}")
            yield holder
        finally:
            if own:
                holder.stop()


class _NoOffsets(OffsetReader):
    def offset(self, partition):
        return None


class _Context(ConnectorContext):
    """A connector context without effects."""

    def __init__(self, name, reader):
        self.name = name
        self._reader = reader

    def request_task_reconfiguration(self):
        pass

    def raise_error(self, error):
        raise error

    def offset_reader(self):
        return self._reader


def _task_context(connector, number, config, reader):
    context = SourceTaskContext()
    context.connector, context.task, context.configs, context.offset_reader = connector, number, config, reader
    return context


def _records(polled):
    """Any result of poll as a list of records."""
    if not polled:
        return []
    items = [polled] if isinstance(polled, SourceBatch) else polled
    return [record for item in items for record in (item.records() if isinstance(item, SourceBatch) else [item])]


def _newest(found, count):
    """The newest rows by timestamp, in partition order."""
    times = [int(time) for _, _, records in found for time in (records.timestamps if records.timestamps is not None else records.offsets)]
    if len(times) <= count:
        return found
    keep = set(sorted(range(len(times)), key=lambda at: times[at], reverse=True)[:count])
    chosen, at = [], 0
    for topic, partition, records in found:
        rows = [row for row in range(len(records)) if at + row in keep]
        at += len(records)
        if rows:
            chosen.append((topic, partition, records.take(np.array(rows, np.int64))))
    return chosen
