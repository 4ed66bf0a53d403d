#!/usr/bin/env python3
"""LogSource beside rsyslog (imfile to omkafka) and Java's FileStreamSource on one real broker: how fast, how soon, and with how many files.

    .venv/bin/python scripts/bench/logs.py                                       all of it, about ten minutes on a quiet machine
    .venv/bin/python scripts/bench/logs.py --only files                          one of rates, latency, files
    .venv/bin/python scripts/bench/logs.py --lines 100000 --repeats 1 --appends 60 --files 1000 --seconds 5     a quick look

rates    one file to a topic, and nginx's log to JSON with a field for each part; the engines take turns, every record is checked
latency  from the append of a line to a consumer that has it, 20 lines a second
files    many files, and a process that may open 1024: whether all lines come, also those that are appended; what it costs while nothing
         happens, how much memory it takes, how soon a new file is found

Needs Java 17 and Maven for the broker; rsyslog with omkafka takes part where it is installed.
"""

import argparse
import json
import os
import pathlib
import signal
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "scripts" / "bench")]

import compare  # noqa: E402
from compare import TO_TOPIC, Broker, Failed, Job, Lines, attempt, engines, started, stop, table, turns, write_properties  # noqa: E402
from logs_peers import RSYSLOG, STRING, rsyslog  # noqa: E402

from tests.servers.kafka_broker import KafkaBroker  # noqa: E402
from tests.servers.server import Unavailable, free_port  # noqa: E402

LINES_A_SECOND = 20
OPEN_FILES = 1024
WAIT_SECONDS = 300


class Rsyslog:
    name = "rsyslog"

    def by_engine(self):
        return {}

    def start(self, job, folder):
        settings = RSYSLOG.format(folder=folder, path=job.file, topic=job.topic, bootstrap=job.bootstrap)
        (folder / "rsyslog.conf").write_text(settings.replace(' persistStateInterval="1"', ""))  # at each line it would cost most of its time
        return started(["rsyslogd", "-n", "-f", folder / "rsyslog.conf", "-i", folder / "pid"], folder)


def all_engines():
    ours = [sys.executable, "-m", "standalone.cli.worker"]
    os.environ["PYTHONPATH"] = str(ROOT)
    found, missing = engines(" ".join(ours))
    found = [engine for engine in found if engine.name in ("ours", "java", "java, tuned")]
    try:
        rsyslog()
        found.append(Rsyslog())
    except Unavailable as reason:
        missing.append(f"rsyslog: {reason}")
    for reason in missing:
        print(f"left out: {reason}")
    return found


class Shipped(Job):
    """A file to a topic, ours with LogSource."""

    connector = {}

    def settings(self, engine):
        return {"connector.class": "LogSource", "paths": self.file, **self.connector} if engine.name == "ours" else {}


class Requests(Shipped):
    """nginx's log: ours makes JSON of it, others ship the lines as they are."""

    connector = {"format": "combined", "value.converter": "org.apache.kafka.connect.json.JsonConverter", "value.converter.schemas.enable": "false"}
    by_ours = False

    def start_of(self, engine):
        self.by_ours = engine.name == "ours"

    def check(self):
        if not self.by_ours:
            super().check()
            return
        number = 0
        for values in self._broker.values(self.topic, self.lines.count):
            for value in values.splitlines():
                found = json.loads(value)
                wanted = f"/items/{number}?page={number % 97}", 200, number % 90001, None
                if tuple(found[name] for name in ("path", "status", "bytes", "unparsed")) != wanted:
                    raise Failed(f"record {number} is {value[:200]!r}")
                number += 1
        if number != self.lines.count:
            raise Failed(f"{number} of {self.lines.count} records came")


class Accesses(Lines):
    """nginx's log, about 150 bytes a line."""

    def line(self, n):
        return (
            f"10.{n % 251}.{n % 13}.7 - {'ann' if n % 9 == 0 else '-'} [22/Nov/2026:13:{n // 6000 % 60:02d}:{n // 100 % 60:02d} +0000] "
            f'"GET /items/{n}?page={n % 97} HTTP/1.1" 200 {n % 90001} "{"-" if n % 3 else "https://example.com/start"}" '
            f'"Mozilla/5.0 (X11; Linux x86_64) {"abcdefgh"[n % 8]}"'
        )


# --- How fast --------------------------------------------------------------------------------------------------------


def rates(broker, found, folder, chosen):
    for what, kind, lines in (("one file", Shipped, Lines), ("nginx's log", Requests, Accesses)):
        lines = lines(folder / what.replace("'", ""), chosen.lines)
        results = {}
        for engine, own, topic in turns(found, chosen.repeats, folder):
            broker.create(topic)
            job = kind(TO_TOPIC, broker, topic, lines.path, lines)
            if kind is Requests:
                job.start_of(engine)
            figures = attempt(engine, job, own)
            print(f"  {what}, {engine.name}: {compare.told(figures)}", file=sys.stderr, flush=True)
            results.setdefault(engine.name, []).append(figures)
            broker.delete(topic)
        print(f"\n{lines.count} lines of {lines.size / lines.count:.0f} bytes\n{table(what, results)}", flush=True)


# --- How soon --------------------------------------------------------------------------------------------------------


def latency(broker, found, folder, chosen):
    from confluent_kafka import Consumer, TopicPartition

    print(f"\nappend to consumable, {chosen.appends} lines, {LINES_A_SECOND} a second")
    for engine in found:
        own = pathlib.Path(tempfile.mkdtemp(prefix="run-", dir=folder))
        topic = f"soon-{own.name}".replace("_", "-")
        broker.create(topic)
        path = own / "app.log"
        path.write_text("0\n")
        process = engine.start(Shipped(TO_TOPIC, broker, topic, path, None), own)
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": topic, "enable.auto.commit": False, "fetch.wait.max.ms": 500})
        try:
            consumer.assign([TopicPartition(topic, 0, 0)])
            if consumer.poll(WAIT_SECONDS) is None:
                raise Failed(f"its first line did not come: {compare.tail(own / 'log')}")
            took = []
            with open(path, "a") as file:
                due = time.perf_counter() + 1
                for number in range(1, chosen.appends + 1):
                    due += 1 / LINES_A_SECOND
                    time.sleep(max(0.0, due - time.perf_counter()))
                    file.write(f"{time.perf_counter()}\n")
                    file.flush()
                    took += arrived(consumer, 0)
                deadline = time.monotonic() + WAIT_SECONDS
                while len(took) < chosen.appends and time.monotonic() < deadline:
                    took += arrived(consumer, 0.5)
            took.sort()
            told = f"p50 {took[len(took) // 2]:.1f} ms, p99 {took[int(len(took) * 0.99)]:.1f} ms, {len(took)} of {chosen.appends} lines"
        except Failed as error:
            told = str(error)
        finally:
            consumer.close()
            stop(process)
        print(f"  {engine.name:12} {told}", flush=True)


def arrived(consumer, seconds):
    """Milliseconds that each of the lines took which have come within that time. Until the next append is due it is waited for them."""
    found = []
    deadline = time.perf_counter() + (seconds or 0.8 / LINES_A_SECOND)
    while (left := deadline - time.perf_counter()) > 0:
        message = consumer.poll(left)
        if message is not None and not message.error():
            found.append((time.perf_counter() - float(message.value())) * 1000)
    return found


# --- How many --------------------------------------------------------------------------------------------------------


def files(broker, folder, chosen):
    logs = folder / "many"
    paths = [logs / f"{number % 100:02d}" / f"{number}.log" for number in range(chosen.files)]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{path.name} 1\n{path.name} 2\n")
    broker.create("many")
    worker = {
        "bootstrap.servers": broker.bootstrap, "key.converter": STRING, "value.converter": STRING,
        "offset.storage.file.filename": folder / "connect.offsets", "listeners": f"http://127.0.0.1:{free_port()}",
    }  # fmt: skip
    source = {"name": "many", "connector.class": "LogSource", "topic": "many", "paths": f"{logs}/**/*.log"}
    properties = [write_properties(folder / "worker.properties", worker), write_properties(folder / "many.properties", source)]
    limited = f'ulimit -n {OPEN_FILES}; exec "$0" "$@"'
    begun = time.monotonic()
    process = started(["bash", "-c", limited, sys.executable, "-m", "standalone.cli.worker", *properties], folder)
    try:
        until(broker, process, folder, 2 * chosen.files)
        took = time.monotonic() - begun
        print(f"\n{chosen.files} files, {OPEN_FILES} descriptors: {2 * chosen.files} lines are there {took:.1f} s after the start")
        begun = time.monotonic()
        for path in paths:
            with path.open("a") as file:
                file.write(f"{path.name} 3\n")
        until(broker, process, folder, 3 * chosen.files)
        print(f"  a line more in each: {time.monotonic() - begun:.1f} s")
        time.sleep(min(15.0, chosen.seconds))
        before = cpu(process.pid)
        time.sleep(chosen.seconds)
        used = (cpu(process.pid) - before) / chosen.seconds
        descriptors = len(os.listdir(f"/proc/{process.pid}/fd"))
        resident, files = (memory_mb(process.pid, name) for name in ("VmRSS", "RssFile"))
        print(f"  idle: {used:.2%} of a core, {resident:.0f} MB resident ({files:.0f} of them code and other files), {descriptors} descriptors open")
        took = []
        for number in range(5):
            begun = time.monotonic()
            (logs / "07" / f"new{number}.log").write_text(f"new {number}\n")
            until(broker, process, folder, 3 * chosen.files + number + 1)
            took.append(time.monotonic() - begun)
        print(f"  a new file's line is there after {max(took):.2f} s at most, of 5")
        values = [value for each in broker.values("many", 3 * chosen.files + 5) for value in each.splitlines()]
        right = len(values) == 3 * chosen.files + 5 and len(set(values)) == len(values)
        print(f"  {'each line came once' if right else f'WRONG: {len(values)} records, {len(set(values))} different ones'}")
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def until(broker, process, folder, count):
    deadline = time.monotonic() + WAIT_SECONDS
    while (there := broker.count("many")) < count:
        if process.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(f"{there} of {count} lines came: {compare.tail(folder / 'log')}")
        time.sleep(0.01)


def memory_mb(pid, name):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(status.partition(f"{name}:")[2].split()[0]) / 1024


def cpu(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# --- All of it -------------------------------------------------------------------------------------------------------


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["rates", "latency", "files"])
    parser.add_argument("--engines", nargs="+", default=["ours", "rsyslog", "java", "java, tuned"], help="only these of them")
    parser.add_argument("--lines", type=int, default=2_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--appends", type=int, default=600)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=30.0, help="of looking at a worker that has nothing to do")
    chosen = parser.parse_args()
    found = [engine for engine in all_engines() if engine.name in chosen.engines] if chosen.only != "files" else []
    with tempfile.TemporaryDirectory(prefix="logs-") as folder, KafkaBroker() as started_broker:
        broker = Broker(started_broker.bootstrap)
        folder = pathlib.Path(folder)
        print(f"{os.cpu_count()} cores", flush=True)
        if chosen.only in (None, "rates"):
            rates(broker, found, folder, chosen)
        if chosen.only in (None, "latency"):
            latency(broker, found, folder, chosen)
        if chosen.only in (None, "files"):
            files(broker, folder, chosen)


if __name__ == "__main__":
    main()
