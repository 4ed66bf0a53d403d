"""DataFrames of the streams and tables of a plan, in a Spark session of the query's own."""

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from standalone.streams import columns as c
from standalone.streams.sql.catalog import quoted

_SETTINGS = {
    "spark.sql.caseSensitive": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.checkpointFileManagerClass": "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.sql.streaming.numRecentProgressUpdates": "100",
    "spark.sql.streaming.noDataMicroBatches.enabled": "true",
    "spark.sql.streaming.minBatchesToRetain": "10",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",  # a batch writes what it changed, not all that there is
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
}

_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def make_current(session):
    """Spark looks for the session of a thread, and what is registered with it, in its own place."""
    type(session)._get_j_spark_session_class(session._jvm).setActiveSession(session._jsparkSession)


def register(session, functions=()):
    """A session beside the one that the pipeline has, with the data source, functions of Python (udf.py), and names without regard to case."""
    from standalone.streams import prompt, udf
    from standalone.streams.source import ConnectDataSource

    own = session.newSession()
    make_current(own)  # what is registered is registered with the current one
    for key, value in _SETTINGS.items():
        own.conf.set(key, value)
    context, plain = own.sparkContext, own.sparkContext.pythonExec
    if context.master.startswith("local") and (folder := context.getConf().get("spark.local.dir")):
        context.pythonExec = prompt.program(folder)  # the data source keeps it
    try:
        own.dataSource.register(ConnectDataSource)
    except AnalysisException as error:  # sessions have what the one has that they are made of
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise
    finally:
        context.pythonExec = plain
    udf.register(own, functions)
    return own


def with_state_in(session, store):
    """The session; its queries that are new remember in `store`: memory or rocksdb. One that has a checkpoint stays with what it began with."""
    if store == "rocksdb":
        session.conf.set("spark.sql.streaming.stateStore.providerClass", _ROCKSDB)
    return session


def stream(session, source, options, watermark_ms=None):
    """The rows of a stream, or the changes of a table, as they come."""
    frame = session.readStream.format("connect").options(**options).schema(source.schema()).load().selectExpr(*source.projection())
    return frame if watermark_ms is None else frame.withWatermark("__time", f"{watermark_ms} milliseconds")


def table(session, source, options, latest):
    """All rows that a topic holds now; with `latest` of each key the newest, unless that says that the key is gone."""
    options = {**options, "startingOffsets": "earliest"}
    frame = session.read.format("connect").options(**options).schema(source.schema()).load()
    return latest_rows(frame, source) if latest else frame.selectExpr(*source.projection())


def latest_rows(frame, source):
    columns = source.projection()
    by = [c.KEY] + ([c.WINDOW_START, c.WINDOW_END] if source.windows else [])
    rows = frame.where(f"{c.KEY} IS NOT NULL").groupBy(*by).agg(_newest(frame, by))
    return rows.select(*by, "__row.*").where(f"NOT {c.TOMBSTONE}").selectExpr(*columns)


def _newest(frame, by):
    from pyspark.sql import functions as f

    return f.max_by(f.struct(*[quoted(name) for name in frame.columns if name not in by]), f.struct(c.OFFSET)).alias("__row")


def empty(session, source):
    """No rows, with the columns that there would be: for Spark to say what it thinks of a statement."""
    frame = session.createDataFrame([], StructType.fromDDL(source.schema()))
    return frame.selectExpr(*source.projection())


def analysed(session, plan) -> DataFrame:
    """The result of a plan over no rows. Raises what Spark has to say against it."""
    for view in plan.views:
        empty(session, view.source).createOrReplaceTempView(quoted(view.alias))
    return session.sql(plan.sql)


def frame_of(session, plan, options_of):
    """The result of a plan: over streams, or, where it is of tables or pulled, over what they hold. `options_of(source, is_stream)`."""
    for view in plan.views:
        is_stream = not view.latest and not plan.at_once
        options = options_of(view.source, is_stream)
        if is_stream:
            made = stream(session, view.source, options, view.watermark_ms)
        else:
            made = table(session, view.source, options, view.latest)
        made.createOrReplaceTempView(quoted(view.alias))
    return session.sql(plan.sql)
