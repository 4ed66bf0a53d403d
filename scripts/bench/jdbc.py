#!/usr/bin/env python3
"""Database → topic and topic → database, beside bare programs that do the same in the same run.

    scripts/bench/jdbc.py [--rows 1000000] [--peer-rows 100000] [--compression none] [--log kafka]
    scripts/bench/jdbc.py --log embedded                           the topics are in the worker's own log; without Debezium
    scripts/bench/jdbc.py --server mariadb [--rows 1000000]        only database → topic

Rows have ten columns of mixed types; values in the topic are JSON with schema. Debian's PostgreSQL or MariaDB and a real Kafka broker are started.
With --log embedded the worker's process has the CPU time of the log, too. Measured with PostgreSQL, and what each rate is compared with:

    table → topic                   COPY TO STDOUT, read by psycopg into memory; psycopg with confluent-kafka, which does all of the work
    insert, upsert of new rows      COPY FROM STDIN from memory into an empty table with the same primary key; Debezium's sink
    upsert of existing rows         the same COPY; and COPY into a temporary table with one INSERT ... ON CONFLICT DO UPDATE

A connector is measured from its creation to the last row. First a small table goes through connectors of the same kinds, so that the start of
Kafka's Java and of the worker is not part of the first rate. This process switches threads and collects garbage as often as a worker does. Before
each part that writes, PostgreSQL makes a checkpoint, so that none pays for the pages of another. Sums of hashes verify the rows. Debezium's sink
runs in Java Connect on the same topic, in batches of 5000, and is measured from its first rows until it has written --peer-rows. --peer-rows 0
leaves out Debezium and confluent-kafka. --compression is compression.type of all producers.
"""

import argparse
import contextlib
import gc
import json
import os
import pathlib
import resource
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "scripts" / "bench")]

import jdbc_peers  # noqa: E402

from standalone import warm_up  # noqa: E402
from standalone.cli.worker import GC_THRESHOLD, SWITCH_SECONDS  # noqa: E402
from standalone.testing import LocalWorker, wait_for  # noqa: E402
from tests.servers.kafka_broker import KafkaBroker  # noqa: E402
from tests.servers.mariadb import MariaDb  # noqa: E402
from tests.servers.postgresql import PostgreSql  # noqa: E402

JSON = jdbc_peers.JSON
PATIENCE_SECONDS = jdbc_peers.PATIENCE_SECONDS
FIRST_ROWS = 50_000  # of the small table
COLUMNS = (
    "id bigint PRIMARY KEY, name text NOT NULL, note text, price numeric(12,2), amount integer NOT NULL, ratio double precision, "
    "is_open boolean, at timestamptz NOT NULL, day date, raw bytea"
)
FILL = """
INSERT INTO {table} SELECT n, 'name of item ' || n, CASE WHEN n % 3 > 0 THEN md5(n::text) END, n * 0.37, n % 100000, n / 7.0, n % 2 = 0,
    TIMESTAMPTZ '2020-01-01 00:00:00Z' + n * INTERVAL '1 second', DATE '2020-01-01' + (n % 3000)::int, decode(md5(n::text), 'hex')
FROM generate_series(1, {rows}) n
"""
MARIADB_COLUMNS = COLUMNS.replace("timestamptz", "datetime").replace("bytea", "varbinary(16)")
MARIADB_FILL = """
INSERT INTO {table} SELECT n, concat('name of item ', n), CASE WHEN n % 3 > 0 THEN md5(n) END, n * 0.37, n % 100000, n / 7.0, n % 2 = 0,
    TIMESTAMP '2020-01-01 00:00:00' + INTERVAL n SECOND, DATE '2020-01-01' + INTERVAL n % 3000 DAY, unhex(md5(n))
FROM (SELECT seq AS n FROM seq_1_to_{rows}) s
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--peer-rows", type=int, default=100_000)
    parser.add_argument("--compression", default="none")
    parser.add_argument("--log", choices=("kafka", "embedded"), default="kafka")
    parser.add_argument("--server", choices=("postgresql", "mariadb"), default="postgresql")
    given = parser.parse_args()
    warm_up.compile_all()  # nothing where the kernels are compiled
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.set_threshold(*GC_THRESHOLD)
    (postgresql if given.server == "postgresql" else mariadb)(given)


def postgresql(given):
    peer_rows = min(given.peer_rows, given.rows)
    with PostgreSql() as server, _broker(given.log) as broker, contextlib.closing(_connected(server)) as connection:
        for table, rows in (("first", FIRST_ROWS), ("items", given.rows)):
            connection.execute(f"CREATE TABLE {table} ({COLUMNS})")
            connection.execute(FILL.format(table=table, rows=rows))
            connection.execute(f"VACUUM ANALYZE {table}")
        rates = run(server, broker, connection, given, peer_rows)
        for mode in ("insert", "upsert") if peer_rows and broker else ():
            rate = debezium(server, broker, connection, mode, peer_rows)
            print(f"  JdbcSink writes {rates[mode] / rate:.1f} times as many rows a second")


def run(server, broker, connection, given, peer_rows):
    """{mode: rows a second} of the sink."""
    rows, servers, base = given.rows, tuple(filter(None, (server, broker))), {"connection.url": server.jdbc, "tasks.max": "1"}
    data, *used = timed(lambda: jdbc_peers.copy_out(connection), servers)
    out_rate = told("COPY TO STDOUT alone", rows, *used)
    connection.execute(f"CREATE TABLE copied ({COLUMNS})")
    connection.execute("CHECKPOINT")
    _, *used = timed(lambda: jdbc_peers.copy_in(connection, "copied", data), servers)
    in_rate = told("COPY FROM STDIN alone", rows, *used)
    connection.execute("CHECKPOINT")
    _, *used = timed(lambda: jdbc_peers.merge(connection, "copied", data), servers)
    merge_rate = told("COPY into a temporary table and one merge, alone", rows, *used)
    data = None  # a quarter of a gigabyte
    connection.execute("DROP TABLE copied")
    rates = {}
    with _worker(broker, given.compression) as worker:
        worker.create("first", _source("first", base))
        wait_for(lambda: worker._count("first") >= FIRST_ROWS or time.sleep(0.05), PATIENCE_SECONDS, "the small table in its topic")
        worker.herder.delete("first")
        rate = read(worker, base, rows, servers)
        print(f"  {rate / out_rate:.2f} of COPY alone")
        if peer_rows:
            print(f"  {rate / produced(connection, worker.bootstrap, given.compression, peer_rows, servers):.1f} times as many rows a second")
        connection.execute(f"CREATE TABLE first_copy ({COLUMNS})")
        for mode in ("insert", "upsert"):  # the second one finds the keys
            is_over = lambda mode=mode: worker._committed(f"first-{mode}", "first") == {0: FIRST_ROWS}  # noqa: E731
            worker.create(f"first-{mode}", _sink("first", "first_copy", mode, base))
            wait_for(lambda is_over=is_over: is_over() or time.sleep(0.05), PATIENCE_SECONDS, f"{mode} of the small table")
            worker.herder.delete(f"first-{mode}")
        for mode in ("insert", "upsert"):
            connection.execute(f"CREATE TABLE {mode} ({COLUMNS})")
            connection.execute("CHECKPOINT")
            is_over = lambda mode=mode: _holds(connection, mode, rows)  # noqa: E731
            rates[mode] = sunk(worker, mode, _sink("items", mode, mode, base), f"topic → table, {mode}", rows, is_over, servers)
            print(f"  {rates[mode] / in_rate:.2f} of COPY alone")
            _check_rows(connection, mode)
        is_over = lambda: worker._committed("again", "items") == {0: rows}  # noqa: E731
        sink = _sink("items", "upsert", "upsert", base)
        connection.execute("CHECKPOINT")
        rate = sunk(worker, "again", sink, "topic → table, upsert of existing rows", rows, is_over, servers)
        print(f"  {rate / merge_rate:.2f} of COPY and one merge alone, {rate / in_rate:.2f} of COPY alone")
        _check_rows(connection, "upsert")
    return rates


def mariadb(given):
    import pymysql

    rows = given.rows
    with MariaDb() as server, _broker(given.log) as broker:
        login = {"host": "127.0.0.1", "port": server.port, "user": "root", "password": server.password, "autocommit": True}
        with pymysql.connect(**login) as connection, connection.cursor() as cursor:
            cursor.execute("CREATE DATABASE bench")
            cursor.execute("USE bench")
            for table, count in (("first", FIRST_ROWS), ("items", rows)):
                cursor.execute(f"CREATE TABLE {table} ({MARIADB_COLUMNS})")
                cursor.execute(MARIADB_FILL.format(table=table, rows=count))
            servers = tuple(filter(None, (server, broker)))
            base = {"connection.url": f"{server.jdbc}bench?user=root&password={server.password}", "tasks.max": "1"}
            _, *used = timed(lambda: jdbc_peers.mysql_rows(connection), servers)
            bare = told("SELECT alone, by PyMySQL's unbuffered cursor", rows, *used)
        with _worker(broker, given.compression) as worker:
            worker.create("first", _source("first", base))
            wait_for(lambda: worker._count("first") >= FIRST_ROWS or time.sleep(0.05), PATIENCE_SECONDS, "the small table in its topic")
            worker.herder.delete("first")
            print(f"  {read(worker, base, rows, servers) / bare:.2f} of PyMySQL alone")


def _broker(log):
    """A Kafka broker; None where the worker has a log of its own."""
    return KafkaBroker() if log == "kafka" else contextlib.nullcontext()


@contextlib.contextmanager
def _worker(broker, compression):
    settings = {"pipeline__engine": "auto", "value__converter": JSON, "producer__compression__type": compression}
    if broker:
        settings["bootstrap__servers"] = broker.bootstrap
    with tempfile.TemporaryDirectory(prefix="bench-jdbc-") as folder, LocalWorker(pathlib.Path(folder), **settings) as worker:
        yield worker


def read(worker, base, rows, servers):
    """Rows a second of the source."""
    begin = lambda: worker.create("source", _source("items", base))  # noqa: E731
    rate = measured("table → topic", rows, begin, lambda: worker._count("items") >= rows, worker, "source", servers)
    worker.herder.delete("source")
    return rate


def produced(connection, bootstrap, compression, rows, servers):
    """Rows a second of psycopg with confluent-kafka; its first message must mean the same as ours."""
    ours = jdbc_peers.first_message(bootstrap, "items")
    opening = ours[: ours.index(b'"payload":') + len(b'"payload":')]
    call = lambda: jdbc_peers.produce_rows(connection, bootstrap, "peer", opening, rows, compression)  # noqa: E731
    theirs, *used = timed(call, servers)
    assert json.loads(ours) == json.loads(theirs), "the messages are not the same"
    return told("table → topic by psycopg and confluent-kafka", rows, *used)


def _source(table, base):
    return {"connector.class": "JdbcSource", "mode": "incrementing", "incrementing.column.name": "id", "table.whitelist": table, **base}


def _sink(topic, table, mode, base):
    return {
        "connector.class": "JdbcSink", "topics": topic, "table.name.format": table, "insert.mode": mode, "pk.mode": "record_value",
        "pk.fields": "id", "consumer.override.auto.offset.reset": "earliest", **base,
    }  # fmt: skip


def sunk(worker, name, sink, what, rows, is_over, servers):
    """Rows a second of a sink."""
    rate = measured(what, rows, lambda: worker.create(name, sink), is_over, worker, name, servers)
    worker.herder.delete(name)
    return rate


def _holds(connection, table, rows):
    if connection.execute(f"SELECT 1 FROM {table} WHERE id = {rows}").fetchone() is None:
        return False  # rows come in order, so they are counted only once the last one exists: counting takes CPU from the sink
    return connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] == rows


def _check_rows(connection, table):
    sums = {connection.execute(f"SELECT sum(hashtextextended(t::text, 0)) FROM {name} t").fetchone()[0] for name in (table, "items")}
    assert len(sums) == 1, "the rows are not the same"


def debezium(server, broker, connection, mode, rows):
    """Rows a second of Debezium's sink, from its first rows on."""
    table = f"java_{mode}"
    connection.execute(f"CREATE TABLE {table} ({COLUMNS})")
    connection.execute("CHECKPOINT")
    count = lambda: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: E731
    with jdbc_peers.debezium(server, broker, table, mode) as check:
        wait_for(lambda: count() or check() or time.sleep(0.05), PATIENCE_SECONDS, "Debezium's first rows")
        first, begun = count(), time.monotonic()
        wait_for(lambda: count() >= rows or check() or time.sleep(0.1), PATIENCE_SECONDS, "Debezium's rows")
        last, seconds = count(), time.monotonic() - begun
    return told(f"topic → table by Debezium's sink, {mode}", last - first, seconds)


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
    """(result, seconds, {who: CPU seconds})"""
    cpu, begun = _cpu(servers), time.monotonic()
    found = call()
    seconds = time.monotonic() - begun
    return found, seconds, {who: used - cpu[who] for who, used in _cpu(servers).items()}


def _cpu(servers):
    """{who: CPU seconds so far}: this process with the worker, and each server with its processes."""
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


if __name__ == "__main__":
    main()
