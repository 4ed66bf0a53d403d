"""HdfsSinkConnector: write topics to HDFS files, exactly-once: LakeSink with Confluent's keys and defaults."""

from connectors.storage import keys
from connectors.storage.sink import LakeSinkTask, refusals
from standalone import ConfigDef, SinkConnector


class HdfsSinkConnector(SinkConnector):
    """Write topics to HDFS files: Avro, Parquet, ORC, JSON or text.

    store.url=hdfs://namenode:8020   flush.size=100000   format.class=io.confluent.connect.hdfs.parquet.ParquetFormat
    """

    java_name = "io.confluent.connect.hdfs.HdfsSinkConnector"
    config_def = ConfigDef(*keys.HDFS, *keys.STORAGE, *keys.CONNECTOR, *keys.SCHEMA, *keys.PARTITIONER, *keys.HADOOP, *keys.HIVE)

    def validate(self, config):
        return refusals(self.config_def, config)

    def task_configs(self, max_tasks):
        return [dict(self.config) for _ in range(max_tasks)]  # tasks share the topics' partitions


class HdfsSinkTask(LakeSinkTask):
    config_def = HdfsSinkConnector.config_def
    label = "HdfsSink"


HdfsSinkConnector.task_class = HdfsSinkTask
