"""Batches of a COPY end at batch.max.rows or at their size in bytes; line breaks in values count as no rows."""

import threading

import pytest

from connectors.jdbc.dialects import postgresql_copy
from tests.connectors.jdbc.tasks import SourceDriver

VALUES = ["a\nb", 'c"\n', "d,\r", "\\.", "e\n\n"]


@pytest.mark.parametrize(
    "rows, size, lengths",
    [
        pytest.param("2", 1 << 24, [2, 2, 1], id="rows"),
        pytest.param("5", 1 << 24, [5], id="exactly the rows"),
        pytest.param("100", 12, [2, 2, 1], id="bytes"),
        pytest.param("100", 0, [1, 1, 1, 1, 1], id="rows larger than a batch"),
    ],
)
def test_a_batch_ends_at_its_rows_or_bytes(postgresql_database, monkeypatch, rows, size, lengths):
    monkeypatch.setattr(postgresql_copy, "_BATCH_BYTES", size)
    postgresql_database.run("CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)")
    for number, value in enumerate(VALUES):
        postgresql_database.run("INSERT INTO t VALUES ({}, E'{}')".format(number, value.encode("unicode_escape").decode()))
    with SourceDriver(postgresql_database) as driver:
        task = driver.start(mode="incrementing", **{"incrementing.column.name": "id", "batch.max.rows": rows})
        found = []
        while batch := task.poll():
            found.append([record.value["v"] for record in batch])
    assert [len(batch) for batch in found] == lengths and sum(found, []) == VALUES


@pytest.mark.parametrize("mode", ["bulk", "incrementing"])
def test_batches_that_are_full_by_their_bytes_are_read_ahead(postgresql_database, monkeypatch, mode):
    monkeypatch.setattr(postgresql_copy, "_BATCH_BYTES", 1 << 20)
    parsed, threads = postgresql_copy._parsed, []
    monkeypatch.setattr(postgresql_copy, "_parsed", lambda *given: (threads.append(threading.current_thread().name), parsed(*given))[1])
    postgresql_database.run(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)", "INSERT INTO t SELECT n, repeat('x', 600000) FROM generate_series(1, 8) n"
    )
    with SourceDriver(postgresql_database) as driver:
        task = driver.start(mode=mode, **{"incrementing.column.name": "id"})
        lengths = [len(task.poll()) for _ in range(4)]
    assert lengths == [2, 2, 2, 2]
    assert threads[0] != "jdbc-read-ahead" and set(threads[1:4]) == {"jdbc-read-ahead"}
