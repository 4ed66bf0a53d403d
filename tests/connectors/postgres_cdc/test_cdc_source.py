"""PostgresCdcSource on a real PostgreSQL: rows, changes, restarts, what the server is told."""

import random
import socket
import threading

import psycopg
import pytest

from connectors.postgres_cdc import connection
from connectors.postgres_cdc.connection import Replication, lsn_of
from connectors.postgres_cdc.keys import SOURCE
from standalone import ConnectError
from standalone.testing import LocalWorker, wait_for
from tests.connectors.postgres_cdc.database import Driver, values
from tests.servers.proxy import Proxy, some_bytes


@pytest.fixture
def driver(database):
    with Driver(database) as driver:
        yield driver


@pytest.fixture
def table(database):
    database.run("CREATE TABLE t (id int PRIMARY KEY, v text)", "INSERT INTO t VALUES (1, 'one'), (2, 'two')")
    return database


def test_rows_come_first_and_then_changes(table, driver):
    task = driver.start()
    rows = task.take(2)
    assert [record.topic for record in rows] == ["p.public.t"] * 2 and values(rows) == [("r", 1, "one"), ("r", 2, "two")]
    table.run("INSERT INTO t VALUES (3, 'three')", "UPDATE t SET v = 'zwei' WHERE id = 2", "DELETE FROM t WHERE id = 1")
    changes = task.take(4)
    assert values(changes) == [("c", 3, "three"), ("u", 2, "zwei"), ("d", 1, None), None]
    assert [record.key["id"] for record in changes] == [3, 2, 1, 1]


def test_a_change_made_while_rows_are_read_is_neither_lost_nor_doubled(table, driver):
    table.run("INSERT INTO t SELECT g, 'many' FROM generate_series(3, 5000) g")
    task = driver.start(**{"max.batch.size": "100"})
    first = task.poll()
    assert len(first) == 100
    table.run("UPDATE t SET v = 'changed' WHERE id = 4000", "INSERT INTO t VALUES (6000, 'new')", "DELETE FROM t WHERE id = 4500")
    rest = task.take(4900 + 4)
    assert values(first + rest)[-4:] == [("u", 4000, "changed"), ("c", 6000, "new"), ("d", 4500, None), None]
    assert {value[0] for value in values(first + rest)[:-4]} == {"r"} and ("r", 4000, "many") in values(rest)


def test_a_transaction_that_was_open_when_rows_were_read_comes_as_changes(table, driver):
    with table.connect() as other:
        other.execute("INSERT INTO t VALUES (7, 'open')")
        task = driver.start(**{"snapshot.mode": "initial"})
        table.run("SELECT 1")
    # The slot waits for the transaction to end: it is either in the rows or among the changes.
    assert {value[1] for value in values(task.take(3))} == {1, 2, 7}


@pytest.mark.parametrize("done", range(8))
def test_a_restart_at_any_record_goes_on_behind_it(table, driver, done):
    """Rows 1 and 2; then a transaction of four changes, one of two."""
    task = driver.start().until_streaming()
    table.run("INSERT INTO t VALUES (3, 'c')", "UPDATE t SET v = 'u' WHERE id = 3", "INSERT INTO t VALUES (4, 'd')", "INSERT INTO t VALUES (5, 'e')")
    table.run("INSERT INTO t VALUES (6, 'f')", "INSERT INTO t VALUES (7, 'g')")
    everything = [("r", 1, "one"), ("r", 2, "two"), ("c", 3, "c"), ("u", 3, "u"), ("c", 4, "d"), ("c", 5, "e"), ("c", 6, "f"), ("c", 7, "g")]
    assert values(task.take(done, is_all=False)) == everything[:done]
    task.commit()
    task.close()
    again = driver.start()
    if done < 2:  # rows are read again, as they are now, and then what happened since they were read first
        found = values(again.take(7 + 6))
        assert [value[1] for value in found[:7]] == [1, 2, 3, 4, 5, 6, 7] and found[7:] == everything[2:]
    else:
        assert values(again.take(8 - done)) == everything[done:]


def test_what_is_deleted_between_two_readings_of_the_rows_is_told(table, driver):
    task = driver.start(**{"max.batch.size": "1"})
    assert values(task.take(1, is_all=False)) == [("r", 1, "one")]
    task.close()
    table.run("DELETE FROM t WHERE id = 1")
    assert values(driver.start().take(3)) == [("r", 2, "two"), ("d", 1, None), None]


def test_a_lost_connection_is_made_anew_behind_what_was_handed_on(table, driver):
    task = driver.start(**{"max.batch.size": "1"})
    task.take(2)
    table.run("INSERT INTO t SELECT g, '' FROM generate_series(3, 8) g")
    first = task.take(3, is_all=False, stores=False)
    table.end_connections()
    assert [value[1] for value in values(first + task.take(3))] == [3, 4, 5, 6, 7, 8]


def test_the_server_is_told_of_what_is_stored_alone(table, driver):
    task = driver.start().until_streaming()
    task.take(2)
    before, _ = table.slot()
    table.run("INSERT INTO t VALUES (3, 'c')")
    table.run("INSERT INTO t VALUES (4, 'd')")
    records = task.take(2, stores=False)
    task.commit()
    assert task._task._session._confirmed.lsn <= records[0].source_offset["lsn"]
    driver.stored.store(records[0])
    task.commit()
    confirmed = task._task._session._confirmed.lsn
    assert before < confirmed <= records[1].source_offset["lsn"]
    driver.stored.store(records[1])
    task.commit()
    task.close()
    wait_for(lambda: table.slot()[0] > records[1].source_offset["lsn"], 60)


def test_a_log_in_which_nothing_of_ours_happens_is_let_go(table, driver):
    task = driver.start(**{"heartbeat.interval.ms": "1", "table.include.list": "public.t"}).until_streaming()
    rows = task.take_until(lambda record: record.topic.startswith("__debezium-heartbeat"))
    assert rows[-1].topic == "__debezium-heartbeat.p" and rows[-1].key["serverName"] == "p"
    table.run("CREATE TABLE other AS SELECT g FROM generate_series(1, 10000) g")
    (now,) = table.rows("SELECT pg_current_wal_lsn()::text")[0]
    task.take_until(lambda record: record.source_offset["lsn_commit"] >= lsn_of(now))
    task.commit()
    task.close()
    wait_for(lambda: table.slot()[0] >= lsn_of(now), 60)


@pytest.mark.parametrize("rows", [0, 3])
def test_the_log_is_let_go_where_nothing_more_comes(tmp_path, database, rows):
    """Without heartbeats: by what is stored of rows that came, or because none ever came, while other tables are busy."""
    database.run("CREATE TABLE t (id int PRIMARY KEY)", f"INSERT INTO t SELECT generate_series(1, {rows})")
    config = database.config(**{"status.update.interval.ms": "50", "table.include.list": "public.t"})
    with LocalWorker(tmp_path, offset__flush__interval__ms=50) as worker:
        worker.create("tested", config)
        wait_for(lambda: (database.slot() or (0, False))[1])
        if rows:
            worker.values("p.public.t", rows)
        database.run("CREATE TABLE other AS SELECT generate_series(1, 1000) g")
        (now,) = database.rows("SELECT pg_current_wal_lsn()::text")[0]
        wait_for(lambda: database.slot()[0] >= lsn_of(now))


def test_a_connection_that_is_cut_again_and_again_loses_and_doubles_nothing(table, driver):
    chance = random.Random(3)
    with Proxy(0, ("127.0.0.1", table.port), read=some_bytes) as proxy:
        task = driver.start(**{"database.port": str(proxy.port), "max.batch.size": "50", "poll.interval.ms": "5"}).until_streaming()
        found = task.take(2)
        for low in range(1000, 9000, 1000):
            table.run(f"INSERT INTO t SELECT g, 'row ' || g FROM generate_series({low}, {low + 299}) g")
            table.run(f"UPDATE t SET v = 'changed' WHERE id = {low}", f"DELETE FROM t WHERE id = {low + 1}")
        while len(found) < 2 + 8 * 303:
            if proxy.cuts < 40:
                proxy.cut_behind(chance.randrange(1, 10_000))
            found += task.poll_all()
        cuts = proxy.cuts
        proxy.well()
        found += task.take(0)
        task.close()
    wanted = [("r", 1, "one"), ("r", 2, "two")]
    for low in range(1000, 9000, 1000):
        wanted += [("c", each, f"row {each}") for each in range(low, low + 300)]
        wanted += [("u", low, "changed"), ("d", low + 1, None), None]
    assert values(found) == wanted and cuts >= 10, cuts


def test_a_server_that_does_not_answer_holds_up_no_other_thread(monkeypatch):
    monkeypatch.setattr(connection, "CONNECT_SECONDS", 1)
    turns, over = [0], threading.Event()

    def others():
        while not over.wait(0.001):
            turns[0] += 1

    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = str(silent.getsockname()[1])
        config = SOURCE.parse({
            "database.hostname": "127.0.0.1", "database.port": port, "database.user": "u", "database.dbname": "d", "topic.prefix": "p",
        })  # fmt: skip
        other = threading.Thread(target=others)
        other.start()
        try:
            with pytest.raises(psycopg.OperationalError, match="did not respond"):
                Replication(config)
        finally:
            over.set()
            other.join()
    assert turns[0] > 20


@pytest.mark.parametrize(
    "mode, first, again",
    [
        ("initial", ["r", "r", "c"], ["c"]),
        ("always", ["r", "r", "c"], ["r", "r", "r", "r"]),
        ("no_data", ["c"], ["c"]),
        ("never", ["c"], ["c"]),
        ("when_needed", ["r", "r", "c"], ["c"]),
        ("initial_only", ["r", "r"], []),
    ],
)
def test_snapshot_modes(table, driver, mode, first, again):
    task = driver.start(**{"snapshot.mode": mode})
    if mode == "initial_only":
        assert [value[0] for value in values(task.take(2))] == first and table.slot() is None
        task.close()
    else:
        task.until_streaming()
        table.run("INSERT INTO t VALUES (3, 'c')")
        assert [value[0] for value in values(task.take(len(first)))] == first
        task.close()
    table.run("INSERT INTO t VALUES (4, 'd')")
    assert [value[0] for value in values(driver.start(**{"snapshot.mode": mode}).take(len(again)))] == again


def test_a_slot_that_is_gone_is_said_or_made_up_for(table, driver):
    task = driver.start()
    task.take(2)
    task.close()
    table.run(f"SELECT pg_drop_replication_slot('slot_{table.name}')", "INSERT INTO t VALUES (3, 'missed')")
    with pytest.raises(ConnectError, match="snapshot.mode=when_needed"):
        driver.start().take(1)
    assert [value[1] for value in values(driver.start(**{"snapshot.mode": "when_needed"}).take(3))] == [1, 2, 3]


def test_the_slot_is_dropped_on_stop_where_that_is_asked_for(table, driver):
    task = driver.start(**{"slot.drop.on.stop": "true"}).until_streaming()
    assert table.slot() is not None
    task.close()
    assert table.slot() is None


def test_a_table_changes_in_mid_stream(table, driver):
    task = driver.start()
    task.take(2)
    table.run("INSERT INTO t VALUES (3, 'old')", "ALTER TABLE t ADD COLUMN more int", "INSERT INTO t VALUES (4, 'new', 44)")
    table.run("ALTER TABLE t DROP COLUMN v", "ALTER TABLE t ALTER COLUMN more SET DEFAULT 7", "INSERT INTO t VALUES (5, 55)")
    assert values(task.take(3)) == [("c", 3, "old"), ("c", 4, "new", 44), ("c", 5, 55)]
    table.run("DELETE FROM t", "ALTER TABLE t ALTER COLUMN more SET NOT NULL")
    assert [record.value is None for record in task.take(10)] == [False, True] * 5


def test_a_null_of_before_the_column_forbade_them(table, driver):
    task = driver.start()
    task.take(2)
    table.run("INSERT INTO t VALUES (3, NULL)")
    table.run("UPDATE t SET v = '' WHERE v IS NULL", "ALTER TABLE t ALTER COLUMN v SET NOT NULL", "INSERT INTO t VALUES (4, 'x')")
    assert values(task.take(3)) == [("c", 3, None), ("u", 3, ""), ("c", 4, "x")]


def test_truncations_are_told_where_they_are_asked_for(table, driver):
    task = driver.start(**{"skipped.operations": "none"})
    task.take(2)
    table.run("TRUNCATE t")
    (record,) = task.take(1)
    assert record.value["op"] == "t" and record.key is None and record.value["before"] is record.value["after"] is None


@pytest.mark.parametrize(
    "identity, before",
    [("DEFAULT", None), ("FULL", [1, "one"]), ("NOTHING", None), ("USING INDEX t_pkey", None)],
)
def test_replica_identities(table, driver, identity, before):
    table.run(f"ALTER TABLE t REPLICA IDENTITY {identity}")
    task = driver.start(**{"publication.autocreate.mode": "no_tables" if identity == "NOTHING" else "all_tables"})
    task.take(2)
    if identity == "NOTHING":
        return  # PostgreSQL refuses updates of such a table while it is published
    table.run("UPDATE t SET v = 'x' WHERE id = 1")
    (record,) = task.take(1)
    assert (record.value["before"] and record.value["before"].values) == before


def test_only_tables_that_are_taken_are_published(table, driver):
    table.run("CREATE TABLE other (id int PRIMARY KEY)")
    task = driver.start(**{"publication.autocreate.mode": "filtered", "table.include.list": r"public\.t"})
    task.take(2)
    assert table.rows("SELECT tablename FROM pg_publication_tables") == [("t",)]
    table.run("INSERT INTO other VALUES (1)", "INSERT INTO t VALUES (3, 'x')")
    assert values(task.take(1)) == [("c", 3, "x")]


def test_a_statement_of_its_own_reads_the_rows_of_a_table(table, driver):
    options = {"snapshot.select.statement.overrides": "public.t", "snapshot.select.statement.overrides.public.t": "SELECT * FROM t WHERE id > 1"}
    assert values(driver.start(**options).take(1)) == [("r", 2, "two")]


@pytest.mark.parametrize(
    "options, said",
    [
        pytest.param({"database.dbname": "nope"}, "nope", id="no such database"),
        pytest.param({"publication.autocreate.mode": "disabled"}, "no publication", id="no publication"),
        pytest.param({"message.key.columns": "public.t:nope"}, "nope", id="no such column"),
        pytest.param({"publication.autocreate.mode": "filtered", "table.include.list": "x"}, "match no table", id="no table"),
    ],
)
def test_what_cannot_be_done_is_said(table, driver, options, said):
    with pytest.raises(ConnectError, match=said) as failure:
        driver.start(**options).take(1)
    assert "not-looked-at" not in str(failure.value)
