#!/usr/bin/env python3
"""What a worker costs while nothing happens, and how long a record takes from its file to a consumer through a chain that computes.

    PYTHONPATH=scripts/bench .venv/bin/python scripts/bench/idle.py [--sources 50] [--seconds 30] [--appends 300]

Starts its own worker in a scratch folder, on the embedded log, with Spark up. The idle figures are CPU seconds and memory of the worker
and of Java: with one source, with all of them. Then lines are appended one at a time to one source's file, whose chain casts.
"""

import argparse
import contextlib
import pathlib
import shutil
import signal
import tempfile
import time

import hundred
from compare import children, used
from confluent_kafka import Consumer, TopicPartition

CAST = {"transforms": "hoist,cast", "transforms.hoist.type": "HoistField$Value", "transforms.hoist.field": "count"}
CAST |= {"transforms.cast.type": "Cast$Value", "transforms.cast.spec": "count:int64"}
UNTIL_AT_REST = 45.0  # after its start the worker makes the archive of Java's classes, and Java gives memory back


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sources", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=30.0, help="of looking at a worker that has nothing to do")
    parser.add_argument("--appends", type=int, default=300)
    chosen = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="idle-"))
    worker = hundred.start_worker(folder, "embedded", {"spark.start": "eager"})
    try:
        measure(worker, folder, chosen)
    finally:
        worker.process.send_signal(signal.SIGTERM)
        began = time.monotonic()
        code = worker.process.wait(60)
        print(f"stopped: {time.monotonic() - began:.1f} s, exit code {code}")
        shutil.rmtree(folder, ignore_errors=True)


def measure(worker, folder, chosen):
    create(worker, folder, 0, CAST)
    worker.http.close()  # the worker does it with a connection that is idle for this long; the next request opens another one
    time.sleep(UNTIL_AT_REST)
    idle(worker, "one source", chosen.seconds)
    began = time.monotonic()
    for number in range(1, chosen.sources):
        create(worker, folder, number, {})
    hundred.wait_until_running(worker, chosen.sources)
    print(f"{chosen.sources} sources are running after {time.monotonic() - began:.1f} s")
    idle(worker, f"{chosen.sources} sources", chosen.seconds)
    latency(worker, folder / "s0.txt", chosen.appends)


def create(worker, folder, number, chain):
    name = f"s{number}"
    config = hundred.config(folder, "source", name) | {"topic": name} | chain
    if number == 0:
        (folder / "s0.txt").write_text("0\n")
    hundred.ask(worker, "PUT", f"/connectors/{name}/config", config)


def idle(worker, what, seconds):
    java = children(worker.process.pid)
    before = used(worker.process.pid), sum(map(used, java))
    time.sleep(seconds)
    own, spark = used(worker.process.pid) - before[0], sum(map(used, java)) - before[1]
    memory = hundred.resident_mb(worker), sum(map(resident_mb, java))
    per_minute = f"{own * 60 / seconds:.2f} s a minute, Java {spark * 60 / seconds:.2f} s"
    print(f"{what}, idle: CPU {per_minute}; memory {memory[0]:.0f} MB, Java {memory[1]:.0f} MB", flush=True)


def resident_mb(pid):
    with contextlib.suppress(OSError):
        return int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 / (1 << 20)
    return 0.0


def latency(worker, file, appends):
    """Print the latency of each line to a stock client; the next line is appended when it has arrived."""
    consumer = Consumer({"bootstrap.servers": worker.log, "group.id": "idle", "fetch.wait.max.ms": 500, "enable.auto.commit": False})
    consumer.assign([TopicPartition("s0", 0, 1)])  # after the first line
    took = []
    try:
        with open(file, "a") as lines:
            for number in range(1, appends + 1):
                began = time.perf_counter()
                lines.write(f"{number}\n")
                lines.flush()
                message = consumer.poll(30)
                if message is None or message.error() or str(number).encode() not in message.value():
                    raise SystemExit(f"line {number} did not come: {message and (message.error() or message.value())}")
                took.append((time.perf_counter() - began) * 1000)
                time.sleep(0.02)
    finally:
        consumer.close()
    took.sort()
    print(f"append to consumed, {appends} lines: p50 {took[len(took) // 2]:.1f} ms, p99 {took[int(len(took) * 0.99)]:.1f} ms")


if __name__ == "__main__":
    main()
