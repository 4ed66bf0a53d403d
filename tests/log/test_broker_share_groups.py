"""Share groups on the embedded log: locks that end, crashes, records and topics that are deleted, limits."""

import os
import random
import uuid

import pytest
from kafka.protocol import admin, metadata

from standalone.clock import SYSTEM
from standalone.log.broker import node, share_members, share_sessions
from standalone.log.broker.in_flight import ACCEPT, REJECT, RELEASE
from standalone.log.broker.refusal import Refusal, ShareSessionLimitReached, codes
from standalone.log.broker.server import EmbeddedLog
from standalone.log.broker.share_assignor import simple
from tests.log.broker_clients import (
    RawClient,
    ServerProcess,
    batch,
    commit,
    delete_records,
    delete_topic,
    make_topic,
    wait_for,
)
from tests.log.share_clients import ShareMember, acquired, configure, delete_offsets, described, offsets


class Ahead:
    """The clock, so many seconds ahead."""

    seconds = 0.0

    def monotonic(self):
        return SYSTEM.monotonic() + self.seconds

    def now_ms(self):
        return SYSTEM.now_ms() + int(self.seconds * 1000)


@pytest.fixture
def clock():
    return Ahead()


@pytest.fixture
def log(tmp_path, clock):
    log = EmbeddedLog(tmp_path / "log", "127.0.0.1:0", clock=clock)
    log.start()
    yield log
    log.stop()


@pytest.fixture
def client(log):
    with RawClient(log.bootstrap) as client:
        assert make_topic(client).error_code == 0
        assert configure(client, "g", share_auto_offset_reset="earliest") == 0
        yield client


@pytest.fixture
def member(log, client):
    with ShareMember(log.bootstrap) as member:
        yield member.join()


@pytest.fixture
def other(log, member):
    with ShareMember(log.bootstrap) as other:
        yield other.join()


def write(client, *values, **options):
    assert client.produce("t", batch([b"%d" % value for value in values]), **options).error_code == 0


def pass_time(clock, client, seconds):
    """What is due then is done with the next request, after it."""
    clock.seconds += seconds
    described(client, "g")


# --- Locks


def test_a_lock_ends_by_time_and_a_record_whose_deliveries_are_used_up_is_archived(clock, client, member, other):
    assert configure(client, "g", share_delivery_count_limit="2") == 0
    write(client, 0, 1)
    assert member.fetch() == [(0, b"0", 1), (1, b"1", 1)]
    clock.seconds += 29
    assert other.fetch() == []
    pass_time(clock, client, 2)
    assert other.fetch() == [(0, b"0", 2), (1, b"1", 2)]
    assert member.acknowledge(0, 0) == codes.InvalidRecordStateError.errno
    pass_time(clock, client, 31)
    assert member.fetch() == []
    assert offsets(client, "g") == {("t", 0): (2, 0)}


def test_who_waits_has_records_when_their_lock_ends(clock, client, member, other):
    write(client, 0)
    assert member.fetch() == [(0, b"0", 1)]
    assert other.fetch() == []
    clock.seconds += 29.7
    other.send_fetch(wait_ms=20_000)
    assert acquired(other.fetched()) == [(0, b"0", 2)]


def test_the_duration_of_locks_is_the_groups(clock, client, member, other):
    assert configure(client, "g", share_record_lock_duration_ms="60000") == 0
    write(client, 0)
    assert member.ask().acquisition_lock_timeout_ms == 60_000
    clock.seconds += 59
    assert other.fetch() == []
    pass_time(clock, client, 2)
    assert other.fetch() == [(0, b"0", 2)]


def test_no_more_records_are_under_way_than_may_be_locked(client, member):
    assert configure(client, "g", share_partition_max_record_locks="100") == 0
    for number in range(150):
        write(client, number)
    found = member.fetch(most=1000)
    assert len(found) == 100
    assert member.fetch(most=1000) == []
    assert member.acknowledge(0, 49) == 0
    assert [offset for offset, *_ in member.fetch(most=1000)] == list(range(100, 150))


# --- Where a group begins


def test_a_group_begins_at_the_end_unless_told_otherwise(log, client):
    write(client, 0, 1)
    with ShareMember(log.bootstrap, "late") as late:
        late.join()
        assert late.fetch() == []
        write(client, 2)
        assert late.fetch() == [(2, b"2", 1)]


def test_a_group_may_begin_by_time(log, clock, client):
    clock.seconds = -7200
    assert client.produce("t", batch([b"old"], now_ms=clock.now_ms())).error_code == 0
    clock.seconds = 0
    assert client.produce("t", batch([b"new"], now_ms=clock.now_ms())).error_code == 0
    assert configure(client, "timed", share_auto_offset_reset="by_duration:PT1H") == 0
    with ShareMember(log.bootstrap, "timed") as timed:
        assert timed.join().fetch() == [(1, b"new", 1)]


# --- What is there after a crash


def test_a_kill_loses_and_repeats_nothing_that_was_acknowledged(tmp_path):
    chance, count = random.Random(7), 300
    accepted, rejected, released = set(), set(), {}
    process = ServerProcess(tmp_path / "log")
    with RawClient(process.bootstrap) as client:
        make_topic(client)
        assert configure(client, "g", share_auto_offset_reset="earliest", share_delivery_count_limit="10") == 0
        for first in range(0, count, 10):
            write(client, *range(first, first + 10))
    for _ in range(4):
        members = [ShareMember(process.bootstrap).join() for _ in range(2)]
        for turn in range(10):
            member = members[turn % 2]
            for offset, value, deliveries in member.fetch(most=20):
                assert int(value) == offset and offset not in accepted | rejected
                assert deliveries == released.get(offset, 0) + 1
                said = chance.choice((ACCEPT, REJECT, RELEASE, None))
                if said is not None:
                    assert member.acknowledge(offset, offset, said) == 0
                    if said == RELEASE:
                        released[offset] = deliveries
                    else:
                        (accepted if said == ACCEPT else rejected).add(offset)
        process.kill()
        for member in members:
            member.client.sock.close()
        process = ServerProcess(tmp_path / "log")
    with ShareMember(process.bootstrap) as last:
        last.join()
        while found := last.fetch():
            for offset, _, deliveries in found:
                assert offset not in accepted | rejected and deliveries == released.get(offset, 0) + 1
                assert last.acknowledge(offset, offset) == 0
                accepted.add(offset)
        assert accepted | rejected == set(range(count))
        assert offsets(last.client, "g") == {("t", 0): (count, 0)}
    process.stop()


def test_members_and_configs_after_a_restart(tmp_path, clock):
    for round_number in range(2):
        log = EmbeddedLog(tmp_path / "log", "127.0.0.1:0", clock=clock)
        log.start()
        with RawClient(log.bootstrap) as client:
            if not round_number:
                make_topic(client)
                assert configure(client, "g", share_auto_offset_reset="earliest", share_delivery_count_limit="3") == 0
                write(client, 0, 1, 2)
            else:
                assert described(client, "g").group_state == "Empty"
                assert offsets(client, "g") == {("t", 0): (1, 2)}
            with ShareMember(log.bootstrap) as member:
                member.join()
                if not round_number:
                    assert len(member.fetch()) == 3
                    assert member.acknowledge(0, 2, ACCEPT, RELEASE, RELEASE) == 0
                else:
                    assert member.fetch() == [(1, b"1", 2), (2, b"2", 2)]
                    assert member.acknowledge(1, 2, RELEASE) == 0
                    for number in (1, 2):  # the last delivery is of one record
                        assert member.fetch() == [(number, b"%d" % number, 3)]
                        assert member.acknowledge(number, number, RELEASE) == 0
                    assert offsets(client, "g") == {("t", 0): (3, 0)}
        log.stop()


def test_a_state_that_is_younger_than_the_log_is_cut(tmp_path, log, client, member):
    write(client, 0, 1, 2)
    assert len(member.fetch()) == 3
    assert member.acknowledge(0, 2) == 0
    log.stop()
    (segment,) = (tmp_path / "log" / "t-0").glob("*.log")
    for path in (tmp_path / "log" / "t-0").iterdir():
        path.unlink()  # as if a loss of power had taken the records
    segment.touch()
    log.start()
    with RawClient(log.bootstrap) as again, ShareMember(log.bootstrap) as reader:
        write(again, 7)
        assert reader.join().fetch() == [(0, b"7", 1)]


def test_what_a_full_disk_refuses_is_as_before(log, client, member, monkeypatch):
    write(client, 0, 1)
    assert len(member.fetch()) == 2

    def full(*_):
        raise Refusal(codes.KafkaStorageError, "full")

    with monkeypatch.context() as patch:
        patch.setattr(log._node.store, "save_shares", full)
        assert member.acknowledge(0, 0) == codes.KafkaStorageError.errno
    assert offsets(client, "g") == {("t", 0): (0, 2)}
    assert member.acknowledge(0, 1) == 0
    assert offsets(client, "g") == {("t", 0): (2, 0)}


def test_the_journal_of_the_store_does_not_grow_with_acknowledgements(log, client, member, clock, monkeypatch):
    from standalone.log.broker import store

    monkeypatch.setattr(store, "CHECKPOINT_BYTES", 50_000)
    for number in range(60):
        write(client, number)
        assert len(member.fetch()) == 1
        assert member.acknowledge(number, number) == 0
    journal = log._node.store.path + "-wal"
    assert os.path.getsize(journal) > store.CHECKPOINT_BYTES
    clock.seconds += node.HOUSEKEEPING_SECONDS + 1
    for _ in range(2):  # timers that are due run after a request
        offsets(client, "g")
    wait_for(lambda: not log._node.store.is_dirty)
    size = os.path.getsize(journal)
    for number in range(60, 70):
        write(client, number)
        assert len(member.fetch()) == 1
        assert member.acknowledge(number, number) == 0
    assert os.path.getsize(journal) <= size  # it began again at its front


# --- Records and topics that are deleted


def test_records_that_are_deleted_are_not_waited_for(client, member):
    write(client, 0, 1, 2)
    write(client, 3, 4)
    assert len(member.fetch(most=1)) == 3
    assert member.acknowledge(1, 1, RELEASE) == 0
    assert delete_records(client, 4).error_code == 0
    assert member.fetch() == [(4, b"4", 1)]
    assert offsets(client, "g") == {("t", 0): (4, 1)}
    assert member.acknowledge(0, 2) == 0  # it is over: nobody will deliver them again
    assert member.acknowledge(4, 4) == 0
    assert offsets(client, "g") == {("t", 0): (5, 0)}


def test_a_topic_that_is_deleted_and_made_anew_is_read_anew(log, client, member):
    write(client, 0, 1)
    assert len(member.fetch()) == 2
    assert member.acknowledge(0, 0) == 0
    member.send_fetch(wait_ms=50_000)
    assert delete_topic(client).error_code == 0
    answer = member.fetched()
    assert [part.error_code for topic in answer.responses for part in topic.partitions] == [codes.UnknownTopicIdError.errno]
    assert offsets(client, "g") == {}
    assert make_topic(client).error_code == 0
    write(client, 5)
    with ShareMember(log.bootstrap) as reader:
        assert reader.join().fetch() == [(0, b"5", 1)]


def test_partitions_that_are_added_are_assigned(client, member):
    Topic = admin.CreatePartitionsRequest.CreatePartitionsTopic
    request = admin.CreatePartitionsRequest(version=3, topics=[Topic(name="t", count=3, assignments=None)], timeout_ms=1000, validate_only=False)
    client.call(request, admin.CreatePartitionsResponse)
    member.heartbeat()
    assert member.assigned == {member.topic_id: [0, 1, 2]}


def test_a_group_without_offsets_exists_until_it_is_deleted(clock, client, member):
    write(client, 0)
    assert len(member.fetch()) == 1
    member.end_session()
    assert member.leave() == 0
    assert delete_offsets(client, "g").responses[0].error_code == 0
    pass_time(clock, client, node.HOUSEKEEPING_SECONDS + 1)
    found = described(client, "g")
    assert (found.error_code, found.group_state) == (0, "Empty")
    deletion = admin.DeleteGroupsRequest(version=2, groups_names=["g"])
    assert client.call(deletion, admin.DeleteGroupsResponse).results[0].error_code == 0
    assert described(client, "g").error_code == codes.GroupIdNotFoundError.errno


# --- Limits, and who may not


def test_sessions_and_members_are_bounded(log, client, member, other, monkeypatch):
    monkeypatch.setattr(share_sessions, "MAX_SESSIONS", 1)
    monkeypatch.setattr(share_members, "MAX_MEMBERS", 2)
    write(client, 0)
    assert len(member.fetch()) == 1
    assert other.ask().error_code == ShareSessionLimitReached.errno
    with ShareMember(log.bootstrap) as third:
        assert third.heartbeat(0, ["t"]).error_code == codes.GroupMaxSizeReachedError.errno
    member.end_session()
    assert other.fetch() == [(0, b"0", 2)]


def test_a_group_is_of_one_kind(log, client, member):
    write(client, 0)
    assert commit(client, 0, group="g") == codes.GroupIdNotFoundError.errno
    assert commit(client, 0, group="classic") == 0
    with ShareMember(log.bootstrap, "classic") as stranger:
        assert stranger.heartbeat(0, ["t"]).error_code == codes.GroupIdNotFoundError.errno
        assert stranger.ask().error_code == codes.GroupIdNotFoundError.errno


def test_a_member_that_is_silent_is_out(clock, client, member, other):
    assert member.heartbeat().error_code == 0
    clock.seconds += 44
    assert other.heartbeat().error_code == 0
    pass_time(clock, client, 2)
    assert [each.member_id for each in described(client, "g").members] == [other.id]
    assert member.heartbeat().error_code == codes.UnknownMemberIdError.errno


def test_share_partitions_have_their_coordinator_here(log, client):
    def ask(key):
        request = metadata.FindCoordinatorRequest(version=6, key_type=2, coordinator_keys=[key])
        found = client.call(request, metadata.FindCoordinatorResponse).coordinators[0]
        return found.error_code, found.node_id

    assert ask(f"g:{uuid.uuid4()}:0") == (0, 1)
    assert ask("g") == (codes.InvalidRequestError.errno, -1)


def test_the_feature_is_told(client):
    answer = client.call(metadata.ApiVersionsRequest(version=3, client_software_name="raw"), metadata.ApiVersionsResponse)
    assert ("share.version", 1) in {(each.name, each.max_version_level) for each in answer.finalized_features}


@pytest.mark.parametrize("members, partitions", [(1, 1), (1, 5), (3, 5), (5, 3), (4, 4), (2, 0)])
def test_each_partition_has_a_reader_and_each_member_something_to_read(members, partitions):
    names = [f"m{number}" for number in range(members)]
    assigned = simple({name: {"t"} for name in names}, {"t": partitions} if partitions else {})
    assert set().union(*assigned.values()) == {("t", number) for number in range(partitions)}
    sizes = {len(found) for found in assigned.values()}
    assert min(sizes) >= min(partitions, 1) and max(sizes) - min(sizes) <= 1
    readers = [sum(("t", number) in found for found in assigned.values()) for number in range(partitions)]
    assert max(readers, default=0) - min(readers, default=0) <= 1
