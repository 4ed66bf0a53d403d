#!/usr/bin/env python3
"""File → log → file in one worker: this one on its embedded log, beside Java's worker and this one on a real Kafka broker.

    .venv/bin/python scripts/bench/through.py [--lines 2000000] [--repeats 2]

Each worker runs a FileStreamSource and a FileStreamSink at once. The engines, the lines and the figures are those of compare.py: the rate counts
from the first line in the sink's file to the last, and the file must equal the source's. Java's CPU time excludes the broker's; the embedded log's
is part of its worker's. Needs Java 17 and Maven.
"""

import argparse
import pathlib
import sys
import tempfile

import compare
from compare import TO_FILE, Broker, Connect, Job, Lines, attempt, engines, started, table, turns, write_properties

from tests.servers.kafka_broker import KafkaBroker
from tests.servers.server import free_port

STRING = "org.apache.kafka.connect.storage.StringConverter"


class Both(Connect):
    """A worker with a source and a sink; `on_embedded` on its own log."""

    def __init__(self, name, engine, on_embedded=False):
        super().__init__(name, engine._command, engine._settings)
        self._on_embedded = on_embedded

    def start(self, job, folder):
        worker = {
            "bootstrap.servers": job.bootstrap, "key.converter": STRING, "value.converter": STRING,
            "offset.storage.file.filename": folder / "connect.offsets", "listeners": f"http://127.0.0.1:{free_port()}", **self._settings,
        }  # fmt: skip
        if self._on_embedded:
            worker |= {"bootstrap.servers": "embedded", "embedded.log.listener": f"127.0.0.1:{free_port()}", "state.dir": folder / "state"}
        paths = [write_properties(folder / "worker.properties", worker)]
        for kind, topic, file in (("Source", "topic", job.lines.path), ("Sink", "topics", job.file)):
            connector = {"name": f"{kind}-{folder.name}", "connector.class": f"FileStream{kind}", "tasks.max": 1, "file": file, topic: job.topic}
            paths.append(write_properties(folder / f"{kind}.properties", connector))
        return started([*self._command, *paths], folder)

    def by_engine(self):
        return {}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=2_000_000)
    parser.add_argument("--repeats", type=int, default=2)
    chosen = parser.parse_args()
    known, missing = engines(f"{sys.executable} -m standalone.cli.worker")
    for reason in missing:
        print(f"left out: {reason}")
    named = {engine.name: engine for engine in known if isinstance(engine, Connect)}
    found = [Both("ours", named["ours"], on_embedded=True), Both("ours, on Kafka", named["ours"])]
    found += [Both(name, named[name]) for name in ("java", "java, tuned") if name in named]
    results = {}
    with tempfile.TemporaryDirectory(prefix="through-") as folder, KafkaBroker() as kafka:
        folder, broker = pathlib.Path(folder), Broker(kafka.bootstrap)
        lines = Lines(folder / "lines", chosen.lines)
        for engine, own, topic in turns(found, chosen.repeats, folder):
            broker.create(topic)
            figures = attempt(engine, Job(TO_FILE, broker, topic, own / "out", lines), own)
            print(f"  {engine.name}: {compare.told(figures)}", file=sys.stderr, flush=True)
            results.setdefault(engine.name, []).append(figures)
            broker.delete(topic)
        print(f"\n{lines.count} lines of {lines.size / lines.count:.0f} bytes\n{table('file → log → file', results)}")


if __name__ == "__main__":
    main()
