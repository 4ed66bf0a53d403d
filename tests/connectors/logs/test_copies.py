"""A copy that is seen while it is made: nothing of it comes twice, and what is no copy comes all the same."""

import gzip
import os

import pytest

from connectors.logs import copies

SETTLED = 300  # seconds since a file was written to, for which nobody waits any more
CUT_OFF = 3600  # the same where it is compressed and cut off


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """So that a slow machine is not taken for one that has stopped to write."""
    monkeypatch.setattr(copies, "SECONDS_TO_SETTLE", SETTLED / 3)
    monkeypatch.setattr(copies, "SECONDS_TO_FINISH", CUT_OFF / 3)


def lines(begin, end, size=40):
    return [f"{number} ".ljust(size - 1, "x") for number in range(begin, end)]


def text(lines):
    return "".join(f"{line}\n" for line in lines).encode()


def old(path, seconds=SETTLED):
    written = os.stat(path).st_mtime - seconds
    os.utime(path, (written, written))


WAYS = pytest.mark.parametrize("glob", ["app.log", "app.log*", "*"])
SIZES = pytest.mark.parametrize("count", [3, 100, 5000])  # 120 bytes, 4 KB, 200 KB


@WAYS
@SIZES
@pytest.mark.parametrize("starts_again", [False, True], ids=["at one go", "in the middle of which the reader starts again"])
@pytest.mark.parametrize("was_rotated", [False, True], ids=["for the first time", "after a rename"])
def test_a_copy_that_is_being_made_is_not_read(glob, count, starts_again, was_rotated, log, tmp_path, reader):
    started = reader(tmp_path / glob)
    before = []
    if was_rotated:
        before = ["before"]
        log.append(b"before\n")
        started.drain()
        log.rename()
        started.drain()
    written = lines(0, count)
    log.append(text(written))
    assert started.drain() == before + written
    copy = log.begin_copy()
    size = os.path.getsize(log.path)
    for part in (0, 1, size // 3, size // 2):
        log.copy_more(copy, part)
        assert started.drain() == before + written
        if starts_again:
            started.restart()
    log.end_copy(copy)
    assert started.drain() == before + written
    log.truncate()
    log.append(b"last\n")
    assert started.drain() == [*before, *written, "last"]


def test_a_copy_that_was_created_a_moment_ago_is_no_generation_that_was_missed(log, reader):
    """Nobody has looked since the file got its name from one that was renamed: whoever had it in between is to be found out."""
    started = reader(log.path)
    log.append(b"1\n")
    started.drain()
    log.rename()
    started.drain()
    log.append(b"2\n")
    assert started.take(2) == ["1", "2"]
    copy = log.begin_copy()
    started.look()
    started.poll()
    log.end_copy(copy)
    log.truncate()
    log.append(b"3\n")
    assert started.drain() == ["1", "2", "3"]


@WAYS
def test_what_was_not_read_of_the_original_is_read_in_the_copy(glob, log, tmp_path, reader):
    started = reader(tmp_path / glob)
    log.append(text(lines(0, 100)))
    started.drain()
    copy = log.begin_copy()
    started.drain()
    log.append(text(lines(100, 200)))
    log.end_copy(copy)
    log.truncate()
    log.append(b"last\n")
    assert started.drain() == [*lines(0, 200), "last"]


@pytest.mark.parametrize("count", [3, 100])
def test_a_copy_that_is_there_at_the_first_start_is_none_of_ours(count, log, tmp_path, reader):
    """Both are new: the one that has the name now is read."""
    log.append(text(lines(0, count)))
    copy = log.begin_copy()
    log.copy_more(copy, 100)
    started = reader(tmp_path / "app.log*")
    assert started.drain() == lines(0, count)
    log.end_copy(copy)
    assert started.drain() == lines(0, count)
    log.truncate()
    log.append(b"last\n")
    assert started.drain() == [*lines(0, count), "last"]


@WAYS
@pytest.mark.parametrize("starts_again", [False, True], ids=["", "by a reader that has just started"])
def test_what_is_read_behind_the_copy_does_not_make_it_unknown(glob, starts_again, log, tmp_path, reader):
    """Who writes does not wait for who copies: the copy is shorter than what was read when the file is truncated."""
    started = reader(tmp_path / glob)
    log.append(text(lines(0, 5)))
    started.drain()
    if starts_again:
        started.restart()
        started.drain()
    copy = log.begin_copy()
    log.end_copy(copy)
    log.append(b"late\n")
    assert started.drain() == [*lines(0, 5), "late"]
    log.truncate()
    log.append(b"last\n")
    assert started.drain() == [*lines(0, 5), "late", "last"]
    log.compress()
    started.restart()
    assert started.drain() == [*lines(0, 5), "late", "last"]


def test_a_copy_that_is_never_finished_is_not_read_and_holds_nobody_up(log, tmp_path, reader):
    log.append(text(lines(0, 100)))
    copy = log.begin_copy()
    log.copy_more(copy, 2000)
    started = reader(tmp_path / "app.log*", on_eof="exit")
    assert started.drain() == lines(0, 100)
    assert not started.stored.has_ended, "it may become a copy, or a file of its own"
    old(copy)
    assert started.drain() == lines(0, 100)
    assert started.stored.has_ended


def test_a_file_that_only_begins_alike_is_read_as_soon_as_it_differs(log, tmp_path, reader):
    started = reader(tmp_path / "app.log*")
    log.append(text(lines(0, 100)))
    started.drain()
    other = tmp_path / "app.log.1"
    other.write_bytes(text(lines(0, 50)))
    assert started.drain() == lines(0, 100)
    old(other)
    assert started.drain() == lines(0, 100)
    with other.open("ab") as file:
        file.write(b"of its own\n")
    assert started.drain() == [*lines(0, 100), *lines(0, 50), "of its own"]


def test_a_banner_alone_is_no_copy_when_nothing_more_comes(log, tmp_path, reader):
    started = reader(tmp_path / "app.log*")
    log.append(b"banner\n1\n")
    started.drain()
    other = tmp_path / "app.log.old"
    other.write_bytes(b"banner\n")
    assert started.drain() == ["banner", "1"], "it may become a copy"
    old(other)
    assert started.drain() == ["banner", "1", "banner"]


def test_an_empty_file_with_a_rotated_name_is_read_when_it_has_lines_of_its_own(log, tmp_path, reader):
    started = reader(tmp_path / "app.log*")
    log.append(b"1\n")
    started.drain()
    other = tmp_path / "app.log.1"
    other.touch()
    old(other)
    assert started.drain() == ["1"]
    other.write_bytes(b"2\n")
    assert started.drain() == ["1", "2"]


@pytest.mark.parametrize("glob", ["app.log", "*"])
@pytest.mark.parametrize("is_copied", [False, True], ids=["renamed", "copied and truncated"])
def test_a_compressed_file_that_is_being_made_is_not_read(glob, is_copied, log, tmp_path, reader):
    """Each part is older than a file is that may still be written to, but for what is cut off."""
    started = reader(tmp_path / glob)
    written = lines(0, 2000)
    log.append(text(written))
    started.drain()
    rotated = log.copy_and_truncate() if is_copied else log.rename()
    log.append(b"last\n")
    assert started.drain() == [*written, "last"]
    with open(rotated, "rb") as plain:
        packed = gzip.compress(plain.read())
    for size in (0, 5, 15, 200, len(packed) // 2, len(packed) - 1):
        with open(f"{rotated}.gz", "wb") as file:
            file.write(packed[:size])
        old(f"{rotated}.gz")
        assert started.drain() == [*written, "last"], f"{size} of {len(packed)} bytes"
    with open(f"{rotated}.gz", "wb") as file:
        file.write(packed)
    os.remove(rotated)
    old(f"{rotated}.gz")
    assert started.drain() == [*written, "last"]
    started.restart()
    assert started.drain() == [*written, "last"]


def test_a_compressed_copy_that_stays_cut_off_is_not_read(log, tmp_path, reader):
    written = lines(0, 2000)
    log.append(text(written))
    log.rename()
    packed = tmp_path / "app.log.1.gz"
    packed.write_bytes(gzip.compress(text(written))[:2000])
    old(packed, CUT_OFF)
    started = reader(tmp_path / "*", on_eof="exit")
    assert started.drain() == written
    assert started.stored.has_ended
