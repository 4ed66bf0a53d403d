#!/usr/bin/env python3
"""SQL queries: latency, rows per second, the cost of an idle query, the start, and the state stores.

    .venv/bin/python scripts/bench/streams.py                     all parts, one after the other: about a quarter of an hour
    .venv/bin/python scripts/bench/streams.py --only latency      one part, or several separated by commas

    latency   20 lines per second: the time from sending a line until a reader of committed records sees the count of the line's own word; the
              same for Kafka Streams' word count (the Java demo), which reads the same lines from the same Kafka at the same time
    peer      the demo's lines per second, alone, on Kafka
    words     lines per second of the word count of a full topic, on the worker's embedded log; without the rows of the first batch, which
              contains the start of the query
    window    the same for JSON records in tumbling windows
    idle      CPU seconds per minute of the worker, Java and Spark's Python with idle queries, minus those without queries
    start     time from the worker's start to Spark's session, and to the first counts that can be read
    state     1 million groups in the state stores memory and rocksdb: rows per second, memory, size of the checkpoint

latency and peer need Java and Maven. The output is compared with counts computed here. Other programs on the machine disturb the
figures: compare only figures of one run.
"""

import argparse
import collections
import contextlib
import json
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import hundred  # noqa: E402
from compare import children, used  # noqa: E402
from confluent_kafka import Consumer, Producer, TopicPartition  # noqa: E402
from confluent_kafka.admin import AdminClient, NewTopic  # noqa: E402

from tests.servers.kafka_broker import KafkaBroker  # noqa: E402
from tests.servers.word_count_demo import INPUT, OUTPUT, WordCountDemo  # noqa: E402

PATIENCE_SECONDS = 300
LINES_A_SECOND = 20
WARM_SECONDS = 20  # of lines that are not timed
BATCH = 500_000  # max.offsets.per.batch, by default
WORDS = [f"word{number}" for number in range(1000)]
LINES = "CREATE STREAM lines (line STRING) WITH (kafka_topic = '{topic}', value_format = 'KAFKA', partitions = 1);"
COUNTS = """CREATE TABLE counts{number} WITH (kafka_topic = '{out}', value_format = 'KAFKA', partitions = 1) AS
    SELECT explode(split(lower(line), ' ')) AS word, count(*) AS n FROM lines GROUP BY word EMIT CHANGES;"""
WINDOWS = """CREATE STREAM hits (k STRING, at BIGINT, v INT) WITH (kafka_topic = 'hits', value_format = 'JSON', timestamp = 'at', partitions = 1);
CREATE TABLE windows WITH (kafka_topic = 'windows', value_format = 'JSON', partitions = 1) AS
    SELECT k, count(*) AS n, sum(v) AS s FROM hits WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY k EMIT CHANGES;"""


class Running:
    """A worker in its own folder; `bootstrap`: where its topics are."""

    def __init__(self, bootstrap="embedded", more=(), folder=None, files=()):
        self.folder = folder or pathlib.Path(tempfile.mkdtemp(prefix="streams-"))
        self._keeps = folder is not None
        self._worker = hundred.start_worker(self.folder, bootstrap, {"spark.start": "eager", **dict(more)}, files)
        self.bootstrap = self._worker.log if bootstrap == "embedded" else bootstrap

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._worker.process.send_signal(signal.SIGTERM)
        self._worker.process.wait(60)
        if not self._keeps:
            shutil.rmtree(self.folder, ignore_errors=True)

    def sql(self, text, **properties):
        self._worker.http.close()
        properties = {key.replace("__", "."): str(value) for key, value in properties.items()}
        return hundred.ask(self._worker, "POST", "/sql", {"sql": text, "properties": properties})

    def has_session(self):
        with urllib.request.urlopen(f"http://{self._worker.http.host}:{self._worker.http.port}/metrics", timeout=30) as answer:
            return b"\nconnect_standalone_spark_up 1" in answer.read()

    def wait_for_session(self):
        until(self.has_session)

    def cpu(self):
        """Return the CPU seconds of the worker, of Java and of Spark's Python."""
        return self._counted(used)

    def cpu_by_process(self):
        pid = self._worker.process.pid
        return {each: used(each) for each in (pid, *children(pid))}

    def memory(self):
        """Return the MB of the same; memory that Python's forked processes share counts once in each."""
        return self._counted(lambda pid: int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 / (1 << 20))

    def _counted(self, figure):
        found, pid = collections.Counter(), self._worker.process.pid
        for each in (pid, *children(pid)):
            with contextlib.suppress(OSError):  # it has ended
                name = pathlib.Path(f"/proc/{each}/comm").read_text().strip()
                found["worker" if each == pid else "java" if name == "java" else "python"] += figure(each)
        return found


def until(condition, pause=0.05):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            sys.exit(f"timed out after {PATIENCE_SECONDS} s")
        time.sleep(pause)


def make_topics(bootstrap, *names):
    admin = AdminClient({"bootstrap.servers": bootstrap})  # the answers come as long as it is there
    for made in admin.create_topics([NewTopic(name, 1, 1) for name in names]).values():
        made.result(60)


def send(bootstrap, topic, values):
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50, "batch.size": 1 << 20, "queue.buffering.max.messages": 1_000_000})
    for value in values:
        while True:
            try:
                producer.produce(topic, value)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush()


class Reader:
    """Reads the committed records of topics with one partition, from the beginning."""

    def __init__(self, bootstrap, *topics):
        self._consumer = Consumer({
            "bootstrap.servers": bootstrap, "group.id": "bench", "isolation.level": "read_committed", "enable.auto.commit": False,
            "fetch.wait.max.ms": 500, "allow.auto.create.topics": False,
        })  # fmt: skip
        self._consumer.assign([TopicPartition(topic, 0, 0) for topic in topics])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._consumer.close()

    def messages(self, most=10_000, seconds=0.05):
        """Return the new messages: wait for the first, and take what is already fetched."""
        first = self._consumer.poll(seconds)
        found = [first, *self._consumer.consume(most, 0)] if first is not None else []
        return [message for message in found if message.error() is None]

    def follow(self, done, at_first=lambda: None):
        """Read until `done(messages)`; return the times of the first and the last record. Call `at_first` at the first."""
        first = last = None
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            if found := self.messages():
                last = time.monotonic()
                if first is None:
                    first = last
                    at_first()
                deadline = last + PATIENCE_SECONDS
                if done(found):
                    return first, last
            elif time.monotonic() > deadline:
                sys.exit(f"nothing came for {PATIENCE_SECONDS} s")


def some_lines(count, seed=1):
    chance = random.Random(seed)
    return [" ".join(chance.choices(WORDS, k=5)) for _ in range(count)]


class Counted:
    """Returns True when the newest count of each word is the right one."""

    def __init__(self, lines):
        self._wanted = collections.Counter(word for line in lines for word in line.split())
        self._found, self._total, self._sum = {}, sum(self._wanted.values()), 0

    def __call__(self, messages):
        for message in messages:
            word, count = message.key().decode(), int.from_bytes(message.value(), "big")
            self._sum += count - self._found.get(word, 0)
            self._found[word] = count
        if self._sum > self._total:
            sys.exit("more was counted than was sent")
        if self._sum == self._total and self._found != self._wanted:
            sys.exit("the counts are wrong")
        return self._sum == self._total


def latency(options):
    with KafkaBroker() as broker, Running(broker.bootstrap) as worker:
        worker.wait_for_session()
        make_topics(broker.bootstrap, INPUT, OUTPUT, "ours")
        worker.sql(LINES.format(topic=INPUT) + COUNTS.format(number="", out="ours"))
        with WordCountDemo(broker.bootstrap), Reader(broker.bootstrap, OUTPUT, "ours") as reader:
            count = (options.seconds + WARM_SECONDS) * LINES_A_SECOND
            sent, took = {}, {"ours": {}, OUTPUT: {}}
            sender = threading.Thread(target=_send_slowly, args=(broker.bootstrap, count, sent), daemon=True)
            sender.start()
            deadline = time.monotonic() + count / LINES_A_SECOND + PATIENCE_SECONDS
            while any(len(each) < count for each in took.values()) and time.monotonic() < deadline:
                for message in reader.messages(1000, 1.0):
                    word, now = message.key().decode(), time.monotonic()
                    if word in sent:
                        took[message.topic()].setdefault(word, now - sent[word])
    figures = {}
    for name, topic in (("this", "ours"), ("Kafka Streams", OUTPUT)):
        if len(took[topic]) < count:
            sys.exit(f"{name}: {len(took[topic])} of {count} lines came")
        figures[name] = sorted(1000 * each for word, each in took[topic].items() if int(word[4:]) >= WARM_SECONDS * LINES_A_SECOND)
        print(f"latency, {name}: p50 {_share(figures[name], 0.5):.0f} ms, p99 {_share(figures[name], 0.99):.0f} ms, {len(figures[name])} lines")
    ours, theirs = figures.values()
    ratios = [_share(ours, share) / _share(theirs, share) for share in (0.5, 0.99)]
    print(f"latency, this to Kafka Streams: p50 {ratios[0]:.1f} x, p99 {ratios[1]:.1f} x")


def _send_slowly(bootstrap, count, sent):
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    lines, begun = some_lines(count), time.monotonic()
    for number, line in enumerate(lines):
        time.sleep(max(0.0, begun + number / LINES_A_SECOND - time.monotonic()))
        sent[f"line{number}"] = time.monotonic()
        producer.produce(INPUT, f"line{number} {line}")
        producer.poll(0)
    producer.flush()


def _share(numbers, share):
    return numbers[min(len(numbers) - 1, int(len(numbers) * share))]


def peer(options):
    lines = some_lines(options.peer_lines)
    with KafkaBroker() as broker:
        make_topics(broker.bootstrap, INPUT, OUTPUT)
        send(broker.bootstrap, INPUT, lines)
        with Reader(broker.bootstrap, OUTPUT) as reader, WordCountDemo(broker.bootstrap):
            first, last = reader.follow(Counted(lines))
    print(f"peer: Kafka Streams counts the words of {len(lines) / (last - first) / 1e3:.0f} k lines/s")


def words(options):
    lines = some_lines(options.lines)
    with Running() as worker:
        worker.wait_for_session()
        worker.sql(LINES.format(topic="lines"))
        send(worker.bootstrap, "lines", lines)
        _bulk(worker, "words", COUNTS.format(number="", out="out"), "out", Counted(lines), len(lines))


def _bulk(worker, name, statements, topic, done, count):
    if count < 2 * BATCH:
        sys.exit(f"--lines must be at least {2 * BATCH}: the first batch of {BATCH} is not timed")
    make_topics(worker.bootstrap, topic)
    worker.sql(statements)
    before = collections.Counter()
    with Reader(worker.bootstrap, topic) as reader:
        first, last = reader.follow(done, lambda: before.update(worker.cpu()))
    cpu, timed = worker.cpu(), count - BATCH
    cpu.subtract(before)
    each = {kind: seconds / timed * 1e6 for kind, seconds in cpu.items()}
    print(f"{name}: {timed / (last - first) / 1e3:.0f} k rows/s; CPU s per million {_told(each, 1)}; MB {_told(worker.memory())}")


def _told(figures, digits=0):
    return ", ".join(f"{kind} {figure:.{digits}f}" for kind, figure in sorted(figures.items()))


def window(options):
    chance, begun = random.Random(2), time.time_ns() // 1_000_000 - 3_600_000
    hits = [(f"k{chance.randrange(100)}", begun + number * 1_800_000 // options.lines, chance.randrange(100)) for number in range(options.lines)]
    wanted = collections.Counter((key, at // 60_000 * 60_000) for key, at, _ in hits)
    found, left = {}, len(hits)

    def done(messages):
        nonlocal left
        for message in messages:
            of, count = (message.key()[:-8].decode(), int.from_bytes(message.key()[-8:], "big")), json.loads(message.value())["n"]
            left -= count - found.get(of, 0)
            found[of] = count
        if left < 0 or left == 0 and found != wanted:
            sys.exit("the windows are wrong")
        return left == 0

    with Running() as worker:
        worker.wait_for_session()
        stream, table = WINDOWS.split("CREATE TABLE")
        worker.sql(stream)
        send(worker.bootstrap, "hits", (json.dumps({"k": key, "at": at, "v": number}) for key, at, number in hits))
        _bulk(worker, "window", "CREATE TABLE" + table, "windows", done, len(hits))


def idle(options):
    lines = some_lines(1000)
    with Running() as worker:
        worker.wait_for_session()
        worker.sql(LINES.format(topic="lines"))
        send(worker.bootstrap, "lines", lines)
        time.sleep(45)  # then Java's classes are archived, and its heap is returned
        settle(worker)
        without = _a_minute(worker, options.seconds)
        for number in range(options.queries):
            make_topics(worker.bootstrap, f"out{number}")
            worker.sql(COUNTS.format(number=number, out=f"out{number}"))
            with Reader(worker.bootstrap, f"out{number}") as reader:
                reader.follow(Counted(lines))
        settle(worker)
        within = _a_minute(worker, options.seconds)
        memory = _told(worker.memory())
    each = (within - without) / options.queries
    print(f"idle: CPU s a minute {without:.2f} without queries, {within:.2f} with {options.queries}: {each:.2f} a query; MB {memory}")


def settle(worker):
    """Wait until nothing is left to do after a start: ten seconds with less than one second of CPU."""
    until(lambda: _a_minute(worker, 10) < 6)


def _a_minute(worker, seconds):
    """CPU seconds per minute. A process that ends takes its CPU time with it: then the measurement begins again."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        before = worker.cpu_by_process()
        time.sleep(seconds)
        after = worker.cpu_by_process()
        if before.keys() == after.keys():
            return (sum(after.values()) - sum(before.values())) * 60 / seconds
    sys.exit("processes keep coming and going")


def start(options):
    folder, lines = pathlib.Path(tempfile.mkdtemp(prefix="streams-")), some_lines(1000)
    (folder / "counts.sql").write_text(LINES.format(topic="lines") + COUNTS.format(number="", out="out"))
    try:
        with Running(folder=folder, more={"spark.start": "lazy"}) as worker:
            make_topics(worker.bootstrap, "lines", "out")
            send(worker.bootstrap, "lines", lines)
        begun = time.monotonic()
        with Running(folder=folder, more={"spark.start": "auto"}, files=[folder / "counts.sql"]) as worker:
            worker.wait_for_session()
            session = time.monotonic() - begun
            with Reader(worker.bootstrap, "out") as reader:
                first, _ = reader.follow(Counted(lines))
            print(f"start: session after {session:.1f} s, first counts after {first - begun:.1f} s; CPU s {_told(worker.cpu(), 1)}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def state(options):
    lines = [f"key{number}" for number in range(options.groups)]
    random.Random(3).shuffle(lines)
    rates = {}
    for store in ("memory", "rocksdb"):
        with Running() as worker:
            worker.wait_for_session()
            worker.sql(LINES.format(topic="lines"))
            send(worker.bootstrap, "lines", lines + lines)
            make_topics(worker.bootstrap, "out")
            worker.sql(f"SET 'state.store' = '{store}'; SET 'max.offsets.per.batch' = '200000';" + COUNTS.format(number="", out="out"))
            with Reader(worker.bootstrap, "out") as reader:
                first, last = reader.follow(Counted(lines + lines))
            rates[store] = (2 * len(lines) - 200_000) / (last - first)
            files = sum(file.stat().st_size for file in (worker.folder / "offsets.state" / "queries").rglob("*") if file.is_file())
            memory = _told(worker.memory())
            print(f"state in {store}: {rates[store] / 1e3:.0f} k rows/s, {len(lines)} groups; MB {memory}; checkpoint {files / (1 << 20):.0f} MB")
    print(f"state in RocksDB to memory: {rates['rocksdb'] / rates['memory']:.2f} x the rate")


PARTS = {part.__name__: part for part in (latency, peer, words, window, idle, start, state)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help=f"parts, with commas between: {', '.join(PARTS)}", default=",".join(PARTS))
    parser.add_argument("--seconds", type=int, default=60, help="of latency, and of each idle measurement (default: %(default)s)")
    parser.add_argument("--lines", type=int, default=2_000_000, help="of words and window (default: %(default)s)")
    parser.add_argument("--peer-lines", type=int, default=200_000, help="of peer, which writes each count (default: %(default)s)")
    parser.add_argument("--queries", type=int, default=4, help="idle queries (default: %(default)s)")
    parser.add_argument("--groups", type=int, default=1_000_000, help="of state (default: %(default)s)")
    options = parser.parse_args()
    wanted = [name.strip() for name in options.only.split(",")]
    if unknown := [name for name in wanted if name not in PARTS]:
        parser.error(f"there is no part {', '.join(unknown)}")
    for name in wanted:
        PARTS[name](options)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
