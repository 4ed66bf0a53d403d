"""Each SQL type, null and nullable: what it becomes in a record, and that it comes back the same by way of a topic."""

import datetime
import decimal
import json

import pytest

from standalone import ConnectError, Instant
from standalone.testing import LocalWorker
from tests.connectors.jdbc.sinks import sinks
from tests.connectors.jdbc.tasks import SourceDriver

JSON = "org.apache.kafka.connect.json.JsonConverter"
D = decimal.Decimal
NOON = Instant(1577880000123)

# type, SQL literal, name or type of the schema, value in the record
POSTGRESQL = [
    ("boolean", "true", "boolean", True),
    ("smallint", "-32768", "int16", -32768),
    ("integer", "2147483647", "int32", 2147483647),
    ("bigint", "-9223372036854775808", "int64", -(1 << 63)),
    ("oid", "4294967295", "int64", 4294967295),
    ("real", "1.5", "float32", 1.5),
    ("double precision", "'-Infinity'", "float64", float("-inf")),
    ("double precision", "0.1", "float64", 0.1),
    ("numeric(10,2)", "-12345678.90", "Decimal", D("-12345678.90")),
    ("numeric(10,2)", "0", "Decimal", D("0.00")),
    ("numeric(38,10)", "-1234567890123456789012345678.0123456789", "Decimal", D("-1234567890123456789012345678.0123456789")),
    ("numeric(20,0)", "12345678901234567890", "Decimal", D("12345678901234567890")),
    ("numeric", "12345678901234567890.1234567890123456789", "string", "12345678901234567890.1234567890123456789"),
    ("numeric", "'NaN'", "string", "NaN"),
    ("money", "-92233720368547758.08", "Decimal", D("-92233720368547758.08")),
    ("text", "E'a,\"b\"\\n\\\\ é 😀'", "string", 'a,"b"\n\\ é 😀'),
    ("text", "''", "string", ""),
    ("varchar(5)", "'null'", "string", "null"),
    ("char(4)", "'ab'", "string", "ab  "),
    ("bytea", r"'\x00ff5c2c'", "bytes", b"\x00\xff\\,"),
    ("bytea", "''", "bytes", b""),
    ("date", "'2020-01-01'", "Date", Instant(1577836800000)),
    ("date", "'0044-03-15 BC'", "Date", Instant(-63517824000000)),
    ("date", "'12345-06-07'", "Date", Instant(327416947200000)),
    ("time", "'12:34:56.789'", "Time", Instant(45296789)),
    ("time", "'24:00:00'", "Time", Instant(86400000)),
    ("timetz", "'12:00:00+02'", "Time", Instant(36000000)),
    ("timestamp", "'2020-01-01 12:00:00.123'", "Timestamp", NOON),
    ("timestamp", "'1969-12-31 23:59:59.999'", "Timestamp", Instant(-1)),
    ("timestamptz", "'2020-01-01 14:00:00.123+02'", "Timestamp", NOON),
    ("timestamptz", "'infinity'", "Timestamp", Instant(9223372036825200)),
    ("json", '\'{"a": 1}\'', "string", '{"a": 1}'),
    ("jsonb", '\'{"a":1}\'', "string", '{"a": 1}'),
    ("uuid", "'123e4567-e89b-12d3-a456-426614174000'", "string", "123e4567-e89b-12d3-a456-426614174000"),
    ("xml", "'<a/>'", "string", "<a/>"),
    ("inet", "'10.0.0.1/8'", "string", "10.0.0.1/8"),
    ("interval", "'1 day 02:03:04'", "string", "1 day 02:03:04"),
    ("bit(1)", "B'1'", "boolean", True),
    ("bit(9)", "B'101010101'", "string", "101010101"),
    ("varbit(9)", "B'10'", "string", "10"),
    ("int4range", "'[1,5)'", "string", "[1,5)"),
    ("point", "'(1,2)'", "string", "(1,2)"),
    ("tsvector", "'a b'", "string", "'a' 'b'"),
    ("mood", "'happy'", "string", "happy"),
    ("positive", "7", "int32", 7),
    ("integer[]", "'{1,NULL,3}'", "array", [1, None, 3]),
    ("integer[]", "'{}'", "array", []),
    ("text[]", "ARRAY['a,b', '\"', NULL, '', 'NULL']", "array", ["a,b", '"', None, "", "NULL"]),
    ("numeric(6,2)[]", "'{1.50,-2}'", "array", [D("1.50"), D("-2.00")]),
    ("double precision[]", "'{0.1,NaN}'", "array", [0.1, float("nan")]),
    ("timestamptz[]", "ARRAY['2020-01-01 12:00:00.123+00'::timestamptz]", "array", [NOON]),
    ("bytea[]", r"ARRAY['\x00ff'::bytea]", "array", [b"\x00\xff"]),
    ("boolean[]", "'{t,f}'", "array", [True, False]),
    ("mood[]", "'{happy}'", "array", ["happy"]),
]  # fmt: skip
SQLITE = [
    ("BOOLEAN", "1", "boolean", True),
    ("TINYINT", "-128", "int8", -128),
    ("SMALLINT", "32767", "int16", 32767),
    ("INTEGER", "-9223372036854775808", "int64", -(1 << 63)),
    ("BIGINT", "1", "int64", 1),
    ("REAL", "0.1", "float64", 0.1),
    ("DOUBLE", "3", "float64", 3.0),
    ("DECIMAL(10,2)", "1.5", "Decimal", D("1.50")),
    ("NUMERIC", "1.5", "string", "1.5"),
    ("TEXT", "'a''b'", "string", "a'b"),
    ("VARCHAR(5)", "''", "string", ""),
    ("BLOB", "x'00ff'", "bytes", b"\x00\xff"),
    ("DATE", "'2020-01-01'", "Date", Instant(1577836800000)),
    ("DATE", "1577836800000", "Date", Instant(1577836800000)),
    ("TIME", "'12:34:56.789'", "Time", Instant(45296789)),
    ("TIMESTAMP", "'2020-01-01 12:00:00.123'", "Timestamp", NOON),
    ("DATETIME", "1577880000123", "Timestamp", NOON),
]  # fmt: skip
MARIADB = [
    ("tinyint", "-128", "int8", -128),
    ("boolean", "true", "int8", 1),
    ("tinyint unsigned", "255", "int16", 255),
    ("smallint", "-32768", "int16", -32768),
    ("smallint unsigned", "65535", "int32", 65535),
    ("mediumint unsigned", "16777215", "int32", 16777215),
    ("int", "-2147483648", "int32", -2147483648),
    ("int unsigned", "4294967295", "int64", 4294967295),
    ("bigint", "-9223372036854775808", "int64", -(1 << 63)),
    ("bigint unsigned", "9223372036854775807", "int64", (1 << 63) - 1),
    ("float", "1.2345678", "float32", 1.2345677614212036),
    ("double", "0.1", "float64", 0.1),
    ("decimal(10,2)", "-12345678.90", "Decimal", D("-12345678.90")),
    ("decimal(65,30)", "12345678901234567890123456789012345.012345678901234567890123456789", "Decimal",
     D("12345678901234567890123456789012345.012345678901234567890123456789")),
    ("varchar(20)", r"""'a,"b"\n\\ é 😀'""", "string", 'a,"b"\n\\ é 😀'),
    ("varchar(20)", "'NULL'", "string", "NULL"),
    ("text", "''", "string", ""),
    ("char(4)", "'ab'", "string", "ab"),
    ("varbinary(10)", r"x'00ff5c2c22'", "bytes", b'\x00\xff\\,"'),
    ("blob", "''", "bytes", b""),
    ("bit(1)", "b'1'", "int8", 1),
    ("bit(12)", "b'101010101010'", "bytes", b"\x0a\xaa"),
    ("date", "'2020-01-01'", "Date", Instant(1577836800000)),
    ("year", "2020", "Date", Instant(1577836800000)),
    ("time(3)", "'12:34:56.789'", "Time", Instant(45296789)),
    ("datetime(3)", "'2020-01-01 12:00:00.123'", "Timestamp", NOON),
    ("timestamp(3) NULL", "'2020-01-01 12:00:00.123'", "Timestamp", NOON),
    ("json", '\'{"a": 1}\'', "string", '{"a": 1}'),
    ("uuid", "'123e4567-e89b-12d3-a456-426614174000'", "string", "123e4567-e89b-12d3-a456-426614174000"),
    ("enum('sad','happy')", "'happy'", "string", "happy"),
    ("set('a','b','c')", "'a,c'", "string", "a,c"),
]  # fmt: skip
SETUPS = {"postgresql": ["CREATE TYPE mood AS ENUM ('sad', 'happy')", "CREATE DOMAIN positive AS integer CHECK (VALUE > 0)"], "sqlite": []}


def check_types(database, cases):
    """All types in one table: a row of values, and one of nulls; then the same where nothing may be null."""
    for never_null in ("", " NOT NULL"):
        name = "never" if never_null else "may"
        kinds = [case[0].removesuffix(" NULL") if never_null else case[0] for case in cases]
        database.run(f"CREATE TABLE {name} ({', '.join(f'c{at} {kind}{never_null}' for at, kind in enumerate(kinds))})")
        database.run(f"INSERT INTO {name} VALUES ({', '.join(case[1] for case in cases)})")
    database.run(f"INSERT INTO may VALUES ({', '.join(['NULL'] * len(cases))})")
    with SourceDriver(database) as driver:
        records = driver.start(mode="bulk").take(3, is_all=False)
    full, nulls = (record for record in records if record.topic == "t-may")
    never = next(record for record in records if record.topic == "t-never")
    for at, (kind, _, schema, value) in enumerate(cases):
        for record, is_optional in ((full, True), (never, False)):
            field = record.value_schema.field(f"c{at}").schema
            assert ((field.name or field.type).rpartition(".")[2], field.optional) == (schema, is_optional), kind
            assert repr(record.value[f"c{at}"]) == repr(value), kind
        assert nulls.value[f"c{at}"] is None, kind
    return full, nulls


def test_types_of_postgresql_go_there_and_back(postgresql_database):
    database = postgresql_database
    database.run(*SETUPS["postgresql"])
    full, nulls = check_types(database, POSTGRESQL)
    database.run("CREATE TABLE copy (LIKE may)")
    _write(database, "copy", full, nulls)
    # json, xml and point have no equality: strings do.
    texts = ", ".join(f"c{at}::text" for at in range(len(POSTGRESQL)) if POSTGRESQL[at][0] not in ("timetz",))
    assert database.rows(f"SELECT {texts} FROM copy ORDER BY c0") == database.rows(f"SELECT {texts} FROM may ORDER BY c0")


def test_types_of_sqlite_go_there_and_back(sqlite_database):
    full, nulls = check_types(sqlite_database, SQLITE)
    columns = ", ".join(f"c{at} {case[0]}" for at, case in enumerate(SQLITE))
    sqlite_database.run(f"CREATE TABLE copy ({columns})")
    _write(sqlite_database, "copy", full, nulls)
    with SourceDriver(sqlite_database) as driver:
        found = driver.start(**{"mode": "bulk", "table.whitelist": "copy"}).take(2, is_all=False)
    assert [record.value.to_dict() for record in found] == [full.value.to_dict(), nulls.value.to_dict()]


def test_types_of_mariadb_go_there_and_back(mariadb_database):
    full, nulls = check_types(mariadb_database, MARIADB)
    mariadb_database.run("CREATE TABLE copy LIKE may")
    _write(mariadb_database, "copy", full, nulls)
    assert mariadb_database.rows("SELECT * FROM copy ORDER BY c0") == mariadb_database.rows("SELECT * FROM may ORDER BY c0")


@pytest.mark.parametrize("behaviour, expected", [("CONVERT_TO_NULL", None), ("ROUND", Instant(-62135596800000))])
def test_a_date_that_there_is_not_becomes_what_the_url_says(mariadb_database, behaviour, expected):
    mariadb_database.run("SET sql_mode = ''", "CREATE TABLE t (day date)", "INSERT INTO t VALUES ('0000-00-00')")
    with SourceDriver(mariadb_database) as driver:
        with pytest.raises(ConnectError, match="zeroDateTimeBehavior=CONVERT_TO_NULL"):
            driver.start(mode="bulk").take(1)
        url = f"{mariadb_database.url}&zeroDateTimeBehavior={behaviour}"
        assert driver.start(**{"mode": "bulk", "connection.url": url}).take(1, is_all=False)[0].value["day"] == expected


def test_a_number_that_no_field_holds_is_told(mariadb_database):
    mariadb_database.run("CREATE TABLE t (n bigint unsigned)", "INSERT INTO t VALUES (18446744073709551615)")
    with SourceDriver(mariadb_database) as driver, pytest.raises(ConnectError, match="Column 'n'"):
        driver.start(mode="bulk").take(1)


def _write(database, table, *records):
    with sinks(database) as start:
        sink = start(**{"table.name.format": table})
        for record in records:
            sink.put(sink.record(record.value_schema, record.value))


def test_a_table_of_postgresql_goes_by_a_topic_to_sqlite_and_back(tmp_path, postgresql_database, sqlite_database):
    postgresql_database.run(
        "CREATE TABLE t (id int PRIMARY KEY, name text, price numeric(12,3), at timestamptz, day date, clock time, ok boolean, raw bytea, big bigint, f double precision)",
        "INSERT INTO t SELECT n, 'name ' || n, n * 1.001, TIMESTAMPTZ '2020-01-01 00:00:00.001Z' + n * INTERVAL '1 h', DATE '2020-01-01' + n, TIME '00:00:01' * 1, n % 2 = 0, "
        "decode(lpad(to_hex(n), 4, '0'), 'hex'), n * 10000000000, n / 3.0 FROM generate_series(1, 500) n".replace("TIME '00:00:01' * 1", "TIME '10:20:30.4'"),
        "INSERT INTO t (id) VALUES (0)",
        "CREATE TABLE back (LIKE t INCLUDING ALL)",
    )  # fmt: skip
    source = {"connector.class": "JdbcSource", "mode": "incrementing", "incrementing.column.name": "id", "tasks.max": "1"}
    sink = {"connector.class": "JdbcSink", "insert.mode": "upsert", "pk.mode": "record_value", "pk.fields": "id", "auto.create": "true"}
    with LocalWorker(tmp_path, value__converter=JSON) as worker:
        worker.create(
            "one", {**source, "connection.url": postgresql_database.url, **postgresql_database.tables, "table.whitelist": "t", "topic.prefix": "a-"}
        )
        worker.create("two", {**sink, "connection.url": sqlite_database.url, "topics": "a-t", "table.name.format": "t"})
        worker.values("a-t", 501)
        worker.wait_committed("two", "a-t")
        worker.create(
            "three", {**source, "connection.url": sqlite_database.url, "table.whitelist": "t", "topic.prefix": "b-", "numeric.mapping": "none"}
        )
        first = json.loads(worker.values("b-t", 501)[0])["payload"]
        assert first == {"id": 0, **dict.fromkeys(("name", "price", "at", "day", "clock", "ok", "raw", "big", "f"))}
        worker.create("four", {**sink, "connection.url": postgresql_database.url, "topics": "a-t", "table.name.format": "back"})
        worker.wait_committed("four", "a-t")
    assert postgresql_database.rows("SELECT * FROM back EXCEPT SELECT * FROM t") == [] and postgresql_database.rows("SELECT count(*) FROM back") == [
        (501,)
    ]
    assert sqlite_database.rows("SELECT name, price, at, ok, raw, big FROM t WHERE id = 500") == [
        ("name 500", 500.5, 1577836800001 + 500 * 3_600_000, 1, b"\x01\xf4", 5_000_000_000_000)
    ]


@pytest.mark.parametrize(
    "granularity, expected",
    [
        ("connect_logical", Instant(1577880000123)),
        ("micros_long", 1577880000123456),
        ("micros_string", "1577880000123456"),
        ("micros_iso_datetime_string", "2020-01-01T12:00:00.123456"),
        ("nanos_long", 1577880000123456000),
        ("nanos_string", "1577880000123456000"),
        ("nanos_iso_datetime_string", "2020-01-01T12:00:00.123456000"),
    ],
)
def test_timestamps_have_the_granularity_that_is_asked_for(postgresql_database, granularity, expected):
    postgresql_database.run("CREATE TABLE t (at timestamp)", "INSERT INTO t VALUES ('2020-01-01 12:00:00.123456')")
    with SourceDriver(postgresql_database) as driver:
        assert driver.start(**{"mode": "bulk", "timestamp.granularity": granularity}).take(1, is_all=False)[0].value["at"] == expected


@pytest.mark.parametrize(
    "mapping, expected",
    [
        ("none", [D("12"), D("123456789"), D("1.50"), D("12345678901234567890"), "1.5"]),
        ("precision_only", [12, 123456789, D("1.50"), D("12345678901234567890"), "1.5"]),
        ("best_fit", [12, 123456789, 1.5, D("12345678901234567890"), 1.5]),
        ("best_fit_eager_double", [12, 123456789, 1.5, D("12345678901234567890"), 1.5]),
    ],
)
def test_decimals_become_what_is_asked_for(postgresql_database, mapping, expected):
    postgresql_database.run(
        "CREATE TABLE t (a numeric(2), b numeric(9,0), c numeric(9,2), d numeric(20,0), e numeric)",
        "INSERT INTO t VALUES (12, 123456789, 1.5, 12345678901234567890, 1.5)",
    )
    with SourceDriver(postgresql_database) as driver:
        record = driver.start(**{"mode": "bulk", "numeric.mapping": mapping}).take(1, is_all=False)[0]
    assert list(record.value.to_dict().values()) == expected


def test_timestamps_without_a_zone_are_of_the_databases_wall(postgresql_database):
    postgresql_database.run(
        "CREATE TABLE t (at timestamp, moment timestamptz)", "INSERT INTO t VALUES ('2020-07-01 14:00:00', '2020-07-01 14:00:00+02')"
    )
    options = {"db.timezone": "Europe/Berlin"}
    with SourceDriver(postgresql_database) as driver:
        record = driver.start(mode="bulk", **options).take(1, is_all=False)[0]
    noon = Instant.of(datetime.datetime(2020, 7, 1, 12))
    assert list(record.value.to_dict().values()) == [noon, noon]
    with sinks(postgresql_database) as start:
        sink = start(**options)
        sink.put(sink.record(record.value_schema, record.value))
    assert postgresql_database.rows("SELECT count(*), count(DISTINCT (at, moment)) FROM t") == [(2, 1)]
