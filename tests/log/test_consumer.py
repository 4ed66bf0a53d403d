"""Reading topics, on the embedded log and on a real Kafka, with confluent-kafka as the producer."""

import collections
import logging
import threading
import time
import uuid

import confluent_kafka
import confluent_kafka.admin
import numpy as np
import pytest
from pytest import param

from standalone.clock import SYSTEM
from standalone.errors import ConfigError, LogFatalError
from standalone.log.client import Cluster
from standalone.log.client_config import ConsumerConfig
from standalone.log.consumer import Consumer
from tests.suite.patience import PATIENCE_SECONDS


class Notes:
    def __init__(self):
        self.calls = []

    def on_assigned(self, pairs):
        self.calls.append(("assigned", pairs))

    def on_revoked(self, pairs):
        self.calls.append(("revoked", pairs))

    def on_lost(self, pairs):
        self.calls.append(("lost", pairs))


class Bench:
    """Topics, what is written into them, and consumers, which are closed at the end."""

    def __init__(self, bootstrap):
        self.bootstrap = bootstrap
        self.admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": bootstrap})
        self.open = []
        self.clusters = []

    def topic(self, partitions=1, name=None, **settings):
        name = name or f"consumer-{uuid.uuid4().hex[:8]}"
        config = {key.replace("_", "."): value for key, value in settings.items()}
        self.admin.create_topics([confluent_kafka.admin.NewTopic(name, partitions, 1, config=config)])[name].result()
        return name

    def delete(self, topic):
        self.admin.delete_topics([topic])[topic].result()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while topic in self.admin.list_topics(timeout=5).topics:
            assert time.monotonic() < deadline

    def produce(self, topic, values, partitions=1, **settings):
        """Value n goes to partition n modulo their number."""
        producer = confluent_kafka.Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 1, "enable.idempotence": True, **settings})
        for n, value in enumerate(values):
            producer.produce(topic, value, partition=n % partitions)
        assert producer.flush(PATIENCE_SECONDS) == 0

    def consumer(self, topic=None, group=None, listener=None, pattern=None, **settings):
        settings = {name.replace("_", "."): value for name, value in settings.items()}
        config = ConsumerConfig.of({"bootstrap.servers": self.bootstrap, "auto.offset.reset": "earliest", **settings})
        self.clusters.append(Cluster(config, SYSTEM))
        made = Consumer(self.clusters[-1], config, SYSTEM, group or f"connect-{uuid.uuid4().hex[:8]}", "1", listener)
        made.subscribe([topic] if topic else None, pattern)
        self.open.append(made)
        return made

    def reopen(self, consumer, topic, group, **settings):
        self.open.remove(consumer)
        consumer.close()
        return self.consumer(topic, group, **settings)

    def close(self):
        for consumer in self.open:
            consumer.close()
        for cluster in self.clusters:
            cluster.close()


@pytest.fixture
def bench(broker):
    made = Bench(broker)
    yield made
    made.close()


def numbers(low, high):
    return [b"%d" % n for n in range(low, high)]


def read(consumer, count, seconds=PATIENCE_SECONDS):
    """{pair: values} of at least `count` records; offsets must follow each other."""
    found, last = collections.defaultdict(list), {}
    deadline = time.monotonic() + seconds
    while sum(map(len, found.values())) < count:
        assert time.monotonic() < deadline, {pair: len(values) for pair, values in found.items()}
        for topic, partition, records, _ in consumer.poll(0.2):
            assert np.all(np.diff(records.offsets, prepend=last.get((topic, partition), -1)) > 0)
            last[topic, partition] = records.offsets[-1]
            found[topic, partition] += list(records.values)
    return dict(found)


def read_nothing(consumer, polls=5):
    for _ in range(polls):
        assert consumer.poll(0.05) == []


def until_assigned(consumer, seconds=PATIENCE_SECONDS):
    deadline = time.monotonic() + seconds
    while not consumer.assignment():
        assert time.monotonic() < deadline
        assert consumer.poll(0) == []


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_record_comes_once_in_order_from_each_partition(bench, compression):
    topic = bench.topic(3)
    bench.produce(topic, numbers(0, 30_000), 3, **{"compression.type": compression, "batch.size": 20_000})
    consumer = bench.consumer(topic)
    found = read(consumer, 30_000)
    assert found == {(topic, p): numbers(0, 30_000)[p::3] for p in range(3)}
    assert consumer.lag() == {(topic, p): 0 for p in range(3)}
    assert consumer.position((topic, 1)) == 10_000


def test_many_small_answers_make_the_same_whole(bench):
    topic = bench.topic(4)
    bench.produce(topic, numbers(0, 20_000), 4, **{"batch.size": 2_000})
    consumer = bench.consumer(topic, fetch_max_bytes=5_000, max_partition_fetch_bytes=1_000)
    assert read(consumer, 20_000) == {(topic, p): numbers(0, 20_000)[p::4] for p in range(4)}


def test_what_is_written_later_comes_at_once(bench):
    topic = bench.topic()
    consumer = bench.consumer(topic)
    until_assigned(consumer)
    read_nothing(consumer)
    bench.produce(topic, [b"now"])
    assert read(consumer, 1) == {(topic, 0): [b"now"]}


def test_commits_are_where_the_next_one_begins(bench):
    topic, group = bench.topic(2), f"connect-{uuid.uuid4().hex[:8]}"
    bench.produce(topic, numbers(0, 20), 2)
    consumer = bench.consumer(topic, group)
    read(consumer, 20)
    consumer.commit({(topic, 0): 4, (topic, 1): (7, "a note")}, 10)
    outcome = []
    consumer.commit_async({(topic, 0): 5}, outcome.append)
    consumer.commit({(topic, 1): 6}, 10)
    assert outcome == [None]
    assert consumer.committed([(topic, 0), (topic, 1)]) == {(topic, 0): 5, (topic, 1): 6}
    again = bench.reopen(consumer, topic, group)
    assert read(again, 9) == {(topic, 0): numbers(0, 20)[0::2][5:], (topic, 1): numbers(0, 20)[1::2][6:]}


def test_nothing_committed_is_told_from_something(bench):
    topic = bench.topic(2)
    consumer = bench.consumer(topic)
    until_assigned(consumer)
    consumer.commit({(topic, 0): 0}, 10)
    assert consumer.committed([(topic, 0), (topic, 1)]) == {(topic, 0): 0}


def test_seek_goes_back_and_forth(bench):
    topic = bench.topic()
    bench.produce(topic, numbers(0, 100))
    consumer = bench.consumer(topic)
    assert read(consumer, 100) == {(topic, 0): numbers(0, 100)}
    consumer.seek(topic, 0, 40)
    assert consumer.position((topic, 0)) == 40
    assert read(consumer, 60) == {(topic, 0): numbers(40, 100)}
    consumer.seek(topic, 0, 99)
    assert read(consumer, 1) == {(topic, 0): numbers(99, 100)}
    with pytest.raises(LogFatalError, match="not assigned"):
        consumer.seek(topic, 5, 0)


class SeekAtOnce(Notes):
    """Begins at its own offset, as a sink does that keeps its offsets with its data."""

    def on_assigned(self, pairs):
        super().on_assigned(pairs)
        self.positions = {pair: self.consumer.position(pair) for pair in pairs}
        for topic, partition in pairs:
            self.consumer.seek(topic, partition, 7)


def test_a_listener_may_ask_for_positions_and_seek(bench):
    topic = bench.topic(2)
    bench.produce(topic, numbers(0, 20), 2)
    listener = SeekAtOnce()
    listener.consumer = consumer = bench.consumer(topic, listener=listener)
    assert read(consumer, 6) == {(topic, 0): numbers(0, 20)[0::2][7:], (topic, 1): numbers(0, 20)[1::2][7:]}
    assert listener.positions == {(topic, 0): 0, (topic, 1): 0}


def test_paused_partitions_are_silent_and_lose_nothing(bench):
    """Paused and resumed at random while answers are under way."""
    topic = bench.topic(2)
    bench.produce(topic, numbers(0, 40_000), 2, **{"batch.size": 5_000})
    consumer = bench.consumer(topic, fetch_max_bytes=40_000, max_partition_fetch_bytes=20_000)
    until_assigned(consumer)
    pairs, found = consumer.assignment(), collections.defaultdict(list)
    choice = np.random.default_rng(1)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while sum(map(len, found.values())) < 40_000:
        assert time.monotonic() < deadline
        paused = [pair for pair in pairs if choice.integers(2)]
        consumer.resume(pairs)
        consumer.pause(paused)
        assert consumer.paused() == paused
        for topic, partition, records, _ in consumer.poll(0.01):
            assert (topic, partition) not in paused
            found[topic, partition] += list(records.values)
    assert found == {(topic, p): numbers(0, 40_000)[p::2] for p in range(2)}
    consumer.pause(pairs)
    bench.produce(topic, [b"more"])
    read_nothing(consumer)
    consumer.resume(pairs)
    assert read(consumer, 1) == {(topic, 0): [b"more"]}


def test_an_expression_matches_whole_names_and_new_topics_are_found(bench):
    prefix = uuid.uuid4().hex[:8]
    first = bench.topic(name=f"{prefix}-orders")
    bench.topic(name=f"{prefix}-orders-old")
    bench.produce(first, [b"1"])
    consumer = bench.consumer(pattern=f"{prefix}-(orders|bills)", metadata_max_age_ms=200)
    assert read(consumer, 1) == {(first, 0): [b"1"]}
    second = bench.topic(name=f"{prefix}-bills")
    bench.produce(second, [b"2"])
    found = read(consumer, 1)
    assert found[second, 0] == [b"2"]
    assert consumer.assignment() == sorted([(first, 0), (second, 0)])


@pytest.mark.parametrize(
    "excluded, wanted",
    [
        param("true", [], id="left out"),
        param(
            *("false", ["__consumer_offsets"]),
            id="asked for",
            marks=pytest.mark.differs("embedded", reason="it keeps offsets of groups in a table, not in a topic", raises=AssertionError),
        ),
    ],
)
def test_internal_topics_are_left_out_unless_asked_for(bench, excluded, wanted):
    topic = bench.topic()
    primer = bench.consumer(topic)
    until_assigned(primer)  # so that there is a topic of offsets
    consumer = bench.consumer(pattern=f"__consumer_offsets|{topic}", exclude_internal_topics=excluded)
    until_assigned(consumer)
    assert {name for name, _ in consumer.assignment()} == {topic, *wanted}


def test_what_is_no_expression_is_named(kafka_less):
    with pytest.raises(ConfigError, match="topics.regex"):
        kafka_less.subscribe(pattern="a(")


@pytest.mark.parametrize("settings, key", [
    ({"auto.offset.reset": "first"}, "auto.offset.reset"),
    ({"partition.assignment.strategy": "Mine"}, "partition.assignment.strategy"),
])
def test_settings_that_cannot_be_are_named(settings, key):
    with pytest.raises(ConfigError, match=key):
        config = ConsumerConfig.of({"bootstrap.servers": "127.0.0.1:1", **settings})
        Consumer(Cluster(config, SYSTEM), config, SYSTEM, "group")


@pytest.fixture
def kafka_less():
    """A consumer whose broker is not there."""
    config = ConsumerConfig.of({"bootstrap.servers": "127.0.0.1:1", "retry.backoff.ms": "10"})
    made = Consumer(Cluster(config, SYSTEM), config, SYSTEM, "group")
    yield made
    made.close()


def test_without_a_broker_polls_come_back_empty_and_say_so_once(kafka_less, caplog):
    kafka_less.subscribe(["topic"])
    with caplog.at_level(logging.INFO, "standalone"):
        for _ in range(3):
            assert kafka_less.poll(0.3) == []
    assert len([line for line in caplog.messages if "127.0.0.1:1" in line]) == 1


def test_a_topic_that_is_not_there_yet_is_waited_for(bench, caplog):
    topic = f"late-{uuid.uuid4().hex[:8]}"
    consumer = bench.consumer(topic, allow_auto_create_topics="false")
    with caplog.at_level(logging.INFO, "standalone"):
        for _ in range(3):
            assert consumer.poll(0.5) == []
    assert [line for line in caplog.messages if topic in line] == [f"Topic {topic} does not exist yet; waiting for it."]
    bench.topic(name=topic)
    bench.produce(topic, [b"here"])
    assert read(consumer, 1) == {(topic, 0): [b"here"]}


@pytest.mark.parametrize("reset, first", [("earliest", b"0"), ("latest", b"10")])
def test_without_a_commit_the_reset_policy_says_where_to_begin(bench, reset, first):
    topic = bench.topic()
    bench.produce(topic, numbers(0, 10))
    consumer = bench.consumer(topic, auto_offset_reset=reset)
    until_assigned(consumer)
    consumer.position((topic, 0))
    bench.produce(topic, numbers(10, 11))
    assert read(consumer, 1)[topic, 0][0] == first


def test_without_a_commit_or_a_policy_there_is_no_position(bench):
    topic = bench.topic()
    consumer = bench.consumer(topic, auto_offset_reset="none")
    with pytest.raises(LogFatalError, match=f"{topic}-0.*auto.offset.reset=none"):
        read(consumer, 1)


@pytest.mark.parametrize(
    "position, reset, expected",
    [
        param(2, "earliest", numbers(6, 10), id="deleted by retention, earliest"),
        param(2, "latest", [], id="deleted by retention, latest"),
        param(50, "earliest", numbers(6, 10), id="beyond the end, earliest"),
        param(50, "latest", numbers(6, 10), id="beyond the end, latest: the log was recreated, nothing of it was read"),
    ],
)
def test_a_position_that_the_log_does_not_have(bench, caplog, position, reset, expected):
    topic = bench.topic()
    bench.produce(topic, numbers(0, 10))
    bench.admin.delete_records([confluent_kafka.TopicPartition(topic, 0, 6)])[confluent_kafka.TopicPartition(topic, 0)].result()
    consumer = bench.consumer(topic, auto_offset_reset=reset)
    until_assigned(consumer)
    consumer.seek(topic, 0, position)
    found = []
    with caplog.at_level(logging.WARNING, "standalone"):
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not any(f"{topic}-0" in line for line in caplog.messages):  # the one that says where it continued
            assert time.monotonic() < deadline
            found += [value for fetched in consumer.poll(0.01) for value in fetched.records.values]
        bench.produce(topic, [b"new"])
        found += read(consumer, len(expected) + 1 - len(found))[topic, 0]
    assert found == expected + [b"new"]
    assert len([line for line in caplog.messages if f"{topic}-0" in line]) == 1


def test_a_topic_made_anew_while_it_is_read_is_read_from_its_beginning(bench, caplog):
    topic, listener = bench.topic(), Notes()
    bench.produce(topic, numbers(0, 100))
    consumer = bench.consumer(topic, listener=listener)
    read(consumer, 100)
    consumer.commit({(topic, 0): 100}, 10)
    bench.delete(topic)
    bench.topic(name=topic)
    bench.produce(topic, numbers(1000, 1200))  # more than was read of the old one
    assert read(consumer, 200) == {(topic, 0): numbers(1000, 1200)}
    assert [call for call, _ in listener.calls][-2:] in (["lost", "assigned"], ["revoked", "assigned"])
    consumer.commit({(topic, 0): 200}, 10)
    assert consumer.committed([(topic, 0)]) == {(topic, 0): 200}


def test_a_topic_made_anew_while_nobody_looked_is_read_from_its_beginning(bench, caplog):
    """Its broker forgets the commits of a deleted topic; one that came too late, or a broker that does not, must not skip records."""
    topic, group = bench.topic(), f"connect-{uuid.uuid4().hex[:8]}"
    bench.produce(topic, numbers(0, 20))
    consumer = bench.consumer(topic, group)
    read(consumer, 20)
    consumer.commit({(topic, 0): (10, f"{consumer._cluster.cluster_id()}/{uuid.uuid4()}")}, 10)  # as committed for another topic of this name
    with caplog.at_level(logging.WARNING, "standalone"):
        again = bench.reopen(consumer, topic, group)
        assert read(again, 20) == {(topic, 0): numbers(0, 20)}
    assert any("recreated" in line for line in caplog.messages)


def test_a_deleted_topic_does_not_hold_up_the_others_nor_the_commits(bench):
    kept, deleted = bench.topic(), bench.topic()
    consumer = bench.consumer(kept, allow_auto_create_topics="false")
    consumer.subscribe([kept, deleted])
    bench.produce(kept, [b"1"])
    bench.produce(deleted, [b"2"])
    read(consumer, 2)
    bench.delete(deleted)
    bench.produce(kept, [b"3"])
    assert read(consumer, 1) == {(kept, 0): [b"3"]}
    consumer.commit({(kept, 0): 2, (deleted, 0): 1}, 10)
    assert consumer.committed([(kept, 0)]) == {(kept, 0): 2}


def test_wakeup_ends_a_poll(bench):
    topic = bench.topic()
    consumer = bench.consumer(topic)
    until_assigned(consumer)
    threading.Timer(0.2, consumer.wakeup).start()
    begun = time.monotonic()
    assert consumer.poll(60) == []
    assert time.monotonic() - begun < 20
    consumer.wakeup()
    begun = time.monotonic()
    assert consumer.poll(60) == []
    assert time.monotonic() - begun < 20


def test_offsets_of_the_log_can_be_asked_for(bench):
    topic = bench.topic(2)
    bench.produce(topic, numbers(0, 5), 2)
    consumer = bench.consumer(topic)
    both = [(topic, 0), (topic, 1)]
    assert consumer.end_offsets(both) == {(topic, 0): 3, (topic, 1): 2}
    assert consumer.beginning_offsets(both) == {(topic, 0): 0, (topic, 1): 0}
    with pytest.raises(LogFatalError, match="no partition 9"):
        consumer.end_offsets([(topic, 9)])
    read(consumer, 5)
    bench.produce(topic, numbers(0, 3))
    consumer.pause(both)
    assert consumer.end_offsets(both[:1]) == {(topic, 0): 6}


def test_partitions_may_be_assigned_without_a_group(bench):
    topic = bench.topic(2)
    bench.produce(topic, numbers(0, 10), 2)
    config = ConsumerConfig.of({"bootstrap.servers": bench.bootstrap, "auto.offset.reset": "earliest"})
    consumer = Consumer(Cluster(config, SYSTEM), config, SYSTEM)
    bench.open.append(consumer)
    consumer.assign([(topic, 1)])
    assert read(consumer, 5) == {(topic, 1): numbers(0, 10)[1::2]}


@pytest.mark.parametrize("isolation, expected", [
    ("read_committed", [b"before", b"kept", b"after"]),
    ("read_uncommitted", [b"before", b"dropped", b"kept", b"after"]),
])
def test_aborted_transactions_are_left_out_where_asked_for(bench, isolation, expected):
    topic = bench.topic()
    bench.produce(topic, [b"before"])
    producer = confluent_kafka.Producer({"bootstrap.servers": bench.bootstrap, "transactional.id": topic})
    producer.init_transactions(PATIENCE_SECONDS)
    for value, end in ((b"dropped", producer.abort_transaction), (b"kept", producer.commit_transaction)):
        producer.begin_transaction()
        producer.produce(topic, value, partition=0)
        producer.flush()
        end(PATIENCE_SECONDS)
    bench.produce(topic, [b"after"])
    consumer = bench.consumer(topic, isolation_level=isolation)
    assert read(consumer, len(expected)) == {(topic, 0): expected}
    read_nothing(consumer, 2)
    assert consumer.lag() == {(topic, 0): 0}


def test_connections_that_break_lose_and_double_nothing(bench, caplog):
    topic = bench.topic(2)
    bench.produce(topic, numbers(0, 40_000), 2, **{"batch.size": 5_000})
    consumer = bench.consumer(topic, fetch_max_bytes=40_000, max_partition_fetch_bytes=20_000)
    found, broken = collections.defaultdict(list), 0
    deadline = time.monotonic() + PATIENCE_SECONDS
    with caplog.at_level(logging.INFO, "standalone"):
        while sum(map(len, found.values())) < 40_000:
            assert time.monotonic() < deadline
            for topic, partition, records, _ in consumer.poll(0.05):
                found[topic, partition] += list(records.values)
                if len(found[topic, partition]) // 4_000 > broken:
                    broken += 1
                    consumer._leaders.links[0].connection.abort()
    assert found == {(topic, p): numbers(0, 40_000)[p::2] for p in range(2)}
    lost = [line for line in caplog.messages if "is lost" in line]
    assert 3 < broken and broken - 1 <= len(lost) <= broken  # the last one may not have been noticed


def wait_patiently(consumer):
    """As after a long time without records: the fetch under way waits for LONGEST_WAIT_MS."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    leaders = consumer._leaders._leaders
    while not any(leader.fetching and leader.waits_long for leader in leaders.values()):
        assert time.monotonic() < deadline
        for leader in leaders.values():
            leader.empty_fetches = 10
        assert consumer.poll(0.05) == []


def within_patience(act):
    begun = time.monotonic()
    found = act()
    assert time.monotonic() - begun < PATIENCE_SECONDS - 10
    return found


def test_however_patient_a_fetch_is_nothing_waits_for_it(bench, monkeypatch):
    monkeypatch.setattr("standalone.log.consumer.LONGEST_WAIT_MS", PATIENCE_SECONDS * 1000)
    topic = bench.topic(2)
    bench.produce(topic, numbers(0, 10), 2)
    consumer = bench.consumer(topic, request_timeout_ms=2 * PATIENCE_SECONDS * 1000)
    both = read(consumer, 10)
    wait_patiently(consumer)
    bench.produce(topic, [b"new"])
    assert within_patience(lambda: read(consumer, 1)) == {(topic, 0): [b"new"]}
    wait_patiently(consumer)
    consumer.seek(topic, 1, 0)
    assert within_patience(lambda: read(consumer, 5)) == {(topic, 1): both[topic, 1]}
    consumer.pause([(topic, 1)])
    wait_patiently(consumer)
    bench.produce(topic, [b"", b"paused"], 2)
    assert within_patience(lambda: read(consumer, 1)) == {(topic, 0): [b""]}
    wait_patiently(consumer)
    consumer.resume([(topic, 1)])
    assert within_patience(lambda: read(consumer, 1)) == {(topic, 1): [b"paused"]}
    wait_patiently(consumer)
    assert within_patience(lambda: consumer.end_offsets([(topic, 0), (topic, 1)])) == {(topic, 0): 7, (topic, 1): 6}
    bench.produce(topic, [b"last"])
    assert within_patience(lambda: read(consumer, 1)) == {(topic, 0): [b"last"]}


@pytest.mark.parametrize("settings", [{"fetch_max_wait_ms": 100}, {"fetch_min_bytes": 100}], ids=["its own wait", "records that are to gather"])
def test_who_says_how_long_a_fetch_may_wait_is_heard(bench, settings):
    topic = bench.topic()
    bench.produce(topic, [b"a"])
    consumer = bench.consumer(topic, **settings)
    read(consumer, 1)
    for _ in range(10):
        for leader in consumer._leaders._leaders.values():
            leader.empty_fetches = 10
            assert not leader.waits_long
        assert consumer.poll(0.1) == []


def test_a_consumer_with_nothing_to_read_costs_next_to_nothing(bench):
    topic = bench.topic()
    consumer = bench.consumer(topic)
    until_assigned(consumer)
    read_nothing(consumer)
    begun = time.thread_time()
    assert consumer.poll(3) == []
    assert time.thread_time() - begun < 0.03  # 0.6 s in a minute


@pytest.mark.kafka
def test_a_broker_that_freezes_or_dies_is_waited_for(outage_broker, caplog):
    bench = Bench(outage_broker.bootstrap)
    topic = bench.topic()
    group = f"connect-{uuid.uuid4().hex[:8]}"
    consumer = bench.consumer(topic, group)
    bench.produce(topic, numbers(0, 10))
    found = read(consumer, 10)[topic, 0]
    outage_broker.freeze()
    thaw = threading.Timer(3, outage_broker.thaw)
    thaw.start()
    begun = time.monotonic()
    assert consumer.poll(0.5) == []
    assert time.monotonic() - begun < 2.5
    thaw.join()
    bench.produce(topic, numbers(10, 20))
    found += read(consumer, 10)[topic, 0]
    outage_broker.kill()
    with caplog.at_level(logging.WARNING, "standalone"):
        for _ in range(3):
            assert consumer.poll(0.5) == []
    assert 0 < len(caplog.messages) <= 3
    outage_broker.restart()
    bench.produce(topic, numbers(20, 30))
    found += read(consumer, 10)[topic, 0]
    assert found == numbers(0, 30)
    consumer.commit({(topic, 0): 30}, PATIENCE_SECONDS)
    bench.close()
