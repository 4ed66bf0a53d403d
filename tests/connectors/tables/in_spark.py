"""What test_tables.py has its own process do, whose Spark is the one that Iceberg and Delta have jars for: one JVM for all of it.

    python -m tests.connectors.tables.in_spark FOLDER [PART …]     writes what came of each part to FOLDER/results
"""

import decimal
import json
import os
import pathlib
import pickle
import sys
import threading
import time
import traceback

from connectors.storage.sink import LakeSinkTask
from connectors.tables.sink import TableSinkTask
from standalone import RetriableError, Schema, SchemaBuilder, SinkBatch, Struct, decimal_schema
from standalone.local_worker import LocalWorker
from standalone.pipeline.spark.job import alone
from tests.connectors.storage.lake import Lake as Files
from tests.connectors.storage.lake import batch
from tests.connectors.storage.records import EVERYTHING, value
from tests.connectors.storage.test_read_by_spark import logical
from tests.connectors.storage.test_read_by_spark import values as logical_values
from tests.servers.spark_of_tables import SETTINGS
from tests.suite.night import IS_NIGHT

PARTS = []
# Delta takes multiple seconds a commit: what it has in common with Iceberg is tried on it by night.
KINDS = ("iceberg", "delta") if IS_NIGHT else ("iceberg",)
EMBEDDED = ("Parquet", "Avro", "Orc") if IS_NIGHT else ("Avro",)  # on a metastore within the process; the others are tried on a real one
TOPIC = "t"
SOON = {"iceberg.control.commit.interval-ms": "1"}
GROWING = {"iceberg.tables.auto-create-enabled": "true", "iceberg.tables.evolve-schema-enabled": "true"}
KEY = SchemaBuilder("struct").field("id", Schema.INT64).build()


def part(call):
    PARTS.append(call)
    return call


class Context:
    connector = "tables"

    def __init__(self, holder, reports, loses=()):
        self._holder, self._reports, self._loses = holder, reports, list(loses)
        self.commits = 0

    def spark(self, work):
        done = alone(self._holder, work, threading.Event())
        self.commits += 1
        if self.commits in self._loses:
            raise RetriableError("the answer is lost, and the commit is done")
        return done

    def errant_record_reporter(self):
        return self

    def report(self, record, error):
        self._reports.append((record.offset, str(error)))

    def timeout(self, ms):
        pass

    def request_commit(self):
        pass


class Lake:
    """Tasks on the tables of one folder, by hand."""

    def __init__(self, holder, folder):
        self.holder, self.folder, self.reports = holder, folder, []

    def task(self, kind, table, loses=(), **props):
        props = {key.replace("__", "."): value for key, value in props.items()}
        props = {"table.format": kind, "delta.location": str(self.folder / "delta"), "iceberg.tables": table, **SOON, **GROWING, **props}
        props = {"iceberg.catalog.type": "hadoop", "iceberg.catalog.warehouse": str(self.folder / "iceberg"), **props}
        task = TableSinkTask()
        task.initialize(Context(self.holder, self.reports, loses))
        task.start({key.replace("_d_", "-"): value for key, value in props.items()})
        task.clock = 0.0
        task.now = lambda: task.clock
        return task

    def put(self, task, *batches):
        """And let the interval go by."""
        task.put(list(batches))
        task.clock += 1
        self.again(lambda: task.put([]))
        return task.pre_commit({each.origin: int(each.offsets[-1]) + 1 for each in batches})

    @staticmethod
    def again(call):
        for _ in range(3):
            try:
                return call()
            except RetriableError:
                continue
        raise AssertionError("it was never done")

    def sql(self, text):
        def asked(session):
            own = session.newSession()
            own.conf.set("spark.sql.catalog.iceberg", "org.apache.iceberg.spark.SparkCatalog")
            own.conf.set("spark.sql.catalog.iceberg.type", "hadoop")
            own.conf.set("spark.sql.catalog.iceberg.warehouse", str(self.folder / "iceberg"))
            return own.sql(text).toArrow().to_pylist(maps_as_pydicts="strict")

        return alone(self.holder, asked)

    def rows(self, kind, table, columns="*", by="id"):
        name = f"iceberg.{table}" if kind == "iceberg" else f"delta.`{self.folder}/delta/{table.replace('.', '/')}`"
        return self.sql(f"SELECT {columns} FROM {name} ORDER BY {by}")


def objects(*values, first=0, **more):
    return batch(list(values), first=first, **more)


def keyed(first, *pairs):
    """Records of (id, value or None)."""
    keys = [Struct(KEY, {"id": key}) for key, _ in pairs]
    made = batch([each for _, each in pairs], first=first)
    return SinkBatch(len(pairs), TOPIC, made.value, None, partition=0, offsets=made.offsets, key=keys, key_schema=KEY)


@part
def all_types(lake):
    told = {}
    for kind in KINDS:
        by = "country" if kind == "delta" else "day(at), country"
        task = lake.task(kind, "db.types", **{"iceberg.tables.default-partition-by": by})
        lake.put(task, batch([value(number) for number in range(12)], EVERYTHING))
        told[kind] = lake.rows(kind, "db.types")
    return told


@part
def once(lake):
    """A new task is given what the last one wrote, and more; an answer is lost; two partitions."""
    told = {}
    for kind in ("iceberg", "delta"):
        records = [{"id": number, "name": f"n{number}"} for number in range(20)]
        others = objects({"id": 100}, {"id": 101}, partition=1)
        first = lake.put(lake.task(kind, "db.once"), objects(*records[:10]), others)
        task = lake.task(kind, "db.once", loses=[1])
        second = lake.put(task, objects(*records[:15]), others)
        third = lake.put(task, objects(*records[:20]))
        told[kind] = [row["id"] for row in lake.rows(kind, "db.once")], first, second, third
    told["property"] = lake.sql("SELECT summary['kafka.connect.offsets.tables'] AS said FROM iceberg.db.once.snapshots ORDER BY committed_at")
    return told


@part
def evolution(lake):
    told = {}
    for kind in KINDS:
        task = lake.task(kind, "db.grows")
        lake.put(task, objects({"id": 1, "in": {"a": 1}}))
        lake.put(task, objects({"id": 2, "new": "x", "in": {"a": 2, "b": True}}, {"id": 3, "more": 1.5}, first=1))
        lake.put(lake.task(kind, "db.grows", **{"iceberg.tables.evolve-schema-enabled": "false"}), objects({"id": 4, "unknown": 1}, first=3))
        told[kind] = lake.rows(kind, "db.grows")
    narrow = SchemaBuilder("struct").field("id", Schema.INT32).field("n", Schema.OPTIONAL_INT32).build()
    wide = SchemaBuilder("struct").field("id", Schema.INT32).field("n", Schema.OPTIONAL_INT64).build()
    task = lake.task("iceberg", "db.widens")
    lake.put(task, batch([Struct(narrow, {"id": 1, "n": 7})], narrow))
    lake.put(task, batch([Struct(wide, {"id": 2, "n": 1 << 40})], wide, first=1))
    told["widened"] = lake.rows("iceberg", "db.widens")
    try:
        lake.put(task, objects({"id": 3, "n": "no number"}, first=2))
    except Exception as error:
        told["refused"] = str(error)
    return told


@part
def upserts(lake):
    told = {}
    props = {"iceberg.tables.upsert-mode-enabled": "true", "iceberg.tables.default-id-columns": "id"}
    for kind in KINDS:
        batches = [
            keyed(0, (1, {"id": 1, "v": "a"}), (2, {"id": 2, "v": "b"}), (1, {"id": 1, "v": "c"})),
            keyed(3, (2, None), (3, {"id": 3, "v": "d"}), (3, None), (4, {"id": 4, "v": "e"}), (9, None), (2, {"id": 2, "v": "f"}), (4, None)),
        ]
        lake.put(lake.task(kind, "db.upserts", **props), batches[0])
        before = lake.rows(kind, "db.upserts", "id, v")
        lake.put(lake.task(kind, "db.upserts", **props), *batches)
        told[kind] = before, lake.rows(kind, "db.upserts", "id, v")
    return told


@part
def refusals(lake):
    told = {}
    for name, props in {"missing": {"iceberg.tables.auto-create-enabled": "false"}}.items():
        try:
            lake.put(lake.task("iceberg", "db.none", **props), objects({"id": 1}))
        except Exception as error:
            told[name] = str(error)
    task = lake.task("iceberg", "db.none")
    task._store.classes = "org.example.NotThere"
    try:
        lake.put(task, objects({"id": 1}))
    except Exception as error:
        told["jar"] = str(error)
    return told


@part
def hive(lake):
    """Files of a lake as tables of an embedded metastore; the second task finds what the first has left undone."""
    told = {}
    folder = lake.folder / "hive"
    (folder / "conf").mkdir(parents=True)
    (folder / "conf" / "hive-site.xml").write_text(
        "<configuration><property><name>javax.jdo.option.ConnectionURL</name>"
        f"<value>jdbc:derby:;databaseName={folder}/metastore;create=true</value></property></configuration>"
    )
    remote = os.environ.get("HIVE_METASTORE")
    for format, place in [*((each, None) for each in EMBEDDED), *((each, remote) for each in ("Parquet", "Orc") if remote)]:
        told_as = f"remote_{format}" if place else format
        props = {
            "store.url": folder.as_uri(), "flush.size": "3", "format.class": format, "hive.integration": "true", "hive.conf.dir": str(folder / "conf"),
            "hive.table.name": f"{told_as}_${{topic}}", "topics.dir": told_as, "logs.dir": f"{told_as}-logs",
            "partitioner.class": "Field", "partition.field.name": "country",
        }  # fmt: skip
        if place:
            props |= {"hive.conf.dir": "", "hive.metastore.uris": place}
        schemas = [SchemaBuilder("struct").field("id", Schema.INT64).field("country", Schema.STRING).field("price", decimal_schema(2)).build()]
        schemas.append(
            SchemaBuilder("struct").field("id", Schema.INT64).field("country", Schema.STRING).field("price", decimal_schema(2))
            .field("more", SchemaBuilder.array(Schema.OPTIONAL_INT32).optional().build()).build()
        )  # fmt: skip
        first = [Struct(schemas[0], {"id": number, "country": land, "price": decimal.Decimal("1.50")}) for number, land in enumerate(("de", "fr", "de"))]
        second = [Struct(schemas[1], {"id": number, "country": "a:b", "price": decimal.Decimal("2.50"), "more": [1]}) for number in (3, 4, 5)]
        task = _file_task(lake, {**props, "hive.integration": "false"})
        task.put([batch(first, schemas[0])])  # as if it had been killed after its commit
        task.stop()
        task = _file_task(lake, props)
        task.put([])
        before = task.hive._client.tableExists("default", f"{told_as}_t".lower())
        task.put([batch(second, schemas[1], first=3)])
        client, name = task.hive._client, f"{told_as}_t".lower()
        table = client.getTable("default", name)
        partitions = {each.getValues()[0]: each.getSd().getLocation() for each in client.listPartitions("default", name, -1)}
        told[told_as] = before, [(each.getName(), each.getType()) for each in client.getSchema("default", name)], partitions, table.getTableType()
        task.put([batch(second, schemas[1], first=6)])
        told[told_as] += (client.listPartitions("default", name, -1).size(),)
        task.stop()
        if place:
            told[f"read_{format}"] = lake.sql(f"SELECT id, price, more, country FROM spark_catalog.default.{name} ORDER BY id, country")
    told["url"] = folder.as_uri()
    return told


@part
def files_of_avro(lake):
    """Spark's package spark-avro reads what LakeSink wrote. It refuses a precision above 38; a Decimal without one gets Java's 64."""
    schema = logical(lambda scale, **more: decimal_schema(scale, **more).with_(parameters={"scale": str(scale), "connect.decimal.precision": "38"}))
    structs = list(logical_values("Avro", schema))
    files = Files(lake.folder / "avro", {"format.class": "Avro", "flush.size": len(structs), "avro.codec": "snappy"}).start()
    files.put(batch(structs, schema))
    files.stop()

    def read(session):
        found = session.read.format("avro").load(str(lake.folder / "avro" / "topics" / "t")).drop("partition")
        return dict(found.dtypes), found.orderBy("id").toArrow().to_pylist(maps_as_pydicts="strict")

    return alone(lake.holder, read)


def _file_task(lake, props):
    task = LakeSinkTask()
    task.initialize(FileContext(lake.holder))
    task.start(props)
    task.open([(TOPIC, 0)])
    return task


class FileContext(Context):
    def __init__(self, holder):
        super().__init__(holder, [])

    def offset(self, offsets):
        pass


def in_a_worker(worker, folder, lake):
    """The whole way: topics by name, JSON, offsets of the group."""
    props = {
        "connector.class": "TableSink", "tasks.max": "2", "topics": "shop-orders,shop-bills", "table.name.format": "shop.${topic}",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter", "value.converter.schemas.enable": "false",
        "iceberg.catalog.type": "hadoop", "iceberg.catalog.warehouse": str(folder / "iceberg"), "iceberg.control.commit.interval-ms": "300", **GROWING,
    }  # fmt: skip
    for topic in ("shop-orders", "shop-bills"):
        worker.send(topic, [json.dumps({"id": number, "of": topic}) for number in range(100)])
    worker.create("shop", props)
    for topic in ("shop-orders", "shop-bills"):
        worker.wait_committed("shop", topic, 120)
    return [lake.sql(f"SELECT count(*) AS n, count(DISTINCT id) AS ids, min(of) AS of FROM iceberg.shop.{each}") for each in ("shop_orders", "shop_bills")]


def main(folder, only=()):
    results = {}
    if metastore := os.environ.get("HIVE_METASTORE"):  # Spark reads Hive's tables by it
        SETTINGS.update({"spark.sql.catalogImplementation": "hive", "spark.hadoop.hive.metastore.uris": metastore})
    settings = {key.replace(".", "__"): value for key, value in SETTINGS.items()}
    with LocalWorker(folder, **settings) as worker:
        holder = worker.process.worker._session
        lake = Lake(holder, folder)
        for call in [*PARTS, in_a_worker]:
            if only and call.__name__ not in only:
                continue
            began = time.monotonic()
            try:
                results[call.__name__] = call(worker, folder, lake) if call is in_a_worker else call(lake)
            except Exception:
                results[call.__name__] = traceback.format_exc()
            print(f"{call.__name__}: {time.monotonic() - began:.1f} s", flush=True)
            (folder / "results").write_bytes(pickle.dumps(results))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), sys.argv[2:])
