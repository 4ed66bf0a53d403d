"""Members that keep what they read while a group rebalances: the cooperative strategy, and the consumer protocol; on both logs."""

import time
import uuid

import pytest
from pytest import param

from standalone.clock import SYSTEM
from standalone.errors import ConfigError, LogFatalError, LogRetriableError
from standalone.log import consumer_protocol
from standalone.log import error_codes as codes
from standalone.log.broker.consumer_group import ConsumerMembers
from standalone.log.broker.messages import ConsumerGroupHeartbeatResponse
from standalone.log.broker.refusal import Refusal
from standalone.log.broker.refusal import codes as refusals
from standalone.log.broker.server import EmbeddedLog
from standalone.log.client import Cluster
from standalone.log.client_config import ConsumerConfig
from standalone.log.link import Waker
from tests.log.test_group import Room, until

COOPERATIVE = {"partition_assignment_strategy": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"}
CONSUMER = {"group_protocol": "consumer"}
PROTOCOLS = [param(COOPERATIVE, id="cooperative"), param(CONSUMER, id="consumer")]


@pytest.fixture
def embedded(tmp_path, monkeypatch):
    from standalone.log.broker import consumer_group, consumer_groups_api

    for module in (consumer_group, consumer_groups_api):
        monkeypatch.setattr(module, "HEARTBEAT_MS", 100)
    monkeypatch.setattr(consumer_group, "SESSION_MS", 600_000)  # nothing here is to heal by it
    log = EmbeddedLog(tmp_path, "127.0.0.1:0")
    log.start()
    made = Room(log.bootstrap)
    made.log = log
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
    share_and_take_over(embedded, protocol, 60)


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


@pytest.mark.parametrize("reads", [True, False], ids=["what it was assigned", "nothing yet"])
@pytest.mark.parametrize("poll_s", [0.01, 0], ids=["all answers read", "an answer not read"])
def test_a_task_that_is_away_too_long_leaves_and_comes_back(embedded, reads, poll_s):
    topic, group = embedded.topic(2), "away"
    member = embedded.member(group, topic, max_poll_interval_ms=300, **CONSUMER)
    until(lambda: len(member.assignment()) == 2 if reads else _members(embedded, group), member, poll_s=poll_s)
    other = embedded.member(group, topic, **CONSUMER)
    until(lambda: len(other.assignment()) == 2, other)  # nobody asks the first one for records
    until(lambda: len(member.assignment()) == len(other.assignment()) == 1, member, other)
    assert "lost" in [what for what, _ in member.notes.calls] or not reads


@pytest.mark.parametrize("reads", [True, False], ids=["what it was assigned", "nothing yet"])
def test_a_task_that_is_busy_before_an_answer_is_read_stays_in_the_group(embedded, monkeypatch, reads):
    """Its session is over long before it comes back to hear what its last heartbeat was answered."""
    from standalone.log.broker import consumer_group

    monkeypatch.setattr(consumer_group, "SESSION_MS", 1500)
    monkeypatch.setattr(consumer_protocol, "FIRST_INTERVAL_SECONDS", 0.1)
    topic, group = embedded.topic(2), "busy"
    member = embedded.member(group, topic, **CONSUMER)
    until(lambda: len(member.assignment()) == 2 if reads else _members(embedded, group), member, poll_s=0)
    (before,) = _members(embedded, group)
    deadline = before.deadline
    until(lambda: time.monotonic() > deadline + 0.5)
    assert _members(embedded, group) == [before] and before.deadline > deadline
    until(lambda: len(member.assignment()) == 2, member)
    member.commit({(topic, 0): 0}, 5)
    assert member.notes.calls == [("assigned", [0, 1])]


@pytest.mark.parametrize("leads", [True, False], ids=["the leader", "a newcomer"])
def test_a_task_that_is_busy_before_its_join_is_answered_stays_in_the_group(embedded, leads):
    """The group waits for what it does next, and its session is over long before it comes back."""
    topic, group, session = embedded.topic(4), "joining", {"session_timeout_ms": 1500, **COOPERATIVE}
    first = embedded.member(group, topic, **session)
    until(lambda: len(first.assignment()) == 4, first)
    second = embedded.member(group, topic, **session)
    busy, other = (first, second) if leads else (second, first)
    state = embedded.log._node.groups.get(group)
    until(lambda: state.state == "PreparingRebalance", second, poll_s=0)
    until(lambda: state.generation == 2, first, poll_s=0)  # both are in, and have not read it
    members = set(state.members)
    since = time.monotonic()
    until(lambda: time.monotonic() > since + 3, other)
    assert set(state.members) == members
    until(lambda: len(first.assignment()) == len(second.assignment()) == 2, first, second)
    assert [what for what, _ in first.notes.calls + second.notes.calls if what == "lost"] == []
    assert sorted(sum((indexes for what, indexes in first.notes.calls if what == "revoked"), [])) == [index for _, index in second.assignment()]


def _members(room, group):
    found = room.log._node.groups.get(group)
    return list(found.consumers.members.values()) if found is not None and found.consumers else []


def test_a_farewell_that_is_not_answered_is_said_again(embedded, monkeypatch):
    topic, group, refused = embedded.topic(2), "farewell", []
    leave = ConsumerMembers._leave

    def lose_the_first(members, request):
        if not refused:
            refused.append(request)
            raise Refusal(refusals.CoordinatorLoadInProgressError)
        return leave(members, request)

    monkeypatch.setattr(ConsumerMembers, "_leave", lose_the_first)
    member = embedded.member(group, topic, max_poll_interval_ms=300, **CONSUMER)
    until(lambda: len(member.assignment()) == 2, member)
    until(lambda: not _members(embedded, group))
    assert len(refused) == 1
    until(lambda: member.notes.calls[1:] == [("lost", [0, 1]), ("assigned", [0, 1])], member)


def test_a_member_that_closes_before_it_heard_that_it_joined_leaves(embedded):
    topic, group = embedded.topic(2), "soon"
    member = embedded.member(group, topic, **CONSUMER)
    until(lambda: _members(embedded, group), member, poll_s=0)
    embedded.leave(member)
    assert not _members(embedded, group)


@pytest.mark.parametrize("lost", ["failed", "never read"])
def test_what_an_answer_may_have_held_that_was_lost_is_asked_for_again(lost):
    """Partitions that came with it would be read by nobody: brokers tell of them again only who tells everything."""
    config, sent = ConsumerConfig.of({"bootstrap.servers": "nowhere:1", **{key.replace("_", "."): value for key, value in CONSUMER.items()}}), []
    group = consumer_protocol.ConsumerProtocolGroup(Cluster(config, SYSTEM), config, SYSTEM, Waker(), "g")
    group.send = lambda request, handler: sent.append((request, handler))
    group.subscribe(["t"])
    group.advance()
    sent.pop()[1](ConsumerGroupHeartbeatResponse(error_code=0, member_epoch=1, heartbeat_interval_ms=100, assignment=None), None)
    short, handler = group.heartbeat(None)
    assert (short.rebalance_timeout_ms, short.subscribed_topic_names, short.topic_partitions) == (-1, None, None)
    if lost == "failed":
        handler(None, LogRetriableError("cut off"))
    else:
        handler(ConsumerGroupHeartbeatResponse(error_code=0, member_epoch=1, heartbeat_interval_ms=100, assignment=None), None)
        group.subscribe(["t", "u"])
        group.advance()
        (_, late), = sent
    whole, handler = group.heartbeat(None)
    assert whole.rebalance_timeout_ms > 0 and whole.subscribed_topic_names == list(group._topics) and whole.topic_partitions == []
    handler(ConsumerGroupHeartbeatResponse(error_code=0, member_epoch=2, heartbeat_interval_ms=100, assignment=None), None)
    if lost == "never read":  # it is, after all
        late(ConsumerGroupHeartbeatResponse(error_code=codes.FENCED_MEMBER_EPOCH, member_epoch=0, heartbeat_interval_ms=100, assignment=None), None)
    assert group.membership.generation == 2


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
