"""Share groups (KIP-932), request by request: on the embedded log, and beside it a real Kafka."""

import uuid

import pytest
from kafka.protocol import admin

from standalone.log.broker.group_configs import GROUP_CONFIGS
from standalone.log.broker.in_flight import ACCEPT, REJECT, RELEASE, RENEW
from standalone.log.broker.refusal import codes
from tests.log.broker_clients import RawClient, batch, make_topic, wait_for
from tests.log.share_clients import (
    GROUP,
    ShareMember,
    acquired,
    alter_offset,
    configure,
    delete_offsets,
    described,
    offsets,
)
from tests.suite.patience import PATIENCE_SECONDS

confluent_kafka = pytest.importorskip("confluent_kafka")


@pytest.fixture
def client(broker):
    with RawClient(broker) as client:
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
def member(broker, group):
    with ShareMember(broker, group, group) as member:
        yield member.join()


@pytest.fixture
def other(broker, group, member):
    with ShareMember(broker, group, group) as other:
        yield other.join()


def lag(client, group):
    """A real Kafka moves the start offset that it tells with the next write of its state only."""
    return offsets(client, group)[group, 0][1]


ALL = [(number, b"%d" % number, 1) for number in range(5)]


def test_each_record_is_one_members_until_it_is_released(client, group, member, other):
    assert member.fetch_some() == ALL
    assert other.fetch() == []
    assert member.acknowledge(0, 4, ACCEPT, RELEASE, ACCEPT, RELEASE, REJECT) == 0
    assert other.fetch_some() == [(1, b"1", 2), (3, b"3", 2)]
    assert lag(client, group) == 2
    assert acquired(other.ask([(0, 1, 1, [ACCEPT]), (0, 3, 3, [ACCEPT])])) == []
    assert lag(client, group) == 0


def test_a_record_that_is_released_again_and_again_is_archived(client, group, member):
    """Those that were delivered often come in smaller parts, and at last alone."""
    found = []
    for _ in range(11):
        rows = member.fetch_some()
        found.append([(offset, count) for offset, _, count in rows])
        assert member.acknowledge(rows[0][0], rows[-1][0], RELEASE) == 0
    assert found[:3] == [[(number, count) for number in range(5)] for count in (1, 2, 3)]
    assert found[3:] == [[(0, 4), (1, 4)], [(0, 5)], [(1, 5)], [(2, 4), (3, 4)], [(2, 5)], [(3, 5)], [(4, 4)], [(4, 5)]]
    assert member.fetch(wait_ms=300) == []
    assert lag(client, group) == 0


AGAIN = [(number, b"%d" % number, 2) for number in range(5)]


def test_a_session_that_is_closed_releases_its_records(member, other):
    assert member.fetch_some() == ALL
    assert acquired(member.end_session([(0, 0, 1, [ACCEPT])])) == []
    assert other.fetch_some() == AGAIN[2:]


def test_a_connection_that_ends_closes_its_session(member, other):
    assert member.fetch_some() == ALL
    member.client.sock.close()
    assert other.fetch_some() == AGAIN


def test_sessions_have_epochs(broker, group, member):
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


def test_acknowledgements_that_make_no_sense_are_refused(member):
    assert member.fetch_some() == ALL
    for first, last, said in ((3, 2, [ACCEPT]), (0, 4, [ACCEPT] * 3), (0, 4, [7]), (0, 4, [RENEW])):
        assert member.acknowledge(first, last, *said) == codes.InvalidRequestError.errno
    assert member.acknowledge(0, 4) == 0


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


def test_a_fetch_waits_for_records_and_has_them_when_they_are_released(member, other):
    assert member.fetch_some() == ALL
    assert other.fetch() == []
    other.send_fetch(wait_ms=PATIENCE_SECONDS * 500)
    assert member.acknowledge(0, 4, RELEASE) == 0
    assert [row[2] for row in acquired(other.fetched())] == [2] * 5
    other.acknowledge(0, 4)
    other.send_fetch(wait_ms=PATIENCE_SECONDS * 500)
    member.client.produce(member.topic, batch([b"new"]))
    assert acquired(other.fetched()) == [(5, b"new", 1)]


def test_read_committed_waits_for_open_transactions_and_never_delivers_aborted_ones(broker, client, group, member):
    assert configure(client, group, share_isolation_level="read_committed") == 0
    producer = confluent_kafka.Producer({"bootstrap.servers": broker, "transactional.id": group})
    producer.init_transactions(PATIENCE_SECONDS)
    assert member.fetch_some() == ALL
    assert member.acknowledge(0, 4) == 0

    def begin(*values):
        producer.begin_transaction()
        for value in values:
            producer.produce(group, value, partition=0)
            assert producer.flush(PATIENCE_SECONDS) == 0
        assert client.produce(group, batch([b"after " + values[0]])).error_code == 0

    def accepted(count):
        """The values of the next records. A client acknowledges the offsets without records, too: a real Kafka delivers those of markers."""
        found = []

        def are_there():
            answer = member.ask(wait_ms=300)
            found.extend(value for _, value, _ in acquired(answer))
            runs = [run for topic in answer.responses for part in topic.partitions for run in part.acquired_records]
            assert not any(member.acknowledge(run.first_offset, run.last_offset) for run in runs)
            return len(found) >= count

        wait_for(are_there)
        return found

    begin(b"one", b"two")
    assert member.fetch(wait_ms=300) == []
    producer.commit_transaction(PATIENCE_SECONDS)
    assert accepted(3) == [b"one", b"two", b"after one"]
    begin(b"three", b"four")
    assert member.fetch(wait_ms=300) == []
    producer.abort_transaction(PATIENCE_SECONDS)
    assert accepted(1) == [b"after three"]
    begin(b"five")
    producer.abort_transaction(PATIENCE_SECONDS)
    assert client.produce(group, batch([b"last"])).error_code == 0
    assert accepted(2) == [b"after five", b"last"]


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


def test_members_are_known_by_their_epochs(group, member, other):
    assert other.heartbeat(other.epoch + 5).error_code == codes.FencedMemberEpochError.errno
    assert other.leave() == 0
    assert other.heartbeat(other.epoch).error_code == codes.UnknownMemberIdError.errno
    other.id = str(uuid.uuid4())
    assert other.heartbeat(0).error_code == codes.InvalidRequestError.errno  # it names no topics


def test_groups_have_kafkas_configs(client, group):
    Resource = admin.DescribeConfigsRequest.DescribeConfigsResource
    request = admin.DescribeConfigsRequest(
        version=4, resources=[Resource(resource_type=GROUP, resource_name=group, configuration_keys=None)], include_synonyms=False
    )
    result = client.call(request, admin.DescribeConfigsResponse).results[0]
    found = {config.name: config.value for config in result.configs if not config.name.startswith("streams.")}
    kafkas = {name: str(known.default).lower() for name, known in GROUP_CONFIGS.items()}
    assert found == {**kafkas, "share.auto.offset.reset": "earliest"}


@pytest.mark.parametrize(
    "name, value",
    [
        ("share_record_lock_duration_ms", "14999"),
        ("share_record_lock_duration_ms", "60001"),
        ("share_delivery_count_limit", "1"),
        ("share_delivery_count_limit", "11"),
        ("share_partition_max_record_locks", "99"),
        ("share_auto_offset_reset", "nearest"),
        ("share_isolation_level", "serializable"),
        ("share_session_timeout_ms", "44999"),
        ("no_such_config", "1"),
    ],
)
def test_configs_that_cannot_be_are_refused(client, group, name, value):
    assert configure(client, group, **{name: value}) == codes.InvalidConfigurationError.errno
