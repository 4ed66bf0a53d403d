"""LogSource and rotation, way by way: nothing is lost that stayed on disk, nothing comes twice, order is kept."""

import os
import shutil

import pytest

from tests.connectors.logs.driven import Log


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


@pytest.mark.parametrize("then", ["go on", "start again"])
@pytest.mark.parametrize("parked", [False, True], ids=["open", "closed"])
@pytest.mark.parametrize("glob", ["app.log", "*", "app*.log"])
@pytest.mark.parametrize("while_down", [False, True], ids=["while it is read", "while nobody reads"])
@pytest.mark.parametrize("rotate, expected", CASES, ids=[case[0].__name__.replace("_", " ") for case in CASES])
def test_every_line_comes_once_though_the_file_is(rotate, expected, while_down, glob, parked, then, log, tmp_path, reader):
    log.append(b"1\n2\n")
    started = reader(tmp_path / glob)
    started.drain()
    if parked:
        for file in list(started.task._follower._open):
            started.task._follower._close(file)
    if while_down:
        started.stop()
    rotate(log)
    if while_down:
        started.start()
    assert [line.split()[0] for line in started.drain()] == expected.split()
    if then == "start again":
        started.restart()
    log.append(b"last\n")
    assert [line.split()[0] for line in started.drain()] == [*expected.split(), "last"]
