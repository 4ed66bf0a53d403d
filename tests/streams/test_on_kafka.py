"""The statements of shop.py on a real Kafka: asked once, and running on in Kafka's own transactions over a restart of the worker.

By night all statements of the table run, else some that are asked once, and three queries: one of a stream, one with state, one of tables.
"""

import json
import uuid

import pytest

from tests.streams.on_worker import Sql
from tests.streams.shop import QUERIES, T0, check_pulls, check_queries, opened
from tests.suite.night import IS_NIGHT

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SHORT = ("x_big", "x_sums", "x_lands")
ASKED = ("where", "by key", "pseudo columns", "group by what is exploded", "tumbling window", "left join")


def _chosen():
    return [query for query in QUERIES if IS_NIGHT or query[0].split()[2] in SHORT]


@pytest.mark.timeout(900)
def test_statements_and_queries_over_a_restart(kafka, start_worker, tmp_path):
    own = f"shop-{uuid.uuid4().hex[:8]}-"
    with start_worker(tmp_path, bootstrap__servers=kafka) as worker, opened(worker, own) as engine:
        check_pulls(engine, None if IS_NIGHT else ASKED)
    with start_worker(tmp_path, bootstrap__servers=kafka) as worker, opened(worker, f"{own}again-"):
        sql = Sql(worker)
        check_queries(sql, _chosen())
        sums = sql.records("x_sums")
        name = next(row[0] for row in sql.rows("SHOW QUERIES;") if row[2] == sql.text("x_sums"))
        _restarted(sql, name)
        worker.send(f"{own}again-orders", [((9).to_bytes(4, "big"), json.dumps({"usr": "eve", "total": 1.5, "tags": None, "at": T0 + 63_000, "extra": None}))])
        sql.final("x_sums", {b"ann": b'{"n":2,"s":40.5}', b"eve": b'{"n":2,"s":6.5}'})
        assert sql.records("x_sums")[: len(sums)] == sums and len(sql.records("x_sums")) == len(sums) + 1  # nothing came twice


def _restarted(sql, name):
    from standalone.testing import wait_for

    sql.engine.queries.restart(name, include_tasks=True)
    wait_for(lambda: sql.engine.queries.status(name)["tasks"][0]["state"] == "RUNNING")
