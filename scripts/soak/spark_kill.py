#!/usr/bin/env python3
"""Kill Spark's Java process again and again while numbered records go source -> log -> sink; then count what is lost, repeated or skipped.

    scripts/soak/spark_kill.py [--kills 50] [--chains cast,sql,python] [--tolerance none,all] [--seconds 10]
    scripts/soak/spark_kill.py --heap [--records 8000]

One worker with an embedded log; for each chain and tolerance a source and a sink, both with the chain, which Spark does. However often its
process ends, each record must be put once and in order, none in a dead letter queue, no task may fail, and Spark must do jobs again within
`--seconds`. With `--heap` nobody kills it: a statement repeats strings until the small heap is full, and the process ends by that.
"""

import argparse
import os
import pathlib
import random
import shutil
import signal
import statistics
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from standalone import Schema, SchemaBuilder, SinkConnector, SinkTask, SourceConnector, SourceRecord, SourceTask, Struct, Transform  # noqa: E402
from standalone.local_worker import LocalWorker, wait_for  # noqa: E402

MIN_RECORDS = 300  # from here on a batch is Spark's: so that jobs are many
EACH = 800  # records of one poll
PAUSE_SECONDS = 1.0  # between two polls of a source
PATIENCE_SECONDS = 300
SCHEMA = SchemaBuilder.struct().field("n", Schema.INT64).field("text", Schema.STRING).build()
CHAINS = {
    "cast": {"type": "org.apache.kafka.connect.transforms.Cast$Value", "spec": "n:string"},  # of a sink: back again
    "sql": {"type": "Sql", "statement": "SELECT n, concat(text, '.') AS text FROM record"},
    "python": {"type": f"{__name__}:Marked"},
}
HEAP = {"type": "Sql", "statement": "SELECT n, repeat(text, 150) AS text FROM record"}


class Marked(Transform):
    """Has no columnar form and keeps no state."""

    stateless = True

    def apply(self, record):
        value = record.value if isinstance(record.value, dict) else record.value.to_dict()
        return record.with_value(None, {**value, "text": value["text"] + "."})


class Numbers(SourceTask):
    """Polls numbers until it is stopped or has polled `count`."""

    enough = threading.Event()
    polled = {}  # topic -> how many

    def start(self, config):
        self.topic, self.count, self.text = config["topic"], int(config["count"]), "x" * int(config["size"])
        self.ending = threading.Event()
        Numbers.polled.setdefault(self.topic, 0)

    def poll(self):
        low = Numbers.polled[self.topic]
        high = low if Numbers.enough.is_set() else min(self.count, low + EACH)
        if low == high or self.ending.wait(PAUSE_SECONDS):
            self.ending.wait(0.05)
            return None
        Numbers.polled[self.topic] = high
        values = (Struct(SCHEMA, {"n": number, "text": self.text}) for number in range(low, high))
        return [SourceRecord(self.topic, value, {"of": self.topic}, {"next": int(value["n"]) + 1}, value_schema=SCHEMA) for value in values]

    def stop(self):
        self.ending.set()


class NumbersSource(SourceConnector):
    task_class = Numbers


class Counted(SinkTask):
    """Notes how many it was put, and how often another number came than the next one."""

    put_so_far = {}  # topic -> the numbers so far
    misplaced = {}  # topic -> [(expected, found)]

    def put(self, records):
        for record in records:
            expected, found = Counted.put_so_far.get(record.topic, 0), int(record.value["n"])
            if found != expected:
                Counted.misplaced.setdefault(record.topic, []).append((expected, found))
            Counted.put_so_far[record.topic] = found + 1


class CountedSink(SinkConnector):
    task_class = Counted


class Run:
    """A worker with its sources and sinks."""

    def __init__(self, folder, chains, tolerances, memory="1g", count=1 << 60, size=40, source_chain=True):
        Numbers.enough.clear()
        for noted in (Numbers.polled, Counted.put_so_far, Counted.misplaced):
            noted.clear()
        self.worker = LocalWorker(
            folder, pipeline__engine="auto", spark__start="auto", spark__driver__memory=memory, spark__master="local[2]",
            pipeline__columns__min__records=MIN_RECORDS, value__converter="org.apache.kafka.connect.json.JsonConverter",
            value__converter__schemas__enable="false",
        )  # fmt: skip
        self.topics = [f"{chain}-{tolerance}" for chain in chains for tolerance in tolerances]
        self._chains, self._count, self._size, self._source_chain = chains, count, size, source_chain
        self.letters = "letters"

    def __enter__(self):
        self.worker.__enter__()
        for topic in self.topics:
            chain, tolerance = topic.split("-")
            link = {"transforms": "t", **{f"transforms.t.{key}": value for key, value in self._chains[chain].items()}}
            errors = {"errors.tolerance": tolerance}
            if tolerance == "all":
                errors |= {"errors.deadletterqueue.topic.name": self.letters, "errors.deadletterqueue.topic.replication.factor": "1"}
            source = {"connector.class": f"{__name__}:NumbersSource", "topic": topic, "count": self._count, "size": self._size}
            self.worker.create(f"source-{topic}", {**source, **(link if self._source_chain else {}), "errors.tolerance": tolerance})
            if chain == "cast":
                link = {**link, "transforms.t.spec": "n:int64"}
            sink = {"connector.class": f"{__name__}:CountedSink", "topics": topic}
            self.worker.create(f"sink-{topic}", {**sink, **link, **errors})
        return self

    def __exit__(self, *problem):
        self.worker.__exit__(*problem)

    @property
    def spark(self):
        return self.worker.process.worker._session

    def by_spark(self):
        """{connector: records that Spark did} of those with a chain."""
        return {each.connector: each.pipeline.counts.records["spark"] for each in self.worker.herder.runners() if each.pipeline.chain.links}

    def wait_for_jobs(self, seconds=PATIENCE_SECONDS):
        """How long it took until Spark had done something more for each connector."""
        before, began = self.by_spark(), time.monotonic()

        def moved():
            now = self.by_spark()
            return self.failed() or all(now.get(name, 0) > records for name, records in before.items())

        wait_for(moved, seconds, "Spark to do jobs of all connectors")
        return time.monotonic() - began

    def kill(self):
        """Seconds from the end of Spark's process until jobs are done again by its successor."""
        process = self.spark._process
        if process is None:
            return None
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        began, jobs, starts = time.monotonic(), self.spark.jobs, self.spark.starts

        def again():
            return self.failed() or self.spark.starts > starts and self.spark.ready() and self.spark.jobs > jobs

        wait_for(again, PATIENCE_SECONDS, "jobs again")
        return time.monotonic() - began

    def failed(self):
        """{connector: trace} of what has failed."""
        names = self.worker.herder.names()
        return {name: trace for name in names if (trace := self.worker.trace(name)) is not None}

    def drain(self):
        """End the sources, and wait until all that they polled is put."""
        if self._count == 1 << 60:
            Numbers.enough.set()

        def whole():
            return self.failed() or all(Counted.put_so_far.get(topic, 0) >= self._wanted(topic) for topic in self.topics)

        wait_for(whole, PATIENCE_SECONDS, f"all records: {Counted.put_so_far} of {Numbers.polled}")

    def _wanted(self, topic):
        return Numbers.polled[topic] if self._count == 1 << 60 else self._count

    def judge(self):
        """The errors found, as text."""
        wrong = [f"{name} has failed: {trace}" for name, trace in self.failed().items()]
        for topic in self.topics:
            put, polled = Counted.put_so_far.get(topic, 0), self._wanted(topic)
            if put != polled:
                wrong.append(f"{topic}: {polled} polled, {put} put")
            wrong += [f"{topic}: {found} came where {expected} was next" for expected, found in Counted.misplaced.get(topic, [])[:5]]
        for runner in self.worker.herder.runners():
            counted = runner.errors.values()
            for name in ("total-record-failures", "total-records-skipped", "deadletterqueue-produce-requests"):
                if counted[name]:
                    wrong.append(f"{runner.connector}: {name} {counted[name]}")
        return wrong


def soak(folder, kills, chains=CHAINS, tolerances=("none", "all"), seed=1, say=print):
    """(what is wrong, seconds after each kill until Spark did jobs again)"""
    chance, pauses, tick = random.Random(seed), [], threading.Event()
    with Run(folder, chains, tolerances) as run:
        wait_for(lambda: run.spark.ready() or run.spark.failure, PATIENCE_SECONDS, "Spark")
        say("Spark is up")
        for number in range(kills):
            run.wait_for_jobs()
            tick.wait(chance.uniform(0, 0.5))
            pauses.append(run.kill())
            if run.failed():
                break
            say(f"kill {number + 1}: jobs again after {pauses[-1]:.1f} s")
        run.drain()
        shares = {name: records for name, records in run.by_spark().items()}
        say(f"by Spark {shares}, polled {Numbers.polled}, put {Counted.put_so_far}, starts {run.spark.starts}")
        return run.judge(), pauses


def fill_heap(folder, records, memory="512m", tolerances=("none", "all"), say=print):
    """(what is wrong, how often the process ended)"""
    with Run(folder, {"heap": HEAP}, tolerances, memory, records, 1_000, source_chain=False) as run:
        run.drain()
        say(f"put {Counted.put_so_far}, starts of Spark {run.spark.starts}, by Spark {run.by_spark()}")
        return run.judge(), run.spark.starts - 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--chains", default=",".join(CHAINS))
    parser.add_argument("--tolerance", default="none,all")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--heap", action="store_true")
    parser.add_argument("--records", type=int, default=8_000, help="of each topic, with --heap")
    said = parser.parse_args()
    folder, tolerances = pathlib.Path(tempfile.mkdtemp(prefix="soak-")), said.tolerance.split(",")
    sys.setswitchinterval(0.0005)  # as the worker does
    if said.heap:
        wrong, ends = fill_heap(folder, said.records, tolerances=tolerances)
        print(f"the process ended {ends} times by a full heap")
    else:
        wrong, pauses = soak(folder, said.kills, {name: CHAINS[name] for name in said.chains.split(",")}, tolerances, said.seed)
        print(f"{len(pauses)} kills; jobs again after {statistics.median(pauses):.1f} s at the median, {max(pauses):.1f} s at most")
        if max(pauses) > said.seconds:
            wrong.append(f"it took {max(pauses):.1f} s until Spark did jobs again, not {said.seconds:.0f} s")
    if wrong:
        sys.exit("\n".join([*wrong, f"not as it must be; everything is kept in {folder}"]))
    shutil.rmtree(folder)


if __name__ == "__main__":
    sys.modules["spark_kill"] = sys.modules["__main__"]
    main()
