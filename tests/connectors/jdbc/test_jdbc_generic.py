"""What sink and source do in the databases that have their own dialect they do in any that SQLAlchemy has one for: the same tests again."""

import datetime
import decimal

import pytest

from connectors.jdbc.dialects.generic import engine_url
from connectors.jdbc.url import parse
from standalone import ConnectError, Instant, Schema, date_schema, decimal_schema, time_schema, timestamp_schema
from tests.connectors.jdbc import test_jdbc_exactly_once as once
from tests.connectors.jdbc import test_jdbc_sink as sink_tests
from tests.connectors.jdbc import test_jdbc_source as source_tests
from tests.connectors.jdbc.sinks import sinks, struct
from tests.connectors.jdbc.tasks import SourceDriver

test_a_worker_writes_records = sink_tests.test_a_worker_writes_records_to_a_table_it_makes
test_upsert_keeps_the_last = sink_tests.test_upsert_keeps_the_last_of_each_key
test_upsert_leaves_other_columns = sink_tests.test_upsert_leaves_other_columns_as_they_are
test_update_changes_only_what_there_is = sink_tests.test_update_changes_only_rows_that_there_are
test_a_record_without_a_value_deletes = sink_tests.test_a_record_without_a_value_deletes_in_its_order
test_a_key_of_topic_partition_and_offset = sink_tests.test_a_key_of_topic_partition_and_offset
test_columns_are_added = sink_tests.test_columns_are_added_as_records_get_them
test_bad_rows_are_reported = sink_tests.test_bad_rows_are_reported_one_by_one_and_the_rest_is_written
test_exactly_once = once.test_a_task_goes_on_behind_what_is_stored_with_the_rows
test_a_replaced_task_writes_nothing = once.test_a_task_that_has_been_replaced_writes_nothing
test_incrementing = source_tests.test_incrementing_goes_on_behind_its_offset
test_timestamps = source_tests.test_timestamps_of_one_time_are_not_parted_by_an_offset
test_timestamp_and_number = source_tests.test_timestamp_and_number_together_bring_updates_once
test_bulk = source_tests.test_bulk_brings_all_rows_each_time


@pytest.fixture
def database(generic_database):
    return generic_database


@pytest.fixture
def start(database):
    with sinks(database) as start:
        yield start


@pytest.fixture
def driver(database):
    with SourceDriver(database) as driver:
        yield driver


def test_each_type_goes_there_and_back(database, start, driver):
    schemas = {
        "i8": Schema.INT8, "i16": Schema.INT16, "i32": Schema.INT32, "i64": Schema.INT64, "f32": Schema.FLOAT32, "f64": Schema.FLOAT64,
        "flag": Schema.BOOLEAN, "text": Schema.STRING, "data": Schema.BYTES, "price": decimal_schema(10), "day": date_schema(), "clock": time_schema(),
        "at": timestamp_schema(),
    }  # fmt: skip
    row = {
        "i8": -128, "i16": 32767, "i32": -(1 << 31), "i64": (1 << 63) - 1, "f32": 0.5, "f64": 1 / 3, "flag": True, "text": 'ü :x %s "\n', "data": b"\x00\xff",
        "price": decimal.Decimal("-1234567890123456789.0123456789"), "day": Instant(-86_400_000), "clock": Instant(86_399_999), "at": Instant(-1),
    }  # fmt: skip
    fields = {name: schema for each, schema in schemas.items() for name, schema in ((each, schema), (f"{each}_or_null", schema.with_(optional=True)))}
    start().put_values(struct(**fields), {name: row.get(name) for name in fields})
    ((*found,),) = database.rows("SELECT price, at, day, clock FROM t")
    assert found == [
        row["price"], datetime.datetime(1969, 12, 31, 23, 59, 59, 999000), datetime.date(1969, 12, 31), datetime.time(23, 59, 59, 999000)
    ]  # fmt: skip
    (record,) = driver.start(mode="bulk").take(1, is_all=False)
    assert {name: record.value[name] for name in schemas} == row
    assert all(record.value[f"{name}_or_null"] is None for name in schemas)
    assert record.value_schema.field("i64").schema == Schema.INT64 and record.value_schema.field("price").schema == decimal_schema(10)


def test_a_query_is_refused_with_a_way_out(database, driver):
    with pytest.raises(ConnectError, match="view"):
        driver.start(mode="bulk", query="SELECT 1").take(1)


def test_a_database_that_there_is_no_driver_for(start):
    sink = start(**{"connection.url": "jdbc:oracle:thin:@//127.0.0.1:1/shop?password=hidden-word", "connection.attempts": "1"})
    with pytest.raises(ConnectError, match="driver") as failure:
        sink.put_values(struct(id=Schema.INT32), {"id": 1})
    assert "hidden-word" not in str(failure.value)


@pytest.mark.parametrize(
    "given, expected",
    [
        ("jdbc:sqlserver://h:1444;databaseName=shop;user=me;password=p;encrypt=true", "mssql+pymssql://me:p@h:1444/shop"),
        ("jdbc:sqlserver://h;database=shop", "mssql+pymssql://h:1433/shop"),
        ("jdbc:oracle:thin:@//h:1522/service", "oracle+oracledb://h:1522?service_name=service"),
        ("jdbc:oracle:thin:@h:1522:sid", "oracle+oracledb://h:1522?service_name=sid"),
        ("mssql+pyodbc://me:p%40@h/shop?driver=x", "mssql+pyodbc://me:p%40@h/shop?driver=x"),
    ],
)
def test_urls(given, expected):
    assert engine_url(parse(given)).render_as_string(hide_password=False) == expected
    location = parse(given, "you", "secret-word", {"timeout": "7"})
    made = engine_url(location)
    assert (made.username, made.password, made.query["timeout"]) == ("you", "secret-word", "7")
    assert "secret-word" not in location.shown and "p%40" not in location.shown
