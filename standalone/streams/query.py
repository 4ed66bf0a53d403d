"""A running query: a Spark streaming query that writes its output batch by batch; or a table query that writes differences.

    QueryConnector   the query as the herder sees it, like a connector
    QueryRunner      its only task: pause, resume, stop, states, metrics; after a failure the herder restarts it from the checkpoint

If Spark's Java process ends, the query fails and is restarted with the checkpoint's state.
"""

import json
import logging
import os
import shutil
import threading

from standalone.config import HIGH, LONG, LOW, STRING, ConfigDef, Option, one_of
from standalone.connector import SourceConnector, SourceTask
from standalone.errors import ConnectError
from standalone.runtime.tasks.lifecycle import PAUSED, RUNNING, TaskRunner
from standalone.streams.frames import make_current, register, with_state_in
from standalone.streams.ranges import Ranges

log = logging.getLogger(__name__)

_LOOK_SECONDS = 0.2
_START_SECONDS, _START_LOOK_SECONDS = 30.0, 0.05
_ASK_SECONDS = 1.0  # between checks whether the query is active: each is a call into Java
_PROGRESS_SECONDS = 5.0
_SPARK_SECONDS = 180.0
_TABLES_LOOK_SECONDS = 0.1


_starting = threading.Lock()  # queries start one at a time


class QueryConnector(SourceConnector):
    """A persistent SQL query."""

    version = "1"
    config_def = ConfigDef(
        Option("statement", STRING, HIGH, "The statement: CREATE … AS SELECT or INSERT INTO … SELECT."),
        Option("into", STRING, HIGH, "The stream or table that it writes."),
        Option("auto.offset.reset", STRING, LOW, "Where to start reading a stream without a stored offset: earliest or latest.", default="earliest"),
        Option("max.offsets.per.batch", LONG, LOW, "Maximum number of offsets per batch.", default=500_000),
        Option("exactly.once", STRING, LOW, "auto: write in transactions if the brokers support them; false: never.", default="auto"),
        Option(
            "state.store", STRING, LOW, "State store of groups, windows and joins: memory (the JVM's), or rocksdb (local files).",
            default="memory", check=one_of("memory", "rocksdb"),
        ),
    )
    task_class = SourceTask


class Meter:
    """Metrics of a query since its last start."""

    def __init__(self, restarts):
        self.batches = self.rows_read = self.rows_written = 0
        self.state_rows = 0
        self.lag = 0
        self.last_batch_ms = 0.0
        self.restarts = restarts

    def entered(self, state):
        """Record a state change of the herder."""

    def values(self):
        return {
            "query": {
                "batches-total": self.batches, "rows-read-total": self.rows_read, "rows-written-total": self.rows_written,
                "state-rows": self.state_rows, "lag": self.lag, "last-batch-ms": self.last_batch_ms, "restarts-total": self.restarts,
            }
        }  # fmt: skip


class QueryRunner(TaskRunner):
    """`made` is an engine.Made: plan, inputs, output. `holder` is the SessionHolder. `restarts`: the number of earlier starts."""

    def __init__(self, made, holder, folder, clock, restarts=0, **base):
        super().__init__(meter=Meter(restarts), **base)
        self._made, self._holder, self._folder, self._clock = made, holder, folder, clock
        self._query = None
        self._read = []  # progress per source: {(topic, partition): offset}
        self._noted = ""  # time of the last progress that was counted

    def metrics(self):
        return self.meter.values()

    def work(self):
        while not self.stopping.is_set():
            if self.paused:
                self.say(PAUSED)
                with self._wanted:
                    while self.paused and not self.stopping.is_set():
                        self._clock.wait(self._wanted, 60.0)
                continue
            session = self._session()
            if session is None:
                return
            output = self._made.new_output().open()
            try:
                (self._follow_tables if self._made.plan.of_tables else self._follow_streams)(session, output)
            finally:
                output.close()

    def _session(self):
        deadline = self._clock.monotonic() + _SPARK_SECONDS
        while not self.stopping.is_set():
            session = self._holder.wait(_LOOK_SECONDS)
            if session is not None:
                return with_state_in(register(session, self._made.functions), self._made.state_store)
            if self._clock.monotonic() > deadline:
                raise ConnectError(f"Spark does not start: {self._holder.failure or 'it takes too long'}. Queries need it.")
            if self._holder.failure is not None:
                self._clock.wait(self.stopping, 1.0)
        return None

    # ---------------------------------------------------------------- streams
    def _follow_streams(self, session, output):
        make_current(session)
        frame = self._made.frame(session)
        schema = frame.schema

        def take(batch, number):
            begun = self._clock.monotonic()
            table = batch.toArrow()  # also for a batch already in the log: its state must be rebuilt
            output.write(number, table, schema)
            self.meter.batches += 1
            self.meter.rows_written += table.num_rows
            self.meter.last_batch_ms = (self._clock.monotonic() - begun) * 1000

        writer = frame.writeStream.foreachBatch(take).outputMode(self._made.plan.mode).queryName(self.connector)
        writer = writer.option("checkpointLocation", os.path.join(self._folder, "checkpoint")).trigger(processingTime="0 seconds")
        # Spark gives a source's Python process ten seconds to connect: many queries starting at once would exceed that.
        with _starting:
            self._query = query = writer.start()
            deadline = self._clock.monotonic() + _START_SECONDS
            while query.isActive and query.status["message"].startswith("Initializing") and self._clock.monotonic() < deadline:
                if self._clock.wait(self.stopping, _START_LOOK_SECONDS):
                    break
        self.say(RUNNING)
        ranges = Ranges(self._made.clients)
        try:
            ask_at = look_at = 0.0
            while not self.stopping.is_set() and not self.paused:
                now = self._clock.monotonic()
                if now >= ask_at:
                    if not query.isActive:
                        raise query.exception() or ConnectError("Spark has ended the query.")
                    ask_at = now + _ASK_SECONDS
                if now >= look_at:
                    self._note_progress(query, ranges)
                    look_at = now + _PROGRESS_SECONDS
                self._clock.wait(self.stopping, _LOOK_SECONDS)
        finally:
            self._query = None
            ranges.close()
            self.without_failing(query.stop)

    def _note_progress(self, query, ranges):
        """Count new batches. Spark keeps a hundred progress reports; fetching each costs a Java call."""
        kept, newest = query._jsq.recentProgress(), None
        for at in range(len(kept) - 1, -1, -1):
            if kept[at].timestamp() <= self._noted:
                break
            progress = json.loads(kept[at].json())
            newest = newest or progress
            self.meter.rows_read += progress["numInputRows"]
        if newest is not None:
            self._noted = newest["timestamp"]
            self.meter.state_rows = sum(each["numRowsTotal"] for each in newest["stateOperators"])
            self._read = [_offsets(source["endOffset"]) for source in newest["sources"]]
        self.meter.lag = sum(_behind(offsets, ranges) for offsets in self._read)

    # ---------------------------------------------------------------- tables
    def _follow_tables(self, session, output):
        """After each change of a table, recompute everything and write what differs from the output topic."""
        from standalone.streams.changes import Changes

        changes = Changes(self._made, output)
        self.say(RUNNING)
        last = None
        while not self.stopping.is_set() and not self.paused:
            ends = changes.ends()
            if ends != last:
                make_current(session)
                rows = changes.work(session, ends)
                self.meter.batches += 1
                self.meter.rows_written += rows
                last = ends
            self._clock.wait(self.stopping, _TABLES_LOOK_SECONDS)


def _offsets(said):
    """Parse our data source's offsets from Spark's progress."""
    said = json.loads(said) if isinstance(said, str) else said
    return {(topic, int(partition)): offset for topic, each in (said or {}).items() for partition, offset in each.items()}


def _behind(offsets, ranges):
    ends = ranges.ends(list(offsets))
    return sum(max(0, ends[pair] - offset) for pair, offset in offsets.items())


def forget_state(folder):
    shutil.rmtree(folder, ignore_errors=True)
