#!/usr/bin/env python3
"""Read a large table from PostgreSQL and from MariaDB with JdbcSource's task, and check that its memory stays flat.

    scripts/soak/jdbc_memory.py [--rows 2000000] [--most-mib 100]

Rows have about 200 bytes. The script discards the batches of the task and reads the resident memory of its own process after each one. After the
first tenth of the rows it must not grow by more than --most-mib. The script prints the rate of reading and converting rows, too.
"""

import argparse
import os
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from connectors.jdbc.source import JdbcSourceTask  # noqa: E402
from standalone.connector import OffsetReader, SourceTaskContext  # noqa: E402
from tests.servers.mariadb import MariaDb  # noqa: E402
from tests.servers.postgresql import PostgreSql  # noqa: E402

MIB = 1 << 20
COLUMNS = "id bigint PRIMARY KEY, name varchar(100), price numeric(12,2), amount integer NOT NULL, day date, note text"
FILL = "INSERT INTO items SELECT n, concat('name of item ', n), n * 0.37, n % 100000, DATE '2020-01-01', repeat(md5({text}), 4) FROM {numbers}"


class Nowhere(OffsetReader):
    """Has no offsets."""

    def offset(self, partition):
        return None


class Context(SourceTaskContext):
    connector, task, offset_reader = "soak", 0, Nowhere()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--most-mib", type=int, default=100)
    given = parser.parse_args()
    grown = {}
    with PostgreSql() as server:
        import psycopg

        with psycopg.connect(host="127.0.0.1", port=server.port, user="postgres", dbname="postgres", autocommit=True) as connection:
            connection.execute(f"CREATE TABLE items ({COLUMNS})")
            connection.execute(FILL.format(text="n::text", numbers=f"generate_series(1, {given.rows}) n"))
        grown["PostgreSQL"] = read("PostgreSQL", {"connection.url": server.jdbc, "tables": '"public"."items"'}, given.rows)
    with MariaDb() as server:
        import pymysql

        with pymysql.connect(host="127.0.0.1", port=server.port, user="root", password=server.password, autocommit=True) as connection:
            cursor = connection.cursor()
            cursor.execute("CREATE DATABASE soak")
            cursor.execute("USE soak")
            cursor.execute(f"CREATE TABLE items ({COLUMNS})")
            cursor.execute(FILL.format(text="n", numbers=f"(SELECT seq AS n FROM seq_1_to_{given.rows}) s"))
        url = f"{server.jdbc}soak?user=root&password={server.password}"
        grown["MariaDB"] = read("MariaDB", {"connection.url": url, "tables": "`soak`.`items`"}, given.rows)
    too_much = {name: size for name, size in grown.items() if size > given.most_mib * MIB}
    print("FAILED: memory grew" if too_much else "memory stayed flat")
    sys.exit(1 if too_much else 0)


def read(name, where, rows):
    """Return how many bytes the memory grew after the first tenth of the rows."""
    task = JdbcSourceTask()
    task.initialize(Context())
    task.start({"name": "soak", "mode": "incrementing", "incrementing.column.name": "id", "topic.prefix": "", "tables.fetched": "true", **where})
    count, first, most, begun = 0, None, 0, time.monotonic()
    try:
        while count < rows:
            batch = task.poll()
            if batch is None:
                continue
            count += len(batch)
            size = resident()
            if count >= rows // 10:
                first = first or size
                most = max(most, size)
    finally:
        task.stop()
        task.close()
    seconds = time.monotonic() - begun
    print(f"{name}: {count} rows, {count / seconds / 1000:.0f} k rows/s; {first // MIB} MiB resident, at most {most // MIB} MiB", flush=True)
    return most - first


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    main()
