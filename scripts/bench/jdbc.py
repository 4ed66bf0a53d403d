#!/usr/bin/env python3
"""PostgreSQL → topic and topic → PostgreSQL (insert, then upsert), beside what COPY alone does in the same run, and beside Debezium's JDBC sink.

    scripts/bench/jdbc.py [--rows 1000000] [--peer-rows 100000]

Rows have ten columns of mixed types; values in the topic are JSON with schema. PostgreSQL is Debian's, Kafka a real one, both started for this.
Content is verified by sums of hashes on both sides. Debezium's sink runs in Java Connect on the same topic, in batches of 5000; its rate is that from
its first rows on, until it has written so many; 0 leaves it out.
"""

import argparse
import contextlib
import json
import pathlib
import resource
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from standalone.testing import LocalWorker, wait_for  # noqa: E402
from tests.servers import java_connect  # noqa: E402
from tests.servers.kafka_broker import KafkaBroker  # noqa: E402
from tests.servers.postgresql import PostgreSql  # noqa: E402
from tests.servers.server import CACHE  # noqa: E402

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
    parser.add_argument("--peer-rows", type=int, default=100_000)
    given = parser.parse_args()
    with PostgreSql() as server, KafkaBroker() as broker, contextlib.closing(_connected(server)) as connection:
        connection.execute(f"CREATE TABLE items ({COLUMNS})")
        connection.execute(FILL.format(rows=given.rows))
        connection.execute("VACUUM ANALYZE items")
        rates = run(server, broker, connection, given.rows)
        peer_rows = min(given.peer_rows, given.rows)
        for mode in rates if peer_rows else ():
            rate = debezium(server, broker, connection, mode, peer_rows)
            print(f"  JdbcSink does {rates[mode] / rate:.1f} times as many rows a second")


def run(server, broker, connection, rows):
    """{mode: rows a second} of the sink."""
    rates = {}
    data, seconds = timed(lambda: _copy_out(connection))
    copy_out = told("COPY TO STDOUT alone", rows, seconds)
    connection.execute(f"CREATE TABLE copied ({COLUMNS})")
    _, seconds = timed(lambda: _copy_in(connection, data))
    copy_in = told("COPY FROM STDIN alone", rows, seconds)
    data = None  # a quarter of a gigabyte
    base = {"connection.url": server.jdbc, "tasks.max": "1"}
    with tempfile.TemporaryDirectory(prefix="bench-jdbc-") as folder:
        settings = {"bootstrap__servers": broker.bootstrap, "pipeline__engine": "auto", "value__converter": JSON}
        with LocalWorker(pathlib.Path(folder), **settings) as worker:
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
                rates[mode] = rate
                worker.herder.delete(mode)
                sums = {connection.execute(f"SELECT sum(hashtextextended(t::text, 0)) FROM {name} t").fetchone()[0] for name in (mode, "items")}
                assert len(sums) == 1, "the rows are not the same"
    return rates


def debezium(server, broker, connection, mode, rows):
    """Rows a second of Debezium's sink, once it is under way."""
    table = f"java_{mode}"
    connection.execute(f"CREATE TABLE {table} ({COLUMNS})")
    sink = {
        "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector", "topics": "items", "tasks.max": "1", "collection.name.format": table,
        "connection.url": f"jdbc:postgresql://127.0.0.1:{server.port}/postgres", "connection.username": "postgres", "connection.password": "any",
        "insert.mode": mode, "primary.key.mode": "record_value", "primary.key.fields": "id", "schema.evolution": "none", "batch.size": "5000",
        "consumer.override.auto.offset.reset": "earliest", "consumer.override.max.poll.records": "5000",
    }  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="bench-debezium-") as folder:
        worker = {
            "bootstrap.servers": broker.bootstrap, "offset.storage.file.filename": f"{folder}/offsets", "plugin.path": debezium_jars().parent,
            "key.converter": JSON, "value.converter": JSON,
        }  # fmt: skip
        java_connect.JAVA_OPTIONS[:] = ["-Xms512m", "-Xmx2g"]  # as a server has it, not as tests do
        with java_connect.JavaConnect(worker, [], folder) as connect:
            address = f"http://127.0.0.1:{connect.port}/connectors"
            wait_for(lambda: _asked(address) is not None or time.sleep(0.1), PATIENCE_SECONDS, "Java Connect to be up")
            _asked(f"{address}/peer/config", sink)
            count = lambda: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: E731
            wait_for(lambda: count() or _check(address) or time.sleep(0.05), PATIENCE_SECONDS, "Debezium's first rows")
            first, begun = count(), time.monotonic()
            wait_for(lambda: count() >= rows or _check(address) or time.sleep(0.1), PATIENCE_SECONDS, "Debezium's rows")
            last, seconds = count(), time.monotonic() - begun
    return told(f"topic → table by Debezium's sink, {mode}", last - first, seconds)


def _check(address):
    for task in _asked(f"{address}/peer/status")["tasks"]:
        if task["state"] == "FAILED":
            sys.exit(f"Debezium's sink has failed: {task['trace'][:2000]}")


def _asked(url, body=None):
    """The answer of Java Connect's REST, None where it is not up."""
    method, data = ("GET", None) if body is None else ("PUT", json.dumps(body).encode())
    try:
        request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())
    except OSError:
        return None


def debezium_jars():
    """The folder with the sink's jars, from Maven; without those of Jackson, of which Java Connect has its own."""
    libs = CACHE / "bench-debezium" / "libs"
    if not libs.is_dir():
        part = libs.with_suffix(".part")
        pom = ROOT / "scripts" / "bench" / "debezium-pom.xml"
        subprocess.run(["mvn", "-q", "-B", "-f", pom, "dependency:copy-dependencies", f"-DoutputDirectory={part}"], check=True)
        for jar in part.glob("jackson-*.jar"):
            jar.unlink()
        part.rename(libs)
    return libs


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
