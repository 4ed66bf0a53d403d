#!/usr/bin/env python3
"""Many connectors in one worker: start time, latency of the connector list, memory per connector.

    scripts/bench/hundred.py [--connectors 100] [--kind source|sink] [--bootstrap HOST:PORT]

Starts its own worker with a free port in a scratch folder, on the embedded log unless a broker is named.
"""

import argparse
import http.client
import json
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
STRING = "org.apache.kafka.connect.storage.StringConverter"
CLASSES = {"source": "org.apache.kafka.connect.file.FileStreamSourceConnector", "sink": "org.apache.kafka.connect.file.FileStreamSinkConnector"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connectors", type=int, default=100)
    parser.add_argument("--kind", choices=CLASSES, default="source")
    parser.add_argument("--bootstrap", default="embedded")
    parser.add_argument("--requests", type=int, default=300, help="how often the list is asked for")
    chosen = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="hundred-"))
    worker = start_worker(folder, chosen.bootstrap)
    try:
        print(json.dumps(measure(worker, folder, chosen), indent=1))
    finally:
        worker.process.send_signal(signal.SIGTERM)
        began = time.monotonic()
        code = worker.process.wait(60)
        print(f"ended with {code} after {time.monotonic() - began:.1f} s")
        shutil.rmtree(folder, ignore_errors=True)


def measure(worker, folder, chosen):
    ask(worker, "GET", "/connectors?expand=status")  # the server itself is loaded by its first request
    ask(worker, "PUT", "/connectors/warm/config", config(folder, chosen.kind, "warm"))
    wait_until_running(worker, 1)
    ask(worker, "DELETE", "/connectors/warm")
    before = resident_mb(worker)
    began = time.monotonic()
    for number in range(chosen.connectors):
        ask(worker, "PUT", f"/connectors/c{number:03}/config", config(folder, chosen.kind, f"c{number:03}"))
    created = time.monotonic() - began
    wait_until_running(worker, chosen.connectors)
    running = time.monotonic() - began
    took = []
    for _ in range(chosen.requests):
        started = time.monotonic()
        ask(worker, "GET", "/connectors?expand=status")
        took.append((time.monotonic() - started) * 1000)
    took.sort()
    after = resident_mb(worker)
    return {
        "connectors": chosen.connectors,
        "kind": chosen.kind,
        "created_s": round(created, 2),
        "all_running_s": round(running, 2),
        "list_p50_ms": round(took[len(took) // 2], 1),
        "list_p99_ms": round(took[int(len(took) * 0.99)], 1),
        "rss_before_mb": round(before, 1),
        "rss_after_mb": round(after, 1),
        "rss_per_connector_mb": round((after - before) / chosen.connectors, 2),
        "threads": len(list(pathlib.Path(f"/proc/{worker.process.pid}/task").iterdir())),
        "idle_cpu_percent": round(idle_cpu(worker), 1),
    }


class Worker:
    def __init__(self, process, port, log_port):
        self.process = process
        self.log = f"127.0.0.1:{log_port}"  # where its embedded log listens
        self.http = http.client.HTTPConnection("127.0.0.1", port, timeout=60)


def start_worker(folder, bootstrap, more=(), files=()):
    port, log_port = free_port(), free_port()
    props = {
        "bootstrap.servers": bootstrap,
        "embedded.log.listener": f"127.0.0.1:{log_port}",
        "listeners": f"http://127.0.0.1:{port}",
        "key.converter": STRING,
        "value.converter": STRING,
        "offset.storage.file.filename": str(folder / "offsets"),
        "spark.start": "lazy",
        "plugin.path": "",
        **dict(more),
    }
    (folder / "worker.properties").write_text("".join(f"{key}={value}\n" for key, value in props.items()))
    log = open(folder / "worker.log", "wb")
    command = [sys.executable, "-m", "standalone.cli.worker", str(folder / "worker.properties"), *map(str, files)]
    worker = Worker(subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log), port, log_port)
    deadline = time.monotonic() + 60
    while True:
        try:
            ask(worker, "GET", "/")
            return worker
        except OSError:
            worker.http.close()
            if worker.process.poll() is not None or time.monotonic() > deadline:
                sys.exit((folder / "worker.log").read_text())
            time.sleep(0.1)


def config(folder, kind, name):
    file = folder / f"{name}.txt"
    if kind == "source":
        file.write_text(f"a line of {name}\n")
        return {"connector.class": CLASSES[kind], "tasks.max": "1", "file": str(file), "topic": "hundred"}
    return {"connector.class": CLASSES[kind], "tasks.max": "1", "file": str(file), "topics": "hundred"}


def wait_until_running(worker, count):
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        states = [view["status"] for view in ask(worker, "GET", "/connectors?expand=status").values()]
        if sum([task["state"] for task in status["tasks"]] == ["RUNNING"] for status in states) >= count:
            return
        time.sleep(0.05)
    sys.exit(f"not all are running: {json.dumps(states)[:2000]}")


def ask(worker, method, path, body=None):
    headers = {"Content-Type": "application/json"} if body is not None else {}
    worker.http.request(method, path, None if body is None else json.dumps(body), headers)
    answer = worker.http.getresponse()
    text = answer.read()
    if answer.status >= 300:
        sys.exit(f"{method} {path}: {answer.status} {text[:500]}")
    return json.loads(text) if text else None


def resident_mb(worker):
    for line in pathlib.Path(f"/proc/{worker.process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("no VmRSS")


def idle_cpu(worker, seconds=5):
    """Percent of one core while nothing happens."""

    def ticks():
        return sum(map(int, pathlib.Path(f"/proc/{worker.process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]))

    before = ticks()
    time.sleep(seconds)
    return (ticks() - before) / 100 / seconds * 100


def free_port():
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return bound.getsockname()[1]


if __name__ == "__main__":
    main()
