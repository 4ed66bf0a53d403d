"""Records through the embedded log's protocol: produce, fetch and its waiting, offsets by time."""

import os
import time

import pytest
from kafka.protocol.consumer import FetchResponse
from pytest import param

from standalone.log.broker.refusal import codes
from tests.log.broker_clients import (
    RawClient,
    batch,
    delete_topic,
    fetch_request,
    list_offset,
    make_topic,
    produce_request,
    values_of,
    wait_for,
)


@pytest.fixture
def client(log):
    with RawClient(log.bootstrap) as client:
        yield client


# --- Produce and Fetch


def test_without_acks_there_is_no_answer(client):
    make_topic(client)
    client.send(produce_request("t", batch([b"v"]), acks=0))
    assert list_offset(client, -1) == (-1, 1)


def test_an_error_without_acks_hangs_up(client):
    client.send(produce_request("nowhere", batch([b"v"]), acks=0))
    with pytest.raises(ConnectionError):
        client.receive_frame()


@pytest.mark.parametrize(
    "data, options, error",
    [
        param(batch([b"v"]), {"topic": "nowhere"}, codes.UnknownTopicOrPartitionError, id="no such topic"),
        param(batch([b"v"]), {"partition": 1}, codes.UnknownTopicOrPartitionError, id="no such partition"),
        param(batch([b"v"]), {"acks": 2}, codes.InvalidRequiredAcksError, id="acks of 2"),
        param(batch([b"v" * 2_000_000]), {}, codes.MessageSizeTooLargeError, id="too large"),
        param(batch([b"v"])[:-3], {}, codes.CorruptRecordError, id="cut"),
        param(batch([b"v"] * 99, compression="zstd"), {"version": 6}, codes.UnsupportedCompressionTypeError, id="zstd in an old version"),
    ],
)
def test_what_cannot_be_produced(client, data, options, error):
    make_topic(client)
    answer = client.produce(**{"topic": "t", "data": data, **options})
    assert answer.error_code == error.errno and answer.base_offset == -1
    assert list_offset(client, -1) == (-1, 0)


def test_a_repeat_is_answered_with_its_first_offset_and_kept_once(client):
    make_topic(client)
    data = batch([b"v", b"w"], producer_id=3, producer_epoch=0, base_sequence=0)
    client.produce("t", batch([b"before"]))
    assert [client.produce("t", data).base_offset for _ in range(3)] == [1, 1, 1]
    gap = client.produce("t", batch([b"x"], producer_id=3, producer_epoch=0, base_sequence=5))
    assert gap.error_code == codes.OutOfOrderSequenceNumberError.errno
    assert list_offset(client, -1) == (-1, 3)


@pytest.mark.parametrize(
    "limits, count",
    [
        param({}, 10, id="all"),
        param({"max_bytes": 350, "partition_max_bytes": 350}, 3, id="as many whole batches as fit"),
        param({"max_bytes": 350}, 3, id="by the request's bound"),
        param({"partition_max_bytes": 350}, 3, id="by the partition's bound"),
        param({"partition_max_bytes": 1}, 1, id="one, however large"),
        param({"max_bytes": 0}, 1, id="one, though nothing is asked for"),
    ],
)
def test_fetch_gives_whole_batches(client, limits, count):
    make_topic(client)
    for number in range(10):
        client.produce("t", batch([b"%d" % number + b"." * 30]))
    found = client.fetch("t", 0, **limits)
    assert [offset for offset, _ in values_of(found.records)] == list(range(count))
    assert len(found.records) == count * 99  # nothing but whole batches
    assert (found.high_watermark, found.last_stable_offset, found.log_start_offset) == (10, 10, 0)


@pytest.mark.parametrize("offset", [-1, 2, 1 << 40])
def test_an_offset_that_is_not_there(client, offset):
    make_topic(client)
    client.produce("t", batch([b"v"]))
    assert client.fetch("t", offset, max_wait_ms=5000).error_code == codes.OffsetOutOfRangeError.errno


def test_a_waiting_fetch_is_answered_when_a_record_lands(log, client):
    make_topic(client)
    waits = []
    with RawClient(log.bootstrap) as other:
        for number in range(20):
            client.send(fetch_request("t", number, max_wait_ms=55_000))
            other.produce("t", batch([b"%d" % number]))
            begun = time.monotonic()
            assert values_of(client.fetched().records) == [(number, b"%d" % number)]
            waits.append(time.monotonic() - begun)
    assert max(waits) < 50  # none waited until its time was over


def test_a_fetch_waits_for_its_min_bytes(log, client):
    make_topic(client)
    client.send(fetch_request("t", 0, min_bytes=150, max_wait_ms=10_000))
    with RawClient(log.bootstrap) as other:
        for number in range(3):
            other.produce("t", batch([b"." * 30]))
            if number < 1:
                assert other.fetch("t", 0, min_bytes=150, max_wait_ms=1).records  # time is over: what is there
    assert [offset for offset, _ in values_of(client.fetched().records)] == [0, 1]  # the second made it enough


def test_a_fetch_waits_no_longer_than_it_says(client):
    make_topic(client)
    begun = time.monotonic()
    assert not client.fetch("t", 0, max_wait_ms=150).records
    assert 0.14 < time.monotonic() - begun < 10


def test_a_waiting_fetch_is_told_that_its_topic_is_deleted(log, client):
    make_topic(client)
    client.send(fetch_request("t", 0, max_wait_ms=10_000))
    with RawClient(log.bootstrap) as other:
        wait_for(lambda: log._node.topics.get("t").partitions[0].waiting)
        delete_topic(other)
    assert client.fetched().error_code == codes.UnknownTopicOrPartitionError.errno


def test_a_client_that_goes_is_waited_for_no_longer(log, client):
    make_topic(client)
    with RawClient(log.bootstrap) as other:
        other.send(fetch_request("t", 0, max_wait_ms=600_000))
        wait_for(lambda: log._node.topics.get("t").partitions[0].waiting)
    wait_for(lambda: not log._node.topics.get("t").partitions[0].waiting)


def test_a_fetch_session_is_never_begun(client):
    make_topic(client)
    request = fetch_request("t", 0)
    request.session_epoch = 0
    client.send(request)
    assert client.receive(FetchResponse, 11).session_id == 0
    request.session_id = 5
    client.send(request)
    assert client.receive(FetchResponse, 11).error_code == codes.FetchSessionIdNotFoundError.errno


def test_a_slow_reader_holds_up_nobody(log, client):
    make_topic(client, max_message_bytes=20 << 20)
    client.produce("t", batch([os.urandom(15 << 20)]))
    with RawClient(log.bootstrap) as slow:
        slow.send(fetch_request("t", 0, max_bytes=20 << 20, partition_max_bytes=20 << 20))
        for _ in range(20):
            client.produce("t", batch([b"v"]))
        assert len(slow.fetched().records) > 15 << 20


# --- Offsets by time


def test_offsets_by_time(client):
    make_topic(client)
    for time_ms in (100, 300, 200):
        client.produce("t", batch([b"a", b"b"], now_ms=time_ms))
    found = {time_ms: list_offset(client, time_ms) for time_ms in (-1, -2, -3, 0, 100, 101, 300, 301)}
    assert found == {
        -1: (-1, 6),
        -2: (-1, 0),
        -3: (300, 2),
        0: (100, 0),
        100: (100, 0),
        101: (300, 2),
        300: (300, 2),
        301: (-1, -1),
    }


def test_an_empty_topic_has_no_offset_of_any_time(client):
    make_topic(client)
    assert [list_offset(client, time_ms) for time_ms in (0, -3, -1, -2)] == [(-1, -1), (-1, -1), (-1, 0), (-1, 0)]
