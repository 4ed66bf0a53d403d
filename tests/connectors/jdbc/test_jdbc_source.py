"""JdbcSource against real databases: modes, tables, offsets, types, and what it says where it cannot continue."""

import json

import pytest

from standalone.testing import LocalWorker, wait_for
from tests.connectors.jdbc.tasks import SourceDriver

JSON = "org.apache.kafka.connect.json.JsonConverter"


@pytest.fixture
def driver(database):
    """start(stored offsets, **options) -> a task that is polled by hand."""
    with SourceDriver(database) as driver:
        yield driver


def test_a_worker_publishes_rows_and_those_added_later(tmp_path, database):
    database.run(f"CREATE TABLE items (id {database.counting}, name TEXT NOT NULL)", "INSERT INTO items (name) VALUES ('one')")
    with LocalWorker(tmp_path, value__converter=JSON, value__converter__schemas__enable="false") as worker:
        worker.create("source", {
            "connector.class": "JdbcSource", "connection.url": database.url, "mode": "incrementing", "incrementing.column.name": "id", "topic.prefix": "db-",
            "poll.interval.ms": "50", "tasks.max": "1", **database.tables,
        })  # fmt: skip
        assert [json.loads(value) for value in worker.values("db-items", 1)] == [{"id": 1, "name": "one"}]
        database.run("INSERT INTO items (name) VALUES ('two')")
        assert json.loads(worker.values("db-items", 2)[1]) == {"id": 2, "name": "two"}
        offsets = {"partition": {"table": database.full("items"), "protocol": "1"}, "offset": {"incrementing": 2}}
        wait_for(lambda: worker.herder.offsets("source") == [offsets])


def test_incrementing_goes_on_behind_its_offset(database, driver):
    database.run(f"CREATE TABLE t (id {database.counting}, v TEXT)", "INSERT INTO t (v) VALUES ('a'), ('b'), ('c')")
    task = driver.start(mode="incrementing")
    records = task.take(3)
    assert [record.value["v"] for record in records] == ["a", "b", "c"]
    assert [record.source_offset for record in records] == [{"incrementing": 1}, {"incrementing": 2}, {"incrementing": 3}]
    task = driver.start(stored=records[0], mode="incrementing")
    assert [record.value["v"] for record in task.take(2)] == ["b", "c"]


def test_an_offset_of_confluents_older_form_is_taken_over(database, driver):
    database.run(f"CREATE TABLE t (id {database.counting}, v TEXT)", "INSERT INTO t (v) VALUES ('a'), ('b')")
    task = driver.start(offsets={'{"table": "t"}': {"incrementing": 1}}, mode="incrementing")
    assert [record.value["v"] for record in task.take(1)] == ["b"]


def test_timestamps_of_one_time_are_not_parted_by_an_offset(database, driver):
    database.run(
        f"CREATE TABLE t (v TEXT, at {database.timestamp} NOT NULL)",
        "INSERT INTO t VALUES ('a', '2020-01-01 00:00:00.100'), ('b', '2020-01-01 00:00:00.200'), ('c', '2020-01-01 00:00:00.200'), ('d', '2020-01-01 00:00:01')",
    )
    options = {"mode": "timestamp", "timestamp.column.name": "at", "batch.max.rows": "1"}
    records = driver.start(**options).take(4)
    assert [record.value["v"] for record in records] == ["a", "b", "c", "d"]
    first, second = {"timestamp": 1577836800100, "timestamp_nanos": 100_000_000}, {"timestamp": 1577836800200, "timestamp_nanos": 200_000_000}
    assert [record.source_offset for record in records] == [first, first, second, {"timestamp": 1577836801000, "timestamp_nanos": 0}]
    for at, rest in enumerate(["bcd", "bcd", "d", ""]):
        assert "".join(record.value["v"] for record in driver.start(stored=records[at], **options).take(len(rest))) == rest


def test_timestamp_and_number_together_bring_updates_once(database, driver):
    database.run(
        f"CREATE TABLE t (id {database.counting}, v TEXT, at {database.timestamp} NOT NULL)",
        "INSERT INTO t (v, at) VALUES ('a', '2020-01-01 00:00:00'), ('b', '2020-01-01 00:00:00')",
    )
    task = driver.start(**{"mode": "timestamp+incrementing", "timestamp.column.name": "at", "incrementing.column.name": "id"})
    records = task.take(2)
    assert records[0].source_offset == {"incrementing": 1, "timestamp": 1577836800000, "timestamp_nanos": 0}
    database.run("UPDATE t SET v = 'A', at = '2020-01-02 00:00:00' WHERE id = 1")
    assert [record.value["v"] for record in task.take(1)] == ["A"]


def test_bulk_brings_all_rows_each_time(database, driver):
    database.run("CREATE TABLE t (v TEXT)", "INSERT INTO t VALUES ('a'), ('b')")
    records = driver.start(mode="bulk").take(4, is_all=False)
    assert [record.value["v"] for record in records] == ["a", "b", "a", "b"]
    assert records[0].source_partition == {"table": "t"} and records[0].source_offset is None


def test_a_query_is_read_in_place_of_tables(database, driver):
    database.run(
        f"CREATE TABLE a (id {database.counting}, v TEXT)", "CREATE TABLE b (id INTEGER, w TEXT)",
        "INSERT INTO a (v) VALUES ('x'), ('y')", "INSERT INTO b VALUES (1, 'X'), (2, 'Y')",
    )  # fmt: skip
    query = "SELECT a.id, a.v, b.w FROM a JOIN b ON a.id = b.id WHERE a.id < 100"
    task = driver.start(**{"mode": "incrementing", "incrementing.column.name": "id", "query": query, "topic.prefix": "joined"})
    records = task.take(2)
    assert [(record.topic, record.value["v"], record.value["w"]) for record in records] == [("joined", "x", "X"), ("joined", "y", "Y")]
    assert records[0].source_partition == {"query": "query"}


def test_tables_are_shared_out_and_new_ones_found(tmp_path, database):
    for name in ("a", "b", "c"):
        database.run(f"CREATE TABLE {name} (id {database.counting})", f"INSERT INTO {name} (id) VALUES (1)")
    with LocalWorker(tmp_path) as worker:
        worker.create("source", {
            "connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector", "connection.url": database.url, "mode": "incrementing", "topic.prefix": "p-",
            "table.poll.interval.ms": "50", "poll.interval.ms": "50", "tasks.max": "2", "table.blacklist": "c", **database.tables,
        })  # fmt: skip
        worker.wait_states("source", "RUNNING", "RUNNING", "RUNNING")
        worker.values("p-a", 1)
        database.run(f"CREATE TABLE d (id {database.counting})", "INSERT INTO d (id) VALUES (7)")
        worker.values("p-d", 1)
        assert len(worker.all_records("p-b")) == 1 and worker.all_records("p-c") == []


@pytest.mark.parametrize(
    "options, said",
    [
        pytest.param({"mode": "incrementing", "incrementing.column.name": "nope"}, "has no column 'nope'", id="no such column"),
        pytest.param({"mode": "timestamp", "timestamp.column.name": "at"}, "is nullable", id="a nullable column"),
        pytest.param({"mode": "bulk", "query": "SELECT nope FROM t"}, "nope", id="a wrong query"),
    ],
)
def test_what_cannot_be_read_is_said(database, driver, options, said):
    database.run(f"CREATE TABLE t (id {database.counting}, at {database.timestamp})")
    with pytest.raises(Exception, match=said) as failure:
        driver.start(**options).take(1)
    assert "not-looked-at" not in str(failure.value), "the password"


def test_a_lost_connection_is_made_anew_and_reading_goes_on(postgresql_database):
    database = postgresql_database
    database.run("CREATE TABLE t (id BIGSERIAL PRIMARY KEY)", "INSERT INTO t SELECT FROM generate_series(1, 4)")
    with SourceDriver(database) as driver:
        task = driver.start(**{"mode": "incrementing", "batch.max.rows": "2"})
        found = task.poll()
        database.cut_connections()
        assert [record.value["id"] for record in found + task.take(2)] == [1, 2, 3, 4]


def test_a_masked_query_is_not_told(database, driver):
    with pytest.raises(Exception, match="failed") as failure:
        driver.start(query="", **{"mode": "bulk", "query.masked": "SELECT hidden_column FROM hidden_table"}).take(1)
    assert "hidden" not in str(failure.value) and failure.value.__cause__ is None
