"""The columns engine: the links of a chain over a batch's columns, by plans (plan.py) of which there is one for each shape of batch."""

import logging

import numpy as np

from standalone.pipeline.ends import NO_ROWS, ByRows, union
from standalone.pipeline.frame import Leaves
from standalone.pipeline.meaning import Declined, NeedsSpark
from standalone.pipeline.plan import ColumnPlan
from standalone.pipeline.queries import Query
from standalone.stage import QueryTransform

log = logging.getLogger(__name__)

AUTO, SPARK, ROWS = "auto", "spark", "rows"
MIN_ROWS = 20_000  # from here on a Spark job is faster than the rows engine
MIN_ROWS_TO_COMPILE = 1_000  # by Spark
MIN_ROWS_WITHOUT_JOB = 64  # where kernels alone do it, or a plan only moves columns about
MOST_WAITING_JOBS = 2
MOST_PLANS = 256
MOST_FAILED_JOBS = 3  # of one plan in a row, before it is left to the rows engine


class Spread(Exception):
    """This batch has no column meaning, and is large: by rows, but on all cores."""


class ColumnsEngine:
    """Of one chain. `stats` are the pipeline's. `has_stretches` says that it gets parts of the chain, with others by rows between them."""

    def __init__(self, links, engine, session, min_rows, stats, spreads, has_stretches):
        self._links = links
        self._engine = engine
        self._session = session
        self._min_rows = min_rows
        self._stats = stats
        self.spreads = spreads  # whether what has no column meaning may be done in other processes
        self._has_stretches = has_stretches
        self._segments = list(_segments(links, session))
        self.has_queries = any(isinstance(segment, Query) for segment in self._segments)
        self._plans = {}  # shape of a batch -> Plan
        self._compiled_for = None
        self._awaits_session = False
        self._seen_nulls = set()

    def is_free(self):
        """Whether all that was compiled so far needs no Spark."""
        return bool(self._plans) and all(plan.is_free for plan in self._plans.values())

    def describe(self):
        """What was compiled, in words."""
        return [line for plan in self._plans.values() for line in plan.describe()]

    def wants(self, count, is_identity):
        """Whether a batch of that size is one for the columns engine, as far as can be told without a look at it."""
        if not self._links:  # kernels alone, beside the socket: nothing to compute for Spark
            return is_identity or self._engine == SPARK or count >= MIN_ROWS_WITHOUT_JOB
        if self.has_queries:
            return self._session is not None and self._session.wait() is not None
        if self._engine == ROWS:
            return False
        if self._engine == SPARK:
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
        return self._engine == SPARK or count >= min(self._min_rows, MIN_ROWS_TO_COMPILE)

    def _ready(self):
        """Spark's session, where there is one."""
        return None if self._session is None else self._session.ready()

    def _ask_for_session(self, count):
        """Have Spark started for what cannot be done without."""
        self._awaits_session = True
        if self._session is not None and self._is_large(count) and (self._session.start != "lazy" or count >= self._min_rows):
            self._session.request()

    def through_links(self, frame):
        """(the frame behind the links, its rows' numbers or None for all, numbers dropped, numbers for the rows engine).

        Raises ByRows or Spread where the batch is not for the columns engine.
        """
        if not self._links:
            return frame, None, [], NO_ROWS
        if not self.has_queries:
            return self.through(self._links, frame)
        count, numbers, redo = frame.count, np.arange(frame.count), NO_ROWS
        for segment in self._segments:
            if isinstance(segment, Query):
                frame, rows = segment.frame(frame)
                numbers = numbers[rows]
            else:
                frame, rows, _, left = self.through(segment, frame)
                redo = union(redo, np.unique(numbers[left]))
                numbers = numbers if rows is None else numbers[rows]
            if not frame.count:
                break
        if len(redo):  # a record is done again as a whole
            whole = ~np.isin(numbers, redo)
            frame, numbers = frame.take(np.flatnonzero(whole)), numbers[whole]
        return frame, numbers, np.setdiff1d(np.arange(count), union(np.unique(numbers), redo)).tolist(), redo

    def through(self, links, frame):
        """The same of these links."""
        leaves = Leaves(frame, self._seen_nulls)
        session = self._ready()
        if session is not self._compiled_for:  # plans are of one Java machine, and go with it
            self._plans.clear()
            self._compiled_for = session
        key = (links[0].alias, leaves.key) if self.has_queries or self._has_stretches else leaves.key
        plan = self._plans.get(key)
        if plan is None:
            if len(self._plans) >= MOST_PLANS:
                del self._plans[next(iter(self._plans))]
            plan = self._plans[key] = Plan(links, leaves, frame, session if self._is_large(frame.count) else None, self._session)
        elif plan.awaits_spark and session is not None and self._is_large(frame.count):
            plan.make(leaves, frame, session)
        if plan.declined and (self._engine != SPARK and frame.count < self._min_rows or not self.spreads):
            raise ByRows
        if plan.declined or plan.awaits_spark:
            if session is None:
                self._ask_for_session(frame.count)
            raise Spread if plan.declined and session is not None else ByRows
        if plan.compiled.computes:
            if self._engine == AUTO and (frame.count < self._min_rows or self._session.waiting >= MOST_WAITING_JOBS):
                raise ByRows
            self._stats.spark_batches += 1
        changed, gone, failed = plan.run(frame, leaves, self._session)
        redo = NO_ROWS if failed is None else np.flatnonzero(failed)
        dropped = [] if gone is None else np.flatnonzero(gone if failed is None else gone & ~failed).tolist()
        if not dropped and not len(redo):
            return changed, None, dropped, redo
        kept = np.ones(frame.count, bool)
        kept[dropped] = kept[redo] = False
        numbers = np.flatnonzero(kept)
        return changed.take(numbers), numbers, dropped, redo


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


class Plan:
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
            self.declined = f"it could not be compiled: {short(error)}"
            log.warning("A chain could not be compiled, so the rows engine does it: %s: %s", type(error).__name__, short(error))

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


def short(error):
    return " ".join(str(error).split())[:500]
