#!/usr/bin/env python3
"""Kill the worker, and the database, again and again while PostgreSQL's changes go topic → table; then compare the tables.

    scripts/soak/cdc_kill.py [--kills 20] [--per-second 1000]

PostgresCdcSource reads a table that has rows already and is changed all the time: insertions, updates, deletions, changes of the key, large
transactions and some that are rolled back. ExtractNewRecordState and JdbcSink write them to another table, by upsert and with deletions. Each kill
is, in turn, of the worker (kill -9) and of the server with all its processes. In the end both tables must be the same.
"""

import argparse
import random
import threading
import time

import jdbc_kill
from jdbc_kill import connected, free_port

JSON = "org.apache.kafka.connect.json.JsonConverter"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--per-second", type=int, default=1000)
    said = parser.parse_args()
    columns = "(id bigint PRIMARY KEY, v text, n numeric(12,2), at timestamptz)"
    tables = (
        *(f"CREATE TABLE {table} {columns}" for table in ("items", "copy")),
        "INSERT INTO items SELECT g, 'before', g / 100.0, now() FROM generate_series(1, 20000) g",
    )
    jdbc_kill.soak("cdc-kill-", tables, Worker, lambda server: Writer(server, said.per_second), said.kills, judge)


def judge(server, writer):
    is_still = jdbc_kill.Still()
    while True:
        with connected(server) as connection:
            count, lost, stale, left = connection.execute(
                "SELECT count(i.id), count(*) FILTER (WHERE c.id IS NULL), count(*) FILTER (WHERE c.id IS NOT NULL AND i.id IS NOT NULL AND "
                "(i.v, i.n) IS DISTINCT FROM (c.v, c.n)), count(*) FILTER (WHERE i.id IS NULL) FROM items i FULL JOIN copy c USING (id)"
            ).fetchone()
        if not lost and not stale and not left or is_still((lost, stale, left)):
            break
        time.sleep(1)
    print(f"{writer.changes} changes, {count} rows: {lost} missing, {stale} stale, {left} that were deleted")
    return "The tables differ." if lost or stale or left else None


class Worker(jdbc_kill.Worker):
    def __init__(self, folder, server):
        self._folder, self._process = folder, None
        restarts = {"task.restart.max.attempts": 10000, "task.restart.backoff.initial.ms": 200, "task.restart.backoff.max.ms": 1000}
        self._files = [
            self._file("worker", {
                "bootstrap.servers": "embedded", "embedded.log.listener": f"127.0.0.1:{free_port()}", "listeners": f"http://127.0.0.1:{free_port()}",
                "key.converter": JSON, "value.converter": JSON, "offset.storage.file.filename": folder / "offsets", "offset.flush.interval.ms": 500,
            }),
            self._file("source", {
                "connector.class": "io.debezium.connector.postgresql.PostgresConnector", "plugin.name": "pgoutput", "topic.prefix": "k",
                "database.hostname": "127.0.0.1", "database.port": server.port, "database.user": "postgres", "database.dbname": "postgres",
                "table.include.list": "public.items", "publication.autocreate.mode": "filtered", "retriable.restart.connector.wait.ms": 300,
                "slot.retry.delay.ms": 300, "slot.max.retries": 1000, "status.update.interval.ms": 1000, **restarts,
            }),
            self._file("sink", {
                "connector.class": "JdbcSink", "topics": "k.public.items", "connection.url": server.jdbc, "table.name.format": "copy",
                "connection.attempts": 100, "connection.backoff.ms": 300, "max.retries": 1000, "retry.backoff.ms": 200,
                "insert.mode": "upsert", "pk.mode": "record_key", "delete.enabled": "true", "transforms": "row,at",
                "transforms.row.type": "io.debezium.transforms.ExtractNewRecordState", "transforms.at.type": "ReplaceField$Value",
                "transforms.at.exclude": "at", **restarts,
            }),
        ]  # fmt: skip


class Writer(threading.Thread):
    def __init__(self, server, per_second):
        super().__init__(daemon=True)
        self._server, self._per_second = server, per_second
        self._over = threading.Event()
        self.changes = 0

    def run(self):
        import psycopg

        while not self._over.is_set():
            try:
                with connected(self._server, autocommit=False) as connection:
                    while not self._over.wait(0.1):
                        self._transaction(connection)
            except psycopg.Error:
                self._over.wait(0.2)  # the server is away

    def _transaction(self, connection):
        size = self._per_second // 10 if random.random() < 0.98 else 20_000
        low = random.randint(1, 40_000)
        done = 0
        for statement in random.sample([
            f"INSERT INTO items SELECT g, 'new', random() * 1000, now() FROM generate_series({low}, {low + size}) g ON CONFLICT DO NOTHING",
            f"UPDATE items SET v = 'v' || {random.randint(1, 10**9)}, n = random() * 1000 WHERE id BETWEEN {low} AND {low + size}",
            f"DELETE FROM items WHERE id BETWEEN {low} AND {low + size // 2}",
            f"UPDATE items SET id = id + 1000000 WHERE id BETWEEN {low} AND {low + 3} AND id + 1000000 NOT IN (SELECT id FROM items)",
        ], 2):  # fmt: skip
            done += connection.execute(statement).rowcount
        if random.random() < 0.1:
            connection.rollback()
        else:
            connection.commit()
            self.changes += done

    @property
    def progress(self):
        return f"{self.changes} changes committed"

    def stop(self):
        self._over.set()
        self.join()


if __name__ == "__main__":
    main()
