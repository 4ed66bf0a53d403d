"""Transactions on the embedded log, with a stock client: all or nothing, fenced producers, ends after a crash, offsets within."""

import contextlib
import json
import os
import sqlite3
import time
from types import SimpleNamespace

import kafka
import pytest
from kafka.protocol import producer as messages
from pytest import param

from standalone.log.broker.refusal import codes
from standalone.log.broker.server import EmbeddedLog
from tests.log.broker_clients import RawClient, ServerProcess, batch, list_offset, make_topic, running, wait_for
from tests.suite.patience import PATIENCE_SECONDS

confluent_kafka = pytest.importorskip("confluent_kafka")


@pytest.fixture
def log(tmp_path):
    log = EmbeddedLog(tmp_path / "log", "127.0.0.1:0")
    log.start()
    with RawClient(log.bootstrap) as client:
        make_topic(client, "t", 2)
    yield log
    log.stop()


def transactional(bootstrap, name="mine", **config):
    client = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "transactional.id": name, **config})
    client.init_transactions(20)
    return client


def write(client, values, topic="t"):
    for number, value in enumerate(values):
        client.produce(topic, value, partition=number % 2)
    assert client.flush(10) == 0


def read(bootstrap, isolation="read_committed", topic="t"):
    """Every value that a consumer of that isolation meets up to the end."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, number, 0) for number in (0, 1)])
    found, ended, deadline = [], set(), time.monotonic() + PATIENCE_SECONDS
    while len(ended) < 2:
        assert time.monotonic() < deadline
        message = consumer.poll(0.1)
        if message is None:
            continue
        if message.error():
            assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF
            ended.add(message.partition())
        else:
            found.append(message.value())
    consumer.close()
    return sorted(found)


def test_what_is_committed_is_read_and_what_is_aborted_is_not(log):
    client = transactional(log.bootstrap)
    client.begin_transaction()
    write(client, [b"1", b"2"])
    assert read(log.bootstrap) == [] and read(log.bootstrap, "read_uncommitted") == [b"1", b"2"]
    client.commit_transaction(10)
    client.begin_transaction()
    write(client, [b"3", b"4"])
    client.abort_transaction(10)
    client.begin_transaction()
    write(client, [b"5"])
    client.commit_transaction(10)
    assert read(log.bootstrap) == [b"1", b"2", b"5"]
    assert read(log.bootstrap, "read_uncommitted") == [b"1", b"2", b"3", b"4", b"5"]


def test_an_open_transaction_holds_back_what_comes_behind_it(log):
    client = transactional(log.bootstrap)
    client.begin_transaction()
    write(client, [b"open"])
    with RawClient(log.bootstrap) as plain:
        plain.produce("t", batch([b"behind"]))
        assert read(log.bootstrap) == []
        client.commit_transaction(10)
        assert read(log.bootstrap) == [b"behind", b"open"]


def test_offsets_are_committed_with_the_transaction_or_not_at_all(log):
    source = confluent_kafka.Consumer({"bootstrap.servers": log.bootstrap, "group.id": "g", "auto.offset.reset": "earliest", "enable.auto.commit": False})
    source.subscribe(["t"])
    client = transactional(log.bootstrap)
    admin = kafka.KafkaAdminClient(bootstrap_servers=log.bootstrap)

    def committed():
        found = admin.list_group_offsets("g").get("g", {})
        return {partition.partition: each.offset for partition, each in found.items()}

    wait_for(lambda: source.poll(0.05) or len(source.assignment()) == 2)
    client.begin_transaction()
    client.send_offsets_to_transaction([confluent_kafka.TopicPartition("t", 0, 7)], source.consumer_group_metadata(), 10)
    assert committed() == {}
    client.abort_transaction(10)
    assert committed() == {}
    client.begin_transaction()
    client.send_offsets_to_transaction([confluent_kafka.TopicPartition("t", 0, 8)], source.consumer_group_metadata(), 10)
    client.commit_transaction(10)
    assert committed() == {0: 8}
    source.close()
    admin.close()


def test_a_producer_that_takes_the_id_over_aborts_and_fences_the_one_before(log):
    zombie = transactional(log.bootstrap)
    zombie.begin_transaction()
    write(zombie, [b"zombie"])
    heir = transactional(log.bootstrap)
    heir.begin_transaction()
    write(heir, [b"heir"])
    heir.commit_transaction(10)
    with pytest.raises(confluent_kafka.KafkaException) as fenced:
        zombie.commit_transaction(10)
    assert fenced.value.args[0].fatal() or fenced.value.args[0].code() == confluent_kafka.KafkaError._FENCED
    assert read(log.bootstrap) == [b"heir"]


def test_a_transaction_whose_time_is_over_is_aborted(log):
    client = transactional(log.bootstrap, **{"transaction.timeout.ms": 1000, "message.timeout.ms": 900})
    client.begin_transaction()
    write(client, [b"late"])
    with RawClient(log.bootstrap) as plain:
        plain.produce("t", batch([b"plain"]))
    wait_for(lambda: read(log.bootstrap) == [b"plain"])
    with pytest.raises(confluent_kafka.KafkaException) as fenced:
        client.commit_transaction(10)
    known = confluent_kafka.KafkaError
    assert fenced.value.args[0].code() in (known._FENCED, known.INVALID_PRODUCER_EPOCH, known.PRODUCER_FENCED), "what it still sends counts no more"


@pytest.mark.parametrize("isolation, expected", [param("read_committed", [b"kept"], id="committed"), param("read_uncommitted", [b"kept", b"lost"], id="all")])
def test_aborted_transactions_are_known_after_kill_9_and_after_a_stop(tmp_path, isolation, expected):
    server = ServerProcess(tmp_path)
    with RawClient(server.bootstrap) as client:
        make_topic(client, "t", 2)
    producer = transactional(server.bootstrap)
    for value, end in ((b"lost", producer.abort_transaction), (b"kept", producer.commit_transaction)):
        producer.begin_transaction()
        write(producer, [value])
        end(10)
    server.kill()
    for _ in range(2):
        server = ServerProcess(tmp_path)
        assert read(server.bootstrap, isolation) == expected
        server.stop()
    os.unlink(tmp_path / "t-0" / "producers.json")
    os.unlink(tmp_path / "t-0" / "aborted.transactions")
    server = ServerProcess(tmp_path)
    assert read(server.bootstrap, isolation) == expected
    server.stop()


def test_a_transaction_goes_on_after_kill_9_of_the_log(tmp_path):
    server = ServerProcess(tmp_path)
    with RawClient(server.bootstrap) as client:
        make_topic(client, "t", 2)
    producer = transactional(server.bootstrap)
    producer.begin_transaction()
    write(producer, [b"before"])
    server.kill()
    server = ServerProcess(tmp_path, listener=server.bootstrap)
    assert read(server.bootstrap) == []
    write(producer, [b"after"])
    producer.commit_transaction(20)
    assert read(server.bootstrap) == [b"after", b"before"]
    server.stop()


def test_a_transaction_that_nobody_knows_any_more_is_aborted_at_the_start(tmp_path):
    with running(tmp_path) as client:
        make_topic(client, "t", 2)
        bootstrap = f"127.0.0.1:{client.sock.getpeername()[1]}"
        producer = transactional(bootstrap)
        producer.begin_transaction()
        write(producer, [b"orphan"])
    for name in os.listdir(tmp_path):
        if name.startswith("log.sqlite"):
            os.unlink(tmp_path / name)
    with running(tmp_path) as client:
        bootstrap = f"127.0.0.1:{client.sock.getpeername()[1]}"
        assert read(bootstrap) == []
        client.produce("t", batch([b"next"]))
        assert read(bootstrap) == [b"next"]


# --- What is refused


def call(client, name, version, **fields):
    request = getattr(messages, f"{name}Request")(version=version, **fields)
    return client.call(request, getattr(messages, f"{name}Response"))


def test_a_transactional_batch_needs_a_transaction(log):
    with RawClient(log.bootstrap) as client:
        begun = call(client, "InitProducerId", 4, transactional_id="x", transaction_timeout_ms=1000)
        data = batch([b"v"], transactional=True, producer_id=begun.producer_id, producer_epoch=begun.producer_epoch, base_sequence=0)
        request = messages.ProduceRequest
        part = request.TopicProduceData.PartitionProduceData(index=0, records=bytes(data))

        def produce(name):
            sent = request(
                version=9, transactional_id=name, acks=-1, timeout_ms=1000, topic_data=[request.TopicProduceData(name="t", partition_data=[part])]
            )
            return client.call(sent, messages.ProduceResponse).responses[0].partition_responses[0].error_code

        assert produce("x") == codes.InvalidTxnStateError.errno
        assert produce(None) == codes.InvalidTxnStateError.errno
        assert list_offset(client, -1) == (-1, 0)


@pytest.mark.parametrize(
    "wrong, error",
    [
        param({"transactional_id": "other"}, codes.InvalidProducerIdMappingError, id="an id that nobody has"),
        param({"producer_id": 99}, codes.InvalidProducerIdMappingError, id="another's producer id"),
        param({"producer_epoch": 5}, codes.ProducerFencedError, id="another epoch"),
        param({}, codes.InvalidTxnStateError, id="nothing was begun"),
    ],
)
def test_an_end_that_is_refused(log, wrong, error):
    with RawClient(log.bootstrap) as client:
        begun = call(client, "InitProducerId", 4, transactional_id="x", transaction_timeout_ms=1000)
        fields = {"transactional_id": "x", "producer_id": begun.producer_id, "producer_epoch": begun.producer_epoch, "committed": True}
        assert call(client, "EndTxn", 3, **{**fields, **wrong}).error_code == error.errno


# --- Each end raises the epoch (KIP-890)


class Epochs:
    """A producer that speaks it, request by request."""

    def __init__(self, client):
        self.client = client
        self.take(self.ask(client))

    @staticmethod
    def ask(client):
        return call(client, "InitProducerId", 4, transactional_id="x", transaction_timeout_ms=60_000)

    def take(self, answer):
        self.identity = answer.producer_id, answer.producer_epoch

    def produce(self, value, sequence, identity=None, partition=0):
        producer_id, epoch = identity or self.identity
        data = batch([value], transactional=True, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
        request = messages.ProduceRequest
        part = request.TopicProduceData.PartitionProduceData(index=partition, records=bytes(data))
        topics = [request.TopicProduceData(name="t", partition_data=[part])]
        sent = request(version=12, transactional_id="x", acks=-1, timeout_ms=1000, topic_data=topics)
        return self.client.call(sent, messages.ProduceResponse).responses[0].partition_responses[0].error_code

    def end(self, commit=True, identity=None):
        producer_id, epoch = identity or self.identity
        return call(self.client, "EndTxn", 5, transactional_id="x", producer_id=producer_id, producer_epoch=epoch, committed=commit)


def test_an_end_that_was_not_answered_is_asked_for_again_and_is_one_end(log):
    with RawClient(log.bootstrap) as client:
        producer = Epochs(client)
        assert producer.produce(b"1", 0) == 0
        answers = [producer.end() for _ in range(2)]
        assert [(answer.error_code, answer.producer_id, answer.producer_epoch) for answer in answers] == [(0, producer.identity[0], 1)] * 2
        assert producer.end(commit=False).error_code == codes.InvalidTxnStateError.errno
        before = producer.identity
        producer.take(answers[0])
        assert producer.produce(b"late", 1, before) == codes.InvalidProducerEpochError.errno
        assert producer.produce(b"no first one", 1) == codes.OutOfOrderSequenceNumberError.errno
        assert producer.produce(b"1", 0) == 0  # the same bytes, and no repeat
        assert producer.end(identity=before).error_code == codes.ProducerFencedError.errno
        assert producer.end().error_code == 0
        assert read(log.bootstrap) == [b"1", b"1"]


def test_an_abort_of_nothing_raises_the_epoch_and_a_commit_of_nothing_is_refused(log):
    with RawClient(log.bootstrap) as client:
        producer = Epochs(client)
        assert producer.end().error_code == codes.InvalidTxnStateError.errno
        ended = producer.end(commit=False)
        assert (ended.error_code, ended.producer_epoch) == (0, 1)


def test_a_producer_whose_epochs_are_used_up_has_another_id(tmp_path):
    with running(tmp_path) as client:
        make_topic(client, "t", 2)
        producer = Epochs(client)
    with _store(tmp_path) as store:
        ((body,),) = store.execute("SELECT body FROM documents WHERE kind = 'transaction'")
        store.execute("UPDATE documents SET body = ? WHERE kind = 'transaction'", (json.dumps({**json.loads(body), "epoch": 32766}),))
    with running(tmp_path) as client:
        bootstrap = f"127.0.0.1:{client.sock.getpeername()[1]}"
        producer.client, producer.identity = client, (producer.identity[0], 32766)
        assert producer.produce(b"1", 0) == 0
        ended = producer.end()
        assert ended.error_code == 0 and ended.producer_id != producer.identity[0] and ended.producer_epoch == 0
        producer.take(ended)
        assert producer.produce(b"2", 0) == 0 and producer.end().error_code == 0
        assert read(bootstrap) == [b"1", b"2"]


@pytest.mark.parametrize("timeout_ms, error", [(0, 50), (10**9, 50), (60_000, 0)])
def test_how_long_a_transaction_may_take(log, timeout_ms, error):
    with RawClient(log.bootstrap) as client:
        assert call(client, "InitProducerId", 4, transactional_id="x", transaction_timeout_ms=timeout_ms).error_code == error


@pytest.mark.parametrize("before", ["nothing", "another transaction", "another partition"])
def test_a_batch_that_outlived_what_was_written_down_of_its_transaction_is_in_it_still(tmp_path, before):
    """A loss of power took that the partition joined, and left the batch. Nobody was told of either: the producer sends the batch again."""
    with running(tmp_path) as client:
        make_topic(client, "t", 2)
        producer = Epochs(client)
        if before == "another transaction":
            assert producer.produce(b"0", 0) == 0
            producer.take(producer.end())
        if before == "another partition":
            assert producer.produce(b"0", 0, partition=1) == 0
    with _store(tmp_path) as store:
        ((written,),) = store.execute("SELECT body FROM documents WHERE kind = 'transaction'")
    with running(tmp_path) as client:
        producer.client = client
        assert producer.produce(b"1", 0) == 0
    with _store(tmp_path) as store:
        store.execute("UPDATE documents SET body = ? WHERE kind = 'transaction'", (written,))
    with running(tmp_path) as client:
        bootstrap = f"127.0.0.1:{client.sock.getpeername()[1]}"
        producer.client = client
        assert read(bootstrap) == ([b"0"] if before == "another transaction" else [])
        assert producer.produce(b"1", 0) == 0
        assert producer.end().error_code == 0
        assert read(bootstrap) == ([b"1"] if before == "nothing" else [b"0", b"1"])


def test_what_outlived_it_is_aborted_with_the_transaction_if_its_producer_does_not_come_back(tmp_path):
    with running(tmp_path) as client:
        make_topic(client, "t", 2)
        Epochs(client).produce(b"0", 0, partition=1)
    with _store(tmp_path) as store:
        ((written,),) = store.execute("SELECT body FROM documents WHERE kind = 'transaction'")
    with running(tmp_path) as client:
        identity = json.loads(written)["producer_id"], json.loads(written)["epoch"]
        Epochs.produce(SimpleNamespace(client=client), b"1", 0, identity)
    with _store(tmp_path) as store:
        store.execute("UPDATE documents SET body = ? WHERE kind = 'transaction'", (written,))
    with running(tmp_path) as client:
        wait_for(lambda: Epochs.ask(client).error_code == 0)  # who takes the id over aborts what is open
        client.produce("t", batch([b"next"]))
        assert read(f"127.0.0.1:{client.sock.getpeername()[1]}") == [b"next"]


def _store(folder):
    return contextlib.closing(sqlite3.connect(folder / "log.sqlite", isolation_level=None))
