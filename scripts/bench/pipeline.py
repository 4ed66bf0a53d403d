"""How fast chains are on this machine: records a second through a Pipeline, by engine, warm. No broker, no files.

    PYTHONPATH=. python scripts/bench/pipeline.py [--records 500000] [--repeats 5]
"""

import argparse
import os
import statistics
import subprocess
import time

import numpy as np

from standalone import ByteColumn, F, Schema, SourceBatch, Transform
from standalone.converters.json import JsonConverter
from standalone.converters.string import StringConverter
from standalone.pipeline.chain import Chain, Link
from standalone.pipeline.pipeline import Pipeline
from standalone.pipeline.spark.session import SessionHolder
from standalone.transforms.hoist_field import HoistField
from standalone.transforms.insert_field import InsertField
from standalone.wire import Records

LINE = b"2026-01-01T00:00:00Z INFO worker-7 handled request 0123456789 in 42 ms for customer 4711, all is well.......\n"


class Mark(Transform):
    """Something that Spark has to compute: the text and a mark."""

    stateless = True

    def apply(self, record):
        return record.with_(value=record.value + "!")

    def columns(self, columns):
        return columns.with_(value=F.concat(columns.value, F.lit("!")))


class MarkByRows(Mark):
    """The same without a columnar form."""

    def columns(self, columns):
        return None


def chains():
    hoist = Link("hoist", HoistField.Value.of({"field": "line"}))
    insert = Link("insert", InsertField.Value.of({"static.field": "data_source", "static.value": "test-file-source"}))
    string, plain, envelope = StringConverter, {"schemas.enable": "false"}, {"schemas.enable": "true"}
    yield "lines, no transform", string, {}, []
    yield "Hoist + Insert static, JSON with schema", JsonConverter, envelope, [hoist, insert]
    yield "Hoist + Insert static, JSON plain", JsonConverter, plain, [hoist, insert]
    yield "something to compute on 110 bytes", string, {}, [Link("mark", Mark())]
    yield "the same, without a columnar form", string, {}, [Link("mark", MarkByRows())]


def measure(pipeline, count, repeats):
    """(median records a second, CPU seconds of this process per million records) of warm runs."""
    data = np.frombuffer(LINE * count, np.uint8)
    starts = np.arange(count, dtype=np.int64) * len(LINE)
    lines = ByteColumn(data, starts, np.full(count, len(LINE) - 1, np.int32))
    rates, cpu = [], 0.0
    for run in range(repeats + 2):  # the first ones compile
        batch = SourceBatch(count, "topic", lines, Schema.STRING)
        records = Records(count, None, lines, None, None, np.arange(count))
        began, used = time.perf_counter(), time.process_time()
        pipeline.source(batch) if pipeline.chain.kind == "source" else pipeline.sink("topic", 0, records)
        if run >= 2:
            rates.append(count / (time.perf_counter() - began))
            cpu += time.process_time() - used
    return statistics.median(rates), cpu / (repeats * count) * 1e6


def memory_mb():
    """Resident memory of this process and of all its children."""
    rows = subprocess.run(["ps", "-eo", "pid,ppid,rss"], capture_output=True, text=True, check=True).stdout.split("\n")[1:]
    table = [tuple(map(int, row.split())) for row in rows if row]
    family = {os.getpid()}
    while more := {pid for pid, parent, _ in table if parent in family} - family:
        family |= more
    return sum(rss for pid, _, rss in table if pid in family) // 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--records", type=int, default=500_000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    holder = SessionHolder({}, archive_after_seconds=None)
    began = time.perf_counter()
    holder.request()
    if holder.wait(120) is None:
        raise SystemExit(f"no Spark session: {holder.failure}")
    print(f"Spark up, first job done: {time.perf_counter() - began:.2f} s; memory {memory_mb()} MB; load {os.getloadavg()[0]:.1f}")
    print(f"{'chain':42} {'kind':7} {'engine':7} {'records/s':>12} {'own CPU s/M':>12}  done by")
    for name, converter, props, links in chains():
        for kind in ("source", "sink") if converter is StringConverter else ("source",):
            for engine in ("auto", "rows") if links else ("auto",):
                chain = Chain(kind, StringConverter.of(is_key=True), converter.of(props), StringConverter.of(), links)
                pipeline = Pipeline(chain, engine, holder)
                count = options.records if engine == "auto" else min(options.records, 20_000)
                rate, cpu = measure(pipeline, count, options.repeats)
                whole = sum(pipeline.counts.records.values())
                by = ", ".join(f"{name} {done / whole:.0%}" for name, done in pipeline.counts.records.items() if done)
                print(f"{name:42} {kind:7} {engine:7} {rate:12,.0f} {cpu:12.2f}  {by}", flush=True)
    print(f"memory at the end {memory_mb()} MB")
    holder.stop()


if __name__ == "__main__":
    main()
