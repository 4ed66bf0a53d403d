"""connectctl topics, produce and consume, on the embedded log and on a real broker; what a stock client wrote and reads."""

import json

import pytest

from tests.runtime.local import values
from tests.servers.kafka_broker import free_port


@pytest.fixture(params=["embedded", pytest.param("kafka", marks=pytest.mark.kafka)])
def log(request, worker, local, tmp_path):
    """(log, topic): log("consume", topic, …) runs on that log; the topic is nobody else's."""
    bootstrap = worker.bootstrap if request.param == "embedded" else request.getfixturevalue("kafka")

    class OnLog:
        address = bootstrap

        def __getattr__(self, name):
            return lambda *arguments, **more: getattr(local, name)(*arguments, "--bootstrap", bootstrap, **more)

        def __call__(self, *arguments, **more):
            return local(*arguments, "--bootstrap", bootstrap, **more)

    return OnLog(), f"t-{tmp_path.name}"


def read(log, topic, *options):
    return log("consume", topic, "--from-beginning", "--exit", *options)


def test_topics_are_made_listed_described_and_deleted(log):
    log, topic = log
    assert log("topics", "create", topic, "-p", "2", "-r", "1", "-c", "retention.ms=60000") == f"created {topic}\n"
    assert "already" in log("topics", "create", topic, code=1)
    assert {"topic": topic, "partitions": 2, "records": 0} in log.json("topics", "list")
    assert topic in log("topics", "list")
    described = log.json("topics", "describe", topic, "--configs")[topic]
    assert [part["partition"] for part in described["partitions"]] == [0, 1] and described["configs"]["retention.ms"] == "60000"
    assert "retention.ms=60000" in log("topics", "describe", topic, "--configs")
    assert log("topics", "delete", topic) == f"deleted {topic}\n"
    assert topic in log("topics", "describe", topic, code=1)


def test_lines_go_in_and_come_out(log):
    log, topic = log
    log("topics", "create", topic)
    assert log.json("produce", topic, input="one\ntwo\r\n\nlast") == {"topic": topic, "records": 4}
    assert read(log, topic) == "one\ntwo\n\nlast\n"
    assert values(log.address, topic, 4) == [b"one", b"two", b"", b"last"]


def test_keys_headers_partitions_and_nulls(log):
    log, topic = log
    log("topics", "create", topic, "-p", "3")
    log("produce", topic, "-K", ":", "-H", "trace=1", "-H", "empty=", "-p", "2", "--null", "-", input="a:1\nb:-\n-:2:3\n")
    said = read(log, topic, "--show", "partition,offset,key,headers")
    assert said == "2\t0\ta\ttrace=1,empty=\t1\n2\t1\tb\ttrace=1,empty=\tNULL\n2\t2\tNULL\ttrace=1,empty=\t2:3\n"
    assert read(log, topic, "--format", "%k=%s (%S)%%\\n") == "a=1 (1)%\nb=NULL (-1)%\nNULL=2:3 (3)%\n"
    assert read(log, topic, "-p", "0") == ""


def test_equal_keys_share_a_partition(log):
    log, topic = log
    log("topics", "create", topic, "-p", "4")
    log("produce", topic, "-K", ":", input="".join(f"k{number % 5}:{number}\n" for number in range(50)))
    places = {}
    for record in log.lines("consume", topic, "--from-beginning", "--exit"):
        places.setdefault(record["key"], set()).add(record["partition"])
    assert len(places) == 5 and all(len(found) == 1 for found in places.values())


def test_json_restores_every_byte(log):
    log, topic = log
    copy = f"{topic}-copy"
    log("topics", "create", topic, copy)
    record = {"key": {"base64": "/wA="}, "value": {"base64": "gIE="}, "timestamp": 1234567890123, "headers": [{"name": "h", "value": None}, {"name": "é", "value": "名"}]}
    log("produce", topic, "--from-json", input=json.dumps(record) + "\n" + json.dumps({"value": {"a": 1}}) + "\n")
    printed = log.run("consume", topic, "--from-beginning", "--exit", "--json").stdout
    log("produce", copy, "--from-json", input=printed)
    found, copied = ([json.loads(line) for line in read_json(log, name)] for name in (topic, copy))
    assert {**record, "topic": topic, "partition": 0, "offset": 0} == found[0]
    assert found[1]["value"] == '{"a":1}'
    assert [{**each, "topic": ""} for each in found] == [{**each, "topic": ""} for each in copied]


def read_json(log, topic):
    return log.run("consume", topic, "--from-beginning", "--exit", "--json").stdout.splitlines()


@pytest.mark.parametrize(
    "options, expected",
    [
        (["--from-beginning", "-n", "2"], "01"),
        (["-o", "3", "-n", "1"], "3"),
        (["-o", "-2", "--exit"], "89"),
        (["-o", "earliest", "--exit"], "0123456789"),
        (["-o", "99", "--exit"], ""),
        (["--exit"], ""),
        (["--from-beginning", "--timeout", "0.2"], "0123456789"),
    ],
)
def test_where_to_begin_and_to_end(ctl, worker, local, options, expected):
    on = ["--bootstrap", worker.bootstrap]
    if "digits" not in local("topics", "list", *on):
        local("produce", "digits", *on, input="".join(f"{digit}\n" for digit in range(10)))
    assert local("consume", "digits", *options, *on) == "".join(f"{digit}\n" for digit in expected)


def test_a_group_goes_on_where_it_was(log):
    log, topic = log
    log("topics", "create", topic)
    log("produce", topic, input="a\nb\nc\n")
    group = ["-g", f"group-{topic}", "--from-beginning"]
    assert log("consume", topic, *group, "-n", "2") == "a\nb\n"
    assert log("consume", topic, *group, "-n", "1") == "c\n"
    assert log("consume", topic, *group, "--timeout", "0.5") == ""


def test_many_lines(worker, local):
    lines = "".join(f"{number:07}\n" for number in range(60_000))
    on = ["--bootstrap", worker.bootstrap]
    assert local.json("produce", "many", *on, input=lines)["records"] == 60_000
    assert local("consume", "many", "--from-beginning", "--exit", *on) == lines


def test_the_address_is_what_the_worker_files_say(worker, local, tmp_path):
    from standalone import properties

    (tmp_path / "w.properties").write_text(properties.dump({**worker.props, "embedded.log.listener": worker.bootstrap}))
    local("produce", "by-file", "--worker-config", tmp_path / "w.properties", input="x\n")
    assert local("consume", "by-file", "--from-beginning", "--exit", "--worker-config", tmp_path / "w.properties") == "x\n"


def test_active_topics(ctl, source, until):
    source("used")
    until(lambda: ctl.json("topics", "active", "used") == ["used"])
    assert ctl("topics", "active", "used") == "used\n"
    ctl("topics", "active", "used", "--reset")
    assert ctl.json("topics", "active", "used") == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["consume", "t", "--group", "g", "--exit"],
        ["consume", "t", "--offset", "1", "--from-beginning"],
        ["consume", "t", "--show", "colour"],
        ["consume", "t", "--format", "%z"],
        ["produce", "t", "--header", "nothing"],
        ["produce", "t", "--from-json", "--key-separator", ":"],
        ["topics", "create", "t", "--config", "nothing"],
    ],
)
def test_wrong_usage(local, worker, arguments):
    local(*arguments, "--bootstrap", worker.bootstrap, code=2)


def test_what_cannot_be_read_is_told(local, worker):
    on = ["--bootstrap", worker.bootstrap]
    assert "no topic 'nowhere'" in local("consume", "nowhere", *on, code=1)
    assert "Line 2" in local("produce", "half", "-K", ":", *on, input="a:b\nc\n", code=1)
    assert local("consume", "half", "--from-beginning", "--exit", *on) == "b\n"
    assert "partition 7" in local("consume", "half", "-p", "7", *on, code=1)


def test_a_log_that_is_not_there_is_told(local, tmp_path):
    address = f"127.0.0.1:{free_port()}"
    (tmp_path / "c.properties").write_text("default.api.timeout.ms=300\n")
    assert address in local("topics", "list", "--bootstrap", address, "--command-config", tmp_path / "c.properties", code=1)


def test_without_an_address_it_says_how_to_give_one(local):
    local.url = f"http://127.0.0.1:{free_port()}"
    assert "--bootstrap" in local("topics", "list", code=1)
