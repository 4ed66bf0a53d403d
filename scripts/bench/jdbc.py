#!/usr/bin/env python3
"""PostgreSQL → topic and topic → PostgreSQL (insert, then upsert), beside what COPY alone does in the same run.

    scripts/bench/jdbc.py [--rows 1000000]

Rows have ten columns of mixed types; values in the topic are JSON with schema. The server is Debian's, started for this; the log is the
embedded one. Content is verified by sums of hashes on both sides.
"""

import argparse
import contextlib
import pathlib
import resource
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from standalone.testing import LocalWorker, wait_for  # noqa: E402
from tests.servers.postgresql import PostgreSql  # noqa: E402

JSON = "org.apache.kafka.connect.json.JsonConverter"
PATIENCE_SECONDS = 600
COLUMNS = (
    "id bigint PRIMARY KEY, name text NOT NULL, note text, price numeric(12,2), amount integer NOT NULL, ratio double precision, "
    "is_open boolean, at timestamptz NOT NULL, day date, raw bytea"
)
FILL = """
INSERT INTO items SELECT n, 'name of item ' || n, CASE WHEN n % 3 > 0 THEN md5(n::text) END, n * 0.37, n % 100000, n / 7.0, n % 2 = 0,
    TIMESTAMPTZ '2020-01-01 00:00:00Z' + n * INTERVAL '1 second', DATE '2020-01-01' + (n % 3000)::int, decode(md5(n::text), 'hex')
FROM generate_series(1, {rows}) n
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows
    server = PostgreSql().start()
    try:
        with contextlib.closing(_connected(server)) as connection:
            connection.execute(f"CREATE TABLE items ({COLUMNS})")
            connection.execute(FILL.format(rows=rows))
            connection.execute("VACUUM ANALYZE items")
            run(server, connection, rows)
    finally:
        server.stop()


def run(server, connection, rows):
    data, seconds = timed(lambda: _copy_out(connection))
    copy_out = told("COPY TO STDOUT alone", rows, seconds)
    connection.execute(f"CREATE TABLE copied ({COLUMNS})")
    _, seconds = timed(lambda: _copy_in(connection, data))
    copy_in = told("COPY FROM STDIN alone", rows, seconds)
    data = None  # a quarter of a gigabyte
    base = {"connection.url": server.jdbc, "tasks.max": "1"}
    with tempfile.TemporaryDirectory(prefix="bench-jdbc-") as folder:
        with LocalWorker(pathlib.Path(folder), pipeline__engine="auto", value__converter=JSON) as worker:
            source = {"connector.class": "JdbcSource", "mode": "incrementing", "incrementing.column.name": "id", "table.whitelist": "items", **base}
            rate = measured("table → topic", rows, lambda: worker.create("source", source), lambda: _count(worker) >= rows, worker, "source")
            print(f"  {rate / copy_out:.2f} of COPY alone")
            worker.herder.delete("source")
            for mode in ("insert", "upsert"):
                sink = {
                    "connector.class": "JdbcSink", "topics": "items", "table.name.format": mode, "insert.mode": mode, "pk.mode": "record_value",
                    "pk.fields": "id", "consumer.override.auto.offset.reset": "earliest", **base,
                }  # fmt: skip
                connection.execute(f"CREATE TABLE {mode} ({COLUMNS})")
                rate = measured(
                    f"topic → table, {mode}", rows, lambda: worker.create(mode, sink),
                    lambda: connection.execute(f"SELECT count(*) FROM {mode}").fetchone()[0] >= rows, worker, mode,
                )  # fmt: skip
                print(f"  {rate / copy_in:.2f} of COPY alone")
                worker.herder.delete(mode)
                sums = {connection.execute(f"SELECT sum(hashtextextended(t::text, 0)) FROM {name} t").fetchone()[0] for name in (mode, "items")}
                assert len(sums) == 1, "the rows are not the same"


def measured(what, rows, begin, is_over, worker, name):
    cpu, begun = _cpu(), time.monotonic()
    begin()
    wait_for(lambda: is_over() or worker.trace(name) or time.sleep(0.1), PATIENCE_SECONDS, what)
    assert worker.trace(name) is None, worker.trace(name)
    return told(what, rows, time.monotonic() - begun, _cpu() - cpu)


def told(what, rows, seconds, cpu=None):
    share = "" if cpu is None else f", {cpu * 1e6 / rows:.1f} CPU seconds a million"
    print(f"{what}: {rows / seconds / 1000:.0f} k rows/s ({seconds:.1f} s{share})", flush=True)
    return rows / seconds


def timed(call):
    begun = time.monotonic()
    return call(), time.monotonic() - begun


def _cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _connected(server):
    import psycopg

    return psycopg.connect(host="127.0.0.1", port=server.port, user="postgres", dbname="postgres", autocommit=True)


def _copy_out(connection):
    with connection.cursor() as cursor, cursor.copy("COPY items TO STDOUT (FORMAT csv)") as copy:
        return b"".join(copy)


def _copy_in(connection, data):
    with connection.cursor() as cursor, cursor.copy("COPY copied FROM STDIN (FORMAT csv)") as copy:
        copy.write(data)


def _count(worker):
    return worker._count("items")


if __name__ == "__main__":
    main()
