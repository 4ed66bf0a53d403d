#!/usr/bin/env python3
"""ElasticsearchSink beside a bare loader that has its requests made already, and beside opensearch-py's parallel_bulk, on one real server.

    scripts/bench/elasticsearch.py [--server elasticsearch|opensearch] [--records 1000000] [--rounds 3]

The bare loader shows what the server takes. All write the same documents of 300 bytes with the same ids; ours and the bare loader with external
versions. Ours is the whole worker: fetch, JSON converter, sink. Rates and CPU are those between the first and the last document, of
a new index each time. parallel_bulk runs where the package opensearch-py is installed.
"""

import argparse
import concurrent.futures
import http.client
import importlib.util
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from standalone.local_worker import LocalWorker  # noqa: E402
from tests.servers.kafka_broker import free_port  # noqa: E402
from tests.servers.search_server import BARE_OPTIONS, SearchServer  # noqa: E402

TOPIC = "bench"
PER_REQUEST, CONNECTIONS = 2000, 5
WARM_UP = 400_000  # until its compiler is through: the first rates of a server are a third of the later ones
TICKS = os.sysconf("SC_CLK_TCK")
JSON, STRING = "org.apache.kafka.connect.json.JsonConverter", "org.apache.kafka.connect.storage.StringConverter"


def document(number):
    return {
        "id": number,
        "host": f"host-{number % 97}.example.com",
        "level": "warn" if number % 7 else "error",
        "path": f"/shop/articles/{number % 5000}/details",
        "took": number % 977 / 7,
        "ok": number % 5 > 0,
        "message": f"request {number} was answered by worker {number % 16} after the front of the shop, " + "x" * 96,
    }


def ask(url, method, path, body=None):
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc, timeout=60)
    try:
        connection.request(method, path, None if body is None else json.dumps(body), {"Content-Type": "application/json"})
        return json.loads(connection.getresponse().read() or b"{}")
    finally:
        connection.close()


def new_index(url):
    ask(url, "DELETE", f"/{TOPIC}")
    ask(url, "PUT", f"/{TOPIC}", {"settings": {"number_of_shards": 1, "number_of_replicas": 0}})


def indexed(url):
    return ask(url, "GET", f"/{TOPIC}/_stats/indexing")["_all"]["primaries"]["indexing"]["index_total"]


def cpu_of(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


# --- Who is measured: each returns (documents a second, seconds of CPU for a million) ---------------------------------


def bare(url, bodies, count):
    """Prebuilt requests over kept connections."""
    import urllib3

    pool = urllib3.PoolManager(maxsize=CONNECTIONS)

    def send(body):
        answer = pool.request("POST", f"{url}/_bulk?filter_path=errors", body=body, headers={"Content-Type": "application/x-ndjson"}, retries=False)
        if answer.status != 200 or json.loads(answer.data)["errors"]:
            sys.exit(f"the bare loader was refused: {answer.status} {answer.data[:300]}")

    begun, cpu = time.monotonic(), time.process_time()
    with concurrent.futures.ThreadPoolExecutor(CONNECTIONS) as threads:
        list(threads.map(send, bodies))
    return count / (time.monotonic() - begun), (time.process_time() - cpu) / count * 1e6


def ours(url, folder, props, count, number):
    sink = {
        "name": f"bench-{number}", "connector.class": "ElasticsearchSink", "topics": TOPIC, "connection.url": url, "schema.ignore": "true",
        "read.timeout.ms": "60000", "batch.size": PER_REQUEST, "max.in.flight.requests": CONNECTIONS,
    }  # fmt: skip
    for name, given in (("worker", props), ("sink", sink)):
        (folder / f"{name}.properties").write_text("".join(f"{key}={value}\n" for key, value in given.items()))
    with open(folder / "log", "ab") as log:
        command = [sys.executable, "-m", "standalone.cli.worker", f"{folder}/worker.properties", f"{folder}/sink.properties"]
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, env={**os.environ, "PYTHONPATH": str(ROOT)})
    try:
        first = None
        while (done := indexed(url)) < count:
            if process.poll() is not None:
                sys.exit(f"the worker ended; see {folder}/log")
            if done and first is None:
                first = done, time.monotonic(), cpu_of(process.pid)
            time.sleep(0.05)
        took, cpu = time.monotonic() - first[1], cpu_of(process.pid) - first[2]
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    return (count - first[0]) / took, cpu / (count - first[0]) * 1e6


PEER = """
import json, sys, time
from opensearchpy import OpenSearch, helpers
sys.path.insert(0, sys.argv[3])
from elasticsearch import document
client, count = OpenSearch([sys.argv[1]], timeout=60), int(sys.argv[2])
actions = ({"_index": "bench", "_id": f"k{n}", "_source": document(n)} for n in range(count))
begun, cpu = time.monotonic(), time.process_time()
for _ in helpers.parallel_bulk(client, actions, thread_count=4, chunk_size=2000):
    pass
print(json.dumps([count / (time.monotonic() - begun), (time.process_time() - cpu) / count * 1e6]))
"""


def peer(url, count):
    done = subprocess.run([sys.executable, "-c", PEER, url, str(count), str(ROOT / "scripts" / "bench")], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"parallel_bulk failed: {done.stderr[-500:]}")
    return json.loads(done.stdout)


def made_bodies(count):
    bodies = []
    for low in range(0, count, PER_REQUEST):
        lines = []
        for number in range(low, min(count, low + PER_REQUEST)):
            about = {"_index": TOPIC, "_id": f"k{number}", "version": number, "version_type": "external"}
            lines += [json.dumps({"index": about}, separators=(",", ":")), json.dumps(document(number), separators=(",", ":"))]
        bodies.append(("\n".join(lines) + "\n").encode())
    return bodies


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", default="elasticsearch", choices=["elasticsearch", "opensearch"])
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer-records", type=int, default=200_000)
    options = parser.parse_args()
    count, folder = options.records, pathlib.Path(tempfile.mkdtemp(prefix="connect-bench-"))
    props = {
        "bootstrap.servers": "embedded", "embedded.log.listener": f"127.0.0.1:{free_port()}", "listeners": f"http://127.0.0.1:{free_port()}",
        "key.converter": STRING, "value.converter": JSON, "value.converter.schemas.enable": "false",
        "offset.storage.file.filename": f"{folder}/connect.offsets",
    }  # fmt: skip
    server = SearchServer(options.server, options=BARE_OPTIONS)
    try:
        bodies = made_bodies(count)
        print(f"{options.server}, {count} documents of {sum(map(len, bodies)) / count:.0f} bytes with their actions", flush=True)
        with LocalWorker(folder, **{key.replace(".", "__"): value for key, value in props.items()}) as worker:
            for low in range(0, count, 20_000):
                numbers = range(low, min(count, low + 20_000))
                worker.send(TOPIC, [(f"k{number}", json.dumps(document(number), separators=(",", ":"))) for number in numbers])
        server.start()
        new_index(server.url)
        bare(server.url, bodies[: WARM_UP // PER_REQUEST], min(WARM_UP, count))
        shares = []
        for number in range(options.rounds):
            new_index(server.url)
            limit, cpu = bare(server.url, bodies, count)
            print(f"bare loader     {limit:9.0f} /s   {cpu:6.1f} CPU s a million", flush=True)
            new_index(server.url)
            rate, cpu = ours(server.url, folder, props, count, number)
            shares.append(rate / limit)
            share = f"{cpu * rate / 1e6:.0%} of a core; {rate / limit:.2f} of the bare loader"
            print(f"ours            {rate:9.0f} /s   {cpu:6.1f} CPU s a million, {share}", flush=True)
        if importlib.util.find_spec("opensearchpy"):
            new_index(server.url)
            rate, others = peer(server.url, min(count, options.peer_records))
            print(f"parallel_bulk   {rate:9.0f} /s   {others:6.1f} CPU s a million: {others / cpu:.1f} times ours", flush=True)
        else:
            print("parallel_bulk   not measured: pip install opensearch-py")
        print(f"of the bare loader's rate: {' '.join(f'{share:.2f}' for share in shares)}")
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
