"""What bad records cost: a sink's chain in columns, all good, with some bad, and with some that only rows can do.

    PYTHONPATH=. python scripts/bench/errors.py [--records 1000000] [--share 0.01] [--batch 200000] [--repeats 3] [--engine columns|spark]

JSON with its schema and an InsertField, which need no Spark; for Spark also a Cast and a transform of one's own, which it computes. Bad
records are not JSON; with Spark half of them hold a string that is no number instead. They go, with
context headers, to a dead letter queue on an embedded log; a run ends when all are stored there. Runs take turns, the best of each counts.
"""

import argparse
import gc
import logging
import sys
import tempfile
import time

import numpy as np

from standalone import F
from standalone.cli.worker import GC_THRESHOLD
from standalone.clock import SYSTEM
from standalone.converters.json import JsonConverter
from standalone.converters.string import StringConverter
from standalone.data.struct import Struct
from standalone.log.admin import Admin
from standalone.log.broker.server import EmbeddedLog
from standalone.log.client import Clusters
from standalone.log.client_config import AdminConfig, ProducerConfig
from standalone.log.producer import Producer
from standalone.pipeline.chain import Chain, Link
from standalone.pipeline.pipeline import Pipeline
from standalone.pipeline.spark.session import SessionHolder
from standalone.runtime.failures.dead_letter import DeadLetterQueue, Letters
from standalone.runtime.failures.tolerance import ErrorCounters, Tolerance
from standalone.stage import FieldTransform
from standalone.transforms.cast import Cast
from standalone.transforms.insert_field import InsertField
from standalone.wire import ByteColumn, Records

SCHEMA = (
    '{"type":"struct","optional":false,"fields":[{"type":"string","optional":false,"field":"n"},'
    '{"type":"string","optional":false,"field":"text"}]}'
)
CONFIG = {"errors.tolerance": "all", "errors.log.enable": False, "errors.log.include.messages": False}


class Shout(FieldTransform):
    """The field `text` in capitals."""

    def apply(self, record):
        schema, value = self.part(record)
        return self.with_part(record, schema, Struct(schema, {**value.to_dict(), "text": value["text"].upper()}))

    def columns(self, columns):
        schema, column = self.part(columns)
        return columns.with_(**{self.where: column.withField("text", F.upper(column["text"]))})


def good(row):
    return f'{{"schema":{SCHEMA},"payload":{{"n":"{row}","text":"handled request {row} in 42 ms, all is well"}}}}'.encode()


def broken(row):
    return b"this is not JSON, number %d" % row


def bad(row):
    return broken(row) if row % 2 else good(row).replace(b'"n":"', b'"n":"x')


def odd(row):
    return good(row).replace(b'"payload":', b'"payload" : ')  # good, but not in the form of the others


def batches(count, size, share, other):
    """wire.Records in which every n-th record is replaced."""
    step = round(1 / share)
    for low in range(0, count, size):
        rows = range(low, min(count, low + size))
        values = [other(row // step) if other is not good and row % step == step // 2 else good(row) for row in rows]
        yield Records(len(rows), None, ByteColumn.of(values), None, None, np.arange(rows.start, rows.stop))


def run(pipeline, tolerance, work):
    """Records a second, CPU seconds of this process, and how many records came out in how many batches."""
    began, cpu, done, runs = time.perf_counter(), time.process_time(), 0, 0
    for records in work:
        result = pipeline.sink("topic", 0, records)
        tolerance.sink("topic", 0, records, result.failures)
        done += sum(map(len, result.batches))
        runs += len(result.batches)
    assert tolerance.dead_letters.stored(60)
    return sum(map(len, work)) / (time.perf_counter() - began), time.process_time() - cpu, done, runs


def queue(bootstrap, counters):
    clusters, properties = Clusters(SYSTEM), {"bootstrap.servers": bootstrap}
    producer, admin = ProducerConfig.of(properties), AdminConfig.of(properties)
    letters = DeadLetterQueue(
        *("dlq", 1, Letters("bench", 0, True)),
        lambda: Admin(clusters.get(admin), admin, SYSTEM),
        lambda: Producer(clusters.get(producer), producer, SYSTEM),
        *(counters, "bench"),
    )
    letters.open("the replication factor")
    return letters


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--share", type=float, default=0.01)
    parser.add_argument("--batch", type=int, default=200_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--engine", choices=("columns", "spark"), action="append")
    said = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    gc.set_threshold(*GC_THRESHOLD)  # both as the worker does
    sys.setswitchinterval(0.0005)
    with tempfile.TemporaryDirectory() as folder:
        log = EmbeddedLog(folder, "127.0.0.1:0", {}, SYSTEM)
        log.start()
        try:
            for engine in said.engine or ("columns", "spark"):
                _compare(said, engine, log.bootstrap)
        finally:
            log.stop()


def _compare(said, engine, bootstrap):
    links = [Link("insert", InsertField.Value.of({"static.field": "from", "static.value": "here"}))]
    holder = None
    if engine == "spark":
        links = [Link("cast", Cast.Value.of({"spec": "n:int32"})), *links, Link("shout", Shout.Value())]
        holder = SessionHolder({}, archive_after_seconds=None)
        holder.request()
        if holder.wait(120) is None:
            raise SystemExit(f"no Spark session: {holder.failure}")
    counters = ErrorCounters()
    tolerance = Tolerance(CONFIG, "bench", 0, counters, SYSTEM, queue(bootstrap, counters))
    kinds = {"good": good, "bad": bad if holder else broken, "odd": odd}
    work = {name: list(batches(said.records, said.batch, said.share, kind)) for name, kind in kinds.items()}
    best, least = dict.fromkeys(work, 0), dict.fromkeys(work, float("inf"))
    chain = Chain("sink", StringConverter.of(is_key=True), JsonConverter.of({}), StringConverter.of(), links)
    pipeline = Pipeline(chain, "spark" if holder else "auto", holder)
    run(pipeline, tolerance, work["good"][:1])
    for _ in range(said.repeats):
        for name, records in work.items():
            rate, cpu, done, runs = run(pipeline, tolerance, records)
            best[name], least[name] = max(best[name], rate), min(least[name], cpu)
            print(f"{engine}: {name:5} {rate:12,.0f} records/s, {cpu:.2f} CPU s, {done:,} came out in {runs} batches", flush=True)
    of_each = {kind: (least[kind] - least["good"]) / (said.records * said.share) * 1e6 for kind in ("bad", "odd")}
    counts = pipeline.counts
    letters = counters.deadletterqueue_produce_requests
    print(f"{engine}: best: good {best['good']:,.0f}/s; bad {best['bad'] / best['good']:.0%} and odd {best['odd'] / best['good']:.0%} of that")
    print(f"{engine}: CPU of each bad record {of_each['bad']:.0f} us, of each odd one {of_each['odd']:.0f} us (this process, least of all runs)")
    print(f"{engine}: batches by Spark {counts.batches['spark']}, done again by rows {counts.redone:,}; letters {letters:,}")
    tolerance.dead_letters.close(5)
    if holder is not None:
        holder.stop()


if __name__ == "__main__":
    main()
