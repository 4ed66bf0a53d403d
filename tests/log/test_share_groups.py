"""Share groups (KIP-932), request by request: sessions, acknowledgements, locks that are renewed, and what admins do."""

import uuid

import pytest
from kafka.protocol import admin

from standalone.log.broker.in_flight import ACCEPT, REJECT, RELEASE, RENEW
from standalone.log.broker.refusal import codes
from tests.log.broker_clients import RawClient, batch, make_topic, wait_for
from tests.log.share_clients import (
    ShareMember,
    acquired,
    alter_offset,
    configure,
    delete_offsets,
    described,
    offsets,
)


@pytest.fixture
def client(embedded_log):
    with RawClient(embedded_log) as client:
        yield client


@pytest.fixture
def group(client):
    """Its id is its topic's name as well, which has five records."""
    name = f"share-{uuid.uuid4()}"
    assert make_topic(client, name).error_code == 0
    assert configure(client, name, share_auto_offset_reset="earliest") == 0
    wait_for(lambda: client.produce(name, batch([b"%d" % number for number in range(5)])).error_code == 0)
    return name


@pytest.fixture
def member(embedded_log, group):
    with ShareMember(embedded_log, group, group) as member:
        yield member.join()


@pytest.fixture
def other(embedded_log, group, member):
    with ShareMember(embedded_log, group, group) as other:
        yield other.join()


ALL = [(number, b"%d" % number, 1) for number in range(5)]


def test_each_record_is_one_members_until_it_is_released(client, group, member, other):
    assert member.fetch_some() == ALL
    assert other.fetch() == []
    assert member.acknowledge(0, 4, ACCEPT, RELEASE, ACCEPT, RELEASE, REJECT) == 0
    assert other.fetch_some() == [(1, b"1", 2), (3, b"3", 2)]
    assert offsets(client, group) == {(group, 0): (1, 2)}
    assert acquired(other.ask([(0, 1, 1, [ACCEPT]), (0, 3, 3, [ACCEPT])])) == []
    assert offsets(client, group) == {(group, 0): (5, 0)}


def test_sessions_have_epochs(member):
    assert member.ask(session=7).error_code == codes.ShareSessionNotFoundError.errno
    assert member.acknowledge(0, 0, session=1) == codes.ShareSessionNotFoundError.errno
    assert member.fetch_some() == ALL
    assert member.ask(session=member.session + 1).error_code == codes.InvalidShareSessionEpochError.errno
    assert member.acknowledge(0, 0, session=member.session + 1) == codes.InvalidShareSessionEpochError.errno
    assert member.acknowledge(0, 0, session=0) == codes.InvalidShareSessionEpochError.errno
    assert member.acknowledge(0, 4) == 0


def test_who_does_not_hold_a_record_cannot_answer_for_it(member, other):
    assert member.fetch_some() == ALL
    assert other.fetch() == []
    assert other.acknowledge(0, 4) == codes.InvalidRecordStateError.errno
    assert member.acknowledge(0, 4) == 0
    assert member.acknowledge(9, 9) == codes.InvalidRecordStateError.errno


def test_locks_are_renewed_where_the_group_allows_it(client, group, member):
    assert member.fetch_some() == ALL
    assert member.acknowledge(0, 4, RENEW, is_renewal=True) == 0
    answer = member.ask([(0, 0, 4, [RENEW])], is_renewal=True)
    assert [part.acknowledge_error_code for topic in answer.responses for part in topic.partitions] == [0]
    assert configure(client, group, share_renew_acknowledge_enable="false") == 0
    wait_for(lambda: member.acknowledge(0, 4, RENEW, is_renewal=True) == codes.InvalidRecordStateError.errno)
    assert member.acknowledge(0, 4) == 0


def test_a_limit_of_records_is_kept_where_it_is_asked_for(member, other):
    assert wait_for(lambda: member.fetch(wait_ms=500, most=2, is_exact=True)) == ALL[:2]
    assert other.fetch(wait_ms=500, most=2) == ALL[2:]


def test_a_group_is_seen_altered_and_deleted(client, group, member):
    assert member.fetch_some() == ALL
    assert member.acknowledge(0, 2) == 0
    found = described(client, group)
    assert (found.error_code, found.group_state, found.assignor_name, len(found.members)) == (0, "Stable", "simple", 1)
    assert [each.topic_name for each in found.members[0].assignment.topic_partitions] == [group]
    listing = admin.ListGroupsRequest(version=5, states_filter=[], types_filter=["share"])
    listed = {each.group_id: each for each in client.call(listing, admin.ListGroupsResponse).groups}
    assert (listed[group].group_type, listed[group].protocol_type, listed[group].group_state) == ("share", "share", "Stable")
    assert alter_offset(client, group, 1, group).error_code == codes.NonEmptyGroupError.errno
    assert delete_offsets(client, group, group).error_code == codes.NonEmptyGroupError.errno
    deletion = admin.DeleteGroupsRequest(version=2, groups_names=[group])
    assert client.call(deletion, admin.DeleteGroupsResponse).results[0].error_code == codes.NonEmptyGroupError.errno

    member.end_session()
    assert member.leave() == 0
    assert described(client, group).group_state == "Empty"
    assert alter_offset(client, group, 1, group).responses[0].partitions[0].error_code == 0
    assert offsets(client, group)[group, 0][0] == 1
    assert delete_offsets(client, group, group).responses[0].error_code == 0
    assert offsets(client, group) == {}
    assert client.call(deletion, admin.DeleteGroupsResponse).results[0].error_code == 0
    assert described(client, group).error_code == codes.GroupIdNotFoundError.errno
