"""What each format makes of lines: fields, times, and what happens to lines that are not of it."""

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.logs.formats.times import iso, of_access_logs
from connectors.logs.source import LogSourceConnector
from standalone import ByteColumn, ConnectError, Struct


def fields(value):
    """What is there, times as strings."""
    found = {field.name: value[field.name] for field in value.schema.fields} if isinstance(value, Struct) else dict(value)
    return {name: str(each) if name == "time" and each is not None and not isinstance(each, str) else each for name, each in found.items() if each is not None}


ACCESS = b'10.0.0.1 - ann [22/Nov/2026:13:35:02 +0100] "GET /a?b=1 HTTP/1.1" 200 512 "http://x/" "curl/8 (x)"'
CASES = [
    ("json", {}, b'{"a":1,"b":{"c":[true]}}', {"a": 1, "b": {"c": [True]}}),
    ("json", {}, b"[1]", {"unparsed": "[1]"}),
    ("logfmt", {}, b'level=info msg="it \\"is\\" so" took=5ms done', {"level": "info", "msg": 'it "is" so', "took": "5ms", "done": True}),
    ("logfmt", {}, b"just words", {"unparsed": "just words"}),
    ("combined", {}, ACCESS, {
        "remote": "10.0.0.1", "user": "ann", "method": "GET", "path": "/a?b=1", "protocol": "HTTP/1.1", "status": 200, "bytes": 512,
        "referer": "http://x/", "agent": "curl/8 (x)",
    }),
    ("combined", {}, b'::1 - - [01/Jan/2020:00:00:00 +0000] "GET / HTTP/1.0" 304 -', {
        "remote": "::1", "method": "GET", "path": "/", "protocol": "HTTP/1.0", "status": 304,
    }),
    ("combined", {}, b'::1 - a b [01/Jan/2020:00:00:00 +0000] "GET /\\"x\\" HTTP/2" 404 0 "-" "a \\"b\\""', {
        "remote": "::1", "user": "a b", "method": "GET", "path": '/\\"x\\"', "protocol": "HTTP/2", "status": 404, "bytes": 0, "agent": 'a \\"b\\"',
    }),
    ("combined", {}, b'::1 - - [01/Jan/2020:00:00:00 +0000] "\\x16\\x03" 400 0 "-" "-"', {
        "remote": "::1", "path": "\\x16\\x03", "status": 400, "bytes": 0,
    }),
    ("combined", {}, b"caf\xe9", {"unparsed": "caf\ufffd"}),
    ("syslog", {}, b'<34>1 2026-11-22T13:35:02.003Z host su 201 ID47 [x@1 a="]\\" b"][y] \xef\xbb\xbfmessage', {
        "facility": 4, "severity": 2, "host": "host", "app": "su", "process": "201", "message_id": "ID47", "data": '[x@1 a="]\\" b"][y]', "message": "message",
    }),
    ("syslog", {}, b"<165>1 2026-11-22T13:35:02Z - - - - -", {"facility": 20, "severity": 5, "message": ""}),
    ("syslog", {}, b"<13>Nov 22 13:35:02 host su[201]: 'su root' failed", {
        "facility": 1, "severity": 5, "host": "host", "app": "su", "process": "201", "message": "'su root' failed",
    }),
    ("syslog", {}, b"Nov  2 13:35:02 host kernel: it: is", {"host": "host", "app": "kernel", "message": "it: is"}),
    ("syslog", {}, b"2026-11-22T13:35:02.5+01:00 host app: m", {"host": "host", "app": "app", "message": "m"}),
    ("cri", {}, b"2026-11-22T13:35:02.123456789Z stderr F it is", {"stream": "stderr", "message": "it is"}),
    ("cri", {}, b"2026-11-22T13:35:02.1Z stdout F ", {"stream": "stdout", "message": ""}),
    ("cri", {}, b"2026-11-22T13:35:02.1Z stdout P one \n2026-11-22T13:35:02.1Z stdout F two", {"stream": "stdout", "message": "one two"}),
    ("docker", {}, b'{"log":"it is\\n","stream":"stdout","time":"2026-11-22T13:35:02.1Z"}', {"stream": "stdout", "message": "it is"}),
    ("docker", {}, b'{"log":"it ","stream":"stdout","time":"2026-11-22T13:35:02.1Z"}\n{"log":"is\\n","stream":"stdout","time":"2026-11-22T13:35:03Z"}', {
        "stream": "stdout", "message": "it is",
    }),
    ("docker", {}, b'{"log":5,"x":"\\n","stream":1}', {"unparsed": '{"log":5,"x":"\\n","stream":1}'}),
    ("csv", {"csv.columns": "a,b"}, b'1,"x, ""y"""', {"a": "1", "b": 'x, "y"'}),
    ("csv", {"csv.columns": "a,b", "csv.separator": ";"}, b"1;2;3", {"unparsed": "1;2;3"}),
    ("regex", {"format.regex": r"^(?P<level>\w+): (?P<text>.*)"}, b"WARN: it is", {"level": "WARN", "text": "it is"}),
    ("regex", {"format.regex": r"^(?P<level>\w+): (?P<text>.*)"}, b"nothing", {"unparsed": "nothing"}),
]  # fmt: skip


@pytest.mark.parametrize("format, props, line, expected", CASES, ids=[f"{case[0]}: {case[2][:40]}" for case in CASES])
def test_a_line_is_parsed(format, props, line, expected, tmp_path, reader):
    (tmp_path / "a.log").write_bytes(line + b"\n")
    started = reader(tmp_path / "a.log", format=format, multiline_timeout_ms=0, **props)
    started.drain()
    assert [{name: value for name, value in fields(record.value).items() if name != "time"} for record in started.records] == [expected]


TIMES = [
    ("combined", ACCESS, "2026-11-22T12:35:02+00:00"),
    ("syslog", b"<34>1 2026-11-22T13:35:02.003Z h a - - - m", "2026-11-22T13:35:02.003+00:00"),
    ("cri", b"2026-11-22T13:35:02.123456789-02:30 stdout F x", "2026-11-22T16:05:02.123+00:00"),
    ("docker", b'{"log":"x\\n","stream":"stdout","time":"2024-02-29T23:59:59Z"}', "2024-02-29T23:59:59+00:00"),
    ("json", b'{"@timestamp":"2026-11-22 13:35:02,5"}', "2026-11-22T13:35:02.5+00:00"),
    ("json", b'{"ts":1795354502.25}', "2026-11-22T13:35:02.25+00:00"),
    ("logfmt", b"ts=2026-11-22T13:35:02+0100 a=b", "2026-11-22T12:35:02+00:00"),
]


@pytest.mark.parametrize("format, line, expected", TIMES, ids=[f"{case[0]} {case[2]}" for case in TIMES])
def test_a_record_has_the_time_that_its_line_tells(format, line, expected, tmp_path, reader):
    (tmp_path / "a.log").write_bytes(line + b"\n")
    started = reader(tmp_path / "a.log", format=format, timestamp_from="record", multiline_timeout_ms=0)
    started.drain()
    assert started.records[0].timestamp == round(datetime.datetime.fromisoformat(expected.replace(".25+", ".250+").replace(".5+", ".500+")).timestamp() * 1000)


MOMENTS = st.datetimes(datetime.datetime(1970, 1, 2), datetime.datetime(2199, 1, 1), timezones=st.just(datetime.timezone.utc))


@given(st.lists(st.tuples(MOMENTS, st.integers(-14 * 60, 14 * 60)), min_size=1, max_size=5))
def test_times_are_what_python_makes_of_them(moments):
    zoned = [moment.astimezone(datetime.timezone(datetime.timedelta(minutes=zone))) for moment, zone in moments]
    expected = [int(moment.timestamp()) * 1000 + moment.microsecond // 1000 for moment, _ in moments]
    column = ByteColumn.of([each.isoformat(timespec="microseconds").encode() for each in zoned])
    assert iso(column.data, column.starts, column.lengths).tolist() == expected
    column = ByteColumn.of([each.strftime("%d/%b/%Y:%H:%M:%S %z").encode() for each in zoned])
    assert of_access_logs(column.data, column.starts, column.lengths).tolist() == [each // 1000 * 1000 for each in expected]


@given(st.lists(st.binary(max_size=40), max_size=5))
def test_no_bytes_make_a_time_by_accident_and_none_break_it(items):
    column = ByteColumn.of(items)
    for parse in (iso, of_access_logs):
        assert len(parse(column.data, column.starts, column.lengths)) == len(items)


def test_a_first_line_names_the_columns_also_after_a_restart(tmp_path, reader):
    path = tmp_path / "a.csv"
    path.write_bytes(b"id,name\n1,Ann\n")
    started = reader(path, format="csv")
    started.drain()
    started.restart()
    with path.open("ab") as file:
        file.write(b"2,Bob\n")
    started.drain()
    assert [fields(record.value) for record in started.records] == [{"id": "1", "name": "Ann"}, {"id": "2", "name": "Bob"}]
    assert [record.source_offset["position"] for record in started.records] == [14, 20]


def test_lines_that_are_not_of_the_format_are_skipped_or_fail_the_task(tmp_path, reader):
    (tmp_path / "a.log").write_bytes(b'{"a":1}\nno\n{"a":2}\n')
    assert reader(tmp_path / "a.log", format="json", format_unparsed="skip").drain() == [{"a": 1}, {"a": 2}]
    with pytest.raises(ConnectError, match="does not match the format 'json': 'no'"):
        reader(tmp_path / "a.log", format="json", format_unparsed="fail").poll()


@pytest.mark.parametrize(
    "props, key",
    [
        ({"format": "regex"}, "format.regex"),
        ({"format": "regex", "format.regex": "x(y)"}, "format.regex"),
        ({"format": "csv", "csv.separator": "ab"}, "csv.separator"),
        ({"format": "csv", "csv.columns": "a,a"}, "csv.columns"),
        ({"format": "cri", "multiline.preset": "java"}, "format"),
    ],
)
def test_refused(props, key):
    assert key in LogSourceConnector().validate({"paths": "/tmp/*", "topic": "t", **props})
