"""Exactly-once sources: records and offsets in one transaction, where transactions end, who is fenced, what is refused."""

import json
import threading

import pytest
from pytest import param

from standalone import (
    ConfigError,
    ConnectError,
    ConnectorTransactionBoundaries,
    ExactlyOnceSupport,
    Schema,
    SourceConnector,
    SourceRecord,
    SourceTask,
)
from tests.log.committed import committed, everything
from tests.runtime.local import LocalWorker, wait_for

HERE = "tests.runtime.test_exactly_once"
ON = {"exactly.once.source.support": "enabled", "offset.storage.partitions": "1"}


class ScriptedTask(SourceTask):
    """Polls the numbers of `script`, a list of polls, each once; a poll may end in what is called on the transaction context."""

    def start(self, config):
        self.topic = config["topic"]
        self.script = json.loads(config["script"])
        stored = self.context.offset_reader.offset({"p": "x"})
        self.at = stored["at"] if stored else 0
        self.over = threading.Event()

    def poll(self):
        if self.at >= len(self.script):
            self.over.wait(0.02)
            return None
        poll = self.script[self.at]
        self.at += 1
        if poll == "fail":
            raise ConnectError("as the script says")
        records = [SourceRecord(self.topic, str(each), {"p": "x"}, {"at": self.at}, value_schema=Schema.STRING) for each in poll["records"]]
        for end, places in poll.items():
            if end != "records":
                for place in places:
                    getattr(self.context.transaction_context, end)(*([records[place]] if place is not None else []))
        return records

    def stop(self):
        self.over.set()


class ScriptedSource(SourceConnector):
    task_class = ScriptedTask

    def exactly_once_support(self, config):
        return {"yes": ExactlyOnceSupport.SUPPORTED, "no": ExactlyOnceSupport.UNSUPPORTED}.get(config.get("supports"))

    def can_define_transaction_boundaries(self, config):
        return ConnectorTransactionBoundaries[config.get("boundaries", "SUPPORTED")]


def scripted(worker, script, **config):
    worker.create("c", {"connector.class": f"{HERE}:ScriptedSource", "topic": "t", "script": json.dumps(script), **config})


def at_work(tmp_path, **props):
    return LocalWorker(tmp_path, **{key.replace(".", "__"): value for key, value in {**ON, **props}.items()})


def test_records_and_the_offset_behind_them_are_committed_together(tmp_path):
    with at_work(tmp_path) as worker:
        scripted(worker, [{"records": [0, 1]}, {"records": [2]}])
        wait_for(lambda: committed(worker.bootstrap, "t") == [b"0", b"1", b"2"])
        (*_, last) = everything(worker.bootstrap, "connect-offsets")
        assert last == (b'["c",{"p":"x"}]', b'{"at":2}')
        assert worker.herder.offsets("c") == [{"partition": {"p": "x"}, "offset": {"at": 2}}]
    with at_work(tmp_path) as worker:
        worker.wait_states("c", "RUNNING", "RUNNING")
        assert committed(worker.bootstrap, "t") == [b"0", b"1", b"2"]


def test_on_a_real_kafka_records_and_offsets_are_committed_together_and_go_on_after_a_restart(tmp_path, kafka):
    own = {"bootstrap.servers": kafka, "group.id": tmp_path.name, "offset.storage.topic": f"offsets-{tmp_path.name}"}
    topic = f"t-{tmp_path.name}"
    for count in (2, 3):
        script = json.dumps([{"records": [number]} for number in range(count)])
        with at_work(tmp_path, **own) as worker:
            worker.herder.create("c", {"connector.class": f"{HERE}:ScriptedSource", "topic": topic, "script": script}, replace=True)
            wait_for(lambda count=count: committed(kafka, topic) == [b"%d" % number for number in range(count)])
            assert worker.herder.status("c")["delivery"].startswith("exactly once")
    assert everything(kafka, own["offset.storage.topic"])[-1] == (b'["c",{"p":"x"}]', b'{"at":3}')


def test_a_transaction_that_fails_leaves_nothing_to_be_read_and_its_records_come_again(tmp_path):
    with at_work(tmp_path) as worker:
        scripted(worker, [{"records": [0]}, {"records": [1, 2]}, "fail"], **{"transaction.boundary": "interval", "transaction.boundary.interval.ms": "600000"})
        worker.wait_states("c", "RUNNING", "FAILED")
        assert committed(worker.bootstrap, "t") == []
        assert [value for _, value in everything(worker.bootstrap, "t")] == [b"0", b"1", b"2"]  # aborted, but there
        worker.herder.create("c", replace=True, config={"connector.class": f"{HERE}:ScriptedSource", "topic": "t", "script": json.dumps([{"records": [0]}, {"records": [1]}])})
        wait_for(lambda: committed(worker.bootstrap, "t") == [b"0", b"1"])


def test_with_an_interval_a_transaction_goes_on_over_polls_and_is_committed_at_the_end(tmp_path):
    with at_work(tmp_path) as worker:
        scripted(worker, [{"records": [n]} for n in range(5)], **{"transaction.boundary": "interval", "transaction.boundary.interval.ms": "600000"})
        wait_for(lambda: len(everything(worker.bootstrap, "t")) == 5)
        assert committed(worker.bootstrap, "t") == []
        worker.herder.stop("c")
        wait_for(lambda: committed(worker.bootstrap, "t") == [b"%d" % n for n in range(5)])


@pytest.mark.parametrize(
    "script, seen, stored",
    [
        param([{"records": [0, 1, 2], "commit_transaction": [1]}], [b"0", b"1"], 1, id="commit after a record"),
        param([{"records": [0, 1], "commit_transaction": [None]}, {"records": [2]}], [b"0", b"1"], 1, id="commit after a poll"),
        param([{"records": [0, 1, 2], "abort_transaction": [1], "commit_transaction": [None]}], [b"2"], 1, id="abort after a record"),
        param([{"records": [0]}, {"records": [1], "abort_transaction": [None]}, {"records": [2], "commit_transaction": [None]}], [b"2"], 3, id="abort after a poll"),
        param([{"records": [0]}], [], None, id="neither: what the task has not ended is aborted"),
    ],
)
def test_a_connector_says_where_its_transactions_end(tmp_path, script, seen, stored):
    with at_work(tmp_path) as worker:
        scripted(worker, script, **{"transaction.boundary": "connector"})
        worker.wait_states("c", "RUNNING", "RUNNING")
        wait_for(lambda: len([value for _, value in everything(worker.bootstrap, "t")]) == sum(len(poll["records"]) for poll in script))
        wait_for(lambda: committed(worker.bootstrap, "t") == seen)
        worker.herder.stop("c")
        worker.wait_states("c", "STOPPED")
        assert committed(worker.bootstrap, "t") == seen
        assert worker.herder.offsets("c") == ([{"partition": {"p": "x"}, "offset": {"at": stored}}] if stored else [])


def test_offsets_of_the_file_hold_until_the_topic_has_some_and_both_follow_an_operator(tmp_path):
    with LocalWorker(tmp_path) as worker:
        scripted(worker, [{"records": [0]}])
        wait_for(lambda: committed(worker.bootstrap, "t") == [b"0"])
    with at_work(tmp_path) as worker:
        worker.herder.create("c", replace=True, config={"connector.class": f"{HERE}:ScriptedSource", "topic": "t", "script": json.dumps([{"records": [0]}, {"records": [1]}])})
        wait_for(lambda: committed(worker.bootstrap, "t") == [b"0", b"1"])
        worker.herder.stop("c")
        worker.wait_states("c", "STOPPED")
        worker.herder.change_offsets("c", [({"p": "x"}, {"at": 1})])
        worker.herder.resume("c")
        wait_for(lambda: committed(worker.bootstrap, "t") == [b"0", b"1", b"1"])
        worker.herder.stop("c")
        worker.wait_states("c", "STOPPED")
        worker.herder.reset_offsets("c")
        assert worker.herder.offsets("c") == []
        assert everything(worker.bootstrap, "connect-offsets")[-1] == (b'["c",{"p":"x"}]', None)


def test_a_task_whose_transactional_id_is_taken_over_writes_nothing_more(tmp_path):
    import confluent_kafka

    with at_work(tmp_path, **{"task.restart.max.attempts": "0"}) as worker:
        scripted(worker, [{"records": [0]}], **{"transaction.boundary": "interval", "transaction.boundary.interval.ms": "600000"})
        wait_for(lambda: len(everything(worker.bootstrap, "t")) == 1)
        other = confluent_kafka.Producer({"bootstrap.servers": worker.bootstrap, "transactional.id": "connect-standalone-c-0"})
        other.init_transactions(15)
        worker.herder.stop("c")  # it would commit
        worker.wait_states("c", "STOPPED")
        assert committed(worker.bootstrap, "t") == []


@pytest.mark.parametrize(
    "worker, config, key",
    [
        param({}, {"exactly.once.support": "required", "supports": "yes"}, "exactly.once.support", id="the worker does not"),
        param(ON, {"exactly.once.support": "required", "supports": "no"}, "exactly.once.support", id="the connector does not"),
        param(ON, {"exactly.once.support": "required"}, "exactly.once.support", id="the connector does not say"),
        param(ON, {"transaction.boundary": "connector", "boundaries": "UNSUPPORTED"}, "transaction.boundary", id="no boundaries of its own"),
        param(ON, {"producer.override.enable.idempotence": "false"}, "producer.override.enable.idempotence", id="not idempotent"),
    ],
)
def test_what_cannot_be_given_is_refused(worker, config, key, plan_errors):
    assert list(plan_errors(worker, {"connector.class": f"{HERE}:ScriptedSource", "topic": "t", "script": "[]", **config})) == [key]


@pytest.fixture
def plan_errors(tmp_path):
    from standalone.runtime.configuration.connector_config import ConnectorConfig
    from standalone.runtime.configuration.worker_config import WorkerConfig

    def found(worker, config):
        string = "org.apache.kafka.connect.storage.StringConverter"
        props = {"bootstrap.servers": "embedded", "key.converter": string, "value.converter": string, "offset.storage.file.filename": str(tmp_path / "o")}
        parsed = WorkerConfig.of({**props, **worker})
        with pytest.raises(ConfigError) as raised:
            ConnectorConfig.of({"name": "c", **config}, parsed.plugins, parsed)
        return raised.value.errors

    return found
