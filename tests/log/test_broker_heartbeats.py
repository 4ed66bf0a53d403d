"""Heartbeats that change nothing are answered whatever the log's owner waits for; those that do are the owner's, as is all else."""

import contextlib
import ssl
import threading
import uuid

import pytest
from kafka.protocol import consumer
from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse
from pytest import param

from standalone.clock import SYSTEM
from standalone.log.broker.acls import ALLOW, LITERAL, Acl
from standalone.log.broker.heartbeats import Repeat
from standalone.log.broker.messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from standalone.log.broker.operations import GROUP, READ
from standalone.log.broker.refusal import codes
from standalone.log.broker.server import EmbeddedLog
from tests.log.broker_clients import RawClient, commit, delete_topic, make_topic, wait_for
from tests.suite.certificates import make_certificates
from tests.suite.patience import PATIENCE_SECONDS

SESSION_MS = 60_000
REBALANCING = codes.RebalanceInProgressError.errno


@contextlib.contextmanager
def held_up(log):
    """The owner waits for something, as for a disk, while the block runs."""
    stands, go_on = threading.Event(), threading.Event()
    log._owner.post(lambda: (stands.set(), go_on.wait(PATIENCE_SECONDS)))
    assert stands.wait(PATIENCE_SECONDS)
    try:
        yield
    finally:
        go_on.set()


class Classic:
    """A member by the classic protocol, on its own connection."""

    def __init__(self, client):
        self.client, self.id, self.generation = client, "", -1
        self.id = self.client.call(self.join_request(), consumer.JoinGroupResponse).member_id

    def join_request(self):
        protocols = [consumer.JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"")]
        return consumer.JoinGroupRequest(version=5, group_id="g", session_timeout_ms=SESSION_MS, rebalance_timeout_ms=60_000, member_id=self.id,
                                         protocol_type="consumer", protocols=protocols)  # fmt: skip

    def join(self):
        self.generation = self.client.call(self.join_request(), consumer.JoinGroupResponse).generation_id
        given = [consumer.SyncGroupRequest.SyncGroupRequestAssignment(member_id=self.id, assignment=b"")]
        request = consumer.SyncGroupRequest(version=3, group_id="g", generation_id=self.generation, member_id=self.id, assignments=given)
        assert self.client.call(request, consumer.SyncGroupResponse).error_code == 0
        return self

    def request(self):
        return consumer.HeartbeatRequest(version=4, group_id="g", generation_id=self.generation, member_id=self.id)

    def heartbeat(self):
        return self.client.call(self.request(), consumer.HeartbeatResponse).error_code


class ByConsumerProtocol:
    """A member by the consumer protocol."""

    def __init__(self, client):
        self.client, self.id, self.epoch = client, str(uuid.uuid4()), 0

    def join(self):
        self.beat(subscribed_topic_names=["t"], rebalance_timeout_ms=60_000, topic_partitions=[])
        return self

    def heartbeat(self):
        return self.beat().error_code

    def beat(self, **told):
        request = ConsumerGroupHeartbeatRequest(version=0, group_id="g", member_id=self.id, member_epoch=self.epoch, **told)
        answer = self.client.call(request, ConsumerGroupHeartbeatResponse)
        self.epoch = answer.member_epoch
        return answer


@pytest.mark.parametrize("member", [Classic, ByConsumerProtocol])
def test_a_heartbeat_waits_for_nothing(log, member):
    with RawClient(log.bootstrap) as client, RawClient(log.bootstrap) as other:
        make_topic(client)
        joined = member(client).join()
        assert joined.heartbeat() == 0
        with held_up(log):
            assert [joined.heartbeat() for _ in range(3)] == [0, 0, 0]
            other.send(ApiVersionsRequest(version=0))
        assert other.receive(ApiVersionsResponse, 0).error_code == 0
        assert commit(client, 1) == codes.UnknownMemberIdError.errno  # a stranger's, on the same connection
        assert joined.heartbeat() == 0
        with held_up(log):
            assert joined.heartbeat() == 0


def test_a_heartbeat_waits_for_nothing_by_tls(tmp_path):
    pem = make_certificates(tmp_path, broker="/CN=broker", client="/CN=client")
    settings = {"embedded.log.ssl.keystore.type": "PEM", "embedded.log.ssl.keystore.location": str(pem / "broker.pem")}
    log = EmbeddedLog(tmp_path / "log", "SSL://127.0.0.1:0", settings)
    log.start()
    with RawClient(log.bootstrap) as client:
        context = ssl.create_default_context(cafile=pem / "ca.pem")
        context.check_hostname = False
        client.sock = context.wrap_socket(client.sock)
        joined = Classic(client).join()
        assert joined.heartbeat() == 0
        with held_up(log):
            assert [joined.heartbeat() for _ in range(3)] == [0, 0, 0]
        make_topic(client)
    log.stop()


def test_who_was_heard_while_the_owner_was_held_up_keeps_his_place_and_who_is_silent_loses_it(tmp_path):
    clock = Ahead()
    log = EmbeddedLog(tmp_path, "127.0.0.1:0", clock=clock)
    log.start()
    with RawClient(log.bootstrap) as client, RawClient(log.bootstrap) as other:
        joined = Classic(client).join()
        assert joined.heartbeat() == 0
        with held_up(log):
            for _ in range(3):  # longer than the session, together
                clock.seconds += SESSION_MS / 1500
                assert joined.heartbeat() == 0
        make_topic(other)  # the owner has done what was due
        assert joined.heartbeat() == 0
        clock.seconds += SESSION_MS / 500
        make_topic(other, "u")
        wait_for(lambda: not log._node.groups.get("g").members)
        assert joined.heartbeat() == codes.UnknownMemberIdError.errno
    log.stop()


class Ahead:
    """The clock, so many seconds ahead."""

    seconds = 0.0

    def monotonic(self):
        return SYSTEM.monotonic() + self.seconds

    def now_ms(self):
        return SYSTEM.now_ms()


def test_what_changes_is_told_at_the_next_heartbeat(log):
    with RawClient(log.bootstrap) as client, RawClient(log.bootstrap) as another:
        first = Classic(client).join()
        assert [first.heartbeat() for _ in range(3)] == [0, 0, 0]
        second = Classic(another)
        another.send(second.join_request())
        wait_for(lambda: log._node.groups.get("g").state == "PreparingRebalance")
        assert first.heartbeat() == REBALANCING
        first.client.send(first.join_request())
        second.generation = another.receive(consumer.JoinGroupResponse, 5).generation_id
        assert first.client.receive(consumer.JoinGroupResponse, 5).generation_id == second.generation == first.generation + 1
        assert first.heartbeat() == codes.IllegalGenerationError.errno


@pytest.mark.parametrize("change", ["a topic's end", "another member", "another's end"])
def test_by_the_consumer_protocol_too(log, change):
    with RawClient(log.bootstrap) as client, RawClient(log.bootstrap) as another:
        make_topic(client, "t", 2)
        first = ByConsumerProtocol(client).join()
        second = ByConsumerProtocol(another)
        if change == "another's end":
            second.join()
            for _ in range(2):  # to be told what to give up, and to say that it did
                first.beat(topic_partitions=[])
        for _ in range(3):
            assert first.beat().error_code == 0
        assert first.beat().assignment is None
        if change == "a topic's end":
            delete_topic(another)
        elif change == "another member":
            second.join()
        else:
            second.epoch = -1
            second.beat()
        assert first.beat().assignment is not None


def test_after_a_change_of_acls_the_owner_is_asked(log):
    with RawClient(log.bootstrap) as client:
        joined = Classic(client).join()
        assert joined.heartbeat() == 0
        (connection,) = log._owner._connections
        wait_for(lambda: connection.is_lent)
        log._owner.post(lambda: log._node.authorizer.acls.add(Acl(GROUP, "g", LITERAL, "User:ann", "*", READ, ALLOW)))
        with held_up(log):
            client.send(joined.request())
            wait_for(lambda: connection.busy)
        assert client.receive(consumer.HeartbeatResponse, 4).error_code == 0
        with held_up(log):
            assert joined.heartbeat() == 0


def test_requests_that_came_together_are_answered_in_order(log):
    with RawClient(log.bootstrap) as client:
        joined = Classic(client).join()
        assert joined.heartbeat() == 0
        kinds = [consumer.HeartbeatResponse] * 3 + [ApiVersionsResponse] + [consumer.HeartbeatResponse] * 2 + [ApiVersionsResponse]
        frames = b""
        for number, kind in enumerate(kinds):
            request = joined.request() if kind is consumer.HeartbeatResponse else ApiVersionsRequest(version=0)
            request.with_header(correlation_id=number, client_id="raw")
            frames += request.encode(header=True, framed=True)
        for end in range(len(frames) - 40, len(frames), 13):  # the last one comes in two parts
            client.sock.sendall(frames[:end])
            client.sock.sendall(frames[end:])
            for number, kind in enumerate(kinds):
                answer = kind.decode(client.receive_frame(), version=4 if kind is consumer.HeartbeatResponse else 0, header=True)
                assert (answer.header.correlation_id, answer.error_code) == (number, 0)


def test_who_went_away_is_let_go(log):
    with RawClient(log.bootstrap) as client:
        joined = Classic(client).join()
        assert joined.heartbeat() == 0
        wait_for(lambda: [connection.is_lent for connection in list(log._owner._connections)] == [True])
    wait_for(lambda: not log._owner._connections)


def test_an_idle_member_is_hung_up_on_like_others(tmp_path):
    log = EmbeddedLog(tmp_path, "127.0.0.1:0", {"embedded.log.connections.max.idle.ms": 100})
    log.start()
    with RawClient(log.bootstrap) as client:
        joined = Classic(client).join()
        assert joined.heartbeat() == 0
        assert client.sock.recv(1) == b""
    log.stop()


@pytest.mark.parametrize(
    "frame, still, expected",
    [
        param(b"\0\x0c\0\x04\0\0\0\x07gm", True, b"size\0\0\0\x07ok", id="the same, under another number"),
        param(b"\0\x0c\0\x04\0\0\0\x07gn", True, None, id="of another member"),
        param(b"\0\x0c\0\x03\0\0\0\x07gm", True, None, id="in another version"),
        param(b"\0\x0c\0\x04\0\0\0\x07gm", False, None, id="that is true no more"),
    ],
)
def test_an_answer_is_repeated_to(frame, still, expected):
    class Response:
        def with_header(self, correlation_id):
            pass

        def encode(self, header, framed):
            return b"size\0\0\0\0ok"

    repeat = Repeat(b"\0\x0c\0\x04\0\0\0\x01gm", Response(), lambda: still)
    assert repeat.answer_to(memoryview(frame)) == expected
