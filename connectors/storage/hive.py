"""Hive tables for a sink's files: external, partitioned by folder, one per topic.

A topic's first files create its table; a folder becomes a partition once it has files, and new fields become columns. On first use all existing
folders are added, which repairs an interrupted update. Hive's client runs in Spark's Java process: HiveMetaStoreClient 2.3, which works with
metastores up to 3.1. Without hive.metastore.uris (or a hive-site.xml that sets it) the metastore is an embedded Derby database in the
worker's folder.
"""

import json
import re

from connectors.storage.lake_types import DATE, DECIMAL, MOST_DIGITS, TIME, TIMESTAMP, digits_of
from connectors.storage.names import joined
from standalone import ConnectError, DataError, RetriableError, SchemaBuilder

_PACKAGE = "org.apache.hadoop.hive."
_PARQUET, _ORC, _AVRO = f"{_PACKAGE}ql.io.parquet.", f"{_PACKAGE}ql.io.orc.", f"{_PACKAGE}ql.io.avro.AvroContainer"
KINDS = {  # format -> (SerDe, input format, output format)
    "Parquet": (f"{_PARQUET}serde.ParquetHiveSerDe", f"{_PARQUET}MapredParquetInputFormat", f"{_PARQUET}MapredParquetOutputFormat"),
    "Orc": (f"{_ORC}OrcSerde", f"{_ORC}OrcInputFormat", f"{_ORC}OrcOutputFormat"),
    "Avro": (f"{_PACKAGE}serde2.avro.AvroSerDe", f"{_AVRO}InputFormat", f"{_AVRO}OutputFormat"),
}
_TYPES = {
    "int8": "tinyint", "int16": "smallint", "int32": "int", "int64": "bigint", "float32": "float", "float64": "double", "boolean": "boolean",
    "string": "string", "bytes": "binary",
}  # fmt: skip
_WIDER = ("tinyint", "smallint", "int", "bigint")
_AGAIN = ("TTransportException", "ConnectException", "Could not connect to meta store", "SocketTimeout", "SocketException")


def hive_type(schema, format="Parquet"):
    """Return a column's Hive type. In Avro, small integers are int."""
    if schema.name == DECIMAL:
        return "decimal({},{})".format(*digits_of(schema))
    if schema.name in (DATE, TIMESTAMP, TIME):
        return {DATE: "date", TIMESTAMP: "timestamp", TIME: "int"}[schema.name]
    if schema.type == "struct":
        return f"struct<{','.join(f'{field.name}:{hive_type(field.schema, format)}' for field in schema.fields)}>"
    if schema.type == "array":
        return f"array<{hive_type(schema.value_schema, format)}>"
    if schema.type == "map":
        return f"map<{hive_type(schema.key_schema, format)},{hive_type(schema.value_schema, format)}>"
    kind = _TYPES[schema.type]
    return "int" if format == "Avro" and kind in ("tinyint", "smallint") else kind


def columns_of(schema, format, without=()):
    """Return [(name, type)]: Hive's names are lower case, and partition columns are not in the files."""
    if schema is None or schema.type != "struct":
        raise DataError("A Hive table needs structs, but the values are not: give them a schema, or set hive.integration=false.")
    return [(field.name.lower(), hive_type(field.schema, format)) for field in schema.fields if field.name.lower() not in without]


def avro_of_hive(text):
    """Return an Avro schema that Hive accepts: it rejects decimals of more than 38 digits, such as those of unknown precision."""

    def seen(part):
        if isinstance(part, list):
            return [seen(each) for each in part]
        if not isinstance(part, dict):
            return part
        made = {key: seen(each) for key, each in part.items() if key != "default"} | ({"default": part["default"]} if "default" in part else {})
        if made.get("logicalType") == "decimal":
            made["precision"] = min(made.get("precision", MOST_DIGITS), MOST_DIGITS)
        return made

    return json.dumps(seen(json.loads(text)))


def without(schema, names):
    """Return a struct's schema without these fields, which readers then ignore."""
    if not any(field.name.lower() in names for field in schema.fields):
        return schema
    builder = SchemaBuilder("struct").name(schema.name)
    for field in schema.fields:
        if field.name.lower() not in names:
            builder.field(field.name, field.schema)
    return builder.build()


def values_of(folder):
    """Return {column: value} of a folder's name: country=de/day=03."""
    found = {}
    for part in folder.split("/") if folder else ():
        name, equals, value = part.partition("=")
        if not equals:
            raise ConnectError(
                f"The folder '{folder}' is not of the form name=value and cannot be a partition of a Hive table: set path.format accordingly "
                "(path.format='year'=YYYY/'month'=MM), or set hive.integration=false."
            )
        found[name.lower()] = value
    return found


def table_name(pattern, topic):
    return re.sub(r"\W", "_", pattern.replace("${topic}", topic)).lower()


def changed_columns(existing, wanted):
    """Return the table's columns with new ones appended and numbers widened; None if nothing changes."""
    made, news = list(existing), dict(wanted)
    for at, (name, kind) in enumerate(existing):
        new = news.pop(name, kind)
        is_wider = kind in _WIDER and new in _WIDER and _WIDER.index(new) > _WIDER.index(kind)
        if is_wider or (kind, new) == ("float", "double") or new != kind and new.startswith("struct<") and kind.startswith("struct<"):
            made[at] = name, new
    made += news.items()
    return made if made != list(existing) else None


class Hive:
    """Updates Hive tables for a sink's task. `place_of(topic)` returns (the folder, its URL); `files` walks it;
    `avro_text(schema)` is the Avro schema for Avro files, else None."""

    def __init__(self, config, format, files, place_of, spark, avro_text=None):
        self._config, self._format, self._files, self._place_of, self._spark = config, format, files, place_of, spark
        self._avro_text = avro_text
        self._pending = {}  # topic -> [schema or None, {folder}]
        self._complete = set()  # topics whose existing folders have been added
        self._of = self._client = None

    def look_at(self, topic):
        """Add folders that an earlier run of the task did not add."""
        self._pending.setdefault(topic, [None, set()])

    def stored(self, topic, schema, folders):
        """Note that files of that schema are in place in these folders of the topic."""
        pending = self._pending.setdefault(topic, [None, set()])
        pending[0] = schema if schema is not None else pending[0]
        pending[1].update(folders)

    def tell(self):
        """Update the tables. The next call repeats what fails."""
        if self._pending:
            self._spark(self._tell)

    def close(self):
        """Close the client; one of an ended Java process is gone with it."""
        client, self._of, self._client = self._client, None, None
        if client is not None:
            try:
                client.close()
            except Exception:  # py4j's errors for an ended process
                pass

    # --- Within a Spark job ---

    def _tell(self, session):
        try:
            client = self._connected(session)
            for topic in list(self._pending):
                self._start_session(session._jvm, client, topic, *self._pending[topic])
                del self._pending[topic]
        except ConnectError:
            raise
        except Exception as error:
            text = " ".join(line for line in str(error).splitlines() if not line.startswith("\t"))[:1000]
            self.close()
            if any(word in text for word in _AGAIN):
                raise RetriableError(f"Hive's metastore does not respond, retrying: {text}. No file is lost.") from error
            raise ConnectError(f"Hive's metastore reports an error: {text}. All files are in place. Fix the cause, then restart the task.") from error

    def _connected(self, session):
        if self._of is not session:
            jvm, given = session._jvm, self._config
            conf = jvm.org.apache.hadoop.hive.conf.HiveConf()
            if given["hive.conf.dir"]:
                conf.addResource(jvm.org.apache.hadoop.fs.Path(f"file://{given['hive.conf.dir'].rstrip('/')}/hive-site.xml"))
            if given["hive.metastore.uris"]:
                conf.set("hive.metastore.uris", given["hive.metastore.uris"])
            if not conf.get("hive.metastore.uris"):
                conf.set("datanucleus.schema.autoCreateAll", "true")
                conf.set("hive.metastore.schema.verification", "false")
            if given["hdfs.authentication.kerberos"]:
                conf.set("hive.metastore.sasl.enabled", "true")
            self._client = jvm.org.apache.hadoop.hive.metastore.HiveMetaStoreClient(conf)
            self._of = session
        return self._client

    def _start_session(self, jvm, client, topic, schema, folders):
        place, url = self._place_of(topic)
        database, name = self._config["hive.database"], table_name(self._config["hive.table.name"], topic)
        if topic not in self._complete:
            folders = folders | {path.rpartition("/")[0] for path in self._files.walk(place)}
        by = values_of(next(iter(folders), ""))
        exists = client.tableExists(database, name)
        if schema is None and not exists:
            return  # the first commit creates it
        if not exists:
            self._create(jvm, client, database, name, schema, url, list(by))
        table = client.getTable(database, name)
        if schema is not None:
            self._widen(jvm, client, database, name, table, schema)
        self._add(jvm, client, database, name, table, url, folders)
        self._complete.add(topic)

    def _create(self, jvm, client, database, name, schema, url, by):
        api = jvm.org.apache.hadoop.hive.metastore.api
        serde, reads, writes = KINDS[self._format]
        storage = api.StorageDescriptor()
        storage.setCols(_fields(jvm, columns_of(schema, self._format, by)))
        storage.setLocation(url)
        storage.setInputFormat(reads)
        storage.setOutputFormat(writes)
        info = api.SerDeInfo()
        info.setSerializationLib(serde)
        info.setParameters(jvm.java.util.HashMap())
        storage.setSerdeInfo(info)
        table = api.Table()
        table.setDbName(database)
        table.setTableName(name)
        table.setTableType("EXTERNAL_TABLE")
        table.setSd(storage)
        table.setPartitionKeys(_fields(jvm, [(column, "string") for column in by]))
        parameters = jvm.java.util.HashMap()
        parameters.put("EXTERNAL", "TRUE")
        self._note_avro(parameters, schema, by)
        table.setParameters(parameters)
        try:
            client.createTable(table)
        except Exception as error:
            if "AlreadyExistsException" not in str(error):  # another task created it first
                raise

    def _widen(self, jvm, client, database, name, table, schema):
        by = [each.getName() for each in table.getPartitionKeys()]
        existing = [(each.getName(), each.getType()) for each in table.getSd().getCols()]
        wanted = changed_columns(existing, columns_of(schema, self._format, by))
        if wanted is not None:
            table.getSd().setCols(_fields(jvm, wanted))
            self._note_avro(table.getParameters(), schema, by)
            client.alter_table(database, name, table)

    def _note_avro(self, parameters, schema, by):
        if self._avro_text is not None:  # the SerDe uses the Avro schema, not the columns
            parameters.put("avro.schema.literal", avro_of_hive(self._avro_text(without(schema, by))))

    def _add(self, jvm, client, database, name, table, url, folders):
        """Add partitions; existing ones stay unchanged."""
        keys = [each.getName() for each in table.getPartitionKeys()]
        made = jvm.java.util.ArrayList()
        for folder in sorted(folders) if keys else ():
            values = values_of(folder)
            if list(values) != keys:
                by = ", ".join(keys)
                raise ConnectError(f"The table {database}.{name} is partitioned by {by}, unlike the folder '{folder}'. Use another table.")
            partition = jvm.org.apache.hadoop.hive.metastore.api.Partition()
            partition.setDbName(database)
            partition.setTableName(name)
            partition.setValues(_listed(jvm, values.values()))
            storage = table.getSd().deepCopy()
            storage.setLocation(joined(url, folder))
            partition.setSd(storage)
            partition.setParameters(jvm.java.util.HashMap())
            made.add(partition)
        if made.size():
            client.add_partitions(made, True, False)


def _fields(jvm, columns):
    return _listed(jvm, [jvm.org.apache.hadoop.hive.metastore.api.FieldSchema(name, kind, None) for name, kind in columns])


def _listed(jvm, items):
    made = jvm.java.util.ArrayList()
    for item in items:
        made.add(item)
    return made
