#!/usr/bin/env python3
"""Many sources in one worker, and a neighbour that burns CPU: latency, rate and memory. Needs confluent-kafka.

    scripts/bench/crowd.py latency [--sources 50] [--rate 10] [--seconds 30] [--chain] [--burn]    append -> consumable
    scripts/bench/crowd.py rate [--lines 2000000]      one raw source alone, then beside a connector that computes in pure Python

On the worker's embedded log, or on --bootstrap HOST:PORT.
"""

import argparse
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

ROOT = pathlib.Path(__file__).resolve().parents[2]
STRING = "org.apache.kafka.connect.storage.StringConverter"
CHAIN = """value.converter=org.apache.kafka.connect.json.JsonConverter
transforms=hoist,insert
transforms.hoist.type=org.apache.kafka.connect.transforms.HoistField$Value
transforms.hoist.field=line
transforms.insert.type=org.apache.kafka.connect.transforms.InsertField$Value
transforms.insert.topic.field=topic
"""
BURNER = '''from standalone import SourceConnector, SourceTask


class BurnTask(SourceTask):
    """Computes in pure Python for as long as it runs."""

    over = False

    def poll(self):
        number = 0
        while not self.over:
            number = (number * 31 + 7) % 1000003

    def stop(self):
        self.over = True


class Burn(SourceConnector):
    task_class = BurnTask
'''


class Worker:
    def __init__(self, bootstrap, connectors, burn=False):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="crowd-"))
        (self.folder / "plugins").mkdir()
        (self.folder / "plugins" / "burn.py").write_text(BURNER)
        embedded = "127.0.0.1:19492"
        self.bootstrap = embedded if bootstrap == "embedded" else bootstrap
        files = [self._put("worker", f"bootstrap.servers={bootstrap}\nembedded.log.listener={embedded}\nlisteners=http://127.0.0.1:18493\n"
                           f"key.converter={STRING}\nvalue.converter={STRING}\nplugin.path={self.folder}/plugins\n"
                           f"offset.storage.file.filename={self.folder}/connect.offsets\n")]  # fmt: skip
        files += [self._put(name, f"name={name}\n{text}") for name, text in connectors]
        if burn:
            files.append(self._put("burner", "name=burner\nconnector.class=Burn\n"))
        with open(self.folder / "log", "wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "standalone.cli.worker", *files],
                cwd=self.folder, stdout=log, stderr=log, env={**os.environ, "PYTHONPATH": str(ROOT)},
            )  # fmt: skip

    def _put(self, name, text):
        path = self.folder / f"{name}.properties"
        path.write_text(text)
        return str(path)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)
        shutil.rmtree(self.folder)

    def rss_mb(self):
        """Of the process and its children."""
        pids, total = [str(self.process.pid)], 0
        while pids:
            pid = pids.pop()
            try:
                for children in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
                    pids += children.read_text().split()
                total += int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1])
            except OSError:
                continue
        return total * os.sysconf("SC_PAGE_SIZE") / 2**20


def watch(bootstrap, topics, arrived, over):
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "crowd", "fetch.wait.max.ms": 100})
    consumer.assign([TopicPartition(topic, 0, 0) for topic in topics])
    while not over.is_set():
        message = consumer.poll(0.1)
        if message is not None and not message.error():
            value, now = message.value(), time.monotonic()
            sent = float(value.split(b"@", 1)[1].split(b"@", 1)[0])
            arrived.append((sent, now - sent))
    consumer.close()


def latency(said):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="crowd-in-"))
    stamp = int(time.time())
    names = [f"crowd-{stamp}-{number}" for number in range(said.sources)]
    for name in names:
        (folder / name).touch()
    chain = CHAIN if said.chain else ""
    connectors = [(name, f"connector.class=FileStreamSource\nfile={folder}/{name}\ntopic={name}\n{chain}") for name in names]
    with Worker(said.bootstrap, connectors, said.burn) as worker:
        make_topics(worker.bootstrap, names)
        arrived, over = [], threading.Event()
        watcher = threading.Thread(target=watch, args=(worker.bootstrap, names, arrived, over))
        watcher.start()
        files = [open(folder / name, "a") for name in names]
        warm, sent, began = 15.0, 0, time.monotonic()
        while time.monotonic() < began + warm + said.seconds:
            for number, file in enumerate(files):
                file.write(f"@{time.monotonic():.6f}@ a line of source {number}\n")
                file.flush()
                sent += 1
                until = began + sent / (said.sources * said.rate)
                time.sleep(max(0, until - time.monotonic()))
        rss = worker.rss_mb()
        deadline = time.monotonic() + 20
        while len(arrived) < sent and time.monotonic() < deadline:
            time.sleep(0.1)
        over.set()
        watcher.join()
    shutil.rmtree(folder)
    delays = sorted(delay for moment, delay in arrived if moment > began + warm)
    marks = ", ".join(f"p{mark} {delays[len(delays) * mark // 100] * 1000:.1f} ms" for mark in (50, 95, 99))
    print(f"{said.sources} sources at {said.rate} lines/s each{', with a chain' if said.chain else ''}{', beside a burner' if said.burn else ''}: "
          f"{len(arrived)} of {sent} arrived, {marks}, RSS {rss:.0f} MB")  # fmt: skip


def make_topics(bootstrap, names, seconds=30):
    deadline = time.monotonic() + seconds
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    while True:
        try:
            admin.list_topics(timeout=1)
            break
        except Exception:
            if time.monotonic() > deadline:
                raise
    for future in admin.create_topics([NewTopic(name, 1, 1) for name in names]).values():
        try:
            future.result()
        except Exception:  # the source was quicker
            pass


def rate(said):
    path = pathlib.Path(tempfile.mkdtemp(prefix="crowd-in-")) / "lines"
    with open(path, "w") as file:
        for number in range(said.lines):
            text = "a line of about one hundred bytes, as they are found in logs"
            file.write(f"2026-11-21T00:00:00.000 host app[{number % 997}]: {text} id={number}\n")
    rates = [one_rate(said, path, burn) for burn in (False, True)]
    print(f"raw source alone {rates[0]:,.0f} lines/s, beside a burner {rates[1]:,.0f} lines/s: {rates[1] / rates[0]:.0%}")
    shutil.rmtree(path.parent)


def one_rate(said, path, burn):
    """Lines/s between the first and the last look at the topic's end."""
    name = f"crowd-{int(time.time())}-{burn:d}"
    with Worker(said.bootstrap, [(name, f"connector.class=FileStreamSource\nfile={path}\ntopic={name}\n")], burn) as worker:
        make_topics(worker.bootstrap, [name])
        looks = Consumer({"bootstrap.servers": worker.bootstrap, "group.id": "crowd-look", "log_level": 0})
        first = None
        while True:
            end, now = looks.get_watermark_offsets(TopicPartition(name, 0), timeout=10)[1], time.monotonic()
            if end and first is None:
                first = (now, end)
            if end >= said.lines:
                looks.close()
                return (end - first[1]) / max(now - first[0], 1e-9)
            time.sleep(0.005)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("latency", "rate"))
    parser.add_argument("--bootstrap", default="embedded")
    parser.add_argument("--sources", type=int, default=50)
    parser.add_argument("--rate", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--lines", type=int, default=2_000_000)
    parser.add_argument("--chain", action="store_true")
    parser.add_argument("--burn", action="store_true")
    said = parser.parse_args()
    {"latency": latency, "rate": rate}[said.what](said)


if __name__ == "__main__":
    main()
