"""Membership of a consumer group: sharing partitions, coming back, leaving, being thrown out; on the embedded log and on a real Kafka."""

import contextlib
import threading
import time
import uuid
from types import SimpleNamespace

import confluent_kafka
import confluent_kafka.admin
import pytest
from kafka.protocol.consumer import LeaveGroupRequest
from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription
from pytest import param

from standalone.clock import SYSTEM
from standalone.errors import ConfigError, LogFatalError, LogRetriableError
from standalone.log.assignment import STRATEGIES, Assignment
from standalone.log.client import Cluster
from standalone.log.client_config import ConsumerConfig
from standalone.log.consumer import Consumer
from standalone.log.heartbeats import Heartbeats
from tests.suite.patience import PATIENCE_SECONDS

# Assignment, by itself


def member(name, instance, *topics):
    """As a JoinGroup answer reports a member."""
    wants = ConsumerProtocolSubscription(0, list(topics), b"")
    return SimpleNamespace(member_id=name, group_instance_id=instance, metadata=wants.encode())


@pytest.mark.parametrize(
    "strategy, members, expected",
    [
        param("range", [member("a", None, "t")], {"a": "t0 t1 t2"}, id="one member has all"),
        param("range", [member("a", "1", "t"), member("b", "2", "t")], {"a": "t0 t1", "b": "t2"}, id="the first has more"),
        param("range", [member("z", "1", "t"), member("a", "2", "t")], {"z": "t0 t1", "a": "t2"}, id="static members by instance id"),
        param("range", [member("a", "1", "t"), member("b", None, "t"), member("c", "2", "t")], {"a": "t0", "c": "t1", "b": "t2"},
              id="static and dynamic members alternate"),
        param("range", [member("a", None, "t", "gone")], {"a": "t0 t1 t2"}, id="a topic that is not there"),
        param("range", [member("a", None, "t"), member("b", None, "u")], {"a": "t0 t1 t2", "b": "u0"}, id="different topics"),
        param("roundrobin", [member("a", None, "t", "u"), member("b", None, "t", "u")], {"a": "t0 t2", "b": "t1 u0"}, id="round robin"),
        param("sticky", [member("a", None, "t")], {"a": "t0 t1 t2"}, id="sticky"),
        param("cooperative-sticky", [member("a", None, "t")], {"a": "t0 t1 t2"}, id="cooperative sticky"),
    ],
)
def test_partitions_are_shared_out(strategy, members, expected):
    shares = Assignment(list(STRATEGIES))
    decoded, _ = shares.decode_members(members)
    found = shares.share_out(strategy, decoded, {"t": {0, 1, 2}, "u": {0}})
    assert {name: " ".join(f"{topic}{index}" for topic, index in shares.pairs(data)) for name, data in found.items()} == expected


def test_a_strategy_that_is_not_to_be_had_is_named():
    with pytest.raises(ConfigError, match="com.example.Fancy") as refused:
        Assignment(["org.apache.kafka.clients.consumer.RangeAssignor", "com.example.Fancy"])
    assert list(refused.value.errors) == ["partition.assignment.strategy"]


# On both brokers


class Notes:
    """A listener that writes down what it is told."""

    def __init__(self):
        self.calls = []
        self.on_revoking = lambda pairs: None

    def on_assigned(self, pairs):
        self.calls.append(("assigned", [index for _, index in pairs]))

    def on_revoked(self, pairs):
        self.on_revoking(pairs)
        self.calls.append(("revoked", [index for _, index in pairs]))

    def on_lost(self, pairs):
        self.calls.append(("lost", [index for _, index in pairs]))


class Room:
    """Topics, members and one heartbeat thread for all of them."""

    def __init__(self, bootstrap):
        self.bootstrap = bootstrap
        self.admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": bootstrap})
        self.heartbeats = Heartbeats(SYSTEM)
        self.thread = threading.Thread(target=self.heartbeats.run, daemon=True)
        self.thread.start()
        self.open = []

    def topic(self, partitions=4):
        name = f"group-{uuid.uuid4().hex[:8]}"
        self.admin.create_topics([confluent_kafka.admin.NewTopic(name, partitions, 1)])[name].result()
        return name

    def member(self, group, *topics, instance=None, **settings):
        settings = {name.replace("_", "."): value for name, value in settings.items()}
        if settings.get("group.protocol") != "consumer":  # there the broker says how often
            settings.setdefault("heartbeat.interval.ms", 100)
        config = ConsumerConfig.of({"bootstrap.servers": self.bootstrap, "auto.offset.reset": "earliest", **settings})
        listener = Notes()
        made = Consumer(Cluster(config, SYSTEM), config, SYSTEM, group, instance, listener, self.heartbeats)
        made.notes = listener
        made.subscribe(topics)
        self.open.append(made)
        return made

    def throw_out(self, group, instance):
        """As an administrator does it."""
        cluster = Cluster({"bootstrap.servers": self.bootstrap}, SYSTEM)
        identity = LeaveGroupRequest.MemberIdentity(member_id="", group_instance_id=instance)
        answer = cluster.request(LeaveGroupRequest(group_id=group, members=[identity]), node=cluster.coordinator(group))
        assert [answer.error_code] + [member.error_code for member in answer.members] == [0, 0]
        cluster.close()

    def leave(self, consumer, **how):
        self.open.remove(consumer)
        consumer.close(**how)

    def close(self):
        for consumer in self.open:
            consumer.close()
        self.heartbeats.stop()
        self.thread.join(PATIENCE_SECONDS)


@pytest.fixture
def room(broker):
    made = Room(broker)
    yield made
    made.close()


def until(condition, *consumers, seconds=PATIENCE_SECONDS, poll_s=0.01):
    """Poll all of them in turn until the condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, [(consumer.assignment(), consumer.notes.calls) for consumer in consumers]
        for consumer in consumers:
            consumer.poll(poll_s)


def indexes(consumer):
    return [index for _, index in consumer.assignment()]


def group_of(topic):
    return f"connect-{topic}"


def test_two_members_share_and_the_last_one_has_all_again(room):
    topic = room.topic(4)
    first = room.member(group_of(topic), topic, instance="1")
    until(lambda: indexes(first) == [0, 1, 2, 3], first)
    second = room.member(group_of(topic), topic, instance="2")
    until(lambda: indexes(first) == [0, 1] and indexes(second) == [2, 3], first, second)
    room.leave(second)
    until(lambda: indexes(first) == [0, 1, 2, 3], first)
    everything = [0, 1, 2, 3]
    assert first.notes.calls == [
        ("assigned", everything),
        ("revoked", everything),
        ("assigned", [0, 1]),
        ("revoked", [0, 1]),
        ("assigned", everything),
    ]
    assert second.notes.calls == [("assigned", [2, 3])]


def test_what_is_committed_while_partitions_are_let_go_is_kept(room):
    topic = room.topic(2)
    first = room.member(group_of(topic), topic)
    until(lambda: indexes(first) == [0, 1], first)
    first.notes.on_revoking = lambda pairs: first.commit({pair: 7 for pair in pairs}, 10)
    second = room.member(group_of(topic), topic)
    until(lambda: indexes(first) and indexes(second), first, second)
    assert second.committed([(topic, 0), (topic, 1)]) == {(topic, 0): 7, (topic, 1): 7}


def test_an_abandoned_static_member_is_back_at_once_and_the_others_notice_nothing(room):
    topic = room.topic(2)
    first = room.member(group_of(topic), topic, instance="1")
    second = room.member(group_of(topic), topic, instance="2")
    until(lambda: indexes(first) == [0] and indexes(second) == [1], first, second)
    first.commit({(topic, 0): 5}, 10)
    told = list(second.notes.calls)
    room.leave(first, leave=False)
    begun = time.monotonic()
    back = room.member(group_of(topic), topic, instance="1")
    until(lambda: indexes(back) == [0], back, second)
    assert time.monotonic() - begun < 20  # the session of the one that was left lasts 45
    back.commit({(topic, 0): 6}, 10)
    assert back.committed([(topic, 0)]) == {(topic, 0): 6}
    assert second.notes.calls == told


def test_a_static_member_that_comes_back_for_other_topics_gets_those(room):
    before, after = room.topic(1), room.topic(1)
    group = group_of(before)
    first = room.member(group, before, instance="1")
    until(lambda: first.assignment() == [(before, 0)], first)
    room.leave(first, leave=False)
    back = room.member(group, after, instance="1")
    until(lambda: back.assignment() == [(after, 0)], back)


@pytest.mark.parametrize("instance", ["1", None])
def test_who_leaves_leaves_the_group_empty(room, instance):
    topic = room.topic(1)
    group = group_of(topic)
    leaver = room.member(group, topic, instance=instance)
    until(lambda: indexes(leaver) == [0], leaver)
    room.leave(leaver)
    offsets = confluent_kafka.ConsumerGroupTopicPartitions(group, [confluent_kafka.TopicPartition(topic, 0, 3)])
    altered = room.admin.alter_consumer_group_offsets([offsets])[group].result()  # refused while anybody is in the group
    assert altered.topic_partitions[0].error is None


def test_who_leaves_while_still_joining_is_gone_too(room):
    topic = room.topic(1)
    group = group_of(topic)
    first = room.member(group, topic, instance="1")
    until(lambda: indexes(first) == [0], first)
    second = room.member(group, topic, instance="2")
    second.poll(0.3)  # its join is not answered before the first one, which does not poll, has come back
    room.leave(second)
    until(lambda: len(first.notes.calls) > 2 or indexes(first) == [0], first)
    members = room.admin.describe_consumer_groups([group])[group].result().members
    assert [member.group_instance_id for member in members] == ["1"]


def test_a_second_worker_with_the_same_identity_fences_the_first(room):
    topic = room.topic(1)
    first = room.member(group_of(topic), topic, instance="same")
    until(lambda: indexes(first) == [0], first)
    second = room.member(group_of(topic), topic, instance="same")
    until(lambda: indexes(second) == [0], second)
    with pytest.raises(LogFatalError, match="group.instance.id 'same'.*state.dir") as refused:
        until(lambda: False, first)
    assert refused.value.java_class == "org.apache.kafka.common.errors.FencedInstanceIdException"
    with pytest.raises(LogRetriableError):
        first.commit({(topic, 0): 1}, 5)
    room.leave(first)  # does not throw the second one out
    second.commit({(topic, 0): 1}, 5)


def test_a_member_that_was_thrown_out_loses_its_partitions_and_joins_again(room):
    topic = room.topic(1)
    group = group_of(topic)
    ours = room.member(group, topic, instance="1", **{"heartbeat.interval.ms": 60_000})  # so that it is the commit that learns of it
    until(lambda: indexes(ours) == [0], ours)
    room.throw_out(group, "1")
    with pytest.raises(LogRetriableError, match="max.poll.interval.ms") as refused:
        ours.commit({(topic, 0): 1}, 5)
    assert refused.value.java_class == "org.apache.kafka.common.errors.CommitFailedException"
    until(lambda: ours.notes.calls[-1] == ("assigned", [0]) and len(ours.notes.calls) == 3, ours)
    assert ours.notes.calls == [("assigned", [0]), ("lost", [0]), ("assigned", [0])]
    ours.commit({(topic, 0): 1}, 5)


def test_heartbeats_go_on_while_the_tasks_are_busy(room):
    """Twelve members of twelve groups, one thread; a session lasts six seconds, and nobody polls for seven."""
    topic = room.topic(1)
    settings = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 1000}
    members = [room.member(f"{group_of(topic)}-{n}", topic, **settings) for n in range(12)]
    until(lambda: all(indexes(member) == [0] for member in members), *members)
    threading.Event().wait(7)
    for member in members:
        member.commit({(topic, 0): 1}, 5)
        assert member.notes.calls == [("assigned", [0])]


def test_a_task_that_is_away_too_long_leaves_and_comes_back(room):
    topic = room.topic(2)
    slow = room.member(group_of(topic), topic, **{"max.poll.interval.ms": 1500})
    until(lambda: indexes(slow) == [0, 1], slow)
    other = room.member(group_of(topic), topic)
    until(lambda: indexes(other) == [0, 1], other)  # while the slow one does not come to share
    with pytest.raises(LogRetriableError):
        slow.commit({(topic, 0): 1}, 5)
    until(lambda: len(indexes(slow)) == 1 and len(indexes(other)) == 1, slow, other)
    assert [call for call, _ in slow.notes.calls] == ["assigned", "lost", "assigned"]


def test_partitions_that_are_added_are_assigned(room):
    topic = room.topic(1)
    one = room.member(group_of(topic), topic, **{"metadata.max.age.ms": 200})
    until(lambda: indexes(one) == [0], one)
    room.admin.create_partitions([confluent_kafka.admin.NewPartitions(topic, 3)])[topic].result()
    until(lambda: indexes(one) == [0, 1, 2], one)
    assert one.notes.calls == [("assigned", [0]), ("revoked", [0]), ("assigned", [0, 1, 2])]


def test_a_lost_connection_to_the_coordinator_heals(room):
    topic = room.topic(1)
    one = room.member(group_of(topic), topic)
    until(lambda: indexes(one) == [0], one)
    one._group.links[0].connection.abort()
    one.commit({(topic, 0): 1}, 10)
    answers = []
    one._group.links[0].connection.abort()
    one.commit_async({(topic, 0): 2}, answers.append)
    until(lambda: answers, one)
    assert answers[0] is None or isinstance(answers[0], LogRetriableError)
    until(lambda: room.heartbeats._brokers and all(broker.link for broker in room.heartbeats._brokers.values()), one)
    links = [broker.link for broker in room.heartbeats._brokers.values()]
    for link in links:
        link.connection.abort()
    until(lambda: any(b.link not in (None, *links) and b.link.busy for b in list(room.heartbeats._brokers.values())), one)
    one.commit({(topic, 0): 3}, 10)
    assert one.notes.calls == [("assigned", [0])]


def test_members_of_other_clients_share_the_group(room):
    """librdkafka, with the same strategy, beside ours."""
    topic = room.topic(4)
    group = group_of(topic)
    ours = room.member(group, topic)
    settings = {"bootstrap.servers": room.bootstrap, "group.id": group, "partition.assignment.strategy": "range"}
    stranger = confluent_kafka.Consumer(settings)
    with contextlib.closing(stranger):
        stranger.subscribe([topic])
        until(lambda: stranger.poll(0.01) or len(indexes(ours)) == 2 and len(stranger.assignment()) == 2, ours)
        mine, theirs = indexes(ours), [pair.partition for pair in stranger.assignment()]
    assert sorted(mine + theirs) == [0, 1, 2, 3]
    until(lambda: indexes(ours) == [0, 1, 2, 3], ours)
