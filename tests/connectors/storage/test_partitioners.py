"""Which folder a record goes to: by columns as by rows, named as Confluent's partitioners name them."""

import datetime

import numpy as np
import pytest
from pytest import param

from connectors.storage.date_patterns import DatePattern, zone_of
from connectors.storage.keys import PARTITIONER, STORAGE
from connectors.storage.partitioners import PARTITIONERS, Partitioner
from connectors.storage.timestamps import EXTRACTORS, milliseconds_of
from standalone import ConfigDef, ConfigError, DataError, Instant, Schema, SchemaBuilder, SinkRecord, Struct
from tests.connectors.storage.lake import Lake, batch
from tests.connectors.storage.records import EVERYTHING, START_MS, value

KEYS = ConfigDef(*STORAGE, *PARTITIONER)


def configured(**props):
    config = KEYS.parse({key.replace("__", "."): text for key, text in props.items()})
    made = PARTITIONERS.find(config["partitioner.class"])()
    made.configure(config)
    return made


def ms(text):
    return int(datetime.datetime.fromisoformat(text).timestamp() * 1000)


TIMED = [
    param({"partitioner__class": "Hourly", "timezone": "UTC"}, "2024-02-29T12:59:59+00:00", "year=2024/month=02/day=29/hour=12", id="hourly"),
    param({"partitioner__class": "Daily", "timezone": "Asia/Kolkata"}, "2024-02-29T19:00:00+00:00", "year=2024/month=03/day=01", id="daily in a zone"),
    param({"partitioner__class": "Hourly", "timezone": "Europe/Berlin"}, "2024-10-27T00:30:00+00:00", "year=2024/month=10/day=27/hour=02", id="the hour that comes twice, first"),
    param({"partitioner__class": "Hourly", "timezone": "Europe/Berlin"}, "2024-10-27T01:30:00+00:00", "year=2024/month=10/day=27/hour=02", id="the hour that comes twice, again"),
    param({"partitioner__class": "Daily", "timezone": "UTC"}, "1969-12-31T23:00:00+00:00", "year=1969/month=12/day=31", id="before the epoch"),
    param({"partitioner__class": "Daily", "timezone": "Europe/Amsterdam"}, "1936-12-31T23:50:00+00:00", "year=1937/month=01/day=01", id="an offset of odd seconds"),
    param(
        {"partitioner__class": "TimeBased", "timezone": "+02:00", "partition__duration__ms": "600000", "path__format": "'at'=yyyy-MM-dd--HH.mm"},
        "2024-02-29T12:39:59+00:00", "at=2024-02-29--14.30", id="stretches of ten minutes",
    ),
    param({"partitioner__class": "TimeBased", "timezone": "UTC", "partition__duration__ms": "1", "path__format": "ss.SSS"}, "2024-02-29T12:39:59.123+00:00", "59.123", id="milliseconds"),
]  # fmt: skip


@pytest.mark.parametrize("props, time, folder", TIMED)
def test_folders_of_times(props, time, folder):
    times = np.array([ms(time), ms("2024-05-05T05:05:00+00:00"), ms(time)])
    numbers, folders, bad = configured(**props).encode(batch([1, 2, 3]), times)
    assert [folders[number] for number in numbers][::2] == [folder, folder] and not bad


@pytest.mark.parametrize(
    "pattern, expected",
    [
        ("yyyy-MM-dd HH:mm:ss.SSS", "2024-02-29 13:05:09.007"),
        ("YY/M/d/H/m/s", "24/2/29/13/5/9"),
        ("xxxx-'W'ww-e", "2024-W09-4"),
        ("EEE EEEE MMM MMMM a hh K k", "Thu Thursday Feb February PM 01 1 13"),
        ("DDD C G", "060 20 AD"),
        ("'it''s' yyyy", "it's 2024"),
        ("Z ZZ", "+0000 +00:00"),
    ],
)
def test_date_patterns(pattern, expected):
    assert DatePattern(pattern, zone_of("UTC")).format(ms("2024-02-29T13:05:09.007+00:00")) == expected


@pytest.mark.parametrize("pattern, locale, said", [("yyyy-bb", "en", "'b'"), ("'open", "en", "is not closed"), ("MMM", "de-DE", "English")])
def test_patterns_that_are_none(pattern, locale, said):
    with pytest.raises(ValueError, match=said):
        DatePattern(pattern, zone_of("UTC"), locale)


PLACE = SchemaBuilder("struct").field("city", Schema.OPTIONAL_STRING).build()
ORDER = (
    SchemaBuilder("struct").field("country", Schema.OPTIONAL_STRING).field("n", Schema.INT32).field("ok", Schema.BOOLEAN).field("place", PLACE)
    .field("f", Schema.OPTIONAL_FLOAT64).build()
)  # fmt: skip


def order(country, n=1, ok=True, city="x"):
    return Struct(ORDER, {"country": country, "n": n, "ok": ok, "place": Struct(PLACE, {"city": city})})


FIELDS = [
    param("country", [order("de"), order(None), order("fr")], ORDER, ["country=de", "country=null", "country=fr"], id="texts and null"),
    param("n,ok", [order("de", -5), order("de", 7, False)], ORDER, ["n=-5/ok=true", "n=7/ok=false"], id="several"),
    param("place.city", [order("de", city="Bonn"), order("de", city=None)], ORDER, ["city=Bonn", "city=null"], id="within"),
    param("country", [order("a/../../etc"), order(".."), order("a b")], ORDER, ["country=a%2F..%2F..%2Fetc", "country=%2E%2E", "country=a b"], id="what would leave the folder"),
    param("a", [{"a": "x"}, {"a": None}, {"a": 3}, {"a": False}], None, ["a=x", "a=null", "a=3", "a=false"], id="without a schema"),
]


@pytest.mark.parametrize("names, values, schema, expected", FIELDS)
def test_folders_of_fields(names, values, schema, expected):
    partitioner, some = configured(partitioner__class="Field", partition__field__name=names), batch(values, schema)
    numbers, folders, bad = partitioner.encode(some)
    assert [folders[number] for number in numbers] == expected and not bad
    assert [partitioner.encode_partition(record) for record in some.records()] == expected, "by rows as by columns"


@pytest.mark.parametrize("name, said", [("f", "float"), ("nothing", "no field 'nothing'")])
def test_records_without_a_folder_are_bad(name, said):
    found = Struct(ORDER, {"country": "de", "n": 1, "ok": True, "place": Struct(PLACE), "f": 1.5})
    _, _, bad = configured(partitioner__class="Field", partition__field__name=name).encode(batch([found], ORDER))
    assert isinstance(bad[0], DataError) and said in str(bad[0])


class ByLength(Partitioner):
    def encode_partition(self, record):
        return f"length={len(record.value)}"


def test_a_partitioner_of_ones_own_is_a_class_with_one_method(tmp_path):
    lake = Lake(tmp_path, {"format.class": "String", "flush.size": 3, "partitioner.class": f"{__name__}:ByLength"}).start()
    lake.put(batch(["a", "bb", "c"], Schema.STRING))
    assert {path: lake.read(path) for path in lake.paths()} == {
        "length=1/t+0+0000000000+0000000002.txt": ["a", "c"],
        "length=2/t+0+0000000001+0000000001.txt": ["bb"],
    }


def test_classes_have_javas_names_and_short_ones():
    java = "io.confluent.connect.storage.partitioner."
    assert PARTITIONERS.find(f"{java}HourlyPartitioner") is PARTITIONERS.find("Hourly") is PARTITIONERS.find("HourlyPartitioner")
    assert EXTRACTORS.find(f"{java}TimeBasedPartitioner$RecordTimestampExtractor") is EXTRACTORS.find("Record")
    for text, said in (("Nothing", "is not a known partitioner"), ("builtins:dict", "not derived|not a class derived"), ("no.such:Thing", "cannot be loaded")):
        with pytest.raises(ConfigError, match=said):
            PARTITIONERS.find(text)


# --- Times ---


def times_of(kind, some, now=5, **props):
    config = KEYS.parse({"timestamp.extractor": kind, **props})
    extractor = EXTRACTORS.find(kind)()
    extractor.configure(config)
    times, bad = extractor.times(some, now)
    return [None if row in bad else int(time) for row, time in enumerate(times)]


TS = SchemaBuilder("struct").field("ts", Schema.OPTIONAL_INT64).build()


@pytest.mark.parametrize(
    "kind, some, props, expected",
    [
        param("Wallclock", batch([1, 2]), {}, [5, 5], id="the clock"),
        param("Record", batch([1, 2], timestamps=[7, -1]), {}, [7, None], id="the record's timestamp"),
        param("Record", batch([1]), {}, [None], id="no timestamps at all"),
        param("RecordField", batch([Struct(TS, {"ts": 9}), Struct(TS)], TS), {"timestamp.field": "ts"}, [9, None], id="a number"),
        param("RecordField", batch([value(0), value(3)], EVERYTHING), {"timestamp.field": "at"}, [START_MS, START_MS + 1_800_000], id="a Timestamp"),
        param(
            "RecordField", batch([{"a": {"b": text}} for text in ("2024-02-29T12:00:00.000Z", "2024-02-29T13:00:00+01:00", "2024-02-29", "no", None)]),
            {"timestamp.field": "a.b"}, [START_MS, START_MS, START_MS - 43_200_000, None, None], id="texts in ISO 8601",
        ),
        param("RecordField", batch([{"x": 1}]), {"timestamp.field": "ts"}, [None], id="no such field"),
    ],
)  # fmt: skip
def test_times(kind, some, props, expected):
    assert times_of(kind, some, **props) == expected


def test_a_moment_is_a_time():
    assert milliseconds_of("f", Instant(12)) == 12


def test_a_record_without_a_time_is_reported_and_the_others_written(tmp_path):
    reports = []
    props = {"format.class": "Json", "flush.size": 2, "partitioner.class": "Daily", "timezone": "UTC", "timestamp.extractor": "RecordField", "timestamp.field": "ts"}
    lake = Lake(tmp_path, props, reports).start()
    lake.put(batch([{"ts": START_MS}, {"ts": "never"}, {"ts": START_MS + 86_400_000}]))
    assert [path.rpartition("/")[0] for path in lake.paths()] == ["year=2024/month=02/day=29", "year=2024/month=03/day=01"]
    assert [offset for offset, _ in reports] == [1]


def test_records_stand_for_themselves():
    assert configured().encode_partition(SinkRecord("t", 3, 0)) == "partition=3"
