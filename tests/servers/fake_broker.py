"""A cluster of brokers that does as a test says: kafka-python's messages over loopback sockets, no Java.

    with FakeCluster(nodes=2) as cluster:
        cluster.make("orders", partitions=2)
        cluster.control(ProduceRequest, lambda call: call.answer(...) if call.node.id == 1 else None)

It keeps topics, commits and producer ids in memory and answers what a client asks to read and to write. `control` puts a function before
the answer to one kind of request: what it returns is answered (a message, or bytes that are not message), HANG_UP closes the connection,
SILENCE leaves the request without answer, None leaves it to the cluster. Every request is kept in `calls`.

Left out: replication, transactions, groups of more than one member, and of what is produced only the sequence is checked.
"""

import socket
import struct
import sys
import threading
import time
import uuid

from kafka.protocol.api_header import RequestHeader
from kafka.protocol.consumer import (
    FetchRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    ListOffsetsRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    OffsetForLeaderEpochRequest,
    SyncGroupRequest,
)
from kafka.protocol.metadata import ApiVersionsRequest, FindCoordinatorRequest, MetadataRequest
from kafka.protocol.producer import InitProducerIdRequest, ProduceRequest
from kafka.protocol.sasl import SaslAuthenticateRequest, SaslHandshakeRequest

HANG_UP, SILENCE = object(), object()
OFFSET_OUT_OF_RANGE, UNKNOWN_TOPIC, NOT_LEADER, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, UNKNOWN_TOPIC_ID = 1, 3, 6, 74, 76, 100
OUT_OF_ORDER_SEQUENCE, DUPLICATE_SEQUENCE = 45, 46
EARLIEST, LATEST = -2, -1
BATCH_HEADER = 61
VERSIONS = {  # request -> the lowest and highest version that is answered
    ProduceRequest: (3, 12), FetchRequest: (4, 17), ListOffsetsRequest: (1, 10), MetadataRequest: (0, 12), OffsetCommitRequest: (2, 9),
    OffsetFetchRequest: (1, 9), FindCoordinatorRequest: (0, 6), JoinGroupRequest: (0, 9), HeartbeatRequest: (0, 4), LeaveGroupRequest: (0, 5),
    SyncGroupRequest: (0, 5), ApiVersionsRequest: (0, 4), InitProducerIdRequest: (0, 5), OffsetForLeaderEpochRequest: (0, 4),
    SaslHandshakeRequest: (0, 1), SaslAuthenticateRequest: (0, 2),
}


class Log:
    """One partition: whole batches, each with its first offset and the epoch of the leader that took it."""

    def __init__(self, leader):
        self.leader, self.epoch = leader, 0
        self.start = 0
        self.batches = []  # (base offset, count, epoch, bytes)
        self._sequences = {}  # producer id -> (its epoch, the sequence that is to come next)

    @property
    def end(self):
        return self.batches[-1][0] + self.batches[-1][1] if self.batches else self.start

    def refusal(self, data):
        """The error code by which a leader refuses a batch for its sequence, or 0."""
        producer, epoch, sequence, count = struct.unpack_from(">qhii", data, 43)
        if producer < 0:
            return 0
        known, expected = self._sequences.get(producer, (epoch, sequence))
        if known != epoch:
            expected = 0
        if sequence != expected:
            return DUPLICATE_SEQUENCE if sequence < expected else OUT_OF_ORDER_SEQUENCE
        self._sequences[producer] = epoch, sequence + count
        return 0

    def append(self, data):
        base, at = self.end, 0
        while at < len(data):
            (length,) = struct.unpack_from(">i", data, at + 8)
            count = struct.unpack_from(">i", data, at + 23)[0] + 1
            batch = struct.pack(">q", self.end) + data[at + 8 : at + 12] + struct.pack(">i", self.epoch) + data[at + 16 : at + 12 + length]
            self.batches.append((self.end, count, self.epoch, batch))
            at += 12 + length
        return base

    def read(self, offset, most):
        found = b""
        for base, count, _, data in self.batches:
            if base + count > offset and (not found or len(found) + len(data) <= most):
                found += data
        return found

    def end_of_epoch(self, epoch):
        """(the largest epoch up to it, the offset after its last record), as OffsetForLeaderEpoch tells."""
        older = [(base + count, of) for base, count, of, _ in self.batches if of <= epoch]
        return (older[-1][1], older[-1][0]) if older else (-1, -1)

    def cut(self, offset):
        """The records from an offset on are gone, as after an unclean election."""
        self.batches = [batch for batch in self.batches if batch[0] + batch[1] <= offset]


class Call:
    """One request."""

    def __init__(self, node, header, message, connection):
        self.node, self.message, self.connection = node, message, connection
        self.client_id, self.version = header.client_id, header.request_api_version
        self.at = time.monotonic()

    def answer(self, **fields):
        """A response in the version asked for; what is not given has its default."""
        # Not by kafka-python's registry: the embedded log, once it is imported, has its own classes there.
        asked = type(self.message)
        kind = getattr(sys.modules[asked.__module__], asked.__name__.replace("Request", "Response"))
        return kind(version=self.version, **fields)


class Node:
    def __init__(self, cluster, number, rack):
        self.cluster, self.id, self.rack = cluster, number, rack
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self._open = set()
        self.opened = 0  # connections there were
        self.runs = True
        threading.Thread(target=self._accept, args=(self._server,), daemon=True).start()

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def stop(self):
        """Hang up on everybody and refuse anyone who comes."""
        self.runs = False
        for each in (self._server, *list(self._open)):
            _close(each)

    def start(self):
        self._server = socket.create_server(("127.0.0.1", self.port))
        self.runs = True
        threading.Thread(target=self._accept, args=(self._server,), daemon=True).start()

    def _accept(self, server):
        while True:
            try:
                accepted, _ = server.accept()
            except OSError:
                return
            self.opened += 1
            self._open.add(accepted)
            threading.Thread(target=self._serve, args=(accepted,), daemon=True).start()

    def _serve(self, accepted):
        try:
            accepted = self.cluster.wrap(accepted)
            self._open.add(accepted)
            with accepted, accepted.makefile("rb") as frames:
                while size := frames.read(4):
                    frame = frames.read(int.from_bytes(size, "big"))
                    if not self._do(accepted, frame):
                        return
        except OSError:
            pass
        finally:
            self._open.discard(accepted)
            _close(accepted)

    def _do(self, connection, frame):
        key, version = struct.unpack_from(">hh", frame)
        kind = next(kind for kind in VERSIONS if key == kind.API_KEY)
        flexible = kind.flexible_version_q(version)
        decode = RequestHeader._struct.compiled_decode_from(2 if flexible else 1, compact=False, tagged=flexible, data_class=RequestHeader)
        header, at = decode(frame, 0)
        call = Call(self, header, kind.decode(frame[at:], version=version), connection)
        answer = self.cluster.answer_to(call)
        if answer is HANG_UP:
            return False
        if isinstance(answer, bytes):
            connection.sendall(struct.pack(">ii", len(answer) + 4, header.correlation_id) + answer)
        elif answer is not SILENCE and not (kind is ProduceRequest and call.message.acks == 0):
            answer.with_header(header.correlation_id)
            connection.sendall(answer.encode(header=True, framed=True))
        return True


class FakeCluster:
    def __init__(self, nodes=1, racks=(), cluster_id="fake", wrap=lambda accepted: accepted):
        """`wrap` makes what a connection is served through of its socket: TLS, for instance."""
        self.cluster_id, self.wrap = cluster_id, wrap
        self.topics = {}  # name -> {partition: Log}
        self.ids = {}  # name -> uuid
        self.commits = {}  # (group, topic, partition) -> (offset, epoch, metadata)
        self.coordinators = {}  # group -> node id; the first node for all others
        self.calls = []
        self._controls = {}
        self._producer_ids = 1000
        self._lock = threading.RLock()
        self.nodes = [Node(self, number + 1, racks[number] if number < len(racks) else None) for number in range(nodes)]

    @property
    def bootstrap(self):
        return ",".join(node.address for node in self.nodes)

    def node(self, number):
        return self.nodes[number - 1]

    def make(self, name, partitions=1):
        """A topic whose partitions are led by the nodes in turn."""
        self.topics[name] = {index: Log(index % len(self.nodes) + 1) for index in range(partitions)}
        self.ids[name] = uuid.uuid4()
        return self.topics[name]

    def control(self, request_class, function):
        """`function(Call)` before the answer to each request of a kind; None for the function ends that."""
        self._controls[request_class] = function

    def seen(self, request_class, node=None):
        """The calls of a kind, at a node or at all, so far."""
        return [call for call in list(self.calls) if isinstance(call.message, request_class) and node in (None, call.node.id)]

    def close(self):
        for node in self.nodes:
            node.stop()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # ---- answers

    def answer_to(self, call):
        self.calls.append(call)
        kind = next(kind for kind in VERSIONS if isinstance(call.message, kind))
        control = self._controls.get(kind)
        answer = control(call) if control is not None else None
        if answer is not None:
            return answer
        if kind is FetchRequest:
            self._wait_for_records(call)
        with self._lock:
            return getattr(self, f"_{kind.__name__.removesuffix('Request')}")(call)

    def _ApiVersions(self, call):
        keys = [(kind.API_KEY, *versions) for kind, versions in VERSIONS.items()]
        named = {"api_keys": [dict(zip(("api_key", "min_version", "max_version"), key)) for key in keys]}
        return build(call.answer(error_code=0, throttle_time_ms=0), named)

    def _Metadata(self, call):
        asked = [topic.name for topic in call.message.topics] if call.message.topics is not None else list(self.topics)
        if call.message.allow_auto_topic_creation:
            for name in asked:
                if name not in self.topics:
                    self.make(name)
        topics = []
        for name in asked:
            logs = self.topics.get(name)
            partitions = [
                {"error_code": 0, "partition_index": index, "leader_id": log.leader, "leader_epoch": log.epoch, "offline_replicas": [],
                 "replica_nodes": [node.id for node in self.nodes], "isr_nodes": [node.id for node in self.nodes]}
                for index, log in (logs or {}).items()
            ]
            topics.append({"error_code": 0 if logs is not None else UNKNOWN_TOPIC, "name": name, "is_internal": False, "partitions": partitions,
                           "topic_id": self.ids.get(name, uuid.UUID(int=0))})
        brokers = [{"node_id": node.id, "host": "127.0.0.1", "port": node.port, "rack": node.rack} for node in self.nodes]
        fields = call.answer(cluster_id=self.cluster_id, controller_id=self.nodes[0].id, throttle_time_ms=0)
        return build(fields, {"brokers": brokers, "topics": topics})

    def _Produce(self, call):
        topics = []
        for topic in call.message.topic_data:
            partitions = []
            for part in topic.partition_data:
                log = self.topics.get(topic.name, {}).get(part.index)
                code = UNKNOWN_TOPIC if log is None else NOT_LEADER if log.leader != call.node.id else 0
                code = code or log.refusal(part.records)
                base = log.append(bytes(part.records)) if not code else -1
                partitions.append({"index": part.index, "error_code": code, "base_offset": base, "log_append_time_ms": -1,
                                   "log_start_offset": 0, "record_errors": [], "error_message": None})
            topics.append({"name": topic.name, "partition_responses": partitions})
        return build(call.answer(throttle_time_ms=0), {"responses": topics})

    def _wait_for_records(self, call):
        deadline = time.monotonic() + call.message.max_wait_ms / 1000
        while time.monotonic() < deadline and self._nothing_to_fetch(call):
            time.sleep(0.005)

    def _nothing_to_fetch(self, call):
        for topic in call.message.topics:
            logs = self.topics.get(self._name(topic, call.version))
            for part in topic.partitions:
                log = (logs or {}).get(part.partition)
                if log is None or part.fetch_offset != log.end:
                    return False
        return True

    def _name(self, topic, version):
        return topic.topic if version < 13 else next((name for name, key in self.ids.items() if key == topic.topic_id), None)

    def _Fetch(self, call):
        topics = []
        for topic in call.message.topics:
            name, partitions = self._name(topic, call.version), []
            for part in topic.partitions:
                log = self.topics.get(name, {}).get(part.partition)
                code = UNKNOWN_TOPIC_ID if log is None else 0
                if log is not None and part.current_leader_epoch not in (-1, log.epoch):
                    code = FENCED_LEADER_EPOCH if part.current_leader_epoch < log.epoch else UNKNOWN_LEADER_EPOCH
                elif log is not None and not log.start <= part.fetch_offset <= log.end:
                    code = OFFSET_OUT_OF_RANGE
                partitions.append({
                    "partition_index": part.partition, "error_code": code, "high_watermark": log.end if log else -1,
                    "last_stable_offset": log.end if log else -1, "log_start_offset": 0, "aborted_transactions": None, "preferred_read_replica": -1,
                    "records": log.read(part.fetch_offset, part.partition_max_bytes) if not code else None,
                })
            topics.append({"topic": name, "topic_id": topic.topic_id, "partitions": partitions})
        return build(call.answer(throttle_time_ms=0, error_code=0, session_id=0), {"responses": topics})

    def _ListOffsets(self, call):
        topics = []
        for topic in call.message.topics:
            partitions = []
            for part in topic.partitions:
                log = self.topics.get(topic.name, {}).get(part.partition_index)
                offset = -1 if log is None else log.end if part.timestamp == LATEST else log.start
                partitions.append({"partition_index": part.partition_index, "error_code": 0 if log else UNKNOWN_TOPIC, "timestamp": -1,
                                   "offset": offset, "leader_epoch": log.epoch if log else -1})
            topics.append({"name": topic.name, "partitions": partitions})
        return build(call.answer(throttle_time_ms=0), {"topics": topics})

    def _OffsetForLeaderEpoch(self, call):
        topics = []
        for topic in call.message.topics:
            partitions = []
            for part in topic.partitions:
                log = self.topics.get(topic.topic, {}).get(part.partition)
                epoch, end = log.end_of_epoch(part.leader_epoch) if log else (-1, -1)
                partitions.append({"error_code": 0 if log else UNKNOWN_TOPIC, "partition": part.partition, "leader_epoch": epoch, "end_offset": end})
            topics.append({"topic": topic.topic, "partitions": partitions})
        return build(call.answer(throttle_time_ms=0), {"topics": topics})

    def _InitProducerId(self, call):
        self._producer_ids += 1
        return call.answer(error_code=0, producer_id=self._producer_ids, producer_epoch=0, throttle_time_ms=0)

    def _FindCoordinator(self, call):
        keys = call.message.coordinator_keys if call.version >= 4 else [call.message.key]
        found = []
        for key in keys:
            node = self.node(self.coordinators.get(key, 1))
            found.append({"key": key, "node_id": node.id, "host": "127.0.0.1", "port": node.port, "error_code": 0, "error_message": None})
        one = {name: value for name, value in found[0].items() if name != "key"}
        return build(call.answer(throttle_time_ms=0, **one), {"coordinators": found})

    def _JoinGroup(self, call):
        message = call.message
        chosen = message.protocols[0]
        who = message.member_id or f"member-{uuid.uuid4().hex[:8]}"
        member = {"member_id": who, "group_instance_id": message.group_instance_id, "metadata": bytes(chosen.metadata)}
        fields = call.answer(error_code=0, throttle_time_ms=0, generation_id=1, protocol_type="consumer", protocol_name=chosen.name, leader=who,
                             member_id=who, skip_assignment=False)
        return build(fields, {"members": [member]})

    def _SyncGroup(self, call):
        mine = next((each.assignment for each in call.message.assignments), b"")
        return call.answer(error_code=0, throttle_time_ms=0, protocol_type="consumer", protocol_name=call.message.protocol_name,
                           assignment=bytes(mine))

    def _Heartbeat(self, call):
        return call.answer(error_code=0, throttle_time_ms=0)

    def _LeaveGroup(self, call):
        return build(call.answer(error_code=0, throttle_time_ms=0), {"members": []})

    def _OffsetCommit(self, call):
        topics = []
        for topic in call.message.topics:
            for part in topic.partitions:
                self.commits[call.message.group_id, topic.name, part.partition_index] = (
                    part.committed_offset, part.committed_leader_epoch, part.committed_metadata or "")
            topics.append({"name": topic.name, "partitions": [{"partition_index": p.partition_index, "error_code": 0} for p in topic.partitions]})
        return build(call.answer(throttle_time_ms=0), {"topics": topics})

    def _OffsetFetch(self, call):
        asked = call.message.groups if call.version >= 8 else [call.message]
        groups = []
        for group in asked:
            topics = []
            for topic in group.topics or ():
                partitions = []
                for index in topic.partition_indexes:
                    offset, epoch, metadata = self.commits.get((group.group_id, topic.name, index), (-1, -1, ""))
                    partitions.append({"partition_index": index, "committed_offset": offset, "committed_leader_epoch": epoch, "metadata": metadata,
                                       "error_code": 0})
                topics.append({"name": topic.name, "partitions": partitions})
            groups.append({"group_id": group.group_id, "topics": topics, "error_code": 0})
        return build(call.answer(throttle_time_ms=0, error_code=0), {"groups": groups, "topics": groups[0]["topics"]})

    def _SaslHandshake(self, call):
        return call.answer(error_code=0, mechanisms=[call.message.mechanism])

    def _SaslAuthenticate(self, call):
        return call.answer(error_code=0, error_message=None, auth_bytes=b"", session_lifetime_ms=0)


def build(answer, lists):
    """The response with these lists of plain mappings in it, as its own structures."""
    for name, items in lists.items():
        if name in answer._struct.fields:
            setattr(answer, name, [_structure(answer._struct.fields[name], item) for item in items])
    return answer


def _structure(field, item):
    fields = {name: value for name, value in item.items() if name in field.fields}
    for name, value in fields.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            fields[name] = [_structure(field.fields[name], each) for each in value]
    return field.data_class(**fields)


def _close(each):
    try:
        each.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    each.close()
