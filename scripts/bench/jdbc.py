#!/usr/bin/env python3
"""PostgreSQL → topic and topic → PostgreSQL (insert, upsert of new rows, upsert of rows that are there), beside what COPY alone does in the same
run, and beside Debezium's JDBC sink.

    scripts/bench/jdbc.py [--rows 1000000] [--peer-rows 100000]

Rows have ten columns of mixed types; values in the topic are JSON with schema. Debian's PostgreSQL and a real Kafka broker are started for this.
COPY alone is one COPY of all rows, into memory, and out of it into a table with the same primary key. Ours counts from the creation of the
connector to the last row in the table: whether that is there is asked by its key.
Sums of hashes on both sides verify the content. Debezium's sink runs in Java Connect on the same topic, in batches of 5000; its rate counts
from its first rows until it has written --peer-rows; 0 leaves it out.
"""

import argparse
import contextlib
import json
import os
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
    servers = (server, broker)
    data, *used = timed(lambda: _copy_out(connection), servers)
    copy_out = told("COPY TO STDOUT alone", rows, *used)
    connection.execute(f"CREATE TABLE copied ({COLUMNS})")
    _, *used = timed(lambda: _copy_in(connection, data), servers)
    copy_in = told("COPY FROM STDIN alone", rows, *used)
    data = None  # a quarter of a gigabyte
    base = {"connection.url": server.jdbc, "tasks.max": "1"}
    with tempfile.TemporaryDirectory(prefix="bench-jdbc-") as folder:
        settings = {"bootstrap__servers": broker.bootstrap, "pipeline__engine": "auto", "value__converter": JSON}
        with LocalWorker(pathlib.Path(folder), **settings) as worker:
            source = {"connector.class": "JdbcSource", "mode": "incrementing", "incrementing.column.name": "id", "table.whitelist": "items", **base}
            rate = measured("table → topic", rows, lambda: worker.create("source", source), lambda: _count(worker) >= rows, worker, "source", servers)
            print(f"  {rate / copy_out:.2f} of COPY alone")
            worker.herder.delete("source")
            for mode in ("insert", "upsert"):
                connection.execute(f"CREATE TABLE {mode} ({COLUMNS})")
                is_over = lambda mode=mode: _holds(connection, mode, rows)  # noqa: E731
                rates[mode] = sunk(worker, mode, _sink(mode, base), f"topic → table, {mode}", rows, is_over, servers)
                print(f"  {rates[mode] / copy_in:.2f} of COPY alone")
                _check_rows(connection, mode)
            is_over = lambda: worker._committed("again", "items") == {0: rows}  # noqa: E731
            rate = sunk(worker, "again", _sink("upsert", base), "topic → table, upsert of rows that are there", rows, is_over, servers)
            print(f"  {rate / copy_in:.2f} of COPY alone")
            _check_rows(connection, "upsert")
    return rates


def _sink(mode, base):
    return {
        "connector.class": "JdbcSink", "topics": "items", "table.name.format": mode, "insert.mode": mode, "pk.mode": "record_value",
        "pk.fields": "id", "consumer.override.auto.offset.reset": "earliest", **base,
    }  # fmt: skip


def sunk(worker, name, sink, what, rows, is_over, servers):
    """Rows a second of a sink, from its creation on."""
    rate = measured(what, rows, lambda: worker.create(name, sink), is_over, worker, name, servers)
    worker.herder.delete(name)
    return rate


def _holds(connection, table, rows):
    if connection.execute(f"SELECT 1 FROM {table} WHERE id = {rows}").fetchone() is None:
        return False  # they come in order: nothing is counted before the last one is there
    return connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] == rows


def _check_rows(connection, table):
    sums = {connection.execute(f"SELECT sum(hashtextextended(t::text, 0)) FROM {name} t").fetchone()[0] for name in (table, "items")}
    assert len(sums) == 1, "the rows are not the same"


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


def measured(what, rows, begin, is_over, worker, name, servers):
    cpu, begun = _cpu(servers), time.monotonic()
    begin()
    wait_for(lambda: is_over() or worker.trace(name) or time.sleep(0.05), PATIENCE_SECONDS, what)
    seconds = time.monotonic() - begun
    assert worker.trace(name) is None, worker.trace(name)
    return told(what, rows, seconds, {who: used - cpu[who] for who, used in _cpu(servers).items()})


def told(what, rows, seconds, cpu=None):
    shares = ", ".join(f"{who} {used * 1e6 / rows:.1f}" for who, used in (cpu or {}).items())
    print(f"{what}: {rows / seconds / 1000:.0f} k rows/s ({seconds:.1f} s{shares and f'; CPU seconds a million: {shares}'})", flush=True)
    return rows / seconds


def timed(call, servers):
    """(what it gives, how many seconds it took, CPU seconds by who used them)"""
    cpu, begun = _cpu(servers), time.monotonic()
    found = call()
    seconds = time.monotonic() - begun
    return found, seconds, {who: used - cpu[who] for who, used in _cpu(servers).items()}


def _cpu(servers):
    """{who: CPU seconds so far} of the worker, which is this process, and of servers with all their processes."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    parents, times = {}, {}
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            words = path.read_text().rpartition(")")[2].split()
            parents[int(path.parent.name)], times[int(path.parent.name)] = int(words[1]), sum(map(int, words[11:15]))  # with children that ended
    found = {"worker": used.ru_utime + used.ru_stime}
    for server in servers:
        family = {server.pid}
        while more := {pid for pid, parent in parents.items() if parent in family} - family:
            family |= more
        found[server.name] = sum(times.get(pid, 0) for pid in family) / os.sysconf("SC_CLK_TCK")
    return found


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
