"""FileStreamSink: what is written of which values, and what happens when it cannot be."""

import decimal
import errno
import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from connectors.file import sink as sink_module
from connectors.file.sink import FileStreamSinkConnector, FileStreamSinkTask
from standalone import ByteColumn, ConnectError, Float32, Int32, Schema, SchemaBuilder, SinkBatch, Struct


def batch(values, schema=Schema.STRING):
    """A batch of one partition; `values` a list or any column."""
    return SinkBatch(len(values), "t", values, schema, partition=0, offsets=np.arange(len(values)))


def texts(*items):
    return batch(ByteColumn.of([item if item is None else item.encode() for item in items]))


@pytest.fixture
def sink():
    started = []

    def start(path=None, standard_output=1):
        task = FileStreamSinkTask(standard_output)
        task.start({"file": str(path)} if path else {})
        started.append(task)
        return task

    yield start
    for task in started:
        task.stop()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "out.txt"


POINT = SchemaBuilder("struct").field("x", Schema.INT32).field("name", Schema.OPTIONAL_STRING).build()

VALUES = [
    ("texts as they are", texts("a", "with\nnewline", "ünï ✓"), "a\nwith\nnewline\nünï ✓\n"),
    ("a tombstone and an empty text", texts(None, ""), "null\n\n"),
    ("nothing but tombstones", SinkBatch(2, "t", None, None, partition=0, offsets=np.arange(2)), "null\nnull\n"),
    ("bytes as they are", batch(ByteColumn.of([b"\x41\x42"]), Schema.BYTES), "AB\n"),
    ("a list of texts", batch(["a", None, "ü"], Schema.OPTIONAL_STRING), "a\nnull\nü\n"),
    ("a list of bytes", batch([b"AB", None], Schema.OPTIONAL_BYTES), "AB\nnull\n"),
    ("an Arrow array of texts", batch(pa.array(["a", None, "ü"]), Schema.OPTIONAL_STRING), "a\nnull\nü\n"),
    ("maps and lists as Java prints them", batch([{"a": 1, "b": [True, None, 1.0]}], None), "{a=1, b=[true, null, 1.0]}\n"),
    ("structs as Java prints them", batch([Struct(POINT).put("x", Int32(1))], POINT), "Struct{x=1}\n"),
    ("numbers as Java prints them", batch([1e10, Float32(0.1), decimal.Decimal("1.50"), 7], None), "1.0E10\n0.1\n1.50\n7\n"),
]


@pytest.mark.parametrize("records, expected", [case[1:] for case in VALUES], ids=[case[0] for case in VALUES])
def test_values(records, expected, path, sink):
    sink(path).put([records])
    assert path.read_text() == expected


@pytest.mark.parametrize("records, expected", [case[1:] for case in VALUES], ids=[case[0] for case in VALUES])
def test_what_was_prepared_is_written_as_it_is(records, expected, path, sink):
    task = sink(path)
    prepared = bytes(task.prepare(records))
    assert prepared.decode() == expected
    other = texts("not looked at")
    other.prepared = prepared
    task.put([other, texts("after")])
    assert path.read_text() == expected + "after\n"


def test_bytes_that_are_no_text_are_kept(path, sink):
    sink(path).put([batch(ByteColumn.of([b"bad \xff\x00"]))])
    assert path.read_bytes() == b"bad \xff\x00\n"


def test_batches_are_written_in_their_order_large_and_small(path, sink):
    batches = [texts(*[f"{number}-{row}" * 50 for row in range(size)]) for number, size in enumerate([1, 2000, 1, 1, 3000, 2])]
    sink(path).put(batches)
    assert path.read_text().splitlines() == [record.value for each in batches for record in each.records()]


def test_what_was_there_stays(path, sink):
    path.write_text("before\n")
    sink(path).put([texts("a", "b")])
    assert path.read_text() == "before\na\nb\n"


def test_a_file_that_was_renamed_is_still_written_to(path, sink):
    task = sink(path)
    task.put([texts("one")])
    path.rename(path.with_suffix(".1"))
    task.put([texts("two")])
    assert path.with_suffix(".1").read_text() == "one\ntwo\n" and not path.exists()


def test_a_file_that_was_truncated_is_continued_at_its_end(path, sink):
    task = sink(path)
    task.put([texts("one")])
    os.truncate(path, 0)
    task.put([texts("three")])
    assert path.read_bytes() == b"three\n"


def test_a_missing_folder_is_named_and_not_made(tmp_path):
    with pytest.raises(ConnectError, match="there is no folder") as raised:
        FileStreamSinkTask().start({"file": str(tmp_path / "none" / "out.txt")})
    assert str(tmp_path / "none") in str(raised.value) and not (tmp_path / "none").exists()


def test_a_folder_cannot_be_written_to(tmp_path):
    with pytest.raises(ConnectError, match="directory"):
        FileStreamSinkTask().start({"file": str(tmp_path)})


def test_without_a_file_it_is_standard_output(sink):
    reading, writing = os.pipe()
    task = sink(standard_output=writing)
    task.put([texts("a", None)])
    task.flush({})
    assert os.read(reading, 100) == b"a\nnull\n"
    os.close(writing)
    os.close(reading)


def test_a_pipe_that_does_not_block_gets_everything(sink):
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    reader = subprocess.Popen(["wc", "-c"], stdin=reading, stdout=subprocess.PIPE)
    os.close(reading)
    task = sink(standard_output=writing)
    task.put([texts(*["x" * 99] * 20_000)])
    task.stop()
    task._file = None
    os.close(writing)
    assert int(reader.communicate()[0]) == 2_000_000


# --- What goes wrong --------------------------------------------------------------------------------------------------


def test_a_full_disk_fails_the_put_and_says_which_file(sink):
    task = sink("/dev/full")
    with pytest.raises(ConnectError, match=r"/dev/full.*errno 28"):
        task.put([texts("a")])


LIMITED = """
import resource, signal, sys
from connectors.file.sink import FileStreamSinkTask
from standalone import ByteColumn, ConnectError, Schema, SinkBatch

def batch(letter, count):
    return SinkBatch(count, "t", ByteColumn.of([letter * 99] * count), Schema.STRING, partition=0)

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, resource.RLIM_INFINITY))
task = FileStreamSinkTask()
task.start({"file": sys.argv[1]})
task.put([batch(b"a", 5000)])
task.flush({})
try:
    task.put([batch(b"b", 3000), batch(b"c", 3000)])  # the second one does not fit
except ConnectError as error:
    print(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
task.put([batch(b"d", 1)])
task.flush({})
"""


def test_what_was_written_of_a_failed_put_is_taken_back(path):
    done = subprocess.run([sys.executable, "-c", LIMITED, str(path)], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": os.getcwd()})
    assert "was undone" in done.stdout and str(path) in done.stdout, done.stderr
    assert path.read_bytes() == (b"a" * 99 + b"\n") * 5000 + b"d" * 99 + b"\n"


def test_what_others_appended_meanwhile_is_not_taken_back(path, sink, monkeypatch):
    task = sink(path)
    task.put([texts("a")])
    write = os.write

    def interrupted(descriptor, data):
        if len(data) < 4:
            raise OSError(errno.ENOSPC, "No space left on device")
        with path.open("ab") as other:
            other.write(b"other\n")
        return write(descriptor, data[:3])

    monkeypatch.setattr(sink_module.os, "write", interrupted)
    with pytest.raises(ConnectError, match="3 bytes of these records were written"):
        task.put([texts("12345")])
    assert path.read_bytes() == b"a\nother\n123"


def test_short_writes_are_gone_on_with(path, sink, monkeypatch):
    write = os.write
    monkeypatch.setattr(sink_module.os, "write", lambda descriptor, data: write(descriptor, data[:3]))
    sink(path).put([texts("12345", "67890")])
    assert path.read_bytes() == b"12345\n67890\n"


def test_flush_stores_the_file_and_once_the_folder_it_was_made_in(path, sink, monkeypatch):
    synced = []
    monkeypatch.setattr(sink_module.os, "fsync", lambda descriptor: synced.append(os.readlink(f"/proc/self/fd/{descriptor}")))
    task = sink(path)
    task.flush({})
    for _ in range(2):
        task.put([texts("a")])
        task.flush({})
    task.flush({})
    assert synced == [str(path), str(path.parent), str(path)]


def test_after_a_failed_fsync_nothing_is_taken_any_more(path, sink, monkeypatch):
    def failing(descriptor):
        raise OSError(errno.EIO, "Input/output error")

    task = sink(path)
    task.put([texts("a")])
    with monkeypatch.context() as broken:
        broken.setattr(sink_module.os, "fsync", failing)
        with pytest.raises(ConnectError, match="not committed"):
            task.flush({})
    for call in (lambda: task.put([texts("b")]), lambda: task.flush({})):
        with pytest.raises(ConnectError, match="fsync failed"):
            call()
    assert path.read_bytes() == b"a\n"


# --- The connector ----------------------------------------------------------------------------------------------------


def test_there_are_as_many_tasks_as_allowed():
    connector = FileStreamSinkConnector()
    connector.start({"file": "x", "topics": "t"})
    assert connector.task_configs(3) == [{"file": "x", "topics": "t"}] * 3
    assert connector.alter_offsets({"file": "x"}, {("t", 0): 5})
