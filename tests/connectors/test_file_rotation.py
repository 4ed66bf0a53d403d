"""A followed file that is rotated in every way, against a model: nothing is lost that stayed on disk, nothing comes twice, order is kept."""

import os
import shutil
import tempfile

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from connectors.file.rotation import Place, generations, offset_of
from connectors.file.source import FileStreamSourceTask
from standalone import OffsetReader
from tests.connectors.rotated_log import Log


class Stored(OffsetReader):
    """The source offset that was stored last, and the context that offers it."""

    def __init__(self):
        self.value = None
        self.offset_reader = self

    def offset(self, partition):
        return self.value


class Reader:
    """A source task driven by hand: every line it polls counts as acknowledged at once."""

    def __init__(self, path, chunk_bytes=1 << 20, **props):
        self.stored = Stored()
        self.lines = []
        self._config = {"file": str(path), "topic": "t", "file.rotate.wait.ms": "0", **props}
        self._chunk_bytes = chunk_bytes
        self.task = None

    def start(self):
        self.task = FileStreamSourceTask(self._chunk_bytes, idle_seconds=0)
        self.task.initialize(self.stored)
        self.task.start(self._config)
        return self

    def stop(self):
        self.task.stop()
        self.task.close()
        self.task = None

    def poll(self, acknowledge=True):
        batch = self.task.poll()
        if batch is None:
            return False
        self.lines += [record.value for record in batch.records()]
        if acknowledge:
            self.stored.value = batch.offset_of(batch.count - 1)
        return True

    def drain(self):
        """Poll until nothing comes any more, also not from a file that has just been opened."""
        while any(self.poll() for _ in range(2)):
            pass
        return self.lines


# --- The ways of rotating, one by one --------------------------------------------------------------------------------


@pytest.fixture
def log(tmp_path):
    return Log(str(tmp_path))


@pytest.fixture
def reader(log):
    reader = Reader(log.path)
    yield reader
    if reader.task is not None:
        reader.stop()


def renamed(log):
    log.append(b"3\n")
    log.rename()
    log.append(b"4\n")


def renamed_twice(log):
    renamed(log)
    log.rename()
    log.append(b"5\n")


def renamed_within_a_line(log):
    log.append(b"3")
    log.rename()
    log.append(b"4\n")


def renamed_and_written_to_once_more(log):
    log.rename()
    os.rename(f"{log.path}.1", f"{log.path}.old")
    with open(f"{log.path}.old", "ab") as file:
        file.write(b"3\n")
    log.append(b"4\n")


def copied_and_truncated(log):
    log.append(b"3\n")
    log.copy_and_truncate()
    log.append(b"4\n")


def copied_and_truncated_twice(log):
    copied_and_truncated(log)
    log.copy_and_truncate()
    log.append(b"5\n")


def copied_and_truncated_and_larger_again(log):
    log.append(b"3\n")
    log.copy_and_truncate()
    log.append(b"4 is longer than all that was there before\n")


def truncated_and_larger_again(log):
    log.truncate()
    log.append(b"3 is longer than all that was there before\n")


def truncated_and_as_large_again(log):
    log.truncate()
    log.append(b"3\n4\n")


def moved_away_and_back(log):
    os.rename(log.path, f"{log.path}.1")
    os.rename(f"{log.path}.1", log.path)
    log.append(b"3\n")


def deleted_and_created_again(log):
    os.remove(log.path)
    log.append(b"3\n4\n5\n")


def dated(log):
    log.append(b"3\n")
    os.rename(log.path, f"{log.path}-20260131")
    log.append(b"4\n")


def dated_inside_the_name(log):
    log.append(b"3\n")
    os.rename(log.path, log.path.replace(".log", "-2026-01-31.log"))
    log.append(b"4\n")
    os.rename(log.path, log.path.replace(".log", "-2026-02-01.log"))
    log.append(b"5\n")


CASES = [
    (renamed, "1 2 3 4"),
    (renamed_twice, "1 2 3 4 5"),
    (renamed_within_a_line, "1 2 3 4"),
    (renamed_and_written_to_once_more, "1 2 3 4"),
    (copied_and_truncated, "1 2 3 4"),
    (copied_and_truncated_twice, "1 2 3 4 5"),
    (copied_and_truncated_and_larger_again, "1 2 3 4"),
    (truncated_and_larger_again, "1 2 3"),
    (truncated_and_as_large_again, "1 2 3 4"),
    (moved_away_and_back, "1 2 3"),
    (deleted_and_created_again, "1 2 3 4 5"),
    (dated, "1 2 3 4"),
    (dated_inside_the_name, "1 2 3 4 5"),
]


@pytest.mark.parametrize("while_down", [False, True], ids=["while it is read", "while nobody reads"])
@pytest.mark.parametrize("rotate, expected", CASES, ids=[case[0].__name__.replace("_", " ") for case in CASES])
def test_every_line_comes_once_though_the_file_is(rotate, expected, while_down, log, reader):
    log.append(b"1\n2\n")
    reader.start().drain()
    if while_down:
        reader.stop()
    rotate(log)
    if while_down:
        reader.start()
    assert [line.split()[0] for line in reader.drain()] == expected.split()


def test_a_deleted_file_is_read_to_its_end_and_closed(log, reader):
    log.append(b"1\n")
    reader.start().drain()
    log.append(b"2\nunfinished")
    os.remove(log.path)
    assert reader.drain() == ["1", "2", "unfinished"]
    open_files = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if os.path.islink(f"/proc/self/fd/{fd}")]
    assert not [name for name in open_files if name.startswith(log.path)]


def test_a_file_of_the_same_inode_with_other_content_is_read_from_its_beginning(log, reader):
    log.append(b"first\n")
    reader.start().drain()
    reader.stop()
    with open(log.path, "r+b") as file:
        file.write(b"other\nand more\n")
    reader.start()
    assert reader.drain() == ["first", "other", "and more"]


def test_files_that_begin_alike_are_not_taken_for_each_other(log, reader):
    log.append(b"id,name\n")
    reader.start().drain()
    log.rename()
    log.append(b"id,name\n1,Ann\n")
    assert reader.drain() == ["id,name", "id,name", "1,Ann"]


def test_a_file_put_back_from_a_copy_goes_on_where_it_was(log, reader):
    """Long equal content is the same file, whatever its inode."""
    log.append(b"".join(b"line %d\n" % number for number in range(200)))
    reader.start().drain()
    reader.stop()
    shutil.copyfile(log.path, f"{log.path}~")
    os.replace(f"{log.path}~", log.path)
    log.append(b"next\n")
    reader.start()
    assert reader.drain()[200:] == ["next"]


@pytest.mark.parametrize("while_down", [False, True], ids=["while it is read", "while nobody reads"])
def test_a_link_is_followed_to_where_the_file_is_rotated(while_down, log, tmp_path):
    """As the logs of containers are: the link stays, and what it leads to is rotated in a folder of its own."""
    link = tmp_path / "links" / "container.log"
    link.parent.mkdir()
    link.symlink_to(log.path)
    reader = Reader(link).start()
    log.append(b"1\n")
    reader.drain()
    if while_down:
        reader.stop()
    renamed_twice(log)
    if while_down:
        reader.start()
    assert reader.drain() == ["1", "3", "4", "5"]
    reader.stop()


def test_a_link_that_is_led_elsewhere_is_a_rotation(log, tmp_path):
    link = tmp_path / "current.log"
    link.symlink_to(log.path)
    reader = Reader(link).start()
    log.append(b"1\n2\n")
    other = Log(str(tmp_path), "next.log")
    other.append(b"3\n")
    reader.poll()
    log.append(b"unfinished")
    link.unlink()
    link.symlink_to(other.path)
    assert reader.drain() == ["1", "2", "unfinished", "3"]
    reader.stop()


def test_a_sibling_that_is_no_rotation_is_left_alone(log, reader, tmp_path):
    log.append(b"1\n")
    reader.start().drain()
    (tmp_path / "app.log.1.gz").write_bytes(b"compressed\n")
    (tmp_path / "app-errors.log").write_bytes(b"others\n")
    (tmp_path / "app.log.lock").write_bytes(b"lock\n")
    log.rename()
    log.append(b"2\n")
    assert reader.drain() == ["1", "2"]


def test_while_the_new_file_is_empty_the_old_one_is_still_read(log, reader):
    log.append(b"1\n")
    reader.start().drain()
    log.rename()
    log.append(b"")
    with open(f"{log.path}.1", "ab") as file:
        file.write(b"2\n")
    assert reader.drain() == ["1", "2"]
    log.append(b"3\n")
    assert reader.drain() == ["1", "2", "3"]


def test_a_rotated_file_must_be_quiet_before_it_counts_as_over(log):
    reader = Reader(log.path, **{"file.rotate.wait.ms": "600000"}).start()
    log.append(b"1\n")
    os.utime(log.path)
    reader.drain()
    log.rename()
    log.append(b"3\n")
    assert reader.drain() == ["1"]
    with open(f"{log.path}.1", "ab") as file:
        file.write(b"2\n")
    assert reader.drain() == ["1", "2"]
    reader.stop()


def test_generations_are_ordered_by_age(log):
    for name in ("app.log.2", "app.log-20260101", "app-2026-01-03.log", "app.log.1", "app.log.x", "app.log.old"):
        path = os.path.join(os.path.dirname(log.path), name)
        open(path, "wb").close()
        os.utime(path, ns=(5, 5))
    names = [os.path.basename(sibling.path) for sibling in generations(log.path)]
    assert names.index("app.log.2") < names.index("app.log.1")
    assert names.index("app.log-20260101") < names.index("app-2026-01-03.log")
    assert "app.log.x" not in names and len(names) == 5


@pytest.mark.parametrize("offset", [{"position": 5}, {"position": 5, "_file": "of another kind"}, {"position": 5, "_file": 7}])
def test_a_place_without_readable_marks_is_a_mere_position(offset):
    assert Place.of_offset(offset) == Place(5)


def test_a_place_comes_back_from_its_offset():
    assert Place.of_offset(offset_of(700, 12, 34, 56, 78)) == Place(700, 12, 34, 56, 78)


# --- Any sequence of them ---------------------------------------------------------------------------------------------


class Rotations(RuleBasedStateMachine):
    """Pieces of text are numbered as they are written, so that a line that is lost, repeated, torn or out of order shows.

    `unread` holds, for each file on disk, the lines in it, in the order of writing. A line may be missing in the end only if all
    files that had it went away (or were truncated) before anyone can be held to have read it.
    """

    def __init__(self):
        super().__init__()
        self.folder = tempfile.mkdtemp()
        self.log = Log(self.folder, generations=3)
        self.reader = None
        self.number = 0
        self.expected, self.may_be_lost = [], set()
        self.partial = b""
        self.own = []  # the lines of the file that has the path
        self.old = []  # those of its generations, the newest first

    def teardown(self):
        if self.reader is None:
            return
        if self.reader.task is None:
            self.reader.start()
        self.write(1, False)
        seen = self.reader.drain()
        self.reader.stop()
        shutil.rmtree(self.folder)
        missing = [line for line in self.expected if line not in set(seen)]
        assert set(missing) <= self.may_be_lost, f"lost {set(missing) - self.may_be_lost}; read {seen}"
        assert seen == [line for line in self.expected if line in set(seen)], f"repeated, torn or out of order: {seen}"

    @precondition(lambda self: self.reader is None)
    @rule(chunk_bytes=st.sampled_from([5, 16, 1 << 20]), batch_size=st.sampled_from([None, "1", "3"]))
    def begin(self, chunk_bytes, batch_size):
        self.reader = Reader(self.log.path, chunk_bytes, **({"batch.size": batch_size} if batch_size else {}))
        self.reader.start()

    @precondition(lambda self: self.reader)
    @rule(lines=st.integers(0, 4), unfinished=st.booleans())
    def write(self, lines, unfinished):
        for _ in range(lines):
            self.number += 1
            text = self.partial + b"%d" % self.number
            self.partial = b""
            self.expected.append(text.decode())
            self.own.append(text.decode())
            self.log.append(text[-len(b"%d" % self.number) :] + b"\n")
        if unfinished:
            self.number += 1
            self.partial += b"%d." % self.number
            self.log.append(b"%d." % self.number)

    def finish_line(self):
        """What was half written when the file was put away is a line of its own."""
        if self.partial:
            self.expected.append(self.partial.decode())
            self.own.append(self.partial.decode())
            self.partial = b""

    def put_away(self):
        self.finish_line()
        if len(self.old) == 3:
            self.may_be_lost |= set(self.old.pop())
        self.old.insert(0, self.own)
        self.own = []

    def exists(self):
        return os.path.exists(self.log.path)

    @precondition(lambda self: self.reader and self.exists())
    @rule(create=st.booleans())
    def rename(self, create):
        if not self.reader.lines:  # the generations of a file of which nothing was ever read are none of ours
            self.may_be_lost |= set(self.own) | {self.partial.decode()}
        self.put_away()
        self.log.rename()
        if create:
            self.log.append(b"")

    @precondition(lambda self: self.reader and self.exists() and os.path.getsize(self.log.path))
    @rule()
    def copy_and_truncate(self):
        if not set(self.own) & set(self.reader.lines):  # a copy is known by what was read of it
            self.may_be_lost |= set(self.own) | {self.partial.decode()}
        self.put_away()
        self.log.copy_and_truncate()

    @precondition(lambda self: self.reader and self.exists())
    @rule()
    def truncate(self):
        self.may_be_lost |= set(self.own) | {self.partial.decode()}
        self.finish_line()
        self.own = []
        self.log.truncate()

    @precondition(lambda self: self.reader and self.exists())
    @rule()
    def delete(self):
        self.may_be_lost |= set(self.own) | {self.partial.decode()}
        self.finish_line()
        self.own = []
        os.remove(self.log.path)

    @precondition(lambda self: self.reader and self.reader.task)
    @rule()
    def poll(self):
        self.reader.poll()

    @precondition(lambda self: self.reader and self.reader.task)
    @rule()
    def drain(self):
        self.reader.drain()

    @precondition(lambda self: self.reader and self.reader.task)
    @rule()
    def stop(self):
        self.reader.stop()

    @precondition(lambda self: self.reader and not self.reader.task)
    @rule()
    def start(self):
        self.reader.start()

    @invariant()
    def nothing_comes_twice(self):
        if self.reader:
            assert len(set(self.reader.lines)) == len(self.reader.lines), f"repeated: {self.reader.lines}"


Rotations.TestCase.settings = settings(
    max_examples=int(os.environ.get("ROTATION_EXAMPLES", 60)),
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestAnySequenceOfRotations = Rotations.TestCase
