"""Split a chain into segments that each process a whole batch: Expressions, Sql or Python.

    for segment in segments_of(links, ...):
        batch, rows, redo = segment.run(batch, origin, rows)

`rows` maps each output row to its input row, ascending (None: unchanged); `redo` are rows that the rows engine must process from this
segment on. A row in neither was dropped. A segment raises ByRows if the rows engine must process the whole batch, and SparkGone if
Spark's Java process ended.
"""

import logging
import threading

import numpy as np

from standalone.pipeline.columns.leaves import Leaves
from standalone.pipeline.columns.plan import ColumnPlan
from standalone.pipeline.columns.prune import Declined
from standalone.pipeline.spark.job import SparkGone
from standalone.stage import QueryTransform

log = logging.getLogger(__name__)

NO_ROWS = np.empty(0, np.int64)
MOST_PLANS = 1000
_NOT_ASKED = (None, None, None)
MOST_FAILED_JOBS = 3  # of one plan in a row, before the rows engine takes over


class ByRows(Exception):
    """The rows engine must process this batch; the message says why."""


def segments_of(links, expressions, sql, python, remembers=lambda link: False):
    """Return [segment], runs of links of one kind. The factories are called as `expressions(low, links)`, `sql(low, link)` and
    `python(low, links)`; links for which `remembers(link)` is true become segments of their own.
    """

    def kind_of(link):
        kind = _kind(link)
        return remembering_kind if kind is python_kind and remembers(link) else kind

    segments, low = [], 0
    for high in range(1, len(links) + 1):
        kind = kind_of(links[low])
        if kind is not sql_kind and high < len(links) and kind_of(links[high]) is kind:
            continue
        run = links[low:high]
        segments.append(sql(low, run[0]) if kind is sql_kind else expressions(low, run) if kind is expressions_kind else python(low, run))
        low = high
    return segments


class Segment:
    """Links low to high of a chain, processed together."""

    title = ""  # for descriptions
    computes = False  # whether its configuration requires Spark
    is_free = False  # whether no batch so far needed Spark
    remembers = False  # stateful: must see each record once and in order, so it runs by rows in the task's thread

    def __init__(self, low, count):
        self.low, self.high = low, low + count

    def run(self, batch, origin, rows):
        raise NotImplementedError(f"{type(self).__name__} must define run")

    def needs_job(self, batch):
        return True

    def describe(self):
        """Describe the compiled form in words."""
        return [self.title]

    def spark_plan(self, session, batch):
        """Spark's plan for the job of such a batch as text; None if there is no job."""
        return None

    def spark_plans(self):
        """Return [(title, Spark's optimized plan)] of the jobs so far."""
        return []


class PythonHere(Segment):
    """Stateful links without a columnar form."""

    title = "links of Python that remember records: by rows, in the task's thread"
    is_free = remembers = True

    def run(self, batch, origin, rows):
        raise ByRows(self.title)


sql_kind, python_kind, remembering_kind, expressions_kind = "sql", "python", "python that remembers", "expressions"


def _kind(link):
    if isinstance(link.transform, QueryTransform):
        return sql_kind
    has_columns = all(stage is None or stage.has_columns for stage in (link.transform, link.predicate))
    return expressions_kind if has_columns else python_kind


class Expressions(Segment):
    """Links with columnar forms, compiled once per batch shape."""

    def __init__(self, low, links, holder, is_worth_a_job):
        """`is_worth_a_job(count)` returns whether Spark should process a batch of that size."""
        super().__init__(low, len(links))
        self._links = links
        self._holder = holder
        self._is_worth_a_job = is_worth_a_job
        self._plans = {}  # batch shape -> _Plan, most recently used last
        self._lock = threading.Lock()
        self._seen_nulls = set()
        self._asked = _NOT_ASKED  # the last batch passed to `needs_job`, its plan and leaves

    def spark_plan(self, session, batch):
        plan, leaves = self._plan(batch)
        return None if plan.is_free else plan.compiled.spark_plan(leaves, session)

    def spark_plans(self):
        plans = [(plan.title, plan.compiled.spark_words) for plan in list(self._plans.values()) if plan.compiled is not None]
        return [(title, words) for title, words in plans if words is not None]

    title = "expressions"
    computes = property(lambda self: any(link.transform.computes() for link in self._links))

    @property
    def is_free(self):
        """Whether no batch so far needed Spark."""
        return all(plan.is_free for plan in list(self._plans.values()))

    def needs_job(self, batch):
        plan, leaves = self._plan(batch)
        self._asked = (batch, plan, leaves)  # this batch will probably run next
        return not plan.is_free

    def run(self, batch, origin=None, rows=None):
        asked, plan, leaves = self._asked
        if asked is batch:
            self._asked = _NOT_ASKED
        else:
            plan, leaves = self._plan(batch)
        if plan.declined:
            raise ByRows(plan.declined)
        if plan.compiled.computes and not self._is_worth_a_job(batch.count):
            raise ByRows("it is too small for a Spark job, or Spark is not up")
        changed, gone, failed = plan.run(batch, leaves, self._holder)
        redo = NO_ROWS if failed is None else np.flatnonzero(failed)
        if gone is None and not len(redo):
            return changed, None, redo
        kept = np.ones(batch.count, bool)
        if gone is not None:
            kept &= ~gone
        kept[redo] = False
        rows = np.flatnonzero(kept)
        return changed.take(rows), rows, redo

    def _plan(self, batch):
        leaves = Leaves(batch, self._seen_nulls)
        with self._lock:
            plan = self._plans.pop(leaves.key, None) or _Plan(self._links, leaves, batch)
            self._plans[leaves.key] = plan
            if len(self._plans) > MOST_PLANS:
                del self._plans[next(iter(self._plans))]
        return plan, leaves

    def describe(self):
        return [line for plan in list(self._plans.values()) for line in plan.describe()]


class _Plan:
    """A compiled plan, or why there is none; disabled after repeated job failures."""

    def __init__(self, links, leaves, batch):
        topic = batch.topic if isinstance(batch.topic, str) else "(several)"
        self.title = f"topic {topic}, key {batch.key_schema}, value {batch.value_schema}"
        self._failed = 0
        self.compiled, self.declined = None, None
        try:
            self.compiled = ColumnPlan(links, leaves, batch)
        except Declined as reason:
            self.declined = str(reason)
        except Exception as error:
            self.declined = f"it could not be compiled: {short(error)}"
            log.warning("A chain could not be compiled, so the rows engine runs it: %s: %s", type(error).__name__, short(error))

    @property
    def is_free(self):
        """Whether it needs no Spark job."""
        return self.compiled is None or not self.compiled.computes

    def run(self, batch, leaves, holder):
        try:
            result = self.compiled.run(batch, leaves, holder)
        except SparkGone:
            raise
        except Exception as error:
            self._failed += 1
            if self._failed >= MOST_FAILED_JOBS:
                self.declined = f"its jobs failed {self._failed} times, last with {type(error).__name__}"
            raise
        self._failed = 0
        return result

    def describe(self):
        lines = [f"by rows: {self.declined}"] if self.declined else self.compiled.describe()
        return [f"{self.title}:", *("  " + line for line in lines)]


def short(error):
    return " ".join(str(error).split())[:500]
