"""Produce requests that come in one turn of the embedded log's owner: kept together, each answered for itself."""

import contextlib
import os
import threading

import pytest
from kafka.protocol.producer import ProduceResponse

from standalone.log.broker import options
from standalone.log.broker.partitions import Appended, Partition
from standalone.log.broker.refusal import Refusal, codes
from standalone.log.broker.server import EmbeddedLog
from tests.log.broker_clients import RawClient, batch, fetch_request, list_offset, make_topic, produce_request, values_of, wait_for
from tests.suite.patience import PATIENCE_SECONDS

NOW = 1000


def opened(folder, **configs):
    configs = {"message.timestamp.after.max.ms": str(options.MAX_LONG), "segment.ms": str(options.MAX_LONG), **configs}
    return Partition("t", 0, str(folder / "t-0"), options.topic_values(configs, options.settings({})))


def append_all(partition, *batches):
    """Of each its offset, or the error that it is refused by."""
    outcomes = partition.append_all([memoryview(each) for each in batches], NOW)
    return [outcome.base_offset if isinstance(outcome, Appended) else outcome.code for outcome in outcomes]


def all_values(partition):
    found, offset = [], partition.start
    while (piece := partition.read(offset, 1 << 20, at_least_one=True)) is not None:
        found += values_of(piece.read())
        offset = found[-1][0] + 1
    return found


@pytest.fixture
def writes(monkeypatch):
    """How many pieces each write of several had."""
    found, write = [], os.pwritev
    monkeypatch.setattr(os, "pwritev", lambda fd, pieces, at: (found.append(len(pieces)), write(fd, pieces, at))[1])
    return found


# --- Batches of one partition


def test_batches_are_written_at_once_and_found_one_by_one(tmp_path, writes):
    partition = opened(tmp_path)
    assert append_all(partition, batch([b"a", b"b"]), batch([b"c"]), batch([b"d"])) == [0, 2, 3]
    assert writes == [3]
    expected = [(0, b"a"), (1, b"b"), (2, b"c"), (3, b"d")]
    assert all_values(partition) == all_values(opened(tmp_path)) == expected
    assert [values_of(partition.read(offset, 1, at_least_one=True).read())[-1][0] for offset in range(4)] == [1, 1, 2, 3]


def test_one_that_is_refused_takes_no_other_with_it(tmp_path, writes):
    damaged = batch([b"x"])
    damaged[-1] ^= 1
    partition = opened(tmp_path)
    assert append_all(partition, batch([b"a"]), damaged, batch([b"b"])) == [0, codes.CorruptRecordError.errno, 1]
    assert writes == [2] and all_values(partition) == [(0, b"a"), (1, b"b")]


def test_sequences_of_one_producer_are_looked_at_in_turn(tmp_path):
    def numbered(sequence, producer_id=5):
        return batch([b"%d" % sequence], producer_id=producer_id, producer_epoch=0, base_sequence=sequence)

    partition = opened(tmp_path)
    sent = [numbered(0), numbered(0), numbered(0, producer_id=6), numbered(1), numbered(3), numbered(2)]
    assert append_all(partition, *sent) == [0, 0, 1, 2, codes.OutOfOrderSequenceNumberError.errno, 3]
    assert [value for _, value in all_values(partition)] == [b"0", b"0", b"1", b"2"]


def test_what_cannot_be_written_together_is_tried_one_by_one(tmp_path, monkeypatch):
    write = os.pwrite

    def full(fd, data, at):
        if len(data) > 1000:
            raise OSError(28, "No space left on device")
        return write(fd, data, at)

    def torn(fd, pieces, at):
        os.pwrite(fd, bytes(pieces[0])[:40], at)
        raise OSError(28, "No space left on device")

    partition = opened(tmp_path)
    assert append_all(partition, batch([b"first"])) == [0]
    monkeypatch.setattr(os, "pwritev", torn)
    monkeypatch.setattr(os, "pwrite", full)
    assert append_all(partition, batch([b"a"]), batch([b"x" * 2000]), batch([b"b"])) == [1, codes.KafkaStorageError.errno, 2]
    monkeypatch.undo()
    assert append_all(partition, batch([b"c"]), batch([b"d"])) == [3, 4]
    expected = [(0, b"first"), (1, b"a"), (2, b"b"), (3, b"c"), (4, b"d")]
    assert all_values(partition) == all_values(opened(tmp_path)) == expected


@pytest.mark.parametrize("at_once", [1, 70, 150, 10_000])
def test_a_write_that_takes_less_is_continued(tmp_path, monkeypatch, at_once):
    monkeypatch.setattr(os, "pwritev", lambda fd, pieces, at: os.pwrite(fd, b"".join(pieces)[:at_once], at))
    partition = opened(tmp_path)
    assert append_all(partition, batch([b"a"]), batch([b"b" * 100]), batch([b"c"])) == [0, 1, 2]
    assert all_values(opened(tmp_path)) == [(0, b"a"), (1, b"b" * 100), (2, b"c")]


def test_what_does_not_fit_into_the_segment_begins_another(tmp_path, writes):
    partition = opened(tmp_path, **{"segment.bytes": "4096"})
    assert append_all(partition, *(batch([b"%d" % number * 1500]) for number in range(5))) == [0, 1, 2, 3, 4]
    assert [segment.base_offset for segment in partition.segments] == [0, 2, 4] and writes == []
    assert [value[:1] for _, value in all_values(opened(tmp_path))] == [b"0", b"1", b"2", b"3", b"4"]


def test_the_log_s_time_is_given_to_each(tmp_path):
    partition = opened(tmp_path, **{"message.timestamp.type": "LogAppendTime"})
    outcomes = partition.append_all([memoryview(batch([value], now_ms=5)) for value in (b"a", b"b")], NOW)
    assert outcomes == [(0, NOW), (1, NOW)] and partition.max_timestamp == NOW


def test_a_partition_that_failed_takes_none(tmp_path):
    partition = opened(tmp_path)
    partition.failed = "the disk is gone"
    outcomes = partition.append_all([memoryview(batch([b"a"])), memoryview(batch([b"b"]))], NOW)
    assert [(type(outcome), outcome.message) for outcome in outcomes] == [(Refusal, "the disk is gone")] * 2


# --- Requests of one turn


@contextlib.contextmanager
def one_turn(log):
    """What is sent meanwhile is found by the owner all at once."""
    waits, go = threading.Event(), threading.Event()
    log._owner.post(lambda: (waits.set(), go.wait(PATIENCE_SECONDS)))
    assert waits.wait(PATIENCE_SECONDS)
    try:
        yield
    finally:
        go.set()


@pytest.fixture
def clients(log):
    """Six, which the log has answered."""
    with contextlib.ExitStack() as stack:
        yield connected(stack, log)


def connected(stack, log, count=6, **configs):
    clients = [stack.enter_context(RawClient(log.bootstrap)) for _ in range(count)]
    make_topic(clients[0], partitions=2, **configs)
    for client in clients:
        list_offset(client, -1)
    return clients


def offset_of(client, version=9):
    part = client.receive(ProduceResponse, version).responses[0].partition_responses[0]
    assert part.error_code == 0
    return part.index, part.base_offset


def test_they_are_one_write_a_partition_and_each_has_its_answer(log, clients, writes):
    with one_turn(log):
        for number, client in enumerate(clients):
            client.send(produce_request("t", batch([b"%d" % number]), number % 2, version=3 + number))
    answers = [offset_of(client, 3 + number) for number, client in enumerate(clients)]
    assert sorted(answers) == [(partition, offset) for partition in range(2) for offset in range(3)] and writes == [3, 3]
    for number, (client, (partition, offset)) in enumerate(zip(clients, answers)):
        (value,) = [value for at, value in values_of(client.fetch("t", 0, partition).records) if at == offset]
        assert value == b"%d" % number


def test_what_is_refused_and_what_wants_no_answer_are_seen_for_themselves(log, clients):
    with one_turn(log):
        clients[0].send(produce_request("t", batch([b"kept"])))
        clients[1].send(produce_request("nowhere", batch([b"refused"])))
        clients[2].send(produce_request("t", batch([b"not told"]), acks=0))
        clients[3].send(produce_request("nowhere", batch([b"refused"]), acks=0))
        clients[4].send(produce_request("t", batch([b"cut"])[:-3]))
        clients[5].send(produce_request("t", batch([b"acks"]), acks=2))
    assert offset_of(clients[0])[0] == 0
    for client, error in ((1, codes.UnknownTopicOrPartitionError), (4, codes.CorruptRecordError), (5, codes.InvalidRequiredAcksError)):
        part = clients[client].receive(ProduceResponse, 9).responses[0].partition_responses[0]
        assert (part.error_code, part.base_offset) == (error.errno, -1)
    with pytest.raises(ConnectionError):
        clients[3].receive_frame()
    assert list_offset(clients[2], -1) == (-1, 2)
    assert {value for _, value in values_of(clients[2].fetch("t", 0).records)} == {b"kept", b"not told"}


def test_who_waits_for_records_gets_all_of_them(log, clients):
    data = [batch([b"%d" % number]) for number in range(3)]
    reader = clients[5]
    reader.send(fetch_request("t", 0, min_bytes=sum(map(len, data)), max_wait_ms=60_000))
    wait_for(lambda: log._node.topics.get("t").partitions[0].waiting)
    with one_turn(log):
        for client, each in zip(clients, data):
            client.send(produce_request("t", each))
    assert sorted(value for _, value in values_of(reader.fetched().records)) == [b"0", b"1", b"2"]


def test_what_one_client_sends_at_once_is_kept_in_order(log, clients):
    with one_turn(log):
        for number in range(40):
            for client in clients:
                client.send(produce_request("t", batch([b"%d" % number])))
    for client in clients:
        answers = [ProduceResponse.decode(client.receive_frame(), version=9, header=True) for _ in range(40)]
        assert [answer.header.correlation_id for answer in answers] == sorted(answer.header.correlation_id for answer in answers)
        offsets = [answer.responses[0].partition_responses[0].base_offset for answer in answers]
        assert offsets == sorted(offsets)
    found = values_of(clients[0].fetch("t", 0).records)
    assert [offset for offset, _ in found] == list(range(240))
    assert sorted(value for _, value in found) == sorted(b"%d" % number for number in range(40) for _ in clients)


def test_one_sync_serves_all_of_them(tmp_path, monkeypatch):
    log = EmbeddedLog(tmp_path, "127.0.0.1:0", {"embedded.log.acks": "fsync"})
    log.start()
    with contextlib.ExitStack() as stack:
        stack.callback(log.stop)
        clients = connected(stack, log)
        syncs, sync = [], os.fdatasync
        monkeypatch.setattr(os, "fdatasync", lambda fd: (syncs.append(fd), sync(fd))[1])
        with one_turn(log):
            for client in clients:
                client.send(produce_request("t", batch([b"v"])))
        assert sorted(offset_of(client)[1] for client in clients) == list(range(6))
        assert len(syncs) == 1 and log._node.topics.get("t").partitions[0].durable == 6


def test_an_error_of_the_log_s_own_leaves_nobody_without_an_answer(log, clients, monkeypatch):
    def broken(*_):
        raise RuntimeError("the log's own")

    monkeypatch.setattr(Partition, "append_all", broken)
    with one_turn(log):
        for client in clients[:3]:
            client.send(produce_request("t", batch([b"v"])))
    for client in clients[:3]:
        with pytest.raises(ConnectionError):
            client.receive_frame()
    monkeypatch.undo()
    assert clients[3].produce("t", batch([b"v"])).error_code == 0
