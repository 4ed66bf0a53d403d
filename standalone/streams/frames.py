"""Build DataFrames from the streams and tables of a plan, in the query's own Spark session."""

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
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",  # a batch writes only its changes, not the whole state
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
}

_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def make_current(session):
    """Make the session current for this thread, in Python and Java: Spark looks up functions there."""
    type(session)._get_j_spark_session_class(session._jvm).setActiveSession(session._jsparkSession)


def register(session, functions=()):
    """Create a session next to the pipeline's, with the data source, Python functions (udf.py), and case-insensitive names."""
    from standalone.streams import prompt, udf
    from standalone.streams.source import ConnectDataSource

    own = session.newSession()
    make_current(own)  # registration applies to the current session
    for key, value in _SETTINGS.items():
        own.conf.set(key, value)
    context, plain = own.sparkContext, own.sparkContext.pythonExec
    if context.master.startswith("local") and (folder := context.getConf().get("spark.local.dir")):
        context.pythonExec = prompt.program(folder)  # the data source remembers it
    try:
        own.dataSource.register(ConnectDataSource)
    except AnalysisException as error:  # new sessions inherit the setting of the session they come from
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise
    finally:
        context.pythonExec = plain
    udf.register(own, functions)
    return own


def with_state_in(session, store):
    """Set the state store, memory or rocksdb, for new queries. A query with a checkpoint keeps its store."""
    if store == "rocksdb":
        session.conf.set("spark.sql.streaming.stateStore.providerClass", _ROCKSDB)
    return session


def stream(session, source, options, watermark_ms=None):
    """Read a stream's rows, or a table's changes, as they arrive."""
    frame = session.readStream.format("connect").options(**options).schema(source.schema()).load().selectExpr(*source.projection())
    return frame if watermark_ms is None else frame.withWatermark("__time", f"{watermark_ms} milliseconds")


def table(session, source, options, latest):
    """Read all rows now in a topic; with `latest` the newest row per key, unless it is a tombstone."""
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
    """Return an empty DataFrame with the source's columns, to let Spark check a statement."""
    frame = session.createDataFrame([], StructType.fromDDL(source.schema()))
    return frame.selectExpr(*source.projection())


def analysed(session, plan) -> DataFrame:
    """Run a plan over no rows. Raise Spark's analysis error."""
    for view in plan.views:
        empty(session, view.source).createOrReplaceTempView(quoted(view.alias))
    return session.sql(plan.sql)


def frame_of(session, plan, options_of):
    """Run a plan over streams, or over current contents if it reads tables or is a pull query. `options_of(source, is_stream)`."""
    for view in plan.views:
        is_stream = not view.latest and not plan.at_once
        options = options_of(view.source, is_stream)
        if is_stream:
            made = stream(session, view.source, options, view.watermark_ms)
        else:
            made = table(session, view.source, options, view.latest)
        made.createOrReplaceTempView(quoted(view.alias))
    return session.sql(plan.sql)
