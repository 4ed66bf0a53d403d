"""When files are closed, and what a change of the schema does."""

import pytest
from pytest import param

from connectors.storage.sink import LakeSinkConnector
from standalone import DataError, Schema, SchemaBuilder, Struct
from tests.connectors.storage.lake import Lake, batch

TEXT = Schema.STRING
MINUTE = 60_000


def lines(lake):
    return [lake.read(path) for path in lake.paths()]


def texts(first, count):
    return batch([str(number) for number in range(first, first + count)], TEXT, first, timestamps=[number * MINUTE for number in range(first, first + count)])


@pytest.mark.parametrize("sizes", [[25], [1] * 25, [9, 9, 7]], ids=["at once", "one by one", "in pieces"])
def test_files_hold_flush_size_records_however_they_come(tmp_path, sizes):
    lake, first = Lake(tmp_path, {"format.class": "String", "flush.size": 10}).start(), 0
    for size in sizes:
        lake.put(texts(first, size))
        first += size
    assert lines(lake) == [[str(number) for number in range(low, low + 10)] for low in (0, 10)]
    assert lake.commit() == {("t", 0): 20}


def test_the_clock_closes_files_with_no_new_data(tmp_path):
    lake = Lake(tmp_path, {"format.class": "String", "flush.size": 100, "rotate.schedule.interval.ms": 10 * MINUTE, "timezone": "Europe/Berlin"})
    lake.now = 1_700_000_000_000  # 22:13:20 UTC
    lake.start().put(texts(0, 3))
    assert lake.context.timeouts[-1] == (6 * 60 + 40) * 1000, "it asks to be called when the clock strikes"
    lake.tick(6 * MINUTE)
    assert lines(lake) == []
    lake.tick(MINUTE)
    assert lines(lake) == [["0", "1", "2"]] and lake.commit() == {("t", 0): 3}
    lake.tick(60 * MINUTE)
    assert len(lake.paths()) == 1, "there are no empty files"


def test_by_the_records_time_a_later_record_opens_the_next_file(tmp_path):
    lake = Lake(tmp_path, {"format.class": "String", "flush.size": 100, "rotate.interval.ms": 5 * MINUTE, "timestamp.extractor": "Record"}).start()
    lake.put(texts(0, 12))
    lake.tick(60 * MINUTE)
    assert lines(lake) == [[str(number) for number in range(low, low + 5)] for low in (0, 5)], "without a record the records' time stands still"


def test_late_data_does_not_close_files(tmp_path):
    lake = Lake(tmp_path, {"format.class": "String", "flush.size": 4, "rotate.interval.ms": 5 * MINUTE, "timestamp.extractor": "Record"}).start()
    lake.put(batch(["a", "late", "b", "c"], TEXT, timestamps=[100 * MINUTE, 0, 101 * MINUTE, 104 * MINUTE]))
    assert lines(lake) == [["a", "late", "b", "c"]]


def test_with_wallclock_the_interval_ends_without_records(tmp_path):
    lake = Lake(tmp_path, {"format.class": "String", "flush.size": 100, "rotate.interval.ms": 5 * MINUTE}).start()
    lake.put(texts(0, 2))
    lake.tick(5 * MINUTE - 1)
    assert not lake.paths() and lake.context.timeouts[-1] == 1
    lake.tick(1)
    assert lines(lake) == [["0", "1"]]


# --- Versions ---

V1 = SchemaBuilder("struct").name("R").version(1).field("a", Schema.INT32).build()
V2 = SchemaBuilder("struct").name("R").version(2).field("a", Schema.INT64).field("b", SchemaBuilder("string").default("none").build()).build()
ONE, TWO = Struct(V1, {"a": 1}), Struct(V2, {"a": 2, "b": "x"})
A1, A1B, A2 = {"a": 1}, {"a": 1, "b": "none"}, {"a": 2, "b": "x"}


@pytest.mark.parametrize(
    "mode, versions, expected",
    [
        param("NONE", [1, 2, 1], [[A1], [A2], [A1]], id="any change closes the file"),
        param("BACKWARD", [1, 2, 1], [[A1], [A2, A1B]], id="older ones are brought to the newer"),
        param("FULL", [1, 2, 1, 1], [[A1], [A2, A1B, A1B]], id="full is as backward"),
        param("FORWARD", [2, 1, 1], [[A2], [A1, A1]], id="an older one closes the file"),
    ],
)
@pytest.mark.parametrize("format", ["Parquet", "Avro", "Json"])
def test_a_change_of_the_schema(tmp_path, format, mode, versions, expected):
    lake = Lake(tmp_path, {"format.class": format, "flush.size": 100, "schema.compatibility": mode}).start()
    for offset, version in enumerate(versions):
        lake.put(batch([ONE if version == 1 else TWO], V1 if version == 1 else V2, offset))
    # The last file is closed by what comes after it: another version, which that mode takes for a change.
    last = {"FORWARD": V1}.get(mode, V2 if mode != "NONE" else [V1, V2][versions[-1] - 1])
    behind = last.with_(version=0 if mode == "FORWARD" else 9)
    lake.put(batch([Struct.trusted(behind, list((ONE if last is V1 else TWO).values))], behind, len(versions)))
    assert lines(lake) == expected


def test_versions_are_needed_to_go_by_them(tmp_path):
    lake = Lake(tmp_path, {"schema.compatibility": "BACKWARD"}).start()
    plain = V1.with_(version=None)
    with pytest.raises(DataError, match="schema.compatibility=BACKWARD"):
        lake.put(batch([Struct(plain, {"a": 1})], plain), batch([Struct(plain.with_(doc="other"), {"a": 1})], plain.with_(doc="other"), 1))


# --- What is refused before anything runs ---


@pytest.mark.parametrize(
    "props, key",
    [
        ({"partitioner.class": "Hourly"}, "timezone"),
        ({"rotate.schedule.interval.ms": "1000"}, "timezone"),
        ({"partitioner.class": "TimeBased", "timezone": "UTC"}, "path.format"),
        ({"partitioner.class": "TimeBased", "timezone": "UTC", "path.format": "yyyy"}, "partition.duration.ms"),
        ({"partitioner.class": "TimeBased", "timezone": "UTC", "path.format": "qq", "partition.duration.ms": "1"}, "path.format"),
        ({"partitioner.class": "Field"}, "partition.field.name"),
        ({"store.url": "gopher://x"}, "store.url"),
    ],
)
def test_keys_that_do_not_go_together(props, key):
    given = {"store.url": "/tmp/lake", "flush.size": "1", **props}
    assert key in LakeSinkConnector().validate(given)


@pytest.mark.parametrize("props", [{"format.class": "Excel"}, {"timezone": "Mars"}, {"partitioner.class": "no.such:Thing"}, {"partition.field.name": "a,,b"}, {"parquet.codec": "lzma"}])
def test_values_that_are_none(props):
    values = LakeSinkConnector.config_def.validate({"store.url": "/x", "flush.size": "1", **props})
    assert [value.name for value in values if value.errors] == list(props)
