#!/usr/bin/env python3
"""The latency of heartbeats on the embedded log while producers write at full speed, and their throughput.

    scripts/bench/heartbeats.py [--seconds 20] [--writers 3] [--batch 1048576] [--compression none]

The log is its own process. Beside the writers topics are made and deleted, files are begun and deleted by retention, a topic is compacted
and offsets are committed: all that waits for a disk. A member of a group sends a heartbeat every 5 ms, and its waits are told by percentiles;
beside them those for a process that only says back what it is told, which is what the machine alone takes.
"""

import argparse
import multiprocessing
import os
import socket
import struct
import subprocess
import sys
import tempfile
import time

from kafka.protocol import admin, consumer
from kafka.protocol.producer import ProduceRequest

from standalone import warm_up, wire
from standalone.log import record_batch

EVERY_SECONDS = 0.005
_ECHO = """
import socket
listener = socket.create_server(("127.0.0.1", 0))
print("127.0.0.1:%d" % listener.getsockname()[1], flush=True)
sock = listener.accept()[0]
while data := sock.recv(4096):
    sock.sendall(data)
"""
_SERVER = """
import sys
from standalone.log.broker.server import EmbeddedLog
sys.setswitchinterval(0.0005)  # as the worker does
settings = {"embedded.log.segment.bytes": 32 << 20, "embedded.log.retention.bytes": 128 << 20, "embedded.log.flush.interval.ms": 200,
            "embedded.log.max.message.bytes": 16 << 20}
log = EmbeddedLog(sys.argv[1], "127.0.0.1:0", settings)
log.start()
print(log.bootstrap, flush=True)
sys.stdin.read()
log.stop()
"""


def main():
    arguments = _arguments()
    warm_up.compile_all()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        server = subprocess.Popen([sys.executable, "-c", _SERVER, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        echo = subprocess.Popen([sys.executable, "-c", _ECHO], stdout=subprocess.PIPE, text=True)
        try:
            waits, echoes, sent = _measure(server.stdout.readline().strip(), echo.stdout.readline().strip(), arguments)
        finally:
            server.stdin.close()
            server.wait()
            echo.kill()
            echo.wait()
    print(f"{len(waits)} heartbeats: {_percentiles(waits)}; written {sent / arguments.seconds / 1e6:.0f} MB/s")
    print(f"{len(echoes)} echoes of another process: {_percentiles(echoes)}")


def _percentiles(waits):
    waits.sort()
    at = {name: waits[min(int(len(waits) * part), len(waits) - 1)] * 1000 for name, part in (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999))}
    return "  ".join(f"{name} {value:.1f} ms" for name, value in at.items()) + f"  longest {waits[-1] * 1000:.1f} ms"


def _measure(address, echo, arguments):
    client = _Client(address)
    for name, partitions, configs in (("load", arguments.writers, {}), ("compacted", 1, {"cleanup.policy": "compact", "segment.bytes": 1 << 20,
                                                                                          "min.cleanable.dirty.ratio": 0})):
        client.make_topic(name, partitions, configs)
    until = time.time() + arguments.seconds
    counts = [multiprocessing.Value("q") for _ in range(arguments.writers)]
    work = [multiprocessing.Process(target=_write, args=(address, number, until, arguments, count)) for number, count in enumerate(counts)]
    work.append(multiprocessing.Process(target=_administer, args=(address, until)))
    for each in work:
        each.start()
    waits, echoes = _beat(client, _Client(echo), until)
    for each in work:
        each.join()
    return waits, echoes, sum(count.value for count in counts)


def _beat(client, echo, until):
    join = {"group_id": "g", "session_timeout_ms": 60_000, "rebalance_timeout_ms": 60_000, "protocol_type": "consumer", "protocols": [
        consumer.JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"")]}
    member = client.call(consumer.JoinGroupRequest(version=5, member_id="", **join), consumer.JoinGroupResponse).member_id
    joined = client.call(consumer.JoinGroupRequest(version=5, member_id=member, **join), consumer.JoinGroupResponse)
    given = [consumer.SyncGroupRequest.SyncGroupRequestAssignment(member_id=member, assignment=b"")]
    client.call(consumer.SyncGroupRequest(version=3, group_id="g", generation_id=joined.generation_id, member_id=member, assignments=given),
                consumer.SyncGroupResponse)
    waits, echoes = [], []
    while time.time() < until:
        begun = time.perf_counter()
        echo.sock.sendall(bytes(64))
        echo.exactly(64)
        echoes.append(time.perf_counter() - begun)
        begun = time.perf_counter()
        beat = consumer.HeartbeatRequest(version=3, group_id="g", generation_id=joined.generation_id, member_id=member)
        assert client.call(beat, consumer.HeartbeatResponse).error_code == 0
        waits.append(time.perf_counter() - begun)
        time.sleep(EVERY_SECONDS)
    return waits, echoes


def _write(address, number, until, arguments, count):
    client = _Client(address)
    value = b"a line of a log, as long as lines are, more or less, with some words in it and a number at its end 1234567890"
    lines = max(arguments.batch // (len(value) + 8), 1)
    data = bytes(record_batch.pack(wire.Records(lines, values=wire.ByteColumn.of([value] * lines)), compression=arguments.compression))
    Topic = ProduceRequest.TopicProduceData
    part = Topic.PartitionProduceData(index=number, records=data)
    request = ProduceRequest(version=9, acks=-1, timeout_ms=1000, topic_data=[Topic(name="load", partition_data=[part])])
    frame = client.frame(request)
    client.sock.sendall(frame)
    while time.time() < until:
        client.sock.sendall(frame)  # one more on its way than answered
        client.receive()
        count.value += arguments.batch


def _administer(address, until):
    """What else a log has to do: topics come and go, keys are written over, offsets are committed."""
    client, turn = _Client(address), 0
    keys = wire.ByteColumn.of([b"%d" % number for number in range(1000)])
    data = bytes(record_batch.pack(wire.Records(1000, keys=keys, values=wire.ByteColumn.of([os.urandom(100) for _ in range(1000)]))))
    Topic = ProduceRequest.TopicProduceData
    Commit = consumer.OffsetCommitRequest.OffsetCommitRequestTopic
    while time.time() < until:
        turn += 1
        client.make_topic(f"passing-{turn}", 4, {})
        part = Topic.PartitionProduceData(index=0, records=data)
        for topic in ("compacted", f"passing-{turn}"):
            request = ProduceRequest(version=9, acks=-1, timeout_ms=1000, topic_data=[Topic(name=topic, partition_data=[part])])
            client.sock.sendall(client.frame(request))
            client.receive()
        committed = Commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=turn, committed_metadata="")
        request = consumer.OffsetCommitRequest(version=8, group_id="other", generation_id_or_member_epoch=-1, member_id="",
                                               topics=[Commit(name="compacted", partitions=[committed])])
        client.call(request, consumer.OffsetCommitResponse)
        client.call(admin.DeleteTopicsRequest(version=5, topic_names=[f"passing-{turn}"], timeout_ms=1000), admin.DeleteTopicsResponse)


class _Client:
    def __init__(self, address):
        host, port = address.rsplit(":", 1)
        self.sock = socket.create_connection((host, int(port)))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def frame(self, request):
        request.with_header(correlation_id=1, client_id="bench")
        return request.encode(header=True, framed=True)

    def call(self, request, kind):
        self.sock.sendall(self.frame(request))
        return kind.decode(self.receive(), version=request.API_VERSION, header=True)

    def receive(self):
        return self.exactly(struct.unpack(">i", self.exactly(4))[0])

    def exactly(self, count):
        data = bytearray()
        while len(data) < count:
            piece = self.sock.recv(count - len(data))
            if not piece:
                raise ConnectionError("the log hung up")
            data += piece
        return bytes(data)

    def make_topic(self, name, partitions, configs):
        Topic = admin.CreateTopicsRequest.CreatableTopic
        pairs = [Topic.CreatableTopicConfig(name=key, value=str(value)) for key, value in configs.items()]
        topic = Topic(name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=pairs)
        request = admin.CreateTopicsRequest(version=7, topics=[topic], timeout_ms=1000, validate_only=False)
        assert self.call(request, admin.CreateTopicsResponse).topics[0].error_code == 0


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--writers", type=int, default=3)
    parser.add_argument("--batch", type=int, default=1 << 20)
    parser.add_argument("--compression", default="none")
    parser.add_argument("--folder", help="where the log lies; by default among temporary files")
    return parser.parse_args()


if __name__ == "__main__":
    main()
