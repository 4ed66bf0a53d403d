"""The one door to Spark: a table goes in, in chunks that the Java heap holds, and what a job makes of each comes back.

A job waits for a slot, of which there are as many as cores. Where Spark's Java process ends under a job, SparkGone says so: the
records are not to blame, and the job can be done again.
"""

import logging
import threading

import numpy as np
import pyarrow as pa

from standalone.data.column import one_piece
from standalone.errors import ConnectError

log = logging.getLogger(__name__)

JOB_BYTES = 24 << 20  # of one chunk: the Java heap holds it several times over
LEAST_JOB_ROWS = 1000
WAIT_SECONDS = 0.5  # for a session that is on its way, between two looks whether it is still wanted


class SparkGone(Exception):
    """There is no Spark session, or its Java process ended under the job."""


def run(holder, table, work, most_bytes=None):
    """[what `work(session, chunk)` makes of each chunk of the table]. Raises SparkGone, or what a job raises."""
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
    """What `work(session)` makes, in a session that is waited for. Raises SparkGone, ConnectError if Spark does not start, or what work raises."""
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
    """A table as a Spark frame, with a partition for each core; with one where these would be small."""
    step = -(-table.num_rows // max(1, cores))
    if cores > 1 and step >= LEAST_JOB_ROWS:
        table = pa.concat_tables([table.slice(low, step) for low in range(0, table.num_rows, step)])
    return session.createDataFrame(table)


def table_of(arrays, nullable, count):
    """Arrow arrays by name as a table. Something must say how many rows there are."""
    fields = [pa.field(name, array.type, nullable[name]) for name, array in arrays.items()]
    columns = list(arrays.values())
    if not fields:
        fields, columns = [pa.field("row", pa.int32(), False)], [pa.array(np.arange(count, dtype=np.int32))]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


class Projection:
    """Expressions over a table, computed chunk by chunk. Spark's optimized plan of the first job is put upon the tables after it: to have
    it analyse and optimize all selects again took more time than the work on 100,000 rows.
    """

    def __init__(self, select):
        """`select(frame)` gives the Spark frame of the results over a frame of the table."""
        self._select = select
        self.words = None  # Spark's, for the optimized plan
        self._lock = threading.Lock()
        self._learnt = (None, None, None)  # (session, its optimized plan or None, what that reads: attributes by name)

    def run(self, holder, table):
        """The results as Arrow arrays by name."""
        cores = holder.cores
        tables = run(holder, table, lambda session, chunk: self._frame(session, chunk, cores).toArrow())
        found = pa.concat_tables(tables)
        if len(found) != table.num_rows:
            raise ValueError(f"Spark was sent {table.num_rows} rows and sent {len(found)} back")
        arrays = [one_piece(column) for column in found.columns]
        return dict(zip(found.column_names, arrays))

    def _frame(self, session, table, cores):
        with self._lock:  # two batches may be the first ones
            if self._learnt[0] is not session:
                self._learnt = (session, *self._plan(session, table.slice(0, 1)))
            _, plan, read = self._learnt
        frame = sent(session, table, cores)
        return self._select(frame) if plan is None else self._again(session, plan, read, frame)

    def spark_plan(self, session, table):
        """Spark's own words for such a job, from what is asked of it to what it runs."""
        return self._select(session.createDataFrame(table))._jdf.queryExecution().toString()

    def _plan(self, session, table):
        """(the optimized plan, what it reads) where it is nothing but projections; (None, None) elsewhere."""
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
        except Exception as error:  # these are the insides of Spark, and another version's may be others
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
        """The projections of a plan over another source."""
        if plan.nodeName() != "Project":
            return source
        return plan.withNewChildren(to_seq([self._upon(plan.child(), source, to_seq)]))
