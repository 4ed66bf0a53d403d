"""Programs in Python (standalone/streams/dsl.py): each operation of Kafka Streams with what it makes of the same few records."""

import datetime
import json
import time

import pytest
from pytest import param

from standalone.errors import ConfigError
from standalone.streams import Stream, Streams
from tests.streams.on_worker import Sql

pytestmark = [pytest.mark.spark, pytest.mark.slow]

T0 = (int(time.time()) // 3600 - 2) * 3600  # a whole hour, not so long ago that the log would delete it
RECORDS = [("a", "one two"), ("b", "three"), ("a", "four")]
VISITS = [("a", 1), ("b", 2), ("a", 5), (None, 7)]

# (what is done to the stream, [(key, value)] of what results, in order)
OF_STREAMS = [
    param(lambda s: s.filter("value LIKE '%o%'"), [("a", "four"), ("a", "one two")], id="filter by SQL"),
    param(lambda s: s.filter(lambda key, value: key == "b"), [("b", "three")], id="filter by a function of key and value"),
    param(lambda s: s.filter_not("key = 'a'"), [("b", "three")], id="filter_not"),
    param(lambda s: s.filter_not(lambda value: value == "three"), [("a", "four"), ("a", "one two")], id="filter_not by a function"),
    param(lambda s: s.map_values("upper(value)"), [("a", "FOUR"), ("a", "ONE TWO"), ("b", "THREE")], id="map_values"),
    param(lambda s: s.map_values(lambda value: len(value), returns="int"), [("a", 4), ("a", 7), ("b", 5)], id="map_values by a function"),
    param(lambda s: s.map("value", "key"), [("four", "a"), ("one two", "a"), ("three", "b")], id="map"),
    param(lambda s: s.map(lambda key, value: key * 2, lambda value: value[0]), [("aa", "f"), ("aa", "o"), ("bb", "t")], id="map by functions"),
    param(lambda s: s.select_key("length(value)"), [(4, "four"), (5, "three"), (7, "one two")], id="select_key"),
    param(lambda s: s.flat_map("split(value, ' ')"), [("a", "four"), ("a", "one"), ("a", "two"), ("b", "three")], id="flat_map"),
    param(lambda s: s.flat_map(lambda value: value.split()), [("a", "four"), ("a", "one"), ("a", "two"), ("b", "three")], id="flat_map by a function"),
    param(lambda s: s.filter("key = 'b'").merge(s.map_values("'m'").filter("key = 'b'")), [("b", "m"), ("b", "three")], id="merge"),
    param(lambda s: s.with_frame(lambda frame: frame.selectExpr("key", "reverse(value) AS value", "time")),
          [("a", "owt eno"), ("a", "ruof"), ("b", "eerht")], id="with_frame"),
]  # fmt: skip
OF_GROUPS = [
    param(lambda s: s.group_by_key().count(), [("a", 2), ("b", 1), (None, 1)], id="count"),
    param(lambda s: s.group_by("value % 2 = 1").count(), [(False, 1), (True, 3)], id="group_by"),
    param(lambda s: s.group_by(lambda value: value > 1, returns="boolean").count(), [(False, 1), (True, 3)], id="group_by by a function"),
    param(lambda s: s.group_by_key().reduce("sum"), [("a", 6), ("b", 2), (None, 7)], id="reduce by sum"),
    param(lambda s: s.group_by_key().reduce("max", "value * 10"), [("a", 50), ("b", 20), (None, 70)], id="reduce of an expression"),
    param(lambda s: s.group_by_key().aggregate("struct(count(*) AS c, max(value) AS m)"), [("a", (2, 5)), ("b", (1, 2)), (None, (1, 7))], id="aggregate"),
    param(lambda s: s.group_by_key().count().map_values("-value").filter("key = 'a'"), [("a", -2)], id="map_values and filter of a table"),
]  # fmt: skip
WINDOWS = [
    param(lambda g: g.tumbling("1 minute"), [(0, 60, 2), (60, 120, 1), (360, 420, 1)], id="tumbling"),
    param(lambda g: g.hopping("2 minutes", "1 minute"), [(-60, 60, 2), (0, 120, 3), (60, 180, 1), (300, 420, 1), (360, 480, 1)], id="hopping"),
    param(lambda g: g.session("2 minutes"), [(0, 181, 3), (400, 520, 1)], id="session"),
]
MOMENTS = (0, 59, 61, 400)  # seconds


@pytest.fixture
def started(spark_holder, worker, tmp_path, topic):
    return Streams(spark_holder.wait(120), topic, {"bootstrap.servers": worker.bootstrap}, str(tmp_path))


@pytest.fixture
def stream_of(started):
    """stream_of(rows, columns): rows that already exist, as a Stream: what is done with it says what each batch of one would become."""

    def made(rows, columns):
        frame = started._session.createDataFrame(rows, columns)
        return Stream(started, frame.selectExpr("key", "value", f"{'time' if 'time' in frame.columns else 'current_timestamp()'} AS time"))

    return made


@pytest.fixture
def program(started, worker):
    """program(build): runs what `build(streams)` makes until all is done; gives access to the records."""

    def run(build):
        build(started)
        started.start()
        try:
            started.done()
        finally:
            started.stop()
        return Sql(worker)

    return run


def _rows(stream):
    return sorted(((row["key"], row["value"]) for row in stream.frame.collect()), key=lambda row: (row[0] is None, *row))


def test_operations(stream_of):
    lines, visits = stream_of(RECORDS, "key string, value string"), stream_of(VISITS, "key string, value int")
    wrong = {}
    for stream, cases in ((lines, OF_STREAMS), (visits, OF_GROUPS)):
        for case in cases:
            found = _rows(case.values[0](stream))
            if found != case.values[1]:
                wrong[case.id] = found
    assert not wrong


def test_windows(stream_of):
    moments = [datetime.datetime.fromtimestamp(T0 + moment, datetime.timezone.utc) for moment in MOMENTS]
    stream = stream_of([("a", 1, moment) for moment in moments], "key string, value int, time timestamp")
    for case in WINDOWS:
        window_of, wanted = case.values
        found = [(json.loads(key), count) for key, count in _rows(window_of(stream.group_by_key()).count())]
        assert sorted((key["start"] // 1000 - T0, key["end"] // 1000 - T0, count) for key, count in found) == wanted, case.id
        assert {key["key"] for key, _ in found} == {"a"}


def test_joins(program, worker, topic):
    users, clicks = f"{topic}-users", f"{topic}-clicks"
    worker.send(topic, RECORDS)
    worker.send(clicks, [("b", "click")])
    worker.send(users, [("a", "old"), ("a", "Ann"), ("b", "Bob"), ("b", None)])  # b is deleted

    def build(streams):
        orders = streams.stream(topic)
        orders.join(streams.table(users), value="coalesce(right.value, 'nobody')", how="left").to(f"{topic}-named")
        orders.join(streams.stream(clicks), within="1 hour").to(f"{topic}-pairs")

    sql = program(build)
    assert sorted(sql.records(f"{topic}-named")) == [(b"a", b"Ann"), (b"a", b"Ann"), (b"b", b"nobody")]
    assert sql.records(f"{topic}-pairs") == [(b"b", b'{"left":"three","right":"click"}')]


def test_windows_are_given_once_they_are_closed(program, worker, topic):
    worker.send(topic, [("a", json.dumps({"at": (T0 + moment) * 1000})) for moment in MOMENTS])

    def build(streams):
        stream = streams.stream(topic, value="struct<at: bigint>")
        timed = stream.with_frame(lambda frame: frame.selectExpr("key", "'x' AS value", "timestamp_millis(value.at) AS time"))
        timed.group_by_key().session("2 minutes", grace="0 seconds").count().to(f"{topic}-out")

    records = program(build).records(f"{topic}-out")
    assert [(json.loads(key), value) for key, value in records] == [
        ({"key": "a", "start": T0 * 1000, "end": (T0 + 181) * 1000}, (3).to_bytes(8, "big"))  # the later one is not closed yet
    ]


def test_through_writes_and_reads_on(program, worker, topic):
    worker.send(topic, RECORDS)
    sql = program(lambda streams: streams.stream(topic).filter("key = 'b'").through(f"{topic}-between").map_values("upper(value)").to(f"{topic}-out"))
    assert sql.records(f"{topic}-between") == [(b"b", b"three")]
    assert sql.records(f"{topic}-out") == [(b"b", b"THREE")]


def test_what_cannot_be_is_told(started, worker, topic):
    with pytest.raises(ConfigError, match=r"\.to\(topic\)"):
        started.start()
    with pytest.raises(ConfigError, match="within="):
        started.stream(topic).join(started.stream(topic))
    with pytest.raises(ConfigError, match="Use to_json for a struct"):
        started.stream(topic, key="struct<a: int>")
