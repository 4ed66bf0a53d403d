"""Upserts into PostgreSQL: rows that are new are inserted at once, those whose keys are there changed, whichever of both is tried first."""

import pytest

from connectors.jdbc.dialects.postgresql import PostgreSql
from standalone import ConnectError, Schema
from tests.connectors.jdbc.sinks import sinks, struct

ITEM = struct(id=Schema.INT32, name=Schema.OPTIONAL_STRING)
UPSERT = {"insert.mode": "upsert", "pk.mode": "record_value", "pk.fields": "id"}


@pytest.fixture
def database(postgresql_database):
    return postgresql_database


@pytest.fixture
def start(database):
    with sinks(database) as start:
        yield start


@pytest.fixture
def staged(monkeypatch):
    """How many rows each batch had that went by a stage."""
    counts, original = [], PostgreSql._staged

    def noting(dialect, connection, table, names, arrays):
        counts.append(len(arrays[0]))
        return original(dialect, connection, table, names, arrays)

    monkeypatch.setattr(PostgreSql, "_staged", noting)
    return counts


def items(*pairs):
    return [{"id": number, "name": name} for number, name in pairs]


def rows(database):
    return database.rows("SELECT id, name FROM t ORDER BY id")


def test_new_rows_need_no_stage(database, start, staged):
    sink = start(**UPSERT)
    sink.put_values(ITEM, *items((1, "a"), (2, "b")))
    sink.put_values(ITEM, *items((3, "c"), (4, "d")))
    assert rows(database) == [(1, "a"), (2, "b"), (3, "c"), (4, "d")] and staged == []


def test_where_keys_are_there_new_rows_are_hoped_for_ever_more_seldom(database, start, staged, monkeypatch):
    hoped, insert = [], PostgreSql.insert
    monkeypatch.setattr(PostgreSql, "insert", lambda *given: (hoped.append(number), insert(*given)))
    sink = start(**UPSERT)
    for number in range(40):
        sink.put_values(ITEM, *items((number % 2, f"{number}"), (100 + number, "new")))
    assert rows(database)[:2] == [(0, "38"), (1, "39")] and len(rows(database)) == 42
    assert hoped == [0, 1, 2, 4, 7, 12, 21, 38] and staged == [2] * 38


def test_after_a_while_new_rows_need_no_stage_again(database, start, staged):
    sink = start(**UPSERT)
    for number in (1, 1, 2, 3, 4):
        sink.put_values(ITEM, *items((number, "a")))
    assert len(rows(database)) == 4 and len(staged) == 2  # the one whose key was there, and the one behind it


def test_a_bad_row_among_those_whose_keys_are_there_is_found(database, start):
    database.run("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT CHECK (length(name) < 4))", "INSERT INTO t VALUES (1, 'old')")
    sink = start(reports=True, **UPSERT)
    sink.put_values(ITEM, *items((1, "new"), (2, "b"), (3, "long"), (4, "d"), (5, "long"), (1, "end")))
    sink.put_values(ITEM, *items((6, "f"), (2, "B"), (7, "long")))
    assert rows(database) == [(1, "end"), (2, "B"), (4, "d"), (6, "f")]
    assert [offset for offset, _ in sink.context.reported] == [2, 4, 8]


@pytest.mark.parametrize(
    "table",
    [
        pytest.param("CREATE TABLE t (id INTEGER, name TEXT)", id="no key"),
        pytest.param("CREATE TABLE t (id INTEGER, name TEXT, PRIMARY KEY (id, name))", id="another key"),
        pytest.param("CREATE TABLE t (id INTEGER, name TEXT); CREATE UNIQUE INDEX ON t (id) WHERE id > 5", id="of some rows only"),
        pytest.param("CREATE TABLE t (id INTEGER UNIQUE DEFERRABLE INITIALLY DEFERRED, name TEXT)", id="checked in the end"),
    ],
)
def test_a_table_whose_keys_may_come_twice_is_refused(database, start, table):
    database.run(*table.split("; "))
    with pytest.raises(ConnectError, match="ON CONFLICT"):
        start(**UPSERT).put_values(ITEM, *items((1, "a")))
    assert rows(database) == []


def test_another_unique_column_refuses_a_row_as_it_does_an_insert(database, start):
    database.run("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT UNIQUE)", "INSERT INTO t VALUES (1, 'taken')")
    sink = start(reports=True, **UPSERT)
    sink.put_values(ITEM, *items((2, "b"), (3, "taken"), (4, "d")))
    assert rows(database) == [(1, "taken"), (2, "b"), (4, "d")]
    assert [offset for offset, _ in sink.context.reported] == [1]


def test_a_key_with_columns_beside_it_in_its_index(database, start, staged):
    database.run("CREATE TABLE t (id INTEGER, name TEXT)", "CREATE UNIQUE INDEX ON t (id) INCLUDE (name)")
    start(**UPSERT).put_values(ITEM, *items((1, "a"), (2, "b")))
    assert rows(database) == [(1, "a"), (2, "b")] and staged == []
