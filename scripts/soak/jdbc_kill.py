#!/usr/bin/env python3
"""Kill the worker, and the database, again and again while rows go PostgreSQL → topic → PostgreSQL; then compare the tables.

    scripts/soak/jdbc_kill.py [--kills 20] [--per-second 2000]

Source and sinks run in one worker, on the embedded log. Rows are written by multiple transactions at once, some of which commit late or roll
back. Each kill is, in turn, of the worker (kill -9) and of the server with all its processes. The first copy is written by upsert (at least once),
the second with exactly.once=true by plain inserts into a table without a key: both must hold each row that was committed, and the second each
record of the topic once.
"""

import argparse
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.servers.postgresql import PostgreSql, free_port  # noqa: E402

JSON = "org.apache.kafka.connect.json.JsonConverter"
UP_SECONDS = 120
STILL_SECONDS = 90  # without any progress


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--per-second", type=int, default=2000)
    said = parser.parse_args()
    tables = (
        "CREATE TABLE items (id bigserial PRIMARY KEY, v text NOT NULL)",
        "CREATE TABLE once (id bigint, v text)",
        "CREATE TABLE upserted (id bigint PRIMARY KEY, v text)",
    )
    soak("jdbc-kill-", tables, Worker, lambda server: Writer(server, said.per_second), said.kills, judge)


def soak(name, tables, make_worker, make_writer, kills, judge):
    """Kill the worker and the server in turn while the writer writes; `judge(server, writer)` says what is wrong in the end, or None."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix=name))
    server = PostgreSql(settings=("fsync=on", "synchronous_commit=on", "full_page_writes=on")).start()
    try:
        with connected(server) as connection:
            for each in tables:
                connection.execute(each)
        worker = make_worker(folder, server)
        worker.start()
        worker.wait_until_up()
        writer = make_writer(server)
        writer.start()
        for number in range(kills):
            time.sleep(random.uniform(1.5, 5))
            victim = (worker, server)[number % 2]
            victim.kill()
            victim.start()
            if victim is worker:
                worker.wait_until_up()
            print(f"kill {number + 1}: {'worker' if victim is worker else 'database'}, {writer.progress}", flush=True)
        writer.stop()
        failed = judge(server, writer)
        worker.end()
    finally:
        server.stop()
    if not failed:
        shutil.rmtree(folder)
    sys.exit(failed and f"{failed} Look at {folder}")


def judge(server, _writer):
    is_still = Still()
    while True:
        with connected(server) as connection:
            wanted, lost_up, lost_once, doubled, of_topic = connection.execute(
                "SELECT (SELECT count(*) FROM items), (SELECT count(*) FROM items WHERE id NOT IN (SELECT id FROM upserted)), "
                "(SELECT count(*) FROM items WHERE id NOT IN (SELECT id FROM once)), (SELECT count(*) - count(DISTINCT id) FROM once), "
                "(SELECT sum(next_offset) - (SELECT count(*) FROM once) FROM connect_sink_offsets)"
            ).fetchone()
        if not lost_up and not lost_once and not of_topic or is_still((lost_up, lost_once, of_topic)):
            break
        time.sleep(1)
    print(f"{wanted} rows; lost {lost_up} (upsert), {lost_once} (exactly once); the source repeated {doubled}; offsets and rows differ by {of_topic}")
    return "Rows were lost, or written twice." if lost_up or lost_once or of_topic else None


class Still:
    """Whether what is counted has not changed for so long that it will not: how fast it goes depends on the machine."""

    def __init__(self):
        self._seen, self._since = None, time.monotonic()

    def __call__(self, seen):
        if seen != self._seen:
            self._seen, self._since = seen, time.monotonic()
        return time.monotonic() - self._since > STILL_SECONDS


class Worker:
    _starts = 0

    def __init__(self, folder, server):
        self._folder, self._process = folder, None
        base = {"tasks.max": 1, "connection.url": server.jdbc, "connection.attempts": 100, "connection.backoff.ms": 300}
        base.update({"task.restart.max.attempts": 1000, "task.restart.backoff.initial.ms": 200, "task.restart.backoff.max.ms": 1000})
        sink = {"connector.class": "JdbcSink", "topics": "items", "max.retries": 1000, "retry.backoff.ms": 200, "pk.fields": "id"}
        sink.update(base)
        source = {"connector.class": "JdbcSource", "mode": "incrementing", "table.whitelist": "items", "poll.interval.ms": 100, **base}
        self._files = [
            self._file("worker", {
                "bootstrap.servers": "embedded", "embedded.log.listener": f"127.0.0.1:{free_port()}",
                "listeners": f"http://127.0.0.1:{free_port()}",
                "key.converter": JSON, "value.converter": JSON,
                "offset.storage.file.filename": folder / "offsets", "offset.flush.interval.ms": 500,
            }),
            self._file("source", source),
            self._file("upserted", {**sink, "insert.mode": "upsert", "pk.mode": "record_value", "table.name.format": "upserted"}),
            self._file("once", {"table.name.format": "once", "exactly.once": "true", **sink}),
        ]  # fmt: skip

    def _file(self, name, props):
        path = self._folder / f"{name}.properties"
        props = props if name == "worker" else {"name": name, **props}
        path.write_text("".join(f"{key}={value}\n" for key, value in props.items()))
        return str(path)

    def start(self):
        with open(self._folder / "worker.log", "ab") as log:
            command = [sys.executable, "-m", "standalone.cli.worker", *self._files]
            self._process = subprocess.Popen(command, cwd=self._folder, stdout=log, stderr=log, env={**os.environ, "PYTHONPATH": str(ROOT)})

    def wait_until_up(self):
        """A worker that is killed before it has begun shows nothing. On a busy machine it takes its time."""
        log, deadline = self._folder / "worker.log", time.monotonic() + UP_SECONDS
        self._starts += 1
        while log.read_bytes().count(b"Started in ") < self._starts:
            if self._process.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"The worker did not start. Look at {log}")
            time.sleep(0.05)

    def kill(self):
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def end(self):
        self._process.terminate()
        self._process.wait(60)


class Writer(threading.Thread):
    """Transactions of some rows each, two at a time, one of which waits before it ends; a tenth is rolled back."""

    def __init__(self, server, per_second):
        super().__init__(daemon=True)
        self._server, self._per_second = server, per_second
        self._over = threading.Event()
        self.committed = 0

    def run(self):
        import psycopg

        while not self._over.is_set():
            try:
                with connected(self._server, autocommit=False) as slow, connected(self._server, autocommit=False) as quick:
                    while not self._over.wait(0.05):
                        count = max(1, self._per_second // 40)
                        insert = f"INSERT INTO items (v) SELECT 'row ' || n FROM generate_series(1, {count}) n"
                        slow.execute(insert)
                        for _ in range(3):
                            quick.execute(insert)
                            quick.commit()
                            self.committed += count
                        if random.random() < 0.1:
                            slow.rollback()
                        else:
                            slow.commit()
                            self.committed += count
            except psycopg.Error:
                self._over.wait(0.2)  # the server is away

    @property
    def progress(self):
        return f"{self.committed} rows committed"

    def stop(self):
        self._over.set()
        self.join()


def connected(server, autocommit=True):
    import psycopg

    return psycopg.connect(host="127.0.0.1", port=server.port, user="postgres", dbname="postgres", autocommit=autocommit)


if __name__ == "__main__":
    main()
