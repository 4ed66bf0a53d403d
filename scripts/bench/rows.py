"""How fast the rows engine is, which does small batches and what has no columnar form.

    PYTHONPATH=. python scripts/bench/rows.py chains [--records 3000] [--repeats 40] [--profile]
    PYTHONPATH=. python scripts/bench/rows.py latency [--records 500] [--bootstrap HOST:PORT]

`chains` gives records a second of one core, by the CPU time of the thread: what else the machine does hardly shows in it. `latency`
runs a worker with its own source and four links, sends one record at a time and says what passes between its poll and its
acknowledgement; on the embedded log, or on the Kafka that is named.
"""

import argparse
import cProfile
import gc
import json
import pathlib
import pstats
import random
import sys
import tempfile
import time

import numpy as np

from connectors.file.sink import lines_of
from standalone import ByteColumn, Schema, SourceBatch, SourceConnector, SourceRecord, SourceTask
from standalone.cli.worker import GC_THRESHOLD
from standalone.converters.json import JsonConverter
from standalone.converters.string import StringConverter
from standalone.local_worker import LocalWorker, wait_for
from standalone.pipeline.chain import Chain, Link
from standalone.pipeline.pipeline import Pipeline
from standalone.transforms.cast import Cast
from standalone.transforms.hoist_field import HoistField
from standalone.transforms.insert_field import InsertField
from standalone.transforms.regex_router import RegexRouter
from standalone.transforms.replace_field import ReplaceField
from standalone.wire import Records

ENVELOPE, PLAIN = {"schemas.enable": "true"}, {"schemas.enable": "false"}


# --- Chains ----------------------------------------------------------------------------------------------------------


def messages(count):
    """JSON of about 310 bytes: twelve fields, two of them nested."""
    pick = random.Random(2)
    letters = "abcdefghijklmnopqrstuvwxyz"
    texts = [" ".join("".join(pick.choices(letters, k=pick.randint(3, 9))) for _ in range(12)) for _ in range(256)]
    for at in range(count):
        yield {
            "id": at,
            "ts": f"2026-11-21T{at // 3600 % 24:02}:{at // 60 % 60:02}:{at % 60:02}Z",
            "level": ("INFO", "WARN", "ERROR", "DEBUG")[at % 4],
            "service": f"svc-{at % 17}",
            "host": f"host-{at % 53:02}",
            "status": ("200", "404", "500")[at % 3],
            "latency_ms": at % 5000 + (at % 4) / 4,
            "retries": at % 5,
            "ok": at % 3 == 0,
            "tags": [f"t{at % 7}", f"zone-{at % 3}"],
            "user": {"name": f"u{at % 9973}", "region": ("eu", "us", "ap")[at % 3], "age": at % 80},
            "msg": texts[at * 2654435761 % 256],
        }


def insert_replace_cast_route():
    return [
        Link("insert", InsertField.Value.of({"static.field": "pipeline", "static.value": "bench", "offset.field": "off"})),
        Link("replace", ReplaceField.Value.of({"exclude": "retries", "renames": "msg:message,host:hostname"})),
        Link("cast", Cast.Value.of({"spec": "latency_ms:int64,ok:int8,status:float64"})),
        Link("route", RegexRouter.of({"regex": "(.*)", "replacement": "$1-copy"})),
    ]


def hoist_insert():
    return [
        Link("hoist", HoistField.Value.of({"field": "line"})),
        Link("insert", InsertField.Value.of({"static.field": "data_source", "static.value": "bench"})),
    ]


def sink_of_json(count):
    """Fetched JSON without a schema, four links, the text of what comes out."""
    pipeline = _pipeline("sink", JsonConverter.of(PLAIN), insert_replace_cast_route())
    values = ByteColumn.of([json.dumps(message, separators=(",", ":")).encode() for message in messages(count)])
    records = Records(count, None, values, None, None, np.arange(count))

    def work():
        done = pipeline.sink("bench", 0, records)
        assert not done.failures
        return [lines_of(batch) for batch in done.batches]

    return work


def source_of_lines(converter):
    """Lines of about 100 bytes, hoisted and inserted into, as JSON."""

    def prepared(count):
        pipeline = _pipeline("source", converter, hoist_insert())
        line = b"2026-01-01T00:00:00Z INFO worker-7 handled request %d in 42 ms for customer 4711, all is well......"
        values = ByteColumn.of([line % at for at in range(count)])

        def work():
            return pipeline.source(SourceBatch(count, "bench", values, Schema.STRING))

        return work

    return prepared


def sink_with_schema(count):
    """JSON in its envelope read again: structs with schemas, four links, the text of what comes out."""
    writer = JsonConverter.of(ENVELOPE)
    pipeline = _pipeline("sink", JsonConverter.of(ENVELOPE), insert_replace_cast_route())
    schema = _schema()
    texts = [writer.from_connect("bench", schema, _struct(schema, message)) for message in messages(count)]
    records = Records(count, None, ByteColumn.of(texts), None, None, np.arange(count))

    def work():
        done = pipeline.sink("bench", 0, records)
        assert not done.failures
        return [lines_of(batch) for batch in done.batches]

    return work


def _schema():
    from standalone import SchemaBuilder

    kinds = {"id": Schema.INT64, "latency_ms": Schema.FLOAT64, "retries": Schema.INT32, "ok": Schema.BOOLEAN}
    builder = SchemaBuilder.struct()
    for name in ("id", "ts", "level", "service", "host", "status", "latency_ms", "retries", "ok", "msg"):
        builder.field(name, kinds.get(name, Schema.OPTIONAL_STRING))
    return builder.build()


def _struct(schema, message):
    from standalone import Struct

    return Struct(schema, {field.name: message[field.name] for field in schema.fields})


def _pipeline(kind, converter, links):
    return Pipeline(Chain(kind, StringConverter.of(is_key=True), converter, StringConverter.of(), links), "rows")


CHAINS = {
    "sink: JSON -> Insert + Replace + Cast + Route -> text": sink_of_json,
    "sink: JSON with schema -> the same": sink_with_schema,
    "source: line -> Hoist + Insert -> JSON with schema": source_of_lines(JsonConverter.of(ENVELOPE)),
    "source: line -> Hoist + Insert -> JSON": source_of_lines(JsonConverter.of(PLAIN)),
}


def measure_chains(options):
    gc.set_threshold(*GC_THRESHOLD)  # as the worker does
    print(f"{'chain':56} {'records/s':>10} {'us/record':>10}   (best of {options.repeats}, one core)")
    for name, prepare in CHAINS.items():
        work = prepare(options.records)
        work()
        best = min(_cpu_seconds(work) for _ in range(options.repeats))
        print(f"{name:56} {options.records / best:10,.0f} {best / options.records * 1e6:10.1f}", flush=True)
        if options.profile:
            profile = cProfile.Profile()
            profile.runcall(work)
            pstats.Stats(profile).sort_stats("tottime").print_stats(18)


# --- Latency ---------------------------------------------------------------------------------------------------------


class OneByOneTask(SourceTask):
    """Polls a record, waits for its acknowledgement, polls the next one."""

    seconds = []  # between poll and commit_record, of each record

    def start(self, config):
        self.left = int(config["records"])
        self.values = messages(self.left)
        self.waits = None

    def poll(self):
        if self.waits is not None or not self.left:
            time.sleep(0.0002)
            return None
        self.left -= 1
        record = SourceRecord("latency", next(self.values), {"source": "bench"}, {"left": self.left})
        self.waits = time.perf_counter()
        return [record]

    def commit_record(self, record, metadata):
        self.seconds.append(time.perf_counter() - self.waits)
        self.waits = None


class OneByOne(SourceConnector):
    task_class = OneByOneTask


FOUR_LINKS = {
    "transforms": "ins,rep,cast,route",
    "transforms.ins.type": "InsertField$Value",
    "transforms.ins.static.field": "pipeline",
    "transforms.ins.static.value": "bench",
    "transforms.rep.type": "ReplaceField$Value",
    "transforms.rep.exclude": "retries",
    "transforms.rep.renames": "msg:message,host:hostname",
    "transforms.cast.type": "Cast$Value",
    "transforms.cast.spec": "latency_ms:int64,ok:int8,status:float64",
    "transforms.route.type": "RegexRouter",
    "transforms.route.regex": "(.*)",
    "transforms.route.replacement": "$1-copy",
}


def measure_latency(options):
    converter = {"value.converter": "org.apache.kafka.connect.json.JsonConverter", "value.converter.schemas.enable": "false"}
    sys.setswitchinterval(0.0005)  # as the worker does
    with tempfile.TemporaryDirectory() as folder:
        with LocalWorker(pathlib.Path(folder), **{"bootstrap.servers": options.bootstrap}) as worker:
            connector = {"connector.class": "__main__:OneByOne", "records": options.records}
            worker.create("latency", {**connector, **FOUR_LINKS, **converter})
            wait_for(lambda: worker.trace("latency") or len(OneByOneTask.seconds) == options.records, 120, "all records")
            if trace := worker.trace("latency"):
                raise SystemExit(trace)
    found = sorted(OneByOneTask.seconds[options.records // 10 :])  # the first ones make the topic, and load what they need
    print(f"poll -> acknowledged, four links, one record at a time, on {options.bootstrap}:")
    print(", ".join(f"p{part} {found[len(found) * part // 100] * 1e3:.2f} ms" for part in (50, 90, 99)))


def _cpu_seconds(work):
    began = time.thread_time()
    work()
    return time.thread_time() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    chains = commands.add_parser("chains")
    chains.add_argument("--records", type=int, default=3_000, help="in a batch; 3,000 are about one fetch of 1 MiB")
    chains.add_argument("--repeats", type=int, default=40)
    chains.add_argument("--profile", action="store_true")
    latency = commands.add_parser("latency")
    latency.add_argument("--records", type=int, default=500)
    latency.add_argument("--bootstrap", default="embedded")
    options = parser.parse_args()
    (measure_chains if options.command == "chains" else measure_latency)(options)


if __name__ == "__main__":
    main()
