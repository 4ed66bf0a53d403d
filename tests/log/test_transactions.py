"""Our producer in transactions, on a real Kafka and on the embedded log: all or nothing, fenced predecessors, ends that are asked for again."""

import threading

import pytest

from standalone import wire
from standalone.clock import SYSTEM
from standalone.errors import LogError
from standalone.log.broker import topics_api
from standalone.log.broker.server import EmbeddedLog
from standalone.log.client import Clusters
from standalone.log.client_config import TransactionalConfig
from standalone.log.produce_request import produce_body
from standalone.log.producer import TransactionalProducer
from tests.log.broker_clients import ServerProcess
from tests.log.committed import committed, everything
from tests.suite.patience import PATIENCE_SECONDS


class Writer:
    def __init__(self, bootstrap, name, **settings):
        config = TransactionalConfig.of({"bootstrap.servers": bootstrap, "transactional.id": name, **settings})
        self.clusters = Clusters(SYSTEM)
        self.producer = TransactionalProducer(self.clusters.get(config), config, SYSTEM)
        self.errors = []
        self.thread = threading.Thread(target=self.producer.run)
        self.thread.start()

    def write(self, topic, *values):
        records = wire.Records(len(values), values=wire.ByteColumn.of(values))
        self.producer.send(topic, 0, records, lambda delivered: self.errors.append(delivered.error))
        assert self.producer.flush(PATIENCE_SECONDS)

    def __enter__(self):
        self.producer.init_transactions()
        return self

    def __exit__(self, *_):
        self.producer.close(0)
        self.thread.join(PATIENCE_SECONDS)
        assert not self.thread.is_alive()
        self.clusters.close()


@pytest.fixture(params=["embedded", "kafka"])
def bootstrap(request, tmp_path):
    if request.param == "kafka":
        yield request.getfixturevalue("kafka")
        return
    server = ServerProcess(tmp_path / "log")
    yield server.bootstrap
    server.stop()


def test_a_transaction_is_seen_as_a_whole_or_not_at_all(bootstrap, request):
    topic = f"whole-{request.node.callspec.id}"
    with Writer(bootstrap, topic) as writer:
        writer.write(topic, b"1", b"2")
        writer.write(topic, b"3")
        assert committed(bootstrap, topic) == [] and len(everything(bootstrap, topic)) == 3
        writer.producer.commit_transaction()
        writer.write(topic, b"4")
        writer.producer.abort_transaction()
        writer.write(topic, b"5")
        writer.producer.commit_transaction()
        writer.producer.commit_transaction()  # of nothing
        assert committed(bootstrap, topic) == [b"1", b"2", b"3", b"5"]


def test_who_takes_the_id_over_fences_who_had_it(bootstrap, request):
    topic = f"fenced-{request.node.callspec.id}"
    with Writer(bootstrap, topic) as first:
        first.write(topic, b"never seen")
        with Writer(bootstrap, topic) as second:
            with pytest.raises(LogError):
                first.producer.commit_transaction()
            first.write(topic, b"nor this")
            assert first.errors[-1] is not None
            second.write(topic, b"seen")
            second.producer.commit_transaction()
    assert committed(bootstrap, topic) == [b"seen"]


def test_each_transaction_has_an_epoch_of_its_own(bootstrap, request):
    topic = f"epochs-{request.node.callspec.id}"
    values = [b"%d" % number for number in range(6)]
    with Writer(bootstrap, topic) as writer:
        epochs = []
        for number, value in enumerate(values):
            epochs.append(writer.producer._transactions.identity[1])
            writer.write(topic, value)  # always sequence 0: taken for a repeat of the one before it would be lost
            (writer.producer.abort_transaction if number % 3 == 1 else writer.producer.commit_transaction)()
    assert len(set(epochs)) == 6 and epochs == sorted(epochs)
    assert committed(bootstrap, topic) == [b"0", b"2", b"3", b"5"]


def test_partitions_are_added_by_name_where_batches_do_not_join_by_themselves(tmp_path, monkeypatch):
    monkeypatch.setattr(topics_api, "FEATURES", ())
    log = EmbeddedLog(tmp_path, "127.0.0.1:0")
    log.start()
    with Writer(log.bootstrap, "old") as writer:
        before = writer.producer._transactions.identity
        writer.write("old", b"1")
        writer.producer.commit_transaction()
        writer.write("old", b"2")
        assert writer.producer._transactions.holds("old", 0) and not writer.producer._transactions.holds("old", 1)
        writer.producer.commit_transaction()
        assert writer.producer._transactions.identity == before
        assert committed(log.bootstrap, "old") == [b"1", b"2"]
    log.stop()


def test_a_transaction_in_which_a_record_was_refused_cannot_be_committed(bootstrap, request):
    topic = f"refused-{request.node.callspec.id}"
    with Writer(bootstrap, topic, **{"max.request.size": "5000000"}) as writer:
        writer.write(topic, b"1")
        writer.write(topic, b"x" * 3_000_000)
        with pytest.raises(LogError, match="cannot be committed"):
            writer.producer.commit_transaction()
        writer.producer.abort_transaction()
    assert committed(bootstrap, topic) == []


def test_a_transaction_outlives_a_kill_of_the_log(tmp_path):
    server = ServerProcess(tmp_path / "log")
    with Writer(server.bootstrap, "t") as writer:
        writer.write("t", b"1")
        server.kill()
        server = ServerProcess(tmp_path / "log", server.bootstrap)
        writer.write("t", b"2")
        writer.producer.commit_transaction()
        assert committed(server.bootstrap, "t") == [b"1", b"2"]
        server.stop()


def test_nothing_is_sent_before_the_id_is_taken_over_and_a_close_ends_the_wait_for_a_coordinator():
    writer = Writer("127.0.0.1:1", "nobody", **{"reconnect.backoff.ms": "10"})
    failed = []

    def take_over():
        try:
            writer.producer.init_transactions()
        except LogError as error:
            failed.append(error)

    waiting = threading.Thread(target=take_over)
    waiting.start()
    writer.producer.close(0)
    waiting.join(PATIENCE_SECONDS)
    writer.__exit__()
    assert len(failed) == 1 and "closed" in str(failed[0])


@pytest.mark.parametrize("version", [3, 8, 9, 11])
def test_a_produce_request_names_its_transaction_as_kafka_pythons_does(version):
    from kafka.protocol.producer import ProduceRequest

    Topic = ProduceRequest.TopicProduceData
    part = Topic.PartitionProduceData(index=0, records=b"abc")
    request = ProduceRequest(version=version, transactional_id="mine", acks=-1, timeout_ms=5, topic_data=[Topic(name="t", partition_data=[part])])
    assert b"".join(produce_body(version, -1, 5, [("t", 0, b"abc")], "mine")) == bytes(request.encode())
