"""Jobs of Spark: Arrow arrays are sent, the expressions of a plan are worked out, Arrow arrays come back."""

import logging

import numpy as np
import pyarrow as pa

from standalone.pipeline.types import some_value, spark_type

log = logging.getLogger(__name__)

LEAST_JOB_ROWS = 1000


def ship(session, all_leaves, arrays, count, pieces=1):
    """A Spark frame of these arrays, in order; in the place of leaves that stay here it has some value of theirs."""
    from pyspark.sql import functions as F

    by_name = {leaf.name: leaf for leaf in all_leaves}
    sent = _sent(session, arrays, {name: by_name[name].nullable for name in arrays}, count, pieces)
    stay = [leaf for leaf in all_leaves if leaf.name not in arrays]
    return sent.select("*", *(_stand_in(F, leaf).alias(leaf.name) for leaf in stay)) if stay else sent


def _sent(session, arrays, nullable, count, pieces):
    """A Spark frame of these arrays."""
    fields = [pa.field(name, array.type, nullable[name]) for name, array in arrays.items()]
    columns = list(arrays.values())
    if not fields:  # something must say how many rows there are
        fields, columns = [pa.field("row", pa.int32(), False)], [pa.array(np.arange(count, dtype=np.int32))]
    table = pa.Table.from_arrays(columns, schema=pa.schema(fields))
    return session.createDataFrame(in_pieces(table, pieces))


def in_pieces(table, pieces):
    """The table in so many chunks, one for each core, which become Spark's partitions; whole where these would be small."""
    step = -(-table.num_rows // max(1, pieces))
    if pieces <= 1 or step < LEAST_JOB_ROWS:
        return table
    return pa.concat_tables([table.slice(low, step) for low in range(0, table.num_rows, step)])


class Job:
    """Spark's optimized plan of what is computed, put upon one frame after the other: to have it analyse and optimize all the selects
    anew took more time than the work on 100,000 rows.
    """

    def __init__(self, plan, read):
        self._plan = plan
        self._read = read  # attributes by name

    @classmethod
    def of(cls, frame, session, arrays):
        """Of the frame of a first job on these arrays; None where its plan is more than one projection."""
        try:
            plan = frame._jdf.queryExecution().optimizedPlan()
            if plan.nodeName() != "Project" or plan.child().nodeName() != "LogicalRDD":
                return None
            output = plan.child().output()
            attributes = [output.apply(at) for at in range(output.size())]
            job = cls(plan, {each.name(): (each, each.nullable()) for each in attributes})
            job(session, arrays, 1, 1)
            return job
        except Exception as error:  # these are the insides of Spark, and another version's may be others
            log.info("Spark's plan cannot be used again, so that each job costs more: %s", error)
            return None

    def __call__(self, session, arrays, count, cores):
        from pyspark.sql import DataFrame

        nullable = {name: self._read[name][1] if name in self._read else True for name in arrays}
        sent = _sent(session, arrays, nullable, count, cores)
        jvm, child = session._jvm, sent._jdf.queryExecution().analyzed()
        output, pairs = child.output(), []
        for at in range(output.size()):
            attribute = output.apply(at)
            if attribute.name() in self._read:
                pairs.append(jvm.scala.Tuple2(self._read[attribute.name()][0], attribute))
        to_seq = jvm.PythonUtils.toSeq
        companion = getattr(jvm.org.apache.spark.sql.catalyst.expressions, "AttributeMap$")
        renamed = getattr(companion, "MODULE$").apply(to_seq(pairs))
        plan = self._plan.withNewChildren(to_seq([child])).rewriteAttrs(renamed)
        return DataFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(session._jsparkSession, plan), session)


def _stand_in(F, leaf):
    kind = spark_type(leaf.schema)
    return F.lit(None).cast(kind) if leaf.nullable else some_value(kind)
