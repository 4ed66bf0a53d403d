"""LogSource: which files it finds, what it makes of their bytes, and what it says of them."""

import os
import socket
import time

import pytest

from connectors.logs.source import LogSourceConnector, LogSourceTask
from standalone import ConfigError, ConnectError, Schema
from tests.connectors.logs.driven import Reader


def write(folder, files):
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


# --- Which files ---------------------------------------------------------------------------------------------------

TREE = {each: each.encode() + b"\n" for each in ("a.log", "b.txt", "sub/c.log", "sub/deep/d.log", "sub/deep/e.log.gz.tmp", ".hidden.log", "x1.log", "x2.log")}
GLOBS = [
    ("*.log", "", "a.log x1.log x2.log"),
    ("**/*.log", "", "a.log sub/c.log sub/deep/d.log x1.log x2.log"),
    ("sub/*/*.log", "", "sub/deep/d.log"),
    ("x[1].log", "", "x1.log"),
    ("x[!1].log", "", "x2.log"),
    ("x?.log", "", "x1.log x2.log"),
    ("b.txt", "", "b.txt"),
    ("a.log,sub/**", "*.tmp", "a.log sub/c.log sub/deep/d.log"),
    ("**/*.log", "x*.log,{}/sub/deep/*", "a.log sub/c.log"),
    ("*.log,a.*", "", "a.log x1.log x2.log"),
]


@pytest.mark.parametrize("paths, exclude, expected", GLOBS, ids=[f"{case[0]} without {case[1] or 'nothing'}" for case in GLOBS])
def test_globs(paths, exclude, expected, tmp_path, reader):
    write(tmp_path, TREE)
    started = reader([tmp_path / each for each in paths.split(",")], exclude=exclude.format(tmp_path))
    assert sorted(started.drain()) == expected.split()


def test_a_new_file_in_a_new_folder_is_found_at_once(tmp_path, reader):
    started = reader(tmp_path / "logs" / "**" / "*.log")
    started.poll()
    begun = time.monotonic()
    write(tmp_path, {"logs/x/y/new.log": b"1\n"})
    assert started.take(1) == ["1"]
    assert time.monotonic() - begun < 2


@pytest.mark.parametrize("watch", ["auto", "poll"])
def test_appended_lines_come_soon(watch, tmp_path, reader):
    write(tmp_path, {"a.log": b"1\n"})
    started = reader(tmp_path / "*.log", watch=watch, poll_interval_ms=20)
    started.take(1)
    for number in range(2, 5):
        with (tmp_path / "a.log").open("ab") as file:
            file.write(b"%d\n" % number)
        assert started.take(number)[-1] == str(number)


def test_what_is_no_file_is_told_of_once_and_holds_nobody_up(tmp_path, reader, caplog):
    write(tmp_path, {"a.log": b"1\n"})
    (tmp_path / "folder.log").mkdir()
    os.mkfifo(tmp_path / "pipe.log")
    (tmp_path / "nowhere.log").symlink_to(tmp_path / "missing")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "socket.log"))
    started = reader(tmp_path / "*.log")
    for _ in range(3):
        assert started.drain() == ["1"]
    listener.close()
    for name, what in [("folder", "a folder"), ("pipe", "a pipe"), ("socket", "a socket"), ("nowhere", "a broken symbolic link")]:
        told = [record.getMessage() for record in caplog.records if f"{name}.log'" in record.getMessage()]
        assert len(told) == 1 and what in told[0], told


def test_a_file_that_may_not_be_read_is_told_of_once(tmp_path, reader, caplog, monkeypatch):
    write(tmp_path, {"a.log": b"1\n", "secret.log": b"2\n"})
    started = reader(tmp_path / "*.log", start=False)
    real, refused = os.open, [True]

    def may_not(path, *args):
        if str(path).endswith("secret.log") and refused:
            raise PermissionError(13, "Permission denied")
        return real(path, *args)

    monkeypatch.setattr("standalone.files.os.open", may_not)
    started.start()
    for _ in range(3):
        assert started.drain() == ["1"]
    assert len([record for record in caplog.records if "cannot be read" in record.getMessage()]) == 1
    refused.clear()
    monkeypatch.setattr("connectors.logs.follower.SECONDS_AFTER_TROUBLE", 0)
    os.chmod(tmp_path / "secret.log", 0o640)
    with (tmp_path / "secret.log").open("ab") as file:
        file.write(b"3\n")
    assert started.take(3) == ["1", "2", "3"]


def test_two_names_of_one_file_are_one_file(tmp_path, reader):
    write(tmp_path, {"a.log": b"1\n"})
    os.link(tmp_path / "a.log", tmp_path / "b.log")
    (tmp_path / "c.log").symlink_to(tmp_path / "a.log")
    assert reader(tmp_path / "*.log").drain() == ["1"]


def test_more_files_than_may_be_open(tmp_path, reader):
    write(tmp_path, {f"{number}.log": b"a\n" for number in range(100)})
    started = reader(tmp_path / "*.log", max_open_files=8)
    started.drain()
    for number in range(100):
        with (tmp_path / f"{number}.log").open("ab") as file:
            file.write(b"b\n")
    assert started.drain().count("b") == 100
    assert len(started.open_files(tmp_path)) <= 8


def test_old_files_are_ignored_until_they_are_written_to(tmp_path, reader):
    write(tmp_path, {"old.log": b"1\n", "new.log": b"2\n"})
    os.utime(tmp_path / "old.log", (1, 1))
    started = reader(tmp_path / "*.log", ignore_older_ms=60_000)
    assert started.drain() == ["2"]
    with (tmp_path / "old.log").open("ab") as file:
        file.write(b"3\n")
    assert started.drain() == ["2", "1", "3"]


def test_the_end_is_where_files_begin_if_that_is_asked_for(tmp_path, reader):
    write(tmp_path, {"a.log": b"1\n2\nhalf"})
    started = reader(tmp_path / "*.log", start_at="end")
    started.drain()
    with (tmp_path / "a.log").open("ab") as file:
        file.write(b" done\n")
    write(tmp_path, {"b.log": b"all of it\n"})
    assert sorted(started.drain()) == ["all of it", "half done"]


@pytest.mark.parametrize(
    "props, written, more, expected",
    [
        ({"encoding": "utf-16le"}, "ignored\nĊ half".encode("utf-16-le"), " done\n".encode("utf-16-le"), "Ċ half done"),
        ({"delimiter": ";"}, b"ignored;a\nhalf", b" done;", "a\nhalf done"),
        ({"max.line.bytes": 300_000}, b"ignored\n" + b"x" * 200_000, b"y\n", "x" * 200_000 + "y"),
    ],
    ids=["in UTF-16", "with a delimiter", "within a long line"],
)
def test_the_end_is_behind_the_last_finished_line(props, written, more, expected, tmp_path, reader):
    write(tmp_path, {"a.log": written})
    started = reader(tmp_path / "*.log", start_at="end", **props)
    started.drain()
    with (tmp_path / "a.log").open("ab") as file:
        file.write(more)
    assert started.drain() == [expected]


def test_a_file_that_has_said_nothing_yet_is_still_at_its_end_after_a_restart(tmp_path, reader):
    write(tmp_path, {"a.log": b"old\n", "b.log": b"old\n"})
    started = reader(tmp_path / "*.log", start_at="end")
    started.drain()
    with (tmp_path / "a.log").open("ab") as file:
        file.write(b"1\n")
    started.drain()
    started.stop()
    write(tmp_path, {"c.log": b"2\n"})
    started.start()
    started.drain()
    with (tmp_path / "b.log").open("ab") as file:
        file.write(b"3\n")
    assert started.drain() == ["1", "2", "3"]


def test_each_file_has_its_turn(tmp_path, reader):
    write(tmp_path, {name: (name.encode() * 50 + b"\n") * 200 for name in ("a", "b", "c")})
    started = reader(tmp_path / "*", chunk_bytes=1 << 12)
    started.task._pace._free_at = 0
    order = [record.value[0] for _ in iter(started.poll, False) for record in ()] or [value[0] for value in started.lines]
    first = {name: order.index(name) for name in "abc"}
    assert max(first.values()) < 300


def test_the_oldest_comes_first_if_that_is_asked_for(tmp_path, reader):
    write(tmp_path, {name: (name.encode() + b"\n") * 500 for name in ("a", "b", "c")})
    for age, name in enumerate("bca"):
        os.utime(tmp_path / name, (1000 + age, 1000 + age))
    started = reader(tmp_path / "*", chunk_bytes=100, read_order="oldest.first")
    assert started.drain() == ["b"] * 500 + ["c"] * 500 + ["a"] * 500


# --- What is made of bytes -----------------------------------------------------------------------------------------

TEXTS = [
    ("LF and CR LF", {}, b"a\r\nb\n\nc\rd\ne", "a|b||c\rd"),
    ("a delimiter", {"delimiter": "\\0"}, b"a\nb\0c\0d", "a\nb|c"),
    ("a delimiter of multiple bytes", {"delimiter": "--"}, b"a---b----c", "a|-b||"),
    ("UTF-8 with a byte order mark", {}, b"\xef\xbb\xbfa\n\xc3\xa9\n", "a|é"),
    ("latin-1", {"encoding": "latin-1"}, b"caf\xe9\nplain\n", "café|plain"),
    ("windows-1252", {"encoding": "windows-1252"}, b"\x80 5\n", "€ 5"),
    ("UTF-16", {"encoding": "utf-16le"}, "\ufeffa\r\nĊb\nc".encode("utf-16-le"), "a|Ċb"),
    ("UTF-16, the other way", {"encoding": "utf-16be"}, "\ufeffa\nĊb\nc".encode("utf-16-be"), "a|Ċb"),
    ("zeros where a file was truncated", {}, b"\0\0\0a\nb\n", "a|b"),
    ("a line that is cut", {"max.line.bytes": 3}, b"abcdef\nab\n", "abc|ab"),
    ("a line that is skipped", {"max.line.bytes": 3, "long.lines": "skip"}, b"abcdef\nab\n", "ab"),
]


@pytest.mark.parametrize("chunk_bytes", [1, 2, 5, 1 << 20])
@pytest.mark.parametrize("props, data, expected", [case[1:] for case in TEXTS], ids=[case[0] for case in TEXTS])
def test_text(props, data, expected, chunk_bytes, tmp_path, reader):
    write(tmp_path, {"a.log": data})
    started = reader(tmp_path / "a.log", chunk_bytes=chunk_bytes, **props)
    assert "|".join(started.drain()) + ("|" if expected.endswith("|") else "") == expected + ("" if not expected.endswith("||") else "")
    for at, record in enumerate(started.records):
        resumed = reader(tmp_path / "a.log", chunk_bytes=chunk_bytes, start=False, **props)
        resumed.stored.store(record.source_partition, record.source_offset)
        assert resumed.start().drain() == started.lines[at + 1 :]


def test_bytes_that_are_no_utf8_are_passed_on(tmp_path, reader):
    write(tmp_path, {"a.log": b"bad \xff byte\n"})
    batch = reader(tmp_path / "a.log").task.poll()[0]
    assert list(batch.value) == [b"bad \xff byte"]


def test_a_line_that_is_too_long_fails_the_task_if_that_is_asked_for(tmp_path, reader):
    write(tmp_path, {"a.log": b"ab\nabcdef\n"})
    started = reader(tmp_path / "a.log", max_line_bytes=3, long_lines="fail")
    started.poll()
    with pytest.raises(ConnectError, match="max.line.bytes"):
        started.poll()


def test_an_unfinished_line_waits_unless_it_may_be_flushed(tmp_path, reader):
    write(tmp_path, {"a.log": b"1\nhalf"})
    assert reader(tmp_path / "a.log").drain() == ["1"]
    os.utime(tmp_path / "a.log", (1, 1))
    assert reader(tmp_path / "a.log", partial_flush_ms=100).drain() == ["1", "half"]


LATE_ENDS = [
    ("LF", {}, [b"half", b"\n", b"next\n"], "half|next"),
    ("LF, with the next line", {}, [b"half", b"\nnext\n"], "half|next"),
    ("CR LF", {}, [b"half", b"\r\n", b"next\r\n"], "half|next"),
    ("CR, then LF", {}, [b"half\r", b"\n", b"next\n"], "half|next"),
    ("nothing, CR, LF", {}, [b"half", b"\r", b"\n", b"next\n"], "half|next"),
    ("LF, then an empty line", {}, [b"half", b"\n", b"\n", b"next\n"], "half||next"),
    ("an empty line in two parts", {}, [b"1\n\r", b"\n", b"next\n"], "1||next"),
    ("more of the line", {}, [b"half", b" more\n", b"\n"], "half| more|"),
    ("a delimiter", {"delimiter": ";"}, [b"half", b";", b"next;"], "half|next"),
    ("half a delimiter", {"delimiter": "--"}, [b"a--half-", b"-", b"next--"], "a|half-|next"),
    ("UTF-16", {"encoding": "utf-16le"}, ["half".encode("utf-16-le"), "\r\n".encode("utf-16-le"), "Ċ\n".encode("utf-16-le")], "half|Ċ"),
    ("a line that was cut", {"max.line.bytes": 3}, [b"abcdef", b"\n", b"gh\n"], "abc|gh"),
    ("an event", {"multiline.continue": r"^\s", "multiline.timeout.ms": -1}, [b"a\n b", b"\n", b"c\n"], "a\n b|c"),
]


@pytest.mark.parametrize("starts_again", [False, True], ids=["", "after a restart"])
@pytest.mark.parametrize("props, parts, expected", [case[1:] for case in LATE_ENDS], ids=[case[0] for case in LATE_ENDS])
def test_the_end_of_a_line_that_was_published_without_it_is_no_line(props, parts, expected, starts_again, tmp_path, reader):
    started = reader(tmp_path / "a.log", partial_flush_ms=0, **props)
    for part in parts:
        with (tmp_path / "a.log").open("ab") as file:
            file.write(part)
        os.utime(tmp_path / "a.log", (1, 1))
        started.drain()
        if starts_again:
            started.restart()
    assert started.lines == expected.split("|")


def test_the_late_end_of_a_rotated_files_last_line_is_no_line(log, reader):
    started = reader(log.path)
    log.append(b"1\nhalf")
    started.drain()
    rotated = log.rename()
    assert started.drain() == ["1", "half"]
    with open(rotated, "ab") as file:
        file.write(b"\nlate\n")
    log.touch(rotated)
    log.append(b"2\n")
    assert started.drain() == ["1", "half", "late", "2"]
    log.rename()
    log.compress(2)
    assert started.drain() == ["1", "half", "late", "2"]


def test_the_late_end_of_a_line_that_was_read_to_the_end_of_all_is_no_line(tmp_path, reader):
    write(tmp_path, {"a.log": b"1\nunfinished"})
    started = reader(tmp_path / "a.log", on_eof="exit")
    assert started.drain() == ["1", "unfinished"]
    with (tmp_path / "a.log").open("ab") as file:
        file.write(b"\n2\n")
    assert started.restart().drain() == ["1", "unfinished", "2"]


# --- Events of multiple lines ---------------------------------------------------------------------------------------

JAVA = b"""2026-01-31 ERROR Servlet failed
java.lang.IllegalStateException: no
\tat a.B.c(B.java:1)
Caused by: java.io.IOException: disk
\t... 3 more
2026-01-31 INFO next
"""
EVENTS = [
    ("a preset", {"multiline.preset": "java"}, JAVA, [5, 1]),
    ("time stamps", {"multiline.preset": "timestamp"}, JAVA, [5, 1]),
    ("a beginning", {"multiline.start": "^B"}, b"x\nB1\n2\nB3\n", [1, 2, 1]),
    ("a continuation", {"multiline.continue": r"^\s"}, b"a\n b\n c\nd\n", [3, 1]),
    ("an end", {"multiline.end": ";$"}, b"a\nb;\nc;\nd\n", [2, 1, 1]),
    ("at most so many lines", {"multiline.continue": r"^\s", "multiline.max.lines": 2}, b"a\n b\n c\n d\n e\nf\n", [2, 2, 1, 1]),
    ("at most so many bytes", {"multiline.continue": r"^\s", "multiline.max.bytes": 5}, b"a\n b\n c\n d\ne\n", [2, 2, 1]),
    ("in UTF-16", {"multiline.continue": r"^\s", "encoding": "utf-16le"}, "a\n b\nc\n".encode("utf-16-le"), [2, 1]),
]


@pytest.mark.parametrize("chunk_bytes", [1, 7, 1 << 20])
@pytest.mark.parametrize("props, data, sizes", [case[1:] for case in EVENTS], ids=[case[0] for case in EVENTS])
def test_events(props, data, sizes, chunk_bytes, tmp_path, reader):
    write(tmp_path, {"a.log": data})
    os.utime(tmp_path / "a.log", (1, 1))
    started = reader(tmp_path / "a.log", chunk_bytes=chunk_bytes, **props)
    events = started.drain()
    assert [event.count("\n") + 1 for event in events] == sizes
    lines = data.decode("utf-16-le" if "encoding" in props else "utf-8").splitlines()
    assert [line for event in events for line in event.split("\n")] == lines
    for at, record in enumerate(started.records):
        resumed = reader(tmp_path / "a.log", chunk_bytes=chunk_bytes, start=False, **props)
        resumed.stored.store(record.source_partition, record.source_offset)
        assert resumed.start().drain() == events[at + 1 :]


def test_an_event_grows_until_it_is_over(tmp_path, reader):
    started = reader(tmp_path / "a.log", multiline_continue=r"^\s", multiline_timeout_ms=-1)
    for data, expected in [(b"a\n", []), (b" b\n", []), (b" c", []), (b"c\nd\n", ["a\n b\n cc"])]:
        with (tmp_path / "a.log").open("ab") as file:
            file.write(data)
        assert started.drain() == expected
        started.restart()


def test_an_event_at_the_end_of_a_rotated_file_comes_with_its_end(log, reader):
    started = reader(log.path, multiline_continue=r"^\s", multiline_timeout_ms=-1)
    log.append(b"a\n b\n")
    assert started.drain() == []
    log.rename()
    log.append(b"c\nd\n")
    assert started.drain() == ["a\n b", "c"]


# --- What is told of it --------------------------------------------------------------------------------------------


def test_a_record_says_where_it_comes_from(tmp_path, reader):
    write(tmp_path, {"a.log": "é1\n2\n".encode()})
    started = reader(tmp_path / "a.log", headers="file,host,offset,line", key="file")
    started.drain()
    second = started.records[1]
    assert {header.name: header.value for header in second.headers} == {
        "log.file": str(tmp_path / "a.log"), "log.host": socket.gethostname(), "log.offset": 4, "log.line": 2,
    }  # fmt: skip
    assert (second.key, second.key_schema, second.value_schema) == (str(tmp_path / "a.log"), Schema.STRING, Schema.STRING)
    assert second.source_offset["filename"] == str(tmp_path / "a.log")


def test_lines_are_numbered_on_after_a_restart(tmp_path, reader):
    write(tmp_path, {"a.log": b"1\n2\n"})
    started = reader(tmp_path / "a.log", headers="line")
    started.drain()
    started.restart()
    with (tmp_path / "a.log").open("ab") as file:
        file.write(b"3\n")
    started.drain()
    assert [record.headers[0].value for record in started.records] == [1, 2, 3]


@pytest.mark.parametrize(
    "topic, expected",
    [("logs", "logs"), ("logs-${file}", "logs-access.log"), ("${1}.${2}", "shop_a.access"), ("${folder}", "shop_a")],
)
def test_topics(topic, expected, tmp_path, reader):
    write(tmp_path, {"shop a/access.log": b"1\n"})
    started = reader(tmp_path / "*" / "*.log", topic=topic)
    started.drain()
    assert {record.topic for record in started.records} == {expected}


# --- How fast, how long --------------------------------------------------------------------------------------------


def test_the_rate_is_held_to(tmp_path, reader):
    write(tmp_path, {"a.log": (b"x" * 99 + b"\n") * 4000})
    started = reader(tmp_path / "a.log", chunk_bytes=1 << 14, rate_limit_bytes=1 << 20)
    begun = time.monotonic()
    assert len(started.take(4000)) == 4000
    assert time.monotonic() - begun > 0.2


def test_it_tells_of_its_end_behind_the_last_file_if_that_is_asked_for(tmp_path, reader):
    write(tmp_path, {"a.log": b"1\nunfinished"})
    started = reader(tmp_path / "a.log", on_eof="exit")
    assert started.take(2) == ["1", "unfinished"]
    assert not started.stored.has_ended, "there may be more"
    started.poll()
    assert started.stored.has_ended
    follows = reader(tmp_path / "a.log")
    follows.drain()
    assert not follows.stored.has_ended


def test_a_poll_that_waits_is_woken_by_stop(tmp_path):
    task = LogSourceTask(idle_seconds=60)
    stored = Reader(tmp_path).stored
    task.initialize(stored)
    task.start({"paths": str(tmp_path / "*"), "topic": "t"})
    task.stop()
    begun = time.monotonic()
    assert task.poll() is None
    assert time.monotonic() - begun < 5
    task.close()


# --- What is refused -----------------------------------------------------------------------------------------------

REFUSED = [
    ({"multiline.start": "("}, "multiline.start", "regular expression"),
    ({"headers": "file,color"}, "headers", "color"),
    ({"multiline.preset": "java", "multiline.end": "x"}, "multiline.preset", "cannot be combined with other patterns"),
    ({"delimiter": "\\xZZ"}, "delimiter", "escape"),
]


@pytest.mark.parametrize("props, key, said", REFUSED, ids=[case[1] for case in REFUSED])
def test_refused(props, key, said):
    assert said in LogSourceConnector().validate({"paths": "/tmp/*", "topic": "t", **props})[key]


def test_a_placeholder_that_stands_for_nothing_fails_the_task(tmp_path, reader):
    write(tmp_path, {"a.log": b"1\n"})
    with pytest.raises(ConfigError, match="is undefined for"):
        reader(tmp_path / "a.log", topic="${1}").poll()


@pytest.mark.parametrize(
    "partition, offset, allowed",
    [
        ({"slot": 0}, None, True),
        ({"slot": 0}, {"filename": "/a", "position": 5}, True),
        ({"slot": -1}, None, False),
        ({"filename": "/a"}, {"position": 5}, False),
        ({"slot": 0}, {"filename": "/a", "position": -5}, False),
        ({"slot": 0}, {"position": 5}, False),
    ],
)
def test_offsets_an_operator_may_set(partition, offset, allowed):
    if allowed:
        assert LogSourceConnector().alter_offsets({}, [(partition, offset)])
    else:
        with pytest.raises(ConnectError):
            LogSourceConnector().alter_offsets({}, [(partition, offset)])


def test_a_position_set_by_hand_is_gone_on_from(tmp_path, reader):
    write(tmp_path, {"a.log": b"1\n2\n3\n"})
    started = reader(tmp_path / "*", start=False)
    started.stored.store({"slot": 3}, {"filename": str(tmp_path / "a.log"), "position": 4})
    assert started.start().drain() == ["3"]
