"""JdbcSink against real databases: modes, keys, tables made and changed, bad rows, and what it says where it cannot continue."""

import decimal

import pytest

from standalone import ConnectError, Instant, Schema, decimal_schema, timestamp_schema
from standalone.data.batch import SinkBatch
from standalone.testing import LocalWorker
from tests.connectors.jdbc.sinks import sinks, struct

JSON = "org.apache.kafka.connect.json.JsonConverter"
ITEM = struct(id=Schema.INT32, name=Schema.OPTIONAL_STRING)
UPSERT = {"insert.mode": "upsert", "pk.mode": "record_value", "pk.fields": "id"}
DELETE = {"insert.mode": "upsert", "pk.mode": "record_key", "pk.fields": "id", "delete.enabled": "true"}


@pytest.fixture
def start(database):
    with sinks(database) as start:
        yield start


def items(*pairs):
    return [{"id": number, "name": name} for number, name in pairs]


def test_a_worker_writes_records_to_a_table_it_makes(tmp_path, database):
    schema = '{"type":"struct","fields":[{"field":"id","type":"int32"},{"field":"name","type":"string","optional":true}]}'
    messages = [
        '{"schema":%s,"payload":{"id":%d,"name":%s}}' % (schema, number, name) for number, name in ((1, '"one"'), (2, "null"), (3, '"a,\\"b\\"\\n"'))
    ]
    with LocalWorker(tmp_path) as worker:
        worker.run_sink({
            "connector.class": "JdbcSink", "connection.url": database.url, "topics": "items", "auto.create": "true", "value.converter": JSON,
            "table.name.format": "kafka_${topic}",
        }, messages)  # fmt: skip
    assert database.rows("SELECT id, name FROM kafka_items ORDER BY id") == [(1, "one"), (2, None), (3, 'a,"b"\n')]


def prepared(sink, *values):
    (batch,) = SinkBatch.runs([sink.record(ITEM, value) for value in values])
    sink.prepare(batch)
    return batch


def test_a_prepared_batch_is_not_converted_again(database, start, monkeypatch):
    sink = start()
    sink.put_values(ITEM, *items((1, "one")))
    batch = prepared(sink, *items((2, "two")))
    monkeypatch.setattr(sink.task._dialect, "prepared", lambda *_: pytest.fail("converted again"))
    sink.task.put([batch])
    assert database.rows("SELECT id, name FROM t ORDER BY id") == [(1, "one"), (2, "two")]


def test_a_batch_that_was_prepared_before_its_table_changed_is_converted_again(database, start):
    sink = start(**{"auto.evolve": "true"})
    sink.put_values(ITEM, *items((1, "one")))
    batch = prepared(sink, *items((2, "two")))
    (before,) = batch.prepared.by_target.values()
    assert before.is_current()
    sink.put_values(struct(id=Schema.INT32, more=Schema.OPTIONAL_STRING), {"id": 3, "more": "x"})
    assert not before.is_current()
    sink.task.put([batch])
    assert database.rows("SELECT id, name, more FROM t ORDER BY id") == [(1, "one", None), (2, "two", None), (3, None, "x")]


def test_upsert_keeps_the_last_of_each_key(database, start):
    sink = start(**UPSERT)
    sink.put_values(ITEM, *items((1, "a"), (2, "b"), (1, "c")))
    sink.put_values(ITEM, *items((2, "B"), (3, "")))
    assert database.rows("SELECT id, name FROM t ORDER BY id") == [(1, "c"), (2, "B"), (3, "")]


def test_upsert_leaves_other_columns_as_they_are(database, start):
    database.run("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, mine TEXT)", "INSERT INTO t VALUES (1, 'a', 'kept')")
    start(**UPSERT).put_values(ITEM, *items((1, "b")))
    assert database.rows("SELECT * FROM t") == [(1, "b", "kept")]


def test_update_changes_only_rows_that_there_are(database, start):
    database.run("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT)", "INSERT INTO t VALUES (1, 'a')")
    start(**{**UPSERT, "insert.mode": "update"}).put_values(ITEM, *items((1, "b"), (2, "x"), (1, "c")))
    assert database.rows("SELECT * FROM t") == [(1, "c")]


def test_a_record_without_a_value_deletes_in_its_order(database, start):
    sink = start(**DELETE)
    values = [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}, None, {"id": 3, "name": "c"}, None, {"id": 3, "name": "again"}]
    sink.put_values(ITEM, *values, keys=[1, 2, 1, 3, 3, 3], key_schema=Schema.INT32)
    assert database.rows("SELECT id, name FROM t ORDER BY id") == [(2, "b"), (3, "again")]
    sink.put_values(ITEM, None, keys=[99], key_schema=Schema.INT32)


def test_a_key_of_topic_partition_and_offset(database, start):
    sink = start(**{"pk.mode": "kafka"})
    sink.put_values(ITEM, *items((1, "a"), (2, "b")))
    assert database.rows("SELECT __connect_topic, __connect_partition, __connect_offset, id FROM t ORDER BY 3") == [("t", 0, 0, 1), ("t", 0, 1, 2)]


def test_fields_are_chosen_and_keys_always_written(database, start):
    schema = struct(a=Schema.INT32, b=Schema.STRING, c=Schema.STRING)
    start(**{**UPSERT, "pk.fields": "a", "fields.whitelist": "c"}).put_values(schema, {"a": 1, "b": "left", "c": "taken"})
    assert database.rows("SELECT * FROM t") == [(1, "taken")]


def test_a_null_becomes_its_default_unless_it_is_not_to(database, start):
    schema = struct(id=Schema.INT32, name=Schema.OPTIONAL_STRING.with_(default="none"))
    start().put_values(schema, {"id": 1, "name": None})
    start(**{"replace.null.with.default": "false"}).put_values(schema, {"id": 2, "name": None})
    assert database.rows("SELECT id, name FROM t ORDER BY id") == [(1, "none"), (2, None)]


def test_columns_are_added_as_records_get_them(database, start):
    sink = start(**{"auto.evolve": "true"})
    sink.put_values(ITEM, *items((1, "a")))
    wider = struct(id=Schema.INT32, name=Schema.OPTIONAL_STRING, price=decimal_schema(2, optional=True), at=timestamp_schema(optional=True))
    sink.put_values(wider, {"id": 2, "name": "b", "price": decimal.Decimal("1.50"), "at": Instant(1577836800123)})
    sink.put_values(ITEM, *items((3, "c")))
    assert [(row[0], row[2] and float(row[2])) for row in database.rows("SELECT * FROM t ORDER BY id")] == [(1, None), (2, 1.5), (3, None)]


def test_a_column_added_by_somebody_else_is_noticed(database, start):
    sink = start()
    sink.put_values(ITEM, *items((1, "a")))
    database.run("ALTER TABLE t ADD COLUMN more TEXT")
    sink.put_values(struct(id=Schema.INT32, name=Schema.OPTIONAL_STRING, more=Schema.STRING), {"id": 2, "name": "b", "more": "m"})
    assert database.rows("SELECT * FROM t ORDER BY id") == [(1, "a", None), (2, "b", "m")]


def test_bad_rows_are_reported_one_by_one_and_the_rest_is_written(database, start):
    database.run("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT NOT NULL CHECK (length(name) < 4))")
    sink = start(reports=True)
    sink.put_values(ITEM, *items((1, "a"), (2, None), (3, "c"), (1, "twice"), (4, "long"), (5, "e"), (1, "two")))
    assert database.rows("SELECT id, name FROM t ORDER BY id") == [(1, "a"), (3, "c"), (5, "e")]
    assert [offset for offset, _ in sink.context.reported] == [1, 3, 4, 6]
    assert all("database" in said for _, said in sink.context.reported)


def test_without_a_reporter_a_bad_row_fails_the_task_and_nothing_is_written(database, start):
    database.run("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT NOT NULL)")
    sink = start()
    with pytest.raises(ConnectError, match="offset 1 of t-0 cannot be written"):
        sink.put_values(ITEM, *items((1, "a"), (2, None), (3, "c")))
    assert database.rows("SELECT * FROM t") == []


@pytest.mark.parametrize(
    "options, records, said",
    [
        pytest.param({}, [(None, {"a": 1})], "schemas.enable=true", id="no schema"),
        pytest.param({}, [(Schema.INT32, 1)], "HoistField", id="no struct"),
        pytest.param({}, [(None, None)], "delete.enabled", id="no value"),
        pytest.param({"pk.mode": "record_key"}, [(ITEM, {"id": 1})], "a key", id="no key"),
        pytest.param({"pk.mode": "record_value", "pk.fields": "nope"}, [(ITEM, {"id": 1})], "'nope'", id="no such field"),
        pytest.param({"auto.create": "false"}, [(ITEM, {"id": 1})], "auto.create", id="no table"),
        pytest.param({}, [(struct(inner=ITEM), None)], "flatten it", id="a struct in a struct"),
    ],
)
def test_what_cannot_be_written_is_said(database, start, options, records, said):
    sink = start(**options)
    schema, value = records[0]
    if said == "flatten it":
        from standalone import Struct

        value = {"inner": Struct(ITEM, {"id": 1})}
    with pytest.raises(ConnectError, match=said) as failure:
        sink.put(sink.record(schema, value) if isinstance(schema, Schema) and schema.type == "struct" else _plain(sink, schema, value))
    assert "not-looked-at" not in str(failure.value), "the password"


def _plain(sink, schema, value):
    from standalone import SinkRecord

    return SinkRecord("t", 0, 0, value=value, value_schema=schema)


def test_a_field_whose_type_has_changed_is_refused(postgresql_database):
    with sinks(postgresql_database) as start:
        sink = start(**{"auto.evolve": "true"})
        sink.put_values(struct(v=Schema.INT32), {"v": 1})
        with pytest.raises(ConnectError, match="type has changed"):
            sink.put_values(struct(v=Schema.STRING), {"v": "2"})


@pytest.mark.parametrize("before, behind, kind", [("INT32", "INT64", "int8"), ("INT64", "INT16", "int8"), ("FLOAT32", "FLOAT64", "float8")])
def test_a_column_is_widened_and_never_narrowed(postgresql_database, before, behind, kind):
    with sinks(postgresql_database) as start:
        sink = start(**{"auto.evolve": "true"})
        for number, name in enumerate((before, behind)):
            sink.put_values(struct(v=getattr(Schema, name)), {"v": number if "INT" in name else float(number)})
        sql = f"SELECT udt_name FROM information_schema.columns WHERE table_schema = '{postgresql_database.schema}' AND table_name = 't'"
        assert postgresql_database.rows(sql) == [(kind,)]
        assert postgresql_database.rows("SELECT v FROM t ORDER BY v") == [(0,), (1,)]
