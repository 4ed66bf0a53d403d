"""JournalSource: entries of the export format, the cursor, and what happens when journalctl ends."""

import os
import shutil
import struct
import subprocess
import sys
import time

import pytest

from connectors.logs.journal import PARTITION, JournalSourceConnector, JournalSourceTask
from connectors.logs.journal_export import entries
from standalone import ConnectError, OffsetReader, RetriableError
from tests.suite.patience import PATIENCE_SECONDS

# A journalctl that reports ten entries, those after the cursor only, and then waits as --follow does, or ends if it is asked to.
FAKE = """#!{python}
import os, sys, time
after = next((int(each.partition("=c")[2]) for each in sys.argv if each.startswith("--after-cursor=")), 0)
begin = 10 if "--lines=0" in sys.argv else after
for number in range(begin + 1, 11):
    sys.stdout.write(f"__CURSOR=c{{number}}\\n__REALTIME_TIMESTAMP={{number}}000000\\nMESSAGE=entry {{number}}\\nPRIORITY=6\\n\\n")
sys.stdout.flush()
if os.path.exists({ends!r}):
    sys.exit("the journal is gone")
time.sleep(60)
"""


class Stored(OffsetReader):
    def __init__(self, cursor=None):
        self.cursor = cursor
        self.offset_reader = self

    def offset(self, partition):
        assert partition == PARTITION
        return {"cursor": self.cursor} if self.cursor else None


@pytest.fixture
def journal(tmp_path):
    command = tmp_path / "journalctl"
    command.write_text(FAKE.format(python=sys.executable, ends=str(tmp_path / "ends")))
    command.chmod(0o755)
    tasks = []

    def start(cursor=None, **props):
        task = JournalSourceTask(idle_seconds=0.2)
        task.initialize(Stored(cursor))
        task.start({"topic": "t", "journalctl": str(command), **{name.replace("_", "."): value for name, value in props.items()}})
        tasks.append(task)
        return task

    yield start
    for task in tasks:
        task.stop()
        task.close()


def take(task, count):
    found, deadline = [], time.monotonic() + PATIENCE_SECONDS
    while len(found) < count and time.monotonic() < deadline:
        found += task.poll() or []
    return found


def test_entries_come_with_their_time_and_cursor(journal):
    found = take(journal(), 10)
    assert [record.value["MESSAGE"] for record in found] == [f"entry {number}" for number in range(1, 11)]
    assert (found[4].timestamp, found[4].source_offset, found[4].source_partition) == (5000, {"cursor": "c5"}, PARTITION)


def test_it_goes_on_behind_the_stored_cursor(journal):
    assert [record.value["MESSAGE"] for record in take(journal("c8"), 2)] == ["entry 9", "entry 10"]


def test_it_begins_at_the_end_if_that_is_asked_for(journal):
    assert journal(start_at="end").poll() is None


def test_only_the_fields_that_are_asked_for_are_published(journal):
    assert take(journal(fields="MESSAGE"), 1)[0].value == {"MESSAGE": "entry 1"}


def test_a_journalctl_that_ends_is_told_of_and_started_again(journal, tmp_path):
    (tmp_path / "ends").touch()
    task = journal()
    assert len(take(task, 10)) == 10
    with pytest.raises(RetriableError, match="the journal is gone"):
        task.poll()
    (tmp_path / "ends").unlink()
    assert task.poll() is None, "it continues after the last entry"


ENTRY = b"A=1\nB\n" + struct.pack("<Q", 3) + b"x\ny\nA=2\n\n"


def test_the_export_format_is_read_wherever_it_is_cut():
    for cut in range(len(ENTRY) * 2 + 1):
        data = ENTRY * 2
        first, rest = entries(data[:cut])
        second, rest = entries(rest + data[cut:])
        assert first + second == [{"A": ["1", "2"], "B": "x\ny"}] * 2
        assert rest == b""


def test_what_journalctl_itself_writes_is_read(tmp_path):
    """A journal made here, if the tool for it is there."""
    remote = shutil.which("systemd-journal-remote", path=os.environ["PATH"] + ":/lib/systemd:/usr/lib/systemd")
    if remote is None or shutil.which("journalctl") is None:
        pytest.skip("systemd-journal-remote is not installed")
    export = b"".join(b"__REALTIME_TIMESTAMP=%d\n_BOOT_ID=0123456789abcdef0123456789abcdef\nMESSAGE=m%d\n\n" % (10**15 + each, each) for each in range(3))
    subprocess.run([remote, f"--output={tmp_path}/a.journal", "-"], input=export, check=True, capture_output=True)
    task = JournalSourceTask(idle_seconds=0.5)
    task.initialize(Stored())
    task.start({"topic": "t", "journal.directory": str(tmp_path)})
    found = take(task, 3)
    task.stop()
    task.close()
    assert [record.value["MESSAGE"] for record in found] == ["m0", "m1", "m2"]


@pytest.mark.parametrize("props, key", [({"journalctl": "no-such-command"}, "journalctl"), ({"matches": "x"}, "matches")])
def test_refused(props, key):
    assert key in JournalSourceConnector().validate({"topic": "t", "journalctl": sys.executable, **props})


def test_offsets_an_operator_may_set():
    assert JournalSourceConnector().alter_offsets({}, [(PARTITION, None), (PARTITION, {"cursor": "c"})])
    for partition, offset in [({"journal": "other"}, None), (PARTITION, {"position": 1})]:
        with pytest.raises(ConnectError):
            JournalSourceConnector().alter_offsets({}, [(partition, offset)])
