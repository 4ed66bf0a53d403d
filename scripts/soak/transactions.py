#!/usr/bin/env python3
"""A checker of histories: transactional and plain producers and consumers at once, while their log is killed and paused.

    scripts/soak/transactions.py [--rounds 20] [--seconds 5] [--log embedded|power|kafka|both] [--seed N]

Everybody notes what was tried and what was answered. At the end of a round the whole log is read, and the notes must fit it:

    lost       an acknowledged record, or one of a transaction whose commit was acknowledged, is not there
    dirty      a record of a transaction that was aborted, or that was never committed, is seen by a reader of committed records
    torn       of a transaction whose fate nobody was told a part is there, and a part is not
    doubled    a record is there twice
    order      the records of one producer in one partition are not in the order in which they were sent
    unstable   a reader saw something at an offset that is not there in the end, or skipped something that is

Two producers have the same transactional id in turn: the one before is fenced in the middle of its transaction.

`power` is the embedded log with embedded.log.acks=fsync, for which each kill is a loss of power: its folder is what was synced, and no more.
"""

import argparse
import collections
import contextlib
import itertools
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "scripts" / "soak")]

import confluent_kafka  # noqa: E402
import watched  # noqa: E402
from confluent_kafka.admin import AdminClient, NewTopic  # noqa: E402

from standalone.clock import SYSTEM  # noqa: E402
from standalone.errors import LogError  # noqa: E402
from standalone.log.client import Clusters  # noqa: E402
from standalone.log.client_config import ProducerConfig, TransactionalConfig  # noqa: E402
from standalone.log.producer import Producer, TransactionalProducer  # noqa: E402
from standalone.wire import ByteColumn, Records  # noqa: E402
from tests.log.broker_clients import ServerProcess  # noqa: E402
from tests.log.power import lose_power  # noqa: E402
from tests.servers.kafka_broker import KafkaBroker, free_port  # noqa: E402

PARTITIONS = 2
COMMITTED, ABORTED, UNKNOWN = "committed", "aborted", "unknown"
END_SECONDS = 90  # for everything to be answered once the log is back


class Embedded:
    """The embedded log in its own process."""

    name = "embedded log"

    def __init__(self, folder):
        self._folder = folder
        self.bootstrap = f"127.0.0.1:{free_port()}"

    def start(self):
        self._server = ServerProcess(self._folder, self.bootstrap, **self._more())
        return self

    restart = start

    def kill(self):
        self._server.kill()

    def _more(self):
        return {}

    def freeze(self):
        self._server.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self._server.process.send_signal(signal.SIGCONT)

    def stop(self):
        with contextlib.suppress(ProcessLookupError):
            self.thaw()
        self._server.stop()


class Synced(Embedded):
    """The embedded log that acknowledges what is on the disk; a kill takes all that is not."""

    name = "embedded log, power lost"

    def __init__(self, folder):
        super().__init__(folder)
        self._notes = folder.with_name(folder.name + ".synced")

    def kill(self):
        super().kill()
        lose_power(self._folder, self._notes)

    def _more(self):
        # Small segments and late flushes: a file's end, a name and a snapshot are to be missing often.
        return {"power_notes": self._notes, "acks": "fsync", "flush_interval_ms": 3000, "segment_bytes": 100_000}


class Kafka(KafkaBroker):
    name = "Kafka"


class Notes:
    """What was tried and answered, thread-safe by what Python's lists are."""

    def __init__(self):
        self.plain = {}  # value -> whether it was acknowledged
        self.transactions = []  # (fate, [values])
        self.seen = []  # {(partition, offset): value} of each reader, in order


class Ours:
    """A producer of ours in a thread; `transactional_id` or none."""

    def __init__(self, bootstrap, transactional_id=None):
        kind, settings = (TransactionalProducer, TransactionalConfig) if transactional_id else (Producer, ProducerConfig)
        config = settings.of({"bootstrap.servers": bootstrap, **({"transactional.id": transactional_id} if transactional_id else {})})
        self._clusters = Clusters(SYSTEM)
        self.client = kind(self._clusters.get(config), config, SYSTEM)
        self._thread = threading.Thread(target=self.client.run, daemon=True)
        self._thread.start()

    def send(self, topic, partition, values, on_done):
        self.client.send(topic, partition, Records(len(values), values=ByteColumn.of(values)), on_done)

    def close(self):
        self.client.close(0)
        self._thread.join(30)
        self._clusters.close()


def plain(bootstrap, topic, name, notes, over):
    """Small batches, each noted before it goes; all have to be acknowledged in the end."""
    producer, numbers = Ours(bootstrap), itertools.count()
    try:
        while not over.is_set():
            for partition in range(PARTITIONS):
                values = [b"%s:%d" % (name, next(numbers)) for _ in range(5)]
                notes.plain.update(dict.fromkeys(values, False))

                def done(delivered, values=values):
                    if delivered.error is None:
                        notes.plain.update(dict.fromkeys(values, True))

                producer.send(topic, partition, values, done)
            over.wait(0.005)
        if not producer.client.flush(END_SECONDS):
            raise RuntimeError(f"plain producer {name!r} had no answer {END_SECONDS} s after the log was back")
    finally:
        producer.close()


def transactional(bootstrap, topic, name, notes, over, chance, successors):
    """Transactions that commit or abort; now and then somebody else takes over the id in the middle of one."""
    producer, numbers, left = None, itertools.count(), None
    try:
        while not over.is_set():
            values, fate = [], ABORTED
            try:
                if producer is None:
                    producer = Ours(bootstrap, name.decode())
                    producer.client.init_transactions()
                    if left is not None:
                        left.close()
                        left = None
                refused = []
                for partition in range(PARTITIONS):
                    part = [b"%s:%d" % (name, next(numbers)) for _ in range(chance.randint(1, 20))]
                    values += part
                    producer.send(topic, partition, part, lambda delivered: refused.append(delivered.error))
                if successors and chance.random() < 0.15:
                    left, producer = producer, None  # continues to be there while its successor takes the id over
                    continue
                while not producer.client.flush(1):
                    if over.is_set() and not producer.client.flush(END_SECONDS):
                        raise RuntimeError(f"transactional producer {name!r} had no answer {END_SECONDS} s after the log was back")
                if any(refused):
                    raise refused[0]
                if chance.random() < 0.3:
                    producer.client.abort_transaction()
                else:
                    fate = UNKNOWN  # until the commit is answered
                    producer.client.commit_transaction()
                    fate = COMMITTED
            except LogError:
                if producer is not None:
                    producer.close()
                producer = None
            finally:
                notes.transactions.append((fate, values))
    finally:
        for each in (producer, left):
            if each is not None:
                each.close()


def strangers_transactions(bootstrap, topic, name, notes, over, chance):
    """The same with a stock client."""
    numbers, producer = itertools.count(), None
    while not over.is_set():
        values, fate = [], ABORTED
        try:
            if producer is None:
                producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "transactional.id": name.decode(), "log_level": 0})
                producer.init_transactions(END_SECONDS)
            producer.begin_transaction()
            for _ in range(chance.randint(1, 20)):
                values.append(b"%s:%d" % (name, next(numbers)))
                producer.produce(topic, values[-1], partition=chance.randrange(PARTITIONS))
            if chance.random() < 0.3:
                producer.abort_transaction(END_SECONDS)
            else:
                fate = UNKNOWN
                producer.commit_transaction(END_SECONDS)
                fate = COMMITTED
        except confluent_kafka.KafkaException as error:
            if fate is UNKNOWN and error.args[0].txn_requires_abort():
                fate = ABORTED
            try:
                if not error.args[0].txn_requires_abort():
                    raise error
                producer.abort_transaction(END_SECONDS)
            except confluent_kafka.KafkaException:
                producer = None
        finally:
            notes.transactions.append((fate, values))
        over.wait(0.002)


def reader(bootstrap, topic, seen, over):
    """A stock client that reads what is committed while all continues."""
    consumer = a_consumer(bootstrap)
    consumer.assign([confluent_kafka.TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    try:
        while not over.is_set():
            for message in consumer.consume(500, 0.1):
                if message.error() is None:
                    seen[message.partition(), message.offset()] = message.value()
    finally:
        consumer.close()


def a_consumer(bootstrap, isolation="read_committed"):
    return confluent_kafka.Consumer({
        "bootstrap.servers": bootstrap, "group.id": "checks", "enable.auto.commit": False, "isolation.level": isolation,
        "auto.offset.reset": "earliest", "enable.partition.eof": True, "log_level": 0,
    })  # fmt: skip


def everything(bootstrap, topic):
    """{(partition, offset): value} of all that is committed, in order."""
    consumer, found, ends = a_consumer(bootstrap), {}, a_consumer(bootstrap, "read_uncommitted")
    try:
        for number in range(PARTITIONS):
            # The end of the log, not the last stable offset, at which a reader of committed records would stop before an open transaction.
            end = ends.get_watermark_offsets(confluent_kafka.TopicPartition(topic, number), 20)[1]
            consumer.assign([confluent_kafka.TopicPartition(topic, number, 0)])
            deadline = time.monotonic() + END_SECONDS
            while True:
                if time.monotonic() > deadline:
                    stable = consumer.get_watermark_offsets(confluent_kafka.TopicPartition(topic, number), 20)[1]
                    raise RuntimeError(f"partition {number} ends at {end}, and could be read to {stable}: a transaction in it is still open")
                message = consumer.poll(0.2)
                if message is None:
                    continue
                if message.error() is None:
                    found[number, message.offset()] = message.value()
                elif message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF and message.offset() >= end:
                    break
    finally:
        consumer.close()
        ends.close()
    return found


def faults(log, over, chance):
    """Kill it or let it stand still, until the round is over; it runs in the end."""
    while not over.wait(chance.uniform(0.7, 2.0)):
        if chance.random() < 0.6:
            log.kill()
            over.wait(chance.uniform(0, 0.5))
            log.restart()
        else:
            log.freeze()
            over.wait(chance.uniform(0.2, 1.5))
            log.thaw()


def check(notes, final):
    """The violations found, as sentences."""
    wrong = []
    counts = collections.Counter(final.values())
    doubled = [value for value, count in counts.items() if count > 1]
    wrong += [f"doubled: {len(doubled)} records, such as {doubled[:3]}"] if doubled else []
    lost = [value for value, acknowledged in notes.plain.items() if acknowledged and value not in counts]
    wrong += [f"lost: {len(lost)} acknowledged records, such as {lost[:3]}"] if lost else []
    for fate, values in notes.transactions:
        there = sum(value in counts for value in values)
        if fate == COMMITTED and there < len(values):
            wrong.append(f"lost: {len(values) - there} of {len(values)} records of a committed transaction, from {values[0]}")
        elif fate == ABORTED and there:
            wrong.append(f"dirty: {there} records of an aborted transaction, from {values[0]}")
        elif fate == UNKNOWN and 0 < there < len(values):
            wrong.append(f"torn: {there} of {len(values)} records of a transaction whose end was not answered, from {values[0]}")
    last = {}
    for (partition, _), value in sorted(final.items()):
        name, _, number = value.partition(b":")
        if last.get((name, partition), -1) >= int(number):
            wrong.append(f"order: {value} is behind number {last[name, partition]} in partition {partition}")
        last[name, partition] = int(number)
    for seen in notes.seen:
        strange = [place for place, value in seen.items() if final.get(place) != value]
        reach = {partition: max(offset for at, offset in seen if at == partition) for partition in {at for at, _ in seen}}
        passed = [place for place in final if place[1] <= reach.get(place[0], -1) and place not in seen]
        wrong += [f"unstable: a reader saw {seen[strange[0]]} at {strange[0]}, where {final.get(strange[0])} is"] if strange else []
        wrong += [f"unstable: a reader skipped {len(passed)} records, such as {final[passed[0]]} at {passed[0]}"] if passed else []
    return wrong


def a_round(log, number, seconds, seed):
    """(what is wrong, what there was)"""
    chance = random.Random(f"{seed}-{number}")
    topic = f"round{number}"
    admin = AdminClient({"bootstrap.servers": log.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(30)
    notes, over, read_on = Notes(), threading.Event(), threading.Event()
    notes.seen = [{}, {}]
    readers = [watched.watched(reader, log.bootstrap, topic, seen, read_on) for seen in notes.seen]

    def pick():
        return random.Random(chance.random())

    writers = [watched.watched(plain, log.bootstrap, topic, b"p%d" % n, notes, over) for n in range(2)]
    writers += [
        watched.watched(transactional, log.bootstrap, topic, f"r{number}-o{n}".encode(), notes, over, pick(), n == 0) for n in range(2)
    ]
    writers.append(watched.watched(strangers_transactions, log.bootstrap, topic, f"r{number}-s".encode(), notes, over, pick()))
    evil = watched.watched(faults, log, over, pick())
    time.sleep(seconds)
    over.set()
    evil.finish(60)
    for each in writers:
        each.finish(2 * END_SECONDS)
    for n in range(2):  # what the last ones left open is aborted, as their successors would do
        heir = Ours(log.bootstrap, f"r{number}-o{n}")
        heir.client.init_transactions()
        heir.close()
    stranger = confluent_kafka.Producer({"bootstrap.servers": log.bootstrap, "transactional.id": f"r{number}-s", "log_level": 0})
    stranger.init_transactions(END_SECONDS)
    final = everything(log.bootstrap, topic)
    read_on.set()
    for each in readers:
        each.finish(60)
    fates = collections.Counter(fate for fate, values in notes.transactions if values)
    told = f"{len(final)} records; {sum(notes.plain.values())} plain ones acknowledged; transactions: " + ", ".join(
        f"{fates[fate]} {fate}" for fate in (COMMITTED, ABORTED, UNKNOWN)
    )
    return check(notes, final), told


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--log", choices=("embedded", "power", "kafka", "both"), default="both")
    parser.add_argument("--seed", default="1")
    said = parser.parse_args()
    bad = 0
    for kind in ["embedded", "kafka"] if said.log == "both" else [said.log]:
        folder = pathlib.Path(tempfile.mkdtemp(prefix="soak-"))
        log = {"embedded": Embedded, "power": Synced}[kind](folder / "log") if kind != "kafka" else Kafka()
        log.start()
        try:
            for number in range(said.rounds):
                wrong, told = a_round(log, number, said.seconds, said.seed)
                print(f"{log.name}, round {number + 1}: {told}: {'; '.join(wrong[:5]) or 'all fits'}", flush=True)
                bad += bool(wrong)
        finally:
            log.stop()
        shutil.rmtree(folder)
    if bad:
        sys.exit(f"{bad} rounds do not fit")


if __name__ == "__main__":
    main()
