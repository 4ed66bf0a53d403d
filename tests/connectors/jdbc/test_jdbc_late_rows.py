"""Rows committed later than others that come after them are not lost, and none comes twice."""

import contextlib

import pytest

from connectors.jdbc.place import Gaps, Place
from tests.connectors.jdbc.tasks import SourceDriver


@contextlib.contextmanager
def open_transaction(database, *statements):
    """Within it a transaction has run these and has not ended; after it it is committed."""
    with contextlib.closing(database.connect()) as connection:
        cursor = connection.cursor()
        for each in statements:
            cursor.execute(each)
        yield
        connection.commit()


@pytest.fixture(params=["postgresql", "mariadb"])
def late_database(request):
    """Databases in which several write at once."""
    return request.getfixturevalue(f"{request.param}_database")


def names(records):
    return [record.value["v"] for record in records]


def test_a_number_that_was_missing_is_looked_for_again(late_database):
    late_database.run(f"CREATE TABLE t (id {late_database.counting}, v VARCHAR(9))")
    with SourceDriver(late_database) as driver:
        task = driver.start(mode="incrementing", **{"incrementing.column.name": "id"})
        with open_transaction(late_database, "INSERT INTO t (v) VALUES ('late')"):
            late_database.run("INSERT INTO t (v) VALUES ('early'), ('next')")
            early = task.take(2)
            assert names(early) == ["early", "next"]
            assert early[-1].source_offset == {"incrementing": 3, "gaps": "1"}
        late = task.take(1)
        assert names(late) == ["late"] and late[0].source_offset == {"incrementing": 3}


def test_a_restart_looks_for_what_was_missing_before_it(late_database):
    late_database.run(f"CREATE TABLE t (id {late_database.counting}, v VARCHAR(9))")
    options = {"mode": "incrementing", "incrementing.column.name": "id"}
    with SourceDriver(late_database) as driver:
        with open_transaction(late_database, "INSERT INTO t (v) VALUES ('late')"):
            late_database.run("INSERT INTO t (v) VALUES ('early')")
            early = driver.start(**options).take(1)
        assert names(driver.start(stored=early[0], **options).take(1)) == ["late"]


def test_without_a_window_nothing_is_looked_for(late_database):
    late_database.run(f"CREATE TABLE t (id {late_database.counting}, v VARCHAR(9))")
    with SourceDriver(late_database) as driver:
        task = driver.start(mode="incrementing", **{"incrementing.column.name": "id", "late.rows.window.ms": "0"})
        with open_transaction(late_database, "INSERT INTO t (v) VALUES ('late')"):
            late_database.run("INSERT INTO t (v) VALUES ('early')")
            assert task.take(1)[0].source_offset == {"incrementing": 2}
        task.take(0)


def test_a_row_of_an_open_transaction_holds_back_later_times(postgresql_database):
    database = postgresql_database
    database.run("CREATE TABLE t (v TEXT, at TIMESTAMPTZ NOT NULL DEFAULT now())")
    with SourceDriver(database) as driver:
        task = driver.start(mode="timestamp", **{"timestamp.column.name": "at"})
        database.run("INSERT INTO t (v) VALUES ('first')")
        assert names(task.take(1)) == ["first"]
        with open_transaction(database, "INSERT INTO t (v) VALUES ('late')"):
            database.run("INSERT INTO t (v) VALUES ('early')")
            task.take(0)
        assert names(task.take(2)) == ["late", "early"]


def test_gaps_are_noted_filled_and_forgotten():
    gaps = Gaps()
    gaps.note(2, [3, 6, 7, 10], mark=1)
    gaps.note(10, [13], mark=2)
    assert gaps.ranges() == ((4, 5), (8, 9), (11, 12)) and gaps.ranges(upto=9) == ((4, 5), (8, 9))
    assert [number for number in range(14) if gaps.holds(number)] == [4, 5, 8, 9, 11, 12]
    gaps.fill(8)
    gaps.fill(7)
    gaps.fill(4)
    assert gaps.ranges() == ((5, 5), (9, 9), (11, 12))
    gaps.drop(lambda mark: mark == 1)
    assert gaps.ranges() == ((11, 12),)


@pytest.mark.parametrize(
    "place",
    [Place(), Place(number=-5), Place(1577836800123456, None), Place(-1, 7), Place(number=9, gaps=((3, 3), (5, 7)))],
)
def test_a_place_comes_back_from_its_offset(place):
    assert Place.of(place.offset()) == place


def test_an_offset_without_nanoseconds_counts_its_milliseconds():
    assert Place.of({"timestamp": 1577836800123}) == Place(1577836800123000, None)
