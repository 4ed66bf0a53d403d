#!/usr/bin/env python3
"""Kill the worker again and again while ElasticsearchSink indexes records with updates and deletions; then compare index and topic.

    scripts/soak/elasticsearch_kill.py [--server elasticsearch|opensearch] [--kills 20] [--records 200000] [--keys 40000] [--upsert]

The topic is filled first. Then the worker is killed with SIGKILL at random moments while it indexes, and started again. In the end each key's
last record must be what the index holds: no document missing, none stale, none that was deleted. With --kill-server the server
is killed and started in the middle, too.
"""

import argparse
import http.client
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
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "scripts" / "soak")]

import watched  # noqa: E402

from standalone.local_worker import LocalWorker  # noqa: E402
from tests.servers.kafka_broker import free_port  # noqa: E402
from tests.servers.search_server import SearchServer  # noqa: E402

TOPIC = "soaked"
JSON = "org.apache.kafka.connect.json.JsonConverter"
STRING = "org.apache.kafka.connect.storage.StringConverter"


class Run:
    def __init__(self, folder, url, upsert):
        self.folder, self.url = folder, url
        self.rest = f"http://127.0.0.1:{free_port()}"
        self.worker_props = {
            "bootstrap.servers": "embedded",
            "embedded.log.listener": f"127.0.0.1:{free_port()}",
            "key.converter": STRING,
            "value.converter": JSON,
            "value.converter.schemas.enable": "false",
            "offset.storage.file.filename": f"{folder}/connect.offsets",
            "offset.flush.interval.ms": "300",
        }
        sink = {
            "name": "soak",
            "connector.class": "ElasticsearchSink",
            "topics": TOPIC,
            "connection.url": url,
            "schema.ignore": "true",
            "behavior.on.null.values": "delete",
            "write.method": "upsert" if upsert else "insert",
            "batch.size": "500",
            "read.timeout.ms": "30000",
            "max.retries": "100",
        }
        self._put("worker", {**self.worker_props, "listeners": self.rest})
        self._put("sink", sink)
        self.process = None

    def _put(self, name, props):
        (self.folder / f"{name}.properties").write_text("".join(f"{key}={value}\n" for key, value in props.items()))

    def fill(self, count, keys, seed):
        """Write the records; {key: its last document}, of those that are not deleted."""
        chance, last, records = random.Random(seed), {}, []
        for number in range(count):
            key = f"k{chance.randrange(keys)}"
            value = None if chance.random() < 0.05 else {"n": number, "text": f"text {number} " * 10}
            records.append((key, None if value is None else json.dumps(value)))
            if value is None:
                last.pop(key, None)
            else:
                last[key] = value
        with LocalWorker(self.folder, **{key.replace(".", "__"): value for key, value in self.worker_props.items()}) as worker:
            for low in range(0, count, 20_000):
                worker.send(TOPIC, records[low : low + 20_000])
        return last

    def start(self):
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "standalone.cli.worker", *(f"{self.folder}/{name}.properties" for name in ("worker", "sink"))],
                cwd=self.folder, stdout=log, stderr=log, env={**os.environ, "PYTHONPATH": str(ROOT)},
            )  # fmt: skip

    def committed(self):
        """The sink's offset, or 0 where nobody answers."""
        try:
            with urllib.request.urlopen(f"{self.rest}/connectors/soak/offsets", timeout=5) as answer:
                return sum(entry["offset"]["kafka_offset"] or 0 for entry in json.loads(answer.read())["offsets"])
        except OSError:
            return 0

    def wait(self, condition, seconds, what):
        deadline = time.monotonic() + seconds
        while not condition():
            if self.process.poll() is not None:
                sys.exit(f"the worker ended by itself; see {self.folder}/log")
            if time.monotonic() > deadline:
                sys.exit(f"timed out after {seconds} s waiting for {what}; see {self.folder}/log")
            time.sleep(0.05)


def asker(url):
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc, timeout=60)

    def ask(method, path, body=None):
        connection.request(method, path, None if body is None else json.dumps(body), {"Content-Type": "application/json"})
        return json.loads(connection.getresponse().read())

    return ask


def worked(url):
    """How many documents were written, deleted and found to be older than what is there since the server started."""
    found = asker(url)("GET", f"/{TOPIC}/_stats/indexing").get("_all", {}).get("primaries", {}).get("indexing", {})
    return sum(found.get(kind, 0) for kind in ("index_total", "delete_total", "index_failed"))


def documents(url, index):
    """{id: document} of all that an index holds."""
    ask = asker(url)
    ask("POST", f"/{index}/_refresh")
    answer, found = ask("POST", f"/{index}/_search?scroll=2m", {"size": 5000}), {}
    while answer["hits"]["hits"]:
        found.update((hit["_id"], hit["_source"]) for hit in answer["hits"]["hits"])
        answer = ask("POST", "/_search/scroll", {"scroll": "2m", "scroll_id": answer["_scroll_id"]})
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", default="elasticsearch", choices=["elasticsearch", "opensearch"])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--keys", type=int, default=40_000)
    parser.add_argument("--upsert", action="store_true")
    parser.add_argument("--kill-server", action="store_true")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    chance, folder, run = random.Random(options.seed), pathlib.Path(tempfile.mkdtemp(prefix="connect-soak-")), None
    server = SearchServer(options.server)
    try:
        server.start()
        run = Run(folder, server.url, options.upsert)
        wanted = run.fill(options.records, options.keys, options.seed)
        print(f"{options.records} records of {options.keys} keys, {len(wanted)} of which live", flush=True)
        reached = []
        for kill in range(options.kills):
            # Somewhere on the way: behind about a share of what there is, so that the kills fall into all of it.
            goal = worked(server.url) + chance.randrange(1, 2 * options.records // (options.kills + 2))
            run.start()
            until = time.monotonic() + 10  # not every server counts the older ones
            run.wait(lambda goal=goal, until=until: worked(server.url) >= goal or time.monotonic() > until, 60, f"{goal} documents")
            watched.end(run.process, signal.SIGKILL, folder / "log")
            reached.append(worked(server.url))
            if options.kill_server and kill % 5 == 2:
                server.kill()
                server.start()
        print(f"{options.kills} kills, after this many documents written: {' '.join(map(str, reached))}", flush=True)
        run.start()
        run.wait(lambda: run.committed() >= options.records, 300, "the end")
        watched.end(run.process, signal.SIGTERM, folder / "log")
        found = documents(server.url, TOPIC)
        missing = [key for key in wanted if key not in found]
        stale = [key for key in wanted if key in found and found[key] != wanted[key]]
        extra = [key for key in found if key not in wanted]
        print(f"{len(found)} documents: {len(missing)} missing, {len(stale)} stale, {len(extra)} that were deleted", flush=True)
        if missing or stale or extra:
            sys.exit(f"not what the topic says: {(missing + stale + extra)[:5]}; see {folder}")
        shutil.rmtree(folder)
    finally:
        if run is not None:
            watched.kill(run.process)
        server.stop()


if __name__ == "__main__":
    main()
