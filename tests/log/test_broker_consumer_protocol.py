"""Groups by the consumer protocol (KIP-848): with stock clients, and step by step as a member sees them."""

import time
import uuid

import hypothesis.strategies as st
import pytest
from hypothesis import given
from kafka.protocol import admin
from pytest import param

from standalone.log.broker import assignors
from standalone.log.broker.messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from standalone.log.broker.refusal import codes
from standalone.log.broker.server import EmbeddedLog
from tests.log.broker_clients import RawClient, batch, commit, make_topic, wait_for
from tests.suite.patience import PATIENCE_SECONDS

confluent_kafka = pytest.importorskip("confluent_kafka")


@pytest.fixture
def client(log):
    with RawClient(log.bootstrap) as client:
        make_topic(client, "t", 4)
        yield client


# --- librdkafka


def consumer(log, **config):
    found = confluent_kafka.Consumer(
        {
            "bootstrap.servers": log.bootstrap,
            "group.id": "g",
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "topic.metadata.refresh.interval.ms": 500,
            **config,
        }
    )
    found.subscribe(["t"])
    return found


def test_librdkafka_consumers_share_a_group_and_take_over(log, client):
    consumers = [consumer(log) for _ in range(2)]

    def shared():
        for each in consumers:
            assert each.poll(0.05) is None
        return [len(each.assignment()) for each in consumers] == [2, 2]

    wait_for(shared)
    for number in range(40):
        client.produce("t", batch([b"%d" % number]), partition=number % 4)
    found, deadline = [], time.monotonic() + PATIENCE_SECONDS
    while len(found) < 40:
        assert time.monotonic() < deadline
        found += [int(message.value()) for each in consumers for message in each.consume(100, 0.05)]
    assert sorted(found) == list(range(40))
    for each in consumers:
        each.commit(asynchronous=False)
    consumers[0].close()
    wait_for(lambda: consumers[1].poll(0.05) is None and len(consumers[1].assignment()) == 4)
    consumers[1].close()
    again = consumer(log)
    client.produce("t", batch([b"next"]))
    assert wait_for(lambda: again.poll(0.1)).value() == b"next"
    again.close()


def test_a_new_partition_is_given_to_somebody(log, client):
    one = consumer(log)
    wait_for(lambda: one.poll(0.05) is None and len(one.assignment()) == 4)
    Topic = admin.CreatePartitionsRequest.CreatePartitionsTopic
    request = admin.CreatePartitionsRequest(version=3, topics=[Topic(name="t", count=5, assignments=None)], timeout_ms=1000, validate_only=False)
    client.call(request, admin.CreatePartitionsResponse)
    wait_for(lambda: one.poll(0.05) is None and len(one.assignment()) == 5)
    one.close()


def test_members_join_again_after_a_restart_of_the_log(tmp_path):
    log = EmbeddedLog(tmp_path, "127.0.0.1:0")
    log.start()
    with RawClient(log.bootstrap) as client:
        make_topic(client, "t", 4)
    one = consumer(log)
    wait_for(lambda: one.poll(0.05) is None and len(one.assignment()) == 4)
    log.stop()
    log.start()
    with RawClient(log.bootstrap) as client:
        client.produce("t", batch([b"after"]))
    assert wait_for(lambda: (message := one.poll(0.1)) and not message.error() and message).value() == b"after"
    one.close()
    log.stop()


# --- Step by step


class Member:
    """What a client does: it follows what it is told."""

    def __init__(self, client, log, name=None, **fields):
        self.client, self.log = client, log
        self.id, self.epoch, self.owned = name or str(uuid.uuid4()), 0, frozenset()
        self.fields = fields

    def beat(self, **fields):
        """The error code; what was answered is taken up."""
        fields = {"rebalance_timeout_ms": 1000, "topic_partitions": self._owned(), **fields}
        if self.epoch == 0:
            fields = {"subscribed_topic_names": ["t"], **self.fields, **fields}
        fields = {"member_epoch": self.epoch, **fields}
        request = ConsumerGroupHeartbeatRequest(version=1, group_id="g", member_id=self.id, **fields)
        answer = self.client.call(request, ConsumerGroupHeartbeatResponse)
        if answer.error_code == 0:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                self.owned = frozenset(number for topic in answer.assignment.topic_partitions for number in topic.partitions)
        return answer.error_code

    def _owned(self):
        Topic = ConsumerGroupHeartbeatRequest.TopicPartitions
        return [Topic(topic_id=self.log._node.topics.get("t").id, partitions=sorted(self.owned))] if self.owned else []


def test_a_partition_is_never_given_to_two(log, client):
    first, second = Member(client, log), Member(client, log)
    assert first.beat() == 0 and first.owned == {0, 1, 2, 3}
    assert second.beat() == 0 and second.owned == set()  # the first has not given anything up
    assert first.beat(topic_partitions=None) == 0 and len(first.owned) == 2
    assert second.beat() == 0 and second.owned == set()  # it was told to, but has not said that it did
    assert first.beat() == 0 and first.epoch == second.epoch
    assert second.beat() == 0 and second.owned == {0, 1, 2, 3} - first.owned


def test_who_does_not_give_up_in_time_is_out(log, client):
    first, second = Member(client, log), Member(client, log)
    first.beat(rebalance_timeout_ms=100)
    second.beat()
    first.beat(topic_partitions=None, rebalance_timeout_ms=100)
    wait_for(lambda: second.beat() == 0 and second.owned == {0, 1, 2, 3})
    assert first.beat() == codes.UnknownMemberIdError.errno


@pytest.mark.parametrize(
    "fields, error",
    [
        param({"member_epoch": 99}, codes.FencedMemberEpochError, id="an epoch that is not there yet"),
        param({"server_assignor": "best"}, codes.UnsupportedAssignorError, id="no such assignor"),
    ],
)
def test_a_heartbeat_that_is_refused(log, client, fields, error):
    member = Member(client, log)
    member.beat()
    assert member.beat(**fields) == error.errno


def test_an_unknown_member_is_told_so(log, client):
    stranger = Member(client, log)
    stranger.epoch = 3
    assert stranger.beat() == codes.UnknownMemberIdError.errno


def test_a_static_member_that_comes_back_has_its_partitions_again(log, client):
    first = Member(client, log, instance_id="i")
    other = Member(client, log)
    first.beat(), other.beat(), first.beat(topic_partitions=None), first.beat(), other.beat()
    had = first.owned
    rival = Member(client, log, instance_id="i")
    assert rival.beat() == codes.UnreleasedInstanceIdError.errno
    assert first.beat(member_epoch=-2) == 0
    assert rival.beat() == 0 and rival.owned == had


def test_topics_by_regular_expression(log, client):
    make_topic(client, "x1", 1)
    member = Member(client, log, subscribed_topic_names=None, subscribed_topic_regex="x.*")
    assert member.beat() == 0 and member.owned == {0}
    assert log._node.groups.get("g").consumers.members[member.id].assigned == {("x1", 0)}
    assert Member(client, log, subscribed_topic_regex="(").beat() == 128
    assert len(log._node.groups.get("g").consumers.members) == 1


def test_a_group_with_members_takes_no_commit_of_others_and_is_not_deleted(log, client):
    member = Member(client, log)
    member.beat()
    assert commit(client, 0) == codes.UnknownMemberIdError.errno
    request = admin.DeleteGroupsRequest(version=2, groups_names=["g"])
    assert client.call(request, admin.DeleteGroupsResponse).results[0].error_code == codes.NonEmptyGroupError.errno
    listed = client.call(admin.ListGroupsRequest(version=5, states_filter=[], types_filter=["consumer"]), admin.ListGroupsResponse).groups
    assert [(group.group_id, group.group_type, group.group_state) for group in listed] == [("g", "consumer", "Stable")]
    assert member.beat(member_epoch=-1) == 0
    assert commit(client, 0) == 0


# --- Assignors


@given(st.lists(st.sets(st.sampled_from("abc"), min_size=1), min_size=1, max_size=6), st.dictionaries(st.sampled_from("abc"), st.integers(1, 9)), st.data())
def test_every_assignor_gives_each_partition_to_one_who_reads_its_topic(subscriptions, partitions, data):
    members = {f"m{number}": topics for number, topics in enumerate(subscriptions)}
    everything = [(topic, number) for topic, count in partitions.items() for number in range(count)]
    owners = {partition: data.draw(st.sampled_from([*members, "gone"])) for partition in everything}
    current = {}
    for partition, owner in owners.items():
        current.setdefault(owner, set()).add(partition)
    for assign in assignors.ASSIGNORS.values():
        found = assign(members, partitions, current)
        given_out = sorted(partition for own in found.values() for partition in own)
        wanted = sorted(partition for partition in everything if any(partition[0] in topics for topics in members.values()))
        assert given_out == wanted
        assert all(topic in members[member] for member, own in found.items() for topic, _ in own)


@given(st.integers(1, 6), st.integers(0, 20))
def test_uniform_is_even_and_keeps_what_it_can(count, partitions):
    members = {f"m{number}": {"t"} for number in range(count)}
    first = assignors.uniform(members, {"t": partitions}, {})
    sizes = [len(own) for own in first.values()]
    assert max(sizes) - min(sizes) <= 1
    assert assignors.uniform(members, {"t": partitions}, first) == first
    less = assignors.uniform({member: {"t"} for member in list(members)[:-1]}, {"t": partitions}, first)
    assert all(first[member] <= less[member] for member in less)
