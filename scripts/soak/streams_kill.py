#!/usr/bin/env python3
"""Kill the worker (kill -9) again and again under queries of SQL: a copy, the word count, final windows and a join of two streams.

    scripts/soak/streams_kill.py [--kills 30] [--lines 20000] [--seconds 8] [--folder EARLIER]

The input is written first. Then the queries work on it in small batches. The worker is killed at a random moment of the seconds after one of
them, drawn again each time, has written something again, so each kill falls into batches; every fifth kill falls into the start instead, where
queries come up.
What readers of committed records find must be what one run without kills writes: each record of the copy once, each word's counts rising one
update after the other to the true one, each window once with the true count, each pair of the join once.
"""

import argparse
import collections
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from standalone.clock import SYSTEM  # noqa: E402
from standalone.errors import ConnectError  # noqa: E402
from standalone.streams.ranges import Ranges  # noqa: E402
from standalone.streams.settings import Settings  # noqa: E402
from standalone.testing import LocalWorker  # noqa: E402
from tests.servers.kafka_broker import free_port  # noqa: E402
from tests.streams.on_worker import committed_pairs  # noqa: E402

WORDS = [f"w{number}" for number in range(50)]
MINUTE = 60_000
TOPICS = ("copy", "counts", "windows", "pairs")
START_SECONDS = 20  # in which a worker's queries come up
PATIENCE_SECONDS = 300
STATEMENTS = """
SET 'max.offsets.per.batch' = '{batch}';
CREATE STREAM lines (line STRING) WITH (kafka_topic = 'lines', value_format = 'KAFKA');
CREATE STREAM copy WITH (kafka_topic = 'copy') AS SELECT line FROM lines EMIT CHANGES;
CREATE STREAM words WITH (kafka_topic = 'words') AS SELECT explode(split(line, ' ')) AS word FROM lines EMIT CHANGES;
CREATE TABLE counts WITH (kafka_topic = 'counts', value_format = 'KAFKA') AS SELECT word, count(*) AS n FROM words GROUP BY word EMIT CHANGES;
CREATE STREAM hits (k STRING KEY, at BIGINT) WITH (kafka_topic = 'hits', value_format = 'JSON', timestamp = 'at');
CREATE TABLE windows WITH (kafka_topic = 'windows', value_format = 'JSON') AS SELECT k, count(*) AS n FROM hits
    WINDOW TUMBLING (SIZE 1 MINUTE, GRACE PERIOD 0 SECONDS) GROUP BY k EMIT FINAL;
CREATE STREAM pairs WITH (kafka_topic = 'pairs') AS SELECT a.k AS k, a.at AS x, b.at AS y FROM hits a JOIN hits b
    WITHIN 1 SECONDS GRACE PERIOD 1 HOUR ON a.k = b.k EMIT CHANGES;
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--lines", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=8, help="of work between kills, at most")
    parser.add_argument("--batch", type=int, default=200, help="offsets that a batch reads at most")
    parser.add_argument("--folder", type=pathlib.Path, help="of an earlier part, which stays: go on there")
    said = parser.parse_args()
    folder = said.folder or pathlib.Path(tempfile.mkdtemp(prefix="streams-kill-"))
    if said.folder is None:
        write_input(folder, said.lines)
    wanted = expected(*read_input(folder))
    worker = Worker(folder, said.batch)
    worker.start()
    chance = random.Random()
    for number in range(1, said.kills + 1):
        if number % 5:
            worker.wait_for_work(chance)
            time.sleep(chance.uniform(0, said.seconds))
        else:
            time.sleep(chance.uniform(1, START_SECONDS))
        worker.kill()
        print(f"kill {number} after {worker.lived():.0f} s: {worker.told()}", flush=True)
        worker.start()
    failed = judge(worker, wanted)
    worker.end()
    if not failed:
        shutil.rmtree(folder)
    sys.exit(failed and f"{failed} Look at {folder}")


def write_input(folder, count):
    """Lines of words, and hits of keys as time continues, into the topics."""
    random.seed(7)
    lines = [f"{number} " + " ".join(random.choices(WORDS, k=4)) for number in range(count)]
    begun = (SYSTEM.now_ms() // MINUTE - count // 100 - 10) * MINUTE
    hits = [(random.choice(WORDS), begun + number * MINUTE // 100) for number in range(count // 2)]
    (folder / "input.json").write_text(json.dumps([lines, hits]))
    with LocalWorker(folder) as worker:
        for at in range(0, count, 5000):
            worker.send("lines", lines[at : at + 5000])
        for at in range(0, len(hits), 5000):
            worker.send("hits", [(key, json.dumps({"at": moment})) for key, moment in hits[at : at + 5000]])


def read_input(folder):
    return json.loads((folder / "input.json").read_text())


def expected(lines, hits):
    counts = collections.Counter(word for line in lines for word in line.split())
    last = hits[-1][1] // MINUTE * MINUTE  # this window is not closed
    windows = collections.Counter((key, moment // MINUTE * MINUTE) for key, moment in hits if moment < last)
    by_key = collections.defaultdict(list)
    for key, moment in hits:
        by_key[key].append(moment)
    pairs = collections.Counter()
    for key, moments in by_key.items():
        for one in moments:
            pairs.update((key, one, other) for other in moments if abs(one - other) <= 1000)
    return {"copy": collections.Counter(lines), "counts": counts, "windows": windows, "pairs": pairs}


def judge(worker, wanted):
    """Once all is written, or nothing more is."""
    found, deadline = None, time.monotonic() + PATIENCE_SECONDS
    while True:
        before, found = found, worker.found()
        if found != before:
            deadline = time.monotonic() + PATIENCE_SECONDS
        wrong = differences(found, wanted)
        if not wrong or time.monotonic() > deadline or any(what.startswith("twice") for what in wrong):
            break
        time.sleep(5)
    for name, each in wanted.items():
        come = (counts[-1] for counts in found[name].values()) if name == "counts" else found[name].values()
        print(f"{name}: {sum(each.values())} wanted, {sum(come)} found")
    print("; ".join(wrong) or "nothing lost, nothing twice")
    return "; ".join(wrong) or None


def differences(found, wanted):
    wrong = []
    for name in ("copy", "windows", "pairs"):
        if more := found[name] - wanted[name]:
            wrong.append(f"twice or wrong in {name}: {len(more)}, such as {next(iter(more))}")
        if less := wanted[name] - found[name]:
            wrong.append(f"lost in {name}: {len(less)}, such as {next(iter(less))}")
    for word, counts in found["counts"].items():
        if any(after <= before for before, after in zip(counts, counts[1:])):
            wrong.append(f"twice in counts: {word} is {counts[-5:]}")
    if {word: counts[-1] for word, counts in found["counts"].items()} != wanted["counts"]:
        wrong.append("counts are not the true ones")
    return wrong


class Worker:
    def __init__(self, folder, batch):
        self._folder, self._log = folder, open(folder / "worker.log", "ab")
        self._port, rest = free_port(), free_port()
        props = {
            "bootstrap.servers": "embedded", "embedded.log.listener": f"127.0.0.1:{self._port}", "listeners": f"http://127.0.0.1:{rest}",
            "key.converter": "StringConverter", "value.converter": "StringConverter",
            "offset.storage.file.filename": folder / "connect.offsets", "embedded.registry.listener": "127.0.0.1:0",
        }  # fmt: skip
        (folder / "worker.properties").write_text("".join(f"{key}={value}\n" for key, value in props.items()))
        (folder / "queries.sql").write_text(STATEMENTS.format(batch=batch))
        self._process = None
        self._begun = 0.0
        self._counts = None  # of committed records in each topic, as they were when they were last told

    def start(self):
        command = [sys.executable, "-m", "standalone.cli.worker", self._folder / "worker.properties", self._folder / "queries.sql"]
        self._process = subprocess.Popen(command, stdout=self._log, stderr=self._log, cwd=ROOT, start_new_session=True)
        self._begun = time.monotonic()

    def lived(self):
        return time.monotonic() - self._begun

    def wait_for_work(self, chance):
        """Until one of the queries has written something since the last kill; where that one is done, until another has."""
        deadline, drawn, before = time.monotonic() + PATIENCE_SECONDS, None, self._counts
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                sys.exit(f"The worker has ended by itself. Look at {self._folder}")
            counts = self._count()
            if counts is not None:
                before = before or counts
                drawn = drawn if drawn is not None else chance.randrange(len(TOPICS))
                if counts[drawn] > before[drawn] or sum(counts) > sum(before) and time.monotonic() > deadline - PATIENCE_SECONDS / 2:
                    return
            time.sleep(0.3)
        sys.exit(f"The queries have written nothing for {PATIENCE_SECONDS} s: {self.told()}. Look at {self._folder}")

    def kill(self):
        """The worker alone: its Java process ends by itself, as it would."""
        self._counts = self._count() or self._counts
        os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def end(self):
        self._process.terminate()
        self._process.wait(60)

    def found(self):
        """What readers of committed records find."""
        read = {name: self._read(name) for name in TOPICS}
        counts = collections.defaultdict(list)
        for key, value in read["counts"]:
            counts[key.decode()].append(int.from_bytes(value, "big"))
        windows = collections.Counter()
        for key, value in read["windows"]:
            windows[key[:-8].decode(), int.from_bytes(key[-8:], "big")] += json.loads(value)["n"]
        pairs = [(key.decode(), json.loads(value)) for key, value in read["pairs"]]
        return {
            "copy": collections.Counter(json.loads(value)["line"] if value[:1] == b"{" else value.decode() for _, value in read["copy"]),
            "counts": counts,
            "windows": windows,
            "pairs": collections.Counter((key, row["x"], row["y"]) for key, row in pairs),
        }

    def told(self):
        return ", ".join(f"{name} {count}" for name, count in zip(TOPICS, self._counts)) if self._counts else "not up yet"

    def _count(self):
        """Ends of the topics; None where the worker does not answer yet."""
        ranges = None
        try:
            ranges = Ranges(Settings({"bootstrap.servers": f"127.0.0.1:{self._port}", "admin.default.api.timeout.ms": "2000"}).clients)
            pairs = ranges.pairs(topics=TOPICS)
            ends = ranges.ends(pairs)
            return tuple(sum(end for (topic, _), end in ends.items() if topic == name) for name in TOPICS)
        except ConnectError:
            return None
        finally:
            if ranges is not None:
                ranges.close()

    def _read(self, topic):
        return committed_pairs(Settings({"bootstrap.servers": f"127.0.0.1:{self._port}"}).clients, topic)


if __name__ == "__main__":
    main()
