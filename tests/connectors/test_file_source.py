"""FileStreamSource: what is published of which bytes, with which offsets; waiting, stopping, standard input."""

import contextlib
import logging
import os
import threading
import time

import pytest

from connectors.file import watch
from connectors.file.source import FileStreamSourceConnector, FileStreamSourceTask
from standalone import ConfigError, ConnectError, OffsetReader, Schema
from tests.suite.patience import PATIENCE_SECONDS


class Source:
    """A task, driven by hand."""

    def __init__(self, path=None, stored=None, chunk_bytes=1 << 20, idle_seconds=0, standard_input=0, **props):
        self.records = []
        self.task = FileStreamSourceTask(chunk_bytes, standard_input, idle_seconds)
        self.task.initialize(Context(stored))
        config = {"topic": "t", **{name.replace("_", "."): str(value) for name, value in props.items()}}
        self.task.start({**config, "file": str(path)} if path else config)

    def poll(self):
        batch = self.task.poll()
        records = batch.records() if batch is not None else []
        self.records += records
        return [record.value for record in records]

    def drain(self):
        """Everything that is there, as strings."""
        while self.poll():
            pass
        return self.values

    def take(self, count):
        """Wait until so many records came."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len(self.records) < count and time.monotonic() < deadline:
            self.poll()
        return self.values

    @property
    def values(self):
        return [record.value for record in self.records]

    @property
    def positions(self):
        return [record.source_offset["position"] for record in self.records]


class Context(OffsetReader):
    def __init__(self, stored):
        self.stored = stored
        self.offset_reader = self

    def offset(self, partition):
        return self.stored


@pytest.fixture
def source():
    started = []

    def start(*args, **props):
        started.append(Source(*args, **props))
        return started[-1]

    yield start
    for each in started:
        each.task.stop()
        each.task.close()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "in.txt"


def test_a_record_has_what_kafkas_has(path, source):
    path.write_bytes(b"a\nb\n")
    started = source(path)
    before = time.time_ns() // 1_000_000
    started.drain()
    first, second = started.records
    assert (first.topic, first.partition, first.key_schema, first.key, first.headers) == ("t", None, None, None, ())
    assert (first.value_schema, first.value) == (Schema.STRING, "a")
    assert first.source_partition == {"filename": str(path)}
    assert started.positions == [2, 4]
    assert before - 1000 <= first.timestamp <= before + 60_000


# The first text, what results and the position after it; then what is appended, what has come by then, and the position.
APPENDS = [
    ("appended lines", b"a\nb\n", "a b", 4, b"c\n", "a b c", 6),
    ("a line without its end waits", b"full\npart", "full", 5, b"ial\n", "full partial", 13),
    ("every kind of line end", b"a\r\nb\rc\n", "a b c", 7, b"d\n", "a b c d", 9),
    ("a CR at the end may be half of an end", b"a\nb\r", "a", 2, b"\nc\n", "a b c", 7),
    ("a CR at the end may be a whole one", b"a\nb\r", "a", 2, b"c\n", "a b c", 6),
    ("positions count bytes", "ünï ✓\nsecond\n".encode(), "ünï\xa0✓ second", 17, b"third\n", "ünï\xa0✓ second third", 23),
]


@pytest.mark.parametrize("chunk_bytes", [1, 2, 3, 7, 1 << 20])
@pytest.mark.parametrize("again", [False, True], ids=["continuing", "started again"])
@pytest.mark.parametrize("first, come, position, then, all_come, end", [case[1:] for case in APPENDS], ids=[case[0] for case in APPENDS])
def test_append(first, come, position, then, all_come, end, again, chunk_bytes, path, source):
    path.write_bytes(first)
    started = source(path, chunk_bytes=chunk_bytes)
    assert [value.replace(" ", "\xa0") for value in started.drain()] == come.split(" ")
    assert started.positions[-1] == position
    with path.open("ab") as file:
        file.write(then)
    if again:
        following = source(path, started.records[-1].source_offset, chunk_bytes)
        following.records = list(started.records)
    else:
        following = started
    assert [value.replace(" ", "\xa0") for value in following.drain()] == all_come.split(" ")
    assert following.positions[-1] == end


def test_bytes_are_kept_whatever_they_are(path, source):
    text = b"\xef\xbb\xbfx\nbad \xff byte\nnul \x00 byte\n"
    path.write_bytes(text)
    started = source(path)
    assert list(started.task.poll().value) == text.splitlines()


def test_a_large_file_comes_whole_and_in_order(path, source):
    text = b"".join(b"%d %s\r\n" % (number, b"x" * (number * 7 % 190)) for number in range(60_000))
    path.write_bytes(text)
    started = source(path, chunk_bytes=1 << 16)
    assert [value.encode() for value in started.drain()] == text.splitlines()
    assert started.positions[-1] == len(text)
    resumed = source(path, started.records[29_999].source_offset)
    assert resumed.drain() == started.values[30_000:]


def test_batch_size_bounds_a_poll_and_leaves_no_line_behind(path, source):
    path.write_bytes(b"".join(b"%d\n" % number for number in range(25)))
    started = source(path, batch_size=10)
    assert [len(started.poll()) for _ in range(4)] == [10, 10, 5, 0]
    assert started.values == [str(number) for number in range(25)]
    assert started.positions[9] == 20
    assert source(path, started.records[12].source_offset, batch_size=10).drain()[0] == "13"


@pytest.mark.parametrize("batch_size", [0, -1])
def test_a_senseless_batch_size_means_one_as_in_kafka(batch_size, path, source):
    path.write_bytes(b"a\nb\n")
    assert source(path, batch_size=batch_size).poll() == ["a"]


# --- Offsets ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, position, rest",
    [
        pytest.param(b"a\nb\nc\n", 4, ["c"], id="a position that was set by hand"),
        pytest.param(b"a\nb\nc\n", 0, ["a", "b", "c"], id="the beginning"),
        pytest.param("ünï ✓\nsecond\nthird\n".encode(), 13, ["third"], id="Java's, which counts characters"),
        pytest.param("\U0001f600\nsecond\nthird\n".encode(), 10, ["third"], id="Java's, a character of two units"),
        pytest.param(b"a\nb\nc\n", 3, ["", "c"], id="within a line, which no counting explains"),
        pytest.param(b"a\n", 100, ["a"], id="after the end, so that the file is another one"),
    ],
)
def test_an_offset_without_marks_counts_in_whatever_file_there_is(text, position, rest, path, source):
    path.write_bytes(text)
    assert source(path, {"position": position}).drain() == rest


@pytest.mark.parametrize("position", ["four", -1, 4.5, None, True])
def test_a_stored_offset_that_cannot_be_is_refused(position, path, source):
    path.write_bytes(b"a\n")
    with pytest.raises(ConnectError, match="position"):
        source(path, {"position": position})


FILE = {"filename": "x"}


@pytest.mark.parametrize(
    "partition, offset, wrong",
    [
        (FILE, {"position": 4}, None),
        (FILE, {"position": 0}, None),
        ({"filename": "another"}, {"position": 4}, None),
        (FILE, None, None),
        (FILE, {"position": "four"}, "position"),
        (FILE, {"position": "4"}, "position"),
        (FILE, {"position": -1}, "position"),
        (FILE, {"position": 4.5}, "position"),
        (FILE, {"position": True}, "position"),
        (FILE, {"position": None}, "position"),
        (FILE, {"pos": 4}, "position"),
        (FILE, {}, "position"),
        ({"file": "x"}, {"position": 4}, "filename"),
        ({"file": "x"}, None, None),
        (None, {"position": 4}, "filename"),
    ],
)
def test_altering_offsets(partition, offset, wrong):
    connector = FileStreamSourceConnector()
    if wrong is None:
        assert connector.alter_offsets({"file": "x"}, [(partition, offset)])
    else:
        with pytest.raises(ConnectError, match=wrong):
            connector.alter_offsets({"file": "x"}, [(FILE, {"position": 1}), (partition, offset)])


def test_standard_input_has_no_offsets_to_alter():
    with pytest.raises(ConnectError, match="standard input"):
        FileStreamSourceConnector().alter_offsets({}, [(FILE, {"position": 1})])


# --- Long lines -------------------------------------------------------------------------------------------------------

LONG = b"short\n" + b"y" * 100 + b"\r\nnext\n" + b"z" * 11 + b"\nlast\n"


@pytest.mark.parametrize("chunk_bytes", [4, 16, 64, 1 << 20])
@pytest.mark.parametrize("policy, values", [("cut", ["short", "y" * 10, "next", "z" * 10, "last"]), ("skip", ["short", "next", "last"])])
def test_long_lines_that_are_cut_or_skipped(policy, values, chunk_bytes, path, source, caplog):
    path.write_bytes(LONG)
    started = source(path, chunk_bytes=chunk_bytes, file_max_line_bytes=10, file_long_lines=policy)
    assert started.drain() == values
    assert started.positions[-1] == len(LONG)
    assert "longer than file.max.line.bytes=10" in caplog.text
    assert source(path, started.records[0].source_offset, file_max_line_bytes=10, file_long_lines=policy).drain() == values[1:]


@pytest.mark.parametrize("policy, values", [("cut", ["yyyyyyyyyy", "next"]), ("skip", ["next"])])
def test_a_long_line_that_grows_is_not_kept_in_memory(policy, values, path, source):
    started = source(path, chunk_bytes=64, file_max_line_bytes=10, file_long_lines=policy)
    for _ in range(50):
        with path.open("ab") as file:
            file.write(b"y" * 20)
        assert started.drain() == []
    with path.open("ab") as file:
        file.write(b"\r")
    assert started.drain() == []
    with path.open("ab") as file:
        file.write(b"\nnext\n")
    assert started.drain() == values
    assert started.positions[-1] == path.stat().st_size


@pytest.mark.parametrize("chunk_bytes", [4, 1 << 20])
def test_by_default_a_long_line_fails_the_task_behind_the_lines_before_it(chunk_bytes, path, source):
    path.write_bytes(LONG)
    started = source(path, chunk_bytes=chunk_bytes, file_max_line_bytes=10)
    assert started.poll() == ["short"]
    with pytest.raises(ConnectError, match="file.max.line.bytes"):
        started.poll()


def test_a_line_of_just_the_allowed_length_passes(path, source):
    path.write_bytes(b"y" * 10 + b"\r\n" + b"z" * 10 + b"\n")
    assert source(path, chunk_bytes=3, file_max_line_bytes=10).drain() == ["y" * 10, "z" * 10]


# --- Waiting ----------------------------------------------------------------------------------------------------------


def after(seconds, action):
    """Do it from another thread, a little later: while the task waits."""
    timer = threading.Timer(seconds, action)
    timer.start()
    return timer


def seconds_of(action):
    start = time.monotonic()
    action()
    return time.monotonic() - start


def test_an_appended_line_ends_the_wait(path, source):
    path.write_bytes(b"")
    started = source(path, idle_seconds=PATIENCE_SECONDS)
    after(0.05, lambda: path.write_bytes(b"a\n"))
    assert seconds_of(lambda: started.take(1)) < 1
    assert started.values == ["a"]


@pytest.mark.parametrize("folder", ["", "later/"], ids=["in its folder", "whose folder is missing, too"])
def test_a_missing_file_is_waited_for(folder, tmp_path, source, caplog):
    caplog.set_level(logging.INFO)
    path = tmp_path / f"{folder}in.txt"
    started = source(path, idle_seconds=PATIENCE_SECONDS)

    def create():
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x\n")

    after(0.05, create)
    assert seconds_of(lambda: started.take(1)) < 2
    assert started.values == ["x"]
    assert caplog.text.count("does not exist") == 1


def test_a_file_put_in_place_behind_a_link_ends_the_wait(tmp_path, source):
    """The link is in another folder than the file, and nothing happens in that one."""
    real = tmp_path / "real" / "app.log"
    real.parent.mkdir()
    real.write_bytes(b"a\n")
    link = tmp_path / "link.log"
    link.symlink_to(real)
    started = source(link, idle_seconds=PATIENCE_SECONDS, file_rotate_wait_ms=0)
    started.take(1)
    (tmp_path / "real" / "new").write_bytes(b"b\n")
    after(0.05, lambda: os.replace(tmp_path / "real" / "new", real))
    assert seconds_of(lambda: started.take(2)) < 1
    assert started.values == ["a", "b"]


def test_stop_ends_the_wait(path, source):
    path.write_bytes(b"")
    started = source(path, idle_seconds=60)
    after(0.05, started.task.stop)
    assert seconds_of(started.poll) < 1


def test_an_idle_task_sleeps(path, source):
    path.write_bytes(b"a\n")
    started = source(path, idle_seconds=0.5)
    started.take(1)
    before = time.process_time()
    started.poll()
    assert time.process_time() - before < 0.05


def test_files_of_others_in_the_folder_do_not_end_the_wait(path, source, monkeypatch):
    path.write_bytes(b"")
    started = source(path, idle_seconds=0.3)
    looks = []
    read = started.task._tail.read
    monkeypatch.setattr(started.task._tail, "read", lambda: looks.append(1) or read())
    after(0.05, lambda: [(path.parent / f"other{number}").write_bytes(b"x") for number in range(100)])
    started.poll()
    assert len(looks) <= 3


def test_without_inotify_the_file_is_looked_at_every_so_often(path, source, monkeypatch, caplog):
    monkeypatch.setattr(watch, "new_inotify", lambda: None)
    path.write_bytes(b"")
    started = source(path, idle_seconds=PATIENCE_SECONDS)
    after(0.05, lambda: path.write_bytes(b"a\n"))
    assert seconds_of(lambda: started.take(1)) < 1
    assert caplog.text.count("polled every") == 1


def test_without_watches_the_file_is_looked_at_every_so_often(path, source, monkeypatch, caplog):
    class NoWatches:
        def inotify_init1(self, flags):
            return os.eventfd(0, os.EFD_NONBLOCK)

        def inotify_add_watch(self, *args):
            watch.ctypes.set_errno(watch.errno.ENOSPC)
            return -1

    monkeypatch.setattr(watch, "libc", NoWatches)
    path.write_bytes(b"")
    started = source(path, idle_seconds=PATIENCE_SECONDS)
    after(0.05, lambda: path.write_bytes(b"a\n"))
    assert seconds_of(lambda: started.take(1)) < 1
    assert caplog.text.count("max_user_watches") == 1


# --- What is not a file --------------------------------------------------------------------------------------------------


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="is a folder"):
        Source(tmp_path)


def test_a_file_that_gives_way_to_a_folder_is_waited_for(path, source, caplog):
    path.write_bytes(b"a\n")
    started = source(path, file_rotate_wait_ms=0)
    started.drain()
    path.unlink()
    path.mkdir()
    assert started.drain() == ["a"] and started.drain() == ["a"]
    assert caplog.text.count("cannot be opened") == 1
    path.rmdir()
    path.write_bytes(b"b\n")
    assert started.drain() == ["a", "b"]


@contextlib.contextmanager
def not_root():
    """Root may read everything, so be someone else for a while."""
    me = os.geteuid()
    if me == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(me)


def test_a_file_that_may_not_be_read_is_waited_for(path, source, caplog):
    path.write_bytes(b"a\n")
    path.chmod(0)
    started = source(path)
    with not_root():
        assert started.drain() == [] and started.drain() == []
    assert caplog.text.count("cannot be opened") == 1
    path.chmod(0o600)
    assert started.drain() == ["a"]


def test_a_named_pipe_is_a_stream(tmp_path, source):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    started = source(pipe, idle_seconds=PATIENCE_SECONDS)
    for text in (b"a\nb", b"c\n"):
        writer = os.open(pipe, os.O_WRONLY)
        os.write(writer, text)
        os.close(writer)
    assert started.take(2) == ["a", "bc"]
    assert started.records[0].source_partition is None


@pytest.fixture
def pipe():
    reading, writing = os.pipe()
    ends = {reading, writing}

    def write(text):
        if text is None:
            os.close(writing)
            ends.discard(writing)
        else:
            os.write(writing, text)

    yield reading, write
    for end in ends:
        os.close(end)


def test_standard_input(pipe, source):
    reading, write = pipe
    started = source(standard_input=reading, idle_seconds=PATIENCE_SECONDS)
    write(b"typed one\ntyped ")
    assert started.take(1) == ["typed one"]
    write(b"two\r")
    write(b"\nthree")
    assert started.take(2) == ["typed one", "typed two"]
    assert (started.records[0].source_partition, started.records[0].source_offset) == (None, None)


def test_closed_standard_input_idles_without_work(pipe, source, caplog):
    reading, write = pipe
    started = source(standard_input=reading, idle_seconds=0.3)
    write(b"one\npart")
    write(None)
    assert started.take(1) == ["one"]
    before = time.process_time()
    waited = seconds_of(started.poll)
    assert waited > 0.25 and time.process_time() - before < 0.05
    assert "last 4 bytes" in caplog.text


@pytest.mark.parametrize("policy, values", [("cut", ["y" * 10, "next", "z" * 10, "last"]), ("skip", ["next", "last"])])
def test_long_lines_of_standard_input(policy, values, pipe, source):
    reading, write = pipe
    started = source(standard_input=reading, file_max_line_bytes=10, file_long_lines=policy)
    for text in (b"y" * 15, b"y" * 30, b"y\r", b"\nnext\n", b"z" * 11 + b"\nla", b"st\n"):
        write(text)
        started.drain()
    assert started.values == values


def test_a_long_line_of_standard_input_fails_the_task(pipe, source):
    reading, write = pipe
    started = source(standard_input=reading, file_max_line_bytes=10)
    write(b"y" * 11)
    with pytest.raises(ConnectError, match="file.max.line.bytes"):
        started.drain()


# --- The connector ----------------------------------------------------------------------------------------------------


def test_one_file_has_one_task_however_many_are_allowed():
    connector = FileStreamSourceConnector()
    connector.start({"file": "x", "topic": "t", "tasks.max": "5"})
    assert connector.task_configs(5) == [{"file": "x", "topic": "t", "tasks.max": "5"}]


@pytest.mark.parametrize("props, wrong", [({}, "topic"), ({"topic": ""}, "topic"), ({"topic": "t", "batch.size": "x"}, "batch.size"), ({"topic": "t", "file.long.lines": "x"}, "file.long.lines")])
def test_wrong_settings_are_named(props, wrong):
    with pytest.raises(ConfigError) as raised:
        FileStreamSourceConnector.config_def.parse(props)
    assert list(raised.value.errors) == [wrong]
