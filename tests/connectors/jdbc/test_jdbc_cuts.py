"""Connections that a proxy cuts in the middle of what is said: nothing is lost, and with exactly.once=true nothing is written twice."""

import contextlib
import random
from types import SimpleNamespace

import pytest

from standalone import RetriableError, Schema
from tests.connectors.jdbc.sinks import sinks, struct
from tests.connectors.jdbc.tasks import SourceDriver
from tests.servers.proxy import Proxy, some_bytes

ITEM = struct(id=Schema.INT32, name=Schema.STRING)
PATIENT = {"connection.attempts": "100", "connection.backoff.ms": "1", "max.retries": "100"}
PAIR = ("t", 0)
ROUNDS, ROWS = 25, 20


@pytest.fixture(params=["postgresql", "mariadb"])
def database(request):
    return request.getfixturevalue(f"{request.param}_database")


@contextlib.contextmanager
def through_proxy(database):
    """(the proxy, the database as a connector sees it behind the proxy)"""
    with Proxy(0, ("127.0.0.1", database.port), read=some_bytes) as proxy:
        url = database.url.replace(f":{database.port}/", f":{proxy.port}/")
        yield proxy, SimpleNamespace(url=url, tables=database.tables)


def put_until_taken(sink, records, proxy, chance, most):
    """As a worker does: what a RetriableError has left undone comes again. How often it was cut."""
    for tries in range(100):
        proxy.cut_behind(chance.randrange(1, most) if tries < 3 else None)
        try:
            sink.put(*records)
            return tries
        except RetriableError:
            continue
    raise AssertionError("never taken")


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"exactly.once": "true"}, id="insert, exactly once"),
        pytest.param({"insert.mode": "upsert", "pk.mode": "record_value", "pk.fields": "id"}, id="upsert, at least once"),
    ],
)
def test_a_sink_writes_each_row_once(database, options):
    chance, cut = random.Random(7), 0
    key = "" if "exactly.once" in options else " PRIMARY KEY"
    database.run(f"CREATE TABLE t (id INTEGER{key}, name VARCHAR(20))")
    with through_proxy(database) as (proxy, seen), sinks(seen) as start:
        sink = start(**PATIENT, **options)
        if "exactly.once" in options:
            sink.task.open([PAIR])
        for low in range(0, ROUNDS * ROWS, ROWS):
            numbers = range(low, low + ROWS)
            cut += put_until_taken(sink, [sink.record(ITEM, {"id": each, "name": f"row {each}"}, offset=each) for each in numbers], proxy, chance, 6000)
        proxy.well()
    assert database.rows("SELECT id, name FROM t ORDER BY id") == [(each, f"row {each}") for each in range(ROUNDS * ROWS)]
    assert cut > ROUNDS / 4, "hardly a put was cut: that shows nothing"


def test_a_source_brings_each_row_once(database):
    chance, cuts = random.Random(11), 0
    count = 3000
    database.run(f"CREATE TABLE t (id {database.counting}, name TEXT)")
    database.run("INSERT INTO t (name) VALUES " + ", ".join(f"('row {each}')" for each in range(count)))
    with through_proxy(database) as (proxy, seen), SourceDriver(seen) as driver:
        task = driver.start(**PATIENT, **{"mode": "incrementing", "incrementing.column.name": "id", "batch.max.rows": "50"})
        found = []
        while len(found) < count:
            if proxy.cuts < 40:
                proxy.cut_behind(chance.randrange(1, 8_000))
            found += task.poll()
        cuts = proxy.cuts
        proxy.well()
        found += task.take(0)
    assert [record.value["name"] for record in found] == [f"row {each}" for each in range(count)]
    assert cuts >= 5, "it was hardly cut: that shows nothing"
