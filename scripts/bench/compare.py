#!/usr/bin/env python3
"""A comparison for yourself: this worker beside Java's Kafka Connect and kcat, on one real Kafka broker, with the same lines.

    .venv/bin/python scripts/bench/compare.py                          2 million lines, 3 times each: some minutes
    .venv/bin/python scripts/bench/compare.py --lines 200000 --repeats 1

Needs Java 17 and Maven, which fetches the broker and Connect once. kcat takes part where it is installed. The engines take turns, and
every result is compared with the lines by checksum: a run whose lines are not all there, once and in order, counts as failed.
Other programs on the machine disturb it, so trust the ratios within one run more than the figures.
"""

import argparse
import contextlib
import hashlib
import json
import os
import pathlib
import resource
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.servers.java_connect import connect_jars  # noqa: E402
from tests.servers.kafka_broker import KafkaBroker  # noqa: E402
from tests.servers.server import Unavailable, free_port  # noqa: E402

TICK = os.sysconf("SC_CLK_TCK")
LOOK_SECONDS = 0.01
RUN_SECONDS = 600
STOP_SECONDS = 60
TO_TOPIC, TO_FILE = "file to topic", "topic to file"

# What those who tune Java's worker for bulk set.
TUNED = {"producer.batch.size": 262144, "producer.linger.ms": 5, "consumer.max.poll.records": 5000, "plugin.discovery": "service_load"}
# The options that Kafka's own start script gives its JVM.
JVM = """-Xms256M -Xmx2G -server -XX:+UseG1GC -XX:MaxGCPauseMillis=20 -XX:InitiatingHeapOccupancyPercent=35
 -XX:+ExplicitGCInvokesConcurrent -XX:MaxInlineLevel=15 -Djava.awt.headless=true""".split()


class Failed(Exception):
    """The run gave no result; the message has the reason."""


# --- The engines: each is started on a job and moves all of its lines ------------------------------------------------


class Connect:
    """A Connect worker with one file connector, from the properties files of Kafka's quickstart with plain strings."""

    def __init__(self, name, command, settings=()):
        self.name = name
        self._command = command
        self._settings = dict(settings)

    def start(self, job, folder):
        worker = {
            "bootstrap.servers": job.bootstrap,
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
            "offset.storage.file.filename": folder / "connect.offsets",
            "listeners": (listener := f"http://127.0.0.1:{free_port()}"),
            **self._settings,
        }
        kind = ("Source", "topic") if job.direction == TO_TOPIC else ("Sink", "topics")
        # The name is new each time: a sink's group is called after it, and must begin at the beginning.
        connector = {"name": (name := f"compare-{folder.name}"), "connector.class": f"FileStream{kind[0]}", "tasks.max": 1}
        connector |= {"file": job.file, kind[1]: job.topic, **job.settings(self)}
        self._pipeline = f"{listener}/connectors/{name}/pipeline"
        paths = [write_properties(folder / "worker.properties", worker), write_properties(folder / "connector.properties", connector)]
        return started([*self._command, *paths], folder)

    def by_engine(self):
        """{engine of the pipeline: share of the records} of the run; Java's worker has no such thing."""
        try:
            with urllib.request.urlopen(self._pipeline, timeout=10) as answer:
                records = json.load(answer)["tasks"][0]["records"]
        except urllib.error.HTTPError:
            return {}
        whole = sum(records.values()) or 1
        return {f"by {name}": count / whole for name, count in records.items()}


class Kcat:
    """librdkafka's own tool: it keeps no offsets and knows no connectors, so it shows what bare shipping costs."""

    name = "kcat"

    def by_engine(self):
        return {}

    def start(self, job, folder):
        common = ["kcat", "-b", job.bootstrap, "-t", job.topic, "-p", "0"]
        if job.direction == TO_TOPIC:
            return started([*common, "-P", "-l", job.file], folder)
        with open(job.file, "wb") as out:
            return started([*common, "-C", "-o", "beginning", "-e", "-q"], folder, out)


def engines(ours):
    """(the engines that can run here, the reasons why the others cannot)"""
    found, missing = [Connect("ours", shlex.split(ours))], []
    try:
        libs = connect_jars()
    except Unavailable as reason:
        missing.append(f"Java Connect: {reason}")
    else:
        plugin = next(libs.glob("connect-file-*.jar"))
        path = ":".join(str(jar) for jar in sorted(libs.glob("*.jar")) if jar != plugin)
        logging = f"-Dlog4j2.configurationFile={ROOT / 'tests/servers/log4j2.properties'}"
        command = ["java", *JVM, logging, "-cp", path, "org.apache.kafka.connect.cli.ConnectStandalone"]
        found.append(Connect("java", command, {"plugin.path": plugin}))
        found.append(Connect("java, tuned", command, {"plugin.path": plugin, **TUNED}))
    if shutil.which("kcat"):
        found.append(Kcat())
    else:
        missing.append("kcat: not installed")
    return found, missing


def write_properties(path, settings):
    path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return str(path)


def started(command, folder, out=None):
    with open(folder / "log", "ab") as log:
        return subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=out or log, stderr=log, cwd=folder)


# --- One run ----------------------------------------------------------------------------------------------------------


class Job:
    """Lines to move, how to see how many are there, and whether they are the right ones."""

    def __init__(self, direction, broker, topic, file, lines):
        self.direction = direction
        self.bootstrap = broker.bootstrap
        self.topic = topic
        self.file = file
        self.lines = lines
        self._broker = broker

    def settings(self, engine):
        """More of the connector's properties."""
        return {}

    def progress(self):
        """From 0 to 1."""
        if self.direction == TO_TOPIC:
            return self._broker.count(self.topic) / self.lines.count
        return self.file.stat().st_size / self.lines.size if self.file.exists() else 0.0

    def check(self):
        if self.progress() != 1:
            raise Failed("there is more than was sent")
        values = self._broker.values(self.topic, self.lines.count) if self.direction == TO_TOPIC else open(self.file, "rb")
        found = hashlib.sha256()
        for value in values:
            found.update(value)
        if found.digest() != self.lines.checksum:
            raise Failed(f"the lines in the {'topic' if self.direction == TO_TOPIC else 'file'} are not those that were sent")


def run(engine, job, folder):
    """The figures of one run: {name: value}."""
    cpu_before, start = children_cpu(), time.monotonic()
    process = engine.start(job, folder)
    first = first_share = last = None
    try:
        while last is None:
            now, share = time.monotonic(), job.progress()
            if share and first is None:
                first, first_share = now, share
            if share >= 1:
                last = now
            elif process.poll():
                raise Failed(f"it ended with status {process.returncode}: {tail(folder / 'log')}")
            elif now - start > RUN_SECONDS:
                raise Failed(f"only {share:.0%} of the lines came within {RUN_SECONDS} s: {tail(folder / 'log')}")
            else:
                time.sleep(LOOK_SECONDS)
        shares = engine.by_engine()
        forked = workers_cpu(process.pid)
        stopping = time.monotonic()
    finally:
        stop(process)
    stopped, cpu = time.monotonic(), children_cpu() - cpu_before + forked  # the check, which has its own processes, is not the engine's
    job.check()
    moved, seconds = (1 - first_share) * job.lines.count, last - first
    return {
        # What was there at the first look cannot be timed: no rate if that was nearly all.
        "rate": moved / seconds if first_share < 0.9 and seconds else None,
        "first": first - start,
        "wall": last - start,
        "cpu": cpu / job.lines.count * 1e6,
        "stop": stopped - stopping,
        **shares,
    }


def stop(process):
    """Send SIGTERM, then SIGKILL if the process does not end."""
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise Failed(f"it had to be killed: {STOP_SECONDS} s after SIGTERM it was still there") from None


def children_cpu():
    """Seconds of CPU that the processes we started and waited for took, with theirs."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def used(pid):
    """CPU seconds of a process so far, and of its children that have ended."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return sum(map(int, stat.read().rpartition(")")[2].split()[11:15])) / TICK
    except OSError:
        return 0.0


def children(pid):
    """The processes below that one."""
    found = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children") as listed:
                for child in map(int, listed.read().split()):
                    found += [child, *children(child)]
    return found


def workers_cpu(pid):
    """CPU seconds of Spark's Python workers below that process: the daemon that they are forked from ends before them, and nobody waits for them."""
    daemons = [each for each in children(pid) if b"pyspark.daemon" in command_line(each)]
    return sum(map(used, {worker for daemon in daemons for worker in children(daemon)}))


def command_line(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def tail(path):
    return path.read_text(errors="replace")[-400:].strip()


# --- The broker and the lines -----------------------------------------------------------------------------------------


class Broker:
    """The broker with what the comparison asks of it, by way of kafka-python."""

    def __init__(self, bootstrap):
        from kafka import KafkaConsumer, TopicPartition
        from kafka.admin import KafkaAdminClient, NewTopic

        self.bootstrap = bootstrap
        self._consumer, self._partition, self._new = KafkaConsumer, TopicPartition, NewTopic
        self._admin = KafkaAdminClient(bootstrap_servers=bootstrap)
        self._counter = KafkaConsumer(bootstrap_servers=bootstrap)

    def create(self, topic):
        self._admin.create_topics([self._new(topic, 1, 1)])
        deadline = time.monotonic() + 20
        while True:
            try:
                return self.count(topic)
            except Exception:  # it takes a moment until every part of the broker knows the topic
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)

    def delete(self, topic):
        self._admin.delete_topics([topic])

    def count(self, topic):
        partition = self._partition(topic, 0)
        return self._counter.end_offsets([partition])[partition]

    def values(self, topic, count):
        """Each value with a line end, in the log's order; by librdkafka, since kafka-python takes longer for it than the engines for their work."""
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "check", "enable.auto.commit": False})
        consumer.assign([TopicPartition(topic, 0, 0)])
        try:
            while count > 0:
                records = consumer.consume(10_000, timeout=20)
                if not records:
                    return
                for record in records:
                    if record.error():
                        raise Failed(f"the topic cannot be read: {record.error()}")
                count -= len(records)
                yield b"".join(record.value() + b"\n" for record in records)
        finally:
            consumer.close()


class Lines:
    """A file of numbered lines, about 100 bytes each, as a web server might log them."""

    def __init__(self, path, count):
        self.path, self.count = path, count
        found = hashlib.sha256()
        with open(path, "wb") as file:
            for low in range(0, count, 10_000):
                text = "".join(f"{self.line(number)}\n" for number in range(low, min(low + 10_000, count))).encode()
                file.write(text)
                found.update(text)
        self.size = path.stat().st_size
        self.checksum = found.digest()

    def line(self, number):
        return (
            f"{number:010d} 10.{number % 251}.{number % 13}.7 GET /items/{number * 7919 % 1000003:07d}?page={number % 97} 200 "
            f"{number * 31 % 90001} bytes in {number % 1009} ms agent={'abcdefgh'[number % 8] * 12}"
        )


# --- All of it --------------------------------------------------------------------------------------------------------


def turns(all_engines, repeats, folder):
    """Each engine `repeats` times, in rotated order: (engine, a folder of the run, the name of a topic of its own)."""
    for turn in range(repeats):
        at = turn % len(all_engines)
        for engine in all_engines[at:] + all_engines[:at]:
            own = pathlib.Path(tempfile.mkdtemp(prefix="run-", dir=folder))
            yield engine, own, f"lines-{own.name}".replace("_", "-")
            shutil.rmtree(own, ignore_errors=True)


def compare(broker, all_engines, lines, repeats, folder):
    """{direction: {engine's name: [figures or Failed, ...]}}"""
    results = {}
    for direction in (TO_TOPIC, TO_FILE):
        if direction == TO_FILE:
            filled = fill(broker, lines, folder)
        for engine, own, topic in turns(all_engines, repeats, folder):
            if direction == TO_TOPIC:
                broker.create(topic)
                job = Job(direction, broker, topic, lines.path, lines)
            else:
                job = Job(direction, broker, filled, own / "out", lines)
            figures = attempt(engine, job, own)
            print(f"  {direction}, {engine.name}: {told(figures)}", file=sys.stderr, flush=True)
            results.setdefault(direction, {}).setdefault(engine.name, []).append(figures)
            if direction == TO_TOPIC:
                broker.delete(topic)
    return results


def attempt(engine, job, folder):
    try:
        return run(engine, job, folder)
    except (Failed, OSError) as error:
        return Failed(str(error))


def fill(broker, lines, folder):
    """A topic with all the lines."""
    topic = f"filled-{folder.name}".replace("_", "-")
    broker.create(topic)
    if shutil.which("kcat"):
        process = Kcat().start(Job(TO_TOPIC, broker, topic, lines.path, lines), folder)
        if process.wait():
            raise Failed(f"kcat cannot fill the topic: {tail(folder / 'log')}")
    else:
        from kafka import KafkaProducer

        producer = KafkaProducer(bootstrap_servers=broker.bootstrap, linger_ms=20, batch_size=1 << 18)
        with open(lines.path, "rb") as file:
            for line in file:
                producer.send(topic, line[:-1], partition=0)
        producer.close()
    return topic


def told(figures):
    if isinstance(figures, Failed):
        return f"FAILED: {figures}"
    rate = f"{figures['rate'] / 1e6:.2f} M records/s" if figures["rate"] else "too quick to time"
    shares = "".join(f", {name} {share:.1%}" for name, share in figures.items() if name.startswith("by ") and share)
    return f"{rate}, first after {figures['first']:.2f} s, all after {figures['wall']:.2f} s{shares}"


COLUMNS = ("", "M records/s", "ours is", "first record s", "all after s", "ours is", "CPU s per M", "stop s", "right runs")


def table(direction, by_engine):
    """Medians of the runs that were right, and how many times better ours is."""
    medians = {name: median(runs) for name, runs in by_engine.items()}
    ours = medians.get("ours", {})
    rows = [(direction, *COLUMNS[1:])]
    for name, runs in by_engine.items():
        its = medians[name]
        right = sum(not isinstance(each, Failed) for each in runs)
        rows.append((
            name, number(its.get("rate"), 1e6), times(ours.get("rate"), its.get("rate")), number(its.get("first")), number(its.get("wall")),
            times(its.get("wall"), ours.get("wall")), number(its.get("cpu")), number(its.get("stop")), f"{right}/{len(runs)}",
        ))  # fmt: skip
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
    shares = [f"{name} {share:.1%}" for name, share in ours.items() if name.startswith("by ") and share]
    aligned = [[row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))] for row in rows]
    return "\n".join(["  ".join(cells) for cells in aligned] + ([f"ours: {', '.join(shares)}"] if shares else []))


def median(runs):
    right = [each for each in runs if not isinstance(each, Failed)]
    found = {}
    for name in right[0] if right else ():
        values = [each[name] for each in right if each[name] is not None]
        found[name] = statistics.median(values) if values else None
    return found


def number(value, unit=1.0):
    return "-" if value is None else f"{value / unit:.2f}"


def times(better, worse):
    return "-" if not better or not worse else f"{better / worse:.1f} x"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=2_000_000, help="lines of about 100 bytes (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each engine in each direction (default: %(default)s)")
    parser.add_argument("--engines", help="only these, separated by semicolons: ours; java; java, tuned; kcat")
    parser.add_argument("--ours", default=str(ROOT / "scripts/connect-standalone"), help="the command of ours (default: %(default)s)")
    options = parser.parse_args()
    found, missing = engines(options.ours)
    if options.engines:
        wanted = [name.strip() for name in options.engines.split(";")]
        found = [engine for engine in found if engine.name in wanted]
    for reason in missing:
        print(f"left out: {reason}")
    with tempfile.TemporaryDirectory(prefix="compare-") as folder:
        folder = pathlib.Path(folder)
        lines = Lines(folder / "lines", options.lines)
        print(f"{lines.count} lines, {lines.size / lines.count:.0f} bytes each; {options.repeats} runs; {os.cpu_count()} cores", flush=True)
        try:
            with KafkaBroker() as started_broker:
                results = compare(Broker(started_broker.bootstrap), found, lines, options.repeats, folder)
        except Unavailable as reason:
            sys.exit(f"There is no broker to compare on: {reason}")
    for direction, by_engine in results.items():
        print()
        print(table(direction, by_engine))
    failed = [each for by_engine in results.values() for runs in by_engine.values() for each in runs if isinstance(each, Failed)]
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
