#!/usr/bin/env python3
"""The embedded log beside a real Kafka broker, as servers: produce by 1 MB and by 16 KB, fetch, 100 connections. One table, with the ratios.

    scripts/bench/broker.py [--megabytes 400] [--rounds 5] [--compression none] [--only WORD]

The client is bare: requests that were encoded beforehand, over plain sockets, with as many in flight as producers have. Records of 100 bytes,
acks=all, each log with its own defaults, Kafka with the heap and the compiler of a server. Both take turns; the first round warms up, and the
table shows the medians of the others: records a second, and the CPU time of the server's process for a record. Needs Java 17 and Maven.
"""

import argparse
import contextlib
import os
import pathlib
import selectors
import socket
import statistics
import struct
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from kafka.protocol.consumer import FetchResponse  # noqa: E402
from kafka.protocol.producer import ProduceResponse  # noqa: E402

from standalone import warm_up, wire  # noqa: E402
from standalone.log import batch_header, record_batch  # noqa: E402
from tests.log.broker_clients import RawClient, ServerProcess, delete_topic, fetch_request, make_topic, produce_request, wait_for  # noqa: E402
from tests.servers import kafka_broker  # noqa: E402

VALUE = b"a line of a log, as long as lines are, more or less, with some words in it and a number: 1234567890"
SMALL_BYTES, LARGE_BYTES, FETCH_BYTES = 16_000, 1_000_000, 8 << 20
PARTITIONS = 8  # of many connections
WAIT_SECONDS = 600


def main():
    said = _arguments()
    warm_up.compile_all()
    kafka_broker.JAVA_OPTIONS[:] = ["-Xms1g", "-Xmx1g", "-Xshare:auto"]  # as a server has it, not as tests do
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        ours = ServerProcess(folder)
        stack.callback(ours.stop)
        theirs = stack.enter_context(kafka_broker.KafkaBroker())
        logs = {"embedded": (ours.bootstrap, ours.process.pid), "kafka": (theirs.bootstrap, theirs.pid)}
        print("| | embedded, records/s | Kafka, records/s | ratio | embedded, µs of CPU a record | Kafka, µs | ratio |\n" + "|---" * 7 + "|")
        for name, load in LOADS.items():
            if said.only in name:
                print(_row(name, _rounds(load, logs, said)), flush=True)


def _rounds(load, logs, said):
    """{log: [(records a second, CPU seconds a record)]}"""
    found = {name: [] for name in logs}
    for number in range(said.rounds + 1):
        for name, (bootstrap, pid) in logs.items():
            records, seconds, cpu = load(bootstrap, pid, f"bench-{number}", said)
            if number:
                found[name].append((records / seconds, cpu / records))
    return found


def _row(name, found):
    (ours, our_cpu), (theirs, their_cpu) = ([statistics.median(each) for each in zip(*rounds)] for rounds in found.values())
    return (f"| {name} | {ours:,.0f} | {theirs:,.0f} | {ours / theirs:.2f} | {our_cpu * 1e6:.3f} | {their_cpu * 1e6:.3f} | "
            f"{their_cpu / our_cpu:.2f} |")  # fmt: skip


# --- The loads: (records, seconds, CPU seconds of the server)


def _produce(batch_bytes, on_the_way, connections=1):
    def load(bootstrap, pid, topic, said):
        with _topic(bootstrap, topic, min(connections, PARTITIONS)):
            return _write(bootstrap, pid, topic, said, batch_bytes, on_the_way, connections)

    return load


def _write(bootstrap, pid, topic, said, batch_bytes, on_the_way, connections):
    data, records = _batch(batch_bytes, said.compression)
    total = max(int(said.megabytes * 1e6 * (0.25 if batch_bytes < LARGE_BYTES else 1)) // batch_bytes, connections)
    senders = [_Sender(bootstrap, produce_request(topic, data, number % PARTITIONS)) for number in range(connections)]
    selector, sent, answered = selectors.DefaultSelector(), 0, 0
    for sender in senders:
        selector.register(sender.sock, selectors.EVENT_READ, sender)
    with _Measured(pid) as measured:
        for sender in senders:
            for _ in range(min(on_the_way, total - sent)):
                sender.send()
                sent += 1
        while answered < total:
            for key, _ in selector.select(WAIT_SECONDS):
                for _ in range(key.data.answers()):
                    answered += 1
                    if sent < total:
                        key.data.send()
                        sent += 1
    selector.close()
    for sender in senders:
        sender.sock.close()
    return total * records, measured.seconds, measured.cpu


def _fetch(bootstrap, pid, topic, said):
    with _topic(bootstrap, topic, 1):
        records, *_ = _write(bootstrap, pid, topic, said, LARGE_BYTES, 2, 1)
        with RawClient(bootstrap, WAIT_SECONDS) as client, _Measured(pid) as measured:
            offset = 0
            while offset < records:
                client.send(fetch_request(topic, offset, max_bytes=FETCH_BYTES, partition_max_bytes=FETCH_BYTES, max_wait_ms=500))
                part = FetchResponse.decode(client.receive_frame(), version=11, header=True).responses[0].partitions[0]
                assert part.error_code == 0, part
                for _, header in batch_header.headers(part.records):
                    offset = header.next_offset
    return records, measured.seconds, measured.cpu


LOADS = {
    "produce, batches of 1 MB": _produce(LARGE_BYTES, 2),
    "produce, batches of 16 KB": _produce(SMALL_BYTES, 5),
    "produce, 100 connections, batches of 16 KB": _produce(SMALL_BYTES, 1, connections=100),
    "fetch": _fetch,
}


class _Sender:
    """A connection that sends one request again and again."""

    def __init__(self, bootstrap, request):
        host, port = bootstrap.rsplit(":", 1)
        self.sock = socket.create_connection((host, int(port)), WAIT_SECONDS)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        request.with_header(correlation_id=1, client_id="bench")
        self._frame, self._version, self._received = request.encode(header=True, framed=True), request.API_VERSION, bytearray()

    def send(self):
        self.sock.sendall(self._frame)

    def answers(self):
        """How many have come."""
        data = self.sock.recv(1 << 16)
        assert data, "the log hung up"
        self._received += data
        count = 0
        while len(self._received) >= 4 and len(self._received) >= (size := struct.unpack_from(">i", self._received)[0] + 4):
            part = ProduceResponse.decode(bytes(self._received[4:size]), version=self._version, header=True).responses[0].partition_responses[0]
            assert part.error_code == 0, part
            del self._received[:size]
            count += 1
        return count


class _Measured:
    """What a block took: seconds, and CPU seconds of another process."""

    def __init__(self, pid):
        self._pid = pid

    def __enter__(self):
        self._since, self._cpu_since = time.perf_counter(), self._cpu()
        return self

    def __exit__(self, *_):
        self.seconds, self.cpu = time.perf_counter() - self._since, self._cpu() - self._cpu_since

    def _cpu(self):
        fields = pathlib.Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def _topic(bootstrap, name, partitions):
    with RawClient(bootstrap, WAIT_SECONDS) as client:
        make_topic(client, name, partitions)
        wait_for(lambda: all(client.fetch(name, 0, number).error_code == 0 for number in range(partitions)), WAIT_SECONDS)  # all have leaders
        yield
        delete_topic(client, name)


def _batch(size, compression):
    """(a batch of about so many bytes before compression, its records)"""
    count = size // (len(VALUE) + 9)
    records = wire.Records(count, values=wire.ByteColumn.of([VALUE] * count))
    return bytes(record_batch.pack(records, compression=compression)), count


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=400, help="that a round writes; of small batches a quarter")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--compression", default="none")
    parser.add_argument("--only", default="", help="loads with this in their name")
    return parser.parse_args()


if __name__ == "__main__":
    main()
