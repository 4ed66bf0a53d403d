"""S3SinkConnector on a real server of S3's protocol: keys, metadata, and each record exactly once under kills and races."""

import io
import itertools
import json
import random
import threading

import fastavro
import pyarrow.parquet as pq
import pytest
from pytest import param

from connectors.storage.s3 import S3Store
from connectors.storage.s3_sink import S3SinkConnector, S3SinkTask
from standalone import ConnectError, Header, RetriableError, Schema, SchemaBuilder, SinkRecord, Struct
from standalone.data.batch import SinkBatch
from tests.connectors.storage.lake import Lake, batch
from tests.connectors.storage.records import EVERYTHING, seen, value

ROW = SchemaBuilder("struct").name("Row").field("n", Schema.INT64).field("kind", Schema.STRING).build()
JSON = {"format.class": "io.confluent.connect.s3.format.json.JsonFormat"}
FIELD = {"partitioner.class": "Field", "partition.field.name": "kind"}
_numbers = itertools.count()


class Killed(BaseException):
    pass


class S3Lake(Lake):
    task_class = S3SinkTask

    def __init__(self, s3, props, reports=None, bucket=None):
        self.client, url, (access, secret) = s3
        self.bucket = bucket or f"lake-{random.randrange(1 << 40):x}-{next(_numbers)}"
        if bucket is None:
            self.client.create_bucket(Bucket=self.bucket)
        super().__init__("", {}, reports)
        login = {"aws.access.key.id": access, "aws.secret.access.key": secret, "s3.region": "us-east-1"}
        given = {"s3.bucket.name": self.bucket, "store.url": url, "flush.size": "10", **login, **props}
        self.props = {"storage.class": "io.confluent.connect.s3.storage.S3Storage", **{key: str(item) for key, item in given.items()}}

    def keys(self):
        return [each["Key"] for each in self.client.list_objects_v2(Bucket=self.bucket).get("Contents", [])]

    def data(self, key):
        return self.client.get_object(Bucket=self.bucket, Key=key)["Body"].read()

    def numbers(self):
        """{folder: the numbers in its objects, in the order of their keys}"""
        found = {}
        for key in sorted(self.keys()):
            found.setdefault(key.rpartition("/")[0], []).extend(json.loads(line)["n"] for line in self.data(key).splitlines())
        return found


def rows(first, count):
    return batch([Struct(ROW, {"n": number, "kind": "abc"[number % 3]}) for number in range(first, first + count)], ROW, first)


def check(lake, count, is_over=True):
    found = lake.numbers()
    numbers = sorted(number for each in found.values() for number in each)
    assert len(numbers) == len(set(numbers)), "a record is there twice"
    assert all(each == sorted(each) for each in found.values())
    assert set(range(lake.committed.get(("t", 0), 0))) <= set(numbers), "an offset ran ahead of what is stored"
    if is_over:
        assert numbers == list(range(count))


@pytest.mark.parametrize(
    "props, key",
    [
        param(JSON, "topics/t/partition=0/t+0+0000000000.json", id="json"),
        param(JSON | {"s3.compression.type": "gzip", "topics.dir": "", "file.delim": "_"}, "t/partition=0/t_0_0000000000.json.gz", id="gzip, no folder of topics"),
        param({"format.class": "Avro", "filename.offset.zero.pad.width": 3}, "topics/t/partition=0/t+0+000.avro", id="avro"),
        param({"format.class": "io.confluent.connect.s3.format.parquet.ParquetFormat"}, "topics/t/partition=0/t+0+0000000000.snappy.parquet", id="parquet"),
        param({"format.class": "Parquet", "parquet.codec": "none"} | FIELD, "topics/t/kind=a/t+0+0000000000.parquet", id="parquet as it is"),
        param(JSON | {"s3.schema.partition.affix.type": "SUFFIX"}, "topics/t/partition=0/schema_name=Row/t+0+0000000000.json", id="the schema's name behind"),
        param(JSON | {"s3.schema.partition.affix.type": "PREFIX", "directory.delim": "_"}, "topics_t_schema_name=Row_partition=0_t+0+0000000000.json", id="before, another delimiter"),
    ],
)
def test_keys_are_as_ever(s3, props, key):
    lake = S3Lake(s3, props).start()
    lake.put(rows(0, 10))
    assert key in lake.keys()
    lake.stop()


def test_objects_tell_what_is_in_them(s3):
    lake = S3Lake(s3, JSON | {"s3.object.tagging": "true", "s3.object.tagging.key.value.pairs": "team:data", "s3.send.digest": "true"}).start()
    lake.put(rows(0, 10))
    (key,) = lake.keys()
    told = lake.client.head_object(Bucket=lake.bucket, Key=key)["Metadata"]
    assert told == {"connect-first-offset": "0", "connect-last-offset": "9", "connect-record-count": "10"}
    tags = {each["Key"]: each["Value"] for each in lake.client.get_object_tagging(Bucket=lake.bucket, Key=key)["TagSet"]}
    assert tags == {"startOffset": "0", "endOffset": "9", "recordCount": "10", "team": "data"}


def test_values_of_every_type_come_back(s3):
    for format, read in (("Avro", lambda data: list(fastavro.reader(io.BytesIO(data)))), ("Parquet", _parquet)):
        lake = S3Lake(s3, {"format.class": format, "flush.size": 20}).start()
        lake.put(batch([value(number) for number in range(20)], EVERYTHING))
        assert read(lake.data(lake.keys()[0])) == [seen(number) for number in range(20)]


def _parquet(data):
    return pq.read_table(io.BytesIO(data)).to_pylist(maps_as_pydicts="strict")


def test_a_large_object_is_sent_in_parts_and_on_the_same_condition(s3, monkeypatch):
    data = [b"%07d" % number + b"x" * 1_000_000 for number in range(12)]
    props = {"format.class": "Bytes", "flush.size": 12, "s3.part.size": 5 << 20}
    lake = S3Lake(s3, props).start()
    lake.put(batch(data, Schema.BYTES))
    assert lake.data(lake.keys()[0]).split(b"\n")[:-1] == data
    other = S3Lake(s3, props, bucket=lake.bucket).start()
    other.put(batch([b"other" * 200_000] * 12, Schema.BYTES))
    assert lake.data(lake.keys()[0]).startswith(b"0000000x"), "what was there first stays"
    assert other.commit() == {("t", 0): 12}


# --- Exactly once ---


class Killing(S3Store):
    """Ends the task before or after the put of that number."""

    left, lock = 10**9, threading.Lock()

    def put(self, *arguments):
        self._point()
        done = super().put(*arguments)
        self._point()
        return done

    @classmethod
    def _point(cls):
        with cls.lock:
            cls.left -= 1
            if cls.left < 0:
                raise Killed


@pytest.fixture
def killing(monkeypatch):
    monkeypatch.setattr("connectors.storage.s3.S3Store", Killing)
    monkeypatch.setattr(Killing, "left", 10**9)
    return Killing


def live(lake, killing, left, rng, count=60):
    killing.left = left
    try:
        lake.start()
        while (position := lake.positions["t", 0]) < count or lake.context.offsets:
            lake.context.offsets.clear()
            lake.put(rows(position, min(count - position, rng.randrange(1, 25))) if position < count else rows(count - 1, 1))
            lake.positions.update(lake.context.offsets)
            if rng.random() < 0.5 and not lake.context.offsets:
                lake.commit()
        lake.commit()
        lake.stop()
    except Killed:
        return False
    return True


@pytest.mark.parametrize("seed, props", [(0, {}), (1, FIELD), (2, FIELD), (3, FIELD)])
def test_killed_again_and_again_with_files_of_other_lengths(s3, killing, props, seed):
    rng = random.Random(seed)
    lake = S3Lake(s3, JSON | props)
    over, lives = False, 0
    while not over:
        lives += 1  # ever longer ones: what is found out again in each costs puts as well
        lake.props["flush.size"] = str(rng.choice([5, 6, 10, 12]) if rng.random() < 0.7 else 10)
        over = live(lake, killing, rng.randrange(1, 14 + 4 * lives), rng)
        check(lake, 60, False)
    killing.left = 10**9
    lake.props["flush.size"] = "1"  # what is left of the last life
    assert live(lake, killing, 10**9, rng)
    check(lake, 60)


def test_two_tasks_at_once_write_each_record_once(s3):
    one = S3Lake(s3, JSON | FIELD | {"flush.size": 12}).start()
    other = S3Lake(s3, JSON | FIELD | {"flush.size": 20}, bucket=one.bucket).start()
    rng = random.Random(1)
    while min(one.positions["t", 0], other.positions["t", 0]) < 240:
        lake = rng.choice([one, other])
        lake.context.offsets.clear()
        position = lake.positions["t", 0]
        if position < 240:
            lake.put(rows(position, min(240 - position, rng.randrange(1, 30))))
            lake.positions.update(lake.context.offsets)
    one.committed = {}
    check(one, 240)


def test_without_conditions_what_comes_again_replaces_what_was_there(s3):
    lake = S3Lake(s3, JSON | {"enable.conditional.writes": "false"})
    for _ in range(2):
        lake.start().put(rows(0, 20))
    check(lake, 20)


# --- Keys, headers, tombstones ---


def records(*values):
    made = [
        SinkRecord("t", 0, offset, key_schema=Schema.STRING, key=f"k{offset}", value_schema=None if value is None else ROW,
                   value=None if value is None else Struct(ROW, {"n": value, "kind": "a"}), headers=(Header("h", offset, Schema.INT32),))
        for offset, value in enumerate(values)
    ]  # fmt: skip
    return list(SinkBatch.runs(made))


def test_keys_and_headers_lie_beside_the_values(s3):
    props = {"store.kafka.keys": "true", "store.kafka.headers": "true", "headers.format.class": "io.confluent.connect.s3.format.json.JsonFormat", "flush.size": 3}
    lake = S3Lake(s3, JSON | props).start()
    lake.put(*records(1, 2, 3))
    place = "topics/t/partition=0/t+0+0000000000"
    assert lake.keys() == [f"{place}.headers.json", f"{place}.json", f"{place}.keys.avro"]
    assert list(fastavro.reader(io.BytesIO(lake.data(f"{place}.keys.avro")))) == ["k0", "k1", "k2"]
    assert json.loads(lake.data(f"{place}.headers.json").splitlines()[1]) == [{"key": "h", "value": "1"}]


def test_a_change_of_the_keys_schema_closes_objects(s3):
    lake = S3Lake(s3, JSON | {"store.kafka.keys": "true", "flush.size": 3}).start()
    made = [
        SinkRecord("t", 0, offset, key_schema=schema, key=key, value_schema=ROW, value=Struct(ROW, {"n": offset, "kind": "a"}))
        for offset, (schema, key) in enumerate([(Schema.STRING, "a"), (Schema.INT32, 2), (Schema.INT32, 3), (Schema.INT32, 4)])
    ]
    lake.put(*SinkBatch.runs(made))
    found = [list(fastavro.reader(io.BytesIO(lake.data(key)))) for key in lake.keys() if key.endswith(".keys.avro")]
    assert found == [["a"], [2, 3, 4]]


def test_tombstones(s3):
    kept = S3Lake(s3, JSON | {"behavior.on.null.values": "write", "store.kafka.keys": "true", "flush.size": 3}).start()
    kept.put(*records(1, None, 3))
    place = "topics/t/tombstone/t+0+0000000001.keys.avro"
    assert place in kept.keys() and list(fastavro.reader(io.BytesIO(kept.data(place)))) == ["k1"]
    assert [json.loads(line)["n"] for line in kept.data("topics/t/partition=0/t+0+0000000000.json").splitlines()] == [1, 3]
    reports = []
    ignored = S3Lake(s3, JSON | {"behavior.on.null.values": "ignore", "flush.size": 2}, reports).start()
    ignored.put(*records(1, None, 3))
    assert [offset for offset, _ in reports] == [1] and ignored.numbers() == {"topics/t/partition=0": [1, 3]}
    with pytest.raises(ConnectError, match="behavior.on.null.values"):
        S3Lake(s3, JSON).start().put(*records(None))


# --- What goes wrong ---


@pytest.mark.parametrize("props, said", [({"s3.bucket.name": "no-such-bucket"}, "s3.bucket.name"), ({"aws.secret.access.key": "wrong-secret"}, "credentials")])
def test_what_no_waiting_mends_fails_the_task(s3, props, said):
    lake = S3Lake(s3, JSON)
    lake.props.update(props)
    with pytest.raises(ConnectError, match=said) as raised:
        lake.start()
    assert not isinstance(raised.value, RetriableError) and "wrong-secret" not in str(raised.value)


def test_a_server_that_is_away_is_waited_for(s3):
    lake = S3Lake(s3, JSON | {"s3.part.retries": "0"}).start()
    client = lake.task.files._client
    lake.task.files._client = lake.task.files.__class__({**lake.task.config_values, "store.url": "http://127.0.0.1:9"})._client
    with pytest.raises(RetriableError, match="retried"):
        lake.task.put([rows(0, 10)])
    lake.task.files._client = client
    lake.put(rows(0, 10))
    check(lake, 10)


@pytest.mark.parametrize(
    "props, key",
    [
        ({"behavior.on.null.values": "write"}, "behavior.on.null.values"),
        ({"s3.object.tagging.key.value.pairs": "no-colon"}, "s3.object.tagging.key.value.pairs"),
    ],
)
def test_keys_that_do_not_go_together(props, key):
    given = {"storage.class": "S3", "s3.bucket.name": "b", "flush.size": "1", **JSON, **props}
    assert key in S3SinkConnector().validate(given)
