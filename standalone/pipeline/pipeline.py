"""Process a batch through a chain: choose the engine, run it, and redo by rows what columns could not process.

    pipeline = Pipeline(Chain("source", key_converter, value_converter, header_converter, links), "auto", session_holder)
    result = pipeline.source(batch)                        result.out, result.failures, result.dropped
    result = pipeline.sink(topic, partition, records)      result.batches, result.failures, result.dropped

    work = pipeline.begin_sink(topic, partition, records)  the same in two steps: Spark runs while the caller continues
    result = work.result()

One thread at a time uses a pipeline. An error in Spark costs speed, never a record.
"""

import concurrent.futures
import contextlib
import logging

import numpy as np

from standalone import kernels
from standalone.data.arrow import NotColumns
from standalone.data.batch import SinkBatch
from standalone.errors import ConnectError
from standalone.pipeline.backlog import Backlog
from standalone.pipeline.batch_run import BatchRun, SinkOrigin, SourceOrigin, warn
from standalone.pipeline.columns.batch import ColumnBatch, sink_batch
from standalone.pipeline.columns.segments import NO_ROWS, ByRows, Expressions, PythonHere, segments_of, short
from standalone.pipeline.conversion import Conversion
from standalone.pipeline.encoded import divided, of_rows, without
from standalone.pipeline.repair import merged, union
from standalone.pipeline.result import COLUMNS, IDENTITY, ROWS, SPARK, EngineCounts, Result
from standalone.pipeline.rows.engine import RowsEngine, class_name, sink_rows, source_rows
from standalone.pipeline.spark.job import alone
from standalone.pipeline.spark.python import PythonLinks, may_be_copied
from standalone.pipeline.spark.sql import Query
from standalone.stage import StageFailed

log = logging.getLogger(__name__)

AUTO, ONLY_SPARK, ONLY_ROWS = "auto", "spark", "rows"
MIN_ROWS = 20_000  # above it a Spark job is faster than the rows engine
MIN_ROWS_WITHOUT_JOB = 64  # if kernels and schema edits suffice
ROWS_TO_ASK = 2_000  # a batch this large starts Spark even if the chain's configuration did not show that it computes
MOST_WAITING_JOBS = 4
AHEAD_BYTES = 1 << 20  # records that take so much are decoded while the task has those before them: more of them seem to follow
THREADS = 3  # of one pipeline: one decodes while the others wait for their jobs
GOOD_ROWS = 200_000  # up to here a Spark job does more records a second the more it is given


class Work:
    """A batch in progress. `result()` finishes it and may be called once; it is safe to drop a Work without calling it."""

    def __init__(self, end, future=None, nbytes=0):
        self._end = end
        self._future = future
        self.nbytes = nbytes

    @property
    def is_under_way(self):
        """Whether it is still running in the background."""
        return self._future is not None and not self._future.done()

    def result(self):
        return self._end()


class Pipeline:
    """One task's chain."""

    def __init__(self, chain, engine=AUTO, session=None, min_rows=MIN_ROWS, retry=None, stopping=None):
        """`stopping` is an event that ends waits for Spark, which only Sql needs."""
        if engine not in (AUTO, ONLY_SPARK, ONLY_ROWS):
            raise ValueError(f"pipeline.engine is '{engine}'. Engines: {AUTO}, {ONLY_SPARK}, {ONLY_ROWS}.")
        self.chain = chain
        self.engine = engine
        self.counts = EngineCounts()
        self._session = session
        self._min_rows = min_rows
        self._stopping = stopping
        self._backlog = Backlog(session, stopping)
        self.segments = self._segmented()
        queries = {segment.low: segment for segment in self.segments if isinstance(segment, Query)}
        self._rows = RowsEngine(chain, retry, {chain.links[at].alias: query for at, query in queries.items()})
        self._has_queries = bool(queries)
        self._first_here = next((at for at, each in enumerate(self.segments) if each.remembers), len(self.segments))
        self._conversion = Conversion(chain, self._rows)
        self._warned = set()
        # A pool of its own: a converter that waits for a schema registry does not block other tasks' jobs.
        self._threads = concurrent.futures.ThreadPoolExecutor(THREADS, "pipeline")
        self.is_identity = not chain.links and self._conversion.hand_bytes_through(chain.kind)
        if session is not None and session.start != "lazy" and (engine == ONLY_SPARK and chain.links or self._computes()):
            session.request()

    def spark(self, work):
        """Return `work(session)`, run in the session that all chains share; see job.alone."""
        if self._session is None:
            raise ConnectError("Spark is not available: this task runs outside a worker.")
        return alone(self._session, work, self._stopping)

    def _segmented(self):
        chain, worth = self.chain, self._is_worth_a_job

        def sql(low, link):
            return Query(link.transform.statement, self._session, link.predicate is None, low, self._stopping)

        def python(low, links):
            if self._session is not None and self.engine != ONLY_ROWS and may_be_copied(links):
                try:
                    alone = chain._replace(key_converter=None, value_converter=None, header_converter=None, links=links)
                    return PythonLinks(low, alone, self._session, worth)
                except Exception as error:
                    log.info("A chain's transforms cannot be pickled for Spark's Python workers, so one core runs them: %s", short(error))
            return PythonHere(low, len(links))

        def expressions(low, links):
            return Expressions(low, links, self._session, worth)

        return segments_of(chain.links, expressions, sql, python, remembers=lambda link: not may_be_copied([link]))

    def _computes(self):
        """Whether its configuration requires Spark."""
        return self.engine != ONLY_ROWS and any(segment.computes for segment in self.segments) or self._has_queries

    def close(self):
        """Close all stages of the chain, even if some fail."""
        stages = [stage for link in self.chain.links for stage in (link.transform, link.predicate)]
        stages += [self.chain.key_converter, self.chain.value_converter, self.chain.header_converter]
        self._threads.shutdown(wait=False, cancel_futures=True)
        with contextlib.ExitStack() as stack:
            for stage in reversed([stage for stage in stages if stage is not None]):
                stack.callback(stage.close)

    # --- choice of engine ---

    def _is_worth_a_job(self, count):
        """Whether Spark should process a batch of that size; requests Spark if it should but is not running."""
        if self._session is None or self.engine == ONLY_ROWS:
            return False
        if self.engine == ONLY_SPARK:
            return self._session.wait() is not None
        if count < self._min_rows:
            return False
        if self._session.ready() is None:
            self._session.request()
        return self._backlog.spark_is_up() and self._session.waiting < MOST_WAITING_JOBS

    def _goes_by_columns(self, count):
        """Whether to try a batch of that size in columns, judged without looking at it."""
        if self.is_identity:
            return True
        if not kernels.ready():
            return self._has_queries
        if self.engine == ONLY_SPARK or self._has_queries:
            return True
        if self.chain.links and self.engine == ONLY_ROWS:
            return False
        if self._needs_no_job_so_far():
            return count >= min(MIN_ROWS_WITHOUT_JOB, self._min_rows)
        # Without Spark, the rows engine is faster for a chain that computes than columns.
        return count >= self._min_rows and self._is_worth_a_job(count)

    def _why_rows(self, count):
        """Explain why a batch of that size does not go by columns."""
        if not kernels.ready():
            return "the kernels for columns are still being compiled"
        if self.engine == ONLY_ROWS:
            return "pipeline.engine=rows"
        if count >= self._min_rows:
            return "Spark is not up" if self._session is None or self._session.ready() is None else "Spark is busy"
        return f"batches of fewer than {MIN_ROWS_WITHOUT_JOB if self._needs_no_job_so_far() else self._min_rows} records"

    def _needs_no_job_so_far(self):
        return all(each.is_free for each in self.segments)

    def prefers_more_than(self, count):
        """Whether a batch of that size would be faster as part of a larger one."""
        if self._session is None or self.engine == ONLY_ROWS or count >= GOOD_ROWS or self._needs_no_job_so_far():
            return False
        if self._session.ready() is None and count >= ROWS_TO_ASK and self._session.start != "lazy":
            self._session.request()  # the load seems high; batches of this size go by rows, so nothing else would request Spark
        return self._session.ready() is not None or self._backlog.waits

    def ask_what_follows(self, follows):
        """`follows()` tells from now on how many records are known to come after those that were begun. Any thread may ask."""
        self._backlog.follows = follows

    @property
    def is_by_rows(self):
        """Whether the rows engine processes the next batches of any size, because Spark is not running."""
        if not self.chain.links or self._needs_no_job_so_far() and not self._computes():
            return False
        return self.engine == ONLY_ROWS or self._session is None or self._session.ready() is None and not self._backlog.waits

    def explain(self):
        """Describe the compiled chain in words."""
        links = " → ".join(f"{link.alias} ({class_name(link.transform)})" for link in self.chain.links) or "no transforms"
        key, value = class_name(self.chain.key_converter), class_name(self.chain.value_converter)
        lines = [f"{self.chain.kind}: {links}; key {key}, value {value}"]
        if self.is_identity:
            lines.append("identity: keys and values pass through as bytes")
        for segment in self.segments:
            aliases = ", ".join(link.alias for link in self.chain.links[segment.low : segment.high])
            described = segment.describe() or ["nothing is compiled yet: batches are small, so the rows engine runs"]
            lines += [f"{aliases}: {described[0]}", *described[1:]]
        return "\n".join(lines)

    def shown(self):
        """The same with counters; any thread may call it while the pipeline runs."""
        counts = self.counts
        plans = [plan for segment in self.segments for plan in segment.spark_plans()]
        return {
            "records": dict(counts.records),
            "redone": counts.redone,
            "failed_batches": counts.failed_batches,
            "by_rows": [{"reason": reason, "records": records} for reason, records in list(counts.reasons.items())],
            "chain": self.explain().split("\n"),
            "spark_plans": [{"title": title, "spark": spark} for title, spark in plans],
        }

    # --- source ---

    def source(self, batch):
        """Process a SourceBatch for the log."""
        return self.begin_source(batch).result()

    def begin_source(self, batch):
        if not batch.count:
            return Work(Result)
        if not self._goes_by_columns(batch.count):
            return Work(lambda: self._source_by_rows(batch, self._why_rows(batch.count)))
        run = BatchRun(self._rows, SourceOrigin(batch), ColumnBatch.of_source(batch), None, NO_ROWS, batch.count)
        return self._begun(lambda: (run, None), lambda run, why: self._end_source(run, batch))

    def _end_source(self, run, batch):
        self._through(run, self.segments[self._first_here :])
        if run.is_whole:
            parts, left = self._conversion.encode(run.batch, None)
            if not len(left):
                self._count(run)
                return Result.of([], [], out=divided(parts, batch.count))
        else:
            parts, left = self._conversion.encode(run.batch, run.places) if run.has_columns else ([], NO_ROWS)
        run.leave(left)
        done = []
        for place, row, record in run.rest():
            try:
                done.append((place, record, self._rows.encode(record, row)))
            except StageFailed as failure:
                run.fail(row, failure)
        done = [each for each in done if int(run.rows[each[0]]) not in run.failures]
        failed = np.flatnonzero(np.isin(run.rows, list(run.failures))) if run.failures else NO_ROWS
        parts = without(parts, union(run.left, failed))
        parts += [of_rows(done)] if done else []
        parts = [part._replace(rows=run.rows[part.rows]) for part in parts]
        self._count(run)
        return Result.of(run.failures.values(), run.dropped([part.rows for part in parts]), out=divided(parts, batch.count))

    def _source_by_rows(self, batch, reason):
        done, failures, dropped = source_rows(self._rows, batch.records())
        self.counts.add(ROWS, batch.count, reason=reason)
        self._backlog.done_by_rows(batch.count)
        return Result.of(failures, dropped, out=divided([of_rows(done)] if done else [], batch.count))

    # --- sink ---

    def sink(self, topic, partition, records):
        """Process wire.Records fetched from a partition."""
        return self.begin_sink(topic, partition, records).result()

    def begin_sink(self, topic, partition, records, prepare=None):
        """`prepare` is asked what a SinkBatch's `prepared` shall be, where that can be done in the background."""
        if not records.count:
            return Work(Result)
        if not self._goes_by_columns(records.count):
            return Work(lambda: self._sink_by_rows(topic, partition, records, self._why_rows(records.count)))

        def end(run, why):
            return self._sink_by_rows(topic, partition, records, why) if run is None else self._end_sink(run, topic, partition)

        def prepared(run):
            if run.is_whole and self._first_here == len(self.segments):
                run.ready = sink_batch(run.batch, topic, partition)
                with contextlib.suppress(Exception):  # put comes to it again
                    run.ready.prepared = prepare(run.ready)

        is_ahead = not self.is_identity and records.nbytes >= AHEAD_BYTES
        return self._begun(lambda: self._decoded(topic, partition, records), end, is_ahead, prepared if prepare is not None else None)

    def _decoded(self, topic, partition, records):
        """Return (BatchRun of the fetched records, None), or (None, why it goes by rows)."""
        refused = {}
        try:
            with self._rows.converting:
                decoded, places, left = self._conversion.decode(topic, partition, records, refused)
        except (ByRows, NotColumns) as reason:
            return None, str(reason) or "a converter has no columnar form for these bytes"
        except Exception as error:
            self._failed(error)
            return None, f"{type(error).__name__}: {short(error)}"
        origin = SinkOrigin(self._rows, topic, partition, records, refused)
        return BatchRun(self._rows, origin, decoded, places, left, records.count), None

    def _end_sink(self, run, topic, partition):
        self._through(run, self.segments[self._first_here :])
        if run.is_whole:
            self._count(run)
            return Result.of([], [], batches=[run.ready or sink_batch(run.batch, topic, partition)])
        rest = run.rest()
        if run.failures:
            run.without_failed()
            rest = [each for each in rest if each[1] not in run.failures]
        batch = sink_batch(run.batch, topic, partition) if run.has_columns else None
        batches = merged(batch, run.places, [(place, record) for place, _, record in rest])
        there = [run.rows[run.places] if batch is not None else NO_ROWS, np.fromiter((row for _, row, _ in rest), np.int64, len(rest))]
        self._count(run)
        return Result.of(run.failures.values(), run.dropped(there), batches=batches)

    def _sink_by_rows(self, topic, partition, records, reason):
        done, failures, dropped = sink_rows(self._rows, topic, partition, records)
        self.counts.add(ROWS, records.count, reason=reason)
        self._backlog.done_by_rows(records.count)
        return Result.of(failures, dropped, batches=list(SinkBatch.runs([record for _, record in done])))

    # --- running ---

    def _begun(self, make, end, is_ahead=False, prepared=None):
        """The batch that `make` gives, on its way up to the first link that remembers records: in the background where Spark will work on it
        or kernels have much to do, and `prepared` there."""

        def work():
            run, why = make()
            if run is not None:
                self._through(run, self.segments[: self._first_here])
            return run, why

        if self._session is None or not is_ahead and self._needs_no_job_so_far():
            done = work()
            return Work(lambda: end(*done))

        def ahead():
            run, why = work()
            if run is not None and prepared is not None:
                prepared(run)
            return run, why

        return Work(lambda: end(*future.result()), future := self._threads.submit(ahead))

    def _through(self, run, segments):
        """Run a batch through these segments."""
        for segment in segments:
            if segment.remembers:
                run.by_rows(segment)
            elif run.has_columns:
                try:
                    needs_job = segment.needs_job(run.batch)
                except NotColumns as reason:
                    run.reason = str(reason)
                    run.leave_all()
                    continue
                run.by_spark |= run.through(segment, self._failed) and needs_job

    def _failed(self, error):
        """Count a batch that an engine failed on; the rows engine processes it."""
        self.counts.failed_batches += 1
        if type(error) not in self._warned:
            self._warned.add(type(error))
            warn("A batch failed in columns; the rows engine processes it", error)

    def _count(self, run):
        engine = SPARK if run.by_spark else ROWS if not run.by_columns else IDENTITY if self.is_identity else COLUMNS
        redone = 0 if engine == ROWS else min(run.count, len(np.unique(run.rows[run.left])))
        self.counts.add(engine, run.count, redone, run.reason if engine == ROWS else None)
        if engine == ROWS:
            self._backlog.done_by_rows(run.count)
