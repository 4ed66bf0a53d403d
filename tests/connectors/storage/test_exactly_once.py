"""Every record exactly once, in order within each folder, and no half file seen: wherever the task is killed, whatever happens to its logs, whoever
else writes, and when the disk is full.

The kill is an error that nothing handles, raised before, in the middle of and after each thing that is done to the file system; the task is left
as it is, and another one takes over.
"""

import errno
import random
import threading

import pytest

from connectors.storage import sink as sink_module
from connectors.storage import task as task_module
from connectors.storage.local import LocalFiles
from standalone import ConnectError, RetriableError, Schema, SchemaBuilder, Struct
from tests.connectors.storage.lake import Lake, batch

ROW = SchemaBuilder("struct").field("n", Schema.INT64).field("kind", Schema.STRING).build()
COUNT = 60
PROPS = {
    "one folder": {"format.class": "Json", "flush.size": 20},
    "multiple folders": {"format.class": "Json", "flush.size": 20, "partitioner.class": "Field", "partition.field.name": "kind"},
    "parquet": {"format.class": "Parquet", "flush.size": 30, "partitioner.class": "Field", "partition.field.name": "kind"},
}


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch):
    """What a process has written outlives it without; an end of the machine is not played here."""
    monkeypatch.setattr("os.fsync", lambda descriptor: None)
    monkeypatch.setattr(LocalFiles, "sync_folder", lambda self, path: None)


class Killed(BaseException):
    pass


def asked_at_each_point(store):
    """A class decorator: `point()` is called before and after each change of the files, and in the middle of one that writes."""
    base = store.__bases__[0]

    def write_bytes(self, path, parts):
        self.point()
        data = b"".join(parts)
        base.write_bytes(self, path, [data[: len(data) // 2]])
        self.point()
        base.write_bytes(self, path, [data])
        self.point()

    def around(name):
        def wrapped(self, *arguments):
            self.point()
            result = getattr(base, name)(self, *arguments)
            self.point()
            return result

        return wrapped

    store.write_bytes = write_bytes
    for name in ("rename", "delete", "delete_folder", "make_folders", "make_below"):
        setattr(store, name, around(name))
    return store


@asked_at_each_point
class KillableFiles(LocalFiles):
    """Ends the task at the point of that number."""

    def __init__(self, root, left):
        super().__init__(root)
        self.left, self._lock = left, threading.Lock()

    def point(self):
        with self._lock:
            self.left -= 1
            if self.left < 0:
                raise Killed


def rows(first, count):
    return batch([Struct(ROW, {"n": number, "kind": "abc"[number % 3]}) for number in range(first, first + count)], ROW, first)


def run(lake, monkeypatch, left, rng=None):
    """One life of the task: True where it came to the end."""
    monkeypatch.setitem(sink_module._STORES, "", lambda url, values: KillableFiles(url, left))
    try:
        lake.start()
        position = lake.positions["t", 0]
        while position < COUNT:
            count = min(COUNT - position, rng.randrange(1, 25) if rng else 13)
            lake.put(rows(position, count))
            position += count
            if not rng or rng.random() < 0.5:
                lake.commit()
        lake.commit()
        lake.stop()
    except Killed:
        return False
    return True


def check(lake, is_over):
    """What others see at this moment."""
    seen = {}
    for path in lake.paths():
        seen.setdefault(path.rpartition("/")[0], []).extend(row["n"] for row in lake.read(path))
    found = sorted(number for numbers in seen.values() for number in numbers)
    assert len(found) == len(set(found)), "a record is there twice"
    assert all(numbers == sorted(numbers) for numbers in seen.values())
    assert lake.committed.get(("t", 0), 0) <= len(found) or not is_over
    assert set(range(lake.committed.get(("t", 0), 0))) <= set(found), "an offset ran ahead of what is stored"
    if is_over:
        assert found == list(range(COUNT))


@pytest.mark.parametrize("props", PROPS)
def test_killed_at_each_point(tmp_path, monkeypatch, props):
    if props == "parquet":
        monkeypatch.setattr(task_module, "MEMORY_BYTES", 1)  # all of it goes by the disk
    number = 0
    while True:
        lake = Lake(tmp_path / str(number), PROPS[props])
        is_over = run(lake, monkeypatch, number)
        check(lake, is_over)
        if is_over:
            break
        assert run(lake, monkeypatch, 10**9)
        check(lake, True)
        number += 1
    assert number > 30, "there were points to be killed at"


def spoil(lake, how, rng):
    for path in lake.root.rglob("log*"):
        if path.is_file():
            data = path.read_bytes()
            path.write_bytes({"empty": b"", "cut": data[: len(data) // 2], "garbled": bytes(byte ^ rng.randrange(256) for byte in data)}[how])


@pytest.mark.parametrize("how", [None, "empty", "cut", "garbled"])
@pytest.mark.parametrize("seed", range(6))
def test_killed_again_and_again_while_logs_are_spoilt(tmp_path, monkeypatch, seed, how):
    rng = random.Random(seed)
    lake = Lake(tmp_path, PROPS["multiple folders"])
    while not run(lake, monkeypatch, rng.randrange(2, 60), rng):
        check(lake, False)
        if how:
            spoil(lake, how, rng)
    check(lake, True)


def test_where_logs_are_gone_names_tell_how_far_it_has_come(tmp_path):
    lake = Lake(tmp_path, PROPS["multiple folders"]).start()
    lake.put(rows(0, 40))
    lake.stop()
    (tmp_path / "logs" / "t" / "0" / "log").unlink()
    assert lake.start().positions == {("t", 0): 40}


def test_where_files_were_moved_away_the_log_tells_it(tmp_path):
    lake = Lake(tmp_path, PROPS["one folder"]).start()
    lake.put(rows(0, 40))
    lake.stop()
    for path in (tmp_path / "topics" / "t").rglob("*.json"):
        path.unlink()
    assert lake.start().positions == {("t", 0): 40}


def test_a_log_from_elsewhere_is_not_taken_for_ones_own(tmp_path):
    lake = Lake(tmp_path, PROPS["one folder"]).start(0, 1)
    lake.put(rows(0, 40))
    lake.stop()
    data = (tmp_path / "logs" / "t" / "0" / "log").read_bytes()
    (tmp_path / "logs" / "t" / "1" / "log").write_bytes(data)
    assert lake.start(1).positions == {("t", 1): 0}


# --- Two tasks ---


def test_a_task_whose_partition_was_taken_over_can_write_nothing_more(tmp_path):
    old, new = Lake(tmp_path, PROPS["one folder"]).start(), Lake(tmp_path, PROPS["one folder"])
    old.put(rows(0, 30))  # ten of them not yet in place
    new.start()
    assert new.positions == {("t", 0): 20}
    new.put(rows(20, 25))
    with pytest.raises(ConnectError, match="taken over by another task"):
        old.put(rows(30, 20))
    new.put(rows(45, 15))
    check(new, True)


@pytest.mark.parametrize("number", range(0, 24))
def test_taken_over_while_the_other_is_in_the_midst_of_a_commit(tmp_path, monkeypatch, number):
    """The old one stops at a point, the new one takes over, the old one continues."""
    files, taken = [], []

    class Overtaken(KillableFiles):
        def point(self):
            self.left -= 1
            if self.left == -1 and not taken:
                taken.append(Lake(tmp_path, PROPS["multiple folders"]))
                monkeypatch.setitem(sink_module._STORES, "", lambda url, values: LocalFiles(url))
                taken[0].start()

    def opened(url, values):
        files.append(Overtaken(url, 10**9))
        return files[-1]

    monkeypatch.setattr(task_module, "CLOSES", 1)
    monkeypatch.setitem(sink_module._STORES, "", opened)
    old = Lake(tmp_path, PROPS["multiple folders"]).start()
    old.put(rows(0, 13))
    files[0].left = number
    try:
        old.put(rows(13, 20))
        old.put(rows(33, 27))
    except ConnectError:
        pass
    new = taken[0]
    position = new.positions["t", 0]
    new.put(rows(position, COUNT - position))
    check(new, True)


def test_a_partition_that_moves_to_another_task_goes_on_behind_its_last_file(tmp_path):
    one, other = (Lake(tmp_path, PROPS["one folder"]) for _ in range(2))
    one.start(0, 1).put(rows(0, 30))
    one.task.close([("t", 0)])
    other.start(0)
    assert other.positions == {("t", 0): 20}
    other.put(rows(20, 40))
    check(other, True)


# --- A disk that is full, a server that is away ---


class FullDisk(LocalFiles):
    full = False

    def write_bytes(self, path, parts):
        if FullDisk.full:
            super().write_bytes(path, [b"half"])
            raise OSError(errno.ENOSPC, "No space left on device")
        super().write_bytes(path, parts)

    def rename(self, source, target):
        if FullDisk.full == "to rename":
            raise OSError(errno.EIO, "Input/output error")
        super().rename(source, target)


@pytest.mark.parametrize("full", [True, "to rename"])
def test_what_cannot_be_written_is_tried_again_and_comes_once(tmp_path, monkeypatch, full):
    monkeypatch.setitem(sink_module._STORES, "", lambda url, values: FullDisk(url))
    monkeypatch.setattr(FullDisk, "full", False)
    lake = Lake(tmp_path, {**PROPS["multiple folders"], "retry.backoff.ms": 70}).start()
    lake.put(rows(0, 30))
    FullDisk.full = full
    for _ in range(3):
        with pytest.raises(RetriableError, match="retried"):
            lake.task.put([rows(30, 30)])
        assert lake.context.timeouts[-1] == 70
        assert lake.commit() == {("t", 0): 20}
    FullDisk.full = False
    lake.put(rows(30, 30))
    lake.commit()
    check(lake, True)


def test_a_folder_that_may_not_be_written_to_fails_the_task(tmp_path, monkeypatch):
    class Forbidden(LocalFiles):
        def make_folders(self, path):
            raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setitem(sink_module._STORES, "", lambda url, values: Forbidden(url))
    with pytest.raises(ConnectError, match="Permission denied") as raised:
        Lake(tmp_path, PROPS["one folder"]).start()
    assert not isinstance(raised.value, RetriableError)


# --- Memory ---


def test_many_open_files_are_kept_in_bounded_memory(tmp_path, monkeypatch):
    bound = 1 << 20
    monkeypatch.setattr(task_module, "MEMORY_BYTES", bound)
    schema = SchemaBuilder("struct").field("kind", Schema.STRING).field("n", Schema.INT64).field("text", Schema.STRING).build()
    lake = Lake(tmp_path, {"flush.size": 20_000, "partitioner.class": "Field", "partition.field.name": "kind"}).start()
    most = 0
    for first in range(0, 20_000, 2000):
        numbers = range(first, first + 2000)
        lake.put(batch([Struct.trusted(schema, [str(n % 500), n, f"{n:0500}"]) for n in numbers], schema, first))
        most = max(most, sum(file.memory for writer in lake.task._writers.values() for file in writer.open_files))
    assert most <= bound, "ten times that went through"
    assert len(lake.paths()) == 500
    assert sorted(row["n"] for row in lake.rows()) == list(range(20_000))
