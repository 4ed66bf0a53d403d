"""How tasks are called: the order of calls, retries, failures in the middle, what is stored and committed when."""

import threading

import pytest

from standalone.errors import ConfigError
from standalone.log.consumer import Consumer
from standalone.runtime.tasks.sink_runner import SinkRunner
from tests.runtime import plugins
from tests.runtime.local import LocalWorker, wait_for
from tests.runtime.plugins import SAID
from tests.suite.patience import PATIENCE_SECONDS

HERE = "tests.runtime.plugins"


@pytest.fixture(autouse=True)
def nothing_said():
    SAID.clear()
    plugins.RELEASE.clear()
    yield
    plugins.RELEASE.set()


def make(worker, name, plugin, **config):
    return worker.herder.create(name, {"connector.class": f"{HERE}:{plugin}", **{k.replace("__", "."): str(v) for k, v in config.items()}})


def said(name, what):
    return [entry[1:] for entry in SAID[name] if entry[0] == what]


def test_a_source_is_called_in_order_and_told_of_each_acknowledgement(tmp_path):
    with LocalWorker(tmp_path) as worker:
        make(worker, "s", "ListSource", topic="t", count=7)
        assert worker.values("t", 7) == [b"%d" % n for n in range(7)]
        wait_for(lambda: len(said("s", "record")) == 7 and said("s", "commit"))
        assert said("s", "record") == [(str(n), n) for n in range(7)]
    assert SAID["s"][0] == ("start", 0) and SAID["s"][-1] == ("close",)


def test_a_source_goes_on_behind_the_last_stored_offset(tmp_path):
    for count in (4, 9):
        with LocalWorker(tmp_path) as worker:
            worker.herder.create("s", {"connector.class": f"{HERE}:ListSource", "topic": "t", "count": str(count)}, replace=True)
            assert worker.values("t", count) == [b"%d" % n for n in range(count)]
    assert ("start", 4) in SAID["s"]


def test_a_poll_that_asks_for_a_retry_is_repeated(tmp_path):
    with LocalWorker(tmp_path) as worker:
        make(worker, "s", "ListSource", topic="t", count=3, retries=2)
        assert worker.values("t", 3) == [b"0", b"1", b"2"]


def test_what_came_before_a_bad_record_is_delivered_and_its_offset_stored(tmp_path):
    chain = {"transforms": "f", "transforms__f__type": f"{HERE}:FailOn", "transforms__f__bad": "4"}
    with LocalWorker(tmp_path) as worker:
        make(worker, "s", "ListSource", topic="t", count=9, each=9, **chain)
        worker.wait_states("s", "RUNNING", "FAILED")
        assert "bad value 4" in worker.herder.task_status("s", 0)["trace"]
        assert worker.values("t", 4) == [b"0", b"1", b"2", b"3"]
        assert worker.process.worker.offsets.get("s", {"list": "s"}) == {"next": 4}


def test_a_tolerated_record_is_passed_over(tmp_path):
    chain = {"transforms": "f", "transforms__f__type": f"{HERE}:FailOn", "transforms__f__bad": "4", "errors__tolerance": "all"}
    with LocalWorker(tmp_path) as worker:
        make(worker, "s", "ListSource", topic="t", count=6, **chain)
        assert worker.values("t", 5) == [b"0", b"1", b"2", b"3", b"5"]
        wait_for(lambda: worker.process.worker.offsets.get("s", {"list": "s"}) == {"next": 6})


def test_the_offset_passes_dropped_records(tmp_path):
    chain = {"transforms": "f", "transforms__f__type": f"{HERE}:FailOn", "transforms__f__drop": "2"}
    with LocalWorker(tmp_path) as worker:
        make(worker, "s", "ListSource", topic="t", count=3, **chain)
        assert worker.values("t", 2) == [b"0", b"1"]
        wait_for(lambda: worker.process.worker.offsets.get("s", {"list": "s"}) == {"next": 3})
        wait_for(lambda: ("2", None) in said("s", "record"))


def test_a_source_makes_its_topic_as_the_configuration_says(tmp_path):
    from confluent_kafka.admin import AdminClient

    with LocalWorker(tmp_path) as worker:
        make(worker, "s", "ListSource", topic="made", topic__creation__default__partitions=5, topic__creation__default__replication__factor=1)
        wait_for(lambda: "made" in (topics := AdminClient({"bootstrap.servers": worker.bootstrap}).list_topics(timeout=5).topics) and len(topics["made"].partitions) == 5)


def test_keys_choose_the_partition_as_java_does(tmp_path):
    from confluent_kafka import Consumer, TopicPartition

    with LocalWorker(tmp_path) as worker:
        make(worker, "s", "ListSource", topic="t", topic__creation__default__partitions=3, topic__creation__default__replication__factor=1)
        wait_for(lambda: len(said("s", "record")) == 10)
        consumer = Consumer({"bootstrap.servers": worker.bootstrap, "group.id": "g"})
        consumer.assign([TopicPartition("t", partition, 0) for partition in range(3)])
        found = {}
        while sum(map(len, found.values())) < 10:
            message = consumer.poll(5)
            found.setdefault((message.key(), message.partition()), []).append(int(message.value()))
        consumer.close()
    assert len(found) == 3, "each key is in one partition"
    assert all(numbers == sorted(numbers) for numbers in found.values())


def test_a_sink_is_called_in_order_and_commits_what_it_flushed(tmp_path):
    with LocalWorker(tmp_path) as worker:
        make(worker, "s", "ListSource", topic="t", count=4)
        make(worker, "k", "NoteSink", topics="t")
        wait_for(lambda: said("k", "flush") and said("k", "flush")[-1] == ({("t", 0): 4},))
        assert said("k", "put") == [(str(n), n) for n in range(4)]
    kinds = [entry[0] for entry in SAID["k"]]
    assert kinds[0] == "open" and kinds[-2:] == ["close", "stop"]


def test_a_put_that_asks_for_a_retry_gets_the_same_records_once_more(tmp_path):
    with LocalWorker(tmp_path) as worker:
        make(worker, "s", "ListSource", topic="t", count=4)
        make(worker, "k", "NoteSink", topics="t", retries=3)
        wait_for(lambda: len(said("k", "put")) >= 4)
        assert said("k", "put") == [(str(n), n) for n in range(4)]


def test_a_failing_put_fails_the_task_and_its_records_come_again(tmp_path):
    with LocalWorker(tmp_path) as worker:
        make(worker, "s", "ListSource", topic="t", count=4, each=4)
        make(worker, "k", "NoteSink", topics="t", fails="2")
        worker.wait_states("k", "RUNNING", "FAILED")
        assert "never 2" in worker.herder.task_status("k", 0)["trace"]
        worker.herder.create("k", {"connector.class": f"{HERE}:NoteSink", "topics": "t"}, replace=True)
        wait_for(lambda: ("3", 3) in said("k", "put"))


def test_a_sink_may_rewind(tmp_path):
    with LocalWorker(tmp_path) as worker:
        make(worker, "s", "ListSource", topic="t", count=4, each=4)
        make(worker, "k", "NoteSink", topics="t", rewind="1")
        wait_for(lambda: [value for value, _ in said("k", "put")].count("3") == 2)
        assert [value for value, _ in said("k", "put")].count("0") == 1


def test_what_was_fetched_as_the_pause_came_is_put(tmp_path, monkeypatch):
    fetch = Consumer.poll

    def poll(consumer, seconds):
        fetched = fetch(consumer, seconds)
        if fetched and not said("k", "put"):
            asked = threading.Event()
            monkeypatch.setattr(SinkRunner, "wake", lambda runner: asked.set())
            worker.herder.pause("k")
            asked.wait(PATIENCE_SECONDS)
        return fetched

    monkeypatch.setattr(Consumer, "poll", poll)
    with LocalWorker(tmp_path) as worker:
        make(worker, "s", "ListSource", topic="t", count=4, each=4)
        make(worker, "k", "NoteSink", topics="t")
        worker.wait_states("k", "PAUSED", "PAUSED")
        worker.herder.resume("k")
        wait_for(lambda: said("k", "put") == [(str(n), n) for n in range(4)])


def test_max_poll_records_bounds_what_a_put_gets(tmp_path):
    with LocalWorker(tmp_path) as worker:
        make(worker, "s", "ListSource", topic="t", count=20, each=20)
        worker.values("t", 20)
        make(worker, "k", "NoteSink", topics="t", consumer__override__max__poll__records=7)
        wait_for(lambda: len(said("k", "put")) == 20)
        assert max(count for count, in said("k", "batch")) <= 7


def test_topics_by_pattern_are_followed(tmp_path):
    with LocalWorker(tmp_path) as worker:
        make(worker, "a", "ListSource", topic="log-a", count=2)
        make(worker, "b", "ListSource", topic="log-b", count=3)
        make(worker, "c", "ListSource", topic="other", count=3)
        for topic, count in (("log-a", 2), ("log-b", 3), ("other", 3)):
            worker.values(topic, count)
        make(worker, "k", "NoteSink", topics__regex="log-[ab]")
        wait_for(lambda: len(said("k", "put")) == 5)


def test_what_a_rebalance_brings_while_a_put_is_repeated_is_put_too(tmp_path):
    with LocalWorker(tmp_path) as worker:
        make(worker, "s1", "ListSource", topic="app-1", count=4, each=4)
        worker.values("app-1", 4)
        make(worker, "k", "NoteSink", topics__regex="app-.*", retries=150, consumer__override__metadata__max__age__ms=100)
        wait_for(lambda: said("k", "open") and len(said("k", "refused")) > 2)
        make(worker, "s2", "ListSource", topic="app-2", count=3, each=3)
        wait_for(lambda: ([("app-1", 0), ("app-2", 0)],) in said("k", "open"))
        assert not said("k", "put"), "the put should still be refused"
        wait_for(lambda: len(said("k", "put")) >= 7)
        assert sorted(said("k", "put")) == sorted([(str(n), n) for n in range(4)] + [(str(n), n) for n in range(3)])
        wait_for(lambda: said("k", "flush") and said("k", "flush")[-1][0] == {("app-1", 0): 4, ("app-2", 0): 3})


def test_a_connector_says_what_is_wrong_with_its_configuration(tmp_path):
    with LocalWorker(tmp_path) as worker, pytest.raises(ConfigError, match="must not be 13"):
        make(worker, "s", "ListSource", topic="t", count=13)


def test_a_task_that_hangs_holds_up_nobody(tmp_path):
    with LocalWorker(tmp_path, task__shutdown__graceful__timeout__ms=500) as worker:
        make(worker, "hangs", "HangingSource")
        make(worker, "s", "ListSource", topic="t", count=3)
        assert worker.values("t", 3) == [b"0", b"1", b"2"]
        worker.herder.stop("hangs")
        worker.wait_states("hangs", "STOPPED")


def test_a_connector_whose_start_hangs_holds_up_nobody(tmp_path):
    with LocalWorker(tmp_path, task__shutdown__graceful__timeout__ms=500) as worker:
        worker.herder.create("hangs", {"connector.class": f"{HERE}:HangingStartSource"}, wait=False)
        make(worker, "s", "ListSource", topic="t", count=3)
        assert worker.values("t", 3) == [b"0", b"1", b"2"]


# ---------------------------------------------------------------- tasks.max.enforce
@pytest.mark.parametrize("enforce, states", [("true", ["FAILED"]), ("false", ["RUNNING", "RUNNING", "RUNNING", "RUNNING"])])
def test_more_tasks_than_tasks_max_fail_the_connector_unless_that_is_not_enforced(tmp_path, caplog, enforce, states):
    with LocalWorker(tmp_path) as worker:
        make(worker, "s", "ThreeTasksSource", topic="t", tasks__max=2, tasks__max__enforce=enforce)
        worker.wait_states("s", *states)
        assert ("returned 3 task configurations, but tasks.max is 2" in caplog.text) and ("allowed by tasks.max.enforce=false" in caplog.text) == (enforce == "false")
