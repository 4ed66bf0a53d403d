"""Files of every format, partitioner and rotation, read back by the libraries that others read them with."""

import decimal

import pytest

from standalone import ByteColumn, DataError, Schema, SchemaBuilder, Struct, decimal_schema
from tests.connectors.storage.lake import Lake, batch
from tests.connectors.storage.records import EVERYTHING, MINUTE_MS, START_MS, seen, seen_in_csv, seen_in_json, seen_in_orc, value

SEEN = {"Parquet": seen, "Orc": seen_in_orc, "Avro": seen, "Json": seen_in_json, "Csv": seen_in_csv}
PARTITIONERS = {
    "default": {},
    "field": {"partitioner.class": "Field", "partition.field.name": "country,flag"},
    "hourly": {"partitioner.class": "Hourly", "timezone": "UTC", "timestamp.extractor": "RecordField", "timestamp.field": "at"},
}
FOLDERS = {
    "default": {"partition=0"},
    "field": {f"country={country}/flag={flag}" for country in ("de", "null", "fr") for flag in ("true", "false")},
    "hourly": {f"year=2024/month=02/day=29/hour={hour}" for hour in range(12, 17)},
}
ROTATIONS = {
    "by records": ({"flush.size": 8}, [7, 15, 23]),
    "by records' time": ({"flush.size": 1000, "rotate.interval.ms": 100 * MINUTE_MS, "timestamp.extractor": "RecordField", "timestamp.field": "at"}, [9, 19, 29]),
    "by the clock": ({"flush.size": 1000, "rotate.schedule.interval.ms": 60_000, "timezone": "UTC"}, [9, 19, 29]),
}


def batches(sizes, first=0):
    for size in sizes:
        times = [START_MS + number * 10 * MINUTE_MS for number in range(first, first + size)]
        yield batch([value(number) for number in range(first, first + size)], EVERYTHING, first, timestamps=times)
        first += size


@pytest.mark.parametrize("rotation", ROTATIONS)
@pytest.mark.parametrize("partitioner", PARTITIONERS)
@pytest.mark.parametrize("format", SEEN)
def test_what_was_put_is_what_others_read(tmp_path, format, partitioner, rotation):
    props, ends = ROTATIONS[rotation]
    lake = Lake(tmp_path, {"format.class": format, **PARTITIONERS[partitioner], **props}).start()
    for each in batches([10, 10, 10]):
        lake.put(each)
        lake.tick(60_000)
    if rotation == "by records' time":
        lake.put(next(batches([1], 30)))
    assert lake.commit() == {("t", 0): 24 if rotation == "by records" else 30}
    rows = lake.rows()
    if partitioner != "default":
        rows.sort(key=lambda row: int(row["id"]))
    assert rows == [SEEN[format](number) for number in range(24 if rotation == "by records" else 30)]
    paths = lake.paths()
    assert {path.rpartition("/")[0] for path in paths} <= FOLDERS[partitioner]
    if partitioner == "default":
        assert [int(path.split("+")[3].split(".")[0]) for path in paths] == ends
    lake.stop()
    assert not [path for path in (tmp_path / "topics" / "+tmp").rglob("*") if path.is_file()], "nothing is left behind"


def test_names_are_as_ever(tmp_path):
    lake = Lake(tmp_path, {"format.class": "io.confluent.connect.hdfs.avro.AvroFormat", "flush.size": 100}).start()
    lake.put(*batches([100]))
    assert lake.paths() == ["partition=0/t+0+0000000000+0000000099.avro"]


TEXT = Schema.OPTIONAL_STRING


@pytest.mark.parametrize(
    "format, values, schema, props, expected",
    [
        pytest.param("String", ["a", None, "ü"], TEXT, {}, (".txt", "a\nnull\nü\n".encode()), id="texts"),
        pytest.param("String", [{"a": 1}, [True]], None, {}, (".txt", b"{a=1}\n[true]\n"), id="values as Java prints them"),
        pytest.param("Bytes", ByteColumn.of([b"\x00\xff", b""]), Schema.BYTES, {}, (".bin", b"\x00\xff\n\n"), id="bytes"),
        pytest.param("Bytes", [b"a", b"b"], Schema.BYTES, {"format.bytearray.separator": "||", "format.bytearray.extension": ".x"}, (".x", b"a||b||"), id="bytes with a separator"),
        pytest.param("Json", [{"a": [1, None]}, None, "t"], None, {}, (".json", b'{"a":[1,null]}\nnull\n"t"\n'), id="JSON of values without a schema"),
    ],
)
def test_lines(tmp_path, format, values, schema, props, expected):
    lake = Lake(tmp_path, {"format.class": format, "flush.size": len(values), **props}).start()
    lake.put(batch(values, schema))
    (path,) = [path for path in (tmp_path / "topics" / "t").rglob("*") if path.is_file()]
    assert (path.suffix, path.read_bytes()) == expected


@pytest.mark.parametrize("props", [{"format.class": "Json"}, {"format.class": "Csv"}], ids=["json", "csv"])
def test_text_is_compressed_where_it_is_asked_for(tmp_path, props):
    lake = Lake(tmp_path, {"flush.size": 20, "text.compression.type": "gzip", **props}).start()
    lake.put(*batches([10, 10]))
    assert lake.paths()[0].endswith(".gz") and len(lake.rows()) == 20


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy", "bzip2"])
def test_avro_is_compressed(tmp_path, codec):
    lake = Lake(tmp_path, {"format.class": "Avro", "avro.codec": codec, "flush.size": 30}).start()
    lake.put(*batches([30]))
    assert lake.rows() == [seen(number) for number in range(30)]


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "lz4", "zstd"])
def test_parquet_is_compressed(tmp_path, codec):
    lake = Lake(tmp_path, {"parquet.codec": codec, "flush.size": 30}).start()
    lake.put(*batches([30]))
    assert lake.rows() == [seen(number) for number in range(30)]


def test_objects_without_a_schema_get_the_one_that_fits_all(tmp_path):
    lake = Lake(tmp_path, {"flush.size": 4}).start()
    lake.put(batch([{"a": 1}, {"b": "x", "a": 2.5}]), batch([{"b": "y"}, {"a": 7}], first=2))
    assert lake.rows() == [{"a": 1.0, "b": None}, {"a": 2.5, "b": "x"}, {"a": None, "b": "y"}, {"a": 7.0, "b": None}]


def test_a_new_field_without_a_schema_closes_the_file(tmp_path):
    lake = Lake(tmp_path, {"flush.size": 4}).start()
    lake.put(batch([{"a": 1}]), batch([{"b": "y"}], first=1), batch([{"a": 2}], first=2), batch([{"a": 3}, {"a": 4}], first=3))
    assert [lake.read(path) for path in lake.paths()] == [[{"a": 1}], [{"a": None, "b": "y"}, *({"a": number, "b": None} for number in (2, 3, 4))]]


POINT = SchemaBuilder("struct").field("x", Schema.INT32).build()


@pytest.mark.parametrize(
    "format, values, schema, said",
    [
        pytest.param("Parquet", ["a"], Schema.STRING, "HoistField", id="texts in Parquet"),
        pytest.param("Bytes", ["a"], Schema.STRING, "ByteArrayConverter", id="texts as bytes"),
        pytest.param("Parquet", [None], None, "null", id="a tombstone in Parquet"),
        pytest.param("Avro", [Struct.trusted(POINT, ["no number"])], POINT, "schema", id="a value that is not what its schema says"),
    ],
)
def test_what_has_no_place_is_refused(tmp_path, format, values, schema, said):
    lake = Lake(tmp_path, {"format.class": format}).start()
    with pytest.raises(DataError, match=said):
        lake.put(batch(values, schema))
    assert not lake.paths()


def test_bad_records_are_reported_and_the_others_written(tmp_path):
    reports = []
    lake = Lake(tmp_path, {"format.class": "Avro", "flush.size": 3}, reports).start()
    lake.put(batch([Struct(POINT, {"x": 1}), Struct.trusted(POINT, ["bad"]), Struct(POINT, {"x": 3}), None, Struct(POINT, {"x": 5})], POINT))
    assert lake.rows() == [{"x": 1}, {"x": 3}, {"x": 5}]
    assert [offset for offset, _ in reports] == [1, 3] and lake.commit() == {("t", 0): 5}


@pytest.mark.parametrize("format", ["Parquet", "Orc"])
def test_a_decimal_that_is_too_long_is_a_bad_record(tmp_path, format):
    schema, reports = SchemaBuilder("struct").field("n", decimal_schema(0)).build(), []
    lake = Lake(tmp_path, {"format.class": format, "flush.size": 4}, reports).start()
    numbers = [decimal.Decimal(n) for n in (1, 10**38, 3, 10**60, 5, 6)]
    lake.put(batch([Struct(schema, {"n": n}) for n in numbers], schema))
    assert [row["n"] for row in lake.rows()] == [1, 3, 5, 6] and [offset for offset, _ in reports] == [1, 3]
    assert all("38 digits" in said for _, said in reports)
