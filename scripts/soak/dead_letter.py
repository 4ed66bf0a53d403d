#!/usr/bin/env python3
"""Kill the worker again and again while bad records go to a dead letter queue; then see that none is missing there, and none came through.

    scripts/soak/dead_letter.py [--kills 20] [--records 100000] [--bootstrap HOST:PORT]

Numbered JSON records, a random tenth of them broken, go through a file sink with errors.tolerance=all. The worker is killed (SIGKILL) at
random moments while a producer continues writing. In the end every broken record must be in the queue with its own bytes and the offset
it is at, every good one in the file; what was not committed may come twice. The log must outlive the worker: without --bootstrap a
worker without connectors serves its embedded log.
"""

import argparse
import collections
import contextlib
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "scripts" / "soak")]

import watched  # noqa: E402

from tests.log.committed import group_offsets  # noqa: E402

OFFSET = "__connect.errors.offset"


class Worker:
    def __init__(self, folder, name, props, *connectors):
        self.files = [folder / f"{name}.properties", *connectors]
        self.rest = f"127.0.0.1:{free_port()}"
        self.files[0].write_text(props + f"offset.storage.file.filename={folder}/{name}.offsets\nlisteners=http://{self.rest}\n")
        self.log = folder / f"{name}.log"
        self.process = None

    def start(self):
        with open(self.log, "ab") as log:
            command = [sys.executable, "-m", "standalone.cli.worker", *map(str, self.files)]
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, "PYTHONPATH": str(ROOT)})

    def end(self, number=signal.SIGTERM):
        watched.end(self.process, number, self.log)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def reachable(address):
    host, _, port = address.rpartition(":")
    with contextlib.suppress(OSError), socket.create_connection((host, int(port)), 1):
        return True
    return False


def wait_for(condition, seconds, what):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            sys.exit(f"timed out after {seconds} s waiting for {what}")
        time.sleep(0.02)


class Soak:
    def __init__(self, folder, bootstrap, records, seed):
        self.folder, self.count = folder, records
        self.chance = random.Random(seed)
        self.bad = [self.chance.random() < 0.1 for _ in range(records)]
        self.topic = f"soak-{os.getpid()}-{int(time.time())}"
        self.letters, self.sink = f"{self.topic}-dlq", folder / "sink.txt"
        self.sink.touch()
        self.log = None
        strings = "".join(f"{part}.converter=org.apache.kafka.connect.storage.StringConverter\n" for part in ("key", "value"))
        if bootstrap is None:
            bootstrap = f"127.0.0.1:{free_port()}"
            self.log = Worker(folder, "log", f"bootstrap.servers=embedded\nembedded.log.listener={bootstrap}\n{strings}")
            self.log.start()
            try:
                wait_for(lambda: reachable(bootstrap), 60, "the embedded log")
            except SystemExit:
                watched.kill(self.log.process)
                raise
        self.bootstrap = bootstrap
        connector = folder / "sink.properties"
        connector.write_text(
            f"name={self.topic}\nconnector.class=FileStreamSink\nfile={self.sink}\ntopics={self.topic}\n"
            "value.converter=org.apache.kafka.connect.json.JsonConverter\nvalue.converter.schemas.enable=false\n"
            f"errors.tolerance=all\nerrors.deadletterqueue.topic.name={self.letters}\n"
            "errors.deadletterqueue.topic.replication.factor=1\nerrors.deadletterqueue.context.headers.enable=true\n"
        )
        self.worker = Worker(folder, "worker", f"bootstrap.servers={bootstrap}\n{strings}offset.flush.interval.ms=200\nspark.start=lazy\n", connector)
        admin = AdminClient({"bootstrap.servers": bootstrap})  # an answer does not come to one that nobody holds
        admin.create_topics([NewTopic(self.topic, 1, 1)])[self.topic].result(30)

    def value(self, row):
        return f"broken {row:08d}" if self.bad[row] else f'"good {row:08d}"'

    def produce(self, low, high, seconds):
        """These records, at an even pace; the key is the number."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 5, "enable.idempotence": True})
        began = time.monotonic()
        for row in range(low, high):
            producer.produce(self.topic, self.value(row), str(row), partition=0, headers=[("n", str(row).encode())])
            if row % 20 == 0:
                producer.poll(0)
                time.sleep(max(0.0, began + seconds * (row - low) / (high - low) - time.monotonic()))
        left = producer.flush(60)
        if left:
            sys.exit(f"{left} records were not taken within 60 s")

    def committed(self):
        return max(group_offsets(self.bootstrap, f"connect-{self.topic}").values(), default=0)

    def run(self, kills):
        for kill in range(kills):
            before = self.sink.stat().st_size
            part = self.count * kill // kills, self.count * (kill + 1) // kills
            self.worker.start()
            writer = watched.watched(self.produce, *part, self.chance.uniform(3, 6))
            wait_for(lambda: self.sink.stat().st_size > before, 60, "the sink to move")
            time.sleep(self.chance.uniform(0, 1.5))
            self.worker.end(signal.SIGKILL)
            writer.finish()
        self.worker.start()
        wait_for(lambda: reachable(self.worker.rest), 60, "the worker to be up")  # before it is, SIGTERM ends it as it ends any program
        wait_for(lambda: self.committed() >= self.count, 120, "all offsets to be committed")
        self.worker.end()

    def judge(self):
        """{what: how many}; all but the repeats must be 0."""
        letters, wrong = collections.Counter(), 0
        for message in self._letters():
            row = int(message.key())
            headers = dict(message.headers())
            intact = self.bad[row] and message.value().decode() == self.value(row)
            intact = intact and headers["n"] == str(row).encode() and int(headers[OFFSET]) == row
            wrong += not intact
            letters[row] += 1
        lines = collections.Counter(self.sink.read_text().splitlines())
        good = {f"good {row:08d}": row for row in range(self.count) if not self.bad[row]}
        bad = {row for row in range(self.count) if self.bad[row]}
        return {
            "bad records": len(bad),
            "missing in the queue": len(bad - letters.keys()),
            "letters that are not as they were": wrong,
            "repeated letters": sum(letters.values()) - len(letters),
            "good records": len(good),
            "missing in the file": len(good.keys() - lines.keys()),
            "lines that are no good record": sum(count for line, count in lines.items() if line not in good),
            "repeated lines": sum(lines.values()) - len(lines),
        }

    def _letters(self):
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "judge", "enable.auto.commit": False})
        try:
            low, high = consumer.get_watermark_offsets(TopicPartition(self.letters, 0), timeout=30)
            consumer.assign([TopicPartition(self.letters, 0, low)])
            position = low
            while position < high:
                message = consumer.poll(10)
                if message is None:
                    sys.exit(f"the queue ends at {position}, not at {high}")
                position = message.offset() + 1
                yield message
        finally:
            consumer.close()

    def close(self):
        for worker in (self.worker, self.log):
            if worker is not None:
                watched.kill(worker.process)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--bootstrap")
    parser.add_argument("--seed", type=int, default=1)
    said = parser.parse_args(arguments)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="soak-dlq-"))
    soak = Soak(folder, said.bootstrap, said.records, said.seed)
    try:
        soak.run(said.kills)
        found = soak.judge()
    finally:
        soak.close()
    print(f"{said.kills} x SIGKILL: " + ", ".join(f"{count} {what}" for what, count in found.items()))
    if any(count for what, count in found.items() if what not in ("bad records", "good records", "repeated letters", "repeated lines")):
        sys.exit(f"not as it must be; everything is kept in {folder}")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
