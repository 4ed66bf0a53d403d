"""Iceberg tables: each commit is a snapshot, whose properties record the next offsets."""

import json

from connectors.tables.keys import CATALOG, HADOOP, quoted
from connectors.tables.store import Tables

PROPERTY = "kafka.connect.offsets."
_IN_SESSION = "spark.sql.iceberg.snapshot-property."


class IcebergTables(Tables):
    label = "Iceberg"
    package = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
    classes = "org.apache.iceberg.spark.SparkCatalog"

    def __init__(self, config, originals, connector):
        super().__init__(config, originals, connector)
        self.catalog = config["iceberg.catalog"]
        self.property = PROPERTY + connector

    def configure(self, own):
        catalog = f"spark.sql.catalog.{self.catalog}"
        own.conf.set(catalog, "org.apache.iceberg.spark.SparkCatalog")
        own.conf.set(f"{catalog}.cache-enabled", "false")  # other writers change tables, too
        for key, value in self.originals.items():
            if key.startswith(CATALOG):
                name = key[len(CATALOG) :]
                own.conf.set(f"{catalog}.{name}", value)
            elif key.startswith(HADOOP):
                own.conf.set(f"{catalog}.hadoop.{key[len(HADOOP) :]}", value)
        for file in ("core-site.xml", "hdfs-site.xml"):
            if self.config["iceberg.hadoop-conf-dir"]:
                path = own._jvm.org.apache.hadoop.fs.Path(f"file://{self.config['iceberg.hadoop-conf-dir']}/{file}")
                own.sparkContext._jsc.hadoopConfiguration().addResource(path)

    def name(self, table):
        return quoted(f"{self.catalog}.{table}")

    def exists(self, own, table):
        return own.catalog.tableExists(self.name(table))

    def create(self, own, table, columns, parts, settings):
        database = table.rpartition(".")[0]
        own.sql(f"CREATE NAMESPACE IF NOT EXISTS {quoted(f'{self.catalog}.{database}')}")
        by = f" PARTITIONED BY ({', '.join(parts)})" if parts else ""
        own.sql(f"CREATE TABLE IF NOT EXISTS {self.name(table)} ({columns}) USING iceberg{by}{table_properties(settings.create_props)}")

    def offsets(self, own, table, pairs):
        return self._recorded_in(own, table)

    def _recorded_in(self, own, table):
        """Return {pair: next offset} of the newest snapshot with the property; each snapshot repeats the offsets of other partitions."""
        loaded = own._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(own._jsparkSession, self.name(table))
        snapshot = loaded.currentSnapshot()
        while snapshot is not None:
            text = snapshot.summary().get(self.property)
            if text is not None:
                return {(topic, int(partition)): offset for topic, each in json.loads(text).items() for partition, offset in each.items()}
            parent = snapshot.parentId()
            snapshot = None if parent is None else loaded.snapshot(parent)
        return {}

    def _write_all(self, own, table, settings, buffer, offsets):
        said = {}
        for (topic, partition), offset in {**offsets, **buffer.ends()}.items():
            said.setdefault(topic, {})[str(partition)] = offset
        key = _IN_SESSION + self.property
        own.conf.set(key, json.dumps(said, separators=(",", ":"), sort_keys=True))
        try:
            self._write(own, table, settings, buffer.rows())
        finally:
            own.conf.unset(key)

    def append(self, own, table, frame, settings):
        writer = frame.writeTo(self.name(table))
        for key, value in settings.write_props.items():
            writer = writer.option(key, value)
        writer.append()


def table_properties(props):
    if not props:
        return ""
    return f" TBLPROPERTIES ({', '.join(f'{_text(key)} = {_text(value)}' for key, value in props.items())})"


def _text(text):
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
