#!/usr/bin/env python3
"""A topic of JSON to a file through four transforms, with more in the chain: this worker beside Java's, on one real Kafka broker.

    .venv/bin/python scripts/bench/variants.py dates python                        a million records, 2 times each
    .venv/bin/python scripts/bench/variants.py plain --records 100000 --repeats 1

Needs Java 17, Maven and kcat, as scripts/bench/compare.py, whose engines and figures these are. Every line that comes out is compared with the
one that was sent; a wrong one fails the run.

    plain    as it is: InsertField, ReplaceField, Cast, RegexRouter
    dates    with Flatten, and with TimestampConverter twice: the text of a time to milliseconds, these to another text
    unix     with Flatten and TimestampConverter once, to milliseconds
    python   with a transform of some twenty lines of Python (rate_requests.py) in ours; the others run the chain without that link
    avro     as plain, but ours reads the same requests in Avro, with a schema of twelve fields in a registry; the others read JSON
"""

import argparse
import concurrent.futures
import datetime
import itertools
import json
import os
import pathlib
import random
import re
import shutil
import sys
import tempfile

import avro_topic
import compare

HERE = pathlib.Path(__file__).resolve().parent
JAVA = "org.apache.kafka.connect.transforms."

CHAIN = {
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
    "transforms.ins.type": f"{JAVA}InsertField$Value",
    "transforms.ins.static.field": "pipeline",
    "transforms.ins.static.value": "bench",
    "transforms.ins.offset.field": "off",
    "transforms.rep.type": f"{JAVA}ReplaceField$Value",
    "transforms.rep.exclude": "retries",
    "transforms.rep.renames": "msg:message,host:hostname",
    "transforms.cast.type": f"{JAVA}Cast$Value",
    "transforms.cast.spec": "latency_ms:int64,ok:int8,status:float64",
    "transforms.route.type": f"{JAVA}RegexRouter",
    "transforms.route.regex": "(.*)",
    "transforms.route.replacement": "$1-copy",
}
AVRO = {"value.converter": "io.confluent.connect.avro.AvroConverter"}
FLATTEN = {"transforms.flat.type": f"{JAVA}Flatten$Value", "transforms.flat.delimiter": "_"}
READ = {
    "transforms.read.type": f"{JAVA}TimestampConverter$Value",
    "transforms.read.field": "ts",
    "transforms.read.target.type": "unix",
    "transforms.read.unix.precision": "milliseconds",
    "transforms.read.format": "yyyy-MM-dd'T'HH:mm:ssX",
}
WRITE = {
    "transforms.write.type": f"{JAVA}TimestampConverter$Value",
    "transforms.write.field": "ts",
    "transforms.write.target.type": "string",
    "transforms.write.unix.precision": "milliseconds",
    "transforms.write.format": "yyyy/MM/dd HH:mm:ss.SSS",
}
RATE = {"transforms.rate.type": "rate_requests:RateRequests"}


# --- What goes in ----------------------------------------------------------------------------------------------------


def requests(count):
    """Requests to a service, as its log would have them: twelve fields, about 300 bytes."""
    chance, began = random.Random(1), datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(3, 9))) for _ in range(512)]
    for number in range(count):
        yield {
            "ts": (began + datetime.timedelta(seconds=number // 7)).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "host": f"node-{number % 64:03d}.example.org",
            "level": chance.choice(("INFO", "INFO", "INFO", "WARN", "ERROR")),
            "service": f"service-{number % 17}",
            "msg": " ".join(chance.choices(words, k=6)),
            "latency_ms": chance.randint(1, 5000),
            "ok": chance.random() < 0.9,
            "status": chance.choice((200, 200, 200, 404, 500)),
            "retries": chance.randint(0, 3),
            "tags": [f"zone-{number % 3}", chance.choice(words)],
            "user": {"name": chance.choice(words), "region": chance.choice(("eu", "us", "ap"))},
            "trace": f"{chance.getrandbits(64):016x}",
        }


class Sent:
    """The requests as a file of lines to fill the topic with, and what must come out, by variant."""

    def __init__(self, path, count):
        self.path, self.count, self._sizes = path, count, {}
        with open(path, "w") as file:
            for request in requests(count):
                file.write(json.dumps(request, separators=(",", ":")) + "\n")

    def size_behind(self, expected, text):
        """Of the right output: it does not depend on the order of the keys."""
        key = expected, text
        if key not in self._sizes:
            self._sizes[key] = sum(in_parallel(_size_of_part, self.path, expected, text))
        return self._sizes[key]


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

    def __init__(self, links, settings, expected, of_others=None, is_avro=False):
        self._links = links
        self._settings = settings
        self._expected = expected
        self._of_others = of_others
        self.is_avro = is_avro  # what ours reads

    def settings(self, is_ours):
        if self._of_others and not is_ours:
            return {**CHAIN, "transforms": "ins,rep,cast,route"}
        return {**CHAIN, **self._settings, "transforms": ",".join(["ins", "rep", "cast", *self._links, "route"])}

    def expected(self, is_ours):
        return self._of_others if self._of_others and not is_ours else self._expected

    def text(self, is_ours):
        """How the sink writes a value: as Java's toString of a struct, or of a map."""
        return struct_text if self.is_avro and is_ours else java_text


VARIANTS = {
    "plain": Variant([], {}, plain),
    "dates": Variant(["flat", "read", "write"], FLATTEN | READ | WRITE, dates),
    "unix": Variant(["flat", "read"], FLATTEN | READ, unix),
    "python": Variant(["rate"], RATE, rated, of_others=plain),
    "avro": Variant([], AVRO, plain, of_others=plain, is_avro=True),
}


# --- Runs ------------------------------------------------------------------------------------------------------------


class Job(compare.Job):
    """A variant's chain from the filled topic to a file, in one engine."""

    def __init__(self, broker, topic, file, sent, variant, is_ours, registry):
        super().__init__(compare.TO_FILE, broker, topic, file, sent)
        self._settings, self._expected, self._text = variant.settings(is_ours), variant.expected(is_ours), variant.text(is_ours)
        if variant.is_avro and is_ours:
            self._settings = {**self._settings, "value.converter.schema.registry.url": registry}
        self._size = sent.size_behind(self._expected, self._text)

    def settings(self, engine):
        return self._settings

    def progress(self):
        return self.file.stat().st_size / self._size if self.file.exists() else 0.0

    def check(self):
        """Fails at the first line that is not the one that was sent. The keys' order is that of the first line."""
        with open(self.file) as out:
            order = re.findall(r"[{ ,](\w+)=", out.readline())
        wrong = [each for each in in_parallel(_wrong_line_of_part, self.lines.path, self.file, self._expected, self._text, order) if each]
        if wrong:
            raise compare.Failed(min(wrong)[1])


def in_parallel(function, *arguments):
    """[what `function(part, parts, *arguments)` gives of each part]: as many as there are cores, each with every so-manyth line."""
    parts = os.cpu_count() or 1
    with concurrent.futures.ProcessPoolExecutor(parts) as pool:
        return [each.result() for each in [pool.submit(function, part, parts, *arguments) for part in range(parts)]]


def _size_of_part(part, parts, path, expected, text):
    with open(path) as sent:
        mine = ((offset, line) for offset, line in enumerate(sent) if offset % parts == part)
        return sum(len(text(expected(json.loads(line), offset))) + 1 for offset, line in mine)


def _wrong_line_of_part(part, parts, path, file, expected, text, order):
    """(its number, what is wrong with it); None where every line is right."""
    with open(path) as sent, open(file) as out:
        for offset, (line, got) in enumerate(itertools.zip_longest(sent, out)):
            if line is None or got is None:
                return offset, f"too {'many' if line is None else 'few'} lines: from line {offset + 1} on"
            if offset % parts == part:
                wanted = text(expected(json.loads(line), offset), order)
                if got != wanted + "\n":
                    return offset, f"line {offset + 1}: {got[:300]!r} is not {wanted[:300]!r}"
    return None


def java_text(value, order=()):
    """As Java's toString writes a map or list."""
    if isinstance(value, dict):
        names = [name for name in order if name in value] + [name for name in value if name not in order]
        return "{" + ", ".join(f"{name}={java_text(value[name], order)}" for name in names) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(java_text(item, order) for item in value) + "]"
    return str(value)


def struct_text(value, order=()):
    """As Java's toString writes a Connect struct."""
    if isinstance(value, dict):
        names = [name for name in order if name in value] + [name for name in value if name not in order]
        return "Struct{" + ",".join(f"{name}={struct_text(value[name], order)}" for name in names) + "}"
    return java_text(value)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("variants", nargs="+", choices=VARIANTS)
    parser.add_argument("--ours", default=str(HERE.parent / "connect-standalone"), help="the command of ours (default: %(default)s)")
    parser.add_argument("--engines", default="java, tuned;ours", help="which take part, separated by semicolons (default: %(default)s)")
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=2)
    options = parser.parse_args()
    # The worker of ours finds the transform by its Python path.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))
    found, missing = compare.engines(options.ours)
    engines = [engine for engine in found if engine.name in options.engines.split(";")]
    print("left out:", "; ".join(missing) or "nothing", flush=True)
    with tempfile.TemporaryDirectory(prefix="variants-") as folder:
        folder = pathlib.Path(folder)
        sent = Sent(folder / "requests", options.records)
        try:
            with compare.KafkaBroker() as started, avro_topic.registry(folder) as registry:
                results = runs(compare.Broker(started.bootstrap), engines, sent, options, folder, registry)
        except compare.Unavailable as reason:
            sys.exit(f"There is no broker to compare on: {reason}")
    for name, by_engine in results.items():
        print(f"\n{compare.table(name, by_engine)}")
    return any(isinstance(each, compare.Failed) for by_engine in results.values() for mine in by_engine.values() for each in mine)


def runs(broker, engines, sent, options, folder, registry):
    """{variant's name: {engine's name: [figures or Failed, ...]}}; the engines take turns."""
    url, schema_id = registry
    topic = compare.fill(broker, sent, folder)
    avro = avro_topic.fill(broker, sent, schema_id) if any(VARIANTS[name].is_avro for name in options.variants) else None
    results = {name: {engine.name: [] for engine in engines} for name in options.variants}
    for turn, name in itertools.product(range(options.repeats), options.variants):
        at = turn % len(engines)
        for engine in engines[at:] + engines[:at]:
            own = pathlib.Path(tempfile.mkdtemp(prefix="run-", dir=folder))
            variant, is_ours = VARIANTS[name], engine.name == "ours"
            job = Job(broker, avro if variant.is_avro and is_ours else topic, own / "out", sent, variant, is_ours, url)
            figures = compare.attempt(engine, job, own)
            print(f"  {name}, {engine.name}: {compare.told(figures)}", file=sys.stderr, flush=True)
            results[name][engine.name].append(figures)
            shutil.rmtree(own, ignore_errors=True)
    return results


if __name__ == "__main__":
    sys.exit(main())
