"""For the tests of the embedded log: a bare client that speaks any version, batches, a server in its own process."""

import contextlib
import os
import pathlib
import socket
import subprocess
import sys
import time
from struct import Struct

from kafka.protocol import admin, consumer
from kafka.protocol.consumer import FetchRequest, FetchResponse
from kafka.protocol.producer import ProduceRequest, ProduceResponse

from standalone import wire
from standalone.log import record_batch
from standalone.log.broker.server import EmbeddedLog
from tests.suite.patience import PATIENCE_SECONDS

ROOT = pathlib.Path(__file__).resolve().parents[2]
_SIZE = Struct(">i")


def batch(values, now_ms=None, **options):
    """A record batch of these values, as writable bytes."""
    return bytearray(record_batch.pack(wire.Records(len(values), values=wire.ByteColumn.of(values)), now_ms=now_ms, **options))


def values_of(data):
    """[(offset, value)] of the batches in `data`."""
    return [
        (int(offset), value) for records in record_batch.unpack(data).records for offset, value in zip(records.offsets.tolist(), records.values)
    ]


def wait_for(condition, seconds=PATIENCE_SECONDS):
    """Until it is true; what it returned."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"not within {seconds} s: {condition}"
        time.sleep(0.005)
    return found


class RawClient:
    """One connection; a request at a time, in any version."""

    def __init__(self, bootstrap, seconds=PATIENCE_SECONDS):
        host, port = bootstrap.rsplit(":", 1)
        self.sock = socket.create_connection((host, int(port)), seconds)
        self._correlation_id = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def send(self, request):
        self._correlation_id += 1
        request.with_header(correlation_id=self._correlation_id, client_id="raw")
        self.sock.sendall(request.encode(header=True, framed=True))

    def receive(self, kind, version):
        data = self.receive_frame()
        response = kind.decode(data, version=version, header=True)
        assert response.header.correlation_id == self._correlation_id
        return response

    def receive_frame(self):
        return self._exactly(_SIZE.unpack(self._exactly(_SIZE.size))[0])

    def call(self, request, kind):
        self.send(request)
        return self.receive(kind, request.API_VERSION)

    def _exactly(self, count):
        data = bytearray()
        while len(data) < count:
            piece = self.sock.recv(count - len(data))
            if not piece:
                raise ConnectionError("the server hung up")
            data += piece
        return bytes(data)

    def produce(self, topic, data, partition=0, version=9, acks=-1):
        """The answer for the partition."""
        self.send(produce_request(topic, data, partition, version, acks))
        return self.receive(ProduceResponse, version).responses[0].partition_responses[0]

    def fetch(self, topic, offset, partition=0, **options):
        """The answer for the partition."""
        self.send(fetch_request(topic, offset, partition, **options))
        return self.fetched()

    def fetched(self, version=11):
        return self.receive(FetchResponse, version).responses[0].partitions[0]


def produce_request(topic, data, partition=0, version=9, acks=-1):
    Topic = ProduceRequest.TopicProduceData
    part = Topic.PartitionProduceData(index=partition, records=bytes(data))
    return ProduceRequest(version=version, acks=acks, timeout_ms=1000, topic_data=[Topic(name=topic, partition_data=[part])])


def fetch_request(topic, offset, partition=0, max_bytes=1 << 20, partition_max_bytes=1 << 20, min_bytes=1, max_wait_ms=0):
    Topic = FetchRequest.FetchTopic
    part = Topic.FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=partition_max_bytes)
    return FetchRequest(
        version=11,
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        topics=[Topic(topic=topic, partitions=[part])],
        forgotten_topics_data=[],
    )


def make_topic(client, name="t", partitions=1, **configs):
    Topic = admin.CreateTopicsRequest.CreatableTopic
    pairs = [Topic.CreatableTopicConfig(name=key.replace("_", "."), value=str(value)) for key, value in configs.items()]
    topic = Topic(name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=pairs)
    request = admin.CreateTopicsRequest(version=7, topics=[topic], timeout_ms=1000, validate_only=False)
    return client.call(request, admin.CreateTopicsResponse).topics[0]


def delete_topic(client, name="t"):
    request = admin.DeleteTopicsRequest(version=5, topic_names=[name], timeout_ms=1000)
    return client.call(request, admin.DeleteTopicsResponse).responses[0]


def list_offset(client, timestamp, topic="t"):
    Topic = consumer.ListOffsetsRequest.ListOffsetsTopic
    part = Topic.ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    request = consumer.ListOffsetsRequest(version=7, replica_id=-1, topics=[Topic(name=topic, partitions=[part])])
    found = client.call(request, consumer.ListOffsetsResponse).topics[0].partitions[0]
    assert found.error_code == 0
    return found.timestamp, found.offset


def delete_records(client, offset):
    Topic = admin.DeleteRecordsRequest.DeleteRecordsTopic
    part = Topic.DeleteRecordsPartition(partition_index=0, offset=offset)
    request = admin.DeleteRecordsRequest(version=2, topics=[Topic(name="t", partitions=[part])], timeout_ms=1000)
    return client.call(request, admin.DeleteRecordsResponse).topics[0].partitions[0]


def commit(client, offset, group="g", topic="t"):
    Topic = consumer.OffsetCommitRequest.OffsetCommitRequestTopic
    part = Topic.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
    request = consumer.OffsetCommitRequest(
        version=8, group_id=group, generation_id_or_member_epoch=-1, member_id="", topics=[Topic(name=topic, partitions=[part])]
    )
    return client.call(request, consumer.OffsetCommitResponse).topics[0].partitions[0].error_code


class running:
    """A client of a log that is started for this block and stopped well after it."""

    def __init__(self, folder, **config):
        self.log = EmbeddedLog(folder, "127.0.0.1:0", config)

    def __enter__(self):
        self.log.start()
        self.client = RawClient(self.log.bootstrap)
        return self.client

    def __exit__(self, *_):
        self.client.sock.close()
        self.log.stop()


_SERVER = """
import os, resource, sys, threading
from standalone.log.broker.server import EmbeddedLog
if os.environ.get("TEST_POWER_NOTES"):
    from tests.log.power import Power
    Power(sys.argv[1], os.environ["TEST_POWER_NOTES"]).install()
if int(sys.argv[2]):
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
log = EmbeddedLog(sys.argv[1], sys.argv[3], dict(pair.split("=", 1) for pair in sys.argv[4:]))
log.start()
print(log.bootstrap, flush=True)
sys.stdin.read()
log.stop()
"""


class ServerProcess:
    """An embedded log in a process that can be killed. `stop` ends it well."""

    def __init__(self, folder, listener="127.0.0.1:0", file_limit=0, power_notes=None, **config):
        """`power_notes` is a folder where what is synced is noted (power.py)."""
        pairs = [f"embedded.log.{name.replace('_', '.')}={value}" for name, value in config.items()]
        self.process = subprocess.Popen(
            [sys.executable, "-c", _SERVER, str(folder), str(file_limit), listener, *pairs],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TEST_POWER_NOTES": str(power_notes or "")},
            cwd=ROOT,
        )
        self.bootstrap = self.process.stdout.readline().strip()
        if not self.bootstrap:
            raise AssertionError(self.process.stderr.read())

    def cpu_seconds(self):
        fields = open(f"/proc/{self.process.pid}/stat").read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def wait_until_idle(self):
        """What it loads beside its first requests is loaded then."""
        seen = [-1.0]

        def is_idle():
            time.sleep(0.3)
            seen.append(self.cpu_seconds())
            return seen[-1] == seen[-2]

        wait_for(is_idle)

    def kill(self):
        self.process.kill()
        return self._over()

    def stop(self):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        return self._over()

    def _over(self):
        """What it wrote on its standard error."""
        self.process.wait(PATIENCE_SECONDS)
        with self.process.stderr, self.process.stdout:
            return self.process.stderr.read()
