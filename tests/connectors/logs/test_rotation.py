"""LogSource and rotation, way by way: nothing is lost that stayed on disk, nothing comes twice, order is kept."""

import gzip
import os
import shutil
import time

import pyarrow as pa
import pytest


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


def renamed_and_compressed(log):
    renamed(log)
    log.compress()


def renamed_compressed_and_renamed_again(log):
    renamed_and_compressed(log)
    log.rename()
    log.append(b"5\n")


def copied_truncated_and_compressed(log):
    copied_and_truncated(log)
    log.compress()


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
    (renamed_and_compressed, "1 2 3 4"),
    (renamed_compressed_and_renamed_again, "1 2 3 4 5"),
    (copied_truncated_and_compressed, "1 2 3 4"),
]


# What is asked for, whether the file was closed for being idle, and whether the reader starts again afterwards.
WAYS = [("app.log", False, True), ("app.log", True, False), ("*", False, False), ("app*.log", True, True)]


@pytest.mark.parametrize("glob, is_closed, starts_again", WAYS, ids=["by its name", "by its name and closed", "by *", "by app*.log and closed"])
@pytest.mark.parametrize("while_down", [False, True], ids=["while it is read", "while nobody reads"])
@pytest.mark.parametrize("rotate, expected", CASES, ids=[case[0].__name__.replace("_", " ") for case in CASES])
def test_every_line_comes_once_though_the_file_is(rotate, expected, while_down, glob, is_closed, starts_again, log, tmp_path, reader):
    log.append(b"1\n2\n")
    started = reader(tmp_path / glob)
    started.drain()
    if is_closed:
        started.close_files()
    if while_down:
        started.stop()
    rotate(log)
    if while_down:
        started.start()
    assert [line.split()[0] for line in started.drain()] == expected.split()
    if starts_again:
        started.restart()
    log.append(b"last\n")
    assert [line.split()[0] for line in started.drain()] == [*expected.split(), "last"]


def test_rotated_files_that_are_asked_for_come_the_oldest_first(log, tmp_path, reader):
    for number in range(4):
        log.append(b"%d\n" % number)
        if number < 3:
            log.rename()
    log.compress(3)
    started = reader(tmp_path / "app.log*")
    assert started.drain() == ["0", "1", "2", "3"]
    log.compress(2)
    log.append(b"4\n")
    assert started.drain()[4:] == ["4"]
    started.restart()
    log.rename()
    log.append(b"5\n")
    assert started.drain()[5:] == ["5"]


def test_rotated_files_from_before_the_first_start_are_left_alone_unless_they_are_asked_for(log, reader):
    log.append(b"old\n")
    log.rename()
    log.append(b"1\n")
    started = reader(log.path)
    assert started.drain() == ["1"]
    log.rename()
    log.append(b"2\n")
    assert started.drain() == ["1", "2"]


@pytest.mark.parametrize("suffix, pack", [(".gz", "gzip"), (".zst", "zstd"), (".bz2", "bz2")])
def test_a_compressed_file_is_read(suffix, pack, tmp_path, reader):
    data = b"".join(b"line %d\n" % number for number in range(50_000)) + b"unfinished"
    path = tmp_path / f"app.log{suffix}"
    with pa.CompressedOutputStream(str(path), pack) as file:
        file.write(data)
    os.utime(path, (1, 1))
    started = reader(tmp_path / "*")
    assert started.drain() == data.decode().splitlines()
    resumed = reader(tmp_path / "*", start=False)
    resumed.stored.store(started.records[0].source_partition, started.records[29_999].source_offset)
    assert resumed.start().drain() == data.decode().splitlines()[30_000:]


def test_a_damaged_compressed_file_is_told_of_and_holds_nobody_up(tmp_path, reader, caplog):
    packed = gzip.compress(os.urandom(3000) + b"\n")
    (tmp_path / "a.log.gz").write_bytes(packed[:1000])
    (tmp_path / "b.log").write_bytes(b"1\n")
    os.utime(tmp_path / "a.log.gz", (1, 1))
    assert reader(tmp_path / "*").drain()[-1:] == ["1"]
    assert "damaged" in caplog.text


def test_a_deleted_file_is_read_to_its_end_and_closed(log, reader):
    log.append(b"1\n")
    started = reader(log.path)
    started.drain()
    log.append(b"2\nunfinished")
    os.remove(log.path)
    assert started.drain() == ["1", "2", "unfinished"]
    assert not started.open_files(log.path)


def test_an_inode_that_is_given_out_again_is_another_file(tmp_path, reader):
    """Even if it begins with the very bytes that were read."""
    first, second = tmp_path / "a.log", tmp_path / "b.log"
    first.write_bytes(b"id,name\n")
    started = reader(tmp_path / "*.log")
    started.drain()
    started.stop()
    inode = first.stat().st_ino
    first.unlink()
    for _ in range(100):
        second.write_bytes(b"id,name\n1,Ann\n")
        if second.stat().st_ino == inode:
            break
        second.rename(tmp_path / f"other-{time.monotonic_ns()}")
    else:
        pytest.skip("the filesystem gives no inode out again")
    for other in tmp_path.glob("other-*"):
        other.unlink()
    started.start()
    assert started.drain() == ["id,name", "id,name", "1,Ann"]


def test_files_that_begin_alike_are_not_taken_for_each_other(tmp_path, reader):
    started = reader(tmp_path / "*.log")
    for name in ("worker.log", "worker-1.log", "worker-2.log"):
        (tmp_path / name).write_bytes(b"banner\n")
    assert started.drain() == ["banner"] * 3
    (tmp_path / "worker-3.log").write_bytes(b"banner\nthree\n")
    with (tmp_path / "worker-1.log").open("ab") as file:
        file.write(b"one\n")
    assert sorted(started.drain()[3:]) == ["banner", "one", "three"]


def test_a_file_put_back_from_a_copy_goes_on_where_it_was(log, reader):
    log.append(b"".join(b"line %d\n" % number for number in range(200)))
    started = reader(log.path)
    started.drain()
    started.stop()
    shutil.copyfile(log.path, f"{log.path}~")
    os.replace(f"{log.path}~", log.path)
    log.append(b"next\n")
    started.start()
    assert started.drain()[200:] == ["next"]


@pytest.mark.parametrize("while_down", [False, True], ids=["while it is read", "while nobody reads"])
def test_a_link_is_followed_to_where_the_file_is_rotated(while_down, log, tmp_path, reader):
    """As the logs of containers are: the link stays, and what it leads to is rotated in a folder of its own."""
    link = tmp_path / "links" / "container.log"
    link.parent.mkdir()
    link.symlink_to(log.path)
    log.append(b"1\n")
    started = reader(link)
    started.drain()
    if while_down:
        started.stop()
    renamed_twice(log)
    if while_down:
        started.start()
    assert started.drain() == ["1", "3", "4", "5"]


def test_offsets_do_not_grow_with_files_that_are_gone(tmp_path, reader):
    started = reader(tmp_path / "*.log", clean_removed_ms=0)
    for number in range(30):
        path = tmp_path / f"{number}.log"
        path.write_bytes(b"%d\n" % number)
        started.drain()
        path.unlink()
        started.drain()
    assert started.lines == [str(number) for number in range(30)]
    assert len(started.stored.offsets_by_slot) <= 3
    started.restart()
    (tmp_path / "30.log").write_bytes(b"30\n")
    assert started.drain()[30:] == ["30"]


def test_what_was_not_acknowledged_comes_again_and_nothing_else(log, reader):
    log.append(b"1\n2\n")
    started = reader(log.path)
    started.drain()
    log.append(b"3\n")
    started.poll(acknowledge=False)
    started.restart()
    assert started.drain() == ["1", "2", "3", "3"]


def test_a_neighbour_that_is_named_as_a_rotated_file_might_be_is_nobodys_generation(tmp_path, reader):
    (tmp_path / "worker.log").write_bytes(b"1\n")
    started = reader(tmp_path / "worker.log")
    started.drain()
    (tmp_path / "worker-1.log").write_bytes(b"of another worker\n")
    os.rename(tmp_path / "worker.log", tmp_path / "worker.log.1")
    (tmp_path / "worker.log").write_bytes(b"2\n")
    assert started.drain() == ["1", "2"]
    started.stop()
    os.remove(tmp_path / "worker.log")
    (tmp_path / "worker-2.log").write_bytes(b"of a third one\n")
    (tmp_path / "worker.log").write_bytes(b"3\n")
    started.start()
    assert started.drain() == ["1", "2", "3"]


def test_a_rotated_file_that_nobody_saw_has_the_name_it_was_written_under(log, tmp_path, reader):
    log.append(b"1\n")
    started = reader(tmp_path / "app.log*", topic="${file}")
    started.drain()
    log.rename()
    log.append(b"2\n")
    log.rename()
    log.append(b"3\n")
    started.drain()
    assert [(record.topic, record.value) for record in started.records] == [("app.log", "1"), ("app.log", "2"), ("app.log", "3")]


def test_a_name_that_nobody_has_for_a_while_is_watched(log, reader):
    """A file that gets it, and loses it before anybody looks, is read."""
    log.append(b"1\n")
    started = reader(log.path)
    started.drain()
    os.remove(log.path)
    started.drain()
    log.append(b"2\n")
    log.rename()
    assert started.drain() == ["1", "2"]


def test_a_copy_of_what_nobody_has_seen_is_read_though_the_file_was_renamed_since(log, reader):
    """The file was empty at the last look: its content tells nobody that it was truncated."""
    log.append(b"1\n")
    started = reader(log.path)
    started.drain()
    log.truncate()
    started.drain()
    started.close_files()
    log.append(b"2\n")
    log.copy_and_truncate()
    log.append(b"3\n")
    log.rename()
    log.append(b"4\n")
    assert started.drain() == ["1", "2", "3", "4"]


def test_a_file_that_was_truncated_stands_where_its_new_lines_do(log, reader):
    """Its copy is gone, and what came before and behind it was never seen."""
    started = reader(log.path, chunk_bytes=3)
    for number in (1, 2):
        log.append(b"%d\n" % number)
        started.drain()
    log.append(b"3\n")
    log.copy_and_truncate()
    started.drain()
    log.append(b"4\n5\n")
    log.copy_and_truncate()
    started.poll(acknowledge=False)
    started.stop()
    for number in (6, 8, 10):
        log.append(b"%d\n%d\n" % (number, number + 1))
        log.rename()
    log.append(b"12\n")
    started.start()
    started.drain()
    assert list(dict.fromkeys(started.lines)) == [str(number) for number in range(1, 13)]
