"""Produce requests and answers, read and written by hand: the same as kafka-python reads and writes them by the definition."""

import uuid

import hypothesis.strategies as st
import pytest
from hypothesis import given
from kafka.protocol import producer

from standalone.log.broker import produce_messages
from standalone.log.broker.produce_messages import PartitionData, ProduceResponse, TopicData
from standalone.log.broker.refusal import Refusal, codes
from standalone.log.broker.server import _UNREADABLE

VERSIONS = range(3, 14)
TopicProduceData = producer.ProduceRequest.TopicProduceData
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
numbers = st.integers(-(2**31), 2**31 - 1)
offsets = st.integers(-(2**63), 2**63 - 1)
topic_ids = st.uuids().filter(lambda found: found.int)


@st.composite
def requests(draw):
    """(version, kafka-python's request)"""
    version = draw(st.sampled_from(VERSIONS))
    parts = st.builds(TopicProduceData.PartitionProduceData, index=numbers, records=st.none() | st.binary(min_size=1, max_size=300))
    topics = st.builds(TopicProduceData, name=names, topic_id=topic_ids, partition_data=st.lists(parts, max_size=3))
    return version, producer.ProduceRequest(
        version=version,
        transactional_id=draw(st.none() | names),
        acks=draw(st.integers(-1, 1)),
        timeout_ms=draw(numbers),
        topic_data=draw(st.lists(topics, max_size=3)),
    )


def simple(version):
    part = TopicProduceData.PartitionProduceData(index=1, records=b"a batch")
    topic = TopicProduceData(name="t", topic_id=uuid.uuid4(), partition_data=[part])
    return producer.ProduceRequest(version=version, transactional_id="x", acks=-1, timeout_ms=5, topic_data=[topic])


@given(asked=requests())
def test_a_request_is_read_as_kafka_python_reads_it(asked):
    version, request = asked
    encoded = bytes(request.encode())
    found, expected = (kind.decode(encoded, version=version) for kind in (produce_messages.ProduceRequest, producer.ProduceRequest))
    assert (found.transactional_id, found.acks, found.timeout_ms) == (expected.transactional_id, expected.acks, expected.timeout_ms)
    assert len(found.topics) == len(expected.topic_data)
    for topic, wanted in zip(found.topics, expected.topic_data):
        assert (topic.topic_id if version >= 13 else topic.name) == (wanted.topic_id if version >= 13 else wanted.name)
        rows = [(part.index, part.records and bytes(part.records)) for part in topic.partitions]
        assert rows == [(part.index, part.records and bytes(part.records)) for part in wanted.partition_data]


@pytest.mark.parametrize("version", VERSIONS)
def test_records_are_a_view_of_what_was_received(version):
    received = bytearray(simple(version).encode())
    request = produce_messages.ProduceRequest.decode(memoryview(received), version=version)
    (part,) = request.partitions()
    part.records[0] = ord("A")
    assert b"A batch" in received


@pytest.mark.parametrize("version", VERSIONS)
def test_a_request_that_is_cut_off_is_refused_wherever_that_is(version):
    encoded = bytes(simple(version).encode())
    for size in range(len(encoded)):
        with pytest.raises(_UNREADABLE):
            produce_messages.ProduceRequest.decode(encoded[:size], version=version)


@pytest.mark.parametrize("name, version", [
    (name, version) for name in ("topic_data", "name", "partition_data") for version in VERSIONS if name != "name" or version < 13
])  # fmt: skip
def test_a_null_that_may_not_be_is_refused(name, version):
    request = simple(version)
    setattr(request if name == "topic_data" else request.topic_data[0], name, None)
    with pytest.raises(ValueError, match=f"{name} is null"):
        produce_messages.ProduceRequest.decode(bytes(request.encode()), version=version)


def test_tagged_fields_that_nobody_knows_are_skipped():
    encoded = bytes(simple(9).encode())
    assert encoded.endswith(b"\0\0\0")  # of the partition, the topic, the request
    tags = b"\2" + b"\5\3abc" + b"\x80\1\0"
    request = produce_messages.ProduceRequest.decode(encoded[:-3] + 3 * tags, version=9)
    assert [bytes(part.records) for part in request.partitions()] == [b"a batch"]
    with pytest.raises(EOFError):
        produce_messages.ProduceRequest.decode(encoded[:-1] + b"\1\5\4abc", version=9)


@pytest.mark.parametrize("number", [b"\xff" * 5 + b"\0", b"\x80" * 9 + b"\1"])
def test_a_number_of_more_than_five_bytes_is_refused(number):
    with pytest.raises(ValueError, match="five bytes"):
        produce_messages.ProduceRequest.decode(number, version=9)


@st.composite
def answers(draw):
    topics = []
    for _ in range(draw(st.integers(0, 3))):
        parts = []
        for index in draw(st.lists(numbers, max_size=200)):
            part = PartitionData(index, None)
            part.keep(None, draw(offsets), draw(offsets))
            part.log_start_offset = draw(offsets)
            if draw(st.booleans()):
                part.refuse(Refusal(draw(st.sampled_from([codes.CorruptRecordError, codes.NotLeaderForPartitionError])), draw(st.none() | names)))
            parts.append(part)
        topics.append(TopicData(draw(names), draw(topic_ids), parts))
    return ProduceResponse(draw(st.sampled_from(VERSIONS)), topics)


def by_definition(answer):
    """The same answer, as kafka-python writes it."""
    Topic = producer.ProduceResponse.TopicProduceResponse
    topics = []
    for topic in answer.topics:
        parts = [
            Topic.PartitionProduceResponse(
                version=answer.version,
                index=part.index,
                error_code=part.error_code,
                base_offset=part.base_offset,
                log_append_time_ms=part.log_append_time_ms,
                log_start_offset=part.log_start_offset,
                record_errors=[],
                error_message=part.error_message,
            )
            for part in topic.partitions
        ]
        topics.append(Topic(version=answer.version, name=topic.name, topic_id=topic.topic_id, partition_responses=parts))
    return producer.ProduceResponse(version=answer.version, responses=topics)


@given(answer=answers(), correlation_id=numbers)
def test_an_answer_is_written_as_kafka_python_writes_it(answer, correlation_id):
    expected = by_definition(answer)
    for each in (answer, expected):
        each.with_header(correlation_id=correlation_id)
    assert answer.encode(header=True, framed=True) == bytes(expected.encode(header=True, framed=True))
