"""Work one batch through a chain, in the engine that suits it; what the columns engine marks is done again by rows, which says why.

    pipeline = Pipeline(Chain("source", key_converter, value_converter, header_converter, links), "auto", session_holder)
    result = pipeline.source(batch)                        result.out, result.failures, result.dropped
    result = pipeline.sink(topic, partition, records)      result.batches, result.failures, result.dropped

A pipeline is one thread's at a time. Whatever goes wrong in Spark costs speed and never a record.
"""

import logging
import os
from dataclasses import dataclass, field

import numpy as np

from standalone.data.batch import SinkBatch, SourceBatch
from standalone.errors import Stopped
from standalone.pipeline.ends import NO_ROWS, ByRows, Ends, union
from standalone.pipeline.frame import Frame, Leaves, NotColumns, pick, sink_batch
from standalone.pipeline.interleave import interleaved
from standalone.pipeline.meaning import Declined, NeedsSpark
from standalone.pipeline.mixed import MixedRun, SinkStart, SourceStart, stretches
from standalone.pipeline.outgoing import Sent, divide, join
from standalone.pipeline.plan import ColumnPlan
from standalone.pipeline.queries import Query
from standalone.pipeline.rows import RowsEngine, SentRows, class_name, sink_rows, source_rows
from standalone.pipeline.workers import Busy, OwnWorkers, SparkWorkers, may_be_spread
from standalone.stage import QueryTransform, StageFailed

log = logging.getLogger(__name__)

AUTO, SPARK, ROWS = "auto", "spark", "rows"
MIN_ROWS = 20_000  # from here on a Spark job is faster than the rows engine
GOOD_ROWS = 200_000  # up to here a Spark job does more records a second the more it is given
MIN_ROWS_TO_COMPILE = 1_000  # by Spark
MIN_ROWS_WITHOUT_JOB = 64  # where kernels alone do it, or a plan only moves columns about
MOST_WAITING_JOBS = 2
MOST_PLANS = 256
MOST_FAILED_JOBS = 3  # of one plan in a row, before it is left to the rows engine
MIXED_ROWS = 8_000  # at once, where links are run by rows between columns: their records should fit into the processor's cache
MIN_ROWS_TO_SPREAD = 2_000  # over processes of our own
GOOD_ROWS_TO_SPREAD = 40_000
MOST_SPLITS = 64  # of a sink's batch, before it is taken apart into rows


@dataclass
class Result:
    """What became of a batch. Every row of it is in `out` (or `batches`), in `failures` or in `dropped`."""

    out: list = field(default_factory=list)  # of a source: Outgoings
    batches: list = field(default_factory=list)  # of a sink: SinkBatches, in the order of their offsets
    failures: list = field(default_factory=list)  # StageFailed, ascending by row
    dropped: np.ndarray = field(default_factory=lambda: NO_ROWS)  # rows, ascending

    @classmethod
    def joined(cls, results):
        """Of the results [(first row, Result)] of a batch's pieces."""
        whole = cls()
        for low, result in results:
            for failure in result.failures:
                failure.row += low
            whole.failures += result.failures
            whole.batches += result.batches
            whole.out += [out._replace(rows=low + (np.arange(out.records.count) if out.rows is None else out.rows)) for out in result.out]
        whole.dropped = np.concatenate([low + result.dropped for low, result in results])
        return whole

    @classmethod
    def of(cls, failures, dropped, **done):
        return cls(failures=sorted(failures, key=lambda failure: failure.row), dropped=np.sort(np.array(dropped, np.int64)), **done)


@dataclass
class Stats:
    """Counts since the start: batches and records by the engine that did them."""

    rows_batches: int = 0
    rows_records: int = 0
    columns_batches: int = 0
    columns_records: int = 0
    spark_batches: int = 0  # those of the columns engine for which Spark had something to compute
    workers_batches: int = 0  # in other Python processes
    workers_records: int = 0
    redone_records: int = 0  # left to the rows engine by the columns engine
    failed_batches: int = 0  # that the columns engine broke on

    def records(self):
        """Records by the engine that did them."""
        return {"rows": self.rows_records + self.redone_records, "columns": self.columns_records, "workers": self.workers_records}


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
        self._min_rows = min_rows
        self._segments = list(_segments(chain.links, session))
        self._has_queries = any(isinstance(segment, Query) for segment in self._segments)
        self._rows = RowsEngine(chain, retry)
        self._ends = Ends(chain, self._rows)
        self._plans = {}  # shape of a batch -> _Plan
        self._compiled_for = None
        self._awaits_session = False
        self._seen_nulls = set()
        self._warned = set()
        self._spreads = may_be_spread(chain)
        self._workers = None
        self._own = None  # OwnWorkers
        self._cores = cores or len(os.sched_getaffinity(0))
        self._stretches = None if engine == ROWS or engine == SPARK and self._spreads else stretches(chain.links)
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
        if self._has_queries:
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
        return may_use_spark and count < GOOD_ROWS and self._session.ready() is not None and not self._is_free()

    def _is_free(self):
        """Whether all that was compiled so far needs no Spark."""
        return bool(self._plans) and all(plan.is_free for plan in self._plans.values())

    def explain(self):
        """What the chain was compiled to, in words."""
        links = " → ".join(f"{link.alias} ({class_name(link.transform)})" for link in self.chain.links) or "no transforms"
        key, value = class_name(self.chain.key_converter), class_name(self.chain.value_converter)
        lines = [f"{self.chain.kind}: {links}; key {key}, value {value}"]
        if self.is_identity:
            lines.append("identity: the bytes of keys and values go straight through")
        for plan in self._plans.values():
            lines.extend(plan.describe())
        if self.needs_spark and not self._plans:
            lines.append("nothing is compiled yet: batches were small; the rows engine works")
        return "\n".join(lines)

    # --- source ---

    def source(self, batch):
        """Work a SourceBatch on its way to the log."""
        if not batch.count:
            return Result()
        if self._may_use_own(batch.count) and (done := self._in_own(self._source_by_workers, batch)) is not None:
            return done
        if self._stretches and batch.count > MIXED_ROWS:
            pieces = ((low, np.arange(low, min(low + MIXED_ROWS, batch.count))) for low in range(0, batch.count, MIXED_ROWS))
            return Result.joined([(low, self.source(_rows_of(batch, rows))) for low, rows in pieces])
        done = self._in_spark(self._source_by_columns, self._source_by_workers, batch) if self._wants_columns(batch.count) else None
        return self._source_by_rows(batch) if done is None else done

    def _source_by_columns(self, batch):
        if self._stretches:
            return self._mixed_source(batch)
        frame, numbers, dropped, redo = self._through_links(Frame.of_source(batch))
        parts, left = self._ends.encode(frame, numbers)
        if self._has_queries and len(left):
            left = np.unique(left)
            parts = [sent._replace(records=sent.records.take(kept), rows=sent.rows[kept], **_lists(sent, kept)) for sent in parts
                     if len(kept := np.flatnonzero(~np.isin(sent.rows, left)))]  # fmt: skip
        redo, failures = union(redo, left), []
        if len(redo):
            sent, failures, gone = source_rows(self._rows, _rows_of(batch, redo).records(), redo.tolist())
            dropped += gone
            parts += [Sent.of_rows(sent)] if sent.rows else []
        self._count_columns(batch.count, redo)
        return Result.of(failures, dropped, out=_divided(parts, batch.count))

    def _mixed_source(self, batch):
        run = MixedRun(self._rows, SourceStart(batch), Frame.of_source(batch), None, NO_ROWS, batch.count)
        run.through(self._stretches, self.chain.links, self._through)
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
                sent = sent._replace(records=sent.records.take(good), rows=sent.rows[good], **_lists(sent, good))
            out = _divided([sent._replace(rows=run.rows[sent.rows])], batch.count) if len(sent.rows) else []
        return Result.of(run.failures.values(), run.dropped(places, []), out=out)

    def _source_by_workers(self, batch, workers=None):
        parts, redo, dropped = (workers or self._spread()).source(batch)
        sent, failures, gone = source_rows(self._rows, _rows_of(batch, redo).records(), redo.tolist())
        parts += [Sent.of_rows(sent)] if sent.rows else []
        self._count_workers(batch.count)
        return Result.of(failures, dropped + gone, out=_divided(parts, batch.count))

    def _source_by_rows(self, batch):
        sent, failures, dropped = source_rows(self._rows, batch.records(), range(batch.count))
        self.stats.rows_batches += 1
        self.stats.rows_records += batch.count
        return Result.of(failures, dropped, out=_divided([Sent.of_rows(sent)] if sent.rows else [], batch.count))

    # --- sink ---

    def sink(self, topic, partition, records):
        """Work wire.Records that were fetched from that partition."""
        if not records.count:
            return Result()
        if self._may_use_own(records.count) and (done := self._in_own(self._sink_by_workers, topic, partition, records)) is not None:
            return done
        if self._stretches and records.count > MIXED_ROWS:
            lows = range(0, records.count, MIXED_ROWS)
            return Result.joined([(low, self.sink(topic, partition, records.slice(low, low + MIXED_ROWS))) for low in lows])
        wanted = self._wants_columns(records.count)
        done = self._in_spark(self._sink_by_columns, self._sink_by_workers, topic, partition, records) if wanted else None
        return self._sink_by_rows(topic, partition, records) if done is None else done

    def _sink_by_columns(self, topic, partition, records):
        refused = {}
        decoded, among, redo = self._ends.decode(topic, partition, records, refused)
        if self._stretches:
            start = SinkStart(self._rows, topic, partition, records, refused)
            return self._mixed_sink(topic, partition, MixedRun(self._rows, start, decoded, among, redo, records.count))
        batch, numbers, dropped = None, NO_ROWS, []
        if decoded.count:
            frame, numbers, dropped, left = self._through_links(decoded)
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
        return Result.of(failures, dropped, batches=_merged(batch, numbers, again))

    def _mixed_sink(self, topic, partition, run):
        run.through(self._stretches, self.chain.links, self._through)
        rest, frame, places = run.rest(), run.frame, run.places
        if run.failures:
            rest = [each for each in rest if each[1] not in run.failures]
            good = run.good(places)
            frame, places = frame and frame.take(good), places[good]
        self._count_columns(run.count, np.unique(run.rows[run.left]))
        batch = sink_batch(frame, topic, partition) if frame is not None and frame.count else None
        batches = _merged(batch, places, [(place, record) for place, _, record in rest])
        return Result.of(run.failures.values(), run.dropped(places, rest), batches=batches)

    def _sink_by_workers(self, topic, partition, records, workers=None):
        done, redo, dropped = (workers or self._spread()).sink(topic, partition, records)
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

    def _wants_columns(self, count):
        """Whether a batch of that size is one for the columns engine, as far as can be told without a look at it."""
        if not self.chain.links:  # kernels alone, beside the socket: nothing to compute for Spark
            return self.is_identity or self.engine == SPARK or count >= MIN_ROWS_WITHOUT_JOB
        if self._has_queries:
            return self._session is not None and self._session.wait() is not None
        if self.engine == ROWS:
            return False
        if self.engine == SPARK:
            if self._session is not None:
                self._session.request()
            return self._session is not None and self._session.wait() is not None
        if self._awaits_session and self._ready() is None:
            self._ask_for_session(count)
            return False
        # Smaller batches only where no job comes of it, as far as is known.
        return self._is_large(count) or count >= MIN_ROWS_WITHOUT_JOB and (not self._plans or any(plan.is_free for plan in self._plans.values()))

    def _is_large(self, count):
        """Whether Spark may be asked how to do a batch of that size."""
        return self.engine == SPARK or count >= min(self._min_rows, MIN_ROWS_TO_COMPILE)

    def _ready(self):
        """Spark's session, where there is one."""
        return None if self._session is None else self._session.ready()

    def _ask_for_session(self, count):
        """Have Spark started for what cannot be done without."""
        self._awaits_session = True
        if self._session is not None and self._is_large(count) and (self._session.start != "lazy" or count >= self._min_rows):
            self._session.request()

    def _through_links(self, frame):
        """(the frame behind the links, its rows' numbers or None for all, numbers dropped, numbers for the rows engine).

        Raises ByRows or _Spread where the batch is not for the columns engine.
        """
        if not self.chain.links:
            return frame, None, [], NO_ROWS
        if not self._has_queries:
            return self._through(self.chain.links, frame)
        count, numbers, redo = frame.count, np.arange(frame.count), NO_ROWS
        for segment in self._segments:
            if isinstance(segment, Query):
                frame, rows = segment.frame(frame)
                numbers = numbers[rows]
            else:
                frame, rows, _, left = self._through(segment, frame)
                redo = union(redo, np.unique(numbers[left]))
                numbers = numbers if rows is None else numbers[rows]
            if not frame.count:
                break
        if len(redo):  # a record is done again as a whole
            whole = ~np.isin(numbers, redo)
            frame, numbers = frame.take(np.flatnonzero(whole)), numbers[whole]
        return frame, numbers, np.setdiff1d(np.arange(count), union(np.unique(numbers), redo)).tolist(), redo

    def _through(self, links, frame):
        """The same of these links."""
        leaves = Leaves(frame, self._seen_nulls)
        session = self._ready()
        if session is not self._compiled_for:  # plans are of one Java machine, and go with it
            self._plans.clear()
            self._compiled_for = session
        key = (links[0].alias, leaves.key) if self._has_queries or self._stretches else leaves.key
        plan = self._plans.get(key)
        if plan is None:
            if len(self._plans) >= MOST_PLANS:
                del self._plans[next(iter(self._plans))]
            plan = self._plans[key] = _Plan(links, leaves, frame, session if self._is_large(frame.count) else None, self._session)
        elif plan.awaits_spark and session is not None and self._is_large(frame.count):
            plan.make(leaves, frame, session)
        if plan.declined and (self.engine != SPARK and frame.count < self._min_rows or not self._spreads):
            raise ByRows
        if plan.declined or plan.awaits_spark:
            if session is None:
                self._ask_for_session(frame.count)
            raise _Spread if plan.declined and session is not None else ByRows
        if plan.compiled.computes:
            if self.engine == AUTO and (frame.count < self._min_rows or self._session.waiting >= MOST_WAITING_JOBS):
                raise ByRows
            self.stats.spark_batches += 1
        changed, gone, failed = plan.run(frame, leaves, self._session)
        redo = NO_ROWS if failed is None else np.flatnonzero(failed)
        dropped = [] if gone is None else np.flatnonzero(gone if failed is None else gone & ~failed).tolist()
        if not dropped and not len(redo):
            return changed, None, dropped, redo
        kept = np.ones(frame.count, bool)
        kept[dropped] = kept[redo] = False
        numbers = np.flatnonzero(kept)
        return changed.take(numbers), numbers, dropped, redo

    def _in_spark(self, by_columns, by_workers, *batch):
        """The result of that work; None where it cannot be done there or goes wrong, and is for the rows engine."""
        try:
            try:
                return by_columns(*batch)
            except _Spread:
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
        return self._spreads and (self.engine == SPARK or self._session.waiting < MOST_WAITING_JOBS)

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
        self._spreads = False
        log.info("A chain's stages cannot be copied to other processes, so one core does its work: %s", _short(error))

    def _may_use_own(self, count):
        """Whether there are processes of our own for a batch of that size; has them started for the first one."""
        if not self._stretches or not self._spreads or self.engine != AUTO or self._cores < 2 or count < MIN_ROWS_TO_SPREAD:
            return False
        if self._own is None:
            try:
                self._own = OwnWorkers(self.chain, self._cores)
            except Exception as error:
                self._stay_here(error)
                return False
        return self._own.are_up

    def _in_own(self, work, *batch):
        """The result of that work in those processes; None where they have no time, or are no good."""
        try:
            return work(*batch, self._own)
        except Busy:
            return None
        except Stopped:
            raise
        except Exception as error:
            self._spreads = False
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
            log.warning("%s: %s: %s", what, type(error).__name__, _short(error))

    def _count_columns(self, count, redo):
        self.stats.columns_batches += 1
        self.stats.columns_records += count - len(redo)
        self.stats.redone_records += len(redo)


def _segments(links, holder):
    """Runs of plain links, and a Query for each that is one; its link gets to know it."""
    plain = []
    for link in links:
        if isinstance(link.transform, QueryTransform):
            link.transform.query = Query(link.transform.statement, holder, for_all=link.predicate is None)
            if plain:
                yield plain
            yield link.transform.query
            plain = []
        else:
            plain.append(link)
    if plain:
        yield plain


def _lists(sent, kept):
    """Topic and partition of these rows, where there is one for each."""
    return {name: [part[at] for at in kept.tolist()] for name in ("topic", "partition") if isinstance(part := getattr(sent, name), list)}


class _Spread(Exception):
    """This batch has no column meaning, and is large: by rows, but on all cores."""


class _Plan:
    """A plan, or why there is none; one whose jobs fail again and again is given up."""

    def __init__(self, links, leaves, frame, session, holder):
        topic = frame.topic if isinstance(frame.topic, str) else "(several)"
        self._title = f"topic {topic}, key {frame.key_schema}, value {frame.value_schema}:"
        self._links, self._holder = links, holder
        self._failed = 0
        self.make(leaves, frame, session)

    def make(self, leaves, frame, session):
        """Compile; without a session as far as that goes."""
        self.compiled, self.declined = None, None
        try:
            self.compiled = ColumnPlan(self._links, leaves, frame, session)
        except NeedsSpark:
            pass
        except Declined as reason:
            self.declined = str(reason)
        except Exception as error:
            if self._holder is not None and self._holder.died():
                raise
            self.declined = f"it could not be compiled: {_short(error)}"
            log.warning("A chain could not be compiled, so the rows engine does it: %s: %s", type(error).__name__, _short(error))

    @property
    def awaits_spark(self):
        """Whether only Spark can say what is to be done."""
        return self.declined is None and (self.compiled is None or not self.compiled.is_compiled)

    @property
    def is_free(self):
        """Whether it needs no Spark job."""
        return self.compiled is not None and not self.compiled.computes

    def run(self, frame, leaves, session):
        try:
            result = self.compiled.run(frame, leaves, session)
        except Exception as error:
            self._failed += 1
            if self._failed >= MOST_FAILED_JOBS:
                self.declined = f"its jobs failed {self._failed} times, last with {type(error).__name__}"
            raise
        self._failed = 0
        return result

    def describe(self):
        if self.declined:
            lines = [f"by rows: {self.declined}"]
        elif self.compiled is None:
            lines = ["not compiled yet: a transform needs Spark for that"]
        else:
            lines = self.compiled.describe()
        return [self._title, *("  " + line for line in lines)]


def _short(error):
    return " ".join(str(error).split())[:500]


def _divided(parts, count):
    """Encoded parts of a batch of that many rows as Outgoings."""
    if not parts:
        return []
    sent = join(parts)
    is_whole = sent.rows is not None and len(sent.rows) == count and (np.diff(sent.rows) == 1).all()  # a row may have given several
    return divide(sent._replace(rows=None) if is_whole else sent)


def _rows_of(batch, rows):
    """These rows of a SourceBatch as one of their own."""
    if len(rows) == batch.count:
        return batch
    lists = {name: getattr(batch, name) for name in ("topic", "partition", "headers")}
    part = SourceBatch(
        len(rows),
        value=pick(batch.value, rows),
        value_schema=batch.value_schema,
        key=pick(batch.key, rows),
        key_schema=batch.key_schema,
        timestamps=pick(batch.timestamps, rows),
        source_partition=batch.source_partition,
        offset_of=lambda at: batch.offset_of(int(rows[at])),
        **{name: pick(column, rows) if isinstance(column, list) else column for name, column in lists.items()},
    )
    return part


def _merged(batch, numbers, again):
    """A batch (its rows have these numbers, None for all) and [(row, record)] as batches in the order of the rows."""
    if not again:
        return [] if batch is None else [batch]
    if batch is None:
        return list(SinkBatch.runs([record for _, record in again]))
    if len(again) > MOST_SPLITS:
        whole = interleaved(batch, numbers, again)
        if whole is not None:
            return [whole]
        every = sorted([*zip(numbers.tolist(), batch.records()), *again], key=lambda pair: pair[0])
        return list(SinkBatch.runs([record for _, record in every]))
    batches, low, run = [], 0, []
    for row, record in again:
        at = int(np.searchsorted(numbers, row))
        if at > low:
            batches += [*SinkBatch.runs(run), batch.slice(low, at)]
            low, run = at, []
        run.append(record)
    batches += SinkBatch.runs(run)
    return [*batches, batch.slice(low, len(batch))] if low < len(batch) else batches
