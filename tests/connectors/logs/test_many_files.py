"""Many files: with few descriptors, little memory, and more folders than may be watched."""

import errno
import os
import resource
import tracemalloc

import pytest

from connectors.file.watch import libc
from connectors.logs import events

COUNT = 600
BYTES_A_FILE = 6000  # of Python's memory; measured: 3000


@pytest.fixture
def many(tmp_path):
    for number in range(COUNT):
        path = tmp_path / f"{number % 30}" / f"{number}.log"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"%d a\n" % number)
    return tmp_path


@pytest.fixture
def few_descriptors():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = 256 + len(os.listdir("/proc/self/fd"))  # these are of earlier tests in this process
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, before[1]))
    yield limit
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def append(folder):
    for path in folder.glob("*/*.log"):
        with path.open("ab") as file:
            file.write(b"%s b\n" % path.stem.encode())


def expected(*letters):
    return sorted(f"{number} {letter}" for number in range(COUNT) for letter in letters)


def read_all(reader):
    """What a poll reads in its time may be one file: only `drain` looks at all files before each."""
    reader.look()
    while reader.poll():
        pass
    return reader.drain()


def test_all_lines_come_with_few_descriptors_and_bounded_memory(many, few_descriptors, reader):
    started = reader(many / "**" / "*.log", start=False)
    tracemalloc.start()
    try:
        read_all(started.start())
        append(many)
        came = sorted(read_all(started))
        started.records.clear()
        started.stored.offsets_by_slot.clear()
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert came == expected("a", "b")
    assert len(started.open_files(many)) <= few_descriptors // 2
    assert used < COUNT * BYTES_A_FILE, f"{used / COUNT:.0f} bytes a file"


class FewWatches:
    """The kernel, with a small fs.inotify.max_user_watches."""

    def __init__(self, most):
        self._left = most

    def __getattr__(self, name):
        return getattr(libc(), name)

    def inotify_add_watch(self, *arguments):
        if not self._left:
            events.ctypes.set_errno(errno.ENOSPC)
            return -1
        self._left -= 1
        return libc().inotify_add_watch(*arguments)


def test_what_cannot_be_watched_is_looked_at_every_so_often(many, reader, monkeypatch, caplog):
    kernel = FewWatches(10)
    monkeypatch.setattr(events, "libc", lambda: kernel)
    started = reader(many / "**" / "*.log", poll_interval_ms=20)
    assert sorted(started.take(COUNT)) == expected("a")
    append(many)
    assert sorted(started.take(2 * COUNT)) == expected("a", "b")
    (many / "new").mkdir()
    (many / "new" / "file.log").write_bytes(b"new\n")
    assert started.take(2 * COUNT + 1)[-1] == "new"
    told = [record.getMessage() for record in caplog.records if "max_user_watches" in record.getMessage()]
    assert len(told) == 1, "said once"
