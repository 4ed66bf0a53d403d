"""Members that keep what they read while a group rebalances: the cooperative strategy, and the consumer protocol; on both logs."""

import uuid

import pytest
from pytest import param

from standalone.errors import ConfigError, LogFatalError
from standalone.log.broker.server import EmbeddedLog
from standalone.log.client_config import ConsumerConfig
from tests.log.test_group import Room, until

COOPERATIVE = {"partition_assignment_strategy": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"}
CONSUMER = {"group_protocol": "consumer"}
PROTOCOLS = [param(COOPERATIVE, id="cooperative"), param(CONSUMER, id="consumer")]


@pytest.fixture
def embedded(tmp_path, monkeypatch):
    from standalone.log.broker import consumer_group, consumer_groups_api

    for module in (consumer_group, consumer_groups_api):
        monkeypatch.setattr(module, "HEARTBEAT_MS", 100)
    log = EmbeddedLog(tmp_path, "127.0.0.1:0")
    log.start()
    made = Room(log.bootstrap)
    yield made
    made.close()
    log.stop()


@pytest.fixture
def room(kafka):
    made = Room(kafka)
    yield made
    made.close()


def share_and_take_over(room, protocol, seconds):
    topic, group = room.topic(4), f"g-{uuid.uuid4().hex[:8]}"
    first = room.member(group, topic, **protocol)
    until(lambda: len(first.assignment()) == 4, first, seconds=seconds)
    second = room.member(group, topic, **protocol)
    until(lambda: len(first.assignment()) == len(second.assignment()) == 2, first, second, seconds=seconds)
    assert sorted(first.assignment() + second.assignment()) == [(topic, index) for index in range(4)]
    given_up = [indexes for what, indexes in first.notes.calls if what == "revoked"]
    assert sorted(sum(given_up, [])) == [index for _, index in second.assignment()]  # and never those that it kept
    assert [what for what, _ in first.notes.calls if what == "lost"] == []
    kept = first.assignment()
    room.leave(second)
    until(lambda: len(first.assignment()) == 4, first, seconds=seconds)
    assert not {index for what, indexes in first.notes.calls if what == "revoked" for index in indexes} & {index for _, index in kept}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_members_keep_what_stays_with_them(embedded, protocol):
    share_and_take_over(embedded, protocol, 20)


@pytest.mark.kafka
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_members_keep_what_stays_with_them_on_a_real_kafka(room, protocol):
    share_and_take_over(room, protocol, 60)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_is_committed_while_partitions_are_given_up_is_where_the_next_one_begins(embedded, protocol):
    topic, group = embedded.topic(4), "committing"
    first = embedded.member(group, topic, **protocol)
    until(lambda: len(first.assignment()) == 4, first)
    first.notes.on_revoking = lambda pairs: first.commit({pair: 0 for pair in pairs}, 5)
    second = embedded.member(group, topic, **protocol)
    until(lambda: len(first.assignment()) == len(second.assignment()) == 2, first, second)
    assert second.committed(second.assignment()) == dict.fromkeys(second.assignment(), 0)


def test_a_static_member_is_back_at_once_and_the_others_notice_nothing(embedded):
    topic, group = embedded.topic(4), "static"
    members = [embedded.member(group, topic, instance=name, **CONSUMER) for name in "ab"]
    until(lambda: all(len(each.assignment()) == 2 for each in members), *members)
    before = [each.assignment() for each in members]
    calls = list(members[1].notes.calls)
    embedded.leave(members[0], leave=False)
    again = embedded.member(group, topic, instance="a", **CONSUMER)
    until(lambda: len(again.assignment()) == 2, again, members[1])
    assert again.assignment() == before[0] and members[1].assignment() == before[1]
    assert members[1].notes.calls == calls


def test_a_member_that_was_thrown_out_loses_its_partitions_and_joins_again(embedded):
    topic, group = embedded.topic(2), "thrown"
    member = embedded.member(group, topic, instance="a", **CONSUMER)
    until(lambda: len(member.assignment()) == 2, member)
    embedded.throw_out(group, "a")
    until(lambda: ("lost", [0, 1]) in member.notes.calls and len(member.assignment()) == 2, member)


def test_a_task_that_is_away_too_long_leaves_and_comes_back(embedded):
    topic, group = embedded.topic(2), "away"
    member = embedded.member(group, topic, max_poll_interval_ms=300, **CONSUMER)
    until(lambda: len(member.assignment()) == 2, member)
    other = embedded.member(group, topic, **CONSUMER)
    until(lambda: len(other.assignment()) == 2, other)  # nobody asks the first one for records
    until(lambda: len(member.assignment()) == len(other.assignment()) == 1, member, other)
    assert "lost" in [what for what, _ in member.notes.calls]


def test_topics_that_are_wanted_later_are_assigned_too(embedded):
    one, two = embedded.topic(1), embedded.topic(1)
    member = embedded.member("wants", one, **CONSUMER)
    until(lambda: member.assignment() == [(one, 0)], member)
    member.subscribe([one, two])
    until(lambda: len(member.assignment()) == 2, member)
    member.subscribe([two])
    until(lambda: member.assignment() == [(two, 0)], member)
    assert ("revoked", [0]) in member.notes.calls


def test_an_assignor_that_the_broker_does_not_have_is_named(embedded):
    member = embedded.member("g", embedded.topic(1), group_remote_assignor="fancy", **CONSUMER)
    with pytest.raises(LogFatalError, match="fancy.*group.remote.assignor"):
        until(lambda: False, member)


def test_a_group_of_the_other_protocol_says_what_to_do(embedded):
    topic = embedded.topic(1)
    classic = embedded.member("both", topic)
    until(lambda: len(classic.assignment()) == 1, classic)
    member = embedded.member("both", topic, **CONSUMER)
    with pytest.raises(LogFatalError, match="group.protocol=classic"):
        until(lambda: False, member)


@pytest.mark.parametrize(
    "settings, key",
    [
        ({"group.protocol": "consumer", "session.timeout.ms": 1000}, "session.timeout.ms"),
        ({"group.protocol": "consumer", "heartbeat.interval.ms": 1000}, "heartbeat.interval.ms"),
        ({"group.protocol": "consumer", "partition.assignment.strategy": COOPERATIVE["partition_assignment_strategy"]}, "partition.assignment.strategy"),
        ({"group.remote.assignor": "uniform"}, "group.remote.assignor"),
    ],
)
def test_settings_that_do_not_go_together(settings, key):
    with pytest.raises(ConfigError) as refused:
        ConsumerConfig.of({"bootstrap.servers": "h:1", **settings})
    assert list(refused.value.errors) == [key]
