#!/usr/bin/env python3
"""Workload 4 of a benchmark harness (topic of JSON to file, four transforms) with more in its chain, ours beside its engines.

    python scripts/bench/variants.py --bench DIR dates python --scale 1 --repeats 2 --ours 'connect-standalone {worker} {connectors}'

`--bench` names the harness's folder: its bench.py, engines.py and lab.py start the broker and the engines and take the figures. Run it
with a Python that has confluent-kafka. Every line that comes out is compared with the one that was sent; a wrong one fails the run.

    plain    as it is: InsertField, ReplaceField, Cast, RegexRouter
    dates    with Flatten, and with TimestampConverter twice: the text of a time to milliseconds, these to another text
    unix     with Flatten and TimestampConverter once, to milliseconds
    python   with a transform of some twenty lines of Python (rate_requests.py) in ours; the others run the chain without that link
"""

import argparse
import datetime
import itertools
import json
import os
import pathlib
import re
import signal
import statistics
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
JAVA = "org.apache.kafka.connect.transforms."
BEFORE_LAST = "transforms=ins,rep,cast,{}route\n"

FLATTEN = f"transforms.flat.type={JAVA}Flatten$Value\ntransforms.flat.delimiter=_\n"
READ = f"""transforms.read.type={JAVA}TimestampConverter$Value
transforms.read.field=ts
transforms.read.target.type=unix
transforms.read.unix.precision=milliseconds
transforms.read.format=yyyy-MM-dd'T'HH:mm:ssX
"""
WRITE = f"""transforms.write.type={JAVA}TimestampConverter$Value
transforms.write.field=ts
transforms.write.target.type=string
transforms.write.unix.precision=milliseconds
transforms.write.format=yyyy/MM/dd HH:mm:ss.SSS
"""
RATE = "transforms.rate.type=rate_requests:RateRequests\n"


# --- What must come out ----------------------------------------------------------------------------------------------


def plain(value, offset):
    value["pipeline"], value["off"] = "bench", offset
    del value["retries"]
    value["message"], value["hostname"] = value.pop("msg"), value.pop("host")
    value["latency_ms"], value["ok"], value["status"] = int(value["latency_ms"]), int(value["ok"]), float(value["status"])
    return value


def unix(value, offset, moments={}):  # noqa: B006, the dict is the memory
    value = plain(value, offset)
    text = value["ts"]
    if text not in moments:
        moments[text] = int(datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()) * 1000
    value["ts"] = moments[text]
    return flat(value)


def dates(value, offset):
    value = flat(plain(value, offset))
    value["ts"] = value["ts"].replace("-", "/").replace("T", " ").replace("Z", ".000")
    return value


def flat(value):
    user = value.pop("user")
    return {**value, **{f"user_{name}": item for name, item in user.items()}}


def rated(value, offset):
    value = plain(value, offset)
    user, is_slow = value.pop("user"), value["latency_ms"] > 2500
    value["level"] = "WARN" if is_slow and value["level"] == "INFO" else value["level"]
    value["speed"], value["words"] = "slow" if is_slow else "fast", len(value["message"].split())
    value["bucket"] = f"{user['region']}-{sum(user['name'].encode()) % 64}"
    value["service"] = value["service"].upper() if "zone-0" in value["tags"] else value["service"]
    return value


class Variant:
    """Links to be put before the last one, and what comes of a value; of others' engines too, where theirs is another chain."""

    def __init__(self, links, settings, expected, of_others=None):
        self._links = "".join(f"{link}," for link in links)
        self._settings = settings
        self._expected = expected
        self._of_others = of_others

    def chain(self, whole, is_ours):
        """The harness's properties with the links in them."""
        if self._of_others and not is_ours:
            return whole
        return whole.replace(BEFORE_LAST.format(""), BEFORE_LAST.format(self._links)) + self._settings

    def expected(self, is_ours):
        return self._of_others if self._of_others and not is_ours else self._expected


VARIANTS = {
    "plain": Variant([], "", plain),
    "dates": Variant(["flat", "read", "write"], FLATTEN + READ + WRITE, dates),
    "unix": Variant(["flat", "read"], FLATTEN + READ, unix),
    "python": Variant(["rate"], RATE, rated, of_others=plain),
}


# --- Runs ------------------------------------------------------------------------------------------------------------


class Harness:
    """The modules of the harness, and what the variants need beside them."""

    def __init__(self, folder):
        sys.path.insert(0, str(folder))
        import bench
        import engines
        import lab

        self.bench, self.engines, self.lab = bench, engines, lab
        self._whole = engines.SINK_SMT
        self._sizes = {}

    def run(self, broker, engine, variant, count):
        """The figures of one run, as the harness has them."""
        source, is_ours = self.lab.data("json", count), engine.name == "ours"
        topic, name = f"filled-{os.path.basename(source)}", f"variant-{next(self.bench.SERIAL)}"
        if topic not in broker.admin.list_topics(timeout=10).topics:
            broker.create(topic)
            broker.fill(topic, source)
        expected = variant.expected(is_ours)
        self.engines.SINK_SMT = variant.chain(self._whole, is_ours)
        try:
            return self.bench.bulk(
                broker,
                engine,
                [self.bench.Job(name, "sink", None, topic, True)],
                count,
                lambda run: self.bench.size(run.jobs[0].file),
                self._size(source, expected),
                lambda run: self._check(source, run.jobs[0].file, expected),
            )
        finally:
            self.engines.SINK_SMT = self._whole

    def _size(self, source, expected):
        """Of the right output: it does not hang on the order of the keys."""
        if (source, expected) not in self._sizes:
            total = 0
            with open(source) as file:
                for offset, line in enumerate(file):
                    total += len(java_text(expected(json.loads(line), offset))) + 1
            self._sizes[source, expected] = total
        return self._sizes[source, expected]

    def _check(self, source, path, expected):
        """Raises Failed at the first line that is not the one that was sent. The keys' order is that of the first line."""
        with open(source) as lines, open(path) as out:
            order = re.findall(r"[{ ](\w+)=", out.readline())
            out.seek(0)
            for offset, (line, got) in enumerate(itertools.zip_longest(lines, out)):
                if line is None or got is None:
                    raise self.bench.Failed(f"too {'many' if line is None else 'few'} lines: from line {offset + 1} on")
                wanted = expected(json.loads(line), offset)
                if got != java_text(wanted, order) + "\n":
                    raise self.bench.Failed(f"line {offset + 1}: {got[:300]!r} is not {java_text(wanted)[:300]!r}")
        return "every line is right"


def java_text(value, order=()):
    """As Java's toString writes a map or list."""
    if isinstance(value, dict):
        names = [name for name in order if name in value] + [name for name in value if name not in order]
        return "{" + ", ".join(f"{name}={java_text(value[name], order)}" for name in names) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(java_text(item, order) for item in value) + "]"
    return str(value)


def table(name, runs):
    """Medians of the right runs, and how ours compares."""
    by_engine = {}
    for run in runs:
        by_engine.setdefault(run["engine"], []).append(run)

    def median(engine, figure):
        found = [run[figure] for run in by_engine.get(engine, []) if run["ok"] and run.get(figure) is not None]
        return statistics.median(found) if found else None

    lines = [f"{name:10} {'engine':22} {'rate /s':>10} {'ours is':>8} {'wall s':>8} {'first s':>8} {'CPU s/M':>8} {'RSS MB':>7} {'right':>6}"]
    for engine, mine in by_engine.items():
        figures = [median(engine, figure) for figure in ("rate", "wall_s", "first_s", "cpu_s_per_M", "peak_rss_mb")]
        cells = ["-" if each is None else f"{each:,.0f}" if each > 500 else f"{each:.2f}" for each in figures]
        ours = median("ours", "rate")
        ratio = f"{ours / figures[0]:.2f}x" if ours and figures[0] else "-"
        right = f"{sum(run['ok'] for run in mine)}/{len(mine)}"
        lines.append(
            f"{'':10} {engine:22} {cells[0]:>10} {ratio:>8} {cells[1]:>8} {cells[2]:>8} {cells[3]:>8} {cells[4]:>7} {right:>6}"
        )
        lines += [f"{'':10} FAILED: {run['error'][:300]} (see {run['folder']})" for run in mine if not run["ok"]]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("variants", nargs="+", choices=VARIANTS)
    parser.add_argument("--bench", required=True, help="the folder of the harness")
    command = f"{HERE.parent / 'connect-standalone'} {{worker}} {{connectors}}"
    parser.add_argument("--ours", default=command, help="the command of ours (default: %(default)s)")
    parser.add_argument("--engines", default="java-connect-tuned,ours", help="which take part (default: %(default)s)")
    parser.add_argument("--scale", type=float, default=1.0, help="1 is a million records (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--worker-extra", action="append", default=[], help="a line for the worker's properties of ours")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # by way of every finally
    # The worker of ours finds the transform by its Python path.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))
    harness = Harness(pathlib.Path(options.bench).resolve())
    found, missing = harness.engines.all_engines(options.ours, str(HERE.parents[1]), options.worker_extra)
    engines = [engine for engine in found if engine.name in options.engines.split(",")]
    print("left out:", "; ".join(missing) or "nothing", flush=True)
    runs = {name: [] for name in options.variants}
    with harness.lab.Broker() as broker:
        for repeat, name in itertools.product(range(options.repeats), options.variants):
            at = repeat % len(engines)
            for engine in engines[at:] + engines[:at]:
                began = time.strftime("%H:%M:%S")
                figures = harness.run(broker, engine, VARIANTS[name], max(1, int(1_000_000 * options.scale)))
                runs[name].append(dict(figures, engine=engine.name))
                print(began, name, json.dumps(runs[name][-1]), file=sys.stderr, flush=True)
    for name, mine in runs.items():
        print(table(name, mine), flush=True)
    return any(not run["ok"] for mine in runs.values() for run in mine)


if __name__ == "__main__":
    sys.exit(main())
