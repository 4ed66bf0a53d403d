"""Run Spark jobs: send a table in chunks that fit the Java heap, and return each chunk's result.

A job waits for one of as many slots as there are cores. If Spark's Java process ends during a job, SparkGone is raised: the records are not
the cause, and the job can be retried.
"""

import logging
import threading

import numpy as np
import pyarrow as pa

from standalone.data.column import one_piece
from standalone.errors import ConnectError

log = logging.getLogger(__name__)

JOB_BYTES = 24 << 20  # per chunk: the Java heap holds it several times
LEAST_JOB_ROWS = 1000
WAIT_SECONDS = 0.5  # for a starting session, between checks for a stop


class SparkGone(Exception):
    """There is no Spark session, or its Java process ended during the job."""


def run(holder, table, work, most_bytes=None):
    """Return [work(session, chunk)] for each chunk of the table. Raise SparkGone, or the job's error."""
    done = []
    for chunk in _chunks(table, most_bytes or JOB_BYTES):
        with holder.job() as session:
            if session is None:
                raise SparkGone("there is no Spark session")
            try:
                done.append(work(session, chunk))
            except Exception as error:
                if holder.died(session, error):
                    raise SparkGone("Spark's Java process ended under a job") from error
                raise
    return done


def alone(holder, work, stopping=None):
    """Wait for a session and return `work(session)`. Raise SparkGone, ConnectError if Spark does not start, or the work's error."""
    while holder.wait(WAIT_SECONDS) is None:
        if stopping is not None and stopping.is_set():
            raise SparkGone("the task is being stopped")
        if holder.failure is not None:
            raise ConnectError(f"Spark does not start: {holder.failure}")
    with holder.job() as session:
        if session is None:
            raise SparkGone("Spark's Java process has ended; another one is being started")
        try:
            return work(session)
        except Exception as error:
            if holder.died(session, error):
                raise SparkGone("Spark's Java process ended under the work") from error
            raise


def _chunks(table, most_bytes):
    row_bytes = max(1, table.nbytes // max(1, table.num_rows))
    step = max(1, most_bytes // row_bytes)
    return [table.slice(low, step) for low in range(0, table.num_rows, step)]


def sent(session, table, cores):
    """Convert a table to a Spark frame with a partition per core; with one partition if these would be small."""
    step = -(-table.num_rows // max(1, cores))
    if cores > 1 and step >= LEAST_JOB_ROWS:
        table = pa.concat_tables([table.slice(low, step) for low in range(0, table.num_rows, step)])
    return session.createDataFrame(table)


def table_of(arrays, nullable, count):
    """Convert named Arrow arrays to a table; `count` gives its row count if there are none."""
    fields = [pa.field(name, array.type, nullable[name]) for name, array in arrays.items()]
    columns = list(arrays.values())
    if not fields:
        fields, columns = [pa.field("row", pa.int32(), False)], [pa.array(np.arange(count, dtype=np.int32))]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


class Projection:
    """Expressions over a table, computed in chunks. Spark's optimized plan of the first job is applied to later tables: analysing and optimizing all
    selects again took longer than the work on 100,000 rows.
    """

    def __init__(self, select):
        """`select(frame)` returns the Spark frame of the results."""
        self._select = select
        self.words = None  # Spark's optimized plan as text
        self._lock = threading.Lock()
        self._learnt = (None, None, None)  # (session, its optimized plan or None, the plan's input attributes by name)

    def run(self, holder, table):
        """Return the results as Arrow arrays by name."""
        cores = holder.cores
        tables = run(holder, table, lambda session, chunk: self._frame(session, chunk, cores).toArrow())
        found = pa.concat_tables(tables)
        if len(found) != table.num_rows:
            raise ValueError(f"Spark was sent {table.num_rows} rows and sent {len(found)} back")
        arrays = [one_piece(column) for column in found.columns]
        return dict(zip(found.column_names, arrays))

    def _frame(self, session, table, cores):
        with self._lock:  # two batches may run first at the same time
            if self._learnt[0] is not session:
                self._learnt = (session, *self._plan(session, table.slice(0, 1)))
            _, plan, read = self._learnt
        frame = sent(session, table, cores)
        return self._select(frame) if plan is None else self._again(session, plan, read, frame)

    def spark_plan(self, session, table):
        """Spark's plans for such a job as text, from the parsed to the physical one."""
        return self._select(session.createDataFrame(table))._jdf.queryExecution().toString()

    def _plan(self, session, table):
        """Return (optimized plan, its input) if it consists of projections only; else (None, None)."""
        plan = self._select(session.createDataFrame(table))._jdf.queryExecution().optimizedPlan()
        self.words = plan.toString()
        try:
            source = plan
            while source.nodeName() == "Project":
                source = source.child()
            if source.nodeName() == "LogicalRDD":
                output = source.output()
                read = {each.name(): each for each in (output.apply(at) for at in range(output.size()))}
                self._again(session, plan, read, session.createDataFrame(table)).toArrow()
                return plan, read
        except Exception as error:  # uses Spark's internals, which may change between versions
            log.info("Spark's plan cannot be used again, so that each job costs more: %s", error)
        return None, None

    def _again(self, session, plan, read, frame):
        from pyspark.sql import DataFrame

        jvm, source = session._jvm, frame._jdf.queryExecution().analyzed()
        output, pairs = source.output(), []
        for at in range(output.size()):
            attribute = output.apply(at)
            if attribute.name() in read:
                pairs.append(jvm.scala.Tuple2(read[attribute.name()], attribute))
        to_seq = jvm.PythonUtils.toSeq
        companion = getattr(jvm.org.apache.spark.sql.catalyst.expressions, "AttributeMap$")
        renamed = getattr(companion, "MODULE$").apply(to_seq(pairs))
        plan = self._upon(plan, source, to_seq).rewriteAttrs(renamed)
        return DataFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(session._jsparkSession, plan), session)

    def _upon(self, plan, source, to_seq):
        """Apply a plan's projections to another source."""
        if plan.nodeName() != "Project":
            return source
        return plan.withNewChildren(to_seq([self._upon(plan.child(), source, to_seq)]))
