"""Deadlocks and serialisation failures, as the database itself tells them: the batch is rolled back, asked for again and written once."""

import pytest

from standalone import ConnectError, RetriableError, Schema
from tests.connectors.jdbc.sinks import sinks, struct

ITEM = struct(id=Schema.INT32)
PAIR = ("t", 0)


def fails_twice(database, state):
    """The table t, whose second row of a batch the database refuses so, two times."""
    if database.kind == "postgresql":
        body = f"IF NEW.id = 2 AND nextval('failures') <= 2 THEN RAISE EXCEPTION 'in the way' USING ERRCODE = '{state}'; END IF; RETURN NEW;"
        database.run(
            "CREATE TABLE t (id INTEGER PRIMARY KEY)", "CREATE SEQUENCE failures",
            f"CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body} END $$",
            "CREATE TRIGGER fail BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION fail()",
        )  # fmt: skip
    else:
        signal = f"SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = {state}, MESSAGE_TEXT = 'in the way'"
        database.run(
            "CREATE TABLE t (id INTEGER PRIMARY KEY)", "CREATE SEQUENCE failures NOCACHE",
            f"CREATE TRIGGER fail BEFORE INSERT ON t FOR EACH ROW IF NEW.id = 2 THEN IF NEXTVAL(failures) <= 2 THEN {signal}; END IF; END IF",
        )  # fmt: skip


CASES = [
    pytest.param("postgresql_database", "40P01", id="PostgreSQL's deadlock"),
    pytest.param("postgresql_database", "40001", id="PostgreSQL's serialisation failure"),
    pytest.param("mariadb_database", "1213", id="MariaDB's deadlock"),
    pytest.param("mariadb_database", "1205", id="MariaDB's lock wait"),
]


@pytest.mark.parametrize("once", ["true", "false"], ids=["exactly once", "at least once"])
@pytest.mark.parametrize("fixture, state", CASES)
def test_the_batch_is_asked_for_again_and_written_once(request, fixture, state, once):
    database = request.getfixturevalue(fixture)
    fails_twice(database, state)
    with sinks(database) as start:
        sink = start(**{"max.retries": "5", "exactly.once": once}, reports=True)
        if once == "true":
            sink.task.open([PAIR])
        batch = [sink.record(ITEM, {"id": number}, offset=number) for number in (1, 2, 3)]
        for _ in range(2):
            with pytest.raises(RetriableError):
                sink.put(*batch)
            assert database.rows("SELECT id FROM t") == []
        sink.put(*batch)
        assert sorted(database.rows("SELECT id FROM t")) == [(1,), (2,), (3,)] and sink.context.reported == []


@pytest.mark.parametrize("fixture, state", CASES[:1])
def test_it_is_not_asked_for_for_ever(request, fixture, state):
    database = request.getfixturevalue(fixture)
    fails_twice(database, state)
    with sinks(database) as start:
        sink = start(**{"max.retries": "1"}, reports=True)
        with pytest.raises(RetriableError):
            sink.put(sink.record(ITEM, {"id": 2}))
        with pytest.raises(ConnectError, match="max.retries=1"):
            sink.put(sink.record(ITEM, {"id": 2}))
        assert sink.context.reported == []
