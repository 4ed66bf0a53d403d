"""Faults of brokers and networks, scripted on a fake cluster: what a client does when what it is told is odd, late or wrong."""

import contextlib
import logging
import time

import pytest
from kafka.protocol.consumer import FetchRequest, HeartbeatRequest, JoinGroupRequest, OffsetForLeaderEpochRequest
from kafka.protocol.metadata import FindCoordinatorRequest, MetadataRequest
from kafka.protocol.producer import InitProducerIdRequest, ProduceRequest

from standalone.clock import SYSTEM
from standalone.errors import LogFatalError
from standalone.log import record_batch
from standalone.log.client import Cluster, Clusters
from standalone.log.intake import HeldBack
from tests.log.client_runs import Reader, Writer, beating, fill, until
from tests.servers import fake_broker as fake

# ---- the fake itself


def test_what_is_produced_is_read_and_committed():
    with fake.FakeCluster(nodes=2) as cluster:
        cluster.make("t")
        fill(cluster, "t", [b"a", b"b"])
        with Reader(cluster, "t", group="g") as reader:
            assert reader.read(2) == [b"a", b"b"]
            reader.consumer.commit({("t", 0): 2})
        assert cluster.commits["g", "t", 0][0] == 2


# ---- a preferred replica (KIP-392)


def prefer(number):
    """The leader sends everybody to a replica, and gives no records itself."""

    def fetch(call):
        answer = call.node.cluster._Fetch(call)
        for part in (part for topic in answer.responses for part in topic.partitions):
            if call.node.id != number:
                part.preferred_read_replica, part.records = number, b""
        return answer

    return fetch


def test_a_consumer_reads_from_the_replica_that_the_leader_prefers():
    with fake.FakeCluster(nodes=2, racks=("east", "west")) as cluster:
        cluster.make("t")
        fill(cluster, "t", [b"a", b"b"])
        cluster.control(FetchRequest, prefer(2))
        with Reader(cluster, "t", client_rack="west") as reader:
            assert reader.read(2) == [b"a", b"b"]
            asked = len(cluster.seen(FetchRequest, node=1))
            fill(cluster, "t", [b"c"])
            assert reader.read(3)[2:] == [b"c"]
            assert len(cluster.seen(FetchRequest, node=1)) == asked, "the leader was asked again"


def test_a_consumer_goes_back_to_the_leader_when_the_replica_fails():
    with fake.FakeCluster(nodes=2, racks=("east", "west")) as cluster:
        cluster.make("t")
        fill(cluster, "t", [b"a"])
        cluster.control(FetchRequest, prefer(2))
        with Reader(cluster, "t", client_rack="west", reconnect_backoff_ms=10) as reader:
            assert reader.read(1) == [b"a"]
            cluster.control(FetchRequest, None)
            cluster.node(2).stop()
            fill(cluster, "t", [b"b"])
            assert reader.read(2) == [b"a", b"b"]


def test_an_offset_that_the_replica_does_not_have_yet_is_asked_of_the_leader():
    with fake.FakeCluster(nodes=2, racks=("east", "west")) as cluster:
        cluster.make("t")
        fill(cluster, "t", [b"a", b"b"])
        redirected = []

        def fetch(call):
            answer = call.node.cluster._Fetch(call)
            (part,) = (part for topic in answer.responses for part in topic.partitions)
            if call.node.id == 2:
                part.error_code, part.records = fake.OFFSET_OUT_OF_RANGE, b""
            elif not redirected:
                redirected.append(call)
                part.preferred_read_replica, part.records = 2, b""
            return answer

        cluster.control(FetchRequest, fetch)
        with Reader(cluster, "t", client_rack="west", auto_offset_reset="none") as reader:
            reader.consumer.seek("t", 0, 1)
            assert reader.read(1) == [b"b"]


# ---- heartbeats


def _join(reader, assigned):
    until(lambda: reader.consumer.poll(0.05) is None or reader.consumer.assignment(), "the assignment")
    assigned.append(reader)


def test_a_coordinator_that_is_away_costs_only_its_own_groups_their_heartbeats():
    settings = {"heartbeat_interval_ms": 200, "reconnect_backoff_ms": 10, "retry_backoff_max_ms": 100}
    with fake.FakeCluster(nodes=2) as cluster, beating() as (heartbeats, _):
        cluster.make("t")
        cluster.coordinators = {f"away-{n}": 2 for n in range(4)} | {f"here-{n}": 1 for n in range(4)}
        clusters = Cluster({"bootstrap.servers": cluster.bootstrap}, SYSTEM)
        with contextlib.ExitStack() as stack:
            readers = [stack.enter_context(Reader(cluster, "t", group, heartbeats, **settings)) for group in cluster.coordinators]
            for reader in readers:  # all of one cluster, as those of a worker are
                reader.consumer._group.cluster = readers[0].cluster
                _join(reader, [])
            until(lambda: {call.message.group_id for call in cluster.seen(HeartbeatRequest)} == set(cluster.coordinators), "all heartbeats")
            cluster.control(FindCoordinatorRequest, lambda call: call.answer(error_code=15, coordinators=[]) if _asks_for_away(call) else None)
            cluster.node(2).stop()
            begun = time.monotonic()
            until(lambda: time.monotonic() > begun + 2, "two seconds")
            times = [call.at for call in cluster.seen(HeartbeatRequest, node=1) if call.message.group_id == "here-0" and call.at > begun]
            assert len(times) >= 5 and max(b - a for a, b in zip(times, times[1:])) < 1.0, [at - begun for at in times]
        clusters.close()


def test_a_dead_coordinator_holds_up_no_records():
    """Its address takes connections and says nothing."""
    with fake.FakeCluster(nodes=2) as cluster:
        cluster.make("t")
        cluster.coordinators = {"g": 2}
        with Reader(cluster, "t", "g") as reader:
            _join(reader, [])
            cluster.control(fake.ApiVersionsRequest, lambda call: fake.SILENCE if call.node.id == 2 else None)
            cluster.node(2).stop()
            cluster.node(2).start()
            reader.consumer.commit_async({("t", 0): 0}, lambda error: None)
            slowest = 0.0
            for number in range(10):
                fill(cluster, "t", [b"%d" % number])
                begun = time.monotonic()
                reader.read(number + 1)
                reader.consumer.commit_async({("t", 0): number}, lambda error: None)
                slowest = max(slowest, time.monotonic() - begun)
            assert slowest < 8  # a connection would be waited for for 10


def _asks_for_away(call):
    return any(key.startswith("away") for key in (call.message.coordinator_keys or [call.message.key]))


@pytest.mark.parametrize("garbage", [b"", b"\x00", b"\xff" * 40], ids=["nothing", "too short", "garbage"])
def test_a_malformed_answer_ends_no_heartbeats(garbage):
    with fake.FakeCluster() as cluster, beating() as (heartbeats, thread):
        cluster.make("t")
        bad = []

        def heartbeat(call):
            if call.message.group_id == "bad" and len(bad) < 3:
                bad.append(call)
                return garbage
            return None

        cluster.control(HeartbeatRequest, heartbeat)
        settings = {"heartbeat_interval_ms": 100, "reconnect_backoff_ms": 10, "retry_backoff_max_ms": 50}
        with Reader(cluster, "t", "bad", heartbeats, **settings) as one, Reader(cluster, "t", "good", heartbeats, **settings) as other:
            for reader in (one, other):
                _join(reader, [])
            until(lambda: len(bad) == 3, "three bad answers")
            after = time.monotonic()
            until(lambda: {c.message.group_id for c in cluster.seen(HeartbeatRequest) if c.at > after} == {"bad", "good"}, "heartbeats of both")
            assert thread.is_alive()


@pytest.mark.parametrize("kind", [MetadataRequest, ProduceRequest, InitProducerIdRequest], ids=lambda kind: kind.__name__)
def test_a_producer_lives_through_a_malformed_answer(kind):
    with fake.FakeCluster() as cluster:
        cluster.make("t")
        garbled = []

        def answer(call):
            garbled.append(call)
            return b"\xff" * 40 if len(garbled) == 1 else None

        cluster.control(kind, answer)
        with Writer(cluster.bootstrap, retry_backoff_ms=10, reconnect_backoff_ms=10) as writer:
            done = writer.send("t", [b"a"])
            until(lambda: done, "the acknowledgement")
            assert done[0].error is None and len(garbled) >= 2


@pytest.mark.parametrize("kind", [MetadataRequest, FetchRequest, JoinGroupRequest], ids=lambda kind: kind.__name__)
def test_a_consumer_lives_through_a_malformed_answer(kind):
    with fake.FakeCluster() as cluster:
        cluster.make("t")
        fill(cluster, "t", [b"a"])
        garbled = []

        def answer(call):
            garbled.append(call)
            return b"\xff" * 40 if len(garbled) == 1 else None

        cluster.control(kind, answer)
        with Reader(cluster, "t", "g", retry_backoff_ms=10, reconnect_backoff_ms=10) as reader:
            assert reader.read(1) == [b"a"] and len(garbled) >= 2


# ---- commits that another cluster's mirror carried over


def test_a_commit_marked_by_another_cluster_is_not_taken_for_a_topic_made_anew():
    with fake.FakeCluster(cluster_id="east") as east, fake.FakeCluster(cluster_id="west") as west:
        for cluster in (east, west):
            cluster.make("t")
            fill(cluster, "t", [b"a", b"b", b"c"])
        with Reader(east, "t", "g") as reader:
            reader.read(3)
            reader.consumer.commit({("t", 0): 2})
        west.commits = dict(east.commits)  # as MirrorMaker 2 copies them
        with Reader(west, "t", "g") as reader:
            assert reader.read(1) == [b"c"]


def test_a_topic_made_anew_on_the_same_cluster_is_read_from_its_beginning():
    with fake.FakeCluster() as cluster:
        cluster.make("t")
        fill(cluster, "t", [b"a", b"b", b"c"])
        with Reader(cluster, "t", "g") as reader:
            reader.read(3)
            reader.consumer.commit({("t", 0): 2})
        cluster.make("t")
        fill(cluster, "t", [b"x", b"y", b"z"])
        with Reader(cluster, "t", "g") as reader:
            assert reader.read(3) == [b"x", b"y", b"z"]


# ---- leader epochs (KIP-320)


def test_records_that_a_new_leader_does_not_have_are_told(caplog):
    with fake.FakeCluster() as cluster:
        log = cluster.make("t")[0]
        fill(cluster, "t", [b"a"])
        fill(cluster, "t", [b"b"])
        with Reader(cluster, "t", metadata_max_age_ms=200) as reader:
            assert reader.read(2) == [b"a", b"b"]
            with caplog.at_level(logging.WARNING, "standalone.log"):
                log.epoch = 2  # an unclean election: the new leader has the first record only
                log.cut(1)
                fill(cluster, "t", [b"B", b"C"])  # as many as were read, and one more: the offset is in range again
                assert reader.read(4)[2:] == [b"B", b"C"]
        assert cluster.seen(OffsetForLeaderEpochRequest)
        assert any("truncated" in record.getMessage() and "offset 1" in record.getMessage() for record in caplog.records)


def test_a_leader_s_epoch_goes_along_with_fetches_and_commits():
    with fake.FakeCluster() as cluster:
        log = cluster.make("t")[0]
        log.epoch = 7
        fill(cluster, "t", [b"a"])
        with Reader(cluster, "t", "g") as reader:
            reader.read(1)
            reader.consumer.commit({("t", 0): 1})
            reader.consumer.poll(0.1)
        (part,) = cluster.seen(FetchRequest)[-1].message.topics[0].partitions
        assert part.current_leader_epoch == 7
        assert cluster.commits["g", "t", 0][:2] == (1, 7)


# ---- what a producer sends


def test_the_client_id_of_each_connector_is_on_the_wire():
    with fake.FakeCluster() as cluster:
        cluster.make("t")
        clusters = Clusters(SYSTEM)
        with Writer(cluster.bootstrap, clusters, client_id="one") as one, Writer(cluster.bootstrap, clusters, client_id="two") as two:
            for writer in (one, two):
                done = writer.send("t", [b"a"])
                until(lambda: done, "the acknowledgement")
        assert {call.client_id for call in cluster.seen(ProduceRequest)} == {"one", "two"}
        assert {call.client_id for call in cluster.seen(InitProducerIdRequest)} == {"one", "two"}


def test_retries_of_zero_send_a_batch_once():
    with fake.FakeCluster() as cluster:
        cluster.make("t")
        cluster.control(ProduceRequest, lambda call: fake.HANG_UP)
        with Writer(cluster.bootstrap, retries="0", enable_idempotence="false", reconnect_backoff_ms=10) as writer:
            done = writer.send("t", [b"a"])
            until(lambda: done, "the failure")
            assert done[0].error is not None
        assert len(cluster.seen(ProduceRequest)) == 1


def test_each_reason_for_trying_again_is_told_once(caplog):
    """A time-out may be the first sign of too few replicas: the second must be told, too."""
    refusals = [7, 19, 7, 19, 19, 7]  # REQUEST_TIMED_OUT, NOT_ENOUGH_REPLICAS

    def produce(call):
        if not refusals:
            return None
        topics = [{"name": topic.name, "partition_responses": [
            {"index": part.index, "error_code": refusals.pop(0), "base_offset": -1, "log_append_time_ms": -1, "log_start_offset": 0,
             "record_errors": [], "error_message": None} for part in topic.partition_data]} for topic in call.message.topic_data]
        return fake.build(call.answer(throttle_time_ms=0), {"responses": topics})

    with fake.FakeCluster() as cluster:
        cluster.make("t")
        cluster.control(ProduceRequest, produce)
        with caplog.at_level(logging.WARNING, "standalone.log.sender"), Writer(cluster.bootstrap, retry_backoff_ms=1) as writer:
            done = writer.send("t", [b"a"])
            until(lambda: done, "the acknowledgement")
    told = [record.getMessage() for record in caplog.records if "is retried" in record.getMessage()]
    assert ["REQUEST_TIMED_OUT" in told[0], "NOT_ENOUGH_REPLICAS" in told[1]] == [True, True] and len(told) == 2, told


def too_large(limit):
    """A topic that refuses batches of more than so many bytes."""

    def produce(call):
        if _largest(call) <= limit:
            return None
        topics = [{"name": topic.name, "partition_responses": [
            {"index": part.index, "error_code": 10, "base_offset": -1, "log_append_time_ms": -1, "log_start_offset": 0, "record_errors": [],
             "error_message": None} for part in topic.partition_data]} for topic in call.message.topic_data]
        return fake.build(call.answer(throttle_time_ms=0), {"responses": topics})

    return produce


def _largest(call):
    return max(len(part.records) for topic in call.message.topic_data for part in topic.partition_data)


def values_in(log):
    """Of all batches of a partition, in order."""
    found = []
    for _, _, _, data in log.batches:
        for records in record_batch.unpack(data, from_offset=0, check_crc=False, isolation="read_uncommitted", aborted=()).records:
            found += list(records.values)
    return found


@pytest.mark.parametrize("in_one", [True, False], ids=["in one send", "each in a send"])
def test_nothing_goes_behind_a_record_that_the_topic_finds_too_large(in_one):
    values = [b"%03d" % n for n in range(40)] + [b"x" * 5000] + [b"%03d" % n for n in range(41, 80)]
    with fake.FakeCluster() as cluster:
        log = cluster.make("t")[0]
        cluster.control(ProduceRequest, too_large(2000))
        with Writer(cluster.bootstrap, halts=True, linger_ms=50) as writer:
            done = [writer.send("t", values)] if in_one else [writer.send("t", [value]) for value in values]
            until(lambda: all(done), "the outcome")
        failed = [error for one in done for _, error in one[0].failed]
        assert [type(error) for error in failed if not isinstance(error, HeldBack)] == [LogFatalError]
        assert values_in(log) == values[:40]


def test_one_dead_broker_holds_up_no_other():
    """Its address takes connections and says nothing: each attempt lasts socket.connection.setup.timeout.ms."""
    with fake.FakeCluster(nodes=2) as cluster:
        cluster.make("t", partitions=2)
        with Writer(cluster.bootstrap) as writer:
            done = writer.send("t", [b"a"], 0)
            until(lambda: done, "the first acknowledgement")
            cluster.control(fake.ApiVersionsRequest, lambda call: fake.SILENCE if call.node.id == 2 else None)
            stuck = writer.send("t", [b"b"], 1)
            until(lambda: [call for call in cluster.seen(fake.ApiVersionsRequest, node=2)], "an attempt at the dead broker")
            slowest = 0.0
            for _ in range(20):
                begun = time.monotonic()
                done = writer.send("t", [b"c"], 0)
                until(lambda: done, "an acknowledgement")
                slowest = max(slowest, time.monotonic() - begun)
            assert slowest < 8 and not stuck  # a connection would be waited for for 10
