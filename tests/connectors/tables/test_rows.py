"""TableSink without Spark: where records go, which rows they are, what a table must be changed by, and what is told to the worker."""

import json

import numpy as np
import pyarrow as pa
import pytest
from pytest import param

from connectors.storage.hive import avro_of_hive, changed_columns, columns_of, table_name, values_of
from connectors.tables.columns import DELETES, NUMBER, changes, columns_in_sql, fitted, rows_of
from connectors.tables.keys import KEYS, partitions
from connectors.tables.routes import Routes
from connectors.tables.sink import TableSinkConnector, TableSinkTask
from standalone import ConnectError, DataError, RetriableError, Schema, SinkBatch
from tests.connectors.storage.lake import Context, batch
from tests.connectors.storage.records import EVERYTHING, value

BASE = {"iceberg.catalog.type": "hadoop", "iceberg.catalog.warehouse": "/lake"}


def routes(**props):
    props = {key.replace("__", ".").replace("_d_", "-"): text for key, text in props.items()}
    found = Routes(KEYS.parse(props), props).of(batch([{"kind": "Db.A"}, {"kind": "db.b"}, {"other": 1}, {"kind": "Db.A"}], topic="my-topic.x"))
    return {table: None if rows is None else rows.tolist() for table, rows in found}


@pytest.mark.parametrize(
    "props, expected",
    [
        param({"iceberg.tables": "db.a,db.b"}, {"db.a": None, "db.b": None}, id="all records go to all tables"),
        param({"table.name.format": "lake.${topic}"}, {"lake.my_topic_x": None}, id="a table of the topic's name"),
        param({"iceberg.tables.dynamic-enabled": "true", "iceberg.tables.route-field": "kind"}, {"db.a": [0, 3], "db.b": [1]}, id="a table that a field names"),
        param(
            {"iceberg.tables": "x.y,x.z", "iceberg.tables.route-field": "kind", "iceberg.table.x.y.route-regex": "Db.*", "iceberg.table.x.z.route-regex": ".*b.*"},
            {"x.y": [0, 3], "x.z": [0, 1, 3]}, id="tables whose patterns a field matches",
        ),
    ],
)  # fmt: skip
def test_records_find_their_tables(props, expected):
    assert routes(**props) == expected


@pytest.mark.parametrize(
    "props, key, text",
    [
        ({}, "iceberg.tables", "must name the tables"),
        ({"iceberg.tables": "orders"}, "iceberg.tables", "a database and a table"),
        ({"iceberg.tables": "a.b", "iceberg.tables.dynamic-enabled": "true"}, "iceberg.tables.route-field", "must be given"),
        ({"iceberg.tables": "a.b", "iceberg.tables.upsert-mode-enabled": "true"}, "iceberg.tables.default-id-columns", "distinguishes rows"),
        ({"iceberg.tables": "a.b", "iceberg.tables.default-partition-by": "week(x)"}, "iceberg.tables.default-partition-by", "not a partition"),
        ({"iceberg.tables": "a.b", "iceberg.table.a.b.partition-by": "bucket(x)"}, "iceberg.table.a.b.partition-by", "not a partition"),
        ({"iceberg.tables": "a.b", "iceberg.table.a.b.commit-branch": "audit"}, "iceberg.table.a.b.commit-branch", "main"),
        ({"iceberg.tables": "a.b", "iceberg.table.a.b.route-regex": "("}, "iceberg.table.a.b.route-regex", "not a pattern"),
        ({"iceberg.tables": "a.b", "table.format": "delta"}, "delta.location", "must be given"),
        ({"iceberg.tables": "a.b", "table.format": "delta", "delta.location": "/x", "iceberg.tables.default-partition-by": "day(x)"}, "iceberg.tables.default-partition-by", "by plain columns"),
    ],
)  # fmt: skip
def test_a_configuration_that_cannot_be_is_refused(props, key, text):
    assert text in TableSinkConnector().validate({**BASE, **props})[key]


def test_without_a_catalog_it_is_refused_and_with_one_it_is_not():
    assert "hadoop" in TableSinkConnector().validate({"iceberg.tables": "a.b"})["iceberg.catalog.type"]
    assert TableSinkConnector().validate({**BASE, "iceberg.tables": "a.b"}) == {}


def test_partitions_in_spark_s_words():
    assert partitions(["country", "day(at)", "years(a.b)", "bucket(id, 16)", "truncate(name,2)"]) == [
        "`country`", "days(`at`)", "years(`a`.`b`)", "bucket(16, `id`)", "truncate(2, `name`)",
    ]  # fmt: skip


def test_rows_have_the_columns_of_the_schema_all_of_which_may_be_null():
    rows, required, bad = rows_of(batch([value(number) for number in range(3)], EVERYTHING), 7, [], False)
    assert not bad and rows[NUMBER].to_pylist() == [7, 8, 9] and all(field.nullable for field in rows.schema)
    assert required == {"id", "i8", "i32", "f32", "flag", "clock", "at"}
    assert rows["price"].type == pa.decimal128(38, 2) and rows["at"].type == pa.timestamp("ms", "UTC")


def keyed(key, key_schema=Schema.INT64):
    return SinkBatch(2, "t", [{"id": 1}, None], None, partition=0, offsets=np.arange(2), key=key, key_schema=key_schema)


@pytest.mark.parametrize(
    "batch, ids, expected",
    [
        param(keyed([1, 5]), ["id"], [(1, False), (5, True)], id="a key that is a number"),
        param(keyed([{"id": 1}, {"id": 5}], None), ["id"], [(1, False), (5, True)], id="a key that is an object"),
        param(keyed([1, 5]), ["id", "b"], "has the id columns id, b", id="a key of fewer columns"),
        param(keyed([{"x": 1}, {"x": 5}], None), ["id"], "lacks the field id", id="a key of other columns"),
        param(keyed(None, None), ["id"], "but this one has no key", id="no key"),
    ],
)
def test_a_record_without_a_value_deletes_the_row_that_its_key_tells(batch, ids, expected):
    if isinstance(expected, str):
        with pytest.raises(DataError, match=expected):
            rows_of(batch, 0, ids, True)
        return
    rows, _, _ = rows_of(batch, 0, ids, True)
    assert list(zip(rows["id"].to_pylist(), rows[DELETES].to_pylist())) == expected


def spark(**fields):
    return {"type": "struct", "fields": [{"name": name, "type": kind} for name, kind in fields.items()]}


def test_what_a_table_lacks_becomes_columns_and_numbers_become_wider():
    existing = spark(id="integer", n="float", d="decimal(5,2)", s=spark(x="integer"), a={"type": "array", "elementType": spark(x="long")}, same="string")
    wanted = spark(
        id="long", n="double", d="decimal(9,2)", s=spark(x="long", y="string"), a={"type": "array", "elementType": spark(x="long", z="date")}, same="string",
        new={"type": "map", "keyType": "string", "valueType": "short"}, **{NUMBER: "long"},
    )  # fmt: skip
    assert changes(existing, wanted) == [
        "ALTER COLUMN `id` TYPE BIGINT", "ALTER COLUMN `n` TYPE DOUBLE", "ALTER COLUMN `d` TYPE DECIMAL(9,2)", "ALTER COLUMN `s`.`x` TYPE BIGINT",
        "ADD COLUMNS (`s`.`y` STRING)", "ADD COLUMNS (`a`.element.`z` DATE)", "ADD COLUMNS (`new` MAP<STRING, SMALLINT>)",
    ]  # fmt: skip
    assert changes(wanted, existing) == []
    assert columns_in_sql(spark(id="long", s=spark(x="integer")), {"id"}) == "`id` BIGINT NOT NULL, `s` STRUCT<`x`: INT>"


def test_rows_take_the_shape_of_the_table():
    existing = pa.table({"Id": pa.array([], pa.int64()), "name": pa.array([], pa.string())})
    rows = pa.table({"id": pa.array([1], pa.int32()), "more": [True]})
    assert fitted(rows, existing, evolves=True, ignores_case=True).to_pylist() == [{"Id": 1, "name": None, "more": True}]
    assert fitted(rows, existing, evolves=False, ignores_case=True).to_pylist() == [{"Id": 1, "name": None}]
    with pytest.raises(DataError, match="Old and new values do not fit"):
        fitted(pa.table({"name": [1]}), existing, evolves=True, ignores_case=False)


class Store:
    """A table in memory that remembers how far it came, as Iceberg and Delta do."""

    def __init__(self):
        self.rows, self.offsets, self.errors = [], {}, []

    def commit(self, session, table, settings, buffer):
        for pair, offset in self.offsets.items():
            buffer.drop(pair, offset)
        count = buffer.count
        if count:
            self.rows += buffer.rows()["id"].to_pylist()
            self.offsets.update(buffer.ends())
        if self.errors:
            raise self.errors.pop(0)
        return count


class Worker(Context):
    connector = "c"

    def spark(self, work):
        return work(None)

    def request_commit(self):
        pass


def task_on(store, reports=None, **props):
    task = TableSinkTask()
    task.initialize(Worker(reports))
    task.start({**BASE, "iceberg.tables": "db.t", "iceberg.control.commit.interval-ms": "1000", **props})
    task._store, task.clock = store, 0.0
    task.now = lambda: task.clock
    return task


def records(first, *ids):
    return batch([{"id": each} for each in ids], first=first)


def test_offsets_go_no_further_than_what_is_in_the_table():
    store = Store()
    task = task_on(store)
    task.put([records(0, 1, 2)])
    assert task.pre_commit({("t", 0): 2}) == {("t", 0): 0} and task.context.timeouts == [1000] and not store.rows
    task.clock = 1
    task.put([])
    assert task.pre_commit({("t", 0): 2}) == {("t", 0): 2} and store.rows == [1, 2] and task.metrics() == {"iceberg-commits-total": 1, "iceberg-rows-total": 2}
    task.put([batch([None], first=2)])
    assert task.pre_commit({("t", 0): 3}) == {("t", 0): 3}, "a record without a value is not a row, and nothing waits for it"


@pytest.mark.parametrize("is_done", [True, False])
def test_a_put_that_is_repeated_and_a_commit_that_is_in_doubt_write_nothing_twice(is_done):
    store = Store()
    task = task_on(store, **{"commit.max.bytes": "1"})
    store.errors = [RetriableError("lost")]
    for _ in range(2 if is_done else 1):
        try:
            task.put([records(0, 1, 2)])
        except RetriableError:
            continue
    if not is_done:
        task = task_on(store, **{"commit.max.bytes": "1"})  # a new one begins where the group stands
        task.put([records(0, 1, 2, 3)])
    assert store.rows == ([1, 2] if is_done else [1, 2, 3])


def test_partitions_that_are_given_up_leave_nothing_behind():
    store = Store()
    task = task_on(store)
    task.put([records(0, 1), batch([{"id": 9}], partition=1)])
    task.close([("t", 0)])
    task.clock = 1
    task.put([])
    assert store.rows == [9] and store.offsets == {("t", 1): 1}


def test_a_bad_record_is_reported_and_the_others_are_written():
    store, reports = Store(), []
    task = task_on(store, reports)
    task.put([batch([{"id": 1}, "no object", {"id": 2}])])
    task.clock = 1
    task.put([])
    assert store.rows == [1, 2] and [offset for offset, _ in reports] == [1]


def test_values_of_other_types_are_committed_apart():
    store = Store()
    task = task_on(store)
    task.put([records(0, 1)])
    task.put([records(1, "text")])
    assert store.rows == [1]


# --- Tables of Hive over files ---


def test_columns_and_partitions_of_hive():
    columns = dict(columns_of(EVERYTHING, "Parquet", {"country"}))
    assert "country" not in columns and columns["i8"] == "tinyint" and dict(columns_of(EVERYTHING, "Avro"))["i8"] == "int"
    assert [columns[name] for name in ("price", "day", "clock", "at", "tags", "sizes", "inner", "data")] == [
        "decimal(38,2)", "date", "int", "timestamp", "array<string>", "map<string,int>", "struct<x:int,y:string>", "binary",
    ]  # fmt: skip
    assert values_of("year=2024/Month=02") == {"year": "2024", "month": "02"} and values_of("") == {}
    assert table_name("lake_${topic}", "My-orders.v2") == "lake_my_orders_v2"
    with pytest.raises(ConnectError, match="is not of the form name=value"):
        values_of("2024/02")
    with pytest.raises(DataError, match="needs structs"):
        columns_of(Schema.STRING, "Parquet")


def test_hive_is_told_of_no_decimal_that_it_refuses():
    text = '{"type":"record","name":"r","fields":[{"name":"d","type":["null",{"type":"bytes","logicalType":"decimal","precision":64,"scale":2}],"default":null}]}'
    field = json.loads(avro_of_hive(text))["fields"][0]
    assert field["type"][1]["precision"] == 38 and field["default"] is None


@pytest.mark.parametrize(
    "wanted, expected",
    [
        param([("a", "int")], None, id="nothing new, one missing"),
        param([("c", "date"), ("a", "int")], [("a", "int"), ("b", "string"), ("c", "date")], id="a new one comes last"),
        param([("a", "bigint"), ("b", "int")], [("a", "bigint"), ("b", "string")], id="a number becomes wider, other types stay"),
    ],
)
def test_a_table_of_hive_grows(wanted, expected):
    assert changed_columns([("a", "int"), ("b", "string")], wanted) == expected


def test_hive_takes_files_of_columns_only():
    from connectors.storage.sink import LakeSinkConnector

    props = {"store.url": "/lake", "flush.size": "1", "hive.integration": "true"}
    assert "Parquet, Orc, Avro" in LakeSinkConnector().validate({**props, "format.class": "Json"})["hive.integration"]
    assert LakeSinkConnector().validate(props) == {}
