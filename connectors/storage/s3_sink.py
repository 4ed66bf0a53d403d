"""S3SinkConnector: write topics to objects in S3 or compatible stores, exactly-once.

    s3.py          requests        s3_ledger.py   commits, and handling of existing objects
    beside.py      keys and headers
"""

from connectors.storage import keys
from connectors.storage.beside import Headers, Keys
from connectors.storage.formats import load
from connectors.storage.keys import FORMATS, class_key
from connectors.storage.names import safe_segment
from connectors.storage.partition_writer import PartitionWriter
from connectors.storage.rotation import Rotation
from connectors.storage.s3_ledger import S3Ledger
from connectors.storage.sink import LakeSinkTask
from standalone import ConfigDef, ConfigError, ConnectError, DataError, SinkConnector

_STORAGE = "io.confluent.connect.s3.storage.S3Storage"
_STORAGES = keys.Choice("storage.class", {"S3": _STORAGE, _STORAGE: _STORAGE}, None, "storage")
TEXT = {"compression": "s3.compression.type", "compression.level": "s3.compression.level"}


class S3SinkConnector(SinkConnector):
    """Write topics as objects: Avro, JSON, Parquet, bytes or text, with keys and headers in objects beside them if configured.

    s3.bucket.name=lake   s3.region=eu-central-1   format.class=io.confluent.connect.s3.format.parquet.ParquetFormat   flush.size=100000
    """

    java_name = "io.confluent.connect.s3.S3SinkConnector"
    config_def = ConfigDef(
        class_key("storage.class", keys.HIGH, f"Only {_STORAGE} is supported.", _STORAGES),
        class_key("format.class", keys.HIGH, "How objects are encoded.", FORMATS),
        *keys.STORAGE,
        *(option for option in keys.CONNECTOR if option.name != "shutdown.timeout.ms"),
        *keys.SCHEMA,
        *keys.PARQUET,
        *keys.PARTITIONER,
        *keys.S3,
    )

    def validate(self, config):
        try:
            parsed = self.config_def.parse(config)
        except ConfigError:
            return {}  # the definition reports errors
        errors = keys.refusals(parsed)
        if parsed["behavior.on.null.values"].lower() == "write" and not parsed["store.kafka.keys"]:
            errors["behavior.on.null.values"] = "write needs store.kafka.keys=true: a record with a null value has nothing else to write"
        for pair in parsed["s3.object.tagging.key.value.pairs"]:
            if ":" not in pair:
                errors["s3.object.tagging.key.value.pairs"] = f"'{pair}' is not of the form name:value"
        try:
            import boto3  # noqa: F401
        except ImportError:
            errors["s3.bucket.name"] = "S3 needs the package boto3: pip install connect-standalone[s3]"
        return errors

    def task_configs(self, max_tasks):
        return [dict(self.config) for _ in range(max_tasks)]


class S3SinkTask(LakeSinkTask):
    config_def = S3SinkConnector.config_def
    label = "S3Sink"

    def open_storage(self, config):
        super().open_storage(config)
        values = self.config_values
        self.files.must_be_there()
        settings = self._format_settings(values)
        sides = [
            side(load(FORMATS.find(values[f"{name}.format.class"]))(settings))
            for name, side in (("keys", Keys), ("headers", Headers))
            if values[f"store.kafka.{name}"]
        ]
        self._parts.sides = sides
        self._parts.null_value, self._parts.writes_nulls = self._null_value, False
        if values["s3.schema.partition.affix.type"].upper() != "NONE":
            self._parts.partitioner = WithSchemaName(self._parts.partitioner, values)
        if values["behavior.on.null.values"].lower() == "write":
            self._parts.tombstones = values["tombstone.encoded.partition"]

    def open_store(self, values):
        from connectors.storage.s3 import S3Store

        return S3Store(values)

    def writer_of(self, origin):
        values = self.config_values
        ledger = S3Ledger(
            *(self.files, self._names, *origin), topics_dir=values["topics.dir"], delimiter=values["directory.delim"],
            is_conditional=values["enable.conditional.writes"], run=self.run,
        )  # fmt: skip
        rotation = Rotation(
            *(values["flush.size"], values["rotate.interval.ms"], values["rotate.schedule.interval.ms"], self._zone, self._parts.extractor.by_clock),
            values["rotate.file.on.partition.change"],
        )
        return PartitionWriter(self._parts, ledger, rotation, lambda: self.spools, self.report)

    def _null_value(self, record, report):
        if self.config_values["behavior.on.null.values"].lower() == "fail":
            raise ConnectError(
                f"The value of the record at offset {record.offset} of {record.topic}-{record.partition} is null, and behavior.on.null.values=fail. "
                "Set it to ignore, or drop such records with the transform Filter."
            )
        if self.config_values["report.null.values.to.dlq"] and self._reporter is not None:
            self._reporter.report(record, DataError("The value is null, and behavior.on.null.values=ignore."))

    @staticmethod
    def _format_settings(values):
        return LakeSinkTask._format_settings(values) | {name: values[key] for name, key in TEXT.items()} | {"codec.in.name": True}


class WithSchemaName:
    """Another partitioner's folders, with the value's schema name before or after them."""

    def __init__(self, inner, values):
        self._inner, self.by_time = inner, inner.by_time
        self._is_prefix = values["s3.schema.partition.affix.type"].upper() == "PREFIX"
        self._delimiter = values["directory.delim"]

    def encode(self, batch, times=None):
        numbers, folders, bad = self._inner.encode(batch, times)
        schema = batch.value_schema
        name = f"schema_name={safe_segment(schema.name if schema is not None and schema.name else 'null')}"
        pairs = ((name, folder) if self._is_prefix else (folder, name) for folder in folders)
        return numbers, [self._delimiter.join(pair) for pair in pairs], bad


S3SinkConnector.task_class = S3SinkTask
