"""Delta tables: each commit records a topic partition and its next offset (txnAppId, txnVersion), so nothing is written twice."""

from connectors.storage.sink import path_of
from connectors.tables.columns import quote
from connectors.tables.iceberg import table_properties
from connectors.tables.store import Tables
from standalone import ConnectError

_APP, _VERSION = "spark.databricks.delta.write.txnAppId", "spark.databricks.delta.write.txnVersion"
_LOG_PARTS = "spark.databricks.delta.snapshotPartitions"
_EXTENSION, _CATALOG = "io.delta.sql.DeltaSparkSessionExtension", "org.apache.spark.sql.delta.catalog.DeltaCatalog"


class DeltaTables(Tables):
    label = "Delta"
    package = "io.delta:delta-spark_4.1_2.13:4.4.0"
    classes = "io.delta.tables.DeltaTable"
    wants_text = f", and spark.sql.extensions={_EXTENSION} and spark.sql.catalog.spark_catalog={_CATALOG}"

    def configure(self, own):
        extensions, catalog = own.conf.get("spark.sql.extensions", ""), own.conf.get("spark.sql.catalog.spark_catalog", "")
        if _EXTENSION not in extensions or catalog != _CATALOG:
            raise ConnectError(
                f"Delta needs two more of the worker's properties: spark.sql.extensions={_EXTENSION} and spark.sql.catalog.spark_catalog={_CATALOG}. "
                "Add them, then restart the worker."
            )
        if own.conf.get(_LOG_PARTS, None) is None:
            own.conf.set(_LOG_PARTS, "2")  # one machine reads the log: Delta's default of fifty partitions takes seconds per commit

    def name(self, table):
        return f"delta.{quote(self._place(table))}"

    def _place(self, table):
        return f"{path_of(self.config['delta.location']).rstrip('/')}/{table.replace('.', '/')}"

    def exists(self, own, table):
        return own._jvm.io.delta.tables.DeltaTable.isDeltaTable(own._jsparkSession, self._place(table))

    def create(self, own, table, columns, parts, settings):
        by = f" PARTITIONED BY ({', '.join(parts)})" if parts else ""
        own.sql(f"CREATE TABLE IF NOT EXISTS {self.name(table)} ({columns}) USING delta{by}{table_properties(settings.create_props)}")

    def offsets(self, own, table, pairs):
        log = own._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(own._jsparkSession, self._place(table))
        log.update(False, own._jvm.scala.Option.empty(), own._jvm.scala.Option.empty())
        said = log.unsafeVolatileSnapshot().transactions()
        found = {pair: said.get(self._app(pair)) for pair in pairs}
        return {pair: int(version.get()) for pair, version in found.items() if version.isDefined()}

    def _app(self, pair):
        topic, partition = pair
        return f"{self.connector}:{topic}-{partition}"

    def _write_all(self, own, table, settings, buffer, offsets):
        ends = buffer.ends()
        for pair in buffer.pairs():
            own.conf.set(_APP, self._app(pair))
            own.conf.set(_VERSION, str(ends[pair]))
            try:
                self._write(own, table, settings, buffer.rows(pair))
            finally:
                own.conf.unset(_APP)
                own.conf.unset(_VERSION)

    def append(self, own, table, frame, settings):
        writer = frame.write.format("delta").mode("append")
        for key, value in settings.write_props.items():
            writer = writer.option(key, value)
        writer.save(self._place(table))


