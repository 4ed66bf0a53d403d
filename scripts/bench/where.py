#!/usr/bin/env python3
"""Where the time of a chain goes: batches of requests through the chains of scripts/bench/variants.py, one after the other, without a log.

    PYTHONPATH=.:scripts/bench .venv/bin/python scripts/bench/where.py plain dates python [--records 400000] [--batch 100000]

For each part of the way: the seconds that a million records wait for it, and the CPU seconds of this process, of Java and of Spark's Python
workers meanwhile. In a worker the parts of neighbouring batches overlap. The first batches, which compile, have their own line.
"""

import argparse
import collections
import contextlib
import json
import os
import time

import numpy as np
from compare import children, used
from variants import VARIANTS, requests

from connectors.file.sink import lines_of
from standalone import ByteColumn
from standalone.converters.json import JsonConverter
from standalone.converters.string import StringConverter
from standalone.pipeline.chain import Chain, Link
from standalone.pipeline.columns.plan import ColumnPlan
from standalone.pipeline.conversion import Conversion
from standalone.pipeline.pipeline import Pipeline
from standalone.pipeline.spark import job
from standalone.pipeline.spark import python as python_links
from standalone.pipeline.spark.session import SessionHolder
from standalone.plugins import Plugins
from standalone.wire import Records

FIRST_BATCHES = 2


class Parts:
    """Seconds by part: of the clock, of this process, of Java, of Spark's Python. A part within another counts for itself alone."""

    def __init__(self, java):
        self._java = java
        self.seconds = collections.defaultdict(lambda: np.zeros(4))
        self._open = []

    def _now(self):
        workers = sum(map(used, children(self._java)))
        return np.array([time.perf_counter(), time.process_time(), used(self._java), workers])

    @contextlib.contextmanager
    def part(self, name):
        began = self._now()
        self._open.append(np.zeros(4))
        try:
            yield
        finally:
            took, within = self._now() - began, self._open.pop()
            self.seconds[name] += took - within
            if self._open:
                self._open[-1] += took

    def watch(self, owner, method, name):
        """Count what that function does as a part of this name."""
        whole = getattr(owner, method)

        def counted(*args, **kwargs):
            with self.part(name):
                return whole(*args, **kwargs)

        setattr(owner, method, counted)


def chain_of(name):
    settings, found = VARIANTS[name].settings(is_ours=True), Plugins(())

    def link(alias):
        prefix = f"transforms.{alias}."
        own = {key.removeprefix(prefix): value for key, value in settings.items() if key.startswith(prefix)}
        return Link(alias, found.find("transform", own.pop("type")).of(own))

    links = [link(alias) for alias in settings["transforms"].split(",")]
    return Chain("sink", StringConverter.of(is_key=True), JsonConverter.of({"schemas.enable": "false"}), StringConverter.of(), links)


def watch(parts):
    """Have the pipeline's own functions counted."""
    parts.watch(Conversion, "decode", "bytes to columns")
    parts.watch(ColumnPlan, "_table", "columns to Arrow")
    parts.watch(job, "run", "jobs")
    parts.watch(python_links, "pickled_pieces", "records sent to Python")
    parts.watch(python_links, "made_of", "records come back")
    parts.watch(ColumnPlan, "run", "edits of the schema")


def measure(name, holder, parts, values, batch_rows):
    """Print where the time of one chain goes."""
    parts.seconds.clear()
    pipeline, count = Pipeline(chain_of(name), "auto", holder), len(values)
    first, done = None, 0
    for low in range(0, count, batch_rows):
        some = values.slice(low, min(low + batch_rows, count)).compact()
        with parts.part("the rest"):
            result = pipeline.sink("t", 0, Records(len(some), None, some, None, None, np.arange(low, low + len(some))))
        with parts.part("columns to lines"):
            for batch in result.batches:
                lines_of(batch)
        assert not result.failures
        done += len(some)
        if low // batch_rows + 1 == FIRST_BATCHES:
            first, parts.seconds = (done, parts.seconds), collections.defaultdict(lambda: np.zeros(4))
    pipeline.close()
    print(f"\n{name}: {shares(pipeline.counts.records)}; of the first {first[0]} records: {line(sum(first[1].values()), first[0])}")
    for part, seconds in sorted(parts.seconds.items(), key=lambda item: -item[1][0]):
        print(f"  {part:24} {line(seconds, done - first[0])}")
    print(f"  {'all':24} {line(sum(parts.seconds.values()), done - first[0])}", flush=True)


def line(seconds, count):
    wall, own, java, workers = seconds / count * 1e6
    return f"{wall:6.2f} s  CPU: own {own:6.2f}  Java {java:6.2f}  Python {workers:6.2f}"


def shares(records):
    whole = sum(records.values())
    return ", ".join(f"{name} {count / whole:.1%}" for name, count in records.items() if count)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("variants", nargs="+", choices=[name for name, variant in VARIANTS.items() if not variant.is_avro])
    parser.add_argument("--records", type=int, default=400_000)
    parser.add_argument("--batch", type=int, default=100_000, help="records of a batch; a sink with a backlog has about so many")
    options = parser.parse_args()
    began = time.perf_counter()
    holder = SessionHolder({}, archive_after_seconds=None)
    if holder.wait(120) is None:
        raise SystemExit(f"no Spark session: {holder.failure}")
    (java,) = children(os.getpid())
    print(f"Spark up after {time.perf_counter() - began:.1f} s: CPU own {time.process_time():.1f} s, Java {used(java):.1f} s; {os.cpu_count()} cores")
    values = ByteColumn.of([json.dumps(each, separators=(",", ":")).encode() for each in requests(options.records)])
    parts = Parts(java)
    watch(parts)
    for name in options.variants:
        measure(name, holder, parts, values, options.batch)
    holder.stop()


if __name__ == "__main__":
    main()
