"""The answer to a fetch, as bytes."""

import uuid

import numpy as np
import pytest
from kafka.protocol.consumer import FetchResponse
from pytest import param

from standalone.errors import LogError
from standalone.log import fetch, record_batch
from standalone.wire import ByteColumn, Records

EPOCH = 6


def batch(*values, offset=0):
    data = bytearray(record_batch.pack(Records(len(values), values=ByteColumn.of(values)), base_offset=offset, now_ms=1))
    data[12:16] = EPOCH.to_bytes(4, "big")  # as the leader writes it
    return bytes(data)


TOPIC_ID = uuid.UUID("2b1f3f54-7a8e-4f7e-9d2c-1d6f5b2f9a10")


def answer_bytes(version):
    """An answer as kafka-python writes it: two partitions, one with an error and with tagged fields."""
    Topic = FetchResponse.FetchableTopicResponse
    plain = {
        "partition_index": 3,
        "error_code": 0,
        "high_watermark": 17,
        "last_stable_offset": 15,
        "log_start_offset": 2,
        "aborted_transactions": [Topic.PartitionData.AbortedTransaction(producer_id=5, first_offset=11)],
        "preferred_read_replica": 7,
        "records": batch(b"a", b"bc"),
    }
    failed = {**plain, "partition_index": 4, "error_code": 6, "aborted_transactions": None, "records": None}
    if version >= 12:
        failed["current_leader"] = Topic.PartitionData.LeaderIdAndEpoch(leader_id=2, leader_epoch=9)
    parts = [Topic.PartitionData(version=version, **fields) for fields in (failed, plain)]
    message = FetchResponse(
        version=version,
        throttle_time_ms=0,
        error_code=0,
        session_id=0,
        responses=[Topic(version=version, topic="täglich", topic_id=TOPIC_ID, partitions=parts)],
    )
    return memoryview(bytearray(message.encode()))


@pytest.mark.parametrize("version", range(4, fetch.FETCH_CEILING + 1))
def test_an_answer_is_read_in_every_version_and_its_records_are_not_copied(version):
    body = answer_bytes(version)
    code, (failed, plain) = fetch.read(body, version)
    assert code == 0
    topic = TOPIC_ID if version >= 13 else "täglich"
    replica = 7 if version >= 11 else -1
    assert failed == fetch.Answer(topic, 4, 6, 17, 15, [], replica, None)
    assert plain[:7] == (topic, 3, 0, 17, 15, [(5, 11)], replica)
    assert bytes(plain.records) == batch(b"a", b"bc")
    assert np.shares_memory(np.frombuffer(plain.records, np.uint8), np.frombuffer(body, np.uint8))


@pytest.mark.parametrize("version", [4, 12, 16])
def test_an_answer_that_is_cut_off_is_an_error(version):
    body = answer_bytes(version)
    with pytest.raises(LogError, match="Fetch"):
        fetch.read(body[:30], version)


@pytest.mark.parametrize(
    "data, expected",
    [
        param(b"", 40, id="nothing"),
        param(batch(b"a", b"b", offset=40), 42, id="one batch"),
        param(batch(b"a", offset=40) + batch(b"b", offset=41), 42, id="two batches"),
        param(batch(b"a", b"b", b"c", offset=38), 41, id="a batch that begins before what was asked for"),
        param(batch(b"a", offset=40) + batch(b"b", offset=41)[:-1], 41, id="the last one is cut off"),
        param(batch(b"a", b"b", offset=40)[:30], 40, id="less than a header"),
        param(batch(b"a", offset=1 << 40), (1 << 40) + 1, id="a large offset"),
        param(bytes(100), 40, id="no batch at all"),
        param(b"\xff" * 100, 40, id="a negative length"),
    ],
)
def test_the_next_offset_is_known_before_records_are_read(data, expected):
    offset, epoch = fetch.next_offset(np.frombuffer(data, np.uint8), 40)
    assert offset == expected
    assert epoch == (EPOCH if expected > 40 else -1)
