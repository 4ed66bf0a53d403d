"""Work one batch through a chain, in the engine that suits it; what the columns engine marks is done again by rows, which says why.

    pipeline = Pipeline(Chain("source", key_converter, value_converter, header_converter, links), "auto", session_holder)
    result = pipeline.source(batch)                        result.out, result.failures, result.dropped
    result = pipeline.sink(topic, partition, records)      result.batches, result.failures, result.dropped

A pipeline is one thread's at a time. Whatever goes wrong in Spark costs speed and never a record.
"""

import logging
import os

import numpy as np

from standalone.data.batch import SinkBatch
from standalone.errors import Stopped
from standalone.pipeline.columns_engine import AUTO, MIN_ROWS, MOST_WAITING_JOBS, ROWS, SPARK, ColumnsEngine, Spread, short
from standalone.pipeline.ends import NO_ROWS, ByRows, Ends, union
from standalone.pipeline.frame import Frame, NotColumns, sink_batch
from standalone.pipeline.mixed import MixedRun, SinkStart, SourceStart, stretches
from standalone.pipeline.outgoing import Sent, join
from standalone.pipeline.result import Result, Stats, divided, lists_of, merged, rows_of
from standalone.pipeline.rows import RowsEngine, SentRows, class_name, sink_rows, source_rows
from standalone.pipeline.workers import Busy, OwnWorkers, SparkWorkers, may_be_spread
from standalone.stage import StageFailed

log = logging.getLogger(__name__)

GOOD_ROWS = 200_000  # up to here a Spark job does more records a second the more it is given
MIXED_ROWS = 8_000  # at once, where links are run by rows between columns: their records should fit into the processor's cache
MIN_ROWS_TO_SPREAD = 2_000  # over processes of our own
GOOD_ROWS_TO_SPREAD = 40_000


class Pipeline:
    """One task's chain."""

    def __init__(self, chain, engine=AUTO, session=None, min_rows=MIN_ROWS, retry=None, cores=None):
        """`cores` is how many processes may be used; all of the machine's unless it is said."""
        if engine not in (AUTO, SPARK, ROWS):
            raise ValueError(f"pipeline.engine is '{engine}'. Engines: {AUTO}, {SPARK}, {ROWS}.")
        self.chain = chain
        self.engine = engine
        self.stats = Stats()
        self._session = session
        spreads = may_be_spread(chain)
        self._stretches = None if engine == ROWS or engine == SPARK and spreads else stretches(chain.links)
        self._columns = ColumnsEngine(chain.links, engine, session, min_rows, self.stats, spreads, bool(self._stretches))
        self._rows = RowsEngine(chain, retry)  # behind the columns engine, which gives statements what runs them
        self._ends = Ends(chain, self._rows)
        self._warned = set()
        self._workers = None
        self._own = None  # OwnWorkers
        self._cores = cores or len(os.sched_getaffinity(0))
        self.needs_spark = bool(chain.links)
        self.is_identity = not chain.links and self._ends.hand_bytes_through(chain.kind)
        if session is not None and self._will_compute():
            session.request()

    def close(self):
        """Close the chain's stages."""
        self._leave_own()
        for link in self.chain.links:
            link.transform.close()
            if link.predicate is not None:
                link.predicate.close()
        for converter in (self.chain.key_converter, self.chain.value_converter, self.chain.header_converter):
            converter.close()

    def _will_compute(self):
        """Whether it is plain before any batch that Spark will be needed. Of the built-in transforms many merely move columns about, mostly."""
        if self._columns.has_queries:
            return True
        if self.engine == ROWS or self._session.start == "lazy":
            return False
        by_rows = [at for low, high, is_by_rows in self._stretches or () if is_by_rows for at in range(low, high)]
        return self.engine == SPARK or any(not link.transform.may_only_move for at, link in enumerate(self.chain.links) if at not in by_rows)

    def prefers_more_than(self, count):
        """Whether a batch of that size would be done quicker as a part of a larger one."""
        if self._own is not None:
            return count < GOOD_ROWS_TO_SPREAD
        may_use_spark = self.needs_spark and self.engine != ROWS and self._session is not None
        return may_use_spark and count < GOOD_ROWS and self._session.ready() is not None and not self._columns.is_free()

    def explain(self):
        """What the chain was compiled to, in words."""
        links = " → ".join(f"{link.alias} ({class_name(link.transform)})" for link in self.chain.links) or "no transforms"
        key, value = class_name(self.chain.key_converter), class_name(self.chain.value_converter)
        lines = [f"{self.chain.kind}: {links}; key {key}, value {value}"]
        if self.is_identity:
            lines.append("identity: the bytes of keys and values go straight through")
        compiled = self._columns.describe()
        lines += compiled
        if self.needs_spark and not compiled:
            lines.append("nothing is compiled yet: batches were small; the rows engine works")
        return "\n".join(lines)

    # --- source ---

    def source(self, batch):
        """Work a SourceBatch on its way to the log."""
        if not batch.count:
            return Result()
        if self._may_use_own(batch.count) and (done := self._in_own(lambda own: self._source_by_workers(batch, own))) is not None:
            return done
        if self._stretches and batch.count > MIXED_ROWS:
            pieces = ((low, np.arange(low, min(low + MIXED_ROWS, batch.count))) for low in range(0, batch.count, MIXED_ROWS))
            return Result.joined([(low, self.source(rows_of(batch, rows))) for low, rows in pieces])
        wanted = self._columns.wants(batch.count, self.is_identity)
        done = self._in_columns(self._source_by_columns, self._source_by_workers, batch) if wanted else None
        return self._source_by_rows(batch) if done is None else done

    def _source_by_columns(self, batch):
        if self._stretches:
            return self._mixed_source(batch)
        frame, numbers, dropped, redo = self._columns.through_links(Frame.of_source(batch))
        parts, left = self._ends.encode(frame, numbers)
        if self._columns.has_queries and len(left):
            left = np.unique(left)
            parts = [sent._replace(records=sent.records.take(kept), rows=sent.rows[kept], **lists_of(sent, kept)) for sent in parts
                     if len(kept := np.flatnonzero(~np.isin(sent.rows, left)))]  # fmt: skip
        redo, failures = union(redo, left), []
        if len(redo):
            sent, failures, gone = source_rows(self._rows, rows_of(batch, redo).records(), redo.tolist())
            dropped += gone
            parts += [Sent.of_rows(sent)] if sent.rows else []
        self._count_columns(batch.count, redo)
        return Result.of(failures, dropped, out=divided(parts, batch.count))

    def _mixed_source(self, batch):
        run = MixedRun(self._rows, SourceStart(batch), Frame.of_source(batch), None, NO_ROWS, batch.count)
        run.through(self._stretches, self.chain.links, self._columns.through)
        parts, left = ([], NO_ROWS) if run.frame is None else self._ends.encode(run.frame, run.places)
        done = []
        for place, row, record in run.rest(left):
            try:
                done.append((place, record, self._rows.encode(record, row)))
            except StageFailed as failure:
                run.fail(row, failure)
        parts += [Sent.of_rows(SentRows(done))] if done else []
        self._count_columns(batch.count, np.unique(run.rows[run.left]))
        places = np.concatenate([sent.rows for sent in parts]) if parts else NO_ROWS
        out = []
        if parts:
            sent = join(parts)
            if run.failures:
                good = run.good(sent.rows)
                sent = sent._replace(records=sent.records.take(good), rows=sent.rows[good], **lists_of(sent, good))
            out = divided([sent._replace(rows=run.rows[sent.rows])], batch.count) if len(sent.rows) else []
        return Result.of(run.failures.values(), run.dropped(places, []), out=out)

    def _source_by_workers(self, batch, workers=None):
        parts, redo, dropped = (workers or self._spread()).source(batch)
        sent, failures, gone = source_rows(self._rows, rows_of(batch, redo).records(), redo.tolist())
        parts += [Sent.of_rows(sent)] if sent.rows else []
        self._count_workers(batch.count)
        return Result.of(failures, dropped + gone, out=divided(parts, batch.count))

    def _source_by_rows(self, batch):
        sent, failures, dropped = source_rows(self._rows, batch.records(), range(batch.count))
        self.stats.rows_batches += 1
        self.stats.rows_records += batch.count
        return Result.of(failures, dropped, out=divided([Sent.of_rows(sent)] if sent.rows else [], batch.count))

    # --- sink ---

    def sink(self, topic, partition, records):
        """Work wire.Records that were fetched from that partition."""
        if not records.count:
            return Result()
        begun = self.begin_sink(topic, partition, records)
        return self._sink_here(topic, partition, records) if begun is None else self.end_sink(begun)

    def begin_sink(self, topic, partition, records, behind=None):
        """Have processes of our own work such records, while the caller does something else: what `end_sink` takes, before anything but
        another `begin_sink` behind it is asked of this pipeline; None where that is not to be. `behind` is what this gave the last time
        and was not ended yet.
        """
        if not self._may_use_own(records.count):
            return None
        return self._in_own(lambda own: own.begin_sink(topic, partition, records, behind))

    def end_sink(self, begun):
        """The Result of what was begun."""
        topic, partition, records, _ = begun
        done = self._in_own(lambda own: self._gathered_sink(topic, partition, records, own.end_sink(begun))) if self._own is not None else None
        return self._sink_here(topic, partition, records) if done is None else done

    def _sink_here(self, topic, partition, records):
        if self._stretches and records.count > MIXED_ROWS:
            lows = range(0, records.count, MIXED_ROWS)
            return Result.joined([(low, self._sink_here(topic, partition, records.slice(low, low + MIXED_ROWS))) for low in lows])
        wanted = self._columns.wants(records.count, self.is_identity)
        done = self._in_columns(self._sink_by_columns, self._sink_by_workers, topic, partition, records) if wanted else None
        return self._sink_by_rows(topic, partition, records) if done is None else done

    def _sink_by_columns(self, topic, partition, records):
        refused = {}
        decoded, among, redo = self._ends.decode(topic, partition, records, refused)
        if self._stretches:
            start = SinkStart(self._rows, topic, partition, records, refused)
            return self._mixed_sink(topic, partition, MixedRun(self._rows, start, decoded, among, redo, records.count))
        batch, numbers, dropped = None, NO_ROWS, []
        if decoded.count:
            frame, numbers, dropped, left = self._columns.through_links(decoded)
            if among is not None:  # row numbers among the decoded rows: as they were fetched
                numbers = among if numbers is None else among[numbers]
                dropped, left = among[np.array(dropped, np.int64)].tolist(), among[left]
            redo = union(redo, left)
            batch = sink_batch(frame, topic, partition) if frame.count else None
        failures, again = [], []
        if len(redo):
            again, failures, gone = sink_rows(self._rows, topic, partition, records, redo.tolist(), refused)
            dropped += gone
        self._count_columns(records.count, redo)
        return Result.of(failures, dropped, batches=merged(batch, numbers, again))

    def _mixed_sink(self, topic, partition, run):
        run.through(self._stretches, self.chain.links, self._columns.through)
        rest, frame, places = run.rest(), run.frame, run.places
        if run.failures:
            rest = [each for each in rest if each[1] not in run.failures]
            good = run.good(places)
            frame, places = frame and frame.take(good), places[good]
        self._count_columns(run.count, np.unique(run.rows[run.left]))
        batch = sink_batch(frame, topic, partition) if frame is not None and frame.count else None
        batches = merged(batch, places, [(place, record) for place, _, record in rest])
        return Result.of(run.failures.values(), run.dropped(places, rest), batches=batches)

    def _sink_by_workers(self, topic, partition, records):
        return self._gathered_sink(topic, partition, records, self._spread().sink(topic, partition, records))

    def _gathered_sink(self, topic, partition, records, found):
        done, redo, dropped = found
        again, failures, gone = sink_rows(self._rows, topic, partition, records, redo.tolist())
        self._count_workers(records.count)
        batches = [batch for _, batch in done]
        if again:
            every = [*again, *(pair for rows, batch in done for pair in zip(rows.tolist(), batch.records()))]
            batches = list(SinkBatch.runs([record for _, record in sorted(every, key=lambda pair: pair[0])]))
        return Result.of(failures, dropped + gone, batches=batches)

    def _sink_by_rows(self, topic, partition, records):
        done, failures, dropped = sink_rows(self._rows, topic, partition, records, range(records.count))
        self.stats.rows_batches += 1
        self.stats.rows_records += records.count
        return Result.of(failures, dropped, batches=list(SinkBatch.runs([record for _, record in done])))

    # --- the columns engine ---

    def _in_columns(self, by_columns, by_workers, *batch):
        """The result of that work; None where it cannot be done there or goes wrong, and is for the rows engine."""
        try:
            try:
                return by_columns(*batch)
            except Spread:
                return by_workers(*batch) if self._may_spread() else None
        except (ByRows, NotColumns):
            return None
        except Stopped:
            raise
        except Exception as error:
            self.stats.failed_batches += 1
            if not (self.chain.links and self._session is not None and self._session.died()):
                self._warn_once("A batch failed in the columns engine and is done by the rows engine", error)
            return None

    def _may_spread(self):
        return self._columns.spreads and (self.engine == SPARK or self._session.waiting < MOST_WAITING_JOBS)

    def _spread(self):
        if self._workers is None:
            try:
                self._workers = SparkWorkers(self.chain, self._session)
            except Exception as error:
                self._stay_here(error)
                raise ByRows from error
        return self._workers

    def _stay_here(self, error):
        """Of stages that cannot be copied."""
        self._columns.spreads = False
        log.info("A chain's stages cannot be copied to other processes, so one core does its work: %s", short(error))

    def _may_use_own(self, count):
        """Whether there are processes of our own for a batch of that size; has them started for the first one."""
        if not self._stretches or not self._columns.spreads or self.engine != AUTO or self._cores < 2 or count < MIN_ROWS_TO_SPREAD:
            return False
        if self._own is None:
            try:
                self._own = OwnWorkers(self.chain, self._cores)
            except Exception as error:
                self._stay_here(error)
                return False
        return self._own.are_up

    def _in_own(self, work):
        """The result of that work in those processes; None where they have no time, or are no good."""
        try:
            return work(self._own)
        except Busy:
            return None
        except Stopped:
            raise
        except Exception as error:
            self._columns.spreads = False
            self._warn_once("Python processes failed at a batch, and the task does without them", error)
            self._leave_own()
            return None

    def _leave_own(self):
        own, self._own = self._own, None
        if own is not None:
            own.close()

    def _count_workers(self, count):
        self.stats.workers_batches += 1
        self.stats.workers_records += count

    def _warn_once(self, what, error):
        if type(error) not in self._warned:
            self._warned.add(type(error))
            log.warning("%s: %s: %s", what, type(error).__name__, short(error))

    def _count_columns(self, count, redo):
        self.stats.columns_batches += 1
        self.stats.columns_records += count - len(redo)
        self.stats.redone_records += len(redo)
