"""connectctl offsets, lag, import-offsets, export-offsets: on a running worker, and on the files of one that is stopped."""

import json
import pathlib
import subprocess
import sys

import pytest

from standalone import properties
from standalone.runtime.offsets import java_map
from tests.runtime.local import LocalWorker, wait_for
from tests.servers.java_connect import JavaConnect
from tests.servers.kafka_broker import free_port
from tests.suite.patience import PATIENCE_SECONDS
from tests.suite.shared import skipped_where_unavailable

GOLDEN = pathlib.Path(__file__).parent.parent / "golden"
JAVA_FILE, JAVA_OFFSETS = GOLDEN / "java-offsets.bin", json.loads((GOLDEN / "java-offsets.json").read_text())


# --- On a running worker -------------------------------------------------------------------------------------------


def test_a_sources_offsets_are_shown_set_and_reset(ctl, worker, source, until):
    path = source("shipped", "one\ntwo\nthree\n")
    until(lambda: [entry["offset"] for entry in ctl.json("offsets", "get", "shipped")["offsets"]] == [{"position": 14}])
    assert '{"position": 14}' in ctl("offsets", "get", "shipped")
    partition = json.dumps({"filename": str(path)})
    assert "STOPPED" in ctl("offsets", "set", "shipped", partition, '{"position": 4}', code=1)
    ctl("stop", "shipped")
    worker.wait_states("shipped", "STOPPED")
    assert "have been set" in ctl("offsets", "set", "shipped", partition, '{"position": 4}')
    ctl("resume", "shipped")
    assert worker.values("shipped", 5) == [b"one", b"two", b"three", b"two", b"three"]
    assert "have been reset" in ctl("offsets", "reset", "shipped", "--stop")
    worker.wait_states("shipped", "RUNNING", "RUNNING")
    assert worker.values("shipped", 8)[5:] == [b"one", b"two", b"three"]


def test_what_get_prints_can_be_set(ctl, worker, source, until):
    source("back")
    until(lambda: ctl.json("offsets", "get", "back")["offsets"])
    kept = ctl.run("offsets", "get", "back", "--json").stdout
    ctl("stop", "back")
    worker.wait_states("back", "STOPPED")
    ctl("offsets", "reset", "back")
    assert ctl.json("offsets", "get", "back") == {"offsets": []}
    ctl("offsets", "set", "back", "--file", "-", input=kept)
    assert ctl.json("offsets", "get", "back") == json.loads(kept)
    worker.wait_states("back", "STOPPED")


def test_a_sinks_offsets_and_its_lag(ctl, worker, tmp_path, until):
    on = ["--bootstrap", worker.bootstrap]
    out = tmp_path / "out.txt"
    ctl("topics", "create", "lagged", "-p", "2", *on)
    ctl("produce", "lagged", "-p", "0", *on, input="a\nb\nc\n")
    worker.sink("slow", out, "lagged")
    until(lambda: ctl.json("lag", "slow", *on)["partitions"] == [
        {"topic": "lagged", "partition": 0, "committed": 3, "end": 3, "lag": 0},
        {"topic": "lagged", "partition": 1, "committed": None, "end": 0, "lag": 0},
    ])  # fmt: skip
    ctl("stop", "slow")
    worker.wait_states("slow", "STOPPED")
    ctl("produce", "lagged", "-p", "1", *on, input="d\ne\n")
    ctl("offsets", "set", "slow", "lagged:0", "1")
    assert [each["lag"] for each in ctl.json("lag", "slow", *on)["partitions"]] == [2, 2]
    assert "total lag: 4" in ctl("lag", "slow", *on)
    ctl("resume", "slow")
    until(lambda: ctl.json("lag", "slow", *on)["lag"] == 0)
    assert sorted(out.read_text().split()) == ["a", "b", "b", "c", "c", "d", "e"]
    ctl("offsets", "reset", "slow", "--stop")
    until(lambda: out.read_text().count("a\n") == 2)


def test_a_source_has_no_lag(ctl, source, worker):
    source("plain")
    assert "only sinks" in ctl("lag", "plain", "--bootstrap", worker.bootstrap, code=1)


def test_the_worker_tells_where_its_log_is(ctl, worker):
    ctl("produce", "told", input="x\n")
    assert worker.values("told", 1) == [b"x"]


@pytest.mark.parametrize("arguments", [[], ["{}"], ["nonsense", "1"], ["t:0", "soon"], ["{}", "{}", "--file", "-"]])
def test_wrong_offsets_are_wrong_usage(ctl, arguments):
    ctl("offsets", "set", "a", *arguments, code=2)


# --- Java's file ---------------------------------------------------------------------------------------------------


@pytest.fixture
def props(tmp_path):
    """A stopped worker's properties file."""
    path = tmp_path / "worker.properties"
    string = "org.apache.kafka.connect.storage.StringConverter"
    listeners = {"listeners": f"http://127.0.0.1:{free_port()}", "embedded.log.listener": "127.0.0.1:0"}
    offsets = {"offset.storage.file.filename": str(tmp_path / "connect.offsets")}
    path.write_text(properties.dump({"key.converter": string, "value.converter": string, **offsets, **listeners}))
    return path


def stored(rows):
    return sorted((row["connector"], sorted(row["partition"].items()), row["offset"]) for row in rows if row["offset"] is not None)


def test_a_java_workers_file_goes_in_and_comes_out(local, props, tmp_path):
    rows = local.json("import-offsets", JAVA_FILE, "-w", props)["offsets"]
    assert [row["done"] for row in rows] == ["nothing" if row["offset"] is None else "set" for row in rows]
    assert stored(rows) == stored(JAVA_OFFSETS)
    again = local.json("import-offsets", JAVA_FILE, "-w", props)["offsets"]
    assert {row["done"] for row in again} == {"same", "nothing"}
    exported = tmp_path / "exported"
    local("export-offsets", exported, "-w", props)
    alive = [(json.loads(key), json.loads(value)) for key, value in java_map.read(JAVA_FILE.read_bytes()) if value is not None]
    found = [(json.loads(key), json.loads(value)) for key, value in java_map.read(exported.read_bytes())]
    assert sorted(map(repr, found)) == sorted(map(repr, alive))  # fields in their order, too: Java finds a key by its bytes


def test_java_maps_are_written_as_java_writes_them():
    data = JAVA_FILE.read_bytes()
    assert java_map.write(java_map.read(data)) == data


@pytest.mark.parametrize("count", [0, 1, 12, 13, 1000])
def test_maps_of_any_size_are_read_again(count):
    entries = [(b"k%d" % number, None if number % 3 == 0 else b"v" * number) for number in range(count)]
    assert java_map.read(java_map.write(entries)) == entries


def test_a_dry_run_touches_nothing(local, props, tmp_path):
    before = sorted(tmp_path.iterdir())
    said = local("import-offsets", JAVA_FILE, "-w", props, "--dry-run")
    assert "WOULD BE" in said and "名前-0" in said
    assert sorted(tmp_path.iterdir()) == before


def test_what_is_there_already_stays_unless_told_otherwise(local, props, tmp_path):
    key = b'["a",{"filename":"x"}]'
    for name, position in (("first", 1), ("second", 2)):
        (tmp_path / name).write_bytes(java_map.write([(key, b'{"position":%d}' % position)]))
    (tmp_path / "gone").write_bytes(java_map.write([(key, None)]))
    local("import-offsets", tmp_path / "first", "-w", props)
    said = local("import-offsets", tmp_path / "second", "-w", props)
    assert "kept" in said and "--overwrite" in said
    assert local.json("import-offsets", tmp_path / "second", "-w", props, "--overwrite")["offsets"][0]["done"] == "set"
    assert local.json("import-offsets", tmp_path / "gone", "-w", props, "--overwrite")["offsets"][0]["done"] == "forgotten"
    assert local.json("export-offsets", tmp_path / "out", "-w", props)["offsets"] == []


def test_some_connectors_only(local, props, tmp_path):
    assert [row["connector"] for row in local.json("import-offsets", JAVA_FILE, "-w", props, "-c", "src-8")["offsets"]] == ["src-8"]
    assert "nobody" in local("export-offsets", tmp_path / "out", "-w", props, "-c", "nobody", code=1)


def test_a_running_worker_keeps_others_off_its_offsets(local, tmp_path):
    with LocalWorker(tmp_path) as worker:
        path = tmp_path / "w.properties"
        path.write_text(properties.dump(worker.props))
        assert "Another worker" in local("import-offsets", JAVA_FILE, "-w", path, code=1)
        assert "Another worker" in local("export-offsets", tmp_path / "out", "-w", path, code=1)


@pytest.mark.parametrize("content", [b"", b"garbage", JAVA_FILE.read_bytes()[:-5], java_map.write([(b"no json", b"{}")])])
def test_what_is_no_offsets_file_of_javas(local, props, tmp_path, content):
    (tmp_path / "bad").write_bytes(content)
    assert "not an offsets file" in local("import-offsets", tmp_path / "bad", "-w", props, code=1)
    assert not (tmp_path / "connect.offsets").exists()


def test_a_file_is_not_overwritten_by_chance(local, props, tmp_path):
    (tmp_path / "out").write_text("mine")
    assert "already" in local("export-offsets", tmp_path / "out", "-w", props, code=1)
    assert (tmp_path / "out").read_text() == "mine"
    local("export-offsets", tmp_path / "out", "-w", props, "--overwrite")


def test_keys_hold_what_java_would_look_for(local, props, tmp_path):
    """Control characters, quotes and other alphabets: as Java's JSON writes them."""
    partition = {"filename": 'a"b\\c\x01\t/é名😀', "number": 1.5, "flag": True}
    with LocalWorker(tmp_path, offset__storage__file__filename=tmp_path / "connect.offsets") as worker:
        worker.process.worker.offsets.append("né", [(partition, {"position": 2**53 + 1, "_note": 1})])
    local("export-offsets", tmp_path / "out", "-w", props)
    ((key, value),) = java_map.read((tmp_path / "out").read_bytes())
    assert key.decode() == '["né",{"filename":"a\\"b\\\\c\\u0001\\t/é名\\uD83D\\uDE00","number":1.5,"flag":true}]'
    assert value == b'{"position":9007199254740993}'


@pytest.mark.kafka
def test_java_goes_on_where_we_stopped(local, kafka, tmp_path):
    """Ours ships the first half of two files, Java's worker the second, ours the last part of one: nothing is lost and nothing comes twice."""
    files = [Shipped(tmp_path, "plain", "line %d"), Shipped(tmp_path, "Zähler名😀", "ümläut %d 名")]
    for each in files:
        local("topics", "create", each.topic, "--bootstrap", kafka)
    string = "org.apache.kafka.connect.storage.StringConverter"
    common = {"bootstrap.servers": kafka, "key.converter": string, "value.converter": string, "offset.flush.interval.ms": "500"}
    ours = tmp_path / "ours.properties"
    ours.write_text(properties.dump({**common, "offset.storage.file.filename": str(tmp_path / "ours.offsets"), "listeners": "http://127.0.0.1:0"}))

    def arrived(topic):
        return [each["value"] for each in local.lines("consume", topic, "--from-beginning", "--exit", "--bootstrap", kafka)]

    def wait(some, seconds):
        for each in some:
            wait_for(lambda: len(arrived(each.topic)) >= len(each.written), seconds, f"all of {each.topic}")
            assert arrived(each.topic) == each.written

    def ship_with_ours(some):
        command = [sys.executable, "-m", "standalone.cli.worker", str(ours), *(str(each.connector) for each in some)]
        with open(tmp_path / "ours.log", "ab") as log:
            process = subprocess.Popen(command, stderr=log)
        try:
            wait(some, 60)
        finally:
            process.terminate()
            assert process.wait(PATIENCE_SECONDS) == 0, (tmp_path / "ours.log").read_text()

    for each in files:
        each.append(1000)
    ship_with_ours(files)
    local("export-offsets", tmp_path / "java.offsets", "-w", ours)
    for each in files:
        each.append(1000)
    java = JavaConnect({**common, "offset.storage.file.filename": str(tmp_path / "java.offsets")}, [each.connector for each in files], tmp_path)
    with skipped_where_unavailable(), java:
        wait(files, 90)
    # Java's own positions count characters: of the other file ours would repeat a little, as Java does itself.
    ascii_only = files[:1]
    ascii_only[0].append(1000)
    local("import-offsets", tmp_path / "java.offsets", "-w", ours, "--overwrite")
    ship_with_ours(ascii_only)


class Shipped:
    """A file that grows, and the connector that reads it."""

    def __init__(self, folder, name, line):
        self.topic, self.written = f"moves-{folder.name}-{line.isascii()}", []
        self._path, self._line = folder / f"{name}.txt", line
        self.connector = folder / f"{line.isascii()}.properties"
        source = {"connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector", "file": str(self._path), "topic": self.topic}
        self.connector.write_text(properties.dump({"name": name, **source}))

    def append(self, count):
        more = [self._line % (len(self.written) + number) for number in range(count)]
        with self._path.open("a") as file:
            file.write("".join(f"{each}\n" for each in more))
        self.written += more
