"""Exactly once into a database: rows and offsets in one transaction, read back at the start; and at least once without."""

import json

import pytest

from standalone import ConnectError, RetriableError, Schema
from standalone.testing import LocalWorker, wait_for
from tests.connectors.jdbc.sinks import sinks, struct

JSON = "org.apache.kafka.connect.json.JsonConverter"
ITEM = struct(id=Schema.INT32)
ONCE = {"exactly.once": "true"}
PAIR = ("t", 0)


@pytest.fixture
def start(database):
    with sinks(database) as start:
        yield start


def put(sink, *offsets):
    sink.put(*[sink.record(ITEM, {"id": offset}, offset=offset) for offset in offsets])


def stored(database):
    return database.rows("SELECT connector, topic, part, next_offset FROM connect_sink_offsets")


def test_a_task_goes_on_behind_what_is_stored_with_the_rows(database, start):
    sink = start(**ONCE)
    sink.task.open([PAIR])
    assert sink.context.wound == {}
    put(sink, 0, 1, 2)
    put(sink, 3, 4)
    assert stored(database) == [("tested", "t", 0, 5)]
    sink = start(**ONCE)
    sink.task.open([PAIR])
    assert sink.context.wound == {PAIR: 5}
    put(sink, 3, 4, 5)  # what is below is in the database
    assert sorted(database.rows("SELECT id FROM t")) == [(each,) for each in range(6)]


def test_a_task_that_has_been_replaced_writes_nothing(database, start):
    old, new = start(**ONCE), start(**ONCE)
    for sink in (old, new):
        sink.task.open([PAIR])
    put(new, 0, 1)
    put(new, 2)
    with pytest.raises(ConnectError):
        put(old, 0, 1)
    assert sorted(database.rows("SELECT id FROM t")) == [(0,), (1,), (2,)] and stored(database) == [("tested", "t", 0, 3)]


def test_rows_that_are_refused_move_the_offset_with_the_others(database, start):
    database.run("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    sink = start(reports=True, **ONCE)
    sink.task.open([PAIR])
    sink.put(*[sink.record(ITEM, {"id": number}, offset=offset) for offset, number in enumerate((1, 1, 2))])
    assert [offset for offset, _ in sink.context.reported] == [1] and stored(database)[0][3] == 3


def test_offsets_altered_by_rest_are_altered_in_the_database(tmp_path, database):
    message = json.dumps({"schema": {"type": "struct", "fields": [{"field": "id", "type": "int32"}]}, "payload": {"id": 1}})
    config = {"connector.class": "JdbcSink", "connection.url": database.url, "topics": "t", "auto.create": "true", "value.converter": JSON, **ONCE}
    with LocalWorker(tmp_path) as worker:
        worker.send("t", [message] * 3)
        worker.create("sink", config)
        worker.wait_committed("sink", "t")
        worker.herder.stop("sink")
        wait_for(lambda: worker.states("sink")[0] == "STOPPED")
        worker.herder.change_offsets("sink", [({"kafka_topic": "t", "kafka_partition": 0}, {"kafka_offset": 1})])
        assert stored(database) == [("sink", "t", 0, 1)]
        worker.herder.resume("sink")
        wait_for(lambda: len(database.rows("SELECT id FROM t")) == 5)
    assert stored(database) == [("sink", "t", 0, 3)]


def test_a_lost_connection_is_made_anew_and_the_records_asked_for_again(postgresql_database):
    database = postgresql_database
    with sinks(database) as start:
        sink = start(**ONCE)
        sink.task.open([PAIR])
        put(sink, 0, 1)
        database.cut_connections()
        with pytest.raises(RetriableError, match="retrying"):
            put(sink, 2)
        assert sink.context.waits == [1]
        put(sink, 2)
        assert sorted(database.rows("SELECT id FROM t")) == [(0,), (1,), (2,)] and stored(database)[0][3] == 3


def test_a_lock_that_is_held_is_waited_for_as_often_as_is_said(database, start):
    if database.kind == "sqlite":
        options, hold = {"connection.busy_timeout": "10"}, "BEGIN IMMEDIATE"
    elif database.kind == "postgresql":
        options, hold = {"connection.options": "-c lock_timeout=50"}, "LOCK TABLE t"
    else:
        options, hold = {"connection.sessionVariables": "innodb_lock_wait_timeout=1"}, "SELECT * FROM t FOR UPDATE"
    database.run("CREATE TABLE t (id INTEGER PRIMARY KEY)", "INSERT INTO t VALUES (-1)")
    sink = start(**{"max.retries": "1", "insert.mode": "upsert", "pk.mode": "record_value", **options})
    other = database.connect()
    cursor = other.cursor()
    cursor.execute(hold)
    if database.kind == "mariadb":
        cursor.fetchall()
    with pytest.raises(RetriableError):
        put(sink, -1, 1)
    with pytest.raises(ConnectError, match="max.retries=1"):
        put(sink, -1, 1)
    other.rollback()
    other.close()
    put(sink, -1, 1)
    assert sorted(database.rows("SELECT id FROM t")) == [(-1,), (1,)]
