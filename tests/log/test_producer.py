"""The producer against the embedded log and a real Kafka; what arrived is read by another client (librdkafka)."""

import contextlib
import threading
import time
import uuid

import numpy as np
import pytest
from kafka.protocol.producer import ProduceRequest

from standalone import wire
from standalone.clock import SYSTEM
from standalone.errors import LogError, LogFatalError, LogRetriableError
from standalone.log.admin import Admin
from standalone.log.client import Cluster
from standalone.log.intake import HeldBack
from standalone.log.produce_request import HIGHEST_VERSION, LOWEST_VERSION, produce_body
from standalone.log.producer import Producer
from tests.suite.patience import PATIENCE_SECONDS

needs_kafka = pytest.mark.kafka


class Run:
    """A producer with its thread, and what happened to each send, in order of completion."""

    def __init__(self, bootstrap, halts=False, **config):
        self.cluster = Cluster({"bootstrap.servers": bootstrap}, SYSTEM)
        self.producer = Producer(self.cluster, {name.replace("_", "."): value for name, value in config.items()}, SYSTEM, halts)
        self.results = []
        self.thread = threading.Thread(target=self.producer.run)
        self.thread.start()

    def send(self, topic, values=None, partition=None, **columns):
        values = wire.ByteColumn.of(values)
        self.producer.send(topic, partition, wire.Records(len(values), values=values, **columns), self.results.append)

    def sent(self, *arguments, **columns):
        """Send and wait: the Delivered."""
        self.send(*arguments, **columns)
        assert self.producer.flush(PATIENCE_SECONDS)
        return self.results[-1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.producer.close(0)
        self.thread.join(PATIENCE_SECONDS)
        self.cluster.close()
        assert not self.thread.is_alive()


@pytest.fixture
def topic():
    return f"produce-{uuid.uuid4()}"


def create(bootstrap, topic, partitions=1, **configs):
    cluster = Cluster({"bootstrap.servers": bootstrap}, SYSTEM)
    with contextlib.closing(cluster):
        Admin(cluster, {}, SYSTEM).create_topics(topic, partitions, 1, {name.replace("_", "."): value for name, value in configs.items()})


def messages(bootstrap, topic, *partitions):
    """{partition: its records as confluent_kafka has them}."""
    from confluent_kafka import Consumer, KafkaError, TopicPartition

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "check", "enable.auto.commit": False, "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
    found = {partition: [] for partition in partitions}
    open_ = set(partitions)
    try:
        while open_:
            for message in consumer.consume(10000, 0.1):
                if message.error() is None:
                    found[message.partition()].append(message)
                elif message.error().code() == KafkaError._PARTITION_EOF:
                    open_.discard(message.partition())
    finally:
        consumer.close()
    return found


def values(bootstrap, topic):
    return [message.value() for message in messages(bootstrap, topic, 0)[0]]


def values_by_partition(bootstrap, topic, partitions):
    found = messages(bootstrap, topic, *range(partitions))
    return {partition: [message.value() for message in found[partition]] for partition in found}


def numbered(low, high):
    return [b"%d" % number for number in range(low, high)]


# ---- the request


@pytest.mark.parametrize("version", range(LOWEST_VERSION, HIGHEST_VERSION + 1))
def test_a_request_is_what_kafka_python_would_write(version):
    batches = [("one", 0, b"a" * 200), ("one", 3, b"b"), ("töpic", 1, b"c" * 70_000)]
    kind = ProduceRequest.TopicProduceData
    topics = [
        kind(name="one", partition_data=[kind.PartitionProduceData(index=0, records=b"a" * 200), kind.PartitionProduceData(index=3, records=b"b")]),
        kind(name="töpic", partition_data=[kind.PartitionProduceData(index=1, records=b"c" * 70_000)]),
    ]
    expected = ProduceRequest(transactional_id=None, acks=-1, timeout_ms=1234, topic_data=topics).encode(version=version)
    assert b"".join(produce_body(version, -1, 1234, batches)) == bytes(expected)


# ---- what arrives


def test_keys_values_headers_and_timestamps_arrive(broker, topic):
    with Run(broker) as run:
        result = run.sent(
            topic,
            [b"one", None, b""],
            keys=wire.ByteColumn.of([b"k", b"", None]),
            headers=[[("a", b"1"), ("a", None)], None, []],
            timestamps=np.array([1000, 2000, 3000]),
        )
    assert result.error is None and result.acks == [(slice(0, 3), 0, 0, -1)]
    found = [(m.key(), m.value(), m.headers(), m.timestamp()[1]) for m in messages(broker, topic, 0)[0]]
    assert found == [
        (b"k", b"one", [("a", b"1"), ("a", None)], 1000),
        (b"", None, None, 2000),
        (None, b"", None, 3000),
    ]


def test_rows_without_a_timestamp_get_the_time_of_their_send(broker, topic):
    before = SYSTEM.now_ms()
    with Run(broker) as run:
        run.sent(topic, [b"a", b"b"], timestamps=np.array([wire.NO_TIMESTAMP, 5]))
    first, second = (message.timestamp()[1] for message in messages(broker, topic, 0)[0])
    assert before <= first <= SYSTEM.now_ms() and second == 5


def test_the_log_s_own_time_is_in_the_acknowledgement(broker, topic):
    create(broker, topic, message_timestamp_type="LogAppendTime")
    with Run(broker) as run:
        ((_, _, _, append_time),) = run.sent(topic, [b"a"]).acks
    assert append_time == messages(broker, topic, 0)[0][0].timestamp()[1]


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_batches_arrive_compressed(broker, topic, compression):
    expected = [b"%d " % number * 20 for number in range(20_000)]
    with Run(broker, compression_type=compression, max_request_size=500_000) as run:
        assert run.sent(topic, expected).error is None
        plain = sum(map(len, expected))
        assert run.producer.counters.bytes < plain / 2 or compression == "none"
    assert values(broker, topic) == expected


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_order_holds_whatever_is_acknowledged(broker, topic, acks):
    create(broker, topic)
    with Run(broker, acks=acks, max_request_size=10_000) as run:
        for low in range(0, 20_000, 1000):
            run.send(topic, numbered(low, low + 1000))
        assert run.producer.flush(PATIENCE_SECONDS)
    assert [result.error for result in run.results] == [None] * 20
    assert values(broker, topic) == numbered(0, 20_000)


def test_small_sends_share_requests_while_one_is_under_way(broker, topic):
    with Run(broker) as run:
        run.sent(topic, [b"first"])
        for number in range(2000):
            run.send(topic, [b"%d" % number])
        assert run.producer.flush(PATIENCE_SECONDS)
        assert run.producer.counters.requests < 1000
    assert values(broker, topic) == [b"first"] + numbered(0, 2000)
    offsets = sorted(offset for result in run.results for _, _, offset, _ in result.acks)
    assert offsets == list(range(2001))


def test_pieces_with_and_without_keys_and_times_share_a_batch_unharmed(broker, topic):
    with Run(broker, linger_ms=1000) as run:
        run.sent(topic, [b"first"])
        run.send(topic, [b"a"], keys=wire.ByteColumn.of([b"k"]))
        run.send(topic, [b"b"], timestamps=np.array([7]))
        run.send(topic, [b"c"], headers=[[("h", b"1")]])
        assert run.producer.flush(PATIENCE_SECONDS)
    found = [(m.key(), m.value(), m.headers()) for m in messages(broker, topic, 0)[0]][1:]
    assert found == [(b"k", b"a", None), (None, b"b", None), (None, b"c", [("h", b"1")])]


def test_no_rows_are_delivered_at_once(broker, topic):
    with Run(broker) as run:
        assert run.sent(topic, []).acks == []


# ---- partitions


def test_keys_go_where_java_s_partitioner_sends_them(broker, topic):
    from confluent_kafka import Producer as Other

    create(broker, topic, 7)
    keys = [b"key-%d" % number for number in range(500)]
    with Run(broker) as run:
        result = run.sent(topic, keys, keys=wire.ByteColumn.of(keys))
    ours = values_by_partition(broker, topic, 7)
    assert {partition: [keys[row] for row in rows] for rows, partition, _, _ in result.acks} == ours
    create(broker, topic + "-other", 7)
    other = Other({"bootstrap.servers": broker, "partitioner": "murmur2_random"})
    for key in keys:
        other.produce(topic + "-other", key, key)
    assert other.flush(10) == 0
    assert ours == values_by_partition(broker, topic + "-other", 7)


def test_rows_without_a_key_keep_together_and_in_order(broker, topic):
    create(broker, topic, 3)
    with Run(broker, max_request_size=20_000) as run:
        for low in range(0, 30_000, 1000):
            run.send(topic, numbered(low, low + 1000))
        assert run.producer.flush(PATIENCE_SECONDS)
    parts = [list(map(int, part)) for part in values_by_partition(broker, topic, 3).values()]
    assert all(parts) and all(part == sorted(part) for part in parts)
    assert sorted(sum(parts, [])) == list(range(30_000))


def test_a_partition_that_is_not_there_is_named(broker, topic):
    create(broker, topic, 2)
    with Run(broker) as run:
        error = run.sent(topic, [b"a"], 5).error
    assert isinstance(error, LogFatalError) and "no partition 5" in str(error) and "0 to 1" in str(error)


# ---- too large


def test_a_record_beyond_max_request_size_fails_alone(broker, topic):
    with Run(broker, max_request_size=1000) as run:
        result = run.sent(topic, [b"a", b"x" * 1000, b"b"])
    assert result.error.java_class == "org.apache.kafka.common.errors.RecordTooLargeException"
    assert topic in str(result.error) and "1082 bytes" in str(result.error) and "max.request.size (1000)" in str(result.error)
    assert [rows.tolist() for rows, _ in result.failed] == [[1]]
    assert values(broker, topic) == [b"a", b"b"]


def test_behind_a_record_that_can_never_be_sent_one_may_want_nothing(broker, topic):
    with Run(broker, halts=True, max_request_size=1000) as run:
        run.send(topic, [b"a"])
        first = run.sent(topic, [b"b", b"x" * 1000, b"c", b"d"])
        second = run.sent(topic, [b"e"])
    assert first.error.java_class == "org.apache.kafka.common.errors.RecordTooLargeException"
    assert [np.arange(4)[rows].tolist() for rows, _ in first.failed] == [[1], [2, 3]]
    assert isinstance(second.error, HeldBack) and isinstance(first.failed[1][1], HeldBack)
    assert values(broker, topic) == [b"a", b"b"]


def test_batches_that_the_topic_finds_too_large_are_split(broker, topic):
    create(broker, topic, max_message_bytes=5000)
    expected = numbered(0, 20_000)
    with Run(broker) as run:
        assert run.sent(topic, expected[:10_000]).error is None
        assert run.sent(topic, expected[10_000:]).error is None
    assert values(broker, topic) == expected


def test_a_record_that_the_topic_finds_too_large_fails_and_the_others_arrive(broker, topic):
    create(broker, topic, max_message_bytes=5000)
    with Run(broker) as run:
        result = run.sent(topic, [b"a", b"x" * 6000, b"b"])
        assert run.sent(topic, [b"c"]).error is None
    assert result.error.java_class == "org.apache.kafka.common.errors.RecordTooLargeException"
    assert [rows for rows, _ in result.failed] == [slice(1, 2)]
    assert values(broker, topic) == [b"a", b"b", b"c"]


# ---- errors


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_records_that_a_compacted_topic_refuses_fail_alone_and_the_others_arrive_in_order(broker, topic, compression):
    create(broker, topic, cleanup_policy="compact")
    keys = [None if row % 50 == 7 else b"k%d" % row for row in range(1000)]
    with Run(broker, compression_type=compression) as run:
        for low in range(0, 1000, 100):
            run.send(topic, numbered(low, low + 100), 0, keys=wire.ByteColumn.of(keys[low : low + 100]))
        assert run.producer.flush(PATIENCE_SECONDS)
        assert run.sent(topic, [b"last"], 0, keys=wire.ByteColumn.of([b"k"])).error is None
    assert values(broker, topic) == [b"%d" % row for row in range(1000) if keys[row] is not None] + [b"last"]
    # A broker may name all bad records of a batch at once, or one after the other.
    rows = [np.concatenate([np.arange(100)[rows] for rows, _ in result.failed]).tolist() for result in run.results[:-1]]
    assert rows == [[7, 57]] * 10
    errors = [error for result in run.results[:-1] for _, error in result.failed]
    assert {error.java_class for error in errors} == {"org.apache.kafka.common.errors.InvalidRecordException"}
    assert all("INVALID_RECORD" in str(error) and "key" in str(error) for error in errors)


def test_a_topic_name_that_is_not_allowed_fails_at_once(broker):
    with Run(broker) as run:
        error = run.sent("no good", [b"a"]).error
    assert isinstance(error, LogFatalError) and error.java_class == "org.apache.kafka.common.errors.InvalidTopicException"
    assert "'no good'" in str(error)


def test_a_broker_that_lost_count_is_given_a_new_sequence(broker, topic):
    with Run(broker) as run:
        run.sent(topic, [b"a"])
        run.producer._sender._queues[topic, 0]._sequence += 7  # a gap, as a log leaves that lost its end
        assert run.sent(topic, [b"b"]).error is None
        assert run.sent(topic, [b"c"]).error is None
    assert values(broker, topic) == [b"a", b"b", b"c"]


def test_a_topic_that_is_made_anew_receives_what_follows(broker, topic):
    create(broker, topic)
    with Run(broker) as run:
        run.sent(topic, [b"old"])
        Admin(run.cluster, {}, SYSTEM).delete_topics(topic)
        assert run.sent(topic, [b"new"]).error is None
        assert run.sent(topic, [b"newer"]).error is None
    assert values(broker, topic) == [b"new", b"newer"]


def test_without_a_broker_records_expire_and_a_full_buffer_turns_away():
    with Run("127.0.0.1:1", delivery_timeout_ms=700, max_block_ms=100, buffer_memory=1000) as run:
        run.send("t", [b"x" * 900])
        with pytest.raises(LogRetriableError, match=r"max.block.ms.*buffer.memory"):
            run.send("t", [b"x" * 900])
        assert run.producer.flush(PATIENCE_SECONDS)
    (result,) = run.results
    assert result.error.java_class == "org.apache.kafka.common.errors.TimeoutException" and "delivery.timeout.ms" in str(result.error)


def test_a_send_larger_than_the_buffer_is_taken_when_the_buffer_is_empty():
    with Run("127.0.0.1:1", buffer_memory=10, delivery_timeout_ms=300) as run:
        run.send("t", [b"x" * 900])
        assert run.producer.flush(PATIENCE_SECONDS)


def test_closing_gives_up_what_is_left_and_frees_who_waits():
    with Run("127.0.0.1:1", buffer_memory=1000) as run:
        run.send("t", [b"x" * 900])
        caught = []

        def blocked():
            try:
                run.send("t", [b"x" * 900])
            except LogError as error:
                caught.append(error)

        waiting = threading.Thread(target=blocked)
        waiting.start()
        assert run.producer.close(0.05) is False
        waiting.join(PATIENCE_SECONDS)
        run.thread.join(PATIENCE_SECONDS)
        with pytest.raises(LogFatalError, match="closed"):
            run.send("t", [b"late"])
    assert len(caught) == 1 and [result.error is not None for result in run.results] == [True]


# ---- outages


def freeze(broker, seconds):
    broker.freeze()
    time.sleep(seconds)  # nothing happens that could be waited for
    broker.thaw()


def kill(broker, seconds):
    broker.kill()
    time.sleep(seconds)
    broker.restart()


def shut_down(broker, seconds):
    broker.shut_down()
    time.sleep(seconds)
    broker.restart()


@needs_kafka
@pytest.mark.parametrize("outage", [freeze, kill, shut_down])
def test_nothing_is_lost_doubled_or_out_of_order_through_an_outage(outage_broker, topic, outage):
    create(outage_broker.bootstrap, topic)
    with Run(outage_broker.bootstrap, max_request_size=20_000, buffer_memory=2_000_000) as run:
        over, sent = threading.Event(), [0]

        def produce():
            while not over.is_set():
                run.send(topic, numbered(sent[0], sent[0] + 500))
                sent[0] += 500
                time.sleep(0.002)

        source = threading.Thread(target=produce)
        source.start()
        while sent[0] < 20_000:
            time.sleep(0.01)
        outage(outage_broker, 2)
        back = time.monotonic()
        acknowledged = run.producer.counters.records
        while run.producer.counters.records == acknowledged:
            assert time.monotonic() - back < PATIENCE_SECONDS, "the broker is back and no record goes through"
            time.sleep(0.01)
        over.set()
        source.join(PATIENCE_SECONDS)
        assert run.producer.flush(PATIENCE_SECONDS)
    assert {result.error for result in run.results} == {None}
    assert values(outage_broker.bootstrap, topic) == numbered(0, sent[0])


@needs_kafka
def test_requests_that_time_out_are_sent_again_and_known_again(outage_broker, topic):
    """The broker stays frozen for longer than request.timeout.ms: the same bytes reach it twice, the log has them once."""
    create(outage_broker.bootstrap, topic)
    cluster_config = {"bootstrap.servers": outage_broker.bootstrap, "request.timeout.ms": 1000}
    with Run(outage_broker.bootstrap, request_timeout_ms=1000, max_request_size=5000) as run:
        run.cluster.config._values.update({"request.timeout.ms": cluster_config["request.timeout.ms"]})
        run.sent(topic, [b"first"])
        outage_broker.freeze()
        run.send(topic, numbered(0, 5000))
        assert not run.producer.flush(2.5)
        outage_broker.thaw()
        assert run.producer.flush(PATIENCE_SECONDS)
        assert run.producer.counters.retried_batches > 0
    assert values(outage_broker.bootstrap, topic) == [b"first"] + numbered(0, 5000)
