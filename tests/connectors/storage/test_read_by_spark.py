"""Spark, which tables of Hive are read with, reads each format of files: all logical types, also within structs, lists and maps."""

import datetime
import decimal

import pytest

from standalone import Instant, Schema, SchemaBuilder, Struct, date_schema, decimal_schema, time_schema, timestamp_schema
from tests.connectors.storage.lake import Lake, batch

UTC = datetime.timezone.utc
MOMENTS = [-1, 0, 1_709_208_000_123, -2_177_452_800_000, 253_402_300_799_999]  # beside the epoch, a leap day, 1900, the last of year 9999


def logical(decimal=decimal_schema):
    return (
        SchemaBuilder("struct")
        .field("id", Schema.INT64)
        .field("at", timestamp_schema())
        .field("maybe", timestamp_schema(optional=True))
        .field("day", date_schema(optional=True))
        .field("price", decimal(2, optional=True))
        .field("within", SchemaBuilder("struct").optional().field("at", timestamp_schema()).field("price", decimal(3)).build())
        .field("each", SchemaBuilder.array(timestamp_schema()).build())
        .field("by", SchemaBuilder.map(Schema.STRING, date_schema()).build())
        .build()
    )


LOGICAL = logical()
WITH_CLOCK = SchemaBuilder("struct").field("clock", time_schema()).build()


def moments(format):
    """Of ORC those that its writer can: tests of its own say what happens to the others."""
    return [ms for ms in MOMENTS if format != "Orc" or ms >= 0 or ms % 1000 == 0]


def values(format="Parquet", schema=LOGICAL):
    inner = schema.field("within").schema
    for number, ms in enumerate(moments(format)):
        is_null = number % 2 == 1
        day = Instant(ms // 86_400_000 * 86_400_000)
        within = None if is_null else Struct(inner, {"at": Instant(ms), "price": decimal.Decimal("-1.234")})
        yield Struct(schema, {
            "id": number, "at": Instant(ms), "maybe": None if is_null else Instant(ms), "day": None if is_null else day,
            "price": None if is_null else decimal.Decimal(f"{number}.07"), "within": within, "each": [Instant(ms), Instant(0)], "by": {"d": day},
        })  # fmt: skip


def moment(ms):
    return datetime.datetime(1970, 1, 1, tzinfo=UTC) + datetime.timedelta(milliseconds=ms)


def wanted(format="Parquet", is_nested=True):
    for number, ms in enumerate(moments(format)):
        is_null, at = number % 2 == 1, moment(ms)
        row = {
            "id": number, "at": at, "maybe": None if is_null else at, "day": None if is_null else at.date(),
            "price": None if is_null else decimal.Decimal(f"{number}.07"),
        }  # fmt: skip
        if is_nested:
            row["within"] = None if is_null else {"at": at, "price": decimal.Decimal("-1.234")}
            row |= {"each": [at, moment(0)], "by": {"d": at.date()}}
        yield row


@pytest.fixture
def folder(tmp_path):
    def write(format, schema, structs):
        lake = Lake(tmp_path, {"format.class": format, "flush.size": len(structs)}).start()
        lake.put(batch(structs, schema))
        lake.stop()
        return str(tmp_path / "topics" / "t")

    return write


@pytest.mark.parametrize("format", ["Parquet", "Orc"])
def test_logical_types_are_what_was_put(spark_holder, folder, format):
    read = spark_holder.ready().read.format(format.lower()).load(folder(format, LOGICAL, list(values(format))))
    kinds = dict(read.drop("partition").dtypes)
    assert kinds["at"] == kinds["maybe"] == "timestamp" and kinds["day"] == "date" and kinds["price"] == "decimal(38,2)"
    assert kinds["within"] == "struct<at:timestamp,price:decimal(38,3)>" and kinds["each"] == "array<timestamp>"
    found = read.drop("partition").orderBy("id").toArrow().to_pylist(maps_as_pydicts="strict")
    assert found == list(wanted(format))


def test_a_time_that_would_spoil_a_file_of_orc_is_a_bad_record(tmp_path):
    reports = []
    lake = Lake(tmp_path, {"format.class": "Orc", "flush.size": 2}, reports).start()
    schema = SchemaBuilder("struct").field("at", timestamp_schema(optional=True)).build()
    lake.put(batch([Struct(schema, {"at": at}) for at in (Instant(-1000), Instant(-1), None)], schema))
    assert lake.rows() == [{"at": datetime.datetime(1969, 12, 31, 23, 59, 59)}, {"at": None}]
    ((offset, said),) = reports
    assert offset == 1 and "Timestamp of -1 ms" in said


def test_a_time_of_day_is_a_number_in_orc(spark_holder, folder):
    read = spark_holder.ready().read.orc(folder("Orc", WITH_CLOCK, [Struct(WITH_CLOCK, {"clock": Instant(86_399_999)})]))
    assert read.drop("partition").toArrow().to_pylist() == [{"clock": 86_399_999}]


def test_json_and_csv_read_as_they_are_declared(spark_holder, folder):
    """Strings have no types of their own: JSON has Connect's numbers, CSV what ISO 8601 says."""
    read = spark_holder.ready().read.schema("id long, at long, maybe long, day int").json(folder("Json", LOGICAL, list(values())))
    days = [row["day"] and (row["day"] - datetime.date(1970, 1, 1)).days for row in wanted()]
    found = read.drop("partition").orderBy("id").toArrow().to_pylist()
    assert [(row["id"], row["at"]) for row in found] == list(enumerate(MOMENTS)) and [row["day"] for row in found] == days


def test_csv_reads_as_it_is_declared(spark_holder, folder):
    told = "id long, at timestamp, maybe timestamp, day date, price decimal(38,2)"
    place = folder("Csv", LOGICAL, list(values()))
    read = spark_holder.ready().read.schema(f"{told}, within string, each string, by string").csv(place, header=True, escape='"')
    found = read.select("id", "at", "maybe", "day", "price").orderBy("id").toArrow().to_pylist()
    assert found == list(wanted(is_nested=False))
