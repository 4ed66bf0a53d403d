"""FilesSource: what is in files of each format, each file once, and what happens to it."""

import datetime
import decimal
import gzip
import json
import os
import re

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from connectors.storage.arrow_values import schema_of
from connectors.storage.files_source import FilesSourceConnector, FilesSourceTask
from standalone import ConnectError, DataError, Instant, Schema, SchemaBuilder, Struct
from standalone.connector import OffsetReader, SourceTaskContext
from standalone.local_worker import LocalWorker, wait_for
from standalone.suites import SourceSuite
from tests.connectors.storage.lake import Lake, batch
from tests.connectors.storage.records import EVERYTHING, value

OLD = 1_000_000_000
TEXTS = SchemaBuilder("struct").field("text", Schema.STRING).build()


class Offsets(OffsetReader):
    def __init__(self):
        self.known = {}

    def offset(self, partition):
        return self.known.get(partition["path"])


class Source:
    """A task by hand; what it brings is stored at once."""

    def __init__(self, folder, offsets=None, **props):
        self.offsets = offsets or Offsets()
        self.task = FilesSourceTask()
        context = SourceTaskContext()
        context.offset_reader = self.offsets
        self.task.initialize(context)
        self.task.start({"path": str(folder), "topic": "t", "look.interval.ms": "1", **{key.replace("__", "."): str(item) for key, item in props.items()}})

    def take(self, limit=None):
        """Values of all there is now, or until there are so many."""
        found = []
        while (limit is None or len(found) < limit) and (some := self.task.poll()) is not None:
            found += [record.value for record in some.records()]
            self.offsets.known[some.source_partition["path"]] = some.offset_of(len(some) - 1)
            self.task.commit()
        return found


def put(folder, name, data, age=OLD):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    os.utime(path, (age, age))
    return path


@pytest.mark.parametrize("format", ["Parquet", "Orc", "Avro"])
def test_what_the_sink_has_written_comes_back(tmp_path, format):
    lake = Lake(tmp_path, {"format.class": format, "flush.size": 10, "avro.codec": "snappy"}).start()
    values = [value(number) for number in range(20)]
    lake.put(batch(values, EVERYTHING))
    found = Source(tmp_path / "topics" / "t", settled__after__ms=0, batch__size=3).take()
    assert [_plain(each) for each in found] == [_plain(each, format) for each in values]


@pytest.mark.parametrize("name", ["a.parquet", "a.avro", "a.json.gz", "a.txt"])  # CSV is read ahead by megabytes
def test_the_log_tells_how_far_it_has_come(tmp_path, name, caplog, monkeypatch):
    monkeypatch.setattr("connectors.storage.files_source.WORD_SECONDS", 0)
    if name in ("a.parquet", "a.avro"):
        lake = Lake(tmp_path / "lake", {"format.class": name.partition(".")[2].capitalize(), "flush.size": 20_000}).start()
        for first in range(0, 20_000, 2000):  # a block of Avro each
            lake.put(batch([Struct(TEXTS, {"text": os.urandom(300).hex()}) for _ in range(2000)], TEXTS, first))
        (path,) = lake.root.rglob("t+*")
        put(tmp_path / "in", name, path.read_bytes())
    else:
        lines = "".join(f'{{"n":{number},"text":"{os.urandom(40).hex()}"}}\n' for number in range(20_000))
        put(tmp_path / "in", name, gzip.compress(lines.encode()) if name.endswith(".gz") else lines)
    put(tmp_path / "in", "later.txt", "x\n", OLD + 1)
    with caplog.at_level("INFO", "connectors.storage.files_source"):
        Source(tmp_path / "in", settled__after__ms=0, batch__size=2000).take()
    told = [int(each) for each in re.findall(r"(\d+) % of all known bytes", caplog.text)]
    assert told == sorted(told) and len(set(told)) > 4 and told[0] < 60 and told[-1] == 100


def _plain(struct, format=None):
    plain = {name: item.to_dict() if hasattr(item, "to_dict") else item for name, item in struct.to_dict().items()}
    if format == "Orc":
        plain["clock"] = plain["clock"].ms
    return plain


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy", "bzip2"])
def test_avro_of_each_codec(tmp_path, codec):
    lake = Lake(tmp_path, {"format.class": "Avro", "flush.size": 5, "avro.codec": codec}).start()
    lake.put(batch([value(number) for number in range(5)], EVERYTHING))
    assert [each["id"] for each in Source(tmp_path / "topics", settled__after__ms=0).take()] == list(range(5))


@pytest.mark.parametrize(
    "name, data, expected",
    [
        ("a.json", '{"a":1}\n\n[2]\n', [{"a": 1}, [2]]),
        ("a.jsonl.gz", gzip.compress(b'{"a":1}\n', mtime=0), [{"a": 1}]),
        ("a.txt", "one\r\ntwo\nno end", ["one", "two", "no end"]),
        ("a.csv", 'n,text\n1,"a, b"\nx,\n', [{"n": "1", "text": "a, b"}, {"n": "x", "text": None}]),
        ("a.csv.gz", gzip.compress(b"n\n1\n", mtime=0), [{"n": "1"}]),
    ],
)
def test_lines(tmp_path, name, data, expected):
    put(tmp_path, name, data)
    assert [each.to_dict() if hasattr(each, "to_dict") else each for each in Source(tmp_path).take()] == expected


def test_columns_of_others(tmp_path):
    table = pa.table({
        "dict": pa.array(["a", "b", "a"]).dictionary_encode(), "u": pa.array([1, 2, 3], pa.uint32()),
        "us": pa.array([-1, 1_500, None], pa.timestamp("us")), "fixed": pa.array([b"ab", None, b"cd"], pa.binary(2)),
        "dec": pa.array([decimal.Decimal("1.50"), None, decimal.Decimal("-2.25")]), "ns": pa.array([5_000_000, None, 0], pa.time64("ns")),
        "day": pa.array([datetime.date(1969, 12, 31), None, None]), "list": pa.array([[1], None, [2, 3]]),
    })  # fmt: skip
    pq.write_table(table, tmp_path / "a.parquet")
    rows = [each.to_dict() for each in Source(tmp_path, settled__after__ms=0).take()]
    assert [row["us"] for row in rows] == [Instant(-1), Instant(1), None]
    assert [row["dict"] for row in rows] == ["a", "b", "a"] and [row["fixed"] for row in rows] == [b"ab", None, b"cd"]
    assert [str(row["dec"]) for row in rows] == ["1.50", "None", "-2.25"] and rows[0]["ns"] == Instant(5)
    assert rows[0]["day"] == Instant(-86_400_000) and [row["list"] for row in rows] == [[1], None, [2, 3]]
    with pytest.raises(DataError, match="duration"):
        schema_of(pa.schema([("took", pa.duration("s"))]))


def test_slices_of_stripes_keep_their_rows(tmp_path):
    orc.write_table(pa.table({"n": range(10), "in": [{"x": [number]} for number in range(10)]}), tmp_path / "a.orc")
    assert [each["in"]["x"] for each in Source(tmp_path, settled__after__ms=0, batch__size=3).take()] == [[number] for number in range(10)]


# --- Which files, and what happens to them ---


def test_files_come_in_the_order_of_their_times_and_later_ones_as_well(tmp_path):
    put(tmp_path, "b.txt", "1\n", OLD)
    put(tmp_path, "deep/a.txt", "2\n", OLD + 1)
    for name in (".hidden.txt", "_part.txt", "_temporary/x.txt", "unknown.bin"):
        put(tmp_path, name, "no\n")
    source = Source(tmp_path)
    assert source.take() == ["1", "2"]
    put(tmp_path, "c.txt", "3\n")
    assert wait_for(source.take) == ["3"] and source.take() == []


def test_a_pattern_names_files(tmp_path):
    put(tmp_path, "a.txt", "a\n")
    put(tmp_path, "b.log", "b\n")
    assert Source(tmp_path / "*.log").take() == ["b"]


def test_a_file_that_still_grows_is_waited_for(tmp_path):
    path = put(tmp_path, "a.txt", "half", age=2 * OLD)  # ahead of the clock: changed just now
    source = Source(tmp_path, settled__after__ms=100)
    assert source.take() == []
    put(tmp_path, "a.txt", "half and whole\n", age=2 * OLD + 1)
    assert wait_for(source.take) == ["half and whole"] and path.exists()


def test_a_restart_goes_on_in_the_midst_of_a_file(tmp_path):
    put(tmp_path, "a.txt", "".join(f"{number}\n" for number in range(10)))
    first = Source(tmp_path, batch__size=3)
    assert first.take(limit=6) == [str(number) for number in range(6)]
    assert Source(tmp_path, first.offsets, batch__size=4).take() == [str(number) for number in range(6, 10)]
    assert Source(tmp_path, first.offsets).take() == [], "it is read once"
    put(tmp_path, "a.txt", "another\n", OLD + 5)
    assert Source(tmp_path, first.offsets).take() == ["another"], "one that was replaced is another"


@pytest.mark.parametrize("action", ["delete", "move", "keep"])
def test_what_becomes_of_a_finished_file(tmp_path, action):
    path, done = put(tmp_path / "in", "a.txt", "a\nb\n"), tmp_path / "done"
    put(done, "a.txt", "was there")
    source = Source(tmp_path / "in", finished__action=action, finished__folder=done, batch__size=1)
    source.take(limit=1)
    assert path.exists(), "not all of it is stored yet"
    source.take()
    assert path.exists() is (action == "keep")
    assert sorted(each.name for each in done.iterdir()) == (["a.txt", "a.txt.1"] if action == "move" else ["a.txt"])


def test_a_file_whose_end_was_stored_but_which_was_not_moved_is_moved_at_the_next_start(tmp_path):
    path = put(tmp_path, "a.txt", "a\n")
    source = Source(tmp_path)
    source.take()
    assert Source(tmp_path, source.offsets, finished__action="delete").take() == [] and not path.exists()


def test_a_bad_file_fails_the_task_or_is_left(tmp_path):
    put(tmp_path, "a.parquet", "no parquet", OLD)
    put(tmp_path, "b.json", '{"a":1}\n{"a":', OLD + 1)
    put(tmp_path, "c.avro", b"Obj\x01\x00", OLD + 2)
    put(tmp_path, "d.txt", "good\n", OLD + 3)
    with pytest.raises(ConnectError, match="a.parquet.*bad.files=skip"):
        Source(tmp_path).take()
    source = Source(tmp_path, bad__files="skip")
    assert source.take() == ["good"] and source.take() == []


def test_tasks_share_the_files(tmp_path):
    for number in range(20):
        put(tmp_path, f"{number}.txt", f"{number}\n")
    connector = FilesSourceConnector()
    connector.start({"path": str(tmp_path), "topic": "t"})
    parts = [set(Source(tmp_path, **{key.replace(".", "__"): item for key, item in config.items() if key.startswith("files")}).take()) for config in connector.task_configs(3)]
    assert all(parts) and sorted(number for part in parts for number in map(int, part)) == list(range(20))


@pytest.mark.parametrize("props, key", [({"finished.action": "move"}, "finished.folder")])
def test_keys_that_do_not_go_together(props, key):
    assert key in FilesSourceConnector().validate({"path": "/in", "topic": "t", **props})


def test_offsets_can_be_set():
    connector = FilesSourceConnector()
    assert connector.alter_offsets({}, [({"path": "/a"}, {"row": 3}), ({"path": "/b"}, None)])
    with pytest.raises(ConnectError, match="row"):
        connector.alter_offsets({}, [({"file": "/a"}, {"row": 3})])


class TestFilesSource(SourceSuite):
    connector = FilesSourceConnector
    expected = [f"line {number}" for number in range(4)]

    def given(self, folder):
        put(folder / "in", "a.txt", "".join(f"{line}\n" for line in self.expected))
        return {"path": str(folder / "in"), "topic": "lines", "look.interval.ms": "10"}


def test_a_worker_brings_parquet_to_a_topic(tmp_path):
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"n": [1, 2], "t": ["a", None]}), tmp_path / "in" / "a.parquet")
    props = {"connector.class": "FilesSource", "path": str(tmp_path / "in"), "topic": "rows", "finished.action": "delete", "settled.after.ms": "0"}
    json_converter = {"value.converter": "org.apache.kafka.connect.json.JsonConverter", "value.converter.schemas.enable": "false"}
    with LocalWorker(tmp_path) as worker:
        worker.create("files", {**props, **json_converter})
        assert [json.loads(each) for each in worker.values("rows", 2)] == [{"n": 1, "t": "a"}, {"n": 2, "t": None}]
        wait_for(lambda: not list((tmp_path / "in").iterdir()))


