"""The process is killed before and after each write, rename, fsync and commit of offsets and state: what is found then is the old or the new,
never neither, and nothing that was acknowledged is missing.

Each case runs in a child that ends itself at one point, the first, the second, …, until one comes through.
"""

import builtins
import os
import sqlite3
import threading
import traceback

import pytest

from standalone.clock import SYSTEM
from standalone.runtime.offsets import journal
from standalone.runtime.offsets.journal import OffsetsFile
from standalone.runtime.supervision import state as state_module
from standalone.runtime.supervision.state import CONNECTOR, State

KILLED, THROUGH, BROKEN = 9, 0, 1


class Points:
    """Ends the process at the point of that number; counts them."""

    def __init__(self, last):
        self.left = last
        self._lock = threading.Lock()

    def __call__(self):
        with self._lock:
            self.left -= 1
            if self.left < 0:
                os._exit(KILLED)

    def around(self, call):
        def wrapped(*arguments, **named):
            self()
            result = call(*arguments, **named)
            self()
            return result

        return wrapped


class HalfWritten:
    """A file of which each write is a point before it, after the half of it, and after it."""

    def __init__(self, file, point):
        self._file, self._point = file, point

    def write(self, data):
        self._point()
        half = len(data) // 2
        written = self._file.write(data[:half]) if half else 0
        self._point()
        written += self._file.write(data[half:])
        self._point()
        return written

    def truncate(self, size):
        return self._point.around(self._file.truncate)(size)

    def __getattr__(self, name):
        return getattr(self._file, name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()


class KillingConnection(sqlite3.Connection):
    point = None

    def execute(self, sql, *arguments):
        if self.point is None:
            return super().execute(sql, *arguments)
        return self.point.around(super().execute)(sql, *arguments)

    def commit(self):
        return super().commit() if self.point is None else self.point.around(super().commit)()


def killed_at_each(scenario, check):
    """Run `scenario(point, say)` killed at each of its points; `check(what it had said)` follows. How many points there were."""
    number = 0
    while True:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:  # whatever happens to it: the child must not continue with the tests
                os.close(reader)
                scenario(Points(number), lambda what: os.write(writer, what + b"\n"))
                os._exit(THROUGH)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(BROKEN)
        os.close(writer)
        with os.fdopen(reader, "rb") as said:
            told = said.read().split()
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert status in (KILLED, THROUGH), (number, status)
        check(number, told)
        if status == THROUGH:
            return number
        number += 1


def hooked_journal(point):
    """All that the journal does to files."""
    def hooked(really):
        def opened(path, mode="r", **more):
            file = really(path, mode, **more)
            return HalfWritten(file, point) if set(mode) & set("wa+") else file

        return opened

    journal.open, journal.open_private = hooked(builtins.open), hooked(journal.open_private)
    for name in ("fsync", "replace"):
        setattr(os, name, point.around(getattr(os, name)))


@pytest.mark.parametrize("compact_after", [10_000, 2], ids=["appended", "compacted"])
def test_offsets_outlive_a_kill_at_any_point(tmp_path, compact_after):
    order = []

    def path(number):
        return str(tmp_path / f"{number}" / "connect.offsets")

    def scenario(point, say):
        where = path(point.left)
        hooked_journal(point)
        journal._COMPACT_AFTER = compact_after
        file = OffsetsFile(where, before_sync=lambda: say(b"log")).open()
        for position in range(1, 7):
            for name in ("x", "y"):
                file.append("c", [({"f": name}, {"n": position})])
                say(b"%s%d" % (name.encode(), position))
            if position % 2 == 0:
                file.sync()
        file.append("c", [({"f": "y"}, None)])
        say(b"y0")
        file.close()

    def check(number, told):
        acknowledged = {"x": 0, "y": 0}
        for each in told:
            if each != b"log":
                acknowledged[each[:1].decode()] = int(each[1:])
        found = OffsetsFile(path(number)).open()
        for name, last in acknowledged.items():
            stored = (found.get("c", {"f": name}) or {"n": 0})["n"]
            following = 0 if name == "y" and last == 6 else last + 1  # the one that was being written, if any
            assert stored in (last, following), (number, told, name, stored)
        found.append("c", [({"f": "z"}, {"n": 1})])
        found.close()
        assert OffsetsFile(path(number)).open().get("c", {"f": "z"}) == {"n": 1}
        order.append(number)

    assert killed_at_each(scenario, check) >= 40 and order


def test_the_java_workers_file_outlives_a_kill_at_any_point_of_its_taking_over(tmp_path):
    golden = os.path.join(os.path.dirname(__file__), "..", "golden", "java-offsets.bin")
    with open(golden, "rb") as file:
        original = file.read()
    expected = sorted(map(repr, journal.java_offsets(original)))

    def folder(number):
        made = tmp_path / str(number)
        made.mkdir(exist_ok=True)
        return made / "connect.offsets"

    def scenario(point, say):
        where = folder(point.left)
        where.write_bytes(original)
        hooked_journal(point)
        OffsetsFile(str(where)).open()

    def check(number, _):
        found = OffsetsFile(str(folder(number))).open()
        there = sorted(repr((name, *entry)) for name in found.connectors() for entry in found.all(name))
        assert there == [each for each in expected if not each.endswith("None)")], number
        assert (folder(number).parent / "connect.offsets.java").read_bytes() == original

    assert killed_at_each(scenario, check) >= 10


def test_the_state_outlives_a_kill_at_any_point(tmp_path):
    def folder(number):
        return tmp_path / str(number)

    changes = [
        ("put", lambda state: state.put_connector("a", {"n": "1"}, "STARTED", False)),
        ("pause", lambda state: state.put_target_state("a", "PAUSED")),
        ("again", lambda state: state.put_connector("a", {"n": "2"}, "PAUSED", False)),
        ("delete", lambda state: state.delete_connector("a", "w")),
    ]
    expected = [[], [("a", {"n": "1"}, "STARTED", False)], [("a", {"n": "1"}, "PAUSED", False)], [("a", {"n": "2"}, "PAUSED", False)], []]

    def scenario(point, say):
        where = folder(point.left)
        connect = sqlite3.connect
        state_module.sqlite3.connect = lambda path: connect(path, factory=KillingConnection)
        state = State(where, SYSTEM).open()
        KillingConnection.point = point
        state.put_status("a", CONNECTOR, "RUNNING", None, "w")
        state.put_topic("a", "t")
        for name, change in changes:
            change(state)
            say(name.encode())
        os._exit(THROUGH)

    def check(number, told):
        state = State(folder(number), SYSTEM).open()
        try:
            found = state.connectors()
            assert found in expected[len(told) : len(told) + 2], (number, told, found)
            if told[-1:] == [b"delete"]:
                assert state.topics() == [] and state.history("a")[0][1] == "DESTROYED"
            elif not found and len(told) == 3:  # deleted, though nobody was told: then all of it is
                assert state.topics() == [] and state.history("a")[0][1] == "DESTROYED"
        finally:
            state.close()

    assert killed_at_each(scenario, check) >= 40


def test_no_offset_is_durable_before_the_records_behind_it(tmp_path):
    """In every order of two threads' steps: what a sync has made durable is only what the log had made durable before."""
    durable_log, durable_offsets = set(), set()
    written_log, written_offsets = [], []
    stop = threading.Event()
    fsync = os.fsync

    def before_sync():
        durable_log.update(written_log)

    def noting_fsync(descriptor):
        fsync(descriptor)
        durable_offsets.update(written_offsets)
        assert durable_offsets <= durable_log, sorted(durable_offsets - durable_log)[:3]

    file = OffsetsFile(str(tmp_path / "o"), before_sync).open()
    os.fsync, wrong = noting_fsync, []
    write = file._write

    def noting_write(lines):
        write(lines)
        written_offsets.append(len(written_offsets))

    file._write = noting_write

    def appends():
        for number in range(3000):
            written_log.append(number)  # acknowledged by the log, not yet on its disk
            file.append("c", [({"f": "x"}, {"n": number})])
        stop.set()

    def syncs():
        try:
            while not stop.is_set():
                file.sync()
        except AssertionError as error:
            wrong.append(error)

    try:
        threads = [threading.Thread(target=appends), *(threading.Thread(target=syncs) for _ in range(2))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        file.sync()
    finally:
        os.fsync = fsync
    assert not wrong and durable_offsets == set(range(3000))
