"""HdfsSinkConnector on a real HDFS: files as others read them, and each record exactly once under kills and two tasks."""

import random
import threading

import hdfs_native
import pytest

from connectors.storage import hdfs as hdfs_module
from connectors.storage.hdfs import HdfsFiles, client_arguments
from connectors.storage.hdfs_sink import HdfsSinkConnector, HdfsSinkTask
from standalone import ConnectError
from tests.connectors.storage.lake import NAME, Lake, batch, read_file
from tests.connectors.storage.records import EVERYTHING, seen, seen_in_json, seen_in_orc, value
from tests.connectors.storage.test_exactly_once import COUNT, Killed, asked_at_each_point, check, rows

JAVA = "io.confluent.connect.hdfs."
JSON = {"format.class": f"{JAVA}json.JsonFormat", "flush.size": 20}
FIELD = {"partitioner.class": f"{JAVA}partitioner.FieldPartitioner", "partition.field.name": "kind"}


class HdfsLake(Lake):
    task_class = HdfsSinkTask

    def __init__(self, url, tmp_path, props, **more):
        super().__init__(tmp_path, props, **more)
        self.place = f"/{tmp_path.parent.name}-{tmp_path.name}"
        self.client = hdfs_native.Client(url)
        self.props["store.url"] = f"{url}{self.place}"

    def paths(self, topic=None):
        top = f"{self.place}/topics/{topic or self.topic}"
        try:
            found = [each.path[len(top) + 1 :] for each in self.client.list_status(top, True) if not each.isdir]
        except FileNotFoundError:
            return []
        return sorted(found, key=lambda path: (int(NAME.fullmatch(path.rpartition("/")[2])[3]), path))

    def read(self, path):
        copied = self.root / path.rpartition("/")[2]
        with self.client.read(f"{self.place}/topics/{self.topic}/{path}") as file:
            copied.write_bytes(bytes(file.read()))
        return read_file(copied)


@pytest.mark.parametrize(
    "format, expected", [("avro.AvroFormat", seen), ("parquet.ParquetFormat", seen), ("orc.OrcFormat", seen_in_orc), ("json.JsonFormat", seen_in_json)]
)
def test_what_was_put_is_what_others_read(hdfs, tmp_path, format, expected):
    hourly = {"partitioner.class": "Hourly", "timezone": "UTC", "locale": "en-US", "timestamp.extractor": "RecordField", "timestamp.field": "at"}
    lake = HdfsLake(hdfs, tmp_path, {"format.class": JAVA + format, "flush.size": 15, **hourly}).start()
    lake.put(batch([value(number) for number in range(30)], EVERYTHING))
    assert lake.rows() == [expected(number) for number in range(30)] and lake.commit() == {("t", 0): 30}
    assert lake.paths()[0].startswith("year=2024/month=02/day=29/hour=12/t+0+0000000000+0000000005.")
    lake.stop()
    assert not list(lake.client.list_status(f"{lake.place}/topics/+tmp/t/0")), "nothing is left behind"


@asked_at_each_point
class KillableHdfs(HdfsFiles):
    left, lock = 10**9, threading.Lock()

    @classmethod
    def point(cls):
        with cls.lock:
            cls.left -= 1
            if cls.left < 0:
                raise Killed


def live(lake, left, rng):
    KillableHdfs.left = left
    try:
        lake.start()
        position = lake.positions["t", 0]
        while position < COUNT:
            count = min(COUNT - position, rng.randrange(5, 30))
            lake.put(rows(position, count))
            position += count
            if rng.random() < 0.5:
                lake.commit()
        lake.commit()
        lake.stop()
    except Killed:
        return False
    return True


@pytest.mark.parametrize("seed, how", [(2, None), (5, "cut")])
def test_killed_again_and_again_while_logs_are_spoilt(hdfs, tmp_path, monkeypatch, seed, how):
    monkeypatch.setattr(hdfs_module, "HdfsFiles", KillableHdfs)
    monkeypatch.setattr(KillableHdfs, "left", 10**9)
    rng, lake = random.Random(seed), HdfsLake(hdfs, tmp_path, JSON | FIELD)
    while not live(lake, rng.randrange(5, 70), rng):
        check(lake, False)
        if how:
            _cut_logs(lake)
    check(lake, True)


def _cut_logs(lake):
    for each in list(lake.client.list_status(lake.place, True)):
        if each.path.rpartition("/")[2].startswith("log") and not each.isdir:
            with lake.client.read(each.path) as file:
                data = bytes(file.read())
            with lake.client.create(each.path, hdfs_native.WriteOptions(overwrite=True)) as file:
                file.write(data[: len(data) // 2])


def test_a_task_whose_partition_was_taken_over_can_write_nothing_more(hdfs, tmp_path):
    old, new = HdfsLake(hdfs, tmp_path, JSON).start(), HdfsLake(hdfs, tmp_path, JSON)
    old.put(rows(0, 30))  # ten of them not yet in place
    new.start()
    assert new.positions == {("t", 0): 20}
    new.put(rows(20, 25))
    with pytest.raises(ConnectError, match="taken over by another task"):
        old.put(rows(30, 20))
    new.put(rows(45, 15))
    check(new, True)


def test_capture_groups_stand_in_folders(hdfs, tmp_path):
    props = JSON | {"topic.capture.groups.regex": "([a-z]+)-(.*)", "topics.dir": "data/${1}", "logs.dir": "logs/${2}", "flush.size": 1}
    lake = HdfsLake(hdfs, tmp_path, props, topic="sales-eu").start()
    lake.put(batch([{"a": 1}], topic="sales-eu"))
    assert [each.path for each in lake.client.list_status(f"{lake.place}/data/sales/sales-eu/partition=0")] == [
        f"{lake.place}/data/sales/sales-eu/partition=0/sales-eu+0+0000000000+0000000000.json"
    ]
    assert [each.path for each in lake.client.list_status(f"{lake.place}/logs/eu/sales-eu/0")] == [f"{lake.place}/logs/eu/sales-eu/0/log"]


def test_kerberos_is_handed_to_the_client():
    config = HdfsSinkConnector.config_def.parse({
        "flush.size": "1", "hdfs.authentication.kerberos": "true", "connect.hdfs.principal": "me@REALM", "connect.hdfs.keytab": "/k",
        "hdfs.namenode.principal": "nn/_HOST@REALM", "hadoop.conf.dir": "/etc/hadoop",
    })  # fmt: skip
    assert client_arguments(config) == {
        "config": {"hadoop.security.authentication": "kerberos", "dfs.namenode.kerberos.principal": "nn/_HOST@REALM"},
        "config_dir": "/etc/hadoop", "kerberos_principal": "me@REALM", "kerberos_keytab": "/k",
    }  # fmt: skip


@pytest.mark.parametrize("props, key", [({"hive.integration": "true", "format.class": "Json"}, "hive.integration"), ({"hdfs.url": ""}, "store.url")])
def test_what_is_not_done_is_refused(props, key):
    assert key in HdfsSinkConnector().validate({"hdfs.url": "hdfs://h:1", "flush.size": "1", **props})
